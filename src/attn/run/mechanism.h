/* attn/run/mechanism.h -- what an attention mechanism is.
 *
 * A mechanism is one constant Mechanism at the end of its own file in
 * attn/mech/FAMILY/, listed by one line of attn/mechanisms.def.  Menus, the
 * command line, Lua, figures, sweeps, tests and documents are derived from it.
 * If you are about to name a mechanism anywhere else, add a field here.
 *
 * A Mechanism owns nothing and has no mutable state, so one descriptor may run
 * on several threads at once; all memory belongs to the Run.
 */
#ifndef ATTN_RUN_MECHANISM_H
#define ATTN_RUN_MECHANISM_H

#include <stdbool.h>
#include <stddef.h>

#include "attn/ops/ops.h"
#include "attn/run/decode.h"
#include "attn/run/param.h"
#include "attn/run/view.h"

typedef struct Run Run;

/* Class bits of the surveys' table (Tay et al. 2020, Fig. 2 and Table 1). */
enum {
    CLASS_BASELINE = 1 << 0,
    CLASS_FP = 1 << 1, /* fixed patterns */
    CLASS_M = 1 << 2,  /* memory, inducing points */
    CLASS_LP = 1 << 3, /* learnable patterns */
    CLASS_LR = 1 << 4, /* low rank */
    CLASS_KR = 1 << 5, /* kernels */
    CLASS_RC = 1 << 6, /* recurrence */
    CLASS_DS = 1 << 7, /* downsampling */
    CLASS_SP = 1 << 8, /* sparse (conditional) modules */
    CLASS_MX = 1 << 9, /* mixers without attention */
    CLASS_LAB = 1 << 10, /* general methods of the lab */
};

/* A view the mechanism promises to emit when views are wanted. */
typedef struct ViewPromise {
    const char *name;
    ViewKind    kind;
    const char *help;     /* one line */
    bool        maybe;    /* only under some parameters (help says which) */
    ViewCurve   curve;    /* .y given: it is drawn as a curve */
    const char *quantity; /* View.quantity */
    const char *const *categories; /* View.categories */
} ViewPromise;
#define VIEW(name_, kind_, help_, ...)                                                         \
    {                                                                                          \
        .name = name_, .kind = kind_, .help = help_, __VA_ARGS__                               \
    }
#define VIEW_PROMISE_END { .name = NULL }
#define VIEWS_OF_PATTERN                                                                       \
    { .name = "connectivity", .kind = VIEW_PATTERN, .help = "allowed cells" },                 \
    { .name = "components", .kind = VIEW_COMPONENTS, .help = "what allows a cell" },           \
    { .name = "weights", .kind = VIEW_WEIGHTS, .help = "attention weights" },                  \
    { .name = "position_bias", .kind = VIEW_SIGNED, .maybe = true,                             \
      .help = "what the position adds to the scores (with --position)" }

#define MASS_OF_QUERIES(name_, help_)                                                          \
    { .name = name_, .kind = VIEW_TENSOR, .help = help_,                                       \
      .curve = { .x = "query", .y = "share of exact attention", .by_rows = true } }
#define VIEWS_OF_MASSES                                                                        \
    MASS_OF_QUERIES("kept_mass", "share of a row's exact attention that its cells hold"),      \
    MASS_OF_QUERIES("best_mass", "what the best choice of as many keys would hold")

#define VIEWS_OF_CACHE                                                                         \
    { .name = "cache", .kind = VIEW_COMPONENTS, .maybe = true,                                 \
      .help = "keys in the cache at each step, a row (causal)" },                              \
    { .name = "evicted", .kind = VIEW_WEIGHTS, .maybe = true,                                  \
      .help = "exact attention that evicted keys would have had (causal)" },                   \
    { .name = "evicted_mass", .kind = VIEW_TENSOR, .maybe = true,                              \
      .help = "share of a row's exact attention on evicted keys (causal)",                     \
      .curve = { .x = "query", .y = "share of exact attention", .by_rows = true } }

/* What a stage does, for `attnscope step` and the step screen; the table ends with a NULL stage. */
typedef struct StageNote {
    const char *stage; /* as given to run_stage */
    const char *note;  /* one to three plain sentences */
} StageNote;

/* Where a positional modifier acts (attn/run/position.h). */
typedef enum PositionClass {
    POSITIONS_NONE = 0,  /* a mechanism that takes no position */
    POSITION_INPUT = 1,  /* sinusoidal, rope */
    POSITION_BIAS = 2,   /* alibi, t5, xl, disentangled, shaw */
    POSITIONS_ALL = 3,
    POSITION_TURN = 4,   /* of a mechanism: of the input kinds only those that turn (rope) */
} PositionClass;

/* A causal run of fewer queries than keys: the queries stand at the end, query i is position
 * m - n + i. */
typedef enum QueriesAtEnd {
    AT_END_NO,
    AT_END_CELLS, /* cells, checks and sizes are those of m positions (Run.n is m) until
                     run_last_rows takes those of the queries; flops is that of the first Run.n of
                     Run.m positions */
    AT_END_OWN,   /* the mechanism itself looks at Run.q_offset */
} QueriesAtEnd;

/* The script of the user that defines a mechanism. */
typedef struct MechanismScript {
    const char *name;    /* of its file, without folders; "-e", "-": code that no file holds */
    const char *path;    /* absolute; NULL: no file */
    char        sha256[65]; /* of the file's content; "": no file */
    bool        everywhere; /* each process of the program runs it by itself */
} MechanismScript;

typedef struct Mechanism {
    const char *id;        /* "window"; stable: files, command line, Lua use it */
    const char *title;
    const char *authors;   /* "Beltagy, Peters, Cohan" */
    int         year;
    const char *arxiv;     /* "2004.05150"; NULL: none */
    const char *source;    /* paper section or official file followed */
    const char *formula;   /* plain-text, one to four lines */
    const MechanismScript *script; /* NULL: a mechanism of the program */
    const char *problem, *idea, *price; /* a plain sentence each, first on its card */
    const char *lesson;    /* id of the lesson that is about it; NULL: none */
    const char *teaches;   /* what its picture must make visible */
    const char *row_sum;   /* why a row of weights does not sum to 1: "two softmaxes are added";
                              NULL: it does */
    const char *picture;   /* view that is its picture in print; NULL: connectivity, or weights */
    const char *example;   /* parameters that show it, "expr='window(5)'"; NULL: the defaults */
    const char *sketch;    /* parameters that show it on a few tokens, "block=8", where the defaults
                              are made for long inputs; NULL: those will do */
    const char *size;      /* whole parameter that decides how many pairs are kept, or how much is
                              computed; NULL: none does */
    bool        size_falls; /* a larger one keeps fewer */
    bool        size_reads; /* it counts keys, or blocks of keys, that are chosen for a query */
    int         size_usual; /* what 0, its default, stands for; 0: 0 */
    const char *size_instead; /* a parameter that decides in its place; NULL: none */
    unsigned    classes;   /* CLASS_* bits */
    const char *claim_time, *claim_memory; /* as printed: "O(n w)" */
    const char *claim_decode;              /* "yes", "no", with a word why */
    double      claim_exponent; /* of n in claim_time, logs not counted; 0: not stated */

    bool        causal;     /* supports --causal */
    bool        always_causal; /* defined by a causal pass: every run is causal */
    const char *no_causal;  /* the reason when it does not */
    bool        cross;      /* m may differ from n */
    QueriesAtEnd at_end;    /* how it takes few queries of a causal run */
    bool        kind_of_layer; /* what .decode says is held reads sizes and whole parameters alone,
                                  no last row: a kind of layer of cache --layers */
    const char *no_at_end;  /* why not, or why one query alone does not do; NULL: none is known */
    bool        needs_x;    /* reads the layer input x instead of q, k, v */
    bool        or_x;       /* reads x where q, k or v are missing, or its parameters ask for x */
    bool        needs_v;    /* of q, k, v only v must be there (and what check asks for) */
    bool        own_rows;   /* the output's rows are latents or pooled tokens, not the queries;
                               causal: the last positions */
    bool        on_grid;    /* its cells follow a grid of n places: more tokens are another grid */
    bool        needs_none; /* computes from its parameters alone, whatever the input holds */
    bool        own_sizes;  /* check sees to the sizes of q, k and v */
    bool        pairs_heads; /* takes an even number of heads only */
    bool        needs_attn; /* shows finished weights instead of computing */
    bool        free_tensors; /* accepts tensor parameters of any name ($name) */
    unsigned    positions;  /* PositionClass bits accepted */

    const char  *inner;      /* text parameter that names a mechanism run inside, which is given
                                the parameters this one lacks; NULL: none */

    const ViewPromise *views; /* VIEW_PROMISE_END-terminated */
    const char *fit;          /* what it fits on its input, and how, with --fit; NULL: nothing */
    const StageNote *notes;   /* NULL: the stages' names must do */
    const char *kept_stage;   /* whose results a decoder has from the steps before, but for the
                                 new token; NULL: none */
    const Param *params;      /* PARAM_END-terminated; offsets into the struct */
    size_t       params_size;

    /* Rejects what ranges alone cannot, by run_fail().  Optional. */
    void (*check)(Run *r, const void *params);
    /* Sets r->out and emits views.  Need not test for errors: see run.h. */
    void (*run)(Run *r, const void *params);
    /* Closed form of exactly what run's ops count; may allocate in r->arena. */
    Flops (*flops)(Run *r, const void *params);
    /* Closed forms of what a further token costs in a causal run; asked after run.  NULL: not
     * known. */
    DecodeCost (*decode)(const Run *r, const void *params);
    const char *values;  /* the view [h,m,e] that the weights act on; NULL: V itself */
    double values_error; /* weights act on values of V rounded by at most this share of the
                            largest (and what they make of them is rounded so); 0: on V itself */
    bool  flops_bound; /* data decides: flops is an upper bound */
    bool  flops_works; /* flops takes as long as a part of the run: not asked for beforehand */
} Mechanism;

/* The catalogue: the built-in mechanisms, then those added while the program runs (by a
 * script of the user). */
const Mechanism *mechanism_at(size_t index);     /* NULL past the end */
const Mechanism *mechanism_find(const char *id); /* NULL: unknown */
const Mechanism *mechanism_baseline(void);       /* exact attention; NULL: there is none */
size_t           mechanism_count(void);
/* Appends one, or puts it in the place of an added one with its id.  Both stay borrowed until
 * mechanism_forget: runs may still hold the old one.  Any thread may look meanwhile; only one
 * thread adds. */
bool mechanism_add(const Mechanism *m, Error *err);
bool mechanism_is_added(const char *id);
/* Without the added ones; no run of one may be left. */
void mechanism_forget(void);
/* The one that is probably meant; NULL: none is near. */
const Mechanism *mechanism_nearest(const char *id);
/* Unknown: the error names the nearest id and the command that lists all. */
bool mechanism_parse(const char *id, const Mechanism **out, Error *err);
/* The first mechanism that the lesson `topic` is about ("lsh": reformer); NULL: none. */
const Mechanism *mechanism_of_topic(const char *topic);
/* The mechanism that m runs inside itself, given these assignments; NULL: none, or unknown. */
const Mechanism *mechanism_inner(const Mechanism *m, const Assignments *given);
/* Name that the mechanism inside knows parameter `name` of m by: "heads" for
 * "attention.heads", "window" for a "window" that m has none of; NULL: it is m's own. */
const char *mechanism_inner_name(const Mechanism *m, const char *name);
/* Parameters that every mechanism takes, PARAM_END-terminated; offsets into MechanismCommon. */
typedef struct MechanismCommon {
    int64_t cache_bytes; /* of one cached number */
} MechanismCommon;
const Param *mechanism_common(void);
/* The parameter of m called `name`, else of what it runs inside, else a common one; NULL: none. */
const Param *mechanism_param(const Mechanism *m, const Assignments *given, const char *name);
bool assignment_of_position(const char *name); /* "pos_scale": it belongs to the position */
/* False: the mechanism, with what it runs inside, has no parameter of a name; the error has the
 * nearest.  Those of a position are not looked at. */
bool mechanism_check_names(const Mechanism *m, const Assignments *given, Error *err);
/* The parameter that a text without "name=" is, as in pattern(window(5)+global(2)); NULL: the text
 * has one, or the mechanism no text parameter. */
const Param *mechanism_text_param(const Mechanism *m, const char *content);
/* False: the content is a bare number, "window(33)"; the error names the right form. */
bool         mechanism_check_content(const Mechanism *m, const char *content, Error *err);
/* "FP+M" into text; returns text. */
char *mechanism_classes(const Mechanism *m, char *text, size_t size);
const char *class_name(unsigned bit);  /* "FP"; static */
const char *class_title(unsigned bit); /* "Fixed patterns"; static */

/* The systems that the surveys name, and what each survey claims of them.
 *
 * One row per system of systems.def; the claims are the surveys' own, in one notation (n tokens),
 * never ours: what a paper claims is in its Mechanism, what is measured is in a Record.
 *
 *   [a]  Tay, Dehghani, Bahri, Metzler 2020, arXiv 2009.06732v1, Table 1
 *   [b]  the same, version 2, March 2022, Table 1
 *   [c]  Fournier, Caron, Aloise 2021, arXiv 2103.14636, sections 3 and 4, appendix D, Table 4
 */

typedef enum SystemPart {
    SYSTEM_ATTENTION, /* efficient attention */
    SYSTEM_SPARSE,    /* sparse models: the attention is as it was */
    SYSTEM_MIXER,     /* alternatives to attention */
    SYSTEM_GENERAL,   /* methods for any network */
    SYSTEM_POSITION,  /* what a position adds to attention */
    SYSTEM_PARTS,
} SystemPart;

enum { SURVEY_A, SURVEY_B, SURVEY_C, SURVEYS };

typedef struct SystemClaim {
    const char *complexity; /* "O(n log n)"; NULL: this survey does not say */
    const char *decode;     /* "yes", "no"; NULL: it does not say */
    const char *class;      /* as printed, "FP+M"; NULL: it does not say */
} SystemClaim;

typedef struct System {
    SystemPart  part;
    const char *name; /* "Reformer" */
    const char *cite; /* "Kitaev et al. 2020" */
    const char *runs; /* words that `attnscope run` takes, separated by spaces */
    SystemClaim claims[SURVEYS];
} System;

const System *system_at(size_t index); /* NULL past the end */
const char   *system_part_title(SystemPart part);
const char   *survey_title(int survey);
/* Where the survey's text contradicts its own table; NULL: nowhere; static. */
const char   *survey_disagrees(int survey);

#endif
