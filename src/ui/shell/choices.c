/* choices.c -- keys by task, mechanisms, lessons, commands and words by name; see choices.h.
 *
 * Keys stand in groups, each a task.  What is typed may hold several words, and with an argument
 * it is a whole line: "layer 3".
 */
#include "ui/shell/choices.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "app/lesson/lesson.h"
#include "ui/state/panes.h"

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
      "list_mark list_compare pane_add pane_close_it difference position_effect link "
      "scale_shared solo next_pane previous_pane", 0 },
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

void choice_text(const Ui *ui, const Choice *c, char *keys, size_t keys_size, char *text,
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
    } else if (c->position) {
        snprintf(keys, keys_size, "%s", c->position->id);
        snprintf(text, size, "open full attention with %s: %s", c->position->name,
                 c->position->help);
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

const char *choice_argument(const Ui *ui, const Choice *c)
{
    const char *wanted = ui->help.filter.text + (*ui->help.filter.text == ':');
    size_t      length = c->typed.word ? strlen(c->typed.word) : 0;

    if (!length || strncmp(wanted, c->typed.word, length) != 0 || wanted[length] != ' ')
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
         choice_argument(ui, &choice)))
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
           : c->position ? c->position->id : c->typed.word ? c->typed.word : "";
}

/* What is typed is the whole name of something to open, or it with an argument. */
static bool is_called(const Ui *ui, const Choice *c)
{
    return !strcasecmp(name_of(c), ui->help.filter.text) || choice_argument(ui, c);
}

/* What is typed begins the name. */
static bool is_begun(const Ui *ui, const Choice *c)
{
    const char *wanted = ui->help.filter.text;

    return !strncasecmp(name_of(c), wanted, strlen(wanted));
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
    move_first(ui, list, is_begun); /* card and stages stand below all of them */
    add_ways(ui, list);
}

static void add_others(const Ui *ui, Choices *list)
{
    const Command *command;

    for (size_t i = 0; preset_at(i); i++)
        if (!preset_at(i)->model)
            add_choice(ui, list, (Choice){ .preset = preset_at(i) });
    for (size_t i = 0; *ui->help.filter.text && position_at(i); i++)
        add_choice(ui, list, (Choice){ .position = position_at(i) });
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

void choices_make(Ui *ui, Choices *list)
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
    if (ui->help.palette) {
        move_first(ui, list, is_begun);
        move_first(ui, list, is_called);
    }
}
