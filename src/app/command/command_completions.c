/* command_completions.c -- completion scripts of the shells, from the tables. */
#include <string.h>

#include "app/command/command_parts.h"
#include "app/command/preset.h"
#include "app/lesson/lesson.h"

typedef struct Lists {
    Text commands, mechanisms, flags, presets, lessons;
} Lists;

static void add_word(Text *list, const char *before, const char *word)
{
    text_addf(list, "%s%s%s", list->length ? " " : "", before, word);
}

/* Those of the user too; without them where they cannot be read. */
static void add_lessons(Text *list)
{
    LessonList lessons;

    add_word(list, "", "list");
    if (!lessons_find(&lessons, NULL))
        return;
    for (int i = 0; i < lessons.count; i++)
        add_word(list, "", lessons.files[i].id);
    lessons_free(&lessons);
}

static void make_lists(Lists *l)
{
    for (size_t i = 0; command_at(i); i++)
        add_word(&l->commands, "", command_at(i)->name);
    for (size_t i = 0; mechanism_at(i); i++)
        add_word(&l->mechanisms, "", mechanism_at(i)->id);
    for (size_t i = 0; preset_at(i); i++)
        add_word(&l->presets, "", preset_at(i)->id);
    for (int id = 0; id < OPT_COUNT; id++)
        add_word(&l->flags, "--", option_at(id)->flag);
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
