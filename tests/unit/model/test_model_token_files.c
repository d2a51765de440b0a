/* test_model_token_files.c -- tokenizers of folders without a tokenizer.json, and of GGUF keys. */
#include "token_fixture.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- folders ---------------------------------------------------------------------- */

static void write_in(const char *folder, const char *name, const char *text)
{
    char  path[256];
    Error err = ERROR_INIT;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    CHECK(file_write(path, text, strlen(text), &err), "%s", err.text);
}

/* A folder of the files named, NULL at the end; the tokenizer, or NULL with the error. */
static Tokenizer *load_files(const char *const *files, Error *err)
{
    char       folder[] = "/tmp/attnscope-token-XXXXXX", path[256];
    Tokenizer *t;

    assert_non_null(mkdtemp(folder));
    for (int i = 0; files[i]; i += 2)
        write_in(folder, files[i], files[i + 1]);
    t = tokenizer_from_folder(folder, err);
    for (int i = 0; files[i]; i += 2) {
        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
    return t;
}

static void refuse_files(const char *const *files, const char *words)
{
    Error err = ERROR_INIT;

    assert_null(load_files(files, &err));
    check_line(&err);
    check_words(&err, words);
}

static void a_list_of_words_is_wordpiece(void **state)
{
    static const char *const files[] = {
        "vocab.txt", "[PAD]\r\n[UNK]\n[CLS]\n[SEP]\na\n##b\ncafe\n\xC3\xA9\n<x>",
        "tokenizer_config.json", "{\"do_lower_case\":true,\"added_tokens_decoder\":{\"9\":"
        "{\"content\":\"<new>\",\"special\":true}},\"eos_token\":{\"content\":\"<x>\"}}", NULL,
    };
    static const char *const cased[] = {
        "vocab.txt", "[UNK]\na\n\xC3\xA9\n", "tokenizer_config.json",
        "{\"do_lower_case\":false,\"tokenize_chinese_chars\":false}", NULL,
    };
    Error      err = ERROR_INIT;
    Tokenizer *t = load_files(files, &err), *small = load_files(cased, &err);

    (void)state;
    CHECK(t && small, "%s", err.text);
    check_ids(t, "Ab CAF\xC3\x89[SEP]<new>x", IDS(4, 5, 6, 3, 9, 1));
    assert_int_equal(tokenizer_size(t), 10);
    assert_int_equal(tokenizer_begin(t), 2);
    assert_int_equal(tokenizer_end(t), 8);
    check_ids(small, "\xC3\xA9 A a", IDS(2, 0, 1));
    assert_int_equal(tokenizer_begin(small), -1);
    tokenizer_free(t);
    tokenizer_free(small);
}

/* As rows of dashes in real vocabularies are; a caller with room for less gets whole characters. */
static void a_long_token_is_given_whole(void **state)
{
    char              vocab[700] = "[UNK]\n", part[6];
    const char *const files[] = { "vocab.txt", vocab, NULL };
    Text              whole = { 0 };
    Error             err = ERROR_INIT;
    Tokenizer        *t;

    (void)state;
    for (int i = 0; i < 300; i++)
        strcat(vocab, "\xC3\xA9");
    t = load_files(files, &err);
    CHECK(t, "%s", err.text);
    tokenizer_add_bytes(t, 1, &whole);
    assert_int_equal(whole.length, 600);
    assert_string_equal(text_str(&whole), vocab + 6);
    assert_int_equal(tokenizer_bytes(t, 1, part, sizeof(part)), 4);
    assert_string_equal(part, "\xC3\xA9\xC3\xA9");
    text_free(&whole);
    tokenizer_free(t);
}

static void vocab_json_and_merges_are_byte_level(void **state)
{
    static const char *const files[] = {
        "vocab.json", "{\"a\":0,\"b\":1,\"ab\":2,\"<|endoftext|>\":3,\"1\":4,\"11\":5}",
        "merges.txt", "#version: 0.2\na b\n1 1\n", NULL,
    };
    static const char *const qwen[] = {
        "vocab.json", "{\"a\":0,\"b\":1,\"ab\":2,\"1\":4,\"11\":5}", "merges.txt", "a b\r\n1 1",
        "tokenizer_config.json", "{\"tokenizer_class\":\"Qwen2Tokenizer\"}", NULL,
    };
    Error      err = ERROR_INIT;
    Tokenizer *t = load_files(files, &err), *digits = load_files(qwen, &err);

    (void)state;
    CHECK(t && digits, "%s", err.text);
    check_ids(t, "ab<|endoftext|>11", IDS(2, 3, 5));
    assert_int_equal(tokenizer_end(t), 3);
    check_ids(digits, "ab11", IDS(2, 4, 4));
    tokenizer_free(t);
    tokenizer_free(digits);
}

static void bad_folders_are_refused(void **state)
{
    static const char *const cases[][9] = {
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "no tokenizer|vocab.txt|--ids" },
        { "tokenizer.json", "{", NULL, NULL, NULL, NULL, NULL, NULL, "tokenizer.json|line 1" },
        { "tokenizer.json", "[]", NULL, NULL, NULL, NULL, NULL, NULL, "expected an object" },
        { "vocab.txt", "", NULL, NULL, NULL, NULL, NULL, NULL, "no token" },
        { "vocab.txt", "a\nb\n", NULL, NULL, NULL, NULL, NULL, NULL, "[UNK]" },
        { "vocab.txt", "a\n\xFF\n", NULL, NULL, NULL, NULL, NULL, NULL, "line 2|UTF-8" },
        { "vocab.txt", "a", "tokenizer_config.json", "7", NULL, NULL, NULL, NULL,
          "tokenizer_config.json" },
        { "vocab.json", "{\"a\":0}", "merges.txt", "a\n", NULL, NULL, NULL, NULL,
          "merges.txt|line 1" },
        { "vocab.json", "{\"a\":0}", "merges.txt", "a b\n", NULL, NULL, NULL, NULL,
          "line 1|not in vocab.json" },
        { "vocab.json", "{\"a\":-1}", "merges.txt", "", NULL, NULL, NULL, NULL, "\"a\"|id" },
        { "vocab.json", "{\"a\":0,\"b\":0}", "merges.txt", "", NULL, NULL, NULL, NULL,
          "vocab.json|\"a\"|\"b\"|id 0" },
        { "vocab.txt", "[UNK]\na", "tokenizer_config.json", "{\"added_tokens_decoder\":{\"7\":{}}}",
          NULL, NULL, NULL, NULL, "added_tokens_decoder|\"7\"|content" },
        { "vocab.json", "{\"a\":0}", "merges.txt", "", "tokenizer_config.json",
          "{\"tokenizer_class\":\"RobertaTokenizer\"}", NULL, NULL, "RobertaTokenizer|--ids" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refuse_files(cases[i], cases[i][8]);
}

/* ---- GGUF ------------------------------------------------------------------------- */

#define KEY(name) "tokenizer.ggml." name

static Tokenizer *load_keys(const Writer *w, Error *err)
{
    static Bytes b;
    uint8_t     *copy;
    Gguf        *g;
    Tokenizer   *t;

    gguf_bytes(w, &b);
    g = open_sized(b.data, b.size, &copy, err);
    CHECK(g, "%s", err->text);
    t = tokenizer_from_gguf(g, err);
    gguf_close(g);
    free(copy);
    return t;
}

static Tokenizer *tokenizer_of_keys(const Writer *w)
{
    Error      err = ERROR_INIT;
    Tokenizer *t = load_keys(w, &err);

    CHECK(t, "%s", err.text);
    return t;
}

static void refuse_keys(const Writer *w, const char *words)
{
    Error err = ERROR_INIT;

    assert_null(load_keys(w, &err));
    check_line(&err);
    check_words(&err, words);
}

static void key_types(Writer *w, int count, const int32_t *types)
{
    key_array(w, KEY("token_type"), GGUF_I32, (uint64_t)count, types, 4 * count);
}

static void key_scores(Writer *w, int count, const float *scores)
{
    key_array(w, KEY("scores"), GGUF_F32, (uint64_t)count, scores, 4 * count);
}

static Writer byte_level_keys(const char *pre)
{
    static const char *const tokens[] = { "<s>", "a", "b", "1", "11", "ab", "Ġ", "<u>" };
    static const char *const merges[] = { "a b", "1 1" };
    Writer w = { 0 };

    key_text(&w, KEY("model"), "gpt2");
    key_texts(&w, KEY("tokens"), 8, tokens);
    key_types(&w, 8, (const int32_t[]){ 3, 1, 1, 1, 1, 1, 1, 4 });
    key_texts(&w, KEY("merges"), 2, merges);
    if (pre)
        key_text(&w, KEY("pre"), pre);
    return w;
}

static void gguf_names_its_split(void **state)
{
    static Writer w;
    Tokenizer    *t;

    (void)state;
    w = byte_level_keys("smollm");
    key_u32(&w, KEY("bos_token_id"), 0);
    t = tokenizer_of_keys(&w);
    check_ids(t, "ab11<u>", IDS(5, 3, 3, 7));
    assert_int_equal(tokenizer_begin(t), 0);
    assert_int_equal(t->before.count, 0);
    check_piece(t, 0, "");
    check_piece(t, 7, "<u>");
    tokenizer_free(t);
    w = byte_level_keys("gpt-2");
    key_u32(&w, KEY("bos_token_id"), 0);
    key_bool(&w, KEY("add_bos_token"), 1);
    t = tokenizer_of_keys(&w);
    check_ids(t, "ab11", IDS(5, 4));
    assert_int_equal(t->before.count, 1);
    assert_string_equal(tokenizer_notes(t), "");
    tokenizer_free(t);
    w = byte_level_keys("llama-bpe");
    key_u32(&w, KEY("bos_token_id"), 0);
    t = tokenizer_of_keys(&w);
    assert_int_equal(t->before.count, 1); /* older files do not say so */
    tokenizer_free(t);
    key_bool(&w, KEY("add_bos_token"), 0);
    t = tokenizer_of_keys(&w);
    assert_int_equal(t->before.count, 0);
    tokenizer_free(t);
    w = byte_level_keys(NULL);
    t = tokenizer_of_keys(&w);
    assert_non_null(strstr(tokenizer_notes(t), "tokenizer.ggml.pre"));
    tokenizer_free(t);
    w = byte_level_keys("tekken");
    refuse_keys(&w, "tokenizer.ggml.pre|tekken|smollm|--ids");
}

static Writer score_keys(const char *model)
{
    static const char *const tokens[] = { "<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "▁",
                                          "a",     "b",   "▁a",   "ab",     "▁ab" };
    Writer w = { 0 };

    key_text(&w, KEY("model"), model);
    key_texts(&w, KEY("tokens"), 11, tokens);
    key_types(&w, 11, (const int32_t[]){ 2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1 });
    key_scores(&w, 11, (const float[]){ 0, 0, 0, -20, -20, -4, -5, -6, -2, -1, -3 });
    key_u32(&w, KEY("bos_token_id"), 1);
    key_u32(&w, KEY("eos_token_id"), 2);
    key_u32(&w, KEY("unknown_token_id"), 0);
    return w;
}

static void gguf_joins_by_score(void **state)
{
    static Writer w;
    Tokenizer    *t;

    (void)state;
    w = score_keys("llama");
    t = tokenizer_of_keys(&w);
    assert_string_equal(tokenizer_kind(t), "BPE by score");
    check_ids(t, "ab", IDS(10)); /* ab first, then with its blank */
    check_ids(t, "aab", IDS(8, 9));
    check_ids(t, "\xC3\xA9x", IDS(5, 3, 4, 0));
    check_ids(t, "</s>ab", IDS(2, 10)); /* each stretch has its blank */
    check_ids(t, "", NOTHING);
    assert_int_equal(t->before.count, 1);
    assert_int_equal(t->after.count, 0);
    tokenizer_free(t);
    w = score_keys("t5");
    key_bool(&w, KEY("add_space_prefix"), 0);
    t = tokenizer_of_keys(&w);
    assert_string_equal(tokenizer_kind(t), "unigram");
    check_ids(t, "ab ab", IDS(9, 10));
    assert_int_equal(t->before.count, 0);
    assert_int_equal(t->after.count, 1); /* </s> ends a text unless the file says otherwise */
    tokenizer_free(t);
}

static void gguf_writes_words_the_other_way(void **state)
{
    static const char *const tokens[] = { "[CLS]", "[SEP]", "[UNK]", "▁a", "b", "▁[", "▁#" };
    static Writer w;
    Tokenizer    *t;

    (void)state;
    w = (Writer){ 0 };
    key_text(&w, KEY("model"), "bert");
    key_texts(&w, KEY("tokens"), 7, tokens);
    key_types(&w, 7, (const int32_t[]){ 3, 3, 3, 1, 1, 1, 1 });
    t = tokenizer_of_keys(&w);
    check_ids(t, "Ab [ b # [SEP]", IDS(3, 4, 5, 2, 6, 1));
    assert_string_equal(tokenizer_piece(t, 4), "##b");
    assert_int_equal(tokenizer_begin(t), 0);
    assert_int_equal(tokenizer_end(t), 1);
    tokenizer_free(t);
}

static void bad_keys_are_refused(void **state)
{
    static const char *const tokens[] = { "a", "b", "ab" }, *const bytes[] = { "\xFF" };
    static const char *const merges[] = { "a b", "ab" }, *const strange[] = { "a c" };
    static Writer w;
    Tokenizer    *t;

    (void)state;
    w = (Writer){ 0 };
    refuse_keys(&w, "tokenizer.ggml.model|missing");
    key_text(&w, KEY("model"), "rwkv");
    refuse_keys(&w, "rwkv|gpt2, llama, t5, bert");
    w = (Writer){ 0 };
    key_text(&w, KEY("model"), "gpt2");
    refuse_keys(&w, "tokens");
    key_texts(&w, KEY("tokens"), 3, tokens);
    refuse_keys(&w, "merges");
    key_texts(&w, KEY("merges"), 2, merges);
    refuse_keys(&w, "merges|entry 1|\"ab\"");
    w = (Writer){ 0 };
    key_text(&w, KEY("model"), "gpt2");
    key_texts(&w, KEY("tokens"), 3, tokens);
    key_texts(&w, KEY("merges"), 1, strange);
    t = tokenizer_of_keys(&w);
    assert_non_null(strstr(tokenizer_notes(t), "1 merges"));
    tokenizer_free(t);
    key_u32(&w, KEY("eos_token_id"), 3);
    refuse_keys(&w, "eos_token_id|3|0 to 2");
    w = (Writer){ 0 };
    key_text(&w, KEY("model"), "gpt2");
    key_texts(&w, KEY("tokens"), 1, bytes);
    refuse_keys(&w, "tokens|token 0|UTF-8");
    w = score_keys("llama");
    w.keys_size = 0, w.key_count = 0;
    key_text(&w, KEY("model"), "llama");
    key_texts(&w, KEY("tokens"), 3, tokens);
    refuse_keys(&w, "scores");
    key_scores(&w, 3, (const float[]){ 0, __builtin_nanf(""), 0 });
    refuse_keys(&w, "scores|entry 1");
    key_types(&w, 2, (const int32_t[]){ 1, 1 });
    refuse_keys(&w, "token_type|3 numbers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_of_words_is_wordpiece),
        cmocka_unit_test(a_long_token_is_given_whole),
        cmocka_unit_test(vocab_json_and_merges_are_byte_level),
        cmocka_unit_test(bad_folders_are_refused),
        cmocka_unit_test(gguf_names_its_split),
        cmocka_unit_test(gguf_joins_by_score),
        cmocka_unit_test(gguf_writes_words_the_other_way),
        cmocka_unit_test(bad_keys_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
