/* captions.c -- titles, captions and names of series: what differs between panels stands above
 * each, what they share below the figure. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "app/result/views.h"
#include "attn/cuda/host/library.h"
#include "attn/run/position.h"

/* "reach, 12 layers" */
void picture_view_name(const Run *run, const View *view, Text *out)
{
    int  depth = view->kind == VIEW_HOPS ? reach_view_depth(view) : 0;
    char words[64];

    text_add(out, view->name);
    if (view->iteration >= 0 && run_view(run, view->name) != view)
        text_addf(out, " of %s %lld", view->stage, (long long)view->iteration + 1);
    if (view->found)
        text_addf(out, ", %lld strongest key%s", (long long)view->found->keys,
                  view->found->keys == 1 ? "" : "s");
    derived_words(view, words, sizeof(words));
    if (*words)
        text_addf(out, " (%s)", words);
    if (depth)
        text_addf(out, ", %s%d layer%s", reach_view_strict(view) ? "walks of " : "", depth,
                  depth == 1 ? "" : "s");
}

/* What differs between panels; it goes into the title of each. */
typedef struct Differing {
    bool position, seed, causal, fit, place, head;
} Differing;

static void compare_runs(Differing *d, const Run *first, const Result *result)
{
    if (!result)
        return;
    d->position = d->position || result->run->spec.position != first->spec.position;
    d->seed = d->seed || result->run->seed != first->seed;
    d->causal = d->causal || result->run->causal != first->causal;
    d->fit = d->fit || result->run->spec.fit != first->spec.fit;
    d->place = d->place || result->run->ops != first->ops;
}

static Differing what_differs(const PanelChoice *panels, int count, const PictureOptions *options)
{
    const Run *first = panels[0].result->run;
    Differing  d = { 0 };

    for (int i = 0; i < count; i++) {
        compare_runs(&d, first, panels[i].result);
        compare_runs(&d, first, panels[i].minus);
        d.head = d.head || picture_head(&panels[i], options) != picture_head(&panels[0], options);
    }
    return d;
}

static void name_result(const Result *result, const Differing *d, Text *out)
{
    const Run *run = result->run;
    Request    copy;
    char       seed[32];

    if (!request_copy(&copy, &result->request, NULL))
        return;
    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)run->seed);
    if (d->position && run->spec.position)
        assignments_set(&copy.given, "position", run->spec.position->id, NULL);
    if (d->seed)
        assignments_set(&copy.given, "seed", seed, NULL);
    if (d->causal && run->causal)
        assignments_set(&copy.given, "causal", "true", NULL);
    if (d->fit && run->spec.fit)
        assignments_set(&copy.given, "fit", "true", NULL);
    if (d->place && copy.ops)
        assignments_set(&copy.given, "device", copy.device, NULL);
    if (d->place && copy.ops && arithmetic_of(copy.ops))
        assignments_set(&copy.given, "precision", copy.precision, NULL);
    request_text(&copy, out);
    request_free(&copy);
}

/* "BigBird, window 5" where name_result says "bigbird(window=5)". */
static void title_result(const Result *result, const Differing *d, Text *out)
{
    Text words = { 0 };

    name_result(result, d, &words);
    mechanism_words(result->request.above ? NULL : result->run->mechanism, text_str(&words), out);
    text_free(&words);
}

static void word_panel(const PanelChoice *choice, const PictureOptions *options,
                        const Differing *d, Panel *panel)
{
    int64_t head = picture_head(choice, options);
    Text    title = { 0 }, view = { 0 };

    if (choice->title) {
        snprintf(panel->title, sizeof(panel->title), "%s", choice->title);
        return;
    }
    title_result(choice->result, d, &title);
    if (choice->minus) {
        text_add(&title, " \xe2\x88\x92 ");
        title_result(choice->minus, d, &title);
    }
    text_add(&title, " \xc2\xb7 ");
    picture_view_name(choice->result->run, panel->view, &view);
    picture_words(text_str(&view), &title);
    text_free(&view);
    if (choice->spec.round)
        text_addf(&title, " \xc2\xb7 round %lld", (long long)choice->spec.round);
    if (choice->spec.sorted && (panel->row_order || panel->col_order))
        text_add(&title, ", sorted");
    if (panel->view->headless)
        text_addf(&title, " \xc2\xb7 %s %lld", panel->view->round, (long long)panel->plane);
    else if (d->head && choice->result->run->h > 1 && !picture_all_heads(panel))
        text_addf(&title, " \xc2\xb7 head %lld", (long long)(head < 0 ? 0 : head));
    snprintf(panel->title, sizeof(panel->title), "%s", text_str(&title));
    text_free(&title);
}

#define NOISE "random normal input, "

/* Describes the data; a generator's text holds the rest.  head -1: all; pairs: only allowed pairs
 * are drawn; fixed: no input changes them. */
static void caption_figure(Figure *figure, const Result *result, const Differing *d, int64_t head,
                           bool pairs, bool fixed)
{
    const Run   *run = result->run;
    const Input *input = result->input;
    bool         generated = !strncmp(input->name, "synthetic:", strlen("synthetic:"));
    bool         causal = run->causal && !d->causal;
    Text         words = { 0 };
    char         heads[64] = "", layer[48] = "", keys[48] = "", position[48] = "";

    if (run->h > 1 && head < 0)
        snprintf(heads, sizeof(heads), ", %lld heads", (long long)run->h);
    else if (run->h > 1 && !d->head)
        snprintf(heads, sizeof(heads), ", head %lld (of 0\xe2\x80\x93%lld)", (long long)head,
                 (long long)run->h - 1);
    if (input->layers > 1 || input->layer)
        snprintf(layer, sizeof(layer), ", layer %lld", (long long)input->layer);
    if (run->m != run->n)
        snprintf(keys, sizeof(keys), ", m = %lld", (long long)run->m);
    if (run->spec.position && !d->position)
        snprintf(position, sizeof(position), ", position %s", run->spec.position->name);
    if (generated) {
        const char *said;

        generated_words(input->name, pairs, &words);
        said = text_str(&words);
        said += fixed && !strncmp(said, NOISE, strlen(NOISE)) ? strlen(NOISE) : 0;
        snprintf(figure->caption, sizeof(figure->caption), "%s%s%s%s", said, heads, position,
                 causal ? ", causal" : "");
        text_free(&words);
        return;
    }
    input_reader_words(input, &words);
    snprintf(figure->caption, sizeof(figure->caption), "%s%s%s, n = %lld%s%s%s%s, seed %llu",
             text_str(&words), layer, input->note ? " (q, k, v made, not from a model)" : "",
             (long long)run->n, keys, heads, position, causal ? ", causal" : "",
             (unsigned long long)run->seed);
    text_free(&words);
}

void picture_caption_steps(Figure *figure, const Result *result, const PictureOptions *options)
{
    if (options->caption)
        snprintf(figure->caption, sizeof(figure->caption), "%s", options->caption);
    else
        caption_figure(figure, result, &(Differing){ 0 }, options->head < 0 ? 0 : options->head,
                       false, false);
}

static bool is_pattern(const Panel *panel)
{
    const View *view = panel->view;

    return !panel->plot && !panel->minus && !view->found &&
           (view->kind == VIEW_PATTERN || view->kind == VIEW_COMPONENTS);
}

static bool shows_pairs(const Figure *figure)
{
    for (int i = 0; i < figure->count; i++)
        if (!is_pattern(&figure->panels[i]))
            return false;
    return true;
}

/* Only patterns that no input changes are drawn. */
static bool shows_fixed_pairs(const Figure *figure, const PanelChoice *panels, int count)
{
    const unsigned fixed = CLASS_BASELINE | CLASS_FP | CLASS_M;

    for (int i = 0; i < count; i++) {
        const Mechanism *m = panels[i].result->run->mechanism;

        if (!m || m->classes & ~fixed || panels[i].result->request.above)
            return false;
    }
    return shows_pairs(figure);
}

/* False with measured numbers too: drawn again they come from the file, not from the result. */
static bool has_one_result(const PanelChoice *panels, int count)
{
    PlotKind kind;

    for (int i = 0; i < count; i++)
        if (panels[i].result != panels[0].result || panels[i].minus ||
            plot_word(panels[i].spec.view, &kind, NULL))
            return false;
    return true;
}

/* The word stands in the text by itself: 3 in "w = 3", not in "w = 13". */
static bool says_word(const char *text, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = text; (at = strstr(at, word)); at++)
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[length]))
            return true;
    return false;
}

/* "window 3, variant etc": what the call gave and a title of somebody's own words leaves out. */
static void add_unsaid(const Result *result, const char *title, Text *out)
{
    const Assignments *given = &result->request.given;

    for (int i = 0; title && !result->request.above && i < given->count; i++) {
        const Assignment *item = &given->items[i];

        if (item->tensor.data || !*item->text || says_word(title, item->text))
            continue;
        text_add(out, out->length ? ", " : "");
        if (strcmp(item->name, "expr") != 0) /* an expression says by itself what it is */
            picture_words(item->name, out);
        if (strcmp(item->text, "true") != 0)
            text_addf(out, "%s%s", strcmp(item->name, "expr") ? " " : "", item->text);
    }
}

/* The words that somebody gave a panel for a title; NULL: its title names the parameters, or a
 * caption of one's own says what matters. */
static const char *given_title(const Figure *figure, const PanelChoice *choice,
                               const PictureOptions *options)
{
    if (options->caption && *options->caption)
        return NULL;
    return choice->title || figure->count > 1 ? choice->title : options->title;
}

/* What is drawn depends on the sizes of the mechanism: pairs, or the weights on them. */
static bool shows_sizes(const Panel *panel)
{
    const View *view = panel->view;

    return is_pattern(panel) || view->found || view->kind == VIEW_WEIGHTS ||
           (view->kind == VIEW_SIGNED && !strncmp(view->name, "weights", strlen("weights")));
}

/* Sizes of a mechanism, and parameters that no title says: the figure's caption has those of all
 * panels, otherwise each panel its own below it. */
static void size_panels(Figure *figure, const PanelChoice *panels, int count,
                        const PictureOptions *options, Text *caption)
{
    bool one = has_one_result(panels, count), said = false;
    int  at = -1;

    for (int i = 0; i < count; i++) {
        Text   sizes = { 0 };
        Panel *panel = &figure->panels[at += !panels[i].joins];

        if (panels[i].joins || panel->plot || panel->minus)
            continue;
        add_unsaid(panels[i].result, given_title(figure, &panels[i], options), &sizes);
        if (shows_sizes(panel))
            picture_sizes(panels[i].result, &sizes);
        if (!one && sizes.length < sizeof(panel->sizes))
            snprintf(panel->sizes, sizeof(panel->sizes), "%s", text_str(&sizes));
        else if (one && caption && !said && sizes.length)
            text_addf(caption, "; %s", text_str(&sizes));
        said |= sizes.length > 0;
        text_free(&sizes);
    }
}

#define DATA_WORDS "{data}" /* in a given caption: what a caption says of the data by itself */

/* The given caption with the words of the data, where it asks for them or `more` follows. */
static void add_given_caption(const char *caption, const char *data, bool more, Text *out)
{
    const char *at = strstr(caption, DATA_WORDS);

    if (at)
        text_addf(out, "%.*s%s%s", (int)(at - caption), caption, data, at + strlen(DATA_WORDS));
    else
        text_addf(out, "%s%s%s", caption, more ? "; " : "", more ? data : "");
}

/* A given caption does not replace the origin of random tensors in a picture of noise; an empty
 * caption is empty. */
static void caption_pictures(Figure *figure, const PanelChoice *panels, int count,
                             const PictureOptions *options, const Differing *d, int64_t head)
{
    Text tensors = { 0 }, out = { 0 };
    bool any = panels_origins(panels, count, &tensors);

    any = any && !(options->caption && !*options->caption);
    caption_figure(figure, panels[0].result, d, head, shows_pairs(figure),
                   shows_fixed_pairs(figure, panels, count));
    if (options->caption)
        add_given_caption(options->caption, figure->caption, any, &out);
    else
        text_add(&out, figure->caption);
    size_panels(figure, panels, count, options, options->caption ? NULL : &out);
    if (any)
        text_add(&out, "; ");
    if (any)
        add_reader_words(text_str(&tensors), &out);
    snprintf(figure->caption, sizeof(figure->caption), "%s", text_str(&out));
    text_free(&tensors);
    text_free(&out);
}

/* ---- series of a plot that several results share ---- */

/* What the panels of one plot share is left out of their names. */
typedef struct Shared {
    const PanelChoice *first; /* the plot's, then those that join it */
    int                count;
} Shared;

static bool is_shared(const Shared *s, const Assignment *a)
{
    for (int k = 0; k < s->count; k++) {
        const Request *request = &s->first[k].result->request;
        bool           same = false;

        for (int i = 0; i < request->given.count; i++)
            same |= !strcmp(request->given.items[i].name, a->name) &&
                    !strcmp(request->given.items[i].text, a->text);
        if (!same || strcmp(request->mechanism, s->first->result->request.mechanism) != 0)
            return false;
    }
    return true;
}

/* "temperature 2" where parameters of one mechanism differ; "Linformer" where mechanisms do.  The
 * first panel's title is the plot's. */
static void name_joined(const Shared *s, const PanelChoice *choice, const Differing *d, char *text,
                        size_t size)
{
    const Request *own = &choice->result->request;
    bool           one = true;
    Text           name = { 0 };

    for (int k = 0; k < s->count; k++)
        one &= !strcmp(s->first[k].result->request.mechanism, own->mechanism);
    for (int i = 0; one && i < own->given.count; i++)
        if (!is_shared(s, &own->given.items[i])) {
            text_add(&name, name.length ? ", " : "");
            picture_words(own->given.items[i].name, &name);
            text_addf(&name, " %s", own->given.items[i].text);
        }
    if (own->above)
        text_clear(&name);
    if (!name.length)
        title_result(choice->result, d, &name);
    snprintf(text, size, "%s",
             choice->joins && choice->title ? choice->title : text_str(&name));
    text_free(&name);
}

int picture_joining(const PanelChoice *panels, int at, int count)
{
    int joins = 0;

    while (at + joins + 1 < count && panels[at + joins + 1].joins)
        joins++;
    return joins;
}

void picture_result_name(const PanelChoice *panels, int count, int at,
                         const PictureOptions *options, char *text, size_t size)
{
    Differing d = what_differs(panels, count, options);
    Text      name = { 0 };

    title_result(panels[at].result, &d, &name);
    snprintf(text, size, "%s",
             panels[at].joins && panels[at].title ? panels[at].title : text_str(&name));
    text_free(&name);
}

/* The title of a plot names its mechanism where it has one, else only the quantity. */
static void title_plot(const PanelChoice *choice, const Differing *d, Panel *panel)
{
    PlotKind kind;
    Text     name = { 0 };

    if (choice->title) {
        snprintf(panel->title, sizeof(panel->title), "%s", choice->title);
    } else if (!panel->made->rows ||
               (plot_word(panel_choice_view(choice), &kind, NULL) && plot_is_of_parts(kind))) {
        title_result(choice->result, d, &name);
        text_addf(&name, " \xc2\xb7 %s", panel->title);
        snprintf(panel->title, sizeof(panel->title), "%s", text_str(&name));
    }
    text_free(&name);
}

/* All curves are of the same head. */
static bool is_one_head(const Panel *panel)
{
    bool one = panel->head > 0;

    for (int k = 0; k < panel->overlay_count; k++)
        one &= panel->overlays[k].head == panel->head;
    return one;
}

/* The words that the views of a joined plot begin with: "memory" of memory_plain and
 * memory_reversible; the first name where there are none. */
static void title_joined(const PanelChoice *first, int joined, const Differing *d, Panel *panel)
{
    const char *name = panel->view->name;
    size_t      same = strlen(name);
    Text        words = { 0 };

    for (int k = 1; k <= joined; k++) {
        const char *other = panel->overlays[k - 1].view->name;
        size_t      own = 0, word = 0;

        for (; own < same && name[own] == other[own]; own++)
            word = name[own] == '_' ? own : word;
        if (own < same && name[own] == '_' && !other[own])
            word = own;
        if (own < same || (other[own] && other[own] != '_'))
            same = word;
    }
    if (first[0].result->request.above || !same)
        same = strlen(name);
    for (size_t k = 0; k < same; k++)
        text_add_bytes(&words, name[k] == '_' ? " " : name + k, 1);
    if (d->head && is_one_head(panel))
        text_addf(&words, " \xc2\xb7 head %lld", (long long)panel->head - 1);
    snprintf(panel->title, sizeof(panel->title), "%s", text_str(&words));
    text_free(&words);
}

static void word_panels(Figure *figure, const PanelChoice *panels, int count,
                        const PictureOptions *options, const Differing *d)
{
    Shared shared = { panels, 1 };

    for (int i = 0, joined = 0, at = -1; i < count; i++) {
        Panel *panel = &figure->panels[at += !panels[i].joins];

        joined = panels[i].joins ? joined + 1 : 0;
        if (panel->made) { /* the series are named already */
            if (!joined && (panels[i].title || !picture_joining(panels, i, count)))
                title_plot(&panels[i], d, panel);
            continue;
        }
        if (!panels[i].joins) {
            shared = (Shared){ &panels[i], 1 + picture_joining(panels, i, count) };
            word_panel(&panels[i], options, d, panel);
            name_joined(&shared, &panels[i], d, panel->name, sizeof(panel->name));
        } else {
            name_joined(&shared, &panels[i], d, panel->overlays[joined - 1].name,
                        sizeof(panel->overlays->name));
        }
        if (panels[i].joins && !panels[i - joined].title)
            title_joined(&panels[i - joined], joined, d, panel);
    }
    for (int i = 0, at = -1; i < count; i++) {
        at += !panels[i].joins;
        if (!panels[i].joins && !panels[i].title)
            title_capital(figure->panels[at].title);
    }
}

static bool only_all_heads(const Figure *figure)
{
    for (int k = 0; k < figure->count; k++)
        if (!picture_all_heads(&figure->panels[k]))
            return false;
    return true;
}

/* The title of a figure with one panel replaces the panel's, unless somebody chose both. */
static void title_figure(Figure *figure, const PanelChoice *panels, const char *title)
{
    snprintf(figure->title, sizeof(figure->title), "%s", title);
    if (*title && figure->count == 1 && !panels[0].title)
        *figure->panels[0].title = '\0';
}

void picture_caption(Figure *figure, const PanelChoice *panels, int count,
                   const PictureOptions *options)
{
    Differing d = what_differs(panels, count, options);
    int64_t   head = picture_head(&panels[0], options);

    word_panels(figure, panels, count, options, &d);
    if (options->title)
        title_figure(figure, panels, options->title);
    caption_pictures(figure, panels, count, options, &d,
                     only_all_heads(figure) ? -1 : head < 0 ? 0 : head);
    picture_add_measured(figure);
    if (!options->caption || *options->caption) /* no sign without its reason */
        picture_warn(figure, panels, count, options);
}
