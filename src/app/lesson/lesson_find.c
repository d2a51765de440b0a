/* lesson_find.c -- which lessons there are: the program's own and the user's. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/lesson/lesson.h"
#include "app/lesson/shipped.h"
#include "app/place.h"

#define ENDING ".lua"

/* "05-lsh.lua" in any folder is the lesson lsh. */
static bool id_of(const char *path, char *id, size_t size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
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

static bool add(LessonList *list, const LessonFile *file, Error *err)
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

        ok = id_of(lessons_shipped[i].name, file.id, sizeof(file.id)) && add(list, &file, err);
    }
    return ok;
}

static int is_lesson(const struct dirent *entry)
{
    char id[LESSON_NAME];

    return id_of(entry->d_name, id, sizeof(id));
}

static bool add_file(LessonList *list, const char *folder, const char *name, Error *err)
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
    return add(list, &file, err);
}

static bool add_users(LessonList *list, Error *err)
{
    struct dirent **entries = NULL;
    Text            folder = { 0 };
    int             count = -1;
    bool            ok = true;

    if (place_data("lessons", &folder, NULL))
        count = scandir(text_str(&folder), &entries, is_lesson, alphasort);
    for (int i = 0; i < count; i++) {
        ok = ok && add_file(list, text_str(&folder), entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    text_free(&folder);
    return ok;
}

bool lessons_find(LessonList *out, Error *err)
{
    *out = (LessonList){ 0 };
    if (add_shipped(out, err) && add_users(out, err))
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

static bool unknown(const LessonList *list, const char *name, Error *err)
{
    Text names = { 0 };

    for (int i = 0; i < list->count; i++)
        text_addf(&names, "%s%s", i ? ", " : "", list->files[i].id);
    error_set(err, ERR_USAGE, "there is no lesson '%.40s'; there are: %s; a file's name ends in %s",
              name, text_str(&names), ENDING);
    text_free(&names);
    return false;
}

/* Points into the list; a file of its own is put behind it. */
static const LessonFile *find(LessonList *list, const char *name, Error *err)
{
    LessonFile file = { .path = NULL };

    if (find_id(list, name))
        return find_id(list, name);
    if (!id_of(name, file.id, sizeof(file.id))) {
        unknown(list, name, err);
        return NULL;
    }
    file.path = strdup(name);
    if (!file.path) {
        error_set(err, ERR_NOMEM, "not enough memory for a path");
        return NULL;
    }
    return add(list, &file, err) ? find_id(list, file.id) : NULL;
}

Lesson *lesson_open_named(Session *s, const char *name, Error *err)
{
    LessonList        list;
    const LessonFile *file;
    Lesson           *lesson = NULL;

    if (!lessons_find(&list, err))
        return NULL;
    file = find(&list, name, err);
    if (file)
        lesson = lesson_open(s, file, err);
    lessons_free(&list);
    return lesson;
}
