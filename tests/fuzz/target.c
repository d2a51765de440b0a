/* target.c -- the table of targets, and what they share; see target.h. */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "app/call.h"
#include "app/lesson/lesson.h"
#include "script/script.h"

static const NamedTarget targets[] = {
#define X(name, sources) { #name, feed_##name, sources },
#include "targets.def"
#undef X
};

const NamedTarget *target_at(int index)
{
    return index >= 0 && index < (int)(sizeof(targets) / sizeof(*targets)) ? &targets[index] : NULL;
}

const NamedTarget *target_named(const char *name)
{
    for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++)
        if (!strcmp(targets[i].name, name))
            return &targets[i];
    return NULL;
}

void target_assert(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "the target found: %s\n", what);
    abort();
}

void target_message(const Error *err)
{
    target_assert(err->code != ERR_NONE, "a failure without an error");
    target_assert(*err->text != '\0', "an error without a message");
    if (strchr(err->text, '\n'))
        fprintf(stderr, "%s\n", err->text);
    target_assert(!strchr(err->text, '\n'), "a message of two lines");
}

Session *target_session(void)
{
    static Session *session;
    Error           err = ERROR_INIT;

    if (session)
        return session;
    session = session_new(&err);
    target_assert(session, err.text);
    session_on_lessons(session, &script_lessons);
    return session;
}

char *target_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    target_assert(text, "no memory for the text");
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

TargetFile target_file(const uint8_t *data, size_t size)
{
    TargetFile file = { .fd = memfd_create("input", MFD_CLOEXEC) };

    target_assert(file.fd >= 0, "no file in memory");
    for (size_t at = 0; at < size;) {
        ssize_t wrote = write(file.fd, data + at, size - at);

        target_assert(wrote > 0, "the file in memory takes no bytes");
        at += (size_t)wrote;
    }
    snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
    return file;
}

void target_file_close(TargetFile *file)
{
    close(file->fd);
}

void target_command(const char *const *words, int count)
{
    Text  out = { 0 };
    Error err = ERROR_INIT;

    if (!command_run(target_session(), words, count, READER_FILE, 80, &out, &err))
        target_message(&err);
    text_free(&out);
}
