/* quest.c -- Quest: every query reads the pages of keys whose scores may be largest.
 *
 *     lo[u], hi[u] = least and largest number of each channel over the keys of page u
 *     bound[i,u]   = sum over c of max(q[i,c] lo[u,c], q[i,c] hi[u,c]) / sqrt(d)
 *                    >= every score of query i in the page
 *     A_i          = keys of the newest page and of those with the largest bounds, up to `budget`
 *     output_i     = softmax over A_i of q_i . k_j / sqrt(d), times V
 *
 * Every row is a step of decoding: a page that it sees in part has the bounds of that part.
 */
#include "attn/mech/chosen/chosen.h"
#include "attn/run.h"

typedef struct Params {
    int64_t page, budget, min_pages;
    bool    last_page;
    double  scale, softcap;
} Params;

static const Param params[] = {
    PARAM_INT(Params, page, 4, 1, INT32_MAX, "keys of a page"),
    PARAM_INT(Params, budget, 16, 1, PARAM_COUNT_MAX, "keys that a query reads, in whole pages"),
    PARAM_INT(Params, min_pages, 1, 1, PARAM_COUNT_MAX, "pages that it reads at least"),
    PARAM_BOOL(Params, last_page, true, "causal: the newest page is always read"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params),
    PARAM_END
};

static int64_t pages_of(const Params *p, int64_t keys)
{
    return keys / p->page + (keys % p->page != 0);
}

static int64_t pages_read(const Params *p)
{
    return max_i64(p->min_pages, p->budget / p->page);
}

static bool reads_newest(const Run *r, const Params *p)
{
    return p->last_page && r->causal;
}

/* Sum over the rows of one head of the pages that they see. */
static double pages_seen(const Run *r, const Params *p)
{
    double pages = 0;

    for (int64_t i = 0; i < r->n; i++)
        pages += (double)pages_of(p, chosen_allowed(r, i));
    return pages;
}

/* f32 [h',P,d]: the largest, or the least, number of each channel in each page. */
static Tensor page_bounds(Run *r, const Params *p, Tensor k, WindowKind kind)
{
    int64_t  pages = pages_of(p, k.shape[1]);
    int32_t *first = run_alloc(r, pages, sizeof(*first)), *end = run_alloc(r, pages, sizeof(*end));
    Tensor   y = run_tensor3(r, DT_F32, k.shape[0], pages, k.shape[2]);

    for (int64_t u = 0; u < pages && !run_failed(r); u++) {
        first[u] = (int32_t)(u * p->page);
        end[u] = (int32_t)min_i64((u + 1) * p->page, k.shape[1]);
    }
    op_pool_windows(r, &(PoolWindows){ .x = k, .first = first, .end = end, .kind = kind }, y);
    return y;
}

/* ---- views --------------------------------------------------------------------- */

typedef struct Pages {
    ChooseKeys choice;
    int64_t    h;
} Pages;

static void read_bounds(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    const Pages *s = view->context;
    int64_t      seen = choose_candidates(&s->choice, i);

    for (int64_t x = 0; x < count; x++) {
        int64_t u = start + x * step;

        out[x] = u < seen ? (float)choose_number(&s->choice, s->h, head, i, u) : 0;
    }
}

static void read_bound_rows(const View *view, int64_t head, const int64_t *rows,
                            int64_t row_count, int64_t start, int64_t count, float *out)
{
    const Pages *s = view->context;

    choose_numbers(&s->choice, s->h, head, rows, row_count, start, count, out);
}

static void read_selected(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                          int64_t step, float *out)
{
    const Pages *s = view->context;
    int64_t      newest = choose_fixed(&s->choice, i);

    (void)head;
    for (int64_t x = 0; x < count; x++)
        out[x] = start + x * step == newest ? 2 : 1;
}

static const char *const whys[8] = { "by its bound", "newest page" };
static const char *const kinds[8] = { [4] = "key of a page that is read" };

static void show_pages(Run *r, const ChooseKeys *choice, const ChosenKeys *chosen)
{
    int64_t  shape[3] = { r->h, r->n, choice->hi.shape[1] };
    Pattern *read = chosen_pages(r, choice, chosen);
    Pages   *kept = run_alloc(r, 1, sizeof(*kept));
    View    *bounds, *selected;

    if (!kept || !read)
        return;
    *kept = (Pages){ .choice = *choice, .h = r->h };
    bounds = view_add(r, "bounds", VIEW_SIGNED, DT_F32, 3, shape);
    selected = view_add(r, "selected", VIEW_COMPONENTS, DT_U8, 3, shape);
    if (!bounds || !selected)
        return;
    bounds->read = read_bounds;
    bounds->read_rows = read_bound_rows;
    bounds->cost = 2 * (double)r->d;
    bounds->shown = chosen_candidates(r, choice, true);
    selected->read = read_selected;
    selected->support = read;
    selected->components = whys;
    bounds->context = selected->context = kept;
    bounds->cols = selected->cols = "page";
    view_tensor(r, "page_min", VIEW_VECTORS, choice->lo, "page", "channel");
    view_tensor(r, "page_max", VIEW_VECTORS, choice->hi, "page", "channel");
}

/* ---- the run --------------------------------------------------------------------- */

static ChooseKeys bounds_of(Run *r, const Params *p, const AttendInput *in)
{
    ChooseKeys choice = { .kind = CHOOSE_PAGES, .in = *in, .page = p->page, .most = pages_read(p),
                          .causal = r->causal, .newest = reads_newest(r, p) };

    run_stage(r, "bounds");
    choice.lo = page_bounds(r, p, in->k, WINDOW_MIN);
    choice.hi = page_bounds(r, p, in->k, WINDOW_MAX);
    op_charge(r, FLOP_OVERHEAD, 2 * (double)tensor_count(&in->k));
    return choice;
}

static void quest_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    AttendInput   in = run_attend_input(r, p->scale);
    ChooseKeys    choice = bounds_of(r, p, &in);
    ChosenKeys    chosen;
    Pattern      *cells;
    AttendResult  result;

    run_stage(r, "choose");
    chosen = op_choose(r, &choice);
    op_charge(r, FLOP_OVERHEAD, 4 * (double)r->d * chosen.seen);
    cells = chosen_page_cells(r, &chosen, p->page, false);
    if (run_wants_views(r))
        show_pages(r, &choice, &chosen);
    run_stage(r, "attend");
    result = op_attend(r, &in, cells);
    r->out = result.out;
    view_pattern(r, cells, false);
    view_meanings(r, cells, kinds);
    view_attention(r, cells, &in, result.lse);
    run_last_row(r, cells);
    run_masses(r, &in, cells);
    replay_offer_attend(r, &in, cells);
}

/* Keys of row i; *bound: at most, as the data decide whether a short last page is read. */
static double keys_read(const Run *r, const Params *p, int64_t i, bool *bound)
{
    int64_t keys = chosen_allowed(r, i), pages = pages_of(p, keys), read = pages_read(p);
    int64_t lack = pages * p->page - keys;

    if (read >= pages)
        return (double)keys;
    *bound |= lack && !reads_newest(r, p);
    return (double)read * (double)p->page - (double)(reads_newest(r, p) ? lack : 0);
}

static Flops quest_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        keys = 0;
    bool          bound = false;
    Flops         f;

    for (int64_t i = 0; i < r->n; i++)
        keys += keys_read(r, p, i, &bound);
    r->inner_bound |= bound;
    f = run_pattern_flops(r, (double)r->h * keys);
    f.overhead += 4 * (double)(r->d * r->h) * pages_seen(r, p) + 2 * (double)tensor_count(&r->k);
    return f;
}

/* All is held, and two vectors for each page; a step reads these and the chosen pages. */
static DecodeCost quest_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    DecodeCost    cost = decode_dense(r);
    double        pages = (double)pages_of(p, r->m), bytes = (double)r->cache_bytes;
    double        pair = 2 * (double)(r->k.shape[0] * r->d);

    cost.state_bytes += bytes * pair * pages;
    cost.kv_bytes_per_token += bytes * pair / (double)p->page;
    cost.step_bytes = decode_read(r) + bytes * pair * pages;
    cost.decode_flops = decode_row(r) + 4 * (double)(r->d * r->h) * pages + pair;
    return cost;
}

static const ViewPromise views[] = {
    VIEW("bounds", VIEW_SIGNED, "the largest score that a page may have"),
    VIEW("selected", VIEW_COMPONENTS, "pages that a query reads"),
    VIEW("page_min", VIEW_VECTORS, "least number of each channel in a page"),
    VIEW("page_max", VIEW_VECTORS, "largest number of each channel in a page"),
    VIEW("connectivity", VIEW_PATTERN, "cells of the pages read"),
    VIEW("weights", VIEW_WEIGHTS, "attention weights"),
    VIEW("position_bias", VIEW_SIGNED, "what the position adds to the scores (with --position)",
         .maybe = true),
    VIEWS_OF_MASSES,
    VIEW_PROMISE_END
};

static const StageNote notes[] = {
    { "bounds", "The least and the largest number of each channel are taken over the keys of a "
                "page: a box that holds them all." },
    { "choose", "For each channel the corner of the box that suits the query is taken.  No score "
                "in the page can be larger, so the pages with the largest bounds are read." },
    { "attend", "A softmax over all keys of the pages read." },
    { NULL, NULL }
};

const Mechanism mech_quest = {
    .id = "quest",
    .title = "Quest",
    .authors = "Tang, Zhao, Zhu, Xiao, Kasikci, Han",
    .year = 2024,
    .arxiv = "2406.10774",
    .source = "paper, section 3.3; mit-han-lab/Quest evaluation/quest_attention.py.  Every row is "
              "a step of decoding",
    .formula = "bound[i,u] = sum over c of max(q[i,c] lo[u,c], q[i,c] hi[u,c]) / sqrt(d)\n"
               "A_i = the newest page and those with the largest bounds, budget keys in all\n"
               "output_i = softmax over A_i of q_i . k_j / sqrt(d), times V\n"
               "b = budget; page: keys of a page",
    .problem = "A step of decoding reads the whole cache, though few keys matter to the query.",
    .idea = "Two vectors bound all scores of a page of keys, and the query reads only the pages "
            "whose bounds are largest.",
    .price = "The whole cache is still held, and a page with one loose channel is read for "
             "nothing.  Query heads that share keys choose by themselves: a step reads what any "
             "of them chose.",
    .teaches = "Page bounds as a staircase above the true scores.  False alarms are pages that one "
               "loose channel lifts.",
    .picture = "weights",
    .classes = CLASS_LP,
    .claim_time = "O(n d/page + b d) a step",
    .claim_memory = "O(n), 2 d numbers more a page",
    .claim_decode = "yes: reads n/page bounds and budget tokens",
    .claim_exponent = 2,
    .causal = true,
    .cross = true,
    .at_end = AT_END_OWN,
    .kind_of_layer = true,
    .positions = POSITION_INPUT,
    .views = views,
    .lesson = "top-k",
    .notes = notes,
    .kept_stage = "bounds",
    .size = "budget",
    .size_reads = true,
    .params = params,
    .params_size = sizeof(Params),
    .run = quest_run,
    .flops = quest_flops,
    .decode = quest_decode,
};
