/* command.c -- the table of commands, and their help; see call.h. */
#include <string.h>

#include "app/call.h"
#include "app/command/command.h"
#include "app/lesson/lesson.h"

static const Command commands[] = {
#define COMMAND(name, arguments, words, help, run) { #name, arguments, help, words, run },
#include "app/command/commands.def"
#undef COMMAND
};

const Command *command_at(size_t index)
{
    return index < sizeof(commands) / sizeof(*commands) ? &commands[index] : NULL;
}

const Command *command_find(const char *name)
{
    for (size_t i = 0; command_at(i); i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

bool command_run(Session *s, const char *const *words, int count, bool tty, int columns, Text *out,
                 Error *err)
{
    Call call;
    Text line = { 0 };
    bool ok;

    if (!call_parse(&call, words, count, err))
        return false;
    call.tty = tty;
    call.columns = columns;
    if (call.values[OPT_HELP]) {
        command_help(call.command, out);
        return true;
    }
    if (!call.command->run)
        return error_set(err, ERR_USAGE, "'%s' can only be started from a shell", words[0]);
    /* What is drawn for minutes is not to be lost to a slip in a folder's name. */
    for (int i = 0; command_draws(call.command) && i < call.file_count; i++)
        if (!file_place(call.files[i], err))
            return false;
    words_join(words, count, &line);
    call.line = text_str(&line);
    ok = call.command->run(s, &call, out, err);
    text_free(&line);
    return ok;
}

#define HELP_COLUMN   38
#define OPTION_COLUMN 28
#define HELP_WIDTH    79

/* Words broken at blanks, each line from `indent` on. */
static void add_wrapped(Text *out, const char *text, size_t indent)
{
    size_t column = indent;

    while (*text) {
        size_t word = strcspn(text, " ");

        if (column > indent && column + 1 + word > HELP_WIDTH) {
            text_addf(out, "\n%*s", (int)indent, "");
            column = indent;
        }
        text_addf(out, "%s%.*s", column || indent ? " " : "", (int)word, text);
        column += word + 1;
        text += word + strspn(text + word, " ");
    }
    text_add(out, "\n");
}

static void option_line(const Option *option, Text *out)
{
    size_t start = out->length;

    if (option->letter)
        text_addf(out, "  -%c, ", option->letter);
    else
        text_add(out, "      ");
    text_addf(out, "--%s%s%s", option->flag, option->value ? " " : "",
              option->value ? option->value : "");
    if (out->length - start > OPTION_COLUMN)
        text_addf(out, "\n%*s", OPTION_COLUMN, "");
    while (out->length - start < OPTION_COLUMN)
        text_add(out, " ");
    add_wrapped(out, option->help, OPTION_COLUMN);
}

void command_help(const Command *command, Text *out)
{
    text_addf(out, "usage: attnscope %s %s [options]\n\n", command->name, command->arguments);
    add_wrapped(out, command->help, 0);
    text_add(out, "\noptions\n");
    for (int i = 0; i < OPT_COUNT; i++)
        if (command_takes(command, option_at(i)))
            option_line(option_at(i), out);
}

void command_overview(Text *out, void (*explorer)(Text *out))
{
    text_add(out, "attnscope -- the same Q, K, V through every attention mechanism: what it "
                  "connects,\nwhat it loses, what it costs\n\nusage\n"
                  "  attnscope [INPUT]                    the explorer (a shipped sample when no "
                  "INPUT)\n");
    for (size_t i = 0; command_at(i); i++) {
        size_t start = out->length;

        text_addf(out, "  attnscope %s %s", commands[i].name, commands[i].arguments);
        if (out->length - start > HELP_COLUMN)
            text_addf(out, "\n%*s", HELP_COLUMN, "");
        while (out->length - start < HELP_COLUMN)
            text_add(out, " ");
        add_wrapped(out, commands[i].help, HELP_COLUMN);
    }
    if (explorer)
        explorer(out);
    text_add(out, "\nmechanisms of your own\n"
                  "  --lua FILE, with any command or the explorer, runs a script first: what it\n"
                  "  defines by attn.pattern and attn.mechanism is in the catalogue then; so is\n"
                  "  what $XDG_CONFIG_HOME/attnscope/init.lua defines\n");
    text_add(out, "\nexamples\n"
                  "  attnscope                                    look around\n"
                  "  attnscope figure bigbird -n 48 -o bigbird.png\n"
                  "  attnscope compare full 'pattern(window(129))' performer -n 2048 -d 64\n"
                  "  attnscope run reformer --input samples/induction.safetensors --layer 1\n"
                  "\nattnscope COMMAND --help shows the options of a command; the manual is "
                  "attnscope(1).\n");
}

/* Completion scripts of the shells, from the tables. */

typedef struct Lists {
    Text commands, mechanisms, flags, presets, lessons;
} Lists;

static void complete_word(Text *list, const char *before, const char *word)
{
    text_addf(list, "%s%s%s", list->length ? " " : "", before, word);
}

/* Those of the user too; without them where they cannot be read. */
static void add_lessons(Text *list)
{
    LessonList lessons;

    complete_word(list, "", "list");
    if (!lessons_find(&lessons, NULL))
        return;
    for (int i = 0; i < lessons.count; i++)
        complete_word(list, "", lessons.files[i].id);
    lessons_free(&lessons);
}

static void make_lists(Lists *l)
{
    for (size_t i = 0; command_at(i); i++)
        complete_word(&l->commands, "", command_at(i)->name);
    for (size_t i = 0; mechanism_at(i); i++)
        complete_word(&l->mechanisms, "", mechanism_at(i)->id);
    for (size_t i = 0; preset_at(i); i++)
        complete_word(&l->presets, "", preset_at(i)->id);
    for (int id = 0; id < OPT_COUNT; id++)
        complete_word(&l->flags, "--", option_at(id)->flag);
    add_lessons(&l->lessons);
}

static void free_lists(Lists *l)
{
    text_free(&l->commands);
    text_free(&l->mechanisms);
    text_free(&l->presets);
    text_free(&l->flags);
    text_free(&l->lessons);
}

static void write_bash(const Lists *l, Text *out)
{
    text_addf(out,
              "_attnscope() {\n    local word=${COMP_WORDS[COMP_CWORD]} list='%s'\n"
              "    [ \"$COMP_CWORD\" -eq 1 ] && list='%s'\n"
              "    case $word in -*) list='%s' ;; esac\n"
              "    case ${COMP_WORDS[COMP_CWORD-1]} in preset|--preset) list='%s' ;; "
              "lesson) list='%s' ;; esac\n"
              "    COMPREPLY=($(compgen -W \"$list\" -- \"$word\") "
              "$(compgen -f -- \"$word\"))\n}\ncomplete -F _attnscope attnscope\n",
              text_str(&l->mechanisms), text_str(&l->commands), text_str(&l->flags),
              text_str(&l->presets), text_str(&l->lessons));
}

static void write_zsh(const Lists *l, Text *out)
{
    text_addf(out,
              "#compdef attnscope\nif (( CURRENT == 2 )); then compadd -- %s; _files\n"
              "elif [[ ${words[CURRENT-1]} == (preset|--preset) ]]; then compadd -- %s\n"
              "elif [[ ${words[CURRENT-1]} == lesson ]]; then compadd -- %s; _files -g '*.lua'\n"
              "elif [[ $PREFIX == -* ]]; then compadd -- %s\nelse compadd -- %s; _files\nfi\n",
              text_str(&l->commands), text_str(&l->presets), text_str(&l->lessons),
              text_str(&l->flags), text_str(&l->mechanisms));
}

static void write_fish(const Lists *l, Text *out)
{
    text_addf(out,
              "complete -c attnscope -n __fish_use_subcommand -a '%s'\n"
              "complete -c attnscope -n '__fish_seen_subcommand_from preset' -xa '%s'\n"
              "complete -c attnscope -n '__fish_seen_subcommand_from figure' -l preset -xa '%s'\n"
              "complete -c attnscope -n '__fish_seen_subcommand_from lesson' -a '%s'\n"
              "complete -c attnscope -n 'not __fish_use_subcommand' -a '%s'\n",
              text_str(&l->commands), text_str(&l->presets), text_str(&l->presets),
              text_str(&l->lessons), text_str(&l->mechanisms));
}

static const struct {
    const char *name;
    void (*write)(const Lists *l, Text *out);
} shells[] = { { "bash", write_bash }, { "zsh", write_zsh }, { "fish", write_fish } };

bool command_completions(Session *s, const Call *call, Text *out, Error *err)
{
    const char *shell = call->word_count ? call->words[0] : "";

    (void)s;
    for (size_t i = 0; i < sizeof(shells) / sizeof(*shells); i++) {
        Lists lists = { .flags = { 0 } };

        if (strcmp(shells[i].name, shell) != 0)
            continue;
        make_lists(&lists);
        shells[i].write(&lists, out);
        free_lists(&lists);
        return true;
    }
    return error_set(err, ERR_USAGE, "completions: expected bash, zsh or fish, got '%s'", shell);
}
