/* device_profile.c -- the life of a DeviceProfile and its words; see device_profile.h. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/device_profile.h"

const char *device_tier_name(DeviceTier tier)
{
    switch (tier) {
    case TIER_EVENTS: return "events";
    case TIER_ACTIVITY: return "activity";
    default: return "counters";
    }
}

const char *device_copy_name(DeviceCopyKind kind)
{
    switch (kind) {
    case DEVICE_COPY_TO_DEVICE: return "host to device";
    case DEVICE_COPY_TO_HOST: return "device to host";
    case DEVICE_COPY_WITHIN: return "within the device";
    case DEVICE_COPY_SET: return "filled";
    case DEVICE_PAGES_TO_DEVICE: return "pages to the device";
    default: return "pages to the host";
    }
}

bool device_reached(const DeviceProfile *p, DeviceTier tier)
{
    switch (tier) {
    case TIER_EVENTS: return p->span_ms.valid;
    case TIER_ACTIVITY: return p->busy_ms.valid;
    default: return p->passes > 0;
    }
}

/* The span is a median of timed runs; busy and copy are of a traced run, which is slower.  So a
 * difference below 0 means that the idle time is unknown, not that it is 0. */
static Number idle_of(Number span, Number busy, Number copy)
{
    double idle = span.value - busy.value - copy.value;

    return span.valid && busy.valid && idle >= 0 ? number_of(idle) : NUMBER_NONE;
}

Number device_idle_ms(const DeviceProfile *p, int stage)
{
    if (!p || stage >= p->stage_count)
        return NUMBER_NONE;
    if (stage < 0)
        return idle_of(p->span_ms, p->busy_ms, p->copy_ms);
    return idle_of(p->stages[stage].span_ms, p->stages[stage].busy_ms, p->stages[stage].copy_ms);
}

Number device_idle_share(const DeviceProfile *p, int stage)
{
    Number idle = device_idle_ms(p, stage), span = NUMBER_NONE;

    if (idle.valid)
        span = stage < 0 ? p->span_ms : p->stages[stage].span_ms;
    return span.valid && span.value > 0 ? number_of(idle.value / span.value) : NUMBER_NONE;
}

DeviceProfile *device_profile_new(int stages)
{
    DeviceProfile *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->stage_count = stages;
    p->stages = calloc((size_t)stages + 1, sizeof(*p->stages));
    if (p->stages)
        return p;
    free(p);
    return NULL;
}

void device_profile_free(DeviceProfile *p)
{
    if (p) {
        free(p->stages);
        free(p->kernels);
        free(p->spans);
        free(p->copy_spans);
    }
    free(p);
}

#define MS 1e-6 /* of a nanosecond */

static void add_number(Number *to, double value)
{
    *to = number_of(to->valid ? to->value + value : value);
}

/* ---- kernels -------------------------------------------------------------------- */

static bool same_row(const DeviceKernelRow *row, const DeviceKernel *k, int stage)
{
    return row->stage == stage && !strcmp(row->mangled, k->name) && row->shared == k->shared &&
           !memcmp(row->grid, k->grid, sizeof(k->grid)) &&
           !memcmp(row->block, k->block, sizeof(k->block));
}

/* The row of its kind, a new one where it is the first; -1: no memory. */
static int row_of(const DeviceKernel *k, int stage, DeviceProfile *out, int *capacity)
{
    DeviceKernelRow *grown;

    for (int i = out->kernel_count; i-- > 0;)
        if (same_row(&out->kernels[i], k, stage))
            return i;
    if (out->kernel_count == *capacity) {
        int more = *capacity ? 2 * *capacity : 32;

        grown = realloc(out->kernels, (size_t)more * sizeof(*grown));
        if (!grown)
            return -1;
        out->kernels = grown;
        *capacity = more;
    }
    grown = &out->kernels[out->kernel_count];
    *grown = (DeviceKernelRow){ .stage = stage, .least_ms = (double)INFINITY,
                                .registers = k->registers, .shared = k->shared,
                                .local = k->local };
    memcpy(grown->grid, k->grid, sizeof(k->grid));
    memcpy(grown->block, k->block, sizeof(k->block));
    kernel_name_text(k->name, grown->name, sizeof(grown->name));
    snprintf(grown->mangled, sizeof(grown->mangled), "%s", k->name);
    return out->kernel_count++;
}

static void add_launch(DeviceKernelRow *row, double ms)
{
    row->launches++;
    row->total_ms += ms;
    row->least_ms = fmin(row->least_ms, ms);
    row->most_ms = fmax(row->most_ms, ms);
}

static bool sum_kernels(const DeviceTrace *trace, const int *first, DeviceProfile *out)
{
    int64_t kept = trace->kernel_count < DEVICE_SPANS ? trace->kernel_count : DEVICE_SPANS;
    int     capacity = 0;

    out->spans = malloc((size_t)(kept + 1) * sizeof(*out->spans));
    if (!out->spans)
        return false;
    out->busy_ms = number_of(0);
    out->launches = trace->kernel_count;
    for (int64_t i = 0; i < trace->kernel_count; i++) {
        const DeviceKernel *k = &trace->kernels[i];
        int    stage = k->region < out->stage_count ? k->region : -1;
        int    row = row_of(k, stage < 0 ? stage : first[stage], out, &capacity);
        double ms = MS * (double)(k->end - k->start);

        if (row < 0)
            return false;
        add_launch(&out->kernels[row], ms);
        add_number(&out->busy_ms, ms);
        if (stage >= 0)
            add_number(&out->stages[stage].busy_ms, ms),
                add_number(&out->stages[stage].launches, 1);
        if (i < kept)
            out->spans[out->span_count++] = (DeviceSpan){ row, stage, MS * (double)k->start,
                                                          MS * (double)k->end };
    }
    return true;
}

/* ---- order ------------------------------------------------------------------------ */

typedef struct Place {
    double ms;
    int    row;
} Place;

static int by_time(const void *a, const void *b)
{
    double x = ((const Place *)a)->ms, y = ((const Place *)b)->ms;

    return x == y ? ((const Place *)a)->row - ((const Place *)b)->row : x < y ? 1 : -1;
}

/* Most time first; spans follow their rows. */
static bool sort_rows(DeviceProfile *out)
{
    size_t           count = (size_t)out->kernel_count;
    Place           *places = malloc((count + 1) * sizeof(*places));
    int             *now_at = malloc((count + 1) * sizeof(*now_at));
    DeviceKernelRow *sorted = malloc((count + 1) * sizeof(*sorted));
    bool             ok = places && now_at && sorted;

    for (size_t i = 0; ok && i < count; i++)
        places[i] = (Place){ out->kernels[i].total_ms, (int)i };
    if (ok)
        qsort(places, count, sizeof(*places), by_time);
    for (size_t i = 0; ok && i < count; i++) {
        sorted[i] = out->kernels[places[i].row];
        now_at[places[i].row] = (int)i;
    }
    for (int i = 0; ok && i < out->span_count; i++)
        out->spans[i].row = now_at[out->spans[i].row];
    if (ok) {
        free(out->kernels);
        out->kernels = sorted;
    } else {
        free(sorted);
    }
    free(places);
    free(now_at);
    return ok;
}

/* ---- copies and allocations --------------------------------------------------------- */

static bool sum_copies(const DeviceTrace *trace, DeviceProfile *out)
{
    int64_t kept = trace->copy_count < DEVICE_SPANS ? trace->copy_count : DEVICE_SPANS;

    out->copy_spans = malloc((size_t)(kept + 1) * sizeof(*out->copy_spans));
    if (!out->copy_spans)
        return false;
    out->copy_ms = number_of(0);
    for (int64_t i = 0; i < trace->copy_count; i++) {
        const DeviceCopy *c = &trace->copies[i];
        int               stage = c->region < out->stage_count ? c->region : -1;
        double            ms = MS * (double)(c->end - c->start);

        out->copies[c->kind].count++;
        out->copies[c->kind].bytes += c->bytes;
        out->copies[c->kind].ms += ms;
        add_number(&out->copy_ms, ms);
        if (stage >= 0)
            add_number(&out->stages[stage].copy_ms, ms);
        if (i < kept)
            out->copy_spans[out->copy_span_count++] =
                (DeviceSpan){ (int)c->kind, stage, MS * (double)c->start, MS * (double)c->end };
    }
    return true;
}

static int by_at(const void *a, const void *b)
{
    int64_t x = ((const DeviceAllocation *)a)->at, y = ((const DeviceAllocation *)b)->at;

    return (x > y) - (x < y);
}

static bool sum_allocations(const DeviceTrace *trace, DeviceProfile *out)
{
    size_t            count = (size_t)trace->allocation_count;
    DeviceAllocation *sorted = malloc((count + 1) * sizeof(*sorted));
    int64_t           now = 0, most = 0;

    if (!sorted)
        return false;
    if (count)
        memcpy(sorted, trace->allocations, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_at);
    for (size_t i = 0; i < count; i++) {
        now += sorted[i].bytes;
        most = now > most ? now : most;
    }
    out->allocated = number_of((double)most);
    free(sorted);
    return true;
}

bool device_sum_trace(const DeviceTrace *trace, const int *first, DeviceProfile *out)
{
    for (int i = 0; i < out->stage_count; i++)
        out->stages[i].busy_ms = out->stages[i].copy_ms = out->stages[i].launches = number_of(0);
    out->dropped = trace->dropped;
    return sum_kernels(trace, first, out) && sort_rows(out) && sum_allocations(trace, out) &&
           sum_copies(trace, out);
}

/* ---- counters ------------------------------------------------------------------------- */

static double value_of(const DeviceRange *r, DeviceCount count)
{
    return r->value[count];
}

static Number known(double value)
{
    return isnan(value) ? NUMBER_NONE : number_of(value);
}

/* NaN counts as 0 where the other one is a number. */
static double sum(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

static double flops_of(const DeviceRange *r, DeviceCount add_count, DeviceCount mul_count,
                       DeviceCount fused)
{
    return value_of(r, add_count) + value_of(r, mul_count) + 2 * value_of(r, fused);
}

static DeviceCounted counted_of(const DeviceRange *r)
{
    double tensor = (double)NAN;
    double fp32 = flops_of(r, DEVICE_COUNT_FP32_ADD, DEVICE_COUNT_FP32_MUL,
                           DEVICE_COUNT_FP32_FUSED);
    double fp64 = flops_of(r, DEVICE_COUNT_FP64_ADD, DEVICE_COUNT_FP64_MUL,
                           DEVICE_COUNT_FP64_FUSED);
    double fused = sum(2 * value_of(r, DEVICE_COUNT_FP32_FUSED),
                       2 * value_of(r, DEVICE_COUNT_FP64_FUSED));

    for (int t = DEVICE_COUNT_TENSOR_BF16; t <= DEVICE_COUNT_TENSOR_F64; t++)
        tensor = sum(tensor, value_of(r, (DeviceCount)t));
    return (DeviceCounted){
        .flops = known(fp32 + sum(sum(fp64, tensor), 0)),
        .fp32 = known(fp32),
        .fp64 = known(fp64),
        .tensor = known(tensor),
        .fused = known(sum(fused, tensor)),
        .dram_read = known(value_of(r, DEVICE_COUNT_DRAM_READ)),
        .dram_written = known(value_of(r, DEVICE_COUNT_DRAM_WRITTEN)),
        .occupancy = value_of(r, DEVICE_COUNT_CYCLES) > 0
                         ? known(value_of(r, DEVICE_COUNT_WARPS) /
                                 (value_of(r, DEVICE_COUNT_CYCLES) *
                                  value_of(r, DEVICE_COUNT_WARPS_MOST)))
                         : NUMBER_NONE,
    };
}

static DeviceRange no_range(void)
{
    DeviceRange none;

    for (int c = 0; c < DEVICE_COUNTS; c++)
        none.value[c] = (double)NAN;
    return none;
}

static void add_range(DeviceRange *to, const DeviceRange *from)
{
    for (int c = 0; c < DEVICE_COUNTS; c++)
        to->value[c] = c == DEVICE_COUNT_WARPS_MOST ? from->value[c]
                                                    : sum(to->value[c], from->value[c]);
}

void device_sum_counts(const DeviceRange *ranges, const int *stage_of, int count, int passes,
                       DeviceProfile *out)
{
    DeviceRange all = no_range();

    for (int i = 0; i < count; i++)
        add_range(&all, &ranges[i]);
    out->counted = counted_of(&all);
    out->passes = passes;
    for (int stage = 0; stage < out->stage_count; stage++) {
        DeviceRange of_stage = no_range();

        for (int i = 0; i < count; i++)
            if (stage_of[i] == stage)
                add_range(&of_stage, &ranges[i]);
        out->stages[stage].counted = counted_of(&of_stage);
    }
}

/* ---- a kernel's name: the Itanium C++ ABI, as much of it as kernels need ------- */

typedef struct Reader {
    const char *at;
    char       *text;
    size_t      size, length;
} Reader;

static void put(Reader *r, const char *from, size_t count)
{
    for (size_t i = 0; i < count && r->length + 1 < r->size; i++)
        r->text[r->length++] = from[i];
    r->text[r->length] = '\0';
}

static void puts_of(Reader *r, const char *word)
{
    put(r, word, strlen(word));
}

/* "10attend_f32"; the name of an anonymous namespace is skipped. */
static bool source_name(Reader *r)
{
    char *name;
    long  count = strtol(r->at, &name, 10);

    if (name == r->at || count <= 0 || strlen(name) < (size_t)count)
        return false;
    if (strncmp(name, "_GLOBAL__N", 10) != 0)
        put(r, name, (size_t)count);
    r->at = name + count;
    return true;
}

static const char *builtin(char letter)
{
    switch (letter) {
    case 'b': return "bool";
    case 'c': case 'a': return "char";
    case 'd': return "double";
    case 'f': return "float";
    case 'h': return "uchar";
    case 'i': return "int";
    case 'j': return "unsigned";
    case 'l': case 'x': return "int64";
    case 'm': case 'y': return "uint64";
    case 's': return "short";
    case 't': return "ushort";
    case 'v': return "void";
    default: return NULL;
    }
}

/* "Lb0E", "Li64E", "Lin1E", and of an enumeration "L10Arithmetic2E". */
static bool literal(Reader *r)
{
    bool   truth = *r->at == 'b';
    size_t kept = r->length;

    if (*r->at >= '1' && *r->at <= '9') {
        if (!source_name(r))
            return false;
        r->length = kept; /* only the value is kept */
        r->text[kept] = '\0';
    } else if (builtin(*r->at)) {
        r->at++;
    } else {
        return false;
    }
    if (truth) {
        puts_of(r, *r->at == '0' ? "false" : "true");
        r->at += *r->at != '\0';
    } else {
        if (*r->at == 'n')
            puts_of(r, "-"), r->at++;
        put(r, r->at, strspn(r->at, "0123456789"));
        r->at += strspn(r->at, "0123456789");
    }
    return *r->at++ == 'E';
}

static bool argument(Reader *r)
{
    const char *word;

    if (*r->at == 'L')
        return r->at++, literal(r);
    if (*r->at >= '1' && *r->at <= '9')
        return source_name(r);
    word = builtin(*r->at);
    if (!word)
        return false;
    puts_of(r, word);
    r->at++;
    return true;
}

static void arguments(Reader *r)
{
    const char *before = "<";

    while (*r->at && *r->at != 'E') {
        puts_of(r, before);
        before = ",";
        if (!argument(r)) {
            puts_of(r, "...");
            break;
        }
    }
    if (*before == ',')
        puts_of(r, ">");
}

void kernel_name_text(const char *mangled, char *text, size_t size)
{
    Reader r = { .at = mangled + 2, .text = text, .size = size };
    bool   nested, ok = strncmp(mangled, "_Z", 2) == 0;

    text[0] = '\0';
    if (ok) {
        nested = *r.at == 'N';
        r.at += nested || *r.at == 'L';
        do {
            r.length = 0; /* only the last of nested names is kept */
            r.at += *r.at == 'L';
            ok = source_name(&r);
        } while (ok && nested && *r.at != 'E' && *r.at != 'I');
        if (ok && *r.at == 'I')
            r.at++, arguments(&r);
    }
    if (!ok)
        snprintf(text, size, "%s", mangled);
}
