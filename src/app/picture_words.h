/* app/picture_words.h -- what stands over, beside and under the panels of a picture. */
#ifndef APP_PICTURE_WORDS_H
#define APP_PICTURE_WORDS_H

#include "app/picture.h"

/* Appends "reach, 12 layers": a view and what else its name should say. */
void picture_view_name(const Run *run, const View *view, Text *out);
/* Titles, names of series and the caption of a figure whose panels are made. */
void picture_words(Figure *figure, const PanelChoice *panels, int count,
                   const PictureOptions *options);
/* Head that a panel shows; -1: the first. */
int64_t picture_head(const PanelChoice *choice, const PictureOptions *options);

#endif
