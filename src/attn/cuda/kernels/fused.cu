// fused.cu -- attention by cuDNN's fused engines, through its C interface.
//
// The library is opened when it is first asked for, and only its functions for graphs are used.
// A plan is compiled for a shape and kept; call_fused_plan makes it, outside of what is timed,
// and call_fused runs it.
#include "attn/cuda/kernels/declined.cuh"
#include "attn/cuda/kernels/matrix.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char reason[400] = "not asked for";

const char *fused_reason(void)
{
    return reason;
}

#define decline(...) declined(reason, FUSED_DECLINED, __VA_ARGS__)

#ifdef DEVICE_EMULATED
#include "emulated_fused.h"

void fused_close(void)
{
}

extern "C" int call_fused_plan(const FusedCall *a)
{
    (void)a;
    return emulated_fused_is("right") || emulated_fused_is("wrong")
               ? (decline("emulated"), 0) : decline("emulated, and not asked for");
}

extern "C" int call_fused(const FusedCall *a)
{
    FusedCall call = *a;

    return emulated_begin([=] {
        for (int64_t row = 0; row < call.heads * call.n; row++)
            emulated_fused_row(call, row / call.n, row % call.n);
    });
}

#elif __has_include(<cudnn_graph.h>) // since version 9
#include "attn/cuda/kernels/fused_graph.cuh"

#include <dlfcn.h>

static bool tried, usable;

/* ---- opening ---------------------------------------------------------------------------- */

static void *open_in(const char *folder, const char *below, const char *soname)
{
    char path[1024];

    if (!folder || !*folder)
        return NULL;
    snprintf(path, sizeof(path), "%s/%s/%s", folder, below, soname);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

// By the loader's own ways, then where toolkits put it.
static void *open_library(const char *soname)
{
    const char *homes[] = { getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda" };
    void       *found = dlopen(soname, RTLD_NOW | RTLD_LOCAL);

    for (int x = 0; !found && x < 3; x++) {
        found = open_in(homes[x], "lib64", soname);
        found = found ? found : open_in(homes[x], "lib", soname);
    }
    return found;
}

static void *open_cudnn(void)
{
    const char *given = getenv("ATTNSCOPE_CUDNN");

    return given && *given && strcmp(given, "1") != 0 ? dlopen(given, RTLD_NOW | RTLD_LOCAL)
                                                      : open_library("libcudnn.so.9");
}

// Where Python's packages put what belongs to cuDNN.
static void *open_near(const char *folder, const char *soname)
{
    static const char *const places[] = { ".", "../../cublas/lib", "../../cuda_nvrtc/lib",
                                          "../../cu13/lib" };
    void *found = NULL;

    for (int x = 0; !found && x < (int)(sizeof(places) / sizeof(*places)); x++)
        found = open_in(folder, places[x], soname);
    return found;
}

// The folder of what holds the function.
template <size_t SIZE>
static bool folder_of(void *function, char (&folder)[SIZE])
{
    Dl_info     found;
    const char *slash;

    if (!dladdr(function, &found) || !found.dli_fname || !(slash = strrchr(found.dli_fname, '/')))
        return false;
    snprintf(folder, SIZE, "%.*s", (int)(slash - found.dli_fname), found.dli_fname);
    return true;
}

// The compiler opens its own by name too.
static void open_builtins(void *compiler)
{
    int (*version_of)(int *major, int *minor);
    int  major = 0, minor = 0;
    char folder[900], soname[64];

    *(void **)&version_of = dlsym(compiler, "nvrtcVersion");
    if (!version_of || version_of(&major, &minor) || !folder_of(*(void **)&version_of, folder))
        return;
    snprintf(soname, sizeof(soname), "libnvrtc-builtins.so.%d.%d", major, minor);
    open_in(folder, ".", soname);
}

// What cuDNN opens by name when it makes its first plan.  Without the first it ends the program,
// and without the second it has no engine for attention; it finds what is open already.
static bool find_companions(void)
{
    static const char *const names[] = { "libcublasLt.so", "libnvrtc.so" };
    char  folder[900] = "", soname[64];
    void *found = NULL;

    folder_of(*(void **)&lib.GetVersion, folder);
    for (int x = 0; x < 2; x++) {
        snprintf(soname, sizeof(soname), "%s.%zu", names[x], lib.GetCudartVersion() / 1000);
        found = open_near(folder, soname);
        found = found ? found : open_library(soname);
        if (!found) {
            decline("cuDNN needs %s, which is not found: LD_LIBRARY_PATH or CUDA_HOME name its "
                    "folder", soname);
            return false;
        }
    }
    open_builtins(found);
    return true;
}

static bool find_functions(void *from)
{
#define X(f)                                                                                   \
    if (!(*(void **)&lib.f = dlsym(from, "cudnn" #f))) {                                       \
        decline("libcudnn has no cudnn" #f);                                                   \
        return false;                                                                          \
    }
    FUNCTIONS(X)
#undef X
    return true;
}

// A code, and what it says of its last failure besides, in one line.
template <size_t SIZE>
static const char *words_of(cudnnStatus_t status, char (&text)[SIZE])
{
    char more[220] = "";

    lib.GetLastErrorString(more, sizeof(more));
    more[sizeof(more) - 1] = '\0';
    for (char *at = more; *at; at++)
        *at = *at < ' ' ? ' ' : *at;
    snprintf(text, SIZE, "%s%s%s", status ? lib.GetErrorString(status) : "it offers none",
             *more ? ": " : "", more);
    return text;
}

static bool ready(void)
{
    void         *found;
    char          words[300];
    cudnnStatus_t status;

    if (tried)
        return usable;
    tried = true;
    found = open_cudnn();
    if (!found)
        decline("libcudnn.so.9 is not there (%.300s)", dlerror());
    if (!found || !find_functions(found))
        return false;
    if (lib.GetVersion() / 10000 != CUDNN_MAJOR) {
        decline("libcudnn is version %zu; this was built for %d.x", lib.GetVersion(),
                CUDNN_MAJOR);
        return false;
    }
    if (!find_companions())
        return false;
    status = lib.Create(&the_handle);
    if (status == CUDNN_STATUS_SUCCESS)
        status = lib.SetStream(the_handle, device_stream());
    usable = status == CUDNN_STATUS_SUCCESS;
    if (usable)
        decline("cuDNN %zu.%zu", lib.GetVersion() / 10000,
                lib.GetVersion() / 100 % 100);
    else
        decline("cuDNN cannot use this GPU: %s", words_of(status, words));
    return usable;
}

/* ---- plans -------------------------------------------------------------------------------- */

#define PLANS 32

struct Plan {
    FusedCall  shape;     // pointers in it mean nothing
    Graph      graph;     // the descriptors that the plan stands on
    Descriptor plan;      // NULL: no engine takes the shape
    char       why[300];  // ... because
    void      *workspace;
    int64_t    used;      // number of its last use
};

static Plan    plans[PLANS];
static int64_t uses;

static bool is_same(const FusedCall *a, const FusedCall *b)
{
    return a->heads == b->heads && a->n == b->n && a->m == b->m && a->d == b->d &&
           a->e == b->e && a->causal == b->causal && a->arithmetic == b->arithmetic &&
           a->q.size == b->q.size && a->q.rows == b->q.rows && a->k.heads == b->k.heads &&
           a->k.size == b->k.size && a->k.rows == b->k.rows && a->v.heads == b->v.heads &&
           a->v.size == b->v.size && a->v.rows == b->v.rows;
}

// What the plan has begun may still be under way.
static void drop(Plan *p)
{
    if (p->plan)
        cudaStreamSynchronize(device_stream());
    while (p->graph.count)
        lib.BackendDestroyDescriptor(p->graph.made[--p->graph.count]);
    if (p->workspace)
        cudaFree(p->workspace);
    *p = Plan();
}

// The first configuration that the heuristics offer and that compiles.
static Descriptor first_plan(Graph *g, Descriptor of)
{
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    Descriptor             rank = make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), engines[ENGINES];
    int64_t                count = 0;

    link(g, rank, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, of);
    set(g, rank, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    finish(g, rank);
    for (int x = 0; x < ENGINES; x++)
        engines[x] = make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (!g->status)
        g->status = lib.BackendGetAttribute(rank, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, ENGINES, &count,
                                                 engines);
    for (int64_t x = 0; x < count && !g->status; x++) {
        Descriptor d = make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);

        link(g, d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engines[x]);
        set(g, d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &the_handle);
        finish(g, d);
        if (!g->status)
            return d;
        if (x + 1 < count)
            g->status = CUDNN_STATUS_SUCCESS;
    }
    return NULL;
}

static bool take_workspace(Plan *p)
{
    int64_t bytes = 0, one;

    p->graph.status = lib.BackendGetAttribute(p->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                   CUDNN_TYPE_INT64, 1, &one, &bytes);
    if (!p->graph.status && bytes > 0 && cudaMalloc(&p->workspace, (size_t)bytes) != cudaSuccess) {
        (void)cudaGetLastError(); // told here
        p->graph.status = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    }
    return !p->graph.status;
}

static int make_plan(Plan *p, const FusedCall *a)
{
    drop(p);
    p->shape = *a;
    p->graph.shape = &p->shape;
    p->graph.next = VIRTUAL;
    p->plan = first_plan(&p->graph, graph(&p->graph));
    if (p->plan && take_workspace(p))
        return 0;
    p->plan = NULL;
    return decline("no engine of cuDNN takes this shape: %s", words_of(p->graph.status, p->why));
}

static Plan *plan_of(const FusedCall *a, int *code)
{
    Plan *oldest = &plans[0];

    *code = 0;
    for (int x = 0; x < PLANS; x++) {
        if (plans[x].used && is_same(&plans[x].shape, a)) {
            plans[x].used = ++uses;
            if (!plans[x].plan)
                *code = decline("no engine of cuDNN takes this shape: %s", plans[x].why);
            return &plans[x];
        }
        if (plans[x].used < oldest->used)
            oldest = &plans[x];
    }
    *code = make_plan(oldest, a);
    oldest->used = ++uses;
    return oldest;
}

static int run(Plan *p, const FusedCall *a)
{
    float      scale = (float)a->scale, hidden = -1e30f;
    int64_t    names[] = { Q, K, V, OUT, LSE, SCALE, HIDDEN };
    void      *data[] = { a->q.data, a->k.data, a->v.data, a->narrow.data, a->lse.data, &scale,
                          &hidden };
    Graph      own = {};
    Descriptor d = make(&own, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    int64_t    count = a->causal ? 7 : 6;
    char       words[300];

    set(&own, d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, names);
    set(&own, d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, data);
    set(&own, d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &p->workspace);
    finish(&own, d);
    if (!own.status)
        own.status = lib.BackendExecute(the_handle, p->plan, d);
    if (d)
        lib.BackendDestroyDescriptor(d);
    return own.status ? decline("cuDNN: %s", words_of(own.status, words)) : 0;
}

extern "C" int call_fused_plan(const FusedCall *a)
{
    int code = 0;

    if (!ready())
        return FUSED_DECLINED;
    if (a->heads)
        plan_of(a, &code);
    return code;
}

extern "C" int call_fused(const FusedCall *a)
{
    int   code;
    Plan *p = ready() ? plan_of(a, &code) : NULL;

    if (!p)
        return FUSED_DECLINED;
    return code ? code : run(p, a);
}

void fused_close(void)
{
    for (int x = 0; x < PLANS; x++)
        drop(&plans[x]);
    if (the_handle)
        lib.Destroy(the_handle);
    the_handle = NULL;
    tried = usable = false;
}

#else

void fused_close(void)
{
}

extern "C" int call_fused_plan(const FusedCall *a)
{
    (void)a;
    return decline("built without cudnn.h");
}

extern "C" int call_fused(const FusedCall *a)
{
    return call_fused_plan(a);
}

#endif
