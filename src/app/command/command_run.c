/* command_run.c -- run one mechanism: numbers on the screen, JSON, dumps. */
#include "app/command/command_parts.h"

#include <string.h>
#include <unistd.h>

/* What a dumped view may take when --mem does not say: half of the memory. */
static int64_t default_limit(void)
{
    return (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE) / 2;
}

static bool check_run(const Result *result, Error *err)
{
    if (result->run->err.code == ERR_NONE)
        return true;
    *err = result->run->err;
    return false;
}

static void write_result(const Result *result, const Call *call, Text *out)
{
    Json json = jsonw_to(out);

    if (!call->values[OPT_JSON]) {
        record_text(&result->record, out);
        return;
    }
    record_json(&result->record, &json);
    text_add(out, "\n");
}

static bool dump(const Result *result, const char *folder, int64_t limit, Error *err)
{
    Text refused = { 0 };
    bool ok = dump_result(result, folder, limit, &refused, err);

    if (ok && refused.length)
        ok = error_set(err, ERR_NOMEM, "%s: written, but without: %.400s", folder,
                       text_str(&refused));
    text_free(&refused);
    return ok;
}

bool command_run_mechanism(Session *s, const Call *call, Text *out, Error *err)
{
    const char *cell = call->values[OPT_CELL];
    Request     request;
    Result     *result;
    bool        ok;

    if (call->word_count != 1)
        return error_set(err, ERR_USAGE, "run needs a mechanism (attnscope list shows them)");
    if (!call_load_input(s, call, err) ||
        !call_request(s, call, call->words[0], &request, err) ||
        !call_refuse_stack(call, &request, err))
        return false;
    /* A dump wants the values, and only those: no second, timed run. */
    request.measure = (!call->values[OPT_DUMP] && !cell) || request.repeat > 0;
    request.quality = call->values[OPT_QUALITY] || request.seeds > 1;
    if (!request.memory_limit)
        request.memory_limit = default_limit();
    /* Before the run: it may take long. */
    result = call->values[OPT_DUMP] && !dump_folder(call->values[OPT_DUMP], err)
                 ? NULL
                 : session_run(s, &request, err);
    ok = result != NULL;
    if (ok && !cell && (call->values[OPT_JSON] || result->run->err.code == ERR_NONE))
        write_result(result, call, out);
    ok = ok && check_run(result, err);
    ok = ok && (!cell || cell_write(result, cell, call->values[OPT_JSON] != NULL, out, err));
    if (ok && call->values[OPT_DUMP])
        ok = dump(result, call->values[OPT_DUMP], request.memory_limit, err);
    result_release(result);
    request_free(&request);
    return ok;
}
