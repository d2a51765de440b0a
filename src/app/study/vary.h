/* app/study/vary.h -- the values of one parameter, in words.
 *
 *     NAME=16:512:x2      16, 32, 64 ... 512; a factor above 1
 *     NAME=1:9:+2         1, 3, 5, 7, 9; a step above 0
 *     NAME=16:512         as with x2
 *     NAME=3,5,17 or a,b  these, whatever they are
 */
#ifndef APP_STUDY_VARY_H
#define APP_STUDY_VARY_H

#include "core/error.h"
#include "core/text.h"

#define VARY_MOST 256

typedef struct Vary {
    char   name[64];
    char **values; /* owned; as a parameter is assigned: "16", "0.25", "positive" */
    int    count;
    bool   times;  /* a range by a factor: its axis is logarithmic */
} Vary;

/* On failure nothing is to be freed. */
bool vary_parse(const char *text, Vary *out, Error *err);
void vary_free(Vary *vary);
struct Param;
/* "features=32,64,128,256,512": a range around the value one has ("" the default), as far as
 * the parameter and a sequence of n tokens allow; dense: all over it, in small steps
 * up to 2n, the width of a window that misses nothing.  False:
 * the parameter has no such range. */
bool vary_usual(const struct Param *param, const char *now, int64_t n, bool dense, Text *out);
/* The value as a number, for an axis; NaN when it is none. */
double vary_number(const Vary *vary, int index);

#endif
