/* input/load.h -- what the loaders share.
 *
 * Each loader fills a zeroed Input whose arena exists. Messages have no path: input.c adds it.
 */
#ifndef INPUT_LOAD_H
#define INPUT_LOAD_H

#include "core/error.h"
#include "input/input.h"
#include "input/store.h"

/* By content, then by extension. */
typedef enum InputFormat {
    FORMAT_UNKNOWN, FORMAT_NPY, FORMAT_NPZ, FORMAT_SAFETENSORS, FORMAT_JSON, FORMAT_CSV,
    FORMAT_TEXT, FORMAT_PNG, FORMAT_PNM
} InputFormat;

/* input_load for bytes in memory; `path` gives the name and the extension. Tests and fuzzers call
 * it too. */
Input *input_load_bytes(const char *path, Mapped bytes, const InputChoice *choice, Error *err);

bool load_find_format(const char *path, Mapped bytes, InputFormat *out, Error *err);
bool load_prefix_path(Error *err, const char *path); /* returns false */

/* Length of the path in "FILE[q=query,k=key]"; all of it without brackets. */
size_t load_path_length(const char *spec);
/* Renames arrays as the brackets say; "" changes nothing. */
bool load_name_arrays(Store *store, const char *brackets, Error *err);

/* Opens a file of arrays; format: one of those that hold arrays. */
bool load_open_store(Store *store, const char *path, Mapped bytes, InputFormat format, Error *err);
bool load_assemble(Input *in, Store *store, const InputChoice *choice, Error *err);
bool load_text(Input *in, Mapped bytes, const InputChoice *choice, Error *err);
bool load_image(Input *in, Mapped bytes, InputFormat format, const InputChoice *choice,
                Error *err);
bool load_synthetic(Input *in, const char *spec, const InputChoice *choice, Error *err);

/* Number of tokens of a text; size of a picture. */
bool text_count(const char *path, Mapped bytes, int64_t *count, Error *err);
bool image_size(Mapped bytes, InputFormat format, int64_t *width, int64_t *height, Error *err);

/* Sets ERR_NOMEM for `what` of `bytes`; the limit of a choice. */
bool    load_no_memory(Error *err, const char *what, int64_t bytes, const InputChoice *choice);
int64_t load_limit(const InputChoice *choice);
/* False with ERR_CANCELLED once the load is cancelled. */
bool    load_goes_on(const InputChoice *choice, Error *err);

/* Refuses a pickle, which is a program for the Python that opens it, and names the conversion. */

static inline bool pickle_refuse(Error *err)
{
    return error_set(err, ERR_UNSUPPORTED,
                     "is a Python pickle, which is never opened here; convert it: python3 -c "
                     "\"import sys,torch;from safetensors.torch import save_file as s;"
                     "s({k:v.float().contiguous() for k,v in torch.load(sys.argv[1],'cpu',"
                     "weights_only=True).items()},sys.argv[2])\" IN OUT.safetensors");
}

#endif
