/* image_convolved.c -- a 3 x 3 convolution over tokens that are the pixels of an image.
 *
 * Nine products, one for each tap: the image is moved by the tap, with 0 from outside.
 */
#include "attn/mech/memory/image_convolved.h"

#include "attn/run.h"

/* Pixels [i,i+rows) x [j,j+width) of t [1,n,cols], an image. */
static Tensor pixels(ImageGrid grid, Tensor t, int64_t i, int64_t rows, int64_t j, int64_t width)
{
    int64_t cols = t.shape[2];
    Tensor  y = tensor_of(DT_F64, 3, (int64_t[]){ rows, width, cols },
                          (double *)t.data + (i * grid.width + j) * cols);

    y.stride[0] = grid.width * cols;
    return y;
}

static int64_t positive(int64_t x)
{
    return x > 0 ? x : 0;
}

/* to [1,n,cols] = z moved by a tap: pixel (i + tap/3 - 1, j + tap%3 - 1), 0 outside. */
static void move_pixels(Run *r, ImageGrid grid, Tensor z, int64_t tap, Tensor to)
{
    int64_t down = tap / 3 - 1, along = tap % 3 - 1;
    int64_t rows = grid.height - (down != 0), width = grid.width - (along != 0);

    if (down || along)
        op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 0, to);
    op_entries(r, pixels(grid, z, positive(down), rows, positive(along), width), ENTRY_CAST, 0,
               pixels(grid, to, positive(-down), rows, positive(-along), width));
}

Tensor image_convolved(Run *r, ImageGrid grid, const char *name, Tensor given, Tensor z,
                       int64_t out)
{
    int64_t   cols = z.shape[2];
    Init      init = { INIT_GLOROT, IMAGE_TAPS * ((double)cols + (double)out) };
    Tensor    taps = layer_weight(r, name, given, 4, (int64_t[]){ 3, 3, cols, out }, init);
    Tensor    y = run_tensor3(r, DT_F64, 1, r->n, out), moved;
    ArenaMark mark = arena_mark(r->arena);

    moved = run_tensor3(r, DT_F64, 1, r->n, cols);
    for (int64_t tap = 0; tap < IMAGE_TAPS && !run_failed(r); tap++) {
        Tensor w = tensor_of(DT_F32, 3, (int64_t[]){ 1, cols, out },
                             tensor_f32(&taps) + tap * cols * out);

        move_pixels(r, grid, z, tap, moved);
        op_gemm(r, moved, false, w, false, 1, tap > 0, y, FLOP_OVERHEAD);
    }
    arena_release(r->arena, mark);
    return y;
}
