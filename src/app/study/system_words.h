/* app/study/system_words.h -- the systems of the surveys' tables in words, and what runs them here. */
#ifndef APP_STUDY_SYSTEM_WORDS_H
#define APP_STUDY_SYSTEM_WORDS_H

#include "attn/mechanism.h"
#include "attn/systems.h"
#include "core/text.h"

typedef enum SystemClaimKind { CLAIM_COMPLEXITY, CLAIM_DECODE } SystemClaimKind;

/* "O(n log n) [a]; O(n sqrt(n)) [b]": each claim once, with the surveys that make it;
 * "-": none does. */
void system_claims(const System *system, SystemClaimKind what, Text *out);
/* As a survey prints it, else of the mechanism that runs; "-": nothing does. */
const char *system_class(const System *system, char *text, size_t size);

/* How a claim such as "O(n sqrt(n))" or "O(k n)" grows with n, all other letters fixed. */
typedef struct Growth {
    double power; /* of n; < 0: the text does not say (O(b^2), a claim of memory) */
    bool   log;   /* times log n */
} Growth;
Growth claim_growth(const char *complexity);

/* The next word of system->runs that this catalogue has; *at moves past it.  False: no more. */
bool system_next_word(const char **at, char *word, size_t size);
/* The mechanism of the first such word; NULL: nothing runs the system. */
const Mechanism *system_mechanism(const System *system);

#endif
