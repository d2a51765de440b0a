/* view_names.c -- see view_names.h. */
#include "app/figure/view_names.h"

#include <string.h>

#include "app/result/derived.h"
#include "app/result/missed.h"
#include "app/result/reach.h"

/* Beside what each mechanism promises. */
static const char *const everywhere[] = { "auto",       "output",    REACH_VIEW,
                                          MISSED_VIEW,  TRACE_VIEW,  SPECTRUM_VIEW,
                                          "position_bias", "bias",  NULL };

#define POSITION_VIEWS "position_" /* begins the names of a modifier's terms */

static bool offer(Meant *nearest, const char *name)
{
    meant_offer(nearest, name);
    return !strcmp(nearest->wanted, name);
}

/* True: it is one of them. */
static bool offer_all(Meant *nearest, const Mechanism *m)
{
    bool known = false;

    for (const ViewPromise *v = m->views; v && v->name; v++)
        known |= offer(nearest, v->name);
    for (const Param *p = m->params; p && p->name; p++) /* a drawn tensor is a view, too */
        known |= p->type == PARAM_TYPE_TENSOR && offer(nearest, p->name);
    for (int i = 0; everywhere[i]; i++)
        known |= offer(nearest, everywhere[i]);
    return known;
}

/* Some mechanism, or a positional modifier, has a view of that name: what runs inside may be it. */
static bool is_others(const char *name)
{
    for (size_t i = 0; mechanism_at(i); i++)
        for (const ViewPromise *v = mechanism_at(i)->views; v && v->name; v++)
            if (!strcmp(v->name, name))
                return true;
    return !strncmp(name, POSITION_VIEWS, strlen(POSITION_VIEWS));
}

bool view_name_check(const Mechanism *m, const char *name, Error *err)
{
    Meant nearest = { name, NULL, 2 + (int)strlen(name) / 4 };

    if (strchr(name, '=') && !strpbrk(name, "#*("))
        return error_set(err, ERR_USAGE, "%s has no view '%s'; a shell takes braces with a comma "
                         "apart: put the panel with its {name=value,..} into quotes", m->id, name);
    if (!*name || strpbrk(name, "#*(") || offer_all(&nearest, m) || !nearest.name ||
        is_others(name))
        return true;
    return error_set(err, ERR_USAGE, "%s has no view '%s'; did you mean '%s'?", m->id, name,
                     nearest.name);
}
