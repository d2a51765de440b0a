/* test_model_swap.c -- what is said of a model, mixtures from files, and how far its passes are. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/command/command.h"
#include "app/command/model.h"
#include "app/session/model_input.h"
#include "app/study/swap_file.h"

static const ModelConfig config = { .layers = 3, .heads = 2 };

/* NULL: *err says why. */
static SwapMixture *mixture_of(const char *csv, Error *err)
{
    char         path[] = "/tmp/attnscope-mixture-XXXXXX", swap[64];
    int          file = mkstemp(path);
    SwapMixture *m;

    assert_true(file >= 0);
    assert_int_equal(write(file, csv, strlen(csv)), (int)strlen(csv));
    close(file);
    snprintf(swap, sizeof(swap), "@%s", path);
    m = swap_mixture_read(swap, &config, 7, err);
    unlink(path);
    return m;
}

TEST(a_mixture_joins_layers_of_one_mechanism)
{
    Error        err = ERROR_INIT;
    SwapMixture *m = mixture_of("layer,head,mechanism,KL alone\r\n"
                                "0,all,\"streaming-llm(sinks=1,window=3)\",0.1\r\n"
                                "1,all,full,0\r\n"
                                "2,all,\"streaming-llm(sinks=1,window=3)\",0.2\r\n", &err);

    CHECK(m, "%s", err.text); /* a quoted cell is one, whatever commas are in it */
    assert_int_equal(m->count, 1);
    assert_string_equal(m->parts[0].mechanism, "streaming-llm(sinks=1,window=3)");
    swap_mixture_free(m);
    m = mixture_of("mechanism,layer\nwindow(window=3),0\nfull,1\nwindow(window=3),2\n", &err);
    assert_non_null(m);
    assert_int_equal(m->count, 1);
    assert_string_equal(m->parts[0].mechanism, "window(window=3)");
    assert_true(m->parts[0].layers[0] && !m->parts[0].layers[1] && m->parts[0].layers[2]);
    assert_true(m->parts[0].heads[0] && m->parts[0].heads[1]);
    assert_int_equal(m->parts[0].seed, 7);
    assert_null(m->parts[0].also);
    assert_int_equal(*m->parts[0].name, '@');
    swap_mixture_free(m);
}

TEST(a_mixture_has_heads_of_their_own)
{
    Error        err = ERROR_INIT;
    SwapMixture *m = mixture_of("layer,head,mechanism\n0,0,window\n0,1,dilated\n1,0,window\n"
                                "2,all,window\n", &err);
    const Swap  *s;

    CHECK(m, "%s", err.text);
    assert_int_equal(m->count, 4);
    s = m->parts[0].also;
    assert_ptr_equal(s, &m->parts[1]);
    assert_true(s->layers[0] && !s->heads[0] && s->heads[1] && !s->layers[1]);
    assert_true(m->parts[3].layers[2] && m->parts[3].heads[0] && m->parts[3].heads[1]);
    swap_mixture_free(m);
}

TEST(a_mixture_that_cannot_be_says_the_line)
{
    static const char *const wrong[][2] = {
        { "layer,mechanism\n0,window\n0,window\n", "line 3: layer 0, head 0 has a mechanism" },
        { "layer,mechanism\n3,window\n", "line 2: layer '3': the model has the layers 0 to 2" },
        { "layer,head,mechanism\n0,2,window\n", "head '2': the model has the heads 0 to 1" },
        { "layer,mechanism\n0,windo\n", "line 2: unknown mechanism 'windo'" },
        { "layer,mechanism\n0,full\n", "no layer is swapped" },
        { "a,b\n0,window\n", "expected a first line with the columns layer and mechanism" },
        { "layer,mechanism,note\n0,window,tried\n", "was interrupted" },
        { "", "expected a first line" },
        { "layer,head,mechanism\n0,0,window\n0,1,window(window=3)\n1,0,window(window=5)\n"
          "1,1,window(window=7)\n2,0,window(window=9)\n2,1,window(window=11)\n"
          "2,1,window(window=13)\n", "line 8: layer 2, head 1 has a mechanism" },
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        Error err = ERROR_INIT;

        assert_null(mixture_of(wrong[i][0], &err));
        CHECK(strstr(err.text, wrong[i][1]), "%s", err.text);
    }
}

TEST(progress_says_what_is_left)
{
    ModelProgress p = { .began = 100, .spoke = 100, .done = 0, .all = 60 };
    char          text[80];

    model_progress_times(&p, 112, text, sizeof(text));
    assert_string_equal(text, "12 s"); /* nothing is done: nobody knows */
    p.done = 20;
    model_progress_times(&p, 112, text, sizeof(text));
    assert_string_equal(text, "12 s, about 24 s left");
    assert_false(model_progress_speaks(&p, 109));
    assert_true(model_progress_speaks(&p, 110));
    assert_false(model_progress_speaks(&p, 119));
    assert_true(model_progress_speaks(&p, 120));
}

TEST(a_set_is_numbers_and_ranges)
{
    static const char *const wrong[] = { "-1", " -1", "0, -1", "0-+1", " 0",
                                         "+0", "1-",  "",      "0,",   "3" };
    bool set[3];

    assert_true(model_parse_set("--layers", "0,2", "layer", 3, set, NULL));
    assert_true(set[0] && !set[1] && set[2]);
    assert_true(model_parse_set("--layers", "1-2", "layer", 3, set, NULL));
    assert_true(!set[0] && set[1] && set[2]);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        CHECK(!model_parse_set("--layers", wrong[i], "layer", 3, set, NULL), "'%s'", wrong[i]);
}

TEST(an_encoder_says_how_it_reads_a_sentence)
{
    char  name[] = "minilm";
    Text  out = { 0 };
    Model m = { .config = { .arch = "bert", .layers = 1, .heads = 1, .pooling = 1 },
                .name = name, .format = "folder", .notes = (char[]){ "" } };

    m.type_count[WEIGHT_F32] = 103;
    m.type_count[WEIGHT_NONE] = 1;
    model_describe(&m, &out);
    assert_non_null(strstr(text_str(&out), "\nsentence   the mean of its tokens\n"));
    assert_non_null(strstr(text_str(&out), "1 of numbers that are no weights, 103 F32"));
    m.config.pooling = 2;
    text_clear(&out);
    model_describe(&m, &out);
    assert_non_null(strstr(text_str(&out), "\nsentence   its first token\n"));
    m.config.pooling = 0;
    text_clear(&out);
    model_describe(&m, &out);
    assert_null(strstr(text_str(&out), "\nsentence"));
    text_free(&out);
}

SUITE(NULL, NULL)
