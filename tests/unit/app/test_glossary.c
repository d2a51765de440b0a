/* test_glossary.c -- the glossary is in order, each spelling leads to its entry, and the words of
 * the screens and of the classes are there. */
#include <strings.h>

#include "app/glossary.h"
#include "attn/run/mechanism.h"
#include "check.h"

TEST(words_are_in_alphabetical_order)
{
    for (size_t i = 1; gloss_at(i); i++)
        CHECK(strcasecmp(gloss_at(i - 1)->word, gloss_at(i)->word) < 0, "%s before %s",
              gloss_at(i - 1)->word, gloss_at(i)->word);
}

TEST(every_spelling_leads_to_its_entry)
{
    for (size_t i = 0; gloss_at(i); i++) {
        const Gloss *gloss = gloss_at(i);
        char         others[256], *rest = others, *word;

        assert_ptr_equal(gloss_find(gloss->word), gloss);
        snprintf(others, sizeof(others), "%s", gloss->others);
        while ((word = strtok_r(rest, "|", &rest)))
            CHECK(gloss_find(word) == gloss, "%s of %s leads to %s", word, gloss->word,
                  gloss_find(word)->word);
    }
}

TEST(every_class_of_mechanisms_is_explained)
{
    for (unsigned bit = 1; strcmp(class_name(bit), "?") != 0; bit <<= 1)
        CHECK(gloss_find(class_name(bit)), "%s", class_name(bit));
}

TEST(words_of_the_screens_are_explained)
{
    static const char *const words[] = { "nnz", "cover", "kept mass", "entropy", "LSH", "dense",
                                         "#5/49", "#12/96", "implicit matrix", "crossover",
                                         "arena", "closed form", "mass p5", "output err", "TV",
                                         "faster from n", "+-", "reach", "missed", "strips",
                                         "loss", "perplexity", "token", "depth", "pool", "zoom",
                                         "scale", "bias", "softcap", "evicted" };

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        CHECK(gloss_find(words[i]), "%s", words[i]);
    assert_null(gloss_find("xyzzy"));
    assert_null(gloss_find(""));
}

SUITE(NULL, NULL)
