/* test_param.c -- parameters from text: types, ranges, messages, stepping. */

#include "attn/run/param.h"
#include "check.h"

typedef struct Values {
    int64_t     window, offset, buckets;
    double      scale, rate;
    bool        self;
    int         mode;
    unsigned    terms;
    IndexList   global;
    const char *expr;
    Tensor      table;
    PerHead     alpha;
} Values;

static const char *const modes[] = { "once", "count", NULL };
static const char *const terms[] = { "c2p", "p2c", "p2p", NULL };

static const Param table[] = {
    PARAM_INT(Values, window, 7, 0, PARAM_COUNT_MAX, "reach"),
    PARAM_INT(Values, offset, PARAM_AUTO, -1e9, 1e9, "offset"),
    PARAM_EVEN(Values, buckets, 0, 0, 100, "buckets"),
    PARAM_POSITIVE(Values, scale, 1, "factor"),
    PARAM_FLOAT(Values, rate, 0.5, 0, 1, "rate"),
    PARAM_BOOL(Values, self, true, "itself"),
    PARAM_ENUM(Values, mode, 0, modes, "mode"),
    PARAM_FLAGS(Values, terms, 3, terms, "terms"),
    PARAM_LIST(Values, global, 1, 0, PARAM_COUNT_MAX, "globals"),
    PARAM_TEXT(Values, expr, "text"),
    PARAM_TENSOR(Values, table, "[n,r]", "uniform", "table"),
    PARAM_PER_HEAD(Values, alpha, 1.5, 1, 1e30, "of each head"),
    PARAM_END
};

static bool bind(const char *list, Values *v, Assignments *given, Error *err)
{
    return assignments_parse(given, list, err) && params_bind(table, v, given, err);
}

TEST(defaults_stand_without_assignments)
{
    Values v;
    Error  err = ERROR_INIT;

    assert_true(params_bind(table, &v, NULL, &err));
    assert_int_equal(v.window, 7);
    assert_true(v.self);
    assert_int_equal(v.terms, 3);
    assert_false(v.global.is_list);
    assert_int_equal(v.global.count, 1);
    assert_null(v.table.data);
    assert_null(v.expr);
}

TEST(every_type_is_read)
{
    Values      v;
    Error       err = ERROR_INIT;
    Assignments given = { 0 };

    CHECK(bind("window=9, offset=auto,buckets=4,scale=0.25,rate=1,self=off,mode=count,"
               "terms=[c2p,p2p],global=[0,-1],expr='window(3)+tile(2,full)'", &v, &given, &err),
          "%s", err.text);
    assert_int_equal(v.window, 9);
    assert_true((double)v.offset <= PARAM_AUTO);
    assert_int_equal(v.buckets, 4);
    CHECK_NEAR(v.scale, 0.25, 0);
    assert_false(v.self);
    assert_int_equal(v.mode, 1);
    assert_int_equal(v.terms, 5);
    assert_true(v.global.is_list);
    assert_int_equal(v.global.count, 2);
    assert_int_equal(v.global.items[1], -1);
    assert_string_equal(v.expr, "window(3)+tile(2,full)");
    assignments_free(&given);
}

static const struct {
    const char *list, *says;
} mistakes[] = {
    { "window=x", "expected an integer, got 'x'" }, { "window=-1", "at least 0, got -1" },
    { "window=1.5", "expected an integer" }, { "buckets=3", "must be even" },
    { "buckets=102", "from 0 to 100" }, { "scale=0", "greater than 0" },
    { "scale=nan", "expected a number" }, { "rate=1.01", "from 0 to 1" },
    { "self=maybe", "true or false" }, { "mode=twice", "none of once, count" },
    { "terms=[c2c]", "none of c2p, p2c, p2p" }, { "global=[1,x]", "expected a list" },
    { "global=[1", "expected a list" }, { "global=-1", "at least 0" },
    { "global=[,5]", "expected a list" }, { "global=[1 2]", "expected a list" },
    { "table=3", "give it as table=@FILE.npy" }, { "window", "expected name=value" },
    { "window=99999999999999999999", "expected an integer" },
};

TEST(mistakes_name_the_parameter)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
        Values      v;
        Error       err = ERROR_INIT;
        Assignments given = { 0 };

        assert_false(bind(mistakes[i].list, &v, &given, &err));
        assert_int_equal(err.code, ERR_PARAM);
        CHECK(strstr(err.text, mistakes[i].says), "'%s' says: %s", mistakes[i].list, err.text);
        assignments_free(&given);
    }
}

/* Runs that are bound to the same texts are alive at once. */
TEST(a_list_outlives_the_next_binding)
{
    Values      first, second;
    Error       err = ERROR_INIT;
    Assignments given = { 0 };

    assert_true(bind("global=[0,-1]", &first, &given, &err));
    assert_true(params_bind(table, &second, &given, &err));
    assert_ptr_equal(first.global.items, second.global.items);
    assert_int_equal(first.global.items[1], -1);
    assignments_free(&given);
}

TEST(the_last_assignment_wins)
{
    Values      v;
    Error       err = ERROR_INIT;
    Assignments given = { 0 }, copy;

    assert_true(bind("window=3,window=5", &v, &given, &err));
    assert_int_equal(v.window, 5);
    assert_int_equal(given.count, 1);
    assert_true(assignments_copy(&copy, &given, &err));
    assignments_remove(&given, "window");
    assert_null(assignments_find(&given, "window"));
    assert_string_equal(assignments_find(&copy, "window")->text, "5");
    assignments_free(&given);
    assignments_free(&copy);
}

static void check_print(const char *name, const char *list, const char *expected)
{
    Values      v;
    Error       err = ERROR_INIT;
    Assignments given = { 0 };
    Text        text = { 0 };

    assert_true(bind(list, &v, &given, &err));
    params_print(params_find(table, name), &v, &text);
    assert_string_equal(text_str(&text), expected);
    text_free(&text);
    assignments_free(&given);
}

TEST(a_number_or_one_for_each_head)
{
    float       numbers[3] = { 1, 2, 3 };
    Tensor      t = tensor_of(DT_F32, 1, (int64_t[]){ 3 }, numbers);
    Assignments given = { 0 };
    Values      v;
    Error       err = ERROR_INIT;
    Text        text = { 0 };

    assert_true(bind("alpha=2.5", &v, &given, &err));
    assert_true(v.alpha.value == 2.5 && !v.alpha.tensor.data);
    assert_false(bind("alpha=0.5", &v, &given, &err));
    assert_non_null(strstr(err.text, "alpha"));
    assert_true(assignments_set_tensor(&given, "alpha", t, "@a.npy", &err));
    assert_true(params_bind(table, &v, &given, &err));
    assert_true(v.alpha.tensor.data == numbers);
    params_print(params_find(table, "alpha"), &v, &text);
    assert_string_equal(text_str(&text), "[3]");
    text_free(&text);
    assignments_free(&given);
}

TEST(a_tensor_has_a_name_of_a_limited_length)
{
    static const char *const names[] = { "", "a b" };
    Tensor                   t = tensor_of(DT_F32, 1, (int64_t[]){ 0 }, NULL);
    Assignments              given = { 0 };
    Error                    err = ERROR_INIT;
    char                     name[sizeof(given.items->name) + 1] = "";

    for (size_t x = 0; x < sizeof(names) / sizeof(*names); x++)
        assert_false(assignments_set_tensor(&given, names[x], t, "@a.npy", &err));
    memset(name, 'a', sizeof(name) - 1);
    assert_false(assignments_set_tensor(&given, name, t, "@a.npy", &err));
    assert_non_null(strstr(err.text, "expected 1 to"));
    name[sizeof(name) - 2] = 0;
    assert_true(assignments_set_tensor(&given, name, t, "@a.npy", &err));
    assert_int_equal(given.count, 1);
    assignments_free(&given);
}

TEST(values_print_as_they_are_read)
{
    check_print("window", "window=12", "12");
    check_print("offset", "", "auto");
    check_print("offset", "offset=-3", "-3");
    check_print("scale", "scale=0.1", "0.1");
    check_print("self", "self=no", "false");
    check_print("mode", "mode=count", "count");
    check_print("terms", "terms=c2p+p2c", "[c2p,p2c]");
    check_print("global", "global=[3,1]", "[3,1]");
    check_print("table", "", "drawn");
}

static void check_step(const char *name, const char *from, int direction, const char *expected)
{
    Text text = { 0 };
    bool ok = params_step(params_find(table, name), from, direction, &text);

    if (expected)
        assert_string_equal(text_str(&text), expected);
    else
        assert_false(ok);
    text_free(&text);
}

TEST(editors_step_inside_the_range)
{
    check_step("window", "7", 1, "8");
    check_step("window", "0", -1, NULL);
    check_step("buckets", "4", 1, "6");
    check_step("rate", "1", 1, NULL);
    check_step("self", "true", 1, "false");
    check_step("mode", "count", 1, "once");
    check_step("mode", "once", -1, "count");
}

static void check_read_again(const char *value)
{
    Assignments given = { 0 }, again = { 0 };
    Text        list = { 0 };
    Error       err = ERROR_INIT;

    CHECK(assignments_set(&given, "a", value, &err), "%s: %s", value, err.text);
    assignment_print("a", value, &list);
    text_add(&list, ",b=2");
    CHECK(assignments_parse(&again, text_str(&list), &err), "%s: %s", text_str(&list), err.text);
    CHECK(again.count == 2 && !strcmp(again.items[0].text, value), "'%s' printed as %s", value,
          text_str(&list));
    assignments_free(&given);
    assignments_free(&again);
    text_free(&list);
}

TEST(a_printed_assignment_is_read_again)
{
    static const char *const values[] = { "",   "3",  "[1,2]", "window(3)+cols(4)", "a,b",
                                          "a=b", "a\"b", "\"a",  "a'b",  "'",    "f(",
                                          "[1,", ")",  "][",   " a",   "a ",   "[a\",b]",
                                          "\"a\",\"b\"" };
    Assignments given = { 0 };
    Error       err = ERROR_INIT;

    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
        check_read_again(values[i]);
    assert_false(assignments_set(&given, "a", "\"'", &err));
    assert_non_null(strstr(err.text, "both kinds of quotes"));
    assert_false(assignments_set(&given, "a\"b", "1", &err));
    assert_non_null(strstr(err.text, "expected letters, digits"));
    assignments_free(&given);
}

/* The last digit that counts, on both sides of 0. */
TEST(editors_step_by_a_power_of_ten)
{
    typedef struct Float {
        double shift;
    } Float;
    static const Param shift[] = { PARAM_FLOAT(Float, shift, 0, -100, 100, "shift"), PARAM_END };
    static const struct {
        const char *from;
        int         direction;
        const char *to;
    } steps[] = { { "2.5", 1, "3.5" },   { "-2.5", 1, "-1.5" }, { "-2.5", -1, "-3.5" },
                  { "25", 1, "35" },     { "-25", -1, "-35" },  { "0.03", -1, "0.02" },
                  { "-0.03", 1, "-0.02" }, { "0", 1, "0.1" },   { "0", -1, "-0.1" },
                  { "10", 1, "11" },     { "-10", -1, "-11" } };

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        Text text = { 0 };

        CHECK(params_step(shift, steps[i].from, steps[i].direction, &text), "%s", steps[i].from);
        assert_string_equal(text_str(&text), steps[i].to);
        text_free(&text);
    }
}

SUITE(NULL, NULL)
