/* profile_gpu.c -- the profile screen's page of a GPU: tiers, numbers with theirs, kernels. */
#include <stdio.h>
#include <string.h>

#include "ui/profile.h"

static const char *stage_name(const void *record, int stage)
{
    return stage < 0 ? "(before)" : ((const Record *)record)->stages[stage].name;
}

#define PLOT_LINES 12 /* under the table a plot is worth drawing */

static int lines_of(const char *text)
{
    int lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void draw_text(Ui *ui, Area area, const char *text)
{
    for (int y = 0; *text && y < area.h; y++) {
        size_t length = strcspn(text, "\n"), skip = strspn(text, " ");
        char   line[512];

        skip = skip < 2 ? skip : 2;
        snprintf(line, sizeof(line), "%.*s", (int)(length - skip), text + skip);
        term_text(ui->term, area.y + y, area.x, area.w, line, ui_style(ui, ROLE_TEXT));
        text += length + (text[length] == '\n');
    }
}

static const char *nothing(const Pane *pane)
{
    return pane->measuring   ? "measuring\xe2\x80\xa6"
           : !pane->measured ? "not measured; r measures the panes"
                             : "this pane was run on the CPU, and a CPU has no kernels; "
                               "--device cuda runs it on a GPU";
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
    draw_text(ui, inside, text);
}

void profile_gpu_draw(Ui *ui, Area area, const Pane *pane)
{
    const Record *r = profile_has_gpu(pane) ? &pane->measured->record : NULL;
    Text          text = { 0 };
    int           lines;

    if (r) {
        device_profile_text(r->gpu, flops_total(r->counted), r->counted.score + r->counted.mix,
                            &text);
        device_kernels_text(r->gpu, area.h, stage_name, r, &text);
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
