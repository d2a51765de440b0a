/* model_text.c -- the text of the screen Model: each token by its loss, the change by a swap. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/colour/colour.h"
#include "ui/screen/model.h"

/* ---- colours -------------------------------------------------------------------- */

/* Where colours are few, attributes say the rest. */
static Style on_colour(const Ui *ui, Rgb rgb)
{
    return ui->term->colours == TERM_MONO ? (Style){ 0 } : style_on(rgb, colour_nearest_256(rgb));
}

static Style in_colour(const Ui *ui, Rgb rgb)
{
    if (ui->term->colours == TERM_MONO)
        return (Style){ 0 };
    return (Style){ .fg = ink_of(rgb, colour_nearest_256(rgb)) };
}

#define NLL_MOST 10 /* nats; a token of this loss or more has the full colour */

static Style style_of_nll(const Ui *ui, double nll)
{
    double t = nll / NLL_MOST;
    Rgb    low = theme_dark(ui->theme) ? (Rgb){ 24, 24, 28 } : (Rgb){ 250, 250, 250 };
    Rgb    high = theme_dark(ui->theme) ? (Rgb){ 230, 97, 0 } : (Rgb){ 240, 110, 10 };
    Style  style;

    if (!(t > 0.05))
        return ui_style(ui, ROLE_TEXT);
    if (ui->term->colours == TERM_MONO)
        return (Style){ .attr = t > 0.6 ? ATTR_REVERSE : t > 0.3 ? ATTR_UNDERLINE : 0 };
    style = on_colour(ui, colour_mix(low, high, t < 1 ? t : 1));
    return style;
}

/* ---- the text ------------------------------------------------------------------------- */

/* Line and column of each token. */
typedef struct TextPlan {
    int     width;
    int64_t line;
    int     col;
} TextPlan;

static bool ends_line(const char *label)
{
    return strstr(label, "\xe2\x90\x8a") != NULL; /* the picture of a newline */
}

/* Columns of the word that the token begins: its own, and those up to the next blank.  0: it goes
 * on with one. */
static int word_width(const Modelling *m, int64_t token, int most)
{
    int64_t next = token + 1;
    int     width = term_width(m->label[token]);

    if (token > 0 && *m->label[token] != ' ' && !ends_line(m->label[token - 1]))
        return 0;
    while (next < m->reading.tokens.count && width <= most && *m->label[next] != ' ' &&
           !ends_line(m->label[next - 1]))
        width += term_width(m->label[next++]);
    return width;
}

static int place_token(const Modelling *m, TextPlan *p, int64_t token, int64_t *line, int *col)
{
    const char *label = m->label[token];
    int         width = term_width(label), word = word_width(m, token, p->width);

    width = width < p->width ? width : p->width;
    word = word > width && word <= p->width ? word : width; /* a longer one is broken anyway */
    if (p->col + word > p->width) {
        p->line++;
        p->col = 0;
    }
    *line = p->line;
    *col = p->col;
    p->col += width;
    if (ends_line(label)) {
        p->line++;
        p->col = 0;
    }
    return width;
}

static int64_t line_of(const Modelling *m, int64_t token, int width)
{
    TextPlan p = { .width = width };
    int64_t  line = 0;
    int      col;

    for (int64_t i = 0; i <= token; i++)
        place_token(m, &p, i, &line, &col);
    return line;
}

static double nll_of(const ForwardMeasure *measure, int64_t token)
{
    return measure && measure->nll && token > 0 ? measure->nll[token - 1] : (double)NAN;
}

/* Of the swapped model where there is one. */
static const ForwardMeasure *shown_measure(const Modelling *m)
{
    return m->swapped.measure ? &m->swapped.measure[1] : m->plain.measure;
}

static void draw_tokens(Ui *ui, Area area)
{
    Modelling            *m = ui->modelling;
    const ForwardMeasure *measure = shown_measure(m);
    TextPlan              p = { .width = area.w };
    int64_t               line, n = m->reading.tokens.count;
    int                   col;

    line = line_of(m, m->token, area.w);
    m->top = line < m->top ? line : line >= m->top + area.h ? line - area.h + 1 : m->top;
    for (int64_t i = 0; i < n; i++) {
        int   width = place_token(m, &p, i, &line, &col);
        Style style = style_of_nll(ui, nll_of(measure, i));

        if (line >= m->top + area.h)
            break;
        if (line < m->top)
            continue;
        if (i == m->token)
            style = ui_style(ui, ROLE_SELECT);
        term_text(ui->term, area.y + (int)(line - m->top), area.x + col, width, m->label[i], style);
    }
}

/* ---- the strip: change of the loss of each token --------------------------------------- */

/* The largest change, by size, among the tokens of a column. */
static double change_at(const Modelling *m, int64_t first, int64_t last)
{
    const ForwardMeasure *f = m->swapped.measure;
    double                most = (double)NAN;

    for (int64_t i = first > 1 ? first : 1; i < last; i++) {
        double change = f[1].nll[i - 1] - f[0].nll[i - 1];

        if (!isnan(change) && !(fabs(change) <= fabs(most)))
            most = change;
    }
    return most;
}

/* Falls hang from the line below, drawn as what is left of a full cell. */
static void draw_change(Ui *ui, int y, int x, double share, bool low)
{
    static const Rgb worse = { 230, 97, 0 }, better = { 60, 130, 230 };
    int              level = (int)lround(fabs(share) * 8);
    Style            style = in_colour(ui, share > 0 ? worse : better);

    if (!ui->term->utf8) {
        if ((share > 0) != low && level > 0)
            term_char(ui->term, y, x, level > 5 ? '#' : level > 2 ? '+' : '.', style);
        return;
    }
    if (level > 0 && share > 0 && !low)
        term_char(ui->term, y, x, 0x2580 + (uint32_t)(level > 8 ? 8 : level), style);
    if (level > 0 && share < 0 && low) {
        style.attr |= ATTR_REVERSE;
        term_char(ui->term, y, x, level >= 8 ? ' ' : 0x2580 + (uint32_t)(8 - level), style);
    }
}

static void draw_strip(Ui *ui, Area area)
{
    const Modelling *m = ui->modelling;
    int64_t          n = m->reading.tokens.count;
    double           most = fabs(change_at(m, 0, n));
    int              columns = n < area.w ? (int)n : area.w;

    for (int c = 0; c < columns; c++) {
        int64_t first = n * c / columns, last = n * (c + 1) / columns;
        double  change = change_at(m, first, last);
        bool    here = m->token >= first && m->token < last;

        if (!isnan(change) && most > 0) {
            draw_change(ui, area.y, area.x + c, change / most, false);
            if (area.h > 1)
                draw_change(ui, area.y + 1, area.x + c, change / most, true);
        }
        if (here)
            term_char(ui->term, area.y + area.h, area.x + c, 0x25B4, ui_style(ui, ROLE_MARK));
    }
}

static void text_title(const Modelling *m, char *title, size_t size)
{
    const ForwardMeasure *f = m->swapped.measure;
    double                nll = nll_of(shown_measure(m), m->token);
    size_t                used;

    used = (size_t)snprintf(title, size, "token %lld of %lld", (long long)m->token,
                            (long long)m->reading.tokens.count);
    if (!isnan(nll) && used < size)
        used += (size_t)snprintf(title + used, size - used, ": %.3f nats", nll);
    if (f && f[1].nll && m->token > 0 && used < size)
        used += (size_t)snprintf(title + used, size - used, " (%+.3f)",
                                 f[1].nll[m->token - 1] - f[0].nll[m->token - 1]);
    if (!f && used < size && m->plain.measure && m->plain.measure[0].nll)
        snprintf(title + used, size - used, "; the brighter, the harder to predict");
    if (f && f[1].nll && used < size)
        snprintf(title + used, size - used, "; bars: each token's change, up to %.2f nats",
                 fabs(change_at(m, 0, m->reading.tokens.count)));
}

void model_draw_text(Ui *ui, Area area)
{
    Modelling *m = ui->modelling;
    Area       inside = { area.y + 1, area.x + 1, area.h - 2, area.w - 2 }, strip;
    bool       changes = m->swapped.measure && m->swapped.measure[1].nll;
    char       title[96];

    text_title(m, title, sizeof(title));
    ui_frame(ui, area, title, false);
    if (changes) { /* its marks stand in the frame's lower edge */
        strip = inside;
        strip.h = inside.h >= 5 ? 2 : 1;
        strip.y = inside.y + inside.h - strip.h;
        inside.h -= strip.h;
        draw_strip(ui, strip);
    }
    m->line_tokens = inside.w / 5 > 0 ? inside.w / 5 : 1;
    if (inside.h > 0)
        draw_tokens(ui, inside);
}
