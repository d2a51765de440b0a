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

/* A pane as a value, for what is saved and for what is undone. */
typedef struct PaneState {
    Request   request; /* owned */
    PanelSpec spec;
    bool      differs;
    Lens      lens;
} PaneState;

bool pane_take(const Pane *pane, PaneState *out, Error *err);

/* What the pane shows of its run; the request, and the run, stay. */
void pane_look(Pane *pane, const PaneState *state);
/* Runs the state's request in the pane. */
void pane_rerun(Ui *ui, Pane *pane, PaneState *state);
/* Whether this input, so chosen, is what is loaded. */
bool input_is_open(const Ui *ui, const char *spec, const InputChoice *choice);

typedef struct Workspace {
    char       *spec; /* of the input; owned; NULL: as it is */
    InputChoice choice;
    char        sha256[65]; /* of the input; "": not said */
    int         input_line; /* its line in the text */
    Request     defaults;   /* of new panes; no parameters */
    int         screen, theme, glyphs;
    int         order; /* of the list */
    char        filter[512];
    uint8_t     marked[MARKS_MOST];
    Arrangement arrangement;
    PanesLook   look;
    Marks       marks; /* undone, not saved */
    PaneState   panes[PANES_MOST];
    int         count;
} Workspace;

void workspace_init(Workspace *saved);
void workspace_free(Workspace *saved);

bool workspace_take(const Ui *ui, Workspace *out, Error *err);
/* False: its input does not load, and nothing was changed.  `input` and `choice` stand for
 * those that were saved; NULL: just those.  A note goes back by `u`. */
bool workspace_show(Ui *ui, Workspace *saved, const char *input, const InputChoice *choice,
                    Error *err);

/* Applies a changed state to the pane; runs it if the request differs. */
void workspace_show_pane(Ui *ui, Pane *pane, PaneState *saved);
/* All but the panes and the input. */
void workspace_show_screen(Ui *ui, const Workspace *saved);

/* By name and value as in the text; false: there is no such name, or it cannot be that. */
bool workspace_set_pane(PaneState *pane, const char *name, const char *value, Error *err);
bool workspace_set(Workspace *saved, const char *name, const char *value, Error *err);
bool workspace_pane_has(const char *name);
/* Checks the parameters that can be checked without an input. */
bool workspace_check_request(const Request *request, Error *err);
void workspace_write_pane(const PaneState *pane, const char *indent, Text *out);
/* The mechanism that was marked as number `place`, from 1; NULL: so many are not marked. */
const Mechanism *workspace_marked(const uint8_t *marked, int place);
/* Adds "NAME is AFTER again (was BEFORE)" if they differ: what undoing says. */
void workspace_add_change(const char *name, const char *before, const char *after, Text *out);
/* Adds "view is connectivity again (was weights), sorted is yes again (was no)": settings that
 * differ, in words.  The mechanism and where the cursor is are none of them. */
void workspace_pane_changes(const PaneState *from, const PaneState *to, Text *out);
void workspace_write_fields(const Workspace *saved, Text *out);

/* The text names files by absolute paths. */
void workspace_write(const Workspace *saved, Text *out);
/* name: of the file, for messages: "NAME:12: there is no mechanism 'x'". */
bool workspace_read(Ui *ui, const char *name, const char *text, Workspace *out, Error *err);

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
