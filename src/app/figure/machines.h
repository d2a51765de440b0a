/* app/figure/machines.h -- on which machines numbers were measured, and when, for captions. */
#ifndef APP_FIGURE_MACHINES_H
#define APP_FIGURE_MACHINES_H

#include "attn/ops.h"
#include "profile/record.h"

typedef struct Machines {
    char    gpu[160]; /* its name, or who else measured; "": none */
    bool    cpu;      /* it measured some, with so many threads */
    int     threads;
    int64_t when;     /* the last, seconds since 1970; 0: nothing was measured */
} Machines;

/* A measurement by these operations; by the CPU it had so many threads. */
void machines_add(Machines *machines, const Ops *ops, int threads, int64_t when);
void machines_add_record(Machines *machines, const Record *record); /* nothing if not measured */
/* "NVIDIA H200 and AMD EPYC 9B14, 2 threads"; with its date ", 2026-11-21 08:10 UTC" behind. */
void machines_names(const Machines *machines, char *text, size_t size);
void machines_text(const Machines *machines, char *text, size_t size);

#endif
