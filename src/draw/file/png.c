/* png.c -- PNG through libpng, its text chunks, and APNG; see format.h.
 *
 * libpng reports errors by longjmp: each function that calls it sets its own jump and keeps what
 * it must free in the Png struct, not in locals.
 */
#include <errno.h>
#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "draw/figure/figure.h"
#include "draw/file/format.h"

#define MOST_COLOURS 256
#define SLOTS 1024 /* of the colour table; a power of two */
#define MOST_TEXTS 64

/* The colours that several images together have, so that all get the same type. */
typedef struct PngColours {
    uint32_t colours[MOST_COLOURS];
    int16_t  slots[SLOTS]; /* index + 1; 0: free */
    int      count;        /* MOST_COLOURS + 1: too many */
    bool     translucent;
} PngColours;

typedef struct Png {
    png_structp png;
    png_infop   info;
    PngColours *palette;
    uint8_t    *row;
    FILE       *file;
    Error      *err;
} Png;

static void on_error(png_structp png, png_const_charp message)
{
    Png *p = png_get_error_ptr(png);

    error_set(p->err, ERR_FORMAT, "PNG: %s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static uint32_t pixel_at(const uint8_t *rgba, int64_t at)
{
    const uint8_t *p = rgba + 4 * at;

    return (uint32_t)p[3] << 24 | (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

/* Index of a colour, adding it while there is room; -1: too many. */
static int palette_index(PngColours *p, uint32_t colour)
{
    uint32_t at = colour * 2654435761u >> 22;

    while (p->slots[at] && p->colours[p->slots[at] - 1] != colour)
        at = (at + 1) & (SLOTS - 1);
    if (p->slots[at])
        return p->slots[at] - 1;
    if (p->count >= MOST_COLOURS) {
        p->count = MOST_COLOURS + 1;
        return -1;
    }
    p->colours[p->count] = colour;
    p->slots[at] = (int16_t)++p->count;
    return p->count - 1;
}

static void palette_collect(PngColours *p, const uint8_t *rgba, int64_t pixels)
{
    uint32_t last = 0;

    for (int64_t k = 0; k < pixels; k++) {
        uint32_t colour = pixel_at(rgba, k);

        if (k > 0 && colour == last)
            continue;
        last = colour;
        p->translucent |= colour >> 24 != 255;
        if (p->count <= MOST_COLOURS)
            palette_index(p, colour);
    }
}

static int palette_depth(const PngColours *p)
{
    return p->count <= 2 ? 1 : p->count <= 4 ? 2 : p->count <= 16 ? 4 : 8;
}

static void write_palette(Png *p)
{
    png_color entries[MOST_COLOURS];
    png_byte  alpha[MOST_COLOURS];

    for (int k = 0; k < p->palette->count; k++) {
        uint32_t c = p->palette->colours[k];

        entries[k] = (png_color){ (png_byte)(c >> 16), (png_byte)(c >> 8), (png_byte)c };
        alpha[k] = (png_byte)(c >> 24);
    }
    png_set_PLTE(p->png, p->info, entries, p->palette->count);
    if (p->palette->translucent)
        png_set_tRNS(p->png, p->info, alpha, p->palette->count, NULL);
}

static bool plain_ascii(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80)
            return false;
    return true;
}

static char *unshared(const char *text)
{
    char *plain; /* png_text takes char * but only reads it */

    memcpy(&plain, &text, sizeof(plain));
    return plain;
}

#define LONG_TEXT 1024 /* longer texts are compressed: numbers shrink to a sixth */

static int text_kind(const char *text)
{
    bool ascii = plain_ascii(text);

    if (strlen(text) < LONG_TEXT)
        return ascii ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE;
    return ascii ? PNG_TEXT_COMPRESSION_zTXt : PNG_ITXT_COMPRESSION_zTXt;
}

static void write_texts(Png *p, const char *const *metadata)
{
    png_text texts[MOST_TEXTS];
    int      count = 0;

    memset(texts, 0, sizeof(texts));
    for (; metadata && metadata[0] && metadata[1] && count < MOST_TEXTS; metadata += 2) {
        texts[count].compression = text_kind(metadata[1]);
        texts[count].key = unshared(metadata[0]);
        texts[count].text = unshared(metadata[1]);
        count++;
    }
    png_set_text(p->png, p->info, texts, count);
}

static void on_write(png_structp png, png_bytep bytes, size_t length)
{
    text_add_bytes(png_get_io_ptr(png), bytes, length);
}

static void on_flush(png_structp png)
{
    (void)png;
}

/* Neighbouring pixels often have one colour. */
static void index_row(PngColours *palette, const uint8_t *rgba, int width, uint8_t *row)
{
    uint32_t last = 0;

    for (int k = 0; k < width; k++) {
        uint32_t colour = pixel_at(rgba, k);

        row[k] = k > 0 && colour == last ? row[k - 1] : (uint8_t)palette_index(palette, colour);
        last = colour;
    }
}

static void write_rows(Png *p, const uint8_t *rgba, int width, int height, bool indexed)
{
    int channels = p->palette->translucent ? 4 : 3;

    for (int r = 0; r < height; r++) {
        const uint8_t *line = rgba + 4 * (int64_t)r * width;

        if (indexed)
            index_row(p->palette, line, width, p->row);
        for (int64_t k = 0; k < width && !indexed; k++)
            memcpy(p->row + channels * k, line + 4 * k, (size_t)channels);
        png_write_row(p->png, p->row);
    }
}

/* Large images of many colours: a third of the default level's time for a twentieth more bytes. */
#define LARGE       (1 << 23)
#define QUICK_LEVEL 2

static bool write_all(Png *p, const uint8_t *rgba, int width, int height, int dpi,
                      const char *const *metadata, Text *out)
{
    bool indexed = p->palette->count <= MOST_COLOURS;
    int  type = indexed ? PNG_COLOR_TYPE_PALETTE
                        : p->palette->translucent ? PNG_COLOR_TYPE_RGB_ALPHA : PNG_COLOR_TYPE_RGB;
    png_uint_32 per_metre = (png_uint_32)(dpi / 0.0254 + 0.5);

    if (setjmp(png_jmpbuf(p->png)))
        return false;
    png_set_write_fn(p->png, out, on_write, on_flush);
    png_set_IHDR(p->png, p->info, (png_uint_32)width, (png_uint_32)height,
                 indexed ? palette_depth(p->palette) : 8, type, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_pHYs(p->png, p->info, per_metre, per_metre, PNG_RESOLUTION_METER);
    if (indexed)
        write_palette(p);
    write_texts(p, metadata);
    png_set_filter(p->png, PNG_FILTER_TYPE_BASE, indexed ? PNG_FILTER_NONE : PNG_FILTER_UP);
    if (!indexed && (int64_t)width * height > LARGE)
        png_set_compression_level(p->png, QUICK_LEVEL);
    png_write_info(p->png, p->info);
    png_set_packing(p->png);
    write_rows(p, rgba, width, height, indexed);
    png_write_end(p->png, NULL);
    return true;
}

/* As png_encode, with the type that the colours ask for; they hold all of the image's. */
static bool png_encode_with(PngColours *colours, const uint8_t *rgba, int width, int height,
                            int dpi, const char *const *metadata, Text *out, Error *err)
{
    Png  p = { .palette = colours, .row = malloc((size_t)width * 4), .err = err };
    bool ok = p.palette && p.row;

    if (ok) {
        p.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &p, on_error, on_warning);
        p.info = p.png ? png_create_info_struct(p.png) : NULL;
        ok = p.info != NULL;
    }
    if (!ok)
        error_set(err, ERR_NOMEM, "PNG of %d x %d pixels: out of memory", width, height);
    ok = ok && write_all(&p, rgba, width, height, dpi, metadata, out);
    if (ok && !text_ok(out))
        ok = error_set(err, ERR_NOMEM, "PNG of %d x %d pixels: out of memory", width, height);
    if (p.png)
        png_destroy_write_struct(&p.png, &p.info);
    free(p.row);
    return ok;
}

bool png_encode(const uint8_t *rgba, int width, int height, int dpi, const char *const *metadata,
                Text *out, Error *err)
{
    PngColours *colours = calloc(1, sizeof(*colours));
    bool        ok;

    if (colours)
        palette_collect(colours, rgba, (int64_t)width * height);
    ok = png_encode_with(colours, rgba, width, height, dpi, metadata, out, err);
    free(colours);
    return ok;
}

/* ---- reading back ----------------------------------------------------------- */

/* A stranger's compressed texts may be a thousand times their chunks. */
#define LARGEST_TEXT 8000000 /* bytes */

static char *text_of(Png *p, const char *key)
{
    png_textp texts;
    int       count = png_get_text(p->png, p->info, &texts, NULL);

    for (int k = 0; k < count; k++)
        if (strcmp(texts[k].key, key) == 0)
            return strdup(texts[k].text);
    return NULL;
}

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

#define SIGNATURE 8
#define BESIDE 12 /* bytes of a chunk beside its data */

/* libpng takes memory for a chunk before it reads it, so none may be longer than the file. */
static bool chunks_fit(Png *p)
{
    uint8_t head[8];
    long    size;

    if (fseek(p->file, 0, SEEK_END) != 0 || (size = ftell(p->file)) < 0)
        return error_set(p->err, ERR_FORMAT, "cannot be read: %s", strerror(errno));
    for (long at = SIGNATURE; size - at >= (long)sizeof(head);) {
        if (fseek(p->file, at, SEEK_SET) != 0 || fread(head, sizeof(head), 1, p->file) != 1)
            return error_set(p->err, ERR_FORMAT, "cannot be read at byte %ld", at);
        if (!memcmp(head + 4, "IDAT", 4) || !memcmp(head + 4, "IEND", 4))
            break; /* no text is looked for behind it */
        if ((long)get_u32(head) > size - at - BESIDE)
            return error_set(p->err, ERR_FORMAT, "is not a whole PNG picture: the part at byte %ld "
                             "has %u bytes, more than the file", at, get_u32(head));
        at += (long)get_u32(head) + BESIDE;
    }
    rewind(p->file);
    return true;
}

static char *read_text(Png *p, const char *key)
{
    if (setjmp(png_jmpbuf(p->png)))
        return NULL;
    png_set_chunk_malloc_max(p->png, LARGEST_TEXT);
    png_set_chunk_cache_max(p->png, MOST_TEXTS);
    png_init_io(p->png, p->file);
    png_read_info(p->png, p->info);
    return text_of(p, key);
}

char *figure_png_metadata(const char *path, const char *key, Error *err)
{
    Png   p = { .file = fopen(path, "rb"), .err = err };
    char *value = NULL;

    if (!p.file) {
        error_set(err, ERR_FILE, "%s: cannot be opened: %s", path, strerror(errno));
        return NULL;
    }
    p.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &p, on_error, on_warning);
    p.info = p.png ? png_create_info_struct(p.png) : NULL;
    if (!p.info)
        error_set(err, ERR_NOMEM, "%s: out of memory", path);
    else if (chunks_fit(&p))
        value = read_text(&p, key);
    if (!value && err && err->code == ERR_FORMAT)
        error_prefix(err, "%s", path);
    if (p.png)
        png_destroy_read_struct(&p.png, &p.info, NULL);
    fclose(p.file);
    return value;
}

/* ---- animations ------------------------------------------------------------- */

typedef struct Area {
    int x, y, w, h;
} Area;

typedef struct Animation {
    Text       *out;
    PngColours *colours;
    uint32_t    sequence; /* of the next fcTL or fdAT */
    int         count, width, height, dpi;
    uint16_t    milliseconds;
} Animation;

static void put_u32(uint8_t *at, uint32_t value)
{
    for (int k = 0; k < 4; k++)
        at[k] = (uint8_t)(value >> (24 - 8 * k));
}

/* head: the first bytes of the data. */
static void add_chunk(Text *out, const char *type, const uint8_t *head, uint32_t head_length,
                      const uint8_t *data, uint32_t length)
{
    uint8_t number[4];
    uLong   crc = crc32(crc32(0, NULL, 0), (const Bytef *)type, 4);

    put_u32(number, head_length + length);
    text_add_bytes(out, number, 4);
    text_add_bytes(out, type, 4);
    if (head_length) {
        text_add_bytes(out, head, head_length);
        crc = crc32(crc, head, head_length);
    }
    if (length) {
        text_add_bytes(out, data, length);
        crc = crc32(crc, data, length);
    }
    put_u32(number, (uint32_t)crc);
    text_add_bytes(out, number, 4);
}

static void add_start(Animation *a)
{
    uint8_t data[8];

    put_u32(data, (uint32_t)a->count);
    put_u32(data + 4, 0); /* repeat for ever */
    add_chunk(a->out, "acTL", data, sizeof(data), NULL, 0);
}

static void add_control(Animation *a, Area area)
{
    uint8_t data[26] = { 0 };

    put_u32(data, a->sequence++);
    put_u32(data + 4, (uint32_t)area.w);
    put_u32(data + 8, (uint32_t)area.h);
    put_u32(data + 12, (uint32_t)area.x);
    put_u32(data + 16, (uint32_t)area.y);
    data[20] = (uint8_t)(a->milliseconds >> 8);
    data[21] = (uint8_t)a->milliseconds;
    data[22] = 1000 >> 8;
    data[23] = 1000 & 0xFF;
    add_chunk(a->out, "fcTL", data, sizeof(data), NULL, 0); /* 24, 25: keep, replace */
}

/* Copies the chunks of a PNG: all up to its end, or only its image data. */
static void add_chunks(Animation *a, const Text *png, bool first, Area area)
{
    const uint8_t *bytes = (const uint8_t *)png->data;
    bool           begun = false;

    for (size_t at = SIGNATURE; at + BESIDE <= png->length;) {
        uint32_t    length = get_u32(bytes + at);
        const char *type = png->data + at + 4;
        bool        data = !memcmp(type, "IDAT", 4);
        uint8_t     number[4];

        if (data && !begun && first)
            add_start(a);
        if (data && !begun)
            add_control(a, area);
        begun = begun || data;
        if (data && !first) {
            put_u32(number, a->sequence++);
            add_chunk(a->out, "fdAT", number, 4, bytes + at + 8, length);
        } else if (first && memcmp(type, "IEND", 4) != 0) {
            text_add_bytes(a->out, bytes + at, (size_t)length + BESIDE);
        }
        at += (size_t)length + BESIDE;
    }
}

/* The smallest rectangle that contains all differences of two frames; at least one pixel. */
static Area difference(const uint8_t *before, const uint8_t *now, int width, int height)
{
    int left = width, right = 0, top = height, bottom = 0;

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int64_t at = 4 * ((int64_t)y * width + x);

            if (!memcmp(before + at, now + at, 4))
                continue;
            left = x < left ? x : left;
            right = x >= right ? x + 1 : right;
            top = y < top ? y : top;
            bottom = y + 1;
        }
    return right > left ? (Area){ left, top, right - left, bottom - top } : (Area){ 0, 0, 1, 1 };
}

static bool add_frame(Animation *a, const uint8_t *pixels, Area area, bool first,
                      const char *const *metadata, Error *err)
{
    uint8_t *part = malloc((size_t)area.w * (size_t)area.h * 4);
    Text     png = { 0 };
    bool     ok = part || error_set(err, ERR_NOMEM, "an animation: out of memory");

    for (int y = 0; part && y < area.h; y++)
        memcpy(part + (size_t)y * (size_t)area.w * 4,
               pixels + 4 * ((int64_t)(area.y + y) * a->width + area.x), (size_t)area.w * 4);
    ok = ok && png_encode_with(a->colours, part, area.w, area.h, a->dpi, first ? metadata : NULL,
                               &png, err);
    if (ok && first)
        text_add_bytes(a->out, png.data, SIGNATURE);
    if (ok)
        add_chunks(a, &png, first, area);
    text_free(&png);
    free(part);
    return ok;
}

bool apng_encode(uint8_t *const *frames, int count, int width, int height, int dpi, double delay,
                 const char *const *metadata, Text *out, Error *err)
{
    Animation a = { .out = out, .colours = calloc(1, sizeof(PngColours)), .count = count,
                    .width = width, .height = height, .dpi = dpi,
                    .milliseconds = (uint16_t)lround(fmin(fmax(delay, 0.01), 60) * 1000) };
    bool      ok = a.colours || error_set(err, ERR_NOMEM, "an animation: out of memory");

    for (int k = 0; ok && k < count; k++)
        palette_collect(a.colours, frames[k], (int64_t)width * height);
    for (int k = 0; ok && k < count; k++)
        ok = add_frame(&a, frames[k],
                       k ? difference(frames[k - 1], frames[k], width, height)
                         : (Area){ 0, 0, width, height },
                       k == 0, metadata, err);
    if (ok)
        add_chunk(out, "IEND", NULL, 0, NULL, 0);
    free(a.colours);
    return ok && (text_ok(out) || error_set(err, ERR_NOMEM, "an animation: out of memory"));
}
