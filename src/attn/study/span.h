/* attn/study/span.h -- one query's row of a matrix, laid out as the image its keys come from.
 *
 * Key j of the sequence is the pixel (floor(j/width), j mod width).  The result is an
 * ordinary view of height x width entries in one plane: cells that the query does not
 * see, and pixels past the end of the sequence, are outside its support.
 */
#ifndef ATTN_STUDY_SPAN_H
#define ATTN_STUDY_SPAN_H

#include <stdint.h>

#include "attn/run/view.h"
#include "core/arena.h"

/* `base` must outlive the view and have keys as columns; NULL: no memory. */
const View *span_view(Arena *a, const View *base, int64_t plane, int64_t query, int64_t width);

#endif
