/* environment.c -- the machine a number was measured on.
 *
 * OpenBLAS is asked through the dynamic linker, so this file needs none of its
 * headers and a program without it says null.  The trap it looks for: an
 * environment that presets OPENBLAS_CORETYPE makes OpenBLAS run kernels of an
 * older CPU, at half the speed of this one or less.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "attn/cpu/blas.h"
#include "attn/cpu/simd/kernel.h"
#include "core/text.h"
#include "core/threads.h"
#include "profile/machine.h"
#include "profile/measure.h"
#include "profile/record.h"

#ifndef ATTNSCOPE_VERSION
#define ATTNSCOPE_VERSION "unknown"
#endif

#if __has_include("commit.h") /* written by the Makefile */
#include "commit.h"
#else
#define ATTNSCOPE_COMMIT ""
#endif

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

const char *environment_commit(void)
{
    return ATTNSCOPE_COMMIT;
}

/* ---- the CPU ---------------------------------------------------------------- */

void environment_cpu(char *text, size_t size)
{
    struct utsname system = { 0 };
    FILE          *file = fopen("/proc/cpuinfo", "re");

    *text = '\0';
    if (file) {
        machine_cpu(file, text, size);
        fclose(file);
    }
    if (!*text)
        snprintf(text, size, "%s", uname(&system) == 0 ? system.machine : "unknown");
}

/* Of the kernels that run; 3: AVX-512, 2: AVX2, 1: older; 0: not x86. */
static int cpu_level(void)
{
#if defined(__x86_64__) || defined(__i386__)
    const char *name = kernel_at(0)->name;

    return !strcmp(name, "avx512") ? 3 : !strcmp(name, "avx2") ? 2 : 1;
#else
    return 0;
#endif
}

/* The vectors of the kernels that run; NULL: not known. */
static const char *cpu_vectors(int level)
{
    static const char *const names[] = { NULL, "before AVX2", "AVX2", "AVX-512" };

#if defined(__aarch64__)
    return "NEON";
#endif
    return names[level];
}

/* ---- OpenBLAS --------------------------------------------------------------- */

static const char *blas_text(const char *function)
{
    const char *(*call)(void) = NULL;
    void *found = dlsym(RTLD_DEFAULT, function);

    memcpy(&call, &found, sizeof(call));
    return found ? call() : NULL;
}

/* The texts are static, because they outlive the call. */
static const struct {
    int         level;
    const char *name, *forced, *found;
} cores[] = {
#define BLAS_CORE(level, name)                                                                 \
    { level, name,                                                                             \
      "OpenBLAS runs its " name " kernels, which are older than this CPU: matrix products "    \
      "may take twice as long. OPENBLAS_CORETYPE is set: run with "                            \
      "env -u OPENBLAS_CORETYPE",                                                              \
      "OpenBLAS runs its " name " kernels, which are older than this CPU: matrix products "    \
      "may take twice as long. A newer OpenBLAS, or OPENBLAS_CORETYPE naming a newer core, "   \
      "may help" },
#include "profile/blas_cores.def"
#undef BLAS_CORE
};

static bool isa_limited(void)
{
    const char *isa = getenv("ATTNSCOPE_ISA");

    return isa && *isa;
}

/* The newest core whose kernels this CPU runs, of those that every OpenBLAS since 0.3.0 has. */
static const char *best_core(void)
{
#if defined(__x86_64__)
    int level = cpu_level();

    if (level == 3 && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return "SkylakeX";
    if (level >= 2)
        return "Haswell";
    if (isa_limited())
        return "Prescott";
#endif
    return NULL;
}

/* Where memory is limited, OpenBLAS's own threads must not start: each asks for 128 MiB until it
 * gets them, and exit and fork wait for it.  No product needs these threads. */
static bool must_start_alone(void)
{
    const char *threads = getenv("OPENBLAS_NUM_THREADS");

    return blas_limited() && blas_text("openblas_get_corename") &&
           (!threads || strcmp(threads, "1") != 0);
}

/* OpenBLAS reads its variables when it is loaded, before main, so the program starts again.
 * ATTNSCOPE_ISA limits OpenBLAS, too. */
void environment_start_for_blas(char **argv)
{
    char        path[4096];
    ssize_t     length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    const char *core = getenv("OPENBLAS_CORETYPE") ? NULL : best_core();
    bool        alone = must_start_alone();

    core = core && (environment_blas_warning() || isa_limited()) ? core : NULL;
    if (length < 0 || (!core && !alone))
        return;
    path[length] = '\0';
    if ((!core || setenv("OPENBLAS_CORETYPE", core, 1) == 0) &&
        (!alone || setenv("OPENBLAS_NUM_THREADS", "1", 1) == 0))
        execv(path, argv);
    if (core)
        unsetenv("OPENBLAS_CORETYPE");
}

const char *environment_blas_warning(void)
{
    const char *core = blas_text("openblas_get_corename");

    for (size_t i = 0; core && i < sizeof(cores) / sizeof(*cores); i++)
        if (!strcasecmp(core, cores[i].name) && cores[i].level < cpu_level())
            return getenv("OPENBLAS_CORETYPE") ? cores[i].forced : cores[i].found;
    return NULL;
}

const char *environment_blas_fit(char *text, size_t size)
{
    const char *core = blas_text("openblas_get_corename"), *warning = environment_blas_warning();

    if (warning)
        return warning;
    core = core ? core : "an unknown core";
    if (cpu_level() > 0)
        snprintf(text, size, "fits this CPU (%s)", core);
    else
        snprintf(text, size, "runs its kernels for %s; whether it has better ones for this CPU is "
                 "not known", core);
    return text;
}

/* ---- as JSON ---------------------------------------------------------------- */

static void kernel_item(Json *j)
{
    struct utsname system = { 0 };
    char           text[256];

    if (uname(&system) != 0) {
        jsonw_key_string(j, "kernel", NULL);
        return;
    }
    snprintf(text, sizeof(text), "%.60s %.120s %.60s", system.sysname, system.release,
             system.machine);
    jsonw_key_string(j, "kernel", text);
}

void environment_json(Json *out)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    char cpu[256];

    environment_cpu(cpu, sizeof(cpu));
    jsonw_open(out, '{');
    jsonw_key_string(out, "cpu", cpu);
    jsonw_key_string(out, "vectors", cpu_vectors(cpu_level()));
    jsonw_key_int(out, "cores", threads_hardware());
    jsonw_key(out, "memory");
    if (pages > 0 && page > 0)
        jsonw_int(out, (int64_t)pages * page);
    else
        jsonw_null(out);
    jsonw_key_string(out, "openblas_core", blas_text("openblas_get_corename"));
    jsonw_key_string(out, "openblas_config", blas_text("openblas_get_config"));
    jsonw_key_string(out, "openblas_coretype", getenv("OPENBLAS_CORETYPE"));
    jsonw_key_string(out, "compiler", COMPILER);
    kernel_item(out);
    jsonw_key_string(out, "version", ATTNSCOPE_VERSION);
    jsonw_key_string(out, "warning", environment_blas_warning());
    jsonw_close(out, '}');
}

/* ---- the processor's counters (measure.h) ---------------------------------------------- */

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#include <linux/perf_event.h>

typedef struct Event {
    Counted  counted;
    uint32_t type;
    uint64_t config;
    int      times; /* operations that one count stands for */
} Event;

static const Event everywhere[] = {
    { COUNT_CYCLES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1 },
    { COUNT_INSTRUCTIONS, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 1 },
    { COUNT_MISSES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 1 },
};

/* FP_ARITH_INST_RETIRED: a fused multiply-add counts twice by itself, so a count stands
 * for the lanes. */
static const Event intel[] = {
    { COUNT_FLOPS, PERF_TYPE_RAW, 0x01c7, 1 },  { COUNT_FLOPS, PERF_TYPE_RAW, 0x02c7, 1 },
    { COUNT_FLOPS, PERF_TYPE_RAW, 0x04c7, 2 },  { COUNT_FLOPS, PERF_TYPE_RAW, 0x08c7, 4 },
    { COUNT_FLOPS, PERF_TYPE_RAW, 0x10c7, 4 },  { COUNT_FLOPS, PERF_TYPE_RAW, 0x20c7, 8 },
    { COUNT_FLOPS, PERF_TYPE_RAW, 0x40c7, 8 },  { COUNT_FLOPS, PERF_TYPE_RAW, 0x80c7, 16 },
};

/* PMCx003, add, multiply, divide and multiply-add (as two): operations, not instructions. */
static const Event amd_zen[] = { { COUNT_FLOPS, PERF_TYPE_RAW, 0x0f03, 1 } };

typedef struct Opened {
    int     fd;
    Counted counted;
    int     times;
} Opened;

struct Counters {
    Opened *opened;
    int     count, capacity;
};

/* ---- opening ---------------------------------------------------------------------- */

static int vendor_events(const Event **events)
{
    char vendor[13] = "";

    *events = NULL;
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;

    if (__get_cpuid(0, &a, &b, &c, &d)) {
        memcpy(vendor, &b, 4);
        memcpy(vendor + 4, &d, 4);
        memcpy(vendor + 8, &c, 4);
    }
#endif
    if (!strcmp(vendor, "GenuineIntel")) {
        *events = intel;
        return sizeof(intel) / sizeof(*intel);
    }
    if (!strcmp(vendor, "AuthenticAMD")) {
        *events = amd_zen;
        return sizeof(amd_zen) / sizeof(*amd_zen);
    }
    return 0;
}

static int open_event(const Event *event, pid_t thread)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = event->type,
        .config = event->config,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
    };

    return (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool keep_counter(Counters *c, int fd, const Event *event)
{
    if (c->count == c->capacity) {
        int     capacity = c->capacity ? 2 * c->capacity : 32;
        Opened *grown = realloc(c->opened, (size_t)capacity * sizeof(*grown));

        if (!grown)
            return false;
        c->opened = grown;
        c->capacity = capacity;
    }
    c->opened[c->count++] = (Opened){ .fd = fd, .counted = event->counted, .times = event->times };
    return true;
}

/* Events that this processor lacks are left out; the last reason is kept. */
static void open_all(Counters *c, const Event *events, int count, pid_t thread, int *reason)
{
    for (int i = 0; i < count; i++) {
        int fd = open_event(&events[i], thread);

        if (fd < 0)
            *reason = errno;
        else if (!keep_counter(c, fd, &events[i]))
            close(fd);
    }
}

static void open_threads(Counters *c, int *reason)
{
    const Event   *vendor;
    int            count = vendor_events(&vendor);
    DIR           *tasks = opendir("/proc/self/task");
    struct dirent *task;

    while (tasks && (task = readdir(tasks))) {
        pid_t thread = (pid_t)atoi(task->d_name);

        if (thread <= 0)
            continue;
        open_all(c, everywhere, sizeof(everywhere) / sizeof(*everywhere), thread, reason);
        open_all(c, vendor, count, thread, reason);
    }
    if (tasks)
        closedir(tasks);
}

static void explain(int reason, char *why, size_t size)
{
    if (reason == ENOENT || reason == ENODEV || reason == EOPNOTSUPP)
        snprintf(why, size, "this machine shows no hardware counters (a virtual machine?)");
    else if (reason == EACCES || reason == EPERM)
        snprintf(why, size, "not allowed: see kernel.perf_event_paranoid, or the container's "
                 "rules for perf_event_open");
    else if (reason == ENOSYS)
        snprintf(why, size, "this kernel has no perf events");
    else
        snprintf(why, size, "perf_event_open: %s", strerror(reason));
}

Counters *counters_open(char *why, size_t size)
{
    Counters *c = calloc(1, sizeof(*c));
    int       reason = ENOMEM;

    if (c)
        open_threads(c, &reason);
    if (c && c->count)
        return c;
    free(c);
    explain(reason, why, size);
    return NULL;
}

static void add_kinds(Text *words, unsigned kinds, const char *lead)
{
    static const char *const names[] = {
        [COUNT_CYCLES] = "cycles",
        [COUNT_INSTRUCTIONS] = "instructions",
        [COUNT_MISSES] = "misses",
        [COUNT_FLOPS] = "hardware FLOPs",
    };

    for (int kind = 0; kind <= COUNT_FLOPS; kind++)
        if (kinds >> kind & 1) {
            text_addf(words, "%s%s", lead, names[kind]);
            lead = ", ";
        }
}

void counters_words(unsigned counted, char *text, size_t size)
{
    Text words = { 0 };

    add_kinds(&words, counted, "reads ");
    add_kinds(&words, ~counted, "; without ");
    snprintf(text, size, "%s", text_str(&words));
    text_free(&words);
}

unsigned counters_counted(const Counters *c)
{
    unsigned counted = 0;

    for (int i = 0; i < c->count; i++)
        counted |= 1u << c->opened[i].counted;
    return counted;
}

void counters_close(Counters *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->count; i++)
        close(c->opened[i].fd);
    free(c->opened);
    free(c);
}

/* ---- counting --------------------------------------------------------------------- */

void counters_start(Counters *c)
{
    for (int i = 0; i < c->count; i++) {
        ioctl(c->opened[i].fd, PERF_EVENT_IOC_RESET, 0);
        ioctl(c->opened[i].fd, PERF_EVENT_IOC_ENABLE, 0);
    }
}

Number counter_scaled(const uint64_t reading[3])
{
    if (!reading[2])
        return reading[1] ? NUMBER_NONE : number_of(0); /* never scheduled, or never needed */
    return number_of((double)reading[0] * ((double)reading[1] / (double)reading[2]));
}

/* One unknown part makes the sum unknown. */
static void add_reading(Number *sum, bool *missing, const Opened *opened)
{
    uint64_t reading[3];
    Number   value = NUMBER_NONE;

    if (read(opened->fd, reading, sizeof(reading)) == (ssize_t)sizeof(reading))
        value = counter_scaled(reading);
    *missing |= !value.valid;
    *sum = *missing ? NUMBER_NONE : number_of(sum->value + opened->times * value.value);
}

void counters_stop(Counters *c, HardwareCounts *out)
{
    Number *sums[] = {
        [COUNT_CYCLES] = &out->cycles,
        [COUNT_INSTRUCTIONS] = &out->instructions,
        [COUNT_MISSES] = &out->cache_misses,
        [COUNT_FLOPS] = &out->flops,
    };
    bool missing[COUNT_FLOPS + 1] = { false };

    for (int i = 0; i < c->count; i++)
        ioctl(c->opened[i].fd, PERF_EVENT_IOC_DISABLE, 0);
    *out = (HardwareCounts){ 0 };
    for (int i = 0; i < c->count; i++)
        add_reading(sums[c->opened[i].counted], &missing[c->opened[i].counted], &c->opened[i]);
}
