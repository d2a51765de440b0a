/* system_words.c -- see system_words.h. */
#include "app/study/system_words.h"

#include <stdio.h>
#include <string.h>

/* ---- claims ----------------------------------------------------------------- */

static const char *claim_of(const System *system, int survey, SystemClaimKind what)
{
    const SystemClaim *claim = &system->claims[survey];

    return what == CLAIM_DECODE ? claim->decode : claim->complexity;
}

static bool said_before(const System *system, int survey, SystemClaimKind what)
{
    for (int s = 0; s < survey; s++)
        if (claim_of(system, s, what) &&
            !strcmp(claim_of(system, s, what), claim_of(system, survey, what)))
            return true;
    return false;
}

void system_claims(const System *system, SystemClaimKind what, Text *out)
{
    size_t before = out->length;

    for (int s = 0; s < SURVEYS; s++) {
        const char *claim = claim_of(system, s, what);

        if (!claim || said_before(system, s, what))
            continue;
        text_addf(out, "%s%s [", out->length > before ? "; " : "", claim);
        for (int t = s; t < SURVEYS; t++)
            if (claim_of(system, t, what) && !strcmp(claim_of(system, t, what), claim))
                text_addf(out, "%c", 'a' + t);
        text_add(out, "]");
    }
    if (out->length == before)
        text_add(out, "-");
}

const char *system_class(const System *system, char *text, size_t size)
{
    const Mechanism *m = system_mechanism(system);

    for (int s = SURVEY_B; s >= SURVEY_A; s--)
        if (system->claims[s].complexity)
            return system->claims[s].class;
    return m ? mechanism_classes(m, text, size) : "-";
}

/* "n" by itself, as in "k n" and "n^2" but not in "n_c", "log n" or "sqrt(n)". */
static const char *find_n(const char *text)
{
    for (const char *at = text; *at; at++) {
        bool begins = at == text || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_",
                                            at[-1]);

        if (*at == 'n' && begins && !strchr("_abcdefghijklmnopqrstuvwxyz", at[1] ? at[1] : ' ') &&
            !(at - text >= 4 && !strncmp(at - 4, "log ", 4)) &&
            !(at - text >= 5 && !strncmp(at - 5, "sqrt(", 5)))
            return at;
    }
    return NULL;
}

Growth claim_growth(const char *complexity)
{
    Growth      g = { .power = -1 };
    const char *open = complexity ? strchr(complexity, '(') : NULL;
    const char *n = open ? find_n(open + 1) : NULL;

    if (!n || strstr(complexity, "memory"))
        return g;
    g.power = !strncmp(n, "n^2", 3) ? 2 : 1;
    if (strstr(complexity, "sqrt(n)"))
        g.power += 0.5;
    g.log = strstr(complexity, "log n") != NULL;
    return g;
}

/* ---- what runs it ----------------------------------------------------------- */

static const Mechanism *mechanism_of(const char *word)
{
    char id[64];

    snprintf(id, sizeof(id), "%.*s", (int)strcspn(word, "("), word);
    return mechanism_find(id);
}

bool system_next_word(const char **at, char *word, size_t size)
{
    while (**at) {
        size_t length = strcspn(*at, " ");

        snprintf(word, size, "%.*s", (int)length, *at);
        *at += length;
        *at += strspn(*at, " ");
        if (mechanism_of(word))
            return true;
    }
    return false;
}

const Mechanism *system_mechanism(const System *system)
{
    const char *at = system->runs;
    char        word[96];

    return system_next_word(&at, word, sizeof(word)) ? mechanism_of(word) : NULL;
}
