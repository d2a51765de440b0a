/* ui/screen/model.h -- a model with a text: what the screen Model shows, and the work for it.
 *
 * The work has a session of its own, so runs of the panes do not wait for it.  A job writes into
 * fields that the screen does not read before the job has ended (`opened`, `pass`, `fresh`,
 * `input`), or counts what is there in an atomic: `rows` says how much of `scores` is there.
 */
#ifndef UI_SCREEN_MODEL_H
#define UI_SCREEN_MODEL_H

#include "app/session/model_input.h"
#include "app/study/swap_file.h"
#include "core/arena.h"
#include "model/forward.h"
#include "model/heads.h"
#include "ui/state/explorer.h"

typedef enum ModelTask {
    MODEL_OPENING, MODEL_HEADS, MODEL_PLAIN, MODEL_SWAP, MODEL_LAYER, MODEL_WRITE,
    MODEL_TASKS
} ModelTask;

/* The layers of a swap. */
typedef struct ModelLayers {
    bool *on;       /* [layers]; NULL: all; owned */
    char  words[64]; /* "10-19"; "all" */
} ModelLayers;

/* What one variant has written; the worker's until it is done, but for the counts. */
typedef struct Written {
    char        text[8192];
    atomic_int  bytes, tokens;
    atomic_bool done;
    double      rate; /* tokens a second, when done */
} Written;

/* A model and its text. */
typedef struct ModelOpened {
    Model       *model;   /* NULL: not open; owned */
    ModelReading reading; /* owned */
    Arena       *arena;   /* of the labels; owned */
    char       **label;   /* [n] text of each token */
    HeadScores  *scores;  /* [layers, heads]; owned */
} ModelOpened;

typedef struct Modelling {
    Session      *side;             /* its worker does the tasks; owned */
    Job          *job[MODEL_TASKS]; /* NULL: not under way */
    atomic_int    at[MODEL_TASKS];  /* layers that are done */
    char         *spec;             /* "model:PATH[text=FILE]"; owned */
    ModelOpened   opened;           /* being opened; then moved to what follows */
    Model        *model;            /* NULL: not open yet; owned */
    ModelReading  reading;
    Arena        *arena;            /* of the labels */
    char        **label;            /* [n] text of each token */
    HeadScores   *scores;           /* [layers, heads], of layers below `rows`; owned */
    atomic_int    rows;
    ForwardResult pass, plain;      /* being computed; shown: measure NULL: not there yet */
    ForwardResult fresh, swapped;   /* being computed; shown: variant 1 against 0 */
    char          mechanism[256], shown[256]; /* of fresh, of swapped */
    ModelLayers   layers, shown_layers;
    const SwapMixture *mixture, *shown_mixture; /* NULL: the swap is none */
    SwapMixture  *mixtures;         /* of both and write_mixture; owned */
    Input        *input;            /* of a layer, on its way to the panes; owned */
    int64_t       wanted;           /* that layer */
    bool          entered;          /* its head is in the panes: q comes back */
    bool          arriving;         /* it becomes the input of all screens, nothing opens for it */
    int64_t       layer, head, token; /* chosen */
    int64_t       top;              /* first line of the text in sight */
    int64_t       across;           /* head at the left end of the grid */
    int64_t       first;            /* layer at the top of the grid */
    int64_t       line_tokens;      /* of a line of text, about */
    bool          writing;          /* the panes of what is written stand in place of the text */
    Written       written[2];       /* the model as it is, and swapped */
    char          write_swap[256];  /* "": none */
    bool         *write_layers;     /* NULL: all; owned */
    const SwapMixture *write_mixture;
    char          problem[512];     /* why there is no model; "": there is or will be */
} Modelling;

/* The explorer begins with the model: its layer is read behind the first frame. */
bool model_start(Ui *ui, const char *spec, int64_t layer, Error *err);

/* ---- model_work.c ------------------------------------------------------------ */

/* The token as it is read: WordPiece keeps its ## and has a blank before a word, unless it is the
 * first.  How many bytes were written. */
int64_t model_token_label(const Model *m, int32_t id, bool first, char *text, size_t size);
/* Closes what is open and begins with the spec. */
void model_begin(Ui *ui, const char *spec);
/* The same, but the model is open and its text read when it returns. */
bool model_begin_open(Ui *ui, const char *spec, Error *err);
/* The passes of a model that is open; those that are there are made again. */
void model_measure(Ui *ui);
/* words: "window(window=33) 10-19", or "@advice.csv"; with a message where it cannot be. */
void model_swap(Ui *ui, const char *words);
void model_drop_swap(Modelling *m);
/* Its q, k, v go to the panes. */
void model_fetch_layer(Ui *ui);
/* The text goes on, by the model and by the swapped one. */
void model_write(Ui *ui);
void model_stop_writing(Modelling *m);
/* Takes the task's outcome; false: it goes on, or is not under way. */
bool model_task_ended(Ui *ui, ModelTask task, JobState *state);
bool model_runs(const Modelling *m);
bool model_cancel(Modelling *m);
void model_free(Modelling *m); /* NULL is fine */

/* ---- model_write.c ------------------------------------------------------------ */

bool model_write_take(Modelling *m); /* the swap that is shown; false: no memory */
bool model_write_work(void *context, const atomic_bool *cancel, Error *err);
void model_draw_written(Ui *ui, Area area);

/* ---- model_text.c ------------------------------------------------------------- */

void model_draw_text(Ui *ui, Area area);

/* ---- model_draw.c ------------------------------------------------------------- */

void model_draw(Ui *ui, Area area);
/* The token after the chosen one in falling order of its loss, or of what the swap adds to it, and
 * that number; before: the token before it.  -1: none. */
int64_t model_hardest(const Modelling *m, bool before, double *nats);
/* "loss 3.598 -> 3.936 (+0.337)  KL 0.364 nats  same next token 73 %", shorter where it has no room
 * in so many columns; false: nothing is known yet. */
bool model_status(const Modelling *m, int room, char *text, size_t size);

#endif
