/* attn/cpu/vector.h -- what the kernel files share before their vectors exist.
 *
 * UNROLL stands before a loop whose bound is a constant, so that arrays of
 * vectors become registers; both compilers need to be asked, each its own way.
 */
#ifndef ATTN_CPU_VECTOR_H
#define ATTN_CPU_VECTOR_H

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* Scores this far below the row's maximum have weight 0: 2^-125 is the last
 * power whose product with 2^f is surely a normal number. */
#define EXP2_LOWEST (-125.0f)

#endif
