/* info.c -- info: the card of a mechanism, words of the glossary. */
#include "app/command/command.h"
#include "app/session/model_input.h"
#include "app/glossary.h"
#include "app/lesson/lesson.h"
#include "app/result/views.h"
#include "app/session/session.h"
#include "attn/run/position.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- cards ------------------------------------------------------------------ */

static void range_text(const Param *p, char *text, size_t size)
{
    *text = '\0';
    if (p->type == PARAM_TYPE_ENUM || p->type == PARAM_TYPE_FLAGS) {
        for (int i = 0; p->choices[i]; i++)
            snprintf(text + strlen(text), size - strlen(text), "%s%s", i ? "|" : "", p->choices[i]);
    } else if (p->type == PARAM_TYPE_TENSOR) {
        snprintf(text, size, "%s", p->shape);
    } else if (p->type == PARAM_TYPE_INT || p->type == PARAM_TYPE_FLOAT ||
               p->type == PARAM_TYPE_PER_HEAD) {
        if (p->lo <= -1e9)
            snprintf(text, size, "%s", "any");
        else if (p->hi >= 1e9)
            snprintf(text, size, "%s %g", p->above_lo ? ">" : ">=", p->lo);
        else
            snprintf(text, size, "%g..%g", p->lo, p->hi);
    }
    if (p->type == PARAM_TYPE_PER_HEAD)
        snprintf(text + strlen(text), size - strlen(text), " or %s", p->shape);
}

static void params_table(const Param *table, Text *out)
{
    Table t = { .cols = 5 };
    char  range[128];

    for (const Param *p = table; p && p->name; p++) {
        Text fallback = { 0 };

        params_print(p, NULL, &fallback);
        range_text(p, range, sizeof(range));
        table_cell(&t, "  %s", p->name);
        table_cell(&t, "%s", param_type_name(p->type));
        table_cell(&t, "%s", range);
        table_cell(&t, "%s", p->type == PARAM_TYPE_TENSOR ? "-" : text_str(&fallback));
        table_cell(&t, "%s%s%s", p->help, p->drawn ? "; without a file: " : "",
                   p->drawn ? p->drawn : "");
        text_free(&fallback);
    }
    table_write(&t, TABLE_TEXT, out);
    table_free(&t);
}

/* "FP+M (Fixed patterns, Memory)" */
static void class_line(const Mechanism *m, Text *out)
{
    char        classes[32];
    const char *before = " (";

    text_addf(out, "class     %s", mechanism_classes(m, classes, sizeof(classes)));
    for (unsigned bit = 1; bit <= CLASS_LAB; bit <<= 1)
        if (m->classes & bit) {
            text_addf(out, "%s%s", before, class_title(bit));
            before = ", ";
        }
    text_add(out, m->classes ? ")\n" : "\n");
}

/* The column at which text breaks; 0 columns: no terminal. */
static int text_width(int columns)
{
    return columns > 40 && columns < 100 ? columns - 1 : 99;
}

/* With the parameters that show it on a few tokens, as the command's input usually has. */
static void steps_command(const Mechanism *m, Text *out)
{
    if (m->sketch)
        text_addf(out, "steps     attnscope step '%s(%s)'\n\n", m->id, m->sketch);
    else
        text_addf(out, "steps     attnscope step %s\n\n", m->id);
}

/* Three plain sentences, and where to learn more. */
static void info_opening(const Mechanism *m, int columns, Text *out)
{
    const char *const sentences[][2] = { { "problem", m->problem },
                                         { "idea", m->idea },
                                         { "price", m->price } };

    text_addf(out, "%s -- %s\n\n", m->id, m->title);
    for (int i = 0; m->problem && i < 3; i++) {
        Text line = { 0 };

        text_addf(&line, "%-10s%s", sentences[i][0], sentences[i][1]);
        text_add_folded(out, text_str(&line), text_width(columns), 10);
        text_free(&line);
    }
    text_add(out, m->problem ? "\n" : "");
    lesson_reference(m->lesson, out);
    steps_command(m, out);
}

static void info_mechanism(const Mechanism *m, int columns, Text *out)
{
    info_opening(m, columns, out);
    text_addf(out, "%s %d%s%s\nsource    %s\n", m->authors, m->year,
              m->arxiv ? ", arXiv " : "", m->arxiv ? m->arxiv : "", m->source);
    class_line(m, out);
    text_addf(
        out,
        "time      %s\nmemory    %s\n"
        "decoding  %s\ncausal    %s%s%s\nfit       %s\n\n%s\n\nwhat to look for\n%s\n\n"
        "parameters\n",
        m->claim_time, m->claim_memory,
        m->claim_decode, m->always_causal ? "always" : m->causal ? "yes" : "no: ",
        m->causal      ? ""
        : m->no_causal ? m->no_causal
                       : "its paper gives no causal form",
        m->at_end ? ", also with fewer queries than keys: the last positions" : "",
        m->fit ? m->fit : "nothing", m->formula, m->teaches);
    params_table(m->params, out);
    if (m->sketch)
        text_addf(out, "\non at most %d tokens the explorer's list opens %s(%s)\n", SKETCH_TOKENS,
                  m->id, m->sketch);
    text_add(out, "\nviews\n");
    for (const ViewPromise *v = m->views; v && v->name; v++)
        text_addf(out, "  %-18s %s%s\n", v->name, v->help, v->maybe ? " (not always there)" : "");
    if (reach_is_offered(m))
        text_addf(out, "  %-18s %s\n", REACH_VIEW, REACH_HELP);
    if (missed_is_promised(m))
        text_addf(out, "  %-18s %s\n", MISSED_VIEW, MISSED_HELP);
    if (spectrum_is_offered(m))
        text_addf(out, "  %-18s %s\n", SPECTRUM_VIEW, SPECTRUM_HELP);
}

static void info_positions(Text *out)
{
    for (size_t i = 0; position_at(i); i++) {
        const Position *p = position_at(i);

        text_addf(out, "%s%s -- %s\n  %s\n  source: %s\n", i ? "\n" : "", p->id, p->title, p->help,
                  p->source);
        if (p->note)
            text_addf(out, "  note: %s\n", p->note);
        text_addf(out, "  views: position_bias (or bias)%s%s\n", p->views ? "; " : "",
                  p->views ? p->views : "");
        params_table(p->params, out);
    }
    text_add(out, "\n--position KIND; its parameters stand among those of the mechanism: "
                  "'full(pos_base=100)' --position rope\n");
}

/* ---- words and topics --------------------------------------------------------- */

/* Breaks sentences into lines with a hanging indent. */
static void wrap_sentences(const char *text, int width, Text *out)
{
    int column = 0;

    while (*text) {
        int length = (int)strcspn(text, " ");

        if (column && column + 1 + length > width) {
            text_add(out, "\n");
            column = 0;
        }
        text_add(out, column ? " " : "    ");
        column += (column ? 1 : 4) + length;
        text_add_bytes(out, text, (size_t)length);
        text += length + (text[length] == ' ');
    }
    text_add(out, "\n");
}

static void info_conventions(int columns, Text *out)
{
    for (size_t i = 0; convention_at(i); i++) {
        text_addf(out, "%s%s\n", i ? "\n" : "", convention_at(i)->number);
        wrap_sentences(convention_at(i)->text, text_width(columns), out);
    }
}

static void info_gloss(const Gloss *gloss, int columns, Text *out)
{
    text_addf(out, "%s\n", gloss->word);
    wrap_sentences(gloss->text, text_width(columns), out);
}

static void info_glossary(int columns, Text *out)
{
    for (size_t i = 0; gloss_at(i); i++) {
        text_add(out, i ? "\n" : "");
        info_gloss(gloss_at(i), columns, out);
    }
}

static bool info_model(Session *s, const char *spec, Text *out, Error *err)
{
    ModelSpec parts;
    Model    *m;

    if (!model_spec_parse(spec, &parts, err))
        return false;
    m = model_path_open(s, parts.path, err);
    if (m)
        model_describe(m, out);
    model_close(m);
    model_spec_free(&parts);
    return m != NULL;
}

/* A preset's name may stand where a mechanism's does. */
static void info_preset(const Preset *preset, Text *out)
{
    text_addf(out, "%s -- %s\nafter %s\n\n%s\n\nattnscope figure --preset %s%s -o %s.png\n"
              "that is: attnscope ", preset->id, preset->title, preset->source, preset->help,
              preset->id, preset->model ? " --input model:MODEL.gguf --text " MODEL_USUAL_TEXT : "",
              preset->id);
    preset_command(preset, out);
    text_add(out, "\n");
}

static bool unknown_topic(const char *what, Error *err)
{
    const Mechanism *nearest = mechanism_nearest(what);

    return error_set(err, ERR_USAGE,
                     "'%.40s' is neither a mechanism, a preset, a word of the glossary nor a file"
                     "%s%s%s (attnscope list has the mechanisms, attnscope info glossary the "
                     "words)",
                     what, nearest ? "; nearest mechanism is '" : "", nearest ? nearest->id : "",
                     nearest ? "'" : "");
}

static bool info_of(Session *s, const char *what, int columns, Text *out, Error *err)
{
    const Mechanism *m;

    if (!strcmp(what, "positions")) {
        info_positions(out);
        return true;
    }
    if (!strcmp(what, "inputs")) {
        inputs_describe(out);
        return true;
    }
    if (!strcmp(what, "conventions")) {
        info_conventions(columns, out);
        return true;
    }
    if (!strcmp(what, "glossary")) {
        info_glossary(columns, out);
        return true;
    }
    m = mechanism_find(what);
    if (m) {
        info_mechanism(m, columns, out);
        return true;
    }
    if (preset_find(what)) {
        info_preset(preset_find(what), out);
        return true;
    }
    if (!strncmp(what, "synthetic:", strlen("synthetic:")))
        return info_generator(what, out, err);
    if (model_spec_is(what))
        return info_model(s, what, out, err);
    if (access(what, F_OK) == 0 || strpbrk(what, "./"))
        return info_file(what, out, err);
    return unknown_topic(what, err);
}

/* A word of the glossary, which may have blanks; not the name of something else. */
static const Gloss *called_gloss(const Call *call)
{
    Text         joined = { 0 };
    const Gloss *gloss = NULL;

    for (int i = 0; i < call->word_count; i++)
        text_addf(&joined, "%s%s", i ? " " : "", call->words[i]);
    if (!mechanism_find(text_str(&joined)) && !preset_find(text_str(&joined)) &&
        access(text_str(&joined), F_OK) != 0)
        gloss = gloss_find(text_str(&joined));
    text_free(&joined);
    return gloss;
}

/* The mechanism that a topic such as "LSH" leads to; not the name of something else. */
static const Mechanism *topic_mechanism(const char *word)
{
    char   topic[32];
    size_t length = strlen(word);

    if (length >= sizeof(topic) || mechanism_find(word) || preset_find(word) ||
        access(word, F_OK) == 0)
        return NULL;
    for (size_t i = 0; i <= length; i++)
        topic[i] = (char)tolower((unsigned char)word[i]);
    return mechanism_of_topic(topic);
}

bool command_info(Session *s, const Call *call, Text *out, Error *err)
{
    Text         path = { 0 };
    const Gloss *gloss = called_gloss(call);
    const Mechanism *topic;
    bool         ok;


    if (!call->word_count)
        return error_set(err, ERR_USAGE,
                         "info needs a mechanism (attnscope list), a word of the glossary, "
                         "'positions', 'inputs', 'conventions', 'glossary', or a file");
    topic = call->word_count == 1 ? topic_mechanism(call->words[0]) : NULL;
    if (gloss || topic) {
        if (gloss)
            info_gloss(gloss, call->columns, out);
        text_add(out, gloss && topic ? "\n" : "");
        if (topic)
            info_mechanism(topic, call->columns, out);
        return true;
    }
    if (call->word_count > 1)
        return error_set(err, ERR_USAGE,
                         "info: '%s %s%s': not in the glossary (attnscope info glossary), and no "
                         "name is two words", call->words[0], call->words[1],
                         call->word_count > 2 ? " ..." : "");
    ok = session_input_path(s, call->words[0], &path, err) &&
         info_of(s, text_str(&path), call->columns, out, err);
    text_free(&path);
    return ok;
}
