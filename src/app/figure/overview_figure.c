/* overview_figure.c -- the figure of one view in every layer and head; see overview.h.
 *
 * The first layer is run as for any figure: it says what the view is.  The tiles are made when the
 * figure is drawn, because only the page knows how many cells a tile gets; nothing else of the
 * layers is kept.  An order by a score needs a pass before, because titles name it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/overview.h"
#include "app/session/internal.h"
#include "attn/run/position.h"

#define LINE_LAYER 9 /* heads of a line where layers have no lines of their own */
#define LINE_HEADS 8  /* the same, of one layer */
#define SCORE_CELLS 1 /* of a tile that is made for its scores only */

struct Overview {
    Session     *session;
    const Call  *call;
    FigureRun    run;     /* of the first layer */
    TilesRequest wanted;
    Tile        *tiles;   /* owned; [layers, heads] */
    int64_t     *order;   /* owned; tiles as they stand */
    int64_t      count;
    bool         sorted;
    HeadOrder    by;
};

/* ---- tiles ------------------------------------------------------------------------ */

static void drop_tiles(Overview *o)
{
    for (int64_t k = 0; o->tiles && k < o->count; k++)
        tile_free(&o->tiles[k]);
    free(o->tiles);
    o->tiles = NULL;
}

static void show_layer(void *context, int64_t layer)
{
    const Overview *o = context;

    session_progress(o->session, "layer %lld of %lld", (long long)layer + 1,
                     (long long)o->wanted.layers);
}

static bool check_tiles(const Overview *o, Error *err)
{
    const Input *input = o->run.results[0]->input;

    for (int64_t k = 0; k < o->count; k++)
        if (atomic_load(&o->tiles[k].state) != TILE_READY)
            return error_set(err, ERR_DATA, "layer %lld, head %lld: %s",
                             (long long)input_layer_number(input, k / o->wanted.heads),
                             (long long)(k % o->wanted.heads), o->tiles[k].why);
    return true;
}

static bool make_tiles(Overview *o, int64_t rows, int64_t cols, Error *err)
{
    static const atomic_bool never = false;
    const atomic_bool       *stop = o->session->stop ? o->session->stop : &never;
    bool                     ok;

    drop_tiles(o);
    o->tiles = calloc((size_t)o->count, sizeof(*o->tiles));
    if (!o->tiles)
        return error_set(err, ERR_NOMEM, "not enough memory for an overview");
    o->wanted.rows = rows;
    o->wanted.cols = cols;
    session_heeds_stop(o->session, true);
    ok = tiles_make(&o->wanted, o->tiles, stop, err);
    session_heeds_stop(o->session, false);
    return ok && check_tiles(o, err);
}

/* Hands the grids to the drawing; Figure.reduce. */
static bool give_grids(void *context, int64_t rows, int64_t cols, Grid *grids, Error *err)
{
    Overview *o = context;

    if (!make_tiles(o, rows, cols, err))
        return false;
    for (int64_t k = 0; k < o->count; k++) {
        Tile *tile = &o->tiles[o->order[k]];

        grids[k] = tile->grid;
        tile->grid = (Grid){ .cells = NULL };
    }
    return true;
}

/* ---- the order ---------------------------------------------------------------------- */

static bool find_order(Overview *o, Error *err)
{
    HeadScores *scores = calloc((size_t)o->count, sizeof(*scores));
    int64_t     scored = 0;
    bool        ok;

    o->order = malloc((size_t)o->count * sizeof(*o->order));
    ok = (scores && o->order) || error_set(err, ERR_NOMEM, "not enough memory for an overview");
    for (int64_t k = 0; ok && k < o->count; k++)
        o->order[k] = k;
    if (ok && o->sorted)
        ok = make_tiles(o, SCORE_CELLS, SCORE_CELLS, err);
    for (int64_t k = 0; ok && o->sorted && k < o->count; k++) {
        scores[k] = o->tiles[k].scores;
        scored += scores[k].label != NULL;
    }
    if (ok && o->sorted && !scored)
        ok = error_set(err, ERR_UNSUPPORTED, "--sort: %s has no weights of n x n here, so its "
                       "heads have no scores", o->run.results[0]->request.mechanism);
    if (ok && o->sorted)
        head_scores_order(scores, o->by, o->order, o->count);
    free(scores);
    return ok;
}

/* ---- words ---------------------------------------------------------------------------- */

/* " 0.76", " 12.3": short, for the room of a small matrix. */
static void score_text(double score, char *text, size_t size)
{
    snprintf(text, size, fabs(score) < 9.995 ? " %.2f" : " %.3g", score);
}

/* "L3 h5 0.76" for every tile of an order, else "h5" over columns and "L3" beside lines. */
static void word_tile(const Overview *o, int64_t at, int64_t cols, Panel *panel)
{
    const Input *input = o->run.results[0]->input;
    int64_t      heads = o->wanted.heads, tile = o->order[at], head = tile % heads;
    long long    layer = input_layer_number(input, tile / heads);
    bool         lines = o->wanted.layers > 1 && cols == heads && !o->sorted;
    char         score[24] = "";

    if (o->sorted && o->tiles[tile].scores.label)
        score_text(head_score(&o->tiles[tile].scores, o->by.by), score, sizeof(score));
    panel->title[0] = panel->side[0] = '\0';
    if (lines && at % cols == 0)
        snprintf(panel->side, sizeof(panel->side), "L%lld", layer);
    if (lines && at >= cols)
        return;
    if (lines || o->wanted.layers == 1)
        snprintf(panel->title, sizeof(panel->title), "h%lld%s", (long long)head, score);
    else
        snprintf(panel->title, sizeof(panel->title), "L%lld h%lld%s", layer, (long long)head,
                 score);
}

/* "BigBird, window 5 · weights" */
static void title_overview(const Result *result, const View *view, Text *out)
{
    Text words = { 0 };

    request_text(&result->request, &words);
    mechanism_words(result->request.above ? NULL : result->run->mechanism, text_str(&words), out);
    text_add(out, " \xc2\xb7 ");
    text_clear(&words);
    picture_view_name(result->run, view, &words);
    picture_words(text_str(&words), out);
    text_free(&words);
}

/* "SmolLM2.gguf, 30 layers of 9 heads, n = 333, causal, seed 0; by entropy" */
static void word_figure(const Overview *o, const PictureOptions *options,
                        const Panel *first, Figure *figure)
{
    const Result *result = o->run.results[0];
    const Run    *run = result->run;
    Text          words = { 0 };

    title_overview(result, first->view, &words);
    snprintf(figure->title, sizeof(figure->title), "%s",
             options->title ? options->title : text_str(&words));
    text_clear(&words);
    input_reader_words(result->input, &words);
    text_add(&words, ", ");
    if (o->wanted.layers > 1)
        text_addf(&words, "%lld layers of ", (long long)o->wanted.layers);
    text_add_count(&words, o->wanted.heads, "head");
    text_addf(&words, ", n = %lld", (long long)run->n);
    if (run->m != run->n)
        text_addf(&words, ", m = %lld", (long long)run->m);
    if (run->spec.position)
        text_addf(&words, ", position %s", run->spec.position->name);
    text_addf(&words, "%s, seed %llu", run->causal ? ", causal" : "",
              (unsigned long long)run->seed);
    if (o->sorted)
        text_addf(&words, "; by %s, %s first", head_score_name(o->by.by),
                  o->by.rising ? "smallest" : "largest");
    if (!first->components && !panel_shows_categories(first) && !panel_shows_hops(first))
        text_addf(&words, "; a cell shows the %s of its pairs", pool_name(first->pool));
    if (options->caption && *options->caption)
        snprintf(figure->caption, sizeof(figure->caption), "%s", options->caption);
    else if (!options->caption)
        snprintf(figure->caption, sizeof(figure->caption), "%s", text_str(&words));
    text_free(&words);
}

/* ---- the figure ------------------------------------------------------------------------- */

static int64_t columns_of(const Overview *o)
{
    int64_t most = o->wanted.layers > 1 ? LINE_LAYER : LINE_HEADS;

    if (o->wanted.layers > 1 && !o->sorted)
        return o->wanted.heads;
    return min_i64(most, o->count);
}

static Figure *make_wall(Overview *o, const PictureOptions *options, const Panel *first,
                         Error *err)
{
    Figure *figure = figure_new((int)o->count, err);
    int64_t cols = options->cols ? options->cols : columns_of(o);

    if (!figure)
        return NULL;
    figure->cols = (int)cols;
    figure->rows = (int)((o->count + cols - 1) / cols);
    figure->sharing = SHARE_ALL;
    figure->threads = options->threads;
    figure->reduce = give_grids;
    figure->reducer = o;
    for (int64_t k = 0; k < o->count; k++) {
        figure->panels[k] = *first;
        figure->panels[k].bare = true;
        figure->panels[k].row_labels = figure->panels[k].col_labels = NULL;
        word_tile(o, k, cols, &figure->panels[k]);
    }
    word_figure(o, options, first, figure);
    return figure;
}

#define OPTIONS_OF_ONE                                                                             \
    OPT_HEAD, OPT_REGION, OPT_STRIPS, OPT_QUERIES, OPT_EXCLUDE, OPT_DIFF, OPT_EFFECT,   \
        OPT_SPAN, OPT_SORTED, OPT_TITLES, OPT_PRESET

static bool check_call(const Call *call, Error *err)
{
    static const OptionId options[] = { OPTIONS_OF_ONE };

    if (call->word_count != 1)
        return error_set(err, ERR_USAGE, "--overview shows one mechanism, for example attnscope "
                         "figure full:weights --overview -o heads.png");
    for (size_t k = 0; k < sizeof(options) / sizeof(*options); k++)
        if (call->values[options[k]])
            return error_set(err, ERR_USAGE, "--overview shows whole matrices of every layer and "
                             "head: leave out --%s", option_at(options[k])->flag);
    return true;
}

/* The layers that the first one's run stands for. */
static void want_tiles(Overview *o, const PictureOptions *options, const Panel *first)
{
    const PanelChoice *choice = &o->run.panels[0];
    const Input       *input = choice->result->input;

    o->wanted = (TilesRequest){ .request = &choice->result->request, .result = choice->result,
                                .view = first->view, .shown = choice->spec.view,
                                .reach = options->reach,
                                .round = choice->spec.round ? choice->spec.round - 1 : 0,
                                .spec = session_input_spec(o->session),
                                .choice = *session_choice(o->session), .layers = input->layers,
                                .heads = view_planes(first->view) == 1 ? 1
                                                                       : choice->result->run->h,
                                .layer = input_layer_index(input), .threads = options->threads,
                                .on_layer = show_layer, .context = o };
    o->count = o->wanted.layers * o->wanted.heads;
}

static bool check_run(const FigureRun *run, Error *err)
{
    PlotKind kind;

    if (run->count == 1 && !run->panels[0].minus &&
        !plot_word(panel_choice_view(&run->panels[0]), &kind, NULL))
        return true;
    return error_set(err, ERR_USAGE, "--overview shows one view: no differences, plots or several "
                     "panels with it");
}

Figure *overview_wall(Overview *o, Error *err)
{
    PictureOptions options, plain;
    Figure        *one, *wall = NULL;
    bool           ok;

    if (!call_picture_options(o->session, o->call, 1, &options, err))
        return NULL;
    plain = options;
    plain.rows = plain.cols = 0;
    one = picture_of_panels(o->run.panels, 1, &plain, err);
    if (!one)
        return NULL;
    ok = !one->panels[0].plot ||
         error_set(err, ERR_USAGE, "--overview shows matrices: %s is a curve",
                   one->panels[0].view->name);
    if (ok) {
        want_tiles(o, &options, &one->panels[0]);
        ok = find_order(o, err);
    }
    if (ok)
        wall = make_wall(o, &options, &one->panels[0], err);
    figure_free(one);
    return wall;
}

const FigureRun *overview_run(const Overview *o)
{
    return &o->run;
}

void overview_free(Overview *o)
{
    if (!o)
        return;
    drop_tiles(o);
    free(o->order);
    figure_run_free(&o->run);
    free(o);
}

static void take_result(Overview *o, Result *shown, const char *view)
{
    o->run.results[0] = result_retain(shown);
    o->run.panels[0] = (PanelChoice){ .result = shown, .spec = panel_spec(view) };
    o->run.count = 1;
}

Overview *overview_open(Session *s, const Call *call, Result *shown, const char *view, Error *err)
{
    Overview *o = calloc(1, sizeof(*o));
    bool      ok = o || error_set(err, ERR_NOMEM, "not enough memory");

    if (ok) {
        o->session = s;
        o->call = call;
        o->sorted = call->values[OPT_SORT] != NULL;
        ok = (shown || check_call(call, err)) &&
             (!o->sorted || head_order_parse(call->values[OPT_SORT], &o->by, err));
    }
    if (ok && shown)
        take_result(o, shown, view);
    else if (ok)
        ok = figure_run_make(s, call, !o->sorted, &o->run, err);
    ok = ok && check_run(&o->run, err);
    if (!ok) {
        overview_free(o);
        o = NULL;
    }
    return o;
}

#define TITLE_HIGH 0.13  /* about, of a matrix that has one of its own */

/* Height of `count` square matrices side by side in so many columns. */
static double wall_height(int64_t count, int64_t cols, double wide)
{
    double rows = (double)((count + cols - 1) / cols);

    return rows * (wide / (double)cols + TITLE_HIGH);
}

/* Says which grid would fit a page, where this one does not. */
static void warn_of_height(const Figure *wall, const Call *call, const PngOptions *png, Text *out)
{
    double  wide = figure_inches(wall, png), high;
    int64_t cols = wall->cols;
    Error   ignored = ERROR_INIT;

    if (call_to_stdout(call))
        return;
    if (!figure_height(wall, png, &high, &ignored) || high <= FIGURE_PAGE_HIGH)
        return;
    while (cols < wall->count && wall_height(wall->count, cols, wide) > FIGURE_PAGE_HIGH)
        cols++;
    if (wall_height(wall->count, cols, wide) > FIGURE_PAGE_HIGH)
        return;
    text_addf(out, "warning  the figure is %.3g inches high; --grid %lldx%lld fits a page\n", high,
              (long long)((wall->count + cols - 1) / cols), (long long)cols);
}

bool overview_figure(Session *s, const Call *call, Text *out, Error *err)
{
    PngOptions png; /* checked before the runs */
    Overview  *o = NULL;
    Figure    *wall = NULL;
    bool       ok = check_call(call, err) && call_png_options(call, &png, err);

    if (ok)
        o = overview_open(s, call, NULL, "", err);
    if (o)
        wall = overview_wall(o, err);
    ok = wall && call_write_figure(call, wall, o->run.results, 1, out, err);
    if (ok)
        warn_of_height(wall, call, &png, out);
    if (ok)
        call_add_warnings(call, o->run.results, 1, out);
    figure_free(wall);
    overview_free(o);
    return ok;
}
