/* record.c -- the life of a Record; see record.h.
 *
 * A record owns what its comments say it owns and nothing else, so it outlives
 * the run, the spec and the arena it was taken from.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attn/cuda/host/library.h"
#include "attn/run/position.h"
#include "core/threads.h"
#include "profile/machine.h"
#include "profile/measure.h"
#include "profile/record.h"

void record_free(Record *record)
{
    free(record->params);
    free(record->tensors);
    free(record->figures);
    free(record->time.samples);
    free(record->stages);
    free(record->timeline);
    device_profile_free(record->gpu);
    free(record->warnings);
    free(record->notes);
    free(record->by_head);
    *record = (Record){ 0 };
}

/* A copy of `size` bytes in *to; NULL stays NULL.  False: no memory. */
static bool duplicate(void *to, const void *from, size_t size)
{
    void *copy = NULL;

    if (from && size) {
        copy = malloc(size);
        if (copy)
            memcpy(copy, from, size);
    }
    memcpy(to, &copy, sizeof(copy));
    return copy || !from || !size;
}

Number record_traffic(Bytes bytes)
{
    double sum = bytes.read + bytes.written;

    return sum > 0 ? number_of(sum) : NUMBER_NONE;
}

void record_take_head(Record *record, int head)
{
    record->quality = record->by_head[head];
    record->quality_of = head + 1;
    free(record->by_head);
    record->by_head = NULL;
    record->head_count = 0;
}

bool record_is_oversubscribed(const Record *record)
{
    return record->free_processors.valid &&
           load_is_over(record->threads, record->free_processors.value);
}

const char *record_status_name(RecordStatus status)
{
    switch (status) {
    case RECORD_OK: return "OK";
    case RECORD_OOM: return "OOM";
    case RECORD_UNSUPPORTED: return "UNSUPPORTED";
    case RECORD_CANCELLED: return "CANCELLED";
    case RECORD_FAILED: return "FAILED";
    }
    return "?";
}

/* A run refuses a combination (no causal form, a position it cannot take) as
 * usage: in a table of many points that is "not supported here". */
RecordStatus record_status_of(ErrorCode code)
{
    switch (code) {
    case ERR_NONE: return RECORD_OK;
    case ERR_NOMEM: return RECORD_OOM;
    case ERR_CANCELLED: return RECORD_CANCELLED;
    case ERR_USAGE:
    case ERR_UNSUPPORTED: return RECORD_UNSUPPORTED;
    default: return RECORD_FAILED;
    }
}

void record_warn(Record *record, const char *fmt, ...)
{
    char    line[400];
    va_list args;
    size_t  before = record->warnings ? strlen(record->warnings) : 0, more;
    char   *grown;

    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    more = strlen(line);
    grown = realloc(record->warnings, before + more + 2);
    if (!grown)
        return;
    memcpy(grown + before, line, more);
    memcpy(grown + before + more, "\n", 2);
    record->warnings = grown;
}

/* What a finished run says about itself, as a Record.
 *
 * Shape, settings, status, counted and closed-form FLOPs, bytes, stages and
 * the arena's peak: all that needs no clock.  Parameters are written from the
 * mechanism's table, so this file knows no mechanism.
 */

/* ---- parameters ------------------------------------------------------------- */

/* A tensor is named by its source; one that was drawn has none. */
static void json_tensor(Json *j, const Param *p, const Assignments *given)
{
    const Assignment *item = assignments_find(given, p->name);

    jsonw_string(j, item ? item->text : NULL);
}

static void json_param(Json *j, const Param *p, const void *values, const Assignments *given)
{
    Text        text = { 0 };
    const char *s;

    params_print(p, values, &text);
    s = text_str(&text);
    jsonw_key(j, p->name);
    switch (p->type) {
    case PARAM_TYPE_INT:
        jsonw_raw(j, strcmp(s, "auto") ? s : "null");
        break;
    case PARAM_TYPE_FLOAT:
        jsonw_number(j, strcmp(s, "auto") ? strtod(s, NULL) : (double)NAN);
        break;
    case PARAM_TYPE_BOOL:
    case PARAM_TYPE_LIST:
        jsonw_raw(j, s);
        break;
    case PARAM_TYPE_ENUM:
    case PARAM_TYPE_FLAGS:
        jsonw_string(j, s);
        break;
    case PARAM_TYPE_TEXT:
        jsonw_string(j, *(const char *const *)((const char *)values + p->offset));
        break;
    case PARAM_TYPE_TENSOR:
        json_tensor(j, p, given);
        break;
    case PARAM_TYPE_PER_HEAD:
        if (((const PerHead *)((const char *)values + p->offset))->tensor.data)
            json_tensor(j, p, given);
        else
            jsonw_number(j, strtod(s, NULL));
        break;
    }
    text_free(&text);
}

/* Every row of one table.  `bound` is what the run bound; when it got that far
 * without success the table is bound here, which is safe because a failed run
 * reads its parameters no more.  False: the assignments do not bind. */
static bool json_table(Json *j, const Param *table, size_t size, const void *bound,
                       const Assignments *given)
{
    void *own = bound ? NULL : calloc(1, size ? size : 1);
    bool  ok = bound || (own && params_bind(table, own, given, NULL));

    for (const Param *p = table; ok && p && p->name; p++)
        json_param(j, p, bound ? bound : own, given);
    free(own);
    return ok;
}

static bool in_tables(const Run *run, const char *name)
{
    const Position *position = run->spec.position;

    return params_find(run->mechanism->params, name) ||
           (position && params_find(position->params, name));
}

/* Assignments no table knows (free tensors); all of them when nothing bound. */
static void json_given(Json *j, const Run *run, bool all)
{
    const Assignments *given = run->spec.given;

    for (int i = 0; given && i < given->count; i++) {
        if (!all && in_tables(run, given->items[i].name))
            continue;
        jsonw_key_string(j, given->items[i].name, given->items[i].text);
    }
}

void record_figures_json(const Run *run, Json *out)
{
    jsonw_open(out, '{');
    for (int i = 0; i < run->figure_count; i++) {
        jsonw_key(out, run->figures[i].name);
        if (run->figures[i].integer)
            jsonw_int(out, (int64_t)run->figures[i].value);
        else
            jsonw_number(out, run->figures[i].value);
    }
    jsonw_close(out, '}');
}

static char *figures_json(const Run *run)
{
    Text text = { 0 };
    Json json = jsonw_to(&text);

    record_figures_json(run, &json);
    if (text_ok(&text))
        return text.data;
    text_free(&text);
    return NULL;
}

void record_take_figures(Record *record, const Run *run)
{
    char *figures = run->figure_count ? figures_json(run) : NULL;

    if (!figures)
        return;
    free(record->figures);
    record->figures = figures;
}

static char *tensors_json(const Run *run)
{
    Text  text = { 0 };
    Json  json = jsonw_to(&text);
    char  origin[48];

    jsonw_open(&json, '{');
    for (int i = 0; i < run->tensor_count; i++) {
        jsonw_key(&json, run->tensors[i].name);
        jsonw_string(&json, run_origin_text(run, run->tensors[i].origin, origin, sizeof(origin)));
    }
    jsonw_close(&json, '}');
    if (text_ok(&text))
        return text.data;
    text_free(&text);
    return NULL;
}

static char *params_json(const Run *run)
{
    const Mechanism *m = run->mechanism;
    const Position  *position = run->spec.position;
    bool             bound = run->err.code != ERR_PARAM, ok;
    Text             text = { 0 };
    Json             j = jsonw_to(&text);

    jsonw_open(&j, '{');
    ok = json_table(&j, m->params, m->params_size, bound ? run->params : NULL, run->spec.given) &&
         (!position || json_table(&j, position->params, position->params_size,
                                  bound ? run->position_params : NULL, run->spec.given));
    if (ok)
        json_given(&j, run, false);
    else {
        text_clear(&text);
        j = jsonw_to(&text);
        jsonw_open(&j, '{');
        json_given(&j, run, true);
    }
    jsonw_close(&j, '}');
    if (text_ok(&text))
        return text.data;
    text_free(&text);
    return NULL;
}

/* ---- the rest --------------------------------------------------------------- */

void record_take_script(Record *record, const Mechanism *m, const Assignments *given)
{
    const Assignments none = { 0 };

    for (int depth = 0; m && !m->script && depth < 4; depth++)
        m = mechanism_inner(m, given ? given : &none);
    if (!m || !m->script)
        return;
    snprintf(record->script, sizeof(record->script), "%.63s", m->script->name);
    snprintf(record->script_sha256, sizeof(record->script_sha256), "%s", m->script->sha256);
}

static void take_settings(const Run *run, Record *out)
{
    record_take_script(out, run->mechanism, run->spec.given);
    snprintf(out->mechanism, sizeof(out->mechanism), "%s", run->mechanism->id);
    snprintf(out->position, sizeof(out->position), "%s",
             run->spec.position ? run->spec.position->id : "none");
    snprintf(out->device, sizeof(out->device), "%s", run->ops->name);
    computed_text(run->computed, out->computed, sizeof(out->computed));
    snprintf(out->precision, sizeof(out->precision), "%s",
             arithmetic_name(arithmetic_of(run->ops)));
    out->n = run->n;
    out->m = run->m;
    out->d = run->d;
    out->e = run->e;
    out->heads = run->h;
    out->kv_heads = run->k.data ? run->k.shape[0] : run->h;
    out->causal = run->causal;
    out->seed = run->seed;
    out->threads = threads_count(run->threads);
    out->code = run->err.code;
    out->status = record_status_of(run->err.code);
    snprintf(out->message, sizeof(out->message), "%s", run->err.code ? run->err.text : "");
    out->quality.worst_query = out->quality.worst_head = -1;
}

#define NO_CLOSED_FORM "its closed form of FLOPs is not known: "

/* A closed form may fail: it may need memory, or be a script's.  A failure becomes a warning of the
 * run, not its error.  Views are off, because the closed form may prepare the run's tensors
 * again. */
static void take_flops(Run *run, Record *out)
{
    Error before = run->err;
    bool  views = run->spec.views;

    out->counted = run_flops(run);
    out->bytes = run_bytes(run);
    run->spec.views = false;
    out->has_closed_form = run_closed_form(run, &out->closed_form, &out->closed_form_is_bound);
    run->spec.views = views;
    if (!before.code && run->err.code && !(text_ok(&run->warnings) &&
                                           strstr(text_str(&run->warnings), NO_CLOSED_FORM)))
        run_warn(run, NO_CLOSED_FORM "%s", run->err.text);
    run->err = before;
}

static bool take_stages(const Run *run, Record *out)
{
    const char *kept = run->mechanism->kept_stage;

    out->stages = calloc((size_t)run->stage_count + 1, sizeof(*out->stages));
    if (!out->stages)
        return false;
    out->stage_count = run->stage_count;
    for (int i = 0; i < run->stage_count; i++) {
        const Stage *from = &run->stages[i];
        StageRecord *to = &out->stages[i];

        snprintf(to->name, sizeof(to->name), "%s", from->name);
        to->iteration = from->iteration;
        to->kept = kept && !strcmp(kept, from->name);
        to->flops = from->flops;
        to->bytes = from->bytes;
        to->arena_peak = number_of((double)from->arena_peak);
    }
    return true;
}

bool record_of_run(Run *run, Record *out, Error *err)
{
    *out = (Record){ .ended = (int64_t)time(NULL) };
    take_settings(run, out);
    if (out->status == RECORD_OK)
        out->arena_peak = number_of((double)arena_peak(run->arena));
    out->params = params_json(run);
    out->tensors = tensors_json(run);
    out->figures = figures_json(run);
    if (!out->params || !out->tensors || !out->figures || !take_stages(run, out))
        goto out_of_memory;
    if (out->status == RECORD_OK)
        take_flops(run, out);
    if (!duplicate(&out->warnings, run->warnings.data, run->warnings.length + 1) ||
        !duplicate(&out->notes, run->notes.data, run->notes.length + 1))
        goto out_of_memory;
    return true;

out_of_memory:
    record_free(out);
    return error_set(err, ERR_NOMEM, "%s: not enough memory for the record of the run",
                     run->mechanism->id);
}

/* ---- what every number means ------------------------------------------------- */

static const Convention conventions[] = {
#define CONVENTION(number, text) { number, text },
#include "profile/conventions.def"
#undef CONVENTION
};

const Convention *convention_at(size_t index)
{
    return index < sizeof(conventions) / sizeof(*conventions) ? &conventions[index] : NULL;
}
