/* input/input.h -- what a mechanism is run on.
 *
 * One Input is one layer of one sequence: q [h,n,d], k [h_kv,m,d], v
 * [h_kv,m,e], optionally the layer's own input x [n,dm], or only finished
 * attention weights attn [h,n,m] (to look at, not to run).  float32,
 * contiguous, row-major, whatever the file held.  h % h_kv == 0
 * (grouped-query heads; h_kv heads are shared by groups, see tensor_head).
 *
 * All bytes belong to the Input; one input_free ends them.  An Input is
 * immutable after loading and may be read by several threads.
 */
#ifndef INPUT_INPUT_H
#define INPUT_INPUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"
#include "core/tensor.h"
#include "core/text.h"

typedef struct Input {
    Arena *arena;       /* owns everything below */
    Tensor q, k, v;     /* [h,n,d], [h_kv,m,d], [h_kv,m,e]; data NULL: not in the file */
    Tensor x;           /* [n,dm]; data NULL: not in the file; generated: v, heads side by side */
    Tensor attn;        /* [h,n,m] finished weights; data NULL: not in the file */
    Tensor segments;    /* int64 [n]: document or segment of each position; data NULL: none */
    /* Of a missing tensor, what the others say: with v alone, d is its e. */
    int64_t heads, n, m, d, e;
    int64_t layer, layers; /* which one this is, how many the file holds (>= 1) */
    const int64_t *held;   /* their numbers, ascending; NULL: 0 and on */
    char **q_tokens;    /* [n] UTF-8 labels or NULL */
    char **k_tokens;    /* [m] UTF-8 labels or NULL; same pointer as q_tokens when shared */
    int    causal;      /* 1, 0, or -1: the file does not say */
    double scale;       /* 0: the file does not say */
    int64_t window;     /* of its model's own attention: |i - j| < window; 0: none */
    int64_t width;      /* image width in pixels when the sequence is a raster, else 0 */
    Tensor pixels;      /* f32 [n] brightness 0..1 of the image's pixels; data NULL: no image */
    char  *name;        /* "samples/induction.safetensors", "synthetic:..." */
    char  *kind;        /* "npz", "safetensors", "text", "image", "synthetic" */
    char  *model;       /* metadata, or NULL */
    char  *note;        /* how q, k, v were made if the file has none, or NULL */
    char  *warning;     /* what is in the file and does not hold; NULL: nothing */
    char   sha256[65];  /* of the file's bytes, or of the generator's name; hex */
} Input;

#define INPUT_MAX_BYTES_DEFAULT (8ll << 30)

/* What to load of a source. 0 / -1: as the source has it. */
typedef struct InputChoice {
    int64_t  layer;     /* -1: the first of the file */
    int64_t  n;         /* first n of a file's sequence; length for a generator */
    int64_t  d;         /* head size for generated q, k, v; default 64 (text, image: 32) */
    int64_t  heads;     /* heads for generated q, k, v; default 1 */
    uint64_t seed;      /* for generated q, k, v */
    int64_t  max_bytes; /* limit of all allocations; 0: 8 GiB */
    bool     shapes;    /* of a file of arrays only sizes, labels and metadata: q, k, v, x and attn
                         * have no values and may not be read */
    const atomic_bool *cancel; /* cancels the load with ERR_CANCELLED; NULL: never */
} InputChoice;

#define INPUT_CHOICE_DEFAULT ((InputChoice){ .layer = -1 })

/* spec: a path (format by content, then by extension); for a file of arrays also with their names,
 * "layer.npz[q=query,k=key,v=value]"; "synthetic:NAME(args)"; or "-" for no data. NULL with *err
 * set on failure. */
Input *input_load(const char *spec, const InputChoice *choice, Error *err);
void   input_free(Input *input);

/* The number of the file's i-th layer, and the index of this one. */
int64_t input_layer_number(const Input *in, int64_t i);
int64_t input_layer_index(const Input *in);

/* Heads of k and v; of an input of x or weights alone, all heads. */
int64_t input_kv_heads(const Input *in);

/* Its name in captions: of a file and of a sample without the folder. */
const char *input_short_name(const Input *in);

/* Copies tensors in memory: q, k, v ((n,d) or (h,n,d)), or x ((n,dm)), or all, or v with or
 * without q and x; the others NULL. tokens: one per key (or position of x), or NULL. */
Input *input_from_tensors(const Tensor *q, const Tensor *k, const Tensor *v, const Tensor *x,
                          const char *const *tokens, Error *err);

/* A copy of the first n queries and keys, equal to loading with such a choice, but read from
 * memory. input_can_be_cut: false for pictures and finished weights, where a beginning means
 * something else. */
bool   input_can_be_cut(const Input *in);
Input *input_cut(const Input *in, int64_t n, Error *err);

/* Copies segments, one whole number per position, [n], before the input is used. */
bool input_set_segments(Input *in, const Tensor *segments, Error *err);

/* The tensors of a file without their values, for `info FILE`. */
typedef struct InputEntry {
    char    name[256];
    char    dtype[16];  /* as the file spells it: "<f4", "BF16" */
    int     rank;
    int64_t shape[8];
    int64_t bytes;
} InputEntry;
typedef struct InputListing {
    char        kind[16]; /* "npz", ... */
    InputEntry *entries;  /* owned */
    int64_t     count;
    char      **keys, **values; /* metadata, owned */
    int64_t     metadata_count;
} InputListing;
bool input_list(const char *path, InputListing *out, Error *err);
void input_listing_free(InputListing *listing);

/* One .npy file, for tensor parameters (-p name=@file.npy), as one of our dtypes (f2 becomes f32,
 * other integers i32 or i64, bool u8). */
bool input_read_npy(const char *path, Arena *arena, Tensor *out, Error *err);
/* The named array of a file; NULL: its only one. */
bool input_read_array(const char *path, const char *name, Arena *arena, Tensor *out, Error *err);

/* Writers. npy: version 1.0, little-endian, C order; written to a temporary name, then renamed. */
bool input_write_npy(const char *path, const Tensor *t, Error *err);
typedef struct NamedTensor {
    const char *name;
    Tensor      tensor;
} NamedTensor;
bool input_write_npz(const char *path, const NamedTensor *items, int64_t count, Error *err);
bool input_write_safetensors(const char *path, const NamedTensor *items, int64_t count,
                             const char *const *metadata, /* key, value, ..., NULL */
                             Error *err);

/* The generators, for help, completion and tests. */
typedef struct InputGenerator {
    const char *name;      /* "induction" */
    const char *arguments; /* "n=64, d=64, heads=1, seed=0, period=8" */
    const char *help;      /* its structure, one line */
} InputGenerator;
/* A generator's spec that gives a seed of its own, with this one in its place; false: it has
 * none. */
bool input_reseeded(const char *spec, uint64_t seed, Text *out);
const InputGenerator *input_generators(void); /* ends with a NULL name */

#endif
