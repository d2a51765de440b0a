/* profile_gpu.c -- the profile screen's page of a GPU: tiers, numbers with theirs, kernels. */
#include <stdio.h>
#include <string.h>

#include "ui/screen/profile.h"
#include "ui/shell/actions.h"

#define KERNELS_MOST 400
#define PLOT_LINES 12 /* under the table a plot is worth drawing */

static int lines_of(const char *text)
{
    int lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* From a line on, as many as there is room for. */
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

/* Lines that have no room are scrolled to; where they are stands in the frame. */
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
    const Record *r = profile_has_gpu(pane) ? &pane->measured->record : NULL;
    char          title[96];

    snprintf(title, sizeof(title), "GPU and kernels of %.48s", pane->request.mechanism);
    term_frame(ui->term, area, title, false, ui_style(ui, ROLE_FRAME), ui_style(ui, ROLE_TITLE));
    if (!r) {
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

static void scroll(Ui *ui, int by)
{
    int line = ui->profiling.line + by;

    ui->profiling.line = line > 0 ? line : 0; /* the end is known when it is drawn */
}

void action_gpu_down(Ui *ui)
{
    scroll(ui, 1);
}

void action_gpu_up(Ui *ui)
{
    scroll(ui, -1);
}

void action_gpu_page_down(Ui *ui)
{
    scroll(ui, 10);
}

void action_gpu_page_up(Ui *ui)
{
    scroll(ui, -10);
}
