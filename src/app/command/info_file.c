/* info_file.c -- what a file holds: its tensors, what it is as an input, a figure's card. */

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "app/figure/rerender.h"
#include "core/utf8.h"
#include "input/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors ------------------------------------------------------------------ */

/* An entry with the place of its layer's number: of the first part between dots that is a number,
 * as in "layers.12.q". */
typedef struct Listed {
    const InputEntry *entry;
    int               digits, digits_end; /* in the name; equal: no number */
    int64_t           number;             /* -1: none */
} Listed;

/* Equal entries of several layers stand in one line from this many on. */
#define SAME_LAYERS 3
/* Long metadata (a token list) is cut here. */
#define METADATA_SHOWN 100
#define NUMBER_DIGITS 15

static Listed listed_of(const InputEntry *entry)
{
    Listed      l = { .entry = entry, .number = -1 };
    const char *name = entry->name, *last = strrchr(name, '.');
    int         length;

    for (const char *part = name; *part; part += length + (part[length] == '.')) {
        int digits = (int)strspn(part, "0123456789");

        length = (int)strcspn(part, ".");
        if (digits == length && digits > 0 && digits <= NUMBER_DIGITS) {
            l.digits = (int)(part - name);
            l.digits_end = l.digits + digits;
            l.number = strtoll(part, NULL, 10);
            return l;
        }
    }
    l.digits = l.digits_end = last ? (int)(last - name) + 1 : 0;
    return l;
}

/* By the names around the number, the type and the shape: 0 for entries that only their layers
 * tell apart. */
static int listed_kind(const Listed *a, const Listed *b)
{
    const InputEntry *x = a->entry, *y = b->entry;
    int               order = a->digits != b->digits ? a->digits - b->digits
                                                     : strncmp(x->name, y->name, (size_t)a->digits);

    if (!order)
        order = strcmp(x->name + a->digits_end, y->name + b->digits_end);
    if (!order)
        order = strcmp(x->dtype, y->dtype);
    if (!order)
        order = x->rank - y->rank;
    for (int i = 0; !order && i < x->rank; i++)
        order = (x->shape[i] > y->shape[i]) - (x->shape[i] < y->shape[i]);
    return order;
}

static int listed_by_kind(const void *a, const void *b)
{
    const Listed *x = a, *y = b;
    int           order = listed_kind(x, y);

    return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* What stands before the number; then the number; then the file's order. */
static int listed_by_layer(const Listed *x, const Listed *y)
{
    int least = x->digits < y->digits ? x->digits : y->digits;
    int order = strncmp(x->entry->name, y->entry->name, (size_t)least);

    if (!order)
        order = x->digits - y->digits;
    if (!order)
        order = (x->number > y->number) - (x->number < y->number);
    return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

/* A line of the listing: `count` entries of one kind. */
typedef struct ListedLine {
    const Listed *first;
    int64_t       count;
} ListedLine;

static int line_by_layer(const void *a, const void *b)
{
    return listed_by_layer(((const ListedLine *)a)->first, ((const ListedLine *)b)->first);
}

/* Adds the i-th number to "0-11,14": as a new run, or to the end of the last one. */
static void add_number(Text *out, int64_t i, int64_t before, int64_t number, int64_t after)
{
    bool follows = i > 0 && number == before + 1, goes_on = after == number + 1;

    if (follows && goes_on)
        return;
    text_addf(out, "%s%lld", !i ? "" : follows ? "-" : ",", (long long)number);
}

static void line_name(const ListedLine *line, Text *out)
{
    const Listed *l = line->first;
    const char   *name = l->entry->name;

    if (line->count == 1) {
        text_add(out, name);
        return;
    }
    text_addf(out, "%.*s{", l->digits, name);
    for (int64_t i = 0; i < line->count; i++)
        add_number(out, i, i ? l[i - 1].number : -1, l[i].number,
                   i + 1 < line->count ? l[i + 1].number : -1);
    text_addf(out, "}%s", name + l->digits_end);
}

static void line_row(Table *t, const ListedLine *line)
{
    const InputEntry *entry = line->first->entry;
    Text              name = { 0 };
    char              shape[160] = "[", bytes[32];

    for (int i = 0; i < entry->rank; i++)
        snprintf(shape + strlen(shape), sizeof(shape) - strlen(shape), "%s%lld", i ? "," : "",
                 (long long)entry->shape[i]);
    line_name(line, &name);
    format_bytes(entry->bytes, bytes, sizeof(bytes));
    table_cell(t, "  %s", text_str(&name));
    table_cell(t, "%s", entry->dtype);
    table_cell(t, "%s]", shape);
    if (line->count == 1)
        table_cell(t, "%s", bytes);
    else
        table_cell(t, "%lld x %s", (long long)line->count, bytes);
    text_free(&name);
}

/* Lines of entries that stand sorted by kind; returns how many. */
static int64_t listing_lines(const Listed *sorted, int64_t count, ListedLine *lines)
{
    int64_t found = 0, same;

    for (int64_t i = 0; i < count; i += same) {
        for (same = 1; i + same < count && !listed_kind(&sorted[i], &sorted[i + same]);)
            same++;
        if (same < SAME_LAYERS || sorted[i].number < 0)
            same = 1;
        lines[found++] = (ListedLine){ &sorted[i], same };
    }
    qsort(lines, (size_t)found, sizeof(*lines), line_by_layer);
    return found;
}

static bool listing_table(const InputListing *l, Text *out, Error *err)
{
    Table       t = { .cols = 4 };
    Listed     *sorted = calloc((size_t)l->count + 1, sizeof(*sorted));
    ListedLine *lines = calloc((size_t)l->count + 1, sizeof(*lines));
    bool        ok = sorted && lines;
    int64_t     count = 0;

    if (ok) {
        for (int64_t i = 0; i < l->count; i++)
            sorted[i] = listed_of(&l->entries[i]);
        qsort(sorted, (size_t)l->count, sizeof(*sorted), listed_by_kind);
        count = listing_lines(sorted, l->count, lines);
    } else
        error_set(err, ERR_NOMEM, "no memory for a list of %lld tensors", (long long)l->count);
    for (int64_t i = 0; i < count; i++)
        line_row(&t, &lines[i]);
    table_write(&t, TABLE_TEXT, out);
    table_free(&t);
    free(lines);
    free(sorted);
    return ok;
}

/* Bytes of the value that are printed: whole characters. */
static int shown_bytes(const char *value)
{
    size_t bytes = strnlen(value, METADATA_SHOWN + 1);

    if (bytes <= METADATA_SHOWN)
        return (int)bytes;
    for (bytes = METADATA_SHOWN; bytes > 0 && utf8_continues(value[bytes]);)
        bytes--;
    return (int)bytes;
}

static bool describe_listing(const char *path, const InputListing *l, Text *out, Error *err)
{
    text_addf(out, "%s: %s, %lld tensor%s\n", path, l->kind, (long long)l->count,
              l->count == 1 ? "" : "s");
    if (!listing_table(l, out, err))
        return false;
    for (int64_t i = 0; i < l->metadata_count; i++)
        text_addf(out, "  %s = %.*s%s\n", l->keys[i], shown_bytes(l->values[i]), l->values[i],
                  strlen(l->values[i]) > METADATA_SHOWN ? "..." : "");
    return true;
}

/* ---- as an input ------------------------------------------------------------- */

/* More layers than this are printed as ranges: "0-29". */
#define LAYERS_NAMED 8

/* The default layer and those the file holds: "layer 3 (there are 3, 12), ". */
static void describe_layer(const Input *input, Text *out)
{
    text_addf(out, "layer %lld", (long long)input->layer);
    if (!input->held)
        text_addf(out, " of %lld", (long long)input->layers);
    else if (input->layers == 1)
        text_add(out, " (no other)");
    if (input->held && input->layers > 1) {
        text_add(out, " (there are ");
        for (int64_t i = 0; i < input->layers; i++)
            if (input->layers <= LAYERS_NAMED)
                text_addf(out, "%s%lld", i ? ", " : "", (long long)input->held[i]);
            else
                add_number(out, i, i ? input->held[i - 1] : -1, input->held[i],
                           i + 1 < input->layers ? input->held[i + 1] : -1);
        text_add(out, ")");
    }
    text_add(out, ", ");
}

/* Grouped heads: ", 2 key and value heads, each for 4 heads of q". */
static void describe_groups(const Input *input, Text *out)
{
    int64_t keys = input_kv_heads(input);

    if (keys != input->heads)
        text_addf(out, ", %lld key and value head%s (each for %lld of q)", (long long)keys,
                  keys == 1 ? "" : "s", (long long)(input->heads / keys));
}

static void describe_heads(const Input *input, const char *x, Text *out)
{
    text_add(out, "as input: ");
    describe_layer(input, out);
    text_addf(out, "h=%lld n=%lld m=%lld d=%lld e=%lld", (long long)input->heads,
              (long long)input->n, (long long)input->m, (long long)input->d, (long long)input->e);
    describe_groups(input, out);
    text_addf(out, "%s%s%s\n", x, input->q_tokens ? ", tokens" : "",
              input->causal > 0    ? ", causal"
              : input->causal == 0 ? ", not causal"
                                   : "");
}

static void describe_input(const Input *input, Text *out)
{
    char x[48] = "";

    if (input->x.data)
        snprintf(x, sizeof(x), ", x dm=%lld", (long long)input->x.shape[1]);
    if (input->q.data && input->k.data && input->v.data)
        describe_heads(input, x, out);
    else if (input->v.data && !input->k.data)
        text_addf(out, "as input:%s v%s without k, h=%lld n=%lld e=%lld: for mechanisms that "
                  "compare no tokens\n", input->q.data ? " q and" : "",
                  input->x.data ? " and x" : "", (long long)input->heads, (long long)input->n,
                  (long long)input->e);
    else if (input->x.data)
        text_addf(out, "as input: x only, n=%lld dm=%lld\n", (long long)input->x.shape[0],
                  (long long)input->x.shape[1]);
    else if (!input->attn.data)
        text_addf(out, "as input:%s%s%s, but not all of q, k and v\n", input->q.data ? " q" : "",
                  input->k.data ? " k" : "", input->v.data ? " v" : "");
    else {
        text_add(out, "as input: finished weights only, ");
        describe_layer(input, out);
        text_addf(out, "h=%lld n=%lld m=%lld\n", (long long)input->attn.shape[0],
                  (long long)input->attn.shape[1], (long long)input->attn.shape[2]);
    }
    if (input->note)
        text_addf(out, "%s\n", input->note);
    if (input->warning)
        text_addf(out, "warning: %s\n", input->warning);
}

/* Prints where measured numbers come from. */
static void measured_card(const char *path, Text *out)
{
    Error         err = ERROR_INIT;
    StoredFigure *stored = stored_figure_read(path, &err);
    char         *line = stored ? figure_metadata(path, "attnscope:command", &err) : NULL;

    if (stored)
        text_addf(out, "%-13s on %s; rerender draws these numbers, %s\n", "measured",
                  stored_figure_measured(stored),
                  line && !rerender_measures(line)
                      ? "its command measures new ones: run it yourself"
                      : "rerender --measure runs the command again");
    else if (err.code != ERR_NONE)
        text_addf(out, "%-13s %s\n", "measured", err.text);
    free(line);
    stored_figure_free(stored);
}

static bool figure_card(const char *path, Text *out)
{
    static const char *const keys[] = { "attnscope:version", "attnscope:command",
                                        "attnscope:params",  "attnscope:seed",
                                        "attnscope:input",   "attnscope:input-sha256",
                                        SCRIPT_KEY,          SCRIPT_HASH_KEY,
                                        FONT_HASH_KEY };
    bool                     found = false;

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        Error ignored;
        char *value = figure_metadata(path, keys[i], &ignored);

        if (value)
            text_addf(out, "%s%-13s %s\n", found ? "" : "a figure made by attnscope\n",
                      keys[i] + strlen("attnscope:"), value);
        found = found || value;
        free(value);
    }
    if (found)
        measured_card(path, out);
    return found;
}

bool info_generator(const char *spec, Text *out, Error *err)
{
    InputChoice choice = INPUT_CHOICE_DEFAULT;
    Input      *input = input_load(spec, &choice, err);

    if (!input)
        return false;
    text_addf(out, "%s\n", input->name);
    describe_input(input, out);
    input_free(input);
    return true;
}

bool info_file(const char *path, Text *out, Error *err)
{
    InputListing listing = { 0 };
    Input       *input;
    InputChoice  choice = INPUT_CHOICE_DEFAULT;
    bool         ok;

    if (figure_card(path, out))
        return true;
    if (!input_list(path, &listing, err))
        return false;
    choice.shapes = true;
    ok = describe_listing(path, &listing, out, err);
    input_listing_free(&listing);
    if (!ok)
        return false;
    input = input_load(path, &choice, err);
    if (!input && err->code == ERR_NOMEM) /* of shapes, which need next to none */
        return false;
    if (!input) { /* a file of other tensors is listed, too */
        text_addf(out, "as input: no (%s)\n", err->text);
        *err = ERROR_INIT;
        return true;
    }
    describe_input(input, out);
    input_free(input);
    return true;
}

