/* text_block.c -- see text_block.h. */
#include "draw/text/text_block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/text/utf8.h"
#include "draw/text/wrap.h"

void block_free(Block *block)
{
    for (int k = 0; k < block->capacity; k++)
        text_free(&block->lines[k].text);
    free(block->lines);
    *block = (Block){ 0 };
}

static bool block_grow(Block *block)
{
    int   capacity = block->capacity ? 2 * block->capacity : 32;
    Line *lines = realloc(block->lines, (size_t)capacity * sizeof(*lines));

    if (!lines)
        return false;
    memset(lines + block->capacity, 0, (size_t)(capacity - block->capacity) * sizeof(*lines));
    block->lines = lines;
    block->capacity = capacity;
    return true;
}

Line *block_line(Block *block)
{
    if (block->count == block->capacity && !block_grow(block)) {
        block->failed = true;
        return NULL;
    }
    return &block->lines[block->count++];
}

void line_add(Line *line, const char *text)
{
    if (!line)
        return;
    text_add(&line->text, text);
    line->columns += utf8_columns(text);
}

void line_pad(Line *line, int columns)
{
    while (line && line->columns < columns && text_ok(&line->text))
        line_add(line, " ");
}

void block_wrap(Block *block, const char *text, int columns, bool ascii)
{
    WrapRule rule = wrap_columns(columns, ascii);

    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t length = wrap_break(text, &rule);
        char   raw[512], line[512];

        snprintf(raw, sizeof(raw), "%.*s", (int)length, text);
        utf8_fit(raw, columns, ascii, line, sizeof(line));
        line_add(block_line(block), line);
        text += length;
    }
}

static bool same(Rgb a, Rgb b)
{
    return a.r == b.r && a.g == b.g && a.b == b.b;
}

static void pen_colour(Pen *pen, int base, PenColour colour)
{
    if (pen->colours == 24)
        text_addf(&pen->line->text, "\033[%d;2;%d;%d;%dm", base + 8, colour.rgb.r, colour.rgb.g,
                  colour.rgb.b);
    else
        text_addf(&pen->line->text, "\033[%d;5;%dm", base + 8, colour.index256);
}

void pen_put(Pen *pen, const char *glyph, PenColour ink, PenColour paper)
{
    if (!pen->line)
        return;
    if (pen->colours && !paper.set && pen->paper_set) {
        text_add(&pen->line->text, "\033[49m");
        pen->paper_set = false;
    }
    if (pen->colours && paper.set && !(pen->paper_set && same(pen->paper, paper.rgb))) {
        pen_colour(pen, 40, paper);
        pen->paper_set = true;
        pen->paper = paper.rgb;
    }
    if (pen->colours && ink.set && !(pen->ink_set && same(pen->ink, ink.rgb))) {
        pen_colour(pen, 30, ink);
        pen->ink_set = true;
        pen->ink = ink.rgb;
    }
    line_add(pen->line, glyph);
}

void pen_end(Pen *pen)
{
    if (pen->line && (pen->ink_set || pen->paper_set))
        text_add(&pen->line->text, "\033[0m");
    pen->ink_set = pen->paper_set = false;
}
