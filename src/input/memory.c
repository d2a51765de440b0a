/* memory.c -- an Input from tensors in memory, and the beginning of another Input; see input.h.
 *
 * Tensors are copied and converted to float32; (n,d) is one head. Given are q, k and v, or the
 * layer's own input x, or v with or without q and x, which suffices for attention without scores.
 * The fingerprint covers the converted bytes.
 */
#include <string.h>

#include "input/input.h"
#include "input/labels.h"
#include "input/store.h"

static bool given(const Tensor *t)
{
    return t && t->data;
}

/* A contiguous float32 copy of `rank` axes. */
static bool take_tensor(Input *in, const char *name, const Tensor *t, int rank, Tensor *out,
                        Error *err)
{
    Tensor copy;
    char   shape[80];

    if (!given(t))
        return true;
    if (t->rank != rank && !(rank == 3 && t->rank == 2))
        return error_set(err, ERR_DATA, "%s has shape %s; expected %s", name,
                         tensor_shape_text(t, shape, sizeof(shape)),
                         rank == 3 ? "(n,d) or (h,n,d)" : "(n,dm)");
    if (tensor_count(t) == 0)
        return error_set(err, ERR_DATA, "%s of shape %s is empty", name,
                         tensor_shape_text(t, shape, sizeof(shape)));
    copy = tensor_convert(in->arena, *t, DT_F32);
    if (!copy.data)
        return error_set(err, ERR_NOMEM, "%s: not enough memory", name);
    *out = tensor_with_rank(copy, rank);
    if (copy.data != t->data)
        return true;
    out->data = arena_alloc(in->arena, tensor_count(out), dtype_size(DT_F32));
    if (!out->data)
        return error_set(err, ERR_NOMEM, "%s: not enough memory", name);
    memcpy(out->data, copy.data, (size_t)tensor_bytes(out));
    return true;
}

static bool differ(Error *err, const char *what, const char *a, int64_t x, const char *b,
                   int64_t y)
{
    return error_set(err, ERR_DATA, "%s differ: %s has %lld, %s has %lld", what, a, (long long)x, b,
                     (long long)y);
}

static bool check_rows(const Input *in, Error *err)
{
    int64_t n = in->q.data ? in->q.shape[1] : in->v.shape[1];

    if (in->x.data && in->x.shape[0] != n)
        return differ(err, "the lengths", in->q.data ? "q" : "v", n, "x", in->x.shape[0]);
    return true;
}

static bool check_qkv(const Input *in, Error *err)
{
    const int64_t *q = in->q.shape, *k = in->k.shape, *v = in->v.shape;

    if (!in->v.data || (in->k.data && !in->q.data))
        return error_set(err, ERR_DATA, "q, k and v go together (or x alone, or v without k); %s "
                         "is missing", !in->v.data ? "v" : "q");
    if (in->k.data && (q[2] < 1 || k[2] % q[2])) /* a multiple: the depths of a lambda layer */
        return differ(err, "the head sizes d", "q", q[2], "k", k[2]);
    if (in->k.data && k[1] != v[1])
        return differ(err, "the numbers of keys", "k", k[1], "v", v[1]);
    if (in->k.data && k[0] != v[0])
        return differ(err, "the numbers of heads", "k", k[0], "v", v[0]);
    if (!check_rows(in, err))
        return false;
    return !in->q.data || q[0] % v[0] == 0 ||
           error_set(err, ERR_DATA, "%lld query heads cannot share %lld key heads evenly",
                     (long long)q[0], (long long)v[0]);
}

static bool set_sizes(Input *in, Error *err)
{
    const Tensor *first = in->q.data ? &in->q : &in->v;

    in->layers = 1;
    in->heads = 1;
    if (!in->q.data && !in->k.data && !in->v.data && in->x.data) {
        in->n = in->m = in->x.shape[0];
        in->d = in->e = in->x.shape[1];
        return true;
    }
    if (!check_qkv(in, err))
        return false;
    in->heads = first->shape[0];
    in->n = first->shape[1];
    in->m = in->v.shape[1];
    in->d = first->shape[2];
    in->e = in->v.shape[2];
    return true;
}

/* Labels are the keys'; also the queries' if there are as many. */
static bool take_tokens(Input *in, const char *const *tokens, Error *err)
{
    if (!tokens)
        return true;
    in->k_tokens = arena_alloc(in->arena, in->m, sizeof(*in->k_tokens));
    for (int64_t i = 0; in->k_tokens && i < in->m; i++) {
        in->k_tokens[i] = labels_copy(in->arena, (const uint8_t *)tokens[i],
                                      (int64_t)strlen(tokens[i]));
        if (!in->k_tokens[i])
            in->k_tokens = NULL;
    }
    if (in->n == in->m)
        in->q_tokens = in->k_tokens;
    return in->k_tokens || error_set(err, ERR_NOMEM, "not enough memory for the tokens");
}

static void fingerprint(Input *in)
{
    const Tensor *all[] = { &in->q, &in->k, &in->v, &in->x, &in->segments };
    Mapped        parts[5];
    int64_t       count = 0;

    for (int i = 0; i < 5; i++)
        if (all[i]->data)
            parts[count++] = (Mapped){ .data = all[i]->data, .size = tensor_bytes(all[i]) };
    mapped_sha256(parts, count, in->sha256);
}

Input *input_from_tensors(const Tensor *q, const Tensor *k, const Tensor *v, const Tensor *x,
                          const char *const *tokens, Error *err)
{
    Arena *arena = arena_new();
    Input *in = arena ? arena_zalloc(arena, 1, sizeof(*in)) : NULL;

    if (!in) {
        arena_free(arena);
        error_set(err, ERR_NOMEM, "not enough memory for an input");
        return NULL;
    }
    in->arena = arena;
    in->causal = -1;
    in->name = arena_strdup(arena, "tensors");
    in->kind = arena_strdup(arena, "tensors");
    if (!in->name || !in->kind)
        error_set(err, ERR_NOMEM, "not enough memory for an input");
    else if (take_tensor(in, "q", q, 3, &in->q, err) &&
        take_tensor(in, "k", k, 3, &in->k, err) && take_tensor(in, "v", v, 3, &in->v, err) &&
        take_tensor(in, "x", x, 2, &in->x, err) && set_sizes(in, err) &&
        take_tokens(in, tokens, err)) {
        fingerprint(in);
        return in;
    }
    input_free(in);
    return NULL;
}

bool input_set_segments(Input *in, const Tensor *segments, Error *err)
{
    Tensor copy;
    char   shape[80];

    if (segments->dtype == DT_F32 || segments->dtype == DT_F64)
        return error_set(err, ERR_DATA, "segments has dtype %s; expected whole numbers, one a "
                         "position", dtype_name(segments->dtype));
    if (segments->rank != 1 || segments->shape[0] != in->n)
        return error_set(err, ERR_DATA, "segments has shape %s; expected [%lld], one number a "
                         "position", tensor_shape_text(segments, shape, sizeof(shape)),
                         (long long)in->n);
    copy = tensor_convert(in->arena, *segments, DT_I64);
    in->segments = tensor_new(in->arena, DT_I64, 1, &in->n);
    if (!copy.data || !in->segments.data)
        return error_set(err, ERR_NOMEM, "no memory for %lld segments", (long long)in->n);
    memcpy(in->segments.data, copy.data, (size_t)tensor_bytes(&copy));
    fingerprint(in);
    return true;
}

/* ---- a beginning ------------------------------------------------------------ */

/* Cuts axis `axis` of a tensor of whole numbers or float32 to at most `length`. */
static bool cut_axis(Arena *arena, const Tensor *from, int axis, int64_t length, Tensor *out)
{
    int64_t outer = 1, inner = (int64_t)dtype_size(from->dtype), rows;

    *out = *from;
    if (!from->data)
        return true;
    rows = from->shape[axis] < length ? from->shape[axis] : length;
    for (int i = 0; i < axis; i++)
        outer *= from->shape[i];
    for (int i = axis + 1; i < from->rank; i++)
        inner *= from->shape[i];
    *out = tensor_new(arena, from->dtype, from->rank,
                      (int64_t[]){ axis == 0 ? rows : from->shape[0],
                                   axis == 1 ? rows : from->shape[1],
                                   axis == 2 ? rows : from->shape[2] });
    for (int64_t o = 0; out->data && o < outer; o++)
        memcpy((char *)out->data + o * rows * inner,
               (const char *)from->data + o * from->shape[axis] * inner, (size_t)(rows * inner));
    return out->data != NULL;
}

static bool cut_labels(Arena *arena, char *const *from, int64_t count, char ***out)
{
    *out = from ? arena_alloc(arena, count, sizeof(**out)) : NULL;
    for (int64_t i = 0; *out && i < count; i++)
        if (!((*out)[i] = arena_strdup(arena, from[i])))
            return false;
    return !from || *out;
}

/* A copy; NULL stays NULL. */
static bool cut_word(Arena *arena, const char *from, char **out)
{
    *out = from ? arena_strdup(arena, from) : NULL;
    return !from || *out;
}

static bool cut_words(Input *out, const Input *in)
{
    if (in->held) {
        int64_t *held = arena_alloc(out->arena, in->layers, sizeof(*held));

        if (!held)
            return false;
        memcpy(held, in->held, (size_t)in->layers * sizeof(*held));
        out->held = held;
    }
    out->name = arena_strdup(out->arena, in->name);
    out->kind = arena_strdup(out->arena, in->kind);
    if (!out->name || !out->kind || !cut_word(out->arena, in->model, &out->model) ||
        !cut_word(out->arena, in->note, &out->note) ||
        !cut_word(out->arena, in->warning, &out->warning) ||
        !cut_labels(out->arena, in->q_tokens, out->n, &out->q_tokens))
        return false;
    out->k_tokens = out->q_tokens;
    return in->k_tokens == in->q_tokens ||
           cut_labels(out->arena, in->k_tokens, out->m, &out->k_tokens);
}

bool input_can_be_cut(const Input *in)
{
    return !in->attn.data && !in->pixels.data && !in->width;
}

Input *input_cut(const Input *in, int64_t n, Error *err)
{
    Arena *arena = arena_new();
    Input *out = arena ? arena_alloc(arena, 1, sizeof(*out)) : NULL;

    if (out) {
        *out = *in;
        out->arena = arena;
        out->n = in->n < n ? in->n : n;
        out->m = in->m < n ? in->m : n;
    }
    if (out && cut_axis(arena, &in->q, 1, n, &out->q) && cut_axis(arena, &in->k, 1, n, &out->k) &&
        cut_axis(arena, &in->v, 1, n, &out->v) && cut_axis(arena, &in->x, 0, n, &out->x) &&
        cut_axis(arena, &in->segments, 0, n, &out->segments) && cut_words(out, in))
        return out;
    arena_free(arena);
    error_set(err, ERR_NOMEM, "no memory for the first %lld tokens", (long long)n);
    return NULL;
}
