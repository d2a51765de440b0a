/* lesson_progress.c -- see lesson_progress.h. */
#include "app/lesson/lesson_progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/place.h"

#define HEAD    "attnscope lessons 1"
#define NAME    "lessons"
#define LARGEST (1 << 18)

/* ---- text --------------------------------------------------------------------------- */

/* A step's number from 1; 0: it is none. */
static int step_number(const char *word, char **end)
{
    long number;

    errno = 0;
    number = strtol(word, end, 10);
    return *end == word || errno || number < 1 || number > LESSON_STEPS_MOST ? 0 : (int)number;
}

/* "lsh 3 1 2": left at step 3, steps 1 and 2 done. */
static bool parse_line(const char *line, LessonProgress *out)
{
    size_t length = strcspn(line, " ");
    char  *end;
    int    step;

    *out = (LessonProgress){ .at = 0 };
    if (!length || length >= sizeof(out->id))
        return false;
    memcpy(out->id, line, length);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x21 || line[i] == 0x7f)
            return false;
    step = step_number(line + length, &end);
    out->at = step - 1;
    while (step && end[strspn(end, " \r")]) {
        step = step_number(end, &end);
        out->done |= step ? UINT32_C(1) << (step - 1) : 0;
    }
    return step > 0;
}

static LessonProgress *find(Progress *progress, const char *id)
{
    for (int i = 0; i < progress->count; i++)
        if (!strcmp(id, progress->items[i].id))
            return &progress->items[i];
    return NULL;
}

void progress_put(Progress *progress, const LessonProgress *item)
{
    LessonProgress *old = find(progress, item->id);

    if (old)
        *old = *item;
    else if (progress->count < PROGRESS_MOST)
        progress->items[progress->count++] = *item;
}

void progress_parse(const char *text, Progress *out)
{
    LessonProgress item;
    char           line[512];

    *out = (Progress){ .count = 0 };
    if (strncmp(text, HEAD, strlen(HEAD)) != 0 || !strchr("\r\n", text[strlen(HEAD)])) {
        out->damaged = -1;
        return;
    }
    text += strcspn(text, "\n");
    while (*text) {
        size_t length = strcspn(++text, "\n");

        snprintf(line, sizeof(line), "%.*s", (int)length, text);
        text += length;
        if (!line[0] || line[0] == '#')
            continue;
        if (length < sizeof(line) && parse_line(line, &item))
            progress_put(out, &item);
        else
            out->damaged++;
    }
}

void progress_write(const Progress *progress, Text *out)
{
    text_add(out, HEAD "\n# lesson, the step it was left at, the steps that are done\n");
    for (int i = 0; i < progress->count; i++) {
        const LessonProgress *item = &progress->items[i];

        text_addf(out, "%s %d", item->id, item->at + 1);
        for (int k = 0; k < LESSON_STEPS_MOST; k++)
            if (item->done >> k & 1)
                text_addf(out, " %d", k + 1);
        text_add(out, "\n");
    }
}

/* ---- file --------------------------------------------------------------------------- */

void progress_read(Progress *out)
{
    Text path = { 0 }, text = { 0 };

    *out = (Progress){ .count = 0 };
    if (place_state(NAME, &path, NULL) && file_read(text_str(&path), LARGEST, &text, NULL))
        progress_parse(text_str(&text), out);
    text_free(&path);
    text_free(&text);
}

LessonProgress progress_of(const Progress *progress, const char *id)
{
    for (int i = 0; i < progress->count; i++)
        if (!strcmp(id, progress->items[i].id))
            return progress->items[i];
    return (LessonProgress){ .at = 0 };
}

static bool put_aside(const char *path, Error *err)
{
    Text to = { 0 };
    bool ok;

    text_addf(&to, "%s.damaged", path);
    ok = text_ok(&to) && rename(path, text_str(&to)) == 0;
    if (!ok)
        error_set(err, ERR_FILE, "%s: not a list of lessons, and it cannot be renamed: %s", path,
                  strerror(errno));
    text_free(&to);
    return ok;
}

bool progress_save(const LessonProgress *item, Error *err)
{
    Progress progress;
    Text     path = { 0 }, text = { 0 };
    bool     ok;

    progress_read(&progress);
    ok = place_state(NAME, &path, err) && place_make_folders(text_str(&path), err) &&
         (progress.damaged != -1 || put_aside(text_str(&path), err));
    progress_put(&progress, item);
    progress_write(&progress, &text);
    ok = ok && (text_ok(&text) || error_set(err, ERR_NOMEM, "not enough memory to save")) &&
         file_write(text_str(&path), text.data, text.length, err);
    text_free(&path);
    text_free(&text);
    return ok;
}

int progress_steps(const LessonProgress *item)
{
    int count = 0;

    for (uint32_t bits = item->done; bits; bits &= bits - 1)
        count++;
    return count;
}
