/* reference.c -- see reference.h. */
#include "profile/reference.h"

#include <string.h>

static const Mechanism *baseline(void)
{
    const Mechanism *m;

    for (size_t i = 0; (m = mechanism_at(i)); i++)
        if (m->classes & CLASS_BASELINE)
            return m;
    return NULL;
}

/* The scale and the like, under the same name and type, and the position's. */
static bool shared_assignments(const Run *run, const Mechanism *exact, Assignments *out,
                               Error *err)
{
    const Assignments *given = run->spec.given;
    const Position    *position = run->spec.position;

    for (int i = 0; given && i < given->count; i++) {
        const Assignment *item = &given->items[i];
        const Param *ours = params_find(run->mechanism->params, item->name);
        const Param *theirs = params_find(exact->params, item->name);
        bool same = ours && theirs && ours->type == theirs->type;

        if (!same && !(position && params_find(position->params, item->name)))
            continue;
        if (!assignments_set_tensor(out, item->name, item->tensor, item->text, err))
            return false;
    }
    return true;
}

bool reference_new(const Run *run, Threads *threads, const atomic_bool *cancel, Reference *out,
                   Error *err)
{
    RunSpec spec = run->spec;

    *out = (Reference){ 0 };
    spec.mechanism = baseline();
    spec.given = &out->given;
    spec.views = true;
    spec.fit = false;
    spec.observer = NULL;
    spec.preparing = NULL;
    spec.fail_at = 0;
    spec.threads = threads;
    spec.cancel = cancel;
    if (!spec.mechanism)
        return error_set(err, ERR_INTERNAL, "the catalogue has no baseline to compare with");
    if (!shared_assignments(run, spec.mechanism, &out->given, err))
        return false;
    out->run = run_new(&spec);
    if (!out->run)
        return error_set(err, ERR_NOMEM, "not enough memory for the reference");
    return out->run->err.code == ERR_NONE ||
           error_set(err, out->run->err.code, "reference: %.200s", out->run->err.text);
}

void reference_free(Reference *reference)
{
    run_free(reference->run);
    assignments_free(&reference->given);
}
