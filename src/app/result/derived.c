/* derived.c -- spectra and traces; see views.h.
 *
 * A spectrum is computed for one plane at a time, by the first thread that reads it.
 */
#include "app/result/views.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/result/steps.h"
#include "attn/study/spectrum.h"

typedef struct Derived {
    struct Derived *next;
    View            view, x; /* x of a trace's points */
    ViewCurve       curve;
    char           *names;   /* of the series; owned */
    double         *numbers; /* owned: values and shares of a spectrum, or a trace */
    /* of a spectrum: */
    const View     *of;      /* NULL: this is a trace */
    SpectrumWay     way;
    int             threads; /* 0: as many as the machine has */
    pthread_mutex_t lock;
    atomic_bool    *known;   /* [planes], owned; the plane is computed */
} Derived;

void derived_free(Derived *d)
{
    for (Derived *next; d; d = next) {
        next = d->next;
        if (d->of)
            pthread_mutex_destroy(&d->lock);
        free(d->known);
        free(d->numbers);
        free(d->names);
        free(d);
    }
}

/* Adds it to the result, which frees it. */
static const View *keep(Result *result, Derived *d, const char *name)
{
    snprintf(d->view.name, sizeof(d->view.name), "%s", name);
    d->view.stage = "";
    d->view.iteration = -1;
    d->view.step = -1;
    d->view.curve = &d->curve;
    d->next = result->derived;
    result->derived = d;
    return &d->view;
}

static const View *no_memory(Derived *d, Error *err)
{
    derived_free(d);
    error_set(err, ERR_NOMEM, "not enough memory for a curve");
    return NULL;
}

static Derived *find_derived(const Result *result, const char *name)
{
    Derived *d = result->derived;

    while (d && strcmp(d->view.name, name))
        d = d->next;
    return d;
}

bool view_is_derived(const Result *result, const View *view)
{
    const Derived *d = result->derived;

    while (d && &d->view != view)
        d = d->next;
    return d != NULL;
}

/* ---- spectra ----------------------------------------------------------------- */

/* values[count][2] of a plane: the value, and the share of all squares up to it. */
static bool make_plane(Derived *d, int64_t plane, Error *err)
{
    int64_t count = view_rows(&d->view);
    double *out = d->numbers + plane * count * 2, energy, sum = 0;
    double *values = malloc((size_t)count * sizeof(*values));
    bool    ok = values || error_set(err, ERR_NOMEM, "singular values: out of memory");

    /* A pool of its own: who reads the view may be a thread of another. */
    SpectrumWay way = d->way;

    way.threads = threads_new(d->threads > 0 ? d->threads : threads_default());
    ok = ok && spectrum_make(d->of, plane, &way, values, &energy, err);
    threads_free(way.threads);
    for (int64_t i = 0; ok && i < count; i++) {
        sum += values[i] * values[i];
        out[2 * i] = values[i];
        out[2 * i + 1] = energy > 0 ? fmin(sum / energy, 1) : (double)NAN;
    }
    free(values);
    return ok;
}

static void read_spectrum(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                          int64_t step, float *out);

bool derived_ready(const View *view, int64_t plane, Error *err)
{
    Derived *d = derived_known(view, plane) ? NULL : (Derived *)(uintptr_t)view->context;
    bool     ok = true;

    if (!d)
        return true;
    pthread_mutex_lock(&d->lock);
    if (!atomic_load(&d->known[plane])) {
        ok = make_plane(d, plane, err);
        atomic_store(&d->known[plane], ok);
    }
    pthread_mutex_unlock(&d->lock);
    return ok;
}

bool derived_known(const View *view, int64_t plane)
{
    const Derived *d = view->read == read_spectrum ? view->context : NULL;

    return !d || atomic_load(&d->known[plane]);
}

static void read_spectrum(const View *view, int64_t plane, int64_t i, int64_t start, int64_t count,
                          int64_t step, float *out)
{
    const Derived *d = view->context;
    Error          err = ERROR_INIT;
    bool           ok = derived_ready(view, plane, &err);

    for (int64_t c = 0; c < count; c++)
        out[c] = ok ? (float)d->numbers[(plane * view_rows(view) + i) * 2 + start + c * step]
                    : (float)NAN;
}

bool spectrum_is_offered(const Mechanism *m)
{
    for (const ViewPromise *v = m->views; v && v->name; v++)
        if (!strcmp(v->name, "weights"))
            return true;
    return false;
}

static void add_rank(const Run *run, const View *of, Derived *d)
{
    if (run->rank < 1 || run->rank > view_rows(&d->view) || strcmp(of->name, "weights"))
        return;
    d->names = malloc(64);
    if (!d->names)
        return;
    snprintf(d->names, 64, "rank %lld (%s)", (long long)run->rank, run->rank_name);
    d->view.guides[0] = (ViewGuide){ d->names, (double)run->rank, true };
    d->view.guide_count = 1;
}

static const View *new_spectrum(Result *result, const View *of, const char *name, Error *err)
{
    Derived *d = calloc(1, sizeof(*d));
    int64_t  planes = view_planes(of), count;

    if (!d)
        return no_memory(NULL, err);
    d->way.seed = result->run->seed;
    d->threads = result->request.threads;
    count = spectrum_count(of, &d->way);
    d->numbers = calloc((size_t)(planes * count * 2), sizeof(*d->numbers));
    d->known = calloc((size_t)planes, sizeof(*d->known));
    if (!d->numbers || !d->known)
        return no_memory(d, err);
    pthread_mutex_init(&d->lock, NULL);
    d->of = of;
    d->curve = (ViewCurve){ .x = "index", .y = "value, share",
                            .series = "singular value|share of all squares",
                            .log_y = true, .first = 1, .main = 1 };
    d->view = (View){ .kind = VIEW_TENSOR, .dtype = DT_F64, .rank = planes > 1 ? 3 : 2,
                      .help = SPECTRUM_HELP,
                      .read = read_spectrum, .context = d, .rows = "value", .cols = "number",
                      .cost = 1 };
    if (planes > 1)
        d->view.shape[0] = planes;
    d->view.shape[d->view.rank - 2] = count;
    d->view.shape[d->view.rank - 1] = 2;
    add_rank(result->run, of, d);
    return keep(result, d, name);
}

static bool has_values(const View *view)
{
    return view && view->rank >= 2 && view_rows(view) > 0 && view_cols(view) > 0;
}

/* Makes "spectrum" and "spectrum(VIEW)"; NULL without an error: another name. */
static const View *spectrum_of(Result *result, const char *name, Error *err)
{
    size_t      length = strlen(SPECTRUM_VIEW), all = strlen(name);
    char        of[48] = "weights";
    const View *view;

    if (strncmp(name, SPECTRUM_VIEW, length) || (name[length] && name[length] != '('))
        return NULL;
    if (name[length] && (name[all - 1] != ')' || all - length - 2 >= sizeof(of)))
        return NULL;
    if (name[length])
        snprintf(of, sizeof(of), "%.*s", (int)(all - length - 2), name + length + 1);
    view = run_view(result->run, of);
    if (has_values(view))
        return new_spectrum(result, view, name, err);
    error_set(err, ERR_UNSUPPORTED, "%s has no matrix '%s', so no spectrum of it",
              result->run->mechanism->id, of);
    return NULL;
}

void derived_words(const View *view, char *text, size_t size)
{
    const Derived *d = view->read == read_spectrum ? view->context : NULL;

    *text = '\0';
    if (d && !spectrum_is_exact(d->of, &d->way))
        snprintf(text, size, "randomised, rank %lld, seed %llu", (long long)view_rows(view),
                 (unsigned long long)d->way.seed);
}

/* ---- traces ------------------------------------------------------------------ */

/* "row error" has the view name "row_error". */
static bool trace_is(const char *trace, const char *name)
{
    while (*trace && (*trace == ' ' ? '_' : *trace) == *name) {
        trace++;
        name++;
    }
    return !*trace && !*name;
}

static bool is_wanted(const Trace *t, const char *name)
{
    return !strcmp(name, TRACE_VIEW) || trace_is(t->name, name);
}

/* Names of the traces, each once; returns their number. */
static int trace_names(const Run *run, const char *name, const char **out, int most)
{
    int count = 0;

    for (int i = 0; i < run->trace_count; i++) {
        bool known = !is_wanted(&run->traces[i], name);

        for (int k = 0; k < count && !known; k++)
            known = !strcmp(out[k], run->traces[i].name);
        if (!known && count < most)
            out[count++] = run->traces[i].name;
    }
    return count;
}

#define TRACES_MOST 16

/* Rows of the table are the steps with the trace; returns their number. */
static int64_t fill_trace(const Run *run, const char *name, const char **names, int count,
                          double *numbers, double *x, bool *iterated)
{
    int64_t rows = 0;
    int     step = -1;

    *iterated = true;
    for (int i = 0; i < run->trace_count; i++) {
        const Trace *t = &run->traces[i];

        if (!is_wanted(t, name))
            continue;
        if (t->step != step || !rows) {
            const Stage *stage = &run->stages[t->step];

            *iterated = *iterated && stage->iteration >= 0 &&
                        (!rows || !strcmp(stage->name, run->stages[step].name));
            step = t->step;
            x[rows] = (double)step;
            for (int k = 0; k < count; k++)
                numbers[rows * count + k] = (double)NAN;
            rows++;
        }
        for (int k = 0; k < count; k++)
            if (!strcmp(names[k], t->name))
                numbers[(rows - 1) * count + k] = t->value;
    }
    for (int64_t i = 0; i < rows; i++)
        x[i] = 1 + (*iterated ? (double)run->stages[(int)x[i]].iteration : x[i]);
    return rows;
}

/* A logarithmic axis fits numbers above 0 that span decades. */
static bool spans_decades(const double *numbers, int64_t count)
{
    double lo = (double)INFINITY, hi = 0;

    for (int64_t i = 0; i < count; i++) {
        lo = isnan(numbers[i]) ? lo : fmin(lo, numbers[i]);
        hi = isnan(numbers[i]) ? hi : fmax(hi, numbers[i]);
    }
    return hi > 100 * lo && hi > 0 && lo >= 0;
}

static char *joined_names(const char **names, int count)
{
    Text  text = { 0 };
    char *out;

    for (int k = 0; k < count; k++)
        text_addf(&text, "%s%s", k ? "|" : "", names[k]);
    out = strdup(text_str(&text));
    text_free(&text);
    return out;
}

static const View *trace_of(Result *result, const char *name, Error *err)
{
    const Run  *run = result->run;
    const char *names[TRACES_MOST];
    int         count = trace_names(run, name, names, TRACES_MOST);
    Derived    *d;
    int64_t     rows;
    bool        iterated;

    if (!count)
        return NULL;
    d = calloc(1, sizeof(*d));
    if (!d)
        return no_memory(NULL, err);
    d->names = joined_names(names, count);
    d->numbers = malloc((size_t)(run->trace_count * (count + 1)) * sizeof(*d->numbers));
    if (!d->names || !d->numbers)
        return no_memory(d, err);
    rows = fill_trace(run, name, names, count, d->numbers,
                      d->numbers + (int64_t)run->trace_count * count, &iterated);
    d->x = (View){ .name = "x", .kind = VIEW_TENSOR, .dtype = DT_F64, .rank = 1, .shape = { rows },
                   .rows = "", .cols = "" };
    d->x.tensor = tensor_of(DT_F64, 1, d->x.shape,
                            d->numbers + (int64_t)run->trace_count * count);
    d->view = (View){ .kind = VIEW_TENSOR, .dtype = DT_F64, .rank = 2, .shape = { rows, count },
                      .rows = iterated ? "iteration" : "step", .cols = "trace", .along = &d->x,
                      .help = TRACE_HELP };
    d->view.tensor = tensor_of(DT_F64, 2, d->view.shape, d->numbers);
    d->curve = (ViewCurve){ .x = d->view.rows, .y = count > 1 ? "value" : names[0],
                            .series = d->names, .log_y = spans_decades(d->numbers, rows * count) };
    return keep(result, d, name);
}

/* A curve computed from the result itself. */
static const View *own_curve(Result *result, const char *name, Error *err)
{
    Derived    *known = find_derived(result, name);
    const View *view;

    if (known)
        return &known->view;
    if (run_view(result->run, name) || result->run->err.code != ERR_NONE)
        return NULL;
    view = trace_of(result, name, err);
    return view ? view : spectrum_of(result, name, err);
}

const View *result_derived(Result *result, const char *name, Error *err)
{
    const View *view = own_curve(result, name, err);
    const Run  *replay = view || (err && err->code != ERR_NONE) || run_view(result->run, name)
                             ? NULL : result_replay(result);

    return view ? view : replay ? run_view(replay, name) : NULL;
}

const View *result_derived_at(Result *result, int at)
{
    static const char *const names[] = { SPECTRUM_VIEW, TRACE_VIEW };
    Error                    ignored = ERROR_INIT;

    for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
        const View *view = own_curve(result, names[k], &ignored);

        if (view && at-- == 0)
            return view;
    }
    return NULL;
}
