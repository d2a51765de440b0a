/* test_profile_record.c -- the record's JSON and text, its copy, its environment. */
#include "profile_fixture.h"
#include "profile/results.h"

#include <unistd.h>

static Record filled(void)
{
    Record r = { .mechanism = "bigbird", .position = "none", .device = "cpu", .n = 64, .m = 64,
                 .d = 16, .e = 16, .heads = 2, .seed = 7, .threads = 2,
                 .quality = { .worst_query = -1, .worst_head = -1 } };

    r.params = strdup("{\"window\":3}");
    r.counted = (Flops){ .score = 100, .mix = 200, .overhead = 30, .position = 4 };
    r.time.samples = calloc(3, sizeof(double));
    r.time.count = 3;
    for (int i = 0; i < 3; i++)
        r.time.samples[i] = 3 - i;
    timing_summarise(&r.time);
    r.arena_peak = number_of(4096);
    r.stages = calloc(2, sizeof(*r.stages));
    r.stage_count = 2;
    r.stages[0] = (StageRecord){ .name = "draw", .iteration = -1, .time_ms = number_of(0.5) };
    r.stages[1] = (StageRecord){ .name = "attend", .iteration = 4, .time_ms = number_of(1.5),
                                 .flops = { .score = 100 }, .bytes = { 10, 20 } };
    record_warn(&r, "first \"warning\"");
    record_warn(&r, "%d%% \t second", 5);
    return r;
}

TEST(json_holds_the_contract)
{
    static const char *const keys[] = {
        "mechanism", "params", "n", "m", "d", "heads", "causal", "position", "seed", "device",
        "precision",
        "threads", "status", "message", "flops.counted", "flops.closed_form", "flops.hardware",
        "bytes", "time_ms.median", "time_ms.q1", "time_ms.q3", "time_ms.min", "time_ms.samples",
        "time_ms.first", "memory.arena_peak", "memory.heap_peak", "memory.device_peak",
        "memory.rss_peak", "quality.mass_mean", "quality.mass_p5", "quality.mass_min",
        "quality.output_error", "quality.total_variation", "quality.kl", "stages", "environment",
        "host", "time", "commit", "record_version",
    };
    static const char *const stage_keys[] = { "name", "iteration", "time_ms", "flops", "bytes",
                                              "heap_peak" };
    Record  r = filled();
    json_t *root = record_parsed(&r), *stage;

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        json_at(root, keys[i]);
    stage = json_array_get(json_at(root, "stages"), 1);
    for (size_t i = 0; i < sizeof(stage_keys) / sizeof(*stage_keys); i++)
        json_at(stage, stage_keys[i]);
    assert_int_equal(json_integer_value(json_at(root, "params.window")), 3);
    assert_string_equal(json_string_value(json_at(root, "status")), "OK");
    CHECK_WITHIN(json_number_value(json_at(root, "flops.counted")), 334, 0);
    CHECK_WITHIN(json_number_value(json_at(root, "flops.counted_parts.mixing")), 200, 0);
    assert_int_equal(json_array_size(json_at(root, "time_ms.samples")), 3);
    CHECK_WITHIN(json_number_value(json_array_get(json_at(root, "time_ms.samples"), 0)), 3,
                       0);
    CHECK_WITHIN(json_number_value(json_at(root, "time_ms.median")), 2, 0);
    assert_int_equal(json_integer_value(json_at(stage, "iteration")), 4);
    CHECK_WITHIN(json_number_value(json_at(stage, "bytes")), 30, 0);
    assert_string_equal(json_string_value(json_array_get(json_at(root, "warnings"), 0)),
                        "first \"warning\"");
    assert_int_equal(json_array_size(json_at(root, "warnings")), 2);
    json_decref(root);
    record_free(&r);
}

TEST(json_has_the_quality_of_each_head)
{
    Record  r = filled();
    json_t *root, *heads;

    r.head_count = 2;
    r.by_head = calloc(2, sizeof(*r.by_head));
    assert_non_null(r.by_head);
    for (int h = 0; h < 2; h++) {
        r.by_head[h].mass_mean = number_of(0.5 + 0.25 * h);
        r.by_head[h].worst_count = 2;
        r.by_head[h].worst[1] = (WorstQuery){ .query = 4 + h, .head = h, .value = 0.125 };
    }
    root = record_parsed(&r);
    heads = json_at(root, "quality.heads");
    assert_int_equal(json_array_size(heads), 2);
    for (int h = 0; h < 2; h++) {
        json_t *head = json_array_get(heads, (size_t)h), *worst;

        assert_int_equal(json_integer_value(json_at(head, "head")), h);
        CHECK_WITHIN(json_number_value(json_at(head, "mass_mean")), 0.5 + 0.25 * h, 0);
        worst = json_array_get(json_at(head, "worst"), 1);
        assert_int_equal(json_integer_value(json_at(worst, "query")), 4 + h);
        CHECK_WITHIN(json_number_value(json_at(worst, "value")), 0.125, 0);
    }
    assert_true(json_is_array(json_at(root, "stages"))); /* beside it, not in it */
    json_decref(root);
    record_free(&r);
}

TEST(not_measured_is_null)
{
    static const char *const nulls[] = {
        "message", "flops.closed_form", "flops.hardware", "flops.closed_form_is_bound",
        "time_ms.first", "memory.heap_peak", "memory.device_peak", "memory.rss_peak",
        "quality.mass_mean", "quality.output_error", "quality.total_variation",
        "quality.worst_query", "cpu_ms",
    };
    static const char *const failed[] = { "flops.counted", "flops.counted_parts.score", "bytes",
                                          "time_ms.median", "time_ms.samples" };
    Record  r = filled(), empty = { .status = RECORD_OOM, .message = "too much" };
    json_t *root = record_parsed(&r);

    for (size_t i = 0; i < sizeof(nulls) / sizeof(*nulls); i++)
        if (!json_is_null(json_at(root, nulls[i])))
            fail_msg("%s is not null", nulls[i]);
    assert_true(json_is_null(json_at(json_array_get(json_at(root, "stages"), 0), "iteration")));
    json_decref(root);
    root = record_parsed(&empty);
    for (size_t i = 0; i < sizeof(failed) / sizeof(*failed); i++)
        if (!json_is_null(json_at(root, failed[i])))
            fail_msg("%s is not null", failed[i]);
    assert_string_equal(json_string_value(json_at(root, "status")), "OOM");
    assert_string_equal(json_string_value(json_at(root, "message")), "too much");
    json_decref(root);
    record_free(&r);
    record_free(&empty);
}

TEST(a_number_that_is_none_is_null)
{
    Record  r = filled();
    json_t *root;

    r.quality.output_error = number_of((double)NAN);
    r.cpu_ms = number_of((double)INFINITY);
    root = record_parsed(&r);
    assert_true(json_is_null(json_at(root, "quality.output_error")));
    assert_true(json_is_null(json_at(root, "cpu_ms")));
    json_decref(root);
    record_free(&r);
}

TEST(text_is_short_and_fits_a_terminal)
{
    Record r = filled();
    Text   text = { 0 };
    char  *line, *rest = NULL;

    record_text(&r, &text);
    assert_non_null(strstr(text_str(&text), "bigbird"));
    assert_non_null(strstr(text_str(&text), "attend 4"));
    assert_non_null(strstr(text_str(&text), "75.0"));
    assert_non_null(strstr(text_str(&text), "first \"warning\""));
    for (line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        assert_true(strlen(line) <= 80);
    text_clear(&text);
    r.status = RECORD_UNSUPPORTED;
    snprintf(r.message, sizeof(r.message), "no causal form");
    record_text(&r, &text);
    assert_non_null(strstr(text_str(&text), "UNSUPPORTED no causal form"));
    assert_null(strstr(text_str(&text), "GF/s"));
    text_free(&text);
    record_free(&r);
    record_free(&r);
}

static void expect_text(const Record *r, const char *expected)
{
    Text text = { 0 };

    record_text(r, &text);
    CHECK(strstr(text_str(&text), expected), "'%s' is not in:\n%s", expected, text_str(&text));
    text_free(&text);
}

/* Three digits or four, whatever the unit. */
TEST(times_have_as_many_digits_as_count)
{
    static const struct {
        double      ms;
        const char *text;
    } times[] = { { 0.04567, "45.67 us" },   { 0.1, "0.100 ms" },  { 9.5, "9.500 ms" },
                  { 10, "10.00 ms" },        { 99.5, "99.50 ms" }, { 100, "100.0 ms" },
                  { 9999.4, "9999.4 ms" },   { 1e4, "10.00 s" },   { 123456, "123.46 s" } };

    for (size_t x = 0; x < sizeof(times) / sizeof(*times); x++) {
        Record r = filled();
        char   line[64];

        r.time.count = 1;
        r.time.median = number_of(times[x].ms);
        snprintf(line, sizeof(line), "  time     %s, one run\n", times[x].text);
        expect_text(&r, line);
        record_free(&r);
    }
}

TEST(the_text_shows_stages_and_the_worst_queries)
{
    Record r = filled();

    r.stages[0].iteration = 0; /* the first of several */
    r.quality.mass_mean = number_of(0.75);
    r.quality.worst_count = 6;
    for (int x = 0; x < 6; x++)
        r.quality.worst[x] = (WorstQuery){ .query = 10 + x, .head = x % 2, .value = 0.125 * x };
    expect_text(&r, "    draw 0              0.500 ms  25.0        0         -      -         -\n");
    expect_text(&r, "    attend 4            1.500 ms  75.0      100      30 B   3.33         -\n");
    expect_text(&r, "  quality  mass kept 0.7500 mean, - p5, - min\n");
    expect_text(&r, "           worst queries: 10@0 (0), 11@1 (0.125), 12@0 (0.25), 13@1 (0.375), "
                    "their mass kept\n");
    expect_text(&r, "  memory   arena 4.0 KiB, heap -, process -; traffic not counted\n");
    record_free(&r);
}

/* Of a run on a GPU: what it was on it, what the host added; nothing of a run that failed. */
TEST(a_gpu_has_lines_of_its_own)
{
    Record r = filled();
    Text   text = { 0 };

    r.gpu = device_profile_new(r.stage_count);
    assert_non_null(r.gpu);
    assert_false(device_idle_share(r.gpu, -1).valid);
    snprintf(r.gpu->name, sizeof(r.gpu->name), "H200");
    snprintf(r.gpu->source, sizeof(r.gpu->source), "CUPTI 13.0");
    r.gpu->span_ms = number_of(4);
    r.gpu->busy_ms = number_of(2.5);
    r.gpu->copy_ms = number_of(0.5);
    r.gpu->launches = 1;
    CHECK_WITHIN(device_idle_share(r.gpu, -1).value, 0.25, 0);
    assert_false(device_idle_share(r.gpu, 0).valid);
    record_gpu_text(&r, &text);
    assert_string_equal(text_str(&text),
                        "  gpu      H200, CUPTI 13.0: events, activity\n"
                        "           no counters: not asked for\n"
                        "           4.000 ms a run on its own clock [events]\n"
                        "           1 launch in 2.500 ms, copies in 0.500 ms [activity]\n"
                        "           1.000 ms, 25 %, without either: the host's loops, launches, "
                        "waits\n");
    text_clear(&text);
    r.status = RECORD_FAILED;
    record_gpu_text(&r, &text);
    assert_string_equal(text_str(&text), "");
    text_free(&text);
    record_free(&r);
}

TEST(every_error_has_a_status)
{
    assert_int_equal(record_status_of(ERR_NONE), RECORD_OK);
    assert_int_equal(record_status_of(ERR_NOMEM), RECORD_OOM);
    assert_int_equal(record_status_of(ERR_UNSUPPORTED), RECORD_UNSUPPORTED);
    assert_int_equal(record_status_of(ERR_USAGE), RECORD_UNSUPPORTED);
    assert_int_equal(record_status_of(ERR_CANCELLED), RECORD_CANCELLED);
    assert_int_equal(record_status_of(ERR_DATA), RECORD_FAILED);
    assert_string_equal(record_status_name(RECORD_CANCELLED), "CANCELLED");
}

TEST(the_environment_names_the_machine)
{
    static const char *const keys[] = { "cpu", "cores", "memory", "openblas_core", "compiler",
                                        "kernel", "version", "warning" };
    Text    text = { 0 };
    Json    j = jsonw_to(&text);
    json_t *root;

    environment_json(&j);
    root = json_loads(text_str(&text), 0, NULL);
    assert_non_null(root);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        json_at(root, keys[i]);
    assert_true(json_integer_value(json_at(root, "cores")) >= 1);
    assert_true(json_integer_value(json_at(root, "memory")) > 1 << 20);
    if (environment_blas_warning())
        assert_string_equal(json_string_value(json_at(root, "warning")),
                            environment_blas_warning());
    json_decref(root);
    text_free(&text);
}

TEST(a_record_says_where_when_and_by_which_build)
{
    Record  r = filled();
    json_t *root = record_parsed(&r);
    char    host[256] = "";

    gethostname(host, sizeof(host) - 1);
    assert_string_equal(json_string_value(json_at(root, "host")), host);
    assert_true(json_is_null(json_at(root, "time"))); /* not known */
    if (*environment_commit())
        assert_string_equal(json_string_value(json_at(root, "commit")), environment_commit());
    else
        assert_true(json_is_null(json_at(root, "commit")));
    assert_int_equal(json_integer_value(json_at(root, "record_version")), RECORD_VERSION);
    json_decref(root);
    r.ended = 951782400; /* a leap day */
    root = record_parsed(&r);
    assert_string_equal(json_string_value(json_at(root, "time")), "2000-02-29T00:00:00Z");
    json_decref(root);
    record_free(&r);
}

static void check_versions(const char *first, const char *second, const char *expected)
{
    Results a = { 0 }, b = { 0 };
    Text    note = { 0 }, lines[2] = { { 0 }, { 0 } };

    for (int i = 0; i < 2; i++) {
        const char *version = i ? second : first;

        text_addf(&lines[i], "{\"mechanism\":\"full\",\"status\":\"OK\"%s%s}",
                  *version ? ",\"record_version\":" : "", version);
        assert_true(results_add(i ? &b : &a, text_str(&lines[i]), lines[i].length, 0, NULL));
        text_free(&lines[i]);
    }
    results_note_versions(&a, &b, &note);
    if (*expected)
        assert_non_null(strstr(text_str(&note), expected));
    else
        assert_int_equal(note.length, 0);
    text_free(&note);
    results_free(&a);
    results_free(&b);
}

TEST(records_of_several_versions_are_named)
{
    check_versions("1", "1", "");
    check_versions("", "", "");
    check_versions("", "1", "record_version none to 1");
    check_versions("1", "7", "record_version 1 to 7");
    check_versions("7", "7", "records of version 7: this program knows versions up to 1");
}

/* ---- any record comes back ------------------------------------------------------------------- */

/* Any double but NaN and infinities, also the least and the largest. */
static double any_double(Rng *rng)
{
    double value;

    do {
        uint64_t bits = rng_next(rng);

        memcpy(&value, &bits, sizeof(value));
    } while (!isfinite(value));
    return value;
}

/* Quotes, characters of two and of four bytes.  A reader takes control characters out. */
static void any_text(Rng *rng, char *out, size_t size)
{
    static const char *const parts[] = { "a", "\"", "\\", "/", "\xC3\xA9",
                                         "\xF0\x9F\x98\x80", " ", "{", "," };
    size_t count = rng_below(rng, 6);

    strcpy(out, "x"); /* none is empty */
    for (size_t i = 0; i < count && strlen(out) + 5 < size; i++)
        strcat(out, parts[rng_below(rng, sizeof(parts) / sizeof(*parts))]);
}

static Record any_record(Rng *rng)
{
    Record r = { .device = "cpu", .n = (int64_t)(rng_next(rng) >> 12),
                 .heads = 1 + (int64_t)rng_below(rng, 99), .d = (int64_t)rng_below(rng, 9),
                 .seed = rng_next(rng) >> 1, .threads = 1 + (int)rng_below(rng, 64),
                 .causal = rng_below(rng, 2),
                 .quality = { .worst_query = -1, .worst_head = -1 } };
    Number *const numbers[] = { &r.cpu_ms, &r.quality.mass_mean, &r.quality.output_error };

    any_text(rng, r.mechanism, sizeof(r.mechanism));
    any_text(rng, r.position, sizeof(r.position));
    any_text(rng, r.input, sizeof(r.input));
    r.params = strdup("{}");
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (rng_below(rng, 4))
            *numbers[i] = number_of(any_double(rng));
    r.time = (Timing){ .count = 1, .samples = calloc(1, sizeof(double)),
                       .median = number_of(any_double(rng)) };
    r.time.samples[0] = r.time.median.value;
    return r;
}

static bool same_number(const ResultRow *row, const char *path, Number number)
{
    Number got = row_number(row, path);

    return got.valid == number.valid && (!number.valid || got.value == number.value);
}

/* NULL, or what of the record is another after it was written and read. */
static const char *lost_of(const Record *r)
{
    Results     rows = { 0 };
    Text        line = { 0 };
    Json        json = jsonw_to(&line);
    Error       err = ERROR_INIT;
    const char *lost = NULL;
    ResultRow  *row;

    record_json(r, &json);
    if (!text_ok(&line) || strchr(text_str(&line), '\n') ||
        !results_add(&rows, text_str(&line), line.length, 0, &err) || rows.count != 1)
        lost = "the line";
    row = rows.rows;
    if (!lost && (row->n != r->n || row->d != r->d || row->heads != r->heads ||
                  row->causal != r->causal || row->threads != r->threads ||
                  row->seed != (int64_t)r->seed))
        lost = "a whole number";
    if (!lost && (strcmp(row->mechanism, r->mechanism) != 0 ||
                  strcmp(row->position, r->position) != 0 || strcmp(row->source, r->input) != 0))
        lost = "a text";
    if (!lost && !(same_number(row, "cpu_ms", r->cpu_ms) &&
                   same_number(row, "time_ms.median", r->time.median) &&
                   same_number(row, "quality.mass_mean", r->quality.mass_mean) &&
                   same_number(row, "quality.output_error", r->quality.output_error)))
        lost = "a number";
    text_free(&line);
    results_free(&rows);
    return lost;
}

/* One byte less in a text of the record, that loses the same. */
static bool make_shorter(Record *r)
{
    char *const texts[] = { r->mechanism, r->position, r->input };
    const char *lost = lost_of(r);

    for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++)
        for (size_t at = 1; texts[k][at]; at++) {
            char kept[128];

            snprintf(kept, sizeof(kept), "%s", texts[k]);
            memmove(texts[k] + at, texts[k] + at + 1, strlen(texts[k] + at));
            if (lost_of(r) == lost)
                return true;
            memcpy(texts[k], kept, strlen(kept) + 1);
        }
    return false;
}

TEST(any_record_comes_back)
{
    Rng rng = rng_named(5, "records");

    for (int i = 0; i < 500; i++) {
        Record      r = any_record(&rng);
        const char *lost = lost_of(&r);

        while (lost && make_shorter(&r))
            continue;
        CHECK(!lost, "record %d: %s is lost: n %lld, seed %llu, '%s', '%s', '%s', %.17g ms", i,
              lost, (long long)r.n, (unsigned long long)r.seed, r.mechanism, r.position, r.input,
              r.time.median.value);
        record_free(&r);
    }
}

SUITE(NULL, NULL)
