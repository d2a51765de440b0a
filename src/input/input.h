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
    int64_t width;      /* image width in pixels when the sequence is a raster, else 0 */
    Tensor pixels;      /* f32 [n] brightness 0..1 of the image's pixels; data NULL: no image */
    char  *name;        /* "samples/induction.safetensors", "synthetic:..." */
    char  *kind;        /* "npz", "safetensors", "text", "image", "synthetic" */
    char  *model;       /* metadata, or NULL */
    char  *note;        /* how q, k, v came to be when the file did not hold them, or NULL */
    char   sha256[65];  /* of the file's bytes, or of the generator's text; hex */
} Input;

#define INPUT_MAX_BYTES_DEFAULT (8ll << 30)

/* What to take of a source. 0 / -1 mean "as the source has it". */
typedef struct InputChoice {
    int64_t  layer;     /* -1: the first that the file holds */
    int64_t  n;         /* cut a file's sequence to its first n; length for a generator */
    int64_t  d;         /* head size for generated q, k, v; default 64 (text, image: 32) */
    int64_t  heads;     /* heads for generated q, k, v; default 1 */
    uint64_t seed;      /* for generated q, k, v */
    int64_t  max_bytes; /* refuse to allocate more than this; 0: 8 GiB */
    const atomic_bool *cancel; /* ends the load soon with ERR_CANCELLED; NULL: nobody can */
} InputChoice;

#define INPUT_CHOICE_DEFAULT ((InputChoice){ .layer = -1 })

/* spec: a path (format by content, then by extension), of a file of arrays also with the names of
 * those to take, "layer.npz[q=query,k=key,v=value]"; "synthetic:NAME(args)", or "-" for
 * nothing.  NULL with *err set on failure. */
Input *input_load(const char *spec, const InputChoice *choice, Error *err);
void   input_free(Input *input);

/* The number of the i-th layer that its file holds, and which of these it is itself. */
int64_t input_layer_number(const Input *in, int64_t i);
int64_t input_layer_index(const Input *in);

/* Its name as captions say it: of a file and of a sample without where it lies. */
const char *input_short_name(const Input *in);

/* From tensors in memory, which are copied: q, k, v ((n,d) or (h,n,d)), or x
 * ((n,dm)), or all, or v with or without q and x; the others NULL.  tokens: as
 * many as there are keys (or positions of x), or NULL. */
Input *input_from_tensors(const Tensor *q, const Tensor *k, const Tensor *v, const Tensor *x,
                          const char *const *tokens, Error *err);

/* A copy of the first n queries and keys, as loading it with such a choice gives it, but read
 * from memory; where input_can_be_cut says so (of pictures and of finished weights a beginning
 * is something else). */
bool   input_can_be_cut(const Input *in);
Input *input_cut(const Input *in, int64_t n, Error *err);

/* Copies one whole number a position, [n], to in->segments, before the input is used. */
bool input_set_segments(Input *in, const Tensor *segments, Error *err);

/* The tensors of a file without loading them, for `info FILE`. */
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

/* One .npy file, for tensor parameters (-p name=@file.npy).  Any of our dtypes
 * as stored (f2 becomes f32, other integers become i32 or i64, bool u8). */
bool input_read_npy(const char *path, Arena *arena, Tensor *out, Error *err);
/* The array of that name in a file of arrays; NULL: the only one. */
bool input_read_array(const char *path, const char *name, Arena *arena, Tensor *out, Error *err);

/* Writers.  npy: version 1.0, little-endian, C order, via a temporary name. */
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
    const char *help;      /* the structure to be found, one line */
} InputGenerator;
const InputGenerator *input_generators(void); /* ends with a NULL name */

#endif
