/* test_oracle.c -- every reference case through the command line's own code.
 *
 * tests/oracle/MECH/CASE.npz (case_file.h), or a folder MECH/CASE, holds args.txt (one argument a
 * line), the input and expected/: views made by independent float64 references.  Integers must be
 * equal, reals within 1e-5 of max(1, |value|).  With ATTNSCOPE_TEST_DEVICE (tests/gpu/run) the
 * runs are on a GPU, and reals within 1e-4: float sums in another order, other exp and log.
 *
 *     test_oracle --pack FOLDER CASE.npz      makes a case of a folder
 *     test_oracle --unpack CASE.npz FOLDER    and a folder of a case
 */
#include <dirent.h>
#include <unistd.h>
#include <jansson.h>

#include "app/call.h"
#include "case_file.h"
#include "check.h"

#define ON_DEVICE (getenv("ATTNSCOPE_TEST_DEVICE") != NULL)
#define TOLERANCE (ON_DEVICE ? 1e-4 : 1e-5)
#define MOST_ARGS 66

typedef struct Case {
    char folder[512]; /* its name in messages: the folder or the .npz */
    char dump[64];
} Case;

static char *read_text(const char *path)
{
    FILE  *f = fopen(path, "rb");
    char  *text = calloc(1, 65536);
    size_t length;

    CHECK(f, "%s cannot be opened", path);
    length = fread(text, 1, 65535, f);
    text[length] = '\0';
    fclose(f);
    return text;
}

/* The shape, ignoring axes of extent 1: [1,n] and [n] hold the same, and a view
 * that is equal for all heads may leave the head axis out. */
static int squeezed(const Tensor *t, int64_t *shape)
{
    int rank = 0;

    for (int i = 0; i < t->rank; i++)
        if (t->shape[i] != 1)
            shape[rank++] = t->shape[i];
    return rank;
}

static bool same_cells(const Case *c, const char *name, const Tensor *got, const Tensor *want)
{
    int64_t a[TENSOR_MAX_RANK], b[TENSOR_MAX_RANK], index[TENSOR_MAX_RANK];
    int     rank = squeezed(got, a);
    bool    real = want->dtype == DT_F32 || want->dtype == DT_F64;

    int     more = squeezed(want, b) - rank;

    CHECK((more == 0 || more == 1) && !memcmp(a, b + more, sizeof(*a) * (size_t)rank),
          "%s: %s has another shape", c->folder, name);
    for (int64_t i = 0; i < tensor_count(want); i++) {
        Tensor x = tensor_of(got->dtype, 1, (int64_t[]){ tensor_count(got) }, got->data);
        Tensor y = tensor_of(want->dtype, 1, (int64_t[]){ tensor_count(want) }, want->data);
        double g, w;

        index[0] = i % tensor_count(got);
        g = tensor_get(&x, index);
        index[0] = i;
        w = tensor_get(&y, index);
        CHECK(real ? fabs(g - w) <= TOLERANCE * fmax(1, fabs(w)) || (isinf(w) && g == w) : g == w,
              "%s: %s[%d] = %.9g, expected %.9g", c->folder, name, (int)i, g, w);
    }
    return true;
}

static void compare_array(const Case *c, const char *file)
{
    Arena *arena = arena_new();
    Error  err = ERROR_INIT;
    Tensor got, want;
    char   path[1200];

    snprintf(path, sizeof(path), "expected/%s", file);
    CHECK(input_read_npy(path, arena, &want, &err), "%s", err.text);
    snprintf(path, sizeof(path), "%s/%s", c->dump, file);
    CHECK(input_read_npy(path, arena, &got, &err), "%s: %s", c->folder, err.text);
    same_cells(c, file, &got, &want);
    arena_free(arena);
}

static void compare_numbers(const Case *c, const char *file)
{
    char        path[1200];
    json_t     *want, *got, *value;
    const char *key;

    snprintf(path, sizeof(path), "expected/%s", file);
    want = json_load_file(path, 0, NULL);
    snprintf(path, sizeof(path), "%s/%s", c->dump, file);
    got = json_load_file(path, 0, NULL);
    CHECK(want && got, "%s: %s is missing", c->folder, file);
    json_object_foreach(want, key, value) {
        double w = json_number_value(value), g = json_number_value(json_object_get(got, key));

        CHECK(json_object_get(got, key) && fabs(g - w) <= TOLERANCE * fmax(1, fabs(w)),
              "%s: %s %s = %.9g, expected %.9g", c->folder, file, key, g, w);
    }
    json_decref(want);
    json_decref(got);
}

static void run_case(const Case *c)
{
    const char *words[MOST_ARGS] = { "run" };
    int         count = 1;
    char       *args = read_text("args.txt");
    Error       err = ERROR_INIT;
    Session    *s = session_new(&err);
    Text        out = { 0 };

    assert_non_null(s);
    for (char *line = strtok(args, "\n"); line && count < MOST_ARGS - 4; line = strtok(NULL, "\n"))
        words[count++] = line;
    if (ON_DEVICE) {
        setenv("ATTNSCOPE_DEVICE_LIBRARY", getenv("ATTNSCOPE_TEST_DEVICE"), 1);
        words[count++] = "--device";
        words[count++] = "cuda";
    }
    words[count++] = "--dump";
    words[count++] = c->dump;
    CHECK(command_run(s, words, count, READER_FILE, 0, &out, &err), "%s: %s", c->folder, err.text);
    text_free(&out);
    session_free(s);
    free(args);
}

static void remove_folder(const char *folder)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* Runs the case in the current folder and compares what came with expected/. */
static void check_here(const char *name)
{
    Case           c = { .dump = "/tmp/attnscope-oracle-XXXXXX" };
    DIR           *dir;
    struct dirent *entry;

    snprintf(c.folder, sizeof(c.folder), "%s", name);
    assert_non_null(mkdtemp(c.dump));
    run_case(&c);
    dir = opendir("expected");
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        const char *ending = strrchr(entry->d_name, '.');

        if (ending && !strcmp(ending, ".npy"))
            compare_array(&c, entry->d_name);
        else if (ending && !strcmp(ending, ".json"))
            compare_numbers(&c, entry->d_name);
    }
    closedir(dir);
    remove_folder(c.dump);
}

static void check_case(const char *path)
{
    char home[4096], unpacked[] = "/tmp/attnscope-case-XXXXXX";
    bool packed = case_ends(path, ".npz");

    assert_non_null(getcwd(home, sizeof(home)));
    if (packed) {
        assert_non_null(mkdtemp(unpacked));
        case_unpack(path, unpacked);
    }
    assert_int_equal(chdir(packed ? unpacked : path), 0);
    check_here(path);
    assert_int_equal(chdir(home), 0);
    if (packed)
        remove_folder(unpacked);
}

static int for_each_entry(const char *path, void (*visit)(const char *))
{
    DIR           *dir = opendir(path);
    struct dirent *entry;
    int            count = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        char inner[1024];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
        visit(inner);
        count++;
    }
    closedir(dir);
    return count;
}

static void check_mechanism(const char *path)
{
    assert_true(for_each_entry(path, check_case) > 0);
}

TEST(every_reference_case_holds)
{
    const char *root = getenv("ATTNSCOPE_ORACLE");

    assert_true(for_each_entry(root ? root : "tests/oracle", check_mechanism) >= 7);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--pack"))
        return case_pack(argv[2], argv[3]), 0;
    if (argc == 4 && !strcmp(argv[1], "--unpack"))
        return case_unpack(argv[2], argv[3]), 0;
    return suite_run(NULL, NULL);
}
