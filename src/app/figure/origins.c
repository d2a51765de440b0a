/* origins.c -- where the tensors of a picture come from, in words; see picture.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/picture.h"

typedef struct Runs {
    const Run *const *runs;
    int               count, most;
    bool              one; /* all of one mechanism */
    bool              words; /* for readers of a figure */
    uint64_t          seed;  /* that their caption says */
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

/* "random blocks" need no more words where the seed is said. */
static bool says_itself(const Runs *r, const Run *run, int tensor)
{
    return r->words && run->tensors[tensor].origin == ORIGIN_DRAWN && run->seed == r->seed &&
           !strncmp(run->tensors[tensor].name, "random", strlen("random"));
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
            if (k == found && found < RUN_MAX_TENSORS && is_from(run, t, source) &&
                !says_itself(r, run, t))
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

#define NAMES_FEW 3 /* so many symbols are named, too */

/* Names that are words or few, else how many parameters there are. */
static void add_reader_names(const Runs *r, const char *const *names, int count, Text *out)
{
    bool words = count <= r->most;

    for (int i = 0; i < count; i++)
        words = words && (count <= NAMES_FEW || is_of_words(names[i]));
    if (words)
        add_names(r, names, count, out);
    else if (count > 1)
        text_addf(out, "%d parameters", count);
    else
        text_add(out, "one parameter");
}

/* Lists the runs with a tensor of that origin, each mechanism once. */
static void list_names(const Runs *r, const Source *source, Text *out)
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
}

/* again: an origin of the same tensors stands before it. */
static void add_phrase(const Runs *r, const Run *run, Origin origin, bool again, Text *out)
{
    if (origin == ORIGIN_FILE)
        text_add(out, "from a file");
    else if (origin != ORIGIN_DRAWN)
        text_add(out, "fitted to the input");
    else if (run->seed == r->seed)
        text_add(out, "drawn at random");
    else
        text_addf(out, "%s seed %llu", again ? "with" : "drawn at random,",
                  (unsigned long long)run->seed);
}

/* Adds the names and their origin; in words, names that stand before the last origin too (`last`)
 * are not repeated. */
static void add_source(const Runs *r, const Run *run, int tensor, Text *last, Text *out)
{
    Source source = source_of(run, tensor);
    Text   names = { 0 };
    bool   same;

    list_names(r, &source, &names);
    same = r->words && last->length && !strcmp(text_str(&names), text_str(last));
    if (names.length) {
        text_add(out, same ? " or " : out->length ? "; " : "");
        text_add(out, same ? "" : text_str(&names));
        text_add(out, same ? "" : r->words ? " " : ": ");
        if (r->words)
            add_phrase(r, run, run->tensors[tensor].origin, same, out);
        else
            text_add(out, source.text);
    }
    text_clear(last);
    text_add(last, text_str(&names));
    text_free(&names);
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

static void add_origins(Runs r, Text *out)
{
    Text all = { 0 }, last = { 0 };

    r.one = true;
    for (int i = 0; i < r.count; i++)
        r.one = r.one && is_same_mechanism(&r, 0, i);
    for (int i = 0; i < r.count; i++)
        for (int t = 0; t < r.runs[i]->tensor_count; t++)
            if (!origin_is_named(&r, i, t))
                add_source(&r, r.runs[i], t, &last, &all);
    text_add(out, text_str(&all));
    text_free(&all);
    text_free(&last);
}

void origins_of_runs(const Run *const *runs, int count, int most, Text *out)
{
    add_origins((Runs){ .runs = runs, .count = count, .most = most }, out);
}

void origins_in_words(const Run *const *runs, int count, int most, uint64_t seed, Text *out)
{
    add_origins((Runs){ .runs = runs, .count = count, .most = most, .words = true, .seed = seed },
                out);
}

#define NAMES_ALONE 12  /* tensors of one origin in a caption */
#define NAMES_AMONG 4   /* the same, of a figure with several panels */

/* The seed that the caption says. */
static uint64_t caption_seed(const Result *result)
{
    const char *seed = strstr(result->input->name, "seed=");

    return !strncmp(result->input->name, "synthetic:", strlen("synthetic:")) && seed
               ? strtoull(seed + strlen("seed="), NULL, 10)
               : result->run->seed;
}

bool panels_origins(const PanelChoice *panels, int count, Text *out)
{
    const Run **runs = calloc(2 * (size_t)count, sizeof(Run *)); /* with the subtracted runs */
    size_t      before = out->length;
    int         found = 0;

    for (int i = 0; runs && i < count; i++) {
        runs[found++] = panels[i].result->run;
        if (panels[i].minus)
            runs[found++] = panels[i].minus->run;
    }
    origins_in_words(runs, found, count > 1 ? NAMES_AMONG : NAMES_ALONE,
                     caption_seed(panels[0].result), out);
    free(runs);
    return out->length > before;
}
