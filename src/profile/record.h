/* profile/record.h -- one measured run, every number with its own "valid".
 *
 * "Not measured" is a Number without the valid bit, never 0; JSON writes null.
 * Units: milliseconds, bytes, floating point operations.
 *
 * Three memories, reported apart and not to be added up:
 *   arena_peak  largest sum of live allocations of the run's arena: the
 *               mechanism's own working memory, output included;
 *   heap_peak   process heap (malloc family) above its level at the start of
 *               the run, in pages of 4 KiB: workspaces of libraries and of the
 *               run's bookkeeping, without the Run struct; the arena is mapped and
 *               not in it;
 *   rss_peak    resident memory of the whole process during the run; it holds
 *               the inputs and whatever else lives, so it depends on history.
 * The first two are taken in a run with an arena of its own after the first
 * call, so measuring A, B or B, A gives the same.  The heap is the process's:
 * what other threads allocate at that time counts too.
 */
#ifndef PROFILE_RECORD_H
#define PROFILE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/run.h"
#include "core/error.h"
#include "core/text.h"
#include "profile/device_profile.h"
#include "profile/memory.h"
#include "profile/step.h"

typedef enum RecordStatus {
    RECORD_OK,
    RECORD_OOM,
    RECORD_UNSUPPORTED,
    RECORD_CANCELLED,
    RECORD_FAILED,
} RecordStatus;

/* Summary of repeated measurements, milliseconds. */
typedef struct Timing {
    Number  median, q1, q3, min;
    Number  low, high;  /* 95 % confidence interval of the median; six samples at least */
    Number  first;      /* the first call, cold; also the only sample when it is the only run */
    double *samples;    /* owned by the record; in order of measurement */
    int     count;
    int     outliers;   /* samples beyond q3 + 3 (q3 - q1) */
    Number  drift;      /* last third against the first, medians: 0.1 is ten percent slower */
    Number  switches;   /* involuntary context switches while timed, all samples */
} Timing;

typedef struct StageRecord {
    char   name[48];
    int64_t iteration;  /* -1: none */
    bool   kept;        /* Mechanism.kept_stage */
    Number time_ms;     /* median over repeats */
    Flops  flops;
    Bytes  bytes;
    Number heap_peak;   /* bytes above the stage's start */
    Number allocations; /* of the malloc family */
    Number arena_peak;  /* bytes since the run began */
} StageRecord;

/* By the processor's counters: measure.h; of a run on a GPU by the GPU's, flops alone. */
typedef struct HardwareCounts {
    Number flops, cycles, instructions, cache_misses;
} HardwareCounts;

#define WORST_QUERIES 8

typedef struct WorstQuery {
    int64_t query, head;
    double  value; /* mass kept; else the row's relative output error; else its variation */
} WorstQuery;

typedef struct Quality {
    /* Softmax mass of full attention on the kept set, over rows: see quality_measure. */
    Number mass_mean, mass_p5, mass_min;
    Number output_error;    /* |o - o*| / |o*| (Frobenius), against full attention */
    Number total_variation; /* mean over rows of half the L1 distance of the weight rows */
    Number kl;              /* mean over rows of KL(weights || full attention's), nats */
    const char *kl_lacks;   /* why there is none, static; NULL: there is, or nothing was compared */
    int64_t worst_query;    /* smallest kept mass, else largest error; -1: unknown */
    int64_t worst_head;
    WorstQuery worst[WORST_QUERIES]; /* the worst one first */
    int     worst_count;
    int64_t rows;           /* of each head that stand for all, drawn; 0: all were compared */
    int64_t unknown_rows;   /* left out: exact attention's weights are NaN there */
    /* Half of the 95 % intervals of the means of a sample; else not valid. */
    Number mass_margin, output_error_margin, variation_margin, kl_margin;
} Quality;

/* Quality over several seeds of a mechanism that draws: mean and band. */
typedef struct SeedBand {
    Number mean, min, max;
} SeedBand;

#define SEED_DRAWS_MOST 128

typedef struct SeedSpread {
    int      count;        /* runs, the record's own included; 0: one seed only */
    SeedBand mass;         /* of Quality.mass_mean */
    SeedBand output_error;
    const char *lacks;     /* why neither is known, static; NULL: they are, or no matter */
    int      kept;         /* draws below: the first ones */
    double   mass_draws[SEED_DRAWS_MOST], output_error_draws[SEED_DRAWS_MOST]; /* NaN: unknown */
} SeedSpread;

typedef struct Record {
    char        mechanism[48];
    char        script[64], script_sha256[65]; /* of the user that defines it; "": built in */
    char       *params;    /* JSON object of every bound parameter; owned */
    int64_t     n, m, d, e, heads;
    int64_t     kv_heads; /* of k and v; fewer than heads where query heads share them */
    bool        causal;
    char        position[24];
    uint64_t    seed;
    char        device[16]; /* "cpu" */
    char        precision[8]; /* of matrix products, as asked: "f32", "tf32", "bf16", "f16" */
    char        computed[32]; /* and as they were computed: "f32", "bf16, cuDNN" */
    int         threads;
    Number      free_processors; /* while it was timed on the CPU, less what other processes used */
    char        input[128]; /* the input's name, shortened */
    RecordStatus status;
    ErrorCode   code;         /* of the run's error; ERR_NONE when OK */
    char        message[512]; /* why not OK; else "" */
    Flops       counted;      /* valid when status is OK */
    Flops       closed_form;
    bool        has_closed_form, closed_form_is_bound;
    HardwareCounts hardware;    /* of one run of its own */
    char        hardware_note[256]; /* why there are none, or "" */
    Bytes       bytes;
    Timing      time;         /* wall */
    Number      cpu_ms;       /* process cpu time per run, median */
    Number      prepare_ms;   /* drawing parameters once, which `time` does not hold; not valid:
                                 nothing was drawn */
    Number      arena_peak, heap_peak, device_peak, rss_peak; /* bytes */
    Number      allocations;     /* calls of the malloc family during the run */
    Number      arena_allocations;
    DeviceProfile *gpu;          /* of a run on a GPU; owned; NULL: none */
    MemoryTimeline *timeline;    /* of the run that gave the peaks; owned; NULL: none */
    char        heap_note[96];   /* why heap_peak is not valid, or "" */
    Quality     quality;
    Quality    *by_head;      /* [head_count], of each head alone; owned; NULL: not asked for */
    int         head_count;
    int         quality_of;   /* `quality` is of this head alone, counted from 1; 0: of all */
    SeedSpread  seeds;
    StepRecord  step;         /* of one token more; asked false: not asked for */
    int64_t     when;         /* the end of its measurement, seconds since 1970; 0: none was made */
    int64_t     ended;        /* the end of the run, or its refusal; 0: not known */
    char       *tensors;      /* JSON object: tensor parameter -> where it is from; owned */
    char       *figures;      /* JSON object: the mechanism's own scalars, of figures.json; owned */
    StageRecord *stages;      /* owned */
    int         stage_count;
    char       *warnings;     /* owned, lines; NULL: none */
    char       *notes;        /* the same */
} Record;

void record_free(Record *record); /* also fine on a zeroed one */
/* It was timed with more threads than processors were free. */
bool record_is_oversubscribed(const Record *record);
/* `quality` becomes that of one head, from 0; by_head is gone. */
void record_take_head(Record *record, int head);

const char *record_status_name(RecordStatus status); /* "OK", "OOM", ... */
RecordStatus record_status_of(ErrorCode code);
/* Read and written; not valid: no op counted any. */
Number record_traffic(Bytes bytes);
/* The user's script that defines m, or what m runs inside itself with these assignments (NULL:
 * none); nothing for a mechanism of the program, or NULL. */
void record_take_script(Record *record, const Mechanism *m, const Assignments *given);
/* Adds a line to the warnings; silent when there is no memory for it. */
void record_warn(Record *record, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Version of the record's keys, as docs/records.md describes them. */
#define RECORD_VERSION 1
/* The record as one JSON object; the keys are stable.  The other writes its keys alone, into an
 * object of the caller's. */
void record_json(const Record *record, Json *out);
void record_json_keys(const Record *record, Json *out);
/* {"peak_bytes":4096}: what figures.json of a dump holds. */
void record_figures_json(const Run *run, Json *out);
/* Takes the scalars of another run of the same spec: timed runs have no views and give fewer. */
void record_take_figures(Record *record, const Run *run);
/* Number format of a GPU's matrix products: "bf16, cuDNN", "f32 (bf16 asked)". */
void record_computed(const Record *record, Text *out);
/* Readable summary for a terminal, a few lines. */
void record_text(const Record *record, Text *out);
/* What a GPU reported of it: numbers of the run, then counters by stage and kernels as tables of
 * so many columns, `most` kernels at most.  Nothing without a GPU. */
void record_gpu_text(const Record *record, Text *out);
void record_kernels_text(const Record *record, int width, int most, Text *out);
/* The machine: cpu, cores, OpenBLAS core, compiler, kernel, version. */
void environment_json(Json *out);
/* `git describe` of the tree that the program was built from; "": it was no clone. */
const char *environment_commit(void);
/* The name of the CPU (machine_cpu), or the architecture where it has none. */
void environment_cpu(char *text, size_t size);
/* NULL, or a warning when OpenBLAS runs a kernel too old for this CPU. */
const char *environment_blas_warning(void);
/* The warning, or in `text` whose kernels OpenBLAS runs, and whether they fit: that is known of x86
 * alone. */
const char *environment_blas_fit(char *text, size_t size);
/* Starts the program again where OpenBLAS must be loaded otherwise, and returns where that is not
 * needed or not possible.  Call it first in main.  An OpenBLAS that is older than the CPU runs the
 * kernels of an ancient one: unless OPENBLAS_CORETYPE is set, it gets the newest core that it has
 * for this CPU.  Under a limit of address space it gets no threads of its own. */
void environment_start_for_blas(char **argv);

/* What every number means. */

typedef struct Convention {
    const char *number; /* "counted FLOPs" */
    const char *text;   /* plain sentences, one line */
} Convention;

const Convention *convention_at(size_t index); /* NULL past the end */

#endif
