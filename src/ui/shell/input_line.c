/* input_line.c -- what changes the input: the key E, and the typed lines open, layer, n, d, heads,
 * seed, causal, head.
 *
 * The panes stay and run again on what was loaded; `u` goes back. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/call.h"
#include "app/result/views.h"
#include "app/session/model_input.h"
#include "core/text.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/panes.h"
#include "ui/state/workspace.h"

/* A whole number from `least`; false with a message. */
static bool take_number(Ui *ui, const char *name, const char *text, int64_t least, int64_t *out)
{
    if (text_whole(text, out) && *out >= least)
        return true;
    ui_say(ui, ROLE_ERROR, "%s: '%.40s' is not a whole number from %lld, as in :%s %lld", name,
           text, (long long)least, name, (long long)least + 3);
    return false;
}

static void run_panes(Ui *ui)
{
    for (int i = 0; i < ui->compare.count; i++)
        pane_run(ui, &ui->compare.panes[i]);
}

static void say_input(Ui *ui)
{
    const Input *input = session_input(ui->session);
    char         layer[40] = "";

    if (input->layer >= 0)
        snprintf(layer, sizeof(layer), ", layer %lld", (long long)input->layer);
    if (session_warning(ui->session))
        ui_say(ui, ROLE_WARN, "%s", session_warning(ui->session));
    else if (input->warning)
        ui_say(ui, ROLE_WARN, "%s", input->warning);
    else
        ui_say(ui, ROLE_DIM, "%.200s: %lld tokens%s", session_input_spec(ui->session),
               (long long)input->n, layer);
}

/* Loads the input with that choice; false with a message: the old one stays.  What is open already
 * is no step to undo. */
static bool load(Ui *ui, const char *given, const InputChoice *choice)
{
    Error err = ERROR_INIT;
    char *spec = strdup(given ? given : session_input_spec(ui->session));
    bool  ok, other = !spec || !input_is_open(ui, spec, choice);

    if (other)
        history_note(ui);
    ok = spec && session_load(ui->session, spec, choice, &err);
    free(spec);
    if (!ok) {
        if (other)
            history_drop(ui);
        ui_say(ui, ROLE_ERROR, "%s", err.text);
        return false;
    }
    run_panes(ui);
    say_input(ui);
    return true;
}

/* MODEL TEXT, two words, as the input of a model that reads that text; false: it is another form.
 * A name with blanks that is a model's own path stays whole. */
static bool model_and_text(const char *typed, Text *spec, Error *err)
{
    const char *words[CALL_MAX_WORDS];
    int         count = 0;
    Text        storage = { 0 };
    Error       no_words = ERROR_INIT;
    const char *path = strncmp(typed, MODEL_PREFIX, strlen(MODEL_PREFIX))
                           ? typed : typed + strlen(MODEL_PREFIX);
    bool        is = !strchr(typed, '[') && !model_spec_is(path) &&
                     call_split(typed, words, CALL_MAX_WORDS, &count, &storage, &no_words) &&
                     count == 2 && model_spec_is(words[0]);

    if (is)
        model_spec_write(words[0], &(ModelText){ .text = words[1] }, spec, err);
    text_free(&storage);
    return is;
}

/* Several words that are neither a file nor a generator's or model's. */
static bool is_sentence(const char *typed)
{
    return strchr(typed, ' ') && !strpbrk(typed, ":[/") && access(typed, F_OK) != 0;
}

void input_typed_open(Ui *ui, const char *typed)
{
    InputChoice choice = INPUT_CHOICE_DEFAULT;
    Text        spec = { 0 };
    Error       err = ERROR_INIT;
    bool        is_model = model_and_text(typed, &spec, &err);

    if (err.code)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    else if (!is_model && is_sentence(typed))
        ui_say(ui, ROLE_ERROR, "'%.60s' is no file; a text is read from a file: :open NAME.txt",
               typed);
    else
        load(ui, is_model ? text_str(&spec) : typed, &choice);
    text_free(&spec);
}

/* Samples that the key E goes through. */
static const struct Sample {
    const char *spec, *words;
    const char *keys; /* what panes offer for it; "": nothing of its own */
    int64_t     n; /* the first tokens of it; 0: all */
    bool        copies; /* it has heads that copy: the layer of the first among them is opened */
} samples[] = {
    { "sample:english.txt",
      "an English text: equal words attend to each other, nothing is hidden", "", 96, false },
    { "sample:induction.safetensors",
      "a trained model: causal, 4 heads ([ ]) in 2 layers (:layer 1)", "; [ ] change the head", 0,
      true },
    { "sample:image.png",
      "a picture: like pixels attend to each other", "; I: what one sees", 0, false },
};
#define SAMPLES (sizeof(samples) / sizeof(*samples))

const char *samples_first(InputChoice *choice)
{
    if (!choice->n)
        choice->n = samples[0].n;
    return samples[0].spec;
}

static const struct Sample *sample_of(const char *spec)
{
    for (size_t i = 0; spec && i < SAMPLES; i++)
        if (!strcmp(samples[i].spec, spec))
            return &samples[i];
    return NULL;
}

const char *sample_words(const char *spec)
{
    const struct Sample *s = sample_of(spec);

    return s ? s->words : NULL;
}

/* Where the sample is opened, and what is to be seen there. */
static void say_where(const struct Sample *s, InputChoice *choice, char *words, size_t size)
{
    HeadPlace place;
    Error     err = ERROR_INIT;

    snprintf(words, size, "%s", s->words);
    if (!s->copies || !input_leading_head(s->spec, HEAD_INDUCTION, &place, &err))
        return;
    choice->layer = place.layer;
    snprintf(words, size, "a trained model: in layer %lld head %lld copies (induction %.2f)",
             (long long)place.layer, (long long)place.head, place.score);
}

/* A number of tokens that was typed holds for the next sample, too, where it has so many. */
void action_sample_next(Ui *ui)
{
    const struct Sample *now = sample_of(session_input_spec(ui->session));
    const struct Sample *next = &samples[now ? (size_t)(now - samples + 1) % SAMPLES : 0];
    InputChoice          choice = INPUT_CHOICE_DEFAULT;
    int64_t              n = session_choice(ui->session)->n;
    bool                 loaded;
    char                 words[160];

    say_where(next, &choice, words, sizeof(words));
    choice.n = now && n != now->n ? n : next->n;
    loaded = load(ui, next->spec, &choice);
    if (!loaded && choice.n != next->n) {
        choice.n = next->n;
        loaded = load(ui, next->spec, &choice);
    }
    if (loaded)
        ui_say(ui, ROLE_DIM, "%s%s", words, ui->screen == SCREEN_COMPARE ? next->keys : "");
}

void action_sample_again(Ui *ui)
{
    action_sample_next(ui);
}

/* A field of the choice that is an int64_t, at this offset. */
static void take_choice(Ui *ui, const char *name, const char *text, int64_t least, size_t field)
{
    InputChoice choice = *session_choice(ui->session);
    int64_t     value;

    if (!take_number(ui, name, text, least, &value))
        return;
    memcpy((char *)&choice + field, &value, sizeof(value));
    load(ui, NULL, &choice);
}

void input_typed_layer(Ui *ui, const char *text)
{
    take_choice(ui, "layer", text, 0, offsetof(InputChoice, layer));
}

void input_typed_n(Ui *ui, const char *text)
{
    take_choice(ui, "n", text, 1, offsetof(InputChoice, n));
}

void input_typed_d(Ui *ui, const char *text)
{
    take_choice(ui, "d", text, 1, offsetof(InputChoice, d));
}

void input_typed_heads(Ui *ui, const char *text)
{
    take_choice(ui, "heads", text, 1, offsetof(InputChoice, heads));
}

static bool all_seeded(const Ui *ui, uint64_t seed)
{
    bool all = true;

    for (int i = 0; i < ui->compare.count; i++)
        all &= ui->compare.panes[i].request.seed == seed;
    return all;
}

static bool load_seeded(Ui *ui, const char *spec, const InputChoice *choice)
{
    if (input_is_open(ui, spec, choice) && !all_seeded(ui, choice->seed))
        history_note(ui); /* the load notes no step */
    return load(ui, spec, choice);
}

/* A seed in the input's own words is replaced there. */
void input_typed_seed(Ui *ui, const char *text)
{
    InputChoice choice = *session_choice(ui->session);
    const char *spec = session_input_spec(ui->session);
    Text        words = { 0 };
    int64_t     seed;
    bool        own, loaded;

    if (!take_number(ui, "seed", text, 0, &seed))
        return;
    choice.seed = (uint64_t)seed;
    own = input_reseeded(spec, choice.seed, &words);
    loaded = load_seeded(ui, own ? text_str(&words) : spec, &choice);
    text_free(&words);
    if (!loaded)
        return;
    ui->defaults.seed = choice.seed;
    for (int i = 0; i < ui->compare.count; i++)
        ui->compare.panes[i].request.seed = choice.seed;
    run_panes(ui);
}

static bool all_causal(const Ui *ui, int causal)
{
    bool all = ui->defaults.causal == causal;

    for (int i = 0; i < ui->compare.count; i++)
        all &= ui->compare.panes[i].request.causal == causal;
    return all;
}

void input_typed_causal(Ui *ui, const char *text)
{
    static const char *const words[] = { "off", "on", "no", "yes", "false", "true" };
    const Input             *input = session_input(ui->session);
    int                      causal = -2;

    if (!*text) {
        ui_say(ui, ROLE_DIM, "causal is %s%s; :causal on, off or input",
               (ui->defaults.causal < 0 && input ? input->causal : ui->defaults.causal) == 1
                   ? "on" : "off",
               ui->defaults.causal < 0 ? ", as the input says" : "");
        return;
    }
    for (int i = 0; i < 6; i++)
        if (!strcmp(text, words[i]))
            causal = i & 1;
    if (!strcmp(text, "input"))
        causal = -1;
    if (causal == -2) {
        ui_say(ui, ROLE_ERROR, "causal: '%.40s' is not on, off or input (what the input says)",
               text);
        return;
    }
    if (!all_causal(ui, causal))
        history_note(ui);
    ui->defaults.causal = causal;
    for (int i = 0; i < ui->compare.count; i++)
        ui->compare.panes[i].request.causal = causal;
    run_panes(ui);
    ui_say(ui, ROLE_DIM, causal < 0 ? "causal as the input says"
                         : causal   ? "causal: each token sees itself and those before it"
                                    : "not causal: each token sees all");
}

void input_typed_head(Ui *ui, const char *text)
{
    Pane   *pane = panes_focus(ui);
    int64_t heads = pane && pane->result ? pane_heads(pane) : 0, head;

    if (!take_number(ui, "head", text, 0, &head))
        return;
    if (heads < 1) {
        ui_say(ui, ROLE_WARN, "head: no pane shows one yet; Enter in the list opens a mechanism");
        return;
    }
    if (head >= heads) {
        ui_say(ui, ROLE_ERROR, "head: %lld is outside 0..%lld", (long long)head,
               (long long)heads - 1);
        return;
    }
    for (int i = 0; i < ui->compare.count; i++) {
        Pane *to = &ui->compare.panes[i];

        if (to == pane || (ui->compare.now.linked && to->result && to->result->run->h == heads))
            to->spec.head = head;
    }
}
