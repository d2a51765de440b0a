/* catalogue.c -- mechanisms, positions, presets and generators as tables. */
#include "script/host/binding.h"

#include <string.h>
#include <strings.h>

#include "app/command/command.h"
#include "attn/run/position.h"

/* ---- parameters ------------------------------------------------------------- */

/* Bounds of numbers. */
static void set_bounds(lua_State *L, const Param *p)
{
    bool number = p->type == PARAM_TYPE_INT || p->type == PARAM_TYPE_FLOAT ||
                  p->type == PARAM_TYPE_LIST || p->type == PARAM_TYPE_PER_HEAD;

    if (!number)
        return;
    field_number(L, "min", p->lo);
    field_number(L, "max", p->hi);
}

static void set_choices(lua_State *L, const char *const *choices)
{
    if (!choices)
        return;
    lua_newtable(L);
    for (int i = 0; choices[i]; i++) {
        lua_pushstring(L, choices[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "values");
}

static void push_param(lua_State *L, const Param *p)
{
    Text *text = text_box(L);

    params_print(p, NULL, text);
    lua_newtable(L);
    field_string(L, "name", p->name);
    field_string(L, "type", param_type_name(p->type));
    text_box_push(L, text);
    lua_setfield(L, -2, "default");
    set_bounds(L, p);
    set_choices(L, p->choices);
    field_string(L, "shape", p->shape);
    field_string(L, "drawn", p->drawn);
    field_string(L, "help", p->help);
    lua_remove(L, -2);
}

static void set_params(lua_State *L, const Param *table)
{
    int count = 0;

    lua_newtable(L);
    for (const Param *p = table; p && p->name; p++) {
        push_param(L, p);
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "params");
}

/* ---- mechanisms ------------------------------------------------------------- */

static void set_classes(lua_State *L, const Mechanism *m)
{
    int  count = 0;
    char text[64];

    field_string(L, "class", mechanism_classes(m, text, sizeof(text)));
    lua_newtable(L);
    for (unsigned bit = 1; bit && bit <= m->classes; bit <<= 1)
        if (m->classes & bit) {
            lua_pushstring(L, class_name(bit));
            lua_rawseti(L, -2, ++count);
        }
    lua_setfield(L, -2, "classes");
}

static void set_claims(lua_State *L, const Mechanism *m)
{
    field_string(L, "claim_time", m->claim_time);
    field_string(L, "claim_memory", m->claim_memory);
    field_string(L, "claim_decode", m->claim_decode);
    if (m->claim_exponent > 0)
        field_number(L, "claim_exponent", m->claim_exponent);
}

static void set_paper(lua_State *L, const Mechanism *m)
{
    field_string(L, "authors", m->authors);
    field_integer(L, "year", m->year);
    field_string(L, "arxiv", m->arxiv);
}

/* Which parts of an input the mechanism reads. */
static void set_inputs(lua_State *L, const Mechanism *m)
{
    static const char *const qkv[] = { "q", "k", "v" };
    int                      count = 0;

    lua_newtable(L);
    for (int i = 0; i < 3 && !m->needs_x && !m->needs_attn && !m->needs_none; i++) {
        lua_pushstring(L, qkv[i]);
        lua_rawseti(L, -2, ++count);
    }
    if (m->needs_x || m->needs_attn) {
        lua_pushstring(L, m->needs_x ? "x" : "attn");
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "inputs");
}

static void set_views(lua_State *L, const Mechanism *m)
{
    int count = 0;

    lua_newtable(L);
    for (const ViewPromise *v = m->views; v && v->name; v++) {
        lua_newtable(L);
        field_string(L, "name", v->name);
        field_string(L, "kind", view_kind_name(v->kind));
        field_string(L, "help", v->help);
        field_bool(L, "maybe", v->maybe);
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "views");
}

static void set_notes(lua_State *L, const Mechanism *m)
{
    int count = 0;

    lua_newtable(L);
    for (const StageNote *note = m->notes; note && note->stage; note++) {
        lua_newtable(L);
        field_string(L, "stage", note->stage);
        field_string(L, "text", note->note);
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "notes");
}

/* [-0, +1, v] */
int attn_info(lua_State *L)
{
    const Mechanism *m;
    Error            err = ERROR_INIT;

    check_ok(L, mechanism_parse(check_text(L, 1), &m, &err), &err);
    lua_newtable(L);
    field_string(L, "id", m->id);
    field_string(L, "title", m->title);
    set_paper(L, m);
    set_inputs(L, m);
    field_string(L, "source", m->source);
    field_string(L, "formula", m->formula);
    field_string(L, "teaches", m->teaches);
    field_string(L, "example", m->example);
    field_string(L, "sketch", m->sketch);
    field_string(L, "no_causal", m->no_causal);
    field_string(L, "fit", m->fit);
    field_bool(L, "causal", m->causal);
    field_bool(L, "cross", m->cross);
    field_bool(L, "at_end", m->at_end != AT_END_NO);
    field_bool(L, "needs_x", m->needs_x);
    field_bool(L, "needs_attn", m->needs_attn);
    field_bool(L, "needs_none", m->needs_none);
    field_bool(L, "own_rows", m->own_rows);
    field_bool(L, "position", m->positions != 0);
    set_classes(L, m);
    set_claims(L, m);
    set_params(L, m->params);
    set_views(L, m);
    set_notes(L, m);
    return 1;
}

typedef struct Filter {
    const char *class, *text;
    int         causal, cross, needs_x, needs_attn, fit; /* -1: any */
} Filter;

static unsigned check_class(lua_State *L, const char *name)
{
    for (unsigned bit = 1; bit <= CLASS_LAB; bit <<= 1)
        if (!strcasecmp(class_name(bit), name))
            return bit;
    return (unsigned)luaL_error(L, "class: unknown '%s'; expected one of the surveys' like FP, LP, "
                                "LR, KR", name);
}

static bool has_text(const char *where, const char *text)
{
    return where && strcasestr(where, text);
}

static bool passes(const Mechanism *m, const Filter *f, unsigned bits)
{
    if (bits && !(m->classes & bits))
        return false;
    if ((f->causal >= 0 && m->causal != f->causal) || (f->cross >= 0 && m->cross != f->cross) ||
        (f->needs_x >= 0 && m->needs_x != f->needs_x) ||
        (f->needs_attn >= 0 && m->needs_attn != f->needs_attn) ||
        (f->fit >= 0 && (m->fit != NULL) != f->fit))
        return false;
    return !f->text || has_text(m->id, f->text) || has_text(m->title, f->text) ||
           has_text(m->authors, f->text) || has_text(m->teaches, f->text);
}

/* [-0, +1, v] */
int attn_mechanisms(lua_State *L)
{
    const Mechanism *m;
    Filter           f;
    unsigned         bits;
    int              count = 0;

    options_check(L, 1, &class_filter);
    f = (Filter){ .class = option_string(L, 1, "class", NULL),
                  .text = option_string(L, 1, "text", NULL),
                  .causal = option_tristate(L, 1, "causal"),
                  .cross = option_tristate(L, 1, "cross"),
                  .needs_x = option_tristate(L, 1, "needs_x"),
                  .needs_attn = option_tristate(L, 1, "needs_attn"),
                  .fit = option_tristate(L, 1, "fit") };
    bits = f.class ? check_class(L, f.class) : 0;
    lua_newtable(L);
    for (size_t i = 0; (m = mechanism_at(i)); i++)
        if (passes(m, &f, bits)) {
            lua_pushstring(L, m->id);
            lua_rawseti(L, -2, ++count);
        }
    return 1;
}

static const Member filter_members[] = {
    FIELD("class", "string", "a class of the surveys: FP, M, LP, LR, KR, RC, DS, SP, ..."),
    FIELD("text", "string", "in id, title, authors or what it teaches"),
    FIELD("causal", "boolean", "has a causal form"),
    FIELD("cross", "boolean", "takes other keys than queries"),
    FIELD("needs_x", "boolean", "reads the layer's input x"),
    FIELD("fit", "boolean", "can fit its own tensors on the input"),
    FIELD("needs_attn", "boolean", "shows finished weights of the input"),
    MEMBER_END,
};
const Class class_filter = { .name = "Filter", .help = "Which mechanisms.",
                             .members = filter_members };

/* ---- positions, presets, generators ----------------------------------------------- */

/* [-0, +1, m] */
int attn_positions(lua_State *L)
{
    const Position *p;

    lua_newtable(L);
    for (size_t i = 0; (p = position_at(i)); i++) {
        lua_newtable(L);
        field_string(L, "id", p->id);
        field_string(L, "title", p->title);
        field_string(L, "source", p->source);
        field_string(L, "help", p->help);
        field_string(L, "note", p->note);
        field_string(L, "views", p->views);
        field_string(L, "class", p->class_ == POSITION_INPUT ? "input" : "bias");
        set_params(L, p->params);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* [-0, +1, m] */
int attn_presets(lua_State *L)
{
    const Preset *p;

    lua_newtable(L);
    for (size_t i = 0; (p = preset_at(i)); i++) {
        Text *command = text_box(L);

        lua_newtable(L);
        field_string(L, "id", p->id);
        field_string(L, "title", p->title);
        field_string(L, "source", p->source);
        field_string(L, "help", p->help);
        field_bool(L, "model", p->model);
        preset_command(p, command);
        text_box_push(L, command);
        lua_setfield(L, -2, "command");
        lua_rawseti(L, -3, (lua_Integer)i + 1);
        lua_pop(L, 1);
    }
    return 1;
}

/* [-0, +1, m] */
int attn_generators(lua_State *L)
{
    lua_Integer count = 0;

    lua_newtable(L);
    for (const InputGenerator *g = input_generators(); g->name; g++) {
        lua_newtable(L);
        field_string(L, "name", g->name);
        field_string(L, "arguments", g->arguments);
        field_string(L, "help", g->help);
        lua_rawseti(L, -2, ++count);
    }
    return 1;
}
