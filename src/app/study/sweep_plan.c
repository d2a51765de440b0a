/* sweep_plan.c -- the points of a sweep, and the key of each.
 *
 * The order is n, seed, mechanism, parameters, position, threads, device, precision, the first
 * slowest, so a budget that ends leaves out the longest n of all mechanisms.  A mechanism without a
 * parameter has one point, not one for each value.
 *
 * A shard is every N-th point of the plan, so any scheduler can run the shards.
 *
 * Several processes of a point run in rounds over the plan, so that they see the machine at
 * several times.  Beside another program, its process is the first of the two in odd rounds and
 * the second in even ones (A B, B A): a machine that slowly changes favours neither.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/scripts.h"
#include "app/study/sweep.h"
#include "attn/run/position.h"
#include "input/store.h"

/* What the mechanisms say to one value of an axis. */
typedef struct ValueStand {
    bool taken;     /* by some mechanism */
    char why[300];  /* the first that did not, and its point; "": none */
} ValueStand;

typedef struct Planner {
    Session         *session;
    const SweepSpec *spec;
    SweepPlan       *plan;
    Text             canonical; /* of the point being made, without n */
    Text             identity;  /* the same without repeats and scripts */
    Error           *err;
    const char      *asked; /* the mechanism's word */
    int              own;   /* parameters in its parentheses, which override axes */
    int              n_at, series;
    bool             used[SWEEP_AXES]; /* some mechanism has the parameter */
    ValueStand      *stands[SWEEP_AXES]; /* [axes.values.count]; owned */
} Planner;

static void fingerprint(const char *text, size_t length, char hex[65])
{
    Mapped bytes = { .data = (const uint8_t *)text, .size = (int64_t)length };

    mapped_sha256(&bytes, 1, hex);
}

/* ---- what makes a point what it is ------------------------------------------
 *
 * Two fingerprints.  The key is of all that a record depends on.  The identity leaves out how often
 * the point is repeated, and the content of scripts: that is the program, which `diff` compares.
 */

static void add_tensor(const Assignment *given, Text *out)
{
    char hex[65];

    fingerprint(given->tensor.data, (size_t)tensor_bytes(&given->tensor), hex);
    text_addf(out, "%s:%s\n", given->name, hex);
}

/* Writes bound values: a default and the same value written out are one point.  False: the
 * parameters are invalid. */
static bool add_table(const Param *table, size_t size, const Assignments *given, Text *out,
                      Error *err)
{
    void *values = calloc(1, size ? size : 1);
    bool  ok = values && params_bind(table, values, given, err);

    if (!values)
        error_set(err, ERR_NOMEM, "not enough memory");
    for (const Param *p = table; ok && p && p->name; p++) {
        const Assignment *item = assignments_find(given, p->name);

        if (item && item->tensor.data) {
            add_tensor(item, out);
        } else if (p->type == PARAM_TYPE_TEXT) {
            const char *text = *(const char *const *)((const char *)values + p->offset);

            text_addf(out, "%s=%s\n", p->name, text ? text : "");
        } else {
            text_addf(out, "%s=", p->name);
            params_print(p, values, out);
            text_add(out, "\n");
        }
    }
    free(values);
    return ok;
}

static void add_free(const Request *r, const Mechanism *m, const Position *position, Text *out)
{
    for (int i = 0; i < r->given.count; i++) {
        const Assignment *item = &r->given.items[i];

        if (params_find(m->params, item->name) ||
            (position && params_find(position->params, item->name)))
            continue;
        if (item->tensor.data)
            add_tensor(item, out);
        else
            text_addf(out, "%s=%s\n", item->name, item->text);
    }
}

/* Another content of a script is another mechanism. */
static void add_script_hashes(const Request *r, Text *out)
{
    const MechanismScript *script;

    for (int i = 0; (script = scripts_at(i)); i++)
        if (script_is_of_request(script, r))
            text_addf(out, "script=%s\n", script->sha256);
}

/* What is measured, and all parameters. */
static bool add_measures(const SweepSpec *spec, const Request *r, const Mechanism *m,
                         const Position *position, Text *out, Error *err)
{
    text_addf(out, " quality=%d", spec->quality);
    if (spec->decode)
        text_add(out, " decode=1");
    if (spec->quality_rows)
        text_addf(out, " rows=%lld", (long long)spec->quality_rows);
    text_add(out, "\n");
    if (!add_table(m->params, m->params_size, &r->given, out, err) ||
        (position && !add_table(position->params, position->params_size, &r->given, out, err)))
        return false;
    add_free(r, m, position, out);
    return true;
}

static bool canonical_request(Planner *p, const Request *r, Error *err)
{
    const SweepSpec *spec = p->spec;
    const Mechanism *m = mechanism_find(r->mechanism);
    const Position  *position = NULL;
    Text             rest = { 0 };

    text_clear(&p->canonical);
    text_clear(&p->identity);
    if (!position_parse(r->position, &position, err))
        return false;
    text_addf(&p->identity, "%s %s causal=%d fit=%d input=%s layer=%lld d=%lld heads=%lld",
              r->mechanism, r->position, r->causal, r->fit, spec->input_sha256,
              (long long)spec->layer, (long long)spec->d, (long long)spec->heads);
    text_addf(&p->canonical, "%s repeat=%d within=%.17g", text_str(&p->identity), spec->repeat,
              spec->within);
    if (!add_measures(spec, r, m, position, &rest, err)) {
        text_free(&rest);
        return false;
    }
    text_add(&p->identity, text_str(&rest));
    text_add(&p->canonical, text_str(&rest));
    text_free(&rest);
    add_script_hashes(r, &p->canonical);
    return true;
}

static void point_fingerprint(const SweepPoint *point, const char *request, char hex[65])
{
    Text text = { 0 };

    /* Values that do not bind are identified by their text. */
    text_addf(&text, "%s n=%lld seed=%llu threads=%d device=%s",
              *point->refused ? point->mechanism : request, (long long)point->n,
              (unsigned long long)point->seed, point->threads, point->device);
    if (*point->precision)
        text_addf(&text, " precision=%s", point->precision);
    fingerprint(text_str(&text), text.length, hex);
    text_free(&text);
}

static void make_key(Planner *p, SweepPoint *point)
{
    char hex[65];

    point_fingerprint(point, text_str(&p->canonical), hex);
    snprintf(point->key, sizeof(point->key), "%.16s@%s", hex, ATTNSCOPE_VERSION);
    point_fingerprint(point, text_str(&p->identity), hex);
    snprintf(point->identity, sizeof(point->identity), "%.16s", hex);
}

/* ---- points ----------------------------------------------------------------- */

static SweepPoint *new_point(Planner *p)
{
    SweepPlan *plan = p->plan;

    if (plan->count == plan->capacity) {
        int         capacity = plan->capacity ? 2 * plan->capacity : 256;
        SweepPoint *points = realloc(plan->points, (size_t)capacity * sizeof(*points));

        if (!points) {
            error_set(p->err, ERR_NOMEM, "not enough memory for the points of the sweep");
            return NULL;
        }
        plan->points = points;
        plan->capacity = capacity;
    }
    plan->points[plan->count] = (SweepPoint){ .index = plan->count };
    return &plan->points[plan->count++];
}

/* JSON has no infinity and no NaN: such a value stays the text that was given. */
static char *given_json(const Request *r)
{
    Text text = { 0 };
    Json j = jsonw_to(&text);

    jsonw_open(&j, '{');
    for (int i = 0; i < r->given.count; i++) {
        const Assignment *item = &r->given.items[i];
        char             *end;
        double            value = strtod(item->text, &end);

        jsonw_key(&j, item->name);
        if (*item->text && !*end && isfinite(value))
            jsonw_number(&j, value);
        else
            jsonw_string(&j, item->text);
    }
    jsonw_close(&j, '}');
    return text.data;
}

static bool add_script(void *context, const MechanismScript *script, Error *err)
{
    SweepPoint *point = context;

    return words_add(&point->scripts, script->path, strlen(script->path), err);
}

/* Adds the mechanism with its parameters at one place of the other axes. */
static bool add_point(Planner *p, const Request *r, const char *refused, int threads,
                      const char *device, const char *precision)
{
    const SweepSpec *spec = p->spec;
    SweepPoint      *point = new_point(p);
    Text             text = { 0 };
    Error            err = ERROR_INIT;

    if (!point || !scripts_of_request(r, add_script, point, p->err))
        return false;
    request_text(r, &text);
    point->mechanism = text.data;
    point->params = given_json(r);
    point->asked = p->asked;
    snprintf(point->position, sizeof(point->position), "%s", r->position);
    point->causal = r->causal;
    point->fit = r->fit;
    point->device = device;
    point->precision = precision;
    point->n = strtoll(spec->n.items[p->n_at], NULL, 10);
    point->threads = (int)strtol(spec->threads.items[threads], NULL, 10);
    point->seed = r->seed;
    point->series = p->series++;
    if (*refused || !canonical_request(p, r, &err))
        snprintf(point->refused, sizeof(point->refused), "%.250s", *refused ? refused : err.text);
    make_key(p, point);
    return text_ok(&text) || error_set(p->err, ERR_NOMEM, "not enough memory");
}

/* The CPU has one precision, so one point. */
static bool add_devices(Planner *p, const Request *r, const char *refused, int threads)
{
    const SweepSpec *spec = p->spec;
    bool             ok = true;

    for (int d = 0; ok && d < spec->devices.count; d++) {
        const char *device = spec->devices.items[d];
        bool        cpu = !*device || !strcmp(device, "cpu");

        for (int x = 0; ok && x < (cpu ? 1 : spec->precisions.count); x++)
            ok = add_point(p, r, refused, threads, device, cpu ? "" : spec->precisions.items[x]);
    }
    return ok;
}

static bool add_places(Planner *p, Request *r, const char *refused)
{
    const SweepSpec *spec = p->spec;
    char             own[sizeof(r->position)];
    bool             ok = true;

    snprintf(own, sizeof(own), "%s", r->position);
    for (int i = 0; ok && i < spec->positions.count; i++) {
        const char *name = spec->positions.items[i];

        if (*name && !strcmp(own, "none"))
            snprintf(r->position, sizeof(r->position), "%s", name);
        for (int t = 0; ok && t < spec->threads.count; t++)
            ok = add_devices(p, r, refused, t);
    }
    snprintf(r->position, sizeof(r->position), "%s", own);
    return ok;
}

/* The mechanism, an inner one, or the position has such a parameter. */
static bool has_parameter(const Request *r, const SweepAxis *axis)
{
    const Mechanism *m = mechanism_find(r->mechanism);

    return !strncmp(axis->name, "pos_", 4) || mechanism_param(m, &r->given, axis->name) ||
           (m->free_tensors && *axis->values.items[0] == '@');
}

static bool is_own(const Planner *p, const Request *r, const char *name)
{
    for (int i = 0; i < p->own; i++)
        if (!strcmp(r->given.items[i].name, name))
            return true;
    return false;
}

/* ---- values that no mechanism takes -------------------------------------------- */

#define VALUE_BYTES 256 /* of any type of parameter */

/* The value has the type and the range of its parameter.  A position's is bound with it, later. */
static bool value_binds(const Request *r, const char *name, Error *err)
{
    const Param      *param = mechanism_param(mechanism_find(r->mechanism), &r->given, name);
    const Assignment *item = assignments_find(&r->given, name);
    Param             table[] = { param ? *param : (Param)PARAM_END, PARAM_END };
    Assignments       one = { 0 };
    void             *values;
    bool              ok;

    if (!param || !item || item->tensor.data)
        return true;
    values = calloc(1, (size_t)param->offset + VALUE_BYTES);
    ok = values && assignments_set(&one, name, item->text, err) &&
         params_bind(table, values, &one, err);
    assignments_free(&one);
    free(values);
    return ok;
}

/* Sets the axis to its value number i; false: the mechanism does not take it. */
static bool set_value(Planner *p, Request *r, int axis, int i, Error *err)
{
    const SweepAxis *a = &p->spec->axes[axis];
    ValueStand      *stand = p->stands[axis] ? &p->stands[axis][i] : NULL;
    char             assignment[600];
    bool             set, ok;

    snprintf(assignment, sizeof(assignment), "%s=%s", a->name, a->values.items[i]);
    set = request_set(p->session, r, assignment, err);
    ok = set && value_binds(r, a->name, err);
    if (stand && ok)
        stand->taken = true;
    else if (stand && !*stand->why)
        snprintf(stand->why, sizeof(stand->why), "%.40s n=%.20s: %.200s", r->mechanism,
                 *p->spec->n.items[p->n_at] ? p->spec->n.items[p->n_at] : "of the input",
                 err->text);
    return set;
}

static bool make_stands(Planner *p)
{
    for (int a = 0; a < p->spec->axis_count; a++) {
        p->stands[a] = calloc((size_t)p->spec->axes[a].values.count + 1, sizeof(ValueStand));
        if (!p->stands[a])
            return error_set(p->err, ERR_NOMEM, "not enough memory for the points of the sweep");
    }
    return true;
}

/* Where some mechanism takes the value, the points of the others are records that say why not;
 * one that none takes is a slip. */
static bool check_values(const Planner *p)
{
    for (int a = 0; a < p->spec->axis_count; a++)
        for (int i = 0; i < p->spec->axes[a].values.count; i++) {
            const ValueStand *stand = &p->stands[a][i];

            if (!stand->taken && *stand->why)
                return error_set(p->err, ERR_PARAM, "-p %s=%.80s: %s%s", p->spec->axes[a].name,
                                 p->spec->axes[a].values.items[i],
                                 p->spec->mechanisms.count > 1 ? "no mechanism takes it; " : "",
                                 stand->why);
        }
    return true;
}

/* Adds the values of the axes from `axis` on. */
static bool add_parameters(Planner *p, Request *r, int axis, const char *refused)
{
    const SweepSpec *spec = p->spec;
    const SweepAxis *a = &spec->axes[axis];
    bool             ok = true;

    if (axis == spec->axis_count)
        return add_places(p, r, refused);
    if (!has_parameter(r, a))
        return add_parameters(p, r, axis + 1, refused);
    p->used[axis] = true;
    if (is_own(p, r, a->name))
        return add_parameters(p, r, axis + 1, refused);
    for (int i = 0; ok && i < a->values.count; i++) {
        Error err = ERROR_INIT;

        if (!set_value(p, r, axis, i, &err) && !*refused)
            ok = add_parameters(p, r, axis + 1, err.text);
        else
            ok = add_parameters(p, r, axis + 1, refused);
    }
    return ok;
}

/* With its defaults, as everywhere; a mechanism that cannot run so is swept with its example. */
static bool parse_mechanism(Planner *p, const char *text, Request *r)
{
    const Mechanism *m = mechanism_find(text);

    if (!request_parse(p->session, r, text, p->err))
        return false;
    return !m || !m->example || !request_lacks_parameter(r) ||
           request_example(p->session, r, m, p->err);
}

/* Values in the brackets of a mechanism, which is one: no point of it would run. */
static bool own_values_bind(Planner *p, const char *text, const Request *r)
{
    Error err = ERROR_INIT;

    for (int i = 0; i < p->own; i++)
        if (!value_binds(r, r->given.items[i].name, &err))
            return error_set(p->err, ERR_PARAM, "-m %.200s: %s", text, err.text);
    return true;
}

static bool plan_mechanism(Planner *p, const char *text, uint64_t seed)
{
    Request r = REQUEST_INIT;
    bool    ok;

    r.seed = seed;
    r.causal = p->spec->causal;
    r.fit = p->spec->fit;
    ok = parse_mechanism(p, text, &r);
    p->asked = text;
    p->own = strchr(text, '(') ? r.given.count : 0;
    if (ok && r.above)
        ok = error_set(p->err, ERR_USAGE, "%s: a sweep takes single mechanisms", text);
    ok = ok && mechanism_check_names(mechanism_find(r.mechanism), &r.given, p->err) &&
         own_values_bind(p, text, &r) && add_parameters(p, &r, 0, "");
    request_free(&r);
    return ok;
}

/* Every -p must belong to some mechanism. */
static bool check_axes(const Planner *p)
{
    for (int a = 0; a < p->spec->axis_count; a++)
        if (!p->used[a])
            return error_set(p->err, ERR_PARAM,
                             "-p %s: none of these mechanisms has this parameter",
                             p->spec->axes[a].name);
    return true;
}

/* ---- each once, and this shard's ----------------------------------------------- */

static void point_free(SweepPoint *point)
{
    free(point->mechanism);
    free(point->params);
    words_free(&point->scripts);
}

static int by_point_key(const void *a, const void *b)
{
    const SweepPoint *x = a, *y = b;
    int               order = strcmp(x->key, y->key);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int by_index(const void *a, const void *b)
{
    const SweepPoint *x = a, *y = b;

    return (x->index > y->index) - (x->index < y->index);
}

/* `-m full,all` means full once. */
static void drop_doubles(SweepPlan *plan)
{
    int kept = 0;

    if (plan->count)
        qsort(plan->points, (size_t)plan->count, sizeof(*plan->points), by_point_key);
    for (int i = 0; i < plan->count; i++) {
        if (kept && !strcmp(plan->points[kept - 1].key, plan->points[i].key))
            point_free(&plan->points[i]);
        else
            plan->points[kept++] = plan->points[i];
    }
    plan->count = kept;
    if (kept)
        qsort(plan->points, (size_t)kept, sizeof(*plan->points), by_index);
}

static void keep_shard(const SweepSpec *spec, SweepPlan *plan)
{
    int kept = 0;

    for (int i = 0; i < plan->count; i++) {
        if (i % spec->shards == spec->shard - 1)
            plan->points[kept++] = plan->points[i];
        else
            point_free(&plan->points[i]);
    }
    plan->count = kept;
}

static bool link_series(SweepPlan *plan, Error *err)
{
    int *last = calloc((size_t)plan->series + 1, sizeof(*last)); /* index + 1 */

    if (!last)
        return error_set(err, ERR_NOMEM, "not enough memory for the points of the sweep");
    for (int i = 0; i < plan->count; i++) {
        plan->points[i].shorter = last[plan->points[i].series] - 1;
        last[plan->points[i].series] = i + 1;
    }
    free(last);
    return true;
}

/* ---- processes ------------------------------------------------------------------ */

static int sides(const SweepSpec *spec)
{
    return spec->against ? 2 : 1;
}

/* Place of a point of the first plan in the order of running; round: from 0. */
static int running_place(const SweepSpec *spec, int points, int at, int round, bool against)
{
    int second = spec->against && against == (round % 2 == 1);

    return (round * points + at) * sides(spec) + second;
}

static void name_process(const SweepSpec *spec, const SweepPoint *from, SweepPoint *point)
{
    int fingerprint = key_point_length(from->key);

    if (spec->against)
        snprintf(point->key, sizeof(point->key), "%.*s.%d%c%s%s", fingerprint, from->key,
                 point->process, point->against ? '-' : '+', spec->against_id,
                 from->key + fingerprint);
    else if (point->process > 1)
        snprintf(point->key, sizeof(point->key), "%.*s.%d%s", fingerprint, from->key,
                 point->process, from->key + fingerprint);
}

/* False: no memory. */
static bool copy_point(const SweepSpec *spec, const SweepPlan *from, int at, SweepPoint *point)
{
    const SweepPoint *old = &from->points[at];
    int               process = point->process;
    bool              against = point->against;

    *point = *old;
    point->process = process;
    point->against = against;
    point->mechanism = strdup(old->mechanism);
    point->params = old->params ? strdup(old->params) : NULL;
    point->scripts = (WordList){ 0 };
    for (int i = 0; i < old->scripts.count; i++)
        if (!words_add(&point->scripts, old->scripts.items[i], strlen(old->scripts.items[i]), NULL))
            return false;
    if (old->shorter >= 0)
        point->shorter = running_place(spec, from->count, old->shorter, process - 1, against);
    name_process(spec, old, point);
    return point->mechanism && (point->params || !old->params);
}

/* Every point as its processes, in the order of running. */
static bool plan_processes(const SweepSpec *spec, SweepPlan *plan, Error *err)
{
    int64_t     count = (int64_t)plan->count * spec->processes * sides(spec);
    SweepPlan   all = { .series = plan->series };
    bool        ok = count <= INT_MAX;

    all.points = ok ? calloc((size_t)count + 1, sizeof(*all.points)) : NULL;
    if (!all.points)
        return error_set(err, ERR_NOMEM, "not enough memory for %lld processes",
                         (long long)count);
    all.count = all.capacity = (int)count;
    for (int at = 0; at < (int)count; at++) {
        int round = at / sides(spec) / (plan->count ? plan->count : 1);
        int place = at / sides(spec) - round * plan->count;

        all.points[at].process = round + 1;
        all.points[at].against = spec->against && at % 2 == round % 2;
        ok = copy_point(spec, plan, place, &all.points[at]) && ok;
        all.points[at].index = at;
    }
    sweep_plan_free(plan);
    *plan = all;
    return ok || error_set(err, ERR_NOMEM, "not enough memory for the points of the sweep");
}

bool sweep_plan(Session *s, const SweepSpec *spec, SweepPlan *out, Error *err)
{
    Planner p = { .session = s, .spec = spec, .plan = out, .err = err };
    bool    ok = make_stands(&p);

    *out = (SweepPlan){ 0 };
    for (p.n_at = 0; ok && p.n_at < spec->n.count; p.n_at++) {
        p.series = 0;
        for (int k = 0; ok && k < spec->seeds; k++)
            for (int m = 0; ok && m < spec->mechanisms.count; m++)
                ok = plan_mechanism(&p, spec->mechanisms.items[m], spec->seed + (uint64_t)k);
    }
    out->series = p.series;
    text_free(&p.canonical);
    text_free(&p.identity);
    ok = ok && check_axes(&p) && check_values(&p);
    for (int a = 0; a < spec->axis_count; a++)
        free(p.stands[a]);
    if (ok) {
        drop_doubles(out);
        keep_shard(spec, out);
        ok = link_series(out, err) && plan_processes(spec, out, err);
    }
    if (!ok)
        sweep_plan_free(out);
    return ok;
}

void sweep_plan_free(SweepPlan *plan)
{
    for (int i = 0; i < plan->count; i++)
        point_free(&plan->points[i]);
    free(plan->points);
    *plan = (SweepPlan){ 0 };
}
