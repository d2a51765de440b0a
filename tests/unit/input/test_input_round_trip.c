/* test_input_round_trip.c -- random tensors written and read back: the same bytes and shape. */

#include "core/rng.h"
#include "input_fixture.h"

#define FILES       60
#define MOST_ARRAYS 6

static const DType dtypes[] = { DT_F32, DT_F64, DT_I32, DT_I64, DT_U8 };

/* Any bits, also those of NaN; dimensions of 1 more often than others, now and then 0. */
static Tensor random_tensor(Arena *arena, Rng *rng, bool may_be_empty)
{
    int64_t shape[TENSOR_MAX_RANK] = { 1 };
    int     rank = 1 + (int)rng_below(rng, 4);
    Tensor  t;

    for (int d = 0; d < rank; d++) {
        shape[d] = rng_below(rng, 3) ? 1 + (int64_t)rng_below(rng, 7) : 1;
        if (may_be_empty && rng_below(rng, 12) == 0)
            shape[d] = 0;
    }
    t = tensor_new(arena, dtypes[rng_below(rng, 5)], rank, shape);
    assert_non_null(t.data);
    for (int64_t b = 0; b < tensor_bytes(&t); b++)
        ((uint8_t *)t.data)[b] = (uint8_t)rng_next(rng);
    return t;
}

static void check_same(const char *path, const char *name, const Tensor *want)
{
    Arena *arena = arena_new();
    Error  err = ERROR_INIT;
    Tensor got;

    if (!input_read_array(path, name, arena, &got, &err))
        fail_msg("%s: %s", path, err.text);
    assert_int_equal(got.dtype, want->dtype);
    assert_int_equal(got.rank, want->rank);
    for (int d = 0; d < want->rank; d++)
        assert_int_equal(got.shape[d], want->shape[d]);
    assert_true(tensor_contiguous(&got));
    assert_memory_equal(got.data, want->data, (size_t)tensor_bytes(want));
    arena_free(arena);
}

typedef bool (*Writer)(const char *path, const NamedTensor *items, int64_t count, Error *err);

static bool write_safetensors(const char *path, const NamedTensor *items, int64_t count,
                              Error *err)
{
    return input_write_safetensors(path, items, count, NULL, err);
}

static void check_files(const char *ending, Writer writer)
{
    static const char *const names[MOST_ARRAYS] = { "q", "k.0", "a long name of an array",
                                                    "\xc3\xa9", "x\"y\\z", "0" };
    char folder[64], path[128];
    Rng  rng = rng_named(3, ending);

    temporary_folder(folder);
    snprintf(path, sizeof(path), "%s/t.%s", folder, ending);
    for (int file = 0; file < FILES; file++) {
        Arena      *arena = arena_new();
        NamedTensor items[MOST_ARRAYS];
        Error       err = ERROR_INIT;
        int64_t     count = 1 + (int64_t)rng_below(&rng, MOST_ARRAYS);

        for (int64_t i = 0; i < count; i++)
            items[i] = (NamedTensor){ names[i], random_tensor(arena, &rng, true) };
        if (!writer(path, items, count, &err))
            fail_msg("%s", err.text);
        for (int64_t i = 0; i < count; i++)
            check_same(path, items[i].name, &items[i].tensor);
        arena_free(arena);
    }
    unlink(path);
    rmdir(folder);
}

TEST(arrays_of_npz_come_back)
{
    check_files("npz", input_write_npz);
}

TEST(arrays_of_safetensors_come_back)
{
    check_files("safetensors", write_safetensors);
}

TEST(an_array_of_npy_comes_back)
{
    char folder[64], path[128];
    Rng  rng = rng_named(3, "npy");

    temporary_folder(folder);
    snprintf(path, sizeof(path), "%s/t.npy", folder);
    for (int file = 0; file < FILES; file++) {
        Arena *arena = arena_new(), *other = arena_new();
        Tensor t = random_tensor(arena, &rng, true), got;
        Error  err = ERROR_INIT;

        if (!input_write_npy(path, &t, &err) || !input_read_npy(path, other, &got, &err))
            fail_msg("%s", err.text);
        assert_int_equal(got.dtype, t.dtype);
        assert_int_equal(got.rank, t.rank);
        assert_memory_equal(got.shape, t.shape, (size_t)t.rank * sizeof(*t.shape));
        assert_memory_equal(got.data, t.data, (size_t)tensor_bytes(&t));
        arena_free(arena);
        arena_free(other);
    }
    unlink(path);
    rmdir(folder);
}

SUITE(NULL, NULL)
