/* doctor.c -- reports what this machine and terminal can do, and what is missing. */
#include "app/command/command.h"

#include "app/program.h"
#include "app/session/session.h"
#include "attn/cuda/host/library.h"
#include "profile/machine.h"
#include "profile/measure.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : "(not set)";
}

static void terminal_lines(const Call *call, Text *out)
{
    text_addf(out,
              "terminal\n  TERM       %s\n  COLORTERM  %s\n  NO_COLOR   %s\n  codeset    %s%s\n",
              variable("TERM"), variable("COLORTERM"), variable("NO_COLOR"), nl_langinfo(CODESET),
              strcmp(nl_langinfo(CODESET), "UTF-8") ? " (ASCII pictures; --utf8 overrides)" : "");
    if (call->columns > 0)
        text_addf(out, "  columns    %d\n", call->columns);
    if (getenv("TMUX"))
        text_add(out, "  tmux       a short escape-time makes Esc quick: "
                      "tmux set -sg escape-time 25\n");
}

/* Where the explorer keeps its files. */
static void place_lines(Text *out)
{
    Text path = { 0 };

    text_addf(out, "files\n  state      %s\n",
              place_state("", &path, NULL) ? text_str(&path) : "(no place: HOME is not set)");
    text_free(&path);
}

static void measuring_lines(Text *out)
{
    char        line[200];
    const char *why;
    Counters   *counters = counters_open(line, sizeof(line));

    text_addf(out, "measuring\n  heap hooks %s\n",
              heap_hooks_active(&why) ? "active: library workspaces count too" : why);
    if (counters)
        counters_words(counters_counted(counters), line, sizeof(line));
    text_addf(out, "  counters   %s\n", line);
    counters_close(counters);
    text_addf(out, "  OpenBLAS   %s\n", environment_blas_fit(line, sizeof(line)));
}

/* Which profiler tiers this GPU has, and what the others lack. */
static void tier_lines(const DeviceApi *api, Text *out)
{
    const DeviceProfiler *p = api->profiler ? api->profiler() : NULL;

    if (!p) {
        text_add(out, "  profiling  none: the library was built without CUPTI's headers\n");
        return;
    }
    text_addf(out, "  profiling  by %s\n  events     yes\n", p->source());
    text_addf(out, "  activity   %s\n", p->can_trace() ? p->why() : "yes: kernels, copies, memory");
    text_addf(out, "  counters   %s\n", p->can_count() ? p->why()
                                                       : "yes: FLOPs, DRAM bytes, occupancy");
}

static void gpu_lines(Session *s, Text *out)
{
    Error             why = { 0 };
    Device           *gpu;
    const DeviceInfo *info;
    char              size[32];

    trials_forbid(); /* doctor answers at once, without trials */
    gpu = session_device(s, &why);
    info = gpu ? device_info(gpu) : NULL;
    text_add(out, "GPU\n");
    if (!gpu) {
        text_addf(out, "  none       %s\n", why.text);
        return;
    }
    text_addf(out, "  device     %s, compute capability %d.%d, %d multiprocessors, %s\n",
              info->name, info->major, info->minor, info->processors,
              format_bytes(info->memory, size, sizeof(size)));
    text_addf(out, "  library    %s; CUDA %d.%d, driver for %d.%d\n", device_path(gpu),
              info->runtime / 1000, info->runtime % 1000 / 10, info->driver / 1000,
              info->driver % 1000 / 10);
    text_add(out, "  products   own kernels: f32 by multiply-adds; tf32, bf16, f16 by tensor "
                  "cores\n");
    text_addf(out, "  cuDNN      %s\n", device_cudnn(gpu));
    text_addf(out, "  wgmma      %s\n", device_way_text(gpu, WAY_WARPGROUP));
    text_addf(out, "  graphs     %s\n", device_way_text(gpu, WAY_GRAPHS));
    if (!info->managed)
        text_add(out, "  memory     host and device cannot touch it at the same time: slower\n");
    tier_lines(device_api(gpu), out);
}

/* The machine's, and what a control group leaves of it. */
static void add_memory(Text *out, const char *key, int64_t machine)
{
    char size[32], allowed[32];

    text_addf(out, "  %-10s %s", key, format_bytes(machine, size, sizeof(size)));
    if (machine_memory() < machine)
        text_addf(out, ", of which the control group gives %s",
                  format_bytes(machine_memory(), allowed, sizeof(allowed)));
    text_add(out, "\n");
}

static void add_environment(Text *out, const char *json, const char *key)
{
    const char *at = strstr(json, key);
    size_t      length;

    if (!at)
        return;
    at = strchr(at, ':') + 1;
    length = strcspn(at, *at == '"' ? "\"" : ",}");
    if (*at == '"')
        length = strcspn(++at, "\"");
    if (!strcmp(key, "\"memory"))
        add_memory(out, key + 1, strtoll(at, NULL, 10));
    else
        text_addf(out, "  %-10s %.*s\n", key + 1, (int)length, at);
}

bool command_doctor(Session *s, const Call *call, Text *out, Error *err)
{
    static const char *const keys[] = { "\"cpu",      "\"vectors", "\"cores",  "\"memory",
                                        "\"compiler", "\"kernel",  "\"version" };
    Text                     environment = { 0 };
    Json                     json = jsonw_to(call->values[OPT_JSON] ? out : &environment);

    environment_json(&json);
    if (call->values[OPT_JSON]) {
        text_add(out, "\n");
        return true;
    }
    if (!text_ok(&environment)) {
        text_free(&environment);
        return error_set(err, ERR_NOMEM, "not enough memory");
    }
    text_add(out, "machine\n");
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        add_environment(out, text_str(&environment), keys[i]);
    text_free(&environment);
    measuring_lines(out);
    gpu_lines(s, out);
    terminal_lines(call, out);
    place_lines(out);
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory");
}
