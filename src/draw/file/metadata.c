/* metadata.c -- metadata written, and read from a figure file of any kind; see format.h.
 *
 * A PDF's keywords are one string of its information dictionary, in brackets or as UTF-16 in
 * hexadecimal digits; the canvas writes it uncompressed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/utf8.h"
#include "draw/figure/figure.h"
#include "draw/file/format.h"

/* The value fits in one line and in XML. */
static bool is_one_line(const char *value)
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
        bool plain = is_one_line(metadata[1]);

        text_addf(out, "%s%s%s: ", before, metadata[0], plain ? "" : "*");
        if (plain)
            text_add(out, metadata[1]);
        else
            add_percent(out, metadata[1]);
        text_add(out, "\n");
    }
}

/* The value of "key: value" or "key*: value" between `at` and the end of the line. */
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

/* The last line of a file that was cut has no end, and its value is not whole. */
static char *metadata_in_lines(const char *bytes, size_t length, const char *before,
                               const char *key)
{
    const char *end = bytes + length, *next;
    size_t      skip = strlen(before);
    char       *value = NULL;

    while (!value && (next = memchr(bytes, '\n', (size_t)(end - bytes)))) {
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
        bool plain = is_one_line(metadata[1]);

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

/* The value of a key in the bytes of a file, freed by the caller; NULL: it is not there. */
static char *metadata_in_xml(const char *bytes, size_t length, const char *key)
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

/* ---- reading files ---------------------------------------------------------- */

#define LARGEST (256 << 20) /* largest file read whole */
#define TAIL (1 << 20)      /* the end of a text, which has the lines */

/* ---- PDF -------------------------------------------------------------------- */

static void add_utf8(Text *out, uint32_t code)
{
    char bytes[4];

    text_add_bytes(out, bytes, (size_t)utf8_encode(code, bytes));
}

/* <FEFF....>: UTF-16, high byte first. */
static void read_hex_string(const char *at, const char *end, Text *out)
{
    uint32_t unit = 0, high = 0;
    int      digits = 0;

    for (; at < end && *at != '>'; at++) {
        if (hex_digit(*at) < 0)
            continue;
        unit = unit << 4 | (uint32_t)hex_digit(*at);
        if (++digits % 4)
            continue;
        if (unit >= 0xD800 && unit < 0xDC00)
            high = unit;
        else if (unit >= 0xDC00 && unit < 0xE000)
            add_utf8(out, 0x10000 + ((high & 0x3FF) << 10) + (unit & 0x3FF));
        else if (unit != 0xFEFF)
            add_utf8(out, unit);
        unit = 0;
    }
}

/* (....) with backslash escapes. */
static void read_plain_string(const char *at, const char *end, Text *out)
{
    int depth = 0;

    for (; at < end && (*at != ')' || depth > 0); at++) {
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        if (*at == '\\' && at + 1 < end) {
            at++;
            text_add_bytes(out, *at == 'n' ? "\n" : at, 1);
        } else {
            text_add_bytes(out, at, 1);
        }
    }
}

static char *metadata_in_pdf(const char *bytes, size_t length, const char *key)
{
    static const char name[] = "/Keywords";
    const char *at = memmem(bytes, length, name, sizeof(name) - 1), *end = bytes + length;
    Text        lines = { 0 };
    char       *value = NULL;

    if (!at)
        return NULL;
    for (at += sizeof(name) - 1; at < end && *at == ' '; at++)
        ;
    if (at < end && *at == '<')
        read_hex_string(at + 1, end, &lines);
    else if (at < end && *at == '(')
        read_plain_string(at + 1, end, &lines);
    if (lines.length && text_ok(&lines))
        value = metadata_in_lines(lines.data, lines.length, "", key);
    text_free(&lines);
    return value;
}

/* ---- files ------------------------------------------------------------------ */

/* `length` bytes from `from`. */
static bool read_bytes(FILE *file, long from, long length, Text *out)
{
    char   block[65536];
    size_t got = 1;

    if (fseek(file, from, SEEK_SET) != 0)
        return false;
    while (length > 0 && got > 0) {
        got = fread(block, 1, (size_t)(length < (long)sizeof(block) ? length : (long)sizeof(block)),
                    file);
        text_add_bytes(out, block, got);
        length -= (long)got;
    }
    return !ferror(file) && text_ok(out) && out->data;
}

typedef char *Finder(const char *bytes, size_t length, const char *key);

static char *find_in_text(const char *bytes, size_t length, const char *key)
{
    return metadata_in_lines(bytes, length, METADATA_TEXT_MARK, key);
}

static bool has_magic(const char *head, size_t length, const char *with)
{
    return length >= strlen(with) && !memcmp(head, with, strlen(with));
}

#define HEAD 4096 /* bytes that identify the kind */

static const char *kind_of(const char *head, size_t got)
{
    if (has_magic(head, got, "\x89PNG"))
        return "png";
    if (has_magic(head, got, "%PDF-"))
        return "pdf";
    if (has_magic(head, got, "<?xml") || has_magic(head, got, "<svg"))
        return "svg";
    if (!got || memchr(head, '\0', got))
        return NULL;
    return memchr(head, '\033', got) ? "ans" : "txt";
}

/* A named pipe is no figure, and to open one would wait for its writer. */
static FILE *open_figure(const char *path)
{
    int         fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat there;
    FILE       *file = NULL;

    if (fd >= 0 && fstat(fd, &there) == 0 && !S_ISREG(there.st_mode))
        errno = S_ISDIR(there.st_mode) ? EISDIR : ESPIPE;
    else if (fd >= 0)
        file = fdopen(fd, "rb");
    if (fd >= 0 && !file)
        close(fd);
    return file;
}

const char *figure_kind(const char *path)
{
    FILE  *file = open_figure(path);
    char   head[HEAD];
    size_t got = file ? fread(head, 1, sizeof(head), file) : 0;

    if (file)
        fclose(file);
    return kind_of(head, got);
}

static char *find_value(const char *path, const char *kind, const char *key)
{
    bool    pdf = !strcmp(kind, "pdf"), svg = !strcmp(kind, "svg");
    Finder *finder = pdf ? metadata_in_pdf : svg ? metadata_in_xml : find_in_text;
    FILE   *file = open_figure(path);
    long    size = -1, from = 0;
    Text    bytes = { 0 };
    char   *value = NULL;

    if (file && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (!pdf && !svg && size > TAIL)
        from = size - TAIL;
    if (size >= 0 && size - from <= LARGEST && read_bytes(file, from, size - from, &bytes))
        value = finder(bytes.data, bytes.length, key);
    if (file)
        fclose(file);
    text_free(&bytes);
    return value;
}

char *figure_metadata(const char *path, const char *key, Error *err)
{
    const char *kind = figure_kind(path);
    FILE       *file = kind ? NULL : open_figure(path);

    if (kind)
        return strcmp(kind, "png") ? find_value(path, kind, key)
                                   : figure_png_metadata(path, key, err);
    if (file)
        fclose(file);
    else
        error_set(err, ERR_FILE, "%s: cannot be opened: %s", path,
                  errno == ESPIPE ? "it is not a regular file" : strerror(errno));
    return NULL;
}
