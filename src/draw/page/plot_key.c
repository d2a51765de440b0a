/* plot_key.c -- the key of a plot, and the names of its stages; see sheet.h.
 *
 * Upright guides that follow each other (the stages of a run) are named in a row above the frame,
 * each from its line to the right. Where one has no room there, all are numbered: the row has the
 * numbers, those of lines too near each other side by side, and the key has the names.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/page/sheet.h"

#define KEY_SIGN 2.2 /* width of a series' sign, in font sizes */
#define FLAG_ROW 1.4 /* height of the row of names or numbers, in font sizes */

/* ---- names of upright guides -------------------------------------------------- */

typedef struct Flag {
    double      at; /* x of its line */
    int         number; /* the same for the same name */
    const char *name;
} Flag;

static int flag_number(const Flag *flags, int count, const char *name)
{
    int most = 0;

    for (int k = 0; k < count; k++) {
        if (!strcmp(flags[k].name, name))
            return flags[k].number;
        most = flags[k].number > most ? flags[k].number : most;
    }
    return most + 1;
}

/* The named upright guides from left to right; none where there are fewer than two. */
static int flags_of(const Plot *plot, Box field, Flag *flags)
{
    int count = 0;

    for (int k = 0; k < plot->guide_count && !plot->rows; k++) {
        const PlotGuide *g = &plot->guides[k];
        double           place = plot_place(&plot->x, g->at);
        int              to = count;

        if (!g->vertical || !*g->name || isnan(place))
            continue;
        for (; to > 0 && flags[to - 1].at > field.x + place * field.w; to--)
            flags[to] = flags[to - 1];
        flags[to] = (Flag){ field.x + place * field.w, 0, g->name };
        count++;
    }
    for (int k = 0; k < count; k++)
        flags[k].number = flag_number(flags, k, flags[k].name);
    return count > 1 ? count : 0;
}

bool plot_has_flags(const Plot *plot)
{
    Flag flags[PLOT_GUIDES_MOST];

    return flags_of(plot, (Box){ .w = 1 }, flags) > 0;
}

static double tick_width(const Sheet *sheet, const char *text)
{
    return canvas_text_width(sheet->canvas, text, FONT_SANS, sheet->style.tick);
}

/* Each name ends before the next line, the last one inside the column. */
static bool names_fit(const Sheet *sheet, const Flag *flags, int count, double right)
{
    for (int k = 0; k < count; k++) {
        double end = k + 1 < count ? flags[k + 1].at - sheet->style.space : right;

        if (flags[k].at + tick_width(sheet, flags[k].name) > end)
            return false;
    }
    return true;
}

typedef struct FlagRow {
    Flag   flags[PLOT_GUIDES_MOST];
    int    count;
    bool   numbered;
    double left, right; /* of the words */
} FlagRow;

static FlagRow flag_row(const Sheet *sheet, const Plot *plot, int panel)
{
    const PanelBoxes *b = &sheet->layout.panels[panel];
    FlagRow           row = { .left = b->matrix.x - sheet->style.tick_length,
                              .right = b->caption.x + b->caption.w };

    row.count = flags_of(plot, b->matrix, row.flags);
    row.numbered = !names_fit(sheet, row.flags, row.count, row.right);
    return row;
}

/* Numbers of lines that are near each other, around the middle of the lines. */
typedef struct FlagGroup {
    double sum;
    int    count;
    char   text[96];
} FlagGroup;

/* Where the numbers begin, inside the row. */
static double group_start(const Sheet *sheet, const FlagRow *row, const FlagGroup *g)
{
    double wide = tick_width(sheet, g->text), x = g->sum / g->count - wide / 2;

    return fmax(row->left, fmin(x, row->right - wide));
}

static double group_end(const Sheet *sheet, const FlagRow *row, const FlagGroup *g)
{
    return group_start(sheet, row, g) + tick_width(sheet, g->text);
}

static void group_join(FlagGroup *to, const FlagGroup *next)
{
    size_t used = strlen(to->text);

    to->sum += next->sum;
    to->count += next->count;
    snprintf(to->text + used, sizeof(to->text) - used, " %s", next->text);
}

static int flag_groups(const Sheet *sheet, const FlagRow *row, FlagGroup *groups)
{
    int count = 0;

    for (int k = 0; k < row->count; k++) {
        groups[count] = (FlagGroup){ .sum = row->flags[k].at, .count = 1 };
        snprintf(groups[count].text, sizeof(groups->text), "%d", row->flags[k].number);
        count++;
        while (count > 1 && group_end(sheet, row, &groups[count - 2]) + sheet->style.space >
                                group_start(sheet, row, &groups[count - 1])) {
            group_join(&groups[count - 2], &groups[count - 1]);
            count--;
        }
    }
    return count;
}

static void draw_numbers(const Pens *p, const FlagRow *row, double baseline)
{
    FlagGroup groups[PLOT_GUIDES_MOST];
    int       count = flag_groups(p->sheet, row, groups);

    for (int k = 0; k < count; k++)
        pens_text(p, group_start(p->sheet, row, &groups[k]), baseline, groups[k].text,
                  p->s->muted);
}

static void draw_flags(const Pens *p, const FlagRow *row)
{
    double baseline = p->box.y - 0.4 * p->s->tick;

    if (row->numbered) {
        draw_numbers(p, row, baseline);
        return;
    }
    for (int k = 0; k < row->count; k++)
        pens_text(p, row->flags[k].at, baseline, row->flags[k].name, p->s->muted);
}

/* ---- the key ------------------------------------------------------------------ */

/* A series, or a number with its name. */
typedef struct KeyEntry {
    const PlotSeries *series;
    int               number;
    const char       *name;
} KeyEntry;

#define KEY_ENTRIES (PLOT_SERIES_MOST + PLOT_GUIDES_MOST)

int sheet_shared_key(const Sheet *sheet, PlotKeyEntry *out)
{
    return plots_shared_key((const Plot *const *)sheet->scene.plots, sheet->scene.count, out);
}

static int key_entries(const Sheet *sheet, const Plot *plot, const FlagRow *row, KeyEntry *entries)
{
    PlotKeyEntry shared[PLOT_SERIES_MOST];
    int          count = 0, number = 0;
    bool         own = plot_has_key(plot) && !sheet_shared_key(sheet, shared);

    for (int k = 0; k < plot->count && own; k++)
        if (!plot->series[k].guide)
            entries[count++] = (KeyEntry){ &plot->series[k], 0, plot->series[k].name };
    for (int k = 0; k < row->count && row->numbered; k++)
        if (row->flags[k].number > number) {
            number = row->flags[k].number;
            entries[count++] = (KeyEntry){ NULL, number, row->flags[k].name };
        }
    return count;
}

static void key_sign(const Pens *p, const PlotSeries *s, double x, double middle)
{
    double wide = 1.6 * p->s->tick, half = 0.4 * p->s->tick;
    Rgb    rgb = pens_colour(p, s->hue);

    if (s->mark == CURVE_BARS || s->mark == CURVE_SPANS) {
        canvas_rect(p->sheet->canvas, x + wide / 2 - half, middle - half, 2 * half, 2 * half, rgb);
    } else if (p->plot->rows && s->low) {
        pens_line(p, x, middle, x + wide, middle, 2 * half, rgb, 0.22);
        pens_line(p, x + wide / 2, middle - half, x + wide / 2, middle + half, 2 * p->s->frame,
                  rgb, 1);
    } else {
        pens_line(p, x, middle, x + wide, middle, 2 * p->s->frame, rgb,
                  s->mark == CURVE_POINTS ? 0 : 1);
        pens_mark(p, s->hue, x + wide / 2, middle, sheet_points(p->s, 1.5), rgb);
    }
}

double sheet_sign_width(const Sheet *sheet)
{
    return KEY_SIGN * sheet->style.tick;
}

void sheet_sign(Sheet *sheet, const PlotKeyEntry *entry, double x, double middle)
{
    Pens p = { .sheet = sheet, .plot = entry->plot, .s = &sheet->style };

    key_sign(&p, entry->series, x, middle);
}

static double sign_width(const Sheet *sheet, const KeyEntry *entry)
{
    char number[12];

    if (entry->series)
        return sheet_sign_width(sheet);
    snprintf(number, sizeof(number), "%d ", entry->number);
    return tick_width(sheet, number);
}

static double key_width(const Sheet *sheet, const KeyEntry *entry)
{
    return sign_width(sheet, entry) + tick_width(sheet, entry->name);
}

/* The key's area: above the field, or, if a name would leave the panel's column, all of the column
 * beside the axis' name; then `wraps` is set. */
static Box key_area(const Sheet *sheet, const KeyEntry *entries, int count, int panel, bool *wraps)
{
    Box field = sheet->layout.panels[panel].matrix, column = sheet->layout.panels[panel].caption;
    int name = sheet->layout.panels[panel].row_axis.w; /* of the axis */

    *wraps = false;
    for (int k = 0; k < count; k++)
        *wraps = *wraps || field.x + key_width(sheet, &entries[k]) > column.x + column.w;
    column.x += name;
    column.w -= name;
    return *wraps ? column : field;
}

static void draw_sign(const Pens *p, const KeyEntry *entry, double x, double middle)
{
    char number[12];

    if (entry->series) {
        key_sign(p, entry->series, x, middle);
        return;
    }
    snprintf(number, sizeof(number), "%d", entry->number);
    pens_text(p, x, middle + 0.36 * p->s->tick, number, p->s->muted);
}

/* Number of lines of one name, its first around `middle`; drawn if pens is not NULL. */
static int key_name(const Sheet *sheet, const KeyEntry *entry, double room, const Pens *pens,
                    double x, double middle)
{
    const SheetStyle *s = &sheet->style;
    double            sign = sign_width(sheet, entry);
    Lines             lines;

    sheet_wrap(sheet->canvas, entry->name, s->tick, room - sign, WRAP_LINES, &lines);
    if (pens)
        draw_sign(pens, entry, x, middle);
    for (int k = 0; pens && k < lines.count; k++)
        canvas_text(sheet->canvas, x + sign, middle + (1.4 * k + 0.36) * s->tick, lines.text[k],
                    (CanvasText){ .size = s->tick,
                                  .rgb = entry->series ? s->ink : s->muted });
    return lines.count > 0 ? lines.count : 1;
}

/* Number of lines of the key, which names each curve; drawn from y on if pens is not NULL. */
static int key_lines(const Sheet *sheet, const KeyEntry *entries, int count, int panel,
                     const Pens *pens, int y)
{
    const SheetStyle *s = &sheet->style;
    bool              wraps;
    Box               area = key_area(sheet, entries, count, panel, &wraps);
    double            x = 0, endless = 1e6;
    int               lines = 1, own = 1;

    for (int k = 0; k < count; k++) {
        double wide = key_width(sheet, &entries[k]);

        if (x > 0 && x + wide > area.w) {
            lines += own;
            x = 0;
        }
        own = key_name(sheet, &entries[k], wraps ? area.w : endless, pens, area.x + x,
                       y + (lines - 0.5) * 1.4 * s->tick);
        x += wide + 2.5 * s->space;
    }
    return lines + own - 1;
}

int sheet_plot_key(const Sheet *sheet, int panel)
{
    const Plot *plot = sheet->scene.count ? sheet->scene.plots[panel] : NULL;
    double      tick = sheet->style.tick, high = 0;
    KeyEntry    entries[KEY_ENTRIES];
    FlagRow     row;
    int         count;

    if (!plot)
        return 0;
    row = flag_row(sheet, plot, panel);
    count = key_entries(sheet, plot, &row, entries);
    if (count)
        high = ceil(1.4 * tick * key_lines(sheet, entries, count, panel, NULL, 0)) +
               sheet->style.space;
    return (int)(high + (row.count ? ceil(FLAG_ROW * tick) : 0));
}

void plot_key(const Pens *p, int panel)
{
    FlagRow  row = flag_row(p->sheet, p->plot, panel);
    KeyEntry entries[KEY_ENTRIES];
    int      count = key_entries(p->sheet, p->plot, &row, entries);

    draw_flags(p, &row);
    if (count)
        key_lines(p->sheet, entries, count, panel, p, p->sheet->layout.panels[panel].col_labels.y);
}
