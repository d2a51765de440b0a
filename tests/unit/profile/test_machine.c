/* test_machine.c -- limits of control groups, in trees of files made for it; other work. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "core/groups.h"
#include "core/threads.h"
#include "profile/machine.h"
#include "profile/measure.h"

/* ---- the processor's name --------------------------------------------------------- */

/* As /proc/cpuinfo is: of x86, of ARM with one kind of core and with two, of none that is known. */
TEST(a_processor_has_a_name_on_every_architecture)
{
    static const struct {
        const char *cpuinfo, *name;
    } all[] = {
        { "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9354\n\n"
          "processor\t: 1\nmodel name\t: another\n", "AMD EPYC 9354" },
        { "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd sve\n"
          "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\n"
          "CPU part\t: 0xd4f\nCPU revision\t: 0\n\nprocessor\t: 1\n"
          "CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n", "ARM Neoverse-V2" },
        { "CPU implementer\t: 0x41\nCPU part\t: 0xd05\n\nCPU implementer\t: 0x41\n"
          "CPU part\t: 0xd0b\n\nCPU implementer\t: 0x41\nCPU part\t: 0xd05\n",
          "ARM Cortex-A55 + ARM Cortex-A76" },
        { "CPU implementer\t: 0x41\nCPU part\t: 0xd4b\n\nCPU implementer\t: 0x41\n"
          "CPU part\t: 0xd41\n\nCPU implementer\t: 0x41\nCPU part\t: 0xd41\n",
          "ARM Cortex-A78C + ARM Cortex-A78" },
        { "CPU implementer\t: 0xc0\nCPU part\t: 0xac3\n", "Ampere-1" },
        { "CPU implementer\t: 0x61\nCPU part\t: 0x000\n", "ARM core 0x000 of implementer 0x61" },
        { "model name\t:\nCPU implementer : 0x41\nCPU part : 0xd0c", "ARM Neoverse-N1" },
        { "processor\t: 0\nmodel names\t: 3\n", "" },
        { "", "" },
    };
    char name[64];

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        FILE *file = *all[i].cpuinfo ? fmemopen((char *)(uintptr_t)all[i].cpuinfo,
                                                strlen(all[i].cpuinfo), "r")
                                     : fopen("/dev/null", "r");

        assert_non_null(file);
        machine_cpu(file, name, sizeof(name));
        fclose(file);
        CHECK(!strcmp(name, all[i].name), "'%s', expected '%s'", name, all[i].name);
    }
}

/* ---- a tree of groups ------------------------------------------------------------- */

typedef struct Tree {
    char root[64], groups[96];
} Tree;

static Tree tree_new(const char *groups)
{
    Tree  t = { .root = "/tmp/attnscope-groups-XXXXXX" };
    FILE *file;

    assert_non_null(mkdtemp(t.root));
    snprintf(t.groups, sizeof(t.groups), "%s/groups", t.root);
    file = fopen(t.groups, "w");
    assert_non_null(file);
    fputs(groups, file);
    fclose(file);
    return t;
}

/* Writes a file below the root, with the folders above it. */
static void tree_file(const Tree *t, const char *name, const char *text)
{
    char  path[300];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", t->root, name);
    for (char *slash = path + strlen(t->root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void tree_free(const Tree *t)
{
    char command[200];

    snprintf(command, sizeof(command), "rm -rf %s", t->root);
    assert_int_equal(system(command), 0);
}

static void check_memory(const Tree *t, double expected)
{
    double found = groups_memory(t->groups, t->root);

    CHECK(found == expected, "memory of the groups: %g, not %g", found, expected);
}

/* ---- memory ----------------------------------------------------------------------- */

TEST(version_2_is_read_with_its_parents)
{
    Tree t = tree_new("0::/system.slice/job.scope\n");

    check_memory(&t, (double)INFINITY);
    tree_file(&t, "system.slice/job.scope/memory.max", "max\n");
    check_memory(&t, (double)INFINITY);
    tree_file(&t, "system.slice/job.scope/memory.max", "2000000000\n");
    check_memory(&t, 2e9);
    tree_file(&t, "system.slice/memory.max", "1000000000\n");
    check_memory(&t, 1e9);
    tree_file(&t, "system.slice/other/memory.max", "5\n"); /* of a neighbour */
    check_memory(&t, 1e9);
    tree_file(&t, "memory.max", "700000000\n"); /* a container's own group is the root */
    check_memory(&t, 7e8);
    tree_free(&t);
}

TEST(version_1_is_read_with_its_parents)
{
    Tree t = tree_new("9:name=systemd:/\n4:hugetlb,memory:/slurm/uid_7/job_3\n"
                      "2:cpu:/slurm\n0::/\n");

    tree_file(&t, "memory/memory.limit_in_bytes", "9223372036854771712\n");
    tree_file(&t, "memory/slurm/uid_7/job_3/memory.limit_in_bytes", "3000000000\n");
    check_memory(&t, 3e9);
    tree_file(&t, "memory/slurm/uid_7/memory.limit_in_bytes", "2500000000\n");
    check_memory(&t, 2.5e9);
    tree_file(&t, "cpu/slurm/memory.limit_in_bytes", "5\n"); /* of another controller */
    check_memory(&t, 2.5e9);
    tree_free(&t);
}

/* Where both versions are mounted, version 2 has a folder of its own. */
TEST(the_least_of_both_mounts_counts)
{
    Tree t = tree_new("0::/job\n");

    tree_file(&t, "unified/job/memory.max", "300000000\n");
    check_memory(&t, 3e8);
    tree_file(&t, "job/memory.max", "200000000\n");
    check_memory(&t, 2e8);
    tree_file(&t, "unified/memory.max", "100000000\n");
    check_memory(&t, 1e8);
    tree_free(&t);
}

/* A path of the host is not there in the container. */
TEST(groups_that_are_not_there_are_passed_over)
{
    Tree t = tree_new("4:memory:/docker/0123\n");

    tree_file(&t, "memory/memory.limit_in_bytes", "400000000\n");
    check_memory(&t, 4e8);
    tree_free(&t);
    assert_true(isinf(groups_memory("/nowhere", "/nowhere")));
}

TEST(the_machine_has_memory_and_processors)
{
    double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double group = groups_memory("/proc/self/cgroup", "/sys/fs/cgroup");

    assert_true(machine_memory() > 0);
    CHECK((double)machine_memory() <= machine && (double)machine_memory() <= group,
          "%lld of %g and %g bytes", (long long)machine_memory(), machine, group);
    assert_true(machine_processors() > 0 && machine_processors() <= threads_hardware());
}

/* Half, or what the process and a reserve leave; never nothing, which would be no limit. */
TEST(a_share_is_half_or_what_is_left)
{
    const int64_t gib = (int64_t)1 << 30, mib = (int64_t)1 << 20;

    assert_int_equal(machine_share_of(16 * gib, gib), 8 * gib);
    assert_int_equal(machine_share_of(16 * gib, 10 * gib), 6 * gib - 64 * mib);
    assert_int_equal(machine_share_of(400 * mib, 200 * mib), 136 * mib);
    assert_int_equal(machine_share_of(400 * mib, 400 * mib), mib);
    assert_int_equal(machine_share_of(0, 0), mib);
    assert_true(machine_share() >= mib && machine_share() <= machine_memory() / 2);
}

/* ---- processors ------------------------------------------------------------------- */

TEST(quotas_of_both_versions)
{
    Tree two = tree_new("0::/a\n"), one = tree_new("2:cpu,cpuacct:/a\n");

    tree_file(&two, "a/cpu.max", "max 100000\n");
    assert_true(isinf(groups_processors(two.groups, two.root)));
    tree_file(&two, "a/cpu.max", "150000 100000\n");
    CHECK_NEAR(groups_processors(two.groups, two.root), 1.5, 0);
    tree_file(&one, "cpu/a/cpu.cfs_quota_us", "-1\n");
    tree_file(&one, "cpu/a/cpu.cfs_period_us", "100000\n");
    assert_true(isinf(groups_processors(one.groups, one.root)));
    tree_file(&one, "cpu/a/cpu.cfs_quota_us", "200000\n");
    CHECK_NEAR(groups_processors(one.groups, one.root), 2, 0);
    tree_file(&one, "cpu/cpu.cfs_quota_us", "50000\n"); /* of a parent */
    tree_file(&one, "cpu/cpu.cfs_period_us", "100000\n");
    CHECK_NEAR(groups_processors(one.groups, one.root), 0.5, 0);
    tree_free(&one);
    tree_free(&two);
}

/* A quota counts up to the next whole processor, and never below one. */
TEST(threads_are_as_many_as_the_quota_lets_work)
{
    Tree t = tree_new("0::/a\n");
    char quota[40];
    int  all = threads_hardware();

    assert_int_equal(threads_allowed(t.groups, t.root), all);
    tree_file(&t, "a/cpu.max", "20000 100000\n");
    assert_int_equal(threads_allowed(t.groups, t.root), 1);
    snprintf(quota, sizeof(quota), "%d 100000\n", all * 100000 - 99000); /* all - 1 and a bit */
    tree_file(&t, "a/cpu.max", quota);
    assert_int_equal(threads_allowed(t.groups, t.root), all);
    snprintf(quota, sizeof(quota), "%d 100000\n", all * 100000 - 100000);
    tree_file(&t, "a/cpu.max", quota);
    assert_int_equal(threads_allowed(t.groups, t.root), all > 1 ? all - 1 : 1);
    tree_file(&t, "a/cpu.max", "900000000 100000\n");
    assert_int_equal(threads_allowed(t.groups, t.root), all);
    tree_free(&t);
    assert_true(threads_default() > 0 && threads_default() <= all);
}

TEST(what_this_process_does_is_not_of_others)
{
    Load from = { .at = 10, .busy = 100, .own = 5 }, to = { .at = 12, .busy = 103, .own = 6 };

    CHECK_NEAR(load_of_others(&from, &to), 1, 1e-12);
    to.own = 9; /* ticks are coarse: never below 0 */
    CHECK_NEAR(load_of_others(&from, &to), 0, 0);
    to.own = 6;
    to.at = 10.05; /* shorter than a few ticks */
    CHECK_NEAR(load_of_others(&from, &to), 0, 0);
    to.at = 12;
    to.busy = -1; /* not known */
    CHECK_NEAR(load_of_others(&from, &to), 0, 0);
    assert_true(load_now().at > 0);
}

TEST(half_a_processor_too_few_is_over)
{
    assert_false(load_is_over(2, 2));
    assert_false(load_is_over(2, 1.7));
    assert_true(load_is_over(2, 1.5));
    assert_true(load_is_over(1, 0.5)); /* two loops on one processor */
    assert_true(load_is_over(1, (double)NAN));
}

SUITE(NULL, NULL)
