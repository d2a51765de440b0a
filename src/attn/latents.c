/* latents.c -- see latents.h. */
#include "attn/latents.h"

#include <string.h>

#include "attn/run.h"

static Tensor scaled(Run *r, Tensor x, double scale)
{
    Tensor y = run_tensor3(r, DT_F64, x.shape[0], x.shape[1], x.shape[2]);

    for (int64_t row = 0; row < x.shape[0] * x.shape[1] && !run_failed(r); row++) {
        const float *from = (const float *)x.data + row / x.shape[1] * x.stride[0] +
                            row % x.shape[1] * x.stride[1];
        double      *to = (double *)y.data + row * x.shape[2];

        for (int64_t c = 0; c < x.shape[2]; c++)
            to[c] = scale * (double)from[c];
    }
    return y;
}

LatentRead latents_read(Run *r, Tensor q, Tensor k, Tensor v, double scale, bool causal,
                        int64_t offset)
{
    bool       left = q.shape[1] <= k.shape[1];
    LatentRead read = { .in = { .kind = LOGITS_PRODUCT, .turned = true, .n = q.shape[1], .v = v,
                                .causal = causal, .offset = offset,
                                .left = left ? scaled(r, q, scale) : q,
                                .right = left ? k : scaled(r, k, scale) } };

    read.result = op_logit_attend(r, &read.in);
    return read;
}

Flops latents_read_flops(const Run *r, double cells, double d, double e)
{
    double h = (double)r->h;

    return (Flops){ .score = 2 * h * cells * d, .mix = 2 * h * cells * e,
                    .overhead = FLOPS_ROW_SOFTMAX * h * cells };
}

Tensor latents_weights(Run *r, const LatentRead *read)
{
    return logit_weights(r, &read->in, read->result.lse);
}

/* One copy for all heads that share both. */
Tensor latents_beside(Run *r, Tensor v, Tensor k)
{
    int64_t heads = v.shape[0] == k.shape[0] ? v.shape[0] : r->h, m = v.shape[1];
    int64_t e = v.shape[2], d = k.shape[2];
    Tensor  y = run_tensor3(r, DT_F32, heads, m, e + d);

    for (int64_t row = 0; row < heads * m && !run_failed(r); row++) {
        int64_t      t = row / m, j = row % m;
        const float *value = (const float *)tensor_head(&v, t, heads) + j * v.stride[1];
        const float *key = (const float *)tensor_head(&k, t, heads) + j * k.stride[1];
        float       *to = tensor_f32(&y) + row * (e + d);

        memcpy(to, value, (size_t)e * sizeof(float));
        memcpy(to + e, key, (size_t)d * sizeof(float));
    }
    return y;
}

Tensor latents_columns(Run *r, Tensor x, int64_t first, int64_t count)
{
    int64_t rows = x.shape[0] * x.shape[1], width = x.shape[2];
    Tensor  y = run_tensor3(r, DT_F32, x.shape[0], x.shape[1], count);

    for (int64_t i = 0; i < rows && !run_failed(r); i++)
        memcpy(tensor_f32(&y) + i * count, tensor_f32(&x) + i * width + first,
               (size_t)count * sizeof(float));
    return y;
}

Tensor latents_turned(Run *r, Tensor x)
{
    int64_t a = x.shape[1], b = x.shape[2];
    Tensor  y = run_tensor3(r, DT_F32, x.shape[0], b, a);

    for (int64_t t = 0; t < x.shape[0] && !run_failed(r); t++)
        for (int64_t i = 0; i < a; i++)
            for (int64_t j = 0; j < b; j++)
                tensor_f32(&y)[(t * b + j) * a + i] =
                    tensor_f32(&x)[t * x.stride[0] + i * x.stride[1] + j];
    return y;
}

/* ---- there and back ------------------------------------------------------------ */

static void show_nested(Run *r, const Nested *s, const LatentRead *in, const LatentRead *out,
                        Tensor memory)
{
    Pattern *cells;
    Tensor   left, right;

    if (!run_wants_views(r))
        return;
    cells = implicit_cells(r);
    left = latents_weights(r, out);
    right = latents_weights(r, in);
    implicit_factor(r, "factor_left", VIEW_WEIGHTS, left, "query", s->latent);
    implicit_connectivity(r, cells);
    implicit_weights(r, (Implicit){ .left = left, .right = latents_turned(r, right) },
                     VIEW_WEIGHTS, cells);
    view_stage(r, s->pack, -1);
    implicit_factor(r, "factor_right", VIEW_WEIGHTS, right, s->latent, "key");
    view_tensor(r, "memory", VIEW_VECTORS, memory, s->latent, "component");
    view_stage(r, NULL, -1);
}

void latents_nested(Run *r, const Nested *s)
{
    LatentRead in, out;
    Tensor     packed, y_v, y_k;

    run_stage(r, s->pack);
    packed = s->with_keys ? latents_beside(r, r->v, r->k) : r->v;
    in = latents_read(r, s->latents, s->keys, packed, s->scale, false, 0);
    y_v = s->with_keys ? latents_columns(r, in.result.out, 0, r->e) : in.result.out;
    y_k = s->with_keys ? latents_columns(r, in.result.out, r->e, r->d) : y_v;
    run_stage(r, s->unpack);
    out = latents_read(r, r->q, y_k, y_v, s->scale, false, 0);
    r->out = out.result.out;
    show_nested(r, s, &in, &out, y_v);
}

Flops latents_nested_flops(const Run *r, int64_t latents, bool with_keys)
{
    double l = (double)latents, d = (double)r->d, e = (double)r->e;

    return flops_sum(latents_read_flops(r, l * (double)r->m, d, with_keys ? e + d : e),
                     latents_read_flops(r, (double)r->n * l, d, e));
}
