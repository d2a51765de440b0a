/* svd.c -- see svd.h.  OpenBLAS holds LAPACK; its Fortran symbols are declared here,
 * since no header of it need be installed. */
#include "attn/cpu/svd.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "attn/cpu/cpu.h"

extern void dgesdd_(const char *job, const int *m, const int *n, double *a, const int *lda,
                    double *s, double *u, const int *ldu, double *vt, const int *ldvt, double *work,
                    const int *lwork, int *iwork, int *info, size_t job_length);
extern void dgeqrf_(const int *m, const int *n, double *a, const int *lda, double *tau,
                    double *work, const int *lwork, int *info);
extern void dorgqr_(const int *m, const int *n, const int *k, double *a, const int *lda,
                    const double *tau, double *work, const int *lwork, int *info);

static bool all_finite(const double *a, int64_t count, Error *err)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(a[i]))
            return error_set(err, ERR_DATA,
                             "singular values: the matrix holds NaN or infinite values");
    return true;
}

static bool no_memory(Error *err)
{
    return error_set(err, ERR_NOMEM, "singular values: out of memory");
}

bool svd_values(double *a, int64_t rows, int64_t cols, double *values, Error *err)
{
    int    m = (int)rows, n = (int)cols, least = m < n ? m : n, one = 1, info = 0, size = -1;
    int   *whole = malloc((size_t)(8 * (least > 0 ? least : 1)) * sizeof(*whole));
    double asked = 0, unused = 0, *work = NULL;

    if (!all_finite(a, rows * cols, err)) {
        free(whole);
        return false;
    }
    cpu_single_blas();
    dgesdd_("N", &m, &n, a, &m, values, &unused, &one, &unused, &one, &asked, &size, whole, &info,
            1);
    size = (int)asked > 1 ? (int)asked : 1;
    work = malloc((size_t)size * sizeof(*work));
    if (whole && work && least > 0)
        dgesdd_("N", &m, &n, a, &m, values, &unused, &one, &unused, &one, work, &size, whole,
                &info, 1);
    free(work);
    free(whole);
    if (!whole || !work)
        return no_memory(err);
    return info == 0 || error_set(err, ERR_INTERNAL,
                                  "singular values of %d x %d: no convergence (%d)", m, n, info);
}

bool svd_orthonormal(double *a, int64_t rows, int64_t cols, Error *err)
{
    int     m = (int)rows, n = (int)cols, size = 64 * (n > 0 ? n : 1), info = 0;
    double *tau = malloc((size_t)(n > 0 ? n : 1) * sizeof(*tau));
    double *work = malloc((size_t)size * sizeof(*work));
    bool    made = tau && work;

    if (made && all_finite(a, rows * cols, err)) {
        cpu_single_blas();
        dgeqrf_(&m, &n, a, &m, tau, work, &size, &info);
        dorgqr_(&m, &n, &n, a, &m, tau, work, &size, &info);
    } else {
        info = 1;
    }
    free(tau);
    free(work);
    return made ? info == 0 : no_memory(err);
}
