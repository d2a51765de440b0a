/* sweep.c -- attn.fit, and the options of attn.sweep, which the prelude turns into the
 * words of the command. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/scripting.h"
#include "profile/statistics.h"
#include "profile/measure.h"
#include "script/host/turn.h"
#include "script/host/work.h"

/* Numbers of the list at `arg`, FIT_MOST at most.  [-0, +0, v] */
static int take_numbers(lua_State *L, int arg, double *out)
{
    lua_Integer count;

    luaL_checktype(L, arg, LUA_TTABLE);
    count = luaL_len(L, arg);
    luaL_argcheck(L, count <= FIT_MOST, arg, "a fit takes at most 256 points");
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, arg, i + 1);
        if (lua_type(L, -1) != LUA_TNUMBER)
            return luaL_error(L, "fit: point %d is a %s, not a number", (int)i + 1,
                              luaL_typename(L, -1));
        out[i] = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
    return (int)count;
}

static void set_models(lua_State *L, const Fit *fit)
{
    lua_createtable(L, 0, FIT_MODELS);
    for (FitModel m = FIT_CONSTANT; m < FIT_MODELS; m++)
        field_known(L, fit_model_name(m), fit->rms[m]);
    lua_setfield(L, -2, "models");
    field_string(L, "best", fit_model_name(fit->best));
}

/* Pushes the fit; factor and r2 are those of `model`, or of the free exponent
 * (FIT_MODELS).  [-0, +1, m] */
static void push_fit(lua_State *L, const Fit *fit, FitModel model)
{
    bool free = model == FIT_MODELS;

    lua_createtable(L, 0, 12);
    field_known(L, "alpha", fit->alpha);
    field_known(L, "lo", fit->lo);
    field_known(L, "hi", fit->hi);
    field_known(L, "stderr", fit->deviation.valid ? fit->deviation : number_of((double)NAN));
    field_known(L, "c", free ? fit->c : fit->factor[model]);
    field_known(L, "r2", free ? fit->r2 : fit->explained[model]);
    field_string(L, "model", free ? "power" : fit_model_name(model));
    field_integer(L, "count", fit->count);
    set_models(L, fit);
    lua_createtable(L, fit->locals, 0);
    for (int i = 0; i < fit->locals; i++) {
        lua_pushnumber(L, fit->local[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "slopes");
}

/* "linear", "nlogn", "n^1.5": FIT_MODELS is the free exponent.  [-0, +0, v] */
static FitModel check_model(lua_State *L, const char *name)
{
    static const struct {
        const char *name;
        FitModel    model;
    } words[] = { { "power", FIT_MODELS },      { "constant", FIT_CONSTANT }, { "log", FIT_LOG },
                  { "linear", FIT_LINEAR },     { "nlogn", FIT_NLOGN },
                  { "quadratic", FIT_SQUARE } };
    Meant nearest = { name, "power", 3 };

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (!strcmp(words[i].name, name))
            return words[i].model;
        meant_offer(&nearest, words[i].name);
    }
    for (FitModel m = FIT_CONSTANT; m < FIT_MODELS; m++)
        if (!strcmp(fit_model_name(m), name))
            return m;
    luaL_error(L, "model: expected power, constant, log, linear, nlogn, n^1.5 or quadratic, got "
               "'%s'; did you mean '%s'?", name, nearest.name);
    return FIT_MODELS;
}

typedef struct Fitting {
    double  x[FIT_MOST], y[FIT_MOST];
    int     count;
    FitPlan plan;
    Fit     fit;
    FitModel model;
} Fitting;

static bool fit_points(void *context, const atomic_bool *cancel, Error *err)
{
    Fitting *f = context;

    (void)cancel;
    return fit_power(f->x, f->y, f->count, &f->plan, &f->fit, err);
}

static int push_fitted(lua_State *L, int status, lua_KContext at)
{
    const Fit *fit = &((Fitting *)work_context(L, at))->fit;

    (void)status;
    if (fit->count < 2)
        return luaL_error(L, "fit: expected at least 2 points with x > 0 and y > 0, got %d",
                          fit->count);
    if (!fit->alpha.valid)
        return luaL_error(L, "fit: all x are the same");
    push_fit(L, fit, ((Fitting *)work_context(L, at))->model);
    return 1;
}

/* [-0, +1, v] */
int attn_fit(lua_State *L)
{
    Fitting *f;
    int      xs, ys;

    lua_settop(L, 3);
    options_check(L, 3, &class_fit_options);
    f = lua_newuserdatauv(L, sizeof(*f), 0);
    xs = take_numbers(L, 1, f->x);
    ys = take_numbers(L, 2, f->y);
    if (xs != ys)
        return luaL_error(L, "fit: expected as many y as x, got %d x and %d y", xs, ys);
    f->count = xs;
    f->plan = FIT_PLAN;
    f->plan.drop = (int)option_integer(L, 3, "drop", 0, 0, FIT_MOST);
    f->plan.over_log = option_bool(L, 3, "over_log", false);
    f->model = check_model(L, option_string(L, 3, "model", "power"));
    return work_await(L, script_of(L)->session->thing, "fitting a curve", fit_points, push_fitted);
}

static const Member fit_members[] = {
    FIELD("drop", "integer", "leave out so many of the smallest x"),
    FIELD("over_log", "boolean", "fit y / log x: a claimed log does not count"),
    FIELD("model", "string",
      "whose c and r2 are given: power (default: c x^alpha), constant, log, linear, nlogn, n^1.5 "
      "or quadratic; alpha is always the free exponent"),
    MEMBER_END,
};
const Class class_fit_options = { .name = "FitOptions",
                                  .help = "How to fit.",
                                  .members = fit_members };

#define VALUES "integer|string|integer[]"

static const Member sweep_members[] = {
    FIELD("n", VALUES, "lengths: 512, {256, 512} or \"256:4096:x2\""),
    FIELD("params", "table<string, any>", "values of parameters: {window = {3, 5}}"),
    FIELD("position", "string|string[]", "positional modifiers"),
    FIELD("seed", "integer", "the first seed"),
    FIELD("seeds", "integer|integer[]", "so many seeds; or these, one after the other"),
    FIELD("threads", VALUES, "numbers of threads"),
    FIELD("device", "string|string[]", "devices: cpu, cuda or auto"),
    FIELD("precision", "string|string[]", "of matrix products on a GPU: f32, tf32, bf16, f16"),
    FIELD("causal", "boolean", "default: as the input says"),
    FIELD("input", "string", "a file, synthetic:NAME(args) or sample:NAME"),
    FIELD("layer", "integer", "layer of a file"),
    FIELD("d", "integer", "head size of a generated input"),
    FIELD("heads", "integer", "heads of a generated input"),
    FIELD("repeat", "integer", "timed runs at least, and as many as 0.2 s hold; 1: as none"),
    FIELD("within", "number|string", "repeat until the median is known to +- this share"),
    FIELD("quality", "boolean", "compare with full attention"),
    FIELD("quality_rows", "integer", "compare so many rows of each head, drawn, instead of all"),
    FIELD("decode", "boolean", "cost and time of one token more; implies causal"),
    FIELD("fit", "boolean", "fit the mechanisms' own tensors on the input"),
    FIELD("memory", "integer|string", "limit of a run: bytes or \"8G\""),
    FIELD("budget", "number|string", "seconds, or \"10m\"; what is left is a record"),
    FIELD("shard", "string", "\"2/8\": only the second of eight parts"),
    FIELD("output", "string", "file of the records, which makes the sweep resumable"),
    FIELD("resume", "boolean", "run only the points that the file lacks or that did not end well"),
    FIELD("row", "fun(record: attnscope.Record): attnscope.Record?",
          "sees each record before it is written, and may give another with the same key"),
    FIELD("progress",
          "fun(done: integer, total: integer, record: attnscope.Record, left?: number): boolean?",
          "called after each point, with the seconds that are left, where they are known; false "
          "ends the sweep"),
    MEMBER_END,
};

static const Member sweep_methods[] = {
    { "filter", NULL, "f: fun(record: attnscope.Record): boolean", "attnscope.Sweep",
      "Those for which f gives true." },
    { "pivot", NULL, "down: string, across: string, value?: string", "table[], string[]",
      "attn.pivot of it: s:pivot(\"n\", \"mechanism\", \"time_ms.median\"); s:pivot(\"n\", "
      "\"time_ms\") has a column for each mechanism and setting." },
    { "csv", NULL, "target: string|file*, columns?: string[]", "true?, string?, string?",
      "attn.csv of it, with params and figures as JSON where no columns are given." },
    { "jsonl", NULL, "path: string", "true?, string?, string?",
      "Writes a record a line, as attn.read_sweep and the command fit read them." },
    MEMBER_END,
};
static const luaL_Reg sweep_meta[] = { { NULL, NULL } };
const Class class_sweep = { .name = "Sweep",
                            .help = "Records of a sweep: a list, with a few words on top.",
                            .members = sweep_methods,
                            .meta = sweep_meta };

const Class class_sweep_options = {
    .name = "SweepOptions",
    .help = "Axes and limits of a sweep; the list part names the mechanisms.",
    .members = sweep_members,
    .open = true,
};

static const Member roofline_members[] = {
    FIELD("n", "integer", "length"),
    FIELD("d", "integer", "head size of a generated input"),
    FIELD("heads", "integer", "heads of a generated input"),
    FIELD("input", "string", "a file, synthetic:NAME(args) or sample:NAME"),
    FIELD("layer", "integer", "layer of a file"),
    FIELD("causal", "boolean", "default: as the input says"),
    FIELD("position", "string", "positional modifier"),
    FIELD("seed", "integer", "seed of every random draw"),
    FIELD("params", "table<string, any>", "parameters"),
    FIELD("threads", "integer", "default: all CPUs"),
    FIELD("repeat", "integer", "timed runs at least, and as many as 0.2 s hold; 1: as none"),
    FIELD("within", "number|string", "repeat until the median is known to +- this share"),
    FIELD("memory", "integer|string", "limit of a run: bytes or \"8G\""),
    MEMBER_END,
};
const Class class_roofline_options = {
    .name = "RooflineOptions",
    .help = "What to measure; the list part names the mechanisms (default: full).",
    .members = roofline_members,
    .open = true,
};

/* A sweep that calls the script: attn.sweep's row and progress.
 *
 * The command runs on the worker.  At each record the worker posts a question and waits; the
 * script's thread takes it in `turn`, calls the function and posts the answer.  So Lua runs on its
 * own thread only, and in the explorer the screen stays live.
 */

#define SWEEPING "attnscope.sweeping"
#define LOOK_NS  50000000 /* between checks of the cancel flag */

typedef enum Question { ASKS_NOTHING, ASKS_ROW, ASKS_PROGRESS } Question;

typedef struct Sweeping {
    Job            *job;     /* NULL: closed */
    Session        *session; /* owned: its worker waits for answers, the script's is free */
    const char    **words;   /* kept by the user value, as is all that they point to */
    int             count;
    InputChoice     choice;
    char           *spec;    /* of the explorer's input; owned; NULL: none */
    const Call     *options; /* before FILE; NULL: in the explorer */
    Text            out;
    double          began;
    const atomic_bool *cancel;
    pthread_mutex_t lock;    /* of what follows */
    pthread_cond_t  changed;
    Question        question;
    Text            line;
    int             done, total;
    double          left;
} Sweeping;

/* ---- on the worker ------------------------------------------------------------- */

/* Waits for the script's answer; false: cancelled. */
static bool ask(Sweeping *s, Question question, const char *line, size_t length, Error *err)
{
    bool ok;

    pthread_mutex_lock(&s->lock);
    text_clear(&s->line);
    text_addf(&s->line, "%.*s", (int)length, line);
    s->question = question;
    while (s->question != ASKS_NOTHING && !atomic_load(s->cancel)) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&s->changed, &s->lock, &until);
    }
    ok = s->question == ASKS_NOTHING || error_set(err, ERR_CANCELLED, "stopped");
    s->question = ASKS_NOTHING;
    pthread_mutex_unlock(&s->lock);
    return ok;
}

static bool ask_about_record(void *context, Text *line, Error *err)
{
    Sweeping *s = context;

    if (!ask(s, ASKS_ROW, text_str(line), line->length, err))
        return false;
    text_clear(line);
    text_add(line, text_str(&s->line));
    return (text_ok(&s->line) && text_ok(line)) ||
           error_set(err, ERR_NOMEM, "not enough memory for a record");
}

static void ask_progress(void *context, int done, int total, const char *line, double left)
{
    Sweeping *s = context;
    Error     ignored = ERROR_INIT;

    pthread_mutex_lock(&s->lock);
    s->done = done;
    s->total = total;
    s->left = left;
    pthread_mutex_unlock(&s->lock);
    ask(s, ASKS_PROGRESS, line, strlen(line), &ignored); /* the sweep looks at the flag itself */
}

static bool load_input(Sweeping *s, Session *session, Error *err)
{
    const char *const *given = s->options ? s->options->values : NULL;

    if (s->spec)
        return session_load(session, s->spec, &s->choice, err);
    return !given || !(given[OPT_INPUT] || given[OPT_N] || given[OPT_D] || given[OPT_HEADS] ||
                       given[OPT_LAYER]) ||
           call_load_input(session, s->options, err);
}

static bool run_sweep(void *context, const atomic_bool *cancel, Error *err)
{
    Sweeping    *s = context;
    SessionSweep hooks = { .context = s, .record = ask_about_record, .progress = ask_progress };
    Session     *session = session_new(err);
    bool         ok = session != NULL;

    s->cancel = cancel;
    if (ok) {
        session_on_stop(session, cancel, NULL);
        session_on_sweep(session, &hooks);
    }
    ok = ok && load_input(s, session, err) &&
         command_run(session, s->words, s->count, READER_FILE, 0, &s->out, err);
    session_free(session);
    return ok;
}

/* ---- the object ------------------------------------------------------------------ */

static Sweeping *check_sweeping(lua_State *L)
{
    Sweeping *s = luaL_checkudata(L, 1, SWEEPING);

    if (!s->job)
        luaL_argerror(L, 1, "the sweep is closed");
    return s;
}

static int sweeping_close(lua_State *L)
{
    Sweeping *s = luaL_checkudata(L, 1, SWEEPING);

    if (s->job)
        job_cancel(s->job);
    return 0;
}

static int sweeping_free(lua_State *L)
{
    Sweeping *s = luaL_checkudata(L, 1, SWEEPING);

    if (!s->session)
        return 0;
    job_free(s->job); /* waits: the worker answers a cancelled question itself */
    s->job = NULL;
    session_free(s->session);
    s->session = NULL;
    text_free(&s->out);
    text_free(&s->line);
    free(s->spec);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    return 0;
}

/* Of the words 1..count, which it keeps.  [-0, +1, v] */
static Sweeping *push_sweeping(lua_State *L, int count)
{
    const char **words = push_words(L, count);
    Sweeping    *s = box_push(L, sizeof(*s), 1, SWEEPING, sweeping_free, sweeping_close);
    Error        err = ERROR_INIT;

    *s = (Sweeping){ .words = words, .count = count };
    s->session = session_new(&err);
    check_ok(L, s->session != NULL, &err);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
    return s;
}

static int sweep_begin(lua_State *L)
{
    Script     *script = script_of(L);
    int         count = lua_gettop(L);
    const char *spec = NULL;
    Sweeping   *s;
    Error       err = ERROR_INIT;

    check_word(L, 1);
    if (script->run)
        return luaL_error(L, "a mechanism cannot start commands while it runs");
    if (script->before_command)
        return turn_end_script(L);
    s = push_sweeping(L, count);
    if (script->control)
        spec = script->control->input(script->control->ui, &s->choice);
    s->spec = spec ? strdup(spec) : NULL;
    s->options = script->control ? NULL : &script->options;
    s->began = clock_wall();
    s->job = session_submit_work(s->session, run_sweep, s, &err);
    return s->job ? 1 : failure(L, &err);
}

/* ---- questions and answers --------------------------------------------------------- */

/* [-0, +1 to 5, m] */
static int push_question(lua_State *L, Sweeping *s)
{
    lua_pushstring(L, s->question == ASKS_ROW ? "row" : "progress");
    lua_pushlstring(L, text_str(&s->line), s->line.length);
    if (s->question == ASKS_ROW)
        return 2;
    lua_pushinteger(L, s->done);
    lua_pushinteger(L, s->total);
    if (s->left >= 0)
        lua_pushnumber(L, s->left);
    else
        lua_pushnil(L);
    return 5;
}

static int sweep_turn(lua_State *L)
{
    Sweeping *s = check_sweeping(L);
    double    seconds = luaL_checknumber(L, 2);
    Question  question;
    int       done, total;

    pthread_mutex_lock(&s->lock);
    question = s->question;
    done = s->done;
    total = s->total;
    pthread_mutex_unlock(&s->lock);
    if (question != ASKS_NOTHING) /* the worker waits and changes nothing */
        return push_question(L, s);
    if (total)
        turn_report(L, s->began, "a sweep, %d of %d records", done, total);
    else
        turn_report(L, s->began, "a sweep");
    if (seconds > 0 && job_goes_on(s->job))
        job_await(L, s->session, s->job, seconds);
    lua_pushstring(L, job_goes_on(s->job) ? "nothing" : "end");
    return 1;
}

static int sweep_answer(lua_State *L)
{
    Sweeping   *s = check_sweeping(L);
    const char *line = luaL_optstring(L, 2, NULL);

    pthread_mutex_lock(&s->lock);
    if (line && s->question == ASKS_ROW) {
        text_clear(&s->line);
        text_add(&s->line, line);
    }
    s->question = ASKS_NOTHING;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static int sweep_stop(lua_State *L)
{
    job_cancel(check_sweeping(L)->job);
    return 0;
}

static int sweep_finish(lua_State *L)
{
    Sweeping *s = check_sweeping(L);
    Error     err;

    while (job_goes_on(s->job))
        job_await(L, s->session, s->job, 3600);
    if (job_state(s->job) == JOB_DONE) {
        text_box_push(L, &s->out);
        return 1;
    }
    err = *job_error(s->job);
    if (err.code == ERR_NONE)
        error_set(&err, ERR_CANCELLED, "interrupted");
    return failure(L, &err);
}

/* Pushes the option whose name is nearest.  [-0, +1, v] */
static int sweep_nearest(lua_State *L)
{
    lua_pushstring(L, class_nearest(&class_sweep_options, luaL_checkstring(L, 1)));
    return 1;
}

void sweep_push_functions(lua_State *L)
{
    static const luaL_Reg functions[] = {
        { "begin", sweep_begin }, { "turn", sweep_turn }, { "answer", sweep_answer },
        { "stop", sweep_stop }, { "finish", sweep_finish }, { "nearest", sweep_nearest },
        { NULL, NULL },
    };

    luaL_newlib(L, functions);
}
