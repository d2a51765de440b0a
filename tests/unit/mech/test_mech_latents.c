/* test_mech_latents.c -- attention through latents, inducing points, learned tokens and pooled
 * queries: equal to exact attention where nothing is lost, to each other where the papers
 * agree, and their own promises. */
#include "mech_fixture.h"

#define WIDTH 6 /* of the layer input */

static const int64_t lengths[] = { 1, 2, 13, 16 };
#define LENGTHS (sizeof(lengths) / sizeof(*lengths))
#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static Tensor normal(Fixture *f, const char *name, int rank, const int64_t *shape)
{
    Rng    rng = rng_named(11, name);
    Tensor t = tensor_new(f->arena, DT_F32, rank, shape);

    assert_non_null(t.data);
    rng_fill_normal(&rng, t.data, tensor_count(&t), 0.5);
    return t;
}

static Tensor matrix(Fixture *f, const char *name, int64_t rows, int64_t cols)
{
    return normal(f, name, 2, (int64_t[]){ rows, cols });
}

/* Values of the keys' size: latents that read again are scored against keys. */
static Fixture fixture_square(int64_t n)
{
    Fixture f = fixture_new(n);

    f.v = fixture_normal(&f, "v", KEY_SIZE);
    return f;
}

static Fixture fixture_of_x(int64_t n)
{
    Fixture f = fixture_new(n);

    f.x = matrix(&f, "x", n, WIDTH);
    return f;
}

/* output = weights @ values, whatever the output's rows are. */
static void check_rows(const Fixture *f, Tensor values)
{
    Tensor  weights = fixture_view(f, "weights"), out = f->run->out;
    int64_t rows = out.shape[1], e = out.shape[2], m = weights.shape[2];

    assert_int_equal(weights.shape[0], out.shape[0]);
    assert_int_equal(weights.shape[1], rows);
    assert_int_equal(tensor_count(&values), out.shape[0] * m * e);
    for (int64_t x = 0; x < tensor_count(&out); x++) {
        int64_t row = x / e, head = row / rows;
        double  sum = 0;

        for (int64_t j = 0; j < m; j++)
            sum += (double)tensor_f32(&weights)[row * m + j] *
                   (double)tensor_f32(&values)[(head * m + j) * e + x % e];
        if (!(fabs(sum - (double)tensor_f32(&out)[x]) <= 1e-5 * fmax(1, fabs(sum))))
            fail_msg("row %d of %s: weights give %.9g", (int)row, f->run->mechanism->id, sum);
    }
}

static void check_sums(const Fixture *f, const char *name, double want)
{
    Tensor  t = fixture_view(f, name);
    int64_t cols = t.shape[t.rank - 1];

    for (int64_t row = 0; row < tensor_count(&t) / cols; row++) {
        double sum = 0;

        for (int64_t j = 0; j < cols; j++)
            sum += (double)tensor_f32(&t)[row * cols + j];
        if (!(fabs(sum - want) <= 1e-5))
            fail_msg("row %d of %s sums to %.9g", (int)row, name, sum);
    }
}

static void check_equals(Fixture *f, const char *id, const char *params, const char *other,
                         const char *others, bool causal, double tolerance)
{
    float *first;

    fixture_run(f, id, params, causal);
    first = fixture_output(f);
    f->tensor_count = 0;
    fixture_run(f, other, others, causal);
    check_near(tensor_f32(&f->run->out), first, tensor_count(&f->run->out), tolerance);
    free(first);
}

/* ---- luna ------------------------------------------------------------------- */

static const char *const lunas[] = {
    "", "n_p=1", "n_p=3,scale=0.3", "n_p=20", "n_p=2,activation=softplus",
    "n_p=4,activation=softplus,softplus_beta=2",
};

TEST(luna_is_bare_induced_attention)
{
    for (size_t i = 0; i < LENGTHS; i++) {
        Fixture f = fixture_new(lengths[i]);
        Tensor  p = fixture_draw(&f, "p", HEADS, 4, KEY_SIZE), weights;
        float  *out;

        fixture_run(&f, "luna", "", false);
        out = fixture_output(&f);
        weights = fixture_view(&f, "weights");
        f.tensor_count = 0;
        fixture_give(&f, "inducing", p);
        fixture_run(&f, "set-isab", "mab=core", false);
        check_near(tensor_f32(&f.run->out), out, tensor_count(&f.run->out), 0);
        p = fixture_view(&f, "weights");
        check_near(tensor_f32(&p), tensor_f32(&weights), tensor_count(&p), 0);
        free(out);
        fixture_free(&f);
    }
}

TEST(lunas_weights_are_of_two_strips)
{
    for (size_t i = 0; i < COUNT(lunas) * LENGTHS; i++) {
        Fixture f = fixture_new(lengths[i % LENGTHS]);

        fixture_run(&f, "luna", lunas[i / LENGTHS], false);
        check_weights(&f);
        check_flops(&f);
        check_sums(&f, "weights", 1);
        check_sums(&f, "factor_left", 1);
        check_sums(&f, "factor_right", 1);
        fixture_run(&f, "luna", lunas[i / LENGTHS], true);
        check_weights(&f);
        check_flops(&f);
        check_sums(&f, "factor_left", 1);
        fixture_free(&f);
    }
}

TEST(causal_luna_looks_back_only)
{
    for (size_t i = 0; i < COUNT(lunas); i++) {
        Fixture f = fixture_new(13);

        check_causal(&f, "luna", lunas[i], 6);
        fixture_free(&f);
    }
}

/* Sums go chunk by chunk: beyond one chunk, too, a prefix gives what a run of the prefix gives. */
TEST(causal_lunas_prefixes_are_runs)
{
    Fixture f = fixture_new(600);
    int64_t head = f.n * KEY_SIZE;
    float  *all;

    fixture_draw(&f, "p", 1, 3, KEY_SIZE);
    fixture_run(&f, "luna", "", true);
    all = fixture_output(&f);
    check_weights(&f);
    f.q = tensor_rows(f.q, 0, 300);
    f.k = tensor_rows(f.k, 0, 300);
    f.v = tensor_rows(f.v, 0, 300);
    f.q.shape[0] = f.k.shape[0] = f.v.shape[0] = 1; /* the first head: contiguous */
    assert_true(f.q.stride[0] == head);
    fixture_run(&f, "luna", "", true);
    check_near(tensor_f32(&f.run->out), all, 300 * VALUE_SIZE, 0);
    free(all);
    fixture_free(&f);
}

TEST(one_slot_gives_equal_rows)
{
    Fixture f = fixture_new(13);

    fixture_run(&f, "luna", "n_p=1", false);
    for (int64_t row = 0; row < HEADS * f.n; row++)
        check_near(tensor_f32(&f.run->out) + row * VALUE_SIZE,
                   tensor_f32(&f.run->out) + row / f.n * f.n * VALUE_SIZE, VALUE_SIZE, 1e-6);
    fixture_free(&f);
}

TEST(lunas_tensors_are_checked)
{
    Fixture f = fixture_new(7);

    check_fails(&f, "luna", "unpack_keys=packed_v", false, "must be equal");
    fixture_draw(&f, "p", HEADS, 4, KEY_SIZE + 1);
    check_fails(&f, "luna", "", false, "[2,4,5]");
    f.tensor_count = 0;
    fixture_draw(&f, "k_pack", HEADS, 6, KEY_SIZE);
    check_fails(&f, "luna", "", false, "[2,7,5]");
    fixture_free(&f);
    f = fixture_square(7);
    fixture_run(&f, "luna", "unpack_keys=packed_v,n_p=3", false);
    check_rows(&f, f.v);
    check_flops(&f);
    fixture_run(&f, "luna", "unpack_keys=packed_v,n_p=3", true);
    check_rows(&f, f.v);
    check_flops(&f);
    fixture_free(&f);
}

/* softmax(scale from to^T) @ values in double: rows of `from`, head by head. */
static void read_dense(const double *from, const double *to, const double *values, int64_t rows,
                       int64_t keys, int64_t width, double scale, double *out)
{
    for (int64_t i = 0; i < rows; i++) {
        double logit[16], top = -INFINITY, sum = 0;

        for (int64_t j = 0; j < keys; j++) {
            logit[j] = 0;
            for (int64_t c = 0; c < KEY_SIZE; c++)
                logit[j] += scale * from[i * KEY_SIZE + c] * to[j * KEY_SIZE + c];
            top = fmax(top, logit[j]);
        }
        for (int64_t j = 0; j < keys; j++)
            sum += logit[j] = exp(logit[j] - top);
        for (int64_t c = 0; c < width; c++) {
            out[i * width + c] = 0;
            for (int64_t j = 0; j < keys; j++)
                out[i * width + c] += logit[j] / sum * values[j * width + c];
        }
    }
}

static void to_double(const float *from, int64_t count, double *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (double)from[i];
}

/* There and back with packed keys: one head of the output and of the memory, in double. */
static void check_nested(const Fixture *f, Tensor latents, int64_t head, double scale)
{
    double p[4 * KEY_SIZE], q[16 * KEY_SIZE], k[16 * KEY_SIZE], v[16 * VALUE_SIZE];
    double keys[4 * KEY_SIZE], memory[4 * VALUE_SIZE], out[16 * VALUE_SIZE];
    Tensor seen = fixture_view(f, "memory");

    to_double(tensor_f32(&latents) + head * 4 * KEY_SIZE, 4 * KEY_SIZE, p);
    to_double(tensor_f32(&f->q) + head * f->n * KEY_SIZE, f->n * KEY_SIZE, q);
    to_double(tensor_f32(&f->k) + head * f->n * KEY_SIZE, f->n * KEY_SIZE, k);
    to_double(tensor_f32(&f->v) + head * f->n * VALUE_SIZE, f->n * VALUE_SIZE, v);
    read_dense(p, k, v, 4, f->n, VALUE_SIZE, scale, memory);
    read_dense(p, k, k, 4, f->n, KEY_SIZE, scale, keys);
    to_double(tensor_f32(&seen) + head * 4 * VALUE_SIZE, 4 * VALUE_SIZE, out);
    for (int64_t x = 0; x < 4 * VALUE_SIZE; x++)
        assert_true(fabs(out[x] - memory[x]) <= 2e-7 * fmax(1, fabs(memory[x])));
    read_dense(q, keys, memory, f->n, 4, VALUE_SIZE, scale, out);
    for (int64_t x = 0; x < f->n * VALUE_SIZE; x++) {
        double got = (double)tensor_f32(&f->run->out)[head * f->n * VALUE_SIZE + x];

        if (!(fabs(got - out[x]) <= 1e-5 * fmax(1, fabs(out[x]))))
            fail_msg("head %d, entry %d: %.9g, want %.9g", (int)head, (int)x, got, out[x]);
    }
}

/* Long keys: the packing is repeated in double, values and keys beside each other. */
TEST(packed_keys_of_long_keys_are_exact)
{
    for (size_t i = 0; i < LENGTHS; i++) {
        Fixture f = fixture_new(lengths[i]);
        Tensor  p = fixture_draw(&f, "inducing", HEADS, 4, KEY_SIZE);
        Flops   gentle;

        fixture_run(&f, "set-isab", "mab=core,scale=0.5", false);
        gentle = run_flops(f.run);
        for (int64_t x = 0; x < tensor_count(&f.k); x++)
            tensor_f32(&f.k)[x] *= 600;
        for (int64_t x = 0; x < tensor_count(&f.q); x++)
            tensor_f32(&f.q)[x] /= 600;
        fixture_run(&f, "set-isab", "mab=core,scale=0.5", false);
        for (int64_t head = 0; head < HEADS; head++)
            check_nested(&f, p, head, 0.5);
        check_flops(&f);
        assert_true(flops_total(run_flops(f.run)) == flops_total(gentle));
        check_weights(&f);
        fixture_free(&f);
    }
}

/* ---- perceiver -------------------------------------------------------------- */

TEST(latents_that_are_the_queries_are_exact_attention)
{
    for (size_t i = 0; i < LENGTHS; i++) {
        Fixture f = fixture_new(lengths[i]);

        fixture_give(&f, "latents", f.q);
        check_equals(&f, "perceiver", "", "full", "", false, 1e-5);
        check_equals(&f, "perceiver", "n_latents=16", "full", "", true, 1e-5);
        fixture_free(&f);
    }
}

TEST(perceivers_weights_pass_all_layers)
{
    static const char *const params[] = {
        "n_latents=3", "n_latents=3,latent_layers=2", "n_latents=20,blocks=3,latent_layers=1",
        "n_latents=4,decode=query", "n_latents=4,blocks=2,latent_layers=1,decode=query,scale=0.4",
    };

    for (size_t i = 0; i < COUNT(params) * LENGTHS; i++) {
        Fixture f = fixture_square(lengths[i % LENGTHS]);

        fixture_run(&f, "perceiver", params[i / LENGTHS], false);
        check_rows(&f, f.v);
        check_flops(&f);
        check_sums(&f, "weights", 1);
        if (i / LENGTHS < 2) {
            fixture_run(&f, "perceiver", params[i / LENGTHS], true);
            check_rows(&f, f.v);
            check_flops(&f);
        }
        fixture_free(&f);
    }
}

TEST(a_residual_leaves_no_weights)
{
    Fixture f = fixture_square(7);

    fixture_run(&f, "perceiver", "n_latents=3,residual=true,latent_layers=1", false);
    assert_null(run_view(f.run, "weights"));
    assert_non_null(run_view(f.run, "factor_right"));
    fixture_free(&f);
}

TEST(what_perceivers_cannot_do_is_said)
{
    static const char *const again[] = { "residual=true", "latent_layers=1", "blocks=2",
                                         "decode=query" };
    Fixture f = fixture_new(7);

    for (size_t i = 0; i < COUNT(again); i++)
        check_fails(&f, "perceiver", again[i], false, "d=5");
    fixture_free(&f);
    f = fixture_square(7);
    check_fails(&f, "perceiver", "blocks=2", true, "blocks=1");
    check_fails(&f, "perceiver", "decode=query", true, "decode=none");
    fixture_free(&f);
}

/* ---- set-isab --------------------------------------------------------------- */

static const char *const blocks[] = {
    "heads=1", "heads=3,n_inducing=2", "heads=2,layer_norm=true,ff=false", "heads=3,dim=9,scale=1",
    "heads=2,mab=paper,n_inducing=5", "heads=1,mab=paper,layer_norm=false,ff=false",
};

TEST(blocks_flow_but_have_no_weights)
{
    for (size_t i = 0; i < COUNT(blocks) * LENGTHS; i++) {
        Fixture f = fixture_of_x(lengths[i % LENGTHS]);

        fixture_run(&f, "set-isab", blocks[i / LENGTHS], false);
        assert_true(f.run->of_x);
        assert_null(run_view(f.run, "weights"));
        assert_int_equal(run_view(f.run, "flow")->kind, VIEW_FLOW);
        check_sums(&f, "flow", 1);
        check_sums(&f, "factor_left", 1);
        check_sums(&f, "factor_right", 1);
        check_flops(&f);
        fixture_free(&f);
    }
}

static void turn_rows(Tensor x)
{
    int64_t n = x.shape[0], width = x.shape[1];

    for (int64_t i = 0; i < n / 2; i++)
        for (int64_t c = 0; c < width; c++) {
            float *a = tensor_f32(&x) + i * width + c;
            float *b = tensor_f32(&x) + (n - 1 - i) * width + c, kept = *a;

            *a = *b;
            *b = kept;
        }
}

/* A copy of a view's numbers that outlives the run. */
static Tensor kept(Fixture *f, const char *name)
{
    Tensor view = fixture_view(f, name), t = tensor_new(f->arena, DT_F32, view.rank, view.shape);

    assert_non_null(t.data);
    memcpy(t.data, view.data, (size_t)tensor_bytes(&view));
    return t;
}

/* Permuted tokens permute the rows and leave the pooled set unchanged. */
TEST(sets_have_no_order)
{
    for (size_t i = 0; i < COUNT(blocks); i++) {
        Fixture f = fixture_of_x(13);
        Tensor  out, pooled, again;

        fixture_give(&f, "seeds", matrix(&f, "seeds", 3, strstr(blocks[i], "dim=9") ? 9 : WIDTH));
        fixture_run(&f, "set-isab", blocks[i], false);
        check_flops(&f);
        check_sums(&f, "pooling_weights", 1);
        out = kept(&f, "output");
        pooled = kept(&f, "pooled");
        turn_rows(f.x);
        fixture_run(&f, "set-isab", blocks[i], false);
        again = fixture_view(&f, "pooled");
        check_near(tensor_f32(&again), tensor_f32(&pooled), tensor_count(&pooled), 2e-6);
        again = tensor_with_rank(f.run->out, 3);
        turn_rows((Tensor){ .data = again.data, .rank = 2, .dtype = DT_F32,
                            .shape = { again.shape[1], again.shape[2] } });
        check_near(tensor_f32(&again), tensor_f32(&out), tensor_count(&out), 2e-6);
        fixture_free(&f);
    }
}

/* One point and one token weigh 1, so the official block is its layers alone. */
TEST(one_token_and_one_point_by_hand)
{
    Fixture f = fixture_of_x(1);
    Tensor  points, wq, wv, memory;

    fixture_run(&f, "set-isab", "heads=2,n_inducing=1,ff=false", false);
    points = fixture_view(&f, "inducing");
    wq = fixture_view(&f, "wq_0");
    wv = fixture_view(&f, "wv_0");
    memory = fixture_view(&f, "memory");
    for (int64_t c = 0; c < WIDTH; c++) {
        double sum = 0;

        for (int64_t a = 0; a < WIDTH; a++)
            sum += (double)tensor_f32(&points)[a] * (double)tensor_f32(&wq)[a * WIDTH + c] +
                   (double)tensor_f32(&f.x)[a] * (double)tensor_f32(&wv)[a * WIDTH + c];
        assert_true(fabs(sum - (double)tensor_f32(&memory)[c]) <= 1e-6);
    }
    fixture_free(&f);
}

TEST(the_bare_attention_reads_q_k_and_v)
{
    for (size_t i = 0; i < LENGTHS; i++) {
        Fixture f = fixture_of_x(lengths[i]);

        fixture_run(&f, "set-isab", "mab=core,n_inducing=3", false);
        assert_false(f.run->of_x);
        check_weights(&f);
        check_flops(&f);
        f.x = (Tensor){ .rank = 0 };
        fixture_run(&f, "set-isab", "n_inducing=3,scale=0.2", false);
        check_weights(&f);
        check_flops(&f);
        fixture_free(&f);
    }
}

TEST(blocks_are_checked)
{
    Fixture f = fixture_of_x(7);

    check_fails(&f, "set-isab", "", false, "multiple of heads");
    check_fails(&f, "set-isab", "heads=2,dim=8,mab=paper", false, "width of x, 6");
    fixture_give(&f, "seeds", matrix(&f, "seeds", 2, 5));
    check_fails(&f, "set-isab", "heads=2,dim=8", false, "dim=8");
    check_fails(&f, "set-isab", "mab=core", false, "seeds");
    f.tensor_count = 0;
    fixture_draw(&f, "inducing", HEADS, 4, WIDTH);
    check_fails(&f, "set-isab", "heads=2", false, "[4,6]");
    f.tensor_count = 0;
    f.x = (Tensor){ .rank = 0 };
    check_fails(&f, "set-isab", "mab=official", false, "layer input x");
    check_fails(&f, "set-isab", "", true, "no causal form");
    fixture_free(&f);
}

/* ---- tokenlearner ----------------------------------------------------------- */

static const char *const maps[] = {
    "", "n_tokens=1", "n_tokens=20,bottleneck=3", "n_tokens=3,variant=v10",
    "n_tokens=3,variant=v10,pool=mean",
};

/* "maps,more", with the one-row image that v10 needs */
static const char *with_grid(const char *params, const char *more, int64_t n, char text[128])
{
    snprintf(text, 128, "%s%s%s", params, *params && *more ? "," : "", more);
    if (strstr(params, "v10"))
        snprintf(text + strlen(text), 128 - strlen(text), ",grid_h=1,grid_w=%d", (int)n);
    return text;
}

TEST(learned_tokens_are_weighed_sums_of_x)
{
    char text[128];

    for (size_t i = 0; i < COUNT(maps) * LENGTHS; i++) {
        const char *params = maps[i / LENGTHS];
        Fixture     f = fixture_of_x(lengths[i % LENGTHS]);

        fixture_run(&f, "tokenlearner", with_grid(params, "", f.n, text), false);
        check_rows(&f, tensor_with_rank(f.x, 3));
        check_flops(&f);
        if (!strstr(params, "v10"))
            check_sums(&f, "weights", 1);
        fixture_free(&f);
    }
}

TEST(fused_tokens_weigh_x_where_that_is_linear)
{
    char text[128];

    for (size_t i = 0; i < COUNT(maps) * LENGTHS; i++) {
        Fixture f = fixture_of_x(lengths[i % LENGTHS]);
        float  *plain;

        with_grid(maps[i / LENGTHS], "fuse=true,fuse_norm=false,fuse_residual=false", f.n, text);
        fixture_run(&f, "tokenlearner", text, false);
        check_rows(&f, tensor_with_rank(f.x, 3));
        check_flops(&f);
        plain = fixture_output(&f);
        with_grid(maps[i / LENGTHS], "fuse=true,fuse_norm=false", f.n, text);
        fixture_run(&f, "tokenlearner", text, false);
        assert_null(run_view(f.run, "weights"));
        for (int64_t x = 0; x < f.n * WIDTH; x++)
            plain[x] += tensor_f32(&f.x)[x];
        check_near(tensor_f32(&f.run->out), plain, f.n * WIDTH, 1e-6);
        free(plain);
        with_grid(maps[i / LENGTHS], "fuse=true", f.n, text);
        fixture_run(&f, "tokenlearner", text, false);
        check_flops(&f);
        fixture_free(&f);
    }
}

TEST(a_bias_leaves_no_weights)
{
    const char *params = "n_tokens=3,fuse=true,fuse_norm=false,fuse_residual=false";
    Fixture     f = fixture_of_x(7);
    Tensor      bias = normal(&f, "fuse_bias", 1, (int64_t[]){ 3 });

    fixture_give(&f, "fuse_bias", bias);
    fixture_run(&f, "tokenlearner", params, false);
    assert_null(run_view(f.run, "weights"));
    memset(bias.data, 0, (size_t)tensor_bytes(&bias));
    fixture_run(&f, "tokenlearner", params, false);
    check_rows(&f, tensor_with_rank(f.x, 3));
    fixture_free(&f);
}

static void give_taps(Fixture *f, bool centre_only)
{
    static const char *const names[] = { "conv1", "conv2", "conv3", "conv4" };

    for (int c = 0; c < 4; c++) {
        int64_t in = c ? 3 : WIDTH;
        Tensor  t = normal(f, names[c], 4, (int64_t[]){ 3, 3, in, 3 });

        for (int64_t x = 0; x < tensor_count(&t) && centre_only; x++)
            tensor_f32(&t)[x] *= x / (3 * in) == 4;
        fixture_give(f, names[c], t);
    }
}

/* Taps at the centre alone see one pixel: how the image is cut does not matter.  With all of
 * them it does. */
TEST(convolutions_see_their_neighbours)
{
    static const char *const grids[] = { "variant=v10,grid_h=3,grid_w=4",
                                         "variant=v10,grid_h=6,grid_w=2" };
    Fixture f = fixture_of_x(12);
    double  largest = 0;
    float  *out;

    give_taps(&f, true);
    fixture_run(&f, "tokenlearner", grids[0], false);
    out = fixture_output(&f);
    fixture_run(&f, "tokenlearner", grids[1], false);
    check_near(tensor_f32(&f.run->out), out, tensor_count(&f.run->out), 0);
    free(out);
    f.tensor_count = 0;
    give_taps(&f, false);
    fixture_run(&f, "tokenlearner", grids[0], false);
    out = fixture_output(&f);
    fixture_run(&f, "tokenlearner", grids[1], false);
    for (int64_t x = 0; x < tensor_count(&f.run->out); x++)
        largest = fmax(largest, fabs((double)out[x] - (double)tensor_f32(&f.run->out)[x]));
    assert_true(largest > 1e-2);
    free(out);
    fixture_free(&f);
}

TEST(maps_are_shown_as_images)
{
    Fixture f = fixture_of_x(12);
    Tensor  images, strips;

    fixture_run(&f, "tokenlearner", "n_tokens=3,grid_h=3,grid_w=4", false);
    images = fixture_view(&f, "images");
    strips = fixture_view(&f, "factor_right");
    assert_int_equal(images.shape[0], 3);
    assert_int_equal(images.shape[1], 3 * 4);
    for (int64_t token = 0; token < 3; token++)
        for (int64_t i = 0; i < 12; i++)
            check_near(&tensor_f32(&images)[(i / 4 * 3 + token) * 4 + i % 4],
                       &tensor_f32(&strips)[token * 12 + i], 1, 0);
    fixture_run(&f, "tokenlearner", "n_tokens=3", false);
    assert_null(run_view(f.run, "images"));
    fixture_free(&f);
}

TEST(tokenlearners_tensors_are_checked)
{
    Fixture f = fixture_of_x(12);

    check_fails(&f, "tokenlearner", "variant=v10", false, "grid_h");
    check_fails(&f, "tokenlearner", "variant=v10,grid_h=3,grid_w=5", false, "n=12");
    check_fails(&f, "tokenlearner", "", true, "no causal form");
    fixture_give(&f, "w1", matrix(&f, "w1", WIDTH + 1, 3));
    check_fails(&f, "tokenlearner", "", false, "[6,3]");
    f.tensor_count = 0;
    fixture_give(&f, "w2", matrix(&f, "w2", 5, 3)); /* says how many tokens and hidden units */
    fixture_run(&f, "tokenlearner", "n_tokens=9", false);
    assert_int_equal(f.run->out.shape[1], 3);
    fixture_give(&f, "fuse_mix", matrix(&f, "fuse_mix", 4, 4));
    check_fails(&f, "tokenlearner", "fuse=true", false, "[3,3]");
    f.x = (Tensor){ .rank = 0 };
    check_fails(&f, "tokenlearner", "", false, "layer input x");
    fixture_free(&f);
}

/* ---- funnel ----------------------------------------------------------------- */

static const char *const funnels[] = {
    "", "stride=3", "stride=40", "stride=4,pool_q_only=false", "stride=3,pooling=max",
    "stride=3,separate_cls=true", "stride=5,separate_cls=true,truncate_seq=true",
    "stride=3,separate_cls=true,truncate_seq=true,pool_q_only=false,scale=0.3",
    "stride=40,separate_cls=true,truncate_seq=true,pool_q_only=false",
};

TEST(windows_of_one_token_are_exact_attention)
{
    static const char *const params[] = {
        "stride=1", "stride=1,pooling=max,pool_q_only=false", "stride=1,upsample=false",
        "stride=1,separate_cls=true,truncate_seq=true,pool_q_only=false",
    };

    for (size_t i = 0; i < COUNT(params) * LENGTHS; i++) {
        Fixture f = fixture_new(lengths[i % LENGTHS]);

        check_equals(&f, "funnel", params[i / LENGTHS], "full", "", false, 1e-6);
        fixture_free(&f);
    }
}

TEST(funnels_weights_are_whole)
{
    char text[128];

    for (size_t i = 0; i < COUNT(funnels) * LENGTHS; i++) {
        Fixture f = fixture_new(lengths[i % LENGTHS]);

        fixture_run(&f, "funnel", funnels[i / LENGTHS], false);
        check_weights(&f);
        check_flops(&f);
        check_sums(&f, "factor_right", 1);
        snprintf(text, sizeof(text), "%s%supsample=false", funnels[i / LENGTHS],
                 *funnels[i / LENGTHS] ? "," : "");
        fixture_run(&f, "funnel", text, false);
        check_rows(&f, f.v);
        check_flops(&f);
        check_sums(&f, "weights", 1);
        fixture_free(&f);
    }
}

TEST(tokens_of_a_window_get_its_row)
{
    Fixture f = fixture_new(13);
    Tensor  rows;

    fixture_run(&f, "funnel", "stride=4,separate_cls=true", false);
    rows = fixture_view(&f, "pooled_output");
    assert_int_equal(rows.shape[1], 4); /* 0, 1-4, 5-8, 9-12 */
    for (int64_t x = 0; x < HEADS * f.n; x++) {
        int64_t head = x / f.n, i = x % f.n, window = i ? 1 + (i - 1) / 4 : 0;

        check_near(tensor_f32(&f.run->out) + x * VALUE_SIZE,
                   tensor_f32(&rows) + (head * 4 + window) * VALUE_SIZE, VALUE_SIZE, 0);
    }
    fixture_free(&f);
}

/* 16 tokens by 4 with a first one apart: 13 are pooled (0, 1-4, 5-8, 9-12); the last three
 * tokens find no window, and with pooled keys nobody sees them. */
TEST(a_truncated_tail_is_empty)
{
    Fixture f = fixture_new(16);
    Tensor  cells;

    fixture_run(&f, "funnel", "stride=4,separate_cls=true,truncate_seq=true,pool_q_only=false",
                false);
    cells = fixture_view(&f, "connectivity");
    for (int64_t x = 0; x < 16 * 16; x++)
        assert_int_equal(tensor_u8(&cells)[x], x / 16 < 13 && x % 16 < 13);
    for (int64_t x = 13 * VALUE_SIZE; x < 16 * VALUE_SIZE; x++)
        assert_true(tensor_f32(&f.run->out)[x] == 0);
    fixture_free(&f);
}

TEST(values_pooled_by_max_have_no_weights)
{
    Fixture f = fixture_new(13);

    fixture_run(&f, "funnel", "stride=3,pooling=max,pool_q_only=false", false);
    assert_null(run_view(f.run, "weights"));
    assert_non_null(run_view(f.run, "factor_right"));
    check_flops(&f);
    check_fails(&f, "funnel", "", true, "no causal form");
    fixture_free(&f);
}

/* ---- all -------------------------------------------------------------------- */

/* One head of keys and values for all queries is that head repeated. */
TEST(shared_heads_are_repeated_heads)
{
    static const struct { const char *id, *params; } runs[] = {
        { "luna", "n_p=3" }, { "set-isab", "mab=core,n_inducing=3" },
        { "perceiver", "n_latents=3" }, { "funnel", "stride=3,pool_q_only=false" },
        { "funnel", "stride=3" },
    };

    for (size_t i = 0; i < COUNT(runs); i++) {
        Fixture f = fixture_new(13);
        float  *out;

        memcpy(tensor_f32(&f.k) + 13 * KEY_SIZE, f.k.data, 13 * KEY_SIZE * sizeof(float));
        memcpy(tensor_f32(&f.v) + 13 * VALUE_SIZE, f.v.data, 13 * VALUE_SIZE * sizeof(float));
        fixture_run(&f, runs[i].id, runs[i].params, false);
        out = fixture_output(&f);
        f.k.shape[0] = f.v.shape[0] = 1;
        fixture_run(&f, runs[i].id, runs[i].params, false);
        check_near(tensor_f32(&f.run->out), out, tensor_count(&f.run->out), 0);
        check_flops(&f);
        free(out);
        fixture_free(&f);
    }
}

#define LATENT_COPY 20 /* tokens; as many as a token has numbers, or more */

/* Entry x of t [h,n,w] repeated `times` along its tokens. */
static float repeated_entry(const Tensor *t, int64_t x, int64_t times)
{
    int64_t n = t->shape[1], w = t->shape[2], row = x / w;

    return tensor_f32(t)[(row / (times * n) * n + row % n) * w + x % w];
}

static Tensor repeated(Fixture *f, Tensor t, int64_t times)
{
    int64_t shape[3] = { t.shape[0], times * t.shape[1], t.shape[2] };
    Tensor  y = tensor_new(f->arena, DT_F32, 3, shape);

    assert_non_null(y.data);
    for (int64_t x = 0; x < tensor_count(&y); x++)
        tensor_f32(&y)[x] = repeated_entry(&t, x, times);
    return y;
}

/* Eight times the same tokens: singular values grow by sqrt(8), and a row attends as before.  Long
 * matrices have theirs from squares, short ones from the matrix itself. */
TEST(mla_of_repeated_tokens_is_that_of_one_copy)
{
    Fixture f = fixture_new(LATENT_COPY), many = fixture_new(8 * LATENT_COPY);
    Tensor  few, all;

    many.q = repeated(&many, f.q, 8);
    many.k = repeated(&many, f.k, 8);
    many.v = repeated(&many, f.v, 8);
    fixture_run(&f, "mla", "rank=5", false);
    fixture_run(&many, "mla", "rank=5", false);
    few = fixture_view(&f, "singular_values");
    all = fixture_view(&many, "singular_values");
    assert_int_equal(tensor_count(&few), tensor_count(&all));
    for (int64_t t = 0; t < tensor_count(&few); t++)
        assert_true(fabs((double)tensor_f32(&all)[t] / sqrt(8) -
                         (double)tensor_f32(&few)[t]) <= 1e-5);
    for (int64_t x = 0; x < tensor_count(&many.run->out); x++)
        assert_true(fabs((double)tensor_f32(&many.run->out)[x] -
                         (double)repeated_entry(&f.run->out, x, 8)) <= 1e-5);
    fixture_free(&many);
    fixture_free(&f);
}

TEST(no_memory_is_an_ordinary_error)
{
    Fixture f = fixture_of_x(12);

    check_out_of_memory(&f, "luna", "n_p=3");
    check_out_of_memory(&f, "perceiver", "n_latents=3");
    check_out_of_memory(&f, "set-isab", "mab=core");
    check_out_of_memory(&f, "funnel", "pool_q_only=false");
    check_out_of_memory(&f, "tokenlearner", "fuse=true");
    check_out_of_memory(&f, "tokenlearner", "variant=v10,pool=mean,grid_h=3,grid_w=4");
    fixture_give(&f, "seeds", matrix(&f, "seeds", 2, WIDTH));
    check_out_of_memory(&f, "set-isab", "heads=2,mab=paper");
    fixture_free(&f);
}

SUITE(NULL, NULL)
