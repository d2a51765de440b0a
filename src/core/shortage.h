/* core/shortage.h -- whether memory was refused, so that nothing cut short passes for whole.
 *
 * A Text, a table or a pattern row that could not grow says so to whoever asks; a library's
 * allocation has nobody who could ask.  Where the program does one thing and ends, it is enough to
 * know that a small allocation was refused at all: then no file is written and nothing is printed
 * as if it were whole.  Large allocations are not noted: their callers report them, or do without.
 */
#ifndef CORE_SHORTAGE_H
#define CORE_SHORTAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* An allocation of so many bytes was refused. */
void shortage_note(size_t bytes);
bool shortage_noted(void);
int64_t shortage_count(void); /* how many were */

/* From now on what is made after a shortage is not written: file_write and its like fail.  Not
 * for the explorer and scripts, which go on after an error. */
void shortage_forbid_output(void);
/* Called before output; false: it may be cut short, and the error says so. */
bool shortage_allows_output(Error *err);

/* Libraries read through null pointers where memory is short.  Such a fault cannot be mended here:
 * it ends the program, with the message of any other shortage and nothing written. */

/* Around a call of such a library, on its thread. */
void shortage_in_library(bool inside);
/* In a handler of the signal of a crash: ends the process with status 1 and a message, if memory
 * was refused and the thread is in such a call.  Otherwise it returns. */
void shortage_end_library(void);
/* The same message, if memory was refused at all: at an exit that a library made. */
void shortage_say_library(void);
/* Before that message this line is written; static. */
void shortage_say_first(const char *line);
/* Makes crashes do so.  Not under sanitizers, which report each crash themselves. */
void shortage_catch_crashes(void);

#endif
