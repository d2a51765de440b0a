/* environment.c -- the machine a number was measured on.
 *
 * OpenBLAS is asked through the dynamic linker, so this file needs none of its
 * headers and a program without it says null.  The trap it looks for: an
 * environment that presets OPENBLAS_CORETYPE makes OpenBLAS run kernels of an
 * older CPU, at half the speed of this one or less.
 */
#include "profile/record.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef ATTNSCOPE_VERSION
#define ATTNSCOPE_VERSION "unknown"
#endif

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* ---- the CPU ---------------------------------------------------------------- */

void environment_cpu(char *text, size_t size)
{
    struct utsname system = { 0 };
    FILE *file = fopen("/proc/cpuinfo", "re");
    char  line[512], *value = NULL;

    while (file && !value && fgets(line, sizeof(line), file))
        if (!strncmp(line, "model name", 10))
            value = strchr(line, ':');
    if (file)
        fclose(file);
    if (value) {
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = '\0';
    }
    if (!value && uname(&system) == 0)
        value = system.machine;
    snprintf(text, size, "%s", value ? value : "unknown");
}

/* 3: AVX-512, 2: AVX2, 1: older; 0: not x86. */
static int cpu_level(void)
{
#if defined(__x86_64__) || defined(__i386__)
    if (__builtin_cpu_supports("avx512f"))
        return 3;
    return __builtin_cpu_supports("avx2") ? 2 : 1;
#else
    return 0;
#endif
}

static const char *cpu_vectors(int level)
{
    static const char *const names[] = { NULL, "before AVX2", "AVX2", "AVX-512" };

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

/* Each core has its texts ready, for they outlive the call. */
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

const char *environment_blas_warning(void)
{
    const char *core = blas_text("openblas_get_corename");

    for (size_t i = 0; core && i < sizeof(cores) / sizeof(*cores); i++)
        if (!strcasecmp(core, cores[i].name) && cores[i].level < cpu_level())
            return getenv("OPENBLAS_CORETYPE") ? cores[i].forced : cores[i].found;
    return NULL;
}

/* ---- as JSON ---------------------------------------------------------------- */

static void item(Json *j, const char *key, const char *value)
{
    jsonw_key(j, key);
    jsonw_string(j, value);
}

static void kernel_item(Json *j)
{
    struct utsname system = { 0 };
    char           text[256];

    if (uname(&system) != 0) {
        item(j, "kernel", NULL);
        return;
    }
    snprintf(text, sizeof(text), "%.60s %.120s %.60s", system.sysname, system.release,
             system.machine);
    item(j, "kernel", text);
}

void environment_json(Json *out)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    char cpu[256];

    environment_cpu(cpu, sizeof(cpu));
    jsonw_open(out, '{');
    item(out, "cpu", cpu);
    item(out, "vectors", cpu_vectors(cpu_level()));
    jsonw_key(out, "cores");
    jsonw_int(out, threads_hardware());
    jsonw_key(out, "memory");
    if (pages > 0 && page > 0)
        jsonw_int(out, (int64_t)pages * page);
    else
        jsonw_null(out);
    item(out, "openblas_core", blas_text("openblas_get_corename"));
    item(out, "openblas_config", blas_text("openblas_get_config"));
    item(out, "openblas_coretype", getenv("OPENBLAS_CORETYPE"));
    item(out, "compiler", COMPILER);
    kernel_item(out);
    item(out, "version", ATTNSCOPE_VERSION);
    item(out, "warning", environment_blas_warning());
    jsonw_close(out, '}');
}
