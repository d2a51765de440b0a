/* input/pickle.h -- why pickles are refused, and what to do instead.
 *
 * A pickle is a program for the Python that opens it.  Files of that kind are
 * recognised only so that the message can name the conversion.
 */
#ifndef INPUT_PICKLE_H
#define INPUT_PICKLE_H

#include "core/error.h"

static inline bool pickle_refuse(Error *err)
{
    return error_set(err, ERR_UNSUPPORTED,
                     "is a Python pickle, which is never opened here; convert it: python3 -c "
                     "\"import sys,torch;from safetensors.torch import save_file as s;"
                     "s({k:v.float().contiguous() for k,v in torch.load(sys.argv[1],'cpu',"
                     "weights_only=True).items()},sys.argv[2])\" IN OUT.safetensors");
}

#endif
