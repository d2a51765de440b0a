/* sequence.c -- a text or a picture as a sequence; see store.h.
 *
 * A text is split into words and punctuation: letters, digits, '_' and bytes above ASCII make
 * words, with an apostrophe or a hyphen inside; any other character except blanks stands alone.
 * Files named .tokens.txt or .ids hold one token per line.
 *
 * A text has no q, k and v. Each token draws them: q = k is one vector, v another, so equal tokens
 * attend to each other whatever their positions. The note says so.
 */
#include <ctype.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/utf8.h"
#include "input/generators.h"
#include "input/labels.h"
#include "input/store.h"

#define DEFAULT_D 32

static int64_t heads_of(const InputChoice *choice)
{
    return choice->heads ? choice->heads : 1;
}

typedef struct TokenReader {
    const uint8_t *at, *end;
    bool           lines;
} TokenReader;

static bool by_lines(const char *path)
{
    return load_path_ends(path, ".tokens.txt") || load_path_ends(path, ".ids");
}

static bool is_word(uint8_t c)
{
    return c >= 0x80 || isalnum(c) || c == '_';
}

static bool next_line(TokenReader *r, const uint8_t **token, int64_t *length)
{
    const uint8_t *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    const uint8_t *end = stop ? stop : r->end;

    *token = r->at;
    r->at = stop ? stop + 1 : r->end;
    if (end > *token && end[-1] == '\r')
        end--;
    *length = end - *token;
    return true;
}

static bool next_token(TokenReader *r, const uint8_t **token, int64_t *length)
{
    const uint8_t *at;

    if (r->lines && r->at < r->end)
        return next_line(r, token, length);
    while (r->at < r->end && isspace(*r->at))
        r->at++;
    if (r->at >= r->end)
        return false;
    at = r->at;
    if (!is_word(*at++))
        goto out;
    while (at < r->end && (is_word(*at) || ((*at == '\'' || *at == '-') && at + 1 < r->end &&
                                            is_word(at[1]))))
        at++;
out:
    *token = r->at;
    *length = at - r->at;
    r->at = at;
    return true;
}

static bool check_text(Mapped bytes, Error *err)
{
    for (int64_t at = 0, step; at < bytes.size; at += step) {
        step = utf8_decode(bytes.data + at, (size_t)(bytes.size - at), NULL);
        if (step == 0 || bytes.data[at] == 0)
            return error_set(err, ERR_FORMAT, "byte %lld: expected UTF-8 text, found byte 0x%02x",
                             (long long)at, bytes.data[at]);
    }
    return true;
}

static TokenReader reader_of(const char *path, Mapped bytes)
{
    Mapped text = mapped_text(bytes);

    return (TokenReader){ .at = text.data, .end = text.data + text.size,
                          .lines = by_lines(path) };
}

bool text_count(const char *path, Mapped bytes, int64_t *count, Error *err)
{
    TokenReader    r = reader_of(path, bytes);
    const uint8_t *token;
    int64_t        length;

    *count = 0;
    if (!check_text(bytes, err))
        return false;
    while (next_token(&r, &token, &length))
        (*count)++;
    return *count > 0 || error_set(err, ERR_DATA, "holds no token");
}

static bool read_labels(Input *in, Mapped bytes, int64_t n, Error *err)
{
    TokenReader    r = reader_of(in->name, bytes);
    const uint8_t *token;
    int64_t        length;

    in->q_tokens = arena_alloc(in->arena, n, sizeof(*in->q_tokens));
    for (int64_t i = 0; in->q_tokens && i < n && next_token(&r, &token, &length); i++)
        if (!(in->q_tokens[i] = labels_copy(in->arena, token, length)))
            in->q_tokens = NULL;
    in->k_tokens = in->q_tokens;
    return in->q_tokens || error_set(err, ERR_NOMEM, "no memory for %lld labels", (long long)n);
}

#define ROWS 1024 /* per work item */

typedef struct TokenTask {
    const Input *in;
    uint64_t     seed;
} TokenTask;

static void fill_row(const TokenTask *task, int64_t head, int64_t i)
{
    const Input *in = task->in;
    uint64_t     number = rng_named(0, in->q_tokens[i]).stream; /* a hash of the text */
    int64_t      at = (head * in->n + i) * in->d;
    float       *q = tensor_f32(&in->q) + at, *k = tensor_f32(&in->k) + at;
    double       factor = generate_amplitude(GENERATE_MATCH, in->d);

    generate_code(task->seed, (Symbol){ .kind = "token qk", .number = number }, head, q, in->d);
    generate_code(task->seed, (Symbol){ .kind = "token v", .number = number }, head,
                  tensor_f32(&in->v) + at, in->d);
    for (int64_t c = 0; c < in->d; c++)
        k[c] = q[c] = (float)(factor * (double)q[c]);
}

static void fill_rows(void *context, int64_t item, int worker)
{
    const TokenTask *task = context;
    int64_t          begin = item * ROWS, end = begin + ROWS;

    (void)worker;
    if (end > task->in->n)
        end = task->in->n;
    for (int64_t i = begin; i < end; i++)
        for (int64_t head = 0; head < task->in->heads; head++)
            fill_row(task, head, i);
}

bool load_text(Input *in, Mapped bytes, const InputChoice *choice, Error *err)
{
    TokenTask task = { .in = in, .seed = choice->seed };
    int64_t   n;

    in->kind = arena_strdup(in->arena, "text");
    if (!in->kind || !text_count(in->name, bytes, &n, err))
        return in->kind ? false : error_set(err, ERR_NOMEM, "no memory for an input");
    if (choice->n > n)
        return error_set(err, ERR_DATA, "holds %lld tokens, so the first %lld cannot be taken",
                         (long long)n, (long long)choice->n);
    n = choice->n ? choice->n : n;
    if (!generate_allocate(in, heads_of(choice), heads_of(choice), n,
                           choice->d ? choice->d : DEFAULT_D, choice, err) ||
        !read_labels(in, bytes, n, err))
        return false;
    generate_parallel((n + ROWS - 1) / ROWS, fill_rows, &task);
    in->note = arena_printf(in->arena, "no model: q = k and v are random vectors of each token "
                            "(seed %llu); equal tokens are equal, positions play no part",
                            (unsigned long long)choice->seed);
    return in->note ? generate_x(in, choice, err)
                    : error_set(err, ERR_NOMEM, "no memory for a note");
}

/* Pictures: pixels in raster order.
 *
 * PNG through libpng; PGM and PPM (P2, P3, P5, P6) here. All become 8-bit RGB. A picture has no q,
 * k and v: q = k are random Fourier features of colour and place, so similar and near pixels
 * attend to each other; v is red, green and blue in [-1, 1], then features of the colour. The note
 * says so.
 *
 * A PNG's size must be possible with deflate before its pixels get memory.
 */

#define COLOUR_BANDWIDTH 0.25 /* of a channel's range */
#define PLACE_BANDWIDTH 4.0   /* pixels */
#define MAX_SIDE (1 << 24)

typedef struct Picture {
    int64_t  width, height;
    uint8_t *rgb; /* owned; width * height * 3 */
} Picture;

/* ---- PNM ----------------------------------------------------------------- */

typedef struct Pnm {
    const uint8_t *start, *at, *end;
    int            channels;
    bool           binary;
    int64_t        width, height, maximum;
} Pnm;

/* Reads the next number after blanks and comments. */
static bool pnm_number(Pnm *p, const char *what, int64_t limit, int64_t *out, Error *err)
{
    const uint8_t *first;
    int64_t        value = 0;

    while (p->at < p->end && (isspace(*p->at) || *p->at == '#'))
        if (*p->at++ == '#')
            while (p->at < p->end && *p->at != '\n')
                p->at++;
    first = p->at;
    for (; p->at < p->end && isdigit(*p->at) && value <= limit; p->at++)
        value = 10 * value + (*p->at - '0');
    if (p->at == first || value > limit)
        return error_set(err, ERR_FORMAT, "byte %lld: expected %s, at most %lld",
                         (long long)(first - p->start), what, (long long)limit);
    *out = value;
    return true;
}

static bool pnm_header(Mapped bytes, Pnm *p, Error *err)
{
    int64_t samples, size;

    *p = (Pnm){ .start = bytes.data, .at = bytes.data + 2, .end = bytes.data + bytes.size };
    if (bytes.size < 3 || bytes.data[0] != 'P' || !strchr("2356", bytes.data[1]))
        return error_set(err, ERR_FORMAT, "byte 0: expected P2, P3, P5 or P6 of a PGM or PPM");
    p->channels = bytes.data[1] == '3' || bytes.data[1] == '6' ? 3 : 1;
    p->binary = bytes.data[1] >= '5';
    if (!pnm_number(p, "the width", MAX_SIDE, &p->width, err) ||
        !pnm_number(p, "the height", MAX_SIDE, &p->height, err) ||
        !pnm_number(p, "the brightest value", 65535, &p->maximum, err))
        return false;
    if (p->width < 1 || p->height < 1 || p->maximum < 1)
        return error_set(err, ERR_FORMAT, "a picture of %lld x %lld pixels up to %lld is none",
                         (long long)p->width, (long long)p->height, (long long)p->maximum);
    p->at += p->binary && p->at < p->end;
    samples = p->width * p->height * p->channels; /* below 2^50 */
    size = p->binary ? samples * (p->maximum > 255 ? 2 : 1) : 2 * samples - 1;
    if (size > p->end - p->at)
        return error_set(err, ERR_FORMAT, "byte %lld: %lld x %lld pixels need %lld bytes, but "
                         "%lld are there", (long long)(p->at - p->start), (long long)p->width,
                         (long long)p->height, (long long)size, (long long)(p->end - p->at));
    return true;
}

static bool pnm_sample(Pnm *p, int64_t *value, Error *err)
{
    if (!p->binary)
        return pnm_number(p, "a sample", p->maximum, value, err);
    *value = *p->at++;
    if (p->maximum > 255)
        *value = *value << 8 | *p->at++;
    return *value <= p->maximum ||
           error_set(err, ERR_FORMAT, "byte %lld: sample %lld is above %lld",
                     (long long)(p->at - p->start) - 1, (long long)*value,
                     (long long)p->maximum);
}

static bool pnm_pixels(Pnm *p, Picture *out, Error *err)
{
    int64_t value;

    for (int64_t i = 0; i < p->width * p->height; i++)
        for (int c = 0; c < p->channels; c++) {
            if (!pnm_sample(p, &value, err))
                return false;
            for (int copy = c; copy < 3; copy += p->channels)
                out->rgb[3 * i + copy] = (uint8_t)((value * 255 + p->maximum / 2) / p->maximum);
        }
    return true;
}

/* ---- both ---------------------------------------------------------------- */

static bool png_failed(const png_image *png, Error *err)
{
    return error_set(err, ERR_FORMAT, "is not a whole PNG picture: %.64s", png->message);
}

/* libpng takes memory for a part before it reads it, so a length beyond the file costs gigabytes.
 * Before the part's bytes stand its length and its name, behind them a checksum. */
static bool png_parts_fit(Mapped bytes, Error *err)
{
    for (int64_t at = 8; bytes.size - at >= 8;) {
        const uint8_t *head = bytes.data + at;
        int64_t length = (int64_t)head[0] << 24 | head[1] << 16 | head[2] << 8 | head[3];

        if (length > bytes.size - at - 12)
            return error_set(err, ERR_FORMAT, "is not a whole PNG picture: the part at byte %lld "
                             "has %lld bytes, more than the file", (long long)at,
                             (long long)length);
        if (!memcmp(head + 4, "IEND", 4))
            break;
        at += length + 12;
    }
    return true;
}

static bool png_header(Mapped bytes, png_image *png, Error *err)
{
    *png = (png_image){ .version = PNG_IMAGE_VERSION };
    if (!png_parts_fit(bytes, err))
        return false;
    if (!png_image_begin_read_from_memory(png, bytes.data, (size_t)bytes.size))
        return png_failed(png, err);
    /* The smallest picture has one bit per pixel. */
    if (((int64_t)png->width * png->height + 7) / 8 / DEFLATE_MAX_RATIO <= bytes.size)
        return true;
    error_set(err, ERR_FORMAT, "%u x %u pixels cannot come from %lld bytes", png->width,
              png->height, (long long)bytes.size);
    png_image_free(png);
    return false;
}

bool image_size(Mapped bytes, InputFormat format, int64_t *width, int64_t *height, Error *err)
{
    png_image png;
    Pnm       pnm;

    if (format == FORMAT_PNM) {
        if (!pnm_header(bytes, &pnm, err))
            return false;
        *width = pnm.width;
        *height = pnm.height;
        return true;
    }
    if (!png_header(bytes, &png, err))
        return false;
    *width = png.width;
    *height = png.height;
    png_image_free(&png);
    return true;
}

static bool decode(Mapped bytes, InputFormat format, Picture *out, Error *err)
{
    png_image png;
    Pnm       pnm;

    if (format == FORMAT_PNM)
        return pnm_header(bytes, &pnm, err) && pnm_pixels(&pnm, out, err);
    if (!png_header(bytes, &png, err))
        return false;
    png.format = PNG_FORMAT_RGB; /* transparent pixels are on black */
    return png_image_finish_read(&png, NULL, out->rgb, 0, NULL) || png_failed(&png, err);
}

/* ---- q, k, v ------------------------------------------------------------- */

static void fill_head(const Input *in, const Picture *picture, int64_t head, float *frequencies,
                      uint64_t seed)
{
    static const double bandwidth[5] = { COLOUR_BANDWIDTH, COLOUR_BANDWIDTH, COLOUR_BANDWIDTH,
                                         PLACE_BANDWIDTH, PLACE_BANDWIDTH };
    int64_t d = in->d, at = head * in->n * d;
    double  amplitude = generate_amplitude(GENERATE_MATCH, d);
    float  *colour = frequencies + (d + 1) / 2 * 5;

    generate_frequencies(seed, "pixel qk", head, 5, bandwidth, d, frequencies);
    generate_frequencies(seed, "pixel v", head, 3, bandwidth, d, colour);
    for (int64_t i = 0; i < in->n; i++, at += d) {
        const uint8_t *rgb = picture->rgb + 3 * i;
        float         *q = tensor_f32(&in->q) + at, *v = tensor_f32(&in->v) + at;
        double         point[5] = { rgb[0] / 255.0, rgb[1] / 255.0, rgb[2] / 255.0,
                                    (double)(i / picture->width), (double)(i % picture->width) };

        generate_features(frequencies, 5, point, amplitude, q, d);
        memcpy(tensor_f32(&in->k) + at, q, (size_t)d * sizeof(*q));
        generate_features(colour, 3, point, 1, v, d);
        for (int64_t c = 0; c < 3 && c < d; c++)
            v[c] = (float)(2 * point[c] - 1);
    }
}

/* Keeps Rec. 601 luma, for pictures of what a query sees. */
static bool keep_pixels(Input *in, const Picture *picture, Error *err)
{
    in->pixels = tensor_new(in->arena, DT_F32, 1, (int64_t[]){ in->n });
    if (!in->pixels.data)
        return error_set(err, ERR_NOMEM, "no memory for the picture");
    for (int64_t i = 0; i < in->n; i++) {
        const uint8_t *rgb = picture->rgb + 3 * i;

        tensor_f32(&in->pixels)[i] =
            (float)((0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]) / 255);
    }
    return true;
}

static bool fill(Input *in, const Picture *picture, const InputChoice *choice, Error *err)
{
    float *frequencies = malloc((size_t)(in->d + 1) / 2 * 8 * sizeof(*frequencies));

    if (!frequencies)
        return error_set(err, ERR_NOMEM, "no memory for features");
    for (int64_t head = 0; head < in->heads; head++)
        fill_head(in, picture, head, frequencies, choice->seed);
    free(frequencies);
    in->note = arena_printf(in->arena, "no model: q = k are random features of colour and place, v "
                            "of colour (seed %llu); %lld x %lld pixels in raster order",
                            (unsigned long long)choice->seed, (long long)picture->width,
                            (long long)picture->height);
    return in->note ? generate_x(in, choice, err)
                    : error_set(err, ERR_NOMEM, "no memory for a note");
}

bool load_image(Input *in, Mapped bytes, InputFormat format, const InputChoice *choice, Error *err)
{
    Picture picture = { .rgb = NULL };
    int64_t n, take;
    bool    ok;

    in->kind = arena_strdup(in->arena, "image");
    if (!in->kind)
        return error_set(err, ERR_NOMEM, "no memory for an input");
    if (!image_size(bytes, format, &picture.width, &picture.height, err))
        return false;
    n = picture.width * picture.height;
    take = choice->n ? choice->n : n;
    if (take > n)
        return error_set(err, ERR_DATA, "holds %lld pixels, so the first %lld cannot be taken",
                         (long long)n, (long long)take);
    if (n > load_limit(choice) / 3)
        return load_no_memory(err, "the pixels", n > INT64_MAX / 3 ? n : 3 * n, choice);
    if (!generate_allocate(in, heads_of(choice), heads_of(choice), take,
                           choice->d ? choice->d : DEFAULT_D, choice, err))
        return false;
    in->width = picture.width;
    picture.rgb = calloc((size_t)n, 3);
    ok = picture.rgb ? decode(bytes, format, &picture, err) && fill(in, &picture, choice, err) &&
                           keep_pixels(in, &picture, err)
                     : load_no_memory(err, "the pixels", 3 * n, choice);
    free(picture.rgb);
    return ok;
}
