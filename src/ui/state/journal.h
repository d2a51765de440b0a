/* ui/state/journal.h -- the panes on the screen as the figure that one command draws.
 *
 * A panel's word names its view, its head and what is subtracted.  Settings that all panes share
 * are options of the figure; settings that differ stand in the braces of each panel.
 */
#ifndef UI_STATE_JOURNAL_H
#define UI_STATE_JOURNAL_H

#include <time.h>

#include "app/figure/picture.h"
#include "ui/state/explorer.h"

typedef struct Shot {
    Pane          *panes[PANES_MOST];
    Panel          panels[PANES_MOST];
    PanelChoice    choices[PANES_MOST]; /* of the command; results borrowed from the panes */
    int            count;
    PictureOptions options; /* of all */
    bool           named;   /* the choices have the colours that the screen chose */
    Result        *base;    /* what differences are to; NULL: none; borrowed */
} Shot;

/* only: this pane alone; NULL: the panes on the screen.  Pane 1 is there also
 * when it is not shown, if another one is a difference to it. */
void shot_take(Ui *ui, Pane *only, Shot *shot);

/* Records what was done in the explorer, and writes it as a Lua script. A step is what the panes
 * showed for a second or more, an exported file, a measurement or a command. Keys are not recorded:
 * a script of runs and figures still works when keys change. */

typedef enum JournalKind {
    JOURNAL_SEEN,
    JOURNAL_EXPORTED,
    JOURNAL_MEASURED,
    JOURNAL_COMMAND,
} JournalKind;

/* A run and how it is shown, in words of Lua, all owned. */
typedef struct LuaPanel {
    char *name;  /* "bigbird", for the name of a variable */
    char *run;   /* arguments of attn.run but the input: "\"bigbird\", { seed = 3" */
    char *minus_name, *minus; /* likewise, of what is subtracted; NULL: no difference */
    char *looks; /* ", view = \"weights\"" */
    char *words; /* "bigbird · weights" */
} LuaPanel;

typedef struct JournalEntry {
    JournalKind  kind;
    time_t       when;
    char        *input; /* arguments of attn.load */
    LuaPanel panels[PANES_MOST + 1];
    int          count;
    char        *options; /* of the figure: "    shared_scale = true,\n" */
    char        *path;    /* of what was exported */
    char        *command; /* words of the figure command that draws it, or a typed line */
} JournalEntry;

/* Takes note of what the panes show once it has stood for a while; often. */
void journal_tick(Ui *ui);
/* An export begins, with the command that draws it; then it ends. */
void journal_exporting(Ui *ui, const char *command, const char *path);
void journal_exported(Ui *ui, bool written);
void journal_command(Ui *ui, const char *line);
bool journal_records(const Ui *ui);
/* What is recorded is written to its end. */
void journal_close(Ui *ui);

/* What :record and :history do. */
void journal_typed_record(Ui *ui, const char *rest);
void journal_typed_history(Ui *ui, const char *path);

#endif
