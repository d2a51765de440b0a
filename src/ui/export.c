/* export.c -- what is on the screen as a file: PNG for papers, text for notes.
 *
 * The figure is made from the panes as they stand (view, region, head, pooling,
 * order) and drawn by the worker; the results are kept until it is written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/actions.h"
#include "ui/compare.h"

struct ExportWork {
    Job               *job;
    Figure            *figure;
    Result            *results[2 * PANES_MOST]; /* retained */
    int                count;
    char               path[512];
    Text               storage; /* of the metadata */
    const char *const *metadata;
    Threads           *threads; /* of the worker; borrowed */
};

static bool write_figure(void *context, const atomic_bool *cancel, Error *err)
{
    struct ExportWork *w = context;
    const char        *ending = strrchr(w->path, '.');
    Text               bytes = { 0 };
    PngOptions         png = { .metadata = w->metadata };
    TextOptions        plain = { .width = 100, .utf8 = true };
    bool               ok;

    w->figure->threads = w->threads;
    if (ending && !strcmp(ending, ".png"))
        ok = figure_png(w->figure, &png, &bytes, err);
    else if (ending && !strcmp(ending, ".txt"))
        ok = figure_text(w->figure, &plain, &bytes, err);
    else
        ok = error_set(err, ERR_USAGE, "%s: the ending says what to write: .png or .txt", w->path);
    if (ok && atomic_load(cancel))
        ok = error_set(err, ERR_CANCELLED, "not written");
    ok = ok && (text_ok(&bytes) ? file_write(w->path, bytes.data, bytes.length, err)
                                : error_set(err, ERR_NOMEM, "%s: out of memory", w->path));
    text_free(&bytes);
    return ok;
}

static void work_free(struct ExportWork *w)
{
    job_free(w->job);
    figure_free(w->figure);
    for (int i = 0; i < w->count; i++)
        result_release(w->results[i]);
    text_free(&w->storage);
    free((void *)(uintptr_t)w->metadata);
    free(w);
}

/* The panes on the screen, each as it is seen. */
static int collect(Ui *ui, struct ExportWork *w)
{
    Compare *c = &ui->compare;
    int      shown = 0;

    for (int i = 0; i < c->count; i++) {
        Pane    *pane = &c->panes[i];
        Panel    panel;
        LensView v;

        if (!pane->area.h || !pane_panel(ui, pane, &panel))
            continue;
        v = lens_view(&pane->lens, &pane->shape);
        panel.region = lens_region(&v);
        pane_title(ui, pane, i + 1, panel.title, sizeof(panel.title));
        w->figure->panels[shown++] = panel;
        w->results[w->count++] = result_retain(pane->result);
    }
    if (c->difference && c->count && c->panes[0].result)
        w->results[w->count++] = result_retain(c->panes[0].result);
    return shown;
}

void reproduce(Ui *ui, Pane *pane, Text *out)
{
    const View *view = pane_view(pane);
    Panel       panel;
    LensView    v;

    request_command(ui->session, &pane->request, "figure", out);
    if (!view || !pane_panel(ui, pane, &panel))
        return;
    text_addf(out, " --view %s", view->name);
    if (pane_heads(pane) > 1)
        text_addf(out, " --head %lld", (long long)pane->head);
    v = lens_view(&pane->lens, &pane->shape);
    if (pane->lens.zoom)
        text_addf(out, " --region %lld:%lld,%lld:%lld", (long long)v.row.first,
                  (long long)v.row.last, (long long)v.col.first, (long long)v.col.last);
    if (pane->pool >= 0)
        text_addf(out, " --pool %s", pool_name(panel.pool));
    if (pane->scale >= 0)
        text_addf(out, " --scale %s", scale_name(panel.scale));
    if (pane->map >= 0)
        text_addf(out, " --cmap %s", colour_map_name(panel.map));
    if (pane->sorted)
        text_add(out, " --sorted");
    text_addf(out, " -o %s.png", pane->request.mechanism);
}

static void start(Ui *ui, const char *path)
{
    struct ExportWork *w = calloc(1, sizeof(*w));
    Error              err = ERROR_INIT;
    Text               command = { 0 };

    if (!w || !(w->figure = figure_new(PANES_MOST, &err)))
        goto fail;
    w->figure->count = collect(ui, w);
    if (!w->figure->count) {
        error_set(&err, ERR_DATA, "no pane shows a picture");
        goto fail;
    }
    snprintf(w->path, sizeof(w->path), "%s", path);
    reproduce(ui, compare_focus(ui), &command);
    w->metadata = picture_metadata(ui->session, w->results, w->figure->count, text_str(&command),
                                   &w->storage);
    w->threads = ui->draughtsman.threads;
    w->job = session_submit_work(ui->draughtsman.session, write_figure, w, &err);
    text_free(&command);
    if (!w->job)
        goto fail;
    ui->export.work = w;
    ui_say(ui, ROLE_DIM, "writing %s\xe2\x80\xa6", path);
    return;
fail:
    ui_say(ui, ROLE_ERROR, "not written: %s", err.text);
    if (w)
        work_free(w);
}

bool export_poll(Ui *ui)
{
    struct ExportWork *w = ui->export.work;
    JobState           state = w ? job_state(w->job) : JOB_WAITING;

    if (state == JOB_WAITING || state == JOB_RUNNING)
        return false;
    ui->export.work = NULL;
    if (state == JOB_DONE)
        ui_say(ui, ROLE_GOOD, "written: %s", w->path);
    else
        ui_say(ui, ROLE_ERROR, "%s", state == JOB_FAILED ? job_error(w->job)->text : "not written");
    work_free(w);
    return true;
}

void export_close(Ui *ui)
{
    if (!ui->export.work)
        return;
    job_cancel(ui->export.work->job);
    job_wait(ui->export.work->job);
    work_free(ui->export.work);
    ui->export.work = NULL;
}

/* ---- the dialogue ----------------------------------------------------------- */

static void export_draw(Ui *ui)
{
    Term *term = ui->term;
    int   width = term->cols - 8 < 72 ? term->cols - 8 : 72;
    Area  area = { term->rows / 2 - 4, (term->cols - width) / 2, 7, width };
    bool  there = access(ui->export.field.text, F_OK) == 0;

    term_fill(term, area, ' ', (Style){ 0 });
    term_frame(term, area, "Export what is on the screen", true, ui_style(ui, ROLE_FOCUS),
               ui_style(ui, ROLE_TITLE));
    term_text(term, area.y + 2, area.x + 2, 6, "file", ui_style(ui, ROLE_KEY));
    field_draw(&ui->export.field, term, area.y + 2, area.x + 8, width - 11,
               ui_style(ui, ROLE_FIELD));
    term_text(term, area.y + 4, area.x + 2, width - 4,
              there ? "This file is there and will be replaced."
                    : ".png: figure at 300 dpi   .txt: text",
              ui_style(ui, there ? ROLE_WARN : ROLE_DIM));
}

static bool export_key(Ui *ui, uint32_t key)
{
    return field_key(&ui->export.field, key);
}

const Layer export_layer = {
    .mode = "EXPORT",
    .scope = IN_EXPORT,
    .draw = export_draw,
    .key = export_key,
};

/* mechanism.png, or the first number that is free. */
static void suggest(const Ui *ui, char *path, size_t size)
{
    const Compare *c = &ui->compare;
    const char    *stem = c->count == 1 ? c->panes[0].request.mechanism : "compare";

    snprintf(path, size, "%s.png", stem);
    for (int i = 2; i < 1000 && access(path, F_OK) == 0; i++)
        snprintf(path, size, "%s-%d.png", stem, i);
}

void export_open(Ui *ui)
{
    char path[256];

    suggest(ui, path, sizeof(path));
    field_set(&ui->export.field, path);
    ui_push(ui, &export_layer);
}

void action_export(Ui *ui)
{
    if (!compare_focus(ui))
        ui_say(ui, ROLE_WARN, "no pane is open");
    else if (ui->export.work)
        ui_say(ui, ROLE_WARN, "a file is being written");
    else
        export_open(ui);
}

void action_export_write(Ui *ui)
{
    ui_pop(ui);
    start(ui, ui->export.field.text);
}

/* ---- the clipboard ---------------------------------------------------------- */

void action_copy_value(Ui *ui)
{
    Pane     *pane = compare_focus(ui);
    int64_t   q, k;
    CellFacts f;
    char      value[32] = "masked";

    if (!pane || !pane_view(pane))
        return;
    pane_cursor(pane, &q, &k);
    f = cell_facts(pane, q, k);
    if (f.allowed)
        snprintf(value, sizeof(value), "%.9g", f.number ? f.value : 1.0);
    term_copy(ui->term, value);
    ui_say(ui, ROLE_GOOD, "copied: %s", value);
}

void action_copy_command(Ui *ui)
{
    Pane *pane = compare_focus(ui);
    Text  command = { 0 };

    if (!pane)
        return;
    reproduce(ui, pane, &command);
    term_copy(ui->term, text_str(&command));
    ui_say(ui, ROLE_GOOD, "%s", text_str(&command));
    text_free(&command);
}
