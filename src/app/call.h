/* app/call.h -- a command line as words, options and values; whoever asks: shell, screen or script.
 *
 * A command takes words as a shell would split them, writes its result to a Text and reports
 * failure by Error.  It never prints.
 */
#ifndef APP_CALL_H
#define APP_CALL_H

#include "app/session/session.h"

typedef enum OptionId {
#define OPTION(id, flag, letter, value, commands, help) OPT_##id,
#include "app/options.def"
#undef OPTION
    OPT_COUNT
} OptionId;

typedef struct Option {
    const char *flag;     /* without dashes */
    char        letter;   /* 0: none */
    const char *value;    /* name of its value; NULL: a switch */
    const char *commands; /* blank-separated; "*": all */
    const char *help;
} Option;

const Option *option_at(int id); /* NULL past the end */

#define CALL_MAX_WORDS 256
#define CALL_MAX_FILES 16

/* An option that may belong to the --swap before it. */
typedef struct CallOfSwap {
    const char *text;
    int         swaps; /* how many --swap stand before it */
} CallOfSwap;

/* An option of one value that stands there more than once; flag NULL: none does. */
typedef struct CallTwice {
    const char *flag, *first, *second;
} CallTwice;

/* Parsed words.  All strings are borrowed from the words. */
typedef struct Call {
    const struct Command *command;
    const char *values[OPT_COUNT];       /* value, "" for a switch that is set, NULL: absent */
    const char *params[CALL_MAX_WORDS];  /* each -p */
    int         param_count;
    const char *files[CALL_MAX_FILES];   /* each -o; values[OPT_OUTPUT] is the first */
    int         file_count;
    const char *texts[CALL_MAX_WORDS];   /* each --text */
    int         text_count;
    const char *swaps[CALL_MAX_WORDS];   /* each --swap */
    int         swap_count;
    CallOfSwap  swap_layers[CALL_MAX_WORDS], swap_heads[CALL_MAX_WORDS]; /* each of model */
    int         swap_layers_count, swap_heads_count;
    const char *stacks[CALL_MAX_WORDS];  /* each --layers of cache */
    int         stack_count;
    const char *words[CALL_MAX_WORDS];   /* positional */
    int         word_count;
    CallTwice   twice;                   /* the last value counts */
    bool        tty;                     /* result goes to a terminal */
    bool        paged;                   /* it is text for a screen, but no terminal */
    int         columns;                 /* its width; 0: unknown */
    const char *line;                    /* the whole command line, for figure metadata */
    const struct StoredFigure *stored;   /* plots to be drawn instead of measured; NULL: none */
    const char *input_name, *input_sha256; /* expected of the input, and its name; NULL */
} Call;

typedef struct Command {
    const char *name, *arguments, *help;
    int         most_words; /* positional words it takes */
    /* NULL: this front end does not run it (the explorer cannot run `lua`). */
    bool (*run)(Session *s, const Call *call, Text *out, Error *err);
} Command;

const Command *command_at(size_t index);
const Command *command_find(const char *name);
/* The option a word names for this command, as in --flag=value or -n4; -1: none. */
int call_option(const Command *command, const char *word);
/* words[0] is the command's name; -p=x, --param x, --flag=value, -n4 and "--". */
bool call_parse(Call *call, const char *const *words, int count, Error *err);
/* False with an error: an option of one value is given two. */
bool call_gives_once(const Call *call, Error *err);
/* A file of the call is standard output, so nothing else may be printed there. */
bool call_to_stdout(const Call *call);
/* Splits a typed line like a shell does (quotes, backslash); *storage owns. */
bool call_split(const char *line, const char **words, int most, int *count, Text *storage,
                Error *err);
/* Which words of a line stay: from number `skip` on, without the options of the command, and their
 * values, that drops() names; -1: a word that is no option. */
typedef struct WordRule {
    const Command *command; /* NULL: all words stay words */
    int            skip;
    bool (*drops)(const void *context, int id);
    const void    *context;
} WordRule;
/* Appends the words that stay, quoted as for a shell, each after a blank. */
bool call_keep_words(const char *line, const WordRule *rule, Text *out, Error *err);
typedef enum CommandReader { READER_FILE, READER_TERMINAL, READER_PAGER } CommandReader;
/* Parses and runs.  columns: the reader's width; 0: unknown. */
bool command_run(Session *s, const char *const *words, int count, CommandReader reader,
                 int columns, Text *out, Error *err);
void command_help(const Command *command, Text *out);  /* of one command */
/* Of all; `explorer` adds what the front end in a terminal takes. */
void command_overview(Text *out, void (*explorer)(Text *out));

/* A call's strings are borrowed, so a made one stays until the program ends; equal ones are one.
 * NULL: not enough memory. */
const char *call_keep_word(const char *word);
/* The text that the options say a model reads. */
struct ModelText;
bool call_model_text(const Call *call, struct ModelText *out, Error *err);
/* False: to write path would replace a file that the call reads (its input, text, parameters,
 * records, scripts). */
bool call_spares(const Call *call, const char *path, Error *err);
/* The same for each -o of the call; what --dump writes is known only then. */
bool call_spares_all(const Call *call, Error *err);
/* Heads of a generated input `spec` where none are given: 2 for mechanisms of pairs of heads; 0: as
 * the generator has them. */
int64_t call_heads(const Call *call, const char *spec);
/* Input and choice from --input, --layer, -n, -d, --heads, --seed; loads the
 * session unless it already holds just that. */
bool call_load_input(Session *s, const Call *call, Error *err);
/* Every -p must belong to one of the call's mechanisms. */
bool call_check_params(const Call *call, Error *err);
/* Request of one mechanism text with the call's options. */
bool call_request(Session *s, const Call *call, const char *mechanism, Request *out, Error *err);
/* For commands that cannot run a stack of layers. */
bool call_refuse_stack(const Call *call, Request *request, Error *err);

#endif
