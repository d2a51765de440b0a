/* image_local.c -- the Image Transformer: local attention in one and two dimensions. */
#include <math.h>

#include "attn/run.h"

/* Image Transformer, 1-D local attention.
 *
 * Queries are taken in blocks of l_q; all queries of a block share one strip of
 * memory: with B = l_q floor(i / l_q), i sees j in [B - l_m, B + l_q), and l_m
 * positions after the block too when `both`.
 */

typedef struct Strip1d {
    int64_t query_block, memory;
    bool    both;
    double  scale, softcap;
} Strip1d;

static const Param image_local_1d_params[] = {
    PARAM_INT(Strip1d, query_block, 8, 1, PARAM_COUNT_MAX, "queries that share one memory strip"),
    PARAM_INT(Strip1d, memory, 8, 0, PARAM_COUNT_MAX, "positions before the block they see"),
    PARAM_BOOL(Strip1d, both, false, "as many positions after the block too (encoder form)"),
    PARAM_FLOAT(Strip1d, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Strip1d), PARAM_END
};

static void image_local_1d_run(Run *r, const void *opaque)
{
    const Strip1d *p = opaque;
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->n };
    Pattern *cells = pattern_local(r->arena, s, p->query_block, p->memory, p->both ? p->memory : 0);

    run_pattern_attention(r, p->scale, pattern_finish(r->arena, s, cells, r->causal));
}

static Flops image_local_1d_flops(Run *r, const void *opaque)
{
    const Strip1d *p = opaque;
    double         cells = 0, b = (double)p->query_block, n = (double)r->n;
    double         before = (double)p->memory, after = p->both ? before : 0;

    for (double first = 0; first < n; first += b) {
        double last = first + b < n ? first + b : n, rows = last - first;
        double lo = first > before ? first - before : 0;
        double hi = first + b + after < n ? first + b + after : n;

        cells += r->causal ? rows * (first - lo) + rows * (rows + 1) / 2 : rows * (hi - lo);
    }
    return run_pattern_flops(r, (double)r->h * cells);
}

static const ViewPromise image_local_1d_views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_image_local_1d = {
    .id = "image-local-1d",
    .title = "Image Transformer, 1-D local",
    .authors = "Parmar et al.",
    .year = 2018,
    .arxiv = "1802.05751",
    .source = "paper, section 3.2; tensor2tensor local_attention_1d",
    .formula = "A = { B - l_m <= j < B + l_q }, B = l_q floor(i / l_q)",
    .problem = "An image is a very long sequence of pixels.",
    .idea = "The pixels are cut into blocks in reading order, and each block of queries shares "
            "one strip of memory.",
    .price = "In reading order the pixel below is far away, so a strip sees little of the "
             "vertical neighbourhood.",
    .lesson = "patterns",
    .teaches = "Every query of a block shares one memory strip: steps, not a sliding band.",
    .classes = CLASS_FP,
    .claim_time = "O(n (l_q + l_m))",
    .claim_memory = "O(n (l_q + l_m))",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = image_local_1d_views,
    .size = "memory",
    .params = image_local_1d_params,
    .params_size = sizeof(Strip1d),
    .run = image_local_1d_run,
    .flops = image_local_1d_flops,
    .decode = decode_cells,
};

/* Image Transformer, 2-D local attention.
 *
 * The sequence is an image of `width` columns, cut into query blocks of h_q x w_q
 * pixels.  A query sees the memory rectangle of its block: the block itself, h_m rows
 * above it (both: below it too) and w_m columns to each side:
 *
 *     r0 - h_m <= y < r0 + h_q (+ h_m),   c0 - w_m <= x < c0 + w_q + w_m
 *
 * Causal, order=blocks: keys that are not later when the blocks, and the pixels in a
 * block, are made in raster order; the matrix is then not triangular in token order.
 */

enum { ORDER_BLOCKS, ORDER_RASTER };

static const char *const orders[] = { "blocks", "raster", NULL };

typedef struct Block2d {
    int64_t width, query_height, query_width, memory_height, memory_width;
    bool    both;
    int     order;
    double  scale, softcap;
} Block2d;

static const Param image_local_2d_params[] = {
    PARAM_INT(Block2d, width, 0, 0, PARAM_COUNT_MAX,
              "columns of the image; 0: as the input says, else sqrt(n), rounded"),
    PARAM_INT(Block2d, query_height, 2, 1, PARAM_COUNT_MAX, "h_q, rows of a query block"),
    PARAM_INT(Block2d, query_width, 2, 1, PARAM_COUNT_MAX, "w_q, columns of a query block"),
    PARAM_INT(Block2d, memory_height, 1, 0, PARAM_COUNT_MAX, "h_m, rows seen above the block"),
    PARAM_INT(Block2d, memory_width, 1, 0, PARAM_COUNT_MAX, "w_m, columns seen on each side"),
    PARAM_BOOL(Block2d, both, false, "as many rows below the block too"),
    PARAM_ENUM(Block2d, order, ORDER_BLOCKS, orders,
               "what is earlier in a causal run: block by block, or row by row"),
    PARAM_FLOAT(Block2d, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Block2d), PARAM_END
};

static bool sees_ahead(const Run *r, const Block2d *p);
static Pattern *image_cells_of(Run *r, PatternShape s, const Block2d *p);
static double area(const Run *r, int64_t width, int64_t y0, int64_t y1, int64_t x0, int64_t x1);

static void image_local_2d_run(Run *r, const void *opaque)
{
    const Block2d *p = opaque;
    PatternShape   s = { .heads = r->h, .n = r->n, .m = r->n };

    r->keys_ahead = sees_ahead(r, p);
    run_pattern_attention(r, p->scale, image_cells_of(r, s, p));
}

/* The order of the blocks may let a query see keys behind it in the raster. */
static bool sees_ahead(const Run *r, const Block2d *p)
{
    return r->causal && p->order == ORDER_BLOCKS;
}

static Pattern *image_cells_of(Run *r, PatternShape s, const Block2d *p)
{
    int64_t  width = run_image_width(r, p->width);
    Pattern *seen = pattern_image(r->arena, s, width, p->query_height, p->query_width,
                                  p->memory_height, p->memory_width,
                                  p->both ? p->memory_height : 0);

    if (sees_ahead(r, p))
        seen = pattern_intersect(r->arena, seen,
                                 pattern_image_order(r->arena, s, width, p->query_height,
                                                     p->query_width));
    return pattern_finish(r->arena, s, seen, r->causal && !sees_ahead(r, p));
}

/* Sum over query blocks of their pixels times the pixels of the memory rectangle; the set algebra
 * counts the cells of a causal run. */
static Flops image_local_2d_flops(Run *r, const void *opaque)
{
    const Block2d *p = opaque;
    int64_t        width = run_image_width(r, p->width), rows = (r->n - 1) / width + 1;
    int64_t        hq = min_i64(p->query_height, r->n), wq = min_i64(p->query_width, r->n);
    int64_t        hm = min_i64(p->memory_height, r->n), wm = min_i64(p->memory_width, r->n);
    int64_t        columns = min_i64(width, r->n); /* those that have pixels */
    PatternShape   s = { .heads = r->h, .n = r->m, .m = r->m };
    double         cells = 0;

    if (r->causal)
        return run_pattern_flops(r, run_count_cells(r, image_cells_of(r, s, p)));
    for (int64_t y = 0; y < rows; y += hq)
        for (int64_t x = 0; x < columns; x += wq)
            cells += area(r, width, y, y + hq, x, x + wq) *
                     area(r, width, y - hm, y + hq + (p->both ? hm : 0), x - wm, x + wq + wm);
    return run_pattern_flops(r, (double)r->h * cells);
}

/* Pixels of the rectangle [y0, y1) x [x0, x1) that exist. */
static double area(const Run *r, int64_t width, int64_t y0, int64_t y1, int64_t x0, int64_t x1)
{
    int64_t rows = (r->n - 1) / width, rest = r->n - rows * width; /* rest: the last row */
    double  pixels;

    y0 = y0 < 0 ? 0 : y0;
    x0 = x0 < 0 ? 0 : x0;
    x1 = min_i64(x1, width);
    pixels = min_i64(y1, rows) > y0 ? (double)(min_i64(y1, rows) - y0) * (double)(x1 - x0) : 0;
    if (y0 <= rows && y1 > rows && min_i64(x1, rest) > x0)
        pixels += (double)(min_i64(x1, rest) - x0);
    return pixels;
}

static const ViewPromise image_local_2d_views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_image_local_2d = {
    .id = "image-local-2d",
    .title = "Image Transformer, 2-D local",
    .authors = "Parmar et al.",
    .year = 2018,
    .arxiv = "1802.05751",
    .source = "paper, section 3.2; survey of Tay et al., section 3.2.2 and figure 3",
    .formula = "A = { key pixel in the rectangle of the query's block:\n"
               "      h_m rows above, w_m columns to each side }\n"
               "m: keys of a rectangle",
    .problem = "In reading order the pixel above is a whole row away.",
    .idea = "A rectangle of queries shares one rectangle of memory around it.",
    .price = "Pixels outside the rectangle are seen only through more layers.",
    .lesson = "patterns",
    .teaches = "On the image: one block of queries shares one rectangle of memory.  In the matrix "
               "the same is a comb.",
    .classes = CLASS_FP,
    .claim_time = "O(n m)",
    .claim_memory = "O(n m)",
    .claim_decode = "yes, block by block",
    .claim_exponent = 1,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = image_local_2d_views,
    .params = image_local_2d_params,
    .params_size = sizeof(Block2d),
    .run = image_local_2d_run,
    .flops = image_local_2d_flops,
    .on_grid = true,
    .decode = decode_cells,
};
