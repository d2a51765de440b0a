/* record.c -- the life of a Record; see record.h.
 *
 * A record owns what its comments say it owns and nothing else, so it outlives
 * the run, the spec and the arena it was taken from.
 */
#include "profile/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void record_free(Record *record)
{
    free(record->params);
    free(record->tensors);
    free(record->figures);
    free(record->time.samples);
    free(record->stages);
    free(record->timeline);
    device_profile_free(record->gpu);
    free(record->warnings);
    *record = (Record){ 0 };
}

/* A copy of `size` bytes in *to; NULL stays NULL.  False: no memory. */
static bool duplicate(void *to, const void *from, size_t size)
{
    void *copy = NULL;

    if (from && size) {
        copy = malloc(size);
        if (copy)
            memcpy(copy, from, size);
    }
    memcpy(to, &copy, sizeof(copy));
    return copy || !from || !size;
}

static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

bool record_copy(Record *to, const Record *from, Error *err)
{
    bool ok;

    *to = *from;
    ok = duplicate(&to->params, from->params, text_size(from->params));
    ok = duplicate(&to->tensors, from->tensors, text_size(from->tensors)) && ok;
    ok = duplicate(&to->figures, from->figures, text_size(from->figures)) && ok;
    ok = duplicate(&to->time.samples, from->time.samples,
                   (size_t)from->time.count * sizeof(*from->time.samples)) && ok;
    ok = duplicate(&to->stages, from->stages,
                   (size_t)from->stage_count * sizeof(*from->stages)) && ok;
    ok = duplicate(&to->timeline, from->timeline, sizeof(*from->timeline)) && ok;
    to->gpu = from->gpu ? device_profile_copy(from->gpu) : NULL;
    ok = (to->gpu || !from->gpu) && ok;
    ok = duplicate(&to->warnings, from->warnings, text_size(from->warnings)) && ok;
    if (ok)
        return true;
    record_free(to);
    return error_set(err, ERR_NOMEM, "not enough memory to keep the record of %s",
                     from->mechanism);
}

const char *record_status_name(RecordStatus status)
{
    switch (status) {
    case RECORD_OK: return "OK";
    case RECORD_OOM: return "OOM";
    case RECORD_UNSUPPORTED: return "UNSUPPORTED";
    case RECORD_CANCELLED: return "CANCELLED";
    case RECORD_FAILED: return "FAILED";
    }
    return "?";
}

/* A run refuses a combination (no causal form, a position it cannot take) as
 * usage: in a table of many points that is "not supported here". */
RecordStatus record_status_of(ErrorCode code)
{
    switch (code) {
    case ERR_NONE: return RECORD_OK;
    case ERR_NOMEM: return RECORD_OOM;
    case ERR_CANCELLED: return RECORD_CANCELLED;
    case ERR_USAGE:
    case ERR_UNSUPPORTED: return RECORD_UNSUPPORTED;
    default: return RECORD_FAILED;
    }
}

void record_warn(Record *record, const char *fmt, ...)
{
    char    line[400];
    va_list args;
    size_t  before = record->warnings ? strlen(record->warnings) : 0, more;
    char   *grown;

    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    more = strlen(line);
    grown = realloc(record->warnings, before + more + 2);
    if (!grown)
        return;
    memcpy(grown + before, line, more);
    memcpy(grown + before + more, "\n", 2);
    record->warnings = grown;
}
