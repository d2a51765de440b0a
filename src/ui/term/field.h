/* ui/term/field.h -- one line of text being typed. */
#ifndef UI_TERM_FIELD_H
#define UI_TERM_FIELD_H

#include "ui/term/term.h"
#include "ui/term/theme.h"

typedef struct Field {
    char text[512];      /* UTF-8 */
    int  length, cursor; /* bytes; the cursor stands before text[cursor] */
} Field;

void field_set(Field *field, const char *text); /* cursor at the end */
void field_insert(Field *field, const char *text);
/* True when the key belonged to the field: characters and line editing. */
bool field_key(Field *field, uint32_t key);
void field_draw(const Field *field, Term *term, int y, int x, int width, Style style);

#endif
