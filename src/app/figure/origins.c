/* origins.c -- where the tensors of a picture come from, in words; see picture.h. */
#include <stdio.h>
#include <string.h>

#include "app/figure/picture.h"

typedef struct Runs {
    const Run *const *runs;
    int               count, most;
    bool              one; /* all of one mechanism */
    bool              words; /* for readers of a figure */
} Runs;

/* An origin in words; a seed is part of it: "random seed 7". */
typedef struct Source {
    char text[48];
} Source;

static Source source_of(const Run *run, int tensor)
{
    Source s;

    run_origin_text(run, run->tensors[tensor].origin, s.text, sizeof(s.text));
    return s;
}

static bool is_from(const Run *run, int tensor, const Source *source)
{
    Source own = source_of(run, tensor);

    return !strcmp(own.text, source->text);
}

static bool is_same_mechanism(const Runs *r, int a, int b)
{
    return r->runs[a]->mechanism == r->runs[b]->mechanism;
}

/* Names of that origin in all runs of the mechanism of run `at`, each once; returns their
 * number. */
static int collect_names(const Runs *r, int at, const Source *source, const char **names)
{
    int found = 0;

    for (int i = at; i < r->count; i++) {
        const Run *run = r->runs[i];

        for (int t = 0; is_same_mechanism(r, at, i) && t < run->tensor_count; t++) {
            int k = 0;

            while (k < found && strcmp(names[k], run->tensors[t].name) != 0)
                k++;
            if (k == found && found < RUN_MAX_TENSORS && is_from(run, t, source))
                names[found++] = run->tensors[t].name;
        }
    }
    return found;
}

static void add_names(const Runs *r, const char *const *names, int count, Text *out)
{
    int shown = count > r->most ? r->most : count;

    for (int i = 0; i < shown; i++)
        text_addf(out, "%s%s", i ? ", " : "", names[i]);
    if (shown < count)
        text_addf(out, " and %d more", count - shown);
}

#define WORD_LEAST 4 /* letters of a word; shorter ones are symbols: "dt_bias", "e_proj" */

static bool is_of_words(const char *name)
{
    for (size_t length; *name; name += length + (name[length] == '_')) {
        length = strcspn(name, "_");
        if (length < WORD_LEAST)
            return false;
    }
    return true;
}

/* Names that are words, else how many parameters there are. */
static void add_reader_names(const Runs *r, const char *const *names, int count, Text *out)
{
    bool words = count <= r->most;

    for (int i = 0; i < count; i++)
        words = words && is_of_words(names[i]);
    if (words)
        add_names(r, names, count, out);
    else if (count > 1)
        text_addf(out, "%d parameters", count);
    else
        text_add(out, "one parameter");
}

/* Lists the runs with a tensor of that origin, each mechanism once. */
static void add_source(const Runs *r, const Source *source, Text *out)
{
    const char *names[RUN_MAX_TENSORS];
    bool        any = false;

    for (int i = 0; i < r->count; i++) {
        int count = 0, first = 0;

        while (!is_same_mechanism(r, first, i))
            first++;
        count = first == i ? collect_names(r, i, source, names) : 0;
        if (!count)
            continue;
        text_add(out, any ? ", " : "");
        any = true;
        if (!r->one && r->words)
            mechanism_words(r->runs[i]->mechanism, r->runs[i]->mechanism->id, out);
        else if (!r->one)
            text_add(out, r->runs[i]->mechanism->id);
        text_add(out, r->one ? "" : " (");
        if (r->words)
            add_reader_names(r, names, count, out);
        else
            add_names(r, names, count, out);
        text_add(out, r->one ? "" : ")");
    }
    text_addf(out, ": %s", source->text);
}

static bool origin_is_named(const Runs *r, int run, int tensor)
{
    Source source = source_of(r->runs[run], tensor);

    for (int i = 0; i <= run; i++)
        for (int t = 0; t < (i < run ? r->runs[i]->tensor_count : tensor); t++)
            if (is_from(r->runs[i], t, &source))
                return true;
    return false;
}

static void add_origins(const Run *const *runs, int count, int most, bool words, Text *out)
{
    Runs r = { runs, count, most, true, words };
    bool any = false;

    for (int i = 0; i < count; i++)
        r.one = r.one && is_same_mechanism(&r, 0, i);
    for (int i = 0; i < count; i++)
        for (int t = 0; t < runs[i]->tensor_count; t++) {
            Source source = source_of(runs[i], t);

            if (origin_is_named(&r, i, t))
                continue;
            text_add(out, any ? "; " : "");
            any = true;
            add_source(&r, &source, out);
        }
}

void origins_of_runs(const Run *const *runs, int count, int most, Text *out)
{
    add_origins(runs, count, most, false, out);
}

void origins_in_words(const Run *const *runs, int count, int most, Text *out)
{
    add_origins(runs, count, most, true, out);
}
