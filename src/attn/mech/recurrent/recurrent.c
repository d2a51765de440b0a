/* recurrent.c -- see recurrent.h. */
#include "attn/mech/recurrent/recurrent.h"

#include <float.h>
#include <math.h>

#include "attn/run.h"
#include "core/rng.h"
#include "core/text.h"

const char *const recurrent_forms[] = { "auto", "recurrent", "chunked", NULL };
const char *const recurrent_norms[] = { "none", "rms", "group", NULL };

void recurrent_check(Run *r, const void *params)
{
    (void)params;
    if (!r->spec.causal)
        run_warn(r, "%s is causal by construction", r->mechanism->id);
}

/* ---- inputs ----------------------------------------------------------------------- */

RecurrentInput recurrent_input(Run *r, double scale, double fallback)
{
    AttendInput    in = run_attend_input(r, scale > 0 || scale < 0 ? scale : fallback);
    RecurrentInput out = { .q = in.q, .k = in.k, .v = in.v, .u = in.q, .scale = in.scale };

    if (r->x.data)
        out.u = tensor_with_rank(r->x, 3);
    return out;
}

int64_t recurrent_u_width(const Run *r)
{
    return r->x.data ? r->dm : r->d;
}

/* "1,5,2" of entry `at` of t. */
static void add_index(const Tensor *t, int64_t at, Text *out)
{
    int64_t below = tensor_count(t);

    for (int a = 0; a < t->rank; a++) {
        below /= t->shape[a];
        text_addf(out, "%s%lld", a ? "," : "", (long long)(at / below));
        at %= below;
    }
}

static void refuse_entry(Run *r, const char *name, const Tensor *t, int64_t at, const char *wanted)
{
    Text index = { 0 };

    add_index(t, at, &index);
    run_fail(r, ERR_PARAM, "%s: parameter %s: entry [%s] is %g; expected %s", r->mechanism->id,
             name, text_str(&index), float_at(t->dtype, t->data, at), wanted);
    text_free(&index);
}

static void check_range(Run *r, const char *name, Tensor given, GateRange range)
{
    static const struct {
        double      high;
        const char *wanted;
    } ranges[] = { [GATE_SHARE] = { 1, "0 to 1" }, [GATE_TWO] = { 2, "0 to 2" },
                   [GATE_STEP] = { DBL_MAX, "a finite number of at least 0" } };
    int64_t at = tensor_not_within(&given, 0, ranges[range].high);

    if (at >= 0 && !run_failed(r))
        refuse_entry(r, name, &given, at, ranges[range].wanted);
}

/* A given tensor f64 of `rows` rows for each head, with or without an axis of channels. */
static Tensor given_rows(Run *r, const char *name, Tensor given, int64_t rows, int64_t channels)
{
    int64_t shape[3] = { r->h, rows, channels };
    Tensor  t = run_param_given(r, name, given, DT_F64, channels ? 3 : 2, shape);

    if (!t.data || run_failed(r))
        return (Tensor){ .rank = 0 };
    return tensor_of(DT_F64, 3,
                     (int64_t[]){ tensor_count(&t) / (rows * max_i64(1, channels)), rows,
                                  max_i64(1, channels) }, t.data);
}

Tensor recurrent_given(Run *r, const char *name, Tensor given, int64_t channels, GateRange range)
{
    Tensor t = given_rows(r, name, given, r->n, channels), as_given = given;

    if (!t.data)
        return t;
    if (given.dtype != DT_F32 || !tensor_contiguous(&given)) /* else half the bytes */
        as_given = tensor_of(DT_F64, given.rank, given.shape, t.data);
    check_range(r, name, as_given, range);
    return t;
}

/* ---- gates from weights -------------------------------------------------------------- */

static Tensor gate_weight(Run *r, const char *name, Tensor given, int64_t du, int64_t channels)
{
    int64_t shape[3] = { r->h, du, channels };
    Init    init = { INIT_NORMAL, 0.5 / sqrt((double)du) };
    int     rank = channels ? 3 : 2;
    Tensor  t = given.data ? run_param_given(r, name, given, DT_F64, rank, shape)
                           : run_param(r, name, given, DT_F32, rank, shape, init);

    if (run_failed(r))
        return t;
    return tensor_of(t.dtype, 3,
                     (int64_t[]){ tensor_count(&t) / (du * max_i64(1, channels)), du,
                                  max_i64(1, channels) }, t.data);
}

double recurrent_logit_flops(const Run *r, int64_t channels)
{
    return (double)r->h * (double)r->n * (double)max_i64(1, channels) *
           (2 * (double)recurrent_u_width(r) + 4);
}

Tensor recurrent_logits(Run *r, const RecurrentInput *in, const char *name, Tensor weight,
                        int64_t channels)
{
    int64_t wide = max_i64(1, channels), du = in->u.shape[2];
    Tensor  w, y;

    if (in->u.shape[1] != r->n)
        run_fail(r, ERR_DATA, "%s: gates are computed from x, which has %lld tokens, and q has "
                 "n=%lld", r->mechanism->id, (long long)in->u.shape[1], (long long)r->n);
    w = gate_weight(r, name, weight, du, channels);
    y = run_tensor3(r, DT_F64, r->h, r->n, wide);
    if (w.dtype == DT_F32) /* drawn: only the picture of gates, not their last digits, counts */
        op_gemm_long(r, in->u, w, 1, y, FLOP_OVERHEAD);
    else
        op_gemm(r, in->u, false, w, false, 1, 0, y, FLOP_OVERHEAD);
    op_charge(r, FLOP_OVERHEAD, 4 * (double)tensor_count(&y));
    return y;
}

void recurrent_steps(Run *r, Tensor x, Tensor bias, const EntryStep *steps, int count)
{
    EntryStep all[ENTRY_STEPS] = { { ENTRY_SUM, 1, bias } };
    int       first = bias.data ? 1 : 0;

    for (int s = 0; s < count; s++)
        all[first + s] = steps[s];
    op_entries_steps(r, x, all, first + count, x);
}

Tensor recurrent_bias(Run *r, const char *name, Tensor given, int64_t channels)
{
    Tensor t = run_param_given(r, name, given, DT_F64, channels ? 2 : 1,
                               (int64_t[]){ r->h, channels });

    if (!t.data || run_failed(r))
        return (Tensor){ .rank = 0 };
    return tensor_of(DT_F64, 3,
                     (int64_t[]){ tensor_count(&t) / max_i64(1, channels), 1,
                                  max_i64(1, channels) }, t.data);
}

/* Steps from 0.001 to 0.1, and the numbers whose softplus they are. */
static double step_bias(Rng *rng)
{
    double step = exp(log(0.001) + rng_uniform(rng) * (log(0.1) - log(0.001)));

    step = fmax(step, 1e-4);
    return step + log(-expm1(-step));
}

static double a_log(Rng *rng)
{
    return log(1 + 15 * rng_uniform(rng));
}

/* f64 [h,1,wide] of such numbers, shown as the parameter that was drawn. */
static Tensor drawn_numbers(Run *r, const char *name, int64_t channels, double (*draw)(Rng *rng))
{
    int64_t wide = max_i64(1, channels);
    Tensor  t = run_tensor3(r, DT_F64, r->h, 1, wide);
    Tensor  shown = channels ? run_tensor2(r, DT_F32, r->h, wide) : run_tensor1(r, DT_F32, r->h);
    Rng     rng = run_rng(r, name);

    if (run_failed(r))
        return t;
    run_prepare(r, true);
    for (int64_t x = 0; x < tensor_count(&t); x++) {
        tensor_f64(&t)[x] = draw(&rng);
        tensor_f32(&shown)[x] = (float)tensor_f64(&t)[x];
    }
    op_toward(r, t.data, tensor_bytes(&t));
    run_prepare(r, false);
    view_drawn(r, name, shown);
    return t;
}

Tensor recurrent_step_bias(Run *r, const char *name, Tensor given, int64_t channels)
{
    return given.data ? recurrent_bias(r, name, given, channels)
                      : drawn_numbers(r, name, channels, step_bias);
}

Tensor recurrent_a_log(Run *r, const char *name, Tensor given)
{
    return given.data ? recurrent_bias(r, name, given, 0) : drawn_numbers(r, name, 0, a_log);
}

void recurrent_decay(Run *r, Tensor x, Tensor bias, bool softplus, Tensor a_log, Tensor y)
{
    Tensor    rate = run_tensor3(r, DT_F64, a_log.shape[0], 1, 1);
    EntryStep steps[ENTRY_STEPS];
    int       count = 0;

    op_entries(r, a_log, ENTRY_EXP, 0, rate);
    if (bias.data)
        steps[count++] = (EntryStep){ ENTRY_SUM, 1, bias };
    if (softplus)
        steps[count++] = (EntryStep){ .kind = ENTRY_SOFTPLUS, .by = 1 };
    steps[count++] = (EntryStep){ ENTRY_PRODUCT, -1, rate };
    steps[count++] = (EntryStep){ .kind = ENTRY_EXP };
    op_entries_steps(r, x, steps, count, y);
}

static void show_rows(Run *r, const char *name, ViewKind kind, Tensor gates, int64_t channels)
{
    Tensor shown;

    if (!run_wants_views(r) || !gates.data)
        return;
    shown = run_tensor3(r, DT_F32, r->h, r->n, max_i64(1, channels));
    op_entries(r, gates, ENTRY_CAST, 0, shown);
    if (!channels)
        shown = tensor_of(DT_F32, 2, shown.shape, shown.data);
    view_tensor(r, name, kind, shown, channels ? "token" : "head",
                channels ? "channel" : "token");
}

void recurrent_show_gates(Run *r, const char *name, Tensor gates, int64_t channels)
{
    show_rows(r, name, VIEW_MASK, gates, channels);
}

void recurrent_show_numbers(Run *r, const char *name, Tensor numbers, int64_t channels)
{
    show_rows(r, name, VIEW_TENSOR, numbers, channels);
}

Tensor recurrent_times(Run *r, Tensor x, Tensor factors)
{
    Tensor y = run_tensor3(r, DT_F32, r->h, x.shape[1], x.shape[2]);

    op_entries_of(r, x, factors, ENTRY_PRODUCT, 1, y);
    return y;
}

/* ---- state and output ----------------------------------------------------------------- */

StateForm recurrent_form(const Run *r, const RecurrentParams *p, StateRule rule, StateGates gates)
{
    return (StateForm){ .rule = rule, .gates = gates, .chunk = p->chunk,
                        .chunked = p->form == RECURRENT_CHUNKED ||
                                   (p->form == RECURRENT_AUTO && r->n > p->chunk) };
}

bool recurrent_wide(const RecurrentParams *p)
{
    return p->norm != RECURRENT_NORM_NONE;
}

/* Of a row of the output. */
static double norm_row_flops(const Run *r, const RecurrentParams *p)
{
    return p->norm == RECURRENT_NORM_NONE    ? 0
           : p->norm == RECURRENT_NORM_RMS ? 3 * (double)r->e + 3
                                             : 5 * (double)r->e + 3;
}

/* out / sqrt(mean(out^2) + eps), or standardised, over the channels. */
static Tensor normed(Run *r, const RecurrentParams *p, Tensor out)
{
    Tensor y, wide, none = { .rank = 0 };

    if (p->norm == RECURRENT_NORM_NONE && out.dtype == DT_F32)
        return out;
    if (p->norm != RECURRENT_NORM_NONE)
        run_stage(r, RECURRENT_STAGE_NORM);
    y = run_tensor3(r, DT_F32, r->h, r->n, r->e);
    if (p->norm == RECURRENT_NORM_NONE) {
        op_entries(r, out, ENTRY_CAST, 0, y);
        return y;
    }
    if (p->norm == RECURRENT_NORM_RMS) {
        wide = op_normalise64(r, out, NORMALISE_RMS, p->norm_eps);
        op_entries(r, wide, ENTRY_CAST, 0, y);
    } else {
        int64_t rows[3] = { r->h * r->n, 1, r->e };

        op_standardise64(r, tensor_of(out.dtype, 3, rows, out.data), p->norm_eps, none, none,
                         tensor_of(DT_F32, 3, rows, y.data));
    }
    op_charge(r, FLOP_OVERHEAD, (double)r->h * (double)r->n * norm_row_flops(r, p));
    return y;
}

/* What op_normalise64 divided rows by, for views. */
static Tensor row_divisors(Run *r, const RecurrentParams *p, Tensor out)
{
    Tensor sums = run_tensor3(r, DT_F64, r->h, r->n, 1);

    op_wait(r, "the size of the output");
    for (int64_t x = 0; x < r->h * r->n && !run_failed(r); x++) {
        double squares = 0;

        for (int64_t c = 0; c < r->e; c++) {
            double entry = float_at(out.dtype, out.data, x * r->e + c);

            squares += entry * entry;
        }
        tensor_f64(&sums)[x] = sqrt(squares / (double)r->e + p->norm_eps);
    }
    return sums;
}

/* States of a head. */
static double states_of(const Run *r, const StateForm *form)
{
    return form->levels ? (double)state_bits(r->n) : 1;
}

DecodeCost recurrent_decode(const Run *r, const RecurrentParams *p, const StateForm *form,
                            double token)
{
    double bytes = 4 * (double)r->h * (double)r->d * (double)r->e * states_of(r, form);

    return (DecodeCost){ .state_bytes = bytes, .step_bytes = bytes,
                         .decode_flops = state_token_flops(r, form) + token +
                                         (double)r->h * norm_row_flops(r, p) };
}

void recurrent_finish(Run *r, const RecurrentParams *p, Tensor out, StateShow *s)
{
    double d = (double)r->d, e = (double)r->e;

    r->out = normed(r, p, out);
    if (!run_wants_views(r))
        return;
    s->name = p->norm == RECURRENT_NORM_GROUP ? "hidden" : "weights";
    s->span_mass = p->span_mass;
    if (p->norm == RECURRENT_NORM_RMS)
        s->matrix.divisor = row_divisors(r, p, out);
    view_stage(r, RECURRENT_STAGE_STATE, -1);
    state_show(r, s);
    view_stage(r, NULL, -1);
    run_figure(r, "kv_equal_tokens", d * e * states_of(r, &s->matrix.in.form) / (d + e));
}

Flops recurrent_flops(const Run *r, const RecurrentParams *p, const StateForm *form)
{
    Flops sum = state_flops(r, form);

    sum.overhead += (double)r->h * (double)r->n * norm_row_flops(r, p);
    return sum;
}
