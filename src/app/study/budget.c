/* budget.c -- searches a mechanism's size for a share of exact attention's price; see budget.h. */
#include "app/study/budget.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/pattern/pattern.h"

#define TRIES_MOST   40
#define NEAR         0.01 /* relative; nearer is not searched */
#define FAR          1.1  /* a reached share that is off by more is set against the budget's */
#define USUAL_TOKENS 128  /* a small default stands for so many tokens */
#define SMALL_MOST   16   /* larger defaults were not made for a few tokens */

#define KINDS 2

static const char *const kinds[] = { "pairs", "flops" };
static const char *const kind_words[] = { "pairs", "FLOPs" };

bool budget_parse(const char *text, Budget *out, Error *err)
{
    const char *equals = strchr(text, '=');
    char       *end = NULL;
    int         kind = 0;

    while (equals && kind < KINDS && (strlen(kinds[kind]) != (size_t)(equals - text) ||
                                  strncmp(text, kinds[kind], (size_t)(equals - text)) != 0))
        kind++;
    *out = (Budget){ .kind = (BudgetKind)(kind < KINDS ? kind : 0) };
    if (equals && kind < KINDS) {
        out->share = strtod(equals + 1, &end);
        if (*end == '%') {
            out->share /= 100;
            end++;
        }
    }
    return (end && end > equals + 1 && !*end && out->share > 0 && out->share <= 1) ||
           error_set(err, ERR_USAGE, "--budget %.60s: expected pairs= or flops= and a share "
                     "of full attention's up to 100%%, such as pairs=5%%", text);
}

/* ---- what a run takes ------------------------------------------------------------- */

/* Allowed pairs of a head; NaN: the run shows none of queries and keys. */
static double pairs_of(const Run *run)
{
    const View *view = run_view(run, "connectivity");

    if (!view || view_rows(view) != run->n || view_cols(view) != run->m)
        return (double)NAN;
    if (!view->support)
        return run->mechanism->classes & CLASS_BASELINE ? (double)run->n * (double)run->m
                                                        : (double)NAN;
    return (double)pattern_count(view->support) / (double)pattern_heads(view->support);
}

static double amount(const Result *result, BudgetKind kind)
{
    return kind == BUDGET_PAIRS ? pairs_of(result->run) : flops_total(result->record.counted);
}

/* ---- the search ------------------------------------------------------------------- */

typedef struct Search {
    Session       *session;
    const Budget  *budget;
    const Param   *param;
    const Request *request;
    bool           falls;
    int64_t        keys;
    double         whole;      /* exact attention's amount */
    int64_t        best;       /* value of the parameter; 0: none yet */
    double         reached;    /* its share */
    int64_t        side[2];    /* nearest values below the budget, and above; 0: none */
    double         side_share[2];
    int            tries;
    double         least;      /* share of the first size, the smallest */
    char           problem[512];
} Search;

/* A larger w takes more. */
static int64_t value_at(const Search *f, int64_t w)
{
    int64_t value = f->falls ? (f->keys + w / 2) / w : w;

    return (double)value < f->param->lo ? (int64_t)f->param->lo : value;
}

static bool set_size(Session *s, Request *request, const char *name, int64_t value, Error *err)
{
    char text[128];

    snprintf(text, sizeof(text), "%s=%lld", name, (long long)value);
    return request_set(s, request, text, err);
}

static bool plain_request(const Search *f, int64_t value, Request *out, Error *err)
{
    if (!request_copy(out, f->request, err))
        return false;
    out->measure = out->quality = out->per_head = out->missed = false;
    out->repeat = out->seeds = 0;
    out->width = 0;
    out->pairs_only = f->budget->kind == BUDGET_PAIRS;
    if (set_size(f->session, out, f->param->name, value, err))
        return true;
    request_free(out);
    return false;
}

/* A closed form that is exact spares the run. */
static bool planned(const Search *f, const Request *request, double *out)
{
    Flops flops;
    bool  bound = false;

    if (f->budget->kind != BUDGET_FLOPS || mechanism_find(request->mechanism)->flops_works ||
        strcmp(request->position, "none") != 0 ||
        !request_planned_flops(f->session, request, &flops, &bound) || bound)
        return false;
    *out = flops_total(flops);
    return true;
}

/* NaN: a run of this size failed, or shows no pairs.  False: no memory or cancelled. */
static bool taken(Search *f, const Request *request, double *out, Error *err)
{
    Result *result;

    if (planned(f, request, out))
        return true;
    result = session_run(f->session, request, err);
    *out = (double)NAN;
    if (!result)
        return false;
    if (result->run->err.code == ERR_NONE)
        *out = amount(result, f->budget->kind);
    else
        snprintf(f->problem, sizeof(f->problem), "%s", result->run->err.text);
    if (result->run->err.code == ERR_CANCELLED)
        *err = result->run->err;
    result_release(result);
    return err->code == ERR_NONE;
}

static double distance(const Search *f, double share)
{
    return share > 0 ? fabs(log(share / f->budget->share)) : HUGE_VAL;
}

static void keep_side(Search *f, int64_t value, double share)
{
    int side = share > f->budget->share;

    if (!f->side[side] || distance(f, share) < distance(f, f->side_share[side])) {
        f->side[side] = value;
        f->side_share[side] = share;
    }
}

/* *share: of size w; NaN: it cannot be known. */
static bool try_size(Search *f, int64_t w, double *share, Error *err)
{
    int64_t value = value_at(f, w);
    Request request;
    bool    ok;

    f->tries++;
    session_progress(f->session, "budget: %s(%s=%lld)", f->request->mechanism, f->param->name,
                     (long long)value);
    if (!plain_request(f, value, &request, err))
        return false;
    ok = taken(f, &request, share, err);
    request_free(&request);
    *share /= f->whole;
    if (!ok || isnan(*share))
        return ok;
    if (!f->best)
        f->least = *share;
    if (!f->best || distance(f, *share) < distance(f, f->reached)) {
        f->best = value;
        f->reached = *share;
    }
    keep_side(f, value, *share);
    return true;
}

static bool near_enough(const Search *f)
{
    return f->best && distance(f, f->reached) < NEAR;
}

/* Between a size below the budget and one above. */
static bool narrow(Search *f, int64_t below, int64_t above, Error *err)
{
    while (above - below > 1 && f->tries < TRIES_MOST && !near_enough(f)) {
        int64_t middle = below + (above - below) / 2;
        double  share;

        if (!try_size(f, middle, &share, err))
            return false;
        if (isnan(share))
            return true;
        *(share < f->budget->share ? &below : &above) = middle;
    }
    return true;
}

/* Doubles the size until the budget is passed, so that no run is much dearer than the budget. */
static bool search(Search *f, Error *err)
{
    int64_t below = 0, last = 2 * f->keys;
    int64_t start = f->falls || f->param->lo < 1 ? 1 : (int64_t)f->param->lo;

    for (int64_t w = start; w <= last && f->tries < TRIES_MOST; w *= 2) {
        double share;

        if (!try_size(f, w, &share, err))
            return false;
        if (share >= f->budget->share)
            return below ? narrow(f, below, w, err) : true;
        if (!isnan(share))
            below = w;
    }
    return true;
}

/* ---- what is said ------------------------------------------------------------------ */

/* Its smallest size takes what exact attention does. */
static bool takes_all(const Search *f)
{
    return f->budget->share < 1 && f->least > 1 - NEAR;
}

/* Sizes are whole, so the one next to it lies on the other side of the budget, or is none. */
static void say_missed(const Search *f, Text *note)
{
    int other = f->reached <= f->budget->share;

    text_addf(note, ", the nearest there is to %.3g %%: ", 100 * f->budget->share);
    if (f->side[other])
        text_addf(note, "%s=%lld takes %.3g %%", f->param->name, (long long)f->side[other],
                  100 * f->side_share[other]);
    else
        text_addf(note, "no size takes %s", other ? "more" : "less");
}

static void say_reached(const Search *f, Text *note)
{
    const char *words = kind_words[f->budget->kind];

    if (!f->best && *f->problem) {
        text_addf(note, "no %s could be tried: %s", f->param->name, f->problem);
        return;
    }
    if (!f->best) {
        text_addf(note, "it does not choose pairs of queries and keys; --budget flops=SHARE "
                        "chooses its %s", f->param->name);
        return;
    }
    if (takes_all(f)) {
        text_addf(note, "all %s even with %s=%lld%s", words, f->param->name, (long long)f->best,
                  f->budget->kind == BUDGET_PAIRS ? "; --budget flops=SHARE chooses by work" : "");
        return;
    }
    text_addf(note, "%s=%lld takes %.3g %% of full attention's %s", f->param->name,
              (long long)f->best, 100 * f->reached, words);
    if (distance(f, f->reached) > log(FAR))
        say_missed(f, note);
}

/* The parameter to be chosen; NULL: *note says why none is. */
static const Param *size_of(const Request *request, Text *note)
{
    const Mechanism *m = mechanism_find(request->mechanism);
    const Param     *param = m && m->size ? params_find(m->params, m->size) : NULL;

    if (!param)
        text_add(note, m && m->classes & CLASS_BASELINE ? "exact attention is what shares are of"
                                                        : "it has no size to choose");
    else if (assignments_find(&request->given, m->size))
        text_addf(note, "%s is given and stays", m->size);
    else
        return param;
    return NULL;
}

bool budget_choose(Session *s, const Budget *budget, const Result *exact, Request *request,
                   Text *note, Error *err)
{
    Search       f = { .session = s, .budget = budget, .request = request };
    const Input *input = session_input(s);
    bool         ok;

    text_addf(note, "%s: ", request->mechanism);
    f.param = size_of(request, note);
    if (!f.param)
        return true;
    f.falls = mechanism_find(request->mechanism)->size_falls;
    f.keys = input->m > 0 ? input->m : input->n;
    f.whole = amount(exact, budget->kind);
    if (!(f.whole > 0)) {
        text_addf(note, "full attention did not run, so there are no shares of its %s",
                  kind_words[budget->kind]);
        return true;
    }
    ok = search(&f, err);
    if (ok)
        say_reached(&f, note);
    return ok && (!f.best || takes_all(&f) || set_size(s, request, f.param->name, f.best, err));
}

/* ---- sizes that follow n ------------------------------------------------------------ */

static int64_t usual_of(const Mechanism *m, const Param *param)
{
    return param->fallback > 0 ? (int64_t)param->fallback : m->size_usual;
}

static bool is_given(const Request *request, const char *name)
{
    return name && assignments_find(&request->given, name);
}

const Param *size_left_out(const Request *request, int64_t *usual)
{
    const Mechanism *m = mechanism_find(request->mechanism);
    const Param     *param = m && m->size ? params_find(m->params, m->size) : NULL;

    if (!param || !(m->size_reads || (m->classes & CLASS_FP && !m->size_falls)) ||
        is_given(request, m->size) || is_given(request, m->size_instead))
        return NULL;
    *usual = usual_of(m, param);
    return *usual >= 1 && *usual <= SMALL_MOST ? param : NULL;
}

bool size_follow(Session *s, Request *request, Text *note, Error *err)
{
    const Mechanism *m = mechanism_find(request->mechanism);
    int64_t          usual = 0;
    const Param     *param = size_left_out(request, &usual);
    const Input     *input = session_input(s);
    int64_t          keys = input->m > 0 ? input->m : input->n, times = keys / USUAL_TOKENS;
    int64_t          value = usual * times;

    if (!param || times < 2)
        return true;
    text_addf(note, "%s: %s=%lld, %lld for every %d keys; '%s(%s=%lld)' is the default", m->id,
              param->name, (long long)value, (long long)usual, USUAL_TOKENS, m->id, param->name,
              (long long)usual);
    return set_size(s, request, param->name, value, err);
}
