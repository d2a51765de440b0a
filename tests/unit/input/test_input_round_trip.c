/* test_input_round_trip.c -- random tensors written and read back: the same bytes and shape.
 *
 * Files that do not come back are made smaller, as long as they do not, and told.
 */

#include "core/rng.h"
#include "core/text.h"
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

/* ---- writing and reading --------------------------------------------------------------------- */

typedef struct Archive {
    const char *ending, *path;
    NamedTensor items[MOST_ARRAYS];
    int64_t     count;
} Archive;

static bool write_archive(const Archive *a, Error *err)
{
    if (!strcmp(a->ending, "npy"))
        return input_write_npy(a->path, &a->items[0].tensor, err);
    if (!strcmp(a->ending, "npz"))
        return input_write_npz(a->path, a->items, a->count, err);
    return input_write_safetensors(a->path, a->items, a->count, NULL, err);
}

static bool read_item(const Archive *a, int64_t i, Arena *arena, Tensor *out, Error *err)
{
    return strcmp(a->ending, "npy") ? input_read_array(a->path, a->items[i].name, arena, out, err)
                                    : input_read_npy(a->path, arena, out, err);
}

static bool same_tensors(const Tensor *x, const Tensor *y)
{
    return x->dtype == y->dtype && x->rank == y->rank &&
           !memcmp(x->shape, y->shape, (size_t)x->rank * sizeof(*x->shape)) &&
           tensor_contiguous(x) && !memcmp(x->data, y->data, (size_t)tensor_bytes(y));
}

/* Whether all comes back; else says what does not. */
static bool comes_back(const Archive *a, Text *fault)
{
    Error err = ERROR_INIT;

    text_clear(fault);
    if (!write_archive(a, &err))
        text_addf(fault, "it is not written: %s", err.text);
    for (int64_t i = 0; !fault->length && i < a->count; i++) {
        Arena *arena = arena_new();
        Tensor got;

        if (!read_item(a, i, arena, &got, &err))
            text_addf(fault, "array %d is not read: %s", (int)i, err.text);
        else if (!same_tensors(&got, &a->items[i].tensor))
            text_addf(fault, "array %d is another one", (int)i);
        arena_free(arena);
    }
    return !fault->length;
}

/* ---- what fails, made smaller ---------------------------------------------------------------- */

/* Change `at`: an array less, or half of an axis, or zeros; false: there are no more. */
static bool make_smaller(Archive *a, Arena *arena, int64_t at)
{
    const int64_t each = TENSOR_MAX_RANK + 2, i = at / each, axis = at % each - 2;
    Tensor       *t = &a->items[i].tensor;

    if (i >= a->count)
        return false;
    if (axis == -2 && a->count > 1) {
        memmove(&a->items[i], &a->items[i + 1], (size_t)(--a->count - i) * sizeof(*a->items));
    } else if (axis == -1) {
        *t = tensor_new(arena, t->dtype, t->rank, t->shape);
    } else if (axis >= 0 && axis < t->rank && t->shape[axis] > 1) {
        Tensor less = *t;

        less.shape[axis] /= 2;
        *t = tensor_new(arena, less.dtype, less.rank, less.shape);
        memcpy(t->data, less.data, (size_t)tensor_bytes(t));
    }
    return true;
}

static void tell_smallest(Archive a, Arena *arena)
{
    Text    fault = { 0 }, shapes = { 0 };
    Archive smaller = a;

    for (int64_t at = 0; make_smaller(&smaller, arena, at); smaller = a) {
        bool other = memcmp(&smaller, &a, sizeof(a)) != 0 && !comes_back(&smaller, &fault);
        bool zeros = at % (TENSOR_MAX_RANK + 2) == 1;

        a = other ? smaller : a;
        at = other && !zeros ? 0 : at + 1;
    }
    comes_back(&a, &fault);
    for (int64_t i = 0; i < a.count; i++) {
        const Tensor *t = &a.items[i].tensor;

        text_addf(&shapes, " '%s' %s [", a.items[i].name, dtype_name(t->dtype));
        for (int d = 0; d < t->rank; d++)
            text_addf(&shapes, "%s%d", d ? "," : "", (int)t->shape[d]);
        text_add(&shapes, "]");
    }
    fail_msg("%s:%s: %s", a.ending, text_str(&shapes), text_str(&fault));
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void check_files(const char *ending, int most)
{
    static const char *const names[MOST_ARRAYS] = { "q", "k.0", "a long name of an array",
                                                    "\xc3\xa9", "x\"y\\z", "0" };
    char folder[64], path[128];
    Rng  rng = rng_named(3, ending);
    Text fault = { 0 };

    temporary_folder(folder);
    snprintf(path, sizeof(path), "%s/t.%s", folder, ending);
    for (int file = 0; file < FILES; file++) {
        Arena  *arena = arena_new();
        Archive a = { .ending = ending, .path = path };

        a.count = 1 + (int64_t)rng_below(&rng, (uint64_t)most);
        for (int64_t i = 0; i < a.count; i++)
            a.items[i] = (NamedTensor){ names[i], random_tensor(arena, &rng, true) };
        if (!comes_back(&a, &fault))
            tell_smallest(a, arena);
        arena_free(arena);
    }
    text_free(&fault);
    unlink(path);
    rmdir(folder);
}

TEST(arrays_of_npz_come_back)
{
    check_files("npz", MOST_ARRAYS);
}

TEST(arrays_of_safetensors_come_back)
{
    check_files("safetensors", MOST_ARRAYS);
}

TEST(an_array_of_npy_comes_back)
{
    check_files("npy", 1);
}

SUITE(NULL, NULL)
