/* saved_text.c -- a state as lines a person can read and edit, and back; see saved.h.
 *
 *     attnscope session 1
 *     input /home/me/qkv.npz
 *     linked yes
 *     pane bigbird(window=5)
 *       position rope
 *       view weights
 *
 * A line is a name and its value; # begins a comment.  What stands below `pane` belongs
 * to that pane.  What is left out is as in a new one.  One table serves both directions.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/place.h"
#include "ui/browse.h"
#include "ui/saved.h"

#define HEAD    "attnscope session "
#define VERSION 1
#define SHIPPED "shipped:" /* a sample that came with the program, wherever that is */

typedef enum FieldKind {
    FIELD_WHOLE,  /* int64_t */
    FIELD_INT,    /* int */
    FIELD_SEED,   /* uint64_t */
    FIELD_YES,    /* bool */
    FIELD_CAUSAL, /* int: -1 input, 0 no, 1 yes */
    FIELD_CHOICE, /* int: index of a name; -1: left out */
    FIELD_TEXT,   /* char[most] */
} FieldKind;

typedef struct FieldOf {
    const char *name;
    FieldKind   kind;
    size_t      offset;
    int64_t     least, most; /* numbers; most: size of a text, count of choices */
    int64_t     usual;       /* not written */
    const char *(*choice)(int index);
} FieldOf;

/* ---- names of choices ------------------------------------------------------- */

static const char *screen_word(int i)
{
    static const char *const words[] = { "browse", "compare", "step", "profile", "lessons" };

    _Static_assert(sizeof(words) / sizeof(*words) == SCREEN_COUNT, "a word for each screen");
    return words[i];
}

static const char *order_word(int i)
{
    static const char *const words[BROWSE_ORDERS] = { "class", "year", "cost" };

    return words[i];
}

static const char *theme_word(int i)
{
    return theme_name((Theme)i);
}
static const char *glyphs_word(int i)
{
    return glyphs_name((Glyphs)i);
}
static const char *pool_word(int i)
{
    return pool_name((Pool)i);
}
static const char *scale_word(int i)
{
    return scale_name((Scale)i);
}
static const char *strips_word(int i)
{
    return margin_name((MarginKind)i);
}
static const char *map_word(int i)
{
    return colour_map_name((ColourMap)i);
}

/* ---- the tables ------------------------------------------------------------- */

#define FAR     (INT64_C(1) << 40)
#define IS_NONE 1 /* usual, of a text: "none" */

#define OF(S, field) offsetof(S, field)
static const FieldOf of_session[] = {
    { "sha256", FIELD_TEXT, OF(Saved, sha256), 0, 65, 0, NULL },
    { "layer", FIELD_WHOLE, OF(Saved, choice.layer), 0, FAR, 0, NULL },
    { "n", FIELD_WHOLE, OF(Saved, choice.n), 0, FAR, 0, NULL },
    { "d", FIELD_WHOLE, OF(Saved, choice.d), 0, FAR, 0, NULL },
    { "heads", FIELD_WHOLE, OF(Saved, choice.heads), 0, FAR, 0, NULL },
    { "input-seed", FIELD_SEED, OF(Saved, choice.seed), 0, 0, 0, NULL },
    { "causal", FIELD_CAUSAL, OF(Saved, defaults.causal), 0, 0, -1, NULL },
    { "seed", FIELD_SEED, OF(Saved, defaults.seed), 0, 0, 0, NULL },
    { "screen", FIELD_CHOICE, OF(Saved, screen), 0, SCREEN_COUNT, -2, screen_word },
    { "theme", FIELD_CHOICE, OF(Saved, theme), 0, THEME_COUNT, -2, theme_word },
    { "glyphs", FIELD_CHOICE, OF(Saved, glyphs), 0, GLYPHS_COUNT, -2, glyphs_word },
    { "order", FIELD_CHOICE, OF(Saved, order), 0, BROWSE_ORDERS, -2, order_word },
    { "filter", FIELD_TEXT, OF(Saved, filter), 0, sizeof(((Saved *)0)->filter), 0, NULL },
    { "focus", FIELD_WHOLE, OF(Saved, focus), 1, PANES_MOST, -2, NULL },
    { "linked", FIELD_YES, OF(Saved, linked), 0, 0, -2, NULL },
    { "alone", FIELD_YES, OF(Saved, alone), 0, 0, 0, NULL },
    { "difference", FIELD_YES, OF(Saved, difference), 0, 0, 0, NULL },
    { "labels", FIELD_YES, OF(Saved, labels), 0, 0, 0, NULL },
    { "strips", FIELD_CHOICE, OF(Saved, strips), 0, MARGIN_KINDS, MARGIN_NONE, strips_word },
    { "effect", FIELD_YES, OF(Saved, effect), 0, 0, 0, NULL },
    { .name = NULL },
};

static const FieldOf of_pane[] = {
    { "position", FIELD_TEXT, OF(SavedPane, request.position), 0,
      sizeof(((Request *)0)->position), IS_NONE, NULL },
    { "causal", FIELD_CAUSAL, OF(SavedPane, request.causal), 0, 0, -1, NULL },
    { "seed", FIELD_SEED, OF(SavedPane, request.seed), 0, 0, 0, NULL },
    { "fit", FIELD_YES, OF(SavedPane, request.fit), 0, 0, 0, NULL },
    { "keys", FIELD_INT, OF(SavedPane, request.keys), 0, MISSED_MOST, 0, NULL },
    { "view", FIELD_TEXT, OF(SavedPane, view), 0, sizeof(((SavedPane *)0)->view), 0, NULL },
    { "head", FIELD_WHOLE, OF(SavedPane, head), 0, FAR, 0, NULL },
    { "round", FIELD_WHOLE, OF(SavedPane, round), 0, FAR, 0, NULL },
    { "pool", FIELD_CHOICE, OF(SavedPane, pool), 0, POOL_COUNT, -1, pool_word },
    { "scale", FIELD_CHOICE, OF(SavedPane, scale), 0, SCALE_COUNT, -1, scale_word },
    { "colours", FIELD_CHOICE, OF(SavedPane, map), 0, MAP_DIVERGING, -1, map_word },
    { "layers", FIELD_INT, OF(SavedPane, reach.layers), 0, REACH_MOST, 0, NULL },
    { "exactly", FIELD_YES, OF(SavedPane, reach.strict), 0, 0, 0, NULL },
    { "sorted", FIELD_YES, OF(SavedPane, sorted), 0, 0, 0, NULL },
    { "differs", FIELD_YES, OF(SavedPane, differs), 0, 0, 0, NULL },
    { "excludes", FIELD_YES, OF(SavedPane, excludes), 0, 0, 0, NULL },
    { "excluded", FIELD_WHOLE, OF(SavedPane, excluded), 0, FAR, 0, NULL },
    { "zoom", FIELD_INT, OF(SavedPane, lens.zoom), -FAR, FAR, 0, NULL },
    { "top", FIELD_WHOLE, OF(SavedPane, lens.row0), 0, FAR, 0, NULL },
    { "left", FIELD_WHOLE, OF(SavedPane, lens.col0), 0, FAR, 0, NULL },
    { "query", FIELD_WHOLE, OF(SavedPane, lens.q), 0, FAR, 0, NULL },
    { "key", FIELD_WHOLE, OF(SavedPane, lens.k), 0, FAR, 0, NULL },
    { .name = NULL },
};

/* ---- writing ---------------------------------------------------------------- */

static int64_t number_at(const FieldOf *f, const void *at)
{
    return f->kind == FIELD_WHOLE ? *(const int64_t *)at
           : f->kind == FIELD_YES ? *(const bool *)at
                                  : *(const int *)at;
}

static void write_field(const FieldOf *f, const void *base, const char *indent, Text *out)
{
    const char *at = (const char *)base + f->offset;
    int64_t     number;

    if (f->kind == FIELD_TEXT || f->kind == FIELD_SEED) {
        uint64_t seed = f->kind == FIELD_SEED ? *(const uint64_t *)at : 0;

        if (seed)
            text_addf(out, "%s%s %llu\n", indent, f->name, (unsigned long long)seed);
        else if (f->kind == FIELD_TEXT && *at && (f->usual != IS_NONE || strcmp(at, "none") != 0))
            text_addf(out, "%s%s %s\n", indent, f->name, at);
        return;
    }
    number = number_at(f, at);
    if (number == f->usual)
        return;
    text_addf(out, "%s%s ", indent, f->name);
    if (f->kind == FIELD_CHOICE)
        text_add(out, f->choice((int)number));
    else if (f->kind == FIELD_YES || f->kind == FIELD_CAUSAL)
        text_add(out, number ? "yes" : "no");
    else
        text_addf(out, "%lld", (long long)number);
    text_add(out, "\n");
}

static void write_fields(const FieldOf *f, const void *base, const char *indent, Text *out)
{
    for (; f->name; f++)
        write_field(f, base, indent, out);
}

/* A path stays good whatever the next folder is the program is started in; a shipped
 * sample whatever the next place is it is installed in. */
static void write_input(const Ui *ui, const Saved *saved, Text *out)
{
    const char *spec = saved->spec, *slash = strrchr(spec, '/');
    const char *shipped = slash ? session_find_shipped(ui->session, "samples", slash + 1) : NULL;

    text_add(out, "input ");
    if (!strncmp(spec, "synthetic:", 10) || !strcmp(spec, "-"))
        text_add(out, spec);
    else if (shipped && !strcmp(shipped, spec))
        text_addf(out, SHIPPED "%s", slash + 1);
    else
        place_absolute(spec, out);
    text_add(out, "\n");
}

/* Files of tensor parameters by absolute paths; false: no memory. */
static bool absolute_tensors(Request *request)
{
    for (; request; request = request->above)
        for (int i = 0; i < request->given.count; i++) {
            Assignment *a = &request->given.items[i];
            Text        path = { 0 };

            if (*a->text != '@')
                continue;
            text_add(&path, "@");
            place_absolute(a->text + 1, &path);
            if (!text_ok(&path))
                return false;
            free(a->text);
            a->text = path.data;
        }
    return true;
}

static void write_pane(const SavedPane *pane, Text *out)
{
    Request copy;

    text_add(out, "\npane ");
    if (request_copy(&copy, &pane->request, NULL)) {
        out->failed |= !absolute_tensors(&copy);
        request_text(&copy, out);
        request_free(&copy);
    }
    text_add(out, "\n");
    write_fields(of_pane, pane, "  ", out);
}

void saved_write(const Ui *ui, const Saved *saved, Text *out)
{
    text_addf(out, HEAD "%d\n# a line is a name and its value; what is left out is as usual\n\n",
              VERSION);
    if (saved->spec)
        write_input(ui, saved, out);
    write_fields(of_session, saved, "", out);
    for (size_t i = 0; mechanism_at(i) && i < MARKS_MOST; i++)
        if (saved->marked[i])
            text_addf(out, "mark %s\n", mechanism_at(i)->id);
    for (int i = 0; i < saved->count; i++)
        write_pane(&saved->panes[i], out);
}

/* ---- reading ---------------------------------------------------------------- */

typedef struct Reader {
    Ui    *ui;
    Saved *saved;
    char   pane_text[2048]; /* of the pane being read; run through the parser at its end */
    int    line, pane_line; /* 0: no pane yet */
} Reader;

static bool read_number(const FieldOf *f, void *at, const char *value, Error *err)
{
    char     *end;
    long long number;

    errno = 0;
    number = strtoll(value, &end, 10);
    if (errno || *end || end == value || number < f->least || number > f->most)
        return error_set(err, ERR_PARAM, "%s: '%.40s' is not a whole number from %lld to %lld",
                         f->name, value, (long long)f->least, (long long)f->most);
    if (f->kind == FIELD_WHOLE)
        *(int64_t *)at = number;
    else
        *(int *)at = (int)(number > INT32_MAX ? INT32_MAX : number);
    return true;
}

static bool read_seed(const FieldOf *f, void *at, const char *value, Error *err)
{
    char *end;

    errno = 0;
    *(uint64_t *)at = strtoull(value, &end, 10);
    return (!errno && !*end && end != value && *value != '-') ||
           error_set(err, ERR_PARAM, "%s: '%.40s' is not a whole number from 0", f->name, value);
}

static bool read_choice(const FieldOf *f, void *at, const char *value, Error *err)
{
    Text names = { 0 };

    for (int i = 0; i < f->most; i++) {
        text_addf(&names, "%s%s", i ? ", " : "", f->choice(i));
        if (!strcmp(f->choice(i), value)) {
            *(int *)at = i;
            text_free(&names);
            return true;
        }
    }
    error_set(err, ERR_PARAM, "%s: '%.40s' is none of %s", f->name, value, text_str(&names));
    text_free(&names);
    return false;
}

static bool read_yes(const FieldOf *f, void *at, const char *value, Error *err)
{
    bool yes = !strcmp(value, "yes");

    if (!yes && strcmp(value, "no") != 0)
        return error_set(err, ERR_PARAM, "%s: '%.40s' is not yes or no", f->name, value);
    if (f->kind == FIELD_YES)
        *(bool *)at = yes;
    else
        *(int *)at = yes;
    return true;
}

static bool read_field(const FieldOf *f, void *base, const char *value, Error *err)
{
    char *at = (char *)base + f->offset;

    switch (f->kind) {
    case FIELD_WHOLE:
    case FIELD_INT: return read_number(f, at, value, err);
    case FIELD_SEED: return read_seed(f, at, value, err);
    case FIELD_CHOICE: return read_choice(f, at, value, err);
    case FIELD_YES:
    case FIELD_CAUSAL: return read_yes(f, at, value, err);
    default:
        if ((int64_t)strlen(value) >= f->most)
            return error_set(err, ERR_PARAM, "%s: the text is too long", f->name);
        snprintf(at, (size_t)f->most, "%s", value);
        return true;
    }
}

/* Parameters as far as they can be judged without an input. */
static bool check_request(const Request *request, Error *err)
{
    const Position *position;

    for (; request; request = request->above) {
        const Mechanism *m = mechanism_find(request->mechanism);
        void            *values = calloc(1, m->params_size + 1);
        bool ok = values && params_bind(m->params, values, &request->given, err);

        free(values);
        for (int i = 0; ok && i < request->given.count; i++) {
            const char *name = request->given.items[i].name;

            if (!m->free_tensors && strncmp(name, "pos_", 4) != 0 &&
                !mechanism_param(m, &request->given, name))
                ok = error_set(err, ERR_PARAM, "%s has no parameter '%s'", m->id, name);
        }
        if (!ok || (strcmp(request->position, "none") != 0 &&
                    !position_parse(request->position, &position, err)))
            return false;
    }
    return true;
}

/* What the layers of a stack share must be known before they are parsed. */
static bool finish_pane(Reader *r, Error *err)
{
    Request *request;

    if (!r->pane_line)
        return true;
    r->line = r->pane_line; /* where the fault is */
    request = &r->saved->panes[r->saved->count - 1].request;
    return request_parse(r->ui->session, request, r->pane_text, err) &&
           check_request(request, err);
}

static bool begin_pane(Reader *r, const char *text, Error *err)
{
    int line = r->line;

    if (!finish_pane(r, err))
        return false;
    r->line = r->pane_line = line;
    if (r->saved->count == PANES_MOST)
        return error_set(err, ERR_PARAM, "more than %d panes", PANES_MOST);
    if (strlen(text) >= sizeof(r->pane_text))
        return error_set(err, ERR_PARAM, "pane: the text is too long");
    snprintf(r->pane_text, sizeof(r->pane_text), "%s", text);
    r->saved->panes[r->saved->count++] =
        (SavedPane){ .request = REQUEST_INIT, .pool = -1, .scale = -1, .map = -1 };
    return true;
}

static bool read_input(Reader *r, const char *value, Error *err)
{
    bool        ours = !strncmp(value, SHIPPED, strlen(SHIPPED));
    const char *path = value;

    if (ours)
        path = session_find_shipped(r->ui->session, "samples", value + strlen(SHIPPED));
    if (!path)
        return error_set(err, ERR_FILE, "there is no shipped sample '%.60s'",
                         value + strlen(SHIPPED));
    free(r->saved->spec);
    r->saved->spec = strdup(path);
    r->saved->input_line = r->line;
    return r->saved->spec || error_set(err, ERR_NOMEM, "not enough memory for a path");
}

static bool read_mark(Reader *r, const char *id, Error *err)
{
    const Mechanism *m;

    for (size_t i = 0; (m = mechanism_at(i)) && i < MARKS_MOST; i++)
        if (m == mechanism_find(id)) {
            r->saved->marked[i] = true;
            return true;
        }
    return mechanism_parse(id, &m, err);
}

static bool read_line(Reader *r, char *line, Error *err)
{
    char          *name = line + strspn(line, " \t"), *value;
    const FieldOf *f = r->pane_line ? of_pane : of_session;
    void *base = r->pane_line ? (void *)&r->saved->panes[r->saved->count - 1] : (void *)r->saved;

    if (!*name || *name == '#')
        return true;
    value = name + strcspn(name, " \t");
    if (*value)
        *value++ = '\0';
    value += strspn(value, " \t");
    for (size_t end = strlen(value); end && strchr(" \t\r", value[end - 1]);)
        value[--end] = '\0';
    if (!strcmp(name, "pane"))
        return begin_pane(r, value, err);
    if (!r->pane_line && !strcmp(name, "input"))
        return read_input(r, value, err);
    if (!r->pane_line && !strcmp(name, "mark"))
        return read_mark(r, value, err);
    for (; f->name; f++)
        if (!strcmp(f->name, name))
            return read_field(f, base, value, err);
    return error_set(err, ERR_PARAM, "'%.40s' is nothing a %s has", name,
                     r->pane_line ? "pane" : "session");
}

static bool read_head(const char *line, Error *err)
{
    char     *end;
    long long version;

    if (strncmp(line, HEAD, strlen(HEAD)) != 0)
        return error_set(err, ERR_FILE, "not a saved session: it should begin '" HEAD "%d'",
                         VERSION);
    version = strtoll(line + strlen(HEAD), &end, 10);
    if (end == line + strlen(HEAD) || version < 1 || end[strspn(end, " \t\r")])
        return error_set(err, ERR_FILE, "'%.40s' is no version", line + strlen(HEAD));
    return version <= VERSION ||
           error_set(err, ERR_FILE,
                     "version %lld is newer than this program, which reads up to %d", version,
                     VERSION);
}

static bool read_all(Reader *r, const char *text, Error *err)
{
    char line[4096];

    while (*text) {
        size_t length = strcspn(text, "\n");

        r->line++;
        if (length >= sizeof(line))
            return error_set(err, ERR_PARAM, "the line is too long");
        snprintf(line, sizeof(line), "%.*s", (int)length, text);
        if (r->line == 1 ? !read_head(line, err) : !read_line(r, line, err))
            return false;
        text += length + (text[length] == '\n');
    }
    if (r->line == 0 && !read_head("", err))
        return false;
    return finish_pane(r, err);
}

bool saved_read(Ui *ui, const char *name, const char *text, Saved *out, Error *err)
{
    Reader reader = { .ui = ui, .saved = out };

    saved_init(out);
    out->theme = (int)ui->theme;
    out->glyphs = (int)ui->glyphs;
    out->linked = true;
    if (read_all(&reader, text, err))
        return true;
    error_prefix(err, "%s:%d", name, reader.line > 0 ? reader.line : 1);
    saved_free(out);
    return false;
}
