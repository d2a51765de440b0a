/* draw/figure/scene.h -- the panels of a figure, reduced and ranged; private to draw.
 *
 * A surface decides how many cells each panel gets, then makes a Scene: the panels with settled
 * value ranges and reduced grids.
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
/* Masked cells are grey instead of the page's colour. */
bool       panel_greys_masked(const Panel *panel, bool dark_background);
Rgb        panel_category_colour(const Panel *panel, int32_t category);
/* Of a numbered category; pale: see Panel. */
Rgb        kind_colour(Hues hues, bool pale, int64_t category);
/* On a picture, where grey is the picture itself: "other", and the query's pixel. */
#define PICTURE_OTHER     ((Rgb){ 116, 66, 200 })
#define PICTURE_OTHER_256 98
#define PICTURE_MARK      ((Rgb){ 230, 25, 75 })
#define PICTURE_MARK_256  197
Region     panel_region(const Panel *panel);
#define QUANTITY_ANY "value" /* panel_quantity of an unknown quantity */
/* The kind of view, or the user, chose its ends. */
bool       panel_has_own_range(const Panel *panel);
/* A map with one end for values on one side, and a logarithmic scale where values span decades,
 * unless the user chose them; scales.c. */
void       scene_choose_maps(Scene *scene, const Figure *figure);
void       scene_choose_scales(Scene *scene, const Figure *figure);
/* Gives panels that the shared range leaves empty their own: Panel.apart; scales.c. False: none
 * but those that have it. */
bool       scene_part_faint(Scene *scene, const Figure *figure);
/* Sets Panel.pale of panels whose numbered categories are of another kind than the first. */
void       scene_tell_kinds(Scene *scene);
/* Causes of one name have one colour: sets Panel.worn of panel k, a copy of the figure's. */
void       panel_wear_causes(const Figure *figure, int k, Panel *panel);
uint8_t    panel_worn(const Panel *panel, uint8_t bit);
/* Sets lo < hi from the grid if the panel leaves them open. */
void panel_settle(Panel *panel, const Grid *grid);
#define CATEGORY_LETTERS 26
/* The letter of a category: the first of its name, or one by its number. */
char category_letter(const View *view, int64_t category);
/* Colour and letter of a schedule's cell, of a hop count, of an unreached cell; category.c. */
void schedule_paint(Paint *paint, const GridCell *cell, Hues hues, bool dark_background);
void hops_paint(Paint *paint, ColourMap map, double hops, bool dark_background);
Rgb  hops_background(bool dark);
/* A number of a colour bar, rounded to `digits` significant digits. */
void number_text(double value, int digits, char *text, size_t size);

/* The panel's grid of at most so many cells. */
bool panel_reduce(const Figure *figure, const Panel *panel, CellCount cells, Grid *grid,
                  Error *err);
/* Panel k gets at most cells[k] cells. Free with scene_free. */
bool scene_make(Scene *scene, const Figure *figure, const CellCount *cells, Error *err);
void scene_free(Scene *scene);
/* Pairs that are not allowed become grey in all panels, if they are in one; by the panels' maps. */
void scene_share_greys(Scene *scene);
/* The legend of all panels: component bits, categories, odd values. Returns the entries written. */
int  scene_legend(const Scene *scene, bool dark_background, LegendItem *items, int most);
/* Some cell stands for several entries, so shades of cover matter. */
bool scene_shows_cover(const Scene *scene);

/* The letter of panel k: "a" .. "z", "aa", ... */
void panel_letter(int k, char *text, size_t size);

#endif
