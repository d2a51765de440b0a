/* draw/text/shape.h -- scripts that are written from the right, and letters that join.
 *
 * The built-in fonts have a sign for each form of an Arabic letter (Unicode's presentation
 * forms), so a small table and one pass take the place of a shaping library.
 */
#ifndef DRAW_TEXT_SHAPE_H
#define DRAW_TEXT_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHAPE_MOST 1024 /* characters that are looked at */

/* The text as its signs stand from left to right: Arabic joined, in forms that `has` knows;
 * runs of Hebrew, Arabic and N'Ko turned round, their numbers and marks not.  A text without
 * such letters is copied. */
void shape_text(const char *text, bool (*has)(const void *context, uint32_t code),
                const void *context, char *out, size_t size);

#endif
