/* picture.c -- which view to show, and how; see picture.h. */
#include "app/picture.h"

#include "app/command_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_matrix(const View *view)
{
    return view->rank >= 2 && view_rows(view) > 0 && view_cols(view) > 0;
}

/* True when the allowed cells are all cells, or all of the causal triangle:
 * then the set says nothing and the weights are the picture. */
static bool is_trivial(const Run *run, const Pattern *p)
{
    double n = (double)pattern_queries(p), m = (double)pattern_keys(p);
    double cells = (double)pattern_count(p) / (double)pattern_heads(p);
    double all = run->causal && m >= n ? n * m - n * (n - 1) / 2 : n * m;

    return cells >= all;
}

static const View *telling_view(const Run *run)
{
    const View *connectivity = run_view(run, "connectivity");
    const View *weights = run_view(run, "weights");
    const char *picture = run->mechanism->picture;

    if (picture && run_view(run, picture))
        return run_view(run, picture);
    if (connectivity && connectivity->support && !is_trivial(run, connectivity->support))
        return connectivity;
    if (weights)
        return weights;
    if (connectivity)
        return connectivity;
    for (int i = 0; i < run->view_count; i++)
        if (is_matrix(&run->views[i]))
            return &run->views[i];
    return NULL;
}

static void list_views(const Run *run, Text *out)
{
    for (int i = 0; i < run->view_count; i++)
        if (run_view(run, run->views[i].name) == &run->views[i])
            text_addf(out, "%s%s", out->length ? ", " : "", run->views[i].name);
}

static bool is_reach(const Run *run, const char *name)
{
    return name && !strcmp(name, REACH_VIEW) && !run_view(run, name);
}

const View *result_view(const Result *result, const char *name, Error *err)
{
    const Run  *run = result->run;
    const View *view = name && strcmp(name, "auto") ? run_view(run, name) : telling_view(run);
    Text        names = { 0 };

    if (run->err.code != ERR_NONE) {
        if (err)
            *err = run->err;
        return NULL;
    }
    if (is_reach(run, name))
        return result_reach(result, NULL, err);
    if (view && is_matrix(view))
        return view;
    list_views(run, &names);
    if (result_reach(result, NULL, NULL))
        text_add(&names, ", " REACH_VIEW);
    error_set(err, ERR_USAGE, "%s has no %s '%s' (views: %s)", run->mechanism->id,
              view ? "matrix called" : "view", name ? name : "auto", text_str(&names));
    text_free(&names);
    return NULL;
}

const Pattern *result_components(const Result *result, const View *view)
{
    (void)result;
    return view->kind == VIEW_COMPONENTS || view->kind == VIEW_PATTERN ? view->support : NULL;
}

/* ---- order of tokens -------------------------------------------------------- */

/* The first round's. */
static const int32_t *order_of_view(const Run *run, const View *order, int64_t head)
{
    int64_t n = view_cols(order), rounds = view_planes(order) * view_rows(order) / run->h;

    return order->tensor.dtype == DT_I32 ? tensor_i32(&order->tensor) + head * rounds * n : NULL;
}

/* Stable counting sort of the tokens by their category. */
static int32_t *order_of_categories(Run *run, const View *view, int64_t head)
{
    int64_t  n = view_cols(view), rows = view_planes(view) * view_rows(view) / run->h;
    int32_t *out = arena_alloc(run->arena, n, sizeof(*out)), *category, most = 0;
    int64_t  at = 0;

    if (!out || view->tensor.dtype != DT_I32)
        return NULL;
    category = tensor_i32(&view->tensor) + head * rows * n;
    for (int64_t i = 0; i < n; i++)
        most = category[i] > most ? category[i] : most;
    for (int32_t c = -1; c <= most; c++)
        for (int64_t i = 0; i < n; i++)
            if (category[i] == c)
                out[at++] = (int32_t)i;
    return at == n ? out : NULL;
}

const View *result_order_source(const Result *result)
{
    static const ViewKind kinds[] = { VIEW_ORDER, VIEW_BUCKETS };
    const Run            *run = result->run;

    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        for (int i = 0; i < run->view_count; i++) {
            const View *view = &run->views[i];

            if (view->kind == kinds[k] && view->tensor.data && view_cols(view) == run->n)
                return view;
        }
    return NULL;
}

const int32_t *result_sorted_order(Result *result, int64_t head)
{
    const View *source = result_order_source(result);

    if (!source)
        return NULL;
    if (source->kind == VIEW_ORDER)
        return order_of_view(result->run, source, head);
    if (!result->order || result->order_head != head) {
        result->order = order_of_categories(result->run, source, head);
        result->order_head = head;
    }
    return result->order;
}

/* ---- panels ----------------------------------------------------------------- */

static void label_panel(const Result *result, const View *view, Panel *out)
{
    const Input *input = result->input;

    if (!strcmp(view->rows, "query") && view_rows(view) == input->n)
        out->row_labels = input->q_tokens;
    if (!strcmp(view->cols, "key") && view_cols(view) == input->m)
        out->col_labels = input->k_tokens;
}

/* "window(window=5) · reach, 12 layers" */
static void title_panel(const Result *result, const View *view, char *text, size_t size)
{
    Text title = { 0 };
    int  depth = view->kind == VIEW_HOPS ? reach_view_depth(view) : 0;

    request_text(&result->request, &title);
    text_addf(&title, " \xc2\xb7 %s", view->name);
    if (depth)
        text_addf(&title, ", %s%d layer%s", reach_view_strict(view) ? "walks of " : "", depth,
                  depth == 1 ? "" : "s");
    snprintf(text, size, "%s", text_str(&title));
    text_free(&title);
}

bool picture_reach(const Result *result, const ReachOptions *options, Panel *panel, Error *err)
{
    const View *view;

    if (panel->view->kind != VIEW_HOPS)
        return true;
    view = result_reach(result, options, err);
    if (!view)
        return false;
    panel->view = view;
    title_panel(result, view, panel->title, sizeof(panel->title));
    return true;
}

bool picture_panel(Result *result, const char *name, int64_t head, Panel *out, Error *err)
{
    const View *view = result_view(result, name, err);
    char        title[128];
    int64_t     plane = 0;

    if (!view)
        return false;
    if (head >= 0 && head >= result->run->h)
        return error_set(err, ERR_USAGE, "head %lld: there are %lld (0..%lld)", (long long)head,
                         (long long)result->run->h, (long long)result->run->h - 1);
    if (head > 0 && !view_shared(view))
        plane = head * (view_planes(view) / result->run->h);
    title_panel(result, view, title, sizeof(title));
    panel_init(out, view, result_components(result, view), plane, title);
    label_panel(result, view, out);
    return true;
}

static bool set_looks(Panel *panel, const PictureOptions *options, Error *err)
{
    if (options->pool && !pool_parse(options->pool, &panel->pool, err))
        return false;
    if (options->scale && !scale_parse(options->scale, &panel->scale, err))
        return false;
    if (options->map && !colour_map_parse(options->map, &panel->map, err))
        return false;
    return true;
}

static bool set_region(Panel *panel, Region region, Error *err)
{
    if (region.row1 == 0 && region.col1 == 0)
        return true;
    if (region.row0 < 0 || region.col0 < 0 || region.row0 >= region.row1 ||
        region.col0 >= region.col1 || region.row1 > view_rows(panel->view) ||
        region.col1 > view_cols(panel->view))
        return error_set(err, ERR_USAGE,
                         "the region %lld:%lld,%lld:%lld is not inside the %lld x "
                         "%lld view %s",
                         (long long)region.row0, (long long)region.row1, (long long)region.col0,
                         (long long)region.col1, (long long)view_rows(panel->view),
                         (long long)view_cols(panel->view), panel->view->name);
    panel->region = region;
    return true;
}

void picture_sort_panel(const int32_t *order, Panel *panel)
{
    if (order && !strcmp(panel->view->rows, "query"))
        panel->row_order = order;
    if (order && !strcmp(panel->view->cols, "key"))
        panel->col_order = order;
}

static bool subtract_first(Result *const *results, int index, const char *view, Panel *panel,
                           Error *err)
{
    const View *first = result_view(results[0], view ? view : "weights", err);

    if (!first)
        return false;
    if (view_rows(first) != view_rows(panel->view) || view_cols(first) != view_cols(panel->view))
        return error_set(err, ERR_USAGE, "no difference: %s and %s have views of other shapes",
                         results[0]->request.mechanism, results[index]->request.mechanism);
    if (panel->view->kind == VIEW_HOPS)
        return error_set(err, ERR_USAGE, "no difference: what is not reached has no number of "
                         "layers");
    if (index == 0)
        return true;
    panel->minus = first;
    panel->components = NULL;
    panel->map = MAP_DIVERGING;
    return true;
}

static bool make_panel(Result *const *results, int index, const PictureOptions *options,
                       Panel *panel, Error *err)
{
    const char *view = options->views && options->views[index] ? options->views[index]
                                                               : options->view;

    if (options->difference && !view)
        view = "weights";
    if (!picture_panel(results[index], view, options->head, panel, err) ||
        !picture_reach(results[index], &options->reach, panel, err) ||
        !set_looks(panel, options, err) || !set_region(panel, options->region, err))
        return false;
    if (options->difference && !subtract_first(results, index, view, panel, err))
        return false;
    if (options->span)
        return picture_span(results[index], options->span, NULL, panel, err);
    if (options->sorted)
        picture_sort_panel(result_sorted_order(results[index],
                                               options->head < 0 ? 0 : options->head), panel);
    return true;
}

/* What a reader needs to know of the data; a generator's text says the rest. */
static void caption_figure(Figure *figure, const Run *run, const Input *input, int64_t head)
{
    const char *slash = strrchr(input->name, '/');
    bool        generated = !strncmp(input->name, "synthetic:", strlen("synthetic:"));
    char        heads[64] = "", layer[48] = "", keys[48] = "", position[48] = "";

    if (run->h > 1)
        snprintf(heads, sizeof(heads), ", head %lld of %lld", (long long)head, (long long)run->h);
    if (input->layers > 1)
        snprintf(layer, sizeof(layer), ", layer %lld", (long long)input->layer);
    if (run->m != run->n)
        snprintf(keys, sizeof(keys), ", m = %lld", (long long)run->m);
    if (run->spec.position)
        snprintf(position, sizeof(position), ", position %s", run->spec.position->id);
    if (generated)
        snprintf(figure->caption, sizeof(figure->caption), "%s%s%s%s", input->name, heads, position,
                 run->causal ? ", causal" : "");
    else
        snprintf(figure->caption, sizeof(figure->caption), "%s%s%s, n = %lld%s%s%s%s, seed %llu",
                 slash ? slash + 1 : input->name, layer,
                 input->note ? " (q, k, v made, not from a model)" : "", (long long)run->n, keys,
                 heads, position, run->causal ? ", causal" : "", (unsigned long long)run->seed);
}

/* ", rotations random seed 7": where the tensors behind the picture are from. */
static void caption_tensors(Figure *figure, const Run *run)
{
    size_t used = strlen(figure->caption);
    char   origin[48];

    for (int i = 0; i < run->tensor_count && used < sizeof(figure->caption); i++)
        used += (size_t)snprintf(figure->caption + used, sizeof(figure->caption) - used, ", %s: %s",
                                 run->tensors[i].name,
                                 run_origin_text(run, run->tensors[i].origin, origin,
                                                 sizeof(origin)));
}

/* Entries read exactly for one panel; a dense view beyond it (n > 31622) is sampled
 * by rows, and its caption says so. */
#define MOST_ENTRIES 1e9

Figure *picture_of_results(Result *const *results, int count, const PictureOptions *options,
                           Error *err)
{
    Figure    *figure = figure_new(count, err);
    const Run *run = results[0]->run;

    if (!figure)
        return NULL;
    figure->rows = options->rows;
    figure->cols = options->cols;
    figure->legend = true;
    figure->threads = options->threads;
    figure->budget_entries = MOST_ENTRIES;
    for (int i = 0; i < count; i++)
        if (!make_panel(results, i, options, &figure->panels[i], err)) {
            figure_free(figure);
            return NULL;
        }
    if (options->title)
        snprintf(figure->title, sizeof(figure->title), "%s", options->title);
    caption_figure(figure, run, results[0]->input, options->head < 0 ? 0 : options->head);
    if (count == 1)
        caption_tensors(figure, run);
    return figure;
}

/* ---- the command that draws it again ---------------------------------------- */

/* What a request has that the first one has not, as assignments. */
static void differing_fields(const Request *first, const Request *request, Request *out)
{
    char number[32];

    snprintf(number, sizeof(number), "%llu", (unsigned long long)request->seed);
    if (request->seed != first->seed)
        assignments_set(&out->given, "seed", number, NULL);
    if (request->causal != first->causal && request->causal >= 0)
        assignments_set(&out->given, "causal", request->causal ? "true" : "false", NULL);
    if (strcmp(request->position, first->position) != 0)
        assignments_set(&out->given, "position", request->position, NULL);
}

static void add_panel_word(const Request *first, const Request *request, const char *view,
                           Text *out)
{
    Request copy;
    Text    word = { 0 };

    if (!request_copy(&copy, request, NULL))
        return;
    differing_fields(first, request, &copy);
    request_text(&copy, &word);
    if (view)
        text_addf(&word, ":%s", view);
    text_add(out, " ");
    word_quote(out, text_str(&word));
    text_free(&word);
    request_free(&copy);
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
    if (o->span)
        text_addf(out, " --span %s", o->span);
    if (o->reach.layers)
        text_addf(out, " --layers %d", o->reach.layers);
    text_add(out, o->reach.strict ? " --no-residual" : "");
    text_add(out, o->difference ? " --diff" : "");
    text_add(out, o->sorted ? " --sorted" : "");
}

void picture_command(const Session *s, Result *const *results, int count,
                     const PictureOptions *options, Text *out)
{
    const Request *first = &results[0]->request;

    text_add(out, "figure");
    for (int i = 0; i < count; i++)
        add_panel_word(first, &results[i]->request,
                       options->views ? options->views[i] : options->view, out);
    request_options(s, first, out);
    add_picture_options(options, out);
}

/* ---- files ------------------------------------------------------------------ */

static void add_pair(Text *storage, size_t *starts, int *count, const char *key, const char *value)
{
    starts[(*count)++] = storage->length;
    text_add_bytes(storage, key, strlen(key) + 1);
    starts[(*count)++] = storage->length;
    text_add_bytes(storage, value, strlen(value) + 1);
}

static void params_of(Result *const *results, int count, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '[');
    for (int i = 0; i < count; i++) {
        jsonw_open(&json, '{');
        jsonw_key(&json, "mechanism");
        jsonw_string(&json, results[i]->request.mechanism);
        jsonw_key(&json, "params");
        jsonw_raw(&json, results[i]->record.params ? results[i]->record.params : "{}");
        jsonw_close(&json, '}');
    }
    jsonw_close(&json, ']');
}

/* What each panel's tensor parameters are from, as its record says it. */
static void tensors_of(Result *const *results, int count, Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '[');
    for (int i = 0; i < count; i++)
        jsonw_raw(&json, results[i]->record.tensors ? results[i]->record.tensors : "{}");
    jsonw_close(&json, ']');
}

#define METADATA_PAIRS 9

const char *const *picture_metadata(Session *s, Result *const *results, int count,
                                    const char *command, Text *storage)
{
    size_t       starts[2 * METADATA_PAIRS];
    int          pairs = 0;
    Text         params = { 0 }, tensors = { 0 };
    char         seed[32];
    const char **list;

    (void)s;
    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)results[0]->request.seed);
    params_of(results, count, &params);
    tensors_of(results, count, &tensors);
    add_pair(storage, starts, &pairs, "Software", "attnscope " ATTNSCOPE_VERSION);
    add_pair(storage, starts, &pairs, "attnscope:version", ATTNSCOPE_VERSION);
    add_pair(storage, starts, &pairs, "attnscope:command", command ? command : "");
    add_pair(storage, starts, &pairs, "attnscope:params", text_str(&params));
    add_pair(storage, starts, &pairs, "attnscope:tensors", text_str(&tensors));
    add_pair(storage, starts, &pairs, "attnscope:seed", seed);
    add_pair(storage, starts, &pairs, "attnscope:input", results[0]->input->name);
    add_pair(storage, starts, &pairs, "attnscope:input-sha256", results[0]->input->sha256);
    text_free(&params);
    text_free(&tensors);
    list = calloc((size_t)pairs + 1, sizeof(*list));
    for (int i = 0; list && i < pairs && text_ok(storage); i++)
        list[i] = storage->data + starts[i];
    return list;
}

bool picture_save(Session *s, const Figure *figure, Result *const *results, int count,
                  const char *command, const PngOptions *options, const char *path, Error *err)
{
    const char        *ending = strrchr(path, '.');
    PngOptions         png = options ? *options : (PngOptions){ 0 };
    TextOptions        plain = { .width = 100, .utf8 = true };
    Text               bytes = { 0 }, storage = { 0 };
    const char *const *metadata = NULL;
    bool               ok = false;

    if (!strcmp(path, "-") || (ending && !strcmp(ending, ".png"))) {
        metadata = picture_metadata(s, results, count, command, &storage);
        png.metadata = metadata;
        ok = figure_png(figure, &png, &bytes, err);
    } else if (ending && !strcmp(ending, ".txt")) {
        ok = figure_text(figure, &plain, &bytes, err);
    } else {
        error_set(err, ERR_USAGE, "%s: the ending says what to write: .png or .txt", path);
    }
    ok = ok && (text_ok(&bytes) ? file_write(path, bytes.data, bytes.length, err)
                                : error_set(err, ERR_NOMEM, "%s: not enough memory", path));
    free((void *)(uintptr_t)metadata);
    text_free(&storage);
    text_free(&bytes);
    return ok;
}
