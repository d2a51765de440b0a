/* campaign_point.c -- one point: a process `attnscope run ... --json`, and its record. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "app/child.h"
#include "app/command/command_parts.h"
#include "app/study/campaign.h"
#include "attn/cuda/library.h"

/* ---- the command ------------------------------------------------------------ */

static bool add_word(WordList *out, Error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static bool add_word(WordList *out, Error *err, const char *fmt, ...)
{
    char   *text = NULL;
    va_list args;
    bool    ok;

    va_start(args, fmt);
    ok = vasprintf(&text, fmt, args) >= 0;
    va_end(args);
    ok = ok ? words_add(out, text, strlen(text), err)
            : error_set(err, ERR_NOMEM, "not enough memory");
    free(text);
    return ok;
}

/* The words of the command that runs it. */
static bool campaign_words(const CampaignSpec *spec, const CampaignPoint *p, WordList *out,
                           Error *err)
{
    bool ok = add_word(out, err, "attnscope") && add_word(out, err, "run") &&
              add_word(out, err, "%s", p->mechanism) &&
              add_word(out, err, "--input=%s", spec->input);

    if (spec->layer)
        ok = ok && add_word(out, err, "--layer=%lld", (long long)spec->layer);
    if (p->n)
        ok = ok && add_word(out, err, "--n=%lld", (long long)p->n);
    if (spec->d)
        ok = ok && add_word(out, err, "--d=%lld", (long long)spec->d);
    if (spec->heads)
        ok = ok && add_word(out, err, "--heads=%lld", (long long)spec->heads);
    if (p->causal >= 0)
        ok = ok && add_word(out, err, p->causal ? "--causal" : "--no-causal");
    if (p->fit)
        ok = ok && add_word(out, err, "--fit");
    if (strcmp(p->position, "none") != 0)
        ok = ok && add_word(out, err, "--position=%s", p->position);
    if (*p->device)
        ok = ok && add_word(out, err, "--device=%s", p->device);
    if (*p->precision)
        ok = ok && add_word(out, err, "--precision=%s", p->precision);
    if (p->threads)
        ok = ok && add_word(out, err, "--threads=%d", p->threads);
    if (spec->repeat)
        ok = ok && add_word(out, err, "--repeat=%d", spec->repeat);
    if (spec->within > 0)
        ok = ok && add_word(out, err, "--within=%.17g", spec->within);
    if (spec->quality)
        ok = ok && add_word(out, err, "--quality");
    return ok && add_word(out, err, "--seed=%llu", (unsigned long long)p->seed) &&
           add_word(out, err, "--mem=%lld", (long long)spec->memory) &&
           add_word(out, err, "--json");
}

/* ---- the record ------------------------------------------------------------- */

/* Keys of the sweep before those of the record, whose '{' is at json[0]. */
static void compose(const CampaignSpec *spec, const CampaignPoint *point, const Child *child,
                    const char *json, size_t length, Text *line)
{
    WordList words = { 0 };
    Text     command = { 0 };
    Json     j = jsonw_to(line);

    if (campaign_words(spec, point, &words, NULL))
        words_join((const char *const *)words.items, words.count, &command);
    words_free(&words);
    jsonw_open(&j, '{');
    jsonw_key(&j, "key");
    jsonw_string(&j, point->key);
    jsonw_key(&j, "asked");
    jsonw_string(&j, point->asked);
    jsonw_key(&j, "command");
    jsonw_string(&j, text_str(&command));
    jsonw_key(&j, "source");
    jsonw_string(&j, spec->input);
    jsonw_key(&j, "input_sha256");
    jsonw_string(&j, spec->input_sha256);
    jsonw_key(&j, "process");
    jsonw_open(&j, '{');
    jsonw_key(&j, "seconds");
    child ? jsonw_number(&j, child->seconds) : jsonw_null(&j);
    jsonw_key(&j, "cpu_seconds");
    child ? jsonw_number(&j, child->cpu) : jsonw_null(&j);
    jsonw_close(&j, '}');
    text_add(line, ",");
    text_add_bytes(line, json + 1, length - 1);
    text_free(&command);
}

static void refusal(const CampaignSpec *spec, const CampaignPoint *point, const Child *child,
                    RecordStatus status, const char *why, Text *line)
{
    Record record = { .n = point->n,
                      .m = point->n,
                      .d = spec->d,
                      .e = spec->d,
                      .params = point->params,
                      .heads = spec->heads,
                      .causal = point->causal > 0,
                      .seed = point->seed,
                      .threads = point->threads,
                      .status = status };
    Text   json = { 0 };
    Json   j = jsonw_to(&json);

    snprintf(record.mechanism, sizeof(record.mechanism), "%.*s",
             (int)strcspn(point->mechanism, "("), point->mechanism);
    snprintf(record.position, sizeof(record.position), "%s", point->position);
    snprintf(record.device, sizeof(record.device), "%s", *point->device ? point->device : "cpu");
    snprintf(record.precision, sizeof(record.precision), "%s",
             *point->precision ? point->precision : "f32");
    snprintf(record.input, sizeof(record.input), "%.120s", spec->input);
    snprintf(record.message, sizeof(record.message), "%s", why);
    record.quality.worst_query = record.quality.worst_head = -1;
    record_json(&record, &j);
    compose(spec, point, child, text_str(&json), json.length, line);
    text_free(&json);
}

void campaign_refuse(const CampaignSpec *spec, const CampaignPoint *point, RecordStatus status,
                     const char *why, Text *line)
{
    refusal(spec, point, NULL, status, why, line);
}

static RecordStatus reason(const Child *child, char *text, size_t size)
{
    if (child->late) {
        snprintf(text, size, "the budget ended after %.1f s of this point", child->seconds);
        return RECORD_CANCELLED;
    }
    child_reason(child, text, size);
    return !WIFSIGNALED(child->status) &&
                   (WEXITSTATUS(child->status) == error_exit_status(ERR_USAGE) ||
                    !strncmp(text, NO_GPU, strlen(NO_GPU)))
               ? RECORD_UNSUPPORTED
               : RECORD_FAILED;
}

/* What is executed wants NULL after the last word. */
static bool words_end(WordList *words, Error *err)
{
    if (!words_add(words, "", 0, err))
        return false;
    free(words->items[--words->count]);
    words->items[words->count] = NULL;
    return true;
}

/* One whole JSON object on one line. */
static bool is_record(const Text *text)
{
    const char *end = text->length ? memchr(text->data, '\n', text->length) : NULL;

    return end && end == text->data + text->length - 1 && text->data[0] == '{' && end[-1] == '}';
}

bool campaign_point(const CampaignSpec *spec, const CampaignPoint *point, double deadline,
                    const CampaignWatch *watch, Text *line, Error *err)
{
    ChildWatch looks = { .deadline = deadline };
    WordList   words = { 0 };
    Child      child = { .err = -1 };
    Text       said = { 0 };
    char       why[500];
    bool       ok = campaign_words(spec, point, &words, err) && words_end(&words, err);

    if (watch) {
        looks.stopped = watch->stopped;
        looks.context = watch->context;
    }
    ok = ok && child_run(&child, words.items, &looks, &said, err);
    words_free(&words);
    if (ok && child.stopped)
        ok = error_set(err, ERR_CANCELLED, "stopped");
    else if (ok && !child.late && !WIFSIGNALED(child.status) && is_record(&said))
        compose(spec, point, &child, said.data, said.length - 1, line);
    else if (ok)
        refusal(spec, point, &child, reason(&child, why, sizeof(why)), why, line);
    child_end(&child);
    text_free(&said);
    return ok;
}
