/* profile/machine.h -- the machine's processor, and what it leaves to this process: memory and
 * processors.
 *
 * A control group may allow less than the machine has (core/groups.h).
 */
#ifndef PROFILE_MACHINE_H
#define PROFILE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The processor's name by a text as /proc/cpuinfo: its model's or, where the cores have numbers
 * instead (ARM), that of each kind of core, as "ARM Neoverse-V2".  "": it names none. */
void machine_cpu(FILE *cpuinfo, char *text, size_t size);

/* Bytes that this process may have: of the machine, or of its control group where that is less. */
int64_t machine_memory(void);
/* Bytes of one more run, or of an input, whose user gives no limit: half of machine_memory(), or
 * what this process leaves of it where that is less.  What other processes take is not known. */
int64_t machine_share(void);
/* The same of `memory` bytes, of which the process holds `held`; at least 1 MiB. */
int64_t machine_share_of(int64_t memory, int64_t held);
/* Processors that this process may use: by its affinity, or its control group's quota. */
double  machine_processors(void);

/* The work of this process's processors so far. */
typedef struct Load {
    double at;   /* clock_wall */
    double busy; /* seconds, of all processes; < 0: not known */
    double own;  /* seconds, of this process */
} Load;

Load   load_now(void);
/* Processors that other processes kept busy between the two; 0 where it is not known, or where the
 * time is too short for the clock of /proc/stat. */
double load_of_others(const Load *from, const Load *to);
/* More threads than processors were free.  Less than half a processor is no difference: other work
 * comes and goes, and its time is rounded to ticks. */
bool   load_is_over(int threads, double free_processors);

#endif
