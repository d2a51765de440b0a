/* kernel.c -- which of the kernels this CPU can run; see kernel.h. */
#include "attn/cpu/kernel.h"

#include <stddef.h>

const Kernel *kernel_at(int index)
{
    const Kernel *found[4] = { NULL };
    int           count = 0;

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        found[count++] = &kernel_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        found[count++] = &kernel_avx2;
#endif
    found[count++] = &kernel_generic;
    return index >= 0 && index < count ? found[index] : NULL;
}
