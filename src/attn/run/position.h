/* attn/run/position.h -- positional score modifiers, orthogonal to mechanisms.
 *
 * A Position is one constant descriptor at the end of its own file in
 * attn/position/, listed in positions.def.  Input kinds change q and k (and
 * perhaps v) before anything else; bias kinds add to the scores inside the
 * tile.  Either way the work is put into an AttendInput (attn/ops/ops.h).
 */
#ifndef ATTN_RUN_POSITION_H
#define ATTN_RUN_POSITION_H

#include "attn/run/mechanism.h"

typedef struct Run Run;

typedef struct Position {
    const char   *id;     /* "alibi" */
    const char   *name;   /* in pictures: "ALiBi" */
    const char   *title;
    const char   *source; /* paper, section */
    const char   *help;   /* one line: what it changes */
    const char   *note;   /* a sentence: where releases of it differ; NULL: none */
    const char   *views;  /* besides position_bias: names and what they are; NULL: none */
    PositionClass class_;
    bool          added;  /* to q and k: it cannot be taken off again, as an angle can */
    const Param  *params; /* names start with pos_ */
    size_t        params_size;
    /* Changes *in (whose q, k, v, scale are the raw ones).  Sticky errors. */
    void (*apply)(Run *r, const void *params, AttendInput *in);
    /* Default scale when the user gave none; NULL: 1/sqrt(d). */
    double (*default_scale)(const void *params, int64_t d);
} Position;

/* The name of the position with this id; the id itself where there is none. */
const char *position_name(const char *id);
/* Whether a mechanism that takes `taken` (Mechanism.positions) takes p. */
bool position_fits(const Position *p, unsigned taken);
const Position *position_at(size_t index);       /* NULL past the end */
const Position *position_find(const char *id);   /* NULL: unknown */
/* As position_find, "none" gives NULL in *out; unknown names the valid ones. */
bool position_parse(const char *id, const Position **out, Error *err);

#endif
