/* draw/page/page_theme.h -- how a figure looks for where it is shown; private to draw. */
#ifndef DRAW_PAGE_PAGE_THEME_H
#define DRAW_PAGE_PAGE_THEME_H

#include "draw/colour/colour.h"

typedef struct PageTheme {
    const char *name;
    bool        dark;
    Rgb         paper, ink, muted, rule; /* background, text, secondary text, cell grid */
    double      type;      /* size of letters and lines, 1 as on paper */
    double      one, page; /* usual width in inches of one panel, of several */
    ColourMap   values;    /* in place of the usual map */
    Hues        hues;      /* of causes, categories and curves */
} PageTheme;

/* NULL: the first, light.  An unknown name is light too; see figure_theme_check. */
const PageTheme *page_theme(const char *name);

#endif
