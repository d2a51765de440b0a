/* app/command/model.h -- what the command model computes, and how it is printed; for app/command
 * and lessons. */
#ifndef APP_COMMAND_MODEL_H
#define APP_COMMAND_MODEL_H

#include "app/command/command.h"
#include "app/session/model_input.h"
#include "app/study/study.h"
#include "app/study/swap_file.h"
#include "model/forward.h"
#include "model/generate.h"

/* One text: what was read of it, and the pass over it. */
typedef struct ModelTextRun {
    const char   *name;     /* borrowed or kept */
    ModelText     text;
    ModelReading  reading;
    ForwardResult result;
    GenerateResult *written; /* [1 + swaps]; NULL: nothing was written */
} ModelTextRun;

/* Where a swap comes from. */
typedef struct SwapOrigin {
    char *text;  /* of the swap; owned */
    int   given; /* which --swap */
    int   at;    /* value of --vary; -1: it does not depend on it, or there is no --vary */
} SwapOrigin;

/* How far the passes over the texts are.  Their parts are counted in tokens that pass through a
 * layer; times are of a clock in seconds. */
typedef struct ModelProgress {
    double began, spoke; /* the last line was written */
    double done, all;
} ModelProgress;

#define MODEL_SPEAKS 10 /* seconds from one line to the next */
/* "12 s, about 3 min left". */
void model_progress_times(const ModelProgress *p, double now, char *text, size_t size);
/* Whether a line is due; it is taken to be written. */
bool model_progress_speaks(ModelProgress *p, double now);

typedef struct ModelRun {
    Session      *session;
    const Call   *call;
    Model        *m;
    Swap         *swaps;       /* [swap_count]: with --each one for each layer, with --vary for each
                                  value */
    SwapOrigin   *origins;     /* [swap_count] */
    Axis          axis;        /* of --vary; count 0: none */
    bool        **layer_sets;  /* [swap_count]; owned; a swap's layers */
    bool        **head_sets;   /* [swap_count]; owned; a swap's heads */
    SwapMixture  *mixtures;    /* those of files; owned */
    int64_t       swap_count;
    ModelTextRun *texts;
    int           text_count;
    int           doing;       /* index of the text that runs */
    GenerateOptions generate;  /* of --generate; count 0: nothing is written */
    ModelProgress progress;
    double        load_seconds;
} ModelRun;

/* Opens the model that the call names.  r holds the session and the call; the caller frees it,
 * also on failure. */
bool model_run_open(ModelRun *r, Error *err);
/* Reads the call's texts and runs the model on each, as it is and with the call's swaps. */
bool model_run_texts(ModelRun *r, Error *err);
void model_run_free(ModelRun *r);

/* What a swap does, as tables and figures name it. */
typedef enum ModelMeasure {
    MODEL_LOSS, MODEL_DELTA, MODEL_KL, MODEL_AGREEMENT, MODEL_COSINE, MODEL_RESIDUAL,
    MODEL_MEASURES
} ModelMeasure;
const char *model_measure_name(ModelMeasure measure);

/* Mean over texts and half of its 95 % interval (Student's t); one text has none (NaN). */
typedef struct ModelSpread {
    double mean, half;
} ModelSpread;
ModelSpread model_spread(const ModelRun *r, int64_t variant, ModelMeasure measure);
double      model_last_residual(const ModelRun *r, const ForwardMeasure *m); /* NaN: no swap's */
/* FLOPs of scores and mixing as a share of exact attention's, of one text and as a mean over them;
 * NaN: not known. */
double      model_share_of(const ForwardMeasure *m);
double      model_share(const ModelRun *r, int64_t variant);

/* The call's swaps into r, with the values of --vary; the check is before the model is open. */
bool model_swaps_check(const Call *call, Error *err);
bool model_take_swaps(ModelRun *r, Error *err);
void model_swaps_free(ModelRun *r);
/* Whether the swaps are not all of the same layers and heads. */
bool model_swaps_differ(const ModelRun *r);
/* Called for each parameter of the swap's mechanism that nobody wrote: "k", "0 (8, or with mass as
 * many as it takes)". */
typedef void ModelDefault(void *context, const char *name, const char *value);
void model_defaults(const Swap *swap, ModelDefault *each, void *context);
/* The same as "window=7, scale=0". */
void model_defaults_text(const Swap *swap, Text *out);

void model_report(const ModelRun *r, Text *out); /* text, CSV or Markdown */
void model_report_json(const ModelRun *r, Text *out);

/* Options that do not fit a figure, before the pass. */
bool model_figure_check(const Call *call, Error *err);
bool model_figure(const ModelRun *r, Text *out, Error *err);

#endif
