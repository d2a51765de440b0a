/* test_decode.c -- what one more token costs: the step against the difference of two runs, what is
 * held against what later queries read. */
#include "mech_fixture.h"

#define TOKENS 48
#define CACHED 2 /* bytes of a cached number, by default */

/* Parameters under which the last row of a run is the step of a decoder, sizes apart from n. */
typedef struct Additive {
    const char *id, *params;
} Additive;

static const Additive additive[] = {
    { "full", "" },
    { "full", "softcap=3" },
    { "window", "window=9" },
    { "window", "window=9,softcap=3" },
    { "window", "window=200" },
    { "dilated", "window=7,dilation=3" },
    { "dilated", "window=7,dilation=[1,4]" },
    { "cascade", "base_window=3,cardinal=2,layer=1" },
    { "block-local", "block=8" },
    { "block-local", "block=5,back=2" },
    { "sparse-strided", "stride=6" },
    { "sparse-strided", "stride=6,heads=local" },
    { "sparse-fixed", "stride=6,summary=2" },
    { "sparse-fixed", "stride=6,heads=split" },
    { "image-local-1d", "query_block=6,memory=5" },
    { "image-local-2d", "width=8,order=raster" },
    { "image-local-2d", "width=8,query_width=8,memory_width=9,order=raster" },
    { "axial", "width=7" },
    { "axial", "width=7,order=col-row" },
    { "axial", "width=7,axis=row" },
    { "axial", "width=7,axis=col" },
    { "axial", "width=7,combine=union" },
    { "axial", "width=7,combine=heads" },
    { "logsparse", "local=3" },
    { "logsparse", "local=2,restart=8" },
    { "logsparse", "local=2,restart=8,restart_mode=blocks,first=2" },
    { "longformer", "window=8,global=2" },
    { "longformer", "window=8,dilation=[1,2],global=[0,5]" },
    { "pattern", "expr='window(5)+chunk(6)'" },
    { "pattern", "expr='window(9)&chunk(6);window(3)'" },
    { "pattern", "expr='window(5)+stride(4)'" },
    { "pattern", "expr='tile(4,window(3))'" },
    { "star", "" },
    { "star", "window=9" },
    { "bigbird", "block=4,random=0,window=3,global=1" },
    { "memory-compressed", "factor=3" },
    { "memory-compressed", "factor=4,tail=drop" },
    { "adaptive-span", "z=4,ramp=3" },
    { "entmax", "alpha=1" },
    { "sparsebert-dam", "hard=false,keep_special=false" },
    { "transformer-xl", "segment=8,mem_len=6" },
    { "transformer-xl", "segment=8,mem_len=6,same_length=true" },
    { "linear", "" },
    { "linear", "feature_map=dpfp,nu=2" },
    { "performer", "features=12" },
    { "performer", "features=12,kernel=trig" },
    { "rfa", "features=6" },
    { "rfa", "features=6,gate=true" },
    { "luna", "n_p=3" },
    { "natten", "" },
    { "streaming-llm", "sinks=2,window=9" },
    { "differential", "" },
    { "topk", "k=5" },
    { "dsa", "topk=5" },
    { "moba", "block=6,topk=2" },
    { "quest", "page=6,budget=12" },
    { "nsa", "" },
    { "random", "" },
    { "sigmoid", "" },
    { "h2o", "heavy=4,recent=5" },
    { "mla", "" },
    { "retnet", "" },
    { "gla", "" },
    { "mamba2", "" },
    { "deltanet", "" },
    { "gated-deltanet", "" },
    { "rwkv7", "" },
    { "long-short", "segment=5,rank=2,chunk=6" },
    { "long-short", "segment=5,rank=2,chunk=6,short=false" },
    { "compressive", "segment=4,mem_len=6,cmem_len=3,ratio=2" },
    { "compressive", "segment=6,mem_len=4,cmem_len=2,ratio=4,compress=conv" },
    { "compressive", "segment=4,mem_len=4,cmem_len=3,ratio=3,compress=most-used" },
    { "compressive", "segment=4,mem_len=6,cmem_len=0" },
    { "perceiver", "" },
    { "lambda", "" },
    { "lambda", "scope=9" },
    { "lambda", "position=none" },
    { "synthesizer-dense", "" },
    { "synthesizer-random", "" },
    { "synthesizer-factorized-dense", "" },
    { "synthesizer-factorized-random", "" },
    { "mixed-precision", "" },
    { "quantization", "granularity=row" },
    { "gmlp", "" },
    { "gmlp", "tiny_attention=true" },
    { "lite", "" },
    { "lite", "conv_type=dynamic,kernel_size=4" },
    { "poolformer", "pool_size=5" },
    { "scaling", "part=qkv,sparsity=2" },
};
#define ADDITIVE (int)(sizeof(additive) / sizeof(*additive))

/* What a step of these costs is no difference of two runs. */
static const struct {
    const char *id, *why;
} apart[] = {
    { "blockbert", "its blocks are a share of n" },
    { "poolingformer", "a cell is pooled when its last token is there" },
    { "reformer", "a_step_reads_the_keys_that_its_buckets_and_clusters_hold" },
    { "routing", "a_step_reads_the_keys_that_its_buckets_and_clusters_hold" },
    { "sinkhorn", "a_sorted_block_is_made_once" },
    { "log-linear", "runs of tokens are joined as a binary counter carries" },
    { "snapkv", "its keys are chosen once, after the prompt" },
    { "vertical-slash", "its lines are chosen from the last queries of a run" },
    { "product-key-memory", "it has no cache" },
    { "chunked-ffn", "it has no cache" },
};

static bool is_tried(const char *id)
{
    for (int c = 0; c < ADDITIVE; c++)
        if (!strcmp(additive[c].id, id))
            return true;
    for (size_t c = 0; c < sizeof(apart) / sizeof(*apart); c++)
        if (!strcmp(apart[c].id, id))
            return true;
    return false;
}

/* Whether a causal run of m says what a step of a decoder costs. */
static bool says_what_a_step_costs(const Mechanism *m)
{
    Fixture     f = m->needs_x ? fixture_new_x(TOKENS) : fixture_new(TOKENS);
    const char *given = m->sketch ? m->sketch : m->example;
    Error       err = ERROR_INIT;
    Run        *run;
    bool        says = false;

    assert_true(!given || assignments_parse(&f.given, given, &err));
    run = fixture_run_given(&f, m->id, true);
    for (int i = 0; i < run->figure_count; i++)
        says = says || !strcmp(run->figures[i].name, "decode_flops");
    fixture_free(&f);
    return says;
}

TEST(every_mechanism_that_decodes_is_tried_here)
{
    for (size_t i = 0; mechanism_at(i); i++)
        if (mechanism_at(i)->decode && mechanism_at(i)->causal && !is_tried(mechanism_at(i)->id))
            CHECK(!says_what_a_step_costs(mechanism_at(i)), "%s says what a step costs: give it a "
                  "row in `additive`, or in `apart`", mechanism_at(i)->id);
}

/* The first `n` tokens of every head. */
static Tensor first_tokens(Fixture *f, const Tensor *t, int64_t n)
{
    int64_t heads = t->shape[0], width = t->shape[2];
    Tensor  cut = tensor_new(f->arena, DT_F32, 3, (int64_t[]){ heads, n, width });

    assert_non_null(cut.data);
    for (int64_t h = 0; h < heads; h++)
        memcpy(tensor_f32(&cut) + h * n * width, tensor_f32(t) + h * t->shape[1] * width,
               (size_t)(n * width) * sizeof(float));
    return cut;
}

static Fixture fixture_of(const Additive *a)
{
    return mechanism_find(a->id)->needs_x ? fixture_new_x(TOKENS) : fixture_new(TOKENS);
}

#define LONGER 5040 /* whole blocks of all sizes here */

/* Beyond the run the cache grows by what a token adds: both are one record. */
static void check_growth(const char *id, const char *params)
{
    Fixture f = fixture_of(&(Additive){ id, params });
    Run    *r = fixture_run(&f, id, params, true);
    double  more = decode_held(r, 2 * LONGER) - decode_held(r, LONGER);
    double  token = figure_of(r, "kv_bytes_per_token"), now = decode_held(r, TOKENS);

    CHECK(isnan(now) || now == figure_of(r, "state_bytes"), "%s(%s): %g bytes held, not %g", id,
          params, now, figure_of(r, "state_bytes"));
    CHECK(isnan(more) || fabs(more / LONGER - token) <= 1e-9 * token, "%s(%s): %g bytes a token, "
          "not %g", id, params, more / LONGER, token);
    fixture_free(&f);
}

TEST(a_cache_grows_by_what_a_token_adds)
{
    for (int c = 0; c < ADDITIVE; c++)
        check_growth(additive[c].id, additive[c].params);
    check_growth("snapkv", "");
    check_growth("snapkv", "prompt=24,keep=3");
    check_growth("reformer", "");
    check_growth("vertical-slash", "");
}

/* What a run on the first n tokens says. */
typedef struct Said {
    double flops, state, token, read, step;
} Said;

static Said said_of(Fixture *f, const Additive *a, int64_t n)
{
    Fixture part = { .n = n, .arena = f->arena };
    Said    s;

    part.q = first_tokens(f, &f->q, n);
    part.k = first_tokens(f, &f->k, n);
    part.v = first_tokens(f, &f->v, n);
    part.x = f->x;
    part.x.shape[0] = n;
    fixture_run(&part, a->id, a->params, true);
    s = (Said){ .flops = flops_total(run_flops(part.run)),
                .state = figure_of(part.run, "state_bytes"),
                .token = figure_of(part.run, "kv_bytes_per_token"),
                .read = figure_of(part.run, "step_bytes"),
                .step = figure_of(part.run, "decode_flops") };
    run_free(part.run);
    assignments_free(&part.given);
    return s;
}

TEST(the_step_costs_what_one_more_token_costs_a_run)
{
    for (int c = 0; c < ADDITIVE; c++) {
        Fixture     f = fixture_of(&additive[c]);
        const char *id = additive[c].id, *params = additive[c].params;

        for (int64_t n = 7; n <= TOKENS; n += n < 20 ? 1 : 7) {
            Said now = said_of(&f, &additive[c], n), before = said_of(&f, &additive[c], n - 1);

            CHECK(fabs(now.flops - before.flops - now.step) <= 1e-9 * now.flops,
                  "%s(%s), token %lld: the step counts %.17g FLOPs, the runs differ by %.17g", id,
                  params, (long long)n, now.step, now.flops - before.flops);
        }
        fixture_free(&f);
    }
}

#define SOME 12 /* tokens; whole blocks and pages of them above */
/* The cache of h2o is read with the new token, before one leaves it. */
#define BYTES_LEAVING (HEADS * (CACHED * (KEY_SIZE + VALUE_SIZE) + 4))

TEST(a_cache_grows_by_a_token_and_the_step_reads_what_it_holds)
{
    for (int c = 0; c < ADDITIVE; c++) {
        Fixture     f = fixture_of(&additive[c]);
        const char *id = additive[c].id, *params = additive[c].params;
        Said        now = said_of(&f, &additive[c], TOKENS);
        Said        before = said_of(&f, &additive[c], TOKENS - SOME);
        bool        grows_yet = !strcmp(params, "window=200"); /* bounded, but not full */
        double      leaves = !strcmp(id, "h2o") ? BYTES_LEAVING : 0;

        CHECK(grows_yet || fabs(now.state - before.state - SOME * now.token) < 0.5,
              "%s(%s): %g bytes more, %g a token", id, params, now.state - before.state, now.token);
        CHECK(now.read <= now.state + leaves && now.read > 0, "%s(%s): reads %g of %g bytes", id,
              params, now.read, now.state);
        fixture_free(&f);
    }
}

/* ---- what later queries read --------------------------------------------------- */

static bool sees(const Tensor *cells, int64_t i, int64_t j)
{
    int64_t n = cells->shape[cells->rank - 1], planes = tensor_count(cells) / (n * n);

    for (int64_t h = 0; h < planes; h++)
        if (tensor_u8(cells)[(h * n + i) * n + j])
            return true;
    return false;
}

/* Tokens up to t that query t or a later one reads; the most over all t. */
static int64_t tokens_needed(const Tensor *cells)
{
    int64_t n = cells->shape[cells->rank - 1], most = 0;

    for (int64_t t = 0; t < n; t++) {
        int64_t needed = 0;

        for (int64_t j = 0; j <= t; j++) {
            bool read = false;

            for (int64_t i = t; i < n && !read; i++)
                read = sees(cells, i, j);
            needed += read;
        }
        most = needed > most ? needed : most;
    }
    return most;
}

/* Rules that a decoder can forget by; `spare` tokens are held besides those that are read. */
static const struct {
    const char *id, *params;
    int64_t     spare;
} forgets[] = {
    { "window", "window=9", 0 },
    { "dilated", "window=7,dilation=3", 0 },
    { "dilated", "window=7,dilation=[1,4]", 0 },
    { "cascade", "base_window=3,cardinal=2,layer=1", 0 },
    { "block-local", "block=8", 0 },
    { "block-local", "block=5,back=2", 0 },
    { "sparse-strided", "stride=6,heads=local", 0 },
    { "image-local-1d", "query_block=6,memory=5", 0 },
    { "image-local-2d", "width=8,order=raster", 1 },
    { "axial", "width=7,axis=row", 0 },
    { "logsparse", "local=2,restart=8,restart_mode=blocks,first=2", 0 },
    { "longformer", "window=8,global=2", 0 },
    { "longformer", "window=8,dilation=[1,2],global=[0,5]", 0 },
    { "pattern", "expr='window(5)+chunk(6)'", 0 },
    { "pattern", "expr='window(9)&chunk(6)'", 0 },
    { "pattern", "expr='window(21)-window(9)'", 0 },
    { "pattern", "expr='tile(4,window(3))'", 0 },
    { "star", "window=9", 0 },
    { "bigbird", "block=4,random=0,window=3,global=1", 0 },
    { "adaptive-span", "z=4,ramp=3", 0 },
    { "transformer-xl", "segment=8,mem_len=6", 0 },
    { "transformer-xl", "segment=8,mem_len=6,same_length=true", 0 },
};

TEST(a_bounded_cache_holds_what_is_read_and_no_more)
{
    for (int c = 0; c < (int)(sizeof(forgets) / sizeof(*forgets)); c++) {
        Fixture f = fixture_new(TOKENS);
        int64_t token = CACHED * HEADS * (KEY_SIZE + VALUE_SIZE), needed;
        Run    *r = fixture_run(&f, forgets[c].id, forgets[c].params, true);
        Tensor  cells = fixture_view(&f, "connectivity");

        needed = tokens_needed(&cells) + forgets[c].spare;
        assert_true(needed < TOKENS);
        CHECK(figure_of(r, "state_bytes") == (double)(needed * token) &&
              figure_of(r, "kv_bytes_per_token") == 0, "%s(%s): %g tokens are held, %lld needed",
              forgets[c].id, forgets[c].params, figure_of(r, "state_bytes") / (double)token,
              (long long)needed);
        fixture_free(&f);
    }
}

/* Rules that reach about as far as the run, or farther: how long that is changes nothing. */
static const char *const far_rules[][2] = {
    { "window", "window=" },
    { "dilated", "dilation=7,window=" },
    { "dilated", "dilation=[1,40],window=" },
    { "cascade", "cardinal=2,layer=1,base_window=" },
    { "block-local", "block=" },
    { "block-local", "block=40,back=" },
    { "sparse-strided", "heads=local,stride=" },
    { "sparse-strided", "stride=" },
    { "sparse-fixed", "summary=2,stride=" },
    { "image-local-1d", "query_block=50,memory=" },
    { "image-local-1d", "memory=5,query_block=" },
    { "logsparse", "local=2,restart_mode=blocks,restart=" },
    { "longformer", "global=2,window=" },
    { "star", "window=" },
    { "bigbird", "random=0,window=3,global=0,block=" },
    { "pattern", "expr='window(5)+chunk" },
    { "pattern", "expr='stride(60)&window" },
    { "pattern", "expr='tile(60,window(3))&window" },
};

static void long_runs_hold(const char *id, const char *params)
{
    Fixture few = fixture_new(TOKENS), many = fixture_new(4 * TOKENS);
    Run    *r = fixture_run(&few, id, params, true), *whole;
    double  said = decode_held(r, 4 * TOKENS), held;

    whole = fixture_run(&many, id, params, true);
    held = figure_of(whole, "state_bytes");
    CHECK(said >= held && said <= held, "%s(%s): %g bytes, a run of as many tokens holds %g", id,
          params, said, held);
    fixture_free(&few);
    fixture_free(&many);
}

TEST(a_short_run_knows_what_long_ones_hold)
{
    static const int sizes[] = { TOKENS - 1, TOKENS, TOKENS + 1, 2 * TOKENS - 1, 2 * TOKENS + 1,
                                 2 * TOKENS + 2, 3 * TOKENS + 5, 5 * TOKENS, 1000000 };

    for (size_t c = 0; c < sizeof(far_rules) / sizeof(*far_rules); c++)
        for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
            const char *rule = far_rules[c][1];
            char        params[96];

            snprintf(params, sizeof(params), rule[strlen(rule) - 1] == '=' ? "%s%d" : "%s(%d)'",
                     rule, sizes[k]);
            long_runs_hold(far_rules[c][0], params);
        }
}

/* ---- keys that the content chooses ---------------------------------------------- */

/* Cells of the last row of a view, summed over heads. */
static int64_t last_cells(const Fixture *f, const char *name)
{
    Tensor  cells = fixture_view(f, name);
    int64_t rows = cells.shape[cells.rank - 2], keys = cells.shape[cells.rank - 1], count = 0;
    int64_t planes = tensor_count(&cells) / (rows * keys);

    for (int64_t h = 0; h < HEADS; h++)
        for (int64_t j = 0; j < keys; j++)
            count += tensor_u8(&cells)[((h % planes + 1) * rows - 1) * keys + j];
    return count;
}

/* Also without views, whose lists of cells are then not made. */
TEST(a_step_reads_the_keys_that_its_buckets_and_clusters_hold)
{
    static const char *const cases[][2] = {
        { "reformer", "block=8,rounds=2" }, { "reformer", "block=6,rounds=3,layout=joint" },
        { "routing", "" }, { "routing", "share_qk=false,n_clusters=3" },
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        Fixture f = fixture_new(TOKENS);
        Run    *r = fixture_run(&f, cases[c][0], cases[c][1], true);
        double  read = figure_of(r, "step_bytes"), flops = figure_of(r, "decode_flops");
        int64_t cells = last_cells(&f, "connectivity");

        CHECK(cells > 0 && read == (double)(CACHED * (KEY_SIZE + VALUE_SIZE) * cells),
              "%s(%s): reads %g bytes of %lld cells", cases[c][0], cases[c][1], read,
              (long long)cells);
        r = fixture_run_at(&f, cases[c][0], cases[c][1], true, false, 0);
        assert_true(figure_of(r, "step_bytes") == read && figure_of(r, "decode_flops") == flops);
        fixture_free(&f);
    }
}

TEST(a_step_of_two_levels_reads_both)
{
    Fixture f = fixture_new(TOKENS);
    Run    *r = fixture_run(&f, "poolingformer", "window=5,window2=13", true);
    int64_t cells = last_cells(&f, "connectivity_first") + last_cells(&f, "connectivity_pooled");

    assert_true(figure_of(r, "step_bytes") ==
                (double)(CACHED * (KEY_SIZE + VALUE_SIZE) * cells));
    fixture_free(&f);
}

/* By the first token of a block its sorted block is made; the others find it made. */
TEST(a_sorted_block_is_made_once)
{
    Fixture f = fixture_new(TOKENS);
    double  first = said_of(&f, &(Additive){ "sinkhorn", "block=8" }, 41).step;
    double  second = said_of(&f, &(Additive){ "sinkhorn", "block=8" }, 42).step;

    assert_true(first > second);
    fixture_free(&f);
}

/* The closed form of sparse-fixed against the rule of its cells, which knows one stride. */
TEST(a_fixed_stride_keeps_what_its_cells_say)
{
    static const char *const params[] = {
        "stride=6,summary=2", "stride=6,heads=split", "stride=7,summary=2,verts=3",
        "stride=6,heads=local", "stride=6,heads=summary", "stride=7,verts=2,heads=split", "",
    };

    for (size_t c = 0; c < sizeof(params) / sizeof(*params); c++) {
        Fixture f = fixture_new(TOKENS);
        double  token = CACHED * HEADS * (KEY_SIZE + VALUE_SIZE);
        Run    *r = fixture_run(&f, "sparse-fixed", params[c], true);
        double  kept = token * (double)pattern_kept(r->last.rule, TOKENS);

        CHECK(figure_of(r, "state_bytes") == kept, "%s: %g tokens, its cells say %g", params[c],
              figure_of(r, "state_bytes") / token, kept / token);
        CHECK(fabs(figure_of(r, "kv_bytes_per_token") - token * pattern_kept_share(r->last.rule)) <
                  1e-9, "%s: %g a token", params[c], figure_of(r, "kv_bytes_per_token"));
        fixture_free(&f);
    }
}

/* Heads of a group read each key once; a cached number may be of any size. */
TEST(groups_and_sizes_of_numbers_count)
{
    Fixture f = fixture_new(TOKENS);
    double  all;

    all = figure_of(fixture_run(&f, "full", "", true), "step_bytes");
    f.k.shape[0] = f.v.shape[0] = 1;
    assert_true(figure_of(fixture_run(&f, "full", "", true), "step_bytes") == all / HEADS);
    assert_true(figure_of(fixture_run(&f, "full", "cache_bytes=1", true), "state_bytes") ==
                all / HEADS / 2);
    assert_true(figure_of(fixture_run(&f, "pattern", "expr='window(5);window(9)'", true),
                          "step_bytes") == 5 * CACHED * (KEY_SIZE + VALUE_SIZE));
    fixture_free(&f);
}

/* A form that makes whole image rows at once has no cost of one token. */
TEST(figures_that_have_no_meaning_are_absent)
{
    Fixture f = fixture_new(TOKENS);
    Run    *r = fixture_run(&f, "axial", "width=8,causal_mode=shift", true);

    for (int i = 0; i < r->figure_count; i++)
        assert_true(strcmp(r->figures[i].name, "decode_flops") != 0);
    r = fixture_run(&f, "window", "", false);
    for (int i = 0; i < r->figure_count; i++)
        assert_true(strcmp(r->figures[i].name, "state_bytes") != 0);
    r = fixture_run(&f, "sinkhorn", "block=8,causal_norm=sinkhorn", true);
    for (int i = 0; i < r->figure_count; i++)
        assert_true(strcmp(r->figures[i].name, "step_bytes") != 0);
    fixture_free(&f);
}

SUITE(NULL, NULL)
