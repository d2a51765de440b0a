/* complete.c -- see complete.h. */
#include "app/complete.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/command/command.h"
#include "app/command/model.h"
#include "app/figure/plan.h"
#include "app/figure/plots.h"
#include "app/glossary.h"
#include "app/lesson/lesson.h"
#include "app/program.h"
#include "app/result/views.h"
#include "app/session/model_input.h"
#include "app/shipped.h"
#include "app/study/study.h"
#include "attn/run/position.h"
#include "attn/study/heads.h"
#include "profile/stack.h"

typedef struct Ask {
    Session           *session;
    const char *const *words; /* of the line */
    int                count;
    const Command     *command;
    const char        *part;  /* what there is of the word, behind `head` */
    Text               head;  /* what stays before it: "--theme=", "bigbird(" */
    CompletionTaker    take;
    void              *context;
    bool               files;
} Ask;

/* Puts `length` bytes of the part into the head. */
static void keep(Ask *a, size_t length)
{
    text_add_bytes(&a->head, a->part, length);
    a->part += length;
}

static void offer(Ask *a, const char *word, const char *help)
{
    Text whole = { 0 };

    if (strncmp(word, a->part, strlen(a->part)) != 0)
        return;
    text_addf(&whole, "%s%s", text_str(&a->head), word);
    a->take(a->context, text_str(&whole), help ? help : "");
    text_free(&whole);
}

static void offer_each(Ask *a, const char *list)
{
    char word[64];

    while (*list) {
        size_t length = strcspn(list, " ");

        snprintf(word, sizeof(word), "%.*s", (int)length, list);
        offer(a, word, "");
        list += length + strspn(list + length, " ");
    }
}

/* ---- mechanisms on the line ---------------------------------------------------- */

/* The mechanism that a word begins with, as "bigbird(window=5):weights@2"; NULL: none. */
static const Mechanism *mechanism_of(const char *word)
{
    char id[64];

    snprintf(id, sizeof(id), "%.*s", (int)(strcspn(word, "(:@ ") % sizeof(id)), word);
    return mechanism_find(id);
}

/* The k-th mechanism before the last word, as a word of its own or the value of -m and --swap. */
static const Mechanism *mechanism_on_line(const Ask *a, int k)
{
    for (int i = 1; i + 1 < a->count; i++) {
        const Mechanism *m = mechanism_of(a->words[i]);

        if (m && k-- == 0)
            return m;
    }
    return NULL;
}

static void offer_values(Ask *a, const Param *p)
{
    Text usual = { 0 };

    for (int i = 0; p->choices && p->choices[i]; i++)
        offer(a, p->choices[i], "");
    if (p->type == PARAM_TYPE_BOOL)
        offer_each(a, "true false");
    else if (p->type == PARAM_TYPE_TENSOR)
        offer(a, "@", "a file: @FILE.npy");
    else if (!p->choices) {
        params_print(p, NULL, &usual);
        if (usual.length)
            offer(a, text_str(&usual), "the default");
    }
    text_free(&usual);
}

/* Behind the last comma outside parentheses. */
static void keep_list(Ask *a)
{
    size_t last = 0;
    int    depth = 0;

    for (size_t i = 0; a->part[i]; i++) {
        depth += (a->part[i] == '(') - (a->part[i] == ')');
        last = a->part[i] == ',' && depth == 0 ? i + 1 : last;
    }
    keep(a, last);
}

/* "window=", and after the sign what it may be; `list`: several values. */
static void offer_params(Ask *a, const Param *params, bool list)
{
    const char *equals = strchr(a->part, '=');

    for (const Param *p = params; p && p->name; p++) {
        char word[80];

        snprintf(word, sizeof(word), "%s=", p->name);
        if (!equals)
            offer(a, word, p->help);
        else if (!strncmp(a->part, word, strlen(word))) {
            keep(a, strlen(word));
            if (list)
                keep_list(a);
            offer_values(a, p);
            return;
        }
    }
}

/* Parameters of every mechanism on the line. */
static void params_of_line(Ask *a)
{
    const Mechanism *m;
    size_t           before = a->head.length;
    bool             list = !strcmp(a->command->name, "sweep");

    for (int k = 0; (m = mechanism_on_line(a, k)) && a->head.length == before; k++)
        offer_params(a, m->params, list);
}

static void views_of(Ask *a, const Mechanism *m, bool plots)
{
    char word[64];

    for (const ViewPromise *v = m->views; v && v->name; v++)
        offer(a, v->name, v->help);
    for (int i = 0; view_of_any(i); i++)
        offer(a, view_of_any(i), "");
    for (int k = 0; plots && k < PLOT_KINDS; k++) {
        snprintf(word, sizeof(word), "plot(%s)", plot_name((PlotKind)k));
        offer(a, word, plot_help((PlotKind)k));
    }
}

static void views_of_line(Ask *a)
{
    const Mechanism *m;

    for (int k = 0; (m = mechanism_on_line(a, k)); k++)
        views_of(a, m, false);
}

static void mechanisms(Ask *a)
{
    for (size_t i = 0; mechanism_at(i); i++)
        offer(a, mechanism_at(i)->id, mechanism_at(i)->title);
}

/* Settings that stand among the parameters of a mechanism. */
static void settings(Ask *a)
{
    if (!strchr(a->part, '='))
        offer_each(a, "position= seed= causal= fit=");
    else if (!strncmp(a->part, "position=", 9)) {
        keep(a, 9);
        for (size_t i = 0; position_at(i); i++)
            offer(a, position_at(i)->id, position_at(i)->help);
    } else if (!strncmp(a->part, "causal=", 7) || !strncmp(a->part, "fit=", 4)) {
        keep(a, strcspn(a->part, "=") + 1);
        offer_each(a, "true false");
    }
}

/* "bigbird", "bigbird(window=5,glo", "bigbird(window=5):wei". */
static void mechanism_text(Ask *a)
{
    const Mechanism *m = mechanism_of(a->part);
    const char      *open = strchr(a->part, '('), *close = open ? strchr(open, ')') : NULL;
    const char      *colon = strchr(close ? close : a->part, ':');

    if (m && open && !close && (!colon || colon > open)) {
        const char *comma = strrchr(open, ',');

        keep(a, (size_t)((comma ? comma : open) + 1 - a->part));
        settings(a);
        if (*a->part != '\0' || text_str(&a->head)[a->head.length - 1] != '=')
            offer_params(a, m->params, false);
    } else if (m && colon) {
        keep(a, (size_t)(colon + 1 - a->part));
        views_of(a, m, a->command && !strcmp(a->command->name, "figure"));
    } else {
        mechanisms(a);
    }
}

static void swept(Ask *a)
{
    char word[32];

    mechanism_text(a);
    offer_each(a, "all table1");
    for (unsigned bit = 1; bit <= CLASS_LAB; bit <<= 1) {
        snprintf(word, sizeof(word), "class:%s", class_name(bit));
        offer(a, word, class_title(bit));
    }
}

/* ---- other tables ------------------------------------------------------------- */

static void samples(Ask *a)
{
    char word[80];

    for (size_t i = 0; session_sample(i); i++) {
        snprintf(word, sizeof(word), "sample:%s", session_sample(i));
        offer(a, word, "");
    }
}

static void inputs(Ask *a)
{
    char word[80];

    samples(a);
    for (const InputGenerator *g = input_generators(); g->name; g++) {
        snprintf(word, sizeof(word), "synthetic:%s", g->name);
        offer(a, word, g->help);
    }
    offer(a, "model:", "a model, with --text");
}

#define READ_UP_TO (64LL << 20) /* bytes of an input that Tab may read */

/* The line's input, or the one that is read without any; NULL: none, or it would take long. */
static const Input *input_of_line(Ask *a)
{
    InputChoice choice = INPUT_CHOICE_DEFAULT;
    const char *spec = NULL;
    struct stat about;
    Error       ignored = ERROR_INIT;

    for (int i = 1; i + 2 < a->count; i++)
        if (!strcmp(a->words[i], "-i") || !strcmp(a->words[i], "--input"))
            spec = a->words[i + 1];
    if (!spec || !a->session || model_spec_is(spec) ||
        (stat(spec, &about) == 0 && about.st_size > READ_UP_TO) ||
        !session_load(a->session, spec, &choice, &ignored))
        return NULL;
    return session_input(a->session);
}

static void offer_number(Ask *a, long long number)
{
    char word[32];

    snprintf(word, sizeof(word), "%lld", number);
    offer(a, word, "");
}

static void layers(Ask *a)
{
    const Input *in = input_of_line(a);

    for (int64_t i = 0; in && i < in->layers; i++)
        offer_number(a, (long long)input_layer_number(in, i));
}

static void heads(Ask *a)
{
    const Input *in = input_of_line(a);

    for (int64_t i = 0; in && i < in->heads; i++)
        offer_number(a, (long long)i);
}

static void presets(Ask *a)
{
    for (size_t i = 0; preset_at(i); i++)
        offer(a, preset_at(i)->id, preset_at(i)->title);
}

/* The user's lessons, too; left out where they cannot be read. */
static void lesson_ids(Ask *a)
{
    LessonList list;

    offer(a, "list", "all lessons");
    if (!lessons_find(&list, NULL))
        return;
    for (int i = 0; i < list.count; i++)
        offer(a, list.files[i].id, "");
    lessons_free(&list);
}

static void positions(Ask *a)
{
    offer(a, "none", "");
    for (size_t i = 0; position_at(i); i++)
        offer(a, position_at(i)->id, position_at(i)->help);
}

static void subjects(Ask *a)
{
    mechanisms(a);
    presets(a);
    offer_each(a, "glossary positions inputs conventions");
    for (size_t i = 0; gloss_at(i); i++)
        offer(a, gloss_at(i)->word, "");
}

static void themes(Ask *a)
{
    for (int i = 0; figure_theme_name(i); i++)
        offer(a, figure_theme_name(i), "");
}

static void pools(Ask *a)
{
    for (int i = 0; i < POOL_COUNT; i++)
        offer(a, pool_name((Pool)i), "");
}

static void scales(Ask *a)
{
    for (int i = 0; i < SCALE_COUNT; i++)
        offer(a, scale_name((Scale)i), "");
}

static void colour_maps(Ask *a)
{
    for (int i = 0; i < MAP_COUNT; i++)
        offer(a, colour_map_name((ColourMap)i), "");
}

static void strips(Ask *a)
{
    for (int i = 1; i < MARGIN_KINDS; i++) /* the first is none */
        offer(a, margin_name((MarginKind)i), "");
}

static void head_scores(Ask *a)
{
    for (int i = 0; i < HEAD_SCORE_COUNT; i++)
        offer(a, head_score_name((HeadScore)i), "");
}

static void head_orders(Ask *a)
{
    if (*a->part == '-')
        keep(a, 1);
    head_scores(a);
}

static void head_pictures(Ask *a)
{
    offer(a, "label", "");
    head_scores(a);
}

static void stack_dtypes(Ask *a)
{
    for (int i = 0; stack_dtype_name(i); i++)
        offer(a, stack_dtype_name(i), "");
}

/* The layer behind the last comma or bracket. */
static void stack_layers(Ask *a)
{
    const char *last = a->part;

    for (const char *c = a->part; *c; c++)
        last = *c == ',' || *c == '(' ? c + 1 : last;
    keep(a, (size_t)(last - a->part));
    offer(a, "full", "all keys");
    offer(a, "window(", "the last keys: window(4096), or window(4096,sinks=4)");
    offer(a, "state(", "no keys but sums: state(HEADS,KEYS,VALUES)");
    for (size_t i = 0; mechanism_at(i); i++)
        if (mechanism_at(i)->kind_of_layer)
            offer(a, mechanism_at(i)->id, "with its parameters in brackets");
}

static void model_curves(Ask *a)
{
    for (int i = 0; i < MODEL_MEASURES; i++)
        offer(a, model_measure_name((ModelMeasure)i), "");
    offer(a, "cost", "the loss over the share of FLOPs");
}

/* Over a parameter with --vary, else of the mechanisms themselves. */
static void curves(Ask *a)
{
    bool varies = false;

    for (int i = 1; i + 1 < a->count; i++)
        varies |= !strncmp(a->words[i], "--vary", 6);
    for (int i = 0; varies && i < STUDY_QUANTITIES; i++)
        offer(a, quantity_name((StudyQuantity)i), "");
    for (int i = 0; !varies && i < PLOT_KINDS; i++)
        offer(a, plot_name((PlotKind)i), plot_help((PlotKind)i));
}

static void formats(Ask *a)
{
    offer_each(a, "png svg pdf txt ans");
    if (!strcmp(a->command->name, "step"))
        offer(a, "apng", "an animation");
}

/* Stages of the line's mechanism, and the replays. */
static void steps(Ask *a)
{
    const Mechanism *m = mechanism_on_line(a, 0);

    for (const StageNote *note = m ? m->notes : NULL; note && note->stage; note++)
        offer(a, note->stage, "");
    offer_each(a, "tile token state growing");
}

/* ---- the explorer's options ------------------------------------------------------ */

typedef struct Source {
    void (*offer)(Ask *a); /* NULL: the words alone */
    const char *words;     /* blank-separated; NULL: none */
    bool        list;      /* several, with commas between */
    bool        files;
} Source;

/* Saved ones; sessions of the explorer are files of this folder. */
static void sessions(Ask *a)
{
    Text           path = { 0 };
    DIR           *folder = place_state("sessions/", &path, NULL) ? opendir(text_str(&path)) : NULL;
    struct dirent *entry;

    offer(a, "last", "what was open when you last left");
    while (folder && (entry = readdir(folder)))
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "last") != 0)
            offer(a, entry->d_name, "");
    if (folder)
        closedir(folder);
    text_free(&path);
}

static void screen_themes(Ask *a)
{
    offer_each(a, "default light mono");
    offer(a, "high contrast", "");
}

/* Of `attnscope [INPUT]`, which ui/shell/ui.c reads; a test compares the two. */
static const struct {
    const char *flag;
    bool        value;
    Source      source;
} explorer_options[] = {
    { "--input", true, { .offer = inputs, .files = true } },
    { "--session", true, { .offer = sessions } },
    { "--heads", true, { 0 } },
    { "--layer", true, { .offer = layers } },
    { "--text", true, { .offer = samples, .files = true } },
    { "--ids", true, { .files = true } },
    { "--max-tokens", true, { 0 } },
    { "--no-special", false, { 0 } },
    { "--seed", true, { 0 } },
    { "--causal", false, { 0 } },
    { "--threads", true, { 0 } },
    { "--device", true, { .words = "cpu cuda auto" } },
    { "--precision", true, { .words = "f32 tf32 bf16 f16" } },
    { "--color", true, { .words = "auto truecolor 256 16 8 none" } },
    { "--theme", true, { .offer = screen_themes } },
    { "--glyphs", true, { .words = "half quadrants braille full ascii" } },
    { "--utf8", false, { 0 } },
    { "--ascii", false, { 0 } },
    { "--lua", true, { .files = true } },
    { "--script", true, { .words = "tour.lua", .files = true } },
    { "--no-mouse", false, { 0 } },
    { "--keep-messages", false, { 0 } },
    { "--help", false, { 0 } },
};
#define EXPLORER_OPTIONS (sizeof(explorer_options) / sizeof(*explorer_options))

static void explorer_flags(Ask *a)
{
    for (size_t i = 0; i < EXPLORER_OPTIONS; i++)
        offer(a, explorer_options[i].flag, "");
}

static void commands(Ask *a)
{
    for (size_t i = 0; command_at(i); i++)
        offer(a, command_at(i)->name, command_at(i)->help);
    mechanisms(a);
    inputs(a);
    if (*a->part == '-') {
        explorer_flags(a);
        offer(a, "--version", "print the version");
    }
}

/* ---- values of options, words of commands --------------------------------------- */

static const struct {
    OptionId id;
    Source   source;
} option_sources[] = {
    { OPT_INPUT, { .offer = inputs, .files = true } },
    { OPT_TEXT, { .offer = samples, .files = true } },
    { OPT_IDS, { .files = true } },
    { OPT_SWAP, { .offer = mechanism_text } },
    { OPT_STACK, { .offer = stack_layers } },
    { OPT_DTYPE, { .offer = stack_dtypes, .list = true } },
    { OPT_SWAPVARY, { .offer = params_of_line } },
    { OPT_SWAPPLOT, { .offer = model_curves, .list = true } },
    { OPT_SORT, { .offer = head_orders } },
    { OPT_SCORE, { .offer = head_pictures, .list = true } },
    { OPT_LAYER, { .offer = layers } },
    { OPT_HEAD, { .offer = heads } },
    { OPT_POSITION, { .offer = positions, .list = true } },
    { OPT_PARAM, { .offer = params_of_line } },
    { OPT_DEVICE, { .words = "cpu cuda auto", .list = true } },
    { OPT_PRECISION, { .words = "f32 tf32 bf16 f16", .list = true } },
    { OPT_VARY, { .offer = params_of_line } },
    { OPT_PLOT, { .offer = curves, .list = true } },
    { OPT_KEEP, { .words = "90% 95% 99% error=5%" } },
    { OPT_MATCH, { .words = "pairs=5% flops=5%" } },
    { OPT_DUMP, { .files = true } },
    { OPT_OUTPUT, { .files = true } },
    { OPT_FORMAT, { .offer = formats } },
    { OPT_VIEW, { .offer = views_of_line } },
    { OPT_THEME, { .offer = themes } },
    { OPT_LABELS, { .words = "letters axes ticks none", .list = true } },
    { OPT_FONT, { .words = "sans mono", .files = true } },
    { OPT_LETTERS, { .words = "outlines text font" } },
    { OPT_POOL, { .offer = pools } },
    { OPT_SCALE, { .offer = scales } },
    { OPT_CMAP, { .offer = colour_maps } },
    { OPT_STRIPS, { .offer = strips } },
    { OPT_PRESET, { .offer = presets } },
    { OPT_AT, { .offer = steps } },
    { OPT_COLOR, { .words = "auto truecolor 256 none" } },
    { OPT_MECH, { .offer = swept, .list = true } },
};

/* Those that come along, in scripts/lua. */
#define SCRIPTS                                                                                    \
    "advise.lua advise_model.lua export_views.lua failures.lua figure_grid.lua seeds.lua "         \
    "sharpening.lua survey.lua sweep_csv.lua table1.lua tour.lua"

static const struct {
    const char *command;
    Source      source;
} word_sources[] = {
    { "info", { .offer = subjects, .files = true } },
    { "run", { .offer = mechanism_text } },
    { "compare", { .offer = mechanism_text } },
    { "reach", { .offer = mechanism_text } },
    { "roofline", { .offer = mechanism_text } },
    { "figure", { .offer = mechanism_text } },
    { "step", { .offer = mechanism_text } },
    { "fit", { .files = true } },
    { "diff", { .files = true } },
    { "merge", { .files = true } },
    { "model", { .offer = samples, .files = true } },
    { "heads", { .offer = samples, .files = true } },
    { "cache", { .offer = samples, .files = true } },
    { "lesson", { .offer = lesson_ids, .files = true } },
    { "preset", { .offer = presets } },
    { "rerender", { .files = true } },
    { "lua", { .words = SCRIPTS, .files = true } },
    { "docs", { .words = "mechanisms commands views systems conventions glossary keys lua luals "
                         "man" } },
    { "completions", { .words = "bash zsh fish" } },
    { "trial", { .words = "wgmma graphs" } },
};

static void ask(Ask *a, const Source *source)
{
    if (source->list)
        keep_list(a);
    if (source->words)
        offer_each(a, source->words);
    if (source->offer)
        source->offer(a);
    a->files = source->files;
}

/* A line without a command: an option of the explorer, its value, or the input. */
static void explorer_word(Ask *a)
{
    const char *before = a->count > 1 ? a->words[a->count - 2] : "";
    const char *equals = strchr(a->part, '=');
    size_t      length = equals ? (size_t)(equals - a->part) : 0;

    for (size_t i = 0; i < EXPLORER_OPTIONS; i++) {
        const char *flag = explorer_options[i].flag;
        bool        joined = length == strlen(flag) && !strncmp(a->part, flag, length);

        if (!explorer_options[i].value || (!joined && strcmp(before, flag) != 0))
            continue;
        keep(a, joined ? length + 1 : 0);
        ask(a, &explorer_options[i].source);
        return;
    }
    if (*a->part == '-') {
        explorer_flags(a);
        return;
    }
    inputs(a);
    a->files = true;
}

static void ask_value(Ask *a, int option)
{
    for (size_t i = 0; i < sizeof(option_sources) / sizeof(*option_sources); i++)
        if ((int)option_sources[i].id == option)
            ask(a, &option_sources[i].source);
}

static void ask_word(Ask *a)
{
    for (size_t i = 0; i < sizeof(word_sources) / sizeof(*word_sources); i++)
        if (!strcmp(word_sources[i].command, a->command->name))
            ask(a, &word_sources[i].source);
}

static void flags(Ask *a)
{
    char word[64];

    for (int i = 0; i < OPT_COUNT; i++) {
        snprintf(word, sizeof(word), "--%s", option_at(i)->flag);
        if (command_takes(a->command, option_at(i)))
            offer(a, word, option_at(i)->help);
    }
}

/* The option whose value the last word is; -1: none. */
static int option_of_value(Ask *a)
{
    const char *before = a->count > 2 ? a->words[a->count - 2] : "", *equals;
    bool        joined = before[0] == '-' && before[1] && before[1] != '-' && before[2]; /* -n4 */
    int option = joined || strchr(before, '=') ? -1 : call_option(a->command, before);

    if (option >= 0 && option_at(option)->value)
        return option;
    equals = strncmp(a->part, "--", 2) ? NULL : strchr(a->part, '=');
    option = equals ? call_option(a->command, a->part) : -1;
    if (option >= 0)
        keep(a, (size_t)(equals + 1 - a->part));
    return option;
}

bool complete_words(Session *s, const char *const *words, int count, CompletionTaker take,
                    void *context)
{
    Ask a = { .session = s, .words = words, .count = count, .take = take, .context = context };
    int option;

    if (count < 1)
        return false;
    a.part = words[count - 1];
    if (count > 1) /* on a shell's line a mechanism's bare name opens it */
        a.command = command_find(s && mechanism_of(words[0]) ? "step" : words[0]);
    option = a.command ? option_of_value(&a) : -1;
    if (count == 1 && strncmp(a.part, "--", 2) == 0 && strchr(a.part, '='))
        explorer_word(&a);
    else if (count == 1)
        commands(&a);
    else if (!a.command && s)
        explorer_word(&a);
    else if (!a.command)
        mechanism_text(&a);
    else if (option >= 0)
        ask_value(&a, option);
    else if (*a.part == '-')
        flags(&a);
    else
        ask_word(&a);
    text_free(&a.head);
    return a.files || count == 1;
}
