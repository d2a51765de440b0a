/* origins.c -- see origins.h. */
#include "app/figure/origins.h"

#include <string.h>

typedef struct Runs {
    const Run *const *runs;
    int               count, most;
    bool              one; /* all of one mechanism */
} Runs;

/* One origin in words, and a seed is part of it: "random seed 7". */
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

/* Names of that origin in all runs of the mechanism of run `at`, each once; how many. */
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

/* The runs with a tensor of that origin, a mechanism once. */
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
        if (!r->one)
            text_addf(out, "%s (", r->runs[i]->mechanism->id);
        add_names(r, names, count, out);
        text_add(out, r->one ? "" : ")");
    }
    text_addf(out, ": %s", source->text);
}

static bool is_told(const Runs *r, int run, int tensor)
{
    Source source = source_of(r->runs[run], tensor);

    for (int i = 0; i <= run; i++)
        for (int t = 0; t < (i < run ? r->runs[i]->tensor_count : tensor); t++)
            if (is_from(r->runs[i], t, &source))
                return true;
    return false;
}

void origins_of_runs(const Run *const *runs, int count, int most, Text *out)
{
    Runs r = { runs, count, most, true };
    bool any = false;

    for (int i = 0; i < count; i++)
        r.one = r.one && is_same_mechanism(&r, 0, i);
    for (int i = 0; i < count; i++)
        for (int t = 0; t < runs[i]->tensor_count; t++) {
            Source source = source_of(runs[i], t);

            if (is_told(&r, i, t))
                continue;
            text_add(out, any ? "; " : "");
            any = true;
            add_source(&r, &source, out);
        }
}
