/* app/command/command.h -- what commands share: options, tables, plots, presets; private to
 * app/. */
#ifndef APP_COMMAND_COMMAND_H
#define APP_COMMAND_COMMAND_H

#include "app/call.h"
#include "app/figure/picture.h"
#include "app/study/study.h"

#define COMMAND_FUNCTION(name)                                                                 \
    bool command_##name(Session *s, const Call *call, Text *out, Error *err)
COMMAND_FUNCTION(list);
COMMAND_FUNCTION(info);
COMMAND_FUNCTION(run_mechanism);
COMMAND_FUNCTION(compare);
COMMAND_FUNCTION(reach);
COMMAND_FUNCTION(roofline);
COMMAND_FUNCTION(figure);
COMMAND_FUNCTION(preset);
COMMAND_FUNCTION(rerender);
COMMAND_FUNCTION(step);
COMMAND_FUNCTION(lesson);
COMMAND_FUNCTION(docs);
COMMAND_FUNCTION(doctor);
COMMAND_FUNCTION(trial);
COMMAND_FUNCTION(completions);
COMMAND_FUNCTION(sweep);
COMMAND_FUNCTION(fit);
COMMAND_FUNCTION(diff);
COMMAND_FUNCTION(merge);
COMMAND_FUNCTION(model);
COMMAND_FUNCTION(heads);
COMMAND_FUNCTION(cache);
#undef COMMAND_FUNCTION

/* What a model is, from its configuration; reads no weight. */
struct Model;
void model_describe(const struct Model *m, Text *out);

/* Number of an option; *out keeps its value where the option is absent. */
bool call_int(const Call *call, int id, int64_t lo, int64_t hi, int64_t *out, Error *err);
bool call_size(const Call *call, int id, int64_t *out, Error *err); /* "8G" */
bool call_share(const Call *call, int id, double *out, Error *err); /* "1%" */

/* The command writes figures, so several -o may hold the same picture. */
bool command_draws(const Command *command);
bool command_takes(const Command *command, const Option *option);
/* "attnscope figure 'bigbird(block=2)' ...": quoted as a shell reads it. */
void words_join(const char *const *words, int count, Text *out);
void word_quote(Text *out, const char *word);

/* Reads the options of figures from a call. */
bool call_picture_options(Session *s, const Call *call, int panels, PictureOptions *out,
                          Error *err);
/* --dpi; *out stays as it is where it is not given. */
bool call_dpi(const Call *call, double *out, Error *err);
bool call_png_options(const Call *call, PngOptions *out, Error *err);
bool call_text_options(const Call *call, TextOptions *out, Error *err);
/* Writes the figure to each file of the call, or as text. */
bool call_write_figure(const Call *call, const Figure *figure, Result *const *results, int count,
                       Text *out, Error *err);
/* Adds what the runs behind the figure warned of, unless the figure itself is the output. */
void call_add_warnings(const Call *call, Result *const *results, int count, Text *out);

/* A plain text table: cells are added row by row, then laid out at the end. */
typedef struct Table {
    int    cols;
    int    keys;  /* leading columns that identify a row; 0: one */
    int    room;  /* columns of the terminal; 0: no limit, for files and pipes */
    char **cells; /* owned, row-major; the first row is the head */
    int    count, capacity;
    bool   failed;
} Table;
void table_cell(Table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_number(Table *t, Number number, int digits); /* "n/a": not measured */
void table_times(Table *t, double ratio); /* "3.12x", "0.0041x", "<0.0001x" */
typedef enum TableStyle { TABLE_TEXT, TABLE_CSV, TABLE_MARKDOWN } TableStyle;
TableStyle call_style(const Call *call); /* by --csv and --md */
int        call_room(const Call *call);  /* for Table.room */
/* Text wider than the room is split into parts, each with the key columns. */
void table_write(const Table *t, TableStyle style, Text *out);
void table_free(Table *t);

/* Breaks the line at blanks before column `room` (0: nowhere) and indents what follows. */
void text_add_folded(Text *out, const char *line, int room, int indent);

/* Every system the surveys name, with their claims. */
void systems_list(TableStyle style, int room, Text *out);

/* "[,pad]": number in milliseconds, or "n/a". */
const char *format_ms(Number ms, char *text, size_t size);
const char *format_size(Number bytes, char *text, size_t size);
const char *format_share(Number share, char *text, size_t size);
/* The n from which something is faster, tried up to `last`; from 0: never faster.  whole: the
 * search was not cut short. */
const char *format_crossover(int64_t from, int64_t last, bool whole, char *text, size_t size);

/* Plots of measured numbers, as text or as a file. */

typedef struct PlotChoice {
    PlotKind kinds[PLOT_KINDS];
    int      count;
    bool     ceilings; /* one of them is a roofline */
} PlotChoice;

/* "time,memory": each at most once. */
bool plot_choice_parse(const char *text, PlotChoice *out, Error *err);
/* --plot takes no other output format. */
bool plot_refuse_formats(const Call *call, Error *err);
/* Adds to the request what the plots measure. */
bool plot_choice_ask(const PlotChoice *choice, Request *request, Error *err);
/* Draws a panel for each plot, with all results in it, into the call's file or as text. */
bool plot_choice_show(Session *s, const Call *call, const PlotChoice *choice,
                      Result *const *results, int count, Text *out, Error *err);

/* Draws time over n on N(0,1) inputs with this input's heads and head size, for the mechanisms of
 * the results, beside the slopes they claim. */
#define SCALING_WORD "scaling"
bool scaling_show(Session *s, const Call *call, Result *const *results, int count, Text *out,
                  Error *err);

/* Below the table of compare: what defaults became, and which tensors were drawn. */
void compare_values(Result *const *results, int count, int room, Text *out);
/* Quality of each head alone, of the results that have it. */
void compare_heads(Result *const *results, int count, TableStyle style, int room, Text *out);
/* What one token more costs each of them (Record.step); below a table for people, why a number is
 * missing. */
void compare_decode(Result *const *results, int count, TableStyle style, int room, Text *out);
/* Below a table: the sizes of the input. */
void compare_input(const Input *input, int room, Text *out);

/* ---- compare --vary ------------------------------------------------------ */

/* Checks the values of --plot and --keep beside --vary. */
bool vary_check_options(const Call *call, Error *err);
/* True: the call asks for a file or an answer instead of the table. */
bool vary_draws(const Call *call);
bool vary_draw(Session *s, const Call *call, Text *out, Error *err);
/* Draws the results of the table as plots: exact attention first, then the words' rows. */
bool vary_show(Session *s, const Call *call, Result *const *results, int count, Text *out,
               Error *err);

/* Published pictures as stored commands.
 *
 * A preset is a figure command with a name (presets.def).  It can be printed,
 * changed by further options, and what it draws remembers the whole command,
 * not the name.
 */

typedef struct Preset {
    const char *id;     /* "fournier-fig11" */
    const char *title;  /* of the figure */
    const char *source; /* publication and number of its figure */
    const char *words;  /* of the figure command: panels and options; of model: swaps and options */
    const char *help;   /* one line: what to see */
    bool        model;  /* a command `model`, of a model that the user names */
} Preset;

const Preset *preset_at(size_t index);     /* NULL past the end */
const Preset *preset_find(const char *id); /* NULL: unknown */
/* For an unknown id the error names the nearest one. */
bool preset_parse(const char *id, const Preset **out, Error *err);
/* All presets, in the format of the call. */
void preset_list(const Call *call, Text *out);
/* "figure ... --title '...' --caption '...'" */
void preset_command(const Preset *preset, Text *out);

/* A call made of a preset; its strings live here. */
typedef struct PresetCall {
    Call call;
    Text line, storage;
} PresetCall;

/* `changes` (NULL: none) is the call that names the preset: its other options
 * replace the preset's.  Free with preset_call_free also on failure. */
bool preset_call(const Preset *preset, const Call *changes, PresetCall *out, Error *err);
/* The same where the preset may be one of a model, which --input of `changes` names. */
bool preset_model_call(const Preset *preset, const Call *changes, PresetCall *out, Error *err);
/* The same for a whole line "figure ...", with or without a preset in it. */
bool preset_expand(const char *line, PresetCall *out, Error *err);
void preset_call_free(PresetCall *made);

/* ---- of info alone --------------------------------------------------------------- */

/* The tensors of a file and what it is as an input; of a figure, its card. */
bool info_file(const char *path, Text *out, Error *err);
/* A generator's input holds no arrays to list, so its result is described. */
bool info_generator(const char *spec, Text *out, Error *err);

#endif
