/* head_label.c -- see head_label.h. */
#include "ui/pane/head_label.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "draw/colour/colour.h"

#define GAP 2 /* columns between two labels */

/* The sink has K: the self head has the S. */
static char letter_of(const char *label)
{
    return strcmp(label, "sink") ? (char)toupper((unsigned char)*label) : 'K';
}

bool head_label_mark(const Ui *ui, const char *label, char letter[2], Style *style)
{
    int index = label ? head_label_index(label) : -1;
    Rgb rgb;

    if (index < 0)
        return false;
    rgb = category_colour_in(HUES_USUAL, index);
    letter[0] = letter_of(label);
    letter[1] = '\0';
    *style = ui->term->colours == TERM_MONO ? (Style){ 0 }
                                            : style_on(rgb, colour_nearest_256(rgb));
    return true;
}

/* A text gives no head the label "induction", however high the score is (docs/models.md): a mixed
 * head may be one. */
static void add_untested(const HeadScores *scores, bool tokens, bool brief, Text *out)
{
    if (scores->induction >= HEAD_LEAST_INDUCTION)
        text_addf(out, brief ? "; maybe induction, %.2f"
                             : "; induction %.2f on this text, but only heads --repeat tests it",
                  scores->induction);
    else if (isnan(scores->induction) && !brief)
        text_addf(out, "; copying is untested: %s",
                  tokens ? "no token occurs twice" : "the input has no tokens");
}

void head_label_text(const HeadScores *scores, bool tokens, bool brief, Text *out)
{
    char words[HEAD_WORDS];

    text_add(out, head_label_words(scores, words, sizeof(words)));
    if (!strcmp(scores->shown, "mixed"))
        add_untested(scores, tokens, brief, out);
}

int head_label_legend(const Ui *ui, Area area, HeadLabels which, bool draw)
{
    int taken = 0;

    for (int l = 0; head_labels[l]; l++) {
        int   width = 2 + (int)strlen(head_labels[l]), gap = taken ? GAP : 0;
        char  letter[2];
        Style style;

        if (!(which & 1u << l))
            continue;
        if (taken + gap + width > area.w || !head_label_mark(ui, head_labels[l], letter, &style))
            break;
        taken += gap;
        if (draw) {
            term_text(ui->term, area.y, area.x + taken, 1, letter, style);
            term_text(ui->term, area.y, area.x + taken + 2, width - 2, head_labels[l],
                      ui_style(ui, ROLE_DIM));
        }
        taken += width;
    }
    return taken;
}
