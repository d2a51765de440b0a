/* stack.c -- attn.cache: what a stack of layers holds and reads while it generates. */
#include "profile/stack.h"

#include <math.h>

#include "app/command/cache.h"
#include "script/host/binding.h"

static int model_gc(lua_State *L)
{
    model_cache_free(lua_touserdata(L, 1));
    return 0;
}

/* The model that is named, in a box; NULL: none is.  [-0, +1, v] */
static const ModelCache *take_model(lua_State *L, int t)
{
    const char *word = option_string(L, t, "model", NULL);
    ModelCache *box;
    Error       err = ERROR_INIT;

    if (!word) {
        lua_pushnil(L);
        return NULL;
    }
    box = box_push(L, sizeof(*box), 0, "attnscope.model_cache", model_gc, NULL);
    *box = (ModelCache){ 0 };
    if (!cache_of_model(script_of(L)->session->thing, word, box, &err))
        luaL_error(L, "%s", err.text);
    return box;
}

/* Default: of the model, or one head, bf16, no groups, no latent.  [-0, +0, v] */
static StackShape take_shape(lua_State *L, int t, const ModelCache *model)
{
    int64_t    heads = model ? model->heads : 1;
    StackShape shape = { .heads = option_integer(L, t, "heads", heads, 1, 1 << 20) };
    Error      err = ERROR_INIT;

    shape.kv_heads = option_integer(L, t, "kv_heads", model ? model->kv_heads : shape.heads, 1,
                                    1 << 20);
    shape.dim = option_integer(L, t, "dim", model ? model->dim : 128, 1, 1 << 20);
    shape.rank = option_integer(L, t, "rank", model ? model->rank : 0, 0, 1 << 20);
    shape.rope = option_integer(L, t, "rope", model ? model->rope : 0, 0, 1 << 20);
    if (!stack_dtype_parse(option_string(L, t, "dtype", "bf16"), &shape, &err))
        luaL_error(L, "%s", err.text);
    shape.bits = option_number(L, t, "bits", shape.bits);
    shape.group = option_integer(L, t, "group", shape.group, 0, 1 << 20);
    shape.scale_bits = option_number(L, t, "scale_bits", shape.scale_bits);
    if (!stack_shape_check(&shape, &err))
        luaL_error(L, "%s", err.text);
    return shape;
}

/* [-0, +1, v] */
int attn_cache(lua_State *L)
{
    const ModelCache *model;
    StackShape        shape;
    StackCost         cost;
    Stack            *stack;
    int64_t           n, depth;
    Error             err = ERROR_INIT;

    lua_settop(L, 1);
    options_check(L, 1, &class_cache_options);
    model = take_model(L, 1);
    shape = take_shape(L, 1, model);
    n = option_integer(L, 1, "n", 1, 1, (int64_t)1 << 40);
    stack = lua_newuserdatauv(L, sizeof(*stack), 0);
    if (!stack_parse(option_string(L, 1, "layers", model ? text_str(&model->layers) : "full"),
                     stack, &err))
        return luaL_error(L, "%s", err.text);
    depth = option_integer(L, 1, "depth", model ? model->depth : stack->count, 1, STACK_LAYERS);
    if (!stack_repeat(stack, depth, &err))
        return luaL_error(L, "%s", err.text);
    if (!stack_check(stack, &shape, &err))
        return luaL_error(L, "%s", err.text);
    cost = stack_cost(stack, &shape, n);
    lua_newtable(L);
    field_integer(L, "layers", stack->count);
    field_number(L, "token_bytes", cost.token_bytes);
    field_number(L, "cache_bytes", cost.cache_bytes);
    field_number(L, "state_bytes", cost.state_bytes);
    if (!isnan(cost.read_bytes))
        field_number(L, "read_bytes", cost.read_bytes);
    if (!isnan(cost.step_flops))
        field_number(L, "step_flops", cost.step_flops);
    return 1;
}

static const Member cache_option_members[] = {
    FIELD("model", "string",
          "a GGUF file, a folder with config.json, or a config.json: its layers and sizes are the "
          "defaults of the other options"),
    FIELD("layers", "string",
          "full, window(KEYS), window(KEYS,sinks=S), a mechanism that keeps keys such as "
          "h2o(heavy=64,recent=64), a state such as retnet(HEADS,KEYS,VALUES), or "
          "state(..) of a mechanism that is not known; +conv(CHANNELS,WIDTH) adds a short "
          "convolution to it; xN "
          "repeats a layer or brackets: \"(window(4096)x5,full)x8\"; KEYS counts the query's own, "
          "as sliding_window in a config.json; default: full"),
    FIELD("depth", "integer",
          "how many layers; the list begins again; default: the model's, or as many as given"),
    FIELD("n", "integer", "tokens, the step's included; default: 1"),
    FIELD("heads", "integer", "heads of queries; default: 1"),
    FIELD("kv_heads", "integer", "heads of keys and values; default: as many"),
    FIELD("dim", "integer", "numbers of a head; default: 128"),
    FIELD("rank", "integer", "latent attention: numbers of the latent, which all heads share"),
    FIELD("rope", "integer", "latent attention: numbers with positions, which all heads share"),
    FIELD("dtype", "string",
          "of cached numbers: bf16, f16, f32, f8, q8, q5 or q4 (the last three with a scale of 16 "
          "bits for 32 numbers); default: bf16"),
    FIELD("bits", "number", "of a cached number; default: as the dtype says"),
    FIELD("group", "integer", "cached numbers that share a scale; default: as the dtype says"),
    FIELD("scale_bits", "number", "of a scale; default: 16"),
    MEMBER_END,
};
const Class class_cache_options = { .name = "CacheOptions",
                                    .help = "A stack of layers, and the shape that they share.",
                                    .members = cache_option_members };

static const Member cache_members[] = {
    FIELD("layers", "integer", "how many"),
    FIELD("token_bytes", "number", "that one token more adds"),
    FIELD("cache_bytes", "number", "held after n tokens"),
    FIELD("state_bytes", "number", "of them in states, which do not grow with n"),
    FIELD("read_bytes", "number",
          "of those held, that a step reads; absent where the tokens decide it"),
    FIELD("step_flops", "number",
          "of a step's scores, softmax and sums of values, or states; absent there, too, and where "
          "a layer is state(..)"),
    MEMBER_END,
};
const Class class_cache = { .name = "Cache",
                            .help = "What a stack holds and reads while it generates one sequence.",
                            .members = cache_members };
