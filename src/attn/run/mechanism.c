/* mechanism.c -- the catalogue; see mechanism.h. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/run/mechanism.h"
#include "core/text.h"

#define MECH(id) extern const Mechanism mech_##id;
#include "attn/mechanisms.def"
#undef MECH

static const Mechanism *const catalogue[] = {
#define MECH(id) &mech_##id,
#include "attn/mechanisms.def"
#undef MECH
};

static const struct {
    unsigned    bit;
    const char *name, *title;
} classes[] = {
    { CLASS_BASELINE, "baseline", "Exact attention" },
    { CLASS_FP, "FP", "Fixed patterns" },
    { CLASS_LP, "LP", "Learnable patterns" },
    { CLASS_M, "M", "Memory" },
    { CLASS_LR, "LR", "Low rank" },
    { CLASS_KR, "KR", "Kernels" },
    { CLASS_RC, "RC", "Recurrence" },
    { CLASS_DS, "DS", "Downsampling" },
    { CLASS_SP, "SP", "Sparse modules" },
    { CLASS_MX, "MX", "Mixers" },
    { CLASS_LAB, "LAB", "General methods" },
};
#define CLASSES (sizeof(classes) / sizeof(*classes))

#define BUILT_IN (sizeof(catalogue) / sizeof(*catalogue))
#define ADDED_MOST 48

/* The catalogue is the program's, so what the user adds to it is as well: the one exception to
 * "no global state" here.  Slots are published by the count. */
static _Atomic(const Mechanism *) added[ADDED_MOST];
static atomic_size_t added_count;

size_t mechanism_count(void)
{
    return BUILT_IN + atomic_load(&added_count);
}

const Mechanism *mechanism_at(size_t index)
{
    if (index < BUILT_IN)
        return catalogue[index];
    return index < mechanism_count() ? atomic_load(&added[index - BUILT_IN]) : NULL;
}

static size_t mechanism_place_of(const char *id)
{
    size_t place = 0;

    while (mechanism_at(place) && strcmp(mechanism_at(place)->id, id) != 0)
        place++;
    return place;
}

const Mechanism *mechanism_find(const char *id)
{
    return mechanism_at(mechanism_place_of(id));
}

const Mechanism *mechanism_of_topic(const char *topic)
{
    const Mechanism *m;

    for (size_t i = 0; (m = mechanism_at(i)); i++)
        if (m->lesson && !strcmp(m->lesson, topic))
            return m;
    return NULL;
}

bool mechanism_is_added(const char *id)
{
    size_t place = mechanism_place_of(id);

    return place >= BUILT_IN && place < mechanism_count();
}

bool mechanism_add(const Mechanism *m, Error *err)
{
    size_t place = mechanism_place_of(m->id);

    if (place < BUILT_IN)
        return error_set(err, ERR_PARAM, "'%s' is a mechanism of the program; choose another id",
                         m->id);
    if (place == BUILT_IN + ADDED_MOST)
        return error_set(err, ERR_UNSUPPORTED, "%s: there are %d added mechanisms already, which "
                         "is the most", m->id, ADDED_MOST);
    atomic_store(&added[place - BUILT_IN], m);
    if (place == mechanism_count())
        atomic_fetch_add(&added_count, 1);
    return true;
}

void mechanism_forget(void)
{
    atomic_store(&added_count, 0);
}

const Mechanism *mechanism_baseline(void)
{
    for (size_t i = 0; i < mechanism_count(); i++)
        if (catalogue[i]->classes & CLASS_BASELINE)
            return catalogue[i];
    return NULL;
}

const Mechanism *mechanism_inner(const Mechanism *m, const Assignments *given)
{
    const Assignment *chosen = m->inner ? assignments_find(given, m->inner) : NULL;
    const Param      *p = m->inner ? params_find(m->params, m->inner) : NULL;
    const char       *id = chosen && chosen->text ? chosen->text : p ? p->word : NULL;

    return id ? mechanism_find(id) : NULL;
}

const char *mechanism_inner_name(const Mechanism *m, const char *name)
{
    size_t length = m->inner ? strlen(m->inner) : 0;

    if (!m->inner)
        return NULL;
    if (!strncmp(name, m->inner, length) && name[length] == '.')
        return name + length + 1;
    return params_find(m->params, name) ? NULL : name;
}

const Param *mechanism_param(const Mechanism *m, const Assignments *given, const char *name)
{
    const char      *passed = mechanism_inner_name(m, name);
    const Mechanism *inner = passed ? mechanism_inner(m, given) : NULL;
    const Param     *own = params_find(inner ? inner->params : m->params, inner ? passed : name);

    return own ? own : params_find(mechanism_common(), name);
}

static void list_names(const Param *table, Text *out, Meant *nearest)
{
    for (; table && table->name; table++) {
        text_addf(out, "%s%s", out->length ? ", " : "", table->name);
        meant_offer(nearest, table->name);
    }
}

static bool unknown_parameter(const Mechanism *m, const Assignments *given, const char *name,
                              Error *err)
{
    const Mechanism *inner = mechanism_inner(m, given);
    Meant            nearest = { name, NULL, 2 + (int)strlen(name) / 4 };
    Text             names = { 0 };

    list_names(m->params, &names, &nearest);
    if (inner)
        list_names(inner->params, &names, &nearest);
    error_set(err, ERR_PARAM, "%s has no parameter '%s'%s%s%s (it has: %s)", m->id, name,
              nearest.name ? "; nearest is '" : "", nearest.name ? nearest.name : "",
              nearest.name ? "'" : "", text_str(&names));
    text_free(&names);
    return false;
}

bool assignment_of_position(const char *name)
{
    return !strncmp(name, "pos_", 4);
}

bool mechanism_check_names(const Mechanism *m, const Assignments *given, Error *err)
{
    for (int i = 0; i < given->count; i++) {
        const Assignment *item = &given->items[i];

        if (!assignment_of_position(item->name) && !mechanism_param(m, given, item->name) &&
            !(m->free_tensors && item->tensor.data))
            return unknown_parameter(m, given, item->name, err);
    }
    return true;
}

const Param *mechanism_common(void)
{
    static const Param common[] = {
        PARAM_INT(MechanismCommon, cache_bytes, 2, 1, 1 << 20,
                  "bytes of one number in the cache, for the cost of decoding"),
        PARAM_END
    };

    return common;
}

const Param *mechanism_text_param(const Mechanism *m, const char *content)
{
    int depth = 0;

    for (const char *c = content; *c; c++) {
        depth += (*c == '(' || *c == '[') - (*c == ')' || *c == ']');
        if (*c == '=' && depth == 0)
            return NULL;
    }
    for (const Param *p = m->params; p && p->name; p++)
        if (p->type == PARAM_TYPE_TEXT)
            return p;
    return NULL;
}

bool mechanism_check_content(const Mechanism *m, const char *content, Error *err)
{
    const char *end;

    text_number_at(content, &end);
    return end == content || *end || !m->size ||
           error_set(err, ERR_PARAM, "'%s' names no parameter: write %s(%s=%s)", content, m->id,
                     m->size, content);
}

#define SLIPS_SURE 2 /* so near that it is meant */
#define PART_LEAST 4 /* shortest part of a name that a search accepts */

/* One name contains the other: "sliding-window", "synthesizer". */
static bool holds_part(const char *id, const char *other)
{
    return strlen(id) >= PART_LEAST && strlen(other) >= PART_LEAST &&
           (strstr(id, other) || strstr(other, id));
}

const Mechanism *mechanism_nearest(const char *id)
{
    const Mechanism *near = NULL, *part = NULL, *m;
    Meant            nearest = { id, NULL, ANY_SLIPS };

    for (size_t i = 0; (m = mechanism_at(i)); i++) {
        if (meant_offer(&nearest, m->id))
            near = m;
        if (!part && holds_part(id, m->id))
            part = m;
    }
    if (nearest.slips > SLIPS_SURE && part)
        return part;
    return nearest.slips <= 1 + (int)strlen(id) / 3 ? near : NULL;
}

bool mechanism_parse(const char *id, const Mechanism **out, Error *err)
{
    const Mechanism *nearest;

    *out = mechanism_find(id);
    if (*out)
        return true;
    nearest = mechanism_nearest(id);
    return error_set(err, ERR_USAGE, "unknown mechanism '%.40s'%s%s%s (attnscope list has all %d)",
                     id, nearest ? "; nearest is '" : "", nearest ? nearest->id : "",
                     nearest ? "'" : "", (int)mechanism_count());
}

const char *class_name(unsigned bit)
{
    for (size_t i = 0; i < CLASSES; i++)
        if (classes[i].bit == bit)
            return classes[i].name;
    return "?";
}

const char *class_title(unsigned bit)
{
    for (size_t i = 0; i < CLASSES; i++)
        if (classes[i].bit == bit)
            return classes[i].title;
    return "?";
}

char *mechanism_classes(const Mechanism *m, char *text, size_t size)
{
    size_t at = 0;

    *text = '\0';
    for (size_t i = 0; i < CLASSES && at < size; i++)
        if (m->classes & classes[i].bit)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? "+" : "",
                                   classes[i].name);
    return text;
}

/* The surveys' tables; see mechanism.h. */

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
