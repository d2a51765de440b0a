/* test_pairs_only.c -- pictures of allowed pairs, for which attention is left out, are the same as
 * with it.
 *
 * Everything is derived from the catalogue: a mechanism whose pairs depend on an output of
 * attention would differ here.
 */

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "session_fixture.h"

static bool has_figure(const Run *run, const char *name)
{
    for (int i = 0; i < run->figure_count; i++)
        if (!strcmp(run->figures[i].name, name))
            return true;
    return false;
}

/* The text of the figure; *skipped: some run of it was without attention; *weighed: some run has
 * the figure mass. */
static void draw(Session *s, const char *line, bool pictures_only, bool *skipped, bool *weighed,
                 Text *out)
{
    const char *words[CALL_MAX_WORDS];
    Text        storage = { 0 };
    FigureRun    *d = calloc(1, sizeof(*d));
    Error       err = ERROR_INIT;
    Figure     *figure = NULL;
    Call        call;
    int         count;

    assert_non_null(d);
    assert_true(call_split(line, words, CALL_MAX_WORDS, &count, &storage, &err));
    assert_true(call_parse(&call, words, count, &err));
    CHECK(figure_run_make(s, &call, pictures_only, d, &err) &&
              (figure = figure_run_draw(s, &call, d, &err)) != NULL &&
              figure_text(figure, &(TextOptions){ .width = 100, .utf8 = true }, out, &err),
          "%s: %s", line, err.text);
    *skipped = *weighed = false;
    for (int i = 0; i < d->count; i++) {
        *skipped = *skipped || d->results[i]->request.pairs_only;
        *weighed = *weighed || has_figure(d->results[i]->run, "mass");
    }
    figure_free(figure);
    figure_run_free(d);
    free(d);
    text_free(&storage);
}

/* Whether attention was left out. */
static bool compare(Session *s, const char *line)
{
    bool with, without, weighed, same;
    Text a = { 0 }, b = { 0 };

    draw(s, line, false, &with, &weighed, &a);
    draw(s, line, true, &without, &weighed, &b);
    same = !strcmp(text_str(&a), text_str(&b));
    CHECK(same && !with, "%s: with attention\n%s\nwithout\n%s", line, text_str(&a), text_str(&b));
    text_free(&a);
    text_free(&b);
    return without;
}

static bool can_run(Session *s, const Mechanism *m)
{
    Request r = REQUEST_INIT;
    Error   err = ERROR_INIT;
    Result *result = request_example(s, &r, m, &err) ? session_run(s, &r, &err) : NULL;
    bool    ok = result && result->run->err.code == ERR_NONE;

    if (result)
        result_release(result);
    request_free(&r);
    return ok;
}

static bool has_view(Session *s, const Mechanism *m, const char *name)
{
    Request r = REQUEST_INIT;
    Error   err = ERROR_INIT;
    Result *result = request_example(s, &r, m, &err) ? session_run(s, &r, &err) : NULL;
    bool    there = result && run_view(result->run, name);

    if (result)
        result_release(result);
    request_free(&r);
    return there;
}

static void add_word(const Mechanism *m, Text *out)
{
    text_addf(out, m->example ? "figure \"%s(%s)" : "figure \"%s", m->id, m->example);
}

/* The default picture of a mechanism and all its pictures of pairs. */
static int compare_all(Session *s, const Mechanism *m, const char *options)
{
    Text line = { 0 };
    int  skipped;

    add_word(m, &line);
    text_addf(&line, "\"%s", options);
    skipped = compare(s, text_str(&line));
    for (const ViewPromise *p = m->views; p && p->name; p++) {
        if ((p->kind != VIEW_PATTERN && p->kind != VIEW_COMPONENTS) || !has_view(s, m, p->name))
            continue;
        text_free(&line);
        line = (Text){ 0 };
        add_word(m, &line);
        text_addf(&line, ":%s\"%s", p->name, options);
        CHECK(compare(s, text_str(&line)), "%s: attention was not left out", text_str(&line));
        skipped++;
    }
    text_free(&line);
    return skipped;
}

TEST(pictures_of_pairs_need_no_attention)
{
    Session *s = session_on("synthetic:normal(n=40,d=8,heads=2)");
    int      skipped = 0;

    for (size_t i = 0; mechanism_at(i); i++) {
        const Mechanism *m = mechanism_at(i);

        if (!can_run(s, m))
            continue;
        skipped += compare_all(s, m, "");
        if (m->causal)
            skipped += compare_all(s, m, " --causal --seed 5");
    }
    CHECK(skipped > 100, "only %d figures were drawn without attention", skipped);
    session_free(s);
}

TEST(weights_beside_them_and_strips_need_it)
{
    Session *s = session_on("synthetic:normal(n=24,d=8)");

    assert_true(compare(s, "figure window bigbird"));
    assert_true(compare(s, "figure window bigbird:weights"));
    assert_false(compare(s, "figure window window:weights"));
    assert_false(compare(s, "figure window 'full:weights - window:weights'"));
    assert_false(compare(s, "figure window --strips entropy"));
    assert_false(compare(s, "figure full"));
    assert_false(compare(s, "figure reformer --sorted"));
    session_free(s);
}

/* The view kept_mass weighs the rows that it shows, and is the same. */
TEST(pictures_need_no_masses_of_all_rows)
{
    static const char *const lines[] = { "figure topk:weights", "figure dsa:selected",
                                         "figure moba:kept_mass", "figure 'h2o:best_mass'" };
    Session *s = session_on("synthetic:normal(n=40,d=8,heads=2)");

    for (int x = 0; x < 4; x++) {
        bool skipped, weighed;
        Text all = { 0 }, few = { 0 };

        draw(s, lines[x], false, &skipped, &weighed, &all);
        assert_true(weighed);
        draw(s, lines[x], true, &skipped, &weighed, &few);
        assert_false(weighed || skipped);
        assert_string_equal(text_str(&all), text_str(&few));
        text_free(&all);
        text_free(&few);
    }
    session_free(s);
}

SUITE(NULL, NULL)
