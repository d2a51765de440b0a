/* weights.c -- whether an array is finished attention weights.
 *
 * An array that no name says what it is must hold them: else it is refused.  One that its file
 * calls attn is taken as it is, with a warning, because not all attention is a softmax.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "input/store.h"

#define WEIGHT_TOLERANCE 1e-3 /* of a row's sum: weights may have been rounded to 16 bits */

typedef enum RowFault { ROW_GOOD, ROW_SUM, ROW_NEGATIVE } RowFault;

/* *value: the sum, or the first negative weight. */
static RowFault row_fault(const float *row, int64_t m, double *value)
{
    double sum = 0;

    for (int64_t j = 0; j < m; j++) {
        if (row[j] < 0) {
            *value = (double)row[j];
            return ROW_NEGATIVE;
        }
        sum += (double)row[j];
    }
    *value = sum;
    return fabs(sum - 1) <= WEIGHT_TOLERANCE ? ROW_GOOD : ROW_SUM;
}

const char *weights_naming(const char *kind, char *text, size_t size)
{
    bool one = !strcmp(kind, "npy") || !strcmp(kind, "csv");

    snprintf(text, size, one ? "the name of the file says what it is (x.%s, attn.%s), or "
                               "'FILE[x=NAME]'; q, k and v need a file of several arrays"
                             : "name arrays q, k, v, x or attn", kind, kind);
    return text;
}

bool weights_are_finished(const Tensor *t, const char *name, const char *kind, Error *err)
{
    int64_t rows = t->shape[0] * t->shape[1], m = t->shape[2];
    char    naming[160];

    for (int64_t i = 0; i < rows; i++) {
        double   value;
        RowFault fault = row_fault(tensor_f32(t) + i * m, m, &value);

        if (fault != ROW_GOOD)
            return error_set(err, ERR_DATA, "the only array, %.80s, is not finished attention "
                             "weights: row %lld %s %g%s; %s", name, (long long)i,
                             fault == ROW_SUM ? "sums to" : "holds", value,
                             fault == ROW_SUM ? ", not 1" : "",
                             weights_naming(kind, naming, sizeof(naming)));
    }
    return true;
}

/* Rows with a fault of this kind, and the first of them.  A row of zeros (padding) and one with NaN
 * (another warning) have none. */
static int64_t rows_with(const Tensor *t, RowFault kind, int64_t *first, double *value)
{
    int64_t rows = t->shape[0] * t->shape[1], m = t->shape[2], count = 0;

    for (int64_t i = 0; i < rows; i++) {
        double of;

        if (row_fault(tensor_f32(t) + i * m, m, &of) != kind || of == 0 || isnan(of))
            continue;
        if (!count++) {
            *first = i;
            *value = of;
        }
    }
    return count;
}

static bool warn(Input *in, int64_t count, int64_t first, double value, const char *what,
                 const char *means, Error *err)
{
    int64_t n = in->attn.shape[1], rows = in->attn.shape[0] * n;

    in->warning = arena_printf(in->arena, "%lld of %lld rows of attn %s (head %lld, query %lld: "
                               "%g); %s", (long long)count, (long long)rows, what,
                               (long long)(first / n), (long long)(first % n), value, means);
    return in->warning || error_set(err, ERR_NOMEM, "no memory for a note");
}

bool weights_note(Input *in, bool whole, Error *err)
{
    int64_t first = 0, count;
    double  value = 0;

    if (!in->attn.data || in->warning)
        return true;
    count = rows_with(&in->attn, ROW_NEGATIVE, &first, &value);
    if (count)
        return warn(in, count, first, value, "hold a negative weight",
                    "no softmax gives one: are these scores?", err);
    count = whole ? rows_with(&in->attn, ROW_SUM, &first, &value) : 0;
    return !count || warn(in, count, first, value, "do not sum to 1",
                          "they are drawn and mixed as they are", err);
}
