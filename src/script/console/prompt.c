/* prompt.c -- Lua at a prompt: values are printed, unfinished lines go on.
 *
 * With libedit the line can be edited, names are completed with Tab and the
 * lines are remembered in $XDG_STATE_HOME/attnscope/lua_history; without it,
 * lines are read as they come.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/program.h"
#include "core/threads.h"
#include "script/console/console.h"
#include "script/host/binding.h"

/* ---- lines ------------------------------------------------------------------ */

#ifdef HAVE_LIBEDIT
#include <editline/readline.h>

/* $XDG_STATE_HOME/attnscope/lua_history, its folder made when it is not there; false without a
 * home. */
static bool history_file(Text *path)
{
    return place_state("lua_history", path, NULL) && place_make_folders(text_str(path), NULL);
}

#define NAMES_MOST 512

typedef struct Names {
    char *names[NAMES_MOST];
    int   count;
} Names;

static void remember_name(void *context, const char *name)
{
    Names *names = context;
    char  *copy = names->count < NAMES_MOST ? strdup(name) : NULL;

    if (copy)
        names->names[names->count++] = copy;
}

/* libedit passes no context to its callbacks. */
static lua_State *completing;

static char *next_name(const char *word, int again)
{
    static Names found; /* the line editor frees what it was given */
    static int   at;

    if (!again) {
        found.count = 0;
        complete_names(completing, word, remember_name, &found);
        at = 0;
    }
    return at < found.count ? found.names[at++] : NULL;
}

static char **complete_word(const char *word, int start, int end)
{
    (void)start;
    (void)end;
    rl_attempted_completion_over = 1;
    return rl_completion_matches(word, next_name);
}

static void lines_open(lua_State *L)
{
    Text        path = { 0 };
    static char breaks[] = " \t\n\"\\'><=;,+-*/%^~#{}()[]|&";
    static char name[] = "attnscope";

    completing = L;
    rl_readline_name = name;
    rl_initialize();
    rl_basic_word_break_characters = breaks;
    rl_completer_word_break_characters = breaks;
    rl_attempted_completion_function = complete_word;
    rl_completion_append_character = '\0';
    using_history();
    stifle_history(1000);
    if (history_file(&path))
        read_history(text_str(&path));
    text_free(&path);
}

static void lines_close(void)
{
    Text path = { 0 };

    if (history_file(&path))
        write_history(text_str(&path));
    text_free(&path);
}

static char *read_line(const char *prompt)
{
    char *line = readline(prompt);

    if (line && *line)
        add_history(line);
    return line;
}
#else
static void lines_open(lua_State *L)
{
    (void)L;
}

static void lines_close(void)
{
}

static char *read_line(const char *prompt)
{
    char  *line = NULL;
    size_t size = 0;

    fputs(prompt, stdout);
    fflush(stdout);
    if (getline(&line, &size, stdin) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        return line;
    }
    free(line);
    return NULL;
}
#endif

/* A signal handler gets no context.  It runs on the main thread, which waits for the line. */
static volatile sig_atomic_t given_up;

static void give_up(int number)
{
    if (!threads_pass_signal(number))
        given_up = 1;
}

/* NULL: the input ended, or Ctrl-C cancelled the line.  *stopped with a line: Ctrl-C came before
 * the editor waited, and cancels the lines before this one. */
static char *read_line_or_stop(const char *prompt, bool *stopped)
{
    struct sigaction ours = { .sa_handler = give_up }, before; /* no restart: the line ends */
    char            *line;

    given_up = 0;
    sigemptyset(&ours.sa_mask);
    if (isatty(STDIN_FILENO))
        sigaction(SIGINT, &ours, &before);
    line = read_line(prompt);
    if (isatty(STDIN_FILENO))
        sigaction(SIGINT, &before, NULL);
    *stopped = given_up;
    return line;
}

/* ---- evaluation ------------------------------------------------------------- */

/* What lies above the message handler, as print writes it.  Under pcall. */
static int print_values(lua_State *L)
{
    lua_getglobal(L, "print");
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

static void say_error(lua_State *L)
{
    fflush(stdout);
    fprintf(stderr, "%s\n", luaL_tolstring(L, -1, NULL));
}

static void evaluate(lua_State *L)
{
    int status;

    script_catch_interrupt(L);
    status = lua_pcall(L, 0, LUA_MULTRET, 1);
    script_catch_interrupt(NULL);
    if (status == LUA_OK && lua_gettop(L) > 1) {
        lua_pushcfunction(L, print_values);
        lua_insert(L, 2);
        status = lua_pcall(L, lua_gettop(L) - 2, 0, 1);
    }
    if (status != LUA_OK)
        say_error(L);
    lua_settop(L, 1);
    fflush(stdout);
}

/* One whole statement into text, which Ctrl-C cancels; false: the input ended. */
static bool read_statement(lua_State *L, Text *text)
{
    const char *prompt = "> ";
    char       *line;
    bool        stopped;

    text_clear(text);
    while ((line = read_line_or_stop(prompt, &stopped))) {
        int status;

        if (stopped)
            text_clear(text);
        text_addf(text, "%s%s", text->length ? "\n" : "", line);
        free(line);
        status = statement_load(L, text_str(text));
        if (!statement_unfinished(L, status)) {
            if (status != LUA_OK) {
                say_error(L);
                lua_settop(L, 1);
            }
            return true;
        }
        lua_settop(L, 1);
        prompt = ">> ";
    }
    if (stopped) {
        putchar('\n');
        clearerr(stdin);
    }
    return stopped;
}

void repl_run(lua_State *L)
{
    Text text = { 0 };

    printf("attnscope %s, %s.  attn.run(\"bigbird\", { n = 64 }); Tab completes, Ctrl-D ends.\n",
           ATTNSCOPE_VERSION, LUA_RELEASE);
    lines_open(L);
    while (read_statement(L, &text))
        if (lua_gettop(L) > 1)
            evaluate(L);
    lines_close();
    putchar('\n');
    text_free(&text);
}

/* ---- what the two prompts share -------------------------------------------- */

typedef struct Completion {
    const char  *word;
    CompleteName add;
    void        *context;
} Completion;

static void offer_name(const Completion *c, size_t stem, const char *name)
{
    char whole[256];

    if (stem + strlen(name) >= sizeof(whole) ||
        strncmp(name, c->word + stem, strlen(c->word + stem)) != 0)
        return;
    memcpy(whole, c->word, stem);
    strcpy(whole + stem, name);
    c->add(c->context, whole);
}

static void add_members(lua_State *L, const Completion *c, size_t stem)
{
    const Class *class = class_of(L, -1);

    for (const Member *m = class ? class->members : NULL; m && m->name; m++)
        offer_name(c, stem, m->name);
}

/* Under pcall: the names of the word's last part, without calling anything. */
static int complete(lua_State *L)
{
    const Completion *c = lua_touserdata(L, 1);
    const char       *at = c->word, *end;

    lua_pushglobaltable(L);
    while ((end = strpbrk(at, ".:"))) {
        if (!lua_istable(L, -1))
            return 0;
        lua_pushlstring(L, at, (size_t)(end - at));
        lua_rawget(L, -2);
        lua_remove(L, -2); /* a word may have many parts, the stack has few places */
        at = end + 1;
    }
    if (lua_isuserdata(L, -1))
        add_members(L, c, (size_t)(at - c->word));
    if (!lua_istable(L, -1))
        return 0;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING)
            offer_name(c, (size_t)(at - c->word), lua_tostring(L, -2));
    return 0;
}

void complete_names(lua_State *L, const char *word, CompleteName add, void *context)
{
    Completion c = { .word = word, .add = add, .context = context };

    lua_pushcfunction(L, complete);
    lua_pushlightuserdata(L, &c);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK)
        lua_pop(L, 1);
}

/* ---- statements ------------------------------------------------------------- */

int statement_load(lua_State *L, const char *code)
{
    const char *expression;
    int         status;

    code += *code == '=';
    expression = lua_pushfstring(L, "return %s", code);
    status = luaL_loadbufferx(L, expression, strlen(expression), "=stdin", "t");
    lua_remove(L, -2);
    if (status == LUA_OK)
        return status;
    lua_pop(L, 1);
    return luaL_loadbufferx(L, code, strlen(code), "=stdin", "t");
}

bool statement_unfinished(lua_State *L, int status)
{
    size_t      length;
    const char *message = status == LUA_ERRSYNTAX ? lua_tolstring(L, -1, &length) : NULL;

    return message && length >= 5 && !strcmp(message + length - 5, "<eof>");
}
