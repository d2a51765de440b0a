/* test_mech_mixer_errors.c -- inputs that mixers and adaptive spans refuse, with their messages. */
#include "mech_fixture.h"

typedef struct Refusal {
    const char *id, *params, *words;
} Refusal;

static void check_refusal(Fixture *f, const char *id, const char *params, bool causal,
                          const char *words)
{
    Run *r = fixture_run_at(f, id, params, causal, true, 0);

    if (r->err.code == ERR_NONE || !strstr(r->err.text, words))
        fail_msg("%s(%s): '%s' lacks '%s'", id, params, r->err.text, words);
}

TEST(numbers_that_cannot_be)
{
    static const Refusal cases[] = {
        { "mlp-mixer", "channel=6", "channel=6" },
        { "mlp-mixer", "ln_eps=0", "ln_eps" },
        { "mlp-mixer", "gelu=relu", "gelu" },
        { "gmlp", "d_ff=7", "7 is odd" },
        { "gmlp", "part=sgu,d_ff=8", "leave d_ff out" },
        { "lambda", "scope=4", "covers 4 positions" },
        { "lambda", "grid_h=5,grid_w=2", "is not n=12" },
        { "lambda", "grid_h=12", "is not n=12" },
        { "lambda", "depth_u=2", "k needs 10" },
        { "lambda", "heads=9", "without a channel" },
        { "poolformer", "pool_size=4", "pool_size=4 is even" },
        { "poolformer", "pool_size=0", "pool_size" },
        { "poolformer", "grid_h=5,grid_w=2", "is not n=12" },
        { "poolformer", "grid_w=12", "is not n=12" },
        { "lite", "attn_dim=6", "convolution without any" },
        { "lite", "heads=2", "heads=2 does not divide da=3" },
        { "lite", "conv_heads=2", "conv_heads=2 does not divide dc=3" },
        { "lite", "kernel_size=0", "kernel_size" },
        { "adaptive-span", "ramp=0", "ramp" },
        { "adaptive-span", "ramp=-1", "ramp" },
        { "adaptive-span", "ramp=nan", "ramp" },
        { "adaptive-span", "offset=2", "offset" },
        { "adaptive-span", "z=nan", "z" },
    };

    for (size_t x = 0; x < sizeof(cases) / sizeof(*cases); x++) {
        Fixture f = fixture_new_x(12);

        check_refusal(&f, cases[x].id, cases[x].params, false, cases[x].words);
        fixture_free(&f);
    }
}

TEST(tensors_that_do_not_fit)
{
    static const struct {
        Refusal     what;
        const char *tensor;
        int         rank;
        int64_t     shape[4];
    } cases[] = {
        { { "mlp-mixer", "", "9 tokens and the input has 12" }, "w1", 2, { 9, 5 } },
        { { "mlp-mixer", "", "9 tokens and the input has 12" }, "w2", 2, { 5, 9 } },
        { { "mlp-mixer", "", "9 tokens and the input has 12" }, "b2", 1, { 9 } },
        { { "mlp-mixer", "tokens_hidden=4", "says 5" }, "w1", 2, { 12, 5 } },
        { { "mlp-mixer", "", "expected shape [12,24]" }, "w1", 1, { 12 } },
        { { "gmlp", "", "7 is odd" }, "w_in", 2, { 6, 7 } },
        { { "gmlp", "", "9 tokens and the input has 12" }, "w_spatial", 2, { 9, 9 } },
        { { "gmlp", "tiny_attention=true", "w_qkv has 7 columns" }, "w_qkv", 2, { 6, 7 } },
        { { "lambda", "", "covers 4 positions" }, "pos", 3, { 4, 5, 1 } },
        { { "lambda", "scope=5", "leave scope out" }, "pos", 3, { 3, 5, 1 } },
        { { "lambda", "position=absolute", "expected shape [12,12,5,1]" },
          "pos", 4, { 12, 11, 5, 1 } },
        { { "lite", "kernel_size=3", "says 5" }, "kernel", 2, { 1, 5 } },
        { { "poolformer", "part=block", "expected shape [6]" }, "gn1_gamma", 1, { 5 } },
        { { "adaptive-span", "", "[P,5]" }, "pos", 2, { 3, 4 } },
        { { "adaptive-span", "mode=dynamic", "w_span" }, "w_span", 2, { 2, 5 } },
        { { "adaptive-span", "", "z" }, "z", 1, { 3 } },
    };

    for (size_t x = 0; x < sizeof(cases) / sizeof(*cases); x++) {
        Fixture f = fixture_new_x(12);

        fixture_fill(&f, cases[x].tensor, cases[x].rank, cases[x].shape, 0.5f);
        check_refusal(&f, cases[x].what.id, cases[x].what.params, false, cases[x].what.words);
        fixture_free(&f);
    }
}

TEST(what_cannot_be_causal)
{
    Fixture f = fixture_new_x(12);

    check_refusal(&f, "mlp-mixer", "", true, "full");
    check_refusal(&f, "poolformer", "part=block", true, "part=block");
    fixture_free(&f);
}

TEST(what_the_input_lacks_is_named)
{
    Fixture f = fixture_new(13);

    check_refusal(&f, "adaptive-span", "mode=dynamic", false, "layer input x");
    check_refusal(&f, "lambda", "heads=2", false, "holds no x");
    check_refusal(&f, "lite", "", false, "layer input x");
    f.q.data = f.k.data = NULL;
    check_refusal(&f, "lambda", "", false, "layer input x");
    fixture_free(&f);
}

TEST(sizes_of_the_input_that_do_not_fit)
{
    Fixture f = fixture_new_x(12), g = fixture_new(9);
    Tensor  v = f.v;

    f.k = g.k;
    f.v = g.v;
    check_refusal(&f, "lambda", "grid_h=3,grid_w=4", false, "9 keys and 12 queries");
    f.v = v;
    check_refusal(&f, "lambda", "", false, "of 9 positions");
    fixture_free(&f);
    fixture_free(&g);
}

SUITE(NULL, NULL)
