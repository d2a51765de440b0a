/* input/labels.h -- token labels, numbers as text, and a file's metadata.
 *
 * Labels appear on terminals and in figures, so they are valid UTF-8 without control characters:
 * malformed bytes become U+FFFD, a control character its picture (a newline U+240A). Numbers have
 * a decimal point in every locale.
 */
#ifndef INPUT_LABELS_H
#define INPUT_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "input/store.h"

/* One text element as UTF-8, cut to fit; returns its length. */
int64_t labels_text(ElementType type, const uint8_t *src, char *out, int64_t size);

/* The bytes as a label in the arena; NULL: out of memory. */
char *labels_copy(Arena *arena, const uint8_t *text, int64_t size);

/* Parses the whole text (blanks around it allowed) as a number. */
bool labels_parse(const char *text, size_t length, double *out);
/* Shortest text that reads back; returns text. */
char *labels_number(double value, char *text, size_t size);

/* A file's metadata.
 *
 * Keys: layout ("n,h,d"), causal (1, 0, true, false), scale (a number above 0), width (of a
 * raster, in pixels), window (of the model's attention, in keys), model (text), tokens (a JSON list
 * of texts or ids). tokens, q_tokens and k_tokens may also be arrays of text or integers. A
 * malformed value is an error, never ignored.
 */

/* The layout as letters ("nhd"), empty when the file has none. */
bool metadata_layout(const Store *store, char letters[STORE_MAX_RANK + 1], Error *err);

/* causal, scale, width, window and model of `in`. */
bool metadata_scalars(Input *in, const Store *store, Error *err);

/* The labels of `in`, whose n and m are the file's. */
bool metadata_tokens(Input *in, Store *store, Error *err);

/* The array `segments` of `in`: one whole number a position. */
bool metadata_segments(Input *in, Store *store, Error *err);

#endif
