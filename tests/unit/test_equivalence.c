/* test_equivalence.c -- mechanisms that are expressions: the same cells, the same
 * components, the same output, bit for bit (docs/patterns.md). */
#include <string.h>

#include "app/session.h"
#include "check.h"

static const struct {
    const char *mechanism, *expression;
    bool        other_bits; /* full has no components; the expression's are "other" */
} pairs[] = {
    { "full", "full", true },
    { "window(window=5)", "window(5)", false },
    { "window(window=0)", "window(0)", false },
    { "dilated(window=7,dilation=3)", "window(7,3)", false },
    { "dilated(window=5,dilation=[1,2])", "window(5,1);window(5,2)", false },
    { "dilated(window=9,dilation=50)", "window(9,50)", false },
    { "block-local(block=4)", "block(4)", false },
    { "block-local(block=5,back=1,ahead=2)", "chunk(5,1,2)", false },
    { "image-local-1d(query_block=4,memory=6)", "local(4,6,0)", false },
    { "image-local-1d(query_block=6,memory=3,both=true)", "local(6,3,3)", false },
    { "blockbert(blocks=3)", "shift(3,0);shift(3,-1);shift(3,-2)", false },
    { "sparse-strided(stride=3)", "window(5)+stride(3)", false },
    { "sparse-strided(stride=1)", "window(1)+stride(1)", false },
    { "sparse-strided(stride=4,local_kind=block)", "block(4)+stride(4)", false },
    { "sparse-strided(stride=5,heads=split)", "window(9);stride(5)", false },
    { "sparse-strided(stride=5,heads=strided)", "stride(5)", false },
    { "sparse-strided(stride=5,heads=local)", "window(9)", false },
    { "sparse-fixed(stride=4)", "block(4)+summary(4,1)", false },
    { "sparse-fixed(stride=7,summary=3)", "block(7)+summary(7,3)", false },
    { "sparse-fixed(stride=5,summary=2,verts=2)",
      "block(5)+summary(5,2,0);block(5)+summary(5,2,1)", false },
    { "sparse-fixed(stride=5,heads=split,verts=2)", "block(5);summary(5,1,1)", false },
    { "star", "global(1)+window(3)", false },
    { "star(ring=true)", "global(1)+window(3)+ring(1)", false },
    { "cascade(layer=0)", "window(1)", false },
    { "cascade(layer=3)", "window(15)", false },
    { "cascade(base_window=2,cardinal=3,layer=2)", "window(35)", false },
    { "cascade(layer=4000,cardinal=1000)", "window(100)", false },
    /* The mechanism tells its dense part apart; the primitive is all "log". */
    { "logsparse", "log(1)+window(1)", false },
    { "logsparse(local=3)", "log(3)+window(5)", false },
    { "logsparse(local=2,restart=8)", "log(2,8)+window(3)", false },
    { "logsparse(local=2,restart=8,restart_mode=blocks)", "(log(2)+window(3))-!block(8)", false },
    { "logsparse(first=2)", "log(1)+window(1)+cols(2)", false },
    { "longformer(window=5,global=3)", "window(5)+global(3)", false },
    { "longformer(window=7,dilation=2,global=[0,-1])", "window(7,2)+global([0,-1])", false },
    { "longformer(window=7,dilation=[1,3],global=0)", "window(7,1);window(7,3)", false },
    { "bigbird(window=5,global=3,random=0)", "window(5)+global(3)", false },
    { "bigbird(block=4,window=3,global=2,random=0,global_position=ends)",
      "tile(4, window(3)+global([0,-1]))", false },
};

static Result *run_of(Session *s, const char *text, int causal)
{
    Request request = REQUEST_INIT;
    Error   err = ERROR_INIT;
    Result *result;

    request.causal = causal;
    CHECK(request_parse(s, &request, text, &err), "%s: %s", text, err.text);
    result = session_run(s, &request, &err);
    CHECK(result && result->run->err.code == ERR_NONE, "%s: %s", text,
          result ? result->run->err.text : err.text);
    request_free(&request);
    return result;
}

static void same_view(const Run *a, const Run *b, const char *name, const char *text)
{
    const View *x = run_view(a, name), *y = run_view(b, name);
    float       p[64], q[64];

    CHECK(x && y, "%s: no view %s", text, name);
    for (int64_t h = 0; h < a->h; h++)
        for (int64_t i = 0; i < a->n; i++) {
            view_read(x, view_shared(x) ? 0 : h, i, 0, a->n, 1, p);
            view_read(y, view_shared(y) ? 0 : h, i, 0, a->n, 1, q);
            CHECK(!memcmp(p, q, (size_t)a->n * sizeof(*p)), "%s: %s differs in row %d", text, name,
                  (int)i);
        }
}

static void check_pair(Session *s, size_t index, int causal)
{
    char    text[160];
    Result *mechanism = run_of(s, pairs[index].mechanism, causal), *expression;

    snprintf(text, sizeof(text), "pattern(expr=\"%s\")", pairs[index].expression);
    expression = run_of(s, text, causal);
    same_view(mechanism->run, expression->run, "connectivity", text);
    same_view(mechanism->run, expression->run, "weights", text);
    if (!pairs[index].other_bits)
        same_view(mechanism->run, expression->run, "components", text);
    CHECK(!memcmp(mechanism->run->out.data, expression->run->out.data,
                  (size_t)tensor_bytes(&mechanism->run->out)),
          "%s: the output differs", text);
    result_release(mechanism);
    result_release(expression);
}

static void mechanisms_equal_their_expressions(void **state)
{
    static const char *const inputs[] = { "synthetic:normal(n=37,d=8,heads=2)",
                                          "synthetic:normal(n=1,d=8,heads=2)" };
    Error    err = ERROR_INIT;
    Session *s = session_new(&err);

    (void)state;
    assert_non_null(s);
    for (int input = 0; input < 2; input++) {
        assert_true(session_load(s, inputs[input], NULL, &err));
        for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
            for (int causal = 0; causal < 2; causal++)
                check_pair(s, i, causal);
    }
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(mechanisms_equal_their_expressions) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
