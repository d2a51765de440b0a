/* margins.c -- sums, entropies and kept mass beside a matrix; see views.h.
 *
 *     sum_i     = sum_j w_ij                     sum_j = sum_i w_ij
 *     entropy_i = log s - (sum_j w_ij log w_ij) / s,   s = sum_j w_ij,  of weights, w_ij >= 0
 *     kept_i    = sum of w*_ij over allowed j / sum of w*_ij,   w* of exact attention
 *
 * A fixed number of parts gets the rows, and their sums are added in order, so the number
 * of threads changes no bit.
 */
#include "app/result/views.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/reference.h"

#define PARTS 16
#define PIECE 512
#define USUAL_COST 128 /* multiply-adds of an entry, as a budget counts them */

/* ---- what can be read ---------------------------------------------------------- */

static bool adds_up(const View *view)
{
    return view->kind != VIEW_BUCKETS && view->kind != VIEW_ORDER &&
           view->kind != VIEW_SCHEDULE && view->kind != VIEW_MASK;
}

/* Cells of the view are allowed or not; they have no numbers. */
static bool counts_cells(const View *view)
{
    return view->kind == VIEW_PATTERN || view->kind == VIEW_COMPONENTS ||
           view->kind == VIEW_MEMBERSHIP || view->kind == VIEW_HOPS;
}

static const View *kept_view(const Run *run, const View *shown, Error *err)
{
    const View *cells = run_view(run, "connectivity");
    bool        pairs = !strcmp(shown->rows, "query") && !strcmp(shown->cols, "key");

    if (cells && pairs && view_rows(cells) == run->n && view_cols(cells) == run->m &&
        view_rows(shown) == run->n && view_cols(shown) == run->m && reference_is_possible(run))
        return cells;
    error_set(err, ERR_UNSUPPORTED, "%s: %s chooses no pairs, so nothing is kept or lost",
              shown->name, run->mechanism->id);
    return NULL;
}

const View *margin_view(const Run *run, const View *shown, MarginKind kind, Error *err)
{
    const View *weights = run_view(run, "weights");
    ViewCurve   curve;

    if (view_curve(shown, &curve)) {
        error_set(err, ERR_UNSUPPORTED, "%s: a curve has no rows and columns", shown->name);
        return NULL;
    }
    if (kind == MARGIN_KEPT)
        return kept_view(run, shown, err);
    if (kind == MARGIN_SUMS && shown->rank >= 2 && adds_up(shown))
        return shown;
    if (kind == MARGIN_ENTROPY && shown->kind == VIEW_WEIGHTS)
        return shown;
    if (kind == MARGIN_ENTROPY && weights && weights->kind == VIEW_WEIGHTS &&
        view_rows(weights) == view_rows(shown) && view_cols(weights) == view_cols(shown))
        return weights;
    error_set(err, ERR_UNSUPPORTED,
              kind == MARGIN_SUMS          ? "%s: these numbers do not add up"
              : shown->kind == VIEW_SIGNED ? "%s: numbers with signs have no entropy"
                                           : "%s: no weights to take the entropy of",
              shown->name);
    return NULL;
}

/* ---- one row --------------------------------------------------------------------- */

typedef struct Part {
    double    *col;   /* owned; [cols]; NULL: no columns */
    float     *exact, *kept; /* owned; [m] */
    PatternRow row;
} Part;

typedef struct MarginJob {
    const MarginRequest *request;
    Margin              *out;
    ReferenceRows       exact;
    int64_t            *rows;  /* owned; rows to read, those of the columns' sums first */
    int64_t             count, even;
    Part                parts[PARTS];
    atomic_bool         failed;
} MarginJob;

typedef struct Sums {
    double sum, logs; /* sums of w and of w log w */
} Sums;

static void take_values(const View *view, const PatternRun *run, const float *values, int64_t count,
                        int64_t excluded, double sign, double *col, Sums *sums)
{
    for (int64_t c = 0; c < count; c++) {
        int64_t j = run->start + c * run->step;
        double  w = (double)values[c];

        if (j == excluded || !isfinite(w))
            continue;
        if (counts_cells(view))
            w = view->kind == VIEW_HOPS ? w >= 0 : w > 0;
        sums->sum += w;
        sums->logs += w > 0 ? w * log(w) : 0;
        if (col)
            col[j] += sign * w;
    }
}

static void read_run(const View *view, int64_t plane, int64_t i, PatternRun run, int64_t excluded,
                     double sign, double *col, Sums *sums)
{
    float values[PIECE];
    bool  known = view->support && counts_cells(view); /* every cell of the run is allowed */

    for (int64_t c = 0; known && c < PIECE; c++)
        values[c] = 1;
    while (run.count > 0) {
        int64_t count = run.count < PIECE ? run.count : PIECE;

        if (!known)
            view_read(view, plane, i, run.start, count, run.step, values);
        take_values(view, &run, values, count, excluded, sign, col, sums);
        run.start += count * run.step;
        run.count -= count;
    }
}

/* Finds runs of the row with allowed cells; false: no memory. */
static bool row_runs(const View *view, int64_t plane, int64_t i, PatternRow *row,
                     PatternRun *whole, const PatternRun **runs, int64_t *count)
{
    int64_t planes = view_planes(view), heads;

    *whole = (PatternRun){ .count = view_cols(view), .step = 1 };
    *runs = whole;
    *count = 1;
    if (!view->support)
        return true;
    heads = pattern_heads(view->support);
    plane = planes > heads ? plane * heads / planes : plane < heads ? plane : heads - 1;
    pattern_row(view->support, plane, i, row);
    *runs = row->runs;
    *count = row->count;
    return !row->failed;
}

/* NaN: the row is empty. */
static double number_of_row(const View *view, int64_t plane, int64_t i, const MarginRequest *q,
                            double sign, Part *part, double *col, bool *failed)
{
    const PatternRun *runs;
    PatternRun        whole;
    int64_t           count;
    Sums              sums = { 0, 0 };

    if (!row_runs(view, plane, i, &part->row, &whole, &runs, &count)) {
        *failed = true;
        return (double)NAN;
    }
    for (int64_t x = 0; x < count; x++)
        read_run(view, plane, i, runs[x], q->excluded, sign, col, &sums);
    if (q->kind == MARGIN_SUMS)
        return sums.sum;
    return sums.sum > 0 ? fmax(log(sums.sum) - sums.logs / sums.sum, 0) : (double)NAN;
}

static double kept_of_row(const MarginJob *job, int64_t i, Part *part, bool *failed)
{
    const MarginRequest *q = job->request;
    int64_t             m = q->run->m;
    double              kept = 0, all = 0;

    if (!reference_row(&job->exact, q->head, i, &part->row, part->exact)) {
        *failed = part->row.failed;
        return (double)NAN;
    }
    view_read(q->view, q->plane, i, 0, m, 1, part->kept);
    for (int64_t j = 0; j < m; j++) {
        if (j == q->excluded)
            continue;
        all += (double)part->exact[j];
        kept += part->kept[j] > 0 ? (double)part->exact[j] : 0;
    }
    return all > 0 ? kept / all : (double)NAN;
}

/* A difference within rounding of rows that add up to 1 counts as 0: bars are scaled by the
 * largest, so rounding would fill the strip.  1e-5 is the tolerance of all mechanisms. */
static double difference(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fmax(fabs(a), fabs(b)) ? 0 : a - b;
}

static void read_margin_row(MarginJob *job, int64_t at, Part *part)
{
    const MarginRequest *q = job->request;
    double             *col = at < job->even ? part->col : NULL;
    int64_t             i = job->rows[at];
    bool                failed = false;
    double              value;

    if (q->kind == MARGIN_KEPT)
        value = kept_of_row(job, i, part, &failed);
    else
        value = number_of_row(q->view, q->plane, i, q, 1, part, col, &failed);
    if (q->minus && q->kind != MARGIN_KEPT)
        value = difference(value,
                           number_of_row(q->minus, q->minus_plane, i, q, -1, part, col, &failed));
    job->out->row[i] = value;
    if (failed)
        atomic_store(&job->failed, true);
}

static bool margin_cancelled(const MarginJob *job)
{
    return (job->request->cancel && atomic_load(job->request->cancel)) ||
           atomic_load(&job->failed);
}

static void read_part(void *context, int64_t item, int worker)
{
    MarginJob *job = context;

    (void)worker;
    for (int64_t at = item; at < job->count && !margin_cancelled(job); at += PARTS)
        read_margin_row(job, at, &job->parts[item]);
}

/* ---- which rows ------------------------------------------------------------------ */

/* Entries to compute for a row, roughly. */
static double row_cost(const MarginRequest *q)
{
    const Pattern *support = q->view->support;
    double         rows = (double)view_rows(q->view), entries = (double)view_cols(q->view);
    double         cost = q->view->cost + (q->minus ? q->minus->cost : 0);

    if (q->kind == MARGIN_KEPT)
        return entries * fmax(1, (double)q->run->d / USUAL_COST);
    if (support)
        entries = (double)pattern_count(support) / (double)pattern_heads(support) / rows;
    return fmax(entries * fmax(1, cost / USUAL_COST), 1);
}

/* Row `k` of `most` of those evenly over `all`. */
static int64_t evenly(int64_t k, int64_t most, int64_t all)
{
    return (2 * k + 1) * all / (2 * most);
}

static void take_row(MarginJob *job, int64_t i)
{
    if (!isnan(job->out->row[i]))
        return; /* the row is chosen already */
    job->rows[job->count++] = i;
    job->out->row[i] = 0;
}

/* Chooses the rows of the columns' sums first, then those in sight. */
static bool choose_rows(MarginJob *job, Error *err)
{
    const MarginRequest *q = job->request;
    int64_t              all = job->out->rows, most = all, seen;
    int64_t              row0 = q->row1 ? q->row0 : 0, row1 = q->row1 ? q->row1 : all;

    if (q->budget_entries > 0)
        most = (int64_t)fmin((double)all, fmax(q->budget_entries / row_cost(q), 1));
    seen = most < all ? (row1 - row0 < most ? row1 - row0 : most) : 0;
    job->rows = malloc((size_t)(q->query_count + most + seen) * sizeof(*job->rows));
    if (!job->rows)
        return error_set(err, ERR_NOMEM, "strips: out of memory");
    for (int k = 0; k < q->query_count; k++)
        take_row(job, q->queries[k]);
    job->even = job->count;
    for (int64_t k = 0; k < most; k++)
        take_row(job, evenly(k, most, all));
    job->even = q->query_count ? job->even : most;
    job->out->share = (double)most / (double)all;
    for (int64_t k = 0; k < seen; k++) {
        int64_t at = row0 + evenly(k, seen, row1 - row0);

        take_row(job, q->row_order ? q->row_order[at] : at);
    }
    return true;
}

/* ---- all of it ------------------------------------------------------------------- */

static bool get_memory(MarginJob *job, Error *err)
{
    const MarginRequest *q = job->request;
    Margin              *out = job->out;
    bool                columns = q->kind == MARGIN_SUMS, ok;

    out->row = malloc((size_t)out->rows * sizeof(*out->row));
    out->col = columns ? calloc((size_t)out->cols, sizeof(*out->col)) : NULL;
    ok = out->row && (out->col || !columns);
    for (int64_t i = 0; ok && i < out->rows; i++)
        out->row[i] = (double)NAN;
    for (int k = 0; ok && k < PARTS; k++) {
        Part *part = &job->parts[k];

        if (columns)
            ok = (part->col = calloc((size_t)out->cols, sizeof(*part->col))) != NULL;
        if (ok && q->kind == MARGIN_KEPT) {
            part->exact = malloc((size_t)q->run->m * sizeof(*part->exact));
            part->kept = malloc((size_t)q->run->m * sizeof(*part->kept));
            ok = part->exact && part->kept;
        }
    }
    return ok || error_set(err, ERR_NOMEM, "strips of %s: out of memory", q->view->name);
}

static void margin_job_free(MarginJob *job)
{
    reference_rows_free(&job->exact);
    for (int k = 0; k < PARTS; k++) {
        free(job->parts[k].col);
        free(job->parts[k].exact);
        free(job->parts[k].kept);
        pattern_row_free(&job->parts[k].row);
    }
    free(job->rows);
}

/* The rows that were read stand for all rows. */
static void add_columns(MarginJob *job)
{
    Margin *out = job->out;

    for (int k = 0; k < PARTS && out->col; k++)
        for (int64_t j = 0; j < out->cols; j++)
            out->col[j] += job->parts[k].col[j];
    for (int64_t j = 0; out->col && j < out->cols; j++)
        out->col[j] /= job->request->query_count ? 1 : out->share;
    if (out->col && job->request->excluded >= 0 && job->request->excluded < out->cols)
        out->col[job->request->excluded] = (double)NAN;
}

bool margin_make(const MarginRequest *q, Margin *out, Error *err)
{
    MarginJob job = { .request = q, .out = out };
    bool     ok;

    *out = (Margin){ .kind = q->kind, .rows = view_rows(q->view), .cols = view_cols(q->view),
                     .counts = counts_cells(q->view), .queries = q->query_count, .share = 1 };
    ok = get_memory(&job, err) && choose_rows(&job, err);
    if (ok && q->kind == MARGIN_KEPT)
        ok = reference_rows_new(q->run, q->threads, q->cancel, &job.exact, err);
    if (ok) {
        threads_run(q->threads, PARTS, read_part, &job);
        if (atomic_load(&job.failed))
            ok = error_set(err, ERR_NOMEM, "strips of %s: out of memory", q->view->name);
        else if (margin_cancelled(&job))
            ok = error_set(err, ERR_CANCELLED, "cancelled");
        else
            add_columns(&job);
    }
    margin_job_free(&job);
    if (!ok)
        margin_free(out);
    return ok;
}

/* ---- of a figure's panel ---------------------------------------------------------- */

/* Entries that are read exactly for one panel; beyond it rows are sampled, and the caption says
 * so. */
#define MOST_ENTRIES 1e9

static int64_t margin_plane(const Run *run, const View *view, int64_t head)
{
    int64_t planes = view_planes(view), rounds = planes / run->h;

    return planes % run->h == 0 && head * rounds < planes ? head * rounds : 0;
}

static bool take_queries(const MarginChoice *choice, MarginRequest *request, Error *err)
{
    for (int k = 0; k < choice->query_count; k++) {
        if (choice->queries[k] >= view_rows(request->view))
            return error_set(err, ERR_USAGE, "--queries: %s has the queries 0..%lld, not %lld",
                             request->view->name, (long long)view_rows(request->view) - 1,
                             (long long)choice->queries[k]);
        request->queries[request->query_count++] = choice->queries[k];
    }
    return true;
}

bool margin_parse_queries(const char *text, MarginChoice *out, Error *err)
{
    while (text && *text) {
        char   *end;
        int64_t query = strtoll(text, &end, 10), last = -1;

        if (out->query_count)
            last = out->queries[out->query_count - 1];
        if (end == text || (*end && *end != ',') || (*end && !end[1]) || query <= last ||
            out->query_count == MARGIN_QUERIES_MOST)
            return error_set(err, ERR_USAGE, "--queries: expected at most %d growing numbers like "
                             "3,17,20, got '%s'", MARGIN_QUERIES_MOST, text);
        out->queries[out->query_count++] = query;
        text = *end ? end + 1 : end;
    }
    return !out->query_count || out->kind == MARGIN_SUMS ||
           error_set(err, ERR_USAGE, "--queries is of the sums of columns: it needs --strips sums");
}

bool margin_of_panel(const Result *result, const Result *minus, const MarginChoice *choice,
                     int64_t head, Threads *threads, const atomic_bool *cancel, Panel *panel,
                     Error *err)
{
    const Run    *run = result->run;
    MarginKind    kind = choice->kind;
    const View   *view = margin_view(run, panel->view, kind, err);
    MarginRequest request = { .kind = kind, .run = run, .view = view, .head = head,
                              .excluded = panel->excludes ? panel->excluded : -1,
                              .row0 = panel->region.row0,
                              .row1 = panel->region.row1, .row_order = panel->row_order,
                              .budget_entries = MOST_ENTRIES, .threads = threads,
                              .cancel = cancel };

    if (!view || !take_queries(choice, &request, err))
        return false;
    request.plane = view == panel->view ? panel->plane : margin_plane(run, view, head);
    if (minus && panel->minus && kind != MARGIN_KEPT) {
        request.minus = margin_view(minus->run, panel->minus, kind, err);
        if (!request.minus)
            return false;
        request.minus_plane = margin_plane(minus->run, request.minus, head);
    }
    panel->margin = calloc(1, sizeof(*panel->margin));
    if (!panel->margin)
        return error_set(err, ERR_NOMEM, "strips of %s: out of memory", view->name);
    if (margin_make(&request, panel->margin, err))
        return true;
    free(panel->margin);
    panel->margin = NULL;
    return false;
}
