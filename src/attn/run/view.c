/* view.c -- reading views, whatever their source; see view.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/ops/ops.h"
#include "attn/ops/weights.h"
#include "attn/pattern/node.h"
#include "attn/run.h"
#include "attn/run/view.h"
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

const char *view_words(const View *view)
{
    return view->help && *view->help ? view->help : view_kind_meaning(view->kind);
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

/* Spreading in place would overwrite values of earlier runs; interleaved runs are read into a
 * separate line. */
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
            read_together(v, plane, i + r, min_i64(rows - r, VIEW_ROWS_MOST), start + c,
                          min_i64(count - c, VIEW_KEYS_MOST), out + r * pitch + c, pitch);
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
    line = arena_alloc(arena, min_i64(rows, VIEW_ROWS_MOST) * cols, sizeof(*line));
    if (!out->data || !line)
        return error_set(err, ERR_NOMEM, "view %s: not enough memory for %s", v->name,
                         format_bytes((int64_t)bytes, size, sizeof(size)));
    for (int64_t p = 0; p < view_planes(v) && cols > 0; p++)
        for (int64_t i = 0; i < rows; i += VIEW_ROWS_MOST) {
            int64_t some = min_i64(rows - i, VIEW_ROWS_MOST);

            view_read_rows(v, p, i, some, 0, cols, line, cols);
            store_line(v, out, (p * rows + i) * cols, line, some * cols);
        }
    return true;
}

/* How a run offers its views; see the last part of run.h. */

bool run_wants_views(const Run *r)
{
    return r->spec.views && !run_failed(r);
}

/* The caption of a fitted tensor of this name; NULL: it was not fitted. */
static const char *fitted_origin(const Run *r, const char *name)
{
    for (int i = 0; i < r->tensor_count; i++)
        if (r->tensors[i].origin == ORIGIN_FITTED && !strcmp(r->tensors[i].name, name))
            return "fitted";
    return NULL;
}

/* What the mechanism promises of all views of that name: a curve, names of its numbers. */
static void keep_promise(const Run *r, View *view)
{
    for (const ViewPromise *p = r->mechanism->views; p && p->name; p++)
        if (!strcmp(p->name, view->name)) {
            view->curve = p->curve.y ? &p->curve : NULL;
            view->help = p->help;
            view->quantity = p->quantity;
            view->categories = p->categories;
            return;
        }
}

View *view_add(Run *r, const char *name, ViewKind kind, DType dtype, int rank,
               const int64_t *shape)
{
    View *v;

    if (!run_wants_views(r))
        return NULL;
    if (r->view_count == RUN_MAX_VIEWS) {
        run_fail(r, ERR_INTERNAL, "%s offers more than %d views", r->mechanism->id,
                 RUN_MAX_VIEWS);
        return NULL;
    }
    v = &r->views[r->view_count++];
    *v = (View){ .kind = kind, .dtype = dtype, .rank = rank, .iteration = -1,
                 .rows = "query", .cols = "key" };
    snprintf(v->name, sizeof(v->name), "%s", name);
    v->origin = fitted_origin(r, name);
    keep_promise(r, v);
    for (int i = 0; i < rank; i++)
        v->shape[i] = shape[i];
    v->step = r->view_step >= 0 ? r->view_step : r->stage_count - 1;
    if (v->step >= 0) {
        v->stage = r->stages[v->step].name;
        v->iteration = r->stages[v->step].iteration;
    }
    return v;
}

void view_stage(Run *r, const char *name, int64_t iteration)
{
    r->view_step = -1;
    for (int i = 0; name && i < r->stage_count; i++)
        if (!strcmp(r->stages[i].name, name) && r->stages[i].iteration == iteration)
            r->view_step = i;
}

void view_guide(Run *r, const char *view, bool vertical, double at, const char *name)
{
    for (int i = 0; i < r->view_count; i++) {
        View *v = &r->views[i];

        if (!strcmp(v->name, view) && v->guide_count < VIEW_GUIDES_MOST)
            v->guides[v->guide_count++] = (ViewGuide){ name, at, vertical };
    }
}

static const View *view_joined(const Run *r, const char *name)
{
    return name ? run_view(r, name) : NULL;
}

void view_join_curves(Run *r)
{
    for (int i = 0; i < r->view_count; i++) {
        View *v = &r->views[i];

        if (!v->curve)
            continue;
        v->along = view_joined(r, v->curve->along);
        v->low = view_joined(r, v->curve->low);
        v->high = view_joined(r, v->curve->high);
    }
}

void run_rank(Run *r, int64_t rank, const char *name)
{
    r->rank = rank;
    r->rank_name = name;
}

void run_trace(Run *r, const char *name, double value)
{
    if (run_wants_views(r) && r->stage_count && r->trace_count < RUN_MAX_TRACES)
        r->traces[r->trace_count++] = (Trace){ name, r->stage_count - 1, value };
}

void run_say(Run *r, const char *fmt, ...)
{
    char    line[600];
    va_list args;

    if (!run_wants_views(r) || !r->stage_count)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    r->stages[r->stage_count - 1].said = arena_printf(r->arena, "%s", line);
}

void run_mark(Run *r, const char *name, double at)
{
    if (r->stage_count) {
        r->stages[r->stage_count - 1].at_name = name;
        r->stages[r->stage_count - 1].at = at;
    }
}

void run_about(Run *r, int64_t query)
{
    if (r->stage_count) {
        r->stages[r->stage_count - 1].about = true;
        r->stages[r->stage_count - 1].query = query;
    }
}

void view_tensor(Run *r, const char *name, ViewKind kind, Tensor t, const char *rows,
                 const char *cols)
{
    View *v = t.data ? view_add(r, name, kind, t.dtype, t.rank, t.shape) : NULL;

    if (!v)
        return;
    v->tensor = t;
    v->rows = rows;
    v->cols = cols;
}

/* The entries that are not below 0, by row; NULL: all, or the run failed. */
static const Pattern *entries_there(Run *r, const Tensor *t)
{
    int64_t  cols = t->shape[t->rank - 1], count = tensor_count(t), rows = count / max_i64(cols, 1);
    int64_t  planes = rows / max_i64(t->shape[t->rank - 2], 1), at = 0;
    int64_t *offset = run_alloc(r, rows + 1, sizeof(*offset));
    int32_t *keys = run_alloc(r, count + 1, sizeof(*keys));

    if (!offset || !keys)
        return NULL;
    for (int64_t x = 0; x < count; x++) {
        if (x % cols == 0)
            offset[x / cols] = at;
        if (tensor_i32(t)[x] >= 0)
            keys[at++] = (int32_t)(x % cols);
    }
    offset[rows] = at;
    return at == count ? NULL
                       : pattern_lists(r->arena, (PatternShape){ .heads = planes, .m = cols,
                                       .n = t->shape[t->rank - 2] }, offset, keys, COMPONENT_OTHER);
}

void view_order(Run *r, const char *name, Tensor t, const char *rows, const char *cols)
{
    int before = r->view_count;

    view_tensor(r, name, VIEW_ORDER, t, rows, cols);
    if (r->view_count > before)
        r->views[before].shown = entries_there(r, &t);
}

static void view_made(Run *r, const char *name, Tensor t, Origin from)
{
    int         before = r->view_count;
    char        text[48];
    const char *origin;

    run_origin(r, name, from);
    view_tensor(r, name, VIEW_TENSOR, t, "row", "column");
    if (r->view_count == before)
        return;
    origin = arena_printf(r->arena, "%s", run_origin_text(r, from, text, sizeof(text)));
    if (!origin)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for a view", r->mechanism->id);
    r->views[before].origin = origin;
}

void view_drawn(Run *r, const char *name, Tensor t)
{
    view_made(r, name, t, ORIGIN_DRAWN);
}

void view_fitted(Run *r, const char *name, Tensor t)
{
    view_made(r, name, t, ORIGIN_FITTED);
}

/* bits: what allows a cell counts too. */
static bool same_runs(const PatternRow *a, const PatternRow *b, bool bits)
{
    for (int64_t x = 0; x < a->count && a->count == b->count; x++)
        if (a->runs[x].start != b->runs[x].start || a->runs[x].count != b->runs[x].count ||
            a->runs[x].step != b->runs[x].step || (bits && a->runs[x].bits != b->runs[x].bits))
            return false;
    return a->count == b->count;
}

/* Neighbours become one run; with `bits`, those that the same allows. */
static void join_neighbours(PatternRow *row, bool bits)
{
    int64_t count = 0;

    for (int64_t x = 0; x < row->count; x++) {
        PatternRun run = row->runs[x], *last = count ? &row->runs[count - 1] : NULL;

        run.step = run.count == 1 ? 1 : run.step;
        if (last && last->step == 1 && run.step == 1 && last->start + last->count == run.start &&
            (!bits || last->bits == run.bits))
            last->count += run.count;
        else
            row->runs[count++] = run;
    }
    row->count = count;
}

static bool heads_agree(Run *r, const Pattern *cells, bool bits)
{
    PatternRow one = { 0 }, other = { 0 };
    bool       same = !run_failed(r);

    op_wait(r, "the host compares the cells of the heads");
    for (int64_t i = 0; i < pattern_queries(cells) && same; i++) {
        pattern_row(cells, 0, i, &one);
        join_neighbours(&one, bits);
        for (int64_t head = 1; head < r->h && same; head++) {
            pattern_row(cells, head, i, &other);
            join_neighbours(&other, bits);
            same = same_runs(&one, &other, bits);
        }
    }
    pattern_row_free(&one);
    pattern_row_free(&other);
    return same;
}

/* The causes of a pattern's cells have one name each, in values as in the pattern itself. */
static void set_support(Run *r, View *v, const Pattern *support)
{
    v->support = support;
    for (View *other = r->views; support && other < v; other++)
        if (other->support == support && other->components)
            v->components = other->components;
}

/* One plane where all heads have the same cells. */
static View *add_matrix(Run *r, const char *name, ViewKind kind, DType dtype,
                        const Pattern *pattern)
{
    int64_t shape[3] = { r->h, pattern_queries(pattern), pattern_keys(pattern) };
    bool    shared = !pattern_per_head(pattern) ||
                     heads_agree(r, pattern, kind == VIEW_COMPONENTS);
    View   *v = view_add(r, name, kind, dtype, shared ? 2 : 3, shared ? shape + 1 : shape);

    if (v)
        set_support(r, v, pattern);
    return v;
}

View *view_cells(Run *r, const char *name, const Pattern *pattern)
{
    return pattern && run_wants_views(r) ? add_matrix(r, name, VIEW_PATTERN, DT_U8, pattern) : NULL;
}

void view_meaning(Run *r, const Pattern *pattern, const char *window, const char *other)
{
    for (int i = 0; i < r->view_count; i++)
        if (r->views[i].support == pattern) {
            r->views[i].window = window;
            r->views[i].other = other;
        }
}

void view_pattern(Run *r, const Pattern *pattern, bool with_components)
{
    if (!pattern || !run_wants_views(r))
        return;
    add_matrix(r, "connectivity", VIEW_PATTERN, DT_U8, pattern);
    if (with_components)
        add_matrix(r, "components", VIEW_COMPONENTS, DT_U8, pattern);
}

void view_meanings(Run *r, const Pattern *pattern, const char *const *components)
{
    for (int i = 0; i < r->view_count; i++)
        if (r->views[i].support == pattern)
            r->views[i].components = components;
}

View *view_reader(Run *r, const char *name, ViewKind kind, DType dtype, ViewReadRun read,
                  const void *context, const Pattern *support)
{
    int64_t shape[3] = { r->h, support ? pattern_queries(support) : r->n,
                         support ? pattern_keys(support) : r->m };
    View   *v = view_add(r, name, kind, dtype, 3, shape);

    if (!v)
        return NULL;
    v->read = read;
    v->context = context;
    set_support(r, v, support);
    return v;
}

/* ---- pattern attention ------------------------------------------------------ */

typedef struct AttentionViews {
    const AttentionPart *parts;
    const uint8_t       *part; /* of each row; NULL: the first */
    int64_t              heads;
    RowSums              sums;  /* over the view's rows */
} AttentionViews;

static int part_number(const AttentionViews *a, int64_t i)
{
    return a->part ? a->part[i] : 0;
}

static const AttentionPart *part_of(const AttentionViews *a, int64_t i)
{
    return &a->parts[part_number(a, i)];
}

static void view_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                              int64_t count, int64_t step, float *out)
{
    const AttentionViews *a = view->context;
    const AttentionPart  *p = part_of(a, i);
    const WeightRow       row = { &p->in, &p->lse, &a->sums, a->heads, head, i - p->first, i,
                                  part_number(a, i) };

    attend_weights_run(&row, start, count, step, out);
}

static void read_bias(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const AttentionViews *a = view->context;
    const AttentionPart  *p = part_of(a, i);
    AttendInput           in = p->in;
    AttendInput           raw = { .q = in.raw_q, .k = in.raw_k, .v = in.v, .scale = in.scale };

    in.cell_term = NULL; /* no position, and not finite everywhere */
    in.softcap = 0;      /* what is added before the cap */
    for (int64_t c = 0; c < count; c++) {
        int64_t j = start + c * step, row = i - p->first;

        out[c] = (float)(attend_score(&in, a->heads, head, row, j) -
                         attend_score(&raw, a->heads, head, row, j));
    }
}

/* A causal run has no scores ahead, whatever a bias would be there; what some other
 * order of tokens allows is shown with the triangle. */
static void show_past(Run *r, View *bias, const Pattern *allowed)
{
    PatternShape shape = { .heads = r->h, .n = r->n, .m = r->m, .q_offset = r->q_offset };

    if (bias && r->causal)
        bias->shown = pattern_union(r->arena, pattern_causal(r->arena, shape),
                                    pattern_operand(allowed));
}

static void show_bias(Run *r, const Pattern *pattern, const AttentionViews *a)
{
    View *bias;

    if (!r->spec.position || !a->parts->in.raw_q.data)
        return;
    bias = view_reader(r, "position_bias", VIEW_SIGNED, DT_F32, read_bias, a, NULL);
    if (bias) { /* every cell, allowed or not, of what may be longer than the input */
        bias->shape[1] = pattern_queries(pattern);
        bias->shape[2] = pattern_keys(pattern);
    }
    show_past(r, bias, pattern);
}

/* NULL: not wanted, or no memory. */
static AttentionViews *attention_views(Run *r, const AttentionPart *parts, int count,
                                       const uint8_t *part)
{
    AttentionViews *a = run_wants_views(r) ? run_alloc(r, 1, sizeof(*a)) : NULL;
    AttentionPart  *kept = a ? run_alloc(r, count, sizeof(*kept)) : NULL;

    if (!kept)
        return NULL;
    memcpy(kept, parts, (size_t)count * sizeof(*kept));
    *a = (AttentionViews){ .parts = kept, .part = part, .heads = r->h };
    return a;
}

void view_attention_parts(Run *r, const Pattern *pattern, const AttentionPart *parts, int count,
                          const uint8_t *part)
{
    AttentionViews *a = attention_views(r, parts, count, part);

    if (!a)
        return;
    a->sums = row_sums_of(r, r->h, count, pattern);
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, view_read_weights, a, pattern);
    show_bias(r, pattern, a);
}

void view_position_bias(Run *r, const Pattern *pattern, const AttendInput *in)
{
    AttentionViews *a = attention_views(r, &(AttentionPart){ .in = *in }, 1, NULL);

    if (a)
        show_bias(r, pattern, a);
}

void view_attention(Run *r, const Pattern *pattern, const AttendInput *in, Tensor lse)
{
    view_attention_parts(r, pattern, &(AttentionPart){ .in = *in, .lse = lse }, 1, NULL);
}
