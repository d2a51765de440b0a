/* completions.c -- the command completions: scripts for the shells, and what they ask.
 *
 * A script knows no words of its own.  It gives the line's words to
 * `attnscope completions words -- WORD...` and takes an answer a line, a tab, what it is; the line
 * "/" stands for names of files.
 */
#include <string.h>

#include "app/command/command.h"
#include "app/complete.h"

#define FILES_WORD "/"

/* Bash breaks words at = and : and wants what stands behind the last of them, so the words are put
 * together again by the blanks of the line. */
static const char bash_script[] =
    "_attnscope() {\n"
    "    local rest=$COMP_LINE words=() i word blank help head program=${COMP_WORDS[0]}\n"
    "    local tail=${COMP_WORDS[COMP_CWORD]}\n"
    "    type \"$program\" >/dev/null 2>&1 || program=attnscope\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]} blank=${rest%%[![:space:]]*}\n"
    "        rest=${rest#\"$blank\"} rest=${rest#\"$word\"}\n"
    "        word=${word//[\\'\\\"\\\\]/}\n"
    "        if [ $i -gt 0 ] && [ -n \"$COMP_LINE\" ] && [ -z \"$blank\" ] && "
    "[ -n \"$word\" ]; then\n"
    "            words[${#words[@]}-1]+=$word\n"
    "        else words+=(\"$word\"); fi\n"
    "    done\n"
    "    tail=${tail//[\\'\\\"\\\\]/}\n"
    "    case $tail in [=:]) tail= ;; esac\n"
    "    word=${words[${#words[@]}-1]} head=${word%\"$tail\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r word help; do\n"
    "        if [ \"$word\" = / ]; then\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            while IFS= read -r word; do COMPREPLY+=(\"$word\"); done "
    "< <(compgen -f -- \"$tail\")\n"
    "        else COMPREPLY+=(\"${word#\"$head\"}\"); fi\n"
    "    done < <(\"$program\" completions words -- \"${words[@]:1}\" 2>/dev/null)\n"
    "    case \"${COMPREPLY[*]}\" in *\\ *) [ ${#COMPREPLY[@]} -eq 1 ] && "
    "compopt -o filenames 2>/dev/null ;; esac\n"
    "    case ${COMPREPLY[0]} in *[=:]) compopt -o nospace 2>/dev/null ;; esac\n"
    "}\n"
    "complete -F _attnscope attnscope\n";

static const char zsh_script[] =
    "#compdef attnscope\n"
    "_attnscope() {\n"
    "    local -a open plain open_shown plain_shown\n"
    "    local line word files=\n"
    "    for line in ${(f)\"$(${(Q)words[1]} completions words -- "
    "\"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" 2>/dev/null)\"}; do\n"
    "        word=${line%%$'\\t'*}\n"
    "        case $word in\n"
    "        /) files=1 ;;\n"
    "        *[=:]) open+=(\"$word\") open_shown+=(\"$word  ${line#*$'\\t'}\") ;;\n"
    "        *) plain+=(\"$word\") plain_shown+=(\"$word  ${line#*$'\\t'}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    compadd -l -S '' -d open_shown -a open\n"
    "    compadd -l -d plain_shown -a plain\n"
    "    [[ -n $files ]] && _files\n"
    "    return 0\n"
    "}\n"
    "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _attnscope \"$@\"\n"
    "else compdef _attnscope attnscope; fi\n";

static const char fish_script[] =
    "function __attnscope_words\n"
    "    set -l words (commandline -opc)\n"
    "    set -l last (commandline -ct)\n"
    "    for line in ($words[1] completions words -- $words[2..-1] (string unescape -- \"$last\"; "
    "or echo \"$last\") 2>/dev/null)\n"
    "        if string match -q -r '^/\\t' -- $line\n"
    "            __fish_complete_path \"$last\"\n"
    "        else\n"
    "            echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c attnscope -f -a '(__attnscope_words)'\n";

static const struct {
    const char *name, *script;
} shells[] = { { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script } };

/* The help up to its first colon or semicolon: a shell has one line for it. */
static void add_word(void *context, const char *word, const char *help)
{
    size_t length = strcspn(help, ";:\n");

    text_addf(context, "%s\t%.*s\n", word, (int)(length < 72 ? length : 72), help);
}

bool command_completions(Session *s, const Call *call, Text *out, Error *err)
{
    const char *shell = call->word_count ? call->words[0] : "";

    if (!strcmp(shell, "words")) {
        if (complete_words(s, call->words + 1, call->word_count - 1, add_word, out))
            text_add(out, FILES_WORD "\t\n");
        return true;
    }
    for (size_t i = 0; call->word_count == 1 && i < sizeof(shells) / sizeof(*shells); i++)
        if (!strcmp(shells[i].name, shell)) {
            text_add(out, shells[i].script);
            return true;
        }
    return error_set(err, ERR_USAGE, "completions: expected bash, zsh or fish, or words -- "
                     "WORD..., got '%s'", call->word_count > 1 ? call->words[1] : shell);
}
