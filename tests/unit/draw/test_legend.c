/* test_legend.c -- the legend and the picture agree: what it names is there to be seen.
 *
 * Figures of all presets and random ones are drawn in pixels; the colour of each swatch is looked
 * for in the cells and the bars of a panel.  LEGEND_FIGURES sets the number of random ones.
 */
#include <ctype.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "app/study/study.h"
#include "draw/page/sheet.h"
#include "session_fixture.h"

typedef struct Picture {
    Sheet    sheet;
    uint8_t *pixels;
    int      width, height;
} Picture;

static Picture picture_drawn(const Figure *figure, const char *theme)
{
    PngOptions options = { .dpi = 300, .theme = theme };
    Picture    p = { .sheet = { .figure = figure, .style = sheet_style(&options) } };
    Error      err = ERROR_INIT;

    p.sheet.width = 7 * 300;
    CHECK(sheet_plan(&p.sheet, &err), "%s", err.text);
    assert_true(sheet_open(&p.sheet, CANVAS_PIXELS, p.sheet.layout.width, p.sheet.layout.height,
                           &options, &err));
    sheet_draw(&p.sheet);
    p.pixels = canvas_pixels(p.sheet.canvas, &p.width, &p.height);
    assert_non_null(p.pixels);
    return p;
}

static void picture_free(Picture *p)
{
    free(p->pixels);
    sheet_free(&p->sheet);
}

#define TINT 0.62 /* share of a cause's colour over an image, as docs/figures.md says of spans */

/* The pixel has this colour, or is a grey of an image tinted by it. */
static bool is_of(const uint8_t *pixel, Rgb rgb, bool tinted)
{
    double share = tinted ? TINT : 1, grey = pixel[0] - share * rgb.r;

    return fabs(pixel[1] - share * rgb.g - grey) < (tinted ? 1.5 : 0.5) &&
           fabs(pixel[2] - share * rgb.b - grey) < (tinted ? 1.5 : 0.5) &&
           (tinted ? grey > -1 && grey < (1 - TINT) * 255 + 1 : fabs(grey) < 0.5);
}

static bool box_has(const Picture *p, Box box, Rgb rgb, bool tinted)
{
    for (int y = box.y; y < box.y + box.h; y++)
        for (int x = box.x; x < box.x + box.w; x++) {
            const uint8_t *at = p->pixels + 4 * ((int64_t)y * p->width + x);

            if (is_of(at, rgb, tinted))
                return true;
        }
    return false;
}

static bool picture_has(const Picture *p, Rgb rgb)
{
    for (int k = 0; k < p->sheet.figure->count; k++) {
        const PanelBoxes *b = &p->sheet.layout.panels[k];

        if (box_has(p, b->matrix, rgb, false) || box_has(p, b->load, rgb, false) ||
            box_has(p, b->row_load, rgb, false) ||
            (p->sheet.figure->panels[k].picture && box_has(p, b->matrix, rgb, true)))
            return true;
    }
    return false;
}

static Rgb series_colour(const Picture *p, int hue)
{
    return p->sheet.style.hues == HUES_PRINT ? plot_colour_printed(hue)
                                             : plot_colour(hue, p->sheet.style.dark);
}

/* The colour of each curve that a key names is in the frame of its plot; returns their number. */
static int check_colours(const Picture *p, int k, const char *name)
{
    const Plot *plot = p->sheet.scene.plots[k];
    int         named = 0;

    for (int i = 0; plot && plot_has_key(plot) && i < plot->count; i++) {
        const PlotSeries *s = &plot->series[i];

        if (s->guide || !*s->name || !s->count || plot->row_count)
            continue;
        CHECK(box_has(p, p->sheet.layout.panels[k].matrix, series_colour(p, s->hue), false),
              "%s: nothing in the plot has the colour of '%s'", name, s->name);
        named++;
    }
    return named;
}

/* A curve that the key of a plot names has a point in it, or a bar the words that say why
 * not: under sanitizers the heap is "n/a". */
static void check_curves(const Plot *plot, const char *name)
{
    for (int k = 0; plot && k < plot->count; k++) {
        const PlotSeries *s = &plot->series[k];
        bool              any = s->guide;

        for (int64_t i = 0; i < s->count; i++)
            any |= (isfinite(plot_place(&plot->x, s->x[i])) ||
                    (s->labels && *s->labels[i])) &&
                   isfinite(plot_place(&plot->y, s->y[i]));
        CHECK(any || !plot_has_key(plot), "%s: no point is of '%s'", name, s->name);
    }
}

/* Number of swatches; each is in the picture. */
static int check_legend(const Figure *figure, const char *name, const char *theme)
{
    Picture p = picture_drawn(figure, theme);
    int     swatches = 0;

    for (int k = 0; k < p.sheet.scene.count; k++) {
        check_curves(p.sheet.scene.plots[k], name);
        check_colours(&p, k, name);
    }

    for (int k = 0; k < p.sheet.item_count; k++) {
        const LegendItem *item = &p.sheet.items[k];

        if (item->words || item->dot)
            continue;
        swatches++;
        CHECK(picture_has(&p, item->rgb), "%s, %s: no cell is '%s'", name,
              theme ? theme : "usual", item->text);
    }
    picture_free(&p);
    return swatches;
}

TEST(every_legend_entry_is_in_the_picture)
{
    int           swatches = 0;
    const Preset *preset;

    for (size_t i = 0; (preset = preset_at(i)); i++) {
        Session       *session = session_new(NULL);
        PresetCall     made;
        FigureRun      drawing;
        Error          err = ERROR_INIT;
        PictureOptions options = { .head = 0 };
        Figure        *figure;

        if (preset->model)
            continue;
        CHECK(preset_call(preset, NULL, &made, &err) &&
                  figure_run_make(session, &made.call, false, &drawing, &err),
              "%s: %s", preset->id, err.text);
        figure = picture_of_panels(drawing.panels, drawing.count, &options, &err);
        CHECK(figure, "%s: %s", preset->id, err.text);
        swatches += check_legend(figure, preset->id, figure_theme_name((int)(i % 5)));
        figure_free(figure);
        figure_run_free(&drawing);
        preset_call_free(&made);
        session_free(session);
    }
    CHECK(swatches > 60, "%d swatches", swatches);
}

/* A title begins with a capital letter, a number or a formula, never with a word in lower case. */
static void check_titles(const Figure *figure, const char *id)
{
    for (int k = 0; k < figure->count; k++) {
        const char *title = figure->panels[k].title;

        CHECK(!islower((unsigned char)title[0]) || !islower((unsigned char)title[1]) ||
                  !strncmp(title, "elu ", 4), "%s: '%s'", id, title);
    }
}

/* Pictures of tokens say how many there are, behind the source they follow. */
TEST(captions_of_presets_say_n)
{
    const Preset *preset;
    int           said = 0;

    for (size_t i = 0; (preset = preset_at(i)); i++) {
        Session       *session = session_new(NULL);
        PresetCall     made;
        FigureRun      drawing;
        PictureOptions options;
        Error          err = ERROR_INIT;
        Figure        *figure;
        int            places = 0;

        if (preset->model)
            continue;
        CHECK(preset_call(preset, NULL, &made, &err) &&
                  figure_run_make(session, &made.call, false, &drawing, &err),
              "%s: %s", preset->id, err.text);
        for (int k = 0; k < drawing.count; k++)
            places += !drawing.panels[k].joins;
        CHECK(call_picture_options(session, &made.call, places, &options, &err), "%s: %s",
              preset->id, err.text);
        figure = picture_of_panels(drawing.panels, drawing.count, &options, &err);
        CHECK(figure, "%s: %s", preset->id, err.text);
        CHECK(!strncmp(figure->caption, "after ", 6), "%s: %s", preset->id, figure->caption);
        CHECK(strstr(figure->caption, "n = ") || !strcmp(preset->id, "lab-gpipe"), "%s: %s",
              preset->id, figure->caption);
        said += strstr(figure->caption, "n = ") != NULL;
        check_titles(figure, preset->id);
        figure_free(figure);
        figure_run_free(&drawing);
        preset_call_free(&made);
        session_free(session);
    }
    CHECK(said > 40, "%d captions", said);
}

/* ---- the gallery ------------------------------------------------------------ */

static int check_themes(const Figure *figure, const char *line)
{
    const char *theme;
    int         swatches = 0;

    for (int k = 0; (theme = figure_theme_name(k)); k++)
        swatches += check_legend(figure, line, theme);
    return swatches;
}

/* Number of swatches of a command of the page, in each theme. */
static int check_command(const char *line)
{
    const Ceilings ceilings = { .peak = 1e11, .gemm = 5e10, .stream = 1e10 };
    const char    *words[64];
    int            count, swatches;
    Text           storage = { 0 };
    Session       *session = session_new(NULL);
    Call           call;
    FigureRun      drawing = { 0 };
    PictureOptions options;
    Error          err = ERROR_INIT;
    Figure        *figure = NULL;

    CHECK(call_split(line, words, 64, &count, &storage, &err) &&
              call_parse(&call, words, count, &err) &&
              figure_run_make(session, &call, false, &drawing, &err) &&
              call_picture_options(session, &call, drawing.count, &options, &err),
          "%s: %s", line, err.text);
    options.ceilings = strstr(line, "plot(roofline)") ? &ceilings : NULL;
    figure = picture_of_panels(drawing.panels, drawing.count, &options, &err);
    CHECK(figure, "%s: %s", line, err.text);
    swatches = check_themes(figure, line);
    figure_free(figure);
    figure_run_free(&drawing);
    session_free(session);
    text_free(&storage);
    return swatches;
}

/* Each frame alone, as an animation shows it, then all steps side by side. */
static int check_frames(Result *result, const PictureOptions *options, int from, int to,
                        const char *line)
{
    int     which[64], count = 0, swatches = 0;
    Error   err = ERROR_INIT;
    Figure *figure;

    for (int i = from; i < to && count < 64; i++) {
        figure = steps_figure(result, &i, 1, NULL, options, &err);
        if (!figure || !figure->count)
            continue;
        which[count++] = i;
        swatches += check_themes(figure, line);
        figure_free(figure);
    }
    CHECK(count > 2, "%s: %d frames", line, count);
    figure = steps_figure(result, which, count, NULL, options, &err);
    CHECK(figure, "%s: %s", line, err.text);
    swatches += check_themes(figure, line);
    figure_free(figure);
    return swatches;
}

/* The same of a command of steps. */
static int check_steps(const char *line)
{
    const char    *words[64];
    int            count, from, to, swatches;
    Text           storage = { 0 };
    Session       *session = session_new(NULL);
    Call           call;
    Request        request;
    Result        *result;
    PictureOptions options;
    Error          err = ERROR_INIT;

    CHECK(call_split(line, words, 64, &count, &storage, &err) &&
              call_parse(&call, words, count, &err) && call_load_input(session, &call, &err) &&
              call_request(session, &call, call.words[0], &request, &err) &&
              call_picture_options(session, &call, 0, &options, &err),
          "%s: %s", line, err.text);
    result = session_run_ok(session, &request, &err);
    CHECK(result && result_steps_at(result, call.values[OPT_AT], &from, &to, &err), "%s: %s", line,
          err.text);
    swatches = check_frames(result, &options, from, to, line);
    result_release(result);
    request_free(&request);
    session_free(session);
    text_free(&storage);
    return swatches;
}

/* The figures, steps and animations of docs/gallery.md; its presets are above, and the plots of
 * measured numbers below. */
TEST(every_legend_entry_of_the_gallery_is_in_the_picture)
{
    static const char begins[] = "    attnscope figure ", steps[] = "    attnscope step ";
    char  line[1024];
    int   swatches = 0, drawn = 0, stepped = 0;
    FILE *page = fopen("docs/gallery.md", "r");

    assert_non_null(page);
    while (fgets(line, sizeof(line), page))
        if (!strncmp(line, begins, strlen(begins)) && !strstr(line, "--preset")) {
            line[strcspn(line, "\n")] = '\0';
            swatches += check_command(line + strlen("    attnscope "));
            drawn++;
        } else if (!strncmp(line, steps, strlen(steps))) {
            line[strcspn(line, "\n")] = '\0';
            swatches += check_steps(line + strlen("    attnscope "));
            stepped++;
        }
    fclose(page);
    CHECK(stepped >= 2, "%d commands of steps", stepped);
    CHECK(drawn > 10 && swatches > 5 * 20, "%d drawn, %d swatches", drawn, swatches);
}

/* Each mechanism in the key of bars and of memory over time has points. */
TEST(every_key_of_measured_plots_is_in_the_picture)
{
    check_command("figure 'full:plot(time) + bigbird:plot(time) + reformer:plot(time)' "
                  "-n 64 --threads 1 --repeat 1");
    check_command("figure 'full:plot(memory) + bigbird:plot(memory)' "
                  "'full:plot(timeline) + bigbird:plot(timeline)' -n 64 --threads 1 --repeat 1");
    check_command("figure 'full:plot(roofline) + bigbird:plot(roofline) + reformer:plot(roofline)' "
                  "-n 64 --threads 1 --repeat 1");
    check_command("figure 'bigbird:plot(mass) + random:plot(mass)' "
                  "'bigbird:plot(error-seeds) + random:plot(error-seeds)' "
                  "'window:plot(cache) + mla:plot(cache)' -n 64 --seeds 2 --repeat 1");
}

/* The keys of the figure's plots; returns the number of names. */
static int check_keys(const Figure *figure, const char *name)
{
    const char *theme;
    int         named = 0;

    for (int t = 0; (theme = figure_theme_name(t)); t++) {
        Picture p = picture_drawn(figure, theme);

        for (int k = 0; k < p.sheet.scene.count; k++) {
            check_curves(p.sheet.scene.plots[k], name);
            named += check_colours(&p, k, name);
        }
        picture_free(&p);
    }
    return named;
}

static void study_add_word(Session *s, Study *study, const char *text)
{
    Request request = REQUEST_INIT;
    Error   err = ERROR_INIT;

    CHECK(request_parse(s, &request, text, &err), "%s", err.text);
    request.seeds = 2;
    CHECK(study_add(study, &request, &err), "%s", err.text);
    request_free(&request);
}

/* Error and FLOPs over a parameter, as `compare --vary` draws them. */
TEST(every_key_of_varied_plots_is_in_the_picture)
{
    Session      *s = session_on("synthetic:normal(n=64,d=8,seed=3)");
    Request       exact = REQUEST_INIT;
    StudyLook     look = { .quantities = { STUDY_ERROR, STUDY_FLOPS }, .count = 2, .cursor = -1,
                           .now = (double)NAN };
    StudyPicture  picture;
    Study         study;
    Error         err = ERROR_INIT;

    assert_true(study_open(&study, "features=8:32:x2", &exact, &err));
    study_add_word(s, &study, "performer");
    study_add_word(s, &study, "performer(kernel=relu)");
    CHECK(study_run(&study, s, &err) && study_picture(&study, &look, &picture, &err), "%s",
          err.text);
    CHECK(check_keys(picture.figure, "compare --vary") >= 10, "too few names");
    study_picture_free(&picture);
    study_free(&study);
    session_free(s);
}

/* Time over n, as `compare --plot scaling` draws it. */
TEST(every_key_of_scaling_plots_is_in_the_picture)
{
    Session *s = session_on("synthetic:normal(n=64,d=8,seed=3)");
    Study    study;
    Figure  *scaling;
    Error    err = ERROR_INIT;

    assert_true(study_open_lengths(&study, session_input(s), 64, 128, &err));
    study_add_word(s, &study, "window");
    study_add_word(s, &study, "linear");
    CHECK(study_run(&study, s, &err), "%s", err.text);
    scaling = study_scaling_figure(&study, &err);
    CHECK(scaling, "%s", err.text);
    CHECK(check_keys(scaling, "compare --plot scaling") >= 10, "too few names");
    figure_free(scaling);
    study_free(&study);
    session_free(s);
}

/* "|strided|overlaps: strided over window|": the words of a preset's key. */
static void preset_key(const char *id, Text *out)
{
    Session       *session = session_new(NULL);
    PresetCall     made;
    FigureRun      drawing;
    Error          err = ERROR_INIT;
    PictureOptions options = { .head = 0 };
    LegendItem     items[32];
    Figure        *figure;

    CHECK(preset_call(preset_find(id), NULL, &made, &err) &&
              figure_run_make(session, &made.call, false, &drawing, &err), "%s", err.text);
    figure = picture_of_panels(drawing.panels, drawing.count, &options, &err);
    CHECK(figure, "%s: %s", id, err.text);
    text_clear(out);
    for (int k = 0, count = figure_legend(figure, items, 32); k < count; k++)
        text_addf(out, "%s%s|", k ? "" : "|", items[k].text);
    figure_free(figure);
    figure_run_free(&drawing);
    preset_call_free(&made);
    session_free(session);
}

/* What is called the same in two panels has one colour and one entry. */
TEST(one_thing_has_one_colour)
{
    Text key = { 0 };

    preset_key("moba-blocks", &key);
    assert_string_equal(text_str(&key), "|own block|chosen blocks|");
    text_free(&key);
}

/* What lies over what has the names of its own panel, also where the other cause is hidden. */
TEST(causes_that_lie_over_others_are_named)
{
    Text key = { 0 };

    preset_key("fournier-fig13", &key);
    CHECK(!strstr(text_str(&key), "|strided|strided|"), "%s", text_str(&key));
    preset_key("nsa-parts", &key);
    CHECK(!strstr(text_str(&key), "over by importance"), "%s", text_str(&key));
    CHECK(strstr(text_str(&key), "selected blocks over "), "%s", text_str(&key));
    text_free(&key);
}

/* The words of a figure's key, as those of a preset. */
static void words_key(const char *const *words, int count, Text *out)
{
    Session       *session = session_new(NULL);
    Call           call;
    FigureRun      drawing;
    Error          err = ERROR_INIT;
    PictureOptions options = { .head = 0 };
    LegendItem     items[32];
    Figure        *figure;

    CHECK(call_parse(&call, words, count, &err) &&
              figure_run_make(session, &call, false, &drawing, &err), "%s", err.text);
    figure = picture_of_panels(drawing.panels, drawing.count, &options, &err);
    CHECK(figure, "%s", err.text);
    text_clear(out);
    for (int k = 0, most = figure_legend(figure, items, 32); k < most; k++)
        text_addf(out, "%s%s|", k ? "" : "|", items[k].text);
    figure_free(figure);
    figure_run_free(&drawing);
    session_free(session);
}

/* Numbers behind other items have a word before them; alone they need none. */
TEST(numbers_behind_other_items_are_named)
{
    static const char *const words[] = { "figure", "reformer(block=8):buckets", "-n", "32",
                                         "window" };
    Text key = { 0 };

    words_key(words, 4, &key);
    CHECK(!strncmp(text_str(&key), "|0|1|", 5) && !strchr(text_str(&key), ':'), "%s",
          text_str(&key));
    words_key(words, 5, &key);
    CHECK(strstr(text_str(&key), "|buckets:|0|1|"), "%s", text_str(&key));
    text_free(&key);
}

/* ---- random figures ----------------------------------------------------------- */

static const char *one_of(uint32_t *state, const char *const *list, int count)
{
    *state = *state * 1664525u + 1013904223u;
    return list[(*state >> 16) % (uint32_t)count];
}

#define ONE(list) one_of(state, list, (int)(sizeof(list) / sizeof(*(list))))

/* Up to four panels; the number of words. */
static int random_words(uint32_t *state, const char **words, char (*panels)[64])
{
    static const char *const mechanisms[] = {
        "full", "window", "bigbird", "longformer", "sparse-strided", "reformer", "routing",
        "sinkhorn", "linear", "performer", "linformer", "nystrom", "entmax", "topk",
        "streaming-llm", "natten", "clustered", "cascade",
    };
    static const char *const views[] = { "", ":missed", ":weights", ":reach", ":*" };
    static const char *const lengths[] = { "12", "16", "24", "33", "48", "64", "90" };
    static const char *const flags[] = { "--seed=1", "--causal", "--heads=3", "--sorted" };
    static const char *const counts[] = { "a", "bb", "ccc", "dddd" };
    size_t panel_count = strlen(ONE(counts));
    int    count = 0;

    words[count++] = "figure";
    for (size_t k = 0; k < panel_count; k++) {
        snprintf(panels[k], sizeof(*panels), "%s%s", ONE(mechanisms), ONE(views));
        words[count++] = panels[k];
    }
    words[count++] = "-n";
    words[count++] = ONE(lengths);
    words[count++] = ONE(flags);
    return count;
}

/* Number of swatches; -1: a mechanism does not have what the words ask for. */
static int check_random(uint32_t *state)
{
    char           panels[4][64], line[320] = "";
    const char    *words[12];
    int            count = random_words(state, words, panels), swatches = -1;
    Session       *session = session_new(NULL);
    Call           call;
    FigureRun      drawing = { 0 };
    PictureOptions options = { .head = 0 };
    Error          err = ERROR_INIT;
    Figure        *figure = NULL;

    for (int k = 0; k < count; k++)
        snprintf(line + strlen(line), sizeof(line) - strlen(line), " %s", words[k]);
    CHECK(call_parse(&call, words, count, &err), "%s: %s", line, err.text);
    if (figure_run_make(session, &call, false, &drawing, &err))
        figure = picture_of_panels(drawing.panels, drawing.count, &options, &err);
    if (figure)
        swatches = check_legend(figure, line, figure_theme_name((int)(*state >> 8) % 5));
    figure_free(figure);
    figure_run_free(&drawing);
    session_free(session);
    return swatches;
}

/* Pairs that no picture has are not made of those of several. */
TEST(only_overlaps_that_occur_are_named)
{
    static const char *const words[] = { "figure", "pattern(window(3) + global([0,-1]))",
                                         "pattern(block(6) + stride(6))", "-n", "24" };
    Text                     key = { 0 };

    words_key(words, 5, &key);
    CHECK(strstr(text_str(&key), "|overlaps: global over window, strided over block|"), "%s",
          text_str(&key));
    text_free(&key);
}

TEST(every_legend_entry_of_random_figures_is_in_the_picture)
{
    const char *asked = getenv("LEGEND_FIGURES");
    int         count = asked ? atoi(asked) : 40, drawn = 0, swatches = 0;
    uint32_t    random = 28;

    for (int k = 0; k < count; k++) {
        int own = check_random(&random);

        drawn += own >= 0;
        swatches += own > 0 ? own : 0;
    }
    CHECK(2 * drawn > count && swatches > count, "%d of %d drawn, %d swatches", drawn, count,
          swatches);
}

SUITE(NULL, NULL)
