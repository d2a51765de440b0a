/* test_gpu_calls.c -- what the host asks of a device, with calls that note it and do nothing. */
#include "unit/gpu_fixture.h"

static struct {
    int     waits, packs;
    int64_t pieces, rows; /* of the last product; of the largest */
} noted;

static int note_wait(void)
{
    noted.waits++;
    return 0;
}

static int note_pack(const PackCall *call)
{
    (void)call;
    noted.packs++;
    return 0;
}

static int note_product(const GemmCall *call)
{
    noted.pieces = call->pieces;
    noted.rows = max_i64(noted.rows, call->rows);
    return 0;
}

static int ignore_sum(const GemmSumCall *call)
{
    (void)call;
    return 0;
}

static int ignore_ceiling(const CeilingCall *call)
{
    (void)call;
    return 0;
}

typedef struct Noting {
    GpuFixture       f;
    DeviceApi        api;
    const DeviceApi *own;
} Noting;

static void noting_begin(Noting *n, Arithmetic arithmetic)
{
    n->f = gpu_fixture_new(2, 1);
    n->own = n->f.device->api;
    n->api = *n->own;
    n->api.finish = note_wait;
    n->api.pack = note_pack;
    n->api.gemm = note_product;
    n->api.gemm_sum = ignore_sum;
    n->api.ceiling = ignore_ceiling;
    n->f.device->api = &n->api;
    n->f.gpu.run->ops = device_ops(n->f.device, arithmetic);
    memset(&noted, 0, sizeof(noted));
}

static void noting_end(Noting *n)
{
    n->f.device->api = n->own;
    gpu_fixture_free(&n->f);
}

/* Work runs on only where that way is taken, no view is made, and nothing has failed. */
TEST(who_waits)
{
    static const struct {
        GpuAhead ahead;
        bool     views, failed;
        int      waits;
    } cases[] = {
        { AHEAD_WORK, false, false, 0 }, { AHEAD_WORK, true, false, 1 },
        { AHEAD_WORK, false, true, 1 },  { AHEAD_NOT, false, false, 1 },
        { AHEAD_NOT, true, false, 1 },
    };

    for (size_t x = 0; x < sizeof(cases) / sizeof(*cases); x++) {
        Noting   n;
        Run     *r;
        GpuAhead was;

        noting_begin(&n, ARITHMETIC_F32);
        r = n.f.gpu.run;
        was = n.f.device->ahead;
        n.f.device->ahead = cases[x].ahead;
        r->spec.views = cases[x].views;
        if (cases[x].failed)
            run_fail(r, ERR_UNSUPPORTED, "a test");
        noted.waits = 0;
        gpu_finish(r, "a test");
        CHECK(noted.waits == cases[x].waits, "case %d waits %d times", (int)x, noted.waits);
        n.f.device->ahead = was;
        r->err.code = ERR_NONE; /* the fixture looks */
        noting_end(&n);
    }
}

/* What a timed run reads is packed before it; a tensor that is not there is not. */
TEST(inputs_are_packed_before_a_run)
{
    for (int given = 0; given < 8; given++) {
        Noting  n;
        Run    *r;
        Tensor *inputs[3];

        noting_begin(&n, ARITHMETIC_BF16);
        r = n.f.gpu.run;
        inputs[0] = &r->q, inputs[1] = &r->k, inputs[2] = &r->v;
        r->d = r->e = 8;
        for (int x = 0; x < 3; x++)
            *inputs[x] = given >> x & 1 ? fixture_normal(&n.f.gpu, 2, 5, 8, 1) : (Tensor){ 0 };
        gpu_prepare(r);
        assert_int_equal(r->err.code, ERR_NONE);
        assert_int_equal(noted.packs, (given & 1) + (given >> 1 & 1) + (given >> 2 & 1));
        noting_end(&n);
    }
}

/* One tile: its inner axis is cut to occupy the GPU, into 64 pieces at most, of 1024 entries at
 * least. */
TEST(long_products_are_cut)
{
    static const int64_t inner[] = { 2047, 2048, 5 * 1024 + 3, 64 * 1024, 130 * 1024 };
    static const int64_t pieces[] = { 1, 2, 5, 64, 64 };

    for (int x = 0; x < 5; x++) {
        Noting n;
        Tensor a, b, c;

        noting_begin(&n, ARITHMETIC_F32);
        a = fixture_tensor(&n.f.gpu, DT_F32, 1, 1, inner[x]);
        b = fixture_tensor(&n.f.gpu, DT_F32, 1, inner[x], 1);
        c = fixture_tensor(&n.f.gpu, DT_F32, 1, 1, 1);
        gpu_gemm(n.f.gpu.run, &a, false, &b, false, 1, 0, &c);
        assert_int_equal(n.f.gpu.run->err.code, ERR_NONE);
        CHECK(noted.pieces == pieces[x], "%d entries in %d pieces", (int)inner[x],
              (int)noted.pieces);
        noting_end(&n);
    }
}

/* Matrices for the measured product grow as far as an array holds them, 4 * 128 * 128 numbers.
 * A busy machine may end that sooner, so it is done some times. */
TEST(measured_products_fill_their_arrays)
{
    Noting    n;
    Ceilings  c;
    Error     err = ERROR_INIT;
    int64_t   memory;
    const Ops *ops;

    noting_begin(&n, ARITHMETIC_F32);
    ops = n.f.gpu.run->ops;
    memory = n.f.device->info.memory;
    n.f.device->info.memory = INT64_C(128) << 20;
    for (int round = 0; round < 20 && noted.rows < 256; round++)
        assert_true(ops->ceilings(ops, NULL, &c, &err));
    n.f.device->info.memory = memory;
    assert_int_equal(noted.rows, 256);
    noting_end(&n);
}

SUITE(NULL, NULL)
