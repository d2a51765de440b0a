/* record.c -- JSON text to Lua values, and records as tables. */
#include <jansson.h>
#include <string.h>

#include "script/host/binding.h"

#define JSON_BOX "attnscope.json"

static int json_box_close(lua_State *L)
{
    json_t **box = luaL_checkudata(L, 1, JSON_BOX);

    json_decref(*box);
    *box = NULL;
    return 0;
}

static void push_value(lua_State *L, json_t *value);

/* Marks an empty object, which is otherwise written as an empty list. */
static void mark_object(lua_State *L)
{
    lua_pushnil(L);
    if (lua_next(L, -2))
        lua_pop(L, 2);
    else
        luaL_setmetatable(L, JSON_OBJECT_MARK);
}

/* Absent and null are the same in an object. */
static void push_object(lua_State *L, json_t *object)
{
    const char *key;
    json_t     *value;

    lua_createtable(L, 0, (int)json_object_size(object));
    json_object_foreach(object, key, value) {
        if (json_is_null(value))
            continue;
        lua_pushstring(L, key);
        push_value(L, value);
        lua_rawset(L, -3);
    }
    mark_object(L);
}

static void push_list(lua_State *L, json_t *list)
{
    size_t  index;
    json_t *value;

    lua_createtable(L, (int)json_array_size(list), 0);
    json_array_foreach(list, index, value) {
        push_value(L, value);
        lua_rawseti(L, -2, (lua_Integer)index + 1);
    }
}

static void push_value(lua_State *L, json_t *value)
{
    luaL_checkstack(L, 4, "nested JSON");
    switch (json_typeof(value)) {
    case JSON_OBJECT: push_object(L, value); break;
    case JSON_ARRAY: push_list(L, value); break;
    case JSON_STRING:
        lua_pushlstring(L, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER: lua_pushinteger(L, json_integer_value(value)); break;
    case JSON_REAL: lua_pushnumber(L, json_real_value(value)); break;
    case JSON_TRUE:
    case JSON_FALSE: lua_pushboolean(L, json_is_true(value)); break;
    case JSON_NULL: lua_pushlightuserdata(L, NULL); break;
    }
}

int json_push_text(lua_State *L, const char *text, size_t length)
{
    json_t     **box = box_push(L, sizeof(*box), 0, JSON_BOX, json_box_close, NULL);
    json_error_t why;
    Error        err = ERROR_INIT;

    *box = json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (!*box) {
        error_set(&err, ERR_FORMAT, "JSON line %d, column %d: %s", why.line, why.column, why.text);
        return failure(L, &err);
    }
    push_value(L, *box);
    lua_remove(L, -2);
    return 1;
}

/* [-0, +1 or 3, v] */
int attn_from_json(lua_State *L)
{
    size_t      length;
    const char *text = luaL_checklstring(L, 1, &length);

    return json_push_text(L, text, length);
}

/* Pushes JSON that this program wrote; a parse error is a bug. */
static void push_own(lua_State *L, const Text *text)
{
    if (!text_ok(text))
        luaL_error(L, "not enough memory");
    if (json_push_text(L, text_str(text), text->length) != 1)
        luaL_error(L, "a bug in attnscope: %s", lua_tostring(L, -2));
}

void record_push(lua_State *L, const Record *record)
{
    Text *text = text_box(L);
    Json  json = jsonw_to(text);

    record_json(record, &json);
    push_own(L, text);
    lua_remove(L, -2);
}

/* [-0, +1, v] */
int attn_environment(lua_State *L)
{
    Text *text = text_box(L);
    Json  json = jsonw_to(text);

    environment_json(&json);
    push_own(L, text);
    return 1;
}

/* The plain tables that functions give back, described for the manual and for
 * the language server. */

static const Member card_members[] = {
    FIELD("id", "string", "the name it runs by"),
    FIELD("title", "string", "as a reader knows it"),
    FIELD("authors", "string", "of the paper"),
    FIELD("year", "integer", "of the paper"),
    FIELD("arxiv", "string", "number of the paper"),
    FIELD("source", "string", "section or file that is followed"),
    FIELD("formula", "string", "plain text"),
    FIELD("teaches", "string", "what its picture shows"),
    FIELD("example", "string", "parameters for what cannot run without: \"window=5\""),
    FIELD("class", "string", "of the surveys: \"FP+M\""),
    FIELD("classes", "string[]", "the same, one by one"),
    FIELD("claim_time", "string", "\"O(n w)\""),
    FIELD("claim_memory", "string", "\"O(n)\""),
    FIELD("claim_decode", "string", "of one more token"),
    FIELD("claim_exponent", "number", "of n in the claimed time"),
    FIELD("inputs", "string[]", "what of an input it reads: q, k and v, or x, or attn, or nothing"),
    FIELD("causal", "boolean", "has a causal form"),
    FIELD("no_causal", "string", "why it has none"),
    FIELD("cross", "boolean", "takes other keys than queries"),
    FIELD("at_end", "boolean", "a causal run takes fewer queries than keys: the last positions"),
    FIELD("needs_x", "boolean", "reads the layer's input x"),
    FIELD("needs_attn", "boolean", "shows finished weights of the input"),
    FIELD("needs_none", "boolean", "reads no input"),
    FIELD("own_rows", "boolean", "the output's rows are not the queries"),
    FIELD("position", "boolean", "takes positional modifiers"),
    FIELD("fit", "string", "what can be fitted on the input"),
    FIELD("params", "attnscope.ParamCard[]", "its parameters"),
    FIELD("views", "attnscope.ViewCard[]", "its views"),
    FIELD("notes", "{ stage: string, text: string }[]", "what each stage does"),
    MEMBER_END,
};
const Class class_card = { .name = "Card", .help = "What is known of a mechanism.",
                           .members = card_members };

static const Member param_card_members[] = {
    FIELD("name", "string", "as in a run's options"),
    FIELD("type", "string", "int, float, bool, enum, text, tensor, list or per-head"),
    FIELD("default", "string", "written"),
    FIELD("min", "number", "least value"),
    FIELD("max", "number", "largest value"),
    FIELD("values", "string[]", "of an enum"),
    FIELD("shape", "string", "of a tensor"),
    FIELD("drawn", "string", "how a tensor is drawn that is not given"),
    FIELD("help", "string", "its meaning"),
    MEMBER_END,
};
const Class class_param_card = { .name = "ParamCard", .help = "A parameter of a mechanism.",
                                 .members = param_card_members };

static const Member view_card_members[] = {
    FIELD("name", "string", "as in result.views"),
    FIELD("kind", "string", "what a number in it is"),
    FIELD("help", "string", "what it shows"),
    FIELD("maybe", "boolean", "not always there"),
    MEMBER_END,
};
const Class class_view_card = { .name = "ViewCard", .help = "A view of a mechanism.",
                                .members = view_card_members };

static const Member record_members[] = {
    FIELD("mechanism", "string", "its id"),
    FIELD("status", "string",
          "OK, or why there are no numbers: OOM, UNSUPPORTED, CANCELLED, FAILED"),
    FIELD("message", "string", "of a run that failed"),
    FIELD("params", "table<string, any>", "every parameter"),
    FIELD("n", "integer", "queries"),
    FIELD("m", "integer", "keys"),
    FIELD("d", "integer", "head size of queries and keys"),
    FIELD("e", "integer", "head size of values"),
    FIELD("heads", "integer", "heads"),
    FIELD("kv_heads", "integer?", "heads of k and v where query heads share them; else nil"),
    FIELD("causal", "boolean", "no later keys"),
    FIELD("position", "string", "positional modifier"),
    FIELD("seed", "integer", "of the draws"),
    FIELD("device", "string", "that it ran on: cpu, or a GPU's back end"),
    FIELD("precision", "string", "asked for: f32, tf32, bf16, f16"),
    FIELD("computed", "string", "what products were computed in"),
    FIELD("threads", "integer", "that ran"),
    FIELD("free_processors", "number", "while it was timed, less what other processes used"),
    FIELD("oversubscribed", "boolean", "more threads than these"),
    FIELD("input", "string", "its name"),
    FIELD("time_ms", "table",
          "median, q1, q3, min, median_low, median_high, first, samples; absent: not "
          "measured"),
    FIELD("flops", "table",
          "counted, closed_form; counted_parts and closed_form_parts: score, mixing, overhead, "
          "position"),
    FIELD("memory", "table",
          "arena_peak, heap_peak, device_peak (of a GPU), rss_peak, allocations, "
          "arena_allocations, timeline (step_ms, arena, heap, device), largest"),
    FIELD("nnz", "integer", "allowed cells, of attn.profile's"),
    FIELD("density", "number", "their share of all cells, of attn.profile's"),
    FIELD("bytes", "number", "that must move at least"),
    FIELD("gpu", "table", "of a run on a GPU: name, source, graph (replayed, why, plain_ms; "
          "absent: not asked for), and a table for each tier, whose lacks says why it is not "
          "there: events (span_ms), "
          "activity (busy_ms, copy_ms, idle_ms, launches, allocated, dropped, "
          "kernels (name, stage, launches, total_ms, least_ms, most_ms, grid, block, registers, "
          "shared, local), spans (kernel and stage from 0, start_ms, end_ms), "
          "copies (kind, count, bytes, ms), copy_spans (as spans, of copies)), "
          "counters (flops, fp32, fp64, tensor, fused, dram_read, dram_written, occupancy, "
          "passes); what a tier does not know is absent"),
    FIELD("quality", "table",
          "mass_mean, mass_min, output_error, total_variation, kl or kl_lacks, worst; of a sample "
          "rows (of each head), and mass_margin, output_error_margin, total_variation_margin, "
          "kl_margin: half of the 95 % intervals"),
    FIELD("stages", "table[]",
          "name, iteration, flops, bytes, intensity, time_ms, allocations, arena_peak, heap_peak "
          "of each; gpu of a run on a GPU: span_ms [events], busy_ms, copy_ms, launches "
          "[activity], idle_ms, and what gpu.counters has, of the stage"),
    FIELD("tensors", "table<string, string>", "where tensor parameters are from"),
    FIELD("notes", "string[]", "of the run: how a parameter was read"),
    FIELD("warnings", "string[]", "of the run"),
    FIELD("environment", "table", "the machine"),
    MEMBER_END,
};
const Class class_record = { .name = "Record", .help = "What was measured of a run.",
                             .members = record_members, .open = true };

static const Member cell_members[] = {
    FIELD("allowed", "boolean", "the query may see the key"),
    FIELD("weight", "number", "0: masked"),
    FIELD("rank", "integer", "1: the largest of the row"),
    FIELD("below", "number", "log of the row's top weight over it"),
    FIELD("score", "number", "before the softmax"),
    FIELD("own_score", "boolean", "the row's weights are the softmax of its scores"),
    FIELD("evicted_after", "integer", "the earlier query after which the key left the cache"),
    FIELD("share", "number", "of what it adds to the output"),
    FIELD("length", "number", "of what it adds"),
    FIELD("exact", "table", "weight, rank and keys of exact attention"),
    FIELD("components", "string[]", "what allows it: \"window\", \"global\""),
    FIELD("bucket_q", "integer|integer[]",
          "bucket or cluster of the token at q; of several rounds a list; absent: tokens are not "
          "grouped"),
    FIELD("bucket_k", "integer|integer[]", "of the token at k (where queries alone are grouped: of "
          "its query)"),
    FIELD("q_token", "string", "label of the query"),
    FIELD("k_token", "string", "label of the key"),
    FIELD("values", "table<string, number>", "of every view of this shape"),
    MEMBER_END,
};
const Class class_cell = { .name = "Cell", .help = "One query and one key.",
                           .members = cell_members, .open = true };

static const Member entry_members[] = {
    FIELD("k", "integer", "the key"),
    FIELD("weight", "number", "its weight"),
    FIELD("components", "string[]", "what allows it"),
    MEMBER_END,
};
const Class class_entry = { .name = "RowEntry", .help = "A key that a query sees.",
                            .members = entry_members };

static const Member stage_members[] = {
    FIELD("name", "string", "of the step"),
    FIELD("caption", "string", "what it said, else the note; absent: neither"),
    FIELD("note", "string", "what the step does, in general"),
    FIELD("said", "string", "by the step itself, in a replay"),
    FIELD("iteration", "integer", "of a step that comes several times, from 0"),
    FIELD("replay", "boolean", "of the replay"),
    FIELD("flops", "table", "score, mixing, overhead, position, total"),
    FIELD("arena_peak", "integer", "bytes held at most"),
    FIELD("traces", "table<string, number>", "numbers that the step is watched by"),
    FIELD("views", "string[]", "that it made"),
    MEMBER_END,
};
const Class class_stage = { .name = "StageEntry", .help = "A step of the algorithm.",
                            .members = stage_members, .open = true };

static const Member comparison_members[] = {
    FIELD("max_abs", "number", "largest difference of the outputs"),
    FIELD("mean_abs", "number", "mean difference"),
    FIELD("rel_l2", "number", "norm of the difference, relative to the other's"),
    FIELD("total_variation", "number", "of the weights, mean over the rows"),
    FIELD("kl", "number",
          "mean over the rows of KL(weights || the other's), in nats; absent: see kl_lacks"),
    FIELD("kl_lacks", "string",
          "why there is no kl: no weights, rows that do not sum to 1 or hold negative weights, or "
          "a key that only this one weighs, which makes it infinite"),
    MEMBER_END,
};
const Class class_comparison = { .name = "Comparison", .help = "How far two results differ.",
                                 .members = comparison_members };

static const Member check_options_members[] = {
    FIELD("n", "integer[]", "lengths (default 1, 2, 7, 64)"),
    FIELD("params", "table<string, any>", "parameters of the mechanism"),
    FIELD("reference", "string", "what `error` is taken against (default: full)"),
    MEMBER_END,
};
const Class class_check_options = { .name = "CheckOptions", .help = "What to try.",
                                    .members = check_options_members };

static const Member report_members[] = {
    FIELD("mechanism", "string", "what was tried"),
    FIELD("ok", "boolean", "all cases hold"),
    FIELD("cases", "table[]", "name, ok and text of each"),
    FIELD("error", "number?", "the largest difference to the reference; nil: nothing ran"),
    MEMBER_END,
};
const Class class_report = { .name = "Report", .help = "What attn.check found.",
                             .members = report_members };

static const Member growth_members[] = {
    FIELD("alpha", "number", "the exponent"),
    FIELD("lo", "number", "lower end of its 95 % interval"),
    FIELD("hi", "number", "upper end"),
    FIELD("stderr", "number", "of the regression"),
    FIELD("c", "number", "the factor"),
    FIELD("r2", "number", "share of the variance explained"),
    FIELD("count", "integer", "points"),
    FIELD("model", "string", "whose c and r2 these are: power, or as was asked for"),
    FIELD("best", "string", "nearest of 1, log n, n, n log n, n^1.5, n^2"),
    FIELD("models", "table<string, number>", "the deviation that each leaves"),
    FIELD("slopes", "number[]", "between neighbours"),
    MEMBER_END,
};
const Class class_growth = { .name = "Growth", .help = "y = c x^alpha through points.",
                             .members = growth_members };

static const Member roofline_result_members[] = {
    FIELD("ceilings", "table",
          "of the first mechanism's device: device, precision, name (of a GPU), peak, tensor, gemm "
          "(FLOPs a second), stream (bytes a second)"),
    FIELD("devices", "table[]", "the same of every device and precision that a mechanism ran in"),
    FIELD("points", "table[]",
          "of each stage: mechanism, stage, device, computed, source (what tier its numbers are "
          "of), time_ms, flops, bytes, intensity, flops_per_second, roof, bound_ms (the larger of "
          "flops / peak and bytes / stream), of_bound (bound_ms / time_ms)"),
    FIELD("runs", "table[]", "of each mechanism: the same of its stages together, without stage"),
    FIELD("threads", "integer", "that ran"),
    FIELD("environment", "table", "the machine"),
    MEMBER_END,
};
const Class class_roofline = { .name = "Roofline", .help = "Stages and ceilings.",
                               .members = roofline_result_members };
