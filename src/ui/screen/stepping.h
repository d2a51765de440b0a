/* ui/screen/stepping.h -- the inside of the step screen: what its state, its picture and its keys
 * share. */
#ifndef UI_SCREEN_STEPPING_H
#define UI_SCREEN_STEPPING_H

#include "app/result/steps.h"
#include "ui/screen/compare.h"

typedef struct StepRooms {
    Area rail, strip, first, second, words; /* h 0: not there */
} StepRooms;

/* The step looked at, with the row that is followed; false: no pane has any. */
bool    stepping_now(Ui *ui, Step *step);
int64_t stepping_head(const Pane *pane);
/* The order known at this step, for a matrix of tokens; NULL: none. */
const int32_t *stepping_order(const Step *step, int64_t head);
StepRooms      stepping_rooms(const Pane *pane, const Step *step, Area area);
/* Tokens that a line has room for, and the first one in sight; the last page is full. */
int64_t stepping_tokens(Area area);
int64_t stepping_token(const Ui *ui, int64_t n, int64_t room);
/* Goes on to the next stage when its time has come. */
void stepping_play(Ui *ui);
/* It plays from now on, from the first stage if this is the last. */
void stepping_start(Ui *ui, const Step *step);

#endif
