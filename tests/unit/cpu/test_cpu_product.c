/* test_cpu_product.c -- products of small matrices of every kernel, and through BLAS, against plain
 * sums.  Factors are small whole numbers, so results are exact. */
#include "check.h"
#include "cpu_fixture.h"

#define MOST 72  /* rows, columns and inner numbers */
#define PLAIN 99 /* what stands in c before */

static float a[MOST * MOST], b[MOST * MOST], c[MOST * MOST];

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t token_of(const SmallProduct *p, int64_t row)
{
    return row / (p->rows_each ? p->rows_each : 1);
}

static void fill(const SmallProduct *p)
{
    for (int x = 0; x < MOST * MOST; x++) {
        a[x] = (float)((x * 7) % 11 - 5);
        b[x] = (float)((x * 5) % 13 - 6);
        c[x] = PLAIN;
    }
    for (int64_t r = 0; r < p->rows && p->inner_each; r++)
        for (int64_t t = (token_of(p, r) + 1) * p->inner_each; t < p->inner; t++)
            a[r * p->lda + t * p->step] = 0;
}

static void check_product(void (*product)(const SmallProduct *), const SmallProduct *p)
{
    fill(p);
    product(p);
    for (int64_t r = 0; r < MOST; r++)
        for (int64_t x = 0; x < MOST; x++) {
            int64_t end = p->cols_each ? (token_of(p, r) + 1) * p->cols_each : p->cols;
            double  sum = 0;

            if (r >= p->rows || x >= p->cols) {
                assert_true(c[r * MOST + x] == PLAIN);
                continue;
            }
            for (int64_t t = 0; t < p->inner; t++)
                sum += (double)a[r * p->lda + t * p->step] * (double)b[t * MOST + x];
            sum = (double)p->alpha * sum + (p->add ? PLAIN : 0);
            if (x < end)
                assert_true((double)c[r * MOST + x] == sum);
        }
}

static void check_sizes(void (*product)(const SmallProduct *))
{
    static const int64_t sizes[] = { 1, 3, 4, 6, 16, 23, 33, 48, 64, 70 };

    for (int y = 0; y < 10; y++)
        for (int x = 0; x < 10; x++)
            for (int form = 0; form < 12; form++) {
                int64_t      each = 1 + form / 2 % 2, writes = form / 4; /* 0: no triangle */
                bool         turned = form % 2 != 0;
                SmallProduct p = { .a = a, .lda = turned ? 1 : MOST, .step = turned ? MOST : 1,
                                   .b = b, .ldb = MOST, .rows = sizes[y], .cols = sizes[x],
                                   .inner = sizes[(x + 3 * y) % 10], .alpha = form % 3 ? 1 : -2,
                                   .add = form > 5, .c = c, .ldc = MOST };

                check_product(product, &p);
                p.rows_each = each;
                p.inner_each = writes;
                check_product(product, &p);
                p.inner_each = 0;
                p.cols_each = writes;
                p.cols = writes ? least(p.cols, (p.rows + each - 1) / each * writes) : p.cols;
                check_product(product, &p);
            }
}

TEST(small_products_of_every_kernel)
{
    for (int which = 0; kernel_at(which); which++)
        check_sizes(kernel_at(which)->product);
}

TEST(small_products_of_this_machine)
{
    Fixture f = fixture_new(1, 3);

    assert_true(cpu_blas(f.run));
    check_sizes(cpu_product);
    fixture_free(&f);
}

SUITE(NULL, NULL)
