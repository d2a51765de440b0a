/* test_saved.c -- a session as text: written, read and written again it is the same; what
 * is broken is refused with its line.
 */

#include <unistd.h>

#include "app/session/model_input.h"
#include "check.h"
#include "core/rng.h"
#include "ui/state/workspace.h"

static Ui *open_ui(void)
{
    Error err = ERROR_INIT;
    Ui   *ui = calloc(1, sizeof(*ui));

    assert_non_null(ui);
    ui->session = session_new(&err);
    assert_non_null(ui->session);
    return ui;
}

static void close_ui(Ui *ui)
{
    session_free(ui->session);
    free(ui);
}

/* What a random session is made of.  A choice of 0 is the plainest one. */
typedef struct Choices {
    int made[96], count, at;
} Choices;

static int pick(Choices *choices, int count)
{
    assert_true(choices->at < choices->count);
    return choices->made[choices->at++] % count;
}

static Choices any_choices(Rng *rng)
{
    Choices choices = { .count = sizeof(choices.made) / sizeof(*choices.made) };

    for (int i = 0; i < choices.count; i++)
        choices.made[i] = (int)rng_below(rng, 1000000);
    return choices;
}

static void fill_pane(Ui *ui, Choices *from, const Mechanism *m, PaneState *pane)
{
    Error err = ERROR_INIT;

    *pane = (PaneState){ .request = REQUEST_INIT,
                         .spec = { .head = pick(from, 3), .round = 2 * pick(from, 2),
                                   .pool = pick(from, POOL_COUNT + 1) - 1,
                                   .scale = pick(from, SCALE_COUNT + 1) - 1,
                                   .map = pick(from, MAP_DIVERGING + 1) - 1,
                                   .reach = { pick(from, 9), pick(from, 2) },
                                   .sorted = pick(from, 2) },
                         .differs = pick(from, 2),
                         .lens = { .zoom = (pick(from, 9) + 4) % 9 - 4, .row0 = pick(from, 99),
                                   .col0 = pick(from, 99), .q = pick(from, 99),
                                   .k = pick(from, 99) } };
    pane->request.causal = pick(from, 3) - 1;
    pane->request.seed = pick(from, 2) ? UINT64_MAX - (uint64_t)pick(from, 9) : 0;
    pane->request.keys = pick(from, 2) * 16;
    assert_true(request_example(ui->session, &pane->request, m, &err));
    strcpy(pane->spec.view, pick(from, 2) ? "weights" : "");
}

static void fill(Ui *ui, Choices *from, size_t at, Workspace *saved)
{
    from->at = 0;
    workspace_init(saved);
    saved->spec = strdup("synthetic:blocks(n=64,d=32,seed=3)");
    saved->choice.n = pick(from, 2) * 77;
    saved->screen = pick(from, SCREEN_TABS);
    saved->theme = pick(from, THEME_COUNT);
    saved->glyphs = pick(from, GLYPHS_COUNT);
    saved->order = pick(from, 3);
    saved->marked[pick(from, (int)mechanism_count())] = true;
    saved->arrangement.linked = pick(from, 2);
    saved->arrangement.solo = pick(from, 2);
    saved->look.labels = pick(from, 2);
    saved->arrangement.focus = pick(from, 2);
    strcpy(saved->filter, pick(from, 2) ? "O(n log n)" : "");
    for (int i = 0; i < 2; i++, saved->count++)
        fill_pane(ui, from, mechanism_at((at + (size_t)i) % mechanism_count()), &saved->panes[i]);
}

/* Whether the session of these choices, written and read, is written the same; said: if not. */
static bool comes_back(Ui *ui, Choices *from, size_t at, Text *said)
{
    Workspace saved, again;
    Text      first = { 0 }, second = { 0 };
    Error     err = ERROR_INIT;
    bool      same;

    fill(ui, from, at, &saved);
    workspace_write(&saved, &first);
    same = workspace_read(ui, "session", text_str(&first), &again, &err);
    if (same) {
        workspace_write(&again, &second);
        workspace_free(&again);
        same = !strcmp(text_str(&first), text_str(&second));
    }
    text_free(said);
    text_addf(said, "%s\n%s\n%s", err.text, text_str(&first), text_str(&second));
    workspace_free(&saved);
    text_free(&first);
    text_free(&second);
    return same;
}

/* With every choice at its plainest that the difference can do without. */
static void report_plainest(Ui *ui, Choices *from, size_t at)
{
    Text said = { 0 };

    for (int i = 0; i < from->at; i++) {
        int made = from->made[i];

        from->made[i] = 0;
        if (comes_back(ui, from, at, &said))
            from->made[i] = made;
    }
    comes_back(ui, from, at, &said);
    fail_msg("%s", text_str(&said));
}

TEST(write_read_write_is_the_same)
{
    Ui  *ui = open_ui();
    Rng  rng = rng_named(7, "saved");
    Text said = { 0 };

    for (size_t m = 0; m < mechanism_count(); m++) {
        Choices choices = any_choices(&rng);

        if (!comes_back(ui, &choices, m, &said))
            report_plainest(ui, &choices, m);
    }
    text_free(&said);
    close_ui(ui);
}

TEST(layers_of_a_stack_keep_what_they_share)
{
    static const char text[] = "attnscope session 1\n"
                               "pane window(window=5) > full > bigbird(seed=9)\n"
                               "  seed 4\n"
                               "  causal yes\n";
    Ui   *ui = open_ui();
    Workspace saved;
    Error err = ERROR_INIT;

    assert_true(workspace_read(ui, "stack", text, &saved, &err));
    assert_int_equal(saved.panes[0].request.seed, 4);
    assert_int_equal(saved.panes[0].request.above->seed, 4);
    assert_int_equal(saved.panes[0].request.above->causal, 1);
    assert_int_equal(saved.panes[0].request.above->above->seed, 9);
    workspace_free(&saved);
    close_ui(ui);
}

TEST(a_model_without_a_path_is_refused)
{
    Ui       *ui = open_ui();
    Workspace saved;
    Error     err = ERROR_INIT;

    assert_false(workspace_read(ui, "s", "attnscope session 1\n\ninput model:[text=a]\n", &saved,
                                &err));
    assert_non_null(strstr(err.text, "s:3: "));
    assert_non_null(strstr(err.text, "model: needs a path"));
    close_ui(ui);
}

TEST(a_model_whose_path_ends_in_a_blank_is_kept)
{
    static const char *const specs[] = { "model: []", "model:/m []", "model:/m[1][]" };

    for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
        Text  written = { 0 };
        Error err = ERROR_INIT;

        assert_true(model_spec_write(specs[i], &(ModelText){ 0 }, &written, &err));
        assert_string_equal(text_str(&written), specs[i]);
        text_free(&written);
    }
}

TEST(a_sample_is_found_wherever_the_program_lies)
{
    static const char *const texts[] = { "attnscope session 1\ninput sample:induction.npz\n",
                                         "attnscope session 1\ninput shipped:induction.npz\n" };
    Ui *ui = open_ui();

    for (size_t i = 0; i < 2; i++) {
        Workspace saved;
        Text  text = { 0 };
        Error err = ERROR_INIT;

        CHECK(workspace_read(ui, "sample", texts[i], &saved, &err), "%s", err.text);
        assert_string_equal(saved.spec, "sample:induction.npz");
        workspace_write(&saved, &text);
        assert_non_null(strstr(text_str(&text), "\ninput sample:induction.npz\n"));
        text_free(&text);
        workspace_free(&saved);
    }
    close_ui(ui);
}

static void check_input(Ui *ui, const char *spec, const char *written)
{
    Workspace saved;
    Text      text = { 0 }, line = { 0 };

    workspace_init(&saved);
    saved.spec = strdup(spec);
    workspace_write(&saved, &text);
    text_addf(&line, "\ninput %s\n", written);
    CHECK(strstr(text_str(&text), text_str(&line)), "%s: %s", spec, text_str(&text));
    text_free(&line);
    text_free(&text);
    workspace_free(&saved);
    (void)ui;
}

/* Files get absolute paths, also those of a model and of its text; samples keep their names. */
TEST(inputs_are_written_for_any_folder)
{
    char  here[4096], one[5000], two[9000];
    Ui   *ui = open_ui();

    assert_non_null(getcwd(here, sizeof(here)));
    snprintf(one, sizeof(one), "%s/qkv.npz", here);
    check_input(ui, "qkv.npz", one);
    check_input(ui, "sample:induction.npz", "sample:induction.npz");
    check_input(ui, "model:sample:tales.gguf[text=sample:repeated.txt]",
                "model:sample:tales.gguf[text=sample:repeated.txt]");
    snprintf(two, sizeof(two), "model:%s/m.gguf[text=%s/a,b.txt,max-tokens=9,special=no]", here,
             here);
    check_input(ui, "model:m.gguf[text=a,b.txt,max-tokens=9,special=no]", two);
    check_input(ui, "model:/m.gguf[ids=/ids,max-tokens=9]", "model:/m.gguf[ids=/ids,max-tokens=9]");
    close_ui(ui);
}

TEST(what_is_broken_is_refused_with_its_line)
{
    Ui   *ui = open_ui();
    Rng   rng = rng_named(11, "broken");
    Choices choices = any_choices(&rng);
    Workspace saved;
    Text  text = { 0 };
    int   refused = 0;

    fill(ui, &choices, 20, &saved);
    workspace_write(&saved, &text);
    workspace_free(&saved);
    for (int i = 0; i < 4000; i++) {
        char *broken = strdup(text_str(&text));
        int   length = (int)text.length, at = (int)rng_below(&rng, (uint64_t)length);
        Error err = ERROR_INIT;

        if (i % 3 == 0)
            broken[at] = (char)(1 + rng_below(&rng, 255));
        else if (i % 3 == 1)
            broken[at] = '\0';
        else
            memmove(broken + at, broken + at + (length - at) / 2,
                    (size_t)(length - at - (length - at) / 2 + 1));
        if (workspace_read(ui, "broken", broken, &saved, &err)) {
            workspace_free(&saved);
        } else {
            refused++;
            CHECK(!strncmp(err.text, "broken:", 7) && err.text[7] >= '1' && err.text[7] <= '9',
                  "%s", err.text);
        }
        free(broken);
    }
    assert_true(refused > 500);
    text_free(&text);
    close_ui(ui);
}

SUITE(NULL, NULL)
