/* script/host/binding.h -- what the Lua bindings share.
 *
 * Every function and field a script can reach is one Member row of a Class;
 * metatables, "did you mean" and the language server's stubs are made from
 * these rows.
 *
 * Misuse (a wrong type, an unknown name, a value out of range) raises; a failure
 * outside the program (files, formats, memory, an interrupt) gives nil, message, code.
 * Each binding's comment gives its stack effect [-popped, +pushed, raises]: m
 * out of memory only, v on misuse, e through a callback.
 *
 * A raise jumps over C frames, so nothing that must be freed may be held
 * across one: it belongs to a userdata on the stack first.  Such a userdata is
 * made closed, gets its metatable, and is filled then.
 */
#ifndef SCRIPT_HOST_BINDING_H
#define SCRIPT_HOST_BINDING_H

#include <lauxlib.h>
#include <lua.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "app/call.h"
#include "app/result/views.h"
#include "app/session/session.h"
#include "attn/run/mechanism.h"
#include "core/error.h"
#include "core/text.h"
#include "profile/device_profile.h"
#include "draw/grid/grid.h"

/* ---- owners (class.c) -------------------------------------------------------- */

/* A reference-counted thing that userdata borrow from; it keeps `below` alive, so objects may be
 * closed in any order. */
typedef struct Keep {
    int          references;
    void       (*drop)(void *thing);
    void        *thing;
    struct Keep *below;
} Keep;

/* Takes `thing` (dropped when there is no memory: NULL), retains `below`. */
Keep *keep_new(void *thing, void (*drop)(void *), Keep *below);
Keep *keep_retain(Keep *keep);
void  keep_release(Keep *keep); /* NULL is fine */

/* ---- registration tables (class.c) -------------------------------------- */

typedef struct Member {
    const char   *name;
    lua_CFunction call; /* NULL: args given: written in the prelude; else a key of a table */
    const char   *args; /* "i: integer, v?: number"; NULL: a field, which `call` reads */
    const char   *type; /* of the field, or of the results; "" none */
    const char   *help;
} Member;
#define MEMBER_END { .name = NULL }
/* Reads a field of the object at 1: pushes one value.  [-0, +1, v] */
#define FIELD_GETTER(name, push, value)                                                           \
    static int name(lua_State *L)                                                                 \
    {                                                                                             \
        push(L, value);                                                                           \
        return 1;                                                                                 \
    }
/* A C function that is `function` with one more argument. */
#define FUNCTION_WITH(name, function, argument)                                                   \
    int name(lua_State *L)                                                                        \
    {                                                                                             \
        return function(L, argument);                                                             \
    }
/* A key of a table that a script passes or receives. */
#define FIELD(name, type, help) { name, NULL, NULL, type, help }

typedef struct Class {
    const char     *name;    /* "Tensor": its metatable is called attnscope.Tensor */
    const char     *help;
    const Member   *members; /* MEMBER_END-terminated */
    const luaL_Reg *meta;    /* metamethods; NULL: a plain table, described only */
    const char     *operators; /* further lines of the stub, or NULL */
    bool            open;    /* a table that takes other keys as well */
    const char     *instead; /* what is called instead of assigning a field, NAME is the field;
                                NULL: it is a table, whose keys may be assigned */
    Keep         *(*keep)(const void *object); /* what an object shows, to be kept while a worker
                                                  reads it; NULL: nothing */
} Class;

/* For objects with a `keep`: Class.keep; and __gc, __close and close(), which leave it NULL. */
#define KEEP_OBJECT(name, Type)                                                                   \
    static Keep *name(const void *object)                                                         \
    {                                                                                             \
        return ((const Type *)object)->keep;                                                      \
    }
#define CLOSE_OBJECT(name, Type, class)                                                           \
    static int name(lua_State *L)                                                                 \
    {                                                                                             \
        Type *object = class_check(L, 1, &class);                                                 \
        Keep *keep = object->keep;                                                                \
                                                                                                  \
        *object = (Type){ 0 };                                                                    \
        keep_release(keep);                                                                       \
        return 0;                                                                                 \
    }

/* The metatable into the registry, the methods into the table at the top by the class's name.
 * [-0, +0, m] */
void class_open(lua_State *L, const Class *class);
/* Functions into the table at the top, fields into the one below.  [-0, +0, m] */
void class_set_members(lua_State *L, const Class *class);
/* A closed (zeroed) object of the class with `values` user values.  [-0, +1, m] */
void *class_push(lua_State *L, const Class *class, size_t size, int values);
/* The object at `arg`; raises when it is something else.  [-0, +0, v] */
void *class_check(lua_State *L, int arg, const Class *class);
void *class_test(lua_State *L, int arg, const Class *class); /* NULL: something else */
/* Of the object at `arg`; NULL: it is none of ours.  [-0, +0, -] */
const Class *class_of(lua_State *L, int arg);
/* The member with the nearest name.  [-0, +0, -] */
const char *class_nearest(const Class *class, const char *name);
bool        class_has(const Class *class, const char *name);

/* ---- our own Lua (class.c) ----------------------------------------------- */

/* In the registry: the prelude's function that calls the handlers of attn.on, and their lists. */
#define EVENT_TELL     "attnscope.tell"
#define EVENT_HANDLERS "attnscope.handlers"

/* The file, or code called so that no file holds, is what defines mechanisms from here on.
 * [-0, +0, v] */
void script_take_file(lua_State *L, const char *path);
void script_take_code(lua_State *L, const char *name);

#define OWN_CHUNK "[attnscope]" /* what its chunks are called */

/* Errors of the functions of `class` that are written in Lua name the line of their caller.
 * table: absolute index of the table that holds them.  [-0, +0, m] */
void caller_names(lua_State *L, int table, const Class *class);

/* ---- option tables (class.c) --------------------------------------------- */

/* Puts an empty table for a missing argument; raises on unknown keys. [-0, +0, v] */
void options_check(lua_State *L, int arg, const Class *class);
/* Fields of the table at absolute index `t`.  [-0, +0, v] */
int64_t     option_integer(lua_State *L, int t, const char *key, int64_t fallback, int64_t lo,
                           int64_t hi);
double      option_number(lua_State *L, int t, const char *key, double fallback);
bool        option_bool(lua_State *L, int t, const char *key, bool fallback);
int         option_tristate(lua_State *L, int t, const char *key); /* -1: absent */
const char *option_string(lua_State *L, int t, const char *key, const char *fallback);
/* A string without a zero byte, which a path or a command's word cannot hold.  [-0, +0, v] */
const char *check_text(lua_State *L, int arg);
/* The same, or a number, as its text: a word of a command. */
const char *check_word(lua_State *L, int arg);
/* An index in 0..count-1.  [-0, +0, v] */
int64_t check_index(lua_State *L, int arg, int64_t count, const char *what);
void    push_strings(lua_State *L, char *const *texts, int64_t count); /* [-0, +1, m] */

/* ---- fields of the table at the top (class.c) -------------------------------- */

void field_string(lua_State *L, const char *key, const char *value); /* [-0, +0, m] */
void field_bool(lua_State *L, const char *key, bool value);
void field_integer(lua_State *L, const char *key, int64_t value);
void field_number(lua_State *L, const char *key, double value);
void field_known(lua_State *L, const char *key, Number value); /* absent: not measured */

/* ---- failures and owners (class.c) --------------------------------------- */

/* nil, message, code; raises when the request itself was not valid. [-0, +3, v] */
int failure(lua_State *L, const Error *err);
/* Raises the message unless ok.  [-0, +0, v] */
void check_ok(lua_State *L, bool ok, const Error *err);

/* A zeroed userdata of this type, with `values` user values; the collector calls `gc`, and a
 * to-be-closed variable `close` (NULL: nothing).  [-0, +1, m] */
void *box_push(lua_State *L, size_t size, int values, const char *type, lua_CFunction gc,
               lua_CFunction close);
/* A Text freed by the collector.  [-0, +1, m] */
Text *text_box(lua_State *L);
/* Its content as a string.  [-0, +1, m] */
void text_box_push(lua_State *L, const Text *text);

void drop_arena(void *arena); /* for a Keep */

/* Reports memory outside Lua to the collector.  [-0, +0, e] */
void account(lua_State *L, int64_t bytes);

/* ---- the running script (state.c) ------------------------------------------------ */

typedef struct Script {
    Keep       *session;  /* for attn.command only */
    Call        options;  /* before FILE */
    uint64_t    seed;     /* of these */
    int         threads;
    const char *line;     /* the command line, for figures */
    int64_t     bytes, peak, limit; /* of Lua's own memory */
    int64_t     limit_most; /* that the script may set */
    lua_State  *state, *caller; /* the latter: of callbacks, NULL before the first */
    pthread_mutex_t lock;  /* whoever runs Lua holds it; see state.c */
    const MechanismScript *source; /* what runs now, or ran last; NULL: nothing yet */
    bool        everywhere;     /* that is init.lua, which every process runs */
    bool        before_command; /* loaded for its definitions: it ends where it would sweep */
    struct Defined *defined; /* mechanisms of the script; define.c */
    Arena      *names;     /* of stages, which outlive their runs */
    const struct Control *control; /* the explorer; NULL: there is none */
    struct Console *console;   /* its scripts; NULL: none */
    struct Run *run;       /* the one that a callback computes for; NULL: none */
    struct Run *computing; /* the same, also while the callback has handed over */
    atomic_int  waiting;   /* threads that want the lock */
    bool        closing;   /* callbacks are to end */
    const Class *const *classes; /* NULL-terminated; the first is the module */
    FlopClass   charge;    /* of what tensors compute for it */
    bool        uncharged; /* computed for a view, not counted */
    bool        gives_way; /* the coroutine that runs may end the explorer's turn */
    bool        turn_over; /* the yield ends the explorer's turn, so every resume passes it on */
} Script;

/* The state belongs to one thread at a time. */
void script_enter(Script *script);
/* For a callback of a run, while the owner waits; false: the run was cancelled meanwhile. */
bool script_enter_run(Script *script, struct Run *r);
void script_leave(Script *script);
/* In a callback: lets a waiting thread take the lock for a moment. */
void script_hand_over(Script *script);
/* Before the state is closed: waits until callbacks that handed over have ended. */
void script_end_callbacks(Script *script);
/* Releases the state in code that waits for a worker and does not know the script; NULL: this
 * thread holds none; else script_resume takes it with *held. */
Script *script_step_aside(int *held);
/* Around a wait of the owner, so that runs can use the state; resume takes what release gives. */
int  script_release(Script *script);
void script_resume(Script *script, int depth);
/* Frees the mechanisms that the script defined, when no run of theirs is left. */
void script_forget(Script *script);
/* Multiply-adds count 2; charged to the run that is computed, if one is. */
void script_charge(lua_State *L, double flops);

Script     *script_of(lua_State *L);
/* From here on it is the script of this state.  [-0, +0, m] */
void        script_set_state(lua_State *L, Script *script);
lua_State  *script_state_new(Script *script);
bool        script_interrupted(void);
const atomic_bool *script_interrupt_flag(void);
/* SIGINT stops the script of this state; NULL: as it was. */
void        script_catch_interrupt(lua_State *L);
/* Where `require` looks: the script's folder, the user's, the shipped one.
 * [-0, +0, m] */
void        script_set_path(lua_State *L, const char *file);
/* The script meant by this name; "" when there is none.  [-0, +1, m] */
void        script_push_file(lua_State *L, const char *name);

/* ---- objects ---------------------------------------------------------------- */

typedef struct LuaTensor {
    Tensor t;
    Keep  *keep;   /* the owner of its bytes; NULL: closed */
    bool   frozen; /* belongs to a run or an input */
} LuaTensor;

Tensor *tensor_check(lua_State *L, int arg);       /* [-0, +0, v] */
/* A zeroed tensor of its own.  [-0, +1, v] */
Tensor *tensor_push(lua_State *L, DType dtype, int rank, const int64_t *shape);
/* One that looks into the bytes of `keep`.  [-0, +1, m] */
void tensor_push_shared(lua_State *L, Tensor t, Keep *keep, bool frozen);
/* A contiguous copy.  [-0, +1, v] */
Tensor *tensor_push_copy(lua_State *L, const Tensor *t, DType dtype);
/* A closed one, to be filled by tensor_adopt, which takes over the arena that
 * holds t's bytes (and frees it when there is no memory).  [-0, +1, m] */
LuaTensor *tensor_push_closed(lua_State *L);
/* [-0, +0, v] */
void       tensor_adopt(lua_State *L, LuaTensor *tensor, Tensor t, Arena *arena);

typedef struct LuaInput {
    Keep        *keep;    /* the session made for it; NULL: closed */
    Session     *session;
    const Input *input;
} LuaInput;

LuaInput *input_check(lua_State *L, int arg); /* [-0, +0, v] */
/* An input without content; its session is made.  [-0, +1, v] */
LuaInput *input_push_empty(lua_State *L);
/* After work_await_end: the input below the context, which the work has filled. */
int input_push_worked(lua_State *L, int status, lua_KContext at);
/* The input that the table of run options at t asks for is pushed, loaded by a worker if need be,
 * and `then` goes on; or a failure's values.  To be returned from a C function.  [-0, +?, v] */
int input_await(lua_State *L, int t, lua_KFunction then);

/* A Request freed by the collector.  [-0, +1, m] */
Request *request_push(lua_State *L);
/* What the layers of a stack share; before they are parsed, so that a layer's own
 * parentheses have the last word.  [-0, +0, v] */
void request_set_options(lua_State *L, int t, Request *request);
/* Where it runs, once the mechanism is known; as --device and --precision of the script unless
 * the table says so.  False: there is no such GPU. */
bool request_set_place(lua_State *L, int t, Session *s, Request *request, Error *err);

typedef struct LuaResult {
    Keep    *keep;   /* the result, above its input's session; NULL: closed */
    Result  *result;
    Session *session;
} LuaResult;
enum { RESULT_INPUT = 1, RESULT_VIEWS, RESULT_RECORD, RESULT_VALUES = RESULT_RECORD };

int        result_save_steps(lua_State *L); /* [-0, +1 or 3, v] */
LuaResult *result_check(lua_State *L, int arg); /* [-0, +0, v] */
/* The table of a record.  [-0, +1, v] */
void record_push(lua_State *L, const Record *record);
/* A mechanism by its text at 1, options in a table of its own at 2.  [-0, +0, v] */
void run_check_arguments(lua_State *L);
/* The request of these for the input at the top: 1 with both on the stack, below them a LuaInput of
 * our own that keeps the session, whoever closes the input; or the count of a failure's values.
 * [-0, +2 or 3, v] */
int request_prepare(lua_State *L, Request **request);
/* nnz and density into the table at the top, where the run has a pattern.  [-0, +0, m] */
void result_set_cells(lua_State *L, const Run *run);
/* A closed result, and what becomes of it (at the top) with the input at `at`, which may be closed,
 * and `below`, the keep of the input's session; takes over `result`, NULL: err.
 * [-0, +0, 3 or 4, v] */
LuaResult *result_push_closed(lua_State *L);
int result_fill(lua_State *L, LuaResult *out, int at, Keep *below, Result *result,
                const Error *err);
/* Region {q0,q1,k0,k1} or {q={..},k={..}} at `arg` (nil: all) of rows x cols. */
Region check_region(lua_State *L, int arg, int64_t rows, int64_t cols);

/* Metatable of an empty JSON object: attn.object. */
#define JSON_OBJECT_MARK "attnscope.object"

/* Parsed JSON text; an object's nulls are absent, a list's are attn.null.
 * [-0, +1 or 3, v] */
int json_push_text(lua_State *L, const char *text, size_t length);

/* ---- the module (module.c) -------------------------------------------------- */

/* The module with its classes, whose list the script of this state gets.  [-0, +1, m] */
void module_open(lua_State *L);

/* ---- classes, by file ------------------------------------------------------- */

extern const Class class_job, class_row, class_context, class_param_options, class_view_options,
    class_pattern_options, class_mechanism_options;
extern const Class class_ui, class_pane, class_model, class_model_options;
extern const Class class_model_swap, class_generate_options;
extern const Class class_card, class_param_card, class_view_card, class_record, class_cell,
    class_entry, class_stage, class_comparison, class_check_options, class_report, class_growth,
    class_roofline, class_cache, class_cache_options;
extern const Class class_attn, class_tensor, class_input, class_result, class_figure, class_pattern;
extern const Class class_input_options, class_random_options, class_tensors, class_run_options,
    class_filter, class_panel, class_curve, class_scaling, class_figure_options, class_save_options,
    class_text_options, class_compare_options, class_reach_options, class_missed_options,
    class_vary_options, class_fit_options, class_sweep_options, class_sweep, class_roofline_options;

/* ---- functions of the module, by file --------------------------------------- */

int attn_mechanisms(lua_State *L);
int attn_info(lua_State *L);
int attn_positions(lua_State *L);
int attn_presets(lua_State *L);
int attn_generators(lua_State *L);
int attn_load(lua_State *L);
int attn_input(lua_State *L);
int attn_model(lua_State *L);
int attn_tensor(lua_State *L);
int attn_vector(lua_State *L);
int attn_read(lua_State *L);
int attn_write_npz(lua_State *L);
int attn_pattern(lua_State *L);
int attn_mechanism(lua_State *L);
int attn_run(lua_State *L);
int attn_start(lua_State *L);
int attn_profile(lua_State *L);
int attn_vary(lua_State *L);
int attn_budget(lua_State *L);
int attn_figure(lua_State *L);
int attn_fit(lua_State *L);
int attn_cache(lua_State *L);
int attn_from_json(lua_State *L);
int attn_command(lua_State *L);
int attn_reload(lua_State *L);
int attn_environment(lua_State *L);

/* Views of a result. */
int result_view_names(lua_State *L);
int result_view_of(lua_State *L);
int result_views(lua_State *L);
/* Methods of a result that look at single cells. */
int result_cell(lua_State *L);
/* The cells that queries of the run may see; NULL: it has no pattern. */
const Pattern *result_cells(const Run *run);
/* What the components of the cells mean, [8]; NULL: as usual. */
const char *const *result_component_names(const Run *run);
/* Names of component bits as a list.  [-0, +1, m] */
void push_components(lua_State *L, uint8_t bits);
/* The bit of the component that is named at arg. */
uint8_t check_component(lua_State *L, int arg);
/* Sets names[8] from the table at the top, { window = "near" }, copied to the arena. */
void read_component_names(lua_State *L, Arena *arena, const char **names);
int result_row(lua_State *L);
int result_pattern(lua_State *L);
/* Where 1 is a Pattern: 1 becomes a mechanism and 2 its options.  [-0, +0, v] */
void pattern_argument(lua_State *L);
/* A view of the Pattern at `arg`, which the keep keeps.  [-0, +0, v] */
Keep *pattern_view(lua_State *L, int arg, View *view);
int result_reach_method(lua_State *L);
int result_reach_path(lua_State *L);
int result_missed_method(lua_State *L);
/* Depth and residual connections from the table at absolute index t.  [-0, +0, v] */
ReachOptions reach_options(lua_State *L, int t);

#endif
