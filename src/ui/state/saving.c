/* saving.c -- see saving.h. */
#include "ui/state/saving.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/program.h"
#include "ui/shell/actions.h"
#include "ui/state/saved.h"

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
    Saved saved;
    Text  path = { 0 }, text = { 0 };
    bool  ok = saved_take(ui, &saved, err);

    if (ok)
        saved_write(&saved, &text);
    ok = ok && path_of(name, &path, err) && place_make_folders(text_str(&path), err) &&
         (text_ok(&text) || error_set(err, ERR_NOMEM, "not enough memory to save")) &&
         file_write(text_str(&path), text.data, text.length, err);
    saved_free(&saved);
    text_free(&path);
    text_free(&text);
    return ok;
}

static bool read_file(const char *path, Text *out, Error *err)
{
    if (!file_read(path, LARGEST, out, err))
        return false;
    return (strlen(text_str(out)) == out->length && out->length < LARGEST) ||
           error_set(err, ERR_FILE, "%s:1: not a saved session: it is no text", path);
}

/* Its name is said, not where it lies, where the name is enough. */
static bool show(Ui *ui, const char *name, const char *text, const char *input,
                 const InputChoice *choice, Error *err)
{
    const char *slash = strrchr(name, '/');
    Saved       saved;
    bool        ok;

    name = slash ? slash + 1 : name;
    if (!saved_read(ui, name, text, &saved, err))
        return false;
    ok = saved_show(ui, &saved, input, input ? choice : NULL, err) ||
         (input ? false : error_prefix(err, "%s:%d", name, saved.input_line));
    saved_free(&saved);
    return ok;
}

/* Of saving_names: all of them in one line. */
static void add_name(void *names, const char *name)
{
    text_addf(names, "%s%s", ((Text *)names)->length ? "  " : "", name);
}

/* Of a name that was never saved: those that were. */
static bool check_saved(const char *name, const char *path, Error *err)
{
    Text names = { 0 };

    if (strchr(name, '/') || access(path, F_OK) == 0)
        return true;
    saving_names(add_name, &names);
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
              show(ui, name, text_str(&text), input, choice, err);

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

    if (!*name)
        name = ui->session_name[0] ? ui->session_name : SAVING_LAST;
    if (!saving_save(ui, name, &err)) {
        ui_say(ui, ROLE_ERROR, "not saved: %s", err.text);
        return;
    }
    if (name != ui->session_name)
        snprintf(ui->session_name, sizeof(ui->session_name), "%.250s", name);
    ui_say(ui, ROLE_GOOD, "saved: %s  (attnscope --session %s)", name, name);
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

/* The line with its word only, so that a name is typed and not put behind another; `alone`
 * is the name that Enter takes without one. */
static void ask_name(Ui *ui, const char *word, const char *alone)
{
    Prompt *p = &ui->prompt;
    Text    names = { 0 };

    prompt_open(ui, PROMPT_COMMAND);
    field_set(&p->field, word);
    saving_names(add_name, &names);
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
