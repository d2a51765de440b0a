/* warnings.c -- what the runs behind a figure warned of: signs before titles of panels, reasons in
 * the caption, and lines for the command's output. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "app/session/internal.h"
#include "draw/text/unicode.h"

/* Some warnings begin with the mechanism; a warning about the input belongs to all runs. */
static bool names_its_run(const Result *result, const char *line)
{
    const char *warning = result->loaded->warning, *mechanism = result->request.mechanism;

    return !strncmp(line, mechanism, strlen(mechanism)) ||
           (warning && !strncmp(line, warning, strlen(warning)));
}

bool result_warning(const Result *result, const char **lines, Text *out)
{
    size_t length = *lines ? strcspn(*lines, "\n") : 0;

    text_clear(out);
    if (!length)
        return false;
    if (!names_its_run(result, *lines))
        text_addf(out, "%s: ", result->request.mechanism);
    text_addf(out, "%.*s", (int)length, *lines);
    *lines += length + ((*lines)[length] == '\n');
    return text_ok(out);
}

/* Where "256 of 512 " stands in the line; NULL: nowhere. */
static const char *count_in(const char *line, const char *count)
{
    const char *at = strstr(line, count);

    while (at && at > line && isdigit((unsigned char)at[-1]))
        at = strstr(at + 1, count);
    return at;
}

/* The line begins with the count, perhaps behind a mechanism's id: "performer: 12 of 64 rows". */
static bool begins_with_count(const char *line, const char *at)
{
    size_t id = strcspn(line, " :");

    return at == line || (line[id] == ':' && at == line + id + 2);
}

/* Writes the head's count in place of that of all heads; false: it has none. */
static bool count_of_head(const Run *run, int64_t head, Text *line)
{
    for (int k = 0; k < run->by_head_count; k++) {
        const int64_t *counts = run->by_head[k].counts;
        int64_t        heads = run->by_head[k].heads, each = run->by_head[k].each, sum = 0;
        int64_t        own = counts[head * heads / run->h];
        const char    *at;
        char           count[64];
        Text           words = { 0 };

        for (int64_t h = 0; h < heads; h++)
            sum += counts[h];
        snprintf(count, sizeof(count), "%lld of %lld ", (long long)sum, (long long)(heads * each));
        at = count_in(text_str(line), count);
        if (!at)
            continue;
        if (!own && begins_with_count(text_str(line), at))
            return false;
        text_addf(&words, "%.*s%lld of %lld %s", (int)(at - text_str(line)), text_str(line),
                  (long long)own, (long long)each, at + strlen(count));
        text_free(line);
        *line = words;
        return true;
    }
    return true;
}

bool result_head_warning(const Result *result, int64_t head, const char **lines, Text *out)
{
    while (result_warning(result, lines, out))
        if (head < 0 || head >= result->run->h || count_of_head(result->run, head, out))
            return true;
    return false;
}

/* Number of a reason; -1: there are too many. */
static int reason_at(Reasons *all, const char *line)
{
    for (int i = 0; i < all->count; i++)
        if (!strcmp(text_str(&all->lines[i]), line))
            return i;
    if (all->count == REASONS)
        return -1;
    text_add(&all->lines[all->count], line);
    return all->count++;
}

void reasons_free(Reasons *all)
{
    for (int i = 0; i < all->count; i++)
        text_free(&all->lines[i]);
}

/* Past the last one they are doubled. */
static void add_sign(int reason, Text *out)
{
    for (int i = 0; i <= reason / FOOTNOTE_SIGNS; i++)
        text_add(out, footnote_signs[reason % FOOTNOTE_SIGNS]);
}

static void add_line(Reasons *all, const char *line, Text *signs)
{
    int reason = reason_at(all, line);

    if (reason >= 0)
        add_sign(reason, signs);
}

void reasons_sign(Reasons *all, const char *lines, Text *signs)
{
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        Text   line = { 0 };

        text_add_bytes(&line, lines, length);
        if (length)
            add_line(all, text_str(&line), signs);
        text_free(&line);
        lines += length + (lines[length] == '\n');
    }
}

/* Appends line a with TEXT_ANY_NUMBER in place of the numbers that differ in b. */
static void add_merged(const char *a, const char *b, Text *out)
{
    while (*a && *a != '\n') {
        const char *from = a, *other = b;

        if (!text_pass_numbers(&a, &b)) {
            text_add_bytes(out, a++, 1);
            b++;
        } else if (a - from == b - other && !strncmp(from, other, (size_t)(a - from))) {
            text_add_bytes(out, from, (size_t)(a - from));
        } else {
            text_addf(out, "%c", TEXT_ANY_NUMBER);
        }
    }
    text_add(out, "\n");
}

/* Adds a line, or merges it with the one that has its words. */
static void merge_line(const char *line, Text *lines)
{
    Text all = { 0 };
    bool found = false;

    for (const char *at = text_str(lines); *at; at = strchr(at, '\n') + 1) {
        bool same = !found && text_same_words(at, line);

        add_merged(at, same ? line : at, &all);
        found = found || same;
    }
    if (!found)
        text_add(&all, line);
    text_free(lines);
    *lines = all;
}

void result_warning_lines(const Result *result, Text *out)
{
    const char *lines = text_str(&result->run->warnings);
    Text        line = { 0 };

    while (result_warning(result, &lines, &line)) {
        text_add(&line, "\n");
        merge_line(text_str(&line), out);
    }
    text_free(&line);
}

/* Adds the signs of what the result's run warned of. */
static void add_signs(Reasons *all, const Result *result, int64_t head, Text *signs)
{
    const char *lines = result ? text_str(&result->run->warnings) : NULL;
    Text        line = { 0 };

    while (result_head_warning(result, head, &lines, &line))
        add_line(all, text_str(&line), signs);
    text_free(&line);
}

static const char *after_sign(const char *title)
{
    for (int k = 0; k < FOOTNOTE_SIGNS; k++)
        if (!strncmp(title, footnote_signs[k], strlen(footnote_signs[k])))
            return title + strlen(footnote_signs[k]);
    return title;
}

/* The text after the signs that it begins with. */
static const char *after_signs(const char *title)
{
    const char *next = after_sign(title);

    for (; next > title; next = after_sign(title))
        title = next;
    return title;
}

/* Signs stand in their order before the title: those of a later curve behind the first ones. */
static void sign_title(const char *signs, char *title, size_t size)
{
    Text        all = { 0 };
    const char *words = after_signs(title);

    text_addf(&all, "%.*s%s%s%s", (int)(words - title), title, signs,
              *words && *words != ' ' ? " " : "", words);
    if (all.length < size)
        snprintf(title, size, "%s", text_str(&all));
    text_free(&all);
}

/* A reason that begins with a mechanism's id begins with its name instead; returns the rest. */
static const char *without_id(const char *line, Text *out)
{
    char             id[48];
    size_t           length = strcspn(line, " :");
    const Mechanism *m;

    snprintf(id, sizeof(id), "%.*s", (int)length, line);
    m = length < sizeof(id) ? mechanism_find(id) : NULL;
    if (!m)
        return line;
    mechanism_words(m, id, out);
    return line + length;
}

#define ANY_OF " N of " /* TEXT_ANY_NUMBER */

/* "some of 64 rows" where the number differs from run to run. */
void add_reason_words(const char *message, Text *out)
{
    const char *at = without_id(message, out), *any;
    Text        words = { 0 };

    for (; (any = strstr(at, ANY_OF)); at = any + strlen(ANY_OF)) {
        text_add_bytes(&words, at, (size_t)(any - at));
        text_add(&words, " some of ");
    }
    text_add(&words, at);
    add_reader_words(text_str(&words), out);
    text_free(&words);
}

void reasons_text(const Reasons *all, Text *out)
{
    for (int i = 0; i < all->count; i++) {
        text_add(out, out->length ? "; " : "");
        add_sign(i, out);
        text_add(out, " ");
        add_reason_words(text_str(&all->lines[i]), out);
    }
}

/* As far as there is room. */
static void add_reasons(const Reasons *all, Figure *figure)
{
    Text caption = { 0 };

    text_add(&caption, figure->caption);
    reasons_text(all, &caption);
    if (caption.length < sizeof(figure->caption))
        snprintf(figure->caption, sizeof(figure->caption), "%s", text_str(&caption));
    text_free(&caption);
}

/* Signs the series of that name where a key tells several apart; false: there is none. */
static bool sign_series(const char *signs, const char *name, Plot *plot)
{
    for (int k = 0; plot && plot_named(plot) > 1 && k < plot->count; k++) {
        PlotSeries *s = &plot->series[k];

        if (!s->guide && !strcmp(after_signs(s->name) + (*after_signs(s->name) == ' '), name)) {
            if (!strstr(s->name, signs))
                sign_title(signs, s->name, sizeof(s->name));
            return true;
        }
    }
    return false;
}

/* Signs the row of that name of a plot with several; false: there is none. */
static bool sign_row(const char *signs, const char *name, Plot *plot)
{
    for (int r = 0; plot && plot->rows && plot->row_count > 1 && r < plot->row_count; r++) {
        const char *words = after_signs(plot->rows[r]);

        if (!strcmp(words + (*words == ' '), name)) {
            if (!strstr(plot->rows[r], signs))
                sign_title(signs, plot->rows[r], sizeof(plot->rows[r]));
            return true;
        }
    }
    return false;
}

static void hide_sign(char *text, Text *kept)
{
    const char *words = after_signs(text);

    words += words > text && *words == ' ';
    text_add_bytes(kept, text, strlen(text) + 1);
    memmove(text, words, strlen(words) + 1);
}

static void show_sign(char *text, const char **kept)
{
    memcpy(text, *kept, strlen(*kept) + 1);
    *kept += strlen(*kept) + 1;
}

bool figure_hide_signs(Figure *figure, Text *kept)
{
    hide_sign(figure->title, kept);
    for (int i = 0; i < figure->count; i++) {
        Plot *plot = figure->panels[i].made;

        hide_sign(figure->panels[i].title, kept);
        for (int k = 0; plot && k < plot->count; k++)
            hide_sign(plot->series[k].name, kept);
        for (int r = 0; plot && plot->rows && r < plot->row_count; r++)
            hide_sign(plot->rows[r], kept);
    }
    return text_ok(kept);
}

void figure_show_signs(Figure *figure, const Text *kept)
{
    const char *next = text_str(kept);

    show_sign(figure->title, &next);
    for (int i = 0; i < figure->count; i++) {
        Plot *plot = figure->panels[i].made;

        show_sign(figure->panels[i].title, &next);
        for (int k = 0; plot && k < plot->count; k++)
            show_sign(plot->series[k].name, &next);
        for (int r = 0; plot && plot->rows && r < plot->row_count; r++)
            show_sign(plot->rows[r], &next);
    }
}

void picture_warn(Figure *figure, const PanelChoice *panels, int count,
                  const PictureOptions *options)
{
    Reasons all = { .count = 0 };

    for (int i = 0, at = -1; i < count; i++) {
        Panel *panel = &figure->panels[at += !panels[i].joins];
        Text   signs = { 0 };
        char   name[PLOT_ROW];
        bool   named = *panel->title || !*figure->title; /* else the figure's title is its own */
        char  *title = named ? panel->title : figure->title;
        size_t size = named ? sizeof(panel->title) : sizeof(figure->title);

        int64_t head = picture_all_heads(panel) ? -1 : picture_head(&panels[i], options);

        head = head < 0 && !picture_all_heads(panel) ? 0 : head;
        add_signs(&all, panels[i].result, head, &signs);
        add_signs(&all, panels[i].minus, head, &signs);
        picture_result_name(panels, count, i, options, name, sizeof(name));
        if (signs.length && !sign_series(text_str(&signs), name, panel->made) &&
            !sign_row(text_str(&signs), name, panel->made) &&
            !strstr(title, text_str(&signs)))
            sign_title(text_str(&signs), title, size);
        text_free(&signs);
    }
    add_reasons(&all, figure);
    reasons_free(&all);
}

/* Appends the number of b that a has another one for; of equal lines nothing. */
static void add_other_number(const char *a, const char *b, Text *out)
{
    while (*a) {
        const char *from = a, *other = b;

        if (!text_pass_numbers(&a, &b)) {
            a++;
            b++;
        } else if (a - from != b - other || strncmp(from, other, (size_t)(a - from)) != 0) {
            text_add(out, out->length ? ", " : "");
            text_add_bytes(out, other, (size_t)(b - other));
            return;
        }
    }
}

static void add_like(Likes *all, const char *mark, const char *line)
{
    Like *more;

    for (int i = 0; i < all->count; i++)
        if (!strcmp(all->items[i].mark, mark) &&
            text_same_words(text_str(&all->items[i].line), line)) {
            add_other_number(text_str(&all->items[i].line), line, &all->items[i].others);
            return;
        }
    more = realloc(all->items, (size_t)(all->count + 1) * sizeof(*more));
    if (!more) {
        all->failed = true;
        return;
    }
    all->items = more;
    more[all->count] = (Like){ .mark = mark };
    text_add(&more[all->count++].line, line);
}

void likes_add(const Result *result, const char *lines, const char *mark, Likes *all)
{
    Text line = { 0 };

    while (result_warning(result, &lines, &line))
        add_like(all, mark, text_str(&line));
    text_free(&line);
}

void likes_write(Likes *all, int room, Text *out)
{
    Text words = { 0 };

    for (int i = 0; i < all->count; i++) {
        Like *like = &all->items[i];

        text_clear(&words);
        text_addf(&words, "%s  %s%s%s", like->mark, text_str(&like->line),
                  like->others.length ? "; likewise " : "", text_str(&like->others));
        text_add_folded(out, text_str(&words), room, (int)strlen(like->mark) + 2);
        text_free(&like->line);
        text_free(&like->others);
    }
    text_free(&words);
    free(all->items);
    out->failed = out->failed || all->failed;
    *all = (Likes){ 0 };
}

void results_warnings(Result *const *results, int count, int room, Text *out)
{
    Likes all = { 0 };

    for (int i = 0; i < count; i++) {
        likes_add(results[i], text_str(&results[i]->run->notes), "note   ", &all);
        likes_add(results[i], text_str(&results[i]->run->warnings), "warning", &all);
    }
    likes_write(&all, room, out);
}
