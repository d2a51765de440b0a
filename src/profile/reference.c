/* reference.c -- see reference.h. */
#include <math.h>
#include <string.h>

#include "attn/run/position.h"
#include "profile/reference.h"

/* The scale and the like, under the same name and type, and the position's. */
static bool shared_assignments(const Run *run, const Mechanism *exact, Assignments *out,
                               Error *err)
{
    const Assignments *given = run->spec.given;
    const Position    *position = run->spec.position;

    for (int i = 0; given && i < given->count; i++) {
        const Assignment *item = &given->items[i];
        const Param *ours = params_find(run->mechanism->params, item->name);
        const Param *theirs = params_find(exact->params, item->name);
        bool same = ours && theirs && ours->type == theirs->type;

        if (!same && !(position && params_find(position->params, item->name)))
            continue;
        if (!assignments_set_tensor(out, item->name, item->tensor, item->text, err))
            return false;
    }
    return true;
}

bool reference_is_possible(const Run *run)
{
    if (run->of_x || !run->q.data)
        return false;
    return !run->mechanism->or_x || (run->k.data && run->k.shape[2] == run->q.shape[2] &&
                                     run->out.data && run->out.shape[0] == run->q.shape[0]);
}

/* ops NULL: the CPU's; context: the spec's context for these ops. */
static bool begin_reference(const Run *run, const Ops *ops, void *context, Threads *threads,
                            const atomic_bool *cancel, Reference *out, Error *err)
{
    RunSpec spec = run->spec;

    *out = (Reference){ 0 };
    spec.mechanism = mechanism_baseline();
    spec.given = &out->given;
    spec.views = true;
    spec.fit = false;
    spec.observer = NULL;
    spec.progress = NULL;
    spec.observer_context = context;
    /* By default the CPU's, so that another device's loss of precision shows. */
    spec.ops = ops;
    spec.preparing = NULL;
    spec.fail_at = 0;
    spec.threads = threads;
    spec.cancel = cancel;
    if (!spec.mechanism)
        return error_set(err, ERR_INTERNAL, "the catalogue has no baseline to compare with");
    if (!shared_assignments(run, spec.mechanism, &out->given, err))
        return false;
    out->run = run_new(&spec);
    run_execute(out->run);
    if (!out->run)
        return error_set(err, ERR_NOMEM, "not enough memory for the reference");
    return out->run->err.code == ERR_NONE ||
           error_set(err, out->run->err.code, "reference: %.200s", out->run->err.text);
}

bool reference_new(const Run *run, Threads *threads, const atomic_bool *cancel, Reference *out,
                   Error *err)
{
    return begin_reference(run, NULL, NULL, threads, cancel, out, err);
}

void reference_free(Reference *reference)
{
    run_free(reference->run);
    assignments_free(&reference->given);
}

/* ---- row by row ----------------------------------------------------------------- */

/* Takes the place of `attend`: stores its arguments. */
static void note_attend(Run *r, const AttendInput *in, const Pattern *pattern, AttendResult *out,
                        double *cells)
{
    ReferenceRows *rows = r->spec.observer_context;

    (void)out;
    (void)cells;
    rows->in = *in;
    rows->cells = pattern;
}

/* As note_attend, and attends. */
static void note_and_attend(Run *r, const AttendInput *in, const Pattern *pattern,
                            AttendResult *out, double *cells)
{
    note_attend(r, in, pattern, out, cells);
    ops_cpu()->attend(r, in, pattern, out, cells);
}

static bool begin_rows(const Run *run, bool attends, Threads *threads, const atomic_bool *cancel,
                       ReferenceRows *out, Error *err)
{
    *out = (ReferenceRows){ .ops = *ops_cpu() };
    out->ops.attend = attends ? note_and_attend : note_attend;
    if (!begin_reference(run, &out->ops, out, threads, cancel, &out->reference, err))
        return false;
    return out->cells || error_set(err, ERR_INTERNAL, "the baseline %s has no cells to attend to",
                                   out->reference.run->mechanism->id);
}

bool reference_rows_new(const Run *run, Threads *threads, const atomic_bool *cancel,
                        ReferenceRows *out, Error *err)
{
    return begin_rows(run, false, threads, cancel, out, err);
}

bool reference_rows_run(const Run *run, Threads *threads, const atomic_bool *cancel,
                        ReferenceRows *out, Error *err)
{
    return begin_rows(run, true, threads, cancel, out, err);
}

/* Makes weights of scores; NaN where scores are, or are infinite.  False: nothing is allowed. */
static bool normalise(const PatternRow *cells, float *line)
{
    double top = -(double)INFINITY, sum = 0;

    for (int64_t x = 0; x < cells->count; x++)
        for (int64_t c = 0; c < cells->runs[x].count; c++)
            top = fmax(top, (double)line[cells->runs[x].start + c * cells->runs[x].step]);
    for (int64_t x = 0; x < cells->count; x++)
        for (int64_t c = 0; c < cells->runs[x].count; c++) {
            float *at = &line[cells->runs[x].start + c * cells->runs[x].step];

            *at = expf(*at - (float)top);
            sum += (double)*at;
        }
    for (int64_t x = 0; x < cells->count && sum > 0; x++)
        for (int64_t c = 0; c < cells->runs[x].count; c++)
            line[cells->runs[x].start + c * cells->runs[x].step] /= (float)sum;
    return !(sum <= 0);
}

bool reference_scores(const ReferenceRows *rows, int64_t head, int64_t i, PatternRow *cells,
                      float *line)
{
    const Run *run = rows->reference.run;
    float      piece[256];

    pattern_row(rows->cells, pattern_per_head(rows->cells) ? head : 0, i, cells);
    for (int64_t x = 0; x < cells->count; x++) {
        PatternRun r = cells->runs[x];

        for (int64_t done = 0; done < r.count; done += 256) {
            int64_t count = r.count - done < 256 ? r.count - done : 256;

            attend_scores_run(&rows->in, run->h, head, i, r.start + done * r.step, count, r.step,
                              piece);
            for (int64_t c = 0; c < count; c++)
                line[r.start + (done + c) * r.step] = piece[c];
        }
    }
    return !cells->failed;
}

bool reference_row(const ReferenceRows *rows, int64_t head, int64_t i, PatternRow *cells,
                   float *line)
{
    memset(line, 0, (size_t)rows->reference.run->m * sizeof(*line));
    return reference_scores(rows, head, i, cells, line) && normalise(cells, line);
}

void reference_rows_free(ReferenceRows *rows)
{
    reference_free(&rows->reference);
}
