/* state.c -- attention by a state that forgets on the device: token by token, whatever the form. */
#include "attn/cuda/host/gpu.h"
#include "attn/ops/state.h"

_Static_assert((int)STATES_DELTA == (int)STATE_DELTA && (int)STATES_REPLACE == (int)STATE_REPLACE,
               "StatesOf numbers the rules as StateRule does");

void gpu_state_attend(Run *r, const StateAttend *in, Tensor *out)
{
    ArenaMark mark = arena_mark(r->arena);
    int64_t   states = in->form.levels ? max_i64(1, in->form.levels - 1) : 1;
    StateCall call = { .heads = out->shape[0], .n = in->q.shape[1], .d = in->q.shape[2],
                       .e = in->v.shape[2], .rule = (int32_t)in->form.rule,
                       .channel_gates = in->form.gates == STATE_CHANNEL_GATES,
                       .levels = in->form.levels > 0, .states = states,
                       .q = gpu_tensor(r, &in->q), .k = gpu_tensor(r, &in->k),
                       .v = gpu_tensor(r, &in->v), .gates = gpu_tensor(r, &in->gates),
                       .beta = gpu_tensor(r, &in->beta), .weights = gpu_tensor(r, &in->levels),
                       .removal = gpu_tensor(r, &in->removal),
                       .erase = gpu_tensor(r, &in->erase), .scale = in->scale,
                       .out = gpu_result(r, out).data, .wide = in->wide };

    call.state = gpu_scratch(r, call.heads * call.e,
                             states * call.d * (int64_t)sizeof(*call.state));
    gpu_computed(r, ARITHMETIC_F32);
    GPU_OP(r, mark, "state_attend", state, &call);
}
