/* card.c -- a mechanism's card: all of it as text, and beside the list with a small picture.
 *
 * Everything is from its descriptor.  The picture is a real run on the first 64 tokens of the
 * input, made by a session of its own and kept, so that moving through the list costs nothing.
 */
#include <stdio.h>
#include <string.h>

#include "app/lesson/lesson.h"
#include "app/result/views.h"
#include "ui/screen/browse.h"

static void add_params(const Mechanism *m, Text *out)
{
    if (!m->params[0].name)
        return;
    text_add(out, "\nParameters\n");
    for (const Param *p = m->params; p->name; p++) {
        Text value = { 0 };

        if (p->type == PARAM_TYPE_TENSOR) {
            text_addf(out, "  %s %s: %s\n", p->name, p->shape ? p->shape : "", p->help);
        } else {
            params_print(p, NULL, &value);
            text_addf(out, "  %s = %s: %s\n", p->name, text_str(&value), p->help);
        }
        text_free(&value);
    }
}

static void add_views(const Mechanism *m, Text *out)
{
    text_add(out, "\nViews\n");
    for (const ViewPromise *v = m->views; v && v->name; v++)
        text_addf(out, "  %s: %s\n", v->name, v->help ? v->help : "");
    if (missed_is_promised(m))
        text_addf(out, "  %s: %s\n", MISSED_VIEW, MISSED_HELP);
    if (reach_is_offered(m))
        text_addf(out, "  %s: %s\n", REACH_VIEW, REACH_HELP);
    if (spectrum_is_offered(m))
        text_addf(out, "  %s: %s\n", SPECTRUM_VIEW, SPECTRUM_HELP);
}

void card_text(const Mechanism *m, Text *out)
{
    char classes[64];

    text_addf(out, "%s\n%s", m->title, m->authors ? m->authors : "");
    if (m->year)
        text_addf(out, " %d", m->year);
    if (m->arxiv)
        text_addf(out, ", arXiv:%s", m->arxiv);
    if (m->problem)
        text_addf(out, "\n\nProblem\n%s\n\nIdea\n%s\n\nPrice\n%s\n", m->problem, m->idea,
                  m->price);
    if (m->lesson && m->problem)
        text_add(out, "\n");
    if (m->lesson)
        lesson_reference(m->lesson, out);
    text_addf(out, "\nclass %s", mechanism_classes(m, classes, sizeof(classes)));
    text_addf(out, "   time %s   memory %s\n", m->claim_time ? m->claim_time : "\xe2\x80\x94",
              m->claim_memory ? m->claim_memory : "\xe2\x80\x94");
    text_addf(out, "causal: %s%s%s   decoding: %s\n",
              m->always_causal ? "always" : m->causal ? "yes" : "no",
              !m->causal && m->no_causal ? ", " : "",
              !m->causal && m->no_causal ? m->no_causal : "",
              m->claim_decode ? m->claim_decode : "\xe2\x80\x94");
    if (m->fit)
        text_addf(out, "fit: %s\n", m->fit);
    if (m->sketch)
        text_addf(out, "short inputs: the list opens it with %s\n", m->sketch);
    if (m->teaches)
        text_addf(out, "\nWhat to look for\n%s\n", m->teaches);
    if (m->formula)
        text_addf(out, "\nFormula\n%s\n", m->formula);
    add_params(m, out);
    add_views(m, out);
    if (m->source)
        text_addf(out, "\nSource: %s\n", m->source);
}

#define FACTS_LEAST 11 /* lines beside the picture */

/* ---- thumbnail -------------------------------------------------------------- */

#define LARGE (1 << 20) /* entries from which an input is not read a second time */

/* The first 64 tokens: of what is generated anew, of a large file from memory. */
static bool load_side(Ui *ui, Session *side)
{
    const Input *in = session_input(ui->session);
    InputChoice  choice = *session_choice(ui->session);
    Error        err = ERROR_INIT;
    Input       *first;

    choice.n = in->n < 64 ? choice.n : 64;
    if (in->heads * in->n * (in->d + in->e) < LARGE || !input_can_be_cut(in) ||
        !strncmp(session_input_spec(ui->session), "synthetic:", 10))
        return session_load(side, session_input_spec(ui->session), &choice, &err);
    first = input_cut(in, 64, &err);
    return first && session_set_input(side, first, session_input_spec(ui->session), &err);
}

/* A session of its own: cheap for every mechanism. */
static bool open_side(Ui *ui)
{
    Browse *b = &ui->browse;
    Error   err = ERROR_INIT;

    if (b->side || b->side_failed)
        return b->side != NULL;
    b->side_of = session_input(ui->session);
    b->side_causal = ui->defaults.causal;
    if (!b->side_of)
        return false;
    b->side = session_new(&err);
    if (b->side && !load_side(ui, b->side) &&
        !session_load(b->side, "synthetic:normal(n=64)", NULL, &err)) {
        session_free(b->side);
        b->side = NULL;
    }
    b->side_failed = !b->side;
    return b->side != NULL;
}

/* Drops the pictures of an input that was replaced. */
static void follow_input(Ui *ui)
{
    Browse *b = &ui->browse;

    if (b->side_of == session_input(ui->session) && b->side_causal == ui->defaults.causal)
        return;
    drawing_clear(&ui->draughtsman, &b->thumb);
    job_free(b->thumb_job);
    b->thumb_job = NULL;
    for (int i = 0; i < MARKS_MOST; i++) {
        result_release(b->thumbs[i]);
        b->thumbs[i] = NULL;
        b->thumb_failed[i] = false;
    }
    session_free(b->side);
    b->side = NULL;
    b->side_failed = false;
}

static void want_thumb(Ui *ui, int index)
{
    Browse *b = &ui->browse;
    Request request = REQUEST_INIT;
    Error   err = ERROR_INIT;

    follow_input(ui);
    request.causal = ui->defaults.causal;
    if (b->thumbs[index] || b->thumb_failed[index] || b->thumb_job || !open_side(ui))
        return;
    b->thumb_of = index;
    if (request_first_look(b->side, &request, mechanism_at((size_t)index), &err))
        b->thumb_job = session_submit(b->side, &request, &err);
    b->thumb_failed[index] = !b->thumb_job;
    request_free(&request);
}

bool card_poll(Ui *ui)
{
    Browse  *b = &ui->browse;
    JobState state = b->thumb_job ? job_state(b->thumb_job) : JOB_WAITING;
    bool     changed = drawing_poll(&ui->draughtsman, &b->thumb);

    if (state == JOB_WAITING || state == JOB_RUNNING)
        return changed;
    b->thumbs[b->thumb_of] = job_result(b->thumb_job);
    if (b->thumbs[b->thumb_of] && b->thumbs[b->thumb_of]->run->err.code != ERR_NONE) {
        result_release(b->thumbs[b->thumb_of]);
        b->thumbs[b->thumb_of] = NULL;
    }
    b->thumb_failed[b->thumb_of] = !b->thumbs[b->thumb_of];
    job_free(b->thumb_job);
    b->thumb_job = NULL;
    return true;
}

void card_forget(Ui *ui, const Mechanism *changed)
{
    Browse *b = &ui->browse;

    for (int i = 0; i < MARKS_MOST && mechanism_at((size_t)i); i++) {
        if (mechanism_at((size_t)i) != changed)
            continue;
        drawing_clear(&ui->draughtsman, &b->thumb);
        result_release(b->thumbs[i]);
        b->thumbs[i] = NULL;
        b->thumb_failed[i] = false;
        if (b->thumb_of == i) {
            job_free(b->thumb_job);
            b->thumb_job = NULL;
        }
    }
}

int card_wake_fd(const Ui *ui)
{
    return ui->browse.side ? session_wake_fd(ui->browse.side) : -1;
}

void card_end(Ui *ui)
{
    Browse *b = &ui->browse;

    drawing_clear(&ui->draughtsman, &b->thumb);
    job_free(b->thumb_job);
    for (int i = 0; i < MARKS_MOST; i++)
        result_release(b->thumbs[i]);
    session_free(b->side);
    *b = (Browse){ .order = b->order };
}

/* Returns the lines of the area that the picture takes. */
static int draw_thumb(Ui *ui, Area area, int index)
{
    Browse     *b = &ui->browse;
    Result     *result = b->thumbs[index];
    const View *view = result ? result_view(result, NULL, NULL) : NULL;
    Panel       panel;
    Lens        lens = { 0 };
    LensShape   shape;
    LensView    v;
    MatrixLook  look = { .theme = ui->term->colours == TERM_MONO ? THEME_MONO : ui->theme,
                         .q = -1,
                         .k = -1 };
    GridRequest request;

    if (!view) {
        term_paragraph(ui->term, (Area){ area.y + 1, area.x + 1, 3, area.w - 2 },
                       b->thumb_failed[index] ? "no picture of this input" : "\xe2\x80\xa6",
                       ui_style(ui, ROLE_DIM));
        return area.h;
    }
    panel_init(&panel, view, view_components(view), 0, "");
    look.glyphs = glyphs_for(ui->term, ui->glyphs, &panel);
    shape = (LensShape){ .rows = view_rows(view),
                         .cols = view_cols(view),
                         .tall = glyphs_size(look.glyphs).tall,
                         .even = true };
    matrix_pixels(area, look.glyphs, &shape.height, &shape.width);
    v = lens_view(&lens, &shape);
    request = (GridRequest){ .view = view,
                             .components = panel.components,
                             .region = lens_region(&v),
                             .rows = v.row.cells,
                             .cols = v.col.cells };
    drawing_want(&ui->draughtsman, &b->thumb, &request, result, NULL);
    if (b->thumb.grid.cells && b->thumb.shown == view)
        matrix_draw(ui->term, area, &panel, &b->thumb.grid, &v, &look);
    return (v.row.span + glyphs_size(look.glyphs).down - 1) /
           glyphs_size(look.glyphs).down;
}

#define LABEL 8 /* columns of a label and the blanks behind it */

/* Bytes of whole words that have room in so many columns, which are ASCII. */
static int words_in(const char *text, int room)
{
    int length = 0;

    for (int i = 0; text[i] && i <= room; i++)
        if (text[i] == ' ' || (!text[i + 1] && i < room))
            length = i + (text[i] != ' ');
    return length;
}

/* Beside its label, nearer to it, or below; what has no room in a line begins beside it. */
static void draw_fact(Ui *ui, Area *area, const char *label, const char *value)
{
    int  width = term_width(value), near = term_width(label) + 1, used;
    int  at = LABEL + width <= area->w ? LABEL : near;
    bool beside = at + width <= area->w;
    int  first = !beside && width > area->w - 2 ? words_in(value, area->w - near) : 0;

    if (area->h <= 0)
        return;
    term_text(ui->term, area->y, area->x, area->w, label, ui_style(ui, ROLE_DIM));
    if (first)
        term_textf(ui->term, area->y, area->x + near, first, ui_style(ui, ROLE_TEXT), "%.*s",
                   first, value);
    value += first + (value[first] == ' ');
    at = beside ? at : 2;
    used = term_paragraph(ui->term, (Area){ area->y + !beside, area->x + at, area->h - !beside,
                                            area->w - at }, value, ui_style(ui, ROLE_TEXT));
    used += !beside;
    area->y += used;
    area->h -= used;
}

#define AUTHORS_FROM 16 /* columns in which names are worth their lines */

static void draw_authors(Ui *ui, Area *area, const Mechanism *m)
{
    Text out = { 0 };
    int  used;

    text_addf(&out, "%s%s", m->authors ? m->authors : "", m->authors ? " " : "");
    if (m->year)
        text_addf(&out, "%d", m->year);
    text_add(&out, "\n");
    if (m->arxiv)
        text_addf(&out, "arXiv:%s\n", m->arxiv);
    used = term_paragraph(ui->term, *area, text_str(&out), ui_style(ui, ROLE_TEXT));
    area->y += used;
    area->h -= used;
    text_free(&out);
}

static void draw_facts(Ui *ui, Area area, const Mechanism *m)
{
    char classes[64], lesson[64];

    if (area.w >= AUTHORS_FROM)
        draw_authors(ui, &area, m);
    draw_fact(ui, &area, "class", mechanism_classes(m, classes, sizeof(classes)));
    draw_fact(ui, &area, "time", m->claim_time ? m->claim_time : "-");
    draw_fact(ui, &area, "memory", m->claim_memory ? m->claim_memory : "-");
    draw_fact(ui, &area, "causal", m->always_causal ? "always" : m->causal ? "yes" : "no");
    if (m->claim_decode)
        draw_fact(ui, &area, "decode", m->claim_decode);
    snprintf(lesson, sizeof(lesson), "%d %s", lesson_place(m->lesson), m->lesson ? m->lesson : "");
    if (lesson_place(m->lesson))
        draw_fact(ui, &area, "lesson", lesson);
}

#define LINES_MOST 1000

/* False if a part of the text has no room. */
static bool draw_part(Ui *ui, Area *area, const char *heading, const char *text)
{
    int used;

    if (!text || !*text)
        return true;
    if (area->h < 2) {
        area->h = 0;
        return false;
    }
    used = 1 + term_paragraph(NULL, (Area){ 0, 0, LINES_MOST, area->w }, text, (Style){ 0 });
    term_text(ui->term, area->y, area->x, area->w, heading, ui_style(ui, ROLE_KEY));
    term_paragraph(ui->term, (Area){ area->y + 1, area->x, area->h - 1, area->w }, text,
                   ui_style(ui, ROLE_TEXT));
    area->y += used + 1;
    area->h -= used + 1;
    return area->h >= -1;
}

static void params_line(const Mechanism *m, Text *out)
{
    for (const Param *p = m->params; p->name; p++) {
        if (p->type == PARAM_TYPE_TENSOR)
            continue;
        text_addf(out, "%s%s=", out->length ? "  " : "", p->name);
        params_print(p, NULL, out);
    }
    if (m->sketch || m->example)
        text_addf(out, "\nin the picture %s", m->sketch ? m->sketch : m->example);
}

/* Problem, idea and price first; false if a part of the text has no room. */
static bool draw_parts(Ui *ui, Area area, const Mechanism *m)
{
    Text opening = { 0 }, params = { 0 };
    bool whole;

    if (m->problem)
        text_addf(&opening, "%s %s %s", m->problem, m->idea, m->price);
    params_line(m, &params);
    whole = draw_part(ui, &area, "In short", text_str(&opening));
    whole &= draw_part(ui, &area, "What to look for", m->teaches);
    whole &= draw_part(ui, &area, "Parameters", text_str(&params));
    whole &= draw_part(ui, &area, "Formula", m->formula);
    whole &= draw_part(ui, &area, "Source", m->source);
    text_free(&opening);
    text_free(&params);
    return whole;
}

#define MORE " i: the whole card "

void card_draw(Ui *ui, Area area, int index)
{
    const Mechanism *m = mechanism_at((size_t)index);
    int              side = area.h / 2 < 12 ? 11 : area.h / 2 < 34 ? area.h / 2 - 2 : 32;
    int              drawn, wide = side * 2 < area.w / 2 ? side * 2 : area.w / 2;

    side = side < area.h - 2 ? side : area.h - 2;
    ui_frame(ui, area, m->title, false);
    want_thumb(ui, index);
    drawn = draw_thumb(ui, (Area){ area.y + 1, area.x + 2, side, wide }, index);
    side = drawn > FACTS_LEAST ? drawn : FACTS_LEAST;
    side = side < area.h - 2 ? side : area.h - 2;
    draw_facts(ui, (Area){ area.y + 1, area.x + wide + 4, side, area.w - wide - 6 }, m);
    if (!draw_parts(ui, (Area){ area.y + side + 2, area.x + 2, area.h - side - 3, area.w - 4 }, m))
        term_text(ui->term, area.y + area.h - 1, area.x + area.w - (int)sizeof(MORE) - 1,
                  sizeof(MORE), MORE, ui_style(ui, ROLE_DIM));
}
