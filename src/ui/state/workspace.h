/* ui/state/workspace.h -- what is open in the explorer as a value: taken from the screen, written
 * as text, read back, put on the screen.
 *
 * State is saved and not the keys that led to it: a key means something else once the
 * catalogue or the key map has changed.  Reading changes nothing; putting a state that was
 * read on the screen can fail at its input only, and then changes nothing either.
 */
#ifndef UI_STATE_WORKSPACE_H
#define UI_STATE_WORKSPACE_H

#include "ui/state/explorer.h"

typedef struct Saved {
    char       *spec; /* of the input; owned; NULL: as it is */
    InputChoice choice;
    char        sha256[65]; /* of the input; "": not said */
    int         input_line; /* where the text says it */
    Request     defaults;   /* of new panes; no parameters */
    int         screen, theme, glyphs;
    int         order; /* of the list */
    int         strips; /* MarginKind */
    char        layout[8]; /* "2x2"; "": none */
    char        filter[512];
    bool        marked[128];
    int64_t     focus; /* from 1 */
    bool        linked, alone, difference, labels, effect;
    PaneState   panes[PANES_MOST];
    int         count;
} Saved;

void saved_init(Saved *saved);
void saved_free(Saved *saved);

bool saved_take(const Ui *ui, Saved *out, Error *err);
/* False: its input does not load, and nothing was changed.  `input` and `choice` stand for
 * those that were saved; NULL: just those.  A note goes back by `u`. */
bool saved_show(Ui *ui, Saved *saved, const char *input, const InputChoice *choice, Error *err);

/* A pane as it was changed back on the screen; its run is started where it asks for another
 * one. */
void saved_show_pane(Ui *ui, Pane *pane, PaneState *saved);
/* All but the panes and the input. */
void saved_show_screen(Ui *ui, const Saved *saved);

/* By name and value as in the text; false: there is no such name, or it cannot be that. */
bool saved_set_pane(PaneState *pane, const char *name, const char *value, Error *err);
bool saved_set_session(Saved *saved, const char *name, const char *value, Error *err);
bool saved_pane_has(const char *name);
/* Parameters as far as they can be judged without an input. */
bool saved_check_request(const Request *request, Error *err);
void saved_write_pane_fields(const PaneState *pane, const char *indent, Text *out);
void saved_write_session_fields(const Saved *saved, Text *out);

/* The text names files by absolute paths. */
void saved_write(const Saved *saved, Text *out);
/* name: of the file, for messages: "NAME:12: there is no mechanism 'x'". */
bool saved_read(Ui *ui, const char *name, const char *text, Saved *out, Error *err);

/* Sessions by name: :save, :restore, --session, and the one kept on leaving. */

#define SAVING_LAST "last" /* name of the session that leaving keeps */

/* input: stands for the saved one; NULL: just that.  False: nothing was changed. */
bool saving_restore(Ui *ui, const char *name, const char *input, const InputChoice *choice,
                    Error *err);
/* "; 2 shows its panes" where it was left in the list, though panes are open; else "". */
const char *saving_behind(const Ui *ui);
/* Keeps what is open as SAVING_LAST, if anything is. */
bool saving_keep(Ui *ui, Error *err);
/* Calls `each` with the name of every saved session. */
void saving_names(void (*each)(void *context, const char *name), void *context);

/* What :save and :restore do. */
void saving_typed_save(Ui *ui, const char *name);
void saving_typed_restore(Ui *ui, const char *name);

#endif
