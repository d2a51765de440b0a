/* attn/run.h -- one execution of a mechanism; all that a mechanism may see.
 *
 * Inside a Run the error is sticky: once something failed every op does
 * nothing and yields an empty tensor, so mechanism code reads like the paper
 * and never checks.  Loops over tensor data in a mechanism begin with
 * `if (run_failed(r)) return;`.
 *
 * Lifetimes: inputs and parameters are borrowed and outlive the run; all else
 * lives in the run's arena until run_free.
 */
#ifndef ATTN_RUN_H
#define ATTN_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"
#include "attn/run/mechanism.h"
#include "core/arena.h"

/* Parameters of a mechanism that is a layer of its own.
 *
 * A layer (experts, memories, factored projections) has weights without a head
 * axis, and sizes that a file may decide: a size the user sets must agree with
 * the files, one he leaves out is taken from them.
 */

typedef struct Init Init;
typedef struct Position Position;
typedef struct Rng Rng;

/* A size is the extent of `axis` of a given tensor of `rank` axes, times `factor` (0: 1). */
typedef struct SizeFrom {
    const char *name;
    Tensor      tensor; /* data NULL: not given */
    int         rank, axis;
    int64_t     factor;
} SizeFrom;

/* The size called `name`: the value that the user set (a file that disagrees fails the run), else
 * the extent of the first given tensor, else `fallback`.  The list ends with a NULL name.  Tensors
 * of another rank are skipped: layer_weight reports them. */
int64_t layer_size(Run *r, const char *name, int64_t value, int64_t fallback,
                   const SizeFrom *from);

/* Normal, of variance 1 / in: what a layer of so many inputs usually begins with. */
Init layer_by_fan(int64_t in);
/* As run_param and run_param_given, f32, of exactly this shape: no axis is shared. */
Tensor layer_weight(Run *r, const char *name, Tensor given, int rank, const int64_t *shape,
                    Init init);
Tensor layer_given(Run *r, const char *name, Tensor given, int rank, const int64_t *shape);

/* How much of a run is done.
 *
 * The share is the FLOPs done over the FLOPs of the closed form, which was computed before the
 * run (without those of the position).  Long operations report their FLOPs while they run, others
 * when they end.  A mechanism that knows its share better reports it (run_report).
 *
 * The run's threads write and another one reads; the numbers only ever grow.
 */

typedef struct RunProgress {
    _Atomic(const char *) stage; /* static, or as long as the script; "" between stages */
    atomic_llong planned; /* FLOPs; 0: not known beforehand */
    atomic_llong done;
    atomic_llong ahead;   /* of these, reported by an operation that has not ended */
    _Atomic double reported; /* by the mechanism, 0..1; < 0: not reported */
} RunProgress;

static inline void progress_begin(RunProgress *p, double planned)
{
    atomic_store(&p->done, 0);
    atomic_store(&p->ahead, 0);
    atomic_store(&p->reported, -1.0);
    atomic_store(&p->planned, planned < 1e18 ? (long long)planned : 0);
}

/* Some work of a running operation is done; any thread. */
static inline void progress_ahead(RunProgress *p, double flops)
{
    atomic_fetch_add_explicit(&p->ahead, (long long)flops, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->done, (long long)flops, memory_order_relaxed);
}

/* Work that has ended, including what was reported ahead; the run's thread. */
static inline void progress_charge(RunProgress *p, double flops)
{
    long long all = (long long)flops, ahead = atomic_load(&p->ahead);
    long long counted = ahead < all ? ahead : all;

    atomic_store(&p->ahead, ahead - counted);
    atomic_fetch_add(&p->done, all - counted);
}

/* From 0 to 1; < 0: not known. */
static inline double progress_share(const RunProgress *p)
{
    double reported = atomic_load(&p->reported);
    double planned = (double)atomic_load(&p->planned), done = (double)atomic_load(&p->done);

    if (reported >= 0)
        return reported;
    return planned > 0 && done <= 1.001 * planned ? (done < planned ? done / planned : 1) : -1;
}

/* What a run leaves for its replays; all of it lives as long as the run. */
typedef struct ReplaySource {
    AttendInput    attend;
    const Pattern *cells;     /* of attend; NULL: there is none */
    const Pattern *part;      /* cells of the one softmax of several whose tiles are shown, */
    const char    *part_name; /* and its name, static; NULL: there is only one */
    Tensor         fq, fk, v; /* features f32 or f64 of queries and keys; data NULL: none */
    DenominatorForm denominator;
    double         eps;
    /* Features that are estimates by random directions, of exp(scale q . k): */
    int64_t        directions; /* 0: they are not */
    int            waves;      /* features of a direction, each kind beside the other */
    bool           negative;   /* weights may be */
    double         scale;
} ReplaySource;

#define RUN_MAX_STAGES 512
#define RUN_MAX_VIEWS 96
#define RUN_MAX_TRACES 1024
#define RUN_MAX_TENSORS 64

/* A named step of the algorithm: the profiler's span and step-through's step. */
typedef struct Stage {
    const char *name;      /* static */
    int64_t     iteration; /* -1: not iterated */
    Flops       flops;     /* counted as it ran */
    Bytes       bytes;
    int64_t     arena_peak; /* largest arena use during the stage, bytes */
    const char *said;      /* what happened here, in numbers; run's arena; NULL: nothing */
    const char *at_name;   /* what `at` counts, static: "features"; NULL: iterations */
    double      at;        /* x position of its traces on that axis */
    bool        about;     /* it is about one query: */
    int64_t     query;
} Stage;

/* Where a learned or random tensor is from. */
typedef enum Origin { ORIGIN_FILE, ORIGIN_DRAWN, ORIGIN_FITTED } Origin;

/* A number that a stage is watched by (an error, a change); never dumped. */
typedef struct Trace {
    const char *name; /* static: "row error" */
    int         step; /* index of the stage */
    double      value;
} Trace;

/* Called at the begin of every stage, and at the end (stage NULL).  The profiler puts its clock
 * here; attn itself knows no clocks. */
typedef void (*RunObserver)(void *context, const Run *run, const Stage *stage);

/* What to run.  All pointers are borrowed and must outlive the Run. */
typedef struct RunSpec {
    const Mechanism   *mechanism;
    Tensor             q, k, v;  /* [h,n,d], [h_kv,m,d], [h_kv,m,e] f32 contiguous */
    Tensor             x;        /* [n,dm] f32 or data NULL */
    Tensor             attn;     /* [h,n,m] f32 finished weights or data NULL */
    Tensor             segments; /* [n] int64 of the input: $segments; or data NULL */
    int64_t            width;    /* image width of the sequence, 0: not an image */
    bool               causal;
    double             scale;    /* of the model the input comes from; 0: 1/sqrt(d) */
    int64_t            window;   /* of that model's exact attention: |i - j| < window; 0: none */
    const Position    *position; /* NULL: none */
    const Assignments *given;    /* NULL: all defaults */
    uint64_t           seed;
    bool               fit;      /* by the mechanism's own fit on this input (Mechanism.fit) */
    const Ops         *ops;      /* NULL: the CPU's */
    Threads           *threads;  /* NULL: this thread only */
    bool               views;    /* false for timed runs: no view is made */
    /* Only which pairs are allowed is looked at: attention over a pattern is left out (zeros), so
     * neither output nor weights mean anything. */
    bool               pairs_only;
    /* Only views are looked at: figures that take work of their own, as masses do, are left out. */
    bool               views_only;
    int64_t            memory_limit; /* bytes of the run's arena; 0: none */
    const atomic_bool *cancel;   /* NULL: cannot be cancelled */
    RunObserver        observer; /* NULL: none */
    /* Called when the drawing of parameters begins and ends: a model has its parameters before it
     * runs, so drawing them is not part of the mechanism's time.  NULL: none. */
    void             (*preparing)(void *context, bool begins);
    void              *observer_context; /* of both */
    RunProgress       *progress; /* share that is done; NULL: not wanted */
    int64_t            fail_at;  /* tests: the k-th allocation fails, counted from 1; 0: off */
} RunSpec;

struct Run {
    const Mechanism *mechanism;
    RunSpec          spec;
    Tensor           q, k, v, x, attn; /* as in spec */
    int64_t          h, n, m, d, e, dm;
    bool             causal;
    bool             again;       /* rerun in double precision; charges no FLOPs */
    bool             keys_ahead;  /* the mechanism's causal order lets it see later keys */
    int64_t          width;       /* columns of the image it reads the sequence as; 0: none */
    int64_t          q_offset;    /* position of query 0 among the keys */
    int64_t          unknown_queries; /* whose scores hold NaN */
    int64_t          at_end;      /* queries of a run that is AT_END_CELLS; 0: it is not */
    int64_t          cache_bytes; /* of one number in a decoder's cache */
    LastRow          last;        /* its cells, once run_last_row was called */
    int64_t          whole_m;     /* in a closed form at another length: m of the run; else 0 */
    uint64_t         seed;
    const Ops       *ops;
    Threads         *threads;
    Arena           *arena;
    bool             owns_arena;
    bool             nested;
    const void      *params;      /* the mechanism's bound struct */
    double           softcap;     /* its parameter of that name, 0: no cap or no such parameter */
    const void      *position_params;
    const Pattern   *position_cells;      /* whose scores count, while a position is applied; NULL:
                                             all */
    double           position_flops;      /* charged by the position itself, by its formula */
    double           position_cell_flops; /* and per allowed cell */
    Flops            inner_flops; /* closed forms of the runs inside this one, summed */
    bool             inner_bound; /* one of them is an upper bound */
    Error            err;
    Tensor           out;         /* [h,n,e], set by the mechanism */
    bool             of_x;        /* it read the layer input x, not q, k and v */
    Stage            stages[RUN_MAX_STAGES];
    int              stage_count;
    View             views[RUN_MAX_VIEWS];
    int              view_count;
    int              view_step;   /* stage that new views belong to; -1: the current one */
    Trace            traces[RUN_MAX_TRACES];
    int              trace_count;
    int64_t          rank;        /* upper bound of the rank of the weights; 0: unknown */
    const char      *rank_name;
    struct { char name[32]; Origin origin; } tensors[RUN_MAX_TENSORS]; /* parameters used */
    int              tensor_count;
    Text             warnings;    /* one per line, for the user */
    Text             notes;       /* the same: how a parameter was read */
    struct { const char *name; double value; bool integer; } figures[32];
    int              figure_count;
    struct { const int64_t *counts; int64_t heads, each; } by_head[8]; /* run_count_by_head */
    int              by_head_count;
    struct { const char *name; int64_t value; } sizes[4]; /* see run_size */
    int              size_count;
    bool             excludes_self; /* a query sees its own key only if it sees no other */
    int              preparing;   /* depth of run_prepare */
    ReplaySource     replay;      /* what replay_new repeats */
    const void      *prepared;    /* the back end's own, by Ops.prepare */
    unsigned         computed;    /* bits by Arithmetic (attn/cuda/device.h): how products were */
    bool             blas;        /* OpenBLAS was needed */
};

/* ---- for those who start runs ------------------------------------------------ */

/* A run of spec, checked and with its parameters bound, not yet executed: run_closed_form may be
 * asked.  NULL only when there is no memory for the Run itself. */
Run *run_new(const RunSpec *spec);
/* As run_new, but uses (and resets) an arena the caller keeps, so that repeated
 * timed runs do not pay for fresh pages.  The arena outlives the run. */
Run *run_new_in(const RunSpec *spec, Arena *arena);
/* A run inside another's: in its arena, under its limits and failures.  The caller takes the
 * mark before and releases it after run_free. */
Run *run_nested(const Run *outer, const RunSpec *spec);
/* Executes it, once.  Never fails as a call: look at run->err.  NULL: nothing is done.  Other
 * threads read a caller's own arena only after arena_attach(arena, false), which a run that has
 * its own arena does itself. */
void run_execute(Run *run);
/* A run of no mechanism, for operations on tensors alone: by the CPU on the caller's thread, with
 * an arena of its own.  It charges nothing.  NULL: no memory. */
Run *run_bare(void);
void run_free(Run *run);

Flops run_flops(const Run *run);   /* counted, all stages */
Bytes run_bytes(const Run *run);
/* The mechanism's closed form for this run; *bound: an upper bound only.
 * False when it has none. */
bool  run_closed_form(Run *run, Flops *flops, bool *bound);
/* The last one of that name, or the third: "permutation#3".  NULL: not there.  "bias" is
 * another name of position_bias. */
const View *run_view(const Run *run, const char *name);

/* ---- for mechanisms and positions ------------------------------------------- */

bool run_failed(const Run *r); /* also true once cancelled */
void run_fail(Run *r, ErrorCode code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void run_warn(Run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "SUM of ALL rows" in a warning counts rows of all heads; `counts` (run_head_counts) are those
 * of each head, of `each` rows.  So the caption of one head says its own.  Returns the sum. */
int64_t *run_head_counts(Run *r, int64_t heads); /* zeros; NULL: no memory */
int64_t run_count_by_head(Run *r, const int64_t *counts, int64_t heads, int64_t each);
/* Why rows of a causal run know of later tokens: "the lines are chosen by the last queries". */
void run_looks_ahead(Run *r, const char *why);
/* What is in order, but may not be what the user thinks; once, however often it is noted. */
void run_note(Run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void run_stage(Run *r, const char *name);                    /* name static */
void run_iteration(Run *r, const char *name, int64_t iteration);

bool run_wants_views(const Run *r);

/* Some FLOPs of a running operation are done; any thread. */
void run_ahead(const Run *r, double flops);
/* The share of all work that is done, 0..1, by a mechanism that knows it. */
void run_report(const Run *r, double share);

/* Memory of the run; data NULL (and the run failed) when there is none. */
void  *run_alloc(Run *r, int64_t count, int64_t size);
Tensor run_tensor(Run *r, DType dtype, int rank, const int64_t *shape);
Tensor run_tensor1(Run *r, DType dtype, int64_t a);
Tensor run_tensor2(Run *r, DType dtype, int64_t a, int64_t b);
Tensor run_tensor3(Run *r, DType dtype, int64_t a, int64_t b, int64_t c);
Tensor run_tensor4(Run *r, DType dtype, int64_t a, int64_t b, int64_t c, int64_t d);
/* Fails the run, with what was asked for last and the limit. */
void run_out_of_memory(Run *r);

/* A tensor parameter: the given one, checked against `shape` (rank axes, the
 * first being heads; a given tensor without the head axis or with extent 1
 * there is shared), converted to dtype; or one drawn by `init` with the stream
 * named `name`.  A drawn tensor is also shown as a view called `name`. */
typedef enum InitKind { INIT_ZERO, INIT_NORMAL, INIT_UNIFORM, INIT_GLOROT, INIT_GUMBEL } InitKind;
typedef struct Init {
    InitKind kind;
    double   a; /* NORMAL: deviation; UNIFORM: +-a; GLOROT: in + out; GUMBEL, -ln(-ln U): - */
} Init;
Tensor run_param(Run *r, const char *name, Tensor given, DType dtype, int rank,
                 const int64_t *shape, Init init);
/* Only the check and the conversion; data NULL when not given. */
Tensor run_param_given(Run *r, const char *name, Tensor given, DType dtype, int rank,
                       const int64_t *shape);
/* As run_param in f32 for a tensor made for a longer maximum length: the axes in
 * `longer` (bit a: axis a) may be longer than `shape` and are cut, so the result
 * may have strides.  init NULL: data NULL when not given. */
Tensor run_param_cut(Run *r, const char *name, Tensor given, int rank, const int64_t *shape,
                     unsigned longer, const Init *init);
/* Queries [h,n,d] where one head's were given for all: positions differ by head. */
Tensor run_for_each_head(Run *r, Tensor t);
Rng run_rng(Run *r, const char *name);
/* Records the origin of a tensor parameter; run_param, run_param_given and view_drawn call it. The
 * last call for a name counts. */
void run_origin(Run *r, const char *name, Origin origin);
/* Whether tensors that the mechanism can fit on its input are to be fitted. */
bool run_fits(const Run *r);
/* How many stages of this name ran, so how many iterations. */
int64_t run_iterations(const Run *r, const char *name);
/* "file", "random seed 7", "fitted"; returns text. */
char *run_origin_text(const Run *r, Origin origin, char *text, size_t size);
/* The parameter's value for each head, [h], in the run's arena; those of a tensor must
 * lie in the parameter's range.  NULL when the run failed. */
const double *run_per_head(Run *r, const char *name, const PerHead *given);
/* Whether the user gave this parameter, be it its default's value. */
bool run_is_given(const Run *r, const char *name);
/* Around what draws parameters or fixed tables by hand; run_draw does it itself. */
void run_prepare(Run *r, bool begins);
/* Fills the contiguous f32 tensor with the next numbers of the stream. */
void run_draw(Run *r, Rng *rng, Init init, Tensor t);

/* A mechanism that reads x and makes its own heads sets their number and sizes before it uses
 * them: ops, views and records follow. */
void run_heads(Run *r, int64_t heads, int64_t d, int64_t e);

/* Called by a mechanism that reads x instead of q, k and v: n and m become the rows of x, in one
 * head of its width. */
void run_read_x(Run *r);

/* The scale parameter; when 0 the input's own scale, else 1/sqrt(d). */
double run_scale(const Run *r, double scale);

/* Columns of the sequence read as an image: the parameter; when 0 the input's own width,
 * else sqrt(n), rounded. */
int64_t run_image_width(Run *r, int64_t width);

/* Every pair of a query and a key that the causal mask allows, of one component.  NULL: the run has
 * failed. */
Pattern *run_allowed_cells(Run *r);

/* Applies the run's position to q and k: what op_attend takes. */
AttendInput run_attend_input(Run *r, double scale);
/* The same where only the scores of these cells count: a position computes the distances that they
 * need, and no more. */
AttendInput run_attend_input_within(Run *r, double scale, const Pattern *cells);
/* The same where the content chooses the cells: the scores of all keys that the mask allows. */
AttendInput run_attend_input_allowed(Run *r, double scale);
/* The same for tensors beside the run's own (projections of some tokens); cells NULL: all scores
 * count.  What the position draws comes from the same streams, so it is the same, and is shown
 * once. */
AttendInput run_attend_input_of(Run *r, Tensor q, Tensor k, Tensor v, double scale,
                                const Pattern *cells);

/* One masked softmax over cells: r->out, the views of VIEWS_OF_PATTERN, and the replay.
 * components: what their bits mean (view_meanings); NULL: as usual. */
void run_attend_cells(Run *r, const AttendInput *in, const Pattern *cells,
                      const char *const *components);
/* The same of a softmax over these cells that is computed already. */
void run_attended_cells(Run *r, const AttendInput *in, const Pattern *cells,
                        const char *const *components, AttendResult result);
/* A mechanism that is only a set of cells: one masked softmax over them, r->out and
 * the views of VIEWS_OF_PATTERN.  What it attended to. */
AttendInput run_pattern_attention(Run *r, double scale, Pattern *cells);
/* For cells that a user said: warns of queries that see no key, in a run that is looked at. */
void run_warn_of_empty_rows(Run *r, const Pattern *cells);
/* The rows of the queries of a pattern over all positions: those themselves, unless the queries
 * are fewer and stand at the end (AT_END_CELLS), whose number r->n is from here on.  NULL: none. */
Pattern *run_last_rows(Run *r, Pattern *cells);
/* For a closed form: how many of these cells, made for r->m positions, are in the first r->n rows;
 * summed over heads. */
double run_count_cells(const Run *r, const Pattern *cells);
/* Its closed form; cells summed over heads. */
Flops run_pattern_flops(const Run *r, double cells);

/* ---- views ------------------------------------------------------------------ */

View *view_add(Run *r, const char *name, ViewKind kind, DType dtype, int rank,
               const int64_t *shape); /* NULL: not wanted or failed */
void view_tensor(Run *r, const char *name, ViewKind kind, Tensor t, const char *rows,
                 const char *cols);
/* Positions, i32 of two axes or more; -1 says that there is none, and pictures leave it blank. */
void view_order(Run *r, const char *name, Tensor t, const char *rows, const char *cols);
void view_drawn(Run *r, const char *name, Tensor t); /* a drawn parameter */
void view_fitted(Run *r, const char *name, Tensor t); /* one fitted on the input */
/* connectivity and components (the latter only when with_components): [n,m] where all heads have
 * the same, else [h,n,m] */
void view_pattern(Run *r, const Pattern *pattern, bool with_components);
/* the cells of one part, under a name of their own */
View *view_cells(Run *r, const char *name, const Pattern *pattern);
/* what COMPONENT_WINDOW (NULL: a window) and COMPONENT_OTHER mean in all views made so
 * far over these cells; both static */
void view_meaning(Run *r, const Pattern *pattern, const char *window, const char *other);
/* weights (and position_bias when a position is set and in->raw_q is given) of a pattern
 * attention */
void view_attention(Run *r, const Pattern *pattern, const AttendInput *in, Tensor lse);
/* The same where several softmaxes made the rows: row i of the view is row i - first
 * of parts[part[i]]. */
typedef struct AttentionPart {
    AttendInput in;
    Tensor      lse;   /* [h, rows of in.q] */
    int64_t     first;
} AttentionPart;
void view_attention_parts(Run *r, const Pattern *pattern, const AttentionPart *parts, int count,
                          const uint8_t *part);
/* position_bias alone, of a position; where weights are no softmax */
void view_position_bias(Run *r, const Pattern *pattern, const AttendInput *in);
/* the same for every bit: View.components */
void view_meanings(Run *r, const Pattern *pattern, const char *const *components);
/* weights by a mechanism's own reader over its support */
View *view_reader(Run *r, const char *name, ViewKind kind, DType dtype, ViewReadRun read,
                  const void *context, const Pattern *support);
/* Views made from here on belong to an earlier stage (what it did is only known now);
 * name NULL: to the current one again. */
void view_stage(Run *r, const char *name, int64_t iteration);
/* A number of the current stage for the trace view; costs nothing when no views are wanted.
 * Numbers beyond RUN_MAX_TRACES are dropped. */
void run_trace(Run *r, const char *name, double value);
/* A sentence on the current stage, with its numbers; run_mark: the x position of its traces. */
void run_say(Run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void run_mark(Run *r, const char *name, double at);
/* The stage is about this query. */
void run_about(Run *r, int64_t query);
/* A line to hold the curve `view` against: vertical at an x, or level at a y; name static. */
void view_guide(Run *r, const char *view, bool vertical, double at, const char *name);
/* Finds the views that curves name; when the run is done. */
void view_join_curves(Run *r);
/* The weights have at most this rank by construction; name: of what sets it, static. */
void run_rank(Run *r, int64_t rank, const char *name);
/* The mechanism's steps let themselves be replayed; nothing is computed.  NULL fields of the
 * source stay what they were. */
void replay_offer_attend(Run *r, const AttendInput *in, const Pattern *cells);
/* Of attention over `cells` that is a sum of several softmaxes: tiles are of this one alone. */
void replay_offer_part(Run *r, const Pattern *part, const char *name);
void replay_offer_state(Run *r, const LinearAttend *in);
void replay_offer_features(Run *r, int64_t directions, int waves, bool negative, double scale);
/* A scalar for figures.json; name static. */
void run_figure(Run *r, const char *name, double value);
void run_figure_int(Run *r, const char *name, int64_t value);
/* The value of a parameter that its default left to the mechanism, or that a given tensor's shape
 * decided: captions say it.  param: its name, static. */
void run_size(Run *r, const char *param, int64_t value);
/* A causal run as steps of a decoder: `held` are the keys in the cache at each query, runs of
 * neighbours; cells with one of the bits `slots` are held together with others in a slot.  Views
 * cache, evicted and evicted_mass (VIEWS_OF_CACHE).  Exact attention is that over the scores of
 * `in`. */
void run_cache(Run *r, const AttendInput *in, const Pattern *held, uint8_t slots);
/* The figure relative_error: |r->out - exact| / |exact| of Frobenius norms, exact attention being
 * that over the scores of `in`.  It counts nothing. */
void run_relative_error(Run *r, const AttendInput *in);
/* What cells that were chosen among all keys hold of exact attention; when r->out is set.  Views
 * kept_mass and best_mass [h,n], figures mean_keys, mass, best_mass and relative_error.  Exact
 * attention is that over the scores of `in`, with the run's causal order. */
void run_masses(Run *r, const AttendInput *in, const Pattern *cells);

#endif
