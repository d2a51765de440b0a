/* app/command/command_parts.h -- shared by the commands; private to app/. */
#ifndef APP_COMMAND_COMMAND_PARTS_H
#define APP_COMMAND_COMMAND_PARTS_H

#include "app/call.h"
#include "app/figure/picture.h"

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
bool call_save(Session *s, const Call *call, const Figure *figure, Result *const *results,
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

#endif
