/* lesson.c -- finds, opens and closes lessons, makes their calls, keeps progress; see lesson.h. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/model.h"
#include "app/lesson/lesson.h"
#include "app/program.h"
#include "app/session/internal.h"
#include "app/session/session.h"

#define LARGEST_LESSON (1 << 20) /* bytes; a lesson has a few thousand */
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

static bool read_lesson_file(const char *path, Text *out, Error *err)
{
    if (!place_read(path, LARGEST_LESSON, out, err))
        return false;
    return out->length <= LARGEST_LESSON ||
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
    for (int i = 0; i < lesson->count; i++)
        lesson_task_read(&lesson->steps[i]);
    return lesson;
}

Lesson *lesson_open(Session *s, const LessonFile *file, Error *err)
{
    const char *name = file->path ? path_name(file->path) : file->id;
    Text        text = { 0 };
    Lesson     *lesson = NULL;

    if (!s->lessons)
        error_set(err, ERR_UNSUPPORTED, "this program was started without a reader of lessons");
    else if (!file->path)
        lesson = lesson_read(s, file, name, (const char *)file->bytes, file->size, err);
    else if (read_lesson_file(file->path, &text, err))
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

/* A sample of the program, or a file beside the lesson. */
static bool find_file(Session *s, const Lesson *lesson, const char *spec, Text *out, Error *err)
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

/* "model:PATH[text=FILE]", each found as find_file does. */
static bool find_model(Session *s, const Lesson *lesson, const char *spec, Text *out, Error *err)
{
    Text      path = { 0 }, text = { 0 };
    ModelSpec parts;
    bool      ok;

    if (!model_spec_parse(spec, &parts, err))
        return false;
    text_add(&path, MODEL_PREFIX);
    ok = find_file(s, lesson, parts.path, &path, err) &&
         (!parts.text.text || find_file(s, lesson, parts.text.text, &text, err));
    if (parts.text.text)
        parts.text.text = text_str(&text);
    ok = ok && model_spec_write(text_str(&path), &parts.text, out, err);
    model_spec_free(&parts);
    text_free(&path);
    text_free(&text);
    return ok;
}

static bool find_input(Session *s, const Lesson *lesson, const char *spec, Text *out, Error *err)
{
    return model_spec_is(spec) ? find_model(s, lesson, spec, out, err)
                               : find_file(s, lesson, spec, out, err);
}

static void add_option(Call *call, OptionId id, const char *value, Text *line)
{
    call->values[id] = value;
    text_addf(line, " --%s %s", option_at(id)->flag, value);
}

/* Sets the session's device where the words name none; the line names it, too, so that it repeats
 * the picture. */
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
    if (!call->values[OPT_INPUT]) /* never the input that is open */
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

/* ---- a model's loss ---------------------------------------------------------------- */

/* The call of the run; its model and its text may lie beside the lesson. */
static bool loss_call(Session *s, const Lesson *lesson, const LessonRun *run, Call *call,
                      Text paths[2], Error *err)
{
    if (!call_parse(call, run->words.items, run->words.count, err))
        return false;
    if (call->word_count != 1 || call->swap_count != 1 || call->text_count != 1)
        return error_set(err, ERR_USAGE, "a run of a model needs one mechanism, a model and a "
                         "text: { \"window(window=9)\", model = \"small.gguf\", text = "
                         "\"story.txt\" }");
    if (!find_file(s, lesson, call->words[0], &paths[0], err) ||
        !find_file(s, lesson, call->texts[0], &paths[1], err))
        return false;
    call->words[0] = text_str(&paths[0]);
    call->texts[0] = text_str(&paths[1]);
    return true;
}

static bool model_fits(const Model *m, Error *err)
{
    return m->file_bytes <= LESSON_MODEL_MOST ||
           error_set(err, ERR_DATA, "%.200s: the model of a lesson has %d MiB at most, because the "
                     "reader waits for it; this one has %lld", m->name, LESSON_MODEL_MOST >> 20,
                     (long long)(m->file_bytes >> 20));
}

static bool loss_of(const ModelRun *r, LessonLoss *out, Error *err)
{
    const ForwardMeasure *f = r->texts[0].result.measure;

    *out = (LessonLoss){ .n = r->texts[0].reading.tokens.count, .own = f[0].loss,
                         .loss = f[1].loss, .kl = f[1].kl, .agreement = f[1].agreement };
    return !isnan(out->loss) || error_set(err, ERR_DATA, "the model or the text has no loss: it "
                                          "needs a decoder and two tokens");
}

bool lesson_run_loss(Session *s, const Lesson *lesson, const LessonRun *run, LessonLoss *out,
                     Error *err)
{
    Call     call;
    ModelRun r = { .session = s, .call = &call };
    Text     paths[2] = { { 0 }, { 0 } };
    bool     ok;

    ok = loss_call(s, lesson, run, &call, paths, err) && model_run_open(&r, err) &&
         model_fits(r.m, err) && model_run_texts(&r, err) && loss_of(&r, out, err);
    model_run_free(&r);
    text_free(&paths[0]);
    text_free(&paths[1]);
    return ok || error_prefix(err, "runs.%s", run->name);
}

/* ---- which lessons there are --------------------------------------------- */

#define ENDING ".lua"

/* "05-lsh.lua" in any folder is the lesson "lsh". */
static bool id_of(const char *path, char *id, size_t size)
{
    const char *name = path_name(path);
    size_t      length = strlen(name), digits = strspn(name, "0123456789");

    if (length <= strlen(ENDING) || strcmp(name + length - strlen(ENDING), ENDING) != 0 ||
        *name == '.')
        return false;
    length -= strlen(ENDING);
    if (digits && digits + 1 < length && name[digits] == '-') {
        name += digits + 1;
        length -= digits + 1;
    }
    if (length >= size || memchr(name, ' ', length))
        return false;
    snprintf(id, size, "%.*s", (int)length, name);
    return true;
}

static LessonFile *find_id(LessonList *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (!strcmp(name, list->files[i].id))
            return &list->files[i];
    return NULL;
}

static bool add_lesson(LessonList *list, const LessonFile *file, Error *err)
{
    LessonFile *files, *old = find_id(list, file->id);

    if (old) {
        free(old->path);
        *old = *file;
        return true;
    }
    files = realloc(list->files, (size_t)(list->count + 1) * sizeof(*files));
    if (!files) {
        free(file->path);
        return error_set(err, ERR_NOMEM, "not enough memory for the list of lessons");
    }
    list->files = files;
    list->files[list->count++] = *file;
    return true;
}

static bool add_shipped(LessonList *list, Error *err)
{
    bool ok = true;

    for (size_t i = 0; ok && lessons_shipped[i].name; i++) {
        LessonFile file = { .bytes = lessons_shipped[i].bytes, .size = lessons_shipped[i].size };

        ok = id_of(lessons_shipped[i].name, file.id, sizeof(file.id)) &&
             add_lesson(list, &file, err);
    }
    return ok;
}

int lesson_place(const char *id)
{
    char name[LESSON_NAME];

    for (int i = 0; id && lessons_shipped[i].name; i++)
        if (id_of(lessons_shipped[i].name, name, sizeof(name)) && !strcmp(name, id))
            return i + 1;
    return 0;
}

void lesson_reference(const char *id, Text *out)
{
    int number = lesson_place(id);

    if (number)
        text_addf(out, "lesson    %s (%d): attnscope lesson %s\n", id, number, id);
}

static int is_lesson(const struct dirent *entry)
{
    char id[LESSON_NAME];

    return id_of(entry->d_name, id, sizeof(id));
}

static bool add_lesson_file(LessonList *list, const char *folder, const char *name, Error *err)
{
    LessonFile file = { .path = NULL };
    Text       path = { 0 };

    text_addf(&path, "%s/%s", folder, name);
    file.path = path.data;
    if (!text_ok(&path)) {
        text_free(&path);
        return error_set(err, ERR_NOMEM, "not enough memory for a path");
    }
    id_of(name, file.id, sizeof(file.id));
    return add_lesson(list, &file, err);
}

/* No such folder holds no lesson. */
static bool add_folder(LessonList *list, const char *folder, Error *err)
{
    struct dirent **entries = NULL;
    int             count = scandir(folder, &entries, is_lesson, alphasort);
    bool            ok = true;

    for (int i = 0; i < count; i++) {
        ok = ok && add_lesson_file(list, folder, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    return ok;
}

/* The folders of the machine, from the last to the first, which counts most; then the user's. */
static bool add_folders(LessonList *list, Error *err)
{
    Text folder = { 0 };
    bool ok = true;

    for (int i = place_data_shared_count(); ok && i-- > 0; text_clear(&folder))
        if (place_data_shared("lessons", i, &folder, NULL))
            ok = add_folder(list, text_str(&folder), err);
    text_clear(&folder);
    if (ok && place_data("lessons", &folder, NULL))
        ok = add_folder(list, text_str(&folder), err);
    text_free(&folder);
    return ok;
}

bool lessons_find(LessonList *out, Error *err)
{
    *out = (LessonList){ 0 };
    if (add_shipped(out, err) && add_folders(out, err))
        return true;
    lessons_free(out);
    return false;
}

void lessons_free(LessonList *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->files[i].path);
    free(list->files);
    *list = (LessonList){ 0 };
}

/* ---- by name ------------------------------------------------------------------------ */

int lesson_ordinal(const char *name, int count)
{
    char *end;
    long  number = strtol(name, &end, 10);

    return !*end && isdigit((unsigned char)*name) && number >= 1 && number <= count ? (int)number
                                                                                   : 0;
}

/* NULL: no such number. */
static LessonFile *find_number(LessonList *list, const char *name)
{
    int number = lesson_ordinal(name, list->count);

    return number ? &list->files[number - 1] : NULL;
}

static bool unknown(const LessonList *list, const char *name, Error *err)
{
    Text names = { 0 };

    for (int i = 0; i < list->count; i++)
        text_addf(&names, "%s%s", i ? ", " : "", list->files[i].id);
    error_set(err, ERR_USAGE, "there is no lesson '%.40s'; there are: %s; or a number from 1 to "
              "%d; a file's name ends in %s", name, text_str(&names), list->count, ENDING);
    text_free(&names);
    return false;
}

/* The file of this name, number or path; a path is added to the list. */
static const LessonFile *find_lesson(LessonList *list, const char *name, Error *err)
{
    LessonFile file = { .path = NULL };

    if (find_id(list, name))
        return find_id(list, name);
    if (find_number(list, name))
        return find_number(list, name);
    if (!id_of(name, file.id, sizeof(file.id))) {
        unknown(list, name, err);
        return NULL;
    }
    file.path = strdup(name);
    if (!file.path) {
        error_set(err, ERR_NOMEM, "not enough memory for a path");
        return NULL;
    }
    return add_lesson(list, &file, err) ? find_id(list, file.id) : NULL;
}

Lesson *lesson_open_named(Session *s, const char *name, Error *err)
{
    LessonList        list;
    const LessonFile *file;
    Lesson           *lesson = NULL;

    if (!lessons_find(&list, err))
        return NULL;
    file = find_lesson(&list, name, err);
    if (file)
        lesson = lesson_open(s, file, err);
    lessons_free(&list);
    return lesson;
}

/* ---- progress ------------------------------------------------------------ */

#define HEAD    "attnscope lessons 1"
#define NAME    "lessons"
#define LARGEST_PROGRESS (1 << 18)

/* A step's number from 1; 0: it is none. */
static int step_number(const char *word, char **end)
{
    long number;

    errno = 0;
    number = strtol(word, end, 10);
    return *end == word || errno || number < 1 || number > LESSON_STEPS_MOST ? 0 : (int)number;
}

/* "lsh 3 1 2": left at step 3, steps 1 and 2 done. */
static bool parse_progress_line(const char *line, LessonProgress *out)
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

static LessonProgress *find_progress(Progress *progress, const char *id)
{
    for (int i = 0; i < progress->count; i++)
        if (!strcmp(id, progress->items[i].id))
            return &progress->items[i];
    return NULL;
}

void progress_put(Progress *progress, const LessonProgress *item)
{
    LessonProgress *old = find_progress(progress, item->id);

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
        if (length < sizeof(line) && parse_progress_line(line, &item))
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

void progress_read(Progress *out)
{
    Text path = { 0 }, text = { 0 };

    *out = (Progress){ .count = 0 };
    if (place_state(NAME, &path, NULL) &&
        place_read(text_str(&path), LARGEST_PROGRESS, &text, NULL))
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
         place_write(text_str(&path), text.data, text.length, err);
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
