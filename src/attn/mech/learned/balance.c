/* balance.c -- see balance.h. */
#include "attn/mech/learned/balance.h"

#include <math.h>

#include "attn/run.h"

/* "largest 12 = 1.5 x mean, entropy 2.81 of 3 bits, 1 empty" */
static void say_sizes(const int32_t *size, int64_t groups, Text *out)
{
    double  all = 0, bits = 0;
    int64_t largest = 0, empty = 0;

    for (int64_t c = 0; c < groups; c++) {
        all += size[c];
        largest = size[c] > largest ? size[c] : largest;
        empty += size[c] == 0;
    }
    for (int64_t c = 0; c < groups && all > 0; c++)
        bits -= size[c] ? size[c] / all * log2(size[c] / all) : 0;
    text_addf(out, "largest %lld = %.3g x mean, entropy %.3g of %.3g bits", (long long)largest,
              all > 0 ? (double)largest * (double)groups / all : 0, bits, log2((double)groups));
    if (empty)
        text_addf(out, ", %lld empty", (long long)empty);
}

static void say_times(const int32_t *times, int64_t tokens, Text *out)
{
    int64_t none = 0, several = 0;

    for (int64_t i = 0; i < tokens; i++) {
        none += times[i] == 0;
        several += times[i] > 1;
    }
    text_addf(out, ", %lld of %lld tokens in none, %lld in several", (long long)none,
              (long long)tokens, (long long)several);
}

static const ViewLoad *load_of(Run *r, Tensor used, const char *name)
{
    ViewLoad *load = run_alloc(r, 1, sizeof(*load));

    if (load)
        *load = (ViewLoad){ .used = used, .used_name = name };
    return load;
}

void balance_show(Run *r, View *view, Tensor sizes, Tensor times)
{
    int64_t      planes = view_planes(view), groups = view_rows(view), tokens = view_cols(view);
    const char **words = run_alloc(r, planes, sizeof(*words));

    view->row_load = load_of(r, sizes, "tokens of a cluster");
    if (times.data)
        view->load = load_of(r, times, "clusters of a token");
    for (int64_t p = 0; p < planes && !run_failed(r); p++) {
        Text out = { 0 };

        say_sizes(tensor_i32(&sizes) + p * groups, groups, &out);
        if (times.data)
            say_times(tensor_i32(&times) + p * tokens, tokens, &out);
        words[p] = arena_printf(r->arena, "%s", text_str(&out));
        if (!words[p] || !text_ok(&out))
            run_fail(r, ERR_NOMEM, "%s: not enough memory for a view", r->mechanism->id);
        text_free(&out);
    }
    view->summary = words;
}
