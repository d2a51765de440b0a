/* test_program.c -- files that the program finds by itself: what is no regular file is not waited
 * for. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/program.h"
#include "check.h"

static const char *in_folder(const char *name)
{
    static char folder[] = "/tmp/attnscope-program-XXXXXX", path[128];
    static bool made;

    if (!made)
        assert_non_null(mkdtemp(folder));
    made = true;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void is_refused(const char *path, const char *what)
{
    Error err = ERROR_INIT;
    Text  text = { 0 };

    assert_false(place_read(path, 100, &text, &err));
    assert_non_null(strstr(err.text, what));
    err = ERROR_INIT;
    assert_false(place_write(path, "a", 1, &err));
    assert_non_null(strstr(err.text, what));
    err = ERROR_INIT;
    assert_int_equal(place_append(path, &err), -1);
    assert_non_null(strstr(err.text, what));
    err = ERROR_INIT;
    assert_false(place_is_file(path, &err));
    assert_non_null(strstr(err.text, what));
    text_free(&text);
}

TEST(a_named_pipe_is_neither_read_nor_written)
{
    const char *path = in_folder("pipe");

    assert_int_equal(mkfifo(path, 0600), 0);
    is_refused(path, "is a named pipe");
    unlink(path);
}

TEST(a_link_to_a_device_is_neither_read_nor_written)
{
    const char *path = in_folder("device");

    assert_int_equal(symlink("/dev/zero", path), 0);
    is_refused(path, "is a device");
    unlink(path);
    assert_int_equal(symlink("/dev/tty", path), 0);
    is_refused(path, "is a device");
    unlink(path);
}

TEST(a_regular_file_is_written_added_to_and_read)
{
    const char *path = in_folder("file");
    Error       err = ERROR_INIT;
    Text        text = { 0 };
    int         end;

    assert_true(place_is_file(path, &err)); /* there is none yet */
    assert_false(place_read(path, 100, &text, &err));
    assert_true(place_write(path, "ab", 2, &err));
    end = place_append(path, &err);
    assert_true(end >= 0);
    assert_int_equal(write(end, "c", 1), 1);
    close(end);
    assert_true(place_read(path, 100, &text, &err));
    assert_string_equal(text_str(&text), "abc");
    text_free(&text);
    unlink(path);
}

/* What a shell that runs `code` leaves as its reason. */
static void expect_reason(const char *code, const char *reason)
{
    char       *words[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char *)(uintptr_t)code, NULL };
    ChildWatch  watch = { .program = "/bin/sh" };
    Child       child = { 0 };
    Error       err = ERROR_INIT;
    Text        output = { 0 };
    char        text[48];

    CHECK(child_run(&child, words, &watch, &output, &err), "%s", err.text);
    child_reason(&child, text, sizeof(text));
    CHECK(!strcmp(text, reason), "%s: '%s'", code, text);
    child_end(&child);
    text_free(&output);
}

TEST(a_child_gives_its_last_message_as_the_reason)
{
    expect_reason("echo attnscope: no such file >&2; exit 2", "no such file");
    expect_reason("echo attnscope: first >&2; echo attnscope: last >&2; exit 2", "last");
    expect_reason("printf 'other words\\n\\n\\n' >&2; exit 2", "other words");
    expect_reason("echo 0123456789abcdef0123456789abcdef0123456789abcdef >&2",
                  "0123456789abcdef0123456789abcdef0123456789abcde");
}

/* The code that a shell which runs `code` names. */
static void expect_code(const char *code, ErrorCode expected)
{
    char       *words[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char *)(uintptr_t)code, NULL };
    ChildWatch  watch = { .program = "/bin/sh" };
    Child       child = { 0 };
    Error       err = ERROR_INIT;
    Text        output = { 0 };
    ErrorCode   found;

    CHECK(child_run(&child, words, &watch, &output, &err), "%s", err.text);
    found = child_error(&child);
    CHECK(found == expected, "%s: %s", code, error_name(found));
    child_end(&child);
    text_free(&output);
}

TEST(a_child_names_the_code_of_its_last_error)
{
    expect_code("echo attnscope: error NOMEM >&2; echo attnscope: words >&2; exit 1", ERR_NOMEM);
    expect_code("echo attnscope: error DATA >&2; echo attnscope: error PARAM >&2", ERR_PARAM);
    expect_code("yes 0123456789 | head -n 1000 >&2; echo attnscope: error FILE >&2", ERR_FILE);
    expect_code("echo attnscope: not enough memory >&2; exit 1", ERR_NONE);
    expect_code("echo x attnscope: error NOMEM >&2", ERR_NONE);
    expect_code("echo attnscope: error NOMEMORY >&2", ERR_NONE);
    expect_code("echo attnscope: error >&2", ERR_NONE);
    expect_code("exit 1", ERR_NONE);
}

TEST(a_child_that_writes_without_end_is_ended)
{
    expect_reason("exec yes", "its process wrote more than 64 MiB");
    expect_reason("exec yes >&2", "its process wrote more than 64 MiB");
}

static bool at_once(void *context)
{
    (void)context;
    return true;
}

/* They would keep the pipe open for a minute. */
TEST(processes_of_a_child_end_with_it)
{
    char       *words[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "sleep 60; :" }, NULL };
    ChildWatch  watch = { .program = "/bin/sh", .stopped = at_once };
    Child       child = { 0 };
    Error       err = ERROR_INIT;
    Text        output = { 0 };

    CHECK(child_run(&child, words, &watch, &output, &err), "%s", err.text);
    assert_true(child.stopped);
    CHECK(child.seconds < 30, "%.1f s", child.seconds);
    child_end(&child);
    text_free(&output);
}

static bool forked;

static void on_fork(void)
{
    forked = true;
}

/* OpenBLAS has one, which may wait for ever. */
TEST(no_handler_of_fork_runs_for_a_child)
{
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    assert_int_equal(pthread_atfork(on_fork, NULL, NULL), 0);
    expect_code("exit 0", ERR_NONE);
    assert_false(forked);
}

SUITE(NULL, NULL)
