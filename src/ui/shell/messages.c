/* messages.c -- see messages.h. */
#include "ui/shell/messages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "app/program.h"
#include "ui/shell/actions.h"

#define KEPT "messages.log"
#define LOG_MOST 200000 /* bytes; then the older half goes */

static void forget_older(Text *log)
{
    const char *half = log->data + log->length / 2, *line = strchr(half, '\n');
    size_t      kept = line ? log->length - (size_t)(line + 1 - log->data) : 0;

    memmove(log->data, log->data + log->length - kept, kept);
    log->data[kept] = '\0';
    log->length = kept;
}

void messages_add(Ui *ui)
{
    time_t    now = time(NULL);
    struct tm parts;
    char      when[16] = "";

    if (localtime_r(&now, &parts))
        strftime(when, sizeof(when), "%H:%M:%S  ", &parts);
    if (ui->log.length > LOG_MOST)
        forget_older(&ui->log);
    text_addf(&ui->log, "%s%s%s\n", when,
              ui->message_role == ROLE_ERROR  ? "error: "
              : ui->message_role == ROLE_WARN ? "note: "
                                              : "",
              ui->message);
}


/* ---- kept ------------------------------------------------------------------- */

static bool append(const char *path, const Text *text, Error *err)
{
    FILE *file = fopen(path, "ab");
    bool  ok;

    if (!file)
        return error_set(err, ERR_FILE, "%s: cannot be written: %s", path, strerror(errno));
    ok = fwrite(text->data, 1, text->length, file) == text->length;
    ok = fclose(file) == 0 && ok;
    return ok || error_set(err, ERR_FILE, "%s: writing failed: %s", path, strerror(errno));
}

bool messages_keep(Ui *ui, Error *err)
{
    time_t    now = time(NULL);
    struct tm parts;
    char      day[32] = "";
    Text      path = { 0 }, text = { 0 };
    bool      ok;

    if (!ui->keep_messages || !ui->log.length)
        return true;
    if (localtime_r(&now, &parts))
        strftime(day, sizeof(day), "%Y-%m-%d %H:%M", &parts);
    text_addf(&text, "-- attnscope " ATTNSCOPE_VERSION ", left %s\n%s", day, text_str(&ui->log));
    ok = place_state(KEPT, &path, err) && place_make_folders(text_str(&path), err) &&
         (text_ok(&text) || error_set(err, ERR_NOMEM, "not enough memory")) &&
         append(text_str(&path), &text, err);
    text_free(&path);
    text_free(&text);
    return ok;
}

/* ---- seen ------------------------------------------------------------------- */

void action_messages(Ui *ui)
{
    pager_open(ui, "Messages", ui->log.length ? text_str(&ui->log) : "no messages yet\n", true);
}

void messages_typed(Ui *ui, const char *rest)
{
    Error err = ERROR_INIT;

    if (!strcmp(rest, "keep") || !strcmp(rest, "drop")) {
        ui->keep_messages = *rest == 'k';
        ui_say(ui, ROLE_DIM, ui->keep_messages ? "messages go to the state folder on leaving"
                                               : "messages are dropped on leaving");
    } else if (file_write(rest, text_str(&ui->log), ui->log.length, &err)) {
        ui_say(ui, ROLE_GOOD, "written: %s", rest);
    } else {
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    }
}
