/* glossary.c -- see glossary.h. */
#include "app/glossary.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static const Gloss glossary[] = {
#define GLOSS(word, others, text) { word, others, text },
#include "app/glossary.def"
#undef GLOSS
};

const Gloss *gloss_at(size_t index)
{
    return index < sizeof(glossary) / sizeof(*glossary) ? &glossary[index] : NULL;
}

/* Any rank of a key, "#12/96", is the one word of the table that begins with #. */
static bool is_rank(const char *word)
{
    return word[0] == '#' && strspn(word + 1, "0123456789/") == strlen(word + 1);
}

static bool is_spelling(const Gloss *gloss, const char *word, bool exactly)
{
    size_t length = strlen(word);

    for (const char *at = gloss->others; *at;) {
        size_t next = strcspn(at, "|");

        if (next == length &&
            !(exactly ? strncmp(at, word, length) : strncasecmp(at, word, length)))
            return true;
        at += next + (at[next] == '|');
    }
    return false;
}

static const Gloss *find_spelling(const char *word, bool exactly)
{
    const Gloss *gloss;

    for (size_t i = 0; (gloss = gloss_at(i)); i++)
        if (is_spelling(gloss, word, exactly))
            return gloss;
    return NULL;
}

/* A word of its own goes before a spelling of another one; M is not m if both are there. */
const Gloss *gloss_find(const char *word)
{
    const Gloss *gloss;

    if (!*word)
        return NULL;
    for (size_t i = 0; (gloss = gloss_at(i)); i++)
        if (!strcasecmp(gloss->word, word) || (is_rank(word) && is_rank(gloss->word)))
            return gloss;
    gloss = find_spelling(word, true);
    return gloss ? gloss : find_spelling(word, false);
}

static void add_others(const Gloss *gloss, Text *out)
{
    const char *at = gloss->others;

    for (bool first = true; *at; first = false) {
        size_t next = strcspn(at, "|");

        text_addf(out, "%s%.*s", first ? " (" : ", ", (int)next, at);
        at += next + (at[next] == '|');
    }
    text_add(out, *gloss->others ? ")" : "");
}

void glossary_document(Text *out)
{
    const Gloss *gloss;

    text_add(out, "# Glossary\n\nMade by `attnscope docs glossary`; do not edit. `attnscope info "
                  "WORD` prints one entry, `attnscope info glossary` all of them. In the explorer, "
                  "`:info WORD` does the same, and `?` finds a word as you type it. Words in "
                  "brackets lead to the same entry.\n");
    for (size_t i = 0; (gloss = gloss_at(i)); i++) {
        text_addf(out, "\n**%s**", gloss->word);
        add_others(gloss, out);
        text_addf(out, ". %s\n", gloss->text);
    }
}
