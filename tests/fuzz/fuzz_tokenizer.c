/* fuzz_tokenizer.c -- tokenizer.json, and the tokenizer in a GGUF's keys.
 *
 * Any bytes must end in a tokenizer that encodes texts to ids of its own, or in a message of one
 * line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/file/gguf.h"
#include "model/token/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] =
    " Caf\xC3\xA9 a\xCC\x81 don't SAY 12345\r\n\n \t\xE6\x97\xA5\xE6\x9C\xAC \xE1\xA0\x8E<s></s>"
    "\xF0\x9F\x98\x80\xE2\x96\x81 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\0 [MASK] \xC4\xB0";

static void check_line(const Error *err)
{
    if (err->code == ERR_NONE || !*err->text || strchr(err->text, '\n'))
        abort();
}

static void use(Tokenizer *t, const uint8_t *data, size_t size)
{
    const char *texts[] = { text, (const char *)data };
    int64_t     lengths[] = { sizeof(text) - 1, size < 2000 ? (int64_t)size : 2000 };

    for (int i = 0; i < 4; i++) {
        Error     err = ERROR_INIT;
        TokenList list;
        char      bytes[16];

        if (!tokenizer_encode(t, texts[i / 2], lengths[i / 2], i % 2, &list, &err)) {
            check_line(&err);
            continue;
        }
        for (int64_t k = 0; k < list.count; k++) {
            if (list.ids[k] < 0 || list.ids[k] >= tokenizer_size(t))
                abort();
            tokenizer_bytes(t, list.ids[k], bytes, sizeof(bytes));
        }
        token_list_free(&list);
    }
    tokenizer_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Error      err = ERROR_INIT;
    bool       binary = size >= 4 && memcmp(data, "GGUF", 4) == 0;
    Gguf      *g = binary ? gguf_open_bytes(data, (int64_t)size, &err) : NULL;
    Tokenizer *t = g         ? tokenizer_from_gguf(g, &err)
                   : !binary ? tokenizer_from_json((const char *)data, size, &err)
                             : NULL;

    if (t)
        use(t, data, size);
    else
        check_line(&err);
    gguf_close(g);
    return 0;
}
