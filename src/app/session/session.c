/* session.c -- the session, its input, threads and ceilings; see session.h. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/command/command.h"
#include "app/program.h"
#include "app/session/internal.h"
#include "app/session/model_input.h"
#include "app/session/session.h"
#include "app/shipped.h"
#include "attn/cuda/host/library.h"
#include "core/threads.h"
#include "draw/figure/figure.h"
#include "input/input.h"
#include "profile/machine.h"

Loaded *loaded_retain(Loaded *loaded)
{
    if (loaded)
        atomic_fetch_add(&loaded->references, 1);
    return loaded;
}

void loaded_release(Loaded *loaded)
{
    if (!loaded || atomic_fetch_sub(&loaded->references, 1) > 1)
        return;
    input_free(loaded->input);
    free(loaded->warning);
    free(loaded);
}

Session *session_new(Error *err)
{
    Session    *s = calloc(1, sizeof(*s));
    const char *warning = environment_blas_warning();

    if (s)
        s->tensors = arena_new();
    if (!s || !s->tensors) {
        free(s);
        error_set(err, ERR_NOMEM, "not enough memory to start");
        return NULL;
    }
    s->warning = warning ? strdup(warning) : NULL;
    if (worker_start(s, err))
        return s;
    session_free(s);
    return NULL;
}

void session_free(Session *s)
{
    if (!s)
        return;
    worker_stop(s);
    loaded_release(s->loaded);
    threads_free(s->threads);
    device_release(s->device);
    arena_free(s->tensors);
    text_free(&s->path);
    free(s->warning);
    free(s->spec);
    free(s);
}

/* NaN and infinity are run as they are; a warning names their place. */
static char *value_warning(const Input *input)
{
    const struct {
        const char   *name;
        const Tensor *tensor;
    } all[] = { { "q", &input->q },
                { "k", &input->k },
                { "v", &input->v },
                { "x", &input->x },
                { "attn", &input->attn } };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        int64_t at = tensor_not_finite(all[i].tensor);
        char   *text;

        if (at >= 0 && asprintf(&text,
                                "the input's %s holds NaN or infinity (first at element "
                                "%lld); what it touches is NaN too",
                                all[i].name, (long long)at) > 0)
            return text;
    }
    return NULL;
}

/* A model that nobody gave a text reads the usual one; a warning says so. */
static char *usual_text_warning(const char *spec)
{
    ModelSpec parts;
    Error     ignored = ERROR_INIT;
    char     *text = NULL;

    if (!model_spec_is(spec) || !model_spec_parse(spec, &parts, &ignored))
        return NULL;
    if (!parts.text.text && !parts.text.ids)
        text = strdup("the model reads " MODEL_USUAL_TEXT "; --text FILE gives another text");
    model_spec_free(&parts);
    return text;
}

static bool take_input(Session *s, Input *input, const char *spec, Error *err)
{
    Loaded *loaded = calloc(1, sizeof(*loaded));
    char   *name = strdup(spec);

    if (!loaded || !name) {
        free(loaded);
        free(name);
        input_free(input);
        return error_set(err, ERR_NOMEM, "%s: not enough memory", spec);
    }
    loaded->input = input;
    loaded->warning = value_warning(input);
    if (!loaded->warning && input->warning)
        loaded->warning = strdup(input->warning);
    if (!loaded->warning)
        loaded->warning = usual_text_warning(spec);
    atomic_init(&loaded->references, 1);
    loaded_release(s->loaded);
    free(s->spec);
    s->loaded = loaded;
    s->spec = name;
    return true;
}

bool session_load(Session *s, const char *spec, const InputChoice *choice, Error *err)
{
    InputChoice chosen = choice ? *choice : INPUT_CHOICE_DEFAULT;
    Input      *input = session_read_input(s, spec, &chosen, err);

    return input && session_take_input(s, input, spec, &chosen, err);
}

bool session_take_input(Session *s, Input *input, const char *spec, const InputChoice *choice,
                        Error *err)
{
    if (!take_input(s, input, spec, err))
        return false;
    s->choice = *choice;
    s->choice.cancel = NULL; /* ends with the load */
    return true;
}

bool session_input_as(Session *s, const char *name, const char *sha256, Error *err)
{
    Input *input = s->loaded->input;
    char  *copy;

    if (strcmp(input->sha256, sha256) != 0)
        return error_set(err, ERR_DATA,
                         "%s: is not what the figure was made from, %s: its SHA-256 begins with "
                         "%.12s, that of the figure's input with %.12s",
                         input->name, name, input->sha256, sha256);
    copy = arena_strdup(input->arena, name);
    if (!copy)
        return error_set(err, ERR_NOMEM, "%s: not enough memory", name);
    input->name = copy;
    return true;
}

bool session_set_input(Session *s, Input *input, const char *name, Error *err)
{
    s->choice = INPUT_CHOICE_DEFAULT;
    return take_input(s, input, name, err);
}

const Input *session_input(const Session *s)
{
    return s->loaded ? s->loaded->input : NULL;
}

const char *session_input_spec(const Session *s)
{
    return s->spec;
}

const InputChoice *session_choice(const Session *s)
{
    return &s->choice;
}

const char *session_warning(const Session *s)
{
    return s->warning;
}

bool terminal_obeys(void)
{
    const char *term = getenv("TERM");

    return term && *term && strcmp(term, "dumb") != 0;
}

void session_on_progress(Session *s, SessionProgress progress, void *context)
{
    s->progress = progress;
    s->progress_context = context;
}

void session_on_line(Session *s, SessionProgress line, void *context)
{
    s->line = line;
    s->line_context = context;
}

void session_on_notice(Session *s, SessionProgress notice, void *context)
{
    s->notice = notice;
    s->notice_context = context;
}

static void send(SessionProgress to, void *context, const char *fmt, va_list args)
{
    char text[320];

    if (!to)
        return;
    vsnprintf(text, sizeof(text), fmt, args);
    to(context, text);
}

void session_line(Session *s, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    send(s->line, s->line_context, fmt, args);
    va_end(args);
}

void session_notice(Session *s, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    send(s->notice, s->notice_context, fmt, args);
    va_end(args);
}

void session_on_event(Session *s, SessionEvent listener, void *context)
{
    s->listener = listener;
    s->listener_context = context;
}

bool session_listens(const Session *s)
{
    return s->listener != NULL;
}

void session_tell(Session *s, const char *event, const Text *content)
{
    if (s->listener && text_ok(content))
        s->listener(s->listener_context, event, text_str(content));
}

void session_report_runs(Session *s)
{
    s->reports_runs = true;
}

void session_progress(Session *s, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    send(s->progress, s->progress_context, fmt, args);
    va_end(args);
}

void session_on_sweep(Session *s, const SessionSweep *sweep)
{
    s->sweep = sweep;
}

const SessionSweep *session_sweep(const Session *s)
{
    return s->sweep;
}

void session_on_stop(Session *s, const atomic_bool *stop, atomic_bool *heeded)
{
    s->stop = stop;
    s->heeded = heeded;
}

void session_heeds_stop(Session *s, bool heeds)
{
    if (s->heeded)
        atomic_store(s->heeded, heeds);
}

bool session_stopped(const Session *s)
{
    return s->stop && atomic_load(s->stop);
}

Threads *session_threads(Session *s, int count)
{
    if (count <= 0)
        count = threads_default();
    if (s->threads && s->thread_count == count)
        return s->threads;
    threads_free(s->threads);
    s->threads = threads_new(count);
    s->thread_count = count;
    return s->threads;
}

const Ceilings *session_known_ceilings(const Session *s, const Ops *ops, int count)
{
    count = count > 0 ? count : threads_default();
    ops = ops ? ops : ops_cpu();
    for (int i = 0; i < CEILINGS_KEPT; i++)
        if (s->ceilings[i].threads == count && s->ceilings[i].ops == ops)
            return &s->ceilings[i].measured;
    return NULL;
}

const Ceilings *session_keep_ceilings(Session *s, const Ops *ops, int count, const Ceilings *c)
{
    int at = s->ceilings_next++ % CEILINGS_KEPT;

    s->ceilings[at].threads = count > 0 ? count : threads_default();
    s->ceilings[at].ops = ops ? ops : ops_cpu();
    s->ceilings[at].measured = *c;
    return &s->ceilings[at].measured;
}

bool ceilings_measure(const Ops *ops, Threads *threads, Ceilings *out, Error *err)
{
    bool ok;

    ops = ops ? ops : ops_cpu();
    if (!ops->ceilings)
        return error_set(err, ERR_UNSUPPORTED, "%s: its ceilings cannot be measured", ops->name);
    device_hold(device_of(ops), NULL);
    ok = ops->ceilings(ops, threads, out, err);
    device_leave(device_of(ops));
    snprintf(out->device, sizeof(out->device), "%s", ops->name);
    return ok;
}

const Ceilings *session_ceilings(Session *s, const Ops *ops, int count, Error *err)
{
    const Ceilings *known = session_known_ceilings(s, ops, count);
    Ceilings        measured;

    if (known)
        return known;
    session_progress(s, "measuring this machine's ceilings");
    if (!ceilings_measure(ops, session_threads(s, count), &measured, err))
        return NULL;
    return session_keep_ceilings(s, ops, count, &measured);
}

/* ---- shipped files ---------------------------------------------------------- */

const char *session_find_shipped(Session *s, const char *folder, const char *name)
{
    return shipped_find(folder, name, &s->path) ? text_str(&s->path) : NULL;
}

const char *session_default_sample(Session *s, Error *err)
{
    if (session_find_shipped(s, "samples", "induction.safetensors"))
        return "sample:induction.safetensors";
    error_set(err, ERR_FILE,
              "the shipped sample samples/induction.safetensors is neither beside the program nor "
              "can it be unpacked; set HOME or TMPDIR to a folder that can be written, or give "
              "an input, for example synthetic:induction(n=64)");
    return NULL;
}

/* ---- inputs -------------------------------------------------------------- */

#define SAMPLE "sample:"

static const struct {
    const char *name, *help;
} samples[] = {
    { "induction.safetensors", "q, k, v of a trained model of 2 layers with 4 heads, 96 tokens" },
    { "induction.npz", "its second layer" },
    { "english.tokens.txt", "a short tale of 309 words and signs, one in each line" },
    { "english.txt", "the same as one reads it" },
    { "repeated.txt", "16 nonsense words, three times" },
    { "image.png", "an evening scene of 32 x 32 pixels" },
    { "tales.gguf", "a language model of 4 layers with 4 heads, trained on novels; --text" },
};

const char *session_sample(size_t index)
{
    return index < sizeof(samples) / sizeof(*samples) ? samples[index].name : NULL;
}

static bool is_sample(const char *spec)
{
    return !strncmp(spec, SAMPLE, strlen(SAMPLE));
}

static bool no_sample(const char *name, Error *err)
{
    Text names = { 0 };
    bool known = false;

    for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
        text_addf(&names, "%s %s", i ? "," : "", samples[i].name);
        known |= !strcmp(name, samples[i].name);
    }
    if (known)
        error_set(err, ERR_FILE,
                  "input: the sample %s is neither beside the program (in samples or "
                  "../share/attnscope/samples) nor can it be unpacked: set HOME or TMPDIR to a "
                  "folder that can be written", name);
    else
        error_set(err, ERR_FILE, "input: there is no shipped sample '%.80s'; there are%s", name,
                  text_str(&names));
    text_free(&names);
    return false;
}

bool session_input_path(Session *s, const char *spec, Text *out, Error *err)
{
    const char *name = spec + strlen(SAMPLE), *arrays, *path = spec;
    char        file[NAME_MAX + 1];

    if (is_sample(spec)) {
        arrays = name + strcspn(name, "["); /* "induction.npz[q=k]" */
        snprintf(file, sizeof(file), "%.*s", (int)(arrays - name), name);
        path = *file && !strchr(file, '/') ? session_find_shipped(s, "samples", file) : NULL;
        if (!path)
            return no_sample(file, err);
        text_add(out, path);
        path = arrays;
    }
    text_add(out, path);
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for a path");
}

/* A message about a sample names it, not where it was found. */
static void name_sample(const char *spec, const char *path, Error *err)
{
    char   rest[sizeof(err->text)];
    size_t length = strlen(path);

    if (!err || !is_sample(spec) || strncmp(err->text, path, length) != 0)
        return;
    snprintf(rest, sizeof(rest), "%s", err->text + length);
    snprintf(err->text, sizeof(err->text), "%.100s%.400s", spec, rest);
}

/* What the user gives, unless any input may have more. */
static int64_t input_limit(const InputChoice *choice)
{
    int64_t share = machine_share();

    if (share > INPUT_MAX_BYTES_DEFAULT)
        share = INPUT_MAX_BYTES_DEFAULT;
    return choice->max_bytes > share ? choice->max_bytes : share;
}

/* A figure of ours is hardly meant as a picture, whose tokens are its millions of pixels: false
 * with a message, unless the user says how many of them. */
static bool is_no_figure(const char *path, const InputChoice *choice, Error *err)
{
    Error       ignored = ERROR_INIT;
    const char *kind = choice->n > 0 ? NULL : figure_kind(path);
    char       *line = kind ? figure_metadata(path, "attnscope:command", &ignored) : NULL;
    bool        ok = !line;

    free(line);
    return ok || error_set(err, ERR_DATA,
                           "%s: is a figure that attnscope made; 'attnscope rerender %s' draws it "
                           "again%s", path, path, strcmp(kind, "png") ? "" :
                           ", and -n N takes the first N of its pixels as tokens");
}

Input *session_read_input(Session *s, const char *spec, const InputChoice *choice, Error *err)
{
    InputChoice chosen = *choice;
    Text        path = { 0 };
    Input      *input = NULL;

    chosen.max_bytes = input_limit(choice);
    if (model_spec_is(spec))
        return model_input_read(s, spec, &chosen, err);
    if (session_input_path(s, spec, &path, err) && is_no_figure(text_str(&path), &chosen, err)) {
        input = input_load(text_str(&path), &chosen, err);
        if (!input)
            name_sample(spec, text_str(&path), err);
    }
    text_free(&path);
    if (!input || !is_sample(spec))
        return input;
    input->name = arena_strdup(input->arena, spec);
    if (input->name)
        return input;
    input_free(input);
    error_set(err, ERR_NOMEM, "%s: not enough memory", spec);
    return NULL;
}

void inputs_describe(Text *out)
{
    Table t = { .cols = 3 }, files = { .cols = 2 };

    text_add(out, "made: --input 'synthetic:NAME(argument=value,..)'\n");
    for (const InputGenerator *g = input_generators(); g->name; g++) {
        const char *common = strstr(g->arguments, "match="); /* the last that all have */
        const char *own = common ? strchr(common, ',') : NULL;

        table_cell(&t, "  %s", g->name);
        table_cell(&t, "%s", own ? own + strlen(", ") : "");
        table_cell(&t, "%s", g->help);
    }
    table_write(&t, TABLE_TEXT, out);
    table_free(&t);
    text_add(out, "all of them take n=64, d=64, heads=1, seed=0 and match=0, the score of a full "
                  "match;\n0 of match, period, block and the like: chosen from n\n\n"
                  "that come with the program: --input sample:NAME\n");
    for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
        table_cell(&files, "  %s", samples[i].name);
        table_cell(&files, "%s", samples[i].help);
    }
    table_write(&files, TABLE_TEXT, out);
    table_free(&files);
    text_add(out, "texts and pictures hold no model: equal words and like pixels attend to each "
                  "other\n\nof a model: --input model:PATH --text FILE, PATH a .gguf file or a "
                  "folder with config.json:\nq, k, v and x of layer --layer on the text\n\n"
                  "from files: npy, npz, safetensors, csv, json, txt, png; attnscope info "
                  "FILE says what one holds;\narrays that are called otherwise: "
                  "--input 'layer.npz[q=query,k=key,v=value]', also x, attn, segments, tokens\n");
}
