/* figure_file.c -- a figure as a file that holds how it was made; see picture.h.
 *
 * The command line that draws it, parameters, seed and the hash of the input are metadata of the
 * file, so that `rerender` can make it again.  Measured plots are metadata, too: stored_figure.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "app/scripts.h"
#include "input/store.h"
#include "profile/record.h"

static void add_side(const Request *first, const Request *request, const char *view, Text *out)
{
    request_text_beside(request, first, out);
    if (*view)
        text_addf(out, ":%s", view);
}

static void add_panel_word(const Request *first, const PanelChoice *panel, Text *out)
{
    Text word = { 0 };

    add_side(first, &panel->result->request, panel->spec.view, &word);
    text_add(&word, panel->spec.sorted ? "/sorted" : "");
    if (panel->spec.head >= 0)
        text_addf(&word, "@%lld", (long long)panel->spec.head);
    if (panel->minus) {
        text_add(&word, " - ");
        add_side(first, &panel->minus->request, panel->spec.minus_view, &word);
    }
    panel_spec_text(&panel->spec, &word);
    text_addf(out, "%s%s", out->length ? " + " : "", text_str(&word));
    text_free(&word);
}

static void add_picture_options(const PictureOptions *o, Text *out)
{
    if (o->head > 0)
        text_addf(out, " --head %lld", (long long)o->head);
    if (o->region.row1 > 0)
        text_addf(out, " --region %lld:%lld,%lld:%lld", (long long)o->region.row0,
                  (long long)o->region.row1, (long long)o->region.col0,
                  (long long)o->region.col1);
    if (o->pool)
        text_addf(out, " --pool %s", o->pool);
    if (o->scale)
        text_addf(out, " --scale %s", o->scale);
    if (o->map)
        text_addf(out, " --cmap %s", o->map);
    if (o->rows > 0)
        text_addf(out, " --grid %dx%d%s", o->rows, o->cols, o->loose ? "~" : "");
    if (o->excludes)
        text_addf(out, " --exclude %lld", (long long)o->excluded);
    if (o->strips.kind)
        text_addf(out, " --strips %s", margin_name(o->strips.kind));
    for (int k = 0; k < o->strips.query_count; k++)
        text_addf(out, "%s%lld", k ? "," : " --queries ", (long long)o->strips.queries[k]);
    if (o->span)
        text_addf(out, " --span %s", o->span);
    if (o->reach.layers)
        text_addf(out, " --layers %d", o->reach.layers);
    text_add(out, o->reach.strict ? " --no-residual" : "");
    if (o->sharing == SHARE_ALL || o->sharing == SHARE_NONE)
        text_add(out, o->sharing == SHARE_ALL ? " --shared-scale" : " --own-scales");
    text_add(out, o->sorted ? " --sorted" : "");
}

/* Options of the measurements. */
static void add_measuring(const PanelChoice *panels, int count, Text *out)
{
    int      repeat = 0, seeds = 0;
    PlotKind kind;

    for (int i = 0; i < count; i++) {
        const Request *r = &panels[i].result->request;

        if (!plot_word(panel_choice_view(&panels[i]), &kind, NULL))
            continue;
        repeat = r->measure && r->repeat > repeat ? r->repeat : repeat;
        seeds = r->quality && r->seeds > seeds ? r->seeds : seeds;
    }
    if (repeat)
        text_addf(out, " --repeat %d", repeat);
    if (seeds)
        text_addf(out, " --seeds %d", seeds);
}

/* The seed of the input where the input is generated, else that of the first panel. */
static uint64_t common_seed(const Session *s, const Request *first)
{
    const Input *input = session_input(s);
    bool         drawn = input && (input->note || !strcmp(input->kind, "synthetic"));

    return drawn ? session_choice(s)->seed : first->seed;
}

static const char *request_no_command(const Request *request, int keys)
{
    for (; request; request = request->above) {
        if (mechanism_is_added(request->mechanism))
            return "a mechanism of the script is shown";
        if (request->keys != keys)
            return "the panels look for different numbers of missed keys";
        for (int i = 0; i < request->given.count; i++)
            if (request->given.items[i].tensor.data && *request->given.items[i].text != '@')
                return "a parameter is a tensor of the script";
    }
    return NULL;
}

const char *picture_no_command(const Session *s, const PanelChoice *panels, int count)
{
    const Input *input = session_input(s);
    int          keys = panels[0].result->request.keys;
    const char  *why = NULL;

    if (!input || !strcmp(input->kind, "tensors"))
        return "the input is made of tensors of the script";
    for (int i = 0; i < count && !why; i++) {
        if (panels[i].result->input != input || (panels[i].minus &&
                                                 panels[i].minus->input != input))
            return "the panels are of different inputs";
        why = request_no_command(&panels[i].result->request, keys);
        if (!why && panels[i].minus)
            why = request_no_command(&panels[i].minus->request, keys);
    }
    return why;
}

void picture_command(const Session *s, const PanelChoice *panels, int count,
                     const PictureOptions *options, Text *out)
{
    Request common = panels[0].result->request; /* borrows */
    Text    word = { 0 };

    common.seed = common_seed(s, &common);
    text_add(out, "figure");
    for (int i = 0; i < count; i++) {
        add_panel_word(&common, &panels[i], &word);
        if (i + 1 < count && panels[i + 1].joins)
            continue;
        text_add(out, " ");
        word_quote(out, text_str(&word));
        text_free(&word);
    }
    request_options(s, &common, out);
    add_measuring(panels, count, out);
    add_picture_options(options, out);
}

void picture_scaling_command(const Request *const *requests, int count, int64_t last,
                             int64_t heads, int64_t d, Text *out)
{
    text_add(out, "compare");
    for (int i = 0; i < count; i++) {
        Text word = { 0 };

        add_side(requests[0], requests[i], "", &word);
        text_add(out, " ");
        word_quote(out, text_str(&word));
        text_free(&word);
    }
    text_addf(out, " --plot scaling -n %lld -d %lld --heads %lld", (long long)last, (long long)d,
              (long long)heads);
    request_settings(requests[0], out);
    if (requests[0]->repeat)
        text_addf(out, " --repeat %d", requests[0]->repeat);
    if (requests[0]->width > 0)
        text_addf(out, " --within %g%%", 100 * requests[0]->width);
}

/* ---- files ------------------------------------------------------------------ */

void metadata_add(Metadata *m, const char *key, const char *value)
{
    if (m->count + 2 > METADATA_MOST)
        return;
    m->starts[m->count++] = m->storage.length;
    text_add_bytes(&m->storage, key, strlen(key) + 1);
    m->starts[m->count++] = m->storage.length;
    text_add_bytes(&m->storage, value, strlen(value) + 1);
}

const char *const *metadata_list(Metadata *m)
{
    int count = text_ok(&m->storage) ? m->count : 0;

    for (int i = 0; i < count; i++)
        m->list[i] = m->storage.data + m->starts[i];
    m->list[count] = NULL;
    return m->list;
}

void metadata_free(Metadata *m)
{
    text_free(&m->storage);
    *m = (Metadata){ .count = 0 };
}

static void params_of(Result *const *results, int count, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '[');
    for (int i = 0; i < count; i++) {
        jsonw_open(&json, '{');
        jsonw_key_string(&json, "mechanism", results[i]->request.mechanism);
        jsonw_key_raw(&json, "params",
                      results[i]->record.params ? results[i]->record.params : "{}");
        jsonw_close(&json, '}');
    }
    jsonw_close(&json, ']');
}

/* Origin of each panel's tensor parameters, as in its record. */
static void tensors_of(Result *const *results, int count, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '[');
    for (int i = 0; i < count; i++)
        jsonw_raw(&json, results[i]->record.tensors ? results[i]->record.tensors : "{}");
    jsonw_close(&json, ']');
}

/* A figure of a script's own numbers has no results. */
static void add_result_pairs(Metadata *m, Result *const *results, int count)
{
    Text params = { 0 }, tensors = { 0 };
    char seed[32];

    if (!count)
        return;
    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)results[0]->request.seed);
    params_of(results, count, &params);
    tensors_of(results, count, &tensors);
    metadata_add(m, "attnscope:params", text_str(&params));
    metadata_add(m, "attnscope:tensors", text_str(&tensors));
    metadata_add(m, "attnscope:seed", seed);
    metadata_add(m, "attnscope:input", results[0]->input->name);
    metadata_add(m, "attnscope:input-sha256", results[0]->input->sha256);
    text_free(&params);
    text_free(&tensors);
}

/* The user's scripts that define mechanisms of the results: names and hashes, in one order. */
static void add_scripts(Metadata *m, Result *const *results, int count)
{
    Text                   names = { 0 }, hashes = { 0 };
    const MechanismScript *script;

    for (int i = 0; (script = scripts_at(i)); i++) {
        bool shown = false;

        for (int k = 0; k < count; k++)
            shown |= script_is_of_request(script, &results[k]->request);
        if (!shown)
            continue;
        text_addf(&names, "%s%s", names.length ? ", " : "", script->name);
        text_addf(&hashes, "%s%s", hashes.length ? ", " : "",
                  *script->sha256 ? script->sha256 : "-");
    }
    if (names.length) {
        metadata_add(m, SCRIPT_KEY, text_str(&names));
        metadata_add(m, SCRIPT_HASH_KEY, text_str(&hashes));
    }
    text_free(&names);
    text_free(&hashes);
}

bool font_is_file(const char *font)
{
    return font && strcmp(font, "sans") != 0 && strcmp(font, "mono") != 0;
}

bool font_sha256(const char *font, char hex[65])
{
    Mapped bytes;
    Error  ignored = ERROR_INIT;

    if (!font_is_file(font) || !mapped_open(font, &bytes, &ignored))
        return false;
    mapped_sha256(&bytes, 1, hex);
    mapped_close(&bytes);
    return true;
}

void metadata_add_font(Metadata *m, const PngOptions *options)
{
    char hash[65];

    if (options && font_sha256(options->font, hash))
        metadata_add(m, FONT_HASH_KEY, hash);
}

void picture_metadata(const Figure *figure, Result *const *results, int count,
                      const char *command, const PngOptions *options, Metadata *out)
{
    Text numbers = { 0 };

    *out = (Metadata){ .count = 0 };
    metadata_add(out, "Software", "attnscope " ATTNSCOPE_VERSION);
    metadata_add(out, "attnscope:version", ATTNSCOPE_VERSION);
    metadata_add(out, "attnscope:command", command ? command : "");
    add_result_pairs(out, results, count);
    add_scripts(out, results, count);
    metadata_add_font(out, options);
    stored_figure_text(figure, options, &numbers);
    if (numbers.length)
        metadata_add(out, NUMBERS_KEY, text_str(&numbers));
    text_free(&numbers);
    for (const char *const *own = options ? options->metadata : NULL; own && *own; own += 2)
        metadata_add(out, own[0], own[1]);
}

bool figure_write(const char *path, const Text *bytes, Error *err)
{
    return text_ok(bytes) ? file_write(path, bytes->data, bytes->length, err)
                          : error_set(err, ERR_NOMEM, "%s: not enough memory", path);
}

/* frame: as figure_frames; NULL: the panels side by side. */
static bool save_drawn(const Figure *figure, const int *frame, Result *const *results, int count,
                 const char *command, const PngOptions *options, const char *path, Error *err)
{
    PngOptions   own = options ? *options : (PngOptions){ 0 };
    Text         bytes = { 0 };
    Metadata     metadata;
    FigureFormat format;
    bool         ok;

    if (!figure_format(path, options, &format, err))
        return false;
    picture_metadata(figure, results, count, command, &own, &metadata);
    own.metadata = metadata_list(&metadata);
    ok = frame ? figure_frames(figure, *frame, format, &own, &bytes, err)
               : figure_file(figure, format, &own, &bytes, err);
    ok = ok && figure_write(path, &bytes, err);
    metadata_free(&metadata);
    text_free(&bytes);
    return ok;
}

/* A sign of a warning stands beside its reason only. */
static bool save(const Figure *figure, const int *frame, Result *const *results, int count,
                 const char *command, const PngOptions *options, const char *path, Error *err)
{
    bool   hides = options && options->hides & HIDE_CAPTION, ok = true;
    Figure shown = *figure;
    Text   kept = { 0 };

    if (hides && !figure_hide_signs(&shown, &kept))
        ok = error_set(err, ERR_NOMEM, "%s: not enough memory", path);
    if (hides)
        *shown.caption = '\0'; /* also in the numbers of plots, as --no-caption has it */
    ok = ok && save_drawn(&shown, frame, results, count, command, options, path, err);
    if (hides && text_ok(&kept))
        figure_show_signs(&shown, &kept);
    text_free(&kept);
    return ok;
}

bool picture_save(const Figure *figure, Result *const *results, int count, const char *command,
                  const PngOptions *options, const char *path, Error *err)
{
    FigureFormat format;

    return figure_format(path, options, &format, err) && steps_name_once(path, err) &&
           save(figure, NULL, results, count, command, options, path, err);
}

bool picture_save_frames(const Figure *figure, int only, Result *result, const char *command,
                         const PngOptions *options, const char *path, Error *err)
{
    return save(figure, &only, &result, 1, command, options, path, err);
}
