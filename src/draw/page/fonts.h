/* draw/page/fonts.h -- the fonts inside the program; written by tools/embed-fonts.sh. */
#ifndef DRAW_PAGE_FONTS_H
#define DRAW_PAGE_FONTS_H

extern const unsigned char font_sans_start[], font_sans_end[]; /* DejaVu Sans, TrueType */
extern const unsigned char font_mono_start[], font_mono_end[]; /* DejaVu Sans Mono */

#endif
