/* ui/shell/pane_study.h -- a study of the open panes in the background, typed as a line.
 *
 * :budget pairs=5% chooses the size of each pane's mechanism for a share of exact attention's
 * price; :quality compares every head of every pane with exact attention; :decode measures what one
 * token more costs each pane.  They work on copies, as commands do (command_work.c).
 */
#ifndef UI_SHELL_PANE_STUDY_H
#define UI_SHELL_PANE_STUDY_H

#include "app/study/budget.h"
#include "ui/state/explorer.h"

typedef struct PaneStudy PaneStudy;

typedef enum StudyKind { STUDY_BUDGET, STUDY_QUALITY, STUDY_DECODE } StudyKind;

/* Of the panes as they are now; budget: of STUDY_BUDGET.  NULL with an error: no pane is open. */
PaneStudy *pane_study_new(const Ui *ui, StudyKind kind, const Budget *budget, Error *err);
void       pane_study_free(PaneStudy *study);
/* On the worker's thread; the session has the panes' input. */
bool pane_study_run(PaneStudy *study, Session *s, int columns, Error *err);
/* On the front end's thread: sets what was chosen, or opens the table. */
void pane_study_show(Ui *ui, PaneStudy *study);
/* Starts one as a command (command_work.c), of n tokens of the input (0: all); its window is named
 * `line`.  Whatever is wrong is a message. */
void command_study(Ui *ui, const char *line, StudyKind kind, const Budget *budget, int64_t n);

#endif
