/* apng.c -- several images as one animated PNG; see png.h.
 *
 * Each frame is encoded as a PNG of the common colours; its image data are moved into
 * the chunks of an animation (APNG 1.0): acTL once, fcTL before each frame, fdAT for the
 * data of all but the first.  A frame holds only the rectangle that differs from the
 * one before it.
 */
#include "draw/file/png.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define SIGNATURE 8
#define BESIDE 12 /* bytes of a chunk that are not its data */

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

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
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
    put_u32(data + 4, 0); /* again and again */
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

/* Copies the chunks of a PNG: all of them up to its end, or its image data only. */
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

/* The smallest rectangle outside which two frames are the same; at least a pixel. */
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
    Animation a = { .out = out, .colours = png_colours_new(), .count = count, .width = width,
                    .height = height, .dpi = dpi,
                    .milliseconds = (uint16_t)lround(fmin(fmax(delay, 0.01), 60) * 1000) };
    bool      ok = a.colours || error_set(err, ERR_NOMEM, "an animation: out of memory");

    for (int k = 0; ok && k < count; k++)
        png_colours_add(a.colours, frames[k], (int64_t)width * height);
    for (int k = 0; ok && k < count; k++)
        ok = add_frame(&a, frames[k],
                       k ? difference(frames[k - 1], frames[k], width, height)
                         : (Area){ 0, 0, width, height },
                       k == 0, metadata, err);
    if (ok)
        add_chunk(out, "IEND", NULL, 0, NULL, 0);
    png_colours_free(a.colours);
    return ok && (text_ok(out) || error_set(err, ERR_NOMEM, "an animation: out of memory"));
}
