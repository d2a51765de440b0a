/* systems.c -- the surveys' systems: their claims beside measurements; see sweep.h.
 *
 * Each survey's claim is compared with the same slopes, so where two surveys claim different
 * growth, the table says which of them holds.
 */
#include <stdio.h>
#include <string.h>

#include "app/study/sweep.h"

typedef struct SystemsTable {
    const Results   *rows;
    const SeriesFit *fits;
    int              count;
    TableStyle       style;
    Table            table;
} SystemsTable;

typedef enum Column {
    COL_SYSTEM,
    COL_RUNS,
    COL_CLAIMED,
    COL_CLASS,
    COL_FLOPS,
    COL_FLOPS_BEST,
    COL_FLOPS_CLAIM,
    COL_TIME,
    COL_TIME_BEST,
    COL_TIME_CLAIM,
    COL_MEMORY,
    COL_MEMORY_BEST,
    COL_POINTS,
    COL_FASTER,
    COLUMNS
} Column;

static const struct {
    const char *head, *csv;
    bool        text; /* also in the table for a terminal */
} columns[COLUMNS] = {
    [COL_SYSTEM] = { "system", "system", true },
    [COL_RUNS] = { "runs as", "runs_as", true },
    [COL_CLAIMED] = { "claimed", "claimed", true },
    [COL_CLASS] = { "class", "class", false },
    [COL_FLOPS] = { "FLOPs n^", "FLOPs", true },
    [COL_FLOPS_BEST] = { "best", "FLOPs.best", false },
    [COL_FLOPS_CLAIM] = { "claim", "FLOPs.claim", true },
    [COL_TIME] = { "time n^", "time", true },
    [COL_TIME_BEST] = { "best", "time.best", false },
    [COL_TIME_CLAIM] = { "claim", "time.claim", true },
    [COL_MEMORY] = { "memory n^", "memory", true },
    [COL_MEMORY_BEST] = { "best", "memory.best", false },
    [COL_POINTS] = { "points", "points", false },
    [COL_FASTER] = { "faster from n", "faster_from_n", true },
};

static bool is_exponent(Column col)
{
    return col == COL_FLOPS || col == COL_TIME || col == COL_MEMORY;
}

static void put(SystemsTable *t, Column col, const char *text)
{
    if (t->style != TABLE_TEXT || columns[col].text)
        table_cell(&t->table, "%s", text);
}

/* For programs, slope and interval are separate numbers. */
static void put_exponent(SystemsTable *t, Column col, const Fit *fit)
{
    const Number numbers[] = { fit->alpha, fit->lo, fit->hi };
    char         text[64];

    if (t->style != TABLE_CSV) {
        put(t, col, exponent_text(fit, text, sizeof(text)));
        return;
    }
    for (int i = 0; i < 3; i++)
        table_number(&t->table, numbers[i], 6);
}

static void put_heads(SystemsTable *t)
{
    for (Column col = 0; col < COLUMNS; col++) {
        if (t->style == TABLE_CSV && is_exponent(col)) {
            table_cell(&t->table, "%s.alpha", columns[col].csv);
            table_cell(&t->table, "%s.lo", columns[col].csv);
            table_cell(&t->table, "%s.hi", columns[col].csv);
        } else {
            put(t, col, t->style == TABLE_CSV ? columns[col].csv : columns[col].head);
        }
    }
    t->table.cols = t->table.count;
}

/* Appends "within [b], above [a]": the verdict on each survey's claim. */
static void add_verdicts(const System *system, const SeriesFit *f, FitOf of, Text *out)
{
    for (Verdict v = VERDICT_WITHIN; v <= VERDICT_UNDECIDED; v++) {
        int found = 0;

        for (int s = 0; s < SURVEYS; s++) {
            Growth claim = claim_growth(system->claims[s].complexity);

            if (fit_verdict(f, of, claim) != v)
                continue;
            if (!found++)
                text_addf(out, "%s%s [", out->length ? ", " : "", verdict_word(v));
            text_addf(out, "%c", 'a' + s);
        }
        text_add(out, found ? "]" : "");
    }
    if (!out->length)
        text_add(out, "-");
}

static void begin_row(SystemsTable *t, const System *system, const char *runs)
{
    Text claims = { 0 };
    char class[32];

    system_claims(system, CLAIM_COMPLEXITY, &claims);
    put(t, COL_SYSTEM, system->name);
    put(t, COL_RUNS, runs);
    put(t, COL_CLAIMED, text_str(&claims));
    put(t, COL_CLASS, system_class(system, class, sizeof(class)));
    text_free(&claims);
}

int fits_of_word(const SeriesFit *fits, int count, const char *word, const SeriesFit **last)
{
    int found = 0;

    for (int i = 0; i < count; i++)
        if (!strcmp(fits[i].row->asked, word)) {
            *last = &fits[i];
            found++;
        }
    return found;
}

void asked_name(const Results *rows, const SeriesFit *fits, int count, const SeriesFit *f,
                Text *out)
{
    const SeriesFit *last;

    if (fits_of_word(fits, count, f->row->asked, &last) == 1)
        text_add(out, f->row->asked);
    else
        series_name(rows, f->row, out);
}

static void put_fit(SystemsTable *t, const System *system, const SeriesFit *f, FitOf of, Column col)
{
    const Fit *fit = &f->plain[of];
    Text       verdicts = { 0 };

    put_exponent(t, col, fit);
    put(t, col + 1, fit->alpha.valid ? fit_model_name(fit->best) : "n/a");
    if (of == FIT_MEMORY)
        return;
    add_verdicts(system, f, of, &verdicts);
    put(t, col + 2, text_str(&verdicts));
    text_free(&verdicts);
}

static void system_measured(SystemsTable *t, const System *system, const SeriesFit *f)
{
    Text name = { 0 };
    char text[48];

    asked_name(t->rows, t->fits, t->count, f, &name);
    begin_row(t, system, text_str(&name));
    text_free(&name);
    put_fit(t, system, f, FIT_FLOPS, COL_FLOPS);
    put_fit(t, system, f, FIT_TIME, COL_TIME);
    put_fit(t, system, f, FIT_MEMORY, COL_MEMORY);
    snprintf(text, sizeof(text), "%d", f->points);
    put(t, COL_POINTS, text);
    put(t, COL_FASTER, crossover_text(f, text, sizeof(text)));
}

static void empty_row(SystemsTable *t, const System *system, const char *runs, const char *why)
{
    static const Fit none;

    begin_row(t, system, runs);
    for (Column col = COL_FLOPS; col < COL_FASTER; col++)
        if (is_exponent(col))
            put_exponent(t, col, &none);
        else
            put(t, col, "n/a");
    put(t, COL_FASTER, why);
}

/* The reason why a word has no fit: the message of its last point. */
static void word_without_fit(SystemsTable *t, const System *system, const char *word)
{
    const ResultRow *failed = NULL;
    char             why[600];

    for (int i = 0; i < t->rows->count; i++)
        if (!strcmp(t->rows->rows[i].asked, word))
            failed = &t->rows->rows[i];
    if (failed)
        snprintf(why, sizeof(why), "%s: %.500s", failed->status, failed->message);
    empty_row(t, system, word, failed ? why : "not in this file");
}

static void system_rows(SystemsTable *t, const System *system)
{
    const char *at = system->runs;
    char        word[96];
    bool        runs = false;

    while (system_next_word(&at, word, sizeof(word))) {
        bool found = false;

        runs = true;
        for (int i = 0; i < t->count; i++)
            if (!strcmp(t->fits[i].row->asked, word)) {
                system_measured(t, system, &t->fits[i]);
                found = true;
            }
        if (!found)
            word_without_fit(t, system, word);
    }
    if (!runs)
        empty_row(t, system, "-", "nothing runs it here");
}

static void part_row(SystemsTable *t, SystemPart part)
{
    table_cell(&t->table, "-- %s", system_part_title(part));
    for (int col = 1; col < t->table.cols; col++)
        table_cell(&t->table, "%s", "");
}

static void notes(TableStyle style, Text *out)
{
    const char *paragraph = style == TABLE_MARKDOWN ? "\n" : "";

    text_addf(out,
              "\nn^: slope of log cost on log n, [Student's 95 %% interval].  best: "
              "nearest of 1, log n,\nn, n log n, n^1.5, n^2.\n%sclaim: of each survey, whether the "
              "interval holds its exponent or lies above or below it by\nmore than %.1f; a claimed "
              "log n is divided out first; undecided: the interval is wider than %g; -: it gives\n"
              "no exponent of n, or there are too few points.  Sizes that a claim keeps fixed "
              "(window,\nblock, rank) are fixed here.  A sparse model's claim is of the whole "
              "model;\n"
              "the layer that it changes runs here.  "
              "memory: the\nmechanism's own (arena peak).\n",
              paragraph, VERDICT_TOLERANCE, VERDICT_WIDEST);
    for (int s = 0; s < SURVEYS; s++)
        text_addf(out, "%s[%c] %s\n", paragraph, 'a' + s, survey_title(s));
}

void systems_table(const Results *rows, const SeriesFit *fits, int count, TableStyle style,
                   Text *out)
{
    SystemsTable t = {
        .rows = rows, .fits = fits, .count = count, .style = style, .table.cols = 1
    };
    SystemPart part = SYSTEM_PARTS;

    put_heads(&t);
    for (size_t i = 0; system_at(i); i++) {
        const System *system = system_at(i);

        if (style != TABLE_CSV && system->part != part)
            part_row(&t, system->part);
        part = system->part;
        system_rows(&t, system);
    }
    table_write(&t.table, style, out);
    table_free(&t.table);
    if (style != TABLE_CSV)
        notes(style, out);
}

/* ---- claims ----------------------------------------------------------------- */

static const char *claim_of(const System *system, int survey, SystemClaimKind what)
{
    const SystemClaim *claim = &system->claims[survey];

    return what == CLAIM_DECODE ? claim->decode : claim->complexity;
}

static bool claimed_before(const System *system, int survey, SystemClaimKind what)
{
    for (int s = 0; s < survey; s++)
        if (claim_of(system, s, what) &&
            !strcmp(claim_of(system, s, what), claim_of(system, survey, what)))
            return true;
    return false;
}

void system_claims(const System *system, SystemClaimKind what, Text *out)
{
    size_t before = out->length;

    for (int s = 0; s < SURVEYS; s++) {
        const char *claim = claim_of(system, s, what);

        if (!claim || claimed_before(system, s, what))
            continue;
        text_addf(out, "%s%s [", out->length > before ? "; " : "", claim);
        for (int t = s; t < SURVEYS; t++)
            if (claim_of(system, t, what) && !strcmp(claim_of(system, t, what), claim))
                text_addf(out, "%c", 'a' + t);
        text_add(out, "]");
    }
    if (out->length == before)
        text_add(out, "-");
}

const char *system_class(const System *system, char *text, size_t size)
{
    const Mechanism *m = system_mechanism(system);

    for (int s = SURVEY_B; s >= SURVEY_A; s--)
        if (system->claims[s].complexity)
            return system->claims[s].class;
    return m ? mechanism_classes(m, text, size) : "-";
}

/* A single "n", as in "k n" and "n^2", not in "n_c", "log n" or "sqrt(n)". */
static const char *find_n(const char *text)
{
    for (const char *at = text; *at; at++) {
        bool begins = at == text || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_",
                                            at[-1]);

        if (*at == 'n' && begins && !strchr("_abcdefghijklmnopqrstuvwxyz", at[1] ? at[1] : ' ') &&
            !(at - text >= 4 && !strncmp(at - 4, "log ", 4)) &&
            !(at - text >= 5 && !strncmp(at - 5, "sqrt(", 5)))
            return at;
    }
    return NULL;
}

Growth claim_growth(const char *complexity)
{
    Growth      g = { .power = -1 };
    const char *open = complexity ? strchr(complexity, '(') : NULL;
    const char *n = open ? find_n(open + 1) : NULL;

    if (!n || strstr(complexity, "memory"))
        return g;
    g.power = !strncmp(n, "n^2", 3) ? 2 : 1;
    if (strstr(complexity, "sqrt(n)"))
        g.power += 0.5;
    g.log = strstr(complexity, "log n") != NULL;
    return g;
}

/* ---- what runs it ----------------------------------------------------------- */

static const Mechanism *mechanism_of(const char *word)
{
    char id[64];

    snprintf(id, sizeof(id), "%.*s", (int)strcspn(word, "("), word);
    return mechanism_find(id);
}

bool system_next_word(const char **at, char *word, size_t size)
{
    while (**at) {
        size_t length = strcspn(*at, " ");

        snprintf(word, size, "%.*s", (int)length, *at);
        *at += length;
        *at += strspn(*at, " ");
        if (mechanism_of(word))
            return true;
    }
    return false;
}

const Mechanism *system_mechanism(const System *system)
{
    const char *at = system->runs;
    char        word[96];

    return system_next_word(&at, word, sizeof(word)) ? mechanism_of(word) : NULL;
}
