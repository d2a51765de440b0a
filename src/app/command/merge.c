/* merge.c -- the shards of a sweep become one file.
 *
 * Of lines with one key a measured one stays before one that is not, else the
 * first given.  Two measured ones whose counted FLOPs differ contradict each
 * other: that is reported, and is exit status 3.  A file that holds something is
 * never replaced: it may be one of the inputs, or the file that a sweep writes to.
 * Of names such as cost.2of8.jsonl all shards must be there; points that none of them has are
 * counted, and the first is named.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/study/sweep.h"

typedef struct Merge {
    const Call *call;
    Results     rows;
    bool       *left_out; /* of each row */
    int         twice, retried, conflicts;
    Text        notes;
} Merge;

static bool is_cancelled(const ResultRow *row)
{
    return !strcmp(row->status, record_status_name(RECORD_CANCELLED));
}

/* Counted FLOPs have no noise, so both files cannot be right. */
static bool contradict(const ResultRow *a, const ResultRow *b)
{
    Number x = row_number(a, "flops.counted"), y = row_number(b, "flops.counted");

    return a->ok && b->ok && x.valid && y.valid && x.value != y.value;
}

static void note_conflict(Merge *m, const ResultRow *a, const ResultRow *b)
{
    m->conflicts++;
    text_addf(&m->notes, "conflict: %s n=%lld seed=%lld (%s): %s and %s counted different FLOPs; "
              "the first was kept\n", a->mechanism, (long long)a->n, (long long)a->seed, a->key,
              m->call->words[a->file], m->call->words[b->file]);
}

/* Chooses between rows of one key, b after a. */
static void settle_conflict(Merge *m, int a, int b)
{
    const ResultRow *first = &m->rows.rows[a], *second = &m->rows.rows[b];
    bool             better = second->ok || (is_cancelled(first) && !is_cancelled(second));

    if (contradict(first, second))
        note_conflict(m, first, second);
    else if (first->ok && second->ok)
        m->twice++;
    else if (first->ok != second->ok)
        m->retried++;
    m->left_out[!first->ok && better ? a : b] = true;
}

/* ---- shards ------------------------------------------------------------------- */

/* "cost.2of8.jsonl": shard 2 of 8; stem: how much of the name, without folders, comes before. */
static bool shard_of(const char *path, int *shard, int *shards, size_t *stem)
{
    const char *name = path_name(path), *dot;

    for (dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        int end = 0;

        if (sscanf(dot, ".%9dof%9d%n", shard, shards, &end) == 2 && end &&
            !strcmp(dot + end, ".jsonl") && *shard >= 1 && *shard <= *shards) {
            *stem = (size_t)(dot - name);
            return true;
        }
    }
    return false;
}

/* All files are shards, by their names. */
static bool are_shards(const Call *call)
{
    int    shard, shards;
    size_t stem;

    for (int i = 0; i < call->word_count; i++)
        if (!shard_of(call->words[i], &shard, &shards, &stem))
            return false;
    return true;
}

/* Whether the file is a shard of this sweep; its shards may lie in folders of their own. */
static bool is_shard_of(const char *path, const char *name, size_t stem, int of, int *shard)
{
    int    shards;
    size_t length;

    return shard_of(path, shard, &shards, &length) && shards == of && length == stem &&
           !strncmp(path_name(path), name, stem);
}

/* Whether the call names the file before word i. */
static bool is_named_before(const Call *call, int i)
{
    for (int before = 0; before < i; before++)
        if (!strcmp(call->words[before], call->words[i]))
            return true;
    return false;
}

/* Files, each once, of a shard of the sweep. */
static int count_shard(const Call *call, const char *name, size_t stem, int wanted, int of)
{
    int count = 0, shard;

    for (int i = 0; i < call->word_count; i++)
        count += is_shard_of(call->words[i], name, stem, of, &shard) && shard == wanted &&
                 !is_named_before(call, i);
    return count;
}

/* How much of the path is its folder, where all shards lie in it; else 0. */
static size_t common_folder(const Call *call, const char *path)
{
    size_t folder = (size_t)(path_name(path) - path);

    for (int i = 0; i < call->word_count; i++)
        if ((size_t)(path_name(call->words[i]) - call->words[i]) != folder ||
            strncmp(call->words[i], path, folder) != 0)
            return 0;
    return folder;
}

/* Every shard of the sweep is given, and as often as the others. */
static bool check_sweep(const Call *call, const char *path, size_t stem, int shards, Error *err)
{
    const char *name = path_name(path);
    int         files = 0;

    for (int k = 1; k <= shards; k++) {
        int count = count_shard(call, name, stem, k, shards);

        files = count > files ? count : files;
    }
    for (int k = 1; k <= shards; k++)
        if (count_shard(call, name, stem, k, shards) < files)
            return error_set(err, ERR_FILE, "%.*s%.*s.%dof%d.jsonl: shard %d of %d is missing; "
                             "nothing was written. sweep ... --shard %d/%d makes it",
                             (int)common_folder(call, path), path, (int)stem, name, k, shards, k,
                             shards, k, shards);
    return true;
}

/* Each sweep that the names speak of is whole. */
static bool check_shards(const Call *call, Error *err)
{
    for (int i = 0; i < call->word_count; i++) {
        const char *path = call->words[i];
        int         shard, shards, before = 0, other;
        size_t      stem;

        if (!shard_of(path, &shard, &shards, &stem))
            continue;
        while (before < i &&
               !is_shard_of(call->words[before], path_name(path), stem, shards, &other))
            before++;
        if (before == i && !check_sweep(call, path, stem, shards, err))
            return false;
    }
    return true;
}

static void find_doubles(Merge *m)
{
    for (int b = 1; b < m->rows.count; b++)
        for (int a = 0; a < b && *m->rows.rows[b].key; a++)
            if (!m->left_out[a] && !strcmp(m->rows.rows[a].key, m->rows.rows[b].key)) {
                settle_conflict(m, a, b);
                break;
            }
}

/* Numbers of several versions or machines are kept, and the message names them. */
static void note_differences(Merge *m)
{
    const ResultRow *first = NULL;
    bool             version = false, commit = false, cpu = false;

    for (int i = 0; i < m->rows.count; i++) {
        const ResultRow *row = &m->rows.rows[i];

        if (!row->ok)
            continue;
        first = first ? first : row;
        if (strcmp(row->version, first->version) != 0 && !version) {
            text_addf(&m->notes, "other versions: %s in %s, %s in %s; their points stand side by "
                      "side\n", first->version, m->call->words[first->file], row->version,
                      m->call->words[row->file]);
            version = true;
        }
        if (!version && !commit && *row->commit && *first->commit &&
            strcmp(row->commit, first->commit) != 0) {
            text_addf(&m->notes, "other commits of the program: %s in %s, %s in %s\n",
                      first->commit, m->call->words[first->file], row->commit,
                      m->call->words[row->file]);
            commit = true;
        }
        if (strcmp(row->cpu, first->cpu) != 0 && !cpu) {
            text_addf(&m->notes, "other machines: '%s' and '%s'; compare times only within one\n",
                      first->cpu, row->cpu);
            cpu = true;
        }
    }
}

/* ---- points that no shard has ---------------------------------------------------- */

/* The same mechanism, run in the same way, whatever its length and seed; threads may be those of
 * each shard's machine. */
static bool same_line(const ResultRow *a, const ResultRow *b)
{
    return !strcmp(a->asked, b->asked) && !strcmp(a->device, b->device) &&
           !strcmp(a->precision, b->precision) && !strcmp(a->position, b->position) &&
           a->causal == b->causal && !strcmp(a->against, b->against);
}

static bool same_length(const ResultRow *a, const ResultRow *b)
{
    return a->n == b->n && a->seed == b->seed;
}

static bool same_point(const ResultRow *a, const ResultRow *b)
{
    return same_line(a, b) && same_length(a, b);
}

/* Puts the places of rows that are the first of their kind into at [r->count]; returns how many. */
static int firsts(const Results *r, bool (*same)(const ResultRow *, const ResultRow *), int *at)
{
    int count = 0;

    for (int i = 0; i < r->count; i++) {
        int x = 0;

        while (x < count && !same(&r->rows[at[x]], &r->rows[i]))
            x++;
        if (x == count)
            at[count++] = i;
    }
    return count;
}

/* A row of that mechanism at that length and seed. */
static bool has_point(const Results *r, const ResultRow *line, const ResultRow *length)
{
    for (int i = 0; i < r->count; i++)
        if (same_line(&r->rows[i], line) && same_length(&r->rows[i], length))
            return true;
    return false;
}

/* A sweep measures every mechanism at every length and seed, so of its shards one that was stopped
 * leaves gaps. */
static bool note_gaps(Merge *m, Error *err)
{
    const Results *r = &m->rows;
    size_t         size = (size_t)r->count * sizeof(int);
    int           *line = malloc(size), *length = malloc(size), *point = malloc(size), lines = 0;
    int            lengths = 0, points = 0, x = 0;
    bool           ok = line && length && point;

    if (ok) {
        lines = firsts(r, same_line, line);
        lengths = firsts(r, same_length, length);
        points = firsts(r, same_point, point);
    }
    for (; ok && points < lines * lengths; x++) {
        const ResultRow *a = &r->rows[line[x / lengths]], *b = &r->rows[length[x % lengths]];

        if (has_point(r, a, b))
            continue;
        text_addf(&m->notes, "missing: %d of %d points that the shards span, the first %s n=%lld "
                  "seed=%lld; a shard that was stopped goes on with sweep ... --resume\n",
                  lines * lengths - points, lines * lengths, a->asked, (long long)b->n,
                  (long long)b->seed);
        break;
    }
    free(line);
    free(length);
    free(point);
    return ok || error_set(err, ERR_NOMEM, "not enough memory to merge");
}

static bool read_all(Merge *m, Error *err)
{
    for (int i = 0; i < m->call->word_count; i++) {
        int before = m->rows.damaged;

        if (!results_read(m->call->words[i], i, &m->rows, err))
            return false;
        results_note_broken(&m->rows, m->call->words[i], before, &m->notes);
    }
    if (!results_latest(&m->rows, err))
        return false;
    if (!m->rows.count)
        return error_set(err, ERR_FORMAT, "%s%s: no records; nothing was written",
                         m->call->words[0], m->call->word_count > 1 ? " and the rest" : "");
    m->left_out = calloc((size_t)m->rows.count + 1, sizeof(*m->left_out));
    return m->left_out || error_set(err, ERR_NOMEM, "not enough memory to merge");
}

/* Moves the rows that stay to the front, in the order of a sweep's tables. */
static Results take_kept(Merge *m)
{
    Results kept = { .rows = m->rows.rows };

    for (int i = 0; i < m->rows.count; i++) {
        ResultRow row = m->rows.rows[i];

        if (m->left_out[i])
            continue;
        m->rows.rows[i] = m->rows.rows[kept.count];
        m->rows.rows[kept.count++] = row;
    }
    results_sort(&kept);
    return kept;
}

static bool write_kept(Merge *m, const char *path, int *count, int *failed, Error *err)
{
    Results kept = take_kept(m);
    Text    text = { 0 };
    bool    csv = text_ends_in(path, ".csv"), table = csv || text_ends_in(path, ".md"), ok;

    for (int i = 0; i < kept.count; i++) {
        if (!table)
            text_addf(&text, "%s\n", kept.rows[i].line);
        *failed += !kept.rows[i].ok;
    }
    if (table)
        points_table(&kept, csv ? TABLE_CSV : TABLE_MARKDOWN, 0, &text);
    *count = kept.count;
    ok = (text_ok(&text) || error_set(err, ERR_NOMEM, "not enough memory to merge")) &&
         file_write(path, text_str(&text), text.length, err);
    text_free(&text);
    return ok;
}

static void note_count(Text *out, int count, const char *what)
{
    if (count) {
        text_add_count(out, count, "point");
        text_add(out, what);
    }
}

static void summarise_merge(const Merge *m, int kept, int failed, Text *out)
{
    text_add_count(out, kept, "point");
    text_add(out, " from ");
    text_add_count(out, m->call->word_count, "file");
    text_addf(out, ": %d measured, %d not\n", kept - failed, failed);
    note_count(out, m->twice, " in more than one file; the first was kept\n");
    note_count(out, m->retried, " that failed in one file, measured in another\n");
    note_count(out, m->rows.replaced, " with a later run; the earlier was left out\n");
    text_add(out, text_str(&m->notes));
}

/* A sweep locks its file from the start, before its first record. */
static bool is_locked(const char *path)
{
    int  file = open(path, O_RDONLY | O_CLOEXEC);
    bool locked = file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0;

    if (file >= 0)
        close(file);
    return locked;
}

/* Devices, pipes and empty files lose nothing. */
static bool may_write(const char *path, Error *err)
{
    struct stat there;

    if (stat(path, &there) != 0 || !S_ISREG(there.st_mode))
        return true;
    if (there.st_size > 0)
        return error_set(err, ERR_USAGE, "%s is there already: remove it, or give another -o FILE",
                         path);
    return !is_locked(path) || error_set(err, ERR_FILE, "%s: a sweep is writing it", path);
}

bool command_merge(Session *s, const Call *call, Text *out, Error *err)
{
    Merge       m = { .call = call };
    const char *path = call->values[OPT_OUTPUT];
    int         kept = 0, failed = 0;
    bool        ok;

    (void)s;
    if (!call->word_count || !path)
        return error_set(err, ERR_USAGE, "merge needs result files and -o FILE.jsonl: attnscope "
                         "merge cost.*of8.jsonl -o cost.jsonl");
    if (fits_chart_name(path))
        return error_set(err, ERR_USAGE, "-o %s: merge writes records (.jsonl) or their table "
                         "(.csv, .md); attnscope fit draws charts", path);
    ok = check_shards(call, err) && may_write(path, err) && read_all(&m, err);
    if (ok) {
        find_doubles(&m);
        note_differences(&m);
        results_note_versions(&m.rows, NULL, &m.notes);
        results_note_oversubscribed(&m.rows, NULL, &m.notes);
        ok = (!are_shards(call) || note_gaps(&m, err)) &&
             write_kept(&m, path, &kept, &failed, err);
    }
    if (ok)
        summarise_merge(&m, kept, failed, out);
    if (ok && m.conflicts)
        ok = error_set(err, ERR_DIFFERENCE, "%d point%s: the files contradict each other",
                       m.conflicts, m.conflicts == 1 ? "" : "s");
    results_free(&m.rows);
    free(m.left_out);
    text_free(&m.notes);
    return ok;
}
