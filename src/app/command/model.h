/* app/command/model.h -- what the command model computes, and how it is printed; for app/command
 * and lessons. */
#ifndef APP_COMMAND_MODEL_H
#define APP_COMMAND_MODEL_H

#include "app/command/command.h"
#include "app/session/model_input.h"
#include "app/study/study.h"
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

typedef struct ModelRun {
    Session      *session;
    const Call   *call;
    Model        *m;
    Swap         *swaps;       /* [swap_count]: with --each one for each layer, with --vary for each
                                  value */
    SwapOrigin   *origins;     /* [swap_count] */
    Axis          axis;        /* of --vary; count 0: none */
    bool        **layer_sets;  /* [swap_count]; owned; a swap's layers */
    bool         *heads;       /* of all swaps; owned */
    int64_t       swap_count;
    ModelTextRun *texts;
    int           text_count;
    int           doing;       /* index of the text that runs */
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
/* FLOPs of scores and mixing as a share of exact attention's; NaN: not known. */
double      model_share(const ModelRun *r, int64_t variant);

void model_report(const ModelRun *r, Text *out); /* text, CSV or Markdown */
void model_report_json(const ModelRun *r, Text *out);

/* Options that do not fit a figure, before the pass. */
bool model_figure_check(const Call *call, Error *err);
/* The call asks for curves, below the table or in its files. */
bool model_draws(const Call *call);
bool model_figure(const ModelRun *r, Text *out, Error *err);

#endif
