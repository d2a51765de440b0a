/* test_axis.c -- ranges of one parameter, parsed from text. */

#include "app/study/study.h"
#include "attn/run/param.h"
#include "check.h"

static void check_values(const char *text, const char *expected)
{
    Axis  axis;
    Error err = ERROR_INIT;
    char  all[256] = "";

    CHECK(axis_parse(text, &axis, &err), "%s", err.text);
    for (int i = 0; i < axis.count; i++)
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? " " : "",
                 axis.values[i]);
    assert_string_equal(all, expected);
    axis_free(&axis);
}

TEST(ranges_and_lists)
{
    check_values("features=16:128:x2", "16 32 64 128");
    check_values("features=16:127:x2", "16 32 64");
    check_values("k=1:9:+4", "1 5 9");
    check_values("k=8:64", "8 16 32 64");
    check_values("scale=0.1:0.3:+0.1", "0.1 0.2 0.3");
    check_values("kernel=relu,trig", "relu trig");
    check_values("k=7", "7");
    check_values("window=1k,2Ki", "1000 2048");
    check_values("n=1Ki:4Ki:x2", "1024 2048 4096");
    check_values("n=1k:2k:+1k", "1000 2000");
}

TEST(slips_are_told)
{
    static const char *const bad[] = { "features", "=1:2", "k=1:2:x1", "k=1:2:+0", "k=0:8:x2",
                                       "k=5:1", "k=1:2:y3", "k=1:2:x2z", "k=", "k=1,,2", "k=a:b",
                                       "k=1:1e9:+1" };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        Axis  axis;
        Error err = ERROR_INIT;

        assert_false(axis_parse(bad[i], &axis, &err));
        assert_int_equal(err.code, ERR_USAGE);
        assert_int_equal(axis.count, 0);
    }
}

TEST(usual_ranges_hold_the_value)
{
    static const char *const names[] = { "relu", "trig", NULL };
    static const Param       whole = { .name = "m", .type = PARAM_TYPE_INT, .fallback = 16, .lo = 1,
                                       .hi = PARAM_COUNT_MAX },
                       even = { .name = "c", .type = PARAM_TYPE_INT, .fallback = 4, .lo = 2,
                                .hi = 8, .even = true },
                       real = { .name = "t", .type = PARAM_TYPE_FLOAT, .fallback = 1, .hi = 2 },
                       kind = { .name = "kernel", .type = PARAM_TYPE_ENUM, .choices = names },
                       text = { .name = "expr", .type = PARAM_TYPE_TEXT };
    static const struct {
        const Param *param;
        const char  *now;
        bool         dense;
        const char  *range; /* NULL: none */
        int64_t      n;     /* tokens */
    } cases[] = {
        { &whole, "", false, "m=2,4,8,16,32,64", 64 },
        { &whole, "3", false, "m=2,3,6,12", 64 },
        { &whole, "", true, "m=1,2,3,4,6,8,11,16,23,32,45,64,91,128", 64 },
        { &whole, "", true, "m=1,2,3,4,6,8,11,16,23,32,45,64,91,128,181,192", 96 },
        { &even, "", false, "c=2,4,8", 64 },
        { &real, "", false, "t=0.25,0.5,1,2", 64 },
        { &kind, "", false, "kernel=relu,trig", 64 },
        { &text, "window(5)", false, NULL, 64 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        Text range = { 0 };

        assert_int_equal(axis_usual(cases[i].param, cases[i].now, cases[i].n,
                                    cases[i].dense, &range),
                         cases[i].range != NULL);
        if (cases[i].range)
            assert_string_equal(text_str(&range), cases[i].range);
        text_free(&range);
    }
}

TEST(words_are_no_numbers)
{
    Axis  axis;
    Error err = ERROR_INIT;

    assert_true(axis_parse("x=2.5,relu", &axis, &err));
    assert_true(axis_number(&axis, 0) == 2.5 && isnan(axis_number(&axis, 1)));
    axis_free(&axis);
}

SUITE(NULL, NULL)
