/* target.h -- a parser with bytes that a stranger wrote.
 *
 * A target takes any bytes.  It ends in a value that is whole, which it reads, or in a message of
 * one line; else it aborts.  The same targets run under libFuzzer (fuzzer.c: `make fuzz`) and on
 * the files of tests/fuzz/corpus (replay.c: `make test`).
 */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include "app/session/session.h"
#include "core/error.h"

typedef void Target(const uint8_t *data, size_t size);

typedef struct NamedTarget {
    const char *name; /* also of its corpus and dictionary */
    Target     *feed;
    const char *sources; /* whose lines count as the parser's, below src, without .c */
} NamedTarget;

const NamedTarget *target_at(int index); /* NULL past the end */
const NamedTarget *target_named(const char *name); /* NULL: none */

#define X(name, sources) Target feed_##name;
#include "targets.def"
#undef X

/* ---- what targets share ------------------------------------------------------- */

/* A message is of one line and not empty. */
void target_message(const Error *err);
/* Aborts with the words unless it holds. */
void target_assert(bool holds, const char *what);

/* A session without input that reads lessons; one for all inputs of a program. */
Session *target_session(void);

/* The bytes as text that ends; the caller frees it. */
char *target_text(const uint8_t *data, size_t size);

/* The bytes as a file of no folder. */
typedef struct TargetFile {
    int  fd;
    char path[64];
} TargetFile;

TargetFile target_file(const uint8_t *data, size_t size);
void       target_file_close(TargetFile *file);

/* Runs a command of the program; its message is looked at. */
void target_command(const char *const *words, int count);

#endif
