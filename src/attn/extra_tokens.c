/* extra_tokens.c -- see extra_tokens.h. */
#include "attn/run.h"

#include <string.h>

Tensor tokens_behind(Run *r, Tensor extra, Tensor tokens)
{
    int64_t g = extra.shape[1], n = tokens.shape[1], w = tokens.shape[2];
    Tensor  out = run_tensor3(r, DT_F32, r->h, g + n, w);

    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        float *at = tensor_f32(&out) + t * (g + n) * w;

        memcpy(at, tensor_head(&extra, t, r->h), (size_t)(g * w) * sizeof(*at));
        memcpy(at + g * w, tensor_head(&tokens, t, r->h), (size_t)(n * w) * sizeof(*at));
    }
    return out;
}

Tensor tokens_rows(Run *r, Tensor all, int64_t from, int64_t count)
{
    int64_t w = all.shape[2];
    Tensor  out = run_tensor3(r, DT_F32, r->h, count, w);

    for (int64_t t = 0; t < r->h && !run_failed(r); t++)
        memcpy(tensor_f32(&out) + t * count * w,
               tensor_f32(&all) + (t * all.shape[1] + from) * w,
               (size_t)(count * w) * sizeof(float));
    return out;
}

Tensor tokens_mean(Run *r, Tensor tokens)
{
    int64_t n = tokens.shape[1], w = tokens.shape[2];
    Tensor  out = run_tensor3(r, DT_F32, r->h, 1, w);

    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        const float *from = tensor_head(&tokens, t, r->h);

        for (int64_t c = 0; c < w; c++) {
            double sum = 0;

            for (int64_t i = 0; i < n; i++)
                sum += (double)from[i * w + c];
            tensor_f32(&out)[t * w + c] = (float)(sum / (double)n);
        }
    }
    op_charge(r, FLOP_OVERHEAD, (double)(r->h * n * w));
    return out;
}
