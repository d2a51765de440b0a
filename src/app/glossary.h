/* app/glossary.h -- the words of the screens and documents, and what they mean. */
#ifndef APP_GLOSSARY_H
#define APP_GLOSSARY_H

#include <stddef.h>

#include "core/text.h"

typedef struct Gloss {
    const char *word;
    const char *others; /* other spellings, separated by | */
    const char *text;   /* plain sentences, one line */
} Gloss;

const Gloss *gloss_at(size_t index); /* NULL past the end */
/* By word or another spelling, without regard to capitals; "#3/20" is found as "#5/49".  NULL: not
 * in the glossary. */
const Gloss *gloss_find(const char *word);
/* A glossary page in Markdown. */
void glossary_document(Text *out);

#endif
