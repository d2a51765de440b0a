// fused_graph.cuh -- attention as a graph of cuDNN's, node by node; for fused.cu.
//
// A graph is Q K^T, scale, mask, softmax with its log-sum-exp, times V: that is what cuDNN's
// fused engines recognise.  The node of the logarithm must be there even where nobody reads it.
#ifndef ATTN_CUDA_KERNELS_FUSED_GRAPH_CUH
#define ATTN_CUDA_KERNELS_FUSED_GRAPH_CUH

#include "attn/cuda/kernels/portable.cuh"

#include <cudnn.h>

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

#endif
