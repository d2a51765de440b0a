/* metadata.c -- writing it, and finding it in lines and in XML; see metadata.h. */
#include "draw/file/metadata.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/text/utf8.h"

/* Nothing that a line or XML cannot hold. */
static bool is_plain(const char *value)
{
    const char *at = value;

    while (*at) {
        uint32_t code = utf8_next(&at);

        if (code < 0x20 || code == 0x7F || code > 0x10FFFF || (code & 0xFFFE) == 0xFFFE)
            return false;
    }
    return true;
}

static void add_percent(Text *out, const char *value)
{
    for (; *value; value++) {
        unsigned char c = (unsigned char)*value;

        if (c < 0x21 || c > 0x7E || strchr("%&<>\"", c))
            text_addf(out, "%%%02X", c);
        else
            text_add_bytes(out, value, 1);
    }
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void undo_percent(char *value)
{
    char *to = value;

    for (; *value; value++)
        if (*value == '%' && hex_digit(value[1]) >= 0 && hex_digit(value[2]) >= 0) {
            *to++ = (char)(hex_digit(value[1]) * 16 + hex_digit(value[2]));
            value += 2;
        } else {
            *to++ = *value;
        }
    *to = '\0';
}

static char *copy_of(const char *bytes, size_t length)
{
    char *copy = malloc(length + 1);

    if (copy) {
        memcpy(copy, bytes, length);
        copy[length] = '\0';
    }
    return copy;
}

/* ---- lines ------------------------------------------------------------------ */

void metadata_write_lines(const char *const *metadata, const char *before, Text *out)
{
    for (; metadata && metadata[0] && metadata[1]; metadata += 2) {
        bool plain = is_plain(metadata[1]);

        text_addf(out, "%s%s%s: ", before, metadata[0], plain ? "" : "*");
        if (plain)
            text_add(out, metadata[1]);
        else
            add_percent(out, metadata[1]);
        text_add(out, "\n");
    }
}

/* "key: value" or "key*: value" from `at` to the end of the line. */
static char *value_of_line(const char *at, const char *end, const char *key)
{
    size_t length = strlen(key);
    bool   coded;
    char  *value;

    if ((size_t)(end - at) < length + 2 || memcmp(at, key, length) != 0)
        return NULL;
    at += length;
    coded = *at == '*';
    at += coded;
    if (end - at < 2 || at[0] != ':' || at[1] != ' ')
        return NULL;
    value = copy_of(at + 2, (size_t)(end - at - 2));
    if (value && coded)
        undo_percent(value);
    return value;
}

char *metadata_in_lines(const char *bytes, size_t length, const char *before, const char *key)
{
    const char *end = bytes + length;
    size_t      skip = strlen(before);
    char       *value = NULL;

    while (bytes < end && !value) {
        const char *next = memchr(bytes, '\n', (size_t)(end - bytes));

        if (!next)
            next = end;
        if ((size_t)(next - bytes) > skip && !memcmp(bytes, before, skip))
            value = value_of_line(bytes + skip, next, key);
        bytes = next + 1;
    }
    return value;
}

/* ---- XML -------------------------------------------------------------------- */

static const struct {
    char        sign;
    const char *text;
} entities[] = { { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&quot;" } };

void metadata_add_xml(Text *out, const char *text)
{
    for (; *text; text++) {
        const char *entity = NULL;

        for (size_t k = 0; k < sizeof(entities) / sizeof(*entities); k++)
            entity = entities[k].sign == *text ? entities[k].text : entity;
        if (entity)
            text_add(out, entity);
        else
            text_add_bytes(out, text, 1);
    }
}

void metadata_write_xml(const char *const *metadata, Text *out)
{
    if (!metadata || !metadata[0])
        return;
    text_add(out, "<metadata>\n");
    for (; metadata[0] && metadata[1]; metadata += 2) {
        bool plain = is_plain(metadata[1]);

        text_addf(out, "<entry xmlns=\"urn:attnscope:figure\" key=\"%s%s\">", metadata[0],
                  plain ? "" : "*");
        if (plain)
            metadata_add_xml(out, metadata[1]);
        else
            add_percent(out, metadata[1]);
        text_add(out, "</entry>\n");
    }
    text_add(out, "</metadata>\n");
}

static void undo_xml(char *value)
{
    char *to = value;

    while (*value) {
        size_t used = 1;

        *to = *value;
        for (size_t k = 0; k < sizeof(entities) / sizeof(*entities); k++)
            if (!strncmp(value, entities[k].text, strlen(entities[k].text))) {
                *to = entities[k].sign;
                used = strlen(entities[k].text);
            }
        to++;
        value += used;
    }
    *to = '\0';
}

char *metadata_in_xml(const char *bytes, size_t length, const char *key)
{
    char *value = NULL, mark[128];

    for (int coded = 0; coded < 2 && !value; coded++) {
        int         size = snprintf(mark, sizeof(mark), " key=\"%s%s\">", key, coded ? "*" : "");
        const char *at = memmem(bytes, length, mark, (size_t)size), *end;

        if (!at)
            continue;
        at += size;
        end = memchr(at, '<', (size_t)(bytes + length - at));
        value = end ? copy_of(at, (size_t)(end - at)) : NULL;
        if (value && coded)
            undo_percent(value);
        else if (value)
            undo_xml(value);
    }
    return value;
}
