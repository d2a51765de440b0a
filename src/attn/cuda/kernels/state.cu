// state.cu -- attention by a state that forgets, token by token, in double; attn/ops/state.h has
// the rules.
//
// Columns of the state do not meet: a warp has one column of one head, its lanes the entries of
// that column.
#include "attn/cuda/kernels/team.cuh"

// What a token brings, for one head; rows of absent tensors are NULL.
struct StateToken {
    const float  *q, *k, *removal, *erase;
    const double *gates, *levels;
    double        v, beta;
};

template <typename T>
static __device__ const T *row_at(const DeviceTensor &t, int64_t head, int64_t heads, int64_t i)
{
    return t.data ? head_of<T>(t, head, heads) + i * t.row_stride : NULL;
}

static __device__ StateToken token_of(const StateCall &a, int64_t head, int64_t i, int64_t c)
{
    const double *beta = row_at<double>(a.beta, head, a.heads, i);
    StateToken    token = { row_at<float>(a.q, head, a.heads, i),
                            row_at<float>(a.k, head, a.heads, i),
                            row_at<float>(a.removal, head, a.heads, i),
                            row_at<float>(a.erase, head, a.heads, i),
                            row_at<double>(a.gates, head, a.heads, i),
                            row_at<double>(a.weights, head, a.heads, i),
                            (double)row_at<float>(a.v, head, a.heads, i)[c],
                            beta ? *beta : 1 };

    return token;
}

static __device__ double gate_of(const StateCall &a, const StateToken &x, int64_t t)
{
    return x.gates ? x.gates[a.channel_gates ? t : 0] : 1;
}

static __device__ double column_dot(const float *x, const double *s, int64_t d)
{
    double sum = 0;

    for (int64_t t = (int)threadIdx.x % 32; t < d; t += 32)
        sum += (double)x[t] * s[t];
    return warp_sum(sum);
}

// One token of one state; returns q s.
static __device__ double step_column(const StateCall &a, const StateToken &x, double *s)
{
    int64_t lane = (int)threadIdx.x % 32;
    double  asked = a.rule == STATES_REPLACE ? column_dot(x.removal, s, a.d) : 0, write = x.v;

    for (int64_t t = lane; t < a.d; t += 32)
        s[t] *= gate_of(a, x, t);
    if (a.rule == STATES_DELTA)
        write = x.beta * (x.v - column_dot(x.k, s, a.d));
    for (int64_t t = lane; t < a.d; t += 32) {
        if (a.rule == STATES_REPLACE)
            s[t] -= (double)x.erase[t] * asked;
        s[t] += (double)x.k[t] * write;
    }
    return column_dot(x.q, s, a.d);
}

// One token of the states of all levels, state l of s in use while bit l of i is set; returns what
// it reads.  Then the token's own state joins them, as in counting to i + 1.
static __device__ double step_levels(const StateCall &a, const StateToken &x, int64_t i, double *s)
{
    int64_t lane = (int)threadIdx.x % 32, level = 0;
    double  own = 0, read = 0;

    for (int64_t t = lane; t < a.states * a.d; t += 32)
        s[t] *= gate_of(a, x, 0);
    for (int64_t t = lane; t < a.d; t += 32)
        own += (double)x.q[t] * (double)x.k[t];
    read = x.levels[0] * warp_sum(own) * x.v;
    for (int64_t l = 0; l < a.states; l++)
        if (i >> l & 1)
            read += x.levels[l + 1] * column_dot(x.q, s + l * a.d, a.d);
    while (i >> level & 1)
        level++;
    for (int64_t t = lane; t < a.d && level < a.states; t += 32) {
        double sum = (double)x.k[t] * x.v;

        for (int64_t l = 0; l < level; l++) {
            sum += s[l * a.d + t];
            s[l * a.d + t] = 0;
        }
        s[level * a.d + t] = sum;
    }
    return read;
}

static __global__ void __launch_bounds__(TEAM_THREADS) state_columns(StateCall a)
{
    int64_t size = a.states * a.d;

    for (int64_t at = Team<1>::first(); at < a.heads * a.e; at += Team<1>::step()) {
        int64_t head = at / a.e, c = at % a.e;
        double *s = a.state + at * size;

        for (int64_t t = Team<1>::member(); t < size; t += 32)
            s[t] = 0;
        for (int64_t i = 0; i < a.n; i++) {
            StateToken x = token_of(a, head, i, c);
            double     out = a.scale * (a.levels ? step_levels(a, x, i, s) : step_column(a, x, s));

            if (Team<1>::member() != 0)
                continue;
            if (a.wide)
                ((double *)a.out)[(head * a.n + i) * a.e + c] = out;
            else
                ((float *)a.out)[(head * a.n + i) * a.e + c] = (float)out;
        }
    }
}

extern "C" int call_state(const StateCall *a)
{
    int64_t columns = a->heads * a->e;

    if (columns <= 0 || a->n <= 0)
        return 0;
    return LAUNCH(state_columns, team_blocks<1>(columns), TEAM_THREADS, 0, *a);
}
