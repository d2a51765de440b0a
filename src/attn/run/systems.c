/* systems.c -- the surveys' tables; see systems.h. */
#include "attn/run/systems.h"

static const System systems[] = {
#define SYSTEM(part, name, cite, runs, ...)                                                       \
    { SYSTEM_##part, name, cite, runs, { __VA_ARGS__ } },
#include "attn/run/systems.def"
#undef SYSTEM
};

const System *system_at(size_t index)
{
    return index < sizeof(systems) / sizeof(*systems) ? &systems[index] : NULL;
}

const char *system_part_title(SystemPart part)
{
    static const char *const titles[SYSTEM_PARTS] = {
        [SYSTEM_ATTENTION] = "efficient attention",
        [SYSTEM_SPARSE] = "sparse models",
        [SYSTEM_MIXER] = "alternatives to attention",
        [SYSTEM_GENERAL] = "general methods",
        [SYSTEM_POSITION] = "positions",
    };

    return titles[part];
}

const char *survey_disagrees(int survey)
{
    return survey == 0 ? "memory in its text: O(n log n) for the Sparse Transformer, "
                         "O(n^1.5) for the Routing Transformer"
                       : NULL;
}

const char *survey_title(int survey)
{
    static const char *const titles[SURVEYS] = {
        [SURVEY_A] = "Tay et al. 2020, arXiv 2009.06732v1, Table 1",
        [SURVEY_B] = "Tay et al. 2022, arXiv 2009.06732v2, Table 1",
        [SURVEY_C] = "Fournier et al. 2021, arXiv 2103.14636, text and Table 4",
    };

    return titles[survey];
}
