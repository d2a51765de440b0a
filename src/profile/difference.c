/* difference.c -- two runs against each other; see measure.h. */
#include <math.h>
#include <stdlib.h>

#include "attn/study/row.h"
#include "profile/measure.h"

static void compare_outputs(const Tensor *a, const Tensor *b, Difference *out)
{
    int64_t count = tensor_count(a);
    double  squares = 0, norm = 0;

    for (int64_t i = 0; i < count; i++) {
        double x = (double)tensor_f32(a)[i], y = (double)tensor_f32(b)[i], diff = fabs(x - y);

        out->mean_abs += diff;
        squares += diff * diff;
        norm += y * y;
        if (!(diff <= out->max_abs))
            out->max_abs = diff;
    }
    out->mean_abs /= count ? (double)count : 1;
    out->rel_l2 = norm > 0 ? sqrt(squares / norm) : squares > 0 ? (double)INFINITY : 0;
}

typedef struct Rows {
    const View *a, *b;
    int64_t     heads, n, m;
    float      *x, *y;
} Rows;

static void read_line(const View *view, int64_t head, int64_t i, float *out)
{
    view_read(view, view_planes(view) > 1 ? head : 0, i, 0, view_cols(view), 1, out);
}

/* Half the sum of |a - b| over all rows, and KL where every row has one. */
static bool differ_rows(const Rows *rows, const atomic_bool *cancel, Difference *out)
{
    double  distance = 0, kl = 0;
    int64_t count = 0;

    for (int64_t r = 0; r < rows->heads * rows->n; r++) {
        double row;

        if (cancel && atomic_load(cancel))
            return false;
        read_line(rows->a, r / rows->n, r % rows->n, rows->x);
        read_line(rows->b, r / rows->n, r % rows->n, rows->y);
        distance += row_distance(rows->x, rows->y, 1, rows->m);
        row = out->kl_lacks ? (double)NAN
                            : row_divergence(rows->x, row_sum(rows->x, rows->m), rows->y,
                                             row_sum(rows->y, rows->m), rows->m, &out->kl_lacks);
        kl += isnan(row) ? 0 : row;
        count += !isnan(row);
    }
    out->total_variation = number_of(distance / 2 / (double)(rows->heads * rows->n));
    if (count && !out->kl_lacks)
        out->kl = number_of(kl / (double)count);
    return true;
}

static bool differ_weights(const Run *a, const Run *b, const atomic_bool *cancel, Difference *out,
                            Error *err)
{
    Rows rows = { .a = run_matrix(a, "weights"), .b = run_matrix(b, "weights"), .heads = a->h,
                  .n = a->n, .m = a->m };
    bool ok;

    if (!rows.a || !rows.b || a->m != b->m) {
        out->kl_lacks = rows.a && rows.b ? "the runs have different numbers of keys"
                                         : "one of the runs shows no weights of queries on keys";
        return true;
    }
    rows.x = malloc(2 * (size_t)rows.m * sizeof(*rows.x));
    if (!rows.x)
        return error_set(err, ERR_NOMEM, "not enough memory for two rows of %lld keys",
                         (long long)rows.m);
    rows.y = rows.x + rows.m;
    ok = differ_rows(&rows, cancel, out) || error_set(err, ERR_CANCELLED, "interrupted");
    free(rows.x);
    return ok;
}

bool runs_differ(const Run *a, const Run *b, const atomic_bool *cancel, Difference *out,
                 Error *err)
{
    char text[2][80];

    *out = (Difference){ .max_abs = 0 };
    if (!tensor_same_shape(&a->out, &b->out))
        return error_set(err, ERR_USAGE, "the outputs have shapes %s and %s",
                         tensor_shape_text(&a->out, text[0], sizeof(text[0])),
                         tensor_shape_text(&b->out, text[1], sizeof(text[1])));
    compare_outputs(&a->out, &b->out, out);
    return differ_weights(a, b, cancel, out, err);
}
