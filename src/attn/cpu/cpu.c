/* cpu.c -- the CPU's table of operations; see attn/ops/ops.h. */
#include "attn/cpu/cpu.h"

void *cpu_scratch(Run *r, int64_t count, int64_t size)
{
    void *data = arena_alloc(r->arena, count, size);

    if (!data)
        run_fail(r, ERR_NOMEM, "not enough memory: %lld items of %lld bytes of scratch; raise "
                 "--mem or take a smaller n", (long long)count, (long long)size);
    return data;
}

const Ops *ops_cpu(void)
{
    static const Ops ops = {
        .name = "cpu",
        .attend = cpu_attend,
        .pattern_means = cpu_pattern_means,
        .few_attend = cpu_few_attend,
        .group_attend = cpu_group_attend,
        .row_attend = cpu_row_attend,
        .gemm = cpu_gemm,
        .gemm_long = cpu_gemm_long,
        .softmax = cpu_softmax,
        .pinv = cpu_pinv,
        .logit_attend = cpu_logit_attend,
        .dots64 = cpu_dots64,
        .product64 = cpu_product64,
        .standardised_product = cpu_standardised_product,
        .largest_norm = cpu_largest_norm,
        .gelu = cpu_gelu,
        .argmax = cpu_argmax,
        .top_k = cpu_top_k,
        .nearest = cpu_nearest,
        .best_rows = cpu_best_rows,
        .codes = cpu_codes,
        .member_sums = cpu_member_sums,
        .nearest_codes = cpu_nearest_codes,
        .bit_sums = cpu_bit_sums,
        .key_usage = cpu_key_usage,
        .sort = cpu_sort,
        .normalise = cpu_normalise,
        .features = cpu_features,
        .features_top = cpu_features_top,
        .linear_attend = cpu_linear_attend,
        .sinkhorn = cpu_sinkhorn,
        .balance_powers = cpu_balance_powers,
        .balance = cpu_balance,
        .balance_shares = cpu_balance_shares,
        .mix_blocks = cpu_mix_blocks,
        .entries = cpu_entries,
        .joins_entries = true,
        .joins_keys = true,
        .standardise64 = cpu_standardise64,
        .tap_sums = cpu_tap_sums,
        .turn_pairs = cpu_turn_pairs,
        .best_columns = cpu_best_columns,
        .pair_dots = cpu_pair_dots,
        .rounded_attend = cpu_rounded_attend,
        .tally = cpu_tally,
        .normalise64 = cpu_normalise64,
        .unit_rows = cpu_unit_rows,
        .gather = cpu_gather,
        .scatter = cpu_scatter,
        .merge_rows = cpu_merge_rows,
        .sum_lists = cpu_sum_lists,
        .pool_windows = cpu_pool_windows,
        .lambda_content = cpu_lambda_content,
        .lambda_apply = cpu_lambda_apply,
        .state_attend = cpu_state_attend,
        .ceilings = cpu_ceilings,
    };

    return &ops;
}
