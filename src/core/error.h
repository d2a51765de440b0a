/* core/error.h -- how a failure is reported.
 *
 * Fallible functions return bool and take `Error *` last.  The text says what
 * went wrong, where, the offending value, and what to do about it.  Nothing
 * below cli/, ui/ and script/ prints an error or exits.
 */
#ifndef CORE_ERROR_H
#define CORE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum ErrorCode {
#define ERROR_CODE(name, status, meaning) ERR_##name,
#include "core/errors.def"
#undef ERROR_CODE
    ERR_COUNT
} ErrorCode;

typedef struct Error {
    ErrorCode code;
    char      text[512]; /* one line, no trailing newline */
} Error;

#define ERROR_INIT ((Error){ .code = ERR_NONE })

/* Sets *err (which may be NULL) and returns false, so that a failing function
 * can end with `return error_set(...)`. */
bool error_set(Error *err, ErrorCode code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool error_vset(Error *err, ErrorCode code, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Puts "prefix: " before the text already in *err.  Returns false. */
bool error_prefix(Error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

const char *error_name(ErrorCode code);        /* "PARAM"; static */
ErrorCode   error_named(const char *name, size_t length); /* ERR_NONE: no code has this name */
int         error_exit_status(ErrorCode code); /* process exit status */

#endif
