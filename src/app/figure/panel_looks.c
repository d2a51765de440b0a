/* panel_looks.c -- see panel_looks.h. */
#include "app/figure/panel_looks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/picture.h"

/* ---- from text ---------------------------------------------------------------- */

static bool parse_whole(const char *name, const char *value, long long least, int64_t *out,
                        Error *err)
{
    char *end;

    *out = strtoll(value, &end, 10);
    return (end != value && !*end && *out >= least) ||
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

static bool parse_region(const char *value, Region *out, Error *err)
{
    long long q0, q1, k0, k1;
    int       end = 0;

    if (sscanf(value, "%lld:%lld,%lld:%lld%n", &q0, &q1, &k0, &k1, &end) != 4 || value[end])
        return error_set(err, ERR_USAGE, "{region=%s}: expected Q0:Q1,K0:K1 like 0:64,0:64", value);
    *out = (Region){ q0, q1, k0, k1 };
    return true;
}

static bool parse_reach(const char *name, const char *value, PanelLooks *out, Error *err)
{
    int64_t layers;

    if (!strcmp(name, "residual")) {
        out->strict = !strcmp(value, "false");
        return out->strict || !strcmp(value, "true") ||
               error_set(err, ERR_USAGE, "{residual=%s}: expected true or false", value);
    }
    if (!parse_whole(name, value, 1, &layers, err))
        return false;
    if (layers > REACH_MOST)
        return error_set(err, ERR_USAGE, "{layers=%s}: at most %d", value, REACH_MOST);
    out->layers = (int)layers;
    return true;
}

static bool parse_notes(const char *value, PanelLooks *out, Error *err)
{
    PanelNote notes[PANEL_NOTES];
    int       count;

    if (!notes_parse(value, notes, &count, err))
        return false;
    snprintf(out->notes, sizeof(out->notes), "%s", value);
    return true;
}

static bool set_look(const char *name, const char *value, PanelLooks *out, Error *err)
{
    if (!strcmp(name, "pool"))
        return out->pooled = pool_parse(value, &out->pool, err);
    if (!strcmp(name, "scale"))
        return out->scaled = scale_parse(value, &out->scale, err);
    if (!strcmp(name, "cmap"))
        return out->mapped = colour_map_parse(value, &out->map, err);
    if (!strcmp(name, "region"))
        return parse_region(value, &out->region, err);
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

/* Where the assignment that begins at text ends: at the comma before the next name. */
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

bool panel_looks_parse(const char *text, size_t length, PanelLooks *out, Error *err)
{
    const char *end = text + length;
    char        one[NOTES_BYTES + 16];
    bool        ok = true;

    *out = (PanelLooks){ 0 };
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

/* ---- to text -------------------------------------------------------------------- */

static void add_value(const char *name, double value, Text *out)
{
    Json number;

    text_addf(out, ",%s=", name);
    number = jsonw_to(out);
    jsonw_number(&number, value);
}

void panel_looks_text(const PanelLooks *l, Text *out)
{
    Text all = { 0 };

    if (l->pooled)
        text_addf(&all, ",pool=%s", pool_name(l->pool));
    if (l->scaled)
        text_addf(&all, ",scale=%s", scale_name(l->scale));
    if (l->mapped)
        text_addf(&all, ",cmap=%s", colour_map_name(l->map));
    if (l->region.row1 > 0)
        text_addf(&all, ",region=%lld:%lld,%lld:%lld", (long long)l->region.row0,
                  (long long)l->region.row1, (long long)l->region.col0, (long long)l->region.col1);
    if (l->ranged) {
        add_value("lo", l->lo, &all);
        add_value("hi", l->hi, &all);
    }
    if (l->excludes)
        text_addf(&all, ",exclude=%lld", (long long)l->excluded);
    if (l->round)
        text_addf(&all, ",round=%lld", (long long)l->round);
    if (l->layers)
        text_addf(&all, ",layers=%d", l->layers);
    text_add(&all, l->strict ? ",residual=false" : "");
    if (*l->notes)
        text_addf(&all, ",notes=%s", l->notes);
    if (all.length)
        text_addf(out, "{%s}", text_str(&all) + 1);
    text_free(&all);
}

bool panel_looks_same(const PanelLooks *a, const PanelLooks *b)
{
    Text x = { 0 }, y = { 0 };
    bool same;

    panel_looks_text(a, &x);
    panel_looks_text(b, &y);
    same = !strcmp(text_str(&x), text_str(&y));
    text_free(&x);
    text_free(&y);
    return same;
}

/* ---- to a panel ------------------------------------------------------------------ */

static bool apply_region(Region r, Panel *panel, Error *err)
{
    int64_t rows = view_rows(panel->view), cols = view_cols(panel->view);

    if (r.row0 < 0 || r.col0 < 0 || r.row0 >= r.row1 || r.col0 >= r.col1 || r.row1 > rows ||
        r.col1 > cols)
        return error_set(err, ERR_USAGE, "the region %lld:%lld,%lld:%lld is not inside the %lld x "
                         "%lld view %s", (long long)r.row0, (long long)r.row1, (long long)r.col0,
                         (long long)r.col1, (long long)rows, (long long)cols, panel->view->name);
    panel->region = r;
    return true;
}

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

bool panel_looks_apply(const PanelLooks *l, const Result *result, Panel *panel, Error *err)
{
    ReachOptions reach = { l->layers, l->strict };

    if ((l->layers || l->strict) && !picture_reach(result, &reach, panel, err))
        return false;
    if (l->pooled)
        panel->pool = l->pool;
    if (l->scaled)
        panel->scale = l->scale;
    if (l->mapped)
        panel->map = l->map;
    panel->map_given = panel->map_given || l->mapped;
    if (l->ranged) {
        panel->lo = l->lo;
        panel->hi = l->hi;
    }
    if (*l->notes && !panel->plot && !notes_parse(l->notes, panel->notes, &panel->note_count, err))
        return false;
    return (!l->region.row1 || panel->plot || apply_region(l->region, panel, err)) &&
           (!l->excludes || picture_exclude(l->excluded, panel, err)) &&
           (!l->round || apply_round(l->round, result, panel, err));
}
