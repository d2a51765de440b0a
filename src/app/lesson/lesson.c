/* lesson.c -- lessons opened and closed, and the calls their words make; see lesson.h. */
#include "app/lesson/lesson.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command_parts.h"
#include "app/session/inputs.h"
#include "app/session/internal.h"

#define LARGEST (1 << 20) /* bytes; a lesson has a few thousand */
#define USUAL_INPUT "synthetic:normal"

void session_on_lessons(Session *s, const LessonReader *reader)
{
    s->lessons = reader;
}

bool session_lessons_on(Session *s, const char *device, const char *precision, Error *err)
{
    Request place = REQUEST_INIT;

    if (!request_device(s, &place, device, precision, err))
        return false;
    memcpy(s->lesson_device, place.device, sizeof(s->lesson_device));
    memcpy(s->lesson_precision, place.precision, sizeof(s->lesson_precision));
    return true;
}

/* ---- opening --------------------------------------------------------------------- */

static bool read_file(const char *path, Text *out, Error *err)
{
    if (!file_read(path, LARGEST, out, err))
        return false;
    return out->length <= LARGEST ||
           error_set(err, ERR_FILE, "%s: more than 1 MiB, so it is no lesson", path);
}

static Lesson *lesson_read(Session *s, const LessonFile *file, const char *name, const char *text,
                           size_t length, Error *err)
{
    Lesson *lesson = calloc(1, sizeof(*lesson));

    if (!lesson || !(lesson->arena = arena_new()) ||
        (file->path && !(lesson->file = strdup(file->path)))) {
        error_set(err, ERR_NOMEM, "%s: not enough memory", name);
        lesson_free(lesson);
        return NULL;
    }
    lesson->reader = s->lessons;
    snprintf(lesson->id, sizeof(lesson->id), "%s", file->id);
    if (!s->lessons->read(lesson, name, text, length, err)) {
        lesson_free(lesson);
        return NULL;
    }
    return lesson;
}

Lesson *lesson_open(Session *s, const LessonFile *file, Error *err)
{
    const char *slash = file->path ? strrchr(file->path, '/') : NULL;
    const char *name = slash ? slash + 1 : file->path ? file->path : file->id;
    Text        text = { 0 };
    Lesson     *lesson = NULL;

    if (!s->lessons)
        error_set(err, ERR_UNSUPPORTED, "this program was started without a reader of lessons");
    else if (!file->path)
        lesson = lesson_read(s, file, name, (const char *)file->bytes, file->size, err);
    else if (read_file(file->path, &text, err))
        lesson = lesson_read(s, file, name, text_str(&text), text.length, err);
    text_free(&text);
    return lesson;
}

void lesson_free(Lesson *lesson)
{
    if (!lesson)
        return;
    if (lesson->state)
        lesson->reader->close(lesson->state);
    arena_free(lesson->arena);
    free(lesson->file);
    free(lesson);
}

/* ---- calls ------------------------------------------------------------------------- */

const LessonWords *lesson_shows(const Lesson *lesson, int step)
{
    for (int i = step; i >= 0; i--)
        if (lesson->steps[i].show.count)
            return &lesson->steps[i].show;
    return NULL;
}

/* A sample of the program's, or a file beside the lesson. */
static bool find_input(Session *s, const Lesson *lesson, const char *spec, Text *out, Error *err)
{
    const char *slash = lesson->file ? strrchr(lesson->file, '/') : NULL;
    Text        path = { 0 };
    bool        there = session_input_path(s, spec, &path, err), own;

    own = there && !strcmp(text_str(&path), spec) && strncmp(spec, "synthetic:", 10) != 0;
    text_free(&path);
    if (!there)
        return false;
    if (own && slash && *spec != '/')
        text_addf(out, "%.*s/", (int)(slash - lesson->file), lesson->file);
    text_add(out, spec);
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for a path");
}

static void add_option(Call *call, OptionId id, const char *value, Text *line)
{
    call->values[id] = value;
    text_addf(line, " --%s %s", option_at(id)->flag, value);
}

/* The session's device, where the words name none; the line says it, too, so that it repeats
 * what was drawn. */
static void take_place(const Session *s, Call *call, Text *line)
{
    if (call->values[OPT_DEVICE] || !*s->lesson_device || !strcmp(s->lesson_device, "cpu"))
        return;
    add_option(call, OPT_DEVICE, s->lesson_device, line);
    if (!call->values[OPT_PRECISION] && strcmp(s->lesson_precision, "f32") != 0)
        add_option(call, OPT_PRECISION, s->lesson_precision, line);
}

bool lesson_call(Session *s, const Lesson *lesson, const LessonWords *words, LessonCall *out,
                 Error *err)
{
    Call *call = &out->call;

    *out = (LessonCall){ .line = { 0 } };
    if (!call_parse(call, words->items, words->count, err))
        return false;
    if (!call->values[OPT_INPUT]) /* never what happens to be open */
        call->values[OPT_INPUT] = USUAL_INPUT;
    if (!find_input(s, lesson, call->values[OPT_INPUT], &out->input, err))
        return false;
    call->values[OPT_INPUT] = text_str(&out->input);
    words_join(words->items, words->count, &out->line);
    take_place(s, call, &out->line);
    call->line = text_str(&out->line);
    return text_ok(&out->line) || error_set(err, ERR_NOMEM, "not enough memory for a command");
}

void lesson_call_free(LessonCall *made)
{
    text_free(&made->input);
    text_free(&made->line);
}

bool lesson_run_request(Session *s, const Lesson *lesson, const LessonRun *run, Request *out,
                        Error *err)
{
    LessonCall made;
    bool       ok = lesson_call(s, lesson, &run->words, &made, err) &&
              call_load_input(s, &made.call, err) && call_check_params(&made.call, err) &&
              call_request(s, &made.call, made.call.words[0], out, err);

    if (ok) {
        out->measure = run->measure;
        out->quality = session_input(s)->n <= LESSON_QUALITY_TO;
    }
    lesson_call_free(&made);
    return ok;
}
