/* mechanism.c -- the catalogue; see mechanism.h. */
#include "attn/mechanism.h"

#include <stdio.h>
#include <string.h>

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

size_t mechanism_count(void)
{
    return sizeof(catalogue) / sizeof(*catalogue);
}

const Mechanism *mechanism_at(size_t index)
{
    return index < mechanism_count() ? catalogue[index] : NULL;
}

const Mechanism *mechanism_find(const char *id)
{
    for (size_t i = 0; i < mechanism_count(); i++)
        if (!strcmp(catalogue[i]->id, id))
            return catalogue[i];
    return NULL;
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

    return inner ? params_find(inner->params, passed) : params_find(m->params, name);
}

bool mechanism_parse(const char *id, const Mechanism **out, Error *err)
{
    const Mechanism *nearest = catalogue[0];
    Text             names = { 0 };

    *out = mechanism_find(id);
    if (*out)
        return true;
    for (size_t i = 0; i < mechanism_count(); i++) {
        if (text_distance(id, catalogue[i]->id) < text_distance(id, nearest->id))
            nearest = catalogue[i];
        text_addf(&names, "%s%s", i ? " " : "", catalogue[i]->id);
    }
    if (text_distance(id, nearest->id) <= 1 + (int)strlen(id) / 3)
        error_set(err, ERR_USAGE, "unknown mechanism '%s'; nearest is '%s' (there are: %s)", id,
                  nearest->id, text_str(&names));
    else
        error_set(err, ERR_USAGE, "unknown mechanism '%s' (there are: %s)", id, text_str(&names));
    text_free(&names);
    return false;
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
