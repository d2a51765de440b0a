/* app/session/model_input.h -- a model's layer as an input, and the text it reads.
 *
 * The spec is one string, so that whatever carries the name of an input (a session, a figure's
 * metadata, a sweep's points, a script) carries the text, too:
 *     model:PATH[text=FILE,ids=FILE,max-tokens=N,special=no]
 * --text, --ids, --max-tokens and --no-special write the brackets.
 */
#ifndef APP_SESSION_MODEL_INPUT_H
#define APP_SESSION_MODEL_INPUT_H

#include "app/session/session.h"
#include "model/model.h"

#define MODEL_PREFIX "model:"

/* What a model reads; as the options say it. */
typedef struct ModelText {
    const char *text;    /* a file, "-" or "sample:NAME"; NULL: the default, see model_read_text */
    const char *ids;     /* a file of token ids instead; NULL: none */
    int64_t     most;    /* tokens; 0: the model's context */
    bool        bare;    /* without the tokens that the tokenizer puts around a text */
} ModelText;

/* A spec in parts.  The strings are the parts' own. */
typedef struct ModelSpec {
    char     *storage;
    char     *path;
    ModelText text;
} ModelSpec;

/* "model:PATH", a GGUF file or sample, or a folder with config.json. */
bool model_spec_is(const char *spec);
bool model_spec_parse(const char *spec, ModelSpec *out, Error *err);
void model_spec_free(ModelSpec *spec);
/* The model of a file, a folder or a sample ("sample:tales.gguf"); the caller closes it. */
Model *model_path_open(Session *s, const char *path, Error *err);
Model *model_spec_open(Session *s, const ModelSpec *spec, Error *err);
/* The spec with brackets for what the text says; brackets that it has stay where the text says
 * nothing. */
bool model_spec_write(const char *spec, const ModelText *text, Text *out, Error *err);
/* The spec with absolute paths of its files, so that it holds in any folder; samples keep their
 * names. */
bool model_spec_absolute(const char *spec, Text *out, Error *err);

/* "0-3,5" as flags [count]; option: what it was given for, "--layers"; what: "layer". */
bool model_parse_set(const char *option, const char *list, const char *what, int64_t count,
                     bool *out, Error *err);
void model_set_text(const bool *set, int64_t count, Text *out);

/* What was read: ids, cut to the most, and the bytes for a fingerprint. */
typedef struct ModelReading {
    TokenList tokens;
    int64_t   whole;  /* tokens before the cut */
    Text      bytes;  /* of the text, or of the file of ids */
} ModelReading;

/* The small model that comes with the program. */
#define MODEL_INCLUDED "sample:tales.gguf"

/* Without a text and ids: sample:english.txt. */
#define MODEL_USUAL_TEXT "sample:english.txt"
bool model_read_text(Session *s, const Model *m, const ModelText *text, ModelReading *out,
                     Error *err);
void model_reading_free(ModelReading *reading);

/* As session_read_input does for any spec: q, k, v and x of layer choice->layer (-1: 0); only the
 * layers below are run. */
Input *model_input_read(Session *s, const char *spec, const InputChoice *choice, Error *err);
/* Every layer of the model in one pass, each as model_input_read gives it; `take` owns the input
 * and says whether to go on.  choice->layer is not read. */
bool   model_input_each(Session *s, const char *spec, const InputChoice *choice,
                        bool (*take)(void *context, Input *input), void *context, Error *err);

#endif
