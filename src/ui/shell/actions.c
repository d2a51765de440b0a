/* actions.c -- see actions.h. */
#include "ui/shell/actions.h"

#include <stdio.h>
#include <string.h>

#include "ui/shell/ui.h"
#include "ui/term/term.h"

const Screen *const screens[SCREEN_COUNT] = {
#define SCREEN(NAME, name) [SCREEN_##NAME] = &screen_##name,
#include "ui/screen/screens.def"
};

static const Action actions[] = {
#define ACTION(id, keys, scope, words, help)                                                      \
    { #id, keys, scope, words, help, action_##id, NULL, 0 },
#define ACTION_WITH(id, keys, scope, words, help, function, value)                                \
    { #id, keys, scope, words, help, NULL, function, value },
#define SCREENS_OWN { .id = NULL },
#include "ui/shell/actions.def"
};
#define ACTION_COUNT (sizeof(actions) / sizeof(*actions))

/* A position in the list of all actions; at SCREENS_OWN stand those of each screen. */
typedef struct ActionPlace {
    size_t at;
    int    screen, own;
} ActionPlace;

/* The action at the position, which moves on; NULL past the end. */
static const Action *next_action(ActionPlace *p)
{
    while (p->at < ACTION_COUNT && !actions[p->at].id) {
        const Screen *s = screens[p->screen];

        if (p->own < s->action_count)
            return &s->actions[p->own++];
        p->own = 0;
        if (++p->screen == SCREEN_COUNT) {
            p->screen = 0;
            p->at++;
        }
    }
    return p->at < ACTION_COUNT ? &actions[p->at++] : NULL;
}

const Action *action_at(size_t index)
{
    ActionPlace   place = { 0 };
    const Action *action = next_action(&place);

    while (action && index-- > 0)
        action = next_action(&place);
    return action;
}

const Action *action_of_key(unsigned scope, uint32_t key)
{
    ActionPlace   place = { 0 };
    const Action *action;

    while ((action = next_action(&place)))
        if (action->scope & scope && key_among(key, action->keys))
            return action;
    return NULL;
}

/* Scopes of a lesson's places; every scope where there is none. */
static unsigned scopes_of(unsigned places)
{
    unsigned scopes = places ? 0 : ~0u;

    if (places & LESSON_IN_WORDS)
        scopes |= IN_LESSON;
    if (places & LESSON_IN_PANES)
        scopes |= IN_COMPARE | IN_STEP | IN_PROFILE;
    if (places & LESSON_IN_FORM)
        scopes |= IN_PARAMS;
    return scopes;
}

bool ui_knows_key(const char *name, size_t length, unsigned places)
{
    ActionPlace   place = { 0 };
    const Action *action;

    while ((action = next_action(&place)))
        for (const char *list = action->scope & scopes_of(places) ? action->keys : ""; *list;) {
            size_t      own = strcspn(list, " ");
            char        text[32];
            const char *label = key_label(key_parse(list, own), text, sizeof(text));

            if ((own == length && !memcmp(list, name, length)) ||
                (strlen(label) == length && !memcmp(label, name, length)))
                return true;
            list += own + (list[own] == ' ');
        }
    return false;
}

const Action *action_find(const char *id)
{
    ActionPlace   place = { 0 };
    const Action *action;

    while ((action = next_action(&place)))
        if (!strcmp(action->id, id))
            return action;
    return NULL;
}

void action_run(Ui *ui, const Action *action)
{
    if (action->run)
        action->run(ui);
    else
        action->run_with(ui, action->value);
}

char *action_keys(const Action *action, char *text, size_t size)
{
    const char *list = action->keys;
    size_t      used = 0;
    char        label[32];

    text[0] = '\0';
    while (*list && used < size) {
        size_t length = strcspn(list, " ");

        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "",
                                 key_label(key_parse(list, length), label, sizeof(label)));
        list += length + (list[length] == ' ');
    }
    return text;
}

/* "1 Browse, 2 Compare": all that have the key; false: none. */
static bool screens_of_key(unsigned below, uint32_t key, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < SCREEN_COUNT && used < size; i++)
        if (screens[i]->tab && !(screens[i]->scope & below) &&
            action_of_key(screens[i]->scope, key))
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                     screens[i]->tab);
    return used > 0;
}

void action_say_none(Ui *ui, uint32_t key)
{
    unsigned scope = ui_scope(ui), below = ui_screen_scope(ui);
    bool     help = action_find("help")->scope & scope;
    char     label[32], tabs[96];

    key_label(key, label, sizeof(label));
    if (ui->overlay_count && action_of_key(below, key)) {
        ui_hint(ui, "%s works once Esc has closed this%s", label,
                help ? "; ? lists what works here" : "");
        return;
    }
    if (below == IN_EMPTY && action_of_key(IN_COMPARE, key)) {
        ui_hint(ui, "%s needs a pane: a adds one, 1 is the list", label);
        return;
    }
    if (below == IN_LESSONS && action_of_key(IN_LESSON, key)) {
        ui_hint(ui, "%s works in a lesson; Enter begins the one chosen here", label);
        return;
    }
    if (help && screens_of_key(below, key, tabs, sizeof(tabs))) {
        ui_hint(ui, "%s works in %s, not here; ? lists what works here", label, tabs);
        return;
    }
    ui_hint(ui, "%s does nothing here; %s", label,
            help ? "? lists what works" : "Esc closes this");
}

/* The actions of a place as a table. */
static void document(const char *title, unsigned scope, Text *out)
{
    const Action *action;
    char          keys[128];

    text_addf(out, "## %s\n\n| keys | name | what it does |\n| --- | --- | --- |\n", title);
    for (ActionPlace at = { 0 }; (action = next_action(&at));)
        if (action->scope & scope)
            text_addf(out, "| `%s` | %s | %s |\n", action_keys(action, keys, sizeof(keys)),
                      action->id, action->help);
    text_add(out, "\n");
}

void ui_docs(Text *out)
{
    static const struct {
        unsigned    scope;
        const char *title;
    } places[] = {
        { IN_BROWSE, "Browse" },         { IN_COMPARE, "Compare" },     { IN_INSPECT, "A cell" },
        { IN_STEP, "Step" },
        { IN_SPAN, "Picture of a query" },
        { IN_VARY, "One parameter at several values" },
        { IN_OVERVIEW, "All layers and heads" },
        { IN_PARAMS, "Parameters" },     { IN_PROFILE, "Profile" },     { IN_TEXT, "Texts" },
        { IN_LIST, "Help and palette" }, { IN_PROMPT, "Command line" },
        { IN_CONSOLE, "Lua" }, { IN_EXPORT, "Export" },
        { IN_MODEL, "Model" }, { IN_LESSONS, "Lessons" }, { IN_LESSON, "A lesson" },
        { IN_FILTER, "Filter of the list" }, { IN_SEARCH, "Find" }, { IN_EMPTY, "No pane" },
    };
    unsigned done = IN_CONFIRM; /* its text names its keys */

    for (size_t p = 0; p < sizeof(places) / sizeof(*places); p++) {
        document(places[p].title, places[p].scope, out);
        done |= places[p].scope;
    }
    for (int i = 0; i < SCREEN_COUNT; i++) /* screens without a title above */
        if (!(screens[i]->scope & done))
            document(screens[i]->mode, screens[i]->scope, out);
}
