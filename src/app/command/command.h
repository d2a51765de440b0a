/* app/command/command.h -- shared by the commands; private to app/. */
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
#undef COMMAND_FUNCTION

/* The number of an option; *out stays as it is when the option is absent. */
bool call_int(const Call *call, int id, int64_t lo, int64_t hi, int64_t *out, Error *err);
bool call_size(const Call *call, int id, int64_t *out, Error *err); /* "8G" */
bool call_share(const Call *call, int id, double *out, Error *err); /* "1%" */

/* Its files are figures, of which several may hold one drawing. */
bool command_draws(const Command *command);
bool command_takes(const Command *command, const Option *option);
/* All presets, in the format the call asks for. */
void presets_list(const Call *call, Text *out);
/* "attnscope figure 'bigbird(block=2)' ...": quoted as a shell reads it. */
void words_join(const char *const *words, int count, Text *out);
void word_quote(Text *out, const char *word);

/* The options of figures, read from a call. */
bool call_picture_options(Session *s, const Call *call, int panels, PictureOptions *out,
                          Error *err);
bool call_png_options(const Call *call, PngOptions *out, Error *err);
bool call_text_options(const Call *call, TextOptions *out, Error *err);
/* The figure in each of the call's files. */
bool call_save(const Call *call, const Figure *figure, Result *const *results,
               int count, const PngOptions *options, Error *err);

/* Writes output.npy, the views, figures.json and flops.json of a run. */
bool dump_folder(const char *folder, Error *err); /* makes it */
bool dump_result(const Result *result, const char *folder, int64_t limit, Text *messages,
                 Error *err);

/* Why query Q gives key K its weight, of "Q,K" or "Q,K,HEAD". */
bool cell_write(Result *result, const char *place, bool as_json, Text *out, Error *err);

/* A plain text table: cells are added row by row, then laid out at once. */
typedef struct Table {
    int    cols;
    int    keys;  /* leading columns that tell rows apart; 0: one */
    int    room;  /* columns of the terminal it is for; 0: any, for files and pipes */
    char **cells; /* owned, row-major; the first row is the head */
    int    count, capacity;
    bool   failed;
} Table;
void table_cell(Table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
typedef enum TableStyle { TABLE_TEXT, TABLE_CSV, TABLE_MARKDOWN } TableStyle;
TableStyle call_style(const Call *call); /* by --csv and --md */
int        call_room(const Call *call);  /* for Table.room */
/* As text beyond its room it comes in parts, each with the keys. */
void table_write(const Table *t, TableStyle style, Text *out);
void table_free(Table *t);

/* A line that breaks at blanks where `room` ends (0: nowhere); what follows is indented. */
void text_add_folded(Text *out, const char *line, int room, int indent);

/* Every system the surveys name, with their claims. */
void systems_list(TableStyle style, int room, Text *out);

/* "[,pad]": number in milliseconds, or "n/a". */
const char *format_ms(Number ms, char *text, size_t size);
const char *format_size(Number bytes, char *text, size_t size);
const char *format_share(Number share, char *text, size_t size);
/* From which n something is faster, of those tried up to `last`; from 0: from none of them.
 * whole: the search was not cut short. */
const char *format_crossover(int64_t from, int64_t last, bool whole, char *text, size_t size);

/* Plots of what a command measured, as text or as a file. */

typedef struct PlotChoice {
    PlotKind kinds[PLOT_KINDS];
    int      count;
    bool     ceilings; /* one of them is a roofline */
} PlotChoice;

/* "time,memory": each once. */
bool plot_choice_parse(const char *text, PlotChoice *out, Error *err);
/* --plot is given alone: no other format with it. */
bool plot_refuse_formats(const Call *call, Error *err);
/* What they need that the request does not measure yet. */
bool plot_choice_ask(const PlotChoice *choice, Request *request, Error *err);
/* A panel for each, all results in it; into the call's file, or as text. */
bool plot_choice_show(Session *s, const Call *call, const PlotChoice *choice,
                      Result *const *results, int count, Text *out, Error *err);

/* Time over n on N(0,1) inputs with this input's heads and head size, for the mechanisms of
 * the results, against the slopes they claim. */
#define SCALING_WORD "scaling"
bool scaling_show(Session *s, const Call *call, Result *const *results, int count, Text *out,
                  Error *err);
/* The figure as text, or into the call's file. */
bool plot_figure_write(const Call *call, const Figure *figure,
                       Result *const *results, int count, Text *out, Error *err);

/* The plots and the answer of compare --vary; private to app/. */

/* --plot and --keep beside --vary must be readable. */
bool vary_check_options(const Call *call, Error *err);
/* The call asks for a file or an answer instead of the table. */
bool vary_draws(const Call *call);
bool vary_draw(Session *s, const Call *call, Text *out, Error *err);
/* The plots of results that the table has shown: exact attention, then the words' rows. */
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
    const char *words;  /* of the figure command: panels and options */
    const char *help;   /* one line: what to see */
} Preset;

const Preset *preset_at(size_t index);     /* NULL past the end */
const Preset *preset_find(const char *id); /* NULL: unknown */
/* Unknown: the error names the nearest. */
bool preset_parse(const char *id, const Preset **out, Error *err);
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
/* The same of a whole line, "figure ...", with a preset in it or without. */
bool preset_expand(const char *line, PresetCall *out, Error *err);
void preset_call_free(PresetCall *made);

#endif
