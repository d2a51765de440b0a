/* app/result/derived.h -- curves of a result that no run emits: spectra and traces.
 *
 *     spectrum            singular values of the weights of each head
 *     spectrum(VIEW)      of any other matrix
 *     trace               all numbers the stages are watched by (run_trace)
 *     row_error           one of them, by its name with _ for blanks
 *     running_max         a view of the run's replay (attn/replay.h)
 *
 * They stand beside the run's own views wherever a view is named; a view of the run
 * with such a name comes first.
 */
#ifndef APP_RESULT_DERIVED_H
#define APP_RESULT_DERIVED_H

#include "app/session/session.h"

#define SPECTRUM_VIEW "spectrum"
#define SPECTRUM_HELP "singular values of the weights, beside the rank the mechanism allows"
#define TRACE_VIEW    "trace"
#define TRACE_HELP    "what the stages are watched by, over their iterations"

bool spectrum_is_offered(const Mechanism *m);

/* The view, made at once (a spectrum is read slowly the first time, on the reader's
 * thread).  It lives as long as the result; the owner's thread asks.  NULL without a word
 * in *err: there is none of this name. */
const View *result_derived(Result *result, const char *name, Error *err);
/* The view is one of these. */
bool view_is_derived(const Result *result, const View *view);
/* Those without parameters, for lists: 0, 1, ...; NULL: no more. */
#define DERIVED_LISTED 2 /* at most */
const View *result_derived_at(Result *result, int at);
/* Makes what reading it needs; false: it cannot be made. */
bool derived_ready(const View *view, int64_t plane, Error *err);
/* That is done already: reading does not take long. */
bool derived_known(const View *view, int64_t plane);
/* "randomised, rank 128, seed 7"; "" where all is exact. */
void derived_words(const View *view, char *text, size_t size);

void derived_free(struct Derived *list); /* NULL is nothing */

#endif
