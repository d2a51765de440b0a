/* pattern_attention.c -- what every mechanism that is only a set of cells does. */
#include "attn/run.h"

void run_pattern_attention(Run *r, double scale, const Pattern *cells)
{
    AttendInput  in = run_attend_input(r, scale);
    AttendResult result;

    run_stage(r, "attend");
    result = op_attend(r, &in, cells);
    r->out = result.out;
    view_pattern(r, cells, true);
    view_attention(r, cells, &in, result.lse);
    replay_offer_attend(r, &in, cells);
}

Flops run_pattern_flops(const Run *r, double cells)
{
    return (Flops){ .score = 2 * cells * (double)r->d,
                    .mix = 2 * cells * (double)r->e,
                    .overhead = FLOPS_SOFTMAX * cells };
}
