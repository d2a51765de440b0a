/* test_slots.c -- keys that stand for ranges of tokens: which rows see them, which tokens they
 * hold, cell by cell against the rules as written; and weights read in any pieces. */

#include "attn/mech/pattern/keys.h"
#include "mech_fixture.h"

#define MOST 23

static const Slots shapes[] = {
    { .per = 1, .stride = 4, .size = 5 },            /* overlap */
    { .per = 1, .stride = 5, .size = 2 },            /* gaps, by strided runs */
    { .per = 1, .stride = 9, .size = 8 },            /* gaps, by intervals */
    { .per = 3, .stride = 4, .size = 4 },            /* several slots a range */
    { .lead = 1, .per = 1, .stride = 3, .size = 3 }, /* the first token in front */
    { .lead = 2, .per = 2, .stride = 1, .size = 1 },
};

static Slots slots_for(Slots s, int64_t n)
{
    s.n = n;
    s.ranges = (n - 1) / s.stride + 1;
    s.size = s.size < n ? s.size : n;
    s.lead = s.lead < n ? s.lead : n;
    return s;
}

static int64_t last_token(const Slots *s, int64_t c)
{
    return c * s->stride + s->size < s->n ? c * s->stride + s->size - 1 : s->n - 1;
}

static bool near(const Slots *s, int64_t i, int64_t slot, int64_t reach, bool causal)
{
    int64_t first = slot * s->stride, last = last_token(s, slot);

    return first <= i + reach && last >= i - reach && (!causal || last <= i);
}

static bool before(const Slots *s, int64_t i, int64_t slot)
{
    return slot < s->lead || ((slot - s->lead) / s->per + 1) * s->stride <= i;
}

static bool holds(const Slots *s, int64_t slot, int64_t token)
{
    int64_t c = (slot - s->lead) / s->per;

    if (slot < s->lead)
        return token == slot;
    return token >= c * s->stride && token <= last_token(s, c);
}

static bool in(const Pattern *p, int64_t i, int64_t j)
{
    bool allowed;

    assert_non_null(p);
    pattern_cell(p, 0, i, j, &allowed);
    return allowed;
}

static PatternShape shape(int64_t n, int64_t m)
{
    return (PatternShape){ .heads = 1, .n = n, .m = m };
}

static void check_near_cells(Arena *a, const Slots *s)
{
    for (int64_t reach = 0; reach < 7; reach += 3)
        for (int causal = 0; causal < 2; causal++) {
            Pattern *p = slots_near(a, shape(s->n, s->ranges), s, reach, causal);

            for (int64_t i = 0; i < s->n; i++)
                for (int64_t c = 0; c < s->ranges; c++)
                    assert_int_equal(in(p, i, c), near(s, i, c, reach, causal));
        }
}

/* The tokens of the visible keys; every cell is listed once. */
static void check_behind(Arena *a, const Slots *s, Pattern *seen)
{
    Pattern   *p = slots_behind(a, shape(s->n, s->n), s, seen, COMPONENT_OTHER);
    PatternRow row = { 0 };

    assert_non_null(p);
    for (int64_t i = 0; i < s->n; i++) {
        int64_t listed = 0, want = 0;

        pattern_row(p, 0, i, &row);
        for (int64_t r = 0; r < row.count; r++)
            listed += row.runs[r].count;
        for (int64_t j = 0; j < s->n; j++) {
            bool any = false;

            for (int64_t slot = 0; slot < pattern_keys(seen); slot++)
                any = any || (in(seen, i, slot) && holds(s, slot, j));
            assert_int_equal(in(p, i, j), any);
            want += any;
        }
        assert_int_equal(listed, want);
    }
    pattern_row_free(&row);
}

static void check_slots(Arena *a, const Slots *s)
{
    int64_t  count = slots_count(s);
    Pattern *seen = slots_before(a, shape(s->n, count), s);
    Pattern *members = slots_members(a, shape(count, s->n), s);

    for (int64_t i = 0; i < s->n; i++)
        for (int64_t slot = 0; slot < count; slot++) {
            assert_int_equal(in(seen, i, slot), before(s, i, slot));
            assert_int_equal(in(members, slot, i), holds(s, slot, i));
        }
    check_behind(a, s, seen);
    check_behind(a, s, pattern_full(a, shape(s->n, count), COMPONENT_OTHER));
    check_behind(a, s, pattern_stride(a, shape(s->n, count), 3)); /* runs of slots with gaps */
    check_near_cells(a, s);
}

TEST(cells_are_those_of_the_rules)
{
    Arena *a = arena_new();

    for (size_t x = 0; x < sizeof(shapes) / sizeof(*shapes); x++)
        for (int64_t n = 1; n <= MOST; n += n > 6 ? 4 : 1) {
            Slots s = slots_for(shapes[x], n);

            check_slots(a, &s);
            arena_reset(a);
        }
    arena_free(a);
}

TEST(lengths_sum_up)
{
    for (size_t x = 0; x < sizeof(shapes) / sizeof(*shapes); x++) {
        Slots   s = slots_for(shapes[x], MOST);
        int64_t sum = 0;

        for (int64_t slot = s.lead; slot < slots_count(&s); slot += s.per)
            sum += slots_end(&s, slot) - slots_start(&s, slot);
        assert_int_equal(slots_tokens(&s), sum);
    }
}

/* Pieces of a row, with any start and step, are the row's own values. */
static void check_pieces(Fixture *f)
{
    const View *view = run_view(f->run, "weights");
    float       row[64], piece[64];

    assert_non_null(view);
    for (int64_t i = 0; i < f->n; i++) {
        view_read(view, 1, i, 0, f->n, 1, row);
        for (int64_t step = 1; step < 8; step++)
            for (int64_t start = 0; start < f->n; start += 5) {
                int64_t count = (f->n - 1 - start) / step + 1;

                view_read(view, 1, i, start, count, step, piece);
                for (int64_t c = 0; c < count; c++)
                    check_near(&piece[c], &row[start + c * step], 1, 1e-6);
            }
    }
}

static const struct {
    const char *id, *params;
} linear[] = {
    { "poolingformer", "kernel=5,stride=3,window2=20" },
    { "poolingformer", "kernel=2,stride=5,window2=40,pooling=ldconv" },
    { "long-short", "segment=6,rank=3,chunk=5" },
    { "long-short", "short=false,rank=2,chunk=7" },
    { "memory-compressed", "factor=4,add_first=true" },
    { "memory-compressed", "factor=5,tail=drop" },
};

TEST(weights_are_read_in_any_pieces)
{
    Fixture f = fixture_new(33);

    for (size_t x = 0; x < sizeof(linear) / sizeof(*linear); x++)
        for (int causal = 0; causal < 2; causal++) {
            fixture_run(&f, linear[x].id, linear[x].params, causal);
            check_weights(&f);
            check_pieces(&f);
            check_flops(&f);
        }
    fixture_free(&f);
}

SUITE(NULL, NULL)
