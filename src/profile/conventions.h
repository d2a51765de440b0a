/* profile/conventions.h -- what every number means, for those who must trust it. */
#ifndef PROFILE_CONVENTIONS_H
#define PROFILE_CONVENTIONS_H

#include <stddef.h>

typedef struct Convention {
    const char *number; /* "counted FLOPs" */
    const char *text;   /* plain sentences, one line */
} Convention;

const Convention *convention_at(size_t index); /* NULL past the end */

#endif
