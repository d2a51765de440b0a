/* test_legend.c -- the legend and the picture agree: what it names is there to be seen.
 *
 * Figures of all presets are drawn in pixels; the colour of each swatch is looked for in the cells
 * and the bars of a panel.
 */
#include "app/command/command.h"
#include "app/figure/picture.h"
#include "check.h"
#include "draw/page/sheet.h"

typedef struct Picture {
    Sheet    sheet;
    uint8_t *pixels;
    int      width, height;
} Picture;

static Picture picture_drawn(const Figure *figure)
{
    Picture    p = { .sheet = { .figure = figure,
                                .style = sheet_style(&(PngOptions){ .dpi = 300 }) } };
    PngOptions options = { .dpi = 300 };
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

static bool box_has(const Picture *p, Box box, Rgb rgb)
{
    for (int y = box.y; y < box.y + box.h; y++)
        for (int x = box.x; x < box.x + box.w; x++) {
            const uint8_t *at = p->pixels + 4 * ((int64_t)y * p->width + x);

            if (at[0] == rgb.r && at[1] == rgb.g && at[2] == rgb.b)
                return true;
        }
    return false;
}

static bool picture_has(const Picture *p, Rgb rgb)
{
    for (int k = 0; k < p->sheet.figure->count; k++) {
        const PanelBoxes *b = &p->sheet.layout.panels[k];

        if (box_has(p, b->matrix, rgb) || box_has(p, b->load, rgb) ||
            box_has(p, b->row_load, rgb))
            return true;
    }
    return false;
}

/* Number of swatches; each is in the picture. */
static int check_legend(const Figure *figure, const char *name)
{
    Picture p = picture_drawn(figure);
    int     swatches = 0;

    for (int k = 0; k < p.sheet.item_count; k++) {
        const LegendItem *item = &p.sheet.items[k];

        if (item->words || item->dot)
            continue;
        swatches++;
        CHECK(picture_has(&p, item->rgb), "%s: no cell is '%s'", name, item->text);
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
        swatches += check_legend(figure, preset->id);
        figure_free(figure);
        figure_run_free(&drawing);
        preset_call_free(&made);
        session_free(session);
    }
    CHECK(swatches > 60, "%d swatches", swatches);
}

SUITE(NULL, NULL)
