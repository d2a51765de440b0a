/* attn/mech/memory/image_convolved.h -- a convolution over tokens that are the pixels of an image. */
#ifndef ATTN_MECH_MEMORY_IMAGE_CONVOLVED_H
#define ATTN_MECH_MEMORY_IMAGE_CONVOLVED_H

#include "attn/ops/ops.h"

#define IMAGE_TAPS 9 /* of 3 x 3 */

typedef struct ImageGrid {
    int64_t height, width; /* of the image: tokens row by row */
} ImageGrid;

/* z f64 [1,n,cols] by the taps [3,3,cols,out], the parameter `name` as given or drawn: f64
 * [1,n,out]. */
Tensor image_convolved(Run *r, ImageGrid grid, const char *name, Tensor given, Tensor z,
                       int64_t out);

#endif
