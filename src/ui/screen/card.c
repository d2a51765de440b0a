/* card.c -- a mechanism's card as text; everything is from its descriptor. */
#include "app/result/views.h"
#include "ui/shell/explorer.h"

static void add_params(const Mechanism *m, Text *out)
{
    if (!m->params[0].name)
        return;
    text_add(out, "\nParameters\n");
    for (const Param *p = m->params; p->name; p++) {
        Text value = { 0 };

        if (p->type == PARAM_TYPE_TENSOR) {
            text_addf(out, "  %s %s: %s\n", p->name, p->shape ? p->shape : "", p->help);
        } else {
            params_print(p, NULL, &value);
            text_addf(out, "  %s = %s: %s\n", p->name, text_str(&value), p->help);
        }
        text_free(&value);
    }
}

static void add_views(const Mechanism *m, Text *out)
{
    text_add(out, "\nViews\n");
    for (const ViewPromise *v = m->views; v && v->name; v++)
        text_addf(out, "  %s: %s\n", v->name, v->help ? v->help : "");
    if (missed_is_promised(m))
        text_addf(out, "  %s: %s\n", MISSED_VIEW, MISSED_HELP);
    if (reach_is_offered(m))
        text_addf(out, "  %s: %s\n", REACH_VIEW, REACH_HELP);
    if (spectrum_is_offered(m))
        text_addf(out, "  %s: %s\n", SPECTRUM_VIEW, SPECTRUM_HELP);
}

void card_text(const Mechanism *m, Text *out)
{
    char classes[64];

    text_addf(out, "%s\n%s", m->title, m->authors ? m->authors : "");
    if (m->year)
        text_addf(out, " %d", m->year);
    if (m->arxiv)
        text_addf(out, ", arXiv:%s", m->arxiv);
    text_addf(out, "\nclass %s", mechanism_classes(m, classes, sizeof(classes)));
    text_addf(out, "   time %s   memory %s\n", m->claim_time ? m->claim_time : "\xe2\x80\x94",
              m->claim_memory ? m->claim_memory : "\xe2\x80\x94");
    text_addf(out, "causal: %s%s%s   decoding: %s\n", m->causal ? "yes" : "no",
              !m->causal && m->no_causal ? ", " : "",
              !m->causal && m->no_causal ? m->no_causal : "",
              m->claim_decode ? m->claim_decode : "\xe2\x80\x94");
    if (m->fit)
        text_addf(out, "fit: %s\n", m->fit);
    if (m->sketch)
        text_addf(out, "short inputs: the list opens it with %s\n", m->sketch);
    if (m->teaches)
        text_addf(out, "\nWhat to look for\n%s\n", m->teaches);
    if (m->formula)
        text_addf(out, "\nFormula\n%s\n", m->formula);
    add_params(m, out);
    add_views(m, out);
    if (m->source)
        text_addf(out, "\nSource: %s\n", m->source);
}
