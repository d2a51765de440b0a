/* attn/study/spectrum.h -- the singular values of one plane of a view.
 *
 * Up to SPECTRUM_EXACT rows and columns the plane is held (in double) and all values are
 * exact, by LAPACK.  Beyond, a randomised range finder (Halko, Martinsson, Tropp 2011:
 * "Finding structure with randomness", Algorithm 4.4) gives the largest SPECTRUM_RANK:
 *
 *     V = orth(random m x l),  twice V = orth(A^T A V),  values of A V,  l = rank + 16
 *
 * A is read in blocks of rows, three times, and never held; a block ends at its last column that is
 * not 0.  Only where the support allows few cells are these read once and held.  A view that is
 * spread (ViewSpread) is multiplied as that.  A V is A seen through orthonormal directions, so no
 * value exceeds the true one; each is below it by a factor that tends to 1 as (s_(l+1) / s_i)^9.
 * Where the spectrum falls (s_(l+1) < s_i / 2) the error is below 5e-3 of the value, mostly far
 * below; the flat tail of random matrices is the worst case, where the last of the values may be
 * 10 % too small.  The sum of the squares of all values is that of A's entries: exact in both ways.
 */
#ifndef ATTN_STUDY_SPECTRUM_H
#define ATTN_STUDY_SPECTRUM_H

#include <stdatomic.h>

#include "attn/run/view.h"
#include "core/threads.h"

#define SPECTRUM_EXACT 2048
#define SPECTRUM_RANK  128

typedef struct SpectrumWay {
    int64_t exact; /* most rows and columns held; 0: SPECTRUM_EXACT */
    int64_t rank;  /* of the range finder; 0: SPECTRUM_RANK */
    uint64_t seed;
    Threads *threads;          /* NULL: this thread only */
    const atomic_bool *cancel; /* NULL: cannot be cancelled */
} SpectrumWay;

bool    spectrum_is_exact(const View *view, const SpectrumWay *way);
int64_t spectrum_count(const View *view, const SpectrumWay *way); /* of the values there will be */

/* values: spectrum_count of them, largest first; *energy: sum of the squares of all. */
bool spectrum_make(const View *view, int64_t plane, const SpectrumWay *way, double *values,
                   double *energy, Error *err);

#endif
