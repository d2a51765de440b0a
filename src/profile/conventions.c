/* conventions.c -- see conventions.h. */
#include "profile/conventions.h"

static const Convention conventions[] = {
#define CONVENTION(number, text) { number, text },
#include "profile/conventions.def"
#undef CONVENTION
};

const Convention *convention_at(size_t index)
{
    return index < sizeof(conventions) / sizeof(*conventions) ? &conventions[index] : NULL;
}
