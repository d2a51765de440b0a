/* sheet_words.c -- titles and captions of a sheet, broken into lines; see sheet.h.
 *
 * Panels' titles get two lines each and one size for all of them: the largest
 * in which every title fits, down to four fifths of the usual one.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/page/sheet.h"

#define HEAD_LINES 3
#define SMALLEST 0.8
#define STEPS 4 /* sizes of titles tried */

typedef struct Ruler {
    Canvas *canvas;
    double  font;
} Ruler;

static double ruler_width(void *context, const char *text)
{
    const Ruler *ruler = context;

    return canvas_text_width(ruler->canvas, text, FONT_SANS, ruler->font);
}

static WrapRule rule_of(Ruler *ruler, double room)
{
    return (WrapRule){ .width = ruler_width, .context = ruler, .room = room };
}

void sheet_fit(Canvas *canvas, const char *text, double font, double room, char *out, size_t size)
{
    Ruler    ruler = { canvas, font };
    WrapRule rule = rule_of(&ruler, room);

    wrap_cut(text, &rule, out, size);
}

void sheet_wrap(Canvas *canvas, const char *text, double font, double room, Lines *out)
{
    Ruler    ruler = { canvas, font };
    WrapRule rule = rule_of(&ruler, room);

    wrap_text(text, &rule, WRAP_LINES, out);
}

int sheet_lines_height(const Lines *lines, double font, int space)
{
    return lines->count ? (int)ceil(lines->count * font * SHEET_LINE) + space : 0;
}

/* A panel's title with its letter. */
static void sheet_title(const Sheet *sheet, int panel, char *text, size_t size)
{
    const char *title = sheet->figure->panels[panel].title;
    char        letter[4];

    panel_letter(panel, letter, sizeof(letter));
    if (sheet->figure->count > 1)
        snprintf(text, size, "(%s) %s", letter, title);
    else
        snprintf(text, size, "%s", title);
}

/* The widest word of a title in the smallest size that titles take; wrap.h breaks after the
 * signs too. */
static double widest_word(const Sheet *sheet, const char *title)
{
    double widest = 0;
    char   word[160];

    while (*title) {
        size_t length = strcspn(title, " ,+");

        length += title[length] == ',' || title[length] == '+';
        snprintf(word, sizeof(word), "%.*s", (int)length, title);
        widest = fmax(widest, canvas_text_width(sheet->canvas, word, FONT_SANS,
                                                SMALLEST * sheet->style.title));
        title += length + strspn(title + length, " ");
    }
    return widest;
}

bool sheet_words_fit(const Sheet *sheet)
{
    for (int k = 0; k < sheet->figure->count; k++) {
        double wide = widest_word(sheet, sheet->figure->panels[k].title);

        /* Beside another panel the longest have no room in any arrangement. */
        if (wide > sheet->layout.panels[k].title.w && wide < 0.4 * sheet->width)
            return false;
    }
    return true;
}

static bool panel_titles(Sheet *sheet, bool cut)
{
    Ruler ruler = { sheet->canvas, sheet->title_font };
    char  title[160];
    bool  all = true;

    for (int k = 0; k < sheet->figure->count; k++) {
        WrapRule rule = rule_of(&ruler, sheet->layout.panels[k].title.w);
        Lines   *lines = &sheet->panels[k].title;

        lines->count = 0;
        sheet_title(sheet, k, title, sizeof(title));
        if (!*sheet->figure->panels[k].title || wrap_title(title, &rule, lines))
            continue;
        all = false;
        if (cut)
            wrap_title_cut(title, &rule, lines);
    }
    return all;
}

#define NARROWEST  0.7 /* of the room there is */
#define STEP_ROOM  0.05
#define SHORT_LINE 0.28 /* a last line that stands alone */

static bool is_cut(const Lines *lines)
{
    const char *last = lines->count ? lines->text[lines->count - 1] : "";
    size_t      length = strlen(last);

    return length >= 3 && !strcmp(last + length - 3, "\xE2\x80\xA6");
}

static bool ends_short(const Lines *lines, const WrapRule *rule, double room)
{
    return lines->count > 1 &&
           rule->width(rule->context, lines->text[lines->count - 1]) < SHORT_LINE * room;
}

/* In as few lines as there must be; where a word or two would stand alone below, of more even
 * length. */
static void wrap_evenly(const char *text, WrapRule rule, Lines *out)
{
    double room = rule.room;
    Lines  tried;

    wrap_text(text, &rule, WRAP_LINES, out);
    for (double share = 1 - STEP_ROOM; ends_short(out, &rule, room) && share > NARROWEST;
         share -= STEP_ROOM) {
        rule.room = share * room;
        wrap_text(text, &rule, WRAP_LINES, &tried);
        if (tried.count > out->count || is_cut(&tried))
            return;
        *out = tried;
    }
}

static void panel_captions(Sheet *sheet)
{
    Ruler ruler = { sheet->canvas, sheet->style.small };
    char  text[256];

    for (int k = 0; k < sheet->figure->count; k++) {
        double   gap = sheet->cols > 1 ? 2 * sheet->style.space : 0; /* to the next one's words */
        WrapRule rule = rule_of(&ruler, sheet->layout.panels[k].column_w - gap);

        snprintf(text, sizeof(text), "%s", sheet->figure->panels[k].caption);
        if (!*text && sheet->scene.plots[k])
            plot_caption(sheet->scene.plots[k], text, sizeof(text));
        else if (!*text)
            panel_caption(&sheet->figure->panels[k], &sheet->scene.grids[k], text, sizeof(text));
        wrap_evenly(text, rule, &sheet->panels[k].caption);
    }
}

void sheet_words(Sheet *sheet)
{
    const SheetStyle *s = &sheet->style;
    Ruler             head = { sheet->canvas, s->head }, legend = { sheet->canvas, s->legend };
    WrapRule          title = rule_of(&head, sheet->layout.title.w);
    WrapRule          caption = rule_of(&legend, sheet->layout.caption.w);
    bool              fits = false;

    for (int k = 0; k < STEPS && !fits; k++) {
        sheet->title_font = s->title * (1 - (1 - SMALLEST) * k / (STEPS - 1));
        fits = panel_titles(sheet, k + 1 == STEPS);
    }
    panel_captions(sheet);
    wrap_text(sheet->figure->title, &title, HEAD_LINES, &sheet->title);
    wrap_evenly(sheet->figure->caption, caption, &sheet->caption);
}
