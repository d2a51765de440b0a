/* view.c -- reading views, whatever their source; see view.h. */
#include "attn/run/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/pattern/runs.h"
#include "core/text.h"

static const struct {
    const char *name, *meaning;
} kinds[] = {
#define VIEW_KIND(name, cell) { #name, cell },
#include "attn/run/views.def"
#undef VIEW_KIND
};

const char *view_kind_name(ViewKind kind)
{
    return kinds[kind].name;
}

const char *view_kind_meaning(ViewKind kind)
{
    return kinds[kind].meaning;
}

int64_t view_planes(const View *v)
{
    int64_t planes = 1;

    for (int i = 0; i + 2 < v->rank; i++)
        planes *= v->shape[i];
    return planes;
}

int64_t view_rows(const View *v)
{
    return v->rank < 2 ? 1 : v->shape[v->rank - 2];
}

int64_t view_cols(const View *v)
{
    return v->rank < 1 ? 1 : v->shape[v->rank - 1];
}

bool view_shared(const View *v)
{
    return v->rank < 3;
}

int64_t view_load(const ViewLoad *load, int64_t plane, int64_t at, int64_t *over)
{
    const Tensor *used = &load->used;
    int64_t       place = (used->rank > 1 ? plane * used->shape[1] : 0) + at;

    if (over)
        *over = load->over.data ? tensor_i32(&load->over)[place] : 0;
    return tensor_i32(used)[place];
}

bool view_curve(const View *v, ViewCurve *out)
{
    if (v->curve && v->curve->y) {
        *out = *v->curve;
        return true;
    }
    *out = (ViewCurve){ .x = v->cols ? v->cols : "", .y = v->name, .mark = CURVE_LINE };
    if (v->kind == VIEW_COUNT)
        out->mark = CURVE_BARS;
    if (v->kind == VIEW_BUCKETS || v->kind == VIEW_ORDER)
        out->mark = CURVE_POINTS;
    return v->rank == 1 && v->shape[0] > 0;
}

static double tensor_at(const Tensor *t, int64_t at)
{
    Tensor flat = tensor_of(t->dtype, 1, (int64_t[]){ at + 1 }, t->data);

    return tensor_get(&flat, &at);
}

static void read_tensor(const View *v, int64_t plane, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    int64_t base = (plane * view_rows(v) + i) * view_cols(v) + start;

    if (v->tensor.dtype == DT_F32) {
        for (int64_t c = 0; c < count; c++)
            out[c] = tensor_f32(&v->tensor)[base + c * step];
        return;
    }
    for (int64_t c = 0; c < count; c++)
        out[c] = (float)tensor_at(&v->tensor, base + c * step);
}

/* The cells of one run that were asked for, put where they belong in out. */
static void read_common(const View *v, int64_t plane, int64_t i, PatternRun common,
                        PatternRun asked, float *out)
{
    int64_t first = (common.start - asked.start) / asked.step;
    int64_t stride = common.count > 1 ? common.step / asked.step : 1;

    if (!v->read) {
        for (int64_t c = 0; c < common.count; c++)
            out[first + c * stride] = v->kind == VIEW_COMPONENTS ? (float)common.bits : 1.0f;
        return;
    }
    v->read(v, plane, i, common.start, common.count, common.step, out + first);
    for (int64_t c = common.count - 1; c > 0 && stride > 1; c--) {
        out[first + c * stride] = out[first + c];
        out[first + c] = 0;
    }
}

/* Spreading in place would run over values of earlier runs that lie between;
 * read into a line of its own when runs interleave. */
static void read_spread(const View *v, int64_t plane, int64_t i, PatternRun common,
                        PatternRun asked, float *line, float *out)
{
    int64_t stride = common.step / asked.step, first = (common.start - asked.start) / asked.step;

    read_common(v, plane, i, common, asked, line);
    for (int64_t c = 0; c < common.count; c++) {
        out[first + c * stride] = line[first + c * stride];
        line[first + c * stride] = 0;
    }
}

static void read_supported(const View *v, int64_t plane, int64_t i, PatternRun asked, float *out)
{
    PatternRow row = { 0 };
    float     *line = NULL;

    memset(out, 0, (size_t)asked.count * sizeof(*out));
    pattern_row(v->support, plane, i, &row);
    for (int64_t r = 0; r < row.count && !row.failed; r++) {
        PatternRun common = runs_common(row.runs[r], asked);
        bool       spread = common.count > 1 && common.step != asked.step;

        common.bits = row.runs[r].bits;
        if (spread && !line)
            line = calloc((size_t)asked.count, sizeof(*line));
        if (spread && line)
            read_spread(v, plane, i, common, asked, line, out);
        else if (common.count && !spread)
            read_common(v, plane, i, common, asked, out);
    }
    free(line);
    pattern_row_free(&row);
}

void view_read(const View *v, int64_t plane, int64_t i, int64_t start, int64_t count,
               int64_t step, float *out)
{
    if (v->tensor.data)
        read_tensor(v, plane, i, start, count, step, out);
    else if (v->support)
        read_supported(v, plane, i, (PatternRun){ start, count, step, 0 }, out);
    else
        v->read(v, plane, i, start, count, step, out);
}

/* Of a row that was read with others: what its support allows, the rest 0. */
static void keep_supported(const View *v, int64_t plane, int64_t i, int64_t start, int64_t count,
                           const float *from, float *out)
{
    PatternRow row = { 0 };

    memset(out, 0, (size_t)count * sizeof(*out));
    pattern_row(v->support, plane, i, &row);
    for (int64_t r = 0; r < row.count && !row.failed; r++) {
        PatternRun common = runs_common(row.runs[r], (PatternRun){ start, count, 1, 0 });

        for (int64_t c = 0; c < common.count; c++) {
            int64_t at = common.start + c * common.step - start;

            out[at] = from[at];
        }
    }
    pattern_row_free(&row);
}

/* At most VIEW_ROWS_MOST rows and VIEW_KEYS_MOST keys. */
static void read_together(const View *v, int64_t plane, int64_t i, int64_t rows, int64_t start,
                          int64_t count, float *out, int64_t pitch)
{
    float   values[VIEW_ROWS_MOST * VIEW_KEYS_MOST];
    int64_t which[VIEW_ROWS_MOST];

    for (int64_t r = 0; r < rows; r++)
        which[r] = i + r;
    v->read_rows(v, plane, which, rows, start, count, values);
    for (int64_t r = 0; r < rows; r++) {
        if (v->support)
            keep_supported(v, plane, i + r, start, count, values + r * count, out + r * pitch);
        else
            memcpy(out + r * pitch, values + r * count, (size_t)count * sizeof(*out));
    }
}

static int64_t at_most(int64_t x, int64_t most)
{
    return x < most ? x : most;
}

void view_read_rows(const View *v, int64_t plane, int64_t i, int64_t rows, int64_t start,
                    int64_t count, float *out, int64_t pitch)
{
    if (v->tensor.data || !v->read_rows) {
        for (int64_t r = 0; r < rows; r++)
            view_read(v, plane, i + r, start, count, 1, out + r * pitch);
        return;
    }
    for (int64_t r = 0; r < rows; r += VIEW_ROWS_MOST)
        for (int64_t c = 0; c < count; c += VIEW_KEYS_MOST)
            read_together(v, plane, i + r, at_most(rows - r, VIEW_ROWS_MOST), start + c,
                          at_most(count - c, VIEW_KEYS_MOST), out + r * pitch + c, pitch);
}

bool view_read_rect(const View *v, int64_t plane, int64_t i0, int64_t rows, int64_t j0,
                    int64_t cols, float *out, Error *err)
{
    if (plane < 0 || plane >= view_planes(v) || i0 < 0 || j0 < 0 || rows < 0 || cols < 0 ||
        i0 + rows > view_rows(v) || j0 + cols > view_cols(v))
        return error_set(err, ERR_PARAM, "view %s: rows %lld+%lld, columns %lld+%lld of plane %lld "
                         "are outside %lld planes of %lld x %lld", v->name, (long long)i0,
                         (long long)rows, (long long)j0, (long long)cols, (long long)plane,
                         (long long)view_planes(v), (long long)view_rows(v),
                         (long long)view_cols(v));
    view_read_rows(v, plane, i0, rows, j0, cols, out, cols);
    return true;
}

static void store_line(const View *v, Tensor *out, int64_t at, const float *line, int64_t count)
{
    for (int64_t c = 0; c < count; c++) {
        switch (v->dtype) {
        case DT_F32: tensor_f32(out)[at + c] = line[c]; break;
        case DT_F64: ((double *)out->data)[at + c] = (double)line[c]; break;
        case DT_I32: tensor_i32(out)[at + c] = (int32_t)line[c]; break;
        case DT_I64: ((int64_t *)out->data)[at + c] = (int64_t)line[c]; break;
        case DT_U8: tensor_u8(out)[at + c] = (uint8_t)line[c]; break;
        }
    }
}

bool view_materialise(const View *v, Arena *arena, int64_t max_bytes, Tensor *out, Error *err)
{
    double  bytes = (double)dtype_size(v->dtype);
    int64_t cols = view_cols(v), rows = view_rows(v);
    float  *line;
    char    size[32], limit[32];

    if (v->tensor.data) {
        *out = v->tensor;
        return true;
    }
    for (int i = 0; i < v->rank; i++)
        bytes *= (double)v->shape[i];
    bytes = fmin(bytes, 0x1p62); /* what an integer holds, for the message */
    if (max_bytes > 0 && bytes > (double)max_bytes)
        return error_set(err, ERR_NOMEM, "view %s needs %s, more than the limit of %s (--mem)",
                         v->name, format_bytes((int64_t)bytes, size, sizeof(size)),
                         format_bytes(max_bytes, limit, sizeof(limit)));
    *out = tensor_new(arena, v->dtype, v->rank, v->shape);
    line = arena_alloc(arena, at_most(rows, VIEW_ROWS_MOST) * cols, sizeof(*line));
    if (!out->data || !line)
        return error_set(err, ERR_NOMEM, "view %s: not enough memory for %s", v->name,
                         format_bytes((int64_t)bytes, size, sizeof(size)));
    for (int64_t p = 0; p < view_planes(v) && cols > 0; p++)
        for (int64_t i = 0; i < rows; i += VIEW_ROWS_MOST) {
            int64_t some = at_most(rows - i, VIEW_ROWS_MOST);

            view_read_rows(v, p, i, some, 0, cols, line, cols);
            store_line(v, out, (p * rows + i) * cols, line, some * cols);
        }
    return true;
}
