/* ui/state/journal.h -- what was done in the explorer, to be told as a Lua script.
 *
 * A step is what the panes showed for a second or more, a file that was exported, a
 * measurement or a command.  Keys are not kept: a script of runs and figures says what was
 * seen and goes on working when keys change.
 */
#ifndef UI_STATE_JOURNAL_H
#define UI_STATE_JOURNAL_H

#include <time.h>

#include "ui/shell/explorer.h"
#include "ui/state/shot.h"

typedef enum JournalKind {
    JOURNAL_SEEN,
    JOURNAL_EXPORTED,
    JOURNAL_MEASURED,
    JOURNAL_COMMAND,
} JournalKind;

/* Words of Lua, all owned. */
typedef struct JournalPanel {
    char *name;  /* "bigbird", for the name of a variable */
    char *run;   /* arguments of attn.run but the input: "\"bigbird\", { seed = 3" */
    char *minus_name, *minus; /* likewise, of what is subtracted; NULL: no difference */
    char *looks; /* ", view = \"weights\"" */
    char *words; /* "bigbird · weights" */
} JournalPanel;

typedef struct JournalEntry {
    JournalKind  kind;
    time_t       when;
    char        *input; /* arguments of attn.load */
    JournalPanel panels[PANES_MOST + 1];
    int          count;
    char        *path;    /* of what was exported */
    char        *command; /* words of the figure command that draws it, or a typed line */
} JournalEntry;

/* Takes note of what the panes show once it has stood for a while; often. */
void journal_tick(Ui *ui);
/* An export that has begun: what is drawn (NULL: only the command says it), the command, ""
 * where none draws it; then its end. */
void journal_exporting(Ui *ui, const char *command, const char *path);
void journal_exported(Ui *ui, bool written);
void journal_command(Ui *ui, const char *line);
bool journal_records(const Ui *ui);
/* What is recorded is written to its end. */
void journal_close(Ui *ui);

/* What :record and :history do. */
void journal_typed_record(Ui *ui, const char *rest);
void journal_typed_history(Ui *ui, const char *path);

/* The script of entries, oldest first (journal_lua.c). */
void journal_script(const JournalEntry *entries, int count, Text *out);
/* `text` as a Lua string. */
void journal_quote(Text *out, const char *text);

#endif
