/* main.c -- picks a front end: a command, a Lua script, or the explorer. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/call.h"
#include "app/program.h"
#include "attn/cpu/simd/kernel.h"
#include "attn/run/mechanism.h"
#include "cli/cli.h"
#include "profile/record.h"
#include "script/script.h"
#include "ui/shell/ui.h"

static bool is(const char *word, const char *name)
{
    return word && !strcmp(word, name);
}

static bool is_command(const char *word)
{
    return word && (command_find(word) || is(word, "--help") || is(word, "-h") ||
                    is(word, "help") || is(word, "--version") || is(word, "-V"));
}

/* A word that is neither a command nor a file is a slip, not an input. */
static bool is_input(const char *word)
{
    return !word || *word == '-' || !strncmp(word, "synthetic:", 10) ||
           !strncmp(word, "sample:", 7) || !strncmp(word, "model:", 6) ||
           access(word, F_OK) == 0 || strchr(word, '/') || strchr(word, '.');
}

static bool is_document(const char *kind)
{
    return is(kind, "keys") || is(kind, "luals") || is(kind, "lua");
}

/* The documents that are made from the front ends' own tables. */
static int print_document(const char *kind)
{
    Text text = { 0 };
    bool ok = true;

    if (is(kind, "keys"))
        ui_docs(&text);
    else if (is(kind, "lua"))
        ok = script_reference(&text);
    else if (is(kind, "man")) {
        ui_man(&text);
        ok = script_man(&text);
    }
    else
        ok = script_stubs(&text);
    ok = program_print(&text) == 0 && ok;
    text_free(&text);
    return ok ? 0 : 1;
}

/* The script room reads lessons; the explorer knows the keys that they name. */
static int choose(int argc, char **argv, ScriptHost **scripts)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    bool        terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    LessonReader lessons = script_lessons;

    lessons.knows_key = ui_knows_key;
    if (terminal && (is_command(word) ? ui_takes(argc, argv) : is_input(word)))
        return ui_main(argc, argv, script_interpreter(scripts), &lessons);
    if (is_command(word) || !is_input(word))
        return cli_main(argc, argv, &lessons, ui_options,
                        *scripts ? script_interpreter(scripts) : NULL);
    /* Answers --help, else reports that there is no terminal. */
    return ui_main(argc, argv, script_interpreter(scripts), &lessons);
}

/* What the command docs knows; the man page has sections of other front ends. */
static int print_rest(int argc, char **argv)
{
    ScriptHost *none = NULL;
    int         status = choose(argc, argv, &none);

    return status == 0 && argc == 3 && is(argv[2], "man") ? print_document("man") : status;
}

/* Prints what is wrong with ATTNSCOPE_ISA. */
static bool isa_known(void)
{
    const char *value = kernel_unknown();
    Text        text = { 0 };

    if (!value)
        return true;
    text_addf(&text, "ATTNSCOPE_ISA is '%s'; it must be avx512, avx2 or generic: the best kernels "
              "that may run (unset: the best of this CPU)", value);
    program_message(text_ok(&text) ? text_str(&text)
                                   : "ATTNSCOPE_ISA must be avx512, avx2 or generic");
    text_free(&text);
    return false;
}

#define NAMED_MOST 64 /* words */

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    ScriptHost *scripts = NULL;
    Error       err = ERROR_INIT;
    int         status;
    char        info[] = "info", step[] = "step";
    char       *named[NAMED_MOST + 3] = { argv[0] }; /* a mechanism's bare name opens it */

    if (!program_begin(argv))
        return 1;
    if (!isa_known())
        return 2;
    environment_start_for_blas(argv);
    if (argc > 1 && argc < NAMED_MOST && mechanism_find(word) && access(word, F_OK) != 0) {
        named[1] = argc > 2 || (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) ? step : info;
        memcpy(named + 2, argv + 1, (size_t)(argc - 1) * sizeof(*argv));
        argc++;
        argv = named;
        word = argv[1];
    }
    if (is(word, "lua"))
        return script_main(argc, argv);
    if (is(word, "docs"))
        return argc == 3 && is_document(argv[2]) ? print_document(argv[2]) : print_rest(argc, argv);
    scripts = script_load(&argc, argv, &err);
    if (err.code)
        return program_fail(&err);
    status = choose(argc, argv, &scripts);
    script_unload(scripts);
    return status;
}
