/* figure.c -- the commands figure and rerender. */
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/command/command.h"
#include "app/scripts.h"
#include "app/session/model_input.h"
#include "app/figure/overview.h"
#include "app/figure/picture.h"

static bool parse_number(const char *flag, const char *text, double lo, double hi, double *out,
                         Error *err)
{
    char  *end;
    double value;

    if (!text)
        return true;
    value = strtod(text, &end);
    if (end == text || *end || !(value >= lo && value <= hi))
        return error_set(err, ERR_USAGE, "--%s: expected a number from %g to %g, got '%s'", flag,
                         lo, hi, text);
    *out = value;
    return true;
}

static bool parse_width(const Call *call, double *out, Error *err)
{
    const char *text = call->values[OPT_WIDTH] ? call->values[OPT_WIDTH]
                                               : call->values[OPT_FIGWIDTH];

    *out = text ? figure_width(text) : 0;
    return !text || (*out >= 0.5 && *out <= 40) ||
           error_set(err, ERR_USAGE, "--width: expected inches from 0.5 to 40, or as 8.5cm, 85mm "
                     "or 246pt, got '%s'", text);
}

static bool is_empty(const char *text)
{
    return text && !*text;
}

/* The words that are not drawn. */
static bool parse_hidden(const Call *call, unsigned *hides, Error *err)
{
    const char *labels = call->values[OPT_LABELS];

    *hides = 0;
    if (call->values[OPT_NOTITLE] || (is_empty(call->values[OPT_TITLE]) &&
                                      !call->values[OPT_TITLES]))
        *hides |= HIDE_TITLES | HIDE_LETTERS;
    if (call->values[OPT_NOCAPTION] || is_empty(call->values[OPT_CAPTION]))
        *hides |= HIDE_CAPTION;
    if (call->values[OPT_NOCOUNT])
        *hides |= HIDE_COUNTS;
    return !labels || figure_labels_parse(labels, hides, err) || error_prefix(err, "--labels");
}

/* Font, size and kind of letters. */
static bool parse_letters(const Call *call, PngOptions *o, Error *err)
{
    const char *size = call->values[OPT_SIZE], *letters = call->values[OPT_LETTERS];

    o->font = call->values[OPT_FONT];
    o->size_inch = size ? figure_size(size) : 0;
    if (o->size_inch != o->size_inch)
        return error_set(err, ERR_USAGE, "--size: expected 2pt to 72pt, or as 3mm, got '%s'", size);
    if (!figure_font_check(o->font, err))
        return error_prefix(err, "--font");
    return !letters || figure_letters_parse(letters, &o->letters, err) ||
           error_prefix(err, "--letters");
}

bool call_png_options(const Call *call, PngOptions *o, Error *err)
{
    const char *theme = call->values[OPT_THEME], *colour = call->values[OPT_COLOR];
    double      dpi = 0, width = 0, delay = 0;

    if (!figure_theme_check(theme, err)) {
        error_prefix(err, "--theme");
        return false;
    }
    if (!parse_number("dpi", call->values[OPT_DPI], 20, 2400, &dpi, err) ||
        !parse_width(call, &width, err) ||
        !parse_number("delay", call->values[OPT_DELAY], 0.01, 60, &delay, err))
        return false;
    *o = (PngOptions){ .format = call->values[OPT_FORMAT],
                       .dpi = (int)dpi,
                       .colours = colour && !strcmp(colour, "256") ? 256 : 24,
                       .delay = delay,
                       .width_inch = width,
                       .theme = theme,
                       .transparent = call->values[OPT_TRANSPARENT] != NULL };
    return parse_hidden(call, &o->hides, err) && parse_letters(call, o, err);
}

/* A terminal without UTF-8 would show three characters for one.  Files and pipes get UTF-8
 * everywhere. */
static bool shows_utf8(const Call *call)
{
    return !call->tty || !strcmp(nl_langinfo(CODESET), "UTF-8");
}

bool call_text_options(const Call *call, TextOptions *o, Error *err)
{
    const char *when = call->values[OPT_COLOR] ? call->values[OPT_COLOR] : "auto";
    const char *term = getenv("COLORTERM"), *no_colour = getenv("NO_COLOR");

    *o = (TextOptions){ .width = call->columns > 0 ? call->columns : 80, .utf8 = shows_utf8(call) };
    if (!strcmp(when, "truecolor"))
        o->colours = 24;
    else if (!strcmp(when, "256"))
        o->colours = 256;
    else if (strcmp(when, "auto") && strcmp(when, "none"))
        return error_set(err, ERR_USAGE, "--color: expected auto, truecolor, 256 or none, got '%s'",
                         when);
    else if (!strcmp(when, "auto") && call->tty && !(no_colour && *no_colour) &&
             terminal_obeys())
        o->colours = term && (!strcmp(term, "truecolor") || !strcmp(term, "24bit")) ? 24 : 256;
    return parse_hidden(call, &o->hides, err);
}

static bool call_save(const Call *call, const Figure *figure, Result *const *results,
               int count, const PngOptions *options, Error *err)
{
    bool ok = true;

    for (int i = 0; ok && i < call->file_count; i++)
        ok = picture_save(figure, results, count, call->line, options, call->files[i], err);
    return ok;
}

#define PAGE_WIDE 6.75 /* inches of two columns */

/* Says what would fit a page of print, where the figure that was written does not. */
static void warn_of_height(const Call *call, const Figure *figure, const PngOptions *png,
                           double high, Text *out)
{
    PngOptions wide = *png;
    Error      ignored = ERROR_INIT;
    double     other;
    bool       fits;

    if (call_to_stdout(call))
        return;
    wide.high = NULL;
    wide.width_inch = PAGE_WIDE;
    fits = figure_inches(figure, png) < PAGE_WIDE &&
           figure_height(figure, &wide, &other, &ignored) && other <= FIGURE_PAGE_HIGH;
    text_addf(out, "warning  the figure is %.3g inches high, more than a page (%g): %s\n", high,
              FIGURE_PAGE_HIGH, fits ? "--width 6.75 fits" : "draw fewer panels in one figure");
}

bool call_write_figure(const Call *call, const Figure *figure, Result *const *results, int count,
                       Text *out, Error *err)
{
    TextOptions text;
    PngOptions  png;
    double      high = 0;

    if (!call->file_count)
        return call_text_options(call, &text, err) && figure_text(figure, &text, out, err);
    if (!call_png_options(call, &png, err))
        return false;
    png.high = &high;
    if (!call_save(call, figure, results, count, &png, err))
        return false;
    /* An overview has a warning of its own; a theme may be for slides, which are no pages. */
    if (out && high > FIGURE_PAGE_HIGH && !call->values[OPT_OVERVIEW] && !call->values[OPT_THEME])
        warn_of_height(call, figure, &png, high, out);
    return true;
}

void call_add_warnings(const Call *call, Result *const *results, int count, Text *out)
{
    if (!call_to_stdout(call))
        results_warnings(results, count, call_room(call), out);
}

static void tell_files(Session *s, const Call *call)
{
    for (int i = 0; session_listens(s) && i < call->file_count; i++) {
        Text text = { 0 };
        Json json = jsonw_to(&text);

        jsonw_open(&json, '{');
        jsonw_key_string(&json, "path", call->files[i]);
        jsonw_close(&json, '}');
        if (strcmp(call->files[i], "-") != 0)
            session_tell(s, "figure", &text);
        text_free(&text);
    }
}

/* A figure as text has the warnings in its caption. */
static bool make_figure(Session *s, const Call *call, Text *out, Error *err)
{
    PngOptions png; /* checked before the runs */
    FigureRun *d = calloc(1, sizeof(*d));
    Figure    *figure = NULL;
    bool       ok;

    if (!d)
        return error_set(err, ERR_NOMEM, "not enough memory");
    ok = call_png_options(call, &png, err) && figure_run_make(s, call, true, d, err);
    if (ok)
        figure = figure_run_draw(s, call, d, err);
    ok = figure && call_write_figure(call, figure, d->results, d->count, out, err);
    if (ok && call->file_count)
        call_add_warnings(call, d->results, d->count, out);
    if (ok)
        tell_files(s, call);
    figure_free(figure);
    figure_run_free(d);
    free(d);
    return ok;
}

/* A preset is a stored command; the call's own options change it. */
static bool draw_preset(Session *s, const Call *call, Text *out, Error *err)
{
    const Preset *preset;
    PresetCall    made;
    bool          ok;

    if (!strcmp(call->values[OPT_PRESET], "list")) {
        preset_list(call, out);
        return true;
    }
    if (!preset_parse(call->values[OPT_PRESET], &preset, err))
        return false;
    ok = preset_model_call(preset, call, &made, err) &&
         (preset->model ? command_model(s, &made.call, out, err)
                        : make_figure(s, &made.call, out, err));
    preset_call_free(&made);
    return ok;
}

bool command_figure(Session *s, const Call *call, Text *out, Error *err)
{
    if (call->values[OPT_OVERVIEW])
        return overview_figure(s, call, out, err);
    if (call->values[OPT_SORT])
        return error_set(err, ERR_USAGE, "--sort orders the heads of an overview: it goes with "
                         "--overview");
    if (call->values[OPT_PRESET])
        return draw_preset(s, call, out, err);
    if (!call->word_count)
        return error_set(err, ERR_USAGE,
                         "figure needs at least one mechanism, for example "
                         "attnscope figure bigbird -n 48 -o bigbird.png");
    return make_figure(s, call, out, err);
}

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

/* One of "a.lua, b.lua" and its hash. */
static bool check_script(const Call *call, const char *name, size_t length, const char *hash,
                         Text *out, Error *err)
{
    const MechanismScript *script = loaded_script(name, length);
    const char            *path = call->words[0];

    if (!script)
        return error_set(err, ERR_USAGE, "%s: shows a mechanism of the script %.*s, which only "
                         "runs when it is named: attnscope --lua %.*s rerender %s", path,
                         (int)length, name, (int)length, name, path);
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

/* ---- another resolution ---------------------------------------------------------------- */

/* The stored command with the call's --dpi; a command without that option, of a script, stays. */
static bool take_dpi(const Call *call, const char *line, Text *out, Error *err)
{
    const char    *words[CALL_MAX_WORDS];
    Text           storage = { 0 };
    int            count = 0, length;
    bool           ok = call_split(line, words, CALL_MAX_WORDS, &count, &storage, err);
    int            skip = ok && count > 1 && !strcmp(words[0], "attnscope");
    const Command *command = ok && count ? command_find(words[skip]) : NULL;
    bool           takes = command && command_takes(command, option_at(OPT_DPI));

    for (int at = 0; ok && at < count; at += length) {
        int id = takes && at > skip ? call_option(command, words[at]) : -1;

        length = call_option_words(words[at], id);
        for (int i = at; id != OPT_DPI && i < at + length && i < count; i++) {
            text_add(out, i ? " " : "");
            word_quote(out, words[i]);
        }
    }
    if (takes)
        text_addf(out, " --dpi %s", call->values[OPT_DPI]);
    ok = ok && (text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for a command"));
    text_free(&storage);
    return ok;
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
    if (ok && line && call->values[OPT_DPI])
        ok = take_dpi(call, line, out, err);
    else if (ok && line)
        text_add(out, line);
    free(line);
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
            report_font(call, figure.values[OPT_FONT], err);
    }
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
    double dpi = 0;

    *out = NULL;
    if (!parse_number("dpi", call->values[OPT_DPI], 20, 2400, &dpi, err))
        return false;
    if (dpi > 0 && call->values[OPT_CHECK])
        return error_set(err, ERR_USAGE, "--check compares with the file, which has its own dots "
                         "per inch: leave out --dpi");
    *out = call->values[OPT_MEASURE] ? NULL : stored_figure_read(call->words[0], err);
    return *out ? dpi <= 0 || stored_figure_set_dpi(*out, (int)dpi, err) : err->code == ERR_NONE;
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
    if (to == temporary && ok && !call->values[OPT_CHECK])
        ok = rename(temporary, path) == 0 ||
             error_set(err, ERR_FILE, "%s: cannot be replaced", path);
    else if (to == temporary)
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
