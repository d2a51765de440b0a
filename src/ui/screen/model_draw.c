/* model_draw.c -- the screen Model: a grid of heads by label, next tokens, the whole. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/study/heads.h"
#include "input/labels.h"
#include "ui/pane/head_label.h"
#include "ui/screen/model.h"

/* ---- the grid of heads -------------------------------------------------------------- */

#define LABEL_COLS 4
#define SIDE_LEAST 30 /* columns that the next tokens want beside the grid */

/* Layers in blocks side by side, so that more of them are in sight. */
typedef struct GridPlan {
    int     rows, blocks, cell;
    int64_t heads; /* in sight */
    int     width; /* with the frame */
} GridPlan;

static GridPlan plan_with(const Modelling *m, Area area, int cell)
{
    int64_t  layers = m->model->config.layers, heads = m->model->config.heads;
    GridPlan p = { .rows = area.h - 2, .cell = cell, .heads = heads };

    p.rows = p.rows > 0 ? p.rows : 1;
    p.blocks = (int)((layers + p.rows - 1) / p.rows);
    p.width = 2 + p.blocks * (LABEL_COLS + (int)heads * cell);
    return p;
}

/* The widest cells with which all fit, else as many layers and heads as fit. */
static GridPlan plan_grid(const Modelling *m, Area area)
{
    GridPlan p;
    int      room = area.w - SIDE_LEAST;

    for (int cell = 4; cell > 0; cell--) {
        p = plan_with(m, area, cell);
        if (p.width <= room)
            return p;
    }
    p.blocks = (room - 2) / (LABEL_COLS + (int)p.heads);
    if (p.blocks < 1) {
        p.blocks = 1;
        p.heads = room - 2 - LABEL_COLS;
    }
    p.width = 2 + p.blocks * (LABEL_COLS + (int)p.heads);
    return p;
}

/* The choice stays in sight. */
static void scroll_grid(Modelling *m, const GridPlan *p)
{
    int64_t shown = (int64_t)p->rows * p->blocks, layers = m->model->config.layers;

    m->first = m->layer < m->first            ? m->layer
               : m->layer >= m->first + shown ? m->layer - shown + 1
                                              : m->first;
    if (shown >= layers)
        m->first = 0;
    m->across = m->head < m->across                ? m->head
                : m->head >= m->across + p->heads ? m->head - p->heads + 1
                                                  : m->across;
    if (p->heads >= m->model->config.heads)
        m->across = 0;
}

static void draw_cell(Ui *ui, int64_t layer, int64_t head, int y, int x, int cell)
{
    const Modelling  *m = ui->modelling;
    bool              there = layer < atomic_load(&m->rows), chosen, marked;
    const HeadScores *s = &m->scores[layer * m->model->config.heads + head];
    Style             style = ui_style(ui, ROLE_DIM);
    char              letter[2];

    marked = there && head_label_mark(ui, s->shown, letter, &style);
    chosen = layer == m->layer && head == m->head;
    if (chosen)
        style = ui_style(ui, ROLE_SELECT);
    if (marked || chosen)
        term_fill(ui->term, (Area){ y, x, 1, cell }, ' ', style);
    if (marked)
        term_text(ui->term, y, x + (cell - 1) / 2, 1, letter, style);
    else
        term_char(ui->term, y, x + (cell - 1) / 2, 0x00B7, style);
}

static void draw_grid(Ui *ui, Area area, const GridPlan *p)
{
    const Modelling *m = ui->modelling;
    int64_t          layers = m->model->config.layers;
    static const char *const words[3][2] = { { " layers, ", " heads" }, { " layers x ", "" },
                                             { " x ", "" } }; /* the first that fits */
    char             title[64];

    for (size_t f = 0; !f || (f < 3 && (int)strlen(title) > area.w - 6); f++)
        snprintf(title, sizeof(title), "%lld%s%lld%s", (long long)layers, words[f][0],
                 (long long)m->model->config.heads, words[f][1]);
    ui_frame(ui, area, title, true);
    for (int64_t i = 0; i < (int64_t)p->rows * p->blocks && m->first + i < layers; i++) {
        int64_t layer = m->first + i;
        int     y = area.y + 1 + (int)(i % p->rows);
        int     x = area.x + 1 +
                (int)(i / p->rows) * (LABEL_COLS + (int)p->heads * p->cell);

        term_textf(ui->term, y, x, LABEL_COLS, ui_style(ui, layer == m->layer ? ROLE_TITLE
                                                                             : ROLE_DIM),
                   "%3lld", (long long)layer);
        for (int64_t h = 0; h < p->heads; h++)
            draw_cell(ui, layer, m->across + h, y, x + LABEL_COLS + (int)h * p->cell, p->cell);
    }
}

/* ---- beside the grid ------------------------------------------------------------------ */

static void token_text(const Model *model, int32_t id, char *text, size_t size)
{
    Arena *arena = arena_new();
    char   bytes[512];
    int64_t length = model_token_label(model, id, true, bytes, sizeof(bytes));
    const char *label;

    label = arena ? labels_copy(arena, (const uint8_t *)bytes, length) : NULL;
    snprintf(text, size, "%.60s", label ? label : "");
    arena_free(arena);
}

/* Five lines: probability, a bar, the token; a dot before the one that follows in the text. */
static void draw_next(Ui *ui, Area area, const ForwardMeasure *measure)
{
    const Modelling *m = ui->modelling;
    int64_t          n = m->reading.tokens.count;
    int32_t          follows = m->token + 1 < n ? m->reading.tokens.ids[m->token + 1] : -1;
    int              bar = area.w > 44 ? 12 : area.w > 24 ? 5 : 0;

    for (int i = 0; i < FORWARD_NEXT && i < area.h; i++) {
        const NextToken *next = &measure->next[m->token * FORWARD_NEXT + i];
        int              y = area.y + i, full = (int)lround(next->p * bar);
        char             text[80];
        Style            style = ui_style(ui, ROLE_TEXT);

        if (!(next->p >= 0))
            continue;
        token_text(m->model, next->id, text, sizeof(text));
        if (next->id == follows && m->model->config.causal) {
            style.attr |= ATTR_BOLD;
            term_char(ui->term, y, area.x, 0x25CF, ui_style(ui, ROLE_MARK));
        }
        term_textf(ui->term, y, area.x + 2, 6, ui_style(ui, ROLE_TEXT), "%.3f", next->p);
        for (int c = 0; c < full; c++)
            term_char(ui->term, y, area.x + 8 + c, 0x2588, ui_style(ui, ROLE_METER));
        term_textf(ui->term, y, area.x + 9 + bar, area.w - 9 - bar, style, "\"%s\"", text);
    }
}

static void add_score(Text *out, const char *name, double value)
{
    if (!isnan(value))
        text_addf(out, "%s%s %.2f", out->length ? "  " : "", name, value);
}

/* A text gives no head this label, however high the score is (docs/models.md). */
static const char *unlabelled(double induction)
{
    return induction >= HEAD_LEAST_INDUCTION ? " (no label without heads --repeat)" : "";
}

#define SCORE_LINES 4 /* of a head's scores, with its name */

static void score_paragraph(Ui *ui, Area area, const HeadScores *s)
{
    Text out = { 0 };
    char back[32];

    add_score(&out, "previous", s->previous);
    add_score(&out, "self", s->self);
    add_score(&out, "first", s->first);
    add_score(&out, "next", s->next);
    add_score(&out, "induction", s->induction);
    text_add(&out, unlabelled(s->induction));
    add_score(&out, "entropy", s->entropy);
    add_score(&out, "distance", s->distance);
    add_score(&out, "near", s->near);
    snprintf(back, sizeof(back), "%lld back", (long long)s->offset_tokens);
    add_score(&out, back, s->offset);
    term_paragraph(ui->term, area, text_str(&out), ui_style(ui, ROLE_DIM));
    text_free(&out);
}

#define SCORE_COLS 60 /* of a score with its bar and its meaning */
#define SCORE_BAR  10
#define IN_TEXT(number)  TEXT_OF(number)
#define TEXT_OF(literal) #literal

/* A line for each score: what it is the share of. */
static int score_lines(Ui *ui, Area area, const HeadScores *s)
{
    static const char *const meanings[HEAD_SCORE_COUNT] = {
        [HEAD_PREVIOUS] = "of its weight on the token before",
        [HEAD_SELF] = "on the token itself",
        [HEAD_FIRST] = "on the first token",
        [HEAD_NEXT] = "on the token after",
        [HEAD_INDUCTION] = "on what followed the same token before",
        [HEAD_NEAR] = "on tokens up to " IN_TEXT(HEAD_NEAR_KEYS) " away",
        [HEAD_ENTROPY] = "nats: large where it looks at many",
        [HEAD_DISTANCE] = "tokens away on average",
        [HEAD_OFFSET] = "on the token ",
    };
    int  lines = 0;
    char back[32];

    for (int i = 0; i < HEAD_SCORE_COUNT; i++) {
        double value = head_score(s, (HeadScore)i);
        bool   share = i != HEAD_ENTROPY && i != HEAD_DISTANCE;
        int    y = area.y + lines, full = share ? (int)lround(value * SCORE_BAR) : 0;

        if (isnan(value))
            continue;
        term_textf(ui->term, y, area.x, 18, ui_style(ui, ROLE_TEXT), "%-10s%6.2f",
                   head_score_name((HeadScore)i), value);
        for (int c = 0; c < full && c < SCORE_BAR; c++)
            term_char(ui->term, y, area.x + 17 + c, 0x2588, ui_style(ui, ROLE_METER));
        if (i == HEAD_OFFSET)
            snprintf(back, sizeof(back), "%lld back", (long long)s->offset_tokens);
        term_textf(ui->term, y, area.x + 18 + SCORE_BAR, area.w - 18 - SCORE_BAR,
                   ui_style(ui, ROLE_DIM), "%s%s", meanings[i],
                   i == HEAD_INDUCTION ? unlabelled(value) : i == HEAD_OFFSET ? back : "");
        lines++;
    }
    return lines;
}

static double harder(const Modelling *m, int64_t token)
{
    const ForwardMeasure *f = m->swapped.measure;

    if (!f)
        return m->plain.measure[0].nll[token - 1];
    return f[1].nll[token - 1] - f[0].nll[token - 1];
}

static bool has_losses(const Modelling *m)
{
    return m->plain.measure && m->plain.measure[0].nll &&
           (!m->swapped.measure || m->swapped.measure[1].nll);
}

/* The token after `last` in falling order of `harder`, which is `bound` for `last`; -1: none. */
static int64_t next_hardest(const Modelling *m, double bound, int64_t last)
{
    int64_t best = -1;

    for (int64_t i = 1; i < m->reading.tokens.count; i++) {
        double value = harder(m, i);
        bool   after = value < bound || (value == bound && i > last);

        if (after && (best < 0 || value > harder(m, best)))
            best = i;
    }
    return best;
}

int64_t model_hardest(const Modelling *m, bool before, double *nats)
{
    double  bound = HUGE_VAL;
    int64_t token = has_losses(m) ? next_hardest(m, bound, 0) : -1, last = -1;

    while (token >= 0 && m->token > 0 && last != m->token) {
        if (before && token == m->token)
            break;
        last = token;
        bound = harder(m, token);
        token = next_hardest(m, bound, token);
    }
    token = before ? last : token;
    if (token >= 0)
        *nats = harder(m, token);
    return token;
}

/* Where the model, or the swap, fails: in the room that is left. */
static void draw_hardest(Ui *ui, Area area)
{
    const Modelling *m = ui->modelling;
    double           bound = HUGE_VAL;
    int64_t          token = 0;

    if (area.h < 3 || !has_losses(m))
        return;
    term_text(ui->term, area.y, area.x, area.w,
              m->swapped.measure ? "tokens that the swap makes hardest, in nats"
                                 : "tokens that are hardest, in nats",
              ui_style(ui, ROLE_TITLE));
    for (int y = 1; y < area.h; y++) {
        token = next_hardest(m, bound, token);
        if (token < 0)
            return;
        bound = harder(m, token);
        term_textf(ui->term, area.y + y, area.x, area.w,
                   ui_style(ui, token == m->token ? ROLE_SELECT : ROLE_TEXT),
                   "%8.3f  token %4lld  \"%s\" after \"%s%s\"", bound, (long long)token,
                   m->label[token] + strspn(m->label[token], " "),
                   token > 1 ? m->label[token - 2] : "", m->label[token - 1]);
    }
}

static void draw_scores(Ui *ui, Area area)
{
    const Modelling  *m = ui->modelling;
    const HeadScores *s = &m->scores[m->layer * m->model->config.heads + m->head];
    bool              there = m->layer < atomic_load(&m->rows);
    int               lines;
    char              words[32];

    if (area.h < 1)
        return;
    term_textf(ui->term, area.y, area.x, area.w, ui_style(ui, ROLE_TITLE),
               "layer %lld head %lld%s%s",
               (long long)m->layer, (long long)m->head, there ? ": " : "",
               there && s->label ? head_label_words(s, words, sizeof(words)) : "");
    if (!there)
        return;
    area.y++;
    area.h--;
    if (area.h < HEAD_SCORE_COUNT || area.w < SCORE_COLS) {
        score_paragraph(ui, area, s);
        return;
    }
    lines = score_lines(ui, area, s) + 1;
    draw_hardest(ui, (Area){ area.y + lines, area.x, area.h - lines, area.w });
}

/* In the frame's first line: whose columns stand below, those of the swap from `second` on; 0: they
 * stand alone, and are named from x on. */
static void name_columns(Ui *ui, Area area, int x, int second)
{
    Style style = ui_style(ui, ROLE_MARK);
    int   room = area.w - 2 - (second ? second : x);

    if (second && x + 10 < second)
        term_text(ui->term, area.y, area.x + x, 10, " as it is ", style);
    if (room > 8)
        term_textf(ui->term, area.y, area.x + (second ? second : x), room, style, " with %s ",
                   ui->modelling->shown);
}

static void draw_side(Ui *ui, Area area)
{
    Modelling   *m = ui->modelling;
    bool         known = m->plain.measure && m->plain.measure[0].next;
    bool         headless = m->model->head.type == WEIGHT_NONE;
    bool         both = known && m->swapped.measure && area.w >= 2 * SIDE_LEAST;
    int          width = both ? (area.w - 2) / 2 : area.w - 2, gap;
    char         title[160];
    Area         inside = { area.y + 1, area.x + 1, area.h - 2, width - 1 }, swapped;

    snprintf(title, sizeof(title), "%s \"%.60s\"", m->model->config.causal ? "after"
                                                   : headless ? "token" : "at",
             m->label[m->token] + strspn(m->label[m->token], m->model->config.causal ? "" : " "));
    ui_frame(ui, area, title, false);
    if (known && m->swapped.measure)
        name_columns(ui, area, 4 + term_width(title), both ? width : 0);
    if (!known)
        term_paragraph(ui->term, inside,
                       headless        ? "this model has no head that predicts tokens"
                       : model_runs(m) ? "the next tokens come with the forward pass"
                                       : "no forward pass was made; r runs it",
                       ui_style(ui, ROLE_DIM));
    else if (m->swapped.measure && !both)
        draw_next(ui, inside, &m->swapped.measure[1]);
    else
        draw_next(ui, inside, &m->plain.measure[0]);
    if (both) {
        swapped = inside;
        swapped.x += width;
        draw_next(ui, swapped, &m->swapped.measure[1]);
    }
    gap = FORWARD_NEXT + (inside.h > FORWARD_NEXT + SCORE_LINES); /* a blank line if it fits */
    inside.w = area.w - 3;
    inside.y += gap;
    inside.h -= gap;
    draw_scores(ui, inside);
}

/* ---- the whole screen ------------------------------------------------------------------ */

/* What can be done where no model is open: a key and its words. */
static const struct {
    const char *key, *words;
} ways[] = {
    { "Enter", "the small model that is included, on an English text" },
    { "o", "a model of yours: :model PATH TEXT" },
    { "", "PATH is a GGUF file, or a folder with config.json" },
    { "", "TEXT is a file, or sample:english.txt" },
    { "", "from the shell: attnscope model PATH --text TEXT" },
};

static void draw_ways(Ui *ui, Area area)
{
    term_text(ui->term, area.y, area.x, area.w, "No model is open.", ui_style(ui, ROLE_TEXT));
    for (int i = 0; i < (int)(sizeof(ways) / sizeof(*ways)) && i + 2 < area.h; i++) {
        term_text(ui->term, area.y + i + 2, area.x, 7, ways[i].key, ui_style(ui, ROLE_KEY));
        term_text(ui->term, area.y + i + 2, area.x + 8, area.w - 8, ways[i].words,
                  ui_style(ui, *ways[i].key ? ROLE_TEXT : ROLE_DIM));
    }
}

static void draw_empty(Ui *ui, Area area)
{
    const Modelling *m = ui->modelling;
    Area             inside = { area.y + 2, area.x + 3, area.h - 3, area.w - 6 };
    Text             words = { 0 };
    int              lines = 0;

    ui_frame(ui, area, "Model", true);
    if (m && *m->problem)
        text_addf(&words, "%s.", m->problem);
    else if (m && m->job[MODEL_OPENING])
        text_addf(&words, "opening %s", m->spec);
    if (text_str(&words)[0])
        lines = term_paragraph(ui->term, inside, text_str(&words),
                               ui_style(ui, *m->problem ? ROLE_WARN : ROLE_DIM)) + 1;
    text_free(&words);
    inside.y += lines;
    inside.h -= lines;
    if (!m || !m->job[MODEL_OPENING])
        draw_ways(ui, inside);
}

void model_draw(Ui *ui, Area area)
{
    Modelling *m = ui->modelling;
    GridPlan   p;
    int        text;
    Area       top = area;

    if (!m || !m->model || m->job[MODEL_OPENING] || *m->problem) {
        draw_empty(ui, area);
        return;
    }
    text = area.h * 2 / 5 > 5 ? area.h * 2 / 5 : 5;
    top.h = area.h - text - 1;
    p = plan_grid(m, top);
    scroll_grid(m, &p);
    draw_grid(ui, (Area){ top.y, top.x, top.h, p.width }, &p);
    draw_side(ui, (Area){ top.y, top.x + p.width, top.h, area.w - p.width });
    head_label_legend(ui, (Area){ top.y + top.h, area.x + 1, 1, area.w - 1 },
                      HEAD_LABELS_ALL & ~(1u << head_label_index("induction")), true);
    if (m->writing)
        model_draw_written(ui, (Area){ top.y + top.h + 1, area.x, text, area.w });
    else
        model_draw_text(ui, (Area){ top.y + top.h + 1, area.x, text, area.w });
}

/* "KL 0.364 nats  same next token 73 %  window in 0-1"; short: "KL 0.364  agree 73 %  ...". */
static void add_swapped(const Modelling *m, bool brief, Text *out)
{
    const ForwardMeasure *f = m->swapped.measure;
    bool                  all = !strcmp(m->shown_layers.words, "all");

    if (!isnan(f[1].loss))
        text_addf(out, "loss %.3f -> %.3f (%+.3f)  ", f[0].loss, f[1].loss, f[1].delta);
    if (!isnan(f[1].kl))
        text_addf(out, brief ? "KL %.3f  agree %.0f %%  "
                             : "KL %.3f nats  same next token %.0f %%  ", f[1].kl,
                  100 * f[1].agreement);
    else
        text_addf(out, "cosine %.4f  ", f[1].cosine);
    text_addf(out, "%s%s%s%s", m->shown, all ? "" : " in ", all ? "" : m->shown_layers.words,
              f[1].untrained ? ", untrained" : "");
}

bool model_status(const Modelling *m, int room, char *text, size_t size)
{
    const ForwardMeasure *f = m->swapped.measure;
    Text                  out = { 0 };

    if (!m->plain.measure)
        return false;
    if (f) {
        add_swapped(m, false, &out);
        if (term_width(text_str(&out)) > room) {
            text_clear(&out);
            add_swapped(m, true, &out);
        }
    } else {
        if (!isnan(m->plain.measure[0].loss))
            text_addf(&out, "loss %.3f  perplexity %.4g  ", m->plain.measure[0].loss,
                      m->plain.measure[0].perplexity);
        text_addf(&out, "%lld tokens", (long long)m->reading.tokens.count);
    }
    snprintf(text, size, "%s", text_str(&out));
    text_free(&out);
    return true;
}
