/* app/result/reach.h -- what a result reaches over depth: as a view, in numbers, way by way.
 *
 * The layers are the result's mechanism repeated, or a stack "A > B > C" (bottom
 * first).  The cells of a layer are those of its run's connectivity, so a
 * mechanism that chooses cells by content is looked at as it ran on this input.
 * See attn/reach.h for the meaning of a hop count.
 */
#ifndef APP_RESULT_REACH_H
#define APP_RESULT_REACH_H

#include "app/session/session.h"
#include "attn/reach.h"

#define REACH_USUAL 12 /* layers when nobody says: as BERT base and GPT-2 have */
#define REACH_VIEW  "reach"

#define REACH_HELP  "layers until a key's token reaches a query's output"

/* The view is there beside those the mechanism promises. */
bool reach_is_offered(const Mechanism *m);

typedef struct ReachOptions {
    int  layers; /* 0: as many as the stack has, REACH_USUAL for one mechanism */
    bool strict; /* no residual connections: walks of exactly so many layers */
} ReachOptions;

typedef struct Reach Reach; /* of one result; private */

Reach *reach_new(const Result *result); /* NULL: no memory */
void   reach_free(Reach *reach);

/* The view of hop counts (VIEW_HOPS; -1: not reached); made at once, read slowly the
 * first time.  It lives as long as the result.  options may be NULL.  NULL with an
 * error when there is no pattern to follow. */
const View *result_reach(const Result *result, const ReachOptions *options, Error *err);
/* Of such a view: */
int  reach_view_depth(const View *view);
bool reach_view_strict(const View *view);
bool reach_view_ready(const View *view); /* its layers are known: reading does not take long */
/* As reach_path; -2 also when the layers are not known yet. */
int  reach_view_path(const View *view, int64_t q, int64_t k, int64_t *path);
/* "2 layers via k=0", "itself", "not within 12 layers"; returns the hops too. */
int  reach_view_way(const View *view, int64_t q, int64_t k, char *text, size_t size);

/* All of it; takes a while. */
bool result_reach_summary(const Result *result, const ReachOptions *options, Threads *threads,
                          const atomic_bool *cancel, ReachSummary *out, Error *err);
/* The cells depend on what the input holds. */
bool result_reach_by_content(const Result *result);

#endif
