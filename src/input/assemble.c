/* assemble.c -- one Input from the named arrays of a file.
 *
 * Names: q, k, v, x, attn (or attentions); or layers.{L}.q and so on. Ranks: (n,d), (h,n,d),
 * (1,h,n,d); x (n,dm), (1,n,dm); attn (n,m), (h,n,m), (L,h,n,m), (L,1,h,n,m). The metadata
 * `layout` ("n,h,d") gives the order of the axes of q, k and v. A single square array with rows
 * that sum to 1 is read as finished weights.
 *
 * All shapes and the sum of all sizes are checked before the first tensor is allocated; then only
 * the requested layer and its first n positions are converted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/labels.h"
#include "input/store.h"

typedef enum Role { ROLE_Q, ROLE_K, ROLE_V, ROLE_X, ROLE_ATTN, ROLE_COUNT } Role;

/* One role's array as [heads, rows, columns] of the layer wanted. */
typedef struct Part {
    StoreEntry *entry; /* NULL: not in the file */
    bool        layered; /* named by layer */
    StoreBox    box;
} Part;

typedef struct Assembly {
    Input             *in;
    Store             *store;
    const InputChoice *choice;
    Part               parts[ROLE_COUNT];
    char               layout[STORE_MAX_RANK + 1]; /* letters, or empty */
    int64_t            layer;  /* wanted */
    int64_t            layers; /* in the file */
    int64_t           *held;   /* their numbers, ascending; NULL: the names give none */
} Assembly;

/* Finds the axes [heads, rows, columns] of one role's array. */
static bool shapes_place(Assembly *a, Role role, Error *err);
/* All extents of all parts agree, and the layer wanted is there. */
static bool shapes_check(const Assembly *a, Error *err);
/* heads, n, m, d, e, layer and layers of the whole sequence. */
static bool shapes_set_sizes(Assembly *a, Error *err);

static const char *const role_names[] = { "q", "k", "v", "x", "attn" };

/* ---- names --------------------------------------------------------------- */

/* "layers.12.q" gives 12 and "q"; -1 when the name is not of that form. */
static int64_t layer_of(const char *name, const char **role)
{
    int64_t layer = 0;
    int     digits = 0;

    if (strncmp(name, "layers.", 7) != 0)
        return -1;
    for (name += 7; *name >= '0' && *name <= '9' && digits < 9; name++, digits++)
        layer = 10 * layer + (*name - '0');
    if (!digits || *name != '.')
        return -1;
    *role = name + 1;
    return layer;
}

static int role_of(const char *name)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        if (strcmp(name, role_names[role]) == 0)
            return role;
    return strcmp(name, "attentions") == 0 ? ROLE_ATTN : -1;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Numbers of the layers in names, ascending, each once. */
static bool find_layers(Assembly *a, Error *err)
{
    int64_t *held = arena_alloc(a->in->arena, a->store->count + 1, sizeof(*held));
    int64_t  found = 0;

    if (!held)
        return load_no_memory(err, "the layers' numbers", 8 * (a->store->count + 1), a->choice);
    for (int64_t i = 0; i < a->store->count; i++) {
        const char *name = a->store->entries[i].info.name;
        int64_t     layer = layer_of(name, &name);

        if (layer >= 0 && role_of(name) >= 0)
            held[found++] = layer;
    }
    qsort(held, (size_t)found, sizeof(*held), by_number);
    for (int64_t i = 0; i < found; i++)
        if (!i || held[i] != held[i - 1])
            held[a->layers++] = held[i];
    a->held = a->layers ? held : NULL;
    return true;
}

/* The requested layer, else the first. */
static bool choose_layer(Assembly *a, Error *err)
{
    char   text[120] = "";
    size_t length = 0;

    a->layer = a->choice->layer >= 0 ? a->choice->layer : a->held ? a->held[0] : 0;
    if (!a->held || bsearch(&a->layer, a->held, (size_t)a->layers, sizeof(*a->held), by_number))
        return true;
    for (int64_t i = 0; i < a->layers && length + 32 < sizeof(text); i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%lld", i ? ", " : "",
                                   (long long)a->held[i]);
    return error_set(err, ERR_DATA, "layer %lld is not in the file; it holds layer%s %s%s",
                     (long long)a->layer, a->layers == 1 ? "" : "s", text,
                     length + 32 < sizeof(text) ? "" : ", ...");
}

static bool find_parts(Assembly *a, Error *err)
{
    if (!find_layers(a, err) || !choose_layer(a, err))
        return false;
    for (int64_t i = 0; i < a->store->count; i++) {
        StoreEntry *entry = &a->store->entries[i];
        const char *name = entry->info.name;
        int64_t     layer = layer_of(name, &name);
        int         role = role_of(name);

        if (role >= 0 && (layer == a->layer || (layer < 0 && !a->parts[role].entry)))
            a->parts[role] = (Part){ .entry = entry, .layered = layer >= 0 };
    }
    return true;
}

/* ---- reading ------------------------------------------------------------- */

static void cut_to(int64_t *extent, int64_t n)
{
    if (n > 0 && *extent > n)
        *extent = n;
}

static void cut_parts(Assembly *a)
{
    int64_t n = a->choice->n;

    for (int role = 0; role < ROLE_COUNT; role++)
        cut_to(&a->parts[role].box.extent[1], n);
    cut_to(&a->parts[ROLE_ATTN].box.extent[2], n);
    if (a->in->segments.data)
        cut_to(&a->in->segments.shape[0], n);
    cut_to(&a->in->n, n);
    cut_to(&a->in->m, n);
}

static bool check_total(const Assembly *a, Error *err)
{
    int64_t total = 0, bytes;

    for (int role = 0; role < ROLE_COUNT; role++) {
        const int64_t *extent = a->parts[role].box.extent;

        if (!a->parts[role].entry)
            continue;
        if (__builtin_mul_overflow(extent[0] * 4, extent[1], &bytes) ||
            __builtin_mul_overflow(bytes, extent[2], &bytes) ||
            __builtin_add_overflow(total, bytes, &total))
            total = INT64_MAX;
    }
    return total <= load_limit(a->choice) || load_no_memory(err, "the tensors", total, a->choice);
}

static bool read_part(Assembly *a, Role role, Tensor *out, Error *err)
{
    Part          *part = &a->parts[role];
    const int64_t *extent = part->box.extent;
    int            skip = role == ROLE_X;

    if (!part->entry)
        return true;
    if (!store_fetch(a->store, part->entry, err))
        return false;
    *out = tensor_new(a->in->arena, DT_F32, 3 - skip, extent + skip);
    if (!out->data)
        return load_no_memory(err, role_names[role], extent[0] * extent[1] * extent[2] * 4,
                              a->choice);
    store_copy_f32(part->entry, &part->box, out->data);
    if (a->store->fetch) /* it can be fetched again */
        store_drop(part->entry);
    return true;
}

/* The size of a part, at an address that only says that it is there. */
static void outline_part(const Assembly *a, Role role, Tensor *out)
{
    int skip = role == ROLE_X;

    if (a->parts[role].entry)
        *out = tensor_of(DT_F32, 3 - skip, a->parts[role].box.extent + skip, a->in);
}

static bool read_parts(Assembly *a, Error *err)
{
    Input *in = a->in;

    if (a->choice->shapes) {
        outline_part(a, ROLE_Q, &in->q);
        outline_part(a, ROLE_K, &in->k);
        outline_part(a, ROLE_V, &in->v);
        outline_part(a, ROLE_X, &in->x);
        outline_part(a, ROLE_ATTN, &in->attn);
        return true;
    }
    return check_total(a, err) && read_part(a, ROLE_Q, &in->q, err) &&
           read_part(a, ROLE_K, &in->k, err) && read_part(a, ROLE_V, &in->v, err) &&
           read_part(a, ROLE_X, &in->x, err) && read_part(a, ROLE_ATTN, &in->attn, err);
}

/* ---- an only array ------------------------------------------------------- */

/* Projections of a model have such names: "encoder.layer.0.attention.self.query.weight". */
static bool names_a_weight(const Store *store)
{
    for (int64_t i = 0; i < store->count; i++) {
        const char *name = store->entries[i].info.name, *last = strrchr(name, '.');

        if (last && last > name && !strcmp(last, ".weight") && store->entries[i].info.rank == 2)
            return true;
    }
    return false;
}

static bool no_names(const Assembly *a, Error *err)
{
    char   names[160];
    size_t length = 0;

    if (names_a_weight(a->store))
        return error_set(err, ERR_DATA, "holds a model's parameters (%lld arrays), not the q, k "
                         "and v of a text; give the folder with its config.json: --input "
                         "model:FOLDER --text FILE; or samples/export/hf_qkv.py saves them",
                         (long long)a->store->count);
    names[0] = '\0';
    for (int64_t i = 0; i < a->store->count && length + 40 < sizeof(names); i++)
        length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%.30s",
                                   i ? ", " : "", a->store->entries[i].info.name);
    return error_set(err, ERR_DATA, "holds no q, k, v, x or attn (nor layers.0.q and so on); it "
                     "holds %lld array%s: %s%s; which is which can stand behind the path: "
                     "'FILE[q=NAME,k=NAME,v=NAME]'", (long long)a->store->count,
                     a->store->count == 1 ? "" : "s", names,
                     length + 40 < sizeof(names) ? "" : ", ...");
}

/* The only array, or the only one with two or more axes, or NULL. */
static StoreEntry *only_array(const Store *store)
{
    StoreEntry *only = NULL;

    if (store->count == 1)
        return store->entries;
    for (int64_t i = 0; i < store->count; i++) {
        StoreEntry *entry = &store->entries[i];

        if (entry->info.rank < 2)
            continue;
        if (only)
            return NULL;
        only = entry;
    }
    return only;
}

static bool try_weights(Assembly *a, Error *err)
{
    StoreEntry *entry = only_array(a->store);
    char        shape[200], naming[160];
    int         rank;

    if (!entry)
        return no_names(a, err);
    if (!store_is_number(entry, err))
        return false;
    rank = entry->info.rank;
    if (rank < 2 || rank > 5 || entry->info.shape[rank - 1] != entry->info.shape[rank - 2])
        return error_set(err, ERR_DATA,
                         "the only array, %.80s of shape %s, is not square weights; %s",
                         entry->info.name, store_shape_text(entry, shape, sizeof(shape)),
                         weights_naming(a->store->kind, naming, sizeof(naming)));
    a->parts[ROLE_ATTN] = (Part){ .entry = entry };
    return true;
}

/* ---- all of it ----------------------------------------------------------- */

/* Checks all rows before a cut. */
static bool check_guess(Assembly *a, Error *err)
{
    Part     *part = &a->parts[ROLE_ATTN];
    ArenaMark mark = arena_mark(a->in->arena);
    Tensor    all = { .data = NULL };
    bool      ok = check_total(a, err) && read_part(a, ROLE_ATTN, &all, err) &&
              weights_are_finished(&all, part->entry->info.name, a->store->kind, err);

    arena_release(a->in->arena, mark);
    return ok;
}

static bool find_and_place(Assembly *a, Error *err)
{
    bool named = false;

    if (!metadata_layout(a->store, a->layout, err) || !find_parts(a, err))
        return false;
    for (int role = 0; role < ROLE_COUNT; role++)
        named = named || a->parts[role].entry;
    if (!named && !try_weights(a, err))
        return false;
    for (Role role = ROLE_Q; role < ROLE_COUNT; role++)
        if (!shapes_place(a, role, err))
            return false;
    return named || check_guess(a, err);
}

static bool note_cut(Assembly *a, Error *err)
{
    int64_t m = a->in->m;

    if (!a->parts[ROLE_ATTN].entry || a->choice->n <= 0 || m <= a->choice->n)
        return true;
    a->in->note = arena_printf(a->in->arena, "weights of the first %lld of %lld keys: rows may sum "
                               "to less than 1", (long long)a->choice->n, (long long)m);
    return a->in->note || error_set(err, ERR_NOMEM, "no memory for a note");
}

/* A file with one of q, k and v (models are often dumped so) runs few mechanisms: the note says
 * what helps. */
static bool note_lack(Assembly *a, Error *err)
{
    bool q = a->parts[ROLE_Q].entry, k = a->parts[ROLE_K].entry, v = a->parts[ROLE_V].entry;

    if (v || (!q && !k) || a->parts[ROLE_ATTN].entry)
        return true;
    a->in->note = arena_printf(a->in->arena, "only %s: one file of all three is "
                               "numpy.savez('qkv.npz', q=q, k=k, v=v)",
                               q && k ? "q and k" : q ? "q" : "k");
    return a->in->note || error_set(err, ERR_NOMEM, "no memory for a note");
}

/* An array that looks like a mask and is none of the input's: nobody may think that it holds. */
static bool note_mask(Assembly *a, Error *err)
{
    static const char *const masks[] = { "mask", "attn_mask", "attention_mask", "causal_mask",
                                         "bias", "attn_bias" };

    for (int64_t i = 0; i < a->store->count; i++)
        for (size_t x = 0; x < sizeof(masks) / sizeof(*masks); x++)
            if (!strcmp(a->store->entries[i].info.name, masks[x])) {
                a->in->warning = arena_printf(a->in->arena, "the array %s of the input is not "
                                              "used; pattern(mask($t)) with -p t=@FILE.npy has "
                                              "the cells of a mask", masks[x]);
                return a->in->warning || error_set(err, ERR_NOMEM, "no memory for a note");
            }
    return true;
}

#define HEADS_OF_MODELS 32 /* larger models have more heads, but then more positions, too */

/* More heads than positions, as where [n, h, d] was saved. */
static bool note_axes(Assembly *a, Error *err)
{
    const Part *part = &a->parts[a->parts[ROLE_Q].entry ? ROLE_Q : ROLE_K];
    int64_t     heads = a->in->heads, n = a->in->n > a->in->m ? a->in->n : a->in->m;
    char        shape[200];

    if (*a->layout || !part->entry || heads <= HEADS_OF_MODELS || heads <= 2 * n ||
        a->in->q_tokens || a->in->k_tokens)
        return true;
    a->in->warning = arena_printf(a->in->arena, "%.80s has shape %s, read as %lld heads of %lld "
                                  "positions; if it is [n, heads, d], save numpy.swapaxes(x, 0, 1) "
                                  "or, beside the arrays, layout=\"n,h,d\"", part->entry->info.name,
                                  store_shape_text(part->entry, shape, sizeof(shape)),
                                  (long long)heads, (long long)part->box.extent[1]);
    return a->in->warning || error_set(err, ERR_NOMEM, "no memory for a note");
}

/* Whether the last column of this row of head 0 holds weight. */
static bool last_column_weighs(const Part *part, int64_t row)
{
    const int64_t *stride = part->box.stride;
    StoreBox       one = { .extent = { 1, 1, 1 }, .stride = { 0, 0, 1 } };
    float          value = 0;

    one.offset = part->box.offset + row * stride[1] + (part->box.extent[2] - 1) * stride[2];
    store_copy_f32(part->entry, &one, &value);
    return value != 0;
}

/* Longformer returns [heads, n, x+w+1]: x global keys, then w+1 keys around the query.  The last
 * column is past the end for the last query and 0 there, but not for the first: keys that are
 * absolute never look so.  What x is the array does not say, so it is refused. */
static bool check_relative(Assembly *a, Error *err)
{
    const Part *attn = &a->parts[ROLE_ATTN];
    int64_t     n = attn->box.extent[1], columns = attn->box.extent[2];
    char        shape[200];

    if (!attn->entry || a->parts[ROLE_K].entry || a->parts[ROLE_V].entry || columns >= n)
        return true;
    if (!store_fetch(a->store, attn->entry, err))
        return false;
    if (last_column_weighs(attn, n - 1) || !last_column_weighs(attn, 0))
        return true;
    return error_set(err, ERR_DATA, "%.80s has shape %s: its columns look relative, as in "
                     "Longformer's [heads, n, x+w+1] (x global keys, then the window around each "
                     "query); write them into [heads, n, n], or save q, k and v",
                     attn->entry->info.name, store_shape_text(attn->entry, shape, sizeof(shape)));
}

/* The weights of all keys are read, so that their rows should sum to 1. */
static bool whole_keys(const Assembly *a)
{
    const Part *attn = &a->parts[ROLE_ATTN];

    return attn->entry && a->choice->n <= 0;
}

bool load_assemble(Input *in, Store *store, const InputChoice *choice, Error *err)
{
    Assembly a = { .in = in, .store = store, .choice = choice };

    in->kind = arena_strdup(in->arena, store->kind);
    if (!in->kind)
        return error_set(err, ERR_NOMEM, "no memory for an input");
    if (!metadata_scalars(in, store, err) || !find_and_place(&a, err) || !shapes_check(&a, err) ||
        !shapes_set_sizes(&a, err) || !metadata_tokens(in, store, err) ||
        !metadata_segments(in, store, err) || !note_cut(&a, err) || !note_lack(&a, err) ||
        !note_mask(&a, err) || !note_axes(&a, err))
        return false;
    if (!check_relative(&a, err))
        return false;
    cut_parts(&a);
    return read_parts(&a, err) && (choice->shapes || weights_note(in, whole_keys(&a), err));
}

/* ---- axes ------------------------------------------------------------------- */

static void without(const char *letters, const char *drop, char *out)
{
    for (; *letters; letters++)
        if (!strchr(drop, *letters))
            *out++ = *letters;
    *out = '\0';
}

/* The letters of the axes of a q, k or v of this rank, or false. */
static bool letters_for(const char *layout, int rank, char out[STORE_MAX_RANK + 2])
{
    static const char *const plain[] = { "", "", "nd", "hnd", "1hnd" };

    if (!*layout) {
        if (rank < 2 || rank > 4)
            return false;
        strcpy(out, plain[rank]);
        return true;
    }
    strcpy(out, layout);
    if ((int)strlen(out) == rank)
        return true;
    without(layout, "1", out);
    if ((int)strlen(out) == rank)
        return true;
    if ((int)strlen(out) + 1 == rank) {
        memmove(out + 1, out, strlen(out) + 1);
        out[0] = '1';
        return true;
    }
    without(layout, "1h", out);
    return (int)strlen(out) == rank;
}

static bool attn_letters(int rank, char out[STORE_MAX_RANK + 2])
{
    static const char *const plain[] = { "", "", "nd", "hnd", "Lhnd", "L1hnd" };

    if (rank < 2 || rank > 5)
        return false;
    strcpy(out, plain[rank]);
    return true;
}

static bool bad_rank(const StoreEntry *entry, const char *wanted, Error *err)
{
    char shape[200];

    return error_set(err, ERR_DATA, "%.80s has shape %s; expected %s", entry->info.name,
                     store_shape_text(entry, shape, sizeof(shape)), wanted);
}

/* Places the axes named by letters; the layer axis is cut to one. */
static bool place_axes(Assembly *a, Part *part, const char *letters, Error *err)
{
    int64_t     stride[STORE_MAX_RANK];
    const char *axes = "hnd";
    char        shape[200];

    part->box = (StoreBox){ .extent = { 1, 1, 1 }, .stride = { 0, 0, 1 } };
    store_strides(part->entry, stride);
    store_shape_text(part->entry, shape, sizeof(shape));
    for (int i = 0; letters[i]; i++) {
        int64_t     extent = part->entry->info.shape[i];
        const char *axis = strchr(axes, letters[i]);

        if (extent < 1)
            return error_set(err, ERR_DATA, "%.80s has shape %s: it is empty",
                             part->entry->info.name, shape);
        if (axis) {
            part->box.extent[axis - axes] = extent;
            part->box.stride[axis - axes] = stride[i];
        } else if (letters[i] == 'L') {
            if (part->layered ? extent != 1 : a->layer >= extent)
                return error_set(err, ERR_DATA, "%.80s has shape %s: %lld layers, so layer %lld "
                                 "is not there", part->entry->info.name, shape,
                                 (long long)extent, (long long)a->layer);
            part->box.offset += part->layered ? 0 : a->layer * stride[i];
            if (!part->layered && extent > a->layers)
                a->layers = extent;
        } else if (extent != 1) {
            return error_set(err, ERR_DATA, "%.80s has shape %s: a batch of %lld sequences, and "
                             "one is read; save one of them", part->entry->info.name, shape,
                             (long long)extent);
        }
    }
    return true;
}

static bool shapes_place(Assembly *a, Role role, Error *err)
{
    Part *part = &a->parts[role];
    int   rank;
    char  letters[STORE_MAX_RANK + 2];

    if (!part->entry)
        return true;
    if (!store_is_number(part->entry, err))
        return false;
    rank = part->entry->info.rank;
    if (role == ROLE_ATTN) {
        if (!attn_letters(rank, letters))
            return bad_rank(part->entry, "(n,m), (h,n,m) or (L,h,n,m)", err);
    } else if (role == ROLE_X) {
        if (rank != 2 && rank != 3)
            return bad_rank(part->entry, "(n,dm) or (1,n,dm)", err);
        strcpy(letters, rank == 2 ? "nd" : "1nd");
    } else if (!letters_for(a->layout, rank, letters)) {
        return bad_rank(part->entry, *a->layout ? "as many axes as the metadata layout names"
                                                : "(n,d), (h,n,d) or (1,h,n,d)", err);
    }
    return place_axes(a, part, letters, err);
}

static int64_t extent_of(const Assembly *a, Role role, int axis)
{
    return a->parts[role].entry ? a->parts[role].box.extent[axis] : 0;
}

/* What to do where heads and positions that changed places would agree. */
static const char *swap_hint(const Assembly *a, bool agree)
{
    return *a->layout || !agree ? ""
           : "; axes are [heads, n, d]: numpy.swapaxes(x, 0, 1) turns [n, heads, d], or the "
             "metadata key layout names the order";
}

/* One of two compared axes is its tensor's other one of the first two. */
static bool agree_swapped(const Assembly *a, Role one, int i, Role other, int j)
{
    return i < 2 && j < 2 && (extent_of(a, one, 1 - i) == extent_of(a, other, j) ||
                              extent_of(a, one, i) == extent_of(a, other, 1 - j));
}

/* The extents of axis `i` of one and axis `j` of the other agree, if both arrays are given. */
static bool same_extent(const Assembly *a, Role one, int i, Role other, int j, const char *what,
                        Error *err)
{
    const StoreEntry *first = a->parts[one].entry, *second = a->parts[other].entry;
    char              text[2][120];

    if (!first || !second || extent_of(a, one, i) == extent_of(a, other, j))
        return true;
    return error_set(err, ERR_DATA,
                     "%.80s has shape %s but %.80s has %s: %s differ, %lld and %lld%s",
                     first->info.name, store_shape_text(first, text[0], sizeof(text[0])),
                     second->info.name, store_shape_text(second, text[1], sizeof(text[1])), what,
                     (long long)extent_of(a, one, i), (long long)extent_of(a, other, j),
                     swap_hint(a, agree_swapped(a, one, i, other, j)));
}

static bool check_groups(const Assembly *a, Role role, Error *err)
{
    int64_t heads = extent_of(a, ROLE_Q, 0), shared = extent_of(a, role, 0);
    int64_t queries = extent_of(a, ROLE_Q, 1), keys = extent_of(a, role, 1);
    char    text[2][120];

    if (!heads || !shared || heads % shared == 0)
        return true;
    return error_set(err, ERR_DATA, "%.80s has shape %s but %.80s has %s: %lld query heads cannot "
                     "share %lld key heads evenly%s", a->parts[ROLE_Q].entry->info.name,
                     store_shape_text(a->parts[ROLE_Q].entry, text[0], sizeof(text[0])),
                     a->parts[role].entry->info.name,
                     store_shape_text(a->parts[role].entry, text[1], sizeof(text[1])),
                     (long long)heads, (long long)shared,
                     swap_hint(a, keys > 0 && queries % keys == 0));
}

static bool check_layers(const Assembly *a, Error *err)
{
    for (Role role = ROLE_Q; role < ROLE_ATTN; role++)
        if (a->parts[role].entry && !a->parts[role].layered && a->layers > 1)
            return error_set(err, ERR_DATA, "%.80s is of one layer, but the file holds %lld layers",
                             a->parts[role].entry->info.name, (long long)a->layers);
    if (a->held || a->layer < (a->layers ? a->layers : 1))
        return true;
    return error_set(err, ERR_DATA, "layer %lld is not in the file; it holds %lld layer%s, "
                     "counted from 0", (long long)a->layer,
                     (long long)(a->layers ? a->layers : 1), a->layers > 1 ? "s" : "");
}

/* Keys of lambda layers have several channels (depths) per channel of a query. */
static bool check_head_sizes(const Assembly *a, Error *err)
{
    int64_t d = extent_of(a, ROLE_Q, 2);

    return (d > 0 && extent_of(a, ROLE_K, 2) % d == 0) ||
           same_extent(a, ROLE_Q, 2, ROLE_K, 2, "their head sizes d", err);
}

static bool shapes_check(const Assembly *a, Error *err)
{
    return check_head_sizes(a, err) &&
           same_extent(a, ROLE_K, 1, ROLE_V, 1, "their numbers of keys", err) &&
           same_extent(a, ROLE_K, 0, ROLE_V, 0, "their numbers of heads", err) &&
           same_extent(a, ROLE_Q, 1, ROLE_ATTN, 1, "their numbers of queries", err) &&
           same_extent(a, ROLE_Q, 0, ROLE_ATTN, 0, "their numbers of heads", err) &&
           same_extent(a, ROLE_K, 1, ROLE_ATTN, 2, "their numbers of keys", err) &&
           same_extent(a, ROLE_V, 1, ROLE_ATTN, 2, "their numbers of keys", err) &&
           same_extent(a, a->parts[ROLE_Q].entry ? ROLE_Q : ROLE_V, 1, ROLE_X, 1,
                       "their lengths", err) &&
           check_groups(a, ROLE_K, err) && check_groups(a, ROLE_V, err) && check_layers(a, err);
}

static int64_t first_of(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return a ? a : b ? b : c ? c : d;
}

static bool shapes_set_sizes(Assembly *a, Error *err)
{
    Input  *in = a->in;
    int64_t cut = a->choice->n;

    in->heads = first_of(extent_of(a, ROLE_Q, 0), extent_of(a, ROLE_K, 0),
                         extent_of(a, ROLE_V, 0), extent_of(a, ROLE_ATTN, 0));
    in->heads = in->heads ? in->heads : 1;
    in->n = first_of(extent_of(a, ROLE_Q, 1), extent_of(a, ROLE_ATTN, 1),
                     extent_of(a, ROLE_X, 1), extent_of(a, ROLE_V, 1));
    in->n = in->n ? in->n : extent_of(a, ROLE_K, 1);
    in->m = first_of(extent_of(a, ROLE_K, 1), extent_of(a, ROLE_V, 1),
                     extent_of(a, ROLE_ATTN, 2), in->n);
    in->d = first_of(extent_of(a, ROLE_Q, 2), extent_of(a, ROLE_K, 2),
                     extent_of(a, ROLE_V, 2), extent_of(a, ROLE_X, 2));
    in->e = first_of(extent_of(a, ROLE_V, 2), in->d, 0, 0);
    in->layer = a->layer;
    in->layers = a->layers ? a->layers : 1;
    in->held = a->held && a->held[a->layers - 1] >= a->layers ? a->held : NULL;
    if (cut > in->n)
        return error_set(err, ERR_DATA, "holds %lld position%s, so the first %lld cannot be taken; "
                         "a made input has any length: synthetic:NAME",
                         (long long)in->n, in->n == 1 ? "" : "s", (long long)cut);
    return true;
}
