/* app/scripting.h -- the interface of the explorer and an interpreter of scripts.
 *
 * The two front ends do not know each other: each fills one of these tables.  Main gives the
 * explorer the interpreter's, and the explorer gives its own in return.  All functions are called
 * on the explorer's thread.  Panes are numbered from 1, as on the screen; settings have the names
 * and values of a saved session.
 */
#ifndef APP_SCRIPTING_H
#define APP_SCRIPTING_H

#include "app/session/session.h"
#include "core/text.h"
#include "draw/grid/grid.h"

/* What a script may do with the explorer. */
typedef struct Control {
    void *ui;
    const char *(*input)(void *ui, InputChoice *choice); /* its spec; NULL: none */
    bool (*enter)(void *ui, const char *line, Error *err); /* as typed after ':' */
    bool (*act)(void *ui, const char *action, Error *err);
    bool (*press)(void *ui, const char *keys, Error *err); /* "j j S-Right" */
    void (*say)(void *ui, const char *text);
    bool (*busy)(void *ui); /* something runs, or is not drawn yet */
    bool (*set)(void *ui, const char *name, const char *value, Error *err);
    bool (*get)(void *ui, Text *out, Error *err); /* lines of name and value */
    int (*panes)(void *ui, int *focus);
    int (*pane_open)(void *ui, const char *text, Error *err); /* 0: refused */
    bool (*pane_close)(void *ui, int pane, Error *err);
    /* Sets names and values (mechanism, settings, parameters); the pane runs once at most. */
    bool (*pane_set)(void *ui, int pane, const char *const *names, const char *const *values,
                     int count, Error *err);
    bool (*pane_get)(void *ui, int pane, Text *out, Error *err);
    bool (*pane_zoom)(void *ui, int pane, const Region *region, Error *err); /* NULL: all */
    bool (*mark)(void *ui, const int64_t *queries, int count, Error *err);
    /* Binds a key to an action or, with action NULL, to a function of the script. */
    bool (*map)(void *ui, const char *where, const char *key, const char *action, int function,
                Error *err);
    /* A typed word that calls a function of the script with the rest of the line. */
    bool (*command)(void *ui, const char *name, const char *help, int function, Error *err);
    void (*redefined)(void *ui, const char *mechanism); /* the mechanism of this id was replaced */
    bool (*ask)(void *ui, const char *question, Error *err);
    bool (*write)(void *ui, const char *path, Error *err); /* the screen's figure */
    void (*leave)(void *ui);
} Control;

typedef enum TypedState { TYPED_DONE, TYPED_UNFINISHED, TYPED_REFUSED } TypedState;

/* What the explorer may do with scripts. */
typedef struct Interpreter {
    void *host;
    bool (*open)(void *host, const Control *control, Error *err); /* called first */
    void (*close)(void *host); /* the explorer and its scripts end */
    /* Starts a statement; unfinished: more lines are needed. */
    TypedState (*type)(void *host, const char *code);
    bool (*file)(void *host, const char *path, Error *err);
    /* Runs what is due, for some milliseconds; true: something was done. */
    bool (*tick)(void *host);
    double (*deadline)(void *host); /* seconds until something is due; < 0: nothing */
    bool (*stop)(void *host);       /* false: nothing runs */
    const char *(*doing)(void *host); /* what a script waits for; NULL: nothing, or not long */
    void (*call)(void *host, int function, const char *text); /* of a key (NULL) or a command */
    /* Something happened: its name, and lines of name and value. */
    void (*event)(void *host, const char *event, const char *lines);
    /* The same of a command, without the explorer: a JSON object; handlers run at once, and what
     * they print goes to standard error. */
    void (*tell)(void *host, const char *event, const char *content);
    bool (*listens)(void *host); /* scripts that ran already wait for some event */
    void (*answer)(void *host, const char *text); /* NULL: none was given */
    void (*complete)(void *host, const char *word, void (*add)(void *context, const char *name),
                     void *context);
    const Text *(*output)(void *host);
} Interpreter;

#endif
