/* draw/figure/scene.h -- what the surfaces share; private to draw.
 *
 * A surface chooses how many cells a panel gets, then asks for a Scene: the
 * panels with their value ranges settled and their grids reduced.
 */
#ifndef DRAW_FIGURE_SCENE_H
#define DRAW_FIGURE_SCENE_H

#include "draw/figure/figure.h"

typedef enum PanelStyle {
    STYLE_CAUSE,    /* hue by component, strength by cover or value */
    STYLE_CATEGORY, /* hue by bucket, cluster or group */
    STYLE_HOPS,     /* a fixed colour for each count of layers */
    STYLE_VALUE,    /* colour map */
    STYLE_PLOT,     /* curves, no cells */
} PanelStyle;

typedef struct Scene {
    Panel *panels; /* owned; copies with lo and hi settled */
    Grid  *grids;  /* owned; empty for a plot */
    Plot **plots;  /* owned; NULL for a matrix */
    int    count;
} Scene;

typedef struct CellCount {
    int64_t rows, cols;
} CellCount;

PanelStyle panel_style(const Panel *panel);
/* Cells that are not allowed are grey, not paper. */
bool       panel_greys_masked(const Panel *panel, bool dark_background);
Rgb        panel_category_colour(const Panel *panel, int32_t category);
/* "Other" on a picture, where grey is the picture itself; and the query's pixel. */
#define PICTURE_OTHER     ((Rgb){ 116, 66, 200 })
#define PICTURE_OTHER_256 98
#define PICTURE_MARK      ((Rgb){ 230, 25, 75 })
#define PICTURE_MARK_256  197
Region     panel_region(const Panel *panel);
#define QUANTITY_ANY "value" /* of panel_quantity: nothing is known of it */
/* With a shared scale they have one range: both show values, of the same quantity. */
bool       panels_share_range(const Panel *a, const Panel *b);
/* Settles lo < hi from the grid if the panel leaves them open. */
void panel_settle(Panel *panel, const Grid *grid);
#define CATEGORY_LETTERS 26
/* The letter of a category: its name's first, or one by its number. */
char category_letter(const View *view, int64_t category);
/* Colour and letter of a hop count, and of cells without one; category.c. */
void schedule_paint(Paint *paint, const GridCell *cell, Hues hues, bool dark_background);
void hops_paint(Paint *paint, ColourMap map, double hops, bool dark_background);
Rgb  hops_background(bool dark);
/* The number a panel's colour bar ends with: rounded to what a reader needs. */
void number_text(double value, int digits, char *text, size_t size);

/* cells[k]: at most so many for panel k.  Free with scene_free. */
bool scene_make(Scene *scene, const Figure *figure, const CellCount *cells, Error *err);
void scene_free(Scene *scene);
/* Component bits, categories, odd values of all panels. */
int  scene_legend(const Scene *scene, bool dark_background, LegendItem *items, int most);
/* True when some cell stands for many entries, so shades of cover matter. */
bool scene_shows_cover(const Scene *scene);

/* "a" .. "z", "aa", ... of panel k. */
void panel_letter(int k, char *text, size_t size);
/* The arrangement asked for, or a usual one. */
void figure_arrange(const Figure *figure, int *rows, int *cols);

#endif
