/* execute.c -- one request becomes one Result; all runs start here.
 *
 * It runs on any thread and uses no session.  Timed runs are runs of their own: without views,
 * and with a fresh arena.
 */
#include "app/result/views.h"
#include "app/session/internal.h"
#include "attn/cuda/host/library.h"
#include "attn/run/position.h"
#include "profile/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void watch_stage(void *context, const Run *run, const Stage *stage)
{
    (void)run;
    atomic_store(&((RunProgress *)context)->stage, stage ? stage->name : "");
}

/* Begins a phase that is no stage of the run; parts: 0: not known. */
static void next_phase(RunProgress *progress, const char *name, int parts)
{
    if (!progress)
        return;
    progress_begin(progress, parts);
    atomic_store(&progress->stage, name);
}

/* A device has memory of its own, which is the limit there. */
static int64_t memory_limit(const Request *request)
{
    if (request->memory_limit || (request->ops && request->ops->memory))
        return request->memory_limit;
    return machine_share();
}

static bool fill_spec(RunSpec *spec, const Input *input, const Request *request, Threads *threads,
                      const atomic_bool *cancel, Error *err)
{
    *spec = (RunSpec){
        .q = input->q,
        .k = input->k,
        .v = input->v,
        .x = input->x,
        .attn = input->attn,
        .segments = input->segments,
        .width = input->width,
        .causal = request->causal < 0 ? input->causal > 0 : request->causal > 0,
        .scale = input->scale,
        .window = input->window,
        .given = &request->given,
        .seed = request->seed,
        .fit = request->fit,
        .pairs_only = request->pairs_only,
        .views_only = request->views_only,
        .threads = threads,
        .views = true,
        .ops = request->ops,
        .memory_limit = memory_limit(request),
        .cancel = cancel,
    };
    if (!mechanism_parse(request->mechanism, &spec->mechanism, err))
        return false;
    if (request->decode && request->causal < 0)
        spec->causal = spec->mechanism->causal;
    return position_parse(request->position, &spec->position, err);
}

/* An input's causal mask is left out for mechanisms without a causal form; a warning says so. */
static bool soften_causal(RunSpec *spec, const Request *request)
{
    if (request->causal >= 0 || !spec->causal || spec->mechanism->causal)
        return false;
    spec->causal = false;
    return true;
}

bool request_planned_flops(Session *s, const Request *request, Flops *flops, bool *bound)
{
    RunSpec spec;
    Run    *run;
    bool    ok;

    if (!s->loaded || !fill_spec(&spec, s->loaded->input, request, NULL, NULL, NULL))
        return false;
    soften_causal(&spec, request);
    spec.views = false;
    spec.ops = NULL; /* a plan takes no memory of a device */
    run = run_new(&spec);
    ok = run && run_closed_form(run, flops, bound);
    run_free(run);
    return ok;
}

/* FLOPs of the run by its closed form; 0: not known before the run. */
static double planned_flops(const RunSpec *spec)
{
    RunSpec plan = *spec;
    Flops   flops = { 0 };
    bool    bound = false, known = false;
    Run    *run;

    if (!spec->mechanism->flops || spec->mechanism->flops_works || spec->mechanism->flops_bound ||
        mechanism_inner(spec->mechanism, spec->given))
        return 0;
    plan.views = false;
    run = run_new(&plan);
    known = run && run_closed_form(run, &flops, &bound) && !bound;
    run_free(run);
    return known ? flops.score + flops.mix + flops.overhead : 0;
}

/* A quick run is timed several times even without --repeat. */
#define QUICK_MS 300
#define QUICK_PLAN                                                                                 \
    ((MeasurePlan){                                                                                \
        .repeats = 5, .most = 50, .min_seconds = 0.05, .max_seconds = 1.5, .width = 0.03 })
/* A slow one is timed once, after the first call. */
#define SLOW_PLAN ((MeasurePlan){ .repeats = 0, .max_seconds = 10 })

MeasurePlan request_plan(const Request *request, double run_ms)
{
    MeasurePlan plan = MEASURE_DEFAULT;

    if (request->repeat <= 1 && !(request->width > 0))
        return run_ms < QUICK_MS ? QUICK_PLAN : SLOW_PLAN; /* the record says it is one */
    if (request->repeat > 0)
        plan.repeats = request->repeat;
    plan.width = request->width > 0 ? request->width : (double)INFINITY;
    if (request->width > 0)
        plan.most = 1000000; /* a given width may use the whole time budget */
    return plan;
}

static bool fill_record(Result *result, const RunSpec *spec, const Request *request,
                        RunProgress *progress, Error *err)
{
    MeasurePlan plan;
    RunSpec     timed = *spec;

    if (!request->measure || result->run->err.code != ERR_NONE)
        return record_of_run(result->run, &result->record, err);
    next_phase(progress, "measuring", 0);
    timed.views = false;
    timed.observer = NULL;
    plan = request_plan(request, result->run_ms);
    return measure(&timed, &plan, &result->record, err);
}

static Result *result_new(Loaded *loaded, const Request *request, Error *err)
{
    Result *result = calloc(1, sizeof(*result));

    if (!result) {
        error_set(err, ERR_NOMEM, "not enough memory for a result");
        return NULL;
    }
    if (!request_copy(&result->request, request, err)) {
        free(result);
        return NULL;
    }
    result->references = 1;
    result->loaded = loaded_retain(loaded);
    result->input = loaded->input;
    result->device = device_of(request->ops);
    device_retain(result->device);
    return result;
}

/* Warnings of the run with views go to the record of the timed one, too. */
static void take_warnings(Record *record, const char *lines)
{
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        char   line[400];

        snprintf(line, sizeof(line), "%.*s", (int)length, lines);
        if (!lines_hold(record->warnings ? record->warnings : "", line))
            record_warn(record, "%s", line);
        lines += length + (lines[length] == '\n');
    }
}

/* Warns of NaN and infinity in tensor parameters; the run uses them as they are. */
static void warn_of_tensors(Run *run, const Assignments *given)
{
    for (int i = 0; i < given->count; i++) {
        const Assignment *a = &given->items[i];
        int64_t           at = tensor_not_finite(&a->tensor);

        if (at >= 0)
            run_warn(run,
                     "parameter %s holds NaN or infinity (first at element %lld of "
                     "%s); what it touches may be NaN too",
                     a->name, (long long)at, a->text + (*a->text == '@'));
    }
}

static void finish_record(Result *result, bool softened)
{
    Record *record = &result->record;

    warn_of_tensors(result->run, &result->request.given);
    if (softened)
        run_warn(result->run, "%s has no causal form: the input's causal mask was left out",
                 result->request.mechanism);
    take_warnings(record, text_str(&result->run->warnings));
    record_take_figures(record, result->run);
    record->threads = result->run->threads ? threads_count(result->run->threads) : 1;
    snprintf(record->input, sizeof(record->input), "%s", result->input->name);
    if (result->loaded->warning)
        record_warn(record, "%s", result->loaded->warning);
    if (result->run->blas && environment_blas_warning())
        record_warn(record, "%s", environment_blas_warning());
}

/* Runs again with another seed, for the quality alone. */
static bool add_seed(const RunSpec *spec, uint64_t seed, int64_t rows, SeedSpread *spread,
                     Error *err)
{
    RunSpec other = *spec;
    Quality quality;
    Run    *run;
    bool    ok;

    other.observer = NULL;
    other.progress = NULL; /* a seed is one part of the progress */
    other.seed = seed;
    run = run_new(&other);
    run_execute(run);
    if (!run)
        return error_set(err, ERR_NOMEM, "not enough memory for a run");
    ok = run->err.code == ERR_NONE && quality_measure(run, rows, &quality, NULL, err);
    if (run->err.code != ERR_NONE)
        *err = run->err;
    run_free(run);
    if (ok)
        seeds_add(spread, &quality);
    return ok;
}

static bool measure_seeds(Result *result, const RunSpec *spec, RunProgress *progress, Error *err)
{
    Record *record = &result->record;

    if (result->request.seeds < 2)
        return true;
    if (!run_is_drawn(result->run)) {
        record_warn(record, "nothing is drawn at random here: every seed gives the same result");
        return true;
    }
    seeds_add(&record->seeds, &record->quality);
    record->seeds.lacks = quality_lacks(result->run);
    next_phase(progress, "seeds", result->request.seeds - 1);
    for (int i = 1; i < result->request.seeds; i++) {
        if (!add_seed(spec, spec->seed + (uint64_t)i, result->request.quality_rows,
                      &record->seeds, err))
            return false;
        if (progress)
            progress_charge(progress, 1);
    }
    return true;
}

/* Nothing where there is nothing to compare. */
#define ALL_MASS 0.999999
#define LOST     0.01 /* output error */

static bool heads_room(Result *result, Error *err)
{
    Record *record = &result->record;

    if (quality_lacks(result->run))
        return true;
    record->by_head = calloc((size_t)result->run->h, sizeof(*record->by_head));
    record->head_count = record->by_head ? (int)result->run->h : 0;
    return record->by_head ||
           error_set(err, ERR_NOMEM, "not enough memory for the quality of each head");
}

static bool measure_step(Result *result, const RunSpec *spec, RunProgress *progress, Error *err)
{
    if (!result->request.decode || result->run->err.code != ERR_NONE)
        return true;
    next_phase(progress, "step", 0);
    return step_measure(result->run, spec, result->request.measure, &result->record.step, err);
}

/* What the numbers alone would hide. */
static void warn_of_quality(const Run *run, Record *record)
{
    const Quality *q = &record->quality;
    int64_t        rows = run->h * (q->rows ? q->rows : run->n);

    if (q->unknown_rows > run->unknown_queries)
        record_warn(record, "%lld of %lld rows of exact attention are NaN: mass, total variation "
                    "and KL are of the others", (long long)q->unknown_rows, (long long)rows);
    if (!(run->mechanism->classes & CLASS_BASELINE) && q->mass_mean.valid &&
        q->mass_mean.value > ALL_MASS && q->output_error.valid && q->output_error.value > LOST)
        record_warn(record, "all mass counts as kept, but not every key is read alone (means, "
                    "clusters, states): output error and total variation say what is lost");
}

static bool measure_quality(Result *result, const RunSpec *spec, RunProgress *progress, Error *err)
{
    if (!result->request.quality || result->run->err.code != ERR_NONE)
        return true;
    next_phase(progress, "quality", 0);
    if ((result->request.per_head && !heads_room(result, err)) ||
        !quality_measure(result->run, result->request.quality_rows,
                              &result->record.quality, result->record.by_head, err))
        return false;
    warn_of_quality(result->run, &result->record);
    return measure_seeds(result, spec, progress, err);
}

/* The layers above are run for their pairs. */
static bool run_upper(Result *result, const RunSpec *common, Error *err)
{
    int count = 0;

    for (const Request *r = result->request.above; r; r = r->above)
        count++;
    result->upper = calloc((size_t)count + 1, sizeof(Run *));
    if (!result->upper)
        return error_set(err, ERR_NOMEM, "not enough memory for a stack of layers");
    for (const Request *r = result->request.above; r; r = r->above) {
        RunSpec spec;
        Run    *run;

        if (!fill_spec(&spec, result->loaded->input, r, common->threads, common->cancel, err))
            return false;
        soften_causal(&spec, r);
        run = run_new(&spec);
        run_execute(run);
        if (!run)
            return error_set(err, ERR_NOMEM, "not enough memory for a run");
        run->threads = NULL; /* both end before the result does */
        run->spec.cancel = NULL;
        result->upper[result->upper_count++] = run;
        if (run->err.code != ERR_NONE)
            run_fail(result->run, run->err.code, "layer %d: %.200s", result->upper_count + 1,
                     run->err.text);
    }
    return true;
}

/* The request's own N(0,1) input; released by the caller. */
static Loaded *load_normal(const NormalInput *normal, const atomic_bool *cancel, Error *err)
{
    InputChoice choice = {
        .n = normal->n, .d = normal->d, .heads = normal->heads, .seed = 1, .cancel = cancel
    };
    Loaded *loaded = calloc(1, sizeof(*loaded));

    if (!loaded) {
        error_set(err, ERR_NOMEM, "not enough memory for an input");
        return NULL;
    }
    atomic_init(&loaded->references, 1);
    loaded->input = input_load("synthetic:normal", &choice, err);
    if (loaded->input)
        return loaded;
    free(loaded);
    return NULL;
}

/* Fills the spec; *softened: the input's causal mask is left out.  progress may be NULL. */
static bool prepare(Result *result, Threads *threads, const atomic_bool *cancel,
                    RunProgress *progress, RunSpec *spec, bool *softened, Error *err)
{
    if (!fill_spec(spec, result->input, &result->request, threads, cancel, err))
        return false;
    *softened = soften_causal(spec, &result->request);
    if (progress) {
        progress_begin(progress, planned_flops(spec));
        spec->observer = watch_stage;
        spec->observer_context = progress;
        spec->progress = progress;
    }
    return true;
}

/* Layers above, measurement, quality and missed keys.  The first run stays meanwhile, so these have
 * what it leaves. */
static bool measure_rest(Result *result, const RunSpec *first, RunProgress *progress, Error *err)
{
    const Request *request = &result->request;
    RunSpec        rest = *first;
    const RunSpec *spec = &rest;

    if (!result->run)
        return error_set(err, ERR_NOMEM, "not enough memory for a run");
    result->run->spec.observer = NULL; /* the observer may end before the result */
    result->run->spec.progress = NULL;
    rest.memory_limit = memory_limit(request);
    if (!run_upper(result, spec, err))
        return false;
    result->reach = reach_new(result);
    return fill_record(result, spec, request, progress, err) &&
           measure_step(result, spec, progress, err) &&
           measure_quality(result, spec, progress, err) &&
           (!request->missed || result->run->err.code != ERR_NONE ||
            !missed_is_offered(result->run) ||
            result_missed(result, request->keys, spec->threads, spec->cancel, err));
}

/* Runs on one GPU exclude each other, across sessions. */
static bool hold_device(const Request *request, const atomic_bool *cancel, RunProgress *progress,
                        Error *err)
{
    Device *device = device_of(request->ops);

    if (device_hold_now(device))
        return true;
    next_phase(progress, "waiting for the GPU", 0);
    return device_hold(device, cancel) ||
           error_set(err, ERR_CANCELLED, "%s: interrupted", request->mechanism);
}

Result *execute_request(Loaded *loaded, const Request *request, Threads *threads,
                        const atomic_bool *cancel, RunProgress *progress, Error *err)
{
    Loaded *normal = request->normal.n ? load_normal(&request->normal, cancel, err) : NULL;
    Loaded *input = request->normal.n ? normal : loaded;
    Result *result = NULL;
    RunSpec spec;
    bool    softened = false, ok = false;

    if (!input || !hold_device(request, cancel, progress, err)) {
        loaded_release(normal);
        return NULL;
    }
    result = result_new(input, request, err);
    if (result && prepare(result, threads, cancel, progress, &spec, &softened, err)) {
        double start = clock_wall();

        result->run = run_new(&spec);
        run_execute(result->run);
        result->run_ms = (clock_wall() - start) * 1e3;
        ok = measure_rest(result, &spec, progress, err);
    }
    if (ok)
        finish_record(result, softened);
    if (!ok) {
        result_release(result);
        result = NULL;
    }
    device_leave(device_of(request->ops));
    loaded_release(normal);
    return result;
}

Result *session_run_ok(Session *s, const Request *request, Error *err)
{
    Result *result = session_run(s, request, err);

    if (!result || (result->run->err.code == ERR_NONE && result->record.code == ERR_NONE))
        return result;
    /* The run that is measured is another one, and may fail alone. */
    if (result->run->err.code != ERR_NONE)
        *err = result->run->err;
    else
        error_set(err, result->record.code, "%s", result->record.message);
    result_release(result);
    return NULL;
}

Result *result_retain(Result *result)
{
    result->references++;
    return result;
}

void result_release(Result *result)
{
    if (!result || --result->references > 0)
        return;
    missed_free(result->missed);
    reach_free(result->reach);
    derived_free(result->derived);
    for (int i = 0; i < result->upper_count; i++)
        run_free(result->upper[i]);
    free(result->upper);
    run_free(result->replay);
    run_free(result->run);
    device_release(result->device);
    record_free(&result->record);
    request_free(&result->request);
    loaded_release(result->loaded);
    free(result);
}
