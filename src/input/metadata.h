/* input/metadata.h -- what a file says about its arrays.
 *
 * Keys: layout ("n,h,d"), causal (1, 0, true, false), scale (a number above
 * 0), width (of a raster, in pixels), model (text), tokens (a JSON list of
 * texts or ids).  tokens, q_tokens and k_tokens may also be arrays of text or
 * of integers.  A value that is not understood is an error, never ignored.
 */
#ifndef INPUT_METADATA_H
#define INPUT_METADATA_H

#include "input/store.h"

/* The layout as letters ("nhd"), empty when the file has none. */
bool metadata_layout(const Store *store, char letters[STORE_MAX_RANK + 1], Error *err);

/* causal, scale, width and model of `in`. */
bool metadata_scalars(Input *in, const Store *store, Error *err);

/* The labels of `in`, whose n and m are the file's. */
bool metadata_tokens(Input *in, Store *store, Error *err);

/* The array `segments` of `in`: one whole number a position. */
bool metadata_segments(Input *in, Store *store, Error *err);

#endif
