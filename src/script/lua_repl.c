/* lua_repl.c -- Lua at a prompt: values are printed, unfinished lines go on.
 *
 * With libedit the line can be edited, names are completed with Tab and the
 * lines are remembered in $XDG_STATE_HOME/attnscope/lua_history; without it,
 * lines are read as they come.
 */
#include "script/lua_repl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "script/lua_binding.h"

/* ---- names that may follow -------------------------------------------------- */

#define NAMES_MOST 512

typedef struct Completion {
    const char *word; /* "attn.ru" */
    char       *names[NAMES_MOST];
    int         count;
} Completion;

static void add_name(Completion *c, const char *word, size_t stem, const char *name)
{
    size_t length = strlen(word + stem);
    char  *text;

    if (c->count == NAMES_MOST || strncmp(name, word + stem, length) != 0)
        return;
    text = malloc(stem + strlen(name) + 1);
    if (!text)
        return;
    memcpy(text, word, stem);
    strcpy(text + stem, name);
    c->names[c->count++] = text;
}

static void add_members(lua_State *L, Completion *c, size_t stem)
{
    for (int i = 0; script_classes[i]; i++) {
        if (!class_test(L, -1, script_classes[i]))
            continue;
        for (const Member *m = script_classes[i]->members; m->name; m++)
            add_name(c, c->word, stem, m->name);
    }
}

/* Under pcall: the names of the word's last part, without calling anything. */
static int complete(lua_State *L)
{
    Completion *c = lua_touserdata(L, 1);
    const char *at = c->word, *end;

    lua_pushglobaltable(L);
    while ((end = strpbrk(at, ".:"))) {
        if (!lua_istable(L, -1))
            return 0;
        lua_pushlstring(L, at, (size_t)(end - at));
        lua_rawget(L, -2);
        at = end + 1;
    }
    if (lua_isuserdata(L, -1))
        add_members(L, c, (size_t)(at - c->word));
    if (!lua_istable(L, -1))
        return 0;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING)
            add_name(c, c->word, (size_t)(at - c->word), lua_tostring(L, -2));
    return 0;
}

static void find_names(lua_State *L, Completion *c, const char *word)
{
    *c = (Completion){ .word = word };
    lua_pushcfunction(L, complete);
    lua_pushlightuserdata(L, c);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK)
        lua_pop(L, 1);
}

/* ---- lines ------------------------------------------------------------------ */

/* $XDG_STATE_HOME/attnscope, made when it is not there; "" without a home. */
static void history_file(char *path, size_t size)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int         length = 0;

    if (state && *state == '/')
        length = snprintf(path, size, "%s/attnscope", state);
    else if (home && *home == '/')
        length = snprintf(path, size, "%s/.local/state/attnscope", home);
    if (length <= 0 || (size_t)length + 16 > size) {
        *path = '\0';
        return;
    }
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
    snprintf(path + length, size - (size_t)length, "/lua_history");
}

#ifdef HAVE_LIBEDIT
#include <editline/readline.h>

/* libedit hands its callbacks nothing of ours. */
static lua_State *completing;

static char *next_name(const char *word, int again)
{
    static Completion c;
    static int        at;

    if (!again) {
        find_names(completing, &c, word);
        at = 0;
    }
    return at < c.count ? c.names[at++] : NULL;
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
    char        path[4096];
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
    history_file(path, sizeof(path));
    if (*path)
        read_history(path);
}

static void lines_close(void)
{
    char path[4096];

    history_file(path, sizeof(path));
    if (*path)
        write_history(path);
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

/* ---- evaluation ------------------------------------------------------------- */

/* The text as an expression, else as a statement.  [-0, +1, m] */
static int load_text(lua_State *L, const Text *text)
{
    const char *code = text_str(text);
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

/* A statement that only lacks its end. */
static bool unfinished(lua_State *L, int status)
{
    size_t      length;
    const char *message = status == LUA_ERRSYNTAX ? lua_tolstring(L, -1, &length) : NULL;

    return message && length >= 5 && !strcmp(message + length - 5, "<eof>");
}

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

/* One whole statement into text; false: the input ended. */
static bool read_statement(lua_State *L, Text *text)
{
    const char *prompt = "> ";
    char       *line;

    text_clear(text);
    while ((line = read_line(prompt))) {
        int status;

        text_addf(text, "%s%s", text->length ? "\n" : "", line);
        free(line);
        status = load_text(L, text);
        if (!unfinished(L, status)) {
            if (status != LUA_OK) {
                say_error(L);
                lua_settop(L, 1);
            }
            return true;
        }
        lua_settop(L, 1);
        prompt = ">> ";
    }
    return false;
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
