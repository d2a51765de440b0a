/* window.c -- sliding-window (local) attention.
 *
 * Token i sees the keys j with |i - j| <= k, k = floor(window / 2):
 *
 *     S[i,j]   = q_i . k_j / sqrt(d)          only for seen pairs
 *     output_i = sum_j softmax_j(S[i,:]) v_j
 *
 * Causal keeps the left half and the diagonal.  Rows at both ends are shorter.
 */
#include "attn/run.h"

typedef struct Params {
    int64_t window;
    double  scale;
} Params;

static const Param params[] = {
    PARAM_INT(Params, window, 7, 0, PARAM_COUNT_MAX,
              "total width; reach to each side is half of it, rounded down"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"), PARAM_END
};

static void window_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->m };
    int64_t       reach = p->window / 2;
    Pattern      *band = pattern_band(r->arena, s, -reach, reach, 1, COMPONENT_WINDOW);
    Pattern      *seen = pattern_finish(r->arena, s, band, r->causal);

    run_pattern_attention(r, p->scale, seen);
}

/* k' = min(k, n-1): n (2k' + 1) - k' (k' + 1) cells, causal n (k' + 1) - k' (k' + 1) / 2. */
static Flops window_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        n = (double)r->n, h = (double)r->h;
    double        k = (double)(p->window / 2 < r->n ? p->window / 2 : r->n - 1);
    double cells = h * (r->causal ? n * (k + 1) - k * (k + 1) / 2 : n * (2 * k + 1) - k * (k + 1));

    return run_pattern_flops(r, cells);
}

static const ViewPromise views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_window = {
    .id = "window",
    .title = "Sliding window",
    .authors = "Beltagy, Peters, Cohan",
    .year = 2020,
    .arxiv = "2004.05150",
    .source = "paper, section 3.1 (total width, as its released model counts it)",
    .formula = "A = { |i - j| <= floor(window / 2) }\n"
               "output = softmax over A of Q K^T / sqrt(d), times V",
    .teaches = "A band along the diagonal whose width does not grow with n: far tokens meet only "
               "through many layers.",
    .classes = CLASS_FP,
    .claim_time = "O(n w)",
    .claim_memory = "O(n w)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .positions = POSITIONS_ALL,
    .views = views,
    .params = params,
    .params_size = sizeof(Params),
    .run = window_run,
    .flops = window_flops,
};
