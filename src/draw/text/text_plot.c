/* text_plot.c -- a panel that is a plot, as lines of text; see text_panel.h. */
#include "draw/text/plot_cells.h"
#include "draw/text/text_panel.h"
#include "draw/text/utf8.h"

#define USUAL_LINES 16

static void encode(uint32_t ch, char *out)
{
    if (ch < 0x80) {
        *out++ = (char)ch;
    } else if (ch < 0x800) {
        *out++ = (char)(0xC0 | ch >> 6);
        *out++ = (char)(0x80 | (ch & 0x3F));
    } else {
        *out++ = (char)(0xE0 | (ch >> 12 & 0xF));
        *out++ = (char)(0x80 | (ch >> 6 & 0x3F));
        *out++ = (char)(0x80 | (ch & 0x3F));
    }
    *out = '\0';
}

static void draw_cells(const PlotCells *cells, int colours, Block *out)
{
    Pen pen = { .colours = colours };

    for (int y = 0; y < cells->height; y++) {
        pen.line = block_line(out);
        for (int x = 0; x < cells->width; x++) {
            const PlotCell *cell = &cells->cells[y * cells->width + x];
            PenColour       ink = { .set = cell->ink >= 0 };
            char            glyph[8];

            if (ink.set) {
                ink.rgb = plot_colour(cell->ink, true);
                ink.index256 = plot_colour_256(cell->ink);
            }
            encode(cell->ch, glyph);
            pen_put(&pen, glyph, ink, (PenColour){ 0 });
        }
        pen_end(&pen);
    }
}

void text_plot(const Panel *panel, const Plot *plot, int width, int lines,
               const TextOptions *options, const Lines *title, int title_lines, Block *out)
{
    PlotCells cells;
    Error     err = ERROR_INIT;
    char      caption[256];
    int       height;

    for (int k = 0; k < title->count || k < 1; k++)
        line_add(block_line(out), title->count ? title->text[k] : "");
    while (out->count < title_lines && !out->failed)
        block_line(out);
    height = lines ? lines + 1 : plot->rows ? plot_cells_lines(plot, width) : USUAL_LINES + 4;
    if (!plot_cells(plot, width, height, options->utf8, &cells, &err)) {
        out->failed = true;
        return;
    }
    draw_cells(&cells, options->colours, out);
    plot_cells_free(&cells);
    plot_caption(plot, caption, sizeof(caption));
    block_wrap(out, *panel->caption ? panel->caption : caption, width, !options->utf8);
}
