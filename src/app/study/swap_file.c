/* swap_file.c -- see swap_file.h. */
#include "app/study/swap_file.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "model/swap.h"

#define MOST_BYTES ((size_t)16 << 20)

enum { COLUMN_LAYER, COLUMN_HEAD, COLUMN_MECHANISM, COLUMN_NOTE, COLUMNS };

typedef struct Reader {
    const char        *path;
    const ModelConfig *c;
    uint64_t           seed;
    SwapMixture       *out;
    int                column[COLUMNS]; /* where it stands; -1: nowhere */
    int64_t            line;
    bool              *taken;           /* [layers, heads] */
    int64_t           *layer_of;        /* [parts_most] of some heads only; -1: of whole layers */
    Error             *err;
} Reader;

bool swap_is_file(const char *swap)
{
    return *swap == '@';
}

void swap_mixture_free(SwapMixture *mixture)
{
    if (mixture)
        arena_free(mixture->arena);
}

static bool no_memory(Error *err)
{
    return error_set(err, ERR_NOMEM, "not enough memory for a mixture of swaps");
}

/* A part of each head, and one of a row whose head is taken, which is refused after that. */
static int64_t parts_most(const ModelConfig *c)
{
    return c->layers * c->heads + 1;
}

/* ---- cells of CSV ---------------------------------------------------------- */

/* Takes the cell at *at apart in place; *last: it ends its line. */
static char *take_cell(char **at, bool *last)
{
    char *start = *at, *to = *at, *from = *at;
    bool  quoted = *from == '"';

    for (from += quoted; *from && (quoted || (*from != ',' && *from != '\n')); from++) {
        if (quoted && *from == '"' && *++from != '"') {
            quoted = false;
            from--;
        } else {
            *to++ = *from;
        }
    }
    *last = *from != ',';
    *at = *from ? from + 1 : from;
    to -= to > start && to[-1] == '\r';
    *to = '\0';
    return start;
}

static bool take_header(Reader *r, char **at)
{
    static const char *const names[COLUMNS] = { "layer", "head", "mechanism", "note" };
    bool                     last = false;

    for (int c = 0; c < COLUMNS; c++)
        r->column[c] = -1;
    for (int place = 0; !last; place++) {
        const char *name = take_cell(at, &last);

        for (int c = 0; c < COLUMNS; c++)
            if (!strcmp(name, names[c]))
                r->column[c] = place;
    }
    return (r->column[COLUMN_LAYER] >= 0 && r->column[COLUMN_MECHANISM] >= 0) ||
           error_set(r->err, ERR_DATA, "%.200s: expected a first line with the columns layer and "
                     "mechanism, as advise_model.lua writes it", r->path);
}

static bool take_line(const Reader *r, char **at, const char *cells[COLUMNS])
{
    bool last = false, some = false;

    for (int c = 0; c < COLUMNS; c++)
        cells[c] = "";
    for (int place = 0; !last; place++) {
        const char *cell = take_cell(at, &last);

        some = some || *cell;
        for (int c = 0; c < COLUMNS; c++)
            if (r->column[c] == place)
                cells[c] = cell;
    }
    return some;
}

/* ---- rows ------------------------------------------------------------------- */

static bool read_index(const Reader *r, const char *text, const char *what, int64_t count,
                       int64_t *out)
{
    char *end;

    *out = strtoll(text, &end, 10);
    return (end != text && !*end && *out >= 0 && *out < count) ||
           error_set(r->err, ERR_DATA, "%.200s, line %lld: %s '%.40s': the model has the %ss 0 to "
                     "%lld", r->path, (long long)r->line, what, text, what, (long long)count - 1);
}

static bool check_mechanism(const Reader *r, const char *text)
{
    MechanismSpec spec;

    if (!mechanism_spec_parse(text, &spec, r->err))
        return error_prefix(r->err, "%.200s, line %lld", r->path, (long long)r->line);
    mechanism_spec_free(&spec);
    return true;
}

/* The part to which the row belongs, a new one if need be; NULL with the error set.  layer -1: it
 * may hold many layers. */
static Swap *part_of(Reader *r, const char *mechanism, int64_t layer)
{
    SwapMixture *m = r->out;
    bool        *layers, *heads;

    for (int64_t x = 0; x < m->count; x++)
        if (r->layer_of[x] == layer && !strcmp(m->parts[x].mechanism, mechanism))
            return &m->parts[x];
    if (!check_mechanism(r, mechanism))
        return NULL;
    layers = arena_alloc(m->arena, r->c->layers, sizeof(*layers));
    heads = arena_alloc(m->arena, r->c->heads, sizeof(*heads));
    m->parts[m->count] = (Swap){ .mechanism = arena_strdup(m->arena, mechanism), .layers = layers,
                                 .heads = heads, .seed = r->seed };
    if (!layers || !heads || !m->parts[m->count].mechanism) {
        no_memory(r->err);
        return NULL;
    }
    memset(layers, 0, (size_t)r->c->layers);
    memset(heads, 0, (size_t)r->c->heads);
    if (m->count)
        m->parts[m->count - 1].also = &m->parts[m->count];
    r->layer_of[m->count] = layer;
    return &m->parts[m->count++];
}

static bool mark(Reader *r, const Swap *part, int64_t layer, int64_t head)
{
    bool *taken = &r->taken[layer * r->c->heads + head];

    if (*taken)
        return error_set(r->err, ERR_DATA, "%.200s, line %lld: layer %lld, head %lld has a "
                         "mechanism already", r->path, (long long)r->line, (long long)layer,
                         (long long)head);
    *taken = true;
    if (part) {
        ((bool *)(uintptr_t)part->layers)[layer] = r->out->layers[layer] = true;
        ((bool *)(uintptr_t)part->heads)[head] = r->out->heads[head] = true;
    }
    return true;
}

static bool take_row(Reader *r, const char *const cells[COLUMNS])
{
    const char *mechanism = cells[COLUMN_MECHANISM], *which = cells[COLUMN_HEAD];
    bool        whole = !*which || !strcmp(which, "all");
    int64_t     layer, first = 0, last = r->c->heads - 1;
    Swap       *part = NULL;

    if (!strcmp(cells[COLUMN_NOTE], "tried"))
        return error_set(r->err, ERR_DATA, "%.200s, line %lld: candidates that were tried, no "
                         "mixture: advise_model.lua was interrupted", r->path, (long long)r->line);
    if (!read_index(r, cells[COLUMN_LAYER], "layer", r->c->layers, &layer) ||
        !(whole || read_index(r, which, "head", r->c->heads, &first)))
        return false;
    if (!whole)
        last = first;
    if (strcmp(mechanism, "full") != 0 &&
        !(part = part_of(r, mechanism, whole ? -1 : layer)))
        return false;
    for (int64_t head = first; head <= last; head++)
        if (!mark(r, part, layer, head))
            return false;
    return true;
}

/* ---- the file ----------------------------------------------------------------- */

static bool take_rows(Reader *r, char *at)
{
    const char *cells[COLUMNS];

    if (!take_header(r, &at))
        return false;
    for (r->line = 2; *at; r->line++)
        if (take_line(r, &at, cells) && !take_row(r, cells))
            return false;
    return r->out->count || error_set(r->err, ERR_DATA, "%.200s: no layer is swapped", r->path);
}

static SwapMixture *mixture_new(const ModelConfig *c)
{
    Arena       *arena = arena_new();
    SwapMixture *m = arena ? arena_alloc(arena, 1, sizeof(*m)) : NULL;

    if (!m) {
        arena_free(arena);
        return NULL;
    }
    *m = (SwapMixture){ .arena = arena };
    m->parts = arena_alloc(arena, parts_most(c), sizeof(*m->parts));
    m->layers = arena_alloc(arena, c->layers, sizeof(*m->layers));
    m->heads = arena_alloc(arena, c->heads, sizeof(*m->heads));
    if (m->layers && m->heads) {
        memset(m->layers, 0, (size_t)c->layers);
        memset(m->heads, 0, (size_t)c->heads);
    }
    return m;
}

SwapMixture *swap_mixture_read(const char *swap, const ModelConfig *c, uint64_t seed, Error *err)
{
    size_t all = (size_t)parts_most(c);
    Text   text = { 0 };
    Reader r = { .path = swap + 1, .c = c, .seed = seed, .out = mixture_new(c),
                 .taken = calloc(all, sizeof(bool)), .layer_of = calloc(all, sizeof(int64_t)),
                 .err = err };
    bool   ok = (r.out && r.out->parts && r.out->layers && r.out->heads && r.taken && r.layer_of) ||
              no_memory(err);

    ok = ok && file_read(r.path, MOST_BYTES, &text, err);
    ok = ok && ((text_add(&text, ""), text_ok(&text)) || no_memory(err));
    ok = ok && take_rows(&r, text.length ? text.data : (char[]){ 0 });
    ok = ok && ((r.out->parts->name = arena_strdup(r.out->arena, swap)) != NULL || no_memory(err));
    text_free(&text);
    free(r.taken);
    free(r.layer_of);
    if (ok)
        return r.out;
    swap_mixture_free(r.out);
    return NULL;
}
