/* state_show.c -- what pictures show of a state: its matrix, its norm, what it returns; see
 * state.h.
 *
 * The state is followed token by token in double, whatever form computed the output.
 */
#include <math.h>
#include <string.h>

#include "attn/cpu/simd/kernel.h"
#include "attn/ops/state_parts.h"
#include "attn/ops/weights.h"
#include "attn/run.h"
#include "core/threads.h"

#define ROWS 64              /* tokens of an item of work */
#define SPAN_MOST 4e9        /* multiply-adds of all rows that are spent at once */
#define SPAN_NEGLIGIBLE 1e-16 /* share of a row that cannot move its span */
#define SPAN_LOOK 16         /* tokens between looks at what remains of a row */

typedef struct Job {
    const StateMatrix *m;
    double             span_mass;
    int64_t            h, n, d, e, states, blocks; /* states: of a head; blocks: of ROWS tokens */
    double            *state;  /* [h][states][d][e] after the last token */
    double            *work;   /* [workers][work_size] */
    int64_t            work_size;
    const double      *length; /* [h][n] sum of the keys' lengths up to each token */
    Tensor             norm, surprise, recall, span;
} Job;

/* ---- the state ------------------------------------------------------------------- */

static double *show_state(const Job *job, int64_t head, int64_t level)
{
    return job->state + (head * job->states + level) * job->d * job->e;
}

/* Token i joins the runs that end before it: a carry, as in counting to i + 1. */
static void carry_levels(const Job *job, int64_t head, int64_t i, double *state)
{
    int64_t size = job->d * job->e, level = 0;

    for (; i >> level & 1; level++) {
        double *joined = show_state(job, head, level);

        for (int64_t c = 0; c < size; c++)
            state[c] += joined[c];
        memset(joined, 0, (size_t)size * sizeof(*joined));
    }
    memcpy(show_state(job, head, level), state, (size_t)size * sizeof(*state));
}

/* Every state fades; then the token becomes a state of its own. */
static void step_levels(const Job *job, int64_t head, int64_t i, const double *read, double *work,
                        double *out)
{
    const StateAttend *in = &job->m->in;
    int64_t            size = job->d * job->e;
    double            *state = out + job->e;
    const double      *gate = tensor_row_f64(&in->gates, head, job->h, i);

    state_fade(gate, 1, job->states * size, show_state(job, head, 0));
    memset(state, 0, (size_t)size * sizeof(*state));
    state_step(in, job->h, head, i, read, state, work, out, NULL);
    carry_levels(job, head, i, state);
}

static void follow_head(void *context, int64_t head, int worker)
{
    const Job *job = context;
    int64_t    all = job->states * job->d * job->e;
    double    *read = job->work + worker * job->work_size, *work = read + job->d;
    double    *out = work + 2 * (job->d + job->e), error = 0;

    memset(show_state(job, head, 0), 0, (size_t)all * sizeof(double));
    memset(read, 0, (size_t)job->d * sizeof(*read));
    for (int64_t i = 0; i < job->n; i++) {
        double *state = show_state(job, head, 0);

        if (job->m->in.form.levels)
            step_levels(job, head, i, read, work, out);
        else
            state_step(&job->m->in, job->h, head, i, read, state, work, out, &error);
        tensor_f32(&job->norm)[head * job->n + i] =
            (float)sqrt(kernel_at(0)->dot_double(state, state, all));
        if (job->surprise.data)
            tensor_f32(&job->surprise)[head * job->n + i] = (float)error;
    }
}

/* ---- recall ---------------------------------------------------------------------- */

/* The state that holds token j at the end. */
static double *holder_of(const Job *job, int64_t head, int64_t j)
{
    return show_state(job, head, job->m->in.form.levels ? state_bits(job->n ^ j) - 1 : 0);
}

static double cosine(const double *x, const double *y, int64_t count)
{
    const Kernel *kernel = kernel_at(0);
    double        xx = kernel->dot_double(x, x, count), yy = kernel->dot_double(y, y, count);

    return xx > 0 && yy > 0 ? kernel->dot_double(x, y, count) / (sqrt(xx) * sqrt(yy)) : 0;
}

static void recall_item(void *context, int64_t item, int worker)
{
    const Job    *job = context;
    const Tensor *values = job->m->values.data ? &job->m->values : &job->m->in.v;
    int64_t       head = item / job->blocks, first = item % job->blocks * ROWS;
    double       *key = job->work + worker * job->work_size, *value = key + job->d;
    double       *returned = value + job->e;

    for (int64_t j = first; j < min_i64(job->n, first + ROWS); j++) {
        for (int64_t t = 0; t < job->d; t++)
            key[t] = tensor_float(&job->m->in.k, head, job->h, j, t);
        floats_widen(DT_F32, tensor_row_f32(values, head, job->h, j), 0, job->e, value);
        memset(returned, 0, (size_t)job->e * sizeof(*returned));
        for (int64_t t = 0; t < job->d; t++)
            for (int64_t c = 0; c < job->e; c++)
                returned[c] += key[t] * holder_of(job, head, j)[t * job->e + c];
        tensor_f32(&job->recall)[head * job->n + j] = (float)cosine(returned, value, job->e);
    }
}

/* ---- span ------------------------------------------------------------------------ */

/* The largest that a cell of row i can be by its level and divisor. */
static double row_factor(const StateMatrix *m, int64_t head, int64_t i)
{
    double most = m->in.form.levels ? 0 : 1;

    for (int64_t l = 0; l < m->in.form.levels; l++)
        most = fmax(most, fabs(tensor_row_f64(&m->in.levels, head, m->heads, i)[l]));
    if (m->divisor.data)
        most /= tensor_f64(&m->divisor)[head * m->in.k.shape[1] + i];
    return most * fabs(m->in.scale);
}

/* Gates only shrink y: what is left of the row is at most |y| times the keys' lengths. */
static bool rest_is_negligible(const Job *job, int64_t head, int64_t i, int64_t j, double total,
                               const double *y)
{
    double length;

    if ((i - j) % SPAN_LOOK || !job->length || j == 0)
        return false;
    length = sqrt(kernel_at(0)->dot_double(y, y, job->d));
    return row_factor(job->m, head, i) * length * job->length[head * job->n + j - 1] <=
           SPAN_NEGLIGIBLE * total;
}

/* mass [n] and y [d] are scratch. */
static int32_t span_of(const Job *job, int64_t head, int64_t i, double *mass, double *y)
{
    const StateMatrix *m = job->m;
    double             total = 0;
    int64_t            seen = 0;

    state_query(m, head, i, y);
    for (int64_t j = i; j >= 0; j--) {
        total += fabs(state_cell(m, head, i, j, y));
        mass[seen++] = total;
        if (rest_is_negligible(job, head, i, j, total, y))
            break;
        state_back(m, head, j, y);
    }
    for (int64_t s = 0; s < seen && total > 0; s++)
        if (mass[s] >= job->span_mass * total)
            return (int32_t)(s + 1);
    return 0;
}

static void span_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * ROWS;
    double    *mass = job->work + worker * job->work_size, *y = mass + job->n;

    for (int64_t i = first; i < min_i64(job->n, first + ROWS); i++)
        tensor_i32(&job->span)[head * job->n + i] = span_of(job, head, i, mass, y);
}

/* Sums of the keys' lengths, by which a row's end is known to be nothing; NULL: it may not be. */
static const double *key_lengths(Run *r, const StateMatrix *m)
{
    double *length;

    if (m->in.form.rule != STATE_ADD)
        return NULL;
    length = run_alloc(r, r->h * r->n, sizeof(*length));
    for (int64_t x = 0; x < r->h * r->n && !run_failed(r); x++) {
        int64_t head = x / r->n, j = x % r->n;
        double  write = m->write.data ? *((double *)tensor_head(&m->write, head, r->h) +
                                          j * m->write.stride[1])
                                      : 1;
        double  own = sqrt(kernel_at(0)->squares(tensor_row_f32(&m->in.k, head, r->h, j), r->d));

        length[x] = (j ? length[x - 1] : 0) + own * fabs(write);
    }
    return length;
}

/* ---- views ----------------------------------------------------------------------- */

static void read_matrix(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    state_read(view->context, head, i, (PatternRun){ .start = start, .count = count,
                                                     .step = step }, out);
}

static Pattern *triangle(Run *r)
{
    PatternShape s = { .heads = r->h, .n = r->n, .m = r->n };
    Pattern     *all = run_failed(r) ? NULL : pattern_full(r->arena, s, COMPONENT_OTHER);

    all = all ? pattern_finish(r->arena, s, all, true) : NULL;
    if (!all)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for the pattern", r->mechanism->id);
    return all;
}

static void show_matrix(Run *r, const StateShow *s, StateMatrix *kept)
{
    Pattern *cells = triangle(r);
    View    *view;

    state_skips(r, kept);
    implicit_connectivity(r, cells);
    view = cells ? view_reader(r, s->name, VIEW_SIGNED, DT_F32, read_matrix, kept, cells) : NULL;
    if (view)
        view->cost = IMPLICIT_WIDE_COST * (double)r->d * 2;
}

static void show_memory(Run *r, const Job *job)
{
    bool   levels = job->m->in.form.levels > 0;
    Tensor memory = levels ? run_tensor4(r, DT_F32, r->h, job->states, r->d, r->e)
                           : run_tensor3(r, DT_F32, r->h, r->d, r->e);

    for (int64_t c = 0; c < tensor_count(&memory) && !run_failed(r); c++)
        tensor_f32(&memory)[c] = (float)job->state[c];
    view_tensor(r, "memory", VIEW_VECTORS, memory, "key channel", "value");
}

static void show_mean(Run *r, const char *name, const Tensor *t)
{
    double sum = 0;

    for (int64_t x = 0; x < tensor_count(t) && !run_failed(r); x++)
        sum += t->dtype == DT_I32 ? (double)tensor_i32(t)[x] : (double)tensor_f32(t)[x];
    run_figure(r, name, sum / (double)tensor_count(t));
}

static void show_states(Run *r, Job *job, bool surprise)
{
    int64_t workers = threads_count(r->threads);

    job->norm = run_tensor2(r, DT_F32, r->h, r->n);
    job->recall = run_tensor2(r, DT_F32, r->h, r->n);
    if (surprise)
        job->surprise = run_tensor2(r, DT_F32, r->h, r->n);
    job->state = run_alloc(r, r->h * job->states * r->d * r->e, sizeof(double));
    job->work_size = 3 * r->d + 3 * r->e + (job->m->in.form.levels ? r->d * r->e : 0) + LANES;
    job->work = run_alloc(r, workers * job->work_size, sizeof(double));
    if (run_failed(r))
        return;
    threads_run(r->threads, r->h, follow_head, job);
    threads_run(r->threads, r->h * job->blocks, recall_item, job);
    show_memory(r, job);
    view_tensor(r, "state_norm", VIEW_COUNT, job->norm, "head", "token");
    view_tensor(r, "recall", VIEW_SIGNED, job->recall, "head", "token");
    view_tensor(r, "surprise", VIEW_COUNT, job->surprise, "head", "token");
    show_mean(r, "mean_recall", &job->recall);
}

static void show_span(Run *r, Job *job)
{
    double all = (double)r->h * (double)r->n * (double)r->n / 2 * (double)r->d;

    if (all > SPAN_MOST) {
        run_warn(r, "%s: span and mean_span are left out: at n=%lld every row would be summed in "
                 "full; take a smaller n", r->mechanism->id, (long long)r->n);
        return;
    }
    job->span = run_tensor2(r, DT_I32, r->h, r->n);
    job->work_size = r->n + r->d + LANES;
    job->work = run_alloc(r, threads_count(r->threads) * job->work_size, sizeof(double));
    job->length = key_lengths(r, job->m);
    if (run_failed(r))
        return;
    threads_run(r->threads, r->h * job->blocks, span_item, job);
    view_tensor(r, "span", VIEW_COUNT, job->span, "head", "query");
    show_mean(r, "mean_span", &job->span);
}

void state_show(Run *r, const StateShow *s)
{
    StateMatrix *kept = run_wants_views(r) ? run_alloc(r, 1, sizeof(*kept)) : NULL;
    Job          job = { .m = kept, .span_mass = s->span_mass, .h = r->h, .n = r->n,
                         .d = r->d, .e = r->e, .states = 1, .blocks = (r->n + ROWS - 1) / ROWS };

    if (!kept)
        return;
    op_wait(r, "the state token by token");
    *kept = s->matrix;
    kept->heads = r->h;
    if (kept->in.form.levels)
        job.states = state_bits(r->n);
    show_matrix(r, s, kept);
    show_states(r, &job, s->surprise);
    show_span(r, &job);
}
