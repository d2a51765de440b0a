/* workspace_file.c -- a state as lines a person can read and edit, and back; see workspace.h.
 *
 *     attnscope session 1
 *     input /home/me/qkv.npz
 *     linked yes
 *     pane bigbird(window=5)
 *       position rope
 *       view weights
 *
 * A line is a name and its value; # begins a comment.  What stands below `pane` belongs
 * to that pane.  What is left out is as in a new one.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/command/command.h"
#include "app/program.h"
#include "app/session/model_input.h"
#include "attn/run/position.h"
#include "ui/shell/actions.h"
#include "ui/state/explorer.h"
#include "ui/state/workspace.h"

#define HEAD    "attnscope session "
#define VERSION 1
#define SHIPPED "shipped:" /* older sessions write "shipped:" for "sample:" */

/* ---- writing ---------------------------------------------------------------- */

/* Writes an absolute path, so that the session works from any folder. */
static void write_input(const Workspace *saved, Text *out)
{
    const char *spec = saved->spec;

    text_add(out, "input ");
    if (model_spec_is(spec))
        out->failed |= !model_spec_absolute(spec, out, NULL);
    else if (!strncmp(spec, "synthetic:", 10) || !strncmp(spec, "sample:", 7) || !strcmp(spec, "-"))
        text_add(out, spec);
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

static void write_pane(const PaneState *pane, Text *out)
{
    Request copy;

    text_add(out, "\npane ");
    if (request_copy(&copy, &pane->request, NULL)) {
        out->failed |= !absolute_tensors(&copy);
        request_text(&copy, out);
        request_free(&copy);
    }
    text_add(out, "\n");
    workspace_write_pane(pane, "  ", out);
}

void workspace_write(const Workspace *saved, Text *out)
{
    const Mechanism *m;

    text_addf(out, HEAD "%d\n# a line is a name and its value; what is left out is as usual\n\n",
              VERSION);
    if (saved->spec)
        write_input(saved, out);
    workspace_write_fields(saved, out);
    for (int place = 1; (m = workspace_marked(saved->marked, place)); place++)
        text_addf(out, "mark %s\n", m->id);
    for (int i = 0; i < saved->count; i++)
        write_pane(&saved->panes[i], out);
}

/* ---- reading ---------------------------------------------------------------- */

typedef struct Reader {
    Ui    *ui;
    Workspace *saved;
    char   pane_text[2048]; /* of the pane being read; run through the parser at its end */
    int    line, pane_line; /* 0: no pane yet */
} Reader;

bool workspace_check_request(const Request *request, Error *err)
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

/* Sets the device; falls back to the CPU if the saved GPU is missing. */
static bool settle_device(Reader *r, Request *request, Error *err)
{
    Error why = ERROR_INIT;

    if (request_device(r->ui->session, request, request->device, request->precision, &why))
        return true;
    if (why.code != ERR_UNSUPPORTED) {
        *err = why;
        return false;
    }
    ui_say(r->ui, ROLE_WARN, "on the CPU now: %s", why.text);
    return request_device(r->ui->session, request, "cpu", NULL, err);
}

/* What the layers of a stack share must be known before they are parsed. */
static bool finish_pane(Reader *r, Error *err)
{
    Request *request;

    if (!r->pane_line)
        return true;
    r->line = r->pane_line; /* where the fault is */
    request = &r->saved->panes[r->saved->count - 1].request;
    return settle_device(r, request, err) &&
           request_parse(r->ui->session, request, r->pane_text, err) &&
           workspace_check_request(request, err);
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
        (PaneState){ .request = REQUEST_INIT, .spec = pane_new().spec };
    return true;
}

static bool read_input(Reader *r, const char *value, Error *err)
{
    bool      old = !strncmp(value, SHIPPED, strlen(SHIPPED));
    Text      spec = { 0 };
    ModelSpec model;

    text_addf(&spec, "%s%s", old ? "sample:" : "", value + (old ? strlen(SHIPPED) : 0));
    free(r->saved->spec);
    r->saved->spec = spec.data;
    r->saved->input_line = r->line;
    if (!text_ok(&spec))
        return error_set(err, ERR_NOMEM, "not enough memory for a path");
    if (!model_spec_is(spec.data))
        return true;
    if (!model_spec_parse(spec.data, &model, err))
        return false;
    model_spec_free(&model);
    return true;
}

static bool read_mark(Reader *r, const char *id, Error *err)
{
    const Mechanism *m;
    uint8_t          count = 0;

    for (size_t i = 0; i < MARKS_MOST; i++)
        count += r->saved->marked[i] > 0;
    for (size_t i = 0; (m = mechanism_at(i)) && i < MARKS_MOST; i++)
        if (m == mechanism_find(id)) {
            if (!r->saved->marked[i] && count < PANES_MOST)
                r->saved->marked[i] = count + 1;
            return true;
        }
    return mechanism_parse(id, &m, err);
}

static bool read_line(Reader *r, char *line, Error *err)
{
    char *name = line + strspn(line, " \t"), *value;

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
    return r->pane_line
               ? workspace_set_pane(&r->saved->panes[r->saved->count - 1], name, value, err)
               : workspace_set(r->saved, name, value, err);
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

/* Lines of any length: one that was read is longer where it is written with quotes.  Cuts text. */
static bool read_all(Reader *r, char *text, Error *err)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool   more = text[length] == '\n';

        r->line++;
        text[length] = '\0';
        if (r->line == 1 ? !read_head(text, err) : !read_line(r, text, err))
            return false;
        text += length + more;
    }
    if (r->line == 0 && !read_head("", err))
        return false;
    return finish_pane(r, err) && settle_device(r, &r->saved->defaults, err);
}

bool workspace_read(Ui *ui, const char *name, const char *text, Workspace *out, Error *err)
{
    Reader reader = { .ui = ui, .saved = out };
    char  *lines = strdup(text);
    bool   ok;

    workspace_init(out);
    out->theme = (int)ui->theme;
    out->glyphs = (int)ui->glyphs;
    out->arrangement.linked = true;
    ok = lines ? read_all(&reader, lines, err) : error_set(err, ERR_NOMEM, "not enough memory");
    free(lines);
    if (ok)
        return true;
    error_prefix(err, "%s:%d", name, reader.line > 0 ? reader.line : 1);
    workspace_free(out);
    return false;
}

/* ---- sessions by name ------------------------------------------------------ */

#define FOLDER      "sessions/"
#define LARGEST     (1 << 20) /* bytes; a session has a few thousand */

static bool path_of(const char *name, Text *out, Error *err)
{
    Text below = { 0 };
    bool ok;

    if (strchr(name, '/')) {
        text_add(out, name);
        return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for a path");
    }
    if (*name == '.' || !*name)
        return error_set(err, ERR_USAGE, "'%s' is no name for a session", name);
    text_addf(&below, FOLDER "%s", name);
    ok = place_state(text_str(&below), out, err);
    text_free(&below);
    return ok;
}

/* A plain name is a file of the state folder, one with a / a path of its own. */
static bool saving_save(Ui *ui, const char *name, Error *err)
{
    Workspace saved;
    Text  path = { 0 }, text = { 0 };
    bool  ok = workspace_take(ui, &saved, err);

    if (ok)
        workspace_write(&saved, &text);
    ok = ok && path_of(name, &path, err) && place_make_folders(text_str(&path), err) &&
         (text_ok(&text) || error_set(err, ERR_NOMEM, "not enough memory to save")) &&
         place_write(text_str(&path), text.data, text.length, err);
    workspace_free(&saved);
    text_free(&path);
    text_free(&text);
    return ok;
}

static bool read_file(const char *path, Text *out, Error *err)
{
    if (!place_read(path, LARGEST, out, err))
        return false;
    return (strlen(text_str(out)) == out->length && out->length < LARGEST) ||
           error_set(err, ERR_FILE, "%s:1: not a saved session: it is no text", path);
}

/* Messages use the name without its folder. */
static bool show_text(Ui *ui, const char *name, const char *text, const char *input,
                      const InputChoice *choice, Error *err)
{
    const char *slash = strrchr(name, '/');
    Workspace       saved;
    bool        ok;

    name = slash ? slash + 1 : name;
    if (!workspace_read(ui, name, text, &saved, err))
        return false;
    ok = workspace_show(ui, &saved, input, input ? choice : NULL, err) ||
         (input ? false : error_prefix(err, "%s:%d", name, saved.input_line));
    workspace_free(&saved);
    return ok;
}

/* Of saving_names: all of them in one line. */
static void add_session_name(void *names, const char *name)
{
    text_addf(names, "%s%s", ((Text *)names)->length ? "  " : "", name);
}

/* Unknown session name: lists the saved ones. */
static bool check_saved(const char *name, const char *path, Error *err)
{
    Text names = { 0 };

    if (strchr(name, '/') || access(path, F_OK) == 0)
        return true;
    saving_names(add_session_name, &names);
    if (names.length)
        error_set(err, ERR_FILE, "no session is saved as '%.60s'; saved: %.300s", name,
                  text_str(&names));
    else
        error_set(err, ERR_FILE, "no session is saved as '%.60s', nor any other; Ctrl-S saves one",
                  name);
    text_free(&names);
    return false;
}

bool saving_restore(Ui *ui, const char *name, const char *input, const InputChoice *choice,
                    Error *err)
{
    Text path = { 0 }, text = { 0 };
    bool ok = path_of(name, &path, err) && check_saved(name, text_str(&path), err) &&
              read_file(text_str(&path), &text, err) &&
              show_text(ui, name, text_str(&text), input, choice, err);

    if (ok)
        snprintf(ui->session_name, sizeof(ui->session_name), "%.250s", name);
    text_free(&path);
    text_free(&text);
    return ok;
}

const char *saving_behind(const Ui *ui)
{
    return ui->screen == SCREEN_BROWSE && ui->compare.count ? "; 2 shows its panes" : "";
}

bool saving_keep(Ui *ui, Error *err)
{
    return ui->compare.count == 0 || saving_save(ui, SAVING_LAST, err);
}

void saving_names(void (*each)(void *context, const char *name), void *context)
{
    Text           path = { 0 };
    DIR           *folder = place_state(FOLDER, &path, NULL) ? opendir(text_str(&path)) : NULL;
    struct dirent *entry;

    while (folder && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            each(context, entry->d_name);
    if (folder)
        closedir(folder);
    text_free(&path);
}

/* ---- what is typed ---------------------------------------------------------- */

void saving_typed_save(Ui *ui, const char *name)
{
    Error err = ERROR_INIT;
    Text  quoted = { 0 };

    if (!*name)
        name = ui->session_name[0] ? ui->session_name : SAVING_LAST;
    if (!saving_save(ui, name, &err)) {
        ui_say(ui, ROLE_ERROR, "not saved: %s", err.text);
        return;
    }
    if (name != ui->session_name)
        snprintf(ui->session_name, sizeof(ui->session_name), "%.250s", name);
    word_quote(&quoted, name);
    ui_say(ui, ROLE_GOOD, "saved: %s%s  (attnscope --session %s)", name,
           lessons_docked(ui) ? ", the panes without the lesson" : "", text_str(&quoted));
    text_free(&quoted);
}

void saving_typed_restore(Ui *ui, const char *name)
{
    Error err = ERROR_INIT;

    if (!*name)
        name = SAVING_LAST;
    if (!saving_restore(ui, name, NULL, NULL, &err))
        ui_say(ui, ROLE_ERROR, "%s; nothing was changed", err.text);
    else if (!ui->message[0])
        ui_say(ui, ROLE_GOOD, "restored: %s  (u goes back)%s", name, saving_behind(ui));
}

/* Opens the prompt with the word only, so that no name must be deleted first; `alone`: the name
 * that Enter takes without one. */
static void ask_name(Ui *ui, const char *word, const char *alone)
{
    Prompt *p = &ui->prompt;
    Text    names = { 0 };

    ui_prompt(ui, word);
    saving_names(add_session_name, &names);
    snprintf(p->choices, sizeof(p->choices), "Enter alone: %.100s%s%.300s", alone,
             names.length ? "   saved: " : "", text_str(&names));
    text_free(&names);
}

void action_save(Ui *ui)
{
    ask_name(ui, "save ", ui->session_name[0] ? ui->session_name : SAVING_LAST);
}

void action_restore(Ui *ui)
{
    ask_name(ui, "restore ", SAVING_LAST);
}
