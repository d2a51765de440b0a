/* cut.c -- the beginning of an input that is loaded already: see input_cut. */
#include "input/input.h"

#include <string.h>

/* Axis `axis` of a tensor of whole numbers or float32 gets `length` at most; the rest stays. */
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
    out->model = in->model ? arena_strdup(out->arena, in->model) : NULL;
    out->note = in->note ? arena_strdup(out->arena, in->note) : NULL;
    if (!out->name || !out->kind || (in->model && !out->model) || (in->note && !out->note) ||
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
