// fused.cu -- attention by cuDNN's fused engines, through its C interface.
//
// The library is opened when it is first asked for, and only its functions for graphs are used.
// A plan is compiled for a shape and kept; call_fused_plan makes it, outside of what is timed,
// and call_fused runs it.
#include "attn/cuda/kernels/matrix.cuh"
#include "attn/cuda/kernels/portable.cuh"

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

static bool tried, usable; // as below: found out once, until the device is closed

void fused_close(void)
{
    tried = usable = false;
}

extern "C" int call_fused_plan(const FusedCall *a)
{
    (void)a;
    usable = tried ? usable : emulated_fused_is("right") || emulated_fused_is("wrong");
    tried = true;
    return usable ? (decline("emulated"), 0) : decline("emulated, and not asked for");
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
#include <cudnn.h>
#include <dlfcn.h>

/* ---- the graph ----------------------------------------------------------------------- */

// Attention as a graph of cuDNN's, node by node.
//
// A graph is Q K^T, scale, mask, softmax with its log-sum-exp, times V: that is what cuDNN's
// fused engines recognise.  The node of the logarithm is needed even where it is not read.

#define FUNCTIONS(X)                                                                           \
    X(GetVersion) X(GetCudartVersion) X(GetErrorString) X(GetLastErrorString)                  \
    X(Create) X(Destroy) X(SetStream)                                                          \
    X(BackendCreateDescriptor) X(BackendDestroyDescriptor) X(BackendSetAttribute)              \
    X(BackendGetAttribute) X(BackendFinalize) X(BackendExecute)

static struct {
#define X(f) decltype(&cudnn##f) f;
    FUNCTIONS(X)
#undef X
} lib;
static cudnnHandle_t the_handle;

#define DESCRIPTORS 96
#define OPERATIONS 16
#define ENGINES 8

enum { Q = 1, K, V, OUT, LSE, SCALE, HIDDEN, VIRTUAL = 100 };

typedef cudnnBackendDescriptor_t Descriptor;

// A graph under construction; `status` keeps the first failure, after which nothing is done.
struct Graph {
    const FusedCall *shape;
    Descriptor       made[DESCRIPTORS], operations[OPERATIONS];
    int              count, operation_count;
    int64_t          next; // name of a virtual tensor
    cudnnStatus_t    status;
};

static Descriptor make(Graph *g, cudnnBackendDescriptorType_t type)
{
    Descriptor d = NULL;

    if (g->count == DESCRIPTORS)
        g->status = CUDNN_STATUS_INTERNAL_ERROR;
    if (!g->status)
        g->status = lib.BackendCreateDescriptor(type, &d);
    if (d)
        g->made[g->count++] = d;
    return d;
}

static void set(Graph *g, Descriptor d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *value)
{
    if (!g->status)
        g->status = lib.BackendSetAttribute(d, name, type, count, value);
}

static void link(Graph *g, Descriptor d, cudnnBackendAttributeName_t name, Descriptor to)
{
    set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to);
}

static Descriptor finish(Graph *g, Descriptor d)
{
    if (!g->status)
        g->status = lib.BackendFinalize(d);
    return d;
}

static void operation(Graph *g, Descriptor d)
{
    finish(g, d);
    if (g->operation_count < OPERATIONS)
        g->operations[g->operation_count++] = d;
    else
        g->status = CUDNN_STATUS_INTERNAL_ERROR;
}

struct Form {
    int64_t size[4], stride[4];
};

enum Place { IN_MEMORY, IN_FLIGHT, BY_VALUE };

static Descriptor tensor(Graph *g, int64_t name, cudnnDataType_t type, Form form, Place place)
{
    Descriptor d = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t    alignment = 16;
    bool       in_flight = place == IN_FLIGHT, by_value = place == BY_VALUE;

    set(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name);
    set(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, form.size);
    set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, form.stride);
    set(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &in_flight);
    set(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    return finish(g, d);
}

// Scores between two nodes, of one type; a line of them, one a row.
static Descriptor scores(Graph *g, cudnnDataType_t type)
{
    int64_t h = g->shape->heads, n = g->shape->n, m = g->shape->m;

    return tensor(g, g->next++, type, { { 1, h, n, m }, { h * n * m, n * m, m, 1 } }, IN_FLIGHT);
}

static Descriptor line(Graph *g, int64_t name, Place place)
{
    int64_t h = g->shape->heads, n = g->shape->n;

    return tensor(g, name, CUDNN_DATA_FLOAT, { { 1, h, n, 1 }, { h * n, n, 1, 1 } }, place);
}

static Descriptor number(Graph *g, int64_t name)
{
    return tensor(g, name, CUDNN_DATA_FLOAT, { { 1, 1, 1, 1 }, { 1, 1, 1, 1 } }, BY_VALUE);
}

static cudnnDataType_t narrow_type(const FusedCall *a)
{
    return a->arithmetic == ARITHMETIC_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
}

static Descriptor packed(Graph *g, int64_t name, const Packed &p, int64_t rows, int64_t cols,
                         bool turned)
{
    int64_t head = p.rows * p.size;
    Form    form = { { 1, p.heads, rows, cols }, { p.heads * head, head, p.size, 1 } };

    if (turned)
        form = { { 1, p.heads, cols, rows }, { p.heads * head, head, 1, p.size } };
    return tensor(g, name, narrow_type(g->shape), form, IN_MEMORY);
}

static void multiply(Graph *g, Descriptor a, Descriptor b, Descriptor c)
{
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    Descriptor      how = make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR), d;

    set(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    finish(g, how);
    d = make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    link(g, d, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    link(g, d, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    link(g, d, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    link(g, d, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    operation(g, d);
}

// y = x, or x and b, or x where t and else b.
static Descriptor point(Graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t type, int64_t axis,
                        Descriptor x, Descriptor b, Descriptor t, Descriptor y)
{
    Descriptor how = make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR), d;

    set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
    if (axis >= 0)
        set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    finish(g, how);
    d = make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    link(g, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    link(g, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b)
        link(g, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (t)
        link(g, d, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
    link(g, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    operation(g, d);
    return y;
}

static Descriptor float_point(Graph *g, cudnnPointwiseMode_t mode, Descriptor x, Descriptor b,
                              Descriptor y)
{
    return point(g, mode, CUDNN_DATA_FLOAT, -1, x, b, NULL, y);
}

static Descriptor reduce(Graph *g, cudnnReduceTensorOp_t which, Descriptor x)
{
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    Descriptor      y = line(g, g->next++, IN_FLIGHT);
    Descriptor      how = make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR), d;

    set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &which);
    set(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    finish(g, how);
    d = make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    link(g, d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    link(g, d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    link(g, d, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    operation(g, d);
    return y;
}

// Scores of keys behind the row's own give way to a number far below all.
static Descriptor hide_later(Graph *g, Descriptor x)
{
    const cudnnDataType_t whole = CUDNN_DATA_INT32, truth = CUDNN_DATA_BOOLEAN;
    Descriptor row, col, seen;

    row = point(g, CUDNN_POINTWISE_GEN_INDEX, whole, 2, x, NULL, NULL, scores(g, whole));
    col = point(g, CUDNN_POINTWISE_GEN_INDEX, whole, 3, x, NULL, NULL, scores(g, whole));
    seen = point(g, CUDNN_POINTWISE_CMP_GE, truth, -1, row, col, NULL, scores(g, truth));
    return point(g, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1, x, number(g, HIDDEN),
                 seen, scores(g, CUDNN_DATA_FLOAT));
}

static void soften_and_mix(Graph *g, Descriptor x)
{
    const FusedCall *a = g->shape;
    Descriptor       most, sum, log_sum;

    most = reduce(g, CUDNN_REDUCE_TENSOR_MAX, x);
    x = float_point(g, CUDNN_POINTWISE_SUB, x, most, scores(g, CUDNN_DATA_FLOAT));
    x = float_point(g, CUDNN_POINTWISE_EXP, x, NULL, scores(g, CUDNN_DATA_FLOAT));
    sum = reduce(g, CUDNN_REDUCE_TENSOR_ADD, x);
    log_sum = float_point(g, CUDNN_POINTWISE_LOG, sum, NULL, line(g, g->next++, IN_FLIGHT));
    float_point(g, CUDNN_POINTWISE_ADD, most, log_sum, line(g, LSE, IN_MEMORY));
    x = float_point(g, CUDNN_POINTWISE_DIV, x, sum, scores(g, narrow_type(a)));
    multiply(g, x, packed(g, V, a->v, a->m, a->e, false),
             packed(g, OUT, a->narrow, a->n, a->e, false));
}

static Descriptor graph(Graph *g)
{
    const FusedCall *a = g->shape;
    Descriptor       x = scores(g, CUDNN_DATA_FLOAT), d;

    multiply(g, packed(g, Q, a->q, a->n, a->d, false), packed(g, K, a->k, a->m, a->d, true), x);
    x = float_point(g, CUDNN_POINTWISE_MUL, x, number(g, SCALE), scores(g, CUDNN_DATA_FLOAT));
    soften_and_mix(g, a->causal ? hide_later(g, x) : x);
    d = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(g, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->operation_count,
        g->operations);
    set(g, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &the_handle);
    return finish(g, d);
}

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

// Searches the loader's path, then the folders of CUDA toolkits.
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

// Searches the folders where Python packages install cuDNN's libraries.
static void *open_near(const char *folder, const char *soname)
{
    static const char *const places[] = { ".", "../../cublas/lib", "../../cuda_nvrtc/lib",
                                          "../../cu13/lib" };
    void *found = NULL;

    for (int x = 0; !found && x < (int)(sizeof(places) / sizeof(*places)); x++)
        found = open_in(folder, places[x], soname);
    return found;
}

// The folder of the library that holds the function.
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

// The compiler opens its library of built-in functions by name, too.
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

// Opens the libraries that cuDNN opens by name for its first plan, so that it finds them open.
// Without the first it ends the program, without the second it has no engine for attention.
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

// A status code and cuDNN's text of its last failure, in one line.
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

// Work that the plan has started may still be running.
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
        (void)cudaGetLastError(); // reported here
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
