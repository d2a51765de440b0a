/* identity.c -- which records are of one point, of one curve, of one setting; see results.h. */
#include <jansson.h>
#include <string.h>

#include "profile/results.h"

/* Two files of one name may differ; a record of `run --json` does not know the content. */
static bool same_input(const ResultRow *a, const ResultRow *b)
{
    return !strcmp(a->source, b->source) && (!*a->input_sha256 || !*b->input_sha256 ||
                                             !strcmp(a->input_sha256, b->input_sha256));
}

static bool same_place(const ResultRow *a, const ResultRow *b)
{
    return a->heads == b->heads && a->d == b->d && a->causal == b->causal &&
           a->threads == b->threads && !strcmp(a->position, b->position) &&
           !strcmp(a->device, b->device) && !strcmp(a->precision, b->precision) &&
           same_input(a, b);
}

bool row_same_setting(const ResultRow *a, const ResultRow *b)
{
    return same_place(a, b) && !strcmp(a->version, b->version) && !strcmp(a->against, b->against);
}

static bool same_mechanism(const ResultRow *a, const ResultRow *b)
{
    return !strcmp(a->mechanism, b->mechanism) && !strcmp(a->params, b->params);
}

bool row_same_series(const ResultRow *a, const ResultRow *b)
{
    return same_mechanism(a, b) && !strcmp(a->script_sha256, b->script_sha256) &&
           row_same_setting(a, b);
}

bool row_same_comparison(const ResultRow *a, const ResultRow *b)
{
    return row_same_series(a, b) && a->n == b->n;
}

/* ---- the identity of a point -------------------------------------------------
 *
 * What is measured: mechanism, all parameters with the content of tensors, position, causal, n, d,
 * heads, layer, seed, threads, device, precision, the content of the input, what is measured beside
 * the run (quality, decode), and the number of the process.  The version of the program and the
 * content of a script are what two measurements compare, so they are no part of it.
 */

static bool says_same_point(const ResultRow *a, const ResultRow *b)
{
    return same_mechanism(a, b) && same_place(a, b) && a->n == b->n && a->seed == b->seed;
}

static bool same_option(const char *flag, const ResultRow *a, const ResultRow *b)
{
    char of_a[32], of_b[32];

    row_option(a, flag, of_a, sizeof(of_a));
    row_option(b, flag, of_b, sizeof(of_b));
    return !strcmp(of_a, of_b);
}

static bool same_repeats(const ResultRow *a, const ResultRow *b)
{
    return same_option("--repeat", a, b) && same_option("--within", a, b);
}

/* A command without --repeat and --within, and the limit of memory. */
static void command_of_point(const char *command, Text *out)
{
    for (const char *at = command; *at;) {
        size_t length = strcspn(at, " ");

        if (strncmp(at, "--repeat=", 9) != 0 && strncmp(at, "--within=", 9) != 0 &&
            strncmp(at, "--mem=", 6) != 0)
            text_addf(out, "%.*s ", (int)length, at);
        at += length + strspn(at + length, " ");
    }
}

static bool same_command(const ResultRow *a, const ResultRow *b)
{
    const char *of_a = row_command(a), *of_b = row_command(b);
    Text        x = { 0 }, y = { 0 };
    bool        same;

    if (!of_a || !of_b)
        return false;
    command_of_point(of_a, &x);
    command_of_point(of_b, &y);
    same = text_ok(&x) && text_ok(&y) && !strcmp(text_str(&x), text_str(&y));
    text_free(&x);
    text_free(&y);
    return same;
}

/* The keys of older records differ because one was repeated more often than the other. */
static bool only_repeats_differ(const ResultRow *a, const ResultRow *b)
{
    return same_command(a, b) && strcmp(row_command(a), row_command(b)) != 0;
}

/* Parameters that one record lacks are no difference; how many both have. */
static bool params_agree(json_t *a, const json_t *b, size_t *both)
{
    const char *name;
    json_t     *value;

    json_object_foreach(a, name, value) {
        const json_t *other = json_object_get(b, name);

        if (other && !json_equal(value, other))
            return false;
        *both += other != NULL;
    }
    return true;
}

/* A version of the program that adds a parameter changes the fingerprints of all points of the
 * mechanism.  The same command does not name it, so it has its usual value.  A file that a
 * command names (@) may have been another. */
static bool only_new_parameters(const ResultRow *a, const ResultRow *b)
{
    json_t       *of_a = json_object_get(a->json, "params");
    const json_t *of_b = json_object_get(b->json, "params");
    size_t        both = 0, in_a = json_object_size(of_a), in_b = json_object_size(of_b);

    return in_a != in_b && params_agree(of_a, of_b, &both) &&
           both == (in_a < in_b ? in_a : in_b) && !strcmp(a->mechanism, b->mechanism) &&
           same_place(a, b) && a->n == b->n && a->seed == b->seed && same_command(a, b) &&
           !strchr(row_command(a), '@');
}

static bool same_key(const ResultRow *a, const ResultRow *b)
{
    int length = key_point_length(a->key);

    return length == key_point_length(b->key) && !strncmp(a->key, b->key, (size_t)length);
}

bool row_same_point(const ResultRow *a, const ResultRow *b, bool counted)
{
    if (a->process != b->process)
        return false;
    if (only_new_parameters(a, b))
        return counted || same_repeats(a, b);
    if (*a->point && *b->point)
        return !strcmp(a->point, b->point) && (counted || same_repeats(a, b));
    if (!*a->key || !*b->key)
        return says_same_point(a, b);
    return same_key(a, b) || (counted && says_same_point(a, b) && only_repeats_differ(a, b));
}

static int add_texts(const char *what, const char *a, const char *b, Text *out)
{
    if (!strcmp(a, b))
        return 0;
    text_addf(out, "%s%s (%.80s and %.80s)", out->length ? ", " : "", what, *a ? a : "none",
              *b ? b : "none");
    return 1;
}

static int add_ints(const char *what, int64_t a, int64_t b, Text *out)
{
    if (a == b)
        return 0;
    text_addf(out, "%s%s (%lld and %lld)", out->length ? ", " : "", what, (long long)a,
              (long long)b);
    return 1;
}

/* An option without which a number of the record is null. */
static int add_option(const char *flag, const char *path, const ResultRow *a, const ResultRow *b,
                      Text *out)
{
    bool first = row_number(a, path).valid;

    if (!a->ok || !b->ok || first == row_number(b, path).valid)
        return 0;
    text_addf(out, "%s%s (the %s alone)", out->length ? ", " : "", flag,
              first ? "first" : "second");
    return 1;
}

/* An option of which only the command tells: its value is part of the fingerprint. */
static int add_worded(const char *flag, const ResultRow *a, const ResultRow *b, Text *out)
{
    char of_a[32], of_b[32];

    if (!row_command(a) || !row_command(b))
        return 0;
    row_option(a, flag, of_a, sizeof(of_a));
    row_option(b, flag, of_b, sizeof(of_b));
    return add_texts(flag, of_a, of_b, out);
}

static int add_content(const ResultRow *a, const ResultRow *b, Text *out)
{
    if (strcmp(a->source, b->source) != 0 || same_input(a, b))
        return 0;
    text_addf(out, "%sthe content of the input", out->length ? ", " : "");
    return 1;
}

int row_differences(const ResultRow *a, const ResultRow *b, Text *out)
{
    Text said = { 0 };
    int  count = 3 * add_texts("mechanism", a->mechanism, b->mechanism, &said);

    count += count ? 0 : add_texts("parameters", a->params, b->params, &said);
    count += add_ints("n", a->n, b->n, &said) + add_ints("d", a->d, b->d, &said) +
             add_ints("heads", a->heads, b->heads, &said) +
             add_ints("seed", a->seed, b->seed, &said) +
             add_ints("threads", a->threads, b->threads, &said) +
             add_texts("causal", a->causal ? "true" : "false", b->causal ? "true" : "false",
                       &said) +
             add_texts("position", a->position, b->position, &said) +
             add_texts("device", a->device, b->device, &said) +
             add_texts("precision", a->precision, b->precision, &said) +
             add_texts("input", a->source, b->source, &said) + add_content(a, b, &said) +
             add_option("--quality", "quality.output_error", a, b, &said) +
             add_option("--decode", "decode.state_bytes", a, b, &said) +
             add_worded("--repeat", a, b, &said) + add_worded("--within", a, b, &said);
    text_add(out, text_str(&said));
    text_free(&said);
    return count;
}
