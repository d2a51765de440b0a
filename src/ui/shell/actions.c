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
#define ACTION(id, keys, scope, words, help) { #id, keys, scope, words, help, action_##id },
#include "ui/shell/actions.def"
#undef ACTION
};
#define ACTION_COUNT (sizeof(actions) / sizeof(*actions))

const Action *action_at(size_t index)
{
    return index < ACTION_COUNT ? &actions[index] : NULL;
}

const Action *action_of_key(unsigned scope, uint32_t key)
{
    for (size_t i = 0; i < ACTION_COUNT; i++)
        if (actions[i].scope & scope && key_among(key, actions[i].keys))
            return &actions[i];
    return NULL;
}

bool ui_knows_key(const char *name, size_t length)
{
    for (size_t i = 0; i < ACTION_COUNT; i++)
        for (const char *list = actions[i].keys; *list;) {
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
    for (size_t i = 0; i < ACTION_COUNT; i++)
        if (!strcmp(actions[i].id, id))
            return &actions[i];
    return NULL;
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

void action_say_none(Ui *ui, uint32_t key)
{
    unsigned scope = ui_scope(ui), below = ui_screen_scope(ui);
    bool     help = action_find("help")->scope & scope;
    char     label[32];

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
    for (size_t i = 0; help && i < SCREEN_COUNT; i++)
        if (screens[i]->tab && !(screens[i]->scope & below) &&
            action_of_key(screens[i]->scope, key)) {
            ui_hint(ui, "%s works in %s, not here; ? lists what works here", label,
                    screens[i]->tab);
            return;
        }
    ui_hint(ui, "%s does nothing here; %s", label,
            help ? "? lists what works" : "Esc closes this");
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
        { IN_LESSONS, "Lessons" }, { IN_LESSON, "A lesson" },
        { IN_FILTER, "Filter of the list" }, { IN_SEARCH, "Find" }, { IN_EMPTY, "No pane" },
    };
    char keys[128];

    for (size_t p = 0; p < sizeof(places) / sizeof(*places); p++) {
        text_addf(out, "## %s\n\n| keys | name | what it does |\n| --- | --- | --- |\n",
                  places[p].title);
        for (size_t i = 0; i < ACTION_COUNT; i++)
            if (actions[i].scope & places[p].scope)
                text_addf(out, "| `%s` | %s | %s |\n", action_keys(&actions[i], keys, sizeof(keys)),
                          actions[i].id, actions[i].help);
        text_add(out, "\n");
    }
}
