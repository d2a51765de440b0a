/* attn/cpu/blas.h -- calls of OpenBLAS, also where memory is limited. */
#ifndef ATTN_CPU_BLAS_H
#define ATTN_CPU_BLAS_H

#include <stdbool.h>

#include "core/error.h"

/* Before an operation that calls OpenBLAS from up to so many threads: it starts no threads of its
 * own, and has a buffer.  Without room for one it would never return. */
bool blas_ready(int callers, Error *err);

/* Around each call. */
void blas_enter(void);
void blas_leave(void);

/* Whether a limit holds for address space or for data (ulimit -v and -d), or for the system. */
bool blas_limited(void);

#endif
