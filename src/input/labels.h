/* input/labels.h -- token labels and numbers as text.
 *
 * Labels are shown on terminals and written into figures, so they are always
 * valid UTF-8 without control characters: what is not UTF-8 becomes U+FFFD, a
 * control character its picture (a newline is U+240A).  Numbers are parsed and printed
 * with a decimal point whatever the process's locale says.
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

/* The bytes as a label in the arena; NULL when it refuses. */
char *labels_copy(Arena *arena, const uint8_t *text, int64_t size);

/* The whole text (spaces around it allowed) as a number. */
bool labels_parse(const char *text, size_t length, double *out);
/* Shortest text that reads back; returns text. */
char *labels_number(double value, char *text, size_t size);

/* What a file says about its arrays.
 *
 * Keys: layout ("n,h,d"), causal (1, 0, true, false), scale (a number above
 * 0), width (of a raster, in pixels), model (text), tokens (a JSON list of
 * texts or ids).  tokens, q_tokens and k_tokens may also be arrays of text or
 * of integers.  A value that is not understood is an error, never ignored.
 */

/* The layout as letters ("nhd"), empty when the file has none. */
bool metadata_layout(const Store *store, char letters[STORE_MAX_RANK + 1], Error *err);

/* causal, scale, width and model of `in`. */
bool metadata_scalars(Input *in, const Store *store, Error *err);

/* The labels of `in`, whose n and m are the file's. */
bool metadata_tokens(Input *in, Store *store, Error *err);

/* The array `segments` of `in`: one whole number a position. */
bool metadata_segments(Input *in, Store *store, Error *err);

#endif
