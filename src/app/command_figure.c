/* command_figure.c -- figures from the command line, and making them again. */
#include "app/command_parts.h"
#include "app/session_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PANELS 64

typedef struct Drawing {
    Result     *results[MOST_PANELS];
    char        names[MOST_PANELS][48]; /* of a view given with the panel */
    const char *views[MOST_PANELS];     /* names, or NULL */
    int         count;
} Drawing;

/* "bigbird(window=5):weights": the view after the last colon, outside brackets. */
static char *split_view(const char *word, Drawing *d)
{
    const char *close = strrchr(word, ')');
    const char *colon = strrchr(close ? close : word, ':');

    d->views[d->count] = NULL;
    if (!colon)
        return strdup(word);
    snprintf(d->names[d->count], sizeof(d->names[0]), "%s", colon + 1);
    d->views[d->count] = d->names[d->count];
    return strndup(word, (size_t)(colon - word));
}

static void drawing_free(Drawing *d)
{
    for (int i = 0; i < d->count; i++)
        result_release(d->results[i]);
}

static bool add_result(Session *s, const Call *call, const char *word, Drawing *d, Error *err)
{
    Request request;
    Result *result;
    char   *mechanism;
    bool    ok;

    if (d->count == MOST_PANELS)
        return error_set(err, ERR_USAGE, "more than %d panels in one figure", MOST_PANELS);
    mechanism = split_view(word, d);
    ok = mechanism ? call_request(s, call, mechanism, &request, err)
                   : error_set(err, ERR_NOMEM, "not enough memory");
    free(mechanism);
    if (!ok)
        return false;
    result = session_run(s, &request, err);
    request_free(&request);
    if (!result)
        return false;
    d->results[d->count++] = result;
    if (result->run->err.code == ERR_NONE)
        return true;
    *err = result->run->err;
    return false;
}

static bool parse_region(const char *text, Region *out, Error *err)
{
    long long q0, q1, k0, k1;
    int       end = 0;

    if (!text)
        return true;
    if (sscanf(text, "%lld:%lld,%lld:%lld%n", &q0, &q1, &k0, &k1, &end) != 4 || text[end])
        return error_set(err, ERR_USAGE, "--region: expected Q0:Q1,K0:K1 like 0:64,0:64, got '%s'",
                         text);
    *out = (Region){ q0, q1, k0, k1 };
    return true;
}

static bool parse_grid(const char *text, PictureOptions *options, Error *err)
{
    int end = 0;

    if (!text)
        return true;
    if (sscanf(text, "%dx%d%n", &options->rows, &options->cols, &end) != 2 || text[end] ||
        options->rows < 1 || options->cols < 1)
        return error_set(err, ERR_USAGE, "--grid: expected ROWSxCOLS like 2x4, got '%s'", text);
    return true;
}

static bool parse_number(const char *flag, const char *text, double lo, double hi, double *out,
                         Error *err)
{
    char  *end;
    double value;

    if (!text)
        return true;
    value = strtod(text, &end);
    if (end == text || *end || !(value >= lo && value <= hi))
        return error_set(err, ERR_USAGE, "--%s: expected a number from %g to %g, got '%s'", flag,
                         lo, hi, text);
    *out = value;
    return true;
}

bool call_picture_options(Session *s, const Call *call, PictureOptions *o, Error *err)
{
    double head = -1, layers = 0;

    *o = (PictureOptions){
        .view = call->values[OPT_VIEW],
        .head = -1,
        .pool = call->values[OPT_POOL],
        .scale = call->values[OPT_SCALE],
        .map = call->values[OPT_CMAP],
        .title = call->values[OPT_TITLE],
        .difference = call->values[OPT_DIFF] != NULL,
        .sorted = call->values[OPT_SORTED] != NULL,
        .span = call->values[OPT_SPAN],
        .reach.strict = call->values[OPT_NORESIDUAL] != NULL,
        .threads = session_threads(s, 0),
    };
    if (!parse_number("head", call->values[OPT_HEAD], 0, 1e6, &head, err))
        return false;
    if (!parse_number("layers", call->values[OPT_LAYERS], 1, REACH_MOST, &layers, err))
        return false;
    o->reach.layers = (int)layers;
    o->head = (int64_t)head;
    return parse_region(call->values[OPT_REGION], &o->region, err) &&
           parse_grid(call->values[OPT_GRID], o, err);
}

bool call_png_options(const Call *call, PngOptions *o, Error *err)
{
    const char *theme = call->values[OPT_THEME];
    double      dpi = 0, width = 0;

    if (theme && strcmp(theme, "light") && strcmp(theme, "dark"))
        return error_set(err, ERR_USAGE, "--theme: expected light or dark, got '%s'", theme);
    if (!parse_number("dpi", call->values[OPT_DPI], 20, 2400, &dpi, err) ||
        !parse_number("width", call->values[OPT_WIDTH], 0.5, 40, &width, err))
        return false;
    *o = (PngOptions){ .dpi = (int)dpi,
                       .width_inch = width,
                       .theme = theme,
                       .transparent = call->values[OPT_TRANSPARENT] != NULL };
    return true;
}

bool call_text_options(const Call *call, TextOptions *o, Error *err)
{
    const char *when = call->values[OPT_COLOR] ? call->values[OPT_COLOR] : "auto";
    const char *term = getenv("COLORTERM"), *no_colour = getenv("NO_COLOR");

    *o = (TextOptions){ .width = call->columns > 0 ? call->columns : 80, .utf8 = true };
    if (!strcmp(when, "truecolor"))
        o->colours = 24;
    else if (!strcmp(when, "256"))
        o->colours = 256;
    else if (strcmp(when, "auto") && strcmp(when, "none"))
        return error_set(err, ERR_USAGE, "--color: expected auto, truecolor, 256 or none, got '%s'",
                         when);
    else if (!strcmp(when, "auto") && call->tty && !(no_colour && *no_colour))
        o->colours = term && (!strcmp(term, "truecolor") || !strcmp(term, "24bit")) ? 24 : 256;
    return true;
}

static bool text_figure(const Call *call, const Figure *figure, Text *out, Error *err)
{
    TextOptions o;

    return call_text_options(call, &o, err) && figure_text(figure, &o, out, err);
}

static bool draw(Session *s, const Call *call, Drawing *d, const char *path, Text *out, Error *err)
{
    PictureOptions picture;
    PngOptions     png;
    Figure        *figure;
    bool           ok;

    bool given = false;

    for (int i = 0; i < d->count; i++)
        given = given || d->views[i];
    if (!call_picture_options(s, call, &picture, err) || !call_png_options(call, &png, err))
        return false;
    picture.views = given ? d->views : NULL;
    if (picture.difference && d->count < 2)
        return error_set(err, ERR_USAGE,
                         "--diff needs at least two mechanisms: each is shown minus "
                         "the first");
    if (picture.rows && picture.rows * picture.cols < d->count)
        return error_set(err, ERR_USAGE, "--grid %s has no room for %d panels",
                         call->values[OPT_GRID], d->count);
    figure = picture_of_results(d->results, d->count, &picture, err);
    if (!figure)
        return false;
    ok = path ? picture_save(s, figure, d->results, d->count, call->line, &png, path, err)
              : text_figure(call, figure, out, err);
    figure_free(figure);
    return ok;
}

static bool make_figure(Session *s, const Call *call, Text *out, Error *err)
{
    const char *path = call->values[OPT_OUTPUT];
    Drawing     d = { .count = 0 };
    bool    ok = call_check_params(call, err) && call_load_input(s, call, err);

    for (int i = 0; ok && i < call->word_count; i++)
        ok = add_result(s, call, call->words[i], &d, err);
    ok = ok && draw(s, call, &d, path, out, err);
    drawing_free(&d);
    return ok;
}

bool command_figure(Session *s, const Call *call, Text *out, Error *err)
{
    if (!call->word_count)
        return error_set(err, ERR_USAGE,
                         "figure needs at least one mechanism, for example "
                         "attnscope figure bigbird -n 48 -o bigbird.png");
    return make_figure(s, call, out, err);
}

/* ---- again ------------------------------------------------------------------ */

static bool read_file(const char *path, Text *out, Error *err)
{
    FILE  *file = fopen(path, "rb");
    char   block[65536];
    size_t length;
    bool   ok;

    if (!file)
        return error_set(err, ERR_FILE, "%s: cannot be opened", path);
    while ((length = fread(block, 1, sizeof(block), file)) > 0)
        text_add_bytes(out, block, length);
    ok = !ferror(file) && text_ok(out);
    fclose(file);
    return ok || error_set(err, ERR_FILE, "%s: cannot be read", path);
}

static bool same_bytes(const char *a, const char *b, Error *err)
{
    Text x = { 0 }, y = { 0 };
    bool ok = read_file(a, &x, err) && read_file(b, &y, err);

    if (ok && (x.length != y.length || memcmp(x.data, y.data, x.length) != 0))
        ok = error_set(err, ERR_DIFFERENCE,
                       "%s: the figure made again differs (another version, "
                       "input or library?)",
                       a);
    text_free(&x);
    text_free(&y);
    return ok;
}

/* The file was made from the input whose hash it carries; say so when that
 * input has changed since. */
static bool check_input(Session *s, const char *path, Text *out)
{
    Error ignored;
    char *hash = figure_png_metadata(path, "attnscope:input-sha256", &ignored);
    bool  same = hash && session_input(s) && !strcmp(hash, session_input(s)->sha256);

    if (hash && !same)
        text_addf(out, "%s: the input has changed since this figure was made\n", path);
    free(hash);
    return same;
}

static bool again(Session *s, const Call *call, const char *line, const char *to, Text *out,
                  Error *err)
{
    const char *words[CALL_MAX_WORDS];
    Text        storage = { 0 };
    Call        figure;
    int         count;

    bool ok = call_split(line, words, CALL_MAX_WORDS, &count, &storage, err);
    int  skip = ok && count > 0 && !strcmp(words[0], "attnscope"); /* as one pastes it */

    ok = ok && call_parse(&figure, words + skip, count - skip, err);
    if (ok && (!command_takes(figure.command, option_at(OPT_OUTPUT)) ||
               figure.command == call->command))
        ok = error_set(err, ERR_FORMAT, "%s: '%s' is not a command that draws", call->words[0],
                       figure.command->name);
    if (ok) {
        figure.line = line;
        figure.values[OPT_OUTPUT] = to;
        ok = figure.command->run(s, &figure, out, err);
        check_input(s, call->words[0], out);
    }
    text_free(&storage);
    return ok;
}

bool command_rerender(Session *s, const Call *call, Text *out, Error *err)
{
    const char *path = call->word_count ? call->words[0] : NULL, *to;
    char       *line, temporary[4096];
    bool        ok;

    if (!path)
        return error_set(err, ERR_USAGE, "rerender needs a PNG made by attnscope figure");
    line = figure_png_metadata(path, "attnscope:command", err);
    if (!line)
        return err->code != ERR_NONE
                   ? false
                   : error_set(err, ERR_FORMAT,
                               "%s: holds no attnscope:command; only figures made by "
                               "attnscope can be made again",
                               path);
    snprintf(temporary, sizeof(temporary), "%s.again.png", path);
    to = call->values[OPT_OUTPUT] ? call->values[OPT_OUTPUT] : temporary;
    ok = again(s, call, line, to, out, err);
    if (ok && call->values[OPT_CHECK])
        ok = same_bytes(path, to, err);
    if (to == temporary && call->values[OPT_CHECK])
        remove(temporary);
    else if (to == temporary && ok)
        ok = rename(temporary, path) == 0 ||
             error_set(err, ERR_FILE, "%s: cannot be replaced", path);
    free(line);
    return ok;
}
