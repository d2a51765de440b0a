/* test_model_token.c -- tokenizers: ids of texts, tokens of ids, refusals.
 *
 * `test_model_token --encode PATH` prints the ids of the JSON strings on standard input, a line
 * each; --bare leaves out the tokens around a text.
 */
#include "check.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "model/file/gguf.h"
#include "model/token/parts.h"

/* From a GGUF or a folder. */
static Tokenizer *load(const char *path, Error *err)
{
    Gguf      *g;
    Tokenizer *t;

    if (!text_ends_in(path, ".gguf"))
        return tokenizer_from_folder(path, err);
    g = gguf_open(path, err);
    t = g ? tokenizer_from_gguf(g, err) : NULL;
    gguf_close(g);
    return t;
}

/* ---- printing ids ---------------------------------------------------------------- */

static void print_ids(const Tokenizer *t, const json_t *text, bool special)
{
    Error     err = ERROR_INIT;
    TokenList list;

    if (!tokenizer_encode(t, json_string_value(text), (int64_t)json_string_length(text), special,
                          &list, &err)) {
        printf("! %s\n", err.text);
        return;
    }
    for (int64_t i = 0; i < list.count; i++)
        printf("%s%d", i ? " " : "", list.ids[i]);
    printf("\n");
    token_list_free(&list);
}

static int encode_lines(const char *path, bool special)
{
    Error      err = ERROR_INIT;
    Tokenizer *t = load(path, &err);
    char      *line = NULL;
    size_t     room = 0;

    if (!t) {
        fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    while (getline(&line, &room, stdin) > 0) {
        json_t *text = json_loads(line, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

        if (json_is_string(text))
            print_ids(t, text, special);
        json_decref(text);
    }
    free(line);
    tokenizer_free(t);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "--encode") == 0)
        return encode_lines(argv[2], argc < 4 || strcmp(argv[3], "--bare") != 0);
    return 0;
}
