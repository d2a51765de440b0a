/* test_draw_figure.c -- figures as PNG and as text.
 *
 * Pixels at known cells, bytes equal twice, settings read back from the file,
 * text never wider or higher than asked, legends that list what is there.
 */

#include <png.h>
#include <unistd.h>

#include "check.h"
#include "core/threads.h"
#include "draw/figure/scene.h"
#include "draw/page/sheet.h"
#include "draw/text/unicode.h"

typedef struct Scenery { /* a window + global + random pattern over n tokens */
    Arena   *arena;
    Pattern *pattern;
    View     view, weights;
    Figure  *figure;
} Scenery;

static void read_values(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    (void)view;
    (void)head;
    for (int64_t k = 0; k < count; k++)
        out[k] = 1.0f / (float)(1 + llabs(i - (start + k * step)));
}

static void scenery_make(Scenery *s, int64_t n, int panels)
{
    PatternShape shape = { .heads = 1, .n = n, .m = n };
    Tensor       table;

    s->arena = arena_new();
    table = pattern_draw_random(s->arena, shape, 1, 4, "random", NULL, NULL);
    s->pattern = pattern_union(s->arena, pattern_band(s->arena, shape, -2, 2, 1, COMPONENT_WINDOW),
                               pattern_table(s->arena, shape, &table, COMPONENT_RANDOM));
    s->pattern = pattern_finish(s->arena, shape, s->pattern, false);
    s->view = (View){ .name = "connectivity", .kind = VIEW_PATTERN, .dtype = DT_U8, .rank = 2,
                      .shape = { n, n }, .support = s->pattern, .rows = "query", .cols = "key" };
    s->weights = s->view;
    s->weights.kind = VIEW_WEIGHTS;
    s->weights.read = read_values;
    s->figure = figure_new(panels, NULL);
    for (int k = 0; k < panels; k++)
        panel_init(&s->figure->panels[k], k % 2 ? &s->weights : &s->view, s->pattern, 0, NULL);
}

static void scenery_free(Scenery *s)
{
    figure_free(s->figure);
    arena_free(s->arena);
}

static bool png_of(const Figure *figure, const PngOptions *options, Text *bytes, Error *err)
{
    return figure_file(figure, FORMAT_PNG_FILE, options, bytes, err);
}

static uint8_t *decode(const Text *bytes, png_image *image)
{
    uint8_t *pixels;

    memset(image, 0, sizeof(*image));
    image->version = PNG_IMAGE_VERSION;
    assert_true(png_image_begin_read_from_memory(image, bytes->data, bytes->length));
    image->format = PNG_FORMAT_RGBA;
    pixels = malloc(PNG_IMAGE_SIZE(*image));
    assert_true(png_image_finish_read(image, NULL, pixels, 0, NULL));
    return pixels;
}

static int64_t count_colour(const uint8_t *pixels, const png_image *image, Rgb rgb)
{
    int64_t count = 0;

    for (int64_t k = 0; k < (int64_t)image->width * image->height; k++)
        count += pixels[4 * k] == rgb.r && pixels[4 * k + 1] == rgb.g &&
                 pixels[4 * k + 2] == rgb.b && pixels[4 * k + 3] == 255;
    return count;
}

TEST(the_same_figure_gives_the_same_bytes)
{
    Scenery s;
    Text    first = { 0 }, second = { 0 };

    scenery_make(&s, 32, 3);
    s.figure->threads = threads_new(2);
    assert_true(png_of(s.figure, NULL, &first, NULL));
    threads_free(s.figure->threads);
    s.figure->threads = NULL;
    assert_true(png_of(s.figure, NULL, &second, NULL));
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.data, second.data, first.length);
    text_free(&first);
    text_free(&second);
    scenery_free(&s);
}

static Rgb of_light(uint8_t bit)
{
    return component_colour_in(page_theme("light")->hues, bit);
}

TEST(cells_have_the_colour_of_their_cause)
{
    Scenery   s;
    Text      bytes = { 0 };
    png_image image;
    uint8_t  *pixels;
    int64_t   window, blank;

    scenery_make(&s, 100, 1); /* no cell grid: pure colours */
    *s.figure->panels[0].title = '\0';
    assert_true(png_of(s.figure, &(PngOptions){ .width_inch = 3.25 }, &bytes, NULL));
    pixels = decode(&bytes, &image);
    assert_int_equal(image.width, 975);
    window = count_colour(pixels, &image, of_light(COMPONENT_WINDOW));
    assert_true(window > 480 * 64); /* at least 8 x 8 pixels a cell */
    assert_true(count_colour(pixels, &image, of_light(COMPONENT_RANDOM)) > 90 * 64);
    assert_int_equal(count_colour(pixels, &image, of_light(COMPONENT_GLOBAL)), 0);
    blank = count_colour(pixels, &image, (Rgb){ 255, 255, 255 });
    assert_true(blank > (int64_t)image.width * image.height / 2);
    free(pixels);
    text_free(&bytes);
    scenery_free(&s);
}

/* 16 x 16 entries a cell: the window of 5 and, here and there, a random key of 16. */
TEST(a_cell_of_several_causes_has_the_commonest_and_a_dot)
{
    Scenery s;
    Text    out = { 0 };
    Panel  *panel;
    Grid    g;
    int     dotted = 0;

    scenery_make(&s, 512, 1);
    panel = &s.figure->panels[0];
    assert_true(grid_reduce(&(GridRequest){ .view = &s.view, .components = s.pattern, .rows = 32,
                                            .cols = 32 }, &g, NULL));
    assert_true(panel_shows_dots(panel, &g));
    for (int k = 0; k < 32; k++) {
        Paint paint = panel_paint(panel, &g, k, k, 64, true);

        assert_int_equal(paint.ascii, component_letter(COMPONENT_WINDOW));
        assert_int_equal(paint.dotted, (g.cells[33 * k].components & COMPONENT_RANDOM) != 0);
        dotted += paint.dotted;
        if (paint.dotted)
            assert_int_equal(paint.dot256, colour_component_256(COMPONENT_RANDOM));
    }
    assert_true(dotted > 0 && dotted < 32);
    grid_free(&g);
    assert_true(figure_text(s.figure, &(TextOptions){ .width = 32, .utf8 = true, .colours = 256 },
                            &out, NULL));
    assert_non_null(strstr(out.data, "\xE2\x80\xA2")); /* in the picture and its legend */
    assert_non_null(strstr(out.data, DOT_WORDS));
    text_clear(&out);
    assert_true(figure_text(s.figure, &(TextOptions){ .width = 32 }, &out, NULL));
    assert_null(strstr(out.data, DOT_WORDS)); /* a letter has no room for one */
    text_free(&out);
    scenery_free(&s);
}

TEST(few_colours_make_a_palette_and_no_time_is_written)
{
    Scenery s;
    Text    bytes = { 0 };
    bool    density = false;

    scenery_make(&s, 48, 1);
    assert_true(png_of(s.figure, NULL, &bytes, NULL));
    assert_int_equal(bytes.data[25], PNG_COLOR_TYPE_PALETTE);
    for (size_t k = 0; k + 13 < bytes.length; k++) {
        assert_true(memcmp(bytes.data + k, "tIME", 4) != 0);
        if (memcmp(bytes.data + k, "pHYs", 4) == 0) /* 300 dpi = 11811 per metre */
            density = memcmp(bytes.data + k + 4, "\0\0\x2E\x23\0\0\x2E\x23\1", 9) == 0;
    }
    assert_true(density);
    text_free(&bytes);
    scenery_free(&s);
}

TEST(settings_are_read_back)
{
    static const char *const metadata[] = { "Software", "attnscope", "attnscope:params",
                                            "{\"token\":\"\xC3\x86r\xC3\xB8\"}", NULL };
    char    path[] = "/tmp/attnscope-figure-XXXXXX";
    int     fd = mkstemp(path);
    Scenery s;
    Text    bytes = { 0 };
    Error   err = ERROR_INIT;
    char   *value;

    assert_true(fd >= 0);
    close(fd);
    scenery_make(&s, 16, 1);
    assert_true(png_of(s.figure, &(PngOptions){ .metadata = metadata }, &bytes, NULL));
    assert_true(file_write(path, bytes.data, bytes.length, NULL));
    for (int k = 0; k < 4; k += 2) {
        value = figure_png_metadata(path, metadata[k], &err);
        assert_non_null(value);
        assert_string_equal(value, metadata[k + 1]);
        free(value);
    }
    assert_null(figure_png_metadata(path, "nothing", &err));
    assert_int_equal(err.code, ERR_NONE);
    assert_true(file_write(path, bytes.data, 40, NULL));
    assert_null(figure_png_metadata(path, "Software", &err));
    assert_int_equal(err.code, ERR_FORMAT);
    unlink(path);
    assert_null(figure_png_metadata(path, "Software", &err));
    assert_int_equal(err.code, ERR_FILE);
    text_free(&bytes);
    scenery_free(&s);
}

TEST(transparent_paper_has_no_colour)
{
    Scenery   s;
    Text      bytes = { 0 };
    png_image image;
    uint8_t  *pixels;

    scenery_make(&s, 100, 1);
    assert_true(png_of(s.figure, &(PngOptions){ .transparent = true }, &bytes, NULL));
    pixels = decode(&bytes, &image);
    assert_int_equal(pixels[3], 0);
    free(pixels);
    text_free(&bytes);
    scenery_free(&s);
}

TEST(any_token_bytes_can_be_drawn)
{
    char        plain[] = "ok", broken[] = "\xFF\xFE", control[] = "\n";
    char        wide[] = "\xE6\x97\xA5\xE6\x9C\xAC";
    char *const words[4] = { plain, broken, control, wide };
    Scenery s;
    Text    bytes = { 0 };

    scenery_make(&s, 4, 2);
    for (int k = 0; k < 2; k++)
        s.figure->panels[k].row_labels = s.figure->panels[k].col_labels = words;
    assert_true(png_of(s.figure, NULL, &bytes, NULL));
    text_clear(&bytes);
    assert_true(figure_text(s.figure, &(TextOptions){ .width = 60 }, &bytes, NULL));
    for (size_t k = 0; k < bytes.length; k++)
        assert_true((unsigned char)bytes.data[k] < 0x80);
    text_free(&bytes);
    scenery_free(&s);
}

/* Columns of the widest line, escape sequences not counted; *lines their number. */
static int widest_line(const Text *text, int *lines)
{
    char line[8192];
    int  widest = 0, used = 0;
    bool escape = false;

    *lines = 0;
    for (size_t k = 0; k < text->length; k++) {
        char c = text->data[k];

        if (c == '\n') {
            line[used] = '\0';
            widest = utf8_columns(line) > widest ? utf8_columns(line) : widest;
            used = 0;
            (*lines)++;
        } else if (c == '\033' || escape) {
            escape = c == '\033' || !(c == 'm');
        } else {
            assert_true(used < (int)sizeof(line) - 1);
            line[used++] = c;
        }
    }
    assert_int_equal(used, 0);
    return widest;
}

TEST(text_stays_inside_its_width_and_height)
{
    static const int sizes[] = { 1, 7, 32, 100, 3000 }, colours[] = { 0, 256, 24 };
    Text out = { 0 };

    for (int k = 0; k < 5 * 3 * 2 * 4; k++) {
        TextOptions options = { .utf8 = k % 2, .colours = colours[k / 2 % 3] };
        Scenery     s;
        int         lines;

        scenery_make(&s, sizes[k / 6 % 5], 1 + k / 30);
        snprintf(s.figure->title, sizeof(s.figure->title), "a title of some length for the figure");
        options.width = 40 + 37 * (k % 4);
        options.height = k % 3 ? 60 : 0;
        text_clear(&out);
        assert_true(figure_text(s.figure, &options, &out, NULL));
        assert_true(widest_line(&out, &lines) <= options.width);
        if (options.height && s.figure->count <= 2 && options.width >= 77)
            assert_true(lines <= options.height);
        assert_true(lines > 3);
        scenery_free(&s);
    }
    text_free(&out);
}

TEST(text_shows_components_by_letter)
{
    Scenery s;
    Text    out = { 0 };

    scenery_make(&s, 10, 1);
    assert_true(figure_text(s.figure, &(TextOptions){ .width = 14 }, &out, NULL));
    assert_non_null(strstr(out.data, "\n0 ###"));
    assert_non_null(strstr(out.data, "# window"));
    assert_non_null(strstr(out.data, "* random"));
    assert_null(strstr(out.data, "global"));
    text_free(&out);
    scenery_free(&s);
}

TEST(the_legend_lists_what_is_there)
{
    LegendItem items[8];
    Scenery    s;

    scenery_make(&s, 5000, 2);
    assert_int_equal(figure_legend(s.figure, items, 8), 3);
    assert_string_equal(items[0].text, "window");
    assert_int_equal(items[0].index256, 25);
    assert_string_equal(items[1].text, "random");
    assert_string_equal(items[2].text, DOT_WORDS); /* on the diagonal */
    assert_true(items[2].dot);
    assert_int_equal(figure_legend(s.figure, items, 1), 1);
    scenery_free(&s);
}

TEST(a_difference_is_signed_and_shows_what_is_masked)
{
    Scenery s;
    View    zero;
    Text    out = { 0 };
    float   none[64] = { 0 };

    scenery_make(&s, 8, 2);
    zero = s.weights;
    zero.read = NULL;
    zero.tensor = tensor_of(DT_F32, 2, (int64_t[]){ 8, 8 }, none);
    s.figure->panels[0] = s.figure->panels[1];
    s.figure->panels[0].view = &zero;
    s.figure->panels[0].minus = &s.weights;
    s.figure->count = 1;
    assert_true(figure_text(s.figure, &(TextOptions){ .width = 40 }, &out, NULL));
    assert_non_null(strstr(out.data, "0 NN")); /* 0 - 1, the strongest negative */
    assert_non_null(strstr(out.data, "-1 Nn-.+pP 1"));
    assert_non_null(strstr(out.data, "not allowed"));
    text_free(&out);
    scenery_free(&s);
}

TEST(pairs_that_are_not_allowed_have_one_colour_on_a_page)
{
    Scenery   s;
    Scene     scene;
    CellCount cells[2] = { { 8, 8 }, { 8, 8 } };

    scenery_make(&s, 8, 2);
    s.figure->panels[0] = s.figure->panels[1];
    assert_true(scene_make(&scene, s.figure, cells, NULL));
    assert_false(panel_greys_masked(&scene.panels[1], false));
    scene_free(&scene);
    s.figure->panels[0].minus = &s.weights; /* greys what is not allowed */
    assert_true(scene_make(&scene, s.figure, cells, NULL));
    assert_true(panel_greys_masked(&scene.panels[0], false));
    assert_true(panel_greys_masked(&scene.panels[1], false));
    scene_free(&scene);
    scenery_free(&s);
}

/* A block without a gate is no pair that something forbids. */
TEST(a_block_or_page_without_a_value_is_called_so)
{
    Scenery s;
    View    zero, gates;
    float   none[64] = { 0 };
    Text    out = { 0 };

    scenery_make(&s, 8, 2);
    zero = s.weights;
    zero.read = NULL;
    zero.tensor = tensor_of(DT_F32, 2, (int64_t[]){ 8, 8 }, none);
    gates = s.weights;
    gates.cols = "block";
    s.figure->panels[0] = s.figure->panels[1];
    s.figure->panels[0].view = &zero;
    s.figure->panels[0].minus = &gates;
    s.figure->panels[1].view = &gates;
    s.figure->panels[1].minus = &gates;
    assert_true(figure_text(s.figure, &(TextOptions){ .width = 60 }, &out, NULL));
    assert_non_null(strstr(out.data, "not allowed, or no value"));
    text_clear(&out);
    s.figure->panels[0] = s.figure->panels[1];
    s.figure->count = 1;
    assert_true(figure_text(s.figure, &(TextOptions){ .width = 60 }, &out, NULL));
    assert_non_null(strstr(out.data, "no value"));
    assert_null(strstr(out.data, "not allowed"));
    text_free(&out);
    scenery_free(&s);
}

/* As in "round 1" of a key and in "attend, 1 of 2". */
TEST(rounds_of_an_axis_count_from_one)
{
    float   values[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    View    view = { .name = "order", .kind = VIEW_ORDER, .rank = 2,
                     .shape = { 2, 4 }, .rows = "round", .cols = "token" };
    Scenery s;
    Text    out = { 0 };

    scenery_make(&s, 8, 1);
    view.tensor = tensor_of(DT_F32, 2, (int64_t[]){ 2, 4 }, values);
    s.figure->panels[0].view = &view;
    assert_true(figure_text(s.figure, &(TextOptions){ .width = 40 }, &out, NULL));
    CHECK(strstr(text_str(&out), "\n1 ") && strstr(text_str(&out), "\n2 ") &&
          !strstr(text_str(&out), "\n0 "), "%s", text_str(&out));
    text_free(&out);
    scenery_free(&s);
}

TEST(a_cancelled_figure_says_so)
{
    atomic_bool cancel = true;
    Scenery     s;
    Text        out = { 0 };
    Error       err = ERROR_INIT;

    scenery_make(&s, 64, 1);
    s.figure->cancel = &cancel;
    assert_false(png_of(s.figure, NULL, &out, &err));
    assert_int_equal(err.code, ERR_CANCELLED);
    text_free(&out);
    scenery_free(&s);
}

TEST(captions_say_what_was_done)
{
    Scenery     s;
    Grid        grid;
    GridRequest q = { .rows = 50, .cols = 25, .budget_entries = 100 };
    char        text[256];

    scenery_make(&s, 1000, 2);
    q.view = &s.weights;
    assert_true(grid_reduce(&q, &grid, NULL));
    s.figure->panels[1].scale = SCALE_LOG;
    panel_caption(&s.figure->panels[1], &grid, text, sizeof(text));
    assert_non_null(strstr(text, ", max of 20 x 40, log scale, sampled "));
    assert_int_equal(strncmp(text, "6.0 k pairs (0.59", 17), 0);
    assert_true(utf8_columns(text) <= 70);
    grid_free(&grid);
    q.view = &s.view;
    assert_true(grid_reduce(&q, &grid, NULL));
    panel_caption(&s.figure->panels[0], &grid, text, sizeof(text));
    assert_non_null(strstr(text, " %), one cell = 20 x 40, shade = cover"));
    assert_true(utf8_columns(text) <= 60);
    grid_free(&grid);
    scenery_free(&s);
}

static void caption_of(const Panel *panel, int64_t cells, char *text, size_t size)
{
    Grid        grid;
    GridRequest q = { .view = panel->view, .rows = cells, .cols = cells };

    assert_true(grid_reduce(&q, &grid, NULL));
    panel_caption(panel, &grid, text, size);
    grid_free(&grid);
}

TEST(captions_leave_out_what_is_plain)
{
    PatternShape shape = { .heads = 1, .n = 10, .m = 10 };
    Scenery      s;
    char         text[256];

    scenery_make(&s, 10, 2);
    caption_of(&s.figure->panels[0], 10, text, sizeof(text));
    assert_non_null(strstr(text, " of 100 pairs ("));
    assert_null(strstr(text, "cell"));
    assert_null(strstr(text, "cover"));
    caption_of(&s.figure->panels[1], 10, text, sizeof(text)); /* a sparse pattern has a count */
    assert_non_null(strstr(text, " of 100 pairs ("));
    assert_null(strstr(text, "max"));
    for (int causal = 0; causal < 2; causal++) {
        s.weights.support = pattern_finish(s.arena, shape,
                                           pattern_full(s.arena, shape, COMPONENT_OTHER), causal);
        caption_of(&s.figure->panels[1], 10, text, sizeof(text));
        assert_string_equal(text, "");
        caption_of(&s.figure->panels[1], 3, text, sizeof(text));
        assert_string_equal(text, "max of 4 x 4");
    }
    scenery_free(&s);
}

TEST(captions_tell_of_drawn_numbers)
{
    Scenery s;
    char    text[256];

    scenery_make(&s, 10, 2);
    s.weights.origin = "random seed 7";
    caption_of(&s.figure->panels[1], 10, text, sizeof(text));
    assert_non_null(strstr(text, "random seed 7"));
    scenery_free(&s);
}

/* One bright weight a row among dark ones: the scale stays linear; the caption says how dark. */
TEST(a_dark_picture_says_how_dark)
{
    static float weights[40 * 40];
    View  view = { .name = "weights", .kind = VIEW_WEIGHTS, .dtype = DT_F32, .rank = 2,
                   .shape = { 40, 40 }, .rows = "query", .cols = "key" };
    Panel panel;
    char  text[256];

    for (int i = 0; i < 40 * 40; i++)
        weights[i] = i % 40 == 7 ? 1 : 0.001f;
    view.tensor = tensor_of(DT_F32, 2, view.shape, weights);
    panel_init(&panel, &view, NULL, 0, "");
    panel.hi = 1;
    caption_of(&panel, 40, text, sizeof(text));
    CHECK(strstr(text, "97.5 % of cells below 0.02"), "%s", text);
    panel.scale = SCALE_LOG;
    caption_of(&panel, 40, text, sizeof(text));
    CHECK(!strstr(text, "below"), "%s", text);
    panel.scale = SCALE_LINEAR;
    for (int i = 0; i < 40 * 40; i += 4)
        weights[i] = 0.5f;
    caption_of(&panel, 40, text, sizeof(text));
    CHECK(!strstr(text, "below"), "%s", text);
}

TEST(captions_call_groups_by_their_name)
{
    int32_t bucket[] = { 2, 0, 5, 2 };
    View    view = { .name = "buckets", .kind = VIEW_BUCKETS, .dtype = DT_I32, .rank = 2,
                     .shape = { 1, 4 }, .rows = "round", .cols = "token" };
    Panel   panel;
    char    text[256];

    view.tensor = tensor_of(DT_I32, 2, view.shape, bucket);
    panel_init(&panel, &view, NULL, 0, "");
    caption_of(&panel, 4, text, sizeof(text));
    assert_string_equal(text, "buckets 0 to 5");
    bucket[2] = 14; /* bucket 2 has its colour, too; no letter repeats */
    caption_of(&panel, 4, text, sizeof(text));
    assert_string_equal(text, "buckets 0 to 14, 12 colours repeat");
    bucket[2] = 15;
    caption_of(&panel, 4, text, sizeof(text));
    assert_string_equal(text, "buckets 0 to 15");
    bucket[2] = 5;
    snprintf(view.name, sizeof(view.name), "map");
    caption_of(&panel, 4, text, sizeof(text));
    assert_string_equal(text, "categories 0 to 5");
    view.quantity = "weight set"; /* what the mechanism calls one */
    caption_of(&panel, 4, text, sizeof(text));
    assert_string_equal(text, "weight sets 0 to 5");
    view.quantity = NULL;
    snprintf(view.name, sizeof(view.name), "chunks");
    memset(bucket, 0, sizeof(bucket));
    caption_of(&panel, 4, text, sizeof(text));
    assert_string_equal(text, "only chunk 0");
}

/* The legend word of one component and of several; colours and letters repeat. */
TEST(categories_have_words_and_items)
{
    static const char *const names[] = { "forward", "recomputed", NULL };
    View  view = { .name = "position_buckets", .kind = VIEW_BUCKETS, .dtype = DT_I32, .rank = 2,
                   .shape = { 1, 4 }, .rows = "query", .cols = "key" };
    Panel panel = { .view = &view };
    LegendItem once, again;
    char  text[64];

    category_word(&view, text, sizeof(text));
    assert_string_equal(text, "bucket");
    assert_int_equal(category_item(&panel, 13).ascii, 'N');
    assert_int_equal(category_item(&panel, 27).ascii, 'B');
    assert_string_equal(category_item(&panel, 27).text, "27");
    once = category_item(&panel, 1);
    again = category_item(&panel, 1 + category_kinds(false));
    assert_memory_equal(&once.rgb, &again.rgb, sizeof(Rgb));
    view.categories = names;
    assert_string_equal(category_item(&panel, 1).text, "recomputed");
    assert_int_equal(category_item(&panel, 1).ascii, 'R');
    view = (View){ .name = "membership", .kind = VIEW_MEMBERSHIP, .rows = "memory" };
    categories_word(&view, text, sizeof(text));
    assert_string_equal(text, "memories");
}

TEST(groups_are_set_apart_by_lines)
{
    static const int64_t first[] = { 0, 3, 7 }, whole[] = { 0 };
    Scenery              s;
    Text                 plain = { 0 }, lined = { 0 }, one = { 0 };

    scenery_make(&s, 10, 2);
    assert_true(png_of(s.figure, NULL, &plain, NULL));
    s.weights.row_groups = s.weights.col_groups = first;
    s.weights.row_group_count = s.weights.col_group_count = 3;
    assert_true(png_of(s.figure, NULL, &lined, NULL));
    assert_true(plain.length != lined.length ||
                memcmp(plain.data, lined.data, plain.length) != 0);
    s.weights.row_groups = s.weights.col_groups = whole; /* one group has no boundary */
    s.weights.row_group_count = s.weights.col_group_count = 1;
    assert_true(png_of(s.figure, NULL, &one, NULL));
    assert_true(plain.length == one.length && !memcmp(plain.data, one.data, plain.length));
    text_free(&plain);
    text_free(&lined);
    text_free(&one);
    scenery_free(&s);
}

/* The least value of magma is black, so a cell without a value must not be black. */
TEST(what_is_not_allowed_is_no_colour_of_the_map)
{
    Scenery s;
    Panel  *panel;

    scenery_make(&s, 4, 2);
    panel = &s.figure->panels[1];
    panel->components = NULL;
    assert_int_equal(panel_style(panel), STYLE_VALUE);
    for (int map = 0; map < MAP_COUNT; map++) {
        panel->map = (ColourMap)map;
        assert_int_equal(panel_greys_masked(panel, false), map == MAP_DIVERGING);
        assert_int_equal(panel_greys_masked(panel, true),
                         map == MAP_DIVERGING || map == MAP_MAGMA);
    }
    scenery_free(&s);
}

TEST(colours_have_a_quantity)
{
    Scenery s;
    Panel  *panel;

    scenery_make(&s, 4, 2);
    panel = &s.figure->panels[1];
    assert_string_equal(panel_quantity(panel), "weight");
    s.weights.kind = VIEW_SIGNED;
    snprintf(s.weights.name, sizeof(s.weights.name), "position_bias");
    assert_string_equal(panel_quantity(panel), "bias");
    snprintf(s.weights.name, sizeof(s.weights.name), "position_c2p");
    assert_string_equal(panel_quantity(panel), "score");
    panel->minus = &s.view;
    assert_string_equal(panel_quantity(panel), "difference");
    panel->pool = POOL_PAIRS;
    assert_string_equal(panel_quantity(panel), "pairs");
    scenery_free(&s);
}

/* A figure of one token has all its texts. */
TEST(a_single_entry_has_axes_and_a_scale)
{
    Scenery   s;
    Text      bytes = { 0 };
    png_image image;
    uint8_t  *pixels;

    scenery_make(&s, 1, 2);
    s.figure->panels[0] = s.figure->panels[1];
    s.figure->count = 1;
    assert_true(figure_text(s.figure, &(TextOptions){ .width = 40 }, &bytes, NULL));
    assert_non_null(strstr(bytes.data, "connectivity  (query x key)\n  0\n0 @"));
    assert_non_null(strstr(bytes.data, "0 .:-=+*#%@ 1  weight\n"));
    text_clear(&bytes);
    assert_true(png_of(s.figure, NULL, &bytes, NULL));
    pixels = decode(&bytes, &image);
    assert_true(count_colour(pixels, &image, (Rgb){ 90, 90, 90 }) > 20); /* names of axes */
    free(pixels);
    text_free(&bytes);
    scenery_free(&s);
}

TEST(long_titles_are_wrapped_side_by_side)
{
    static const char name[] = "pattern(expr=window(5)+global(2)) \xC2\xB7 weights";
    Scenery s;
    Text    out = { 0 };
    int     lines;

    scenery_make(&s, 8, 2);
    snprintf(s.figure->panels[0].title, sizeof(s.figure->panels[0].title), "%s", name);
    assert_true(figure_text(s.figure, &(TextOptions){ .width = 80, .utf8 = true }, &out, NULL));
    assert_null(strstr(out.data, "\xE2\x80\xA6")); /* nothing is cut */
    assert_int_equal(strncmp(out.data, "(a) pattern(expr=window(5)+global(2))", 37), 0);
    assert_non_null(strstr(out.data, "\nweights  (query x key)\n"));
    assert_true(widest_line(&out, &lines) <= 80);
    text_clear(&out);
    s.figure->count = 1;
    assert_true(figure_text(s.figure, &(TextOptions){ .width = 24 }, &out, NULL));
    assert_int_equal(strncmp(out.data, "pattern(expr=window(5)+\nglobal(2)) - weights\n", 45), 0);
    text_free(&out);
    scenery_free(&s);
}

TEST(long_headings_make_the_sheet_higher)
{
    Scenery   s;
    Text      bytes = { 0 };
    png_image image;
    uint32_t  heights[2];

    scenery_make(&s, 16, 1);
    for (int k = 0; k < 2; k++) {
        snprintf(s.figure->title, sizeof(s.figure->title), "%s",
                 k ? "a title that says so much about this figure that it needs two lines" : "a");
        text_clear(&bytes);
        assert_true(png_of(s.figure, &(PngOptions){ .width_inch = 3 }, &bytes, NULL));
        free(decode(&bytes, &image));
        heights[k] = image.height;
    }
    assert_true(heights[1] >= heights[0] + 45 && heights[1] <= heights[0] + 60);
    text_free(&bytes);
    scenery_free(&s);
}

TEST(tokens_without_a_picture_are_spelled_out)
{
    static const char *const cases[][3] = { /* token, label, label in ASCII */
        { "ok", "ok", "ok" },
        { "\n", "\\n", "\\n" },
        { "a\tb\x1B", "a\\tb\\e", "a\\tb\\e" },
        { "\x01", "\\x01", "\\x01" },
        { "\xFF\xFE", "\\xFF\\xFE", "\\xFF\\xFE" },
        { " ", "\xE2\x90\xA3", "_" },
        { " a", " a", " a" },
        { "\xC4\xA0the", "\xE2\x90\xA3the", "_the" },
        { "\xC4\x8A\xC4\x8A", "\xE2\x86\xB5\xE2\x86\xB5", "\\n\\n" },
        { "\xE2\x96\x81\xE2\x96\x81x", "\xE2\x90\xA3\xE2\x90\xA3x", "__x" },
        { "be\xC4\xA0", "be\xC4\xA0", "be\\u0120" }, /* a letter within a word */
        { "\xE6\x97\xA5", "\xE6\x97\xA5", "\\u65E5" },
        { "\xE2\x80\xAE", "\\u202E", "\\u202E" },
        { "\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80", "\\u1F600" },
    };
    char label[64];

    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        utf8_token(cases[k][0], false, label, sizeof(label));
        assert_string_equal(label, cases[k][1]);
        utf8_token(cases[k][0], true, label, sizeof(label));
        assert_string_equal(label, cases[k][2]);
    }
    utf8_token("\n\n\n", false, label, 6); /* an escape is never cut */
    assert_string_equal(label, "\\n\\n");
}

TEST(background_is_never_a_value)
{
    Scenery     s;
    Grid        grid;
    GridRequest q = { .rows = 30, .cols = 30 };

    scenery_make(&s, 3000, 2);
    for (int k = 0; k < 2; k++) {
        const Panel *panel = &s.figure->panels[k];

        q.view = panel->view;
        q.components = panel->components;
        assert_true(grid_reduce(&q, &grid, NULL));
        for (int64_t c = 0; c < 900; c++) {
            Paint paint = panel_paint(panel, &grid, c / 30, c % 30, 12, c % 2);

            assert_int_equal(paint.background, !grid.cells[c].any);
            assert_int_equal(paint.level > 0, grid.cells[c].any);
            if (!paint.background)
                assert_true(paint.ascii != ' ' && paint.rgb.r + paint.rgb.g + paint.rgb.b > 0 &&
                            paint.rgb.r + paint.rgb.g + paint.rgb.b < 765);
        }
        grid_free(&grid);
    }
    scenery_free(&s);
}

TEST(impossible_figures_are_refused)
{
    Scenery s;
    Text    out = { 0 };
    Error   err = ERROR_INIT;

    scenery_make(&s, 16, 4);
    s.figure->cols = 4;
    assert_false(png_of(s.figure, &(PngOptions){ .width_inch = 0.3 }, &out, &err));
    assert_int_equal(err.code, ERR_USAGE);
    s.figure->panels[2].region = (Region){ 20, 30, 0, 4 };
    assert_false(figure_text(s.figure, NULL, &out, &err));
    assert_int_equal(err.code, ERR_DATA);
    s.figure->count = 0;
    assert_false(png_of(s.figure, NULL, &out, &err));
    text_free(&out);
    scenery_free(&s);
}

SUITE(NULL, NULL)
