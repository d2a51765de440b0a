/* inspector.c -- the cell under the cursor in one line and in a column beside the panes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/text/unicode.h"
#include "ui/state/panes.h"

#define BAR_MOST   24
#define BAR_USUAL  12 /* long tokens leave so much of it */

#define TOKEN_COLUMNS 20

static void place_text(const char *name, int64_t index, const char *token, char *text, size_t size)
{
    char word[TOKEN_COLUMNS * 4 + 8];

    if (token)
        snprintf(text, size, "%s%lld '%s'", name, (long long)index,
                 token_short(token, TOKEN_COLUMNS, word, sizeof(word)));
    else
        snprintf(text, size, "%s%lld", name, (long long)index);
}

/* Where the cursor is: "(q=3 'the', k=5)".  Axes of other views are named in full: "round 1, token
 * 17"; a curve names its points. */
static void cursor_text(const Pane *pane, int64_t q, int64_t k, char *text, size_t size)
{
    const View *view = pane_view(pane);
    ViewCurve   curve;
    bool        pairs = !strcmp(view->rows, "query") && !strcmp(view->cols, "key");
    char        row[128], col[128], row_name[32], col_name[32];

    if (view_curve(view, &curve)) {
        int64_t points = curve.by_rows || view->rank < 2 ? view_cols(view) : view_rows(view);

        snprintf(text, size, "%s, point %lld of %lld", view->name,
                 (long long)(curve.by_rows || view->rank < 2 ? k : q) + 1, (long long)points);
        return;
    }
    snprintf(row_name, sizeof(row_name), "%s ", view->rows);
    snprintf(col_name, sizeof(col_name), "%s ", view->cols);
    place_text(pairs ? "q=" : row_name, q + !strcmp(view->rows, "round"),
               row_token(pane, view, q), row, sizeof(row));
    place_text(pairs ? "k=" : col_name, k, col_token(pane, view, k), col, sizeof(col));
    snprintf(text, size, pairs ? "(%s, %s)" : "%s, %s", row, col);
}

/* ", layer 1, head 0", or " L1 h0" where that is too wide; of what there is one only, nothing. */
static void layer_and_head(const Ui *ui, const Pane *pane, bool tight, Text *out)
{
    const Input *input = session_input(ui->session);

    if (input && input->layer >= 0 && input->layers > 1)
        text_addf(out, tight ? " L%lld" : ", layer %lld", (long long)input->layer);
    if (pane_heads(pane) > 1)
        text_addf(out, tight ? " h%lld" : ", head %lld", (long long)pane->spec.head);
}

void cursor_title(const Ui *ui, const Pane *pane, int width, char *text, size_t size)
{
    int64_t q, k;

    pane_cursor(pane, &q, &k);
    cursor_text(pane, q, k, text, size);
    for (int tight = 0; tight < 2; tight++) {
        Text place = { 0 };
        bool fits;

        layer_and_head(ui, pane, tight, &place);
        fits = term_width(text) + term_width(text_str(&place)) <= width;
        if (fits)
            snprintf(text + strlen(text), size - strlen(text), "%s", text_str(&place));
        text_free(&place);
        if (fits)
            break;
    }
}

void inspect_line(Ui *ui, int y)
{
    Compare *c = &ui->compare;
    Pane    *pane = panes_focus(ui);
    Term    *term = ui->term;
    int64_t  q, k;
    char     where[300];
    int      x = 1;

    if (!pane || !pane_view(pane))
        return;
    pane_cursor(pane, &q, &k);
    cursor_text(pane, q, k, where, sizeof(where));
    x += term_text(term, y, x, term->cols - 2, where, ui_style(ui, ROLE_TITLE));
    for (int n = 0; n < 2 * c->count; n++) { /* panes in sight first */
        int         i = n % c->count;
        CellFacts   f;
        const View *view = pane_view(&c->panes[i]);
        ViewCurve   curve;

        if ((c->panes[i].area.h > 0) != (n < c->count))
            continue;
        f = cell_facts(ui, &c->panes[i], q, k);
        /* The plot shows the values of all curves. */
        if (!f.known || (view && view_curve(view, &curve)))
            continue;
        if (x + 12 > term->cols) { /* no room for a complete value */
            term_char(term, y, x < term->cols - 2 ? x + 1 : term->cols - 2, 0x2026,
                      ui_style(ui, ROLE_DIM));
            break;
        }
        x += term_text(term, y, x, 3, " \xe2\x94\x82 ", ui_style(ui, ROLE_DIM));
        if (c->count > 1)
            x += term_textf(term, y, x, 4, ui_style(ui, ROLE_KEY), "%d: ", i + 1);
        x += term_text(term, y, x, term->cols - 1 - x, f.text,
                       ui_style(ui, f.allowed ? ROLE_TEXT : ROLE_DIM));
    }
}

/* ---- the row ---------------------------------------------------------------- */

/* Columns of the lines of a row: the entry, its number, its bar, and why it is there. */
typedef struct RowColumns {
    int place, number, bar; /* widths; bar 0: none */
} RowColumns;

static void place_of(const Pane *pane, const Row *row, const RowCell *cell, char *text, size_t size)
{
    const char *token = col_token(pane, row->view, cell->key);
    char        label[TOKEN_BYTES] = "";

    if (token)
        utf8_token(token, false, label, sizeof(label));
    snprintf(text, size, "%lld %.100s", (long long)cell->key, label);
}

/* Nine columns at most: "-8.959e-05" has a digit less.  The name of a category that has one. */
static void number_text(const Row *row, const RowCell *cell, char *text, size_t size)
{
    double             value = (double)cell->value;
    const char *const *names = row->minus ? NULL : row->view->categories;

    if (names) {
        snprintf(text, size, "%s", value < 0 ? "none" : names[(int)value]);
        return;
    }
    snprintf(text, size, row->minus ? "%+.3g" : "%.4g", value);
    if (strlen(text) > 9)
        snprintf(text, size, row->minus ? "%+.2g" : "%.3g", value);
}

/* Widths that hold all of the cells' texts: places, numbers, and what allows a cell. */
typedef struct RowTexts {
    int places, numbers, reasons;
} RowTexts;

static RowTexts row_texts(const Pane *pane, const Row *row, const RowCell *cells, int64_t count)
{
    RowTexts t = { .numbers = 10, .reasons = 9 };

    for (int64_t i = 0; i < count; i++) {
        char text[128];

        place_of(pane, row, &cells[i], text, sizeof(text));
        t.places = term_width(text) > t.places ? term_width(text) : t.places;
        number_text(row, &cells[i], text, sizeof(text));
        t.numbers = term_width(text) >= t.numbers ? term_width(text) + 1 : t.numbers;
        reason_text(row, cells[i].bits, text, sizeof(text));
        t.reasons = term_width(text) > t.reasons ? term_width(text) : t.reasons;
    }
    return t;
}

/* The number of a category is no length. */
static bool row_has_bars(const Row *row)
{
    return row->view->kind != VIEW_BUCKETS;
}

/* Where there is little room the names of what allows a cell come before blanks and the bar. */
static RowColumns row_columns(const Row *row, RowTexts t, int width)
{
    RowColumns c = { .place = 14, .number = t.numbers, .bar = BAR_MOST };
    int        room = width - c.place - c.number - t.reasons - 1;

    if (room < 3 && t.places + 1 < c.place) {
        room += c.place - t.places - 1;
        c.place = t.places + 1;
    }
    if (room > BAR_USUAL && t.places + 1 > c.place) {
        int more = t.places + 1 - c.place < room - BAR_USUAL ? t.places + 1 - c.place
                                                           : room - BAR_USUAL;

        c.place += more;
        room -= more;
    }
    c.bar = room < BAR_MOST ? room : BAR_MOST;
    if (c.bar < 0 || !row_has_bars(row))
        c.bar = 0;
    return c;
}

static void draw_row_line(Ui *ui, const Pane *pane, const Row *row, Area area, int line,
                          const RowCell *cell, double most, int64_t k, RowColumns c)
{
    char bits[64], place[128], number[32];
    int  y = area.y + line, bar_x = area.x + c.place + c.number, length, used;

    reason_text(row, cell->bits, bits, sizeof(bits));
    place_of(pane, row, cell, place, sizeof(place));
    term_text(ui->term, y, area.x, c.place - 1, place,
              ui_style(ui, cell->key == k ? ROLE_MARK : ROLE_TEXT));
    number_text(row, cell, number, sizeof(number));
    term_text(ui->term, y, area.x + c.place, c.number - 1, number, ui_style(ui, ROLE_TEXT));
    length = most > 0 ? (int)lround(fabs((double)cell->value) / most * c.bar) : 0;
    for (int x = 0; x < length; x++)
        term_char(ui->term, y, bar_x + x, 0x2588, ui_style(ui, ROLE_METER));
    used = c.place + c.number + (c.bar ? c.bar + 1 : 0);
    term_text(ui->term, y, area.x + used, area.w - used, bits, ui_style(ui, ROLE_DIM));
}

#define BAR_BESIDE 10 /* columns of a bar where columns of lines stand beside each other */
#define GAP        3

/* Columns of lines that stand beside each other, as many as the row fills. */
static int lines_beside(const Row *row, RowTexts t, Area area)
{
    int wide = (t.places + 1 > 14 ? t.places + 1 : 14) + t.numbers + t.reasons + GAP +
               (row_has_bars(row) ? BAR_BESIDE + 1 : 0);
    int64_t needed = (row->count + area.h - 1) / area.h, fit = area.w / wide;

    needed = needed < fit ? needed : fit;
    return needed > 1 ? (int)needed : 1;
}

void row_draw(Ui *ui, const Pane *pane, Row *row, Area area, int64_t k)
{
    const RowCell *cells = ui->inspecting.by_key ? row->cells : row_by_weight(row);
    double         most = 0;
    int64_t        first = 0, shown, room;
    RowTexts       texts;
    RowColumns     columns;
    int            beside, width;

    if (!cells || area.h < 1 || row->count < 1)
        return;
    room = (int64_t)area.h * (1 + area.w / 20); /* of columns as narrow as they may be */
    texts = row_texts(pane, row, cells, row->count < room ? row->count : room);
    beside = lines_beside(row, texts, area);
    room = (int64_t)area.h * beside;
    for (int64_t c = 0; c < row->count; c++) {
        most = fmax(most, fabs((double)cells[c].value));
        first = ui->inspecting.by_key && cells[c].key <= k ? c : first;
    }
    first = first > room / 2 ? first - room / 2 : 0;
    shown = row->count - first < room ? row->count - first : room;
    if (beside == 1)
        texts = row_texts(pane, row, &cells[first], shown);
    width = area.w / beside - (beside > 1 ? GAP : 0);
    columns = row_columns(row, texts, width);
    for (int i = 0; i < (int)shown; i++) {
        Area column = { area.y, area.x + i / area.h * (width + GAP), area.h, width };

        draw_row_line(ui, pane, row, column, i % area.h, &cells[first + i], most, k, columns);
    }
}

/* "query 3: 5 of its 8 strongest keys found, 83.1 % of their weight" */
static void found_summary(const Row *row, int64_t q, char *text, size_t size)
{
    int64_t found = 0;
    double  weight = 0;

    for (int64_t c = 0; c < row->count; c++) {
        bool there = row->cells[c].bits != COMPONENT_OTHER;

        found += there;
        weight += there ? (double)row->cells[c].value : 0;
    }
    snprintf(text, size, "query %lld: %lld of its %lld strongest keys found", (long long)q,
             (long long)found, (long long)row->count);
    if (row->sum > 0)
        snprintf(text + strlen(text), size - strlen(text), ", %.3g %% of their weight",
                 100 * weight / row->sum);
}

#define SUM_OFF 1e-3

/* Of the view of all weights, where they do not sum to 1; NULL: they do, or nothing is known. */
static const char *why_no_one(const Pane *pane, const Row *row)
{
    const Mechanism *m = mechanism_find(pane->request.mechanism);

    return m && row->view && !strcmp(row->view->name, "weights") && row->count > 0 &&
                   fabs(row->sum - 1) > SUM_OFF
               ? m->row_sum
               : NULL;
}

void row_summary(const Pane *pane, int64_t q, char *text, size_t size)
{
    const Row  *row = &pane->row;
    const char *entries = !row->view ? "" : row->view->cols, *why = why_no_one(pane, row);
    char        sum[80] = "";

    if (why)
        snprintf(sum, sizeof(sum), " (%s)", why);
    if (row->minus)
        snprintf(text, size, "row %lld: difference to pane 1 at %lld of %lld keys, sum |\xce\x94| "
                             "%.4f",
                 (long long)q, (long long)row->count, (long long)row->all, row->magnitude);
    else if (row->view && row->view->kind == VIEW_WEIGHTS && !row_attends(row->view))
        snprintf(text, size, "row %lld: %lld of %lld %ss above 0, sum %.4f", (long long)q,
                 (long long)row_weighed(row), (long long)row->all, entries, row->sum);
    else if (row->view && row->view->kind == VIEW_WEIGHTS)
        snprintf(text, size, "row %lld: %lld of %lld keys allowed, sum %.4f%s, entropy %.3g "
                             "nats",
                 (long long)q, (long long)row->count, (long long)row->all, row->sum, sum,
                 row->entropy);
    else if (row->view && row->view->found)
        found_summary(row, q, text, size);
    else if (row->view && row->view->kind == VIEW_HOPS)
        snprintf(text, size, "query %lld is reached by %lld of %lld tokens, mean %.3g layers",
                 (long long)q, (long long)row->count, (long long)row->all,
                 row->count ? row->sum / (double)row->count : 0);
    else
        snprintf(text, size, "%s %lld: %lld of %lld %ss", row->view ? row->view->rows : "row",
                 (long long)q, (long long)row->count, (long long)row->all, entries);
}

/* "mean of queries 3, 17, 20: 24 of 64 keys, sum 1.0000" */
void marked_summary(Ui *ui, const Pane *pane, char *text, size_t size)
{
    const Row *row = &pane->marked;
    int64_t    queries[MARGIN_QUERIES_MOST];
    int        count = pane_marked(ui, pane, queries);
    Text       out = { 0 };

    text_addf(&out, "%s of %d marked quer%s", ui->compare.marks.summed ? "sum" : "mean", count,
              count == 1 ? "y" : "ies");
    for (int k = 0; k < count && k < 8; k++)
        text_addf(&out, "%s%lld", k ? ", " : " (", (long long)queries[k]);
    text_addf(&out, "%s): %lld of %lld %ss", count > 8 ? ", \xe2\x80\xa6" : "",
              (long long)row->count, (long long)row->all, row->view ? row->view->cols : "key");
    if (row->view && row->view->kind == VIEW_HOPS) {
        text_addf(&out, ", %.3g layers on average",
                  row->count ? row->sum / (double)row->count : 0);
        if (ui->compare.marks.summed)
            text_add(&out, " together");
    } else {
        text_addf(&out, ", sum %.4f", row->sum);
    }
    if (row->view && row->view->kind == VIEW_WEIGHTS && !row->minus)
        text_addf(&out, ", entropy %.3g nats", row->entropy);
    snprintf(text, size, "%s", text_str(&out));
    text_free(&out);
}

/* The weights of a row sum to 1: warn when they clearly do not. */
Role row_role(const Row *row)
{
    return row->view && row_attends(row->view) && !row->minus && row->count > 0 &&
                   !(row->sum >= 0.9 && row->sum <= 1.1)
               ? ROLE_WARN
               : ROLE_DIM;
}

/* ---- the column beside the panes -------------------------------------------- */

/* In a narrow column the number comes first. */
static const char *facts_short(const CellFacts *f)
{
    size_t length = strlen(REACHED_IN);

    return !f->known                                  ? "\xe2\x80\x94"
           : !strncmp(f->text, REACHED_IN, length) ? f->text + length
                                                      : f->text;
}

#define NAMES_USUAL 18

/* Columns of the panes' names: fewer than usual where the facts need them, more where they do
 * not; of a lone pane none before the facts are cut. */
static int names_width(const Ui *ui, const CellFacts *facts, int width)
{
    const Compare *c = &ui->compare;
    int            widest = 0, longest = 0;

    for (int i = 0; i < c->count; i++) {
        int  text = term_width(facts_short(&facts[i])), named;
        char name[80];

        pane_placed_name(ui, i, sizeof(name), name, sizeof(name));
        named = term_width(name);
        widest = named > widest ? named : widest;
        longest = text > longest ? text : longest;
    }
    if (widest > NAMES_USUAL && longest <= width - widest - 5)
        return widest;
    if (c->count == 1 && longest > width - widest - 5) /* the pane's frame shows the name */
        return 0;
    return longest <= width - NAMES_USUAL - 5 || widest > NAMES_USUAL ? NAMES_USUAL : widest;
}

#define FACT_COLUMNS   30 /* "0.03761 #51/97 window+global" */
#define REASON_COLUMNS 14
#define BAR_LEAST      8
#define LABELS_READ    4096

/* Columns of the longest place of a row: its number and the token's label. */
static int places_width(const Ui *ui)
{
    const Input *input = session_input(ui->session);
    int          digits = 1, longest = 0;

    if (!input)
        return 14;
    for (int64_t n = input->m; n >= 10; n /= 10)
        digits++;
    for (int64_t k = 0; input->k_tokens && k < input->m && k < LABELS_READ; k++) {
        int width = term_width(input->k_tokens[k]);

        longest = width > longest ? width : longest;
    }
    longest = longest > TOKEN_COLUMNS ? TOKEN_COLUMNS : longest;
    return digits + longest + 2 > 14 ? digits + longest + 2 : 14;
}

int inspect_columns(Ui *ui, int *wanted)
{
    int names = NAMES_USUAL, row = places_width(ui) + 10 + 1 + REASON_COLUMNS, facts, with_bars;

    for (int i = 0; i < ui->compare.count; i++) {
        char name[80];

        pane_placed_name(ui, i, sizeof(name), name, sizeof(name));
        names = term_width(name) > names ? term_width(name) : names;
    }
    facts = names + 1 + FACT_COLUMNS;
    with_bars = row + BAR_MOST;
    row += BAR_LEAST;
    *wanted = 4 + (with_bars > facts ? with_bars : facts);
    return 4 + (row > facts ? row : facts);
}

/* What every pane shows of the cell, a line each; returns the lines used. */
static int draw_facts(Ui *ui, Area area, int64_t q, int64_t k)
{
    Compare  *c = &ui->compare;
    CellFacts facts[PANES_MOST];
    int       names, count = c->count < area.h ? c->count : area.h;

    for (int i = 0; i < c->count; i++)
        facts[i] = cell_facts(ui, &c->panes[i], q, k);
    names = names_width(ui, facts, area.w + 4);
    for (int i = 0; i < count; i++) {
        int  x = names ? names + 1 : 0;
        char name[80];

        pane_placed_name(ui, i, names, name, sizeof(name));
        if (names)
            term_text(ui->term, area.y + i, area.x, names, name,
                      ui_style(ui, i == c->now.focus ? ROLE_TITLE : ROLE_TEXT));
        term_text(ui->term, area.y + i, area.x + x, area.w - x, facts_short(&facts[i]),
                  ui_style(ui, facts[i].allowed ? ROLE_TEXT : ROLE_DIM));
    }
    return count;
}

#define SUMMARY_LINES 3

void inspect_dock(Ui *ui, Area area)
{
    Pane   *pane = panes_focus(ui);
    int64_t q, k;
    char    title[300], summary[200];
    int     wanted, least = inspect_columns(ui, &wanted);
    bool    marked, wide = area.w >= 2 * least;
    Area    text = { area.y + 1, area.x + 2, area.h - 2, area.w - 4 }, row;

    if (!pane || !pane_view(pane) || area.h < 8)
        return;
    pane_cursor(pane, &q, &k);
    cursor_title(ui, pane, area.w - 6, title, sizeof(title));
    ui_frame(ui, area, title, false);
    text.w = wide ? least - 4 : text.w;
    row = (Area){ text.y, text.x + text.w + GAP, text.h, area.w - 4 - text.w - GAP };
    text.y += draw_facts(ui, text, q, k) + 1;
    marked = pane_marked_row(ui, pane);
    if (!marked && !pane_row(ui, pane, q))
        return;
    if (marked)
        marked_summary(ui, pane, summary, sizeof(summary));
    else
        row_summary(pane, q, summary, sizeof(summary));
    text.h = area.y + area.h - 1 - text.y < SUMMARY_LINES ? area.y + area.h - 1 - text.y
                                                          : SUMMARY_LINES;
    text.y += term_paragraph(ui->term, text, summary,
                             ui_style(ui, marked ? ROLE_KEY : row_role(&pane->row)));
    if (!wide)
        row = (Area){ text.y + 1, text.x, area.y + area.h - text.y - 2, text.w };
    row_draw(ui, pane, marked ? &pane->marked : &pane->row, row, k);
}
