/* tokens.c -- a text as a sequence.
 *
 * A text is split into words and punctuation: letters, digits, '_' and bytes
 * above ASCII make words, with an apostrophe or a hyphen inside; any other
 * character that is not a space stands alone.  Files named .tokens.txt or
 * .ids hold one token a line, taken as it is.
 *
 * A text has no q, k and v.  They are drawn per token: q = k is one vector, v
 * another, so equal tokens attend to each other and positions play no part.
 * The note says so.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "core/rng.h"
#include "input/generate.h"
#include "input/labels.h"
#include "input/load.h"

#define DEFAULT_D 32

typedef struct TokenReader {
    const uint8_t *at, *end;
    bool           lines;
} TokenReader;

static bool by_lines(const char *path)
{
    static const char *const endings[] = { ".tokens.txt", ".ids" };
    size_t length = strlen(path);

    for (int i = 0; i < 2; i++) {
        size_t tail = strlen(endings[i]);

        if (length >= tail && strcasecmp(path + length - tail, endings[i]) == 0)
            return true;
    }
    return false;
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
        step = labels_utf8(bytes.data + at, bytes.size - at);
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

#define ROWS 1024 /* of one work item */

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
    if (!generate_allocate(in, choice->heads ? choice->heads : 1, n,
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
