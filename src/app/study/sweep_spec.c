/* sweep_spec.c -- parses the words of `sweep` to a SweepSpec. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/command/command.h"
#include "app/program.h"
#include "app/session/model_input.h"
#include "app/session/session.h"
#include "app/study/sweep.h"
#include "attn/run/position.h"
#include "core/text.h"
#include "input/input.h"
#include "input/store.h"
#include "profile/machine.h"

/* Samples of a process that is one of several: its median is one number of their spread. */
#define PROCESS_REPEATS 7
#define AGAINST_PROCESSES 30

#define FEW_TOKENS 16 /* of a generator whose arguments are checked */

void sweep_spec_free(SweepSpec *spec)
{
    words_free(&spec->mechanisms);
    words_free(&spec->n);
    words_free(&spec->positions);
    words_free(&spec->threads);
    words_free(&spec->devices);
    words_free(&spec->precisions);
    words_free(&spec->acausal);
    for (int i = 0; i < spec->axis_count; i++)
        words_free(&spec->axes[i].values);
    free(spec->input);
    free(spec->against);
    free(spec->path);
    *spec = (SweepSpec){ 0 };
}

/* ---- mechanisms ------------------------------------------------------------- */

/* Adds what runs the systems of the surveys' table. */
static bool add_systems(WordList *out, Error *err)
{
    for (size_t i = 0; system_at(i); i++) {
        const char *at = system_at(i)->runs;
        char        word[96];

        while (system_next_word(&at, word, sizeof(word)))
            if (!words_add(out, word, strlen(word), err))
                return false;
    }
    return true;
}

/* Of a causal sweep those that can be causal; the spec remembers the others. */
static bool add_group(SweepSpec *out, unsigned classes, Error *err)
{
    for (size_t i = 0; mechanism_at(i); i++) {
        const Mechanism *m = mechanism_at(i);
        bool             can = out->causal <= 0 || m->causal || m->always_causal;

        if ((m->classes & classes) && !m->needs_attn &&
            !words_add(can ? &out->mechanisms : &out->acausal, m->id, strlen(m->id), err))
            return false;
    }
    return out->mechanisms.count || !out->acausal.count ||
           error_set(err, ERR_USAGE, "-m: no mechanism of this class has a causal form: leave out "
                     "--causal");
}

static bool class_bits(const char *name, unsigned *bits, Error *err)
{
    Text names = { 0 };

    *bits = 0;
    for (unsigned bit = 1; bit <= CLASS_LAB; bit <<= 1) {
        if (!strcasecmp(class_name(bit), name))
            *bits = bit;
        text_addf(&names, "%s%s", bit > 1 ? " " : "", class_name(bit));
    }
    if (!*bits)
        error_set(err, ERR_USAGE, "class:%s: there is no such class (there are: %s)", name,
                  text_str(&names));
    text_free(&names);
    return *bits != 0;
}

static bool add_mechanism(SweepSpec *out, const char *word, Error *err)
{
    char             id[48];
    const Mechanism *m;
    unsigned         bits;

    if (!strcmp(word, "all"))
        return add_group(out, ~0u, err);
    if (!strcmp(word, "table1")) {
        out->table = true;
        return add_systems(&out->mechanisms, err);
    }
    if (!strncmp(word, "class:", 6))
        return class_bits(word + 6, &bits, err) && add_group(out, bits, err);
    snprintf(id, sizeof(id), "%.*s", (int)strcspn(word, "("), word);
    return mechanism_parse(id, &m, err) && words_add(&out->mechanisms, word, strlen(word), err);
}

static bool take_mechanisms(const Call *call, SweepSpec *out, Error *err)
{
    WordList words = { 0 };
    bool     ok = true;

    if (!call->word_count)
        return error_set(err, ERR_USAGE,
                         "sweep needs mechanisms, for example attnscope sweep -m "
                         "full,bigbird --n 256:4096:x2 -o cost.jsonl (-m all, -m table1 and "
                         "-m class:FP name several)");
    out->causal = call->values[OPT_CAUSAL] ? 1 : 0;
    for (int i = 0; ok && i < call->word_count; i++)
        ok = words_expand("-m", call->words[i], &words, err);
    for (int i = 0; ok && i < words.count; i++)
        ok = add_mechanism(out, words.items[i], err);
    words_free(&words);
    return ok;
}

/* ---- numbers ---------------------------------------------------------------- */

static bool expand_option(const Call *call, int id, WordList *out, Error *err)
{
    char what[40];

    if (!call->values[id])
        return words_add(out, "", 0, err);
    snprintf(what, sizeof(what), "--%s", option_at(id)->flag);
    return words_expand(what, call->values[id], out, err);
}

/* Every word a whole number from 1 to most, in order. */
static bool check_counts(const char *what, WordList *list, long long most, Error *err)
{
    for (int i = 0; i < list->count; i++) {
        int64_t value = 1;

        if (*list->items[i] && (!text_whole(list->items[i], &value) || value < 1))
            return error_set(err, ERR_USAGE, "%s: expected whole numbers from 1 on, got '%s'"
                             WHOLE_FORMS, what, list->items[i]);
        if (*list->items[i] && value > most)
            return error_set(err, ERR_USAGE, "%s: expected whole numbers up to %lld, got '%s'",
                             what, most, list->items[i]);
    }
    words_sort_numbers(list);
    return true;
}

/* "90", "90s", "10m", "1h30m", "2d". */
#define YEAR (366 * 86400.0) /* the longest part of a time */

static bool parse_time(const char *text, double *seconds, Error *err)
{
    static const char   units[] = "smhd";
    static const double scale[] = { 1, 60, 3600, 86400 };
    const char         *at = text;

    *seconds = 0;
    while (*at) {
        char       *end;
        double      value = strtod(at, &end);
        const char *unit = *end ? strchr(units, *end) : units;

        if (end == at || !unit || !(value >= 0 && value * scale[unit - units] <= YEAR))
            return error_set(err, ERR_USAGE, "--budget: expected a time like 90s, 10m or 1h30m, "
                             "a year at most, got '%s'", text);
        *seconds += value * scale[unit - units];
        at = *end ? end + 1 : end;
    }
    return *seconds > 0 || error_set(err, ERR_USAGE, "--budget: expected a time above 0");
}

/* ---- shards ----------------------------------------------------------------- */

static bool environment_int(const char *name, long long *out)
{
    const char *text = getenv(name);
    char       *end;

    if (!text || !*text)
        return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (*end || errno)
        *out = -1; /* no place of any array */
    return true;
}

/* Slurm numbers tasks from any number in any step; the place in the array counts here. */
static bool shard_of_slurm(SweepSpec *out, Error *err)
{
    long long id, count, min = 0, max, step = 1;

    if (!environment_int("SLURM_ARRAY_TASK_ID", &id) ||
        !environment_int("SLURM_ARRAY_TASK_COUNT", &count))
        return true;
    environment_int("SLURM_ARRAY_TASK_MIN", &min);
    environment_int("SLURM_ARRAY_TASK_STEP", &step);
    if (environment_int("SLURM_ARRAY_TASK_MAX", &max) && count > 1 && min >= 0 && max > min &&
        (max - min) % (count - 1) == 0)
        step = (max - min) / (count - 1);
    if (step < 1 || id < min || id > INT_MAX || min < 0 || (id - min) % step ||
        (id - min) / step >= count || count > INT_MAX)
        return error_set(err, ERR_USAGE,
                         "the Slurm array task %lld of %lld (from %lld) has no "
                         "plain place; use --array=1-N, or give --shard K/N yourself",
                         id, count, min);
    out->shard = (int)((id - min) / step) + 1;
    out->shards = (int)count;
    return true;
}

static bool take_shard(const Call *call, SweepSpec *out, Error *err)
{
    const char *text = call->values[OPT_SHARD];
    char       *end;
    long long   shard, shards;

    out->shard = out->shards = 1;
    if (!text)
        return shard_of_slurm(out, err);
    shard = strtoll(text, &end, 10);
    shards = *end == '/' ? strtoll(end + 1, &end, 10) : 0;
    if (*end || shards > INT_MAX || shard < 1 || shard > shards)
        return error_set(err, ERR_USAGE, "--shard: expected K/N with K from 1 to N and N up to "
                         "%d, got '%s'", INT_MAX, text);
    out->shard = (int)shard;
    out->shards = (int)shards;
    return true;
}

/* ---- the result file -------------------------------------------------------- */

/* cost.csv, cost.md and cost.svg are made from cost.jsonl; shard 2 of 8 is cost.2of8.jsonl. */
static bool take_path(const Call *call, SweepSpec *out, Error *err)
{
    const char *path = call->values[OPT_OUTPUT];
    size_t      stem;

    if (!path)
        return out->shards == 1 || error_set(err, ERR_USAGE,
                                             "a shard needs -o FILE.jsonl: its records are merged "
                                             "later");
    if ((*path == '.' && !strchr(path + 1, '.')) || /* an ending without a name */
        (!text_ends_in(path, ".jsonl") && !text_ends_in(path, ".csv") &&
         !text_ends_in(path, ".md") && !fits_chart_name(path)))
        return error_set(err, ERR_USAGE,
                         "-o %s: expected a name ending in .jsonl, .csv, .md, or .png, .svg or "
                         ".pdf (the exponents)",
                         path);
    out->asked = path;
    stem = (size_t)(strrchr(path, '.') - path);
    if ((out->shards > 1
             ? asprintf(&out->path, "%.*s.%dof%d.jsonl", (int)stem, path, out->shard, out->shards)
             : asprintf(&out->path, "%.*s.jsonl", (int)stem, path)) > 0)
        return true;
    out->path = NULL;
    return error_set(err, ERR_NOMEM, "not enough memory");
}

/* ---- the rest --------------------------------------------------------------- */

static bool take_axes(const Call *call, SweepSpec *out, Error *err)
{
    for (int i = 0; i < call->param_count; i++) {
        const char *text = call->params[i], *equals = strchr(text, '=');
        SweepAxis  *axis = &out->axes[out->axis_count];

        if (!equals || equals == text || (size_t)(equals - text) >= sizeof(axis->name))
            return error_set(err, ERR_PARAM,
                             "-p %s: expected name=value, name=3,5,9 or name=3:33:x2", text);
        if (out->axis_count++ == SWEEP_AXES)
            return error_set(err, ERR_USAGE, "more than %d parameters", --out->axis_count);
        snprintf(axis->name, sizeof(axis->name), "%.*s", (int)(equals - text), text);
        if (!words_expand(axis->name, equals + 1, &axis->values, err))
            return false;
    }
    return true;
}

/* The lengths to try, until the input can be read: few tokens of a generator, which only has to
 * accept its arguments; the shortest point's; the input's own, where that is too long for a file
 * (the points report it). */
static Input *read_shortest(Session *s, const SweepSpec *spec, bool generated, Error *err)
{
    int64_t     shortest = strtoll(spec->n.items[0], NULL, 10);
    bool        few = generated && shortest > FEW_TOKENS;
    int64_t     lengths[] = { few ? FEW_TOKENS : shortest, shortest, 0 };
    InputChoice choice = { .layer = spec->layer, .d = spec->d, .heads = spec->heads };
    Input      *in = NULL;

    for (int k = 0; k < 3 && !in; k++) {
        choice.n = lengths[k];
        if (!k || lengths[k] != lengths[k - 1])
            in = session_read_input(s, spec->input, &choice, err);
    }
    return in;
}

/* Hashes the input's content; loads no more than the shortest point needs. */
static bool fingerprint_input(Session *s, SweepSpec *out, Error *err)
{
    bool   generated = !strncmp(out->input, "synthetic:", 10);
    Mapped text = { .data = (const uint8_t *)out->input, .size = (int64_t)strlen(out->input) };
    Input *in = read_shortest(s, out, generated, err);

    if (!in)
        return false;
    out->layer = in->layer;
    snprintf(out->input_sha256, sizeof(out->input_sha256), "%s", in->sha256);
    input_free(in);
    if (generated) /* the generator's own hash includes n */
        mapped_sha256(&text, 1, out->input_sha256);
    return true;
}

/* "synthetic:blocks(n=64, d=8)" without its n: an option overrides the generator's argument. */
static void drop_argument(char *spec, const char *name)
{
    char  *open = strncmp(spec, "synthetic:", 10) ? NULL : strchr(spec, '('), *at = open;
    size_t length = strlen(name);

    while (at && *at && *at != ')') {
        char  *word = at + 1 + strspn(at + 1, " ");
        size_t whole = strcspn(at + 1, ",)");

        if (strncmp(word, name, length) != 0 || word[length] != '=') {
            at += 1 + whole;
        } else if (at == open) { /* the next argument moves here */
            char *rest = at + 1 + whole + (at[1 + whole] == ',');

            rest += strspn(rest, " ");
            memmove(at + 1, rest, strlen(rest) + 1);
        } else {
            memmove(at, at + 1 + whole, strlen(at + 1 + whole) + 1);
        }
    }
}

/* The session's input, unless the call names another. */
static bool take_spec_input(Session *s, const Call *call, SweepSpec *out, Error *err)
{
    const char *spec = call->values[OPT_INPUT];
    bool        known = !spec && session_input_spec(s);

    if (known) {
        const InputChoice *choice = session_choice(s);

        spec = session_input_spec(s);
        out->layer = out->layer >= 0 ? out->layer : choice->layer;
        out->d = out->d ? out->d : choice->d;
        out->heads = out->heads ? out->heads : choice->heads;
    }
    if (spec && model_spec_is(spec) && strstr(spec, "text=-"))
        return error_set(err, ERR_USAGE, "--text -: the points of a sweep are processes of their "
                         "own, which cannot all read standard input; give a file");
    out->input = strdup(spec ? spec : "synthetic:normal");
    if (!out->input)
        return error_set(err, ERR_NOMEM, "not enough memory");
    if (*out->n.items[0])
        drop_argument(out->input, "n");
    if (call->values[OPT_D])
        drop_argument(out->input, "d");
    if (call->values[OPT_HEADS])
        drop_argument(out->input, "heads");
    else if (!out->heads)
        out->heads = call_heads(call, out->input);
    return fingerprint_input(s, out, err);
}

static bool take_numbers(const Call *call, SweepSpec *out, Error *err)
{
    int64_t seed = 0, repeat = 0, seeds = 1;
    int64_t processes = call->values[OPT_AGAINST] ? AGAINST_PROCESSES : 1;

    out->layer = -1; /* the first of the file */
    if (!call_int(call, OPT_LAYER, 0, 100000, &out->layer, err) ||
        !call_int(call, OPT_D, 1, 65536, &out->d, err) ||
        !call_int(call, OPT_HEADS, 1, 65536, &out->heads, err) ||
        !call_int(call, OPT_SEED, 0, INT64_MAX / 2, &seed, err) ||
        !call_int(call, OPT_SEEDS, 1, 100000, &seeds, err) ||
        !call_int(call, OPT_QROWS, 2, INT32_MAX, &out->quality_rows, err) ||
        !call_int(call, OPT_REPEAT, 1, 1000000, &repeat, err) ||
        !call_share(call, OPT_WITHIN, &out->within, err) ||
        !call_size(call, OPT_MEM, &out->memory, err))
        return false;
    if (!call_int(call, OPT_PROCESSES, 1, 10000, &processes, err))
        return false;
    out->processes = (int)processes;
    if (!repeat && processes * (call->values[OPT_AGAINST] ? 2 : 1) > 1)
        repeat = PROCESS_REPEATS;
    out->seed = (uint64_t)seed;
    out->seeds = (int)seeds;
    out->repeat = (int)repeat;
    out->causal = call->values[OPT_CAUSAL] ? 1 : call->values[OPT_NOCAUSAL] ? 0 : -1;
    out->fit = call->values[OPT_FITTED] != NULL;
    out->quality = call->values[OPT_QUALITY] || out->quality_rows;
    out->decode = call->values[OPT_DECODE] != NULL;
    out->resume = call->values[OPT_RESUME] != NULL;
    out->memory_given = out->memory > 0;
    if (!out->memory)
        out->memory = machine_memory() / 2;
    return !call->values[OPT_BUDGET] || parse_time(call->values[OPT_BUDGET], &out->budget, err);
}

/* Its content is in the keys: another build at the same path is another program. */
static bool take_against(const Call *call, SweepSpec *out, Error *err)
{
    const char *path = call->values[OPT_AGAINST];
    char        hex[65];
    Mapped      bytes;
    Text        whole = { 0 };

    if (!path)
        return true;
    if (access(path, X_OK) != 0)
        return error_set(err, ERR_FILE, "--against %s: cannot be run: %s; give the path of a "
                         "program attnscope", path, strerror(errno));
    if (!mapped_open(path, &bytes, err))
        return false;
    mapped_sha256(&bytes, 1, hex);
    mapped_close(&bytes);
    snprintf(out->against_id, sizeof(out->against_id), "%.8s", hex);
    place_absolute(path, &whole);
    out->against = whole.data;
    return text_ok(&whole) || error_set(err, ERR_NOMEM, "not enough memory");
}

static bool on_cpu_only(const SweepSpec *spec)
{
    for (int i = 0; i < spec->devices.count; i++)
        if (*spec->devices.items[i] && strcmp(spec->devices.items[i], "cpu") != 0)
            return false;
    return true;
}

static bool says_f32(const char *precision)
{
    return !*precision || !strcmp(precision, "f32");
}

/* Refuses the whole sweep for an unknown device or precision. */
static bool check_places(const SweepSpec *spec, Error *err)
{
    for (int i = 0; i < spec->devices.count; i++)
        if (!device_word(spec->devices.items[i], err))
            return false;
    for (int i = 0; i < spec->precisions.count; i++)
        if (!precision_word(spec->precisions.items[i], err))
            return false;
    if (on_cpu_only(spec) && !says_f32(spec->precisions.items[0]))
        return error_set(err, ERR_USAGE,
                         "--precision %s: the CPU computes in f32; say --device cuda",
                         spec->precisions.items[0]);
    return true;
}

/* Without a file nothing was kept that could go on. */
static bool check_resume(const SweepSpec *spec, Error *err)
{
    return !spec->resume || spec->path ||
           error_set(err, ERR_USAGE, "--resume goes on with a file: name it by -o FILE.jsonl");
}

bool sweep_spec_parse(Session *s, const Call *call, SweepSpec *out, Error *err)
{
    bool ok;

    *out = (SweepSpec){ 0 };
    ok = take_mechanisms(call, out, err) && expand_option(call, OPT_N, &out->n, err) &&
         check_counts("--n", &out->n, LLONG_MAX, err) && take_axes(call, out, err) &&
         expand_option(call, OPT_POSITION, &out->positions, err) &&
         expand_option(call, OPT_THREADS, &out->threads, err) &&
         check_counts("--threads", &out->threads, 4096, err) &&
         expand_option(call, OPT_DEVICE, &out->devices, err) &&
         expand_option(call, OPT_PRECISION, &out->precisions, err) && check_places(out, err) &&
         take_numbers(call, out, err) && take_against(call, out, err) &&
         take_spec_input(s, call, out, err) &&
         take_shard(call, out, err) && take_path(call, out, err) && check_resume(out, err);
    for (int i = 0; ok && i < out->positions.count; i++) {
        const Position *position;

        ok = !*out->positions.items[i] || position_parse(out->positions.items[i], &position, err);
    }
    if (!ok)
        sweep_spec_free(out);
    return ok;
}
