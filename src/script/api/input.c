/* input.c -- inputs in Lua: the object, inputs made of tensors, saving.
 *
 * Each input has a Session of its own, so that several can be held at once and each frees its
 * memory when the script releases it.  Inputs by name are in load.c.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/scripting.h"
#include "app/session/model_input.h"
#include "script/host/work.h"

/* ---- the object ------------------------------------------------------------- */

LuaInput *input_check(lua_State *L, int arg)
{
    LuaInput *input = class_check(L, arg, &class_input);

    if (!input->keep)
        luaL_argerror(L, arg, "the input is closed");
    return input;
}

static const Input *checked_input(lua_State *L)
{
    return input_check(L, 1)->input;
}

CLOSE_OBJECT(input_close, LuaInput, class_input)

/* [-0, +1, m] */
static int input_describe(lua_State *L)
{
    const LuaInput *input = class_check(L, 1, &class_input);
    const Input    *in = input->input;

    if (!input->keep)
        lua_pushliteral(L, "Input (closed)");
    else
        lua_pushfstring(L, "Input %s n=%I m=%I d=%I heads=%I", in->name, (lua_Integer)in->n,
                        (lua_Integer)in->m, (lua_Integer)in->d, (lua_Integer)in->heads);
    return 1;
}

/* A mechanism of the script may be running in the session; it needs the Lua state to end. */
static void drop_session(void *session)
{
    int     held;
    Script *script = script_step_aside(&held);

    session_free(session);
    if (script)
        script_resume(script, held);
}

LuaInput *input_push_empty(lua_State *L)
{
    LuaInput *input = class_push(L, &class_input, sizeof(*input), 0);
    Error     err = ERROR_INIT;

    input->session = session_new(&err);
    check_ok(L, input->session != NULL, &err);
    input->keep = keep_new(input->session, drop_session, NULL);
    if (!input->keep)
        luaL_error(L, "not enough memory");
    return input;
}

/* Finishes the input at the top, which is loaded now; ok false: loading failed.
 * [-0, +0 or 3, v] */
static int finish(lua_State *L, LuaInput *input, bool ok, const Error *err)
{
    const Input *in = ok ? session_input(input->session) : NULL;

    if (!ok) {
        keep_release(input->keep);
        *input = (LuaInput){ 0 };
        return failure(L, err);
    }
    input->input = in;
    account(L, arena_used(in->arena));
    return 1;
}

/* Continues after work_await: the input that the work filled lies below the context.
 * [-0, +1 or 3, v] */
int input_push_worked(lua_State *L, int status, lua_KContext at)
{
    LuaInput *input = class_check(L, (int)at - 2, &class_input);
    Error     err;
    bool      ok = work_ended(L, at, &err);

    (void)status;
    lua_pushvalue(L, (int)at - 2);
    return finish(L, input, ok, &err);
}

/* ---- of tensors ------------------------------------------------------------- */

/* The tensor stays on the stack, so that it is not collected.  [-0, +1, v] */
static const Tensor *push_tensor_field(lua_State *L, const char *key)
{
    const Tensor *t = NULL;

    if (lua_getfield(L, 1, key) != LUA_TNIL) {
        if (!class_test(L, -1, &class_tensor))
            luaL_error(L, "%s: expected a Tensor, got %s", key, luaL_typename(L, -1));
        t = tensor_check(L, lua_gettop(L));
    }
    return t;
}

/* Copies of the token texts, on the stack, so that changes of the list do no harm.  [-0, +1, v] */
static const char **push_tokens(lua_State *L, int64_t count)
{
    const char **texts;
    int          list;

    if (lua_getfield(L, 1, "tokens") == LUA_TNIL)
        return NULL;
    luaL_checktype(L, -1, LUA_TTABLE);
    list = lua_gettop(L);
    if ((int64_t)lua_rawlen(L, list) != count)
        luaL_error(L, "tokens: expected %I, one a key, got %I", (lua_Integer)count,
                   (lua_Integer)lua_rawlen(L, list));
    texts = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof(*texts), 1);
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 0; i < count; i++) {
        if (lua_rawgeti(L, list, i + 1) != LUA_TSTRING)
            luaL_error(L, "tokens: item %I is no string", (lua_Integer)i + 1);
        texts[i] = lua_tostring(L, -1);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setiuservalue(L, -2, 1);
    lua_replace(L, list);
    return texts;
}

/* Arguments of attn.input; values on the stack own the pointers. */
typedef struct Joining {
    LuaInput     *input;
    Tensor        part[5]; /* q, k, v, x, segments; no data: not given */
    const char  **tokens, *name;
    int           causal;
    double        scale;
    int64_t       window;
} Joining;

static bool join(void *context, const atomic_bool *cancel, Error *err)
{
    Joining      *j = context;
    const Tensor *part[5];
    Input        *in;

    (void)cancel; /* no check: the work is one copy and one hash of the input */
    for (int i = 0; i < 5; i++)
        part[i] = j->part[i].data ? &j->part[i] : NULL;
    in = input_from_tensors(part[0], part[1], part[2], part[3], j->tokens, err);
    if (in && part[4] && !input_set_segments(in, part[4], err)) {
        input_free(in);
        return false;
    }
    if (in) {
        in->causal = j->causal;
        in->scale = j->scale;
        in->window = j->window;
    }
    return in && session_set_input(j->input->session, in, j->name, err);
}

#define LONG_BYTES (4 << 20) /* an input of fewer bytes is joined without the worker */

/* [-0, +1 or 3, v] */
int attn_input(lua_State *L)
{
    static const char *const names[] = { "q", "k", "v", "x", "segments" };
    const Tensor *part[5], *v, *x;
    Joining       all = { 0 }, *j;
    int64_t       bytes = 0;

    luaL_checktype(L, 1, LUA_TTABLE);
    options_check(L, 1, &class_tensors);
    lua_settop(L, 1);
    for (int i = 0; i < 5; i++) {
        part[i] = push_tensor_field(L, names[i]);
        all.part[i] = part[i] ? *part[i] : (Tensor){ 0 };
        bytes += part[i] ? tensor_bytes(part[i]) : 0;
    }
    v = part[2];
    x = part[3];
    if ((!v && (!x || part[0] || part[1])) || (part[1] && !part[0]))
        luaL_error(L, "input: needs q, k and v, or x, or v without k; %s is missing",
                   !v ? "v" : "q");
    all.name = lua_pushstring(L, option_string(L, 1, "name", "tensors"));
    all.causal = option_tristate(L, 1, "causal");
    all.scale = option_number(L, 1, "scale", 0);
    if (!(all.scale >= 0) || isinf(all.scale))
        luaL_error(L, "scale: expected a positive number, or 0 for 1/sqrt(d), got %f", all.scale);
    all.window = option_integer(L, 1, "window", 0, 0, 1000000000);
    all.tokens = push_tokens(L, v ? v->shape[v->rank - 2 < 0 ? 0 : v->rank - 2] : x->shape[0]);
    all.input = input_push_empty(L);
    j = lua_newuserdatauv(L, sizeof(*j), 0);
    *j = all;
    return work_await_end(L, script_of(L)->session->thing, bytes < LONG_BYTES ? NULL : "an input",
                          join, input_push_worked);
}

/* ---- fields ----------------------------------------------------------------- */

#define INTEGER_FIELD(field) FIELD_GETTER(input_##field, lua_pushinteger, checked_input(L)->field)
#define TEXT_FIELD(field)    FIELD_GETTER(input_##field, lua_pushstring, checked_input(L)->field)
/* [-0, +1, v] */
#define TENSOR_FIELD(field)                                                                      \
    static int input_##field(lua_State *L)                                                       \
    {                                                                                            \
        const LuaInput *input = input_check(L, 1);                                               \
                                                                                                 \
        if (input->input->field.data)                                                            \
            tensor_push_shared(L, input->input->field, input->keep, true);                       \
        else                                                                                     \
            lua_pushnil(L);                                                                      \
        return 1;                                                                                \
    }

INTEGER_FIELD(n)
INTEGER_FIELD(m)
INTEGER_FIELD(d)
INTEGER_FIELD(e)
INTEGER_FIELD(heads)
INTEGER_FIELD(layer)
INTEGER_FIELD(layers)
INTEGER_FIELD(width)

/* [-0, +1, m] */
static int input_held(lua_State *L)
{
    const Input *in = checked_input(L);

    lua_createtable(L, (int)in->layers, 0);
    for (int64_t i = 0; i < in->layers; i++) {
        lua_pushinteger(L, (lua_Integer)input_layer_number(in, i));
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

TEXT_FIELD(name)
TEXT_FIELD(kind)
TEXT_FIELD(model)
TEXT_FIELD(note)
TEXT_FIELD(sha256)
TENSOR_FIELD(q)
TENSOR_FIELD(k)
TENSOR_FIELD(v)
TENSOR_FIELD(x)
TENSOR_FIELD(attn)
TENSOR_FIELD(segments)

/* [-0, +1, v] */
static int input_causal(lua_State *L)
{
    int causal = checked_input(L)->causal;

    if (causal < 0)
        lua_pushnil(L);
    else
        lua_pushboolean(L, causal);
    return 1;
}

/* [-0, +1, v] */
static int push_kv_heads(lua_State *L)
{
    lua_pushinteger(L, input_kv_heads(checked_input(L)));
    return 1;
}

/* [-0, +1, v] */
static int input_scale(lua_State *L)
{
    double scale = checked_input(L)->scale;

    if (scale > 0)
        lua_pushnumber(L, scale);
    else
        lua_pushnil(L);
    return 1;
}

/* [-0, +1, v] */
static int input_window(lua_State *L)
{
    const Input *in = checked_input(L);

    if (in->window > 0)
        lua_pushinteger(L, in->window);
    else
        lua_pushnil(L);
    return 1;
}

/* [-0, +1, v] */
static int input_tokens(lua_State *L)
{
    const Input *in = checked_input(L);

    if (in->k_tokens)
        push_strings(L, in->k_tokens, in->m);
    else
        lua_pushnil(L);
    return 1;
}

/* [-0, +1, v] */
static int input_token(lua_State *L)
{
    const Input *in = checked_input(L);
    int64_t      j = check_index(L, 2, in->m, "token");

    lua_pushstring(L, in->k_tokens ? in->k_tokens[j] : NULL);
    return 1;
}

/* ---- saving ----------------------------------------------------------------- */

static void tokens_json(const Input *in, Text *out)
{
    Json j = jsonw_to(out);

    jsonw_open(&j, '[');
    for (int64_t i = 0; i < in->m; i++)
        jsonw_string(&j, in->k_tokens[i]);
    jsonw_close(&j, ']');
}

static bool has_ending(const char *path, const char *ending)
{
    size_t length = strlen(path), size = strlen(ending);

    return length >= size && !strcmp(path + length - size, ending);
}

/* The input at 1, the path at 2. */
typedef struct Saving {
    const Input *in;
    const char  *path;
    bool         safetensors;
} Saving;

static bool save_input(void *context, const atomic_bool *cancel, Error *err)
{
    const Saving *s = context;
    const Input  *in = s->in;
    const char   *metadata[9] = { NULL };
    char          scale[32], window[24];
    NamedTensor   all[] = { { "q", in->q }, { "k", in->k }, { "v", in->v }, { "x", in->x },
                            { "attn", in->attn }, { "segments", in->segments } }, items[6];
    Text          tokens = { 0 };
    int           count = 0, words = 0;
    bool          ok;

    (void)cancel;
    for (int i = 0; i < 6; i++)
        if (all[i].tensor.data)
            items[count++] = all[i];
    if (in->k_tokens) {
        tokens_json(in, &tokens);
        metadata[words++] = "tokens";
        metadata[words++] = text_str(&tokens);
    }
    if (in->causal >= 0) {
        metadata[words++] = "causal";
        metadata[words++] = in->causal ? "true" : "false";
    }
    if (in->scale > 0) {
        snprintf(scale, sizeof(scale), "%.17g", in->scale);
        metadata[words++] = "scale";
        metadata[words++] = scale;
    }
    if (in->window > 0) {
        snprintf(window, sizeof(window), "%lld", (long long)in->window);
        metadata[words++] = "window";
        metadata[words++] = window;
    }
    ok = s->safetensors ? input_write_safetensors(s->path, items, count, metadata, err)
                        : input_write_npz(s->path, items, count, err);
    text_free(&tokens);
    return ok;
}

/* [-0, +1 or 3, v] */
static int input_save(lua_State *L)
{
    const LuaInput *input = input_check(L, 1);
    const char     *path = check_text(L, 2);
    Saving         *s;

    luaL_argcheck(L, has_ending(path, ".safetensors") || has_ending(path, ".npz"), 2,
                  "expected a path ending in .npz or .safetensors");
    s = lua_newuserdatauv(L, sizeof(*s), 0);
    *s = (Saving){ .in = input->input, .path = path,
                   .safetensors = has_ending(path, ".safetensors") };
    return work_await(L, script_of(L)->session->thing, "writing an input", save_input,
                      work_push_true);
}

/* ---- tables ----------------------------------------------------------------- */

static const luaL_Reg input_meta[] = {
    { "__gc", input_close }, { "__close", input_close }, { "__tostring", input_describe },
    { "__len", input_n }, { NULL, NULL },
};

static const Member input_members[] = {
    { "n", input_n, NULL, "integer", "queries" },
    { "m", input_m, NULL, "integer", "keys" },
    { "d", input_d, NULL, "integer", "size of a query and a key" },
    { "e", input_e, NULL, "integer", "size of a value" },
    { "heads", input_heads, NULL, "integer", "query heads" },
    { "kv_heads", push_kv_heads, NULL, "integer",
      "heads of k and v; query head h looks at head h // (heads // kv_heads)" },
    { "layer", input_layer, NULL, "integer", "which layer of the file this is" },
    { "layers", input_layers, NULL, "integer", "how many layers the file holds" },
    { "held", input_held, NULL, "integer[]", "the numbers of these, ascending" },
    { "width", input_width, NULL, "integer", "pixels of a line of an image; 0: no image" },
    { "causal", input_causal, NULL, "boolean?", "as the file says; nil: it does not" },
    { "scale", input_scale, NULL, "number?", "of the scores, as the file says; nil: 1/sqrt(d)" },
    { "window", input_window, NULL, "integer?",
      "of its model's exact attention: |i - j| < window; nil: none" },
    { "name", input_name, NULL, "string", "path or generator" },
    { "kind", input_kind, NULL, "string", "npz, safetensors, text, image, synthetic, tensors" },
    { "model", input_model, NULL, "string?", "the model it came from" },
    { "note", input_note, NULL, "string?", "how q, k and v came to be" },
    { "sha256", input_sha256, NULL, "string", "fingerprint of the content" },
    { "q", input_q, NULL, "attnscope.Tensor?", "[h,n,d], read only" },
    { "k", input_k, NULL, "attnscope.Tensor?", "[kv_heads,m,d], read only" },
    { "v", input_v, NULL, "attnscope.Tensor?", "[kv_heads,m,e], read only" },
    { "x", input_x, NULL, "attnscope.Tensor?", "the layer's own input [n,dm], read only" },
    { "attn", input_attn, NULL, "attnscope.Tensor?", "finished weights [h,n,m], read only" },
    { "segments", input_segments, NULL, "attnscope.Tensor?",
      "document of each position [n]: $segments of patterns; read only" },
    { "tokens", input_tokens, NULL, "string[]?", "labels of the keys" },
    { "token", input_token, "j: integer", "string?", "Label of key j, counted from 0." },
    { "save", input_save, "path: string", "true?, string?, string?",
      "Writes .npz, or .safetensors with the tokens." },
    { "close", input_close, "", "", "Lets go of it now; runs made on it stay." },
    MEMBER_END,
};

KEEP_OBJECT(input_keep, LuaInput)

const Class class_input = {
    .name = "Input",
    .help = "One layer of one sequence: what mechanisms are run on.",
    .members = input_members,
    .meta = input_meta,
    .operators = "---@operator len: integer\n",
    .instead = "attn.input{ ... } makes another",
    .keep = input_keep,
};

static const Member tensors_members[] = {
    FIELD("q", "attnscope.Tensor", "[n,d] or [h,n,d]"),
    FIELD("k", "attnscope.Tensor", "[m,d] or [h,m,d]"),
    FIELD("v", "attnscope.Tensor", "[m,e] or [h,m,e]"),
    FIELD("x", "attnscope.Tensor", "the layer's own input [n,dm]"),
    FIELD("segments", "attnscope.Tensor", "[n] whole numbers: $segments of patterns"),
    FIELD("tokens", "string[]", "one label a key"),
    FIELD("causal", "boolean", "queries see no later key"),
    FIELD("scale", "number", "of the scores; default 1/sqrt(d)"),
    FIELD("window", "integer", "of exact attention: |i - j| < window; default none"),
    FIELD("name", "string", "for messages and figures"),
    MEMBER_END,
};
const Class class_tensors = { .name = "Tensors", .help = "What attn.input is made of.",
                              .members = tensors_members };

static const Member random_members[] = {
    FIELD("n", "integer", "length"),
    FIELD("d", "integer", "head size"),
    FIELD("heads", "integer", "heads"),
    FIELD("seed", "integer", "of the draw"),
    FIELD("structure", "string", "a generator's name (default normal)"),
    FIELD("m", "integer", "keys, where there are others than queries: of normal numbers"),
    FIELD("dv", "integer", "size of a value, where it is another: of normal numbers"),
    MEMBER_END,
};
const Class class_random_options = {
    .name = "RandomOptions",
    .help = "Sizes and structure; other keys are the generator's own arguments.",
    .members = random_members,
    .open = true,
};
