/* fake_parts.h -- what fake.c and fake_counters.c have of each other. */
#ifndef TESTS_CUPTI_FAKE_PARTS_H
#define TESTS_CUPTI_FAKE_PARTS_H

#include "fake.h"

extern FakeCupti fake;

#define must fake_must
bool must(bool holds, const char *rule); /* else it is the one that was broken, if the first */
bool fake_activity_on(void);             /* any kind */
bool fake_counters_on(void);
void fake_counters_reset(void);

#endif
