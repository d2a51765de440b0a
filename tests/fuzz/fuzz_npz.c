/* fuzz_npz.c -- npz archives: libzip's reader, members, metadata.
 *
 * Any bytes must end in an Input or in a message, within the memory limit.
 */
#include <stdint.h>
#include <stdlib.h>

#include "input/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const InputChoice choices[] = { { .max_bytes = 1 << 24 },
                                    { .layer = 1, .n = 2, .max_bytes = 1 << 24 } };

    for (int i = 0; i < 2; i++) {
        Error  err = ERROR_INIT;
        Input *in = input_load_bytes("x.npz", (Mapped){ .data = data, .size = (int64_t)size },
                                     &choices[i], &err);

        if (!in && err.code == ERR_NONE)
            abort();
        input_free(in);
    }
    return 0;
}
