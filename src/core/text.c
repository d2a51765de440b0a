/* text.c -- see text.h. */
#include "core/text.h"
#include "core/shortage.h"
#include "core/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void text_free(Text *text)
{
    free(text->data);
    *text = (Text){ 0 };
}

bool text_ok(const Text *text)
{
    return !text->failed;
}

void text_clear(Text *text)
{
    text->length = 0;
    if (text->data)
        text->data[0] = '\0';
}

static bool text_room(Text *text, size_t more)
{
    size_t need = text->length + more + 1, capacity = text->capacity ? text->capacity : 64;
    char  *data;

    if (text->failed || need <= text->capacity)
        return !text->failed;
    while (capacity < need)
        capacity *= 2;
    data = realloc(text->data, capacity);
    if (!data) {
        text->failed = true;
        shortage_note(capacity);
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void text_add_bytes(Text *text, const void *bytes, size_t length)
{
    if (!text_room(text, length))
        return;
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void text_add(Text *text, const char *s)
{
    text_add_bytes(text, s, strlen(s));
}

/* Bytes of "ESC [ 38;5;9 m" at text; 0: it is something else. */
static size_t colour_sequence(const char *text, size_t left)
{
    size_t at = 2;

    if (left < 3 || text[0] != '\033' || text[1] != '[')
        return 0;
    while (at < left && (text[at] == ';' || (text[at] >= '0' && text[at] <= '9')))
        at++;
    return at < left && text[at] == 'm' ? at + 1 : 0;
}

size_t text_harmless(const char *text, size_t left)
{
    uint32_t code;
    int      bytes = utf8_decode(text, left, &code);

    if (!bytes || utf8_reorders(code))
        return 0;
    return !utf8_is_control(code) || code == '\n' || code == '\t' ? (size_t)bytes : 0;
}

void text_add_shown(Text *text, const char *bytes, size_t length, bool colours)
{
    size_t kept = 0, at = 0;

    while (at < length) {
        size_t good = text_harmless(bytes + at, length - at);

        if (!good && colours)
            good = colour_sequence(bytes + at, length - at);
        if (good) {
            at += good;
            continue;
        }
        text_add_bytes(text, bytes + kept, at - kept);
        text_add(text, "?");
        good = (size_t)utf8_decode(bytes + at, length - at, NULL);
        kept = at += good ? good : 1;
    }
    text_add_bytes(text, bytes + kept, length - kept);
}

void text_addf(Text *text, const char *fmt, ...)
{
    va_list args;
    int     length;

    va_start(args, fmt);
    length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (length < 0 || !text_room(text, (size_t)length))
        return;
    va_start(args, fmt);
    vsnprintf(text->data + text->length, (size_t)length + 1, fmt, args);
    va_end(args);
    text->length += (size_t)length;
}

void text_add_count(Text *text, int64_t count, const char *what)
{
    text_addf(text, "%lld %s%s", (long long)count, what, count == 1 ? "" : "s");
}

const char *text_str(const Text *text)
{
    return text->data ? text->data : "";
}

bool lines_hold(const char *all, const char *lines)
{
    const char *at = all;
    size_t      length = strlen(lines);

    length -= length && lines[length - 1] == '\n';
    for (; length && (at = strchr(at, *lines)); at++)
        if ((at == all || at[-1] == '\n') && !strncmp(at, lines, length) &&
            (!at[length] || at[length] == '\n'))
            return true;
    return !length;
}

bool text_has_line(const Text *text, const char *lines)
{
    return lines_hold(text_str(text), lines);
}

/* ---- JSON and CSV --------------------------------------------------------------- */

Json jsonw_to(Text *out)
{
    return (Json){ .out = out };
}

static void json_item(Json *j)
{
    if (j->comma[j->depth])
        text_add(j->out, ",");
    j->comma[j->depth] = true;
}

void jsonw_open(Json *j, char bracket)
{
    json_item(j);
    text_add_bytes(j->out, &bracket, 1);
    j->comma[++j->depth] = false;
}

void jsonw_close(Json *j, char bracket)
{
    j->depth--;
    text_add_bytes(j->out, &bracket, 1);
}

/* The character at s, or what is shown for a malformed byte; returns the bytes of s it takes. */
static int add_character(Text *out, const char *s)
{
    uint32_t code;
    char     bytes[4];
    int      length = utf8_decode(s, strnlen(s, sizeof(bytes)), &code);

    if (utf8_is_control(code) || utf8_reorders(code)) /* a terminal would obey it */
        text_addf(out, "\\u%04x", (unsigned)code);
    else
        text_add_bytes(out, bytes, (size_t)utf8_encode(code, bytes));
    return length ? length : 1;
}

static void json_quoted(Text *out, const char *s)
{
    text_add(out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if (c == '"' || c == '\\')
            text_addf(out, "\\%c", c);
        else if (c < 0x20)
            text_addf(out, "\\u%04x", c);
        else if (c < 0x80)
            text_add_bytes(out, s, 1);
        else
            s += add_character(out, s) - 1;
    }
    text_add(out, "\"");
}

void jsonw_key(Json *j, const char *key)
{
    json_item(j);
    json_quoted(j->out, key);
    text_add(j->out, ":");
    j->comma[j->depth] = false; /* the value follows without a comma */
}

void jsonw_string(Json *j, const char *value)
{
    json_item(j);
    if (value)
        json_quoted(j->out, value);
    else
        text_add(j->out, "null");
}

#define WHOLE_LAST 9007199254740992.0 /* 2^53: whole numbers below it are exact */

void jsonw_number(Json *j, double value)
{
    char text[40] = "";

    if (!isfinite(value)) {
        jsonw_null(j);
        return;
    }
    if (value == floor(value) && fabs(value) < WHOLE_LAST) /* "8396800", not "8.3968e+06" */
        snprintf(text, sizeof(text), "%.0f", value);
    for (int digits = 6; !*text && digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) != value && digits < 17)
            *text = '\0';
    }
    jsonw_raw(j, text);
}

void jsonw_int(Json *j, int64_t value)
{
    json_item(j);
    text_addf(j->out, "%lld", (long long)value);
}

void jsonw_bool(Json *j, bool value)
{
    jsonw_raw(j, value ? "true" : "false");
}

void jsonw_null(Json *j)
{
    jsonw_raw(j, "null");
}

void jsonw_raw(Json *j, const char *json)
{
    json_item(j);
    text_add(j->out, json);
}

void jsonw_key_open(Json *j, const char *key, char bracket)
{
    jsonw_key(j, key);
    jsonw_open(j, bracket);
}

void jsonw_key_string(Json *j, const char *key, const char *value)
{
    jsonw_key(j, key);
    jsonw_string(j, value);
}

void jsonw_key_int(Json *j, const char *key, int64_t value)
{
    jsonw_key(j, key);
    jsonw_int(j, value);
}

void jsonw_key_number(Json *j, const char *key, double value)
{
    jsonw_key(j, key);
    jsonw_number(j, value);
}

void jsonw_key_bool(Json *j, const char *key, bool value)
{
    jsonw_key(j, key);
    jsonw_bool(j, value);
}

void jsonw_key_raw(Json *j, const char *key, const char *json)
{
    jsonw_key(j, key);
    jsonw_raw(j, json);
}

void jsonw_some_string(Json *j, const char *key, const char *value)
{
    if (value && *value)
        jsonw_key_string(j, key, value);
}

void jsonw_some_int(Json *j, const char *key, int64_t value)
{
    if (value)
        jsonw_key_int(j, key, value);
}

void text_add_roff(Text *out, const char *words)
{
    for (bool start = true; *words; start = *words++ == '\n') {
        if (start && (*words == '.' || *words == '\''))
            text_add(out, "\\&");
        text_addf(out, *words == '-' || *words == '\\' ? "\\%c" : "%c", *words);
    }
}

void csv_cell(Text *out, const char *value, bool first)
{
    if (!first)
        text_add(out, ",");
    if (!value)
        return;
    if (!strpbrk(value, ",\"\r\n")) {
        text_add(out, value);
        return;
    }
    text_add(out, "\"");
    for (; *value; value++) {
        if (*value == '"')
            text_add(out, "\"");
        text_add_bytes(out, value, 1);
    }
    text_add(out, "\"");
}

/* ---- numbers in words --------------------------------------------------------- */

/* Of the unit at *at, which is passed over; 1: there is none. */
static int64_t unit_at(const char **at)
{
    static const char units[] = "kMG";
    const char       *unit = **at ? strchr(units, **at == 'K' ? 'k' : **at) : NULL;
    int64_t           base, scale = 1;

    if (!unit)
        return 1;
    base = (*at)[1] == 'i' ? 1024 : 1000;
    for (const char *u = units; u <= unit; u++)
        scale *= base;
    *at += base == 1024 ? 2 : 1;
    return scale;
}

bool text_whole_at(const char *text, const char **end, int64_t *out)
{
    char     *stop;
    long long value;

    errno = 0;
    value = strtoll(text, &stop, 10);
    *end = stop;
    return stop != text && !errno && !__builtin_mul_overflow(value, unit_at(end), out);
}

bool text_whole(const char *text, int64_t *out)
{
    const char *end;

    return text_whole_at(text, &end, out) && !*end;
}

double text_number_at(const char *text, const char **end)
{
    char  *stop;
    double value = strtod(text, &stop);

    *end = stop;
    return stop == text ? value : value * (double)unit_at(end);
}

/* ---- numbers for people ------------------------------------------------------- */

/* fine: three digits below 10, too. */
static char *format_scaled(double value, double base, const char *const *units, bool fine,
                           char *text, size_t size)
{
    int unit = 0, digits;

    /* Numbers that round to `base` have the next unit, those that round to 100 no decimals. */
    while (fabs(value) >= base - 0.5 && units[unit + 1]) {
        value /= base;
        unit++;
    }
    digits = !unit || !(fabs(value) < 99.95) ? 0 : fine && fabs(value) < 9.995 ? 2 : 1;
    if (fabs(value) >= 1e9) /* beyond the last unit */
        snprintf(text, size, "%.3g %s", value, units[unit]);
    else
        snprintf(text, size, "%.*f %s", digits, value, units[unit]);
    if (!*units[unit] && *text)
        text[strlen(text) - 1] = '\0';
    return text;
}

static const char *const bytes_units[] = { "B", "KiB", "MiB", "GiB", "TiB", NULL };
static const char *const count_units[] = { "", "k", "M", "G", "T", "P", NULL };

char *format_bytes(double bytes, char *text, size_t size)
{
    return format_scaled(bytes, 1024, bytes_units, false, text, size);
}

char *format_count(double count, char *text, size_t size)
{
    return format_scaled(count, 1000, count_units, false, text, size);
}

char *format_exact_bytes(double bytes, char *text, size_t size)
{
    return format_scaled(bytes, 1024, bytes_units, true, text, size);
}

char *format_exact_count(double count, char *text, size_t size)
{
    return format_scaled(count, 1000, count_units, true, text, size);
}

#define MOST_DIGITS 9 /* of a percentage */

char *format_percent(double share, char *text, size_t size)
{
    double value = 100 * share;
    bool   whole = value == 0 || value == 100 || !(fabs(value) < 999.5);
    char   number[400]; /* of the largest double there is */
    size_t length;
    int    digits = 3;

    do
        length = (size_t)snprintf(number, sizeof(number), whole ? "%.*f" : "%#.*g",
                                  whole ? 0 : digits, value);
    while (value < 100 && !strncmp(number, "100", 3) && digits++ < MOST_DIGITS);
    if (number[length - 1] == '.')
        number[length - 1] = '\0';
    snprintf(text, size, "%s %%", number);
    return text;
}

char *format_seconds(double seconds, char *text, size_t size)
{
    if (seconds < 90)
        snprintf(text, size, "%.0f s", seconds);
    else if (seconds < 5400)
        snprintf(text, size, "%.0f min", seconds / 60);
    else
        snprintf(text, size, "%.1f h", seconds / 3600);
    return text;
}

char *format_progress(double elapsed, double left, char *text, size_t size)
{
    char so_far[32], rest[32] = "";

    format_seconds(elapsed, so_far, sizeof(so_far));
    if (left >= 0)
        format_seconds(left, rest, sizeof(rest));
    snprintf(text, size, "%s%s%s%s", so_far, *rest ? ", about " : "", rest, *rest ? " left" : "");
    return text;
}

bool text_ends_in(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);

    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

/* ---- lines that differ in numbers -------------------------------------------------- */

static size_t number_length(const char *at)
{
    return strspn(at, "0123456789.");
}

bool text_pass_numbers(const char **a, const char **b)
{
    size_t own = **a == TEXT_ANY_NUMBER ? 1 : number_length(*a), other = number_length(*b);

    if (!own || !other)
        return false;
    *a += own;
    *b += other;
    return true;
}

bool text_same_words(const char *a, const char *b)
{
    for (;;) {
        if (text_pass_numbers(&a, &b))
            continue;
        if (*a != *b)
            return false;
        if (!*a || *a == '\n')
            return true;
        a++;
        b++;
    }
}

/* ---- names ---------------------------------------------------------------------- */

#define MAX_NAME 63 /* bytes that are compared */

int text_distance(const char *a, const char *b)
{
    int d[3][MAX_NAME + 1];
    int n = (int)strnlen(a, MAX_NAME), m = (int)strnlen(b, MAX_NAME);

    for (int j = 0; j <= m; j++)
        d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = d[i % 3], *up = d[(i + 2) % 3], *up2 = d[(i + 1) % 3];

        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = up[j - 1] + (a[i - 1] != b[j - 1]);

            if (up[j] + 1 < best)
                best = up[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                up2[j - 2] + 1 < best)
                best = up2[j - 2] + 1;
            now[j] = best;
        }
    }
    return d[n % 3][m];
}

/* "iters" is a part of "sinkhorn_iters", however many letters that is away. */
static int slips_between(const char *wanted, const char *name)
{
    int slips = text_distance(wanted, name);

    return slips > 1 && strlen(wanted) >= 3 && strstr(name, wanted) ? 1 : slips;
}

bool meant_offer(Meant *nearest, const char *name)
{
    int slips = slips_between(nearest->wanted, name);

    if (slips >= nearest->slips)
        return false;
    nearest->name = name;
    nearest->slips = slips;
    return true;
}

/* ---- files ---------------------------------------------------------------------- */

bool file_read_open(int file, const char *path, size_t most, Text *out, Error *err)
{
    char    bytes[4096];
    ssize_t length = 0;

    do {
        while (out->length <= most && text_ok(out) &&
               (length = read(file, bytes, sizeof(bytes))) > 0)
            text_add_bytes(out, bytes, (size_t)length);
    } while (length < 0 && errno == EINTR);
    if (length < 0)
        error_set(err, ERR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    close(file);
    if (length < 0)
        return false;
    return text_ok(out) || error_set(err, ERR_NOMEM, "%s: not enough memory", path);
}

bool file_read(const char *path, size_t most, Text *out, Error *err)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);

    if (file < 0)
        return error_set(err, ERR_FILE, "%s: %s", path, strerror(errno));
    return file_read_open(file, path, most, out, err);
}

static bool write_stream(FILE *file, const void *bytes, size_t length)
{
    return fwrite(bytes, 1, length, file) == length && fflush(file) == 0;
}

bool file_is_special(const char *path)
{
    struct stat there;

    return stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode);
}

bool file_place(const char *path, Error *err)
{
    char        copy[4096];
    const char *folder;
    struct stat there;

    if (!strcmp(path, "-"))
        return true;
    if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
        return error_set(err, ERR_FILE, "%.200s...: the path is too long", path);
    folder = dirname(copy);
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
        return error_set(err, ERR_FILE, "%s is a folder: add a name, as in %s/%s", path, path,
                         "picture.png");
    if (file_is_special(path))
        return access(path, W_OK) == 0 ||
               error_set(err, ERR_FILE, "%s: cannot be written: %s", path, strerror(errno));
    if (stat(folder, &there) != 0 && folder[0] == '~')
        return error_set(err, ERR_FILE, "%s: the folder %s cannot be used: %s; ~ is a shell's, "
                         "write the path out", path, folder, strerror(errno));
    if (access(folder, W_OK) == 0)
        return true;
    return error_set(err, ERR_FILE, "%s: the folder %s cannot be written to: %s", path, folder,
                     strerror(errno));
}

/* Into what is there: to rename over it would put a file in a device's place. */
static bool write_special(const char *path, const void *bytes, size_t length, Error *err)
{
    FILE *file = fopen(path, "wb");
    bool  ok = file && write_stream(file, bytes, length);
    int   why = errno;

    if (file && fclose(file) != 0 && ok) {
        ok = false;
        why = errno;
    }
    return ok || error_set(err, ERR_FILE, "%s: cannot be written: %s", path, strerror(why));
}

const char *file_target(const char *path, char real[PATH_MAX])
{
    struct stat there;

    return lstat(path, &there) == 0 && S_ISLNK(there.st_mode) && realpath(path, real) ? real
                                                                                      : path;
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

bool file_new_beside(const char *path, char *name, size_t size, Error *err)
{
    const char *base = strrchr(path, '/'), *ending = strrchr(base ? base : path, '.');
    int         length, file;

    length = snprintf(name, size, "%.*s.XXXXXX%s", (int)(ending ? ending - path : INT_MAX), path,
                      ending ? ending : "");
    if (length < 0 || (size_t)length >= size)
        return error_set(err, ERR_FILE, "%.200s...: the path is too long", path);
    file = mkstemps(name, ending ? (int)strlen(ending) : 0);
    if (file < 0)
        return error_set(err, ERR_FILE, "%s: no file can be made beside it: %s", path,
                         strerror(errno));
    close(file);
    return true;
}

bool file_write(const char *path, const void *bytes, size_t length, Error *err)
{
    char  temporary[4096], real[PATH_MAX];
    FILE *file;
    bool  ok;

    if (!shortage_allows_output(err))
        return error_prefix(err, "%s", path);
    if (strcmp(path, "-") == 0)
        return write_stream(stdout, bytes, length) ||
               error_set(err, ERR_FILE, "standard output: %s", strerror(errno));
    if (file_is_special(path))
        return write_special(path, bytes, length, err);
    path = file_target(path, real);
    /* of this process: others may write the same file now */
    if (snprintf(temporary, sizeof(temporary), "%s.%ld.tmp", path, (long)getpid()) >=
        (int)sizeof(temporary))
        return error_set(err, ERR_FILE, "%.200s...: the path is too long", path);
    file = fopen(temporary, "wb");
    if (!file)
        return error_set(err, ERR_FILE, "%s: cannot be written: %s", path, strerror(errno));
    ok = write_stream(file, bytes, length);
    ok = fclose(file) == 0 && ok;
    if (ok && rename(temporary, path) == 0)
        return true;
    error_set(err, ERR_FILE, "%s: writing failed: %s", path, strerror(errno));
    unlink(temporary);
    return false;
}
