/* test_draw_seen.c -- SVG and PDF drawn by other programs, compared with the PNG.
 *
 * rsvg-convert (librsvg2-bin) and pdftoppm (poppler-utils) are not needed to build or use
 * the program; where they are missing these tests say so and are skipped.
 */

#include <png.h>
#include <unistd.h>

#include "check.h"
#include "draw/figure/figure.h"

#define SIDE 16
#define DPI 200

static void read_values(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    (void)view;
    (void)head;
    for (int64_t k = 0; k < count; k++)
        out[k] = (float)((i * 7 + (start + k * step) * 5) % 11) / 10.0f;
}

static const View view = { .name = "weights", .kind = VIEW_WEIGHTS, .dtype = DT_F32, .rank = 2,
                           .shape = { SIDE, SIDE }, .rows = "query", .cols = "key",
                           .read = read_values };

static Text file_of(FigureFormat format)
{
    Figure *figure = figure_new(1, NULL);
    Text    bytes = { 0 };

    panel_init(&figure->panels[0], &view, NULL, 0, "weights \xCE\xB1");
    assert_true(figure_file(figure, format, &(PngOptions){ .dpi = DPI }, &bytes, NULL));
    figure_free(figure);
    return bytes;
}

static uint8_t *decode(png_image *image, int ok)
{
    uint8_t *pixels;

    assert_true(ok);
    image->format = PNG_FORMAT_RGB;
    pixels = malloc(PNG_IMAGE_SIZE(*image));
    assert_non_null(pixels);
    assert_true(png_image_finish_read(image, NULL, pixels, 0, NULL));
    return pixels;
}

/* Share of the pixels that differ by a third of a channel's range or more. */
static double difference(const char *path, const Text *png)
{
    png_image ours = { .version = PNG_IMAGE_VERSION }, theirs = { .version = PNG_IMAGE_VERSION };
    uint8_t  *a = decode(&ours, png_image_begin_read_from_memory(&ours, png->data, png->length));
    uint8_t  *b = decode(&theirs, png_image_begin_read_from_file(&theirs, path));
    int64_t   all = (int64_t)ours.width * ours.height, differ = 0;

    assert_int_equal(ours.width, theirs.width);
    assert_int_equal(ours.height, theirs.height);
    for (int64_t k = 0; k < all; k++)
        differ += abs(a[3 * k] - b[3 * k]) > 85 || abs(a[3 * k + 1] - b[3 * k + 1]) > 85 ||
                  abs(a[3 * k + 2] - b[3 * k + 2]) > 85;
    free(a);
    free(b);
    return (double)differ / (double)all;
}

/* tool: a command with the sizes, then the names of the file and of the PNG to be made. */
static void is_seen_as_the_png(FigureFormat format, const char *program, const char *tool)
{
    char      folder[] = "/tmp/attnscope-seen-XXXXXX", command[512], path[128];
    Text      png = file_of(FORMAT_PNG_FILE), other = file_of(format);
    png_image size = { .version = PNG_IMAGE_VERSION };
    FILE     *file;

    snprintf(command, sizeof(command), "command -v %s >/dev/null", program);
    if (system(command) != 0) {
        print_message("SKIPPED: %s is not installed; the drawing was not looked at\n", program);
        text_free(&png);
        text_free(&other);
        skip();
    }
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/in", folder);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(other.data, 1, other.length, file), other.length);
    fclose(file);
    assert_true(png_image_begin_read_from_memory(&size, png.data, png.length));
    snprintf(command, sizeof(command), "cd %s && W=%u H=%u && %s", folder, size.width, size.height,
             tool);
    png_image_free(&size);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof(path), "%s/out.png", folder);
    assert_true(difference(path, &png) < 0.02); /* edges of letters, hairlines */
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    text_free(&png);
    text_free(&other);
}

TEST(an_svg_looks_like_the_png)
{
    is_seen_as_the_png(FORMAT_SVG_FILE, "rsvg-convert", "rsvg-convert -w $W -h $H in -o out.png");
}

TEST(a_pdf_looks_like_the_png)
{
    is_seen_as_the_png(FORMAT_PDF_FILE, "pdftoppm",
                       "pdftoppm -png -singlefile -scale-to-x $W -scale-to-y $H in out");
}

SUITE(NULL, NULL)
