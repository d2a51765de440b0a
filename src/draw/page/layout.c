/* layout.c -- matrices fitted to the room, then columns and rows placed; see layout.h. */
#include "draw/page/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NARROW 3        /* a matrix with so many rows per column is a column */
#define NARROW_TALL 1.5 /* height of columns side by side, in rooms */
#define NARROW_WIDE 0.6 /* and their width, in rooms */
#define PLOT_ASPECT 0.62 /* height of a plot without neighbours, in widths */
#define STRIP_ASPECT 0.45 /* and beside strips */
#define STRIP 2         /* a matrix with so many columns per row is a strip */
#define STRIP_WIDE 0.45 /* height of a strip across the page at most, in rooms of a column */
#define FRAME_LEAST 0.85 /* of the room, for frames whose cells differ by a pixel */

static PanelPlace place_of(const LayoutNeed *need, int k)
{
    return need->places ? need->places[k] : (PanelPlace){ k / need->cols, k % need->cols, 0 };
}

static int max_of(int a, int b)
{
    return a > b ? a : b;
}

/* Number of cells of fine..2 fine pixels, each a block of entries, that fill most of `extent`. */
static int64_t reduced_cells(int64_t n, int64_t extent, int fine)
{
    int64_t best = 1, filled = 0;

    for (int64_t pixels = fine; pixels <= 2 * fine && 100 * filled < 85 * extent; pixels++) {
        int64_t block = (n * pixels + extent - 1) / extent, cells = (n + block - 1) / block;

        if (cells * pixels > filled) {
            filled = cells * pixels;
            best = cells;
        }
    }
    return best;
}

/* Cells and whole pixels per cell for n entries in `extent` pixels. */
static int64_t fit_axis(int64_t n, int64_t decided, int extent, int fine, int *pixels)
{
    int64_t cells = decided ? decided : n;

    extent = max_of(extent, 1);
    if (n > extent && !decided)
        cells = reduced_cells(n, extent, fine);
    *pixels = max_of((int)(extent / cells), 1);
    return cells;
}

/* All matrices are narrow columns, and none beside them is square and gives the height: they leave
 * the sides of their rooms empty. */
static bool all_narrow(const LayoutNeed *need)
{
    bool all = need->cols > 1;

    for (int k = 0; k < need->count; k++)
        all = all && !need->panels[k].plot && need->panels[k].rows >= NARROW * need->panels[k].cols;
    return all;
}

int layout_cell(int64_t at, int64_t cells, int extent)
{
    return (int)(at * extent / cells);
}

Box layout_box(const PanelBoxes *b, int64_t at)
{
    int64_t r = at / b->cols, c = at % b->cols;
    int     x = layout_cell(c, b->cols, b->matrix.w), y = layout_cell(r, b->rows, b->matrix.h);

    return (Box){ b->matrix.x + x, b->matrix.y + y, layout_cell(c + 1, b->cols, b->matrix.w) - x,
                  layout_cell(r + 1, b->rows, b->matrix.h) - y };
}

/* Square entries where possible. Far from square, the short side grows until it is readable: a
 * strip gets rows of the default height, a column a third of the width. matrix.w and matrix.h
 * receive what there is room for. */
static void fit_matrix(const LayoutNeed *need, const PanelNeed *panel, int room, PanelBoxes *out)
{
    bool   narrow = all_narrow(need);
    double tall = narrow ? NARROW_TALL * room : room;
    double scale = fmin((double)room / (double)panel->cols, tall / (double)panel->rows);
    double width = (double)panel->cols * scale, height = (double)panel->rows * scale;
    double strip = fmin((double)panel->rows * need->strip, 0.35 * room);

    if (panel->plot) {
        double flat = need->flat > 0 ? need->flat : 1;

        out->cols = room;
        out->rows = max_of(panel->plot_h ? panel->plot_h : (int)(flat * PLOT_ASPECT * room), 1);
        out->cell_w = out->cell_h = 1;
        out->matrix = (Box){ .w = room, .h = (int)out->rows };
        return;
    }
    width = fmax(width, (narrow ? NARROW_WIDE : 0.35) * room);
    height = fmax(height, strip);
    out->matrix.w = max_of((int)floor(width + 1e-6), 1);
    out->matrix.h = max_of((int)floor(height + 1e-6), 1);
    out->cols = fit_axis(panel->cols, panel->col_cells, out->matrix.w, need->fine, &out->cell_w);
    out->rows = fit_axis(panel->rows, panel->row_cells, out->matrix.h, need->fine, &out->cell_h);
}

/* Cells of all sides that have the same room, which are to have one extent. */
typedef struct Sides {
    int64_t least, most; /* number of cells */
    int     taken;       /* by whole pixels per cell, at most */
} Sides;

static void sides_add(Sides *sides, int room, int own, int64_t cells, int pixels)
{
    if (abs(own - room) > 1)
        return;
    sides->least = sides->least && sides->least < cells ? sides->least : cells;
    sides->most = sides->most > cells ? sides->most : cells;
    sides->taken = max_of(sides->taken, (int)cells * pixels);
}

static double uneven(int64_t cells, int extent)
{
    return extent % cells ? (double)cells / extent : 0;
}

/* The extent of all sides with this room: whole pixels per cell; or all of the room where these
 * would leave much of it empty; or, with different numbers of cells, where cells differ least and
 * the room is used most. */
static int common_extent(const LayoutNeed *need, const PanelBoxes *boxes, int room)
{
    Sides  sides = { 0 };
    int    best = room;
    double least = HUGE_VAL;

    for (int k = 0; k < need->count; k++)
        if (!need->panels[k].plot) {
            const PanelBoxes *b = &boxes[k];

            sides_add(&sides, room, b->matrix.w, b->cols, b->cell_w);
            sides_add(&sides, room, b->matrix.h, b->rows, b->cell_h);
        }
    if (sides.least == sides.most)
        return !sides.taken || (need->fill && sides.taken < FRAME_LEAST * room) ? room
                                                                                : sides.taken;
    for (int extent = room; extent >= FRAME_LEAST * room && extent >= sides.most; extent--) {
        double cost = uneven(sides.least, extent) + uneven(sides.most, extent) +
                      (double)(room - extent) / room;

        if (cost < least) {
            least = cost;
            best = extent;
        }
    }
    return best;
}

/* The sizes of all frames: sides with the same room have the same extent. */
static void fit_frames(const LayoutNeed *need, PanelBoxes *boxes, Box *frames)
{
    for (int k = 0; k < need->count; k++) {
        frames[k].w = common_extent(need, boxes, boxes[k].matrix.w);
        frames[k].h = need->panels[k].plot ? boxes[k].matrix.h
                                           : common_extent(need, boxes, boxes[k].matrix.h);
    }
    for (int k = 0; k < need->count; k++) {
        boxes[k].matrix = frames[k];
        if (need->panels[k].plot) {
            boxes[k].cols = frames[k].w;
            continue;
        }
        boxes[k].cell_w = max_of((int)(frames[k].w / boxes[k].cols), 1);
        boxes[k].cell_h = max_of((int)(frames[k].h / boxes[k].rows), 1);
    }
}

typedef struct Gutters {
    int left, right;         /* of one column of panels */
    int above, labels;       /* of a row of panels: title; labels with the axis name */
    int numbers;             /* of its matrices: labels without the axis name */
    int frame;               /* the highest in one row of panels */
    int matrix, caption;     /* heights in the row; a matrix has its bars */
    int start;               /* x of a column, y of a row */
} Gutters;

bool layout_is_strip(int64_t rows, int64_t cols)
{
    return cols >= STRIP * rows;
}

static bool is_strip(const PanelNeed *panel)
{
    return !panel->plot && layout_is_strip(panel->rows, panel->cols);
}

/* No other panel stands in its row. */
static bool is_alone(const LayoutNeed *need, int k)
{
    int row = place_of(need, k).row, count = 0;

    for (int i = 0; i < need->count; i++)
        count += place_of(need, i).row == row;
    return count == 1;
}

/* A strip alone in its row reaches across the page, unless it would get high. */
static bool is_across(const LayoutNeed *need, int k)
{
    const PanelNeed *p = &need->panels[k];

    return need->cols > 1 && is_strip(p) && is_alone(need, k) && !place_of(need, k).col &&
           (double)p->rows * need->cols <= STRIP_WIDE * (double)p->cols;
}

static void measure_columns(const LayoutNeed *need, Gutters *columns)
{
    for (int k = 0; k < need->count; k++) {
        const PanelNeed *p = &need->panels[k];
        Gutters         *g = &columns[place_of(need, k).col];

        g->left = max_of(g->left, p->row_axis_w + p->row_labels_w);
        if (!is_across(need, k))
            g->right = max_of(g->right, p->bar_w + p->load_w);
    }
}

static int room_of(const LayoutNeed *need, const Gutters *columns)
{
    int room = need->width - 2 * need->margin - need->gap * (need->cols - 1);

    for (int c = 0; c < need->cols; c++)
        room -= columns[c].left + columns[c].right;
    return room / need->cols;
}

#define EVEN_LEAST 0.8 /* of their width that frames keep for equal distances */

/* Frames stand equally far apart, whether or not a colour bar stands between two of them. */
static void space_evenly(const LayoutNeed *need, Gutters *columns)
{
    int most = 0;

    for (int c = 0; c + 1 < need->cols; c++)
        most = max_of(most, columns[c].right + columns[c + 1].left);
    for (int c = 0; c + 1 < need->cols; c++)
        columns[c].right = most - columns[c + 1].left;
}

static int widest_frame(const LayoutNeed *need, int room, PanelBoxes *boxes, Box *frames)
{
    int widest = 0;

    if (room < 1)
        return 0;
    for (int k = 0; k < need->count; k++)
        fit_matrix(need, &need->panels[k], room, &boxes[k]);
    fit_frames(need, boxes, frames);
    for (int k = 0; k < need->count; k++)
        widest = max_of(widest, frames[k].w);
    return widest;
}

/* Pixels that no frame uses make the smallest distances larger. */
static void space_with(const LayoutNeed *need, Gutters *columns, int spare)
{
    for (; spare > 0; spare--) {
        int least = 0, most = 0;

        for (int c = 0; c + 1 < need->cols; c++) {
            int own = columns[c].right + columns[c + 1].left;

            most = max_of(most, own);
            if (own < columns[least].right + columns[least + 1].left)
                least = c;
        }
        if (columns[least].right + columns[least + 1].left == most)
            return;
        columns[least].right++;
    }
}

/* Even distances, unless they make the frames much narrower; returns the room of a frame. */
static int space_columns(const LayoutNeed *need, Gutters *columns, PanelBoxes *boxes, Box *frames)
{
    int room, even, widest;

    measure_columns(need, columns);
    if (need->cols < 2)
        return room_of(need, columns);
    room = room_of(need, columns);
    space_evenly(need, columns);
    even = room_of(need, columns);
    widest = widest_frame(need, room, boxes, frames);
    if (widest_frame(need, even, boxes, frames) >= EVEN_LEAST * widest ||
        (need->fill && even >= EVEN_LEAST * room))
        return even;
    memset(columns, 0, (size_t)need->cols * sizeof(*columns));
    measure_columns(need, columns);
    space_with(need, columns, (room - widest) * need->cols);
    return room_of(need, columns);
}

static void place_columns(const LayoutNeed *need, Gutters *columns, int room)
{
    int x = need->margin;

    for (int c = 0; c < need->cols; c++) {
        columns[c].start = x;
        x += columns[c].left + room + columns[c].right + need->gap;
    }
}

/* Room of a strip across the page, up to its colour bar. */
static int room_across(const LayoutNeed *need, int k, const Gutters *columns)
{
    const PanelNeed *p = &need->panels[k];

    return max_of(need->width - need->margin - p->bar_w - p->load_w - columns[0].start -
                  columns[0].left, 1);
}

/* A plot whose neighbours are strips is as flat as they are. */
static bool plot_among_strips(const LayoutNeed *need, int k)
{
    int  strips = 0;
    bool others = false;

    for (int i = 0; i < need->count; i++) {
        if (place_of(need, i).row != place_of(need, k).row)
            continue;
        strips += is_strip(&need->panels[i]);
        others = others || !(is_strip(&need->panels[i]) || need->panels[i].plot);
    }
    return need->panels[k].plot && !need->panels[k].plot_h && strips && !others;
}

/* Number of the panels that stand below panel k in its cell, and the pixels from the top of its
 * frame to the end of the last of them. */
static int stack_below(const LayoutNeed *need, int k, const PanelBoxes *boxes, int *high)
{
    int count = 0;

    *high = boxes[k].matrix.h + need->panels[k].load_h + need->panels[k].caption_h;
    for (int i = k + 1; i < need->count && place_of(need, i).level > 0; i++, count++) {
        const PanelNeed *p = &need->panels[i];

        *high += need->gap + p->title_h + p->col_axis_h + p->col_labels_h + boxes[i].matrix.h +
                 p->load_h + p->caption_h;
    }
    return count;
}

static void measure_row(const LayoutNeed *need, int k, const PanelBoxes *boxes, Gutters *g)
{
    const PanelNeed *p = &need->panels[k];

    if (place_of(need, k).level)
        return;
    g->above = max_of(g->above, p->title_h);
    g->numbers = max_of(g->numbers, p->plot ? 0 : p->col_labels_h);
    g->matrix = max_of(g->matrix, boxes[k].matrix.h + p->load_h);
    g->frame = max_of(g->frame, boxes[k].matrix.h);
    g->caption = max_of(g->caption, p->caption_h);
}

/* Strips of several rows beside one another, and plots that are as flat, have one height; a strip
 * of one row is a line, whatever stands beside it. */
static void level_strips(const LayoutNeed *need, PanelBoxes *boxes)
{
    for (int k = 0; k < need->count; k++) {
        int high = boxes[k].matrix.h;

        if (!is_strip(&need->panels[k]) || need->panels[k].rows < 2 || place_of(need, k).level)
            continue;
        for (int i = 0; i < need->count; i++)
            if (place_of(need, i).row == place_of(need, k).row && !place_of(need, i).level &&
                (is_strip(&need->panels[i]) || plot_among_strips(need, i)))
                high = max_of(high, boxes[i].matrix.h);
        boxes[k].matrix.h = high;
        boxes[k].cell_h = max_of((int)(high / boxes[k].rows), 1);
    }
}

static void measure_rows(const LayoutNeed *need, const Gutters *columns, Gutters *rows, int room,
                         PanelBoxes *boxes, Box *frames)
{
    for (int k = 0; k < need->count; k++)
        fit_matrix(need, &need->panels[k],
                   is_across(need, k) ? room_across(need, k, columns) : room, &boxes[k]);
    fit_frames(need, boxes, frames);
    for (int k = 0; k < need->count; k++)
        if (plot_among_strips(need, k))
            boxes[k].matrix.h = max_of((int)(STRIP_ASPECT * room), 1);
    level_strips(need, boxes);
    for (int k = 0; k < need->count; k++)
        measure_row(need, k, boxes, &rows[place_of(need, k).row]);
    for (int k = 0; k < need->count; k++) {
        const PanelNeed *p = &need->panels[k];
        Gutters         *g = &rows[place_of(need, k).row];
        int              high;

        if (place_of(need, k).level)
            continue;
        g->labels = max_of(g->labels, p->plot ? p->col_labels_h : p->col_axis_h + g->numbers);
        if (stack_below(need, k, boxes, &high))
            g->caption = max_of(g->caption, high - g->matrix);
    }
}

static int place_rows(const LayoutNeed *need, Gutters *rows, int y)
{
    for (int r = 0; r < need->rows; r++) {
        Gutters *g = &rows[r];

        g->start = y;
        y += g->above + g->labels + g->matrix + g->caption;
        y += r + 1 < need->rows ? need->gap : 0;
    }
    return y;
}

static void place_panel(const PanelNeed *p, const Gutters *column, const Gutters *row, int room,
                        PanelBoxes *out)
{
    int x = column->start + column->left, w = out->matrix.w;
    int y = row->start + row->above + row->labels, h = out->matrix.h;
    int whole = column->left + room + column->right;

    if (p->plot) {
        out->rows = row->frame;
        h = row->frame;
    }
    x += (room - w) / 2;
    out->column_w = whole;
    out->matrix = (Box){ x, y, w, h };
    out->col_labels = (Box){ x, y - p->col_labels_h, w, p->col_labels_h };
    out->col_axis = (Box){ x - (room - w) / 2, y - row->numbers - p->col_axis_h, room,
                           p->col_axis_h }; /* names of a row stand on one line */
    out->title = (Box){ column->start, row->start, whole, p->title_h };
    if (p->title_clear && column->right > column->left)
        out->title.w -= column->right - column->left;
    out->row_labels = (Box){ x - p->row_labels_w, y, p->row_labels_w, h };
    out->row_axis = (Box){ x - p->row_labels_w - p->row_axis_w, y, p->row_axis_w, h };
    out->load = (Box){ x, y + h, w, p->load_h };
    out->row_load = (Box){ x + w, y, p->load_w, h };
    out->bar = (Box){ x + w + p->load_w, y, p->bar_w, h };
    out->caption = (Box){ column->start, y + h + p->load_h, whole, p->caption_h };
}

/* The middle between the rooms of columns c and c + 1; the page's margins at both ends. */
static int border_after(const LayoutNeed *need, const Gutters *columns, int c, int room)
{
    if (c < 0 || c + 1 >= need->cols)
        return c < 0 ? need->margin : need->width - need->margin;
    return (columns[c].start + columns[c].left + room + columns[c + 1].start +
            columns[c + 1].left) / 2;
}

/* Titles reach half of the way to the next room, whatever labels or colour bars stand below: those
 * of the last column are not the narrowest.  One within a stack stands beside bars. */
static void widen_titles(const LayoutNeed *need, const Gutters *columns, int room, Layout *out)
{
    for (int k = 0; k < need->count; k++) {
        PanelBoxes *b = &out->panels[k];
        int         c = place_of(need, k).col, x = border_after(need, columns, c - 1, room);
        int         end = border_after(need, columns, c, room);

        if (need->panels[k].title_clear || place_of(need, k).level || is_across(need, k))
            continue;
        x += c ? need->gap / 2 : 0;
        end -= c + 1 < need->cols ? need->gap / 2 : 0;
        b->title.x = x;
        b->title.w = end - x;
    }
}

/* The title stands over the middle of the strip, as wide as it. */
static void place_across(const LayoutNeed *need, int k, const Gutters *columns, const Gutters *row,
                         PanelBoxes *boxes)
{
    const PanelNeed *p = &need->panels[k];
    Gutters          column = columns[0];

    column.right = p->bar_w + p->load_w;
    place_panel(p, &column, row, room_across(need, k, columns), &boxes[k]);
    boxes[k].title.x = boxes[k].matrix.x;
    boxes[k].title.w = boxes[k].matrix.w;
}

/* The panels below panel k in its cell share the height that is left between them. */
static void place_stack(const LayoutNeed *need, int k, const Gutters *column, const Gutters *row,
                        int room, PanelBoxes *boxes)
{
    int high, below = stack_below(need, k, boxes, &high);
    int spare = row->matrix + row->caption - high, y = boxes[k].caption.y + boxes[k].caption.h;

    for (int i = k + 1; i <= k + below; i++) {
        const PanelNeed *p = &need->panels[i];
        Gutters          own = { .start = y + need->gap + spare / below, .above = p->title_h,
                                 .labels = p->col_axis_h + p->col_labels_h,
                                 .numbers = p->col_labels_h, .frame = boxes[i].matrix.h };

        place_panel(p, column, &own, room, &boxes[i]);
        y = boxes[i].caption.y + boxes[i].caption.h;
    }
}

static bool place_all(const LayoutNeed *need, Gutters *columns, Gutters *rows, Box *frames,
                      Layout *out, Error *err)
{
    int room, y = need->margin, inner = need->width - 2 * need->margin;

    room = space_columns(need, columns, out->panels, frames);
    if (room < 8)
        return error_set(err, ERR_USAGE, "%d panels beside each other do not fit in %d pixels; "
                         "use fewer columns, a larger width or a higher resolution",
                         need->cols, need->width);
    place_columns(need, columns, room);
    measure_rows(need, columns, rows, room, out->panels, frames);
    out->title = (Box){ need->margin, y, inner, need->title_h };
    y = place_rows(need, rows, y + need->title_h);
    for (int k = 0; k < need->count; k++) {
        PanelPlace at = place_of(need, k);

        if (at.level)
            continue;
        if (is_across(need, k))
            place_across(need, k, columns, &rows[at.row], out->panels);
        else
            place_panel(&need->panels[k], &columns[at.col], &rows[at.row], room, &out->panels[k]);
        place_stack(need, k, &columns[at.col], &rows[at.row], room, out->panels);
    }
    widen_titles(need, columns, room, out);
    out->footer = (Box){ need->margin, y, inner, need->footer_h };
    y += need->footer_h;
    out->caption = (Box){ need->margin, y, inner, need->caption_h };
    out->room = room;
    out->narrow = all_narrow(need);
    out->width = need->width;
    out->height = y + need->caption_h + need->margin;
    return true;
}

bool layout_make(const LayoutNeed *need, Layout *out, Error *err)
{
    Gutters *columns = calloc((size_t)need->cols, sizeof(*columns));
    Gutters *rows = calloc((size_t)need->rows, sizeof(*rows));
    Box     *frames = calloc((size_t)max_of(need->count, 1), sizeof(*frames));
    bool     ok;

    *out = (Layout){ .panels = calloc((size_t)max_of(need->count, 1), sizeof(*out->panels)),
                     .count = need->count };
    if (columns && rows && frames && out->panels)
        ok = place_all(need, columns, rows, frames, out, err);
    else
        ok = error_set(err, ERR_NOMEM, "laying out %d panels: out of memory", need->count);
    free(columns);
    free(rows);
    free(frames);
    if (!ok)
        layout_free(out);
    return ok;
}

void layout_free(Layout *layout)
{
    free(layout->panels);
    *layout = (Layout){ 0 };
}

/* Length of the run of panels of one kind that begins at panel `at`. */
static int run_of(const bool *strip, int count, int at)
{
    int length = 1;

    while (at + length < count && strip[at + length] == strip[at])
        length++;
    return length;
}

int layout_places(const bool *strip, int count, int cols, int stack, PanelPlace *out)
{
    int slot = 0;

    for (int k = 0; k < count;) {
        int length = run_of(strip, count, k), most = strip[k] && stack > 1 ? stack : 1;
        int slots = (length + most - 1) / most;

        for (int i = 0; i < length; i++) {
            int own = (int)((int64_t)i * slots / length);
            int first = (int)(((int64_t)own * length + slots - 1) / slots);

            out[k + i] = (PanelPlace){ (slot + own) / cols, (slot + own) % cols, i - first };
        }
        k += length;
        slot += slots;
        if (stack == 1 && k < count) /* the next kind begins a row */
            slot = (slot + cols - 1) / cols * cols;
    }
    return (slot + cols - 1) / cols;
}

int layout_fewer_columns(int cols)
{
    if (cols <= 1)
        return 1;
    return cols % 2 ? cols - 1 : cols / 2;
}

int64_t layout_tick_step(int64_t n, int most, bool halving)
{
    static const int64_t decimal[] = { 1, 2, 5 };
    int64_t              step = 1, power = 1;

    most = max_of(most, 1);
    if (halving || n % LAYOUT_HALVED == 0) {
        while ((n + step - 1) / step > most)
            step *= 2;
        return step;
    }
    for (int k = 0; (n + step - 1) / step > most; k++) {
        if (k % 3 == 2)
            power *= 10;
        step = power * decimal[(k + 1) % 3];
    }
    return step;
}
