/* error.c -- error values; see error.h. */
#include "core/error.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int         status;
} codes[] = {
#define ERROR_CODE(name, status, meaning) { #name, status },
#include "core/errors.def"
#undef ERROR_CODE
};

/* A message is one line, also where it repeats what a file or a person wrote. */
static void keep_one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = strchr("\t\n\v\f\r", *text) ? ' ' : '?';
}

bool error_vset(Error *err, ErrorCode code, const char *fmt, va_list args)
{
    if (!err)
        return false;
    err->code = code;
    vsnprintf(err->text, sizeof(err->text), fmt, args);
    keep_one_line(err->text);
    return false;
}

bool error_set(Error *err, ErrorCode code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    error_vset(err, code, fmt, args);
    va_end(args);
    return false;
}

bool error_prefix(Error *err, const char *fmt, ...)
{
    char    text[sizeof(err->text)];
    va_list args;
    int     length;
    size_t  at;

    if (!err)
        return false;
    memcpy(text, err->text, sizeof(text));
    va_start(args, fmt);
    length = vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    at = length < 0 ? 0 : (size_t)length;
    /* What does not fit is cut at the end: the cause matters less than the place. */
    for (const char *c = ": ", *rest = text; at + 1 < sizeof(err->text) && (*c || *rest);)
        err->text[at++] = *c ? *c++ : *rest++;
    if (at < sizeof(err->text))
        err->text[at] = '\0';
    keep_one_line(err->text);
    return false;
}

const char *error_name(ErrorCode code)
{
    return codes[code].name;
}

ErrorCode error_named(const char *name, size_t length)
{
    for (int code = 0; code < ERR_COUNT; code++)
        if (strlen(codes[code].name) == length && !memcmp(codes[code].name, name, length))
            return (ErrorCode)code;
    return ERR_NONE;
}

int error_exit_status(ErrorCode code)
{
    return codes[code].status;
}
