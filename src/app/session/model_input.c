/* model_input.c -- a model's layer as an input; see model_input.h. */
#include "app/session/model_input.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/program.h"
#include "app/session/internal.h"
#include "core/text.h"
#include "input/labels.h"
#include "input/store.h"
#include "model/forward.h"

/* ---- the spec --------------------------------------------------------------- */

/* Where the brackets begin, or the end of the text. */
static size_t path_length(const char *spec)
{
    size_t      length = strlen(spec);
    const char *open = length && spec[length - 1] == ']' ? strrchr(spec, '[') : NULL;

    return open ? (size_t)(open - spec) : length;
}

static bool is_sample_model(const char *path)
{
    size_t length = strlen(path);

    return !strncmp(path, "sample:", strlen("sample:")) && length > strlen(".gguf") &&
           !strcmp(path + length - strlen(".gguf"), ".gguf");
}

bool model_spec_is(const char *spec)
{
    char  *path;
    bool   is;

    if (!strncmp(spec, MODEL_PREFIX, strlen(MODEL_PREFIX)))
        return true;
    path = strndup(spec, path_length(spec));
    is = path && (is_sample_model(path) || model_is_model(path));
    free(path);
    return is;
}

static bool take_most(const char *value, int64_t *most, Error *err)
{
    return (text_whole(value, most) && *most > 0) ||
           error_set(err, ERR_USAGE, "max-tokens: expected a whole number from 1, got '%.40s'",
                     value);
}

static bool take_key(ModelText *text, char *word, Error *err)
{
    char *equals = strchr(word, '=');

    if (!equals || !equals[1])
        return error_set(err, ERR_USAGE, "'%.80s': expected text=FILE, ids=FILE, max-tokens=N or "
                         "special=no", word);
    *equals++ = '\0';
    if (!strcmp(word, "max-tokens"))
        return take_most(equals, &text->most, err);
    if (!strcmp(word, "text"))
        text->text = equals;
    else if (!strcmp(word, "ids"))
        text->ids = equals;
    else if (!strcmp(word, "special") && (!strcmp(equals, "no") || !strcmp(equals, "yes")))
        text->bare = !strcmp(equals, "no");
    else
        return error_set(err, ERR_USAGE, "'%.40s=%.40s': expected text=FILE, ids=FILE, "
                         "max-tokens=N or special=no", word, equals);
    return true;
}

/* The next comma that a key follows: a file's name may hold others. */
static char *next_key(char *at)
{
    static const char *const keys[] = { "text=", "ids=", "max-tokens=", "special=" };

    while ((at = strchr(at, ','))) {
        at++;
        for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
            if (!strncmp(at, keys[k], strlen(keys[k])))
                return at;
    }
    return NULL;
}

bool model_spec_parse(const char *spec, ModelSpec *out, Error *err)
{
    size_t prefix = strncmp(spec, MODEL_PREFIX, strlen(MODEL_PREFIX)) ? 0 : strlen(MODEL_PREFIX);
    size_t length;
    bool   ok = true;

    *out = (ModelSpec){ .storage = strdup(spec + prefix) };
    if (!out->storage)
        return error_set(err, ERR_NOMEM, "not enough memory for an input's name");
    length = path_length(out->storage);
    out->path = out->storage;
    if (out->storage[length]) {
        char *word = out->storage + length + 1, *next;

        out->storage[strlen(out->storage) - 1] = '\0';
        out->storage[length] = '\0';
        for (; ok && word && *word; word = next) {
            next = next_key(word);
            if (next)
                next[-1] = '\0';
            ok = take_key(&out->text, word, err);
        }
    }
    if (ok && !*out->path)
        ok = error_set(err, ERR_USAGE, "model: needs a path, as in model:smollm2.gguf");
    if (ok && out->text.text && out->text.ids)
        ok = error_set(err, ERR_USAGE, "choose one of --text and --ids");
    if (!ok) {
        error_prefix(err, "%.200s", spec);
        model_spec_free(out);
    }
    return ok;
}

void model_spec_free(ModelSpec *spec)
{
    free(spec->storage);
    *spec = (ModelSpec){ 0 };
}

Model *model_path_open(Session *s, const char *given, Error *err)
{
    Text   path = { 0 };
    Model *m = session_input_path(s, given, &path, err) ? model_open(text_str(&path), err) : NULL;

    text_free(&path);
    if (!m || model_name(m, given, err)) /* a sample is called so, wherever it lies */
        return m;
    model_close(m);
    return NULL;
}

Model *model_spec_open(Session *s, const ModelSpec *spec, Error *err)
{
    return model_path_open(s, spec->path, err);
}

static void add_key(Text *out, const char *key, const char *value, int *count)
{
    text_addf(out, "%c%s=%s", (*count)++ ? ',' : '[', key, value);
}

/* A path that ends in a blank or a bracket is followed by empty brackets, which end it. */
static void write_spec(const char *path, const ModelText *text, Text *out)
{
    size_t length = strlen(path);
    char   number[32];
    int    count = 0;

    text_addf(out, MODEL_PREFIX "%s", path);
    if (text->text)
        add_key(out, "text", text->text, &count);
    if (text->ids)
        add_key(out, "ids", text->ids, &count);
    snprintf(number, sizeof(number), "%lld", (long long)text->most);
    if (text->most)
        add_key(out, "max-tokens", number, &count);
    if (text->bare)
        add_key(out, "special", "no", &count);
    if (count)
        text_add(out, "]");
    else if (length && strchr(" \t\r]", path[length - 1]))
        text_add(out, "[]");
}

bool model_spec_write(const char *spec, const ModelText *text, Text *out, Error *err)
{
    ModelSpec parts;
    ModelText now;

    if (!model_spec_parse(spec, &parts, err))
        return false;
    now = parts.text;
    if (text->text || text->ids) {
        now.text = text->text;
        now.ids = text->ids;
    }
    now.most = text->most ? text->most : now.most;
    now.bare = text->bare || now.bare;
    write_spec(parts.path, &now, out);
    model_spec_free(&parts);
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for an input's name");
}

/* A file by its absolute path; a sample and standard input are called the same everywhere. */
static void add_everywhere(const char *file, Text *out)
{
    if (!strncmp(file, "sample:", 7) || !strcmp(file, "-"))
        text_add(out, file);
    else
        place_absolute(file, out);
}

bool model_spec_absolute(const char *spec, Text *out, Error *err)
{
    ModelSpec parts;
    Text      path = { 0 }, text = { 0 };
    bool      ok;

    if (!model_spec_parse(spec, &parts, err))
        return false;
    add_everywhere(parts.path, &path);
    if (parts.text.text || parts.text.ids)
        add_everywhere(parts.text.text ? parts.text.text : parts.text.ids, &text);
    ok = text_ok(&path) && text_ok(&text);
    if (ok) {
        parts.text.text = parts.text.text ? text_str(&text) : NULL;
        parts.text.ids = parts.text.ids ? text_str(&text) : NULL;
        write_spec(text_str(&path), &parts.text, out);
    }
    text_free(&path);
    text_free(&text);
    model_spec_free(&parts);
    return (ok && text_ok(out)) ||
           error_set(err, ERR_NOMEM, "not enough memory for an input's name");
}

/* ---- layers and heads ---------------------------------------------------------- */

/* A number of digits alone: strtoll takes blanks and signs, too. */
static bool parse_place(const char **at, long long *out)
{
    char *end;

    if (!isdigit((unsigned char)**at))
        return false;
    *out = strtoll(*at, &end, 10);
    *at = end;
    return true;
}

static bool parse_range(const char **at, long long *first, long long *last)
{
    if (!parse_place(at, first))
        return false;
    *last = *first;
    if (**at == '-') {
        ++*at;
        if (!parse_place(at, last))
            return false;
    }
    return !**at || **at == ',';
}

bool model_parse_set(const char *option, const char *list, const char *what, int64_t count,
                     bool *out, Error *err)
{
    const char *at = list;

    memset(out, 0, (size_t)count);
    for (;; at++) {
        long long first, last;

        errno = 0;
        if (!parse_range(&at, &first, &last) || errno)
            return error_set(err, ERR_USAGE, "%s %.80s: expected numbers or ranges with commas "
                             "between, such as 0-3,5", option, list);
        if (last < first || last >= count)
            return error_set(err, ERR_USAGE, "%s %.80s: the model has the %ss 0 to %lld, each "
                             "range from the smaller", option, list, what, (long long)count - 1);
        for (; first <= last; first++)
            out[first] = true;
        if (!*at)
            return true;
    }
}

void model_set_text(const bool *set, int64_t count, Text *out)
{
    bool some = false;

    for (int64_t i = 0; i < count; i++) {
        int64_t last = i;

        if (!set[i])
            continue;
        while (last + 1 < count && set[last + 1])
            last++;
        text_addf(out, last > i ? "%s%lld-%lld" : "%s%lld", some ? "," : "", (long long)i,
                  (long long)last);
        some = true;
        i = last;
    }
}

/* ---- the text ---------------------------------------------------------------- */

#define MOST_BYTES ((size_t)256 << 20)

/* Standard input is read once; a layer that is asked for later has the same text. */
static bool read_standard_input(Text *out, Error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static Text            held;
    static bool            read;
    bool                   ok = true;

    pthread_mutex_lock(&lock);
    if (!read)
        ok = file_read("/dev/stdin", MOST_BYTES, &held, err);
    if (!ok)
        text_free(&held);
    read = read || ok;
    if (ok && held.length)
        text_add_bytes(out, held.data, held.length);
    pthread_mutex_unlock(&lock);
    return ok;
}

/* --text takes a file; the words of a text in its place are a usual mistake. */
static bool is_there(const char *path, const char *name, Error *err)
{
    struct stat what;

    if (stat(path, &what) == 0 || errno != ENOENT)
        return true;
    return error_set(err, ERR_FILE, "%.200s: there is no such file; a text itself is read from "
                     "standard input: echo 'The text' | attnscope ... --text -", name);
}

static bool read_bytes(Session *s, const char *name, Text *out, Error *err)
{
    Text path = { 0 };
    bool ok;

    if (!strcmp(name, "-"))
        return read_standard_input(out, err);
    ok = session_input_path(s, name, &path, err) && is_there(text_str(&path), name, err) &&
         file_read(text_str(&path), MOST_BYTES, out, err);
    text_free(&path);
    if (ok && out->length > MOST_BYTES)
        return error_set(err, ERR_DATA, "%.200s: has more than %zu MiB of text; give a part of it",
                         name, MOST_BYTES >> 20);
    return ok && (text_ok(out) || error_set(err, ERR_NOMEM, "%.200s: not enough memory", name));
}

/* Numbers with blanks, commas, line ends or a JSON list's brackets between. */
static bool read_ids(const char *name, const Text *bytes, int64_t vocab, TokenList *out, Error *err)
{
    const char *at = text_str(bytes), *end = at + bytes->length;

    out->ids = malloc((bytes->length / 2 + 1) * sizeof(*out->ids));
    if (!out->ids)
        return error_set(err, ERR_NOMEM, "%.200s: not enough memory for the ids", name);
    for (at += strspn(at, " \t\r\n,[]"); at < end; at += strspn(at, " \t\r\n,[]")) {
        char     *stop;
        long long id = strtoll(at, &stop, 10);

        if (stop == at || id < 0 || id >= vocab || (*stop && !strchr(" \t\r\n,[]", *stop)))
            return error_set(err, ERR_DATA, "%.200s: '%.*s' at byte %lld: expected a token's id, "
                             "a whole number from 0 to %lld", name, (int)strcspn(at, " \t\r\n,[]"),
                             at, (long long)(at - text_str(bytes)), (long long)vocab - 1);
        out->ids[out->count++] = (int32_t)id;
        at = stop;
    }
    return true;
}

static bool encode(const Model *m, const char *name, const ModelText *text, const Text *bytes,
                   TokenList *out, Error *err)
{
    if (!m->tokenizer)
        return error_set(err, ERR_MODEL, "%.200s: its tokenizer cannot be read (%.200s); --ids "
                         "FILE gives tokens by number", m->name, m->tokenizer_why);
    return tokenizer_encode(m->tokenizer, text_str(bytes), (int64_t)bytes->length, !text->bare, out,
                            err) ||
           error_prefix(err, "%.200s", name);
}

/* By default what the model was trained for, or what its table of positions holds.  More can be
 * asked for: without such a table it runs, with one forward_run refuses it. */
static int64_t most_tokens(const Model *m, const ModelText *text)
{
    int64_t rows = m->positions.type != WEIGHT_NONE ? m->positions.rows : m->config.context;

    return text->most ? text->most : rows;
}

bool model_read_text(Session *s, const Model *m, const ModelText *text, ModelReading *out,
                     Error *err)
{
    const char *name = text->ids ? text->ids : text->text ? text->text : MODEL_USUAL_TEXT;
    int64_t     most = most_tokens(m, text);
    bool        ok;

    *out = (ModelReading){ 0 };
    ok = read_bytes(s, name, &out->bytes, err) &&
         (text->ids ? read_ids(name, &out->bytes, m->config.vocab, &out->tokens, err)
                    : encode(m, name, text, &out->bytes, &out->tokens, err));
    if (ok && out->tokens.count < 1)
        ok = error_set(err, ERR_DATA, "%.200s: holds no token; give a text with at least one",
                       name);
    out->whole = out->tokens.count;
    if (ok && most > 0 && out->tokens.count > most)
        out->tokens.count = most;
    if (!ok)
        model_reading_free(out);
    return ok;
}

void model_reading_free(ModelReading *reading)
{
    token_list_free(&reading->tokens);
    text_free(&reading->bytes);
    *reading = (ModelReading){ 0 };
}

/* ---- the fingerprint ----------------------------------------------------------- */

#define FILES_MOST 512

typedef struct Files {
    Mapped parts[FILES_MOST];
    int    count;
} Files;

static bool add_file(Files *f, const char *path, Error *err)
{
    if (f->count == FILES_MOST)
        return error_set(err, ERR_MODEL, "%.200s: the folder has more than %d files", path,
                         FILES_MOST);
    return mapped_open(path, &f->parts[f->count], err) ? ++f->count > 0
                                                       : error_prefix(err, "%.200s", path);
}

/* What a folder's weights and tokenizer are made of, in the order of names. */
static bool add_folder(Files *f, const char *folder, Error *err)
{
    static const char *const kinds[] = { "*.json", "*.safetensors", "*.txt" };
    bool                     ok = true;

    for (size_t k = 0; ok && k < sizeof(kinds) / sizeof(*kinds); k++) {
        Text   pattern = { 0 };
        glob_t found = { 0 };

        for (const char *c = folder; *c; c++)
            text_addf(&pattern, strchr("*?[\\", *c) ? "\\%c" : "%c", *c);
        text_addf(&pattern, "/%s", kinds[k]);
        if (glob(text_str(&pattern), 0, NULL, &found) == 0)
            for (size_t i = 0; ok && i < found.gl_pathc; i++)
                ok = add_file(f, found.gl_pathv[i], err);
        globfree(&found);
        text_free(&pattern);
    }
    return ok;
}

/* Of the model's files.  The last one is remembered: each layer of a model asks. */
static bool model_sha256(const Model *m, const atomic_bool *cancel, char hex[65], Error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct { struct stat s; char hex[65]; } last;
    struct stat            now;
    Files                 *f;
    bool                   known, ok;

    if (stat(m->path, &now) != 0)
        return error_set(err, ERR_FILE, "%.200s: cannot be opened: %s", m->path, strerror(errno));
    pthread_mutex_lock(&lock);
    known = *last.hex && last.s.st_dev == now.st_dev && last.s.st_ino == now.st_ino &&
            last.s.st_size == now.st_size && last.s.st_mtim.tv_sec == now.st_mtim.tv_sec &&
            last.s.st_mtim.tv_nsec == now.st_mtim.tv_nsec;
    if (known)
        memcpy(hex, last.hex, sizeof(last.hex));
    pthread_mutex_unlock(&lock);
    if (known)
        return true;
    f = calloc(1, sizeof(*f));
    if (!f)
        return error_set(err, ERR_NOMEM, "not enough memory for a fingerprint");
    ok = S_ISDIR(now.st_mode) ? add_folder(f, m->path, err) : add_file(f, m->path, err);
    ok = ok && (mapped_sha256_unless(cancel, f->parts, f->count, hex) ||
                error_set(err, ERR_CANCELLED, "interrupted"));
    for (int i = 0; i < f->count; i++)
        mapped_close(&f->parts[i]);
    free(f);
    pthread_mutex_lock(&lock);
    last.s = now;
    snprintf(last.hex, sizeof(last.hex), "%s", ok ? hex : "");
    pthread_mutex_unlock(&lock);
    return ok;
}

/* Of the model, the text and how it is cut: any layer and any n have the same. */
static bool fingerprint(Input *in, const Model *m, const ModelText *text, const Text *bytes,
                        const atomic_bool *cancel, Error *err)
{
    char   hex[65], how[96];
    Mapped parts[3];

    if (!model_sha256(m, cancel, hex, err))
        return false;
    snprintf(how, sizeof(how), "%s %lld %d", text->ids ? "ids" : "text", (long long)text->most,
             text->bare);
    parts[0] = (Mapped){ .data = (const uint8_t *)hex, .size = 64 };
    parts[1] = (Mapped){ .data = (const uint8_t *)how, .size = (int64_t)strlen(how) };
    parts[2] = (Mapped){ .data = (const uint8_t *)text_str(bytes), .size = (int64_t)bytes->length };
    mapped_sha256(parts, 3, in->sha256);
    return true;
}

/* ---- the layer ------------------------------------------------------------------ */

typedef struct Taking {
    Session    *session;
    const Model *m;
    Input      *in;
    int64_t     layer;
    bool        failed;
} Taking;

static bool take_tensor(Arena *arena, const Tensor *from, Tensor *to)
{
    *to = tensor_new(arena, DT_F32, from->rank, from->shape);
    if (to->data)
        memcpy(to->data, from->data, (size_t)tensor_bytes(from));
    return to->data != NULL;
}

static bool take_tensors(const LayerView *view, Input *in)
{
    Arena *arena = in->arena;

    return take_tensor(arena, &view->q, &in->q) && take_tensor(arena, &view->k, &in->k) &&
           take_tensor(arena, &view->v, &in->v) && take_tensor(arena, &view->x, &in->x);
}

static bool take_layer(void *context, const LayerView *view)
{
    Taking *t = context;

    if (view->layer != t->layer)
        return true;
    t->failed = !take_tensors(view, t->in);
    return !t->failed;
}

static void show_progress(void *context, int64_t layer, int64_t layers)
{
    Taking *t = context;

    session_progress(t->session, "%.80s: layer %lld of %lld", path_name(t->m->name),
                     (long long)layer, (long long)layers);
}

static bool take_labels(Input *in, const Model *m, const TokenList *tokens)
{
    char number[16];

    in->k_tokens = arena_alloc(in->arena, in->n, sizeof(*in->k_tokens));
    for (int64_t i = 0; in->k_tokens && i < in->n; i++) {
        const char *piece = m->tokenizer ? tokenizer_piece(m->tokenizer, tokens->ids[i]) : "";

        snprintf(number, sizeof(number), "%d", tokens->ids[i]);
        piece = *piece ? piece : number;
        in->k_tokens[i] = labels_copy(in->arena, (const uint8_t *)piece, (int64_t)strlen(piece));
        if (!in->k_tokens[i])
            return false;
    }
    in->q_tokens = in->k_tokens;
    return in->k_tokens != NULL;
}

static Input *new_input(const char *spec, const Model *m, const InputChoice *choice, Error *err)
{
    Arena *arena = arena_new();
    Input *in = arena ? arena_zalloc(arena, 1, sizeof(*in)) : NULL;

    if (in) {
        arena_limit(arena, load_limit(choice));
        *in = (Input){ .arena = arena, .heads = m->config.heads, .d = m->config.head_dim,
                       .e = m->config.head_dim, .layers = m->config.layers,
                       .layer = choice->layer < 0 ? 0 : choice->layer,
                       .causal = m->config.causal, .scale = m->config.scale,
                       .window = m->config.window };
        in->name = arena_strdup(arena, spec);
        in->kind = arena_strdup(arena, "model");
        in->model = arena_strdup(arena, path_name(m->name));
        if (in->name && in->kind && in->model)
            return in;
    }
    arena_free(arena);
    error_set(err, ERR_NOMEM, "not enough memory for an input");
    return NULL;
}

static bool check_choice(const Model *m, const InputChoice *choice, const ModelReading *reading,
                         Error *err)
{
    if (choice->layer >= m->config.layers)
        return error_set(err, ERR_DATA, "layer %lld is not there; the model has %lld, from 0",
                         (long long)choice->layer, (long long)m->config.layers);
    if (choice->d || choice->heads)
        return error_set(err, ERR_USAGE, "-d and --heads are of generated inputs; a model has its "
                         "own");
    if (choice->n <= reading->tokens.count)
        return true;
    if (reading->whole > reading->tokens.count)
        return error_set(err, ERR_DATA, "of the text's %lld tokens %lld are read (the model's "
                         "context, or --max-tokens), fewer than -n %lld", (long long)reading->whole,
                         (long long)reading->tokens.count, (long long)choice->n);
    return error_set(err, ERR_DATA, "the text has %lld tokens, fewer than -n %lld",
                     (long long)reading->tokens.count, (long long)choice->n);
}

/* A decoder's first n tokens see nothing of the others; an encoder reads the whole text. */
static Input *run_to_layer(Session *s, const char *spec, const Model *m, const ModelText *text,
                           const InputChoice *choice, ModelReading *reading, Error *err)
{
    bool   cut = choice->n && choice->n < reading->tokens.count;
    Taking taking = { .session = s, .m = m, .in = new_input(spec, m, choice, err) };
    Input *in = taking.in, *shorter;
    ForwardResult  result = { 0 };
    ForwardOptions options = { .cancel = choice->cancel, .on_layer = take_layer,
                               .on_progress = show_progress, .context = &taking };
    bool   ok = in != NULL;

    if (cut && m->config.causal)
        reading->tokens.count = choice->n;
    if (ok) {
        options.last_layer = taking.layer = in->layer;
        in->n = in->m = reading->tokens.count;
        ok = fingerprint(in, m, text, &reading->bytes, choice->cancel, err) &&
             forward_run(m, reading->tokens.ids, reading->tokens.count, &options, &result, err);
        forward_result_free(&result);
    }
    if (taking.failed || (ok && !take_labels(in, m, &reading->tokens)))
        ok = error_set(err, ERR_NOMEM, "not enough memory for a layer of %lld tokens",
                       (long long)reading->tokens.count);
    if (ok && cut && !m->config.causal) {
        shorter = input_cut(in, choice->n, err);
        input_free(in);
        return shorter;
    }
    if (ok)
        return in;
    input_free(in);
    return NULL;
}

/* A model that is open, with the text it reads. */
typedef struct Opened {
    ModelSpec    parts;
    ModelReading reading;
    Model       *m;
} Opened;

static bool open_spec(Session *s, const char *spec, const InputChoice *choice, Opened *o,
                      Error *err)
{
    *o = (Opened){ .m = NULL };
    if (!model_spec_parse(spec, &o->parts, err))
        return false;
    session_progress(s, "%.80s: opening", path_name(o->parts.path));
    o->m = model_spec_open(s, &o->parts, err);
    return o->m && model_read_text(s, o->m, &o->parts.text, &o->reading, err) &&
           (check_choice(o->m, choice, &o->reading, err) ||
            error_prefix(err, "%.200s", o->parts.path));
}

static void opened_free(Opened *o)
{
    model_reading_free(&o->reading);
    model_close(o->m);
    model_spec_free(&o->parts);
}

Input *model_input_read(Session *s, const char *spec, const InputChoice *choice, Error *err)
{
    Opened o;
    Input *in = NULL;

    if (open_spec(s, spec, choice, &o, err)) {
        in = run_to_layer(s, spec, o.m, &o.parts.text, choice, &o.reading, err);
        if (!in)
            error_prefix(err, "%.200s", o.parts.path);
    }
    opened_free(&o);
    return in;
}

/* ---- every layer ------------------------------------------------------------------ */

typedef struct Each {
    Opened             *opened;
    const char         *spec;
    const InputChoice  *choice;
    int64_t             n;       /* of the inputs; fewer than the pass reads of an encoder */
    char                sha256[65];
    bool (*take)(void *context, Input *input);
    void               *context;
    Error               err;     /* why a layer could not be given */
} Each;

static Input *each_input(Each *e, const LayerView *view)
{
    const Model *m = e->opened->m;
    InputChoice  choice = *e->choice;
    Input       *in, *shorter;

    choice.layer = view->layer;
    in = new_input(e->spec, m, &choice, &e->err);
    if (!in)
        return NULL;
    in->n = in->m = e->opened->reading.tokens.count;
    snprintf(in->sha256, sizeof(in->sha256), "%s", e->sha256);
    if (!take_tensors(view, in) || !take_labels(in, m, &e->opened->reading.tokens)) {
        input_free(in);
        error_set(&e->err, ERR_NOMEM, "not enough memory for a layer of %lld tokens",
                  (long long)e->opened->reading.tokens.count);
        return NULL;
    }
    if (e->n == in->n)
        return in;
    shorter = input_cut(in, e->n, &e->err);
    input_free(in);
    return shorter;
}

static bool each_layer(void *context, const LayerView *view)
{
    Each  *e = context;
    Input *in = each_input(e, view);

    return in && e->take(e->context, in);
}

bool model_input_each(Session *s, const char *spec, const InputChoice *choice,
                      bool (*take)(void *context, Input *input), void *context, Error *err)
{
    Opened         o;
    Each           e = { .opened = &o, .spec = spec, .choice = choice, .take = take,
                         .context = context, .err = ERROR_INIT };
    ForwardOptions options = { .cancel = choice->cancel, .on_layer = each_layer, .context = &e };
    ForwardResult  result = { 0 };
    InputChoice    any = *choice;
    Input          print = { .n = 0 };
    bool           ok;

    any.layer = -1;
    ok = open_spec(s, spec, &any, &o, err) &&
         fingerprint(&print, o.m, &o.parts.text, &o.reading.bytes, choice->cancel, err);
    if (ok) {
        e.n = choice->n ? choice->n : o.reading.tokens.count;
        if (o.m->config.causal)
            o.reading.tokens.count = e.n;
        snprintf(e.sha256, sizeof(e.sha256), "%s", print.sha256);
        options.last_layer = o.m->config.layers - 1;
        ok = forward_run(o.m, o.reading.tokens.ids, o.reading.tokens.count, &options, &result, err);
        forward_result_free(&result);
        if (e.err.code != ERR_NONE)
            *err = e.err;
    }
    opened_free(&o);
    return ok;
}
