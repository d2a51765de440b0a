/* app/figure/picture_words.h -- what stands over, beside and under the panels of a picture. */
#ifndef APP_FIGURE_PICTURE_WORDS_H
#define APP_FIGURE_PICTURE_WORDS_H

#include "app/figure/picture.h"

/* Appends "reach, 12 layers": a view and what else its name should say. */
void picture_view_name(const Run *run, const View *view, Text *out);
/* Titles, names of series and the caption of a figure whose panels are made. */
void picture_words(Figure *figure, const PanelChoice *panels, int count,
                   const PictureOptions *options);
/* How many panels join the plot that begins with `at`. */
int picture_joining(const PanelChoice *panels, int at, int count);
/* The result of panels[at], with what is not the same in all of them; or its own title where
 * it joins a plot. */
void picture_result_name(const PanelChoice *panels, int count, int at,
                         const PictureOptions *options, char *text, size_t size);
/* Head that a panel shows; -1: the first. */
int64_t picture_head(const PanelChoice *choice, const PictureOptions *options);

#endif
