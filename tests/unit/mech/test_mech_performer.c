/* test_mech_performer.c -- random-feature attention: its forms agree, it nears
 * exact attention, and its directions have the distribution that the paper gives. */
#include "mech_fixture.h"

TEST(all_forms_are_one_result)
{
    static const char *const kernels[] = { "positive", "hyperbolic", "relu" };
    static const char *const forms[] = { "matrix", "recurrent", "chunked,chunk=3" };

    for (size_t x = 0; x < 3 * 3 * 2; x++) {
        Fixture f = fixture_new(13);
        char    params[100];
        float  *plain;

        snprintf(params, sizeof(params), "features=20,kernel=%s", kernels[x / 6]);
        fixture_run(&f, "performer", params, x % 2);
        check_weights(&f);
        check_flops(&f);
        plain = fixture_output(&f);
        snprintf(params, sizeof(params), "features=20,kernel=%s,form=%s", kernels[x / 6],
                 forms[x / 2 % 3]);
        fixture_run(&f, "performer", params, x % 2);
        check_near(tensor_f32(&f.run->out), plain, tensor_count(&f.run->out), 1e-5);
        check_flops(&f);
        free(plain);
        fixture_free(&f);
    }
}

TEST(more_features_come_nearer)
{
    Fixture f = fixture_new(32);
    double  few, many;

    /* Without the constants: those added to features and denominators are separate errors. */
    fixture_run(&f, "performer", "features=8,eps=0,denominator_eps=0", false);
    few = figure_of(f.run, "total_variation");
    fixture_run(&f, "performer", "features=8192,eps=0,denominator_eps=0", false);
    many = figure_of(f.run, "total_variation");
    assert_true(many < 0.1 && many < few / 3);
    fixture_free(&f);
}

TEST(directions_are_orthogonal_in_blocks)
{
    Fixture f = fixture_new(4);
    Tensor  w;

    fixture_run(&f, "performer", "features=12,ortho_scaling=sqrt-d", false);
    w = fixture_view(&f, "projection");
    for (int64_t i = 0; i < 12; i++)
        for (int64_t j = i / KEY_SIZE * KEY_SIZE; j <= i; j++) {
            double sum = 0;

            for (int64_t t = 0; t < KEY_SIZE; t++)
                sum += (double)tensor_f32(&w)[i * KEY_SIZE + t] *
                       (double)tensor_f32(&w)[j * KEY_SIZE + t];
            assert_true(fabs(sum - (i == j ? KEY_SIZE : 0)) < 1e-5);
        }
    fixture_free(&f);
}

TEST(causal_without_common_maximum_leaks_nothing)
{
    Fixture f = fixture_new(13);

    check_causal(&f, "performer", "features=20,stabilize=false", 4);
    check_causal(&f, "performer", "features=20,kernel=relu,form=chunked,chunk=4", 7);
    fixture_run(&f, "performer", "features=20", true);
    assert_non_null(strstr(text_str(&f.run->warnings), "stabilize=false"));
    fixture_free(&f);
}

TEST(failed_allocations_are_ordinary_errors)
{
    Fixture f = fixture_new(13);

    check_out_of_memory(&f, "performer", "features=20");
    fixture_free(&f);
}

TEST(one_token_is_its_value)
{
    Fixture f = fixture_new(1);

    fixture_run(&f, "performer", "", true);
    check_near(tensor_f32(&f.run->out), tensor_f32(&f.v), HEADS * VALUE_SIZE, 1e-5);
    fixture_free(&f);
}

SUITE(NULL, NULL)
