/* profile_plots.c -- the profile screen's plots: memory over time, roofline, seeds.
 *
 * They are made of what the panes measured, and of this machine's ceilings, which are
 * measured on the worker the first time the roofline is looked at.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/picture.h"
#include "draw/text/plot_cells.h"
#include "ui/screen/profile.h"
#include "ui/shell/actions.h"

struct RoofWork {
    Job     *job;
    Ceilings ceilings;
    int      threads;
    const Ops *ops; /* whose ceilings */
};

static const struct ProfileView {
    const char *name;     /* NULL: plot_title */
    PlotKind    kinds[3];
    int         count;
    bool        one;      /* of the focused pane alone */
} views[PROFILE_VIEWS] = {
    [PROFILE_COSTS] = { "costs", { PLOT_TIME, PLOT_FLOPS, PLOT_MEMORY }, 3, false },
    [PROFILE_TIMELINE] = { "memory over time", { PLOT_TIMELINE }, 1, true },
    [PROFILE_MEMORIES] = { "memory over time, all panes", { PLOT_TIMELINE }, 1, false },
    [PROFILE_QUALITY] = { "quality", { PLOT_MASS, PLOT_ERROR }, 2, false },
    [PROFILE_SEEDS] = { "spread over seeds", { PLOT_MASS_SEEDS, PLOT_ERROR_SEEDS }, 2, false },
    [PROFILE_ROOFLINE] = { "roofline", { PLOT_ROOFLINE }, 1, false },
    [PROFILE_DEVICE] = { "kernels over time", { PLOT_DEVICE }, 1, true },
    [PROFILE_KERNELS] = { "GPU and its kernels", { PLOT_KERNELS }, 1, true },
    [PROFILE_SCALING] = { "time over n", { PLOT_TIME }, 0, false },
};

/* ---- ceilings --------------------------------------------------------------- */

static bool measure_ceilings(void *context, const atomic_bool *cancel, Error *err)
{
    struct RoofWork *w = context;
    Threads         *threads = threads_new(w->threads > 0 ? w->threads : threads_default());
    bool             ok;

    (void)cancel; /* it takes two seconds */
    ok = ceilings_measure(w->ops, threads, &w->ceilings, err);
    threads_free(threads);
    return ok;
}

static void roof_work_free(struct RoofWork *w)
{
    job_free(w->job);
    free(w);
}

static void want_ceilings(Ui *ui)
{
    Error            err = ERROR_INIT;
    const Pane      *pane = panes_focus(ui);
    const Ops       *ops = pane && pane->request.ops ? pane->request.ops : ops_cpu();
    struct RoofWork *w;
    const Ceilings  *known = session_known_ceilings(ui->session, ops, ui->defaults.threads);

    if (ui->profiling.ops != ops && !ui->profiling.work)
        ui->profiling.known = ui->profiling.failed = false; /* those of another device */
    if (known && !ui->profiling.known && !ui->profiling.work) {
        ui->profiling.ceilings = *known;
        ui->profiling.ops = ops;
        ui->profiling.known = true;
    }
    if (ui->profiling.known || ui->profiling.failed || ui->profiling.work)
        return;
    w = calloc(1, sizeof(*w));
    if (!w)
        return;
    w->threads = ui->defaults.threads;
    w->ops = ui->profiling.ops = ops;
    w->job = session_submit_work(ui->session, measure_ceilings, w, &err);
    if (!w->job) {
        ui_say(ui, ROLE_ERROR, "%s", err.text);
        free(w);
        return;
    }
    ui->profiling.work = w;
}

bool profile_poll(Ui *ui)
{
    struct RoofWork *w = ui->profiling.work;
    JobState         state = w ? job_state(w->job) : JOB_WAITING;
    bool             further = scaling_poll(ui);

    if (state == JOB_WAITING || state == JOB_RUNNING)
        return further;
    ui->profiling.work = NULL;
    ui->profiling.known = state == JOB_DONE;
    ui->profiling.failed = state != JOB_DONE;
    ui->profiling.ceilings = w->ceilings;
    if (state == JOB_DONE)
        session_keep_ceilings(ui->session, w->ops, w->threads, &w->ceilings);
    if (state == JOB_FAILED)
        ui_say(ui, ROLE_ERROR, "%s", job_error(w->job)->text);
    roof_work_free(w);
    return true;
}

void profile_end(Ui *ui)
{
    scaling_close(ui);
    if (!ui->profiling.work)
        return;
    job_cancel(ui->profiling.work->job);
    job_wait(ui->profiling.work->job);
    roof_work_free(ui->profiling.work);
    ui->profiling.work = NULL;
}

/* ---- subjects --------------------------------------------------------------- */

/* The panes of the present plot. */
static int panes_of(Ui *ui, Pane **out)
{
    Compare *c = &ui->compare;
    int      count = 0;

    for (int i = 0; i < c->count; i++)
        if (!views[ui->profiling.view].one || i == c->now.focus)
            out[count++] = &c->panes[i];
    return count;
}

/* FLOPs are counted by every run; the rest by a measurement. */
static const Record *record_for(const Pane *pane, PlotKind kind)
{
    if (pane->measured)
        return &pane->measured->record;
    return kind == PLOT_FLOPS && pane->result ? &pane->result->record : NULL;
}

static Plot *plot_of_panes(Ui *ui, PlotKind kind, Error *err)
{
    Pane       *panes[PANES_MOST];
    int         count = panes_of(ui, panes);
    Text        names[PANES_MOST] = { { 0 } };
    PlotSubject subjects[PANES_MOST];
    Plot       *plot;

    for (int i = 0; i < count; i++) {
        request_text(&panes[i]->request, &names[i]);
        subjects[i] = (PlotSubject){ text_str(&names[i]), record_for(panes[i], kind) };
    }
    plot = plot_of(kind, subjects, count, ui->profiling.known ? &ui->profiling.ceilings : NULL,
                   err);
    for (int i = 0; i < count; i++)
        text_free(&names[i]);
    return plot;
}

static bool is_measured(Ui *ui)
{
    Pane *panes[PANES_MOST];
    int   count = panes_of(ui, panes);

    for (int i = 0; i < count; i++)
        if (panes[i]->measured)
            return true;
    return false;
}

static bool is_measuring(Ui *ui)
{
    Pane *panes[PANES_MOST];
    int   count = panes_of(ui, panes);

    for (int i = 0; i < count; i++)
        if (panes[i]->measuring)
            return true;
    return false;
}

/* ---- drawing ---------------------------------------------------------------- */

/* Says why there is no plot. */
static void draw_no_plot(Ui *ui, Area inside, PlotKind kind, const Error *err)
{
    bool roof = plot_needs(kind) & NEEDS_CEILINGS;

    term_paragraph(ui->term, inside,
                   is_measuring(ui)   ? "measuring\xe2\x80\xa6"
                   : !is_measured(ui) ? "not measured; r measures the panes"
                   : roof && ui->profiling.work ? "measuring this machine's ceilings\xe2\x80\xa6"
                                                : err->text,
                   ui_style(ui, ROLE_DIM));
}

static int paragraph_lines(const char *text, Area inside)
{
    return term_paragraph(NULL, (Area){ .h = 100, .w = inside.w }, text, (Style){ 0 });
}

/* Note under the plot: what it shows, and the machine that measured it if there is room. */
static int draw_note(Ui *ui, const Plot *plot, Area inside)
{
    Text note = { 0 };
    int  lines, most = inside.h / 3 > 3 ? inside.h / 3 : 3;
    char about[PLOT_CAPTION];

    plot_about(plot, true, about, sizeof(about));
    text_add(&note, about);
    if (*plot->measured)
        text_addf(&note, "%smeasured on %s", note.length ? "; " : "", plot->measured);
    if (paragraph_lines(text_str(&note), inside) > most && *about) {
        text_clear(&note);
        text_add(&note, about);
    }
    lines = paragraph_lines(text_str(&note), inside);
    lines = lines > most ? most : lines;
    term_paragraph(ui->term, (Area){ inside.y + inside.h - lines, inside.x, lines, inside.w },
                   text_str(&note), ui_style(ui, ROLE_DIM));
    text_free(&note);
    return lines;
}

/* One plot of the panes that the present page is about, in a frame. */
static void profile_kind_draw(Ui *ui, PlotKind kind, const char *title, Area area)
{
    Error err = ERROR_INIT;
    Plot *plot = is_measured(ui) || !plot_needs(kind) ? plot_of_panes(ui, kind, &err) : NULL;
    int   lines = plot && plot->rows ? plot_cells_lines(plot, area.w - 4) + plot->row_count + 3 : 0;
    Area  inside;

    area.h = lines && lines + 2 < area.h ? lines + 2 : area.h;
    inside = (Area){ area.y + 1, area.x + 2, area.h - 2, area.w - 4 };
    ui_frame(ui, area, title, false);
    if (plot) {
        inside.h -= draw_note(ui, plot, inside);
        plot_draw(ui, plot, inside);
    } else {
        draw_no_plot(ui, (Area){ inside.y + inside.h / 3, inside.x, 3, inside.w }, kind, &err);
    }
    plot_free(plot);
}

static void draw_scaling(Ui *ui, Area area)
{
    Error err = ERROR_INIT;
    Area  inside = { area.y + 1, area.x + 2, area.h - 2, area.w - 4 };
    Plot *plot = scaling_plot(ui, &err);
    char  title[160];

    scaling_title(ui, title, sizeof(title));
    ui_frame(ui, area, title, false);
    if (plot) {
        inside.h -= draw_note(ui, plot, inside);
        plot_draw(ui, plot, inside);
    } else {
        term_paragraph(ui->term, (Area){ inside.y + inside.h / 3, inside.x, 4, inside.w },
                       err.code != ERR_NONE ? err.text
                       : scaling_runs(ui)
                           ? "measuring\xe2\x80\xa6"
                           : "not measured; r measures all panes at n = 64, 128, ... 4096 on "
                             "N(0,1) inputs of this size, Ctrl-C stops and keeps what is there",
                       ui_style(ui, ROLE_DIM));
    }
    plot_free(plot);
}

void profile_plot_draw(Ui *ui, Area area)
{
    const struct ProfileView *view = &views[ui->profiling.view];
    const Pane               *pane = panes_focus(ui);
    bool                      beside = area.w >= 120;

    if (ui->profiling.view == PROFILE_SCALING)
        draw_scaling(ui, area);
    if (ui->profiling.view == PROFILE_KERNELS) {
        profile_gpu_draw(ui, area, pane);
        return;
    }
    if (view->kinds[0] == PLOT_ROOFLINE)
        want_ceilings(ui);
    for (int k = 0; k < view->count; k++) {
        Area part = area;
        char title[96];

        part.w = beside ? area.w / view->count : area.w;
        part.h = beside ? area.h : area.h / view->count;
        part.x += beside ? k * part.w : 0;
        part.y += beside ? 0 : k * part.h;
        if (k + 1 == view->count) {
            part.w = area.x + area.w - part.x;
            part.h = area.y + area.h - part.y;
        }
        if (view->one)
            snprintf(title, sizeof(title), "%s of %.48s", view->name, pane->request.mechanism);
        else
            snprintf(title, sizeof(title), "%s",
                     view->count > 1 ? plot_title(view->kinds[k]) : view->name);
        profile_kind_draw(ui, view->kinds[k], title, part);
    }
}

void profile_more_draw(Ui *ui, Area area)
{
    bool two = area.w >= 120 && (ui->profiling.scaling || ui->profiling.known);
    Area left = { area.y, area.x, area.h, two ? area.w / 2 : area.w };
    Area right = { area.y, area.x + left.w, area.h, area.w - left.w };

    profile_kind_draw(ui, PLOT_TIMELINE, views[PROFILE_MEMORIES].name, left);
    if (two && ui->profiling.scaling)
        draw_scaling(ui, right);
    else if (two)
        profile_kind_draw(ui, PLOT_ROOFLINE, views[PROFILE_ROOFLINE].name, right);
}

/* ---- as a figure ------------------------------------------------------------ */

/* The plots of the page as choices; false: they are not measured. */
static bool choose_plots(Ui *ui, ScreenFigure *out, Error *err)
{
    static const char *const words[PLOT_KINDS] = {
#define PLOT_KIND(id, name, title, needs, help) "plot(" name ")",
#include "app/figure/plots.def"
#undef PLOT_KIND
    };
    const struct ProfileView *view = &views[ui->profiling.view];
    Pane                     *panes[PANES_MOST];
    int                       there = panes_of(ui, panes);

    out->options = (PictureOptions){ .head = -1, .threads = ui->draughtsman.threads };
    if (view->kinds[0] == PLOT_ROOFLINE && !ui->profiling.known)
        return error_set(err, ERR_DATA, "this machine's ceilings are not measured yet");
    out->options.ceilings = &ui->profiling.ceilings;
    for (int k = 0; k < view->count; k++)
        for (int i = 0, joined = 0; i < there; i++)
            if (panes[i]->measured)
                out->choices[out->count++] =
                    (PanelChoice){ .result = panes[i]->measured,
                                   .spec = panel_spec(words[view->kinds[k]]),
                                   .joins = joined++ > 0 };
    return out->count || error_set(err, ERR_DATA, "nothing is measured yet: r measures");
}

bool profile_figure(Ui *ui, ScreenFigure *out, Error *err)
{
    if (ui->profiling.view == PROFILE_SCALING) {
        out->figure = scaling_figure(ui, &out->command, err);
        return out->figure != NULL;
    }
    if (!choose_plots(ui, out, err))
        return false;
    picture_command(ui->session, out->choices, out->count, &out->options, &out->command);
    return true;
}

/* ---- actions ---------------------------------------------------------------- */

/* Skips GPU pages where no pane runs on a GPU. */
static bool is_offered(const Ui *ui, int view)
{
    if (view != PROFILE_DEVICE && view != PROFILE_KERNELS)
        return true;
    for (int i = 0; i < ui->compare.count; i++)
        if (ui->compare.panes[i].request.ops)
            return true;
    return false;
}

static void show_page(Ui *ui, int view)
{
    int at = 0, count = 0;

    for (int v = 0; v < PROFILE_VIEWS; v++) {
        count += v == view || is_offered(ui, v);
        at += v <= view && (v == view || is_offered(ui, v));
    }
    ui->profiling.view = view;
    ui->profiling.line = 0;
    ui_say(ui, ROLE_DIM, "%s (%d of %d)", views[view].name, at, count);
}

void profile_turn(Ui *ui, int by)
{
    int view = ui->profiling.view;

    do
        view = (view + by + PROFILE_VIEWS) % PROFILE_VIEWS;
    while (!is_offered(ui, view));
    show_page(ui, view);
}

bool profile_take(Ui *ui, Pane *pane)
{
    PlotKind kind;
    Error    err = ERROR_INIT;

    if (!pane || !plot_word(pane->spec.view, &kind, &err))
        return false;
    pane->spec.view[0] = '\0';
    if (kind == PLOT_KINDS) {
        ui_say(ui, ROLE_ERROR, "%s", err.text);
        return false;
    }
    ui->screen = SCREEN_PROFILE;
    for (int v = 0; v < PROFILE_VIEWS; v++)
        for (int k = 0; k < views[v].count; k++)
            if (views[v].kinds[k] == kind) {
                show_page(ui, v);
                pane_measure(ui, pane);
                return true;
            }
    return true;
}

/* The profile screen's page of a GPU: tiers, numbers with theirs, kernels. */

#define KERNELS_MOST 400
#define PLOT_LINES 12 /* under the table a plot is worth drawing */

static int lines_of(const char *text)
{
    int lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* The lines from `from` on, as many as fit. */
static void draw_text(Ui *ui, Area area, const char *text, int from)
{
    for (int y = -from; *text && y < area.h; y++) {
        size_t length = strcspn(text, "\n"), skip = strspn(text, " ");
        char   line[512];

        skip = skip < 2 ? skip : 2;
        snprintf(line, sizeof(line), "%.*s", (int)(length - skip), text + skip);
        if (y >= 0)
            term_text(ui->term, area.y + y, area.x, area.w, line, ui_style(ui, ROLE_TEXT));
        text += length + (text[length] == '\n');
    }
}

/* Draws the lines in sight; the frame says which these are. */
static void draw_scrolled(Ui *ui, Area area, Area inside, const char *text)
{
    int  lines = lines_of(text), last = lines > inside.h ? lines - inside.h : 0;
    char where[64];

    ui->profiling.line = ui->profiling.line < last ? ui->profiling.line : last;
    draw_text(ui, inside, text, ui->profiling.line);
    if (!last)
        return;
    snprintf(where, sizeof(where), " lines %d-%d of %d, j k ", ui->profiling.line + 1,
             ui->profiling.line + inside.h, lines);
    term_text(ui->term, area.y + area.h - 1, area.x + area.w - 2 - term_width(where), 40, where,
              ui_style(ui, ROLE_DIM));
}

static const char *nothing(const Pane *pane)
{
    return pane->measuring   ? "measuring\xe2\x80\xa6"
           : !pane->measured ? "not measured; r measures the panes"
                             : "this pane was run on the CPU, and a CPU has no kernels; D runs "
                               "all panes on a GPU";
}

bool profile_has_gpu(const Pane *pane)
{
    return pane->measured && pane->measured->record.gpu &&
           pane->measured->record.status == RECORD_OK;
}

static void draw_page(Ui *ui, Area area, const Pane *pane, const char *text)
{
    Area          inside = { area.y + 1, area.x + 2, area.h - 2, area.w - 3 };
    char          title[96];

    snprintf(title, sizeof(title), "GPU and kernels of %.48s", pane->request.mechanism);
    ui_frame(ui, area, title, false);
    if (!profile_has_gpu(pane)) {
        term_paragraph(ui->term, (Area){ inside.y + inside.h / 3, inside.x, 3, inside.w },
                       nothing(pane), ui_style(ui, ROLE_DIM));
        return;
    }
    draw_scrolled(ui, area, inside, text);
}

void profile_gpu_draw(Ui *ui, Area area, const Pane *pane)
{
    const Record *r = profile_has_gpu(pane) ? &pane->measured->record : NULL;
    Text          text = { 0 };
    int           lines;

    if (r) {
        record_gpu_text(r, &text);
        record_kernels_text(r, area.w - 1, KERNELS_MOST, &text);
    }
    lines = lines_of(text_str(&text)) + 2;
    if (r && r->gpu->kernel_count && area.h >= lines + PLOT_LINES) {
        profile_kind_draw(ui, PLOT_DEVICE, plot_title(PLOT_DEVICE),
                          (Area){ area.y + lines, area.x, area.h - lines, area.w });
        area.h = lines;
    }
    draw_page(ui, area, pane, text_str(&text));
    text_free(&text);
}

/* ---- actions ---------------------------------------------------------------- */

void gpu_scroll(Ui *ui, int by)
{
    int line = ui->profiling.line + by;

    ui->profiling.line = line > 0 ? line : 0; /* the end is known when it is drawn */
}

