/* shortage.c -- see shortage.h. */
#include "core/shortage.h"

#include <stdatomic.h>

#define SMALL ((size_t)1 << 20)

static atomic_llong noted;
static atomic_bool  forbidden;

void shortage_note(size_t bytes)
{
    if (bytes < SMALL)
        atomic_fetch_add_explicit(&noted, 1, memory_order_relaxed);
}

bool shortage_noted(void)
{
    return shortage_count() > 0;
}

int64_t shortage_count(void)
{
    return atomic_load_explicit(&noted, memory_order_relaxed);
}

void shortage_forbid_output(void)
{
    atomic_store(&forbidden, true);
}

bool shortage_allows_output(Error *err)
{
    return !atomic_load(&forbidden) || !shortage_noted() ||
           error_set(err, ERR_NOMEM, "not enough memory: the output would be cut short");
}
