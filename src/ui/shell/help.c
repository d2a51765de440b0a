/* help.c -- what works here, or everything by name: a list to filter and run.
 *
 * Keys stand in groups, each a task.  What is typed may hold several words, and with an argument
 * it is a whole line: "layer 3".
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "app/command/command.h"
#include "app/glossary.h"
#include "app/lesson/lesson.h"
#include "ui/screen/browse.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/panes.h"

#define CHOICES_MOST 512
#define ROOMY        90 /* columns from which the longest name of a mechanism fits beside words */

typedef struct Choice {
    const char      *heading; /* of the lines below it; or */
    const Action    *action;  /* or */
    const Mechanism *mechanism;
    char             way; /* to a mechanism: 'i' its card, 's' its stages; else its pane */
    const LessonItem *lesson;
    int              number; /* of the lesson, from 1 */
    const Command   *command;
    const Preset    *preset;
    const Gloss     *gloss;
    TypedHelp        typed; /* a word with an argument */
    const char      *own;    /* help of a command of a script; NULL: none */
    int              mapped; /* number of that command, else of a key of a script; from 1 */
} Choice;

typedef struct Choices {
    Choice items[CHOICES_MOST];
    int    count;
    bool   elsewhere; /* no key matches: lists what can be opened or run by name */
} Choices;

/* Tasks, with the actions that belong to them: ids, or beginnings of ids that end in _.  Where a
 * task has its home, it stands before all others. */
static const struct {
    const char *title, *ids;
    unsigned    home; /* IN_ bits */
} groups[] = {
    { "Open something",
      "list_open list_step sample_ lesson_open lesson_again to_list screen_ search filter_keep "
      "restore overview_go", 0 },
    { "Choose a mechanism and its parameters",
      "info parameters params_ vary vary_ smallest rerun reseed undo redo list_order list_fold "
      "list_unfold model_", 0 },
    { "Compare",
      "list_mark list_compare pane_add pane_close_it difference position_effect link solo "
      "next_pane previous_pane", 0 },
    { "Read the picture",
      "inspect inspect_ view_ sorted overview overview_ span span_ pool_next scale_next "
      "strips_next labels head_ round_ mark_query marks_ exclude residual", 0 },
    { "Move and zoom", "list_ cell_ edge_ zoom_ centre text_ choice_", 0 },
    { "Follow the algorithm", "step_", IN_STEP },
    { "Learn", "lesson_ lessons_", IN_LESSON },
    { "Measure", "measure plot_ gpu_ device_next", 0 },
    { "Save, export and script",
      "save export export_ step_export copy_ record history messages console console_ command "
      "prompt_", 0 },
    { "Look", "glyphs colours theme mouse redraw", 0 },
    { "Help and leaving", "help palette leave close quit_now cancel suspend", 0 },
};
#define GROUPS (sizeof(groups) / sizeof(*groups))

/* The length of the name in the list that fits best; 0: none. */
static size_t belongs(const char *id, const char *ids)
{
    size_t best = 0;

    while (*ids) {
        size_t length = strcspn(ids, " ");
        bool   begins = ids[length - 1] == '_' && !strncmp(id, ids, length);

        if ((begins || (strlen(id) == length && !strncmp(id, ids, length))) && length > best)
            best = length;
        ids += length + strspn(ids + length, " ");
    }
    return best;
}

/* A name of the whole id goes before a beginning; what has no group stands with the last. */
static size_t group_of(const Action *action)
{
    size_t group = GROUPS - 1, best = 0;

    for (size_t i = 0; i < GROUPS; i++)
        if (belongs(action->id, groups[i].ids) > best) {
            best = belongs(action->id, groups[i].ids);
            group = i;
        }
    return group;
}

/* The IN_ bits of what lies below the list. */
static unsigned scope_below(const Ui *ui)
{
    return ui->overlay_count > 1 ? ui->screens[ui->overlays[ui->overlay_count - 2]]->scope
                                 : ui_screen_scope(ui);
}

/* ":heads PATH" beside ":heads N": what follows tells a command from a typed line of its name. */
static void command_words(const Command *command, char *keys, size_t size)
{
    const char *takes = command_typed_named(command->name).word ? command->arguments : "";

    snprintf(keys, size, ":%s%s%.*s", command->name, *takes ? " " : "",
             (int)strcspn(takes, " "), takes);
}

/* The keys that scripts mapped to the action. */
static void add_mapped(const Ui *ui, const Action *action, char *keys, size_t size)
{
    const Action *does;
    unsigned      scope;
    char          key[32];

    for (int i = 0; console_mapped(ui, i, key, sizeof(key), &scope, &does); i++)
        if (does == action && scope & action->scope) {
            size_t used = strlen(keys);

            snprintf(keys + used, size - used, "%s%s", used ? " " : "", key);
        }
}

/* What a script added. */
static void own_text(const Ui *ui, const Choice *c, char *keys, size_t keys_size, char *text,
                     size_t size)
{
    const Action *action = NULL;
    unsigned      scope;

    if (c->own) {
        snprintf(keys, keys_size, ":%s", console_command_name(ui, c->mapped - 1));
        snprintf(text, size, "%s", *c->own ? c->own : "a command of a script");
    } else {
        console_mapped(ui, c->mapped - 1, keys, keys_size, &scope, &action);
        snprintf(text, size, "%s", action ? action->help : "a function of a script");
    }
}

static void choice_text(const Ui *ui, const Choice *c, char *keys, size_t keys_size, char *text,
                        size_t size)
{
    keys[0] = '\0';
    if (c->mapped) {
        own_text(ui, c, keys, keys_size, text, size);
    } else if (c->heading) {
        snprintf(text, size, "%s", c->heading);
    } else if (c->action) {
        action_keys(c->action, keys, keys_size);
        add_mapped(ui, c->action, keys, keys_size);
        snprintf(text, size, "%s", c->action->help);
    } else if (c->mechanism) {
        snprintf(keys, keys_size, "%s", c->mechanism->id);
        snprintf(text, size, c->way == 'i'   ? "the card of %s"
                             : c->way == 's' ? "the stages of %s, one after the other"
                                             : "open %s", c->mechanism->title);
    } else if (c->lesson) {
        snprintf(keys, keys_size, "lesson %d", c->number);
        snprintf(text, size, "begin the lesson %s%s%s", c->lesson->id,
                 c->lesson->lesson ? ": " : "",
                 c->lesson->lesson ? c->lesson->lesson->title : "");
    } else if (c->preset) {
        snprintf(keys, keys_size, "%s", c->preset->id);
        snprintf(text, size, "open %s (%s)", c->preset->title, c->preset->source);
    } else if (c->gloss) {
        snprintf(keys, keys_size, "%s", c->gloss->word);
        snprintf(text, size, "%s", c->gloss->text);
    } else if (c->typed.word) {
        snprintf(keys, keys_size, ":%s%s%s", c->typed.word, *c->typed.takes ? " " : "",
                 c->typed.takes);
        snprintf(text, size, "%s", c->typed.help);
    } else {
        command_words(c->command, keys, keys_size);
        snprintf(text, size, "%s", c->command->help);
    }
}

/* Every word that is typed is somewhere in the choice. */
static bool has_words(const char *wanted, const char *keys, const char *text, const char *topics)
{
    char word[128];

    while (*(wanted += strspn(wanted, " "))) {
        size_t length = strcspn(wanted, " ");

        snprintf(word, sizeof(word), "%.*s", (int)(length < 120 ? length : 120), wanted);
        if (!strcasestr(keys, word) && !strcasestr(text, word) && !strcasestr(topics, word))
            return false;
        wanted += length;
    }
    return true;
}

/* What is typed is this word with an argument: "layer 3", ":n 512". */
static const char *typed_argument(const Ui *ui, const TypedHelp *typed)
{
    const char *wanted = ui->help.filter.text + (*ui->help.filter.text == ':');
    size_t      length = typed->word ? strlen(typed->word) : 0;

    if (!length || strncmp(wanted, typed->word, length) != 0 || wanted[length] != ' ')
        return NULL;
    wanted += length + strspn(wanted + length, " ");
    return *wanted ? wanted : NULL;
}

/* What it is about, beside what its line says. */
static void choice_topics(const Choice *c, Text *out)
{
    if (c->action)
        text_add(out, c->action->id);
    else if (c->mechanism && c->mechanism->lesson)
        text_add(out, c->mechanism->lesson);
    else if (c->lesson)
        lessons_topics(c->lesson, out);
}

static void add_choice(const Ui *ui, Choices *list, Choice choice)
{
    char keys[128], text[512];
    Text topics = { 0 };

    choice_text(ui, &choice, keys, sizeof(keys), text, sizeof(text));
    choice_topics(&choice, &topics);
    if (list->count < CHOICES_MOST &&
        (has_words(ui->help.filter.text, keys, text, text_str(&topics)) ||
         typed_argument(ui, &choice.typed)))
        list->items[list->count++] = choice;
    text_free(&topics);
}

/* ---- lessons ----------------------------------------------------------------- */

static bool is_listed(const Choices *list, const LessonItem *lesson)
{
    for (int i = 0; i < list->count; i++)
        if (list->items[i].lesson == lesson)
            return true;
    return false;
}

/* Of a lesson that came with the program; those stand first in the list. */
static Choice lesson_choice(Ui *ui, const char *id)
{
    int place = lesson_place(id);

    return (Choice){ .lesson = place ? lessons_at(ui, place - 1) : NULL, .number = place };
}

/* As soon as something is looked for; first those that the words name. */
static void add_lessons(Ui *ui, Choices *list)
{
    const LessonItem *item;

    if (!*ui->help.filter.text || ui->compare.adding)
        return;
    for (int by_topic = 0; by_topic < 2; by_topic++)
        for (int i = 0; (item = lessons_at(ui, i)); i++)
            if ((by_topic || strcasestr(ui->help.filter.text, item->id)) &&
                !is_listed(list, item))
                add_choice(ui, list, (Choice){ .lesson = item, .number = i + 1 });
}

/* ---- what goes first ---------------------------------------------------------- */

static const char *name_of(const Choice *c)
{
    return c->mechanism ? c->mechanism->id : c->lesson  ? c->lesson->id
           : c->preset  ? c->preset->id    : c->command ? c->command->name
           : c->typed.word ? c->typed.word : "";
}

/* What is typed is the whole name of something to open, or it with an argument. */
static bool is_called(const Ui *ui, const Choice *c)
{
    return !strcasecmp(name_of(c), ui->help.filter.text) || typed_argument(ui, &c->typed);
}

/* What is typed begins the id of a mechanism; its card and stages stand below it. */
static bool is_begun(const Ui *ui, const Choice *c)
{
    const char *wanted = ui->help.filter.text;

    return c->mechanism && !c->way && !strncasecmp(c->mechanism->id, wanted, strlen(wanted));
}

/* Choices that `is` holds for go to the front, in their order. */
static void move_first(const Ui *ui, Choices *list, bool (*is)(const Ui *, const Choice *))
{
    int first = 0;

    for (int i = 0; i < list->count && *ui->help.filter.text; i++) {
        Choice found = list->items[i];

        if (!is(ui, &found))
            continue;
        memmove(&list->items[first + 1], &list->items[first],
                (size_t)(i - first) * sizeof(*list->items));
        list->items[first++] = found;
    }
}

/* ---- mechanisms and all else ------------------------------------------------- */

#define WAYS_MOST 4 /* mechanisms that are offered with card, stages and lesson */

static void add_ways(Ui *ui, Choices *list)
{
    const Mechanism *found[WAYS_MOST] = { 0 };
    int              count = list->count;

    if (!*ui->help.filter.text || ui->compare.adding || count > WAYS_MOST)
        return;
    for (int i = 0; i < count; i++)
        found[i] = list->items[i].mechanism;
    for (int i = 0; i < count; i++) {
        Choice lesson = lesson_choice(ui, found[i]->lesson);

        list->items[list->count++] = (Choice){ .mechanism = found[i], .way = 'i' };
        list->items[list->count++] = (Choice){ .mechanism = found[i], .way = 's' };
        if (lesson.lesson && !is_listed(list, lesson.lesson)) /* one of several stands once */
            list->items[list->count++] = lesson;
    }
}

/* First of all in the list. */
static void add_mechanisms(Ui *ui, Choices *list)
{
    const Mechanism *mechanism;

    for (size_t i = 0; (mechanism = mechanism_at(i)); i++)
        add_choice(ui, list, (Choice){ .mechanism = mechanism });
    move_first(ui, list, is_begun);
    add_ways(ui, list);
}

static void add_others(const Ui *ui, Choices *list)
{
    const Command *command;

    for (size_t i = 0; preset_at(i); i++)
        if (!preset_at(i)->model)
            add_choice(ui, list, (Choice){ .preset = preset_at(i) });
    for (size_t i = 0; (command = command_at(i)); i++)
        if (command->run)
            add_choice(ui, list, (Choice){ .command = command });
}

/* The word of the glossary that is called so. */
static void add_called(const Ui *ui, Choices *list)
{
    const Gloss *called = gloss_find(ui->help.filter.text);

    if (called && list->count < CHOICES_MOST && !ui->compare.adding)
        list->items[list->count++] = (Choice){ .gloss = called };
}

/* Words of the glossary, as soon as something is looked for. */
static void add_glossary(const Ui *ui, Choices *list)
{
    const Gloss *called = gloss_find(ui->help.filter.text), *gloss;

    if (!*ui->help.filter.text || ui->compare.adding)
        return;
    for (size_t i = 0; (gloss = gloss_at(i)); i++)
        if (gloss != called)
            add_choice(ui, list, (Choice){ .gloss = gloss });
}

static void add_typed(const Ui *ui, Choices *list)
{
    for (size_t i = 0; command_typed(i).word; i++)
        add_choice(ui, list, (Choice){ .typed = command_typed(i) });
}

/* The keys of one task that work below the list, under its heading while nothing is looked for.
 * Typed lines stand with what opens something. */
static void add_group(const Ui *ui, Choices *list, size_t group)
{
    const Action *action;
    unsigned      scope = scope_below(ui);
    int           before = list->count;

    if (list->count < CHOICES_MOST && !*ui->help.filter.text)
        list->items[list->count++] = (Choice){ .heading = groups[group].title };
    for (size_t i = 0; (action = action_at(i)); i++)
        if (action->scope & scope && group_of(action) == group &&
            !(scope & IN_LESSON && ui->lessons.running && lesson_takes(ui, action)))
            add_choice(ui, list, (Choice){ .action = action });
    if (group == 0 && scope & IN_SCREENS)
        add_typed(ui, list);
    if (list->count == before + 1 && list->items[before].heading)
        list->count = before;
}

/* Commands and keys of scripts; a key of an action that is listed stands with it. */
static void add_own(const Ui *ui, Choices *list)
{
    const Action *action;
    unsigned      scope;
    char          key[32];
    int           before = list->count;

    if (list->count < CHOICES_MOST && !*ui->help.filter.text)
        list->items[list->count++] = (Choice){ .heading = "Of scripts" };
    for (int i = 0; console_command_name(ui, i); i++)
        add_choice(ui, list, (Choice){ .own = console_command_help(ui, i), .mapped = i + 1 });
    for (int i = 0; console_mapped(ui, i, key, sizeof(key), &scope, &action); i++)
        if (scope & scope_below(ui) && !(action && action->scope & scope_below(ui)))
            add_choice(ui, list, (Choice){ .mapped = i + 1 });
    if (list->count == before + 1 && list->items[before].heading)
        list->count = before;
}

/* First the tasks that are at home below the list. */
static void add_keys(const Ui *ui, Choices *list)
{
    unsigned scope = scope_below(ui);

    for (int elsewhere = 0; elsewhere < 2; elsewhere++)
        for (size_t g = 0; g < GROUPS; g++) {
            bool home = groups[g].home & scope;

            if (home != elsewhere)
                add_group(ui, list, g);
        }
    add_own(ui, list);
}

static void make_choices(Ui *ui, Choices *list)
{
    *list = (Choices){ 0 };
    if (ui->help.palette) {
        add_mechanisms(ui, list);
        add_lessons(ui, list);
    }
    if (!ui->compare.adding)
        add_keys(ui, list);
    if (ui->help.palette && !ui->compare.adding)
        add_others(ui, list);
    if (!ui->help.palette && !list->count) {
        list->elsewhere = true;
        add_mechanisms(ui, list);
        add_others(ui, list);
    }
    add_called(ui, list);
    add_lessons(ui, list); /* those that do not stand above */
    add_glossary(ui, list);
    if (ui->help.palette)
        move_first(ui, list, is_called);
}

/* The line, or the next one in that direction that is no heading. */
static int settled(const Choices *list, int line, int by)
{
    line = line >= list->count ? list->count - 1 : line;
    line = line < 0 ? 0 : line;
    if (line < list->count && list->items[line].heading)
        line += by < 0 && line > 0 ? -1 : 1;
    return line;
}

static Area help_area(const Ui *ui)
{
    int width = ui->term->cols - 4 < 100 ? ui->term->cols - 4 : 100;

    return (Area){ 2, (ui->term->cols - width) / 2, ui_whole(ui).h - 2, width };
}

#define WHOLE_LINES 2 /* at the bottom of the window: all of the chosen line's text */
#define ROOMY_ROWS  16 /* of a window that has a row to spare below the filter */

/* Rows of the window, from its top. */
typedef struct HelpRows {
    int first; /* line of the list */
    int room;  /* lines that the list has even above the chosen line's whole text */
    int all;   /* and without that text */
} HelpRows;

static HelpRows help_rows(Area area)
{
    int first = area.h < ROOMY_ROWS ? 2 : 3, all = area.h - 1 - first;

    return (HelpRows){ first, all - WHOLE_LINES - 1, all };
}

static int keys_width(const Ui *ui, const Choices *list, Area area)
{
    return !ui->help.palette && !list->elsewhere ? 14 : area.w >= ROOMY ? 30 : 20;
}

/* Lines of the chosen line's whole text, where the list cuts it off. */
static int whole_lines(Ui *ui, const Choices *list, Area area, Term *term)
{
    char keys[128], text[512];
    Area box = { 0, area.x + 2, WHOLE_LINES, area.w - 4 };

    if (!list->count)
        return 0;
    choice_text(ui, &list->items[ui->help.line], keys, sizeof(keys), text, sizeof(text));
    if (term_width(text) <= area.w - keys_width(ui, list, area) - 5)
        return 0;
    box.h = term_paragraph(NULL, box, text, (Style){ 0 });
    box.y = area.y + area.h - 1 - box.h;
    return term ? term_paragraph(term, box, text, ui_style(ui, ROLE_DIM)) : box.h;
}

/* Rows of the list: all, or those above the whole text and an empty row. */
static int list_rows(Ui *ui, const Choices *list, Area area)
{
    int whole = whole_lines(ui, list, area, NULL);

    return help_rows(area).all - (whole ? whole + 1 : 0);
}

static void draw_choice(Ui *ui, const Choices *list, int line, Area area, int y)
{
    Term *term = ui->term;
    bool  here = line == ui->help.line;
    Style style = ui_style(ui, here ? ROLE_SELECT : ROLE_TEXT);
    int   left = keys_width(ui, list, area);
    char  keys[128], text[512];

    choice_text(ui, &list->items[line], keys, sizeof(keys), text, sizeof(text));
    if (list->items[line].heading) {
        term_text(term, y, area.x + 2, area.w - 4, text, ui_style(ui, ROLE_TITLE));
        return;
    }
    if (here)
        term_fill(term, (Area){ y, area.x + 1, 1, area.w - 2 }, ' ', style);
    term_text(term, y, area.x + 2, left, keys, here ? style : ui_style(ui, ROLE_KEY));
    term_text(term, y, area.x + 3 + left, area.w - left - 5, text, style);
}

/* "What works here  1-15/63" over the filter; shown: rows of the list. */
static void draw_help_head(Ui *ui, const Choices *list, Area area, int shown)
{
    const Help *h = &ui->help;
    int         last = h->top + shown;
    char        title[96];

    snprintf(title, sizeof(title), "%s  %d-%d/%d",
             !list->count         ? "Nothing found"
             : ui->compare.adding ? "Add a pane"
             : h->palette         ? "Everything"
             : list->elsewhere    ? "No key for it here, but"
                                  : "What works here",
             list->count ? h->top + 1 : 0, last < list->count ? last : list->count, list->count);
    ui_window(ui, area, title);
    term_text(ui->term, area.y + 1, area.x + 2, 8, "filter", ui_style(ui, ROLE_DIM));
    field_draw(&h->filter, ui->term, area.y + 1, area.x + 9, area.w - 12,
               ui_style(ui, ROLE_FIELD));
}

static void help_draw(Ui *ui, Area all)
{
    Help    *h = &ui->help;
    Choices  list;
    Area     area = help_area(ui);
    HelpRows rows = help_rows(area);
    int      shown;

    (void)all;
    make_choices(ui, &list);
    h->line = settled(&list, h->line, 1);
    h->top = ui_scroll(h->top, h->line, rows.room);
    if (h->top == h->line && h->top > 0 && list.items[h->top - 1].heading)
        h->top--; /* its heading with it */
    shown = list_rows(ui, &list, area);
    draw_help_head(ui, &list, area, shown);
    whole_lines(ui, &list, area, ui->term);
    if (!list.count)
        term_text(ui->term, area.y + rows.first, area.x + 2, area.w - 4,
                  "nothing is called so or does that; Esc closes, then : runs commands",
                  ui_style(ui, ROLE_DIM));
    for (int i = 0; i < shown && h->top + i < list.count; i++)
        draw_choice(ui, &list, h->top + i, area, area.y + rows.first + i);
}

static bool help_key(Ui *ui, uint32_t key)
{
    if (!ui->help.filter.length && key == '?') {
        action_close(ui);
        return true;
    }
    if (key == K_ARROW_LEFT || key == K_ARROW_RIGHT || !field_key(&ui->help.filter, key))
        return false;
    ui->help.line = ui->help.top = 0;
    return true;
}

/* The first click chooses a line, the second does it, as in the list of mechanisms. */
static void help_press(Ui *ui, const Event *event)
{
    Choices  list;
    Area     area = help_area(ui);
    HelpRows rows = help_rows(area);
    int      row = event->y - area.y - rows.first, line = ui->help.top + row;

    make_choices(ui, &list);
    if (row < 0 || row >= list_rows(ui, &list, area) || event->x <= area.x ||
        event->x >= area.x + area.w - 1)
        return;
    if (line == ui->help.line)
        action_choice_run(ui);
    else
        ui->help.line = line;
}

static void help_leave(Ui *ui)
{
    ui->compare.adding = false;
}

const Screen screen_list = {
    .mode = "HELP",
    .scope = IN_LIST,
    .draw = help_draw,
    .key = help_key,
    .close = help_leave,
    .press = help_press,
};

void help_open(Ui *ui, int palette)
{
    ui->help = (Help){ .palette = palette };
    ui_push(ui, SCREEN_LIST);
}

bool help_about(Ui *ui, const char *words)
{
    Help    before = ui->help;
    Choices list;

    ui->help = (Help){ .palette = true };
    field_set(&ui->help.filter, words);
    make_choices(ui, &list);
    if (list.count)
        ui_push(ui, SCREEN_LIST);
    else
        ui->help = before;
    return list.count > 0;
}

void choice_move(Ui *ui, int by)
{
    Choices list;

    make_choices(ui, &list);
    ui->help.line = settled(&list, ui->help.line + by, by);
}

void choice_page(Ui *ui, int by)
{
    choice_move(ui, by * help_rows(help_area(ui)).room);
}

static void open_card(Ui *ui, const Mechanism *m)
{
    Text text = { 0 };

    card_text(m, &text);
    pager_open_prose(ui, m->id, text_str(&text));
    text_free(&text);
}

/* As the key does where the list was opened. */
static void run_own(Ui *ui, const Choice *c)
{
    if (c->own)
        command_enter(ui, console_command_name(ui, c->mapped - 1));
    else
        console_run_mapped(ui, c->mapped - 1);
}

static void open_mechanism(Ui *ui, const Mechanism *m, bool adding)
{
    history_note(ui);
    if (!adding)
        panes_clear(ui);
    if (panes_pick(ui, m)) {
        ui->screen = SCREEN_COMPARE;
        panes_ask(ui);
    }
}

void action_choice_run(Ui *ui)
{
    Choices list;
    Choice  choice;
    bool    adding = ui->compare.adding;
    char    line[256] = "";

    make_choices(ui, &list);
    ui->help.line = settled(&list, ui->help.line, 1);
    if (ui->help.line >= list.count)
        return;
    choice = list.items[ui->help.line];
    if (typed_argument(ui, &choice.typed))
        snprintf(line, sizeof(line), "%s %s", choice.typed.word,
                 typed_argument(ui, &choice.typed));
    action_close(ui);
    if (choice.mapped)
        run_own(ui, &choice);
    else if (choice.action)
        action_run(ui, choice.action);
    else if (*line)
        command_enter(ui, line);
    else if (choice.mechanism && choice.way == 'i')
        open_card(ui, choice.mechanism);
    else if (choice.mechanism)
        open_mechanism(ui, choice.mechanism, choice.way != 's' &&
                       (adding || ui->screen == SCREEN_COMPARE));
    else if (choice.lesson)
        lessons_typed(ui, choice.lesson->id);
    else if (choice.preset)
        panes_open_preset(ui, choice.preset->id);
    else if (choice.gloss)
        pager_open_prose(ui, choice.gloss->word, choice.gloss->text);
    else {
        ui_prompt(ui, choice.typed.word ? choice.typed.word : choice.command->name);
        field_insert(&ui->prompt.field, " ");
    }
    if (choice.way == 's' && ui->compare.count)
        ui->screen = SCREEN_STEP;
}
