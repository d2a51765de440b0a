/* kernel_product.h -- the part of kernel_body.h that multiplies small matrices, whose factors lie
 * in the caches and are read where they lie. */

/* `rows` x `vecs` vectors of the product; the last vector has only `part` columns when part > 0. */
INLINE void tile_product(const SmallProduct *p, const float *a, const float *b, int64_t inner,
                         const int rows, const int vecs, const int64_t part, float *c)
{
    Vec sum[TILE_ROWS][VECS];

    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int x = 0; x < vecs; x++)
            sum[r][x] = vec_splat(0.0f);
    for (int64_t t = 0; t < inner; t++, a += p->step, b += p->ldb) {
        Vec right[VECS];

        UNROLL for (int x = 0; x < vecs; x++)
            right[x] = part ? vec_load_part(b, part) : vec_load(b + x * WIDTH);
        UNROLL for (int r = 0; r < rows; r++) {
            Vec left = vec_splat(a[r * p->lda]);

            UNROLL for (int x = 0; x < vecs; x++)
                sum[r][x] = vec_fma(left, right[x], sum[r][x]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int x = 0; x < vecs; x++) {
            float *to = c + r * p->ldc + x * WIDTH;
            Vec    y = vec_mul(vec_splat(p->alpha), sum[r][x]);

            if (p->add)
                y = vec_add(part ? vec_load_part(to, part) : vec_load(to), y);
            if (part)
                vec_store_part(to, part, y);
            else
                vec_store(to, y);
        }
}

/* Two tiles of one vector, one below the other: a single one has too few sums to hide the latency
 * of a product. */
INLINE void tiles_product(const SmallProduct *p, const float *a, const float *b, float *c)
{
    const float *below = a + TILE_ROWS * p->lda;
    Vec          sum[2][TILE_ROWS];

    UNROLL for (int r = 0; r < TILE_ROWS; r++)
        sum[0][r] = sum[1][r] = vec_splat(0.0f);
    for (int64_t t = 0; t < p->inner; t++, a += p->step, below += p->step, b += p->ldb) {
        Vec right = vec_load(b);

        UNROLL for (int r = 0; r < TILE_ROWS; r++)
            sum[0][r] = vec_fma(vec_splat(a[r * p->lda]), right, sum[0][r]);
        UNROLL for (int r = 0; r < TILE_ROWS; r++)
            sum[1][r] = vec_fma(vec_splat(below[r * p->lda]), right, sum[1][r]);
    }
    UNROLL for (int half = 0; half < 2; half++)
        UNROLL for (int r = 0; r < TILE_ROWS; r++) {
            float *to = c + (half * TILE_ROWS + r) * p->ldc;
            Vec    y = vec_mul(vec_splat(p->alpha), sum[half][r]);

            vec_store(to, p->add ? vec_add(vec_load(to), y) : y);
        }
}

/* Tokens that rows before `end` belong to. */
INLINE int64_t product_tokens(const SmallProduct *p, int64_t end)
{
    return (end + p->rows_each - 1) / p->rows_each;
}

/* How much of a row of a is needed for rows before `end`. */
INLINE int64_t product_depth(const SmallProduct *p, int64_t end)
{
    int64_t below = p->inner_each ? product_tokens(p, end) * p->inner_each : p->inner;

    return below < p->inner ? below : p->inner;
}

/* How many columns from `at` on are needed for rows before `end`. */
INLINE int64_t product_width(const SmallProduct *p, int64_t end, int64_t at)
{
    return (p->cols_each ? product_tokens(p, end) * p->cols_each : p->cols) - at;
}

/* Rows r .. r + rows - 1, without vectors that are not needed. */
INLINE void rows_product(const SmallProduct *p, int64_t r, int64_t at, const int rows,
                         const int vecs, const int64_t part)
{
    int64_t      width = product_width(p, r + rows, at), depth = product_depth(p, r + rows);
    const float *a = p->a + r * p->lda, *b = p->b + at;
    float       *c = p->c + r * p->ldc + at;

    if (width <= 0)
        return;
    if (vecs > 1 && width <= WIDTH)
        tile_product(p, a, b, depth, rows, 1, 0, c);
    else if (vecs > 2 && width <= 2 * WIDTH)
        tile_product(p, a, b, depth, rows, VECS > 2 ? 2 : 1, 0, c);
    else if (vecs > 3 && width <= 3 * WIDTH)
        tile_product(p, a, b, depth, rows, VECS > 3 ? 3 : 1, 0, c);
    else
        tile_product(p, a, b, depth, rows, vecs, part, c);
}

INLINE void strip_product(const SmallProduct *p, int64_t at, const int vecs, const int64_t part)
{
    int64_t r = 0;

    for (; vecs == 1 && !part && !p->rows_each && r + 2 * TILE_ROWS <= p->rows; r += 2 * TILE_ROWS)
        tiles_product(p, p->a + r * p->lda, p->b + at, p->c + r * p->ldc + at);
    for (; r + TILE_ROWS <= p->rows; r += TILE_ROWS)
        rows_product(p, r, at, TILE_ROWS, vecs, part);
    for (; r + 4 <= p->rows; r += 4)
        rows_product(p, r, at, 4, vecs, part);
    for (; r < p->rows; r++)
        rows_product(p, r, at, 1, vecs, part);
}

static TARGET void small_product(const SmallProduct *p)
{
    int64_t at = 0;

    for (; p->cols - at >= STRIP; at += STRIP)
        strip_product(p, at, VECS, 0);
    for (; p->cols - at >= WIDTH; at += WIDTH)
        strip_product(p, at, 1, 0);
    if (at < p->cols)
        strip_product(p, at, 1, p->cols - at);
}
