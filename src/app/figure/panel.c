/* panel.c -- the words of one panel, its looks, and names of views; see plan.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/picture.h"
#include "app/figure/plan.h"
#include "app/result/views.h"
#include "core/text.h"

/* Skips quotes and brackets: they belong to the parameters. */
typedef struct Scan {
    int  depth;
    char quote; /* that is open; 0: none */
} Scan;

static bool outside(Scan *scan, char c)
{
    if (scan->quote) {
        scan->quote = c == scan->quote ? 0 : scan->quote;
        return false;
    }
    if (c == '"' || c == '\'')
        scan->quote = c;
    scan->depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    return !scan->depth && !scan->quote && c != ')' && c != ']' && c != '}';
}

/* The first of these characters outside brackets, or the end. */
static const char *find_outside(const char *text, const char *end, const char *any)
{
    Scan scan = { 0 };

    for (; text < end; text++)
        if (outside(&scan, *text) && strchr(any, *text))
            break;
    return text;
}

/* A line break counts, too: a command that was copied from a screen may have one within quotes. */
static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The first sign with a blank on either side, outside of brackets and quotes: where the blank
 * before it is; NULL: none. */
static const char *find_sign(const char *text, char sign)
{
    Scan scan = { 0 };

    for (; *text; text++)
        if (outside(&scan, *text) && is_blank(*text) && text[1] == sign && is_blank(text[2]))
            return text;
    return NULL;
}

/* Drops blanks around a part. */
static void trim(const char **text, const char **end)
{
    while (*text < *end && is_blank(**text))
        ++*text;
    while (*end > *text && is_blank((*end)[-1]))
        --*end;
}

const char *panel_word_end(const char *words)
{
    const char *plus = find_sign(words, '+');

    return plus ? plus : words + strlen(words);
}

static bool head_of_side(const char *text, const char *end, int64_t *head, Error *err)
{
    char *stop;
    long  value = strtol(text, &stop, 10);

    *head = HEADS_ALL;
    if (end - text == 1 && *text == '*')
        return true;
    if (stop != end || stop == text || value < 0)
        return error_set(err, ERR_USAGE,
                         "'@%.*s': expected a head's number, counted from 0, or * for all",
                         (int)(end - text), text);
    *head = value;
    return true;
}

#define SORTED "/sorted"

static bool parse_view(const char *text, const char *end, PanelSpec *side, Error *err)
{
    const char *slash = memchr(text, '/', (size_t)(end - text));

    if (slash) {
        side->sorted =
            end - slash == (int)strlen(SORTED) && !strncmp(slash, SORTED, strlen(SORTED));
        if (!side->sorted)
            return error_set(err, ERR_USAGE, "'%.*s': after a view only /sorted can stand",
                             (int)(end - slash), slash);
        end = slash;
    }
    if (end == text || end - text >= (int)sizeof(side->view))
        return error_set(err, ERR_USAGE, "':%.*s': expected the name of a view", (int)(end - text),
                         text);
    snprintf(side->view, sizeof(side->view), "%.*s", (int)(end - text), text);
    return true;
}

/* View and head may be given once each: the first of two would be lost. */
static bool given_once(const char *text, const char *end, char sign, const PanelSpec *side,
                      Error *err)
{
    bool again = sign == '@' ? side->head != -1 : side->view[0] != 0;

    return !again || error_set(err, ERR_USAGE,
                               "'%.*s': a panel has one %s; a difference has blanks around its "
                               "minus, as in 'full:weights - bigbird:weights'",
                               (int)(end - text), text, sign == '@' ? "head" : "view");
}

static bool parse_side(const char *text, const char *end, char **mechanism, PanelSpec *side,
                       Error *err)
{
    const char *stop;

    trim(&text, &end);
    stop = find_outside(text, end, ":@");
    for (const char *at = stop, *next; at < end; at = next) {
        next = at + 1 + strcspn(at + 1, ":@");
        next = next < end ? next : end;
        if (!given_once(text, end, *at, side, err))
            return false;
        if (*at == '@' ? !head_of_side(at + 1, next, &side->head, err)
                       : !parse_view(at + 1, next, side, err))
            return false;
    }
    if (stop == text)
        return error_set(err, ERR_USAGE, "a panel needs a mechanism, as in full:weights");
    *mechanism = strndup(text, (size_t)(stop - text));
    return *mechanism || error_set(err, ERR_NOMEM, "not enough memory");
}

void panel_word_free(PanelWord *word)
{
    free(word->mechanism);
    free(word->minus);
    *word = (PanelWord){ 0 };
}

static bool panel_spec_parse(const char *text, size_t length, PanelSpec *out, Error *err);

/* Parses the braces at the end of a word; *end becomes their start. */
static bool parse_looks(const char *text, const char **end, PanelSpec *out, Error *err)
{
    Scan        scan = { 0 };
    const char *open = NULL;

    for (const char *at = text; at < *end && !open; at++) {
        if (*at == '{' && !scan.depth && !scan.quote)
            open = at;
        outside(&scan, *at);
    }
    if (!open)
        return true;
    if ((*end)[-1] != '}')
        return error_set(err, ERR_USAGE, "'%s': the braces of a panel's looks end its word", text);
    if (!panel_spec_parse(open + 1, (size_t)(*end - open - 2), out, err))
        return false;
    *end = open;
    return true;
}

bool panel_word_parse(const char *text, PanelWord *out, Error *err)
{
    const char *minus = find_sign(text, '-'), *end = text + strlen(text);
    PanelSpec   other = PANEL_SPEC_INIT;

    *out = (PanelWord){ .spec = PANEL_SPEC_INIT };
    trim(&text, &end);
    if (!parse_looks(text, &end, &out->spec, err))
        return false;
    if (!parse_side(text, minus ? minus : end, &out->mechanism, &out->spec, err))
        return false;
    if (!minus)
        return true;
    if (find_sign(minus + 3, '-'))
        error_set(err, ERR_USAGE, "'%s': one difference a panel", text);
    else if (parse_side(minus + 3, end, &out->minus, &other, err) && other.head == -1) {
        memcpy(out->spec.minus_view, other.view, sizeof(other.view));
        return true;
    } else if (out->minus)
        error_set(err, ERR_USAGE, "'%s': the head is said once, before the minus", text);
    panel_word_free(out);
    return false;
}

/* ---- looks from text ------------------------------------------------------------ */

static bool parse_whole(const char *name, const char *value, long long least, int64_t *out,
                        Error *err)
{
    return (text_whole(value, out) && *out >= least) ||
           error_set(err, ERR_USAGE, "{%s=%s}: expected a whole number from %lld", name, value,
                     least);
}

static bool parse_value(const char *name, const char *value, double *out, Error *err)
{
    char *end;

    *out = strtod(value, &end);
    return (end != value && !*end && *out - *out == 0) ||
           error_set(err, ERR_USAGE, "{%s=%s}: expected a number", name, value);
}

static bool region_look(const char *value, Region *out, Error *err)
{
    long long q0, q1, k0, k1;
    int       end = 0;

    if (sscanf(value, "%lld:%lld,%lld:%lld%n", &q0, &q1, &k0, &k1, &end) != 4 || value[end])
        return error_set(err, ERR_USAGE, "{region=%s}: expected Q0:Q1,K0:K1 like 0:64,0:64", value);
    *out = (Region){ q0, q1, k0, k1 };
    return true;
}

static bool parse_reach(const char *name, const char *value, PanelSpec *out, Error *err)
{
    int64_t layers;

    if (!strcmp(name, "residual")) {
        out->reach.strict = !strcmp(value, "false");
        return out->reach.strict || !strcmp(value, "true") ||
               error_set(err, ERR_USAGE, "{residual=%s}: expected true or false", value);
    }
    if (!parse_whole(name, value, 1, &layers, err))
        return false;
    if (layers > REACH_MOST)
        return error_set(err, ERR_USAGE, "{layers=%s}: at most %d", value, REACH_MOST);
    out->reach.layers = (int)layers;
    return true;
}

static bool parse_notes(const char *value, PanelSpec *out, Error *err)
{
    PanelNote notes[PANEL_NOTES];
    int       count;

    if (!notes_parse(value, notes, &count, err))
        return false;
    snprintf(out->notes, sizeof(out->notes), "%s", value);
    return true;
}

static bool parse_colours(const char *name, const char *value, PanelSpec *out, Error *err)
{
    Pool      pool;
    Scale     scale;
    ColourMap map;
    bool      ok;

    if (*name == 'p') {
        ok = pool_parse(value, &pool, err);
        out->pool = ok ? (int)pool : -1;
    } else if (*name == 's') {
        ok = scale_parse(value, &scale, err);
        out->scale = ok ? (int)scale : -1;
    } else {
        ok = colour_map_parse(value, &map, err);
        out->map = ok ? (int)map : -1;
    }
    return ok;
}

static bool set_look(const char *name, const char *value, PanelSpec *out, Error *err)
{
    if (!strcmp(name, "pool") || !strcmp(name, "scale") || !strcmp(name, "cmap"))
        return parse_colours(name, value, out, err);
    if (!strcmp(name, "region"))
        return region_look(value, &out->region, err);
    if (!strcmp(name, "lo") || !strcmp(name, "hi")) {
        out->ranged = true;
        return parse_value(name, value, name[0] == 'l' ? &out->lo : &out->hi, err);
    }
    if (!strcmp(name, "exclude"))
        return out->excludes = parse_whole(name, value, 0, &out->excluded, err);
    if (!strcmp(name, "round"))
        return parse_whole(name, value, 1, &out->round, err);
    if (!strcmp(name, "layers") || !strcmp(name, "residual"))
        return parse_reach(name, value, out, err);
    if (!strcmp(name, "notes"))
        return parse_notes(value, out, err);
    return error_set(err, ERR_USAGE, "{%s=..}: a panel has pool, scale, cmap, region, lo, hi, "
                     "exclude, round, layers, residual and notes of its own", name);
}

/* End of the assignment that begins at text: the comma before the next name. */
static const char *look_end(const char *text, const char *end)
{
    for (const char *at = text; at < end; at++) {
        const char *equals = *at == ',' ? memchr(at, '=', (size_t)(end - at)) : NULL;
        const char *comma = equals ? memchr(at + 1, ',', (size_t)(end - at - 1)) : NULL;

        if (equals && (!comma || comma > equals))
            return at;
    }
    return end;
}

/* The looks of text, which stands inside the braces of a panel's word. */
static bool panel_spec_parse(const char *text, size_t length, PanelSpec *out, Error *err)
{
    const char *end = text + length;
    char        one[NOTES_BYTES + 16];
    bool        ok = true;

    while (ok && text < end) {
        const char *stop = look_end(text, end);
        char       *equals;

        snprintf(one, sizeof(one), "%.*s", (int)(stop - text), text);
        equals = strchr(one, '=');
        if (!equals || (size_t)(stop - text) >= sizeof(one))
            return error_set(err, ERR_USAGE, "{%.*s}: expected name=value, as in {pool=mean}",
                             (int)length, end - length);
        *equals = '\0';
        ok = set_look(one, equals + 1, out, err);
        text = stop + (stop < end);
    }
    if (ok && out->ranged && !(out->lo < out->hi))
        return error_set(err, ERR_USAGE, "{lo=%g,hi=%g}: lo must be below hi", out->lo, out->hi);
    return ok;
}

PanelSpec panel_spec(const char *view)
{
    PanelSpec spec = PANEL_SPEC_INIT;

    snprintf(spec.view, sizeof(spec.view), "%s", view);
    return spec;
}

/* ---- looks to text -------------------------------------------------------------- */

static void write_look(const char *name, double value, Text *out)
{
    Json number;

    text_addf(out, ",%s=", name);
    number = jsonw_to(out);
    jsonw_number(&number, value);
}

void panel_spec_text(const PanelSpec *l, Text *out)
{
    Text all = { 0 };

    if (l->pool >= 0)
        text_addf(&all, ",pool=%s", pool_name((Pool)l->pool));
    if (l->scale >= 0)
        text_addf(&all, ",scale=%s", scale_name((Scale)l->scale));
    if (l->map >= 0)
        text_addf(&all, ",cmap=%s", colour_map_name((ColourMap)l->map));
    if (l->region.row1 > 0)
        text_addf(&all, ",region=%lld:%lld,%lld:%lld", (long long)l->region.row0,
                  (long long)l->region.row1, (long long)l->region.col0, (long long)l->region.col1);
    if (l->ranged) {
        write_look("lo", l->lo, &all);
        write_look("hi", l->hi, &all);
    }
    if (l->excludes)
        text_addf(&all, ",exclude=%lld", (long long)l->excluded);
    if (l->round)
        text_addf(&all, ",round=%lld", (long long)l->round);
    if (l->reach.layers)
        text_addf(&all, ",layers=%d", l->reach.layers);
    text_add(&all, l->reach.strict ? ",residual=false" : "");
    if (*l->notes)
        text_addf(&all, ",notes=%s", l->notes);
    if (all.length)
        text_addf(out, "{%s}", text_str(&all) + 1);
    text_free(&all);
}

bool panel_spec_looks_same(const PanelSpec *a, const PanelSpec *b)
{
    Text x = { 0 }, y = { 0 };
    bool same;

    panel_spec_text(a, &x);
    panel_spec_text(b, &y);
    same = !strcmp(text_str(&x), text_str(&y));
    text_free(&x);
    text_free(&y);
    return same;
}

/* ---- to a panel ------------------------------------------------------------------ */

static bool apply_round(int64_t round, const Result *result, Panel *panel, Error *err)
{
    int64_t planes = view_planes(panel->view), heads = result->run->h;
    int64_t rounds = panel->view->headless || planes % heads ? 1 : planes / heads;

    if (round > rounds)
        return error_set(err, ERR_USAGE, "{round=%lld}: %s has %lld of them", (long long)round,
                         panel->view->name, (long long)rounds);
    panel->plane += round - 1;
    return true;
}

bool panel_spec_apply(const PanelSpec *l, const Result *result, Panel *panel, Error *err)
{
    if ((l->reach.layers || l->reach.strict) && !picture_reach(result, &l->reach, panel, err))
        return false;
    if (l->pool >= 0)
        panel->pool = (Pool)l->pool;
    if (l->scale >= 0)
        panel->scale = (Scale)l->scale;
    panel->scale_given = panel->scale_given || l->scale >= 0;
    if (l->map >= 0)
        panel->map = (ColourMap)l->map;
    panel->map_given = panel->map_given || l->map >= 0;
    if (l->ranged) {
        panel->lo = l->lo;
        panel->hi = l->hi;
    }
    if (*l->notes && !panel->plot && !notes_parse(l->notes, panel->notes, &panel->note_count, err))
        return false;
    return (!l->region.row1 || picture_region(l->region, panel, err)) &&
           (!l->excludes || picture_exclude(l->excluded, panel, err)) &&
           (!l->round || apply_round(l->round, result, panel, err));
}

/* ---- names of views ------------------------------------------------------ */

/* Views that any run may have besides those its mechanism promises. */
static const char *const everywhere[] = { "auto",       "output",    REACH_VIEW,
                                          MISSED_VIEW,  TRACE_VIEW,  SPECTRUM_VIEW,
                                          "position_bias", "bias",  NULL };

#define POSITION_VIEWS "position_" /* first part of the names of a position's terms */

const char *view_of_any(int index)
{
    return everywhere[index];
}

static bool offer(Meant *nearest, const char *name)
{
    meant_offer(nearest, name);
    return !strcmp(nearest->wanted, name);
}

/* True: the name is one of them. */
static bool offer_all(Meant *nearest, const Mechanism *m)
{
    bool known = false;

    for (const ViewPromise *v = m->views; v && v->name; v++)
        known |= offer(nearest, v->name);
    for (const Param *p = m->params; p && p->name; p++) /* a random tensor is a view, too */
        known |= p->type == PARAM_TYPE_TENSOR && offer(nearest, p->name);
    for (int i = 0; everywhere[i]; i++)
        known |= offer(nearest, everywhere[i]);
    return known;
}

/* Some mechanism or position has a view of that name, and it may run inside this one. */
static bool is_others(const char *name)
{
    for (size_t i = 0; mechanism_at(i); i++)
        for (const ViewPromise *v = mechanism_at(i)->views; v && v->name; v++)
            if (!strcmp(v->name, name))
                return true;
    return !strncmp(name, POSITION_VIEWS, strlen(POSITION_VIEWS));
}

bool view_name_check(const Mechanism *m, const char *name, Error *err)
{
    Meant nearest = { name, NULL, 2 + (int)strlen(name) / 4 };

    if (strchr(name, '=') && !strpbrk(name, "#*("))
        return error_set(err, ERR_USAGE, "%s has no view '%s'; a shell takes braces with a comma "
                         "apart: put the panel with its {name=value,..} into quotes", m->id, name);
    if (!*name || strpbrk(name, "#*(") || offer_all(&nearest, m) || !nearest.name ||
        is_others(name))
        return true;
    return error_set(err, ERR_USAGE, "%s has no view '%s'; did you mean '%s'?", m->id, name,
                     nearest.name);
}
