/* attn/cuda/host/gpu.h -- what the GPU's ops share.
 *
 * A run's arena is memory that host and device both see (Ops.memory), so a mechanism's own
 * loops read and write what the ops made.  Tensors from elsewhere (parameters, inputs of
 * other owners) are copied into it by gpu_tensor().  Each op waits for the device before it
 * returns, unless runs without views are to go ahead (GpuAhead): then it only notes that
 * something is under way, and who reads says so (op_wait).  Memory that is released meanwhile
 * stays as it is (core/arena.h).
 */
#ifndef ATTN_CUDA_HOST_GPU_H
#define ATTN_CUDA_HOST_GPU_H

#include <pthread.h>
#include <stdatomic.h>

#include "attn/cuda/device.h"
#include "attn/cuda/host/library.h"
#include "attn/run.h"

/* How far runs without views go ahead: by WAY_GRAPHS; ATTNSCOPE_GRAPHS=ahead is half of it. */
typedef enum GpuAhead { AHEAD_NOT, AHEAD_WORK, AHEAD_GRAPHS } GpuAhead;
/* A run that is to become a graph (graph.h): nothing is released, and reads are noted; while it
 * is captured nothing may be waited for either. */
typedef enum GraphMode { GRAPH_NONE, GRAPH_REHEARSAL, GRAPH_CAPTURE } GraphMode;

typedef struct DeviceKind {
    Ops        ops;  /* first: an Ops of ours is a DeviceKind */
    Device    *device;
    Arithmetic arithmetic;
} DeviceKind;

/* What else computes attention over tiles than our kernel for all GPUs. */
typedef enum Rival { RIVAL_CUDNN, RIVAL_WARPGROUP, RIVALS } Rival;

struct Device {
    void            *library;
    const DeviceApi *api;
    DeviceInfo       info;
    char             path[4096];
    char            *named;              /* by the variable, when it was opened; owned or NULL */
    int              holders;            /* guarded by the lock of all */
    pthread_mutex_t  use;                /* device_hold; recursive */
    ArenaSource      memory;
    _Atomic int64_t  in_use, peak;       /* bytes that we took */
    _Atomic int64_t  free_at_first;      /* bytes that there were when we held none */
    /* by size (64, 128, 256) and TileShape: 1 trusted, -1 not, 0 untried */
    atomic_int       rivals[RIVALS][ARITHMETIC_F16 + 1][3][3];
    struct {
        atomic_int verdict;              /* of a trial: 1 good, -1 not, 0 there was none */
        char       what[256], text[512]; /* its words; what doctor says */
    } ways[DEVICE_WAYS];
    GpuAhead         ahead;
    _Atomic int64_t  launched, finished; /* counted; work is under way while they differ */
    _Atomic(const char *) begun;         /* the newest; static */
    atomic_int       lost;               /* a code after which the GPU is out of reach; 0: none */
    atomic_int       late;               /* what a wait failed with that no run has reported */
    atomic_int       graph_mode;         /* GraphMode */
    int64_t          graph_first;        /* `launched` when it began */
    const char      *graph_lost;         /* why there can be no graph; static; NULL: nothing yet */
    DeviceKind       kinds[ARITHMETIC_F16 + 1];
};

void gpu_fill_ops(Device *device);

static inline const DeviceKind *gpu_kind(const Run *r)
{
    return (const DeviceKind *)r->ops;
}

static inline const DeviceApi *gpu_api(const Run *r)
{
    return gpu_kind(r)->device->api;
}

/* count * size bytes of the run's arena, or NULL with the run failed.  Taken between
 * arena_mark and arena_release: an op returns only when the device is done with it. */
void *gpu_scratch(Run *r, int64_t count, int64_t size);
/* Likewise, for what the host fills and the device reads: on no page of what it computes with. */
void *gpu_list(Run *r, int64_t count, int64_t size);
/* t as the device sees it: [heads, rows, cols], ranks 1 and 2 with extents of 1 in front.
 * Copied into the arena when it lies elsewhere or its last axis has a stride. */
DeviceTensor gpu_tensor(Run *r, const Tensor *t);
/* [..,n] as one row for each head. */
DeviceTensor gpu_lines(DeviceTensor t);
/* What an op writes: where it lies.  A tensor outside of the arena fails the run. */
DeviceTensor gpu_result(Run *r, const Tensor *t);
/* count floats as the device sees them; NULL stays NULL. */
const float *gpu_floats(Run *r, const float *data, int64_t count);
/* Products of this op were computed so: what records say. */
void gpu_computed(Run *r, Arithmetic arithmetic);
/* gpu.c.  gpu_ready(): start nothing when the run has failed or was cancelled;
 * gpu_done(): the op is over, and waited for unless the run goes ahead.
 *     if (gpu_ready(r)) gpu_done(r, "attend", gpu_api(r)->attend(&call)); */
bool gpu_ready(Run *r);
void gpu_done(Run *r, const char *what, int code);
/* Only says what failed, and does not wait (unless the host may not touch memory meanwhile):
 * between calls that belong together. */
bool gpu_began(Run *r, const char *what, int code);
/* The end of an op that began something; waits also where the run has failed, because what
 * was started may still use its memory. */
void gpu_finish(Run *r, const char *what);
/* Whatever the run is: the host reads, or writes what the device may read (op_wait). */
void gpu_wait(Run *r, const char *reads);
/* The code; one after which nothing of this process reaches the GPU is kept. */
int gpu_note(Device *device, int code);
const char *gpu_broken(void *device); /* ArenaSource.broken */
bool gpu_is_busy(const Device *device);
void gpu_settle(Device *device); /* the next wait of a run reports a failure */
GpuAhead gpu_ahead_of(const Device *device);
/* From here on; what was lost stays to be asked for when it ends (GRAPH_NONE). */
void gpu_graph_begin(Device *device, GraphMode mode);
void gpu_graph_lose(Device *device, const char *why); /* only the first is kept */

/* Moves what the host wrote to the device ahead of a call. */
void gpu_toward(Run *r, const void *data, int64_t bytes);
/* Ops.toward: and waits for it, unless the run goes ahead. */
void gpu_brought(Run *r, const void *data, int64_t bytes);

/* The tiles of a pattern that hold allowed cells, with what in->cell_term adds, in rows of
 * `height` queries, in the run's arena; *cells: how many cells there are, over all heads.
 * Counts as preparation (run_prepare). */
TileList gpu_tiles(Run *r, const AttendInput *in, const Pattern *pattern, int64_t height,
                   double *cells);

/* A pattern's rows as they are, in the run's arena; *cells: how many cells there are, over all
 * heads.  Counts as preparation. */
RowRuns gpu_row_runs(Run *r, const Pattern *pattern, double *cells);

/* The entries of the ops' table, by file. */
void gpu_prepare(Run *r);
void gpu_attend(Run *r, const AttendInput *in, const Pattern *pattern, AttendResult *out,
                double *cells);
void gpu_pattern_means(Run *r, const PatternMeans *in, const Pattern *pattern, Tensor *y,
                       double *cells);
void gpu_entries(Run *r, const Entries *in);
void gpu_turn_pairs(Run *r, const TurnPairs *in, Tensor *y);
void gpu_zero(Run *r, double *data, int64_t count); /* begun only: no op of its own */
void gpu_standardise64(Run *r, const Tensor *x, double eps, const Tensor *gain,
                       const Tensor *bias, Tensor *y);
void gpu_normalise64(Run *r, const Tensor *x, NormaliseKind kind, double eps, Tensor *y);
void gpu_group_attend(Run *r, const GroupAttend *g, GroupResult *out);
void gpu_few_attend(Run *r, const FewAttend *in, FewResult *out);
void gpu_row_attend(Run *r, const RowAttend *in, RowResult *out);
void gpu_key_usage(Run *r, const Tensor *q, const Tensor *k, double scale, bool causal,
                   Tensor *usage);
void gpu_lambda_content(Run *r, const struct Lambdas *l);
void gpu_lambda_apply(Run *r, const struct Lambdas *l, Tensor *out);
void gpu_logit_attend(Run *r, const LogitAttend *in, LogitResult *out);
void gpu_gather(Run *r, const Tensor *x, const Tensor *index, Tensor *y);
void gpu_scatter(Run *r, const Tensor *x, const Tensor *index, Tensor *y);
void gpu_merge_rows(Run *r, const MergeRows *in);
void gpu_sum_lists(Run *r, const SumLists *in, Tensor *y);
void gpu_pool_windows(Run *r, const PoolWindows *in, Tensor *y);

/* select.c */
void gpu_argmax(Run *r, const Tensor *x, bool with_negative, Tensor *index);
void gpu_best_rows(Run *r, const ChoiceRows *x, const Tensor *y, int64_t k, Tensor *index);
void gpu_bit_sums(Run *r, const Tensor *codes, const Tensor *cluster, Tensor *ones);
void gpu_codes(Run *r, const Tensor *x, const Tensor *planes, bool bias, Tensor *code);
void gpu_member_sums(Run *r, const Tensor *x, const Tensor *index, bool unit, Tensor *sum);
void gpu_nearest(Run *r, const Nearest *in, Tensor *index);
void gpu_nearest_codes(Run *r, const Tensor *codes, const Tensor *centres, Tensor *cluster);
void gpu_sort(Run *r, const Tensor *key, Tensor *order);
void gpu_tally(Run *r, const Tensor *index, Tensor *count);
void gpu_top_k(Run *r, const Tensor *x, int64_t k, Tensor *index);

/* lists.c */
void gpu_best_columns(Run *r, const BestColumns *in, BestResult *out);
void gpu_pair_dots(Run *r, const Tensor *x, const Tensor *y, const Tensor *index, Tensor *dots);
void gpu_rounded_attend(Run *r, const RoundedAttend *in);
void gpu_tap_sums(Run *r, const TapSums *in, Tensor *y);

/* dense.c */
void gpu_gemm(Run *r, const Tensor *a, bool ta, const Tensor *b, bool tb, double alpha,
              double beta, Tensor *c);
void gpu_gemm_long(Run *r, const Tensor *a, const Tensor *b, double alpha, Tensor *c);
void gpu_dots64(Run *r, const Tensor *x, const Tensor *w, Tensor *y);
void gpu_product64(Run *r, const Tensor *x, const Tensor *w, const float *bias, Tensor *y);
void gpu_mix_blocks(Run *r, const Tensor *perm, const Tensor *x, int64_t b, Tensor *y);

/* linear.c, linear.c */
void gpu_features(Run *r, const Tensor *x, const Tensor *w, const FeatureMap *map, bool keys,
                  Tensor *y);
void gpu_linear_attend(Run *r, const LinearAttend *in, LinearResult *out);

/* ceilings.c */
bool gpu_ceilings(const Ops *ops, Threads *threads, Ceilings *out, Error *err);

/* dense.c */
void   gpu_softmax(Run *r, const SoftmaxRows *in);
void   gpu_standardise(Run *r, const Tensor *x, double eps, const float *gain, const float *bias,
                       Tensor *y);
void   gpu_normalise(Run *r, const Tensor *x, int kind, double eps, Tensor *y);
double gpu_largest_norm(Run *r, const Tensor *x);
void   gpu_gelu(Run *r, Tensor *x, const float *bias);
void   gpu_pinv(Run *r, const Tensor *a, double rcond, Tensor *y);
void   gpu_sinkhorn(Run *r, Tensor *log_p, const Tensor *allowed, bool columns);

/* What the ops made of products of matrices share. */

/* Starts a product, cut along its inner axis where it has few tiles and this is long: the
 * pieces stand in the arena until the device is done.  False: the run has failed. */
bool gpu_product(Run *r, GemmCall call);

/* [heads, rows, cols] without gaps. */
static inline DeviceTensor gpu_block(void *data, DeviceDType dtype, int64_t heads, int64_t rows,
                                     int64_t cols)
{
    return (DeviceTensor){ .data = data, .dtype = (int32_t)dtype, .heads = heads, .rows = rows,
                           .cols = cols, .head_stride = rows * cols, .row_stride = cols };
}

static inline int64_t gpu_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t gpu_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Pattern attention on tensor cores, the host's side. */

#define MATRIX_INPUTS 3

/* The run's q, k and v as tensor cores read them, made before it begins (Run.prepared). */
typedef struct Prepared {
    Tensor from[MATRIX_INPUTS];
    Packed to[MATRIX_INPUTS];
} Prepared;

/* Whether these scores can be computed there: no term but distances and single cells. */
bool    gpu_matrix_fits(const Run *r, const AttendInput *in);
void    gpu_attend_matrix(Run *r, const AttendInput *in, const Pattern *pattern,
                          AttendResult *out, double *cells);
/* Begins it by cuDNN; false: that is for other kernels. */
bool    gpu_attend_fused(Run *r, const AttendInput *in, const MatrixAttendCall *call);
/* Begins it by our kernel for Hopper's warpgroups, by call's items; false: as above. */
bool    gpu_attend_warpgroup(Run *r, const MatrixAttendCall *call);
/* Starts our own kernel; a code. */
int     gpu_attend_begin(Run *r, const MatrixAttendCall *call);
/* Fills items, joins and parts for call->tiles. */
void    gpu_items(Run *r, MatrixAttendCall *call);

/* Another way to call->out and call->lse (attend.c). */
typedef struct RivalWay {
    Rival       which;
    const char *name;
    double      near; /* apart by that share of the largest output at most */
    int       (*begin)(Run *r, const void *context); /* all of the call; a code */
    const void *context;
} RivalWay;

/* Whether what it gives for calls of this kind may be used; tried once, before the clock. */
bool gpu_rival_trusted(Run *r, const MatrixAttendCall *call, const RivalWay *way);

/* Lists of panels for the device; see calls.h. */

/* Rows of a head that all have the same keys. */
typedef struct PanelSpan {
    int64_t head, group, first, rows, first_key, keys;
} PanelSpan;

/* The panels of the spans, in the run's arena, longest first; `width` columns of results.  Keys
 * are cut so that every multiprocessor has some panels; spans without rows have none. */
PanelWork gpu_panels(Run *r, const PanelSpan *spans, int64_t count, int64_t width);
/* Puts the pieces together where keys were cut; does not wait. */
bool gpu_join(Run *r, const PanelWork *work, const PanelOut *to);

/* Whether there is something to start. */
static inline bool gpu_has_panels(Run *r, const PanelWork *work)
{
    return gpu_ready(r) && work->count > 0;
}

#endif
