/* test_model_token.c -- tokenizers: ids of texts, tokens of ids, refusals.  Folders and GGUF keys:
 * test_model_token_files.c.
 *
 * `test_model_token --encode PATH` prints the ids of the JSON strings on standard input, a line
 * each; --bare leaves out the tokens around a text.
 */
#include "token_fixture.h"

#include <stdlib.h>

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

/* ---- ids of the tokenizers library ------------------------------------------------ */

static json_t *data_of(const char *name)
{
    const char  *root = getenv("ATTNSCOPE_ORACLE");
    char         path[4096];
    json_error_t why;
    json_t      *data;

    snprintf(path, sizeof(path), "%s/../model/token/%s.json", root ? root : "tests/oracle", name);
    data = json_load_file(path, JSON_ALLOW_NUL, &why);
    CHECK(data, "%s: %s", path, why.text);
    return data;
}

/* {"tokenizer": tokenizer.json, "texts": [[text, ids, ids without the tokens around], ...]},
 * written by tokenizers 0.23 from tokenizers that it trained on a few lines. */
static void check_trained(const char *name, const char *kind)
{
    json_t    *data = data_of(name), *texts = json_object_get(data, "texts"), *entry;
    char      *json = json_dumps(json_object_get(data, "tokenizer"), 0);
    Tokenizer *t = tokenizer_of(json);
    size_t     i;

    assert_string_equal(tokenizer_kind(t), kind);
    assert_string_equal(tokenizer_notes(t), "");
    assert_true(json_array_size(texts) > 30);
    json_array_foreach(texts, i, entry) {
        check_json(t, json_array_get(entry, 0), true, json_array_get(entry, 1));
        check_json(t, json_array_get(entry, 0), false, json_array_get(entry, 2));
    }
    tokenizer_free(t);
    free(json);
    json_decref(data);
}

static void ids_are_those_of_the_tokenizers_library(void **state)
{
    (void)state;
    check_trained("gpt2", "byte-level BPE");
    check_trained("smollm", "byte-level BPE");
    check_trained("llama3", "byte-level BPE");
    check_trained("qwen2", "byte-level BPE");
    check_trained("fallback", "BPE with byte fallback");
    check_trained("unigram", "unigram");
    check_trained("wordpiece", "WordPiece");
    check_trained("cased", "WordPiece");
}

static void check_real(const char *key, const char *folder, const char *name)
{
    json_t    *data = data_of("real"), *entry;
    Error      err = ERROR_INIT;
    char       path[4096];
    Tokenizer *t;
    size_t     i;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (access(path, F_OK) != 0) {
        printf("skipped: %s is not there\n", path);
        json_decref(data);
        return;
    }
    t = load(path, &err);
    CHECK(t, "%s", err.text);
    json_array_foreach(json_object_get(data, key), i, entry)
        check_json(t, json_array_get(entry, 0), true, json_array_get(entry, 1));
    tokenizer_free(t);
    json_decref(data);
}

static void ids_of_real_vocabularies(void **state)
{
    const char *folder = getenv("ATTNSCOPE_MODELS");

    (void)state;
    if (!folder) {
        printf("skipped: ATTNSCOPE_MODELS names no folder of models\n");
        return;
    }
    check_real("smollm2", folder, "SmolLM2-135M-Instruct.Q4_1.gguf");
    check_real("minilm", folder, "all-MiniLM-L6-v2");
}

/* ---- byte-level BPE --------------------------------------------------------------- */

#define LEVEL(regex) "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":" regex "}"
#define BPE(vocab, merges, more)                                                               \
    "\"model\":{\"type\":\"BPE\"," more "\"vocab\":" vocab ",\"merges\":" merges "}"
#define LETTERS "\"a\":0,\"b\":1,\"c\":2,\"Ġ\":3,\"ab\":4,\"bc\":5,\"abc\":6,\"aa\":7,\"ĠĠ\":8"
#define BYTE_LEVEL(vocab, merges, more)                                                        \
    "{" BPE(vocab, merges, more) ",\"pre_tokenizer\":" LEVEL("true") "}"

static void lowest_rank_is_joined_first_then_the_leftmost(void **state)
{
    Tokenizer *t = tokenizer_of(BYTE_LEVEL(
        "{" LETTERS "}", "[\"b c\",\"a b\",[\"a\",\"bc\"],\"a a\",[\"Ġ\",\"Ġ\"]]", ""));

    (void)state;
    check_ids(t, "abc", IDS(6));
    check_ids(t, "abab", IDS(4, 4));
    check_ids(t, "aaa", IDS(7, 0));
    check_ids(t, "aab", IDS(0, 4));
    check_ids(t, "", NOTHING);
    check_ids(t, "x\x01y", NOTHING); /* no token, so dropped */
    check_ids(t, "axb", IDS(4));     /* before joining */
    check_ids(t, "   a", IDS(8, 3, 0));
    check_bytes_ids(t, "a\0b", 3, IDS(0, 1)); /* NUL is a piece of its own */
    assert_int_equal(tokenizer_size(t), 9);
    assert_int_equal(tokenizer_begin(t), -1);
    assert_int_equal(tokenizer_end(t), -1);
    check_piece(t, 3, " ");
    check_piece(t, 6, "abc");
    check_piece(t, 9, "");
    check_piece(t, -1, "");
    tokenizer_free(t);
}

static void whole_pieces_go_before_merges(void **state)
{
    const char *vocab = "{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"abc\":4}";
    char        json[512];

    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        Tokenizer *t;

        snprintf(json, sizeof(json), "{\"model\":{\"type\":\"BPE\",\"ignore_merges\":%s,"
                 "\"vocab\":%s,\"merges\":[\"a b\"]},\"pre_tokenizer\":" LEVEL("true") "}",
                 whole ? "true" : "false", vocab);
        t = tokenizer_of(json);
        if (whole)
            check_ids(t, "abc", IDS(4));
        else
            check_ids(t, "abc", IDS(3, 2));
        tokenizer_free(t);
    }
}

#define ADDED(id, text, special)                                                               \
    "{\"id\":" id ",\"content\":\"" text "\",\"special\":" special ",\"lstrip\":false,"        \
    "\"rstrip\":false,\"single_word\":false,\"normalized\":false}"

static void longest_added_token_is_taken_first(void **state)
{
    Tokenizer *t = tokenizer_of(
        "{\"added_tokens\":[" ADDED("20", "<a>", "true") "," ADDED("21", "<a><b>", "false") ","
        ADDED("22", "b", "false") "]," BPE("{" LETTERS "}", "[\"a b\"]", "") ",\"pre_tokenizer\":"
        LEVEL("true") "}");

    (void)state;
    check_ids(t, "a<a><b>a<a>", IDS(0, 21, 0, 20));
    check_ids(t, "abc", IDS(0, 1, 2)); /* b is taken out, by its id in the vocabulary */
    check_ids(t, "<a", IDS(0));
    assert_int_equal(tokenizer_size(t), 22);
    assert_string_equal(tokenizer_piece(t, 21), "<a><b>");
    assert_string_equal(tokenizer_piece(t, 15), "");
    check_piece(t, 21, "<a><b>");
    check_piece(t, 20, "");
    tokenizer_free(t);
}

/* What a plain search for the best pair gives. */
static int64_t join_plainly(const Bpe *b, int32_t *ids, int64_t count)
{
    for (;;) {
        int64_t best = -1;
        int32_t rank = INT32_MAX, id = -1;

        for (int64_t i = 0; i + 1 < count; i++)
            for (int64_t s = 0; s < b->slots; s++) {
                const Merge *m = &b->merges[s];

                if (m->left == ids[i] && m->right == ids[i + 1] && m->rank < rank)
                    best = i, rank = m->rank, id = m->id;
            }
        if (best < 0)
            return count;
        ids[best] = id;
        memmove(ids + best + 1, ids + best + 2, (size_t)(count - best - 2) * sizeof(*ids));
        count--;
    }
}

static void heap_joins_as_a_plain_search_does(void **state)
{
    Tokenizer *t = tokenizer_of(BYTE_LEVEL(
        "{\"a\":0,\"b\":1,\"aa\":2,\"ab\":3,\"ba\":4,\"aab\":5,\"abab\":6,\"baa\":7,\"aaaa\":8}",
        "[\"b a\",\"a b\",\"a a\",\"aa b\",\"ab ab\",\"b aa\",\"ba a\",\"a ab\",\"aa aa\"]", ""));
    uint32_t   seed = 1;

    (void)state;
    for (int round = 0; round < 300; round++) {
        char      text[64];
        int32_t   ids[64];
        int64_t   count = 1 + round % 60;
        Error     err = ERROR_INIT;
        TokenList list;

        for (int64_t i = 0; i < count; i++) {
            seed = seed * 1664525u + 1013904223u;
            ids[i] = (int32_t)(seed >> 30 & 1);
            text[i] = ids[i] ? 'b' : 'a';
        }
        assert_true(tokenizer_encode(t, text, count, true, &list, &err));
        count = join_plainly(&t->bpe, ids, count);
        assert_int_equal(list.count, count);
        assert_memory_equal(list.ids, ids, (size_t)count * sizeof(*ids));
        token_list_free(&list);
    }
    tokenizer_free(t);
}

static void check_split(const char *pattern, const char *text, const char *pieces)
{
    Splitter   s = { 0 };
    Pieces     in = { 0 }, out = { 0 };
    RegexWork *work = regex_work_new();
    Error      err = ERROR_INIT;
    Text       joined = { 0 };

    CHECK(splitter_add_regex(&s, pattern, strlen(pattern), MATCH_ISOLATED, &err) &&
              splitter_run(&s, text, strlen(text), true, work, &in, &out, &err), "%s", err.text);
    for (int64_t i = 0; i < out.count; i++) {
        text_add(&joined, i ? "|" : "");
        text_add_bytes(&joined, out.text.data + out.list[i].start, out.list[i].length);
    }
    assert_string_equal(text_str(&joined), pieces);
    text_free(&joined);
    pieces_free(&in);
    pieces_free(&out);
    regex_work_free(work);
    splitter_free(&s);
}

static void patterns_cut_as_their_authors_mean(void **state)
{
    const char *text = "a'S'll don't  12345\n\n x\r\n\ty '\xC5\xBF \xE1\xA0\x8E!";

    (void)state;
    check_split(split_gpt2, text,
                "a|'|S|'ll| don|'t| | 12345|\n\n| x|\r\n|\t|y| '|\xC5\xBF| \xE1\xA0\x8E!");
    check_split(split_llama3, text,
                "a|'S|'ll| don|'t| | |123|45|\n\n| x|\r\n|\ty| '|\xC5\xBF| \xE1\xA0\x8E!");
    check_split(split_qwen2, text,
                "a|'S|'ll| don|'t| | |1|2|3|4|5|\n\n| x|\r\n|\ty| '|\xC5\xBF| \xE1\xA0\x8E!");
    check_split(split_digits, "ab12\xC2\xBD" "c", "ab|1|2|\xC2\xBD|c");
    check_split("[^\\s]]+|x", "a]] x", "a]]| |x");
    check_split("[]\\w]+", "a]! \xCC\x81", "a]|! |\xCC\x81"); /* marks are of words */
    check_split("x*", "axxb", "a|xx|b");                      /* empty matches are none */
    check_split("\\S+", "a\xE1\xA0\x8E b", "a\xE1\xA0\x8E| |b");
}

/* In Oniguruma brackets within brackets are a set of their own, which joins the outer one. */
static void sets_within_brackets_are_joined(void **state)
{
    (void)state;
    check_split(" ?[^(\\s|[.,!?\xE2\x80\xA6])]+", "Hi, you (x)\xE2\x80\xA6", /* BLOOM's */
                "Hi|,| you| (|x|)\xE2\x80\xA6");
    check_split("[a[b]-d]+", "abcd-", "ab|c|d-"); /* - is no range there */
    check_split("[a-[b]]+", "a-b`", "a-b|`");
    check_split("[[:digit:]\\s]+", "a1 2[]", "a|1 2|[]");
    check_split("[x[]y]]+", "x]yz", "x]y|z");
}

/* How many steps a match may take grows with the piece. */
static void a_long_piece_is_one_match(void **state)
{
    enum { LENGTH = 5001 };
    char text[LENGTH];

    (void)state;
    for (int i = 0; i < LENGTH - 1; i++)
        text[i] = i % 2 ? 'b' : 'a';
    text[LENGTH - 1] = '\0';
    check_split("(?:a|b)+", text, text);
}

/* ---- BPE over characters, unigram -------------------------------------------------- */

#define MARKS                                                                                  \
    ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","           \
    "\"prepend\":\"▁\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"                 \
    "\"content\":\"▁\"}]}}"
#define CHARACTERS                                                                             \
    "{\"<unk>\":0,\"▁\":1,\"a\":2,\"▁a\":3,\"<0xC3>\":4,\"<0xA9>\":5,\"<0x0A>\":6}"

static void unknown_characters_become_bytes(void **state)
{
    Tokenizer *t = tokenizer_of("{" BPE(CHARACTERS, "[\"▁ a\"]",
                                        "\"byte_fallback\":true,\"unk_token\":\"<unk>\","
                                        "\"fuse_unk\":true,") MARKS);
    Tokenizer *apart = tokenizer_of("{" BPE(CHARACTERS, "[\"▁ a\"]", "\"unk_token\":\"<unk>\",")
                                    MARKS);

    (void)state;
    check_ids(t, "a a", IDS(3, 3));
    check_ids(t, "\xC3\xA9\n", IDS(1, 4, 5, 6));
    check_ids(t, "xy\xC3\xAA" "a", IDS(1, 0, 2));
    check_ids(t, "", NOTHING);
    check_ids(apart, "xya\xC3\xA9", IDS(1, 0, 0, 2, 0));
    assert_string_equal(tokenizer_kind(apart), "BPE over characters");
    check_piece(t, 3, " a");
    check_piece(t, 4, "\xC3");
    check_piece(t, 6, "\n");
    tokenizer_free(t);
    tokenizer_free(apart);
}

#define UNIGRAM(more)                                                                          \
    "{\"model\":{\"type\":\"Unigram\"," more "\"vocab\":[[\"<unk>\",0],[\"▁\",-2],"            \
    "[\"a\",-3],[\"b\",-3],[\"ab\",-4],[\"ba\",-4],[\"▁a\",-4.5],[\"aba\",-6.5]]},"            \
    "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":"      \
    "\"always\",\"split\":true}}"

static void unigram_takes_the_largest_sum(void **state)
{
    Tokenizer *t = tokenizer_of(UNIGRAM("\"unk_id\":0,")), *strict = tokenizer_of(UNIGRAM(""));
    Error      err = ERROR_INIT;
    TokenList  list;

    (void)state;
    check_ids(t, "ab", IDS(1, 4));
    check_ids(t, "b  ab", IDS(1, 3, 1, 1, 4));
    check_ids(t, "aba", IDS(1, 7)); /* -8.5, against -8.5 of the three that come later */
    check_ids(t, "axyb", IDS(6, 0, 3));
    check_ids(t, "xy zz", IDS(1, 0, 1, 0));
    check_ids(t, "", NOTHING);
    check_piece(t, 6, " a");
    assert_false(tokenizer_encode(strict, "axb", 3, true, &list, &err));
    check_words(&err, "\"x\"|--ids");
    tokenizer_free(t);
    tokenizer_free(strict);
}

/* ---- WordPiece -------------------------------------------------------------------- */

#define BERT(normalizer)                                                                       \
    "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\"" \
    ":\"##\",\"max_input_chars_per_word\":6,\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,"   \
    "\"cafe\":3,\"a\":4,\"##b\":5,\"##bc\":6,\"!\":7,\"i\":8,\"日\":9,\"$\":10,\"##i\":11,"    \
    "\"café\":12}},\"normalizer\":{\"type\":\"BertNormalizer\"," normalizer "},"               \
    "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":{\"type\":"          \
    "\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"[CLS]\",\"type_id\":0}},"  \
    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"[SEP]\","         \
    "\"type_id\":0}}],\"special_tokens\":{\"[CLS]\":{\"ids\":[1]},\"[SEP]\":{\"ids\":[2]}}}}"
#define UNCASED                                                                                \
    "\"clean_text\":true,\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true"
#define CASED                                                                                  \
    "\"clean_text\":true,\"handle_chinese_chars\":true,\"strip_accents\":null,"                \
    "\"lowercase\":false"

static void words_become_pieces(void **state)
{
    Tokenizer *t = tokenizer_of(BERT(UNCASED)), *cased = tokenizer_of(BERT(CASED));

    (void)state;
    check_ids(t, "Café! abc", IDS(3, 7, 4, 6));
    check_ids(t, "ab\xE6\x97\xA5" "a", IDS(4, 5, 9, 4));
    check_ids(t, "abx a", IDS(0, 4)); /* a whole word is unknown */
    check_ids(t, "abbbbb abbbbbb", IDS(4, 5, 5, 5, 5, 5, 0));
    check_ids(t, "\xC4\xB0 a\xCC\x81\xCC\xA3" "b", IDS(8, 4, 5));
    check_ids(t, "$a\xE2\x82\xAC", IDS(10, 0)); /* ASCII's symbols are alone, the euro is not */
    check_ids(t, " \t\x01\xEF\xBF\xBD\xE2\x80\x8B ", NOTHING);
    check_ids(cased, "Café café", IDS(0, 12));
    assert_int_equal(tokenizer_begin(t), 1);
    assert_int_equal(tokenizer_end(t), 2);
    check_piece(t, 6, "bc");
    check_piece(t, 4, "a");
    tokenizer_free(t);
    tokenizer_free(cased);
}

/* ---- refusals --------------------------------------------------------------------- */

#define SIMPLE BPE("{\"a\":0,\"b\":1}", "[]", "")
#define PRE(part) "{" SIMPLE ",\"pre_tokenizer\":" part "}"

static void what_is_not_read_is_named(void **state)
{
    (void)state;
    refuse_json("{}", "model|BPE, Unigram, WordPiece");
    refuse_json("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{}}}", "WordLevel");
    refuse_json("{\"model\":{\"type\":\"\\u001b[1m\"}}", "model");
    refuse_json(PRE("{\"type\":\"Whitespace\"}"), "pre_tokenizer|\"Whitespace\"|--ids");
    refuse_json(PRE("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":"
                    "\"Contiguous\"}"), "Split|Contiguous");
    refuse_json(PRE("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":"
                    "\"Isolated\",\"invert\":true}"), "invert");
    refuse_json(PRE("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":"
                    "\"Isolated\"}"), "pattern|\"(\"");
    refuse_json(PRE("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a-z&&[^b]]\"},\"behavior\":"
                    "\"Isolated\"}"),
                "pattern|[a-z&&[^b]]|&&|--ids");
    refuse_json(PRE("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a[^b]]\"},\"behavior\":"
                    "\"Isolated\"}"),
                "pattern|[a[^b]]|[^|--ids");
    refuse_json(PRE("{\"type\":\"Metaspace\",\"prepend_scheme\":\"second\"}"),
                "Metaspace|second|always, first, never|--ids");
    refuse_json(PRE("{\"type\":\"Split\"}"), "Split|pattern");
    refuse_json("{" SIMPLE ",\"normalizer\":{\"type\":\"Nmt\"}}", "normalizer|\"Nmt\"");
    refuse_json("{" SIMPLE ",\"post_processor\":{\"type\":\"Other\"}}", "post_processor|Other");
    refuse_json("{" SIMPLE ",\"added_tokens\":[{\"id\":5,\"content\":\"<mask>\",\"lstrip\":true}]}",
                "added_tokens[0]|<mask>|lstrip");
    refuse_json("{" BPE("{\"a\":0}", "[]", "\"end_of_word_suffix\":\"</w>\",") "}", "</w>");
    refuse_json("{" BPE("{\"a\":0}", "[]", "\"dropout\":0.1,") "}", "dropout");
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    refuse_json("{" BPE("{}", "[]", "") "}", "no token");
    refuse_json("{" BPE("[]", "[]", "") "}", "model.vocab");
    refuse_json("{" BPE("{\"a\":\"0\"}", "[]", "") "}", "\"a\"|id");
    refuse_json("{" BPE("{\"a\":99999999}", "[]", "") "}", "\"a\"|id");
    refuse_json("{" BPE("{\"a\":0,\"b\":0}", "[]", "") "}", "\"a\"|\"b\"|id 0");
    refuse_json("{" BPE("{\"a\":0}", "{}", "") "}", "model.merges");
    refuse_json("{" BPE("{\"a\":0}", "[\"a\"]", "") "}", "merges[0]");
    refuse_json("{" BPE("{\"a\":0}", "[\" a\"]", "") "}", "merges[0]");
    refuse_json("{" BPE("{\"a\":0}", "[\"a  a\"]", "") "}", "merges[0]");
    refuse_json("{" BPE("{\"a\":0}", "[\"a a\"]", "") "}", "merges[0]|not in the vocabulary");
    refuse_json("{" BPE("{\"a\":0}", "[[\"a\",1]]", "") "}", "merges[0]");
    refuse_json("{" BPE("{\"a\":0}", "[]", "\"unk_token\":\"?\",") "}", "unk_token|\"?\"");
    refuse_json("{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", "model.vocab");
    refuse_json("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", "vocab[0]");
    refuse_json("{\"model\":{\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"a\",0]]}}", "unk_id");
    refuse_json("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}", "[UNK]");
    refuse_json("{" SIMPLE ",\"added_tokens\":[{\"id\":-1,\"content\":\"x\"}]}", "added_tokens[0]");
    refuse_json("{" SIMPLE ",\"added_tokens\":[{\"id\":3}]}", "added_tokens[0]|content");
    refuse_json("{" SIMPLE ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":"
                "[{\"SpecialToken\":{\"id\":\"x\"}}]}}", "special_tokens|\"x\"");
    refuse_json("{" SIMPLE ",\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"x\",7],"
                "\"sep\":[\"y\",0]}}",
                "post_processor|id 7|0 to 1");
}

static void bad_texts_are_refused(void **state)
{
    Tokenizer *t = tokenizer_of(
        PRE("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a+)+$\"},\"behavior\":\"Isolated\"}"));
    Tokenizer *ascii = tokenizer_of(
        "{" SIMPLE ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"}}");
    Error      err = ERROR_INIT;
    TokenList  list;

    (void)state;
    assert_false(tokenizer_encode(t, "ab\xC3", 3, true, &list, &err));
    check_words(&err, "byte 2|0xc3|UTF-8");
    assert_false(tokenizer_encode(t, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 48, true,
                                  &list, &err));
    check_words(&err, "pattern|limit|--ids");
    assert_false(tokenizer_encode(ascii, "a\xC3\xA9", 3, true, &list, &err));
    check_words(&err, "byte 1|Precompiled|--ids");
    check_ids(ascii, "ab", IDS(0, 1));
    assert_non_null(strstr(tokenizer_notes(ascii), "Precompiled"));
    tokenizer_free(t);
    tokenizer_free(ascii);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_those_of_the_tokenizers_library),
        cmocka_unit_test(ids_of_real_vocabularies),
        cmocka_unit_test(lowest_rank_is_joined_first_then_the_leftmost),
        cmocka_unit_test(whole_pieces_go_before_merges),
        cmocka_unit_test(longest_added_token_is_taken_first),
        cmocka_unit_test(heap_joins_as_a_plain_search_does),
        cmocka_unit_test(patterns_cut_as_their_authors_mean),
        cmocka_unit_test(sets_within_brackets_are_joined),
        cmocka_unit_test(a_long_piece_is_one_match),
        cmocka_unit_test(unknown_characters_become_bytes),
        cmocka_unit_test(unigram_takes_the_largest_sum),
        cmocka_unit_test(words_become_pieces),
        cmocka_unit_test(what_is_not_read_is_named),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(bad_texts_are_refused),
    };

    if (argc >= 3 && strcmp(argv[1], "--encode") == 0)
        return encode_lines(argv[2], argc < 4 || strcmp(argv[3], "--bare") != 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
