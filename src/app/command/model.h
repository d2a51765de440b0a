/* app/command/model.h -- what the command model computes, and how it is printed; for app/command
 * and lessons. */
#ifndef APP_COMMAND_MODEL_H
#define APP_COMMAND_MODEL_H

#include "app/command/command.h"
#include "app/session/model_input.h"
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

typedef struct ModelRun {
    Session      *session;
    const Call   *call;
    Model        *m;
    Swap         *swaps;       /* [swap_count]: with --each one for each layer */
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

void model_report(const ModelRun *r, Text *out); /* text, CSV or Markdown */
void model_report_json(const ModelRun *r, Text *out);

#endif
