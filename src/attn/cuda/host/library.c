/* library.c -- see library.h. */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attn/cuda/host/gpu.h"
#include "attn/cuda/host/library.h"

#define LIBRARY "attnscope-cuda.so"
#ifdef ATTNSCOPE_MODULE
#define OWNER "the module"
#else
#define OWNER "the program"
#endif
#define VARIABLE "ATTNSCOPE_DEVICE_LIBRARY"
#define CUDNN_VARIABLE "ATTNSCOPE_CUDNN"
#define LOOK_NS 50000000 /* between looks at the cancel flag while waiting for the device */
#define SECOND_NS 1000000000

static void *open_at(const char *folder, const char *rest, Device *d)
{
    snprintf(d->path, sizeof(d->path), "%s%s%s", folder, rest, LIBRARY);
    return access(d->path, R_OK) == 0 ? dlopen(d->path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* The folder of the program, or of the module if its code runs in an interpreter of Lua. */
static const char *own_folder(char path[PATH_MAX])
{
#ifdef ATTNSCOPE_MODULE
    static const char own; /* lies in the module */
    Dl_info           found;

    return dladdr(&own, &found) && found.dli_fname && realpath(found.dli_fname, path)
               ? dirname(path)
               : NULL;
#else
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);

    if (length <= 0)
        return NULL;
    path[length] = '\0';
    return dirname(path);
#endif
}

/* Beside it; the module is built one folder deeper than the program. */
static void *open_beside(Device *d)
{
    static const char *const places[] = {
        "/",
#ifdef ATTNSCOPE_MODULE
        "/../",
#endif
        "/../lib/attnscope/",
    };
    char        path[PATH_MAX];
    const char *folder = own_folder(path);
    void       *found = NULL;

    for (size_t i = 0; folder && !found && i < sizeof(places) / sizeof(*places); i++)
        if (access(d->path, R_OK) != 0) /* one that exists and does not open is reported */
            found = open_at(folder, places[i], d);
    return found;
}

static void *open_library(Device *d, Error *err)
{
    const char *given = getenv(VARIABLE);
    void       *found;

    if (given && *given) {
        snprintf(d->path, sizeof(d->path), "%s", given);
        found = dlopen(given, RTLD_NOW | RTLD_LOCAL);
    } else {
        found = open_beside(d);
    }
    if (!found && access(d->path, R_OK) == 0)
        error_set(err, ERR_UNSUPPORTED, NO_GPU " back end: %s cannot be opened: %s; 'make cuda' "
                  "builds it anew", d->path, dlerror());
    else if (!found && given && *given)
        error_set(err, ERR_UNSUPPORTED, NO_GPU " back end: " VARIABLE " names %s, which is not "
                  "there", given);
    else if (!found)
        error_set(err, ERR_UNSUPPORTED, NO_GPU " back end: " LIBRARY " is not beside " OWNER "; "
                  "build it where nvcc is ('make cuda' finds it on PATH, by CUDA_HOME or NVCC), or "
                  "name it by " VARIABLE);
    return found;
}

static const DeviceApi *find_api(const Device *d, Error *err)
{
    DeviceEntry     *entry;
    const DeviceApi *api;

    *(void **)&entry = dlsym(d->library, DEVICE_ENTRY);
    api = entry ? entry(DEVICE_ABI) : NULL;
    if (!api)
        error_set(err, ERR_UNSUPPORTED, NO_GPU " back end: %s is of another version of attnscope; "
                  "build both together", d->path);
    return api;
}

/* Advice for an error of CUDA's, by its name. */
static const char *advice(const char *text)
{
    if (strstr(text, "InsufficientDriver"))
        return "install NVIDIA's driver, or a newer one (nvidia-smi shows which there is)";
    if (strstr(text, "NoDevice"))
        return "nvidia-smi lists those of the machine; containers, batch systems and "
               "CUDA_VISIBLE_DEVICES hide them";
    if (strstr(text, "NoKernelImage"))
        return "the back end was built for other GPUs, 8.0 and newer where nobody chose: 'make "
               "CUDA_ARCH=NN' builds it for compute capability N.N";
    if (strstr(text, "UnsupportedPtx"))
        return "the driver is older than the toolkit of the back end, which has no code for this "
               "GPU: install a newer one, or build for this GPU by 'make CUDA_ARCH=NN'";
    return "run nvidia-smi for details";
}

static bool open_gpu(Device *d, Error *err)
{
    int         code = d->api->open(0, &d->info);
    const char *text = code ? d->api->text(code) : "";

    if (!code)
        return true;
    return error_set(err, ERR_UNSUPPORTED, NO_GPU " that can be used: %s; %s", text, advice(text));
}

/* ---- the one device ------------------------------------------------------------------- */

/* Guards the_device and Device.holders; held also while a device is opened or closed. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Device         *the_device;

static const char *named_now(void)
{
    const char *given = getenv(VARIABLE);

    return given ? given : "";
}

static void destroy(Device *d)
{
    if (d->api)
        d->api->close();
    if (d->library)
        dlclose(d->library);
    pthread_mutex_destroy(&d->use);
    free(d->named);
    free(d);
}

static Device *device_new(void)
{
    Device             *d = calloc(1, sizeof(*d));
    pthread_mutexattr_t kind;

    if (!d)
        return NULL;
    d->holders = 1;
    d->named = strdup(named_now());
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&d->use, &kind);
    pthread_mutexattr_destroy(&kind);
    if (d->named)
        return d;
    destroy(d);
    return NULL;
}

static Device *open_first(Error *err)
{
    Device *d = device_new();

    if (!d) {
        error_set(err, ERR_NOMEM, "not enough memory to open the GPU");
        return NULL;
    }
    d->library = open_library(d, err);
    d->api = d->library ? find_api(d, err) : NULL;
    if (d->api && open_gpu(d, err)) {
        gpu_fill_ops(d);
        d->ahead = gpu_ahead_of(d);
        return d;
    }
    d->api = NULL;
    destroy(d);
    return NULL;
}

/* A different library than that of the_device (in tests) is another device. */
Device *device_open(Error *err)
{
    Device *d;

    pthread_mutex_lock(&lock);
    if (the_device && !strcmp(the_device->named, named_now())) {
        d = the_device;
        d->holders++;
    } else {
        d = open_first(err);
        the_device = d ? d : the_device;
    }
    pthread_mutex_unlock(&lock);
    return d;
}

void device_retain(Device *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&lock);
    d->holders++;
    pthread_mutex_unlock(&lock);
}

void device_release(Device *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&lock);
    if (--d->holders == 0) {
        the_device = the_device == d ? NULL : the_device;
        destroy(d);
    }
    pthread_mutex_unlock(&lock);
}

bool device_hold_now(Device *d)
{
    return !d || pthread_mutex_trylock(&d->use) == 0;
}

bool device_hold(Device *d, const atomic_bool *cancel)
{
    struct timespec until;
    bool            held = device_hold_now(d);

    while (!held && !(cancel && atomic_load(cancel))) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / SECOND_NS;
        until.tv_nsec %= SECOND_NS;
        held = pthread_mutex_timedlock(&d->use, &until) == 0;
    }
    return held;
}

void device_leave(Device *d)
{
    if (d)
        pthread_mutex_unlock(&d->use);
}

Device *device_of(const Ops *ops)
{
    return ops && ops->memory ? ((const DeviceKind *)ops)->device : NULL;
}

const DeviceInfo *device_info(const Device *d)
{
    return &d->info;
}

const DeviceApi *device_api(const Device *d)
{
    return d->api;
}

const char *device_path(const Device *d)
{
    return d->path;
}

const char *device_cudnn(const Device *d)
{
    const char *given = getenv(CUDNN_VARIABLE);
    FusedCall   nothing = { 0 };

    if (given && !strcmp(given, "0"))
        return "switched off by " CUDNN_VARIABLE "=0";
    d->api->fused_plan(&nothing);
    return d->api->text(FUSED_DECLINED);
}

const Ops *device_ops(Device *d, Arithmetic arithmetic)
{
    return &d->kinds[arithmetic].ops;
}

const char *arithmetic_name(Arithmetic arithmetic)
{
    static const char *const names[] = { "f32", "tf32", "bf16", "f16" };

    return names[arithmetic];
}

Arithmetic arithmetic_of(const Ops *ops)
{
    return device_of(ops) ? ((const DeviceKind *)ops)->arithmetic : ARITHMETIC_F32;
}

int64_t device_in_use(const Device *d)
{
    return atomic_load(&d->in_use);
}

int64_t device_peak(const Device *d)
{
    return atomic_load(&d->peak);
}

void device_peak_reset(Device *d)
{
    atomic_store(&d->peak, atomic_load(&d->in_use));
}

char *computed_text(unsigned computed, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    for (int x = 0; x <= ARITHMETIC_F16 && at < size; x++)
        if (computed >> x & 1)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? " and " : "",
                                   arithmetic_name((Arithmetic)x));
    if (at < size && (computed & COMPUTED_CUDNN))
        at += (size_t)snprintf(text + at, size - at, ", cuDNN");
    if (at < size && (computed & COMPUTED_WARPGROUP))
        at += (size_t)snprintf(text + at, size - at, ", wgmma");
    if (!at)
        snprintf(text, size, "%s", arithmetic_name(ARITHMETIC_F32));
    return text;
}

/* ---- ways ---------------------------------------------------------------------------- */

#define TRIES "auto"

static const struct {
    const char *name, *variable, *where;
} table[DEVICE_WAYS] = {
    [WAY_WARPGROUP] = { "wgmma", "ATTNSCOPE_WGMMA",
                        "in bf16 and f16, for up to 128 columns and nothing added to scores" },
    [WAY_GRAPHS] = { "graphs", "ATTNSCOPE_GRAPHS", "for timed runs where the host reads nothing" },
};

const char *way_name(DeviceWay way)
{
    return table[way].name;
}

const char *way_variable(DeviceWay way)
{
    return table[way].variable;
}

bool way_named(const char *name, DeviceWay *out)
{
    for (int way = 0; way < DEVICE_WAYS; way++)
        if (!strcmp(name, table[way].name)) {
            *out = (DeviceWay)way;
            return true;
        }
    return false;
}

/* The variable's value; NULL: not set. */
static const char *value_of(DeviceWay way)
{
    const char *given = getenv(table[way].variable);

    return given && *given ? given : NULL;
}

static bool tries(const Device *d, DeviceWay way)
{
    return value_of(way) ? !strcmp(value_of(way), TRIES) : strcmp(d->api->name, DEVICE_REAL) == 0;
}

/* Why this GPU does not have the way; NULL: it has. */
static const char *absent(const Device *d, DeviceWay way)
{
    WarpgroupCall nothing = { .arithmetic = ARITHMETIC_BF16 };

    if (way == WAY_WARPGROUP)
        return d->api->attend_warpgroup(&nothing) ? d->api->text(WARPGROUP_DECLINED) : NULL;
    return d->info.managed ? NULL
                           : "no: the host may not touch this GPU's memory while it works";
}

WayState device_way(const Device *d, DeviceWay way)
{
    int verdict = atomic_load(&d->ways[way].verdict);

    if (absent(d, way))
        return WAY_ABSENT;
    if (!tries(d, way))
        return WAY_DECIDED;
    return verdict ? verdict > 0 ? WAY_TRUSTED : WAY_REFUSED : WAY_UNTRIED;
}

bool device_way_taken(const Device *d, DeviceWay way)
{
    if (tries(d, way))
        return atomic_load(&d->ways[way].verdict) > 0;
    return value_of(way) && strcmp(value_of(way), "0") != 0;
}

void device_way_settle(Device *d, DeviceWay way, bool good, const char *what)
{
    snprintf(d->ways[way].what, sizeof(d->ways[way].what), "%s", what);
    atomic_store(&d->ways[way].verdict, good ? 1 : -1);
    if (way == WAY_GRAPHS)
        d->ahead = gpu_ahead_of(d);
}

const char *device_way_text(Device *d, DeviceWay way)
{
    const char *variable = table[way].variable, *where = table[way].where, *why = absent(d, way);
    char       *text = d->ways[way].text;
    size_t      size = sizeof(d->ways[way].text);
    char        what[sizeof(d->ways[way].what)];

    if (why)
        return why;
    memcpy(what, d->ways[way].what, sizeof(what));
    switch (device_way(d, way)) {
    case WAY_TRUSTED:
        snprintf(text, size, "used %s: %s", where, what);
        break;
    case WAY_REFUSED:
        snprintf(text, size, "not used: %s; %s=1 takes it, 'attnscope trial' tries it again",
                 what, variable);
        break;
    case WAY_UNTRIED:
        snprintf(text, size, "not used: not tried on this GPU yet; 'attnscope trial' does that, "
                 "%s=1 takes it untried", variable);
        break;
    default:
        if (device_way_taken(d, way))
            snprintf(text, size, "used %s: %s=%s", where, variable, value_of(way));
        else
            snprintf(text, size, "not used: %s%s; %s=1 takes it", value_of(way) ? variable : "the "
                     "device is emulated", value_of(way) ? "=0" : "", variable);
    }
    return text;
}
