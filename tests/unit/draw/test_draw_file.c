/* test_draw_file.c -- figures as files of every kind.
 *
 * The same bytes twice, metadata read back from each kind whatever is in it, matrices as
 * one image, text as outlines; animations chunk by chunk; tokens of other scripts; what
 * the themes promise.  test_draw_seen.c looks at SVG and PDF by other programs.
 */

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "check.h"
#include "draw/figure/figure.h"
#include "draw/file/format.h"
#include "draw/file/svg.h"
#include "draw/page/sheet.h"

#define SIDE 12

typedef struct Scenery {
    View    view;
    Figure *figure;
    char   *tokens[SIDE];
} Scenery;

static void read_values(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    (void)view;
    (void)head;
    for (int64_t k = 0; k < count; k++)
        out[k] = 1.0f / (float)(1 + llabs(i - (start + k * step)));
}

/* Tokens are "a" unless said otherwise afterwards. */
static void scenery_make(Scenery *s, int panels)
{
    static char a[] = "a";

    *s = (Scenery){ .view = { .name = "weights", .kind = VIEW_WEIGHTS, .dtype = DT_F32, .rank = 2,
                              .shape = { SIDE, SIDE }, .rows = "query", .cols = "key",
                              .read = read_values } };
    for (int k = 0; k < SIDE; k++)
        s->tokens[k] = a;
    s->figure = figure_new(panels, NULL);
    for (int k = 0; k < panels; k++) {
        panel_init(&s->figure->panels[k], &s->view, NULL, 0, "weights");
        s->figure->panels[k].row_labels = s->tokens;
    }
}

static Text file_of(const Figure *figure, FigureFormat format, const PngOptions *options)
{
    Text  bytes = { 0 };
    Error err = ERROR_INIT;

    if (!figure_file(figure, format, options, &bytes, &err))
        fail_msg("%s", err.text);
    return bytes;
}

static int count_in(const Text *bytes, const char *part)
{
    const char *at = bytes->data, *end = bytes->data + bytes->length;
    int         count = 0;

    while ((at = memmem(at, (size_t)(end - at), part, strlen(part)))) {
        count++;
        at += strlen(part);
    }
    return count;
}

/* ---- kinds ------------------------------------------------------------------ */

TEST(the_ending_or_the_option_says_the_kind)
{
    static const struct {
        const char  *path, *given;
        FigureFormat format;
    } cases[] = {
        { "a.png", NULL, FORMAT_PNG_FILE },  { "-", NULL, FORMAT_PNG_FILE },
        { "a.b.svg", NULL, FORMAT_SVG_FILE }, { "a.pdf", NULL, FORMAT_PDF_FILE },
        { "a.txt", NULL, FORMAT_TEXT_FILE },  { "a.ans", NULL, FORMAT_ANSI_FILE },
        { "a.apng", NULL, FORMAT_APNG_FILE }, { "-", "pdf", FORMAT_PDF_FILE },
        { "a.png", "svg", FORMAT_SVG_FILE },  { "a", "txt", FORMAT_TEXT_FILE },
    };
    FigureFormat format;
    Error        err = ERROR_INIT;

    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        assert_true(figure_format(cases[k].path, &(PngOptions){ .format = cases[k].given },
                                  &format, NULL));
        assert_int_equal(format, cases[k].format);
    }
    assert_false(figure_format("a.jpg", NULL, &format, &err));
    assert_non_null(strstr(err.text, ".svg"));
    assert_false(figure_format("a.png", &(PngOptions){ .format = "gif" }, &format, &err));
    assert_non_null(strstr(err.text, "apng"));
}

TEST(the_same_figure_gives_the_same_bytes)
{
    Scenery s;

    scenery_make(&s, 3);
    for (int format = 0; format < FIGURE_FORMATS; format++) {
        Text first, second;

        if (format == FORMAT_APNG_FILE)
            continue;
        first = file_of(s.figure, (FigureFormat)format, NULL);
        second = file_of(s.figure, (FigureFormat)format, NULL);
        assert_int_equal(first.length, second.length);
        assert_memory_equal(first.data, second.data, first.length);
        text_free(&first);
        text_free(&second);
    }
    figure_free(s.figure);
}

static const char *const nasty[] = {
    "Software", "attnscope", "attnscope:command", "figure 'a <b> & \"c\"' --title (x\\) -o f",
    "attnscope:params", "{\"\xCE\xB1\":\"\xF0\x9F\x98\x80\"}", "attnscope:input",
    "tab\there\nand 100% \x1B[0m", "attnscope:seed", "\xFF\xC3 not UTF-8", "attnscope:version", "",
    NULL,
};

/* A new empty file. */
static void new_file(char path[64])
{
    int file;

    snprintf(path, 64, "/tmp/attnscope-figure-XXXXXX");
    file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
}

static void write_file(const char *path, const Text *bytes)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes->data, 1, bytes->length, file), bytes->length);
    fclose(file);
}

TEST(metadata_is_read_back_from_every_kind)
{
    static const struct {
        FigureFormat format;
        const char  *kind;
    } kinds[] = { { FORMAT_SVG_FILE, "svg" }, { FORMAT_PDF_FILE, "pdf" },
                  { FORMAT_TEXT_FILE, "txt" }, { FORMAT_ANSI_FILE, "ans" } };
    char    path[64];
    Scenery s;
    Error   err = ERROR_INIT;

    new_file(path);
    scenery_make(&s, 1);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        Text bytes = file_of(s.figure, kinds[k].format, &(PngOptions){ .metadata = nasty });

        write_file(path, &bytes);
        assert_string_equal(figure_kind(path), kinds[k].kind);
        for (int i = 0; nasty[i]; i += 2) {
            char *value = figure_metadata(path, nasty[i], &err);

            assert_non_null(value);
            assert_string_equal(value, nasty[i + 1]);
            free(value);
        }
        assert_null(figure_metadata(path, "nothing", &err));
        text_free(&bytes);
    }
    unlink(path);
    assert_null(figure_metadata(path, "Software", &err));
    assert_int_equal(err.code, ERR_FILE);
    figure_free(s.figure);
}

/* Cut at any byte of a part, the file gives the whole value, or none where it is not all there. */
static void cut_within(const char *path, const Text *whole, size_t from, size_t to, size_t by)
{
    for (size_t cut = from; cut < to && cut < whole->length; cut += by) {
        char *value;

        write_file(path, &(Text){ .data = whole->data, .length = cut });
        value = figure_metadata(path, nasty[2], NULL);
        CHECK(!value || !strcmp(value, nasty[3]), "%zu of %zu bytes: %s", cut, whole->length,
              value);
        assert_true(cut > 0 || !value);
        free(value);
    }
}

TEST(cut_files_give_the_value_or_none)
{
    static const struct {
        FigureFormat format;
        const char  *before; /* the value */
    } kinds[] = { { FORMAT_SVG_FILE, "attnscope:command" }, { FORMAT_PDF_FILE, "/Keywords" },
                  { FORMAT_TEXT_FILE, "attnscope:command" },
                  { FORMAT_PNG_FILE, "attnscope:command" } };
    char    path[64];
    Scenery s;

    new_file(path);
    scenery_make(&s, 1);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        Text  whole = file_of(s.figure, kinds[k].format, &(PngOptions){ .metadata = nasty });
        char *at = memmem(whole.data, whole.length, kinds[k].before, strlen(kinds[k].before));

        assert_non_null(at);
        cut_within(path, &whole, 0, whole.length, 1 + whole.length / 97);
        cut_within(path, &whole, (size_t)(at - whole.data), (size_t)(at - whole.data) + 500, 1);
        text_free(&whole);
    }
    unlink(path);
    figure_free(s.figure);
}

/* The reader of PNG would take memory for all of it. */
TEST(a_part_that_is_longer_than_its_file_is_refused)
{
    char    path[64];
    Scenery s;
    Text    bytes;
    Error   err = ERROR_INIT;

    new_file(path);
    scenery_make(&s, 1);
    bytes = file_of(s.figure, FORMAT_PNG_FILE, &(PngOptions){ .metadata = nasty });
    bytes.data[33] = 0x40; /* the length of the part behind the header */
    write_file(path, &bytes);
    assert_null(figure_metadata(path, "nothing", &err));
    assert_int_equal(err.code, ERR_FORMAT);
    assert_non_null(strstr(err.text, "the part at byte 33 has 1073741"));
    unlink(path);
    text_free(&bytes);
    figure_free(s.figure);
}

/* ---- SVG and PDF ------------------------------------------------------------ */

TEST(a_matrix_is_one_image_and_letters_are_outlines)
{
    Scenery s;
    Text    svg;

    scenery_make(&s, 2);
    s.figure->panels[0].map = s.figure->panels[1].map = MAP_DIVERGING;
    svg = file_of(s.figure, FORMAT_SVG_FILE, NULL);
    assert_int_equal(count_in(&svg, "<image"), 4); /* two matrices, two colour bars */
    assert_int_equal(count_in(&svg, "pixelated"), 4);
    assert_int_equal(count_in(&svg, "<text"), 0);
    assert_int_equal(count_in(&svg, "font-family"), 0);
    assert_true(count_in(&svg, "<use") > 20);
    assert_int_equal(count_in(&svg, "href=\"http"), 0);
    assert_int_equal(count_in(&svg, "width=\"6.75in\""), 1);
    text_free(&svg);
    figure_free(s.figure);
}

/* TeX reports a column as overfull that is 0.1pt too wide: 3.335 inches are 1000.5 dots. */
TEST(a_page_is_not_wider_than_asked)
{
    static const struct {
        double      inches;
        const char *box;
    } cases[] = { { 3.335, "viewBox=\"0 0 1000 " }, { 3.3329, "viewBox=\"0 0 1000 " },
                  { 3.25, "viewBox=\"0 0 975 " } };

    for (int k = 0; k < 3; k++) {
        Scenery s;
        Text    svg;

        scenery_make(&s, 1);
        svg = file_of(s.figure, FORMAT_SVG_FILE, &(PngOptions){ .width_inch = cases[k].inches });
        assert_int_equal(count_in(&svg, cases[k].box), 1);
        text_free(&svg);
        figure_free(s.figure);
    }
}

TEST(a_transparent_page_has_no_paper)
{
    Scenery s;
    Text    opaque, open;

    scenery_make(&s, 1);
    opaque = file_of(s.figure, FORMAT_SVG_FILE, &(PngOptions){ .dpi = 100 });
    open = file_of(s.figure, FORMAT_SVG_FILE, &(PngOptions){ .dpi = 100, .transparent = true });
    assert_int_equal(count_in(&opaque, "<rect x=\"0\" y=\"0\" width=\"325\""), 1);
    assert_int_equal(count_in(&open, "<rect x=\"0\" y=\"0\" width=\"325\""), 0);
    text_free(&opaque);
    text_free(&open);
    figure_free(s.figure);
}

TEST(a_pdf_tells_no_time_and_smooths_nothing)
{
    Scenery s;
    Text    pdf;

    scenery_make(&s, 1);
    pdf = file_of(s.figure, FORMAT_PDF_FILE, &(PngOptions){ .metadata = nasty });
    assert_memory_equal(pdf.data, "%PDF-1.4", 8);
    assert_int_equal(count_in(&pdf, "(20000101000000Z)"), 2);
    assert_int_equal(count_in(&pdf, "/Interpolate true"), 0);
    assert_true(count_in(&pdf, "/Interpolate false") >= 2);
    assert_true(count_in(&pdf, "/FontFile2") >= 1);
    text_free(&pdf);
    figure_free(s.figure);
}

static int widest_image(const Text *pdf)
{
    int widest = 0;

    for (const char *at = pdf->data; (size_t)(at - pdf->data) + 8 < pdf->length; at++)
        if (!memcmp(at, "/Width ", 7) && atoi(at + 7) > widest)
            widest = atoi(at + 7);
    return widest;
}

/* Readers that smooth enlarged images, whatever the file says, smooth the edges of cells alone, at
 * any resolution of the file. */
TEST(a_cell_has_several_pixels_in_a_pdf)
{
    static const struct {
        int dpi, pixels;
    } cases[] = { { 300, 16 }, { 40, 8 } };

    for (int k = 0; k < 2; k++) {
        Scenery s;
        Text    pdf;

        scenery_make(&s, 1);
        pdf = file_of(s.figure, FORMAT_PDF_FILE, &(PngOptions){ .dpi = cases[k].dpi });
        assert_int_equal(widest_image(&pdf), cases[k].pixels * view_cols(s.figure->panels[0].view));
        text_free(&pdf);
        figure_free(s.figure);
    }
}

/* ---- text ------------------------------------------------------------------- */

TEST(ansi_has_colours_and_plain_text_has_none)
{
    Scenery s;
    Text    plain, full, few;

    scenery_make(&s, 1);
    plain = file_of(s.figure, FORMAT_TEXT_FILE, NULL);
    full = file_of(s.figure, FORMAT_ANSI_FILE, NULL);
    few = file_of(s.figure, FORMAT_ANSI_FILE, &(PngOptions){ .colours = 256 });
    assert_int_equal(count_in(&plain, "\033"), 0);
    assert_true(count_in(&full, "\033[") > 0 && count_in(&full, "8;2;") > 0);
    assert_true(count_in(&few, "8;5;") > 0);
    assert_int_equal(count_in(&few, "8;2;"), 0);
    text_free(&plain);
    text_free(&full);
    text_free(&few);
    figure_free(s.figure);
}

/* ---- animations ------------------------------------------------------------- */

static uint32_t u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

typedef struct Chunks {
    int frames, controls, data, next; /* announced, fcTL, fdAT, sequence number */
    int width, height;
    int left, top, right, bottom; /* of the last frame */
} Chunks;

/* Checks the CRC of each chunk, the sequence numbers, and that frames lie inside the first. */
static Chunks chunks_of(const Text *apng)
{
    const uint8_t *bytes = (const uint8_t *)apng->data;
    Chunks         c = { 0 };
    size_t         at = 8;

    while (at + 12 <= apng->length) {
        uint32_t       length = u32(bytes + at);
        const uint8_t *type = bytes + at + 4, *data = type + 4;

        assert_true(at + 12 + length <= apng->length);
        assert_int_equal(u32(data + length), (uint32_t)crc32(crc32(0, NULL, 0), type, length + 4));
        if (!memcmp(type, "IHDR", 4)) {
            c.width = (int)u32(data);
            c.height = (int)u32(data + 4);
        } else if (!memcmp(type, "acTL", 4)) {
            c.frames = (int)u32(data);
        } else if (!memcmp(type, "fcTL", 4)) {
            assert_int_equal(u32(data), c.next++);
            c.left = (int)u32(data + 12);
            c.top = (int)u32(data + 16);
            c.right = c.left + (int)u32(data + 4);
            c.bottom = c.top + (int)u32(data + 8);
            assert_true(c.right <= c.width);
            assert_true(c.bottom <= c.height);
            c.controls++;
        } else if (!memcmp(type, "fdAT", 4)) {
            assert_int_equal(u32(data), c.next++);
            c.data++;
        }
        at += 12 + length;
    }
    assert_int_equal(at, apng->length);
    return c;
}

TEST(an_animation_has_every_frame_and_the_metadata)
{
    char    path[64], *value;
    Scenery s;
    Text    apng = { 0 };
    Chunks  c;

    scenery_make(&s, 4);
    s.figure->panels[2].row_labels = NULL; /* of another size by itself */
    snprintf(s.figure->panels[3].title, sizeof(s.figure->panels[3].title), "the last");
    assert_true(figure_frames(s.figure, -1, FORMAT_APNG_FILE,
                              &(PngOptions){ .metadata = nasty, .dpi = 60 }, &apng, NULL));
    c = chunks_of(&apng);
    assert_int_equal(c.frames, 4);
    assert_int_equal(c.controls, 4);
    assert_true(c.data >= 3);
    new_file(path);
    write_file(path, &apng);
    value = figure_metadata(path, "attnscope:command", NULL);
    assert_string_equal(value, nasty[3]);
    free(value);
    unlink(path);
    text_free(&apng);
    figure_free(s.figure);
}

TEST(frames_have_one_size)
{
    Scenery s;
    uint8_t first[8] = { 0 };

    scenery_make(&s, 2);
    s.figure->panels[1].row_labels = NULL;
    snprintf(s.figure->panels[1].caption, sizeof(s.figure->panels[1].caption),
             "words that need more than one line below the panel, so many of them that it takes "
             "three lines or four to say them all");
    for (int k = 0; k < 2; k++) {
        Text png = { 0 };

        assert_true(figure_frames(s.figure, k, FORMAT_PNG_FILE, &(PngOptions){ .dpi = 60 }, &png,
                                  NULL));
        if (k)
            assert_memory_equal(first, png.data + 16, 8); /* width and height */
        memcpy(first, png.data + 16, 8);
        text_free(&png);
    }
    assert_false(figure_frames(s.figure, 2, FORMAT_PNG_FILE, NULL, &(Text){ 0 }, NULL));
    figure_free(s.figure);
}

TEST(a_frame_that_changes_nothing_is_a_pixel)
{
    uint8_t  pixels[2 * 2 * 4];
    uint8_t *frames[] = { pixels, pixels };
    Text     apng = { 0 };

    memset(pixels, 200, sizeof(pixels));
    assert_true(apng_encode(frames, 2, 2, 2, 100, 0.5, NULL, &apng, NULL));
    assert_int_equal(chunks_of(&apng).controls, 2);
    text_free(&apng);
}

/* A later frame holds the pixels that differ from the frame before, and no others. */
TEST(a_frame_holds_what_changes)
{
    static const struct {
        int left, top, width, height;
    } cases[] = { { 2, 1, 1, 1 }, { 0, 0, 1, 2 }, { 1, 2, 3, 2 }, { 0, 0, 5, 4 } };
    uint8_t  before[5 * 4 * 4], now[5 * 4 * 4];
    uint8_t *frames[] = { before, now };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        Text   apng = { 0 };
        Chunks c;

        memset(before, 200, sizeof(before));
        memset(now, 200, sizeof(now));
        for (int y = cases[i].top; y < cases[i].top + cases[i].height; y++)
            for (int x = cases[i].left; x < cases[i].left + cases[i].width; x++)
                now[4 * (5 * y + x) + 1] = 90;
        assert_true(apng_encode(frames, 2, 5, 4, 100, 0.5, NULL, &apng, NULL));
        c = chunks_of(&apng);
        assert_int_equal(c.left, cases[i].left);
        assert_int_equal(c.top, cases[i].top);
        assert_int_equal(c.right - c.left, cases[i].width);
        assert_int_equal(c.bottom - c.top, cases[i].height);
        text_free(&apng);
    }
}

/* ---- letters ---------------------------------------------------------------- */

/* The text beside the outlines of a token; no outline may be the box of a missing glyph. */
static void token_is_shown_as(const char *token, const char *shown)
{
    char    label[128], own[64];
    Scenery s;
    Text    svg;

    snprintf(own, sizeof(own), "%s", token);
    snprintf(label, sizeof(label), "aria-label=\"%s\"", shown);
    scenery_make(&s, 1);
    s.tokens[3] = own;
    svg = file_of(s.figure, FORMAT_SVG_FILE, NULL);
    assert_int_equal(count_in(&svg, label), 1);
    assert_int_equal(count_in(&svg, "\"#s0\""), 0);
    text_free(&svg);
    figure_free(s.figure);
}

TEST(covered_scripts_are_drawn_as_they_are)
{
    static const char *const tokens[] = {
        "na\xC3\xAF" "ve",                 /* Latin */
        "vi\xE1\xBB\x87t",                 /* Vietnamese */
        "\xCE\xBB\xCF\x8C\xCE\xB3",        /* Greek */
        "\xD0\xB4\xD0\xB0",                /* Cyrillic */
        "\xD5\xB0\xD5\xA1\xD5\xB5",        /* Armenian */
        "\xE1\x83\xA5\xE1\x83\x90",        /* Georgian */
        "\xD7\xA9\xD7\x9C",                /* Hebrew */
        "\xD8\xB3\xD9\x84",                /* Arabic */
        "\xE0\xBA\xA5\xE0\xBA\xB2",        /* Lao */
        "\xE2\xB4\xB0\xE2\xB5\x8E",        /* Tifinagh */
        "\xE2\xA0\x83",                    /* Braille */
        "\xE2\x88\x91\xE2\x89\xA4",        /* mathematics */
    };

    for (size_t k = 0; k < sizeof(tokens) / sizeof(*tokens); k++)
        token_is_shown_as(tokens[k], tokens[k]);
}

/* How vocabularies write a blank and a line end. */
TEST(marks_of_tokenizers_are_a_box_and_an_arrow)
{
    token_is_shown_as("\xE2\x96\x81the", "\xE2\x90\xA3the");
    token_is_shown_as("\xC4\xA0" "cat", "\xE2\x90\xA3" "cat");
    token_is_shown_as("\xC4\x8A", "\xE2\x86\xB5");
}

TEST(other_scripts_are_spelled_out)
{
    token_is_shown_as("\xE6\x97\xA5", "\\u65E5");
    token_is_shown_as("\xE0\xA4\xB9", "\\u0939");
    token_is_shown_as("\xF0\x9F\xA6\x8A", "\\u1F98A");
    token_is_shown_as("a\xE2\x80\x8B" "b", "a\\u200Bb"); /* nothing to see */
    token_is_shown_as("\xF0\x9F", "\\xF0\\x9F");          /* half a letter */
    token_is_shown_as("<&\"", "&lt;&amp;&quot;");
}

/* ---- themes ----------------------------------------------------------------- */

TEST(themes_are_known_by_name)
{
    static const char *const names[] = { "light", "dark", "print", "slide", "colour-blind" };
    Error                    err = ERROR_INIT;
    Scenery                  s;
    Text                     svg;

    scenery_make(&s, 1);
    for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
        assert_true(figure_theme_check(names[k], NULL));
        svg = file_of(s.figure, FORMAT_SVG_FILE, &(PngOptions){ .theme = names[k] });
        text_free(&svg);
    }
    assert_true(figure_theme_check(NULL, NULL));
    assert_false(figure_theme_check("neon", &err));
    assert_non_null(strstr(err.text, "colour-blind"));
    assert_false(figure_file(s.figure, FORMAT_PNG_FILE, &(PngOptions){ .theme = "neon" }, &svg,
                             &err));
    figure_free(s.figure);
}

TEST(a_chosen_map_is_stronger_than_the_theme)
{
    Scenery s;
    Text    theme, chosen, other;

    scenery_make(&s, 1);
    theme = file_of(s.figure, FORMAT_PNG_FILE, &(PngOptions){ .theme = "print" });
    s.figure->panels[0].map_given = true;
    chosen = file_of(s.figure, FORMAT_PNG_FILE, &(PngOptions){ .theme = "print" });
    s.figure->panels[0].map = MAP_INK;
    other = file_of(s.figure, FORMAT_PNG_FILE, &(PngOptions){ .theme = "print" });
    assert_int_equal(theme.length, other.length);
    assert_memory_equal(theme.data, other.data, theme.length);
    assert_true(chosen.length != theme.length || memcmp(chosen.data, theme.data, theme.length));
    text_free(&theme);
    text_free(&chosen);
    text_free(&other);
    figure_free(s.figure);
}

/* ---- colour-blind readers --------------------------------------------------- */

static double linear(uint8_t channel)
{
    double x = channel / 255.0;

    return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
}

/* CIELAB of a colour as a reader without red (0) or green (1) cones sees it: the
 * projections of Vienot, Brettel, Mollon 1999 in linear RGB. */
static void seen(Rgb rgb, int kind, double *lab)
{
    static const double project[2][2][3] = {
        { { 0.11238, 0.88762, 0 }, { 0.00401, -0.00401, 1 } },
        { { 0.29275, 0.70725, 0 }, { -0.02234, 0.02234, 1 } },
    };
    double in[3] = { linear(rgb.r), linear(rgb.g), linear(rgb.b) }, both = 0, blue = 0, f[3];

    for (int k = 0; k < 3; k++) {
        both += project[kind][0][k] * in[k];
        blue += project[kind][1][k] * in[k];
    }
    f[0] = (0.4124 + 0.3576) * both + 0.1805 * blue;
    f[1] = (0.2126 + 0.7152) * both + 0.0722 * blue;
    f[2] = (0.0193 + 0.1192) * both + 0.9505 * blue;
    f[0] = cbrt(fmax(f[0], 0) / 0.9505);
    f[1] = cbrt(fmax(f[1], 0));
    f[2] = cbrt(fmax(f[2], 0) / 1.089);
    lab[0] = 116 * f[1] - 16;
    lab[1] = 500 * (f[0] - f[1]);
    lab[2] = 200 * (f[1] - f[2]);
}

static double apart(Rgb a, Rgb b)
{
    double least = 1e9;

    for (int kind = 0; kind < 2; kind++) {
        double x[3], y[3];

        seen(a, kind, x);
        seen(b, kind, y);
        least = fmin(least, sqrt(pow(x[0] - y[0], 2) + pow(x[1] - y[1], 2) + pow(x[2] - y[2], 2)));
    }
    return least;
}

/* A distance of 15 can be distinguished at a glance in a picture. */
TEST(categories_of_the_theme_are_told_apart_by_everybody)
{
    for (int a = 0; a < 12; a++)
        for (int b = 0; b < a; b++)
            if (!(apart(colour_of_category_safe(a), colour_of_category_safe(b)) >= 15))
                fail_msg("categories %d and %d are %.1f apart", b, a,
                         apart(colour_of_category_safe(a), colour_of_category_safe(b)));
    for (int a = 0; a < 12; a++) /* forward and backward of the same micro-batches */
        for (int b = a % 2; b < 12; b += 2)
            assert_true(apart(schedule_colour(a, true), schedule_colour(b ^ 1, true)) >= 15);
}

/* Of the default theme, whose causes have the hues of Okabe and Ito in other lightness. */
TEST(causes_are_told_apart_by_everybody)
{
    Hues light = page_theme("light")->hues;

    for (int a = 1; a <= COMPONENT_LAST; a <<= 1)
        for (int b = 1; b < a; b <<= 1) {
            double by = apart(component_colour_in(light, (uint8_t)a),
                              component_colour_in(light, (uint8_t)b));

            CHECK(by >= 15, "%s and %s: %.1f", component_name((uint8_t)a),
                  component_name((uint8_t)b), by);
        }
}

TEST(rounds_are_told_apart_by_everybody)
{
    static const double one = 1;
    ViewFound           found = { .share = &one, .rounds = 7 };
    View                view = { .kind = VIEW_COMPONENTS, .found = &found };

    for (int a = 1; a <= COMPONENT_LAST; a <<= 1)
        for (int b = 1; b < a && a != COMPONENT_OTHER; b <<= 1) {
            Rgb x = cause_colour_in(HUES_SAFE, &view, (uint8_t)a);
            Rgb y = cause_colour_in(HUES_SAFE, &view, (uint8_t)b);

            CHECK(b == COMPONENT_OTHER || apart(x, y) >= 15, "bits %d and %d", a, b);
        }
}

/* The address sanitizer asks for this: by itself it ends the program where an allocation is too
 * large. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

#define BLOCK 8192 /* of a font in an Svg */

/* In a process with room for an Svg and one of its fonts: 0: nothing of it stays. */
static int begin_in_no_room(void)
{
    struct rlimit none = { 0, 0 };
    void         *small = malloc(2048), *block, *last = NULL;
    size_t        most = 0;
    Svg          *svg;

    if (setrlimit(RLIMIT_DATA, &none) != 0)
        return 2;
    for (; (block = malloc(BLOCK)) && most < ((size_t)1 << 20); most++)
        last = block;
    if (block || !last)
        return 3;
    free(small);
    free(last);
    svg = svg_new(10, 10, 72, LETTERS_OUTLINES);
    return svg ? 4 : malloc(BLOCK) ? 0 : 1;
}

/* The room of the first font is given back where the second has none. */
TEST(an_svg_that_cannot_begin_leaves_nothing)
{
    pid_t child;
    int   status;

    if (dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init")) {
        print_message("SKIPPED: a sanitizer's malloc does not heed the limit\n");
        return;
    }
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(begin_in_no_room());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Whether what is allocated from here on counts as a leak, if a sanitizer looks for them. */
static void count_leaks(bool counted)
{
    void *found = dlsym(RTLD_DEFAULT, counted ? "__lsan_enable" : "__lsan_disable");
    void (*set)(void);

    memcpy(&set, &found, sizeof(set));
    if (found)
        set();
}

/* So many pixels have no room anywhere.  The page of a PDF that fails stays (drop_page). */
TEST(an_image_too_large_for_memory_says_so)
{
    static const Rgb one = { 0, 0, 0 };
    static const CanvasKind kinds[] = { CANVAS_SVG, CANVAS_PDF };

    for (int k = 0; k < 2; k++) {
        Error   err = ERROR_INIT;
        Canvas *canvas;

        if (kinds[k] == CANVAS_PDF)
            count_leaks(false);
        canvas = canvas_new(kinds[k], 10, 10, 72, &(CanvasLetters){ 0 }, NULL, &err);
        assert_non_null(canvas);
        canvas_image(canvas, 0, 0, &one, NULL, 1 << 20, 1 << 20, 1 << 24, 1 << 24);
        assert_false(canvas_ok(canvas, &err));
        assert_int_equal(err.code, ERR_NOMEM);
        canvas_free(canvas);
        if (kinds[k] == CANVAS_PDF)
            count_leaks(true);
    }
}

SUITE(NULL, NULL)
