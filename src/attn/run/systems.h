/* attn/run/systems.h -- the systems that the surveys name, and what each survey claims of them.
 *
 * One row per system of systems.def; the claims are the surveys' own, in one notation (n tokens),
 * never ours: what a paper claims is in its Mechanism, what is measured is in a Record.
 *
 *   [a]  Tay, Dehghani, Bahri, Metzler 2020, arXiv 2009.06732v1, Table 1
 *   [b]  the same, version 2, March 2022, Table 1
 *   [c]  Fournier, Caron, Aloise 2021, arXiv 2103.14636, sections 3 and 4, appendix D, Table 4
 */
#ifndef ATTN_RUN_SYSTEMS_H
#define ATTN_RUN_SYSTEMS_H

#include <stddef.h>

typedef enum SystemPart {
    SYSTEM_ATTENTION, /* efficient attention */
    SYSTEM_SPARSE,    /* sparse models: the attention is as it was */
    SYSTEM_MIXER,     /* alternatives to attention */
    SYSTEM_GENERAL,   /* methods for any network */
    SYSTEM_POSITION,  /* what a position adds to attention */
    SYSTEM_PARTS,
} SystemPart;

enum { SURVEY_A, SURVEY_B, SURVEY_C, SURVEYS };

typedef struct SystemClaim {
    const char *complexity; /* "O(n log n)"; NULL: this survey does not say */
    const char *decode;     /* "yes", "no"; NULL: it does not say */
    const char *class;      /* as printed, "FP+M"; NULL: it does not say */
} SystemClaim;

typedef struct System {
    SystemPart  part;
    const char *name; /* "Reformer" */
    const char *cite; /* "Kitaev et al. 2020" */
    const char *runs; /* words that `attnscope run` takes, separated by spaces */
    SystemClaim claims[SURVEYS];
} System;

const System *system_at(size_t index); /* NULL past the end */
const char   *system_part_title(SystemPart part);
const char   *survey_title(int survey);
/* What its text says against its own table, in words; NULL: nothing; static. */
const char   *survey_disagrees(int survey);

#endif
