/* core/utf8.h -- UTF-8 (RFC 3629): the one decoder and the one encoder of the program.
 *
 * A malformed byte is a character of its own, so any bytes (a token cut inside a letter) can be
 * read to their end.
 */
#ifndef CORE_UTF8_H
#define CORE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_MALFORMED   0xFFFFFFFFu /* beyond all characters */
#define UTF8_REPLACEMENT 0xFFFDu     /* what is shown in its place */

/* Bytes of the well-formed character that begins at text, of which `size` bytes are there; 0:
 * malformed, cut off, or size is 0.  code: the character, UTF8_MALFORMED with 0; may be NULL. */
int utf8_decode(const void *text, size_t size, uint32_t *code);
/* The character at *text, a text that ends in NUL and is not at its end; *text moves past it. */
uint32_t utf8_next(const char **text);

/* Writes the character, UTF8_REPLACEMENT for what is none; returns how many bytes, without NUL. */
int utf8_encode(uint32_t code, char out[4]);

/* The byte is not the first of a character. */
bool utf8_continues(char byte);
/* Characters that begin within `length` bytes. */
int utf8_count(const char *text, size_t length);
/* Control characters: C0, DEL and C1. */
bool utf8_is_control(uint32_t code);
/* Characters that make a terminal show others in another order: embeddings, overrides, isolates. */
bool utf8_reorders(uint32_t code);

#endif
