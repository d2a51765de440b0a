/* test_gpu_cudnn.c -- cuDNN's own word on the graphs that fused.cu builds, without a GPU: the real
 * library makes plans of them for GPUs that it is told of, down to the code.  What it computes is
 * for a GPU to show.  Skipped with a reason where cuDNN is not.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <unistd.h>

#include "cudnn/plans.h"
#include "check.h"

static char folder[2048];

static void *open_built(const char *name)
{
    char path[2200];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static const CudnnPlans *plans_of(void)
{
    const CudnnPlans *(*entry)(void) = NULL;
    ssize_t           length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    void             *library;

    assert_true(length > 0);
    folder[length] = '\0';
    dirname(folder);
    library = open_built("cudnn-driver.so") ? open_built("attnscope-cudnn.so") : NULL;
    if (library)
        *(void **)&entry = dlsym(library, PLANS_ENTRY);
    if (!entry)
        printf("skipped: built without cuDNN's headers\n");
    return entry ? entry() : NULL;
}

static char somewhere[256];

static Packed packed(int64_t heads, int64_t rows, int64_t size)
{
    return (Packed){ .data = somewhere, .heads = heads, .rows = (rows + 127) / 128 * 128,
                     .size = size };
}

static void has_plan(const CudnnPlans *plans, int64_t groups, int64_t n, int64_t m, int64_t d,
                     bool causal, Arithmetic arithmetic)
{
    int64_t   size = d <= 64 ? 64 : d <= 128 ? 128 : 256, workspace = -1;
    FusedCall call = { .heads = 8, .n = n, .m = m, .d = d, .e = d, .causal = causal,
                       .arithmetic = (int32_t)arithmetic, .scale = 0.125,
                       .q = packed(8, n, size), .k = packed(8 / groups, m, size),
                       .v = packed(8 / groups, m, size), .narrow = packed(8, n, size),
                       .lse.data = somewhere };
    char      why[400];

    CHECK(plans->plan(&call, &workspace, why, sizeof(why)),
          "no plan for 8 heads in groups of %d, n %d, m %d, d %d%s: %s", (int)groups, (int)n,
          (int)m, (int)d, causal ? ", causal" : "", why);
    assert_true(workspace >= 0 && workspace < INT64_C(1) << 30);
}

static bool opens(const CudnnPlans *plans, int capability)
{
    char why[500];

    if (plans && plans->open(capability, why, sizeof(why)))
        return true;
    if (plans)
        printf("skipped: %s\n", why);
    skip();
    return false;
}

TEST(cudnn_makes_plans_of_our_graphs)
{
    const CudnnPlans *plans = plans_of();

    if (!opens(plans, 900))
        return;
    has_plan(plans, 1, 1024, 1024, 64, false, ARITHMETIC_BF16);
    has_plan(plans, 1, 1001, 1001, 40, true, ARITHMETIC_F16);
    has_plan(plans, 4, 1024, 1024, 128, true, ARITHMETIC_BF16);
    has_plan(plans, 1, 100, 333, 256, false, ARITHMETIC_BF16);
    if (opens(plans, 800))
        has_plan(plans, 1, 1024, 1024, 64, true, ARITHMETIC_BF16);
    if (opens(plans, 1000))
        has_plan(plans, 1, 1024, 1024, 64, true, ARITHMETIC_BF16);
}

/* cuDNN ends a program that has no libcublasLt, and only then: so it must be asked for before. */
TEST(what_cudnn_opens_is_open_before)
{
    const CudnnPlans *plans = plans_of();
    void             *first;

    if (!opens(plans, 900))
        return;
    first = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_NOLOAD);
    first = first ? first : dlopen("libcublasLt.so.12", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(first);
}

SUITE(NULL, NULL)
