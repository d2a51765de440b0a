/* test_input_mapped.c -- a file that becomes shorter while it is mapped. */
#include <signal.h>

#include "input/store.h"
#include "input_fixture.h"

#define PAGES 8

static void file_of_pages(char *path, size_t size)
{
    int file;

    snprintf(path, size, "/tmp/attnscope-mapped-XXXXXX");
    file = mkstemp(path);
    assert_true(file >= 0);
    for (int i = 0; i < PAGES * 4096; i++)
        assert_int_equal(write(file, "x", 1), 1);
    close(file);
}

TEST(a_file_that_is_whole_is_whole)
{
    char   path[64];
    Mapped bytes;
    Error  err = ERROR_INIT;

    file_of_pages(path, sizeof(path));
    assert_true(mapped_open(path, &bytes, &err));
    assert_int_equal(bytes.data[PAGES * 4096 - 1], 'x');
    assert_true(mapped_whole(&err));
    mapped_close(&bytes);
    unlink(path);
}

TEST(a_file_that_becomes_shorter_reads_as_zeros_and_is_an_error)
{
    char   path[64];
    Mapped bytes, other;
    Error  err = ERROR_INIT;

    file_of_pages(path, sizeof(path));
    assert_true(mapped_open(path, &bytes, &err));
    assert_int_equal(truncate(path, 4096), 0);
    assert_true(mapped_whole(&err)); /* nothing that is lost was read */
    assert_int_equal(bytes.data[4095], 'x');
    assert_int_equal(bytes.data[2 * 4096 + 5], 0);
    assert_int_equal(bytes.data[PAGES * 4096 - 1], 0);
    assert_false(mapped_whole(&err));
    assert_int_equal(err.code, ERR_FILE);
    assert_non_null(strstr(err.text, "became shorter"));
    mapped_close(&bytes);
    assert_true(mapped_whole(&err));
    assert_true(mapped_open(path, &other, &err)); /* another file in its place */
    assert_true(mapped_whole(&err));
    mapped_close(&other);
    unlink(path);
}

static volatile sig_atomic_t heard;

static void hear(int number)
{
    (void)number;
    heard = 1;
}

TEST(a_bus_error_elsewhere_goes_to_who_was_there_before)
{
    struct sigaction other = { .sa_handler = hear };
    char             path[64];
    Mapped           bytes;
    Error            err = ERROR_INIT;

    file_of_pages(path, sizeof(path));
    sigaction(SIGBUS, &other, NULL);
    assert_true(mapped_open(path, &bytes, &err));
    raise(SIGBUS);
    assert_int_equal(heard, 1);
    mapped_close(&bytes);
    unlink(path);
}

SUITE(NULL, NULL)
