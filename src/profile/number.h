/* profile/number.h -- a measured number, or none: "not measured" is never 0. */
#ifndef PROFILE_NUMBER_H
#define PROFILE_NUMBER_H

#include <stdbool.h>

typedef struct Number {
    double value;
    bool   valid;
} Number;

static inline Number number_of(double value)
{
    return (Number){ .value = value, .valid = true };
}

#define NUMBER_NONE ((Number){ .valid = false })

#endif
