/* step.c -- see step.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile/measure.h"
#include "profile/step.h"

#define STEP_PLAN                                                                                  \
    ((MeasurePlan){                                                                                \
        .repeats = 5, .most = 200, .min_seconds = 0.05, .max_seconds = 1.5, .width = 0.02 })

const char *step_way_name(StepWay way)
{
    static const char *const names[] = { NULL, "last query", "recurrent form" };

    return names[way];
}

#define AGAIN 1.01 /* beyond it two counts of FLOPs differ by more than what is not counted */

bool step_makes_again(const StepRecord *step)
{
    return step->way == STEP_LAST_QUERY && !step->kept.valid && step->counted.valid &&
           step->decode_flops.valid && step->counted.value > AGAIN * step->decode_flops.value;
}

bool step_does_less(const StepRecord *step)
{
    return step->way == STEP_LAST_QUERY && step->counted.valid && step->decode_flops.valid &&
           AGAIN * step->counted.value < step->decode_flops.value;
}

static Number known(double value)
{
    return isnan(value) ? NUMBER_NONE : number_of(value);
}

static void lack(char *to, const char *why)
{
    snprintf(to, sizeof(((StepRecord *)0)->lacks), "%s", why);
}

/* Whether the state holds cached numbers: it is larger where these are. */
static bool caches_numbers(const Run *run, double state_bytes)
{
    Run wider = *run;

    wider.cache_bytes *= 2;
    return run->causal && run->mechanism->decode &&
           run->mechanism->decode(&wider, run->params).state_bytes > state_bytes;
}

/* False: the mechanism says that no token has a cost of its own, so one query is no step of it. */
static bool take_costs(const Run *run, StepRecord *out)
{
    const Mechanism *m = run->mechanism;
    DecodeCost       cost = run->causal && m->decode ? m->decode(run, run->params)
                                                     : decode_unknown(NULL);

    out->state_bytes = known(cost.state_bytes);
    out->kv_bytes_per_token = known(cost.kv_bytes_per_token);
    out->step_bytes = known(cost.step_bytes);
    out->decode_flops = known(cost.decode_flops);
    out->number_bytes = caches_numbers(run, cost.state_bytes) ? run->cache_bytes : 0;
    for (int x = 0; x < STEP_LENGTHS; x++)
        out->held[x] = known(decode_held(run, (int64_t)STEP_FIRST << x));
    if (out->decode_flops.valid)
        return true;
    if (!m->causal)
        lack(out->lacks, "it has no causal form, so it cannot generate token by token");
    else if (!run->causal)
        lack(out->lacks, "the run is not causal; give --causal");
    else if (cost.why)
        lack(out->lacks, cost.why);
    else
        lack(out->lacks, "no closed form of its step is known here");
    return !cost.why || out->state_bytes.valid;
}

static bool record_costs(const Run *run, StepRecord *out)
{
    *out = (StepRecord){ .asked = true };
    return take_costs(run, out);
}

void step_costs(const Run *run, StepRecord *out)
{
    (void)record_costs(run, out);
}

/* The parameter `form` where it has the choice `recurrent`. */
static const Param *form_of(const Mechanism *m)
{
    for (const Param *p = m->params; p && p->name; p++)
        for (int x = 0; !strcmp(p->name, "form") && p->choices && p->choices[x]; x++)
            if (!strcmp(p->choices[x], "recurrent"))
                return p;
    return NULL;
}

/* One query against all keys is refused. */
static void lack_time(const RunSpec *spec, const char *message, StepRecord *out)
{
    const Mechanism *m = spec->mechanism;
    const char      *reason = m->no_at_end ? m->no_at_end
                              : m->at_end ? message
                                          : "it takes as many queries as keys";

    snprintf(out->time_lacks, sizeof(out->time_lacks), "one query alone is not run: %.400s",
             reason);
}

/* Milliseconds that were left out of the time; none: no stage was. */
static Number kept_ms(const Record *record)
{
    Number sum = NUMBER_NONE;

    for (int i = 0; i < record->stage_count; i++) {
        const StageRecord *stage = &record->stages[i];

        if (stage->kept && stage->time_ms.valid)
            sum = number_of((sum.valid ? sum.value : 0) + stage->time_ms.value);
    }
    return sum;
}

/* Times the spec; `tokens`: steps that one of its runs takes. */
static bool take_time(const RunSpec *spec, double tokens, StepWay way, StepRecord *out, Error *err)
{
    MeasurePlan plan = STEP_PLAN;
    Record      record;
    bool        ok;

    plan.step = way == STEP_LAST_QUERY;
    ok = measure(spec, &plan, &record, err);
    if (ok && record.status == RECORD_CANCELLED)
        ok = error_set(err, ERR_CANCELLED, "%s", record.message);
    if (ok && record.status != RECORD_OK) {
        lack_time(spec, record.message, out);
    } else if (ok && flops_total(record.counted) == 0) {
        lack(out->time_lacks, "a run of one query counts no operation, so it is no step");
    } else if (ok) {
        const Timing *t = &record.time;

        out->way = way;
        out->median = known(t->median.value / tokens);
        out->low = t->low.valid ? known(t->low.value / tokens) : NUMBER_NONE;
        out->high = t->high.valid ? known(t->high.value / tokens) : NUMBER_NONE;
        out->kept = plan.step ? kept_ms(&record) : NUMBER_NONE;
        out->counted = known(flops_total(record.counted) / tokens);
    }
    record_free(&record);
    return ok;
}

static bool time_recurrent(const RunSpec *spec, StepRecord *out, Error *err)
{
    Assignments given = { 0 };
    RunSpec     timed = *spec;
    bool        ok;

    ok = assignments_copy(&given, spec->given, err) &&
         assignments_set(&given, "form", "recurrent", err);
    timed.given = &given;
    ok = ok && take_time(&timed, (double)spec->q.shape[1], STEP_RECURRENT, out, err);
    assignments_free(&given);
    return ok;
}

static bool time_last_query(const RunSpec *spec, StepRecord *out, Error *err)
{
    RunSpec timed = *spec;
    int64_t n = spec->q.shape[1];

    timed.q = tensor_rows(spec->q, n - 1, 1);
    timed.attn = timed.x = (Tensor){ 0 };
    return take_time(&timed, 1, STEP_LAST_QUERY, out, err);
}

bool step_measure(const Run *run, const RunSpec *spec, bool timed, StepRecord *out, Error *err)
{
    const Mechanism *m = run->mechanism;
    RunSpec          plain = *spec;
    bool             has_step = record_costs(run, out);

    plain.views = false;
    plain.observer = NULL;
    plain.progress = NULL;
    if (!timed) {
        lack(out->time_lacks, "the run was not measured");
        return true;
    }
    if (!m->causal || !run->causal || !spec->q.data || spec->segments.data) {
        lack(out->time_lacks, *out->lacks ? out->lacks
                                          : "its input is not q, k and v of one sequence");
        return true;
    }
    if (!has_step) {
        lack(out->time_lacks, out->lacks);
        return true;
    }
    if (form_of(m))
        return time_recurrent(&plain, out, err);
    if (m->needs_x) {
        lack(out->time_lacks, "it reads the layer's input, of which one token is not run alone");
        return true;
    }
    return time_last_query(&plain, out, err);
}

/* ---- JSON --------------------------------------------------------------------- */

static void key_number(Json *j, const char *key, Number number)
{
    jsonw_key_number(j, key, number.valid ? number.value : (double)NAN);
}

void step_json(const StepRecord *step, Json *out)
{
    jsonw_key(out, "decode");
    if (!step->asked) {
        jsonw_null(out);
        return;
    }
    jsonw_open(out, '{');
    key_number(out, "state_bytes", step->state_bytes);
    key_number(out, "kv_bytes_per_token", step->kv_bytes_per_token);
    key_number(out, "step_bytes", step->step_bytes);
    key_number(out, "decode_flops", step->decode_flops);
    key_number(out, "number_bytes",
               step->number_bytes ? number_of((double)step->number_bytes) : NUMBER_NONE);
    jsonw_key_open(out, "held", '[');
    for (int x = 0; x < STEP_LENGTHS; x++) {
        if (!step->held[x].valid)
            continue;
        jsonw_open(out, '{');
        jsonw_key_int(out, "n", (int64_t)STEP_FIRST << x);
        key_number(out, "bytes", step->held[x]);
        jsonw_close(out, '}');
    }
    jsonw_close(out, ']');
    jsonw_key_string(out, "lacks", *step->lacks ? step->lacks : NULL);
    jsonw_key_string(out, "way", step_way_name(step->way));
    jsonw_key_open(out, "step_ms", '{');
    key_number(out, "median", step->median);
    key_number(out, "median_low", step->low);
    key_number(out, "median_high", step->high);
    jsonw_close(out, '}');
    key_number(out, "kept_ms", step->kept);
    key_number(out, "counted_flops", step->counted);
    jsonw_key_string(out, "time_lacks", *step->time_lacks ? step->time_lacks : NULL);
    jsonw_close(out, '}');
}
