/* rerender.c -- the command rerender: a figure is made again from what its file holds. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "app/figure/rerender.h"
#include "app/scripts.h"
#include "app/session/model_input.h"

/* ---- again ------------------------------------------------------------------ */

static bool read_figure_file(const char *path, Text *out, Error *err)
{
    FILE  *file = fopen(path, "rb");
    char   block[65536];
    size_t length;
    bool   ok;

    if (!file)
        return error_set(err, ERR_FILE, "%s: cannot be opened", path);
    while ((length = fread(block, 1, sizeof(block), file)) > 0)
        text_add_bytes(out, block, length);
    ok = !ferror(file) && text_ok(out);
    fclose(file);
    return ok || error_set(err, ERR_FILE, "%s: cannot be read", path);
}

static bool same_bytes(const char *a, const char *b, bool measured, Error *err)
{
    Text x = { 0 }, y = { 0 };
    bool ok = read_figure_file(a, &x, err) && read_figure_file(b, &y, err);

    if (ok && (x.length != y.length || memcmp(x.data, y.data, x.length) != 0))
        ok = error_set(err, ERR_DIFFERENCE,
                       measured ? "%s: its numbers were measured, and measured again they "
                                  "differ; without --measure those it holds are drawn"
                                : "%s: the figure made again differs (another version, "
                                  "input or library?)",
                       a);
    text_free(&x);
    text_free(&y);
    return ok;
}

/* The file carries the hash of its input; reports an input that has changed since. */
static bool check_input(Session *s, const char *path, Text *out)
{
    Error ignored;
    char *hash = figure_metadata(path, "attnscope:input-sha256", &ignored);
    bool  same = hash && session_input(s) && !strcmp(hash, session_input(s)->sha256);

    if (hash && !same)
        text_addf(out, "%s: the input has changed since this figure was made\n", path);
    free(hash);
    return same;
}

/* ---- scripts of the user that the figure needs ------------------------------------------ */

/* The script of that name that ran last; NULL: none did. */
static const MechanismScript *loaded_script(const char *name, size_t length)
{
    const MechanismScript *script, *found = NULL;

    for (int i = 0; (script = scripts_at(i)); i++)
        if (strlen(script->name) == length && !memcmp(script->name, name, length))
            found = script;
    return found;
}

/* A script of that name, else one of that content. */
static const MechanismScript *script_of(const char *name, size_t length, const char *hash)
{
    const MechanismScript *script = loaded_script(name, length);
    char                   sha256[65];

    snprintf(sha256, sizeof(sha256), "%.*s", (int)strcspn(hash, ","), hash);
    return script ? script : scripts_rename(sha256, name, length);
}

/* One of "a.lua, b.lua" and its hash. */
static bool check_script(const Call *call, const char *name, size_t length, const char *hash,
                         Text *out, Error *err)
{
    const MechanismScript *script = script_of(name, length, hash);
    const char            *path = call->words[0];

    if (!script)
        return error_set(err, ERR_USAGE, "%s: shows a mechanism of the script %.*s, which only "
                         "runs when it is named: attnscope --lua %.*s rerender %s (or the name of "
                         "a file with the same content)", path, (int)length, name, (int)length,
                         name, path);
    if (*script->sha256 && strncmp(script->sha256, hash, strlen(script->sha256)) != 0)
        text_addf(out, "%s: %s has changed since this figure was made\n", path, script->name);
    return true;
}

/* A figure never runs a script by itself: it may come from a stranger. */
static bool check_scripts(const Call *call, Text *out, Error *err)
{
    Error ignored;
    char *names = figure_metadata(call->words[0], SCRIPT_KEY, &ignored);
    char *hashes = figure_metadata(call->words[0], SCRIPT_HASH_KEY, &ignored);
    bool  ok = true;

    for (const char *name = names, *hash = hashes; ok && name && hash;) {
        size_t length = strcspn(name, ",");

        ok = check_script(call, name, length, hash, out, err);
        name = name[length] ? name + length + strspn(name + length, ", ") : NULL;
        hash += strcspn(hash, ",");
        hash += strspn(hash, ", ");
    }
    free(names);
    free(hashes);
    return ok;
}

/* The format asked for; else that of the new name; else, for the same name and for a stream, that
 * of the file.  A PNG may be an animation: the stored command says so. */
static const char *format_again(const Call *call, const char *before)
{
    const char *to = call->values[OPT_OUTPUT], *kind = figure_kind(call->words[0]);
    const char *ending = strrchr(call->words[0], '.');

    if (call->values[OPT_FORMAT] || (to && strcmp(to, "-") != 0))
        return call->values[OPT_FORMAT];
    if (kind && !strcmp(kind, "png") &&
        ((before && !strcmp(before, "apng")) || (ending && !strcmp(ending, ".apng"))))
        return "apng";
    return kind;
}

/* A model that is elsewhere now reads the figure's text, unless --text says where that is. */
static bool take_moved_model(Call *figure, const char *from, const char *input, Error *err)
{
    ModelSpec old, now;
    Text      spec = { 0 };
    bool      ok;

    figure->values[OPT_INPUT] = input;
    if (!from || !model_spec_is(from) || !model_spec_is(input))
        return true;
    if (!model_spec_parse(from, &old, err))
        return false;
    ok = model_spec_parse(input, &now, err);
    if (ok && (now.text.text || now.text.ids)) {
        old.text.text = now.text.text;
        old.text.ids = now.text.ids;
    }
    ok = ok && model_spec_write(input, &old.text, &spec, err);
    if (ok && !(figure->values[OPT_INPUT] = call_keep_word(text_str(&spec))))
        ok = error_set(err, ERR_NOMEM, "not enough memory for an input's name");
    model_spec_free(&now);
    model_spec_free(&old);
    text_free(&spec);
    return ok;
}

static bool names_models(const Call *figure)
{
    return figure->command->run == command_heads || figure->command->run == command_model ||
           figure->command->run == command_cache;
}

/* The model of heads, model or cache lies elsewhere now, and --text its text. */
static bool take_moved_words(const Call *call, Call *figure, Error *err)
{
    const char *input = call->values[OPT_INPUT];
    ModelSpec   now;
    bool        ok = true;

    if (input && figure->word_count != 1)
        return error_set(err, ERR_USAGE, "--input: the figure is of %d models; --trust reads them "
                         "where they were", figure->word_count);
    if (input) {
        ok = model_spec_parse(input, &now, err) &&
             ((figure->words[0] = call_keep_word(now.path)) != NULL ||
              error_set(err, ERR_NOMEM, "not enough memory for a model's name"));
        model_spec_free(&now);
    }
    if (call->text_count && figure->text_count > 1)
        return error_set(err, ERR_USAGE, "--text: the figure is of %d texts; --trust reads them "
                         "where they were", figure->text_count);
    if (call->text_count) {
        figure->values[OPT_TEXT] = figure->texts[0] = call->texts[0];
        figure->text_count = 1;
    }
    if (call->values[OPT_IDS])
        figure->values[OPT_IDS] = call->values[OPT_IDS];
    return ok;
}

/* --input says where the figure's input is now.  Content and name stay those of the figure, so the
 * same content gives the same bytes from any folder. */
static bool take_moved_input(const Call *call, Call *figure, char *held[2], Error *err)
{
    const char *path = call->words[0];

    if (names_models(figure))
        return take_moved_words(call, figure, err);
    if (!call->values[OPT_INPUT])
        return !(call->text_count || call->values[OPT_IDS]) ||
               error_set(err, ERR_USAGE, "--text and --ids are for a figure of a model, or with "
                         "--input model:PATH");
    held[0] = figure_metadata(path, "attnscope:input", err);
    held[1] = held[0] ? figure_metadata(path, "attnscope:input-sha256", err) : NULL;
    if (!held[0] || !held[1])
        return err->code != ERR_NONE
                   ? false
                   : error_set(err, ERR_FORMAT, "%s: does not say what it was made from", path);
    if (!take_moved_model(figure, figure->values[OPT_INPUT], call->values[OPT_INPUT], err))
        return false;
    figure->input_name = held[0];
    figure->input_sha256 = held[1];
    return true;
}

/* A path in a command is relative to the folder it was given in. */
static void report_moved(const Call *call, const Call *figure, Error *err)
{
    const char *input = names_models(figure) ? figure->words[0] : figure->values[OPT_INPUT];

    if (err->code == ERR_FILE && input && !call->values[OPT_INPUT] && access(input, F_OK) != 0 &&
        !strncmp(err->text, input, strlen(input)))
        error_set(err, ERR_FILE, "%s: cannot be opened from here; --input FILE says where it lies "
                  "now", input);
}

/* A page may need words left out, which rerender keeps. */
static void report_page(const Call *call, Error *err)
{
    Error was = *err;

    if (call->values[OPT_PAGE] && err->code == ERR_USAGE && strstr(err->text, "--no-caption"))
        error_set(err, ERR_USAGE, "%s; rerender keeps these words, so give the options to the "
                  "command that 'attnscope info %s' prints", was.text, call->words[0]);
}

/* ---- fonts ------------------------------------------------------------------------------ */

/* --font says where the font file of the figure's letters is now. */
static bool take_moved_font(const Call *call, Call *figure, Error *err)
{
    if (!call->values[OPT_FONT])
        return true;
    if (!font_is_file(figure->values[OPT_FONT]))
        return error_set(err, ERR_USAGE, "--font: the letters of %s are of no font file",
                         call->words[0]);
    figure->values[OPT_FONT] = call->values[OPT_FONT];
    return true;
}

static void report_font(const Call *call, const char *font, Error *err)
{
    if (err->code == ERR_FILE && font && !call->values[OPT_FONT] && font_is_file(font) &&
        access(font, F_OK) != 0)
        error_set(err, ERR_FILE, "font %s: cannot be opened from here; --font FILE says where it "
                  "lies now", font);
}

/* The file carries the hash of its font; reports another font of that name. */
static void check_font(const char *path, const char *font, Text *out)
{
    Error ignored = ERROR_INIT;
    char *hash = figure_metadata(path, FONT_HASH_KEY, &ignored), now[65];

    if (hash && font && font_sha256(font, now) && strcmp(hash, now) != 0)
        text_addf(out, "%s: the font %s is not the one that this figure was made with\n", path,
                  font);
    free(hash);
}

/* ---- what a stranger's figure may make the program do ------------------------------- */

/* Commands that only draw, into the file that the caller names. */
static bool only_draws(const Call *figure)
{
    static const char *const names[] = { "figure", "step", "compare", "roofline", "fit",
                                         "heads", "model", "cache" };

    if (figure->values[OPT_DUMP])
        return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strcmp(figure->command->name, names[i]))
            return true;
    return false;
}

/* An absolute path without the folder of work, as a relative one; NULL: it lies elsewhere. */
static const char *path_from_here(const char *path)
{
    char   here[PATH_MAX];
    size_t length = getcwd(here, sizeof(here)) ? strlen(here) : 0;

    return length > 1 && !strncmp(path, here, length) && path[length] == '/' ? path + length + 1
                                                                             : NULL;
}

/* In the folder of work or below: no way up. */
static bool is_below(const char *path)
{
    const char *at = *path == '/' ? path_from_here(path) : path;

    if (!at)
        return false;
    for (; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        if (at[0] == '.' && at[1] == '.' && (!at[2] || at[2] == '/'))
            return false;
    return true;
}

static void add_far(Text *far, const char *path, size_t length)
{
    char *name = strndup(path, length);

    if (!name)
        far->failed = true;
    else if (!is_below(name))
        text_addf(far, "%s%s", far->length ? ", " : "", name);
    free(name);
}

/* Files of tensors in "linformer(E=@path.npy)" or "E=@path.npy". */
static void add_far_tensors(Text *far, const char *word)
{
    for (word = strstr(word, "=@"); word; word = strstr(word + 2, "=@"))
        add_far(far, word + 2, strcspn(word + 2, ",)"));
}

/* A file with the content that the figure states is no secret from who made the figure. */
static bool is_figures_input(Session *s, const char *path, const Call *figure)
{
    Error ignored = ERROR_INIT;
    char *hash = figure_metadata(path, "attnscope:input-sha256", &ignored);
    bool  same = hash && call_load_input(s, figure, &ignored) && session_input(s) &&
                !strcmp(hash, session_input(s)->sha256);

    free(hash);
    return same;
}

static void add_far_input(Session *s, const char *path, const Call *figure, Text *far, Error *err)
{
    const char *input = figure->values[OPT_INPUT];
    ModelSpec   parts;

    if (!input || !strncmp(input, "synthetic:", 10) || !strncmp(input, "sample:", 7) ||
        !strcmp(input, "-"))
        return;
    if (!model_spec_is(input)) {
        if (!is_below(input) && !is_figures_input(s, path, figure))
            add_far(far, input, strlen(input));
        return;
    }
    if (!model_spec_parse(input, &parts, err))
        return;
    if (!is_figures_input(s, path, figure))
        add_far(far, parts.path, strlen(parts.path));
    if (parts.text.text && strncmp(parts.text.text, "sample:", 7) != 0)
        add_far(far, parts.text.text, strlen(parts.text.text));
    if (parts.text.ids)
        add_far(far, parts.text.ids, strlen(parts.text.ids));
    model_spec_free(&parts);
}

/* The models of heads, model and cache, and their texts, where rerender's options name no other. */
static void add_far_model(const Call *call, const Call *figure, Text *far, Error *err)
{
    const char *ids = figure->values[OPT_IDS];
    ModelSpec   parts;

    for (int i = call->values[OPT_INPUT] ? 1 : 0; i < figure->word_count; i++) {
        if (!model_spec_parse(figure->words[i], &parts, err))
            return;
        add_far(far, parts.path, strlen(parts.path));
        model_spec_free(&parts);
    }
    for (int k = 0; k < figure->text_count && !call->text_count; k++)
        if (strncmp(figure->texts[k], "sample:", 7) != 0)
            add_far(far, figure->texts[k], strlen(figure->texts[k]));
    if (ids && !call->values[OPT_IDS])
        add_far(far, ids, strlen(ids));
}

/* The files that the stored command reads lie below the folder of work, or the caller trusts. */
static bool may_read(Session *s, const Call *call, const Call *figure, Error *err)
{
    bool records = !strcmp(figure->command->name, "fit"); /* its words are files */
    Text far = { 0 };
    bool ok = true, font;

    if (call->values[OPT_TRUST])
        return true;
    if (!call->values[OPT_FONT] && font_is_file(figure->values[OPT_FONT]))
        add_far(&far, figure->values[OPT_FONT], strlen(figure->values[OPT_FONT]));
    font = far.length > 0;
    if (!call->values[OPT_INPUT])
        add_far_input(s, call->words[0], figure, &far, err);
    if (names_models(figure))
        add_far_model(call, figure, &far, err);
    for (int i = 0; i < figure->word_count; i++) {
        add_far_tensors(&far, figure->words[i]);
        if (records)
            add_far(&far, figure->words[i], strlen(figure->words[i]));
    }
    for (int i = 0; i < figure->param_count; i++)
        add_far_tensors(&far, figure->params[i]);
    for (int i = 0; i < figure->swap_count; i++) {
        if (*figure->swaps[i] == '@')
            add_far(&far, figure->swaps[i] + 1, strlen(figure->swaps[i] + 1));
        add_far_tensors(&far, figure->swaps[i]);
    }
    if (far.length)
        ok = error_set(err, ERR_USAGE, "%s: its command reads %s; --trust reads what it names, "
                       "%s another %s", call->words[0], text_str(&far),
                       font ? "--font FILE" : "--input FILE", font ? "font" : "input or model");
    ok = ok && (text_ok(&far) || error_set(err, ERR_NOMEM, "not enough memory"));
    text_free(&far);
    return ok && err->code == ERR_NONE;
}

/* ---- another look ---------------------------------------------------------------------- */

#define PROGRAM "attnscope " /* a command as pasted from a shell begins with it */

static const int look_options[] = { OPT_DPI, OPT_THEME, OPT_WIDTH, OPT_FIGWIDTH, OPT_PAGE };
#define LOOK_OPTIONS (int)(sizeof(look_options) / sizeof(*look_options))

/* The first of them that the call gives; -1: none. */
static int look_given(const Call *call)
{
    for (int i = 0; i < LOOK_OPTIONS; i++)
        if (call->values[look_options[i]])
            return look_options[i];
    return -1;
}

/* The call gives this option, or another name of it. */
static bool replaces(const void *context, int id)
{
    const Call *call = context;
    bool        width = id == OPT_WIDTH || id == OPT_FIGWIDTH;

    if (width)
        return call->values[OPT_WIDTH] || call->values[OPT_FIGWIDTH];
    if (id == OPT_OUTPUT || id == OPT_FORMAT) /* the files that it was before */
        return true;
    for (int i = 0; i < LOOK_OPTIONS; i++)
        if (look_options[i] == id)
            return call->values[id] != NULL;
    return false;
}

static void add_look_words(const Call *call, const Command *command, Text *out)
{
    for (int i = 0; i < LOOK_OPTIONS; i++) {
        const Option *option = option_at(look_options[i]);
        const char   *value = call->values[look_options[i]];

        if (!value || !command || !command_takes(command, option))
            continue;
        text_addf(out, " --%s ", option->flag);
        words_join(&value, 1, out);
    }
}

/* The one file that is written; a name that does not tell its kind has --format beside it. */
static void add_file_words(const Call *call, const Command *command, Text *out)
{
    const char  *to = call->values[OPT_OUTPUT] ? call->values[OPT_OUTPUT] : call->words[0];
    const char  *kind = call->values[OPT_FORMAT];
    PngOptions   plain = { 0 };
    FigureFormat format;
    Error        ignored = ERROR_INIT;

    if (!command || !command_takes(command, option_at(OPT_OUTPUT)))
        return;
    text_add(out, " -o ");
    words_join(&to, 1, out);
    if (!kind && (!strcmp(to, "-") || !figure_format(to, &plain, &format, &ignored)))
        kind = figure_kind(call->words[0]);
    if (kind && command_takes(command, option_at(OPT_FORMAT)))
        text_addf(out, " --format %s", kind);
}

/* The command is to be another one: of another look, or of another file. A stream has the file's
 * bytes. */
static bool changes_command(const Call *call)
{
    const char *to = call->values[OPT_OUTPUT];

    return look_given(call) >= 0 || (to && strcmp(to, "-") != 0 && !call->values[OPT_CHECK]);
}

/* The stored command with the call's look and file; a command without an option, of a script, does
 * without it. */
static bool take_look(const Call *call, const char *line, Text *out, Error *err)
{
    const char *word = line + (strncmp(line, PROGRAM, strlen(PROGRAM)) ? 0 : strlen(PROGRAM));
    char        name[32];
    WordRule    rule = { .drops = replaces, .context = call };

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, " "), word);
    rule.command = command_find(name);
    if (!call_keep_words(line, &rule, out, err))
        return false;
    add_file_words(call, rule.command, out);
    add_look_words(call, rule.command, out);
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for a command");
}

/* The command that the file holds, or what the call makes of it; a script's numbers may do without
 * one. */
static bool command_of(const Call *call, bool needed, Text *out, Error *err)
{
    const char *path = call->words[0];
    char       *line = figure_metadata(path, "attnscope:command", err);
    bool        ok = line || err->code == ERR_NONE;

    if (ok && !line && needed)
        ok = error_set(err, ERR_FORMAT, "%s: holds no attnscope:command; only figures made by "
                       "attnscope can be made again", path);
    if (ok && line && changes_command(call))
        ok = take_look(call, line, out, err);
    else if (ok && line)
        text_add(out, line);
    free(line);
    return ok;
}

bool rerender_measures(const char *line)
{
    const char *words[CALL_MAX_WORDS];
    Text        storage = { 0 };
    Error       ignored = ERROR_INIT;
    Call        figure;
    int         count;
    bool        ok = call_split(line, words, CALL_MAX_WORDS, &count, &storage, &ignored);
    int         skip = ok && count > 0 && !strcmp(words[0], "attnscope");

    ok = ok && call_parse(&figure, words + skip, count - skip, &ignored) && only_draws(&figure);
    text_free(&storage);
    return ok;
}

/* Runs the stored command; measured plots come from `stored` (NULL: none, or measured again). */
static bool again(Session *s, const Call *call, const char *line, const StoredFigure *stored,
                  const char *to, Text *out, Error *err)
{
    const char *words[CALL_MAX_WORDS];
    Text        storage = { 0 };
    Call        figure;
    int         count;
    char       *held[2] = { NULL, NULL };

    bool ok = call_split(line, words, CALL_MAX_WORDS, &count, &storage, err);
    int  skip = ok && count > 0 && !strcmp(words[0], "attnscope"); /* as pasted from a shell */

    ok = ok && call_parse(&figure, words + skip, count - skip, err);
    if (ok && !strcmp(figure.command->name, "lua"))
        ok = error_set(err, ERR_FORMAT, "%s: a script drew it from what no single command has (its "
                       "own tensors, mechanisms or several inputs): run %s again", call->words[0],
                       line);
    if (ok && !only_draws(&figure))
        ok = error_set(err, ERR_FORMAT, "%s: '%s' is no command that only draws; if you know who "
                       "made the figure, run it yourself: %s", call->words[0],
                       figure.command->name, line);
    ok = ok && check_scripts(call, out, err) && may_read(s, call, &figure, err) &&
         take_moved_input(call, &figure, held, err) && take_moved_font(call, &figure, err) &&
         call_spares(&figure, to, err);
    if (ok) {
        check_font(call->words[0], figure.values[OPT_FONT], out);
        figure.line = line;
        figure.stored = stored;
        figure.values[OPT_JSON] = NULL; /* its numbers were for standard output */
        figure.values[OPT_OUTPUT] = figure.files[0] = to;
        figure.file_count = 1;
        figure.values[OPT_FORMAT] = format_again(call, figure.values[OPT_FORMAT]);
        ok = figure.command->run(s, &figure, out, err);
        if (ok)
            check_input(s, call->words[0], out);
        else
            report_moved(call, &figure, err);
        if (!ok)
            report_page(call, err);
        if (!ok)
            report_font(call, figure.values[OPT_FONT], err);
    }
    scripts_rename_none();
    free(held[0]);
    free(held[1]);
    text_free(&storage);
    return ok;
}

/* A figure of plots alone. */
static bool draw_numbers_again(const Call *call, const StoredFigure *stored, const char *line,
                               const char *to, Text *out, Error *err)
{
    const char *path = call->words[0], *font = stored_figure_font(stored);
    bool        given = call->values[OPT_FONT] != NULL;

    if (given && !font)
        return error_set(err, ERR_USAGE, "--font: the letters of %s are of no font file", path);
    if (font && !given && !call->values[OPT_TRUST] && !is_below(font))
        return error_set(err, ERR_USAGE, "%s: its letters are of the font %s; --trust reads it, "
                         "--font FILE another file", path, font);
    font = given ? call->values[OPT_FONT] : font;
    check_font(path, font, out);
    if (stored_figure_write(stored, path, line, font, format_again(call, NULL), to, err))
        return true;
    report_font(call, font, err);
    return false;
}

/* Plots are drawn from the file's numbers; the rest is made by its command. */
static bool draw_again(Session *s, const Call *call, const StoredFigure *stored, const char *to,
                       Text *out, Error *err)
{
    Text line = { 0 };
    bool whole = stored && stored_figure_whole(stored), ok = command_of(call, !whole, &line, err);

    if (ok && whole)
        ok = draw_numbers_again(call, stored, text_str(&line), to, out, err);
    else if (ok)
        ok = again(s, call, text_str(&line), stored, to, out, err);
    text_free(&line);
    return ok;
}

/* True with *out NULL: the file holds no measured numbers, or --measure replaces them. */
static bool read_stored(const Call *call, StoredFigure **out, Error *err)
{
    PngOptions look = { 0 };
    Call       plain = *call;
    int        given = look_given(call);

    *out = NULL;
    plain.values[OPT_FONT] = NULL; /* where a font is now: take_moved_font */
    if (!call_png_options(&plain, &look, err))
        return false;
    if (given >= 0 && call->values[OPT_CHECK])
        return error_set(err, ERR_USAGE, "--check compares with the file, which has its own %s: "
                         "leave out --%s", given == OPT_DPI ? "dots per inch" : "look",
                         option_at(given)->flag);
    *out = call->values[OPT_MEASURE] ? NULL : stored_figure_read(call->words[0], err);
    return *out ? given < 0 || stored_figure_set_look(*out, &look, err) : err->code == ERR_NONE;
}

static bool replace(const char *temporary, const char *path, Text *out, Error *err)
{
    if (rename(temporary, path) != 0)
        return error_set(err, ERR_FILE, "%s: cannot be replaced", path);
    text_addf(out, "%s is replaced; -o FILE would keep it\n", path);
    return true;
}

/* Writes to the call's file, or replaces its own. */
static bool rerender(Session *s, const Call *call, const StoredFigure *stored, Text *out,
                     Error *err)
{
    char        real[PATH_MAX], temporary[PATH_MAX + 32] = "";
    const char *path = file_target(call->words[0], real), *to = call->values[OPT_OUTPUT];
    bool        ok;

    if (!to && !file_new_beside(path, temporary, sizeof(temporary), err))
        return false;
    to = to ? to : temporary;
    ok = draw_again(s, call, stored, to, out, err);
    if (ok && call->values[OPT_CHECK])
        ok = same_bytes(path, to, call->values[OPT_MEASURE] != NULL, err);
    if (ok && call->values[OPT_CHECK])
        text_addf(out, "%s: made again, it is the same\n", call->words[0]);
    if (to == temporary && ok && !call->values[OPT_CHECK])
        return replace(temporary, path, out, err);
    if (to == temporary)
        remove(temporary);
    return ok;
}

bool command_rerender(Session *s, const Call *call, Text *out, Error *err)
{
    StoredFigure *stored;
    bool          ok;

    if (!call->word_count)
        return error_set(err, ERR_USAGE, "rerender needs a file made by attnscope figure");
    ok = read_stored(call, &stored, err);
    ok = ok && (call->file_count > 0 || rerender(s, call, stored, out, err));
    for (int i = 0; ok && i < call->file_count; i++) {
        Call one = *call;

        one.values[OPT_OUTPUT] = one.files[0] = call->files[i];
        one.file_count = 1;
        ok = rerender(s, &one, stored, out, err);
    }
    stored_figure_free(stored);
    return ok;
}
