/* command_list.c -- what there is to run: the catalogue, and the surveys' tables. */
#include "app/command_parts.h"
#include "app/system_words.h"

#include <stdio.h>
#include <string.h>

static void table_head(Table *t, const char *const *heads)
{
    for (int i = 0; i < t->cols; i++)
        table_cell(t, "%s", heads[i]);
}

/* ---- the catalogue ------------------------------------------------------------ */

static void list_row(Table *t, const Mechanism *m, bool claims)
{
    char classes[32];

    table_cell(t, "%s", m->id);
    table_cell(t, "%s", m->title);
    table_cell(t, "%s", mechanism_classes(m, classes, sizeof(classes)));
    table_cell(t, "%s", m->claim_time);
    if (claims) {
        table_cell(t, "%s", m->claim_memory);
        table_cell(t, "%s", m->claim_decode);
        table_cell(t, "%d", m->year);
        table_cell(t, "%s", m->arxiv ? m->arxiv : "");
        table_cell(t, "%s", m->fit ? "yes" : "-");
    }
}

static void list_catalogue(TableStyle style, Text *out)
{
    static const char *const heads[] = { "id",     "title",    "class", "time",
                                         "memory", "decoding", "year",  "arXiv", "fit" };
    Table t = { .cols = style == TABLE_TEXT ? 4 : 9 };

    table_head(&t, heads);
    for (unsigned bit = 1; bit <= CLASS_LAB; bit <<= 1)
        for (size_t i = 0; mechanism_at(i); i++) {
            unsigned classes = mechanism_at(i)->classes;

            if ((classes & -classes) == bit) /* by its first class */
                list_row(&t, mechanism_at(i), t.cols > 4);
        }
    table_write(&t, style, out);
    table_free(&t);
}

static void list_json(Text *out)
{
    Json json = jsonw_to(out);
    char classes[32];

    jsonw_open(&json, '[');
    for (size_t i = 0; mechanism_at(i); i++) {
        const Mechanism *m = mechanism_at(i);

        jsonw_open(&json, '{');
        jsonw_key(&json, "id"), jsonw_string(&json, m->id);
        jsonw_key(&json, "title"), jsonw_string(&json, m->title);
        jsonw_key(&json, "class");
        jsonw_string(&json, mechanism_classes(m, classes, sizeof(classes)));
        jsonw_key(&json, "year"), jsonw_int(&json, m->year);
        jsonw_key(&json, "arxiv"), jsonw_string(&json, m->arxiv);
        jsonw_key(&json, "claim_time"), jsonw_string(&json, m->claim_time);
        jsonw_key(&json, "claim_memory"), jsonw_string(&json, m->claim_memory);
        jsonw_key(&json, "claim_decode"), jsonw_string(&json, m->claim_decode);
        jsonw_key(&json, "causal"), jsonw_bool(&json, m->causal);
        jsonw_key(&json, "fit"), jsonw_string(&json, m->fit);
        jsonw_close(&json, '}');
    }
    jsonw_close(&json, ']');
    text_add(out, "\n");
}

/* ---- the surveys' tables -------------------------------------------------------- */

static void system_row(Table *t, const System *system)
{
    const Mechanism *m = system_mechanism(system);
    Text             complexity = { 0 }, decode = { 0 };
    char             classes[32];

    system_claims(system, CLAIM_COMPLEXITY, &complexity);
    system_claims(system, CLAIM_DECODE, &decode);
    table_cell(t, "%s", system->name);
    table_cell(t, "%s", system->cite);
    table_cell(t, "%s", text_str(&complexity));
    table_cell(t, "%s", text_str(&decode));
    table_cell(t, "%s", system_class(system, classes, sizeof(classes)));
    table_cell(t, "%s", m ? m->claim_time : "-");
    table_cell(t, "%s", m ? system->runs : "-");
    text_free(&complexity);
    text_free(&decode);
}

static void part_row(Table *t, SystemPart part)
{
    table_cell(t, "-- %s", system_part_title(part));
    for (int col = 1; col < t->cols; col++)
        table_cell(t, "%s", "");
}

void systems_list(TableStyle style, Text *out)
{
    static const char *const heads[] = { "system", "paper", "complexity claimed", "decoding",
                                         "class",  "here",  "runs as" };
    Table t = { .cols = 7 };

    table_head(&t, heads);
    for (size_t i = 0; system_at(i); i++) {
        if (style != TABLE_CSV && (!i || system_at(i)->part != system_at(i - 1)->part))
            part_row(&t, system_at(i)->part);
        system_row(&t, system_at(i));
    }
    table_write(&t, style, out);
    table_free(&t);
    if (style == TABLE_CSV)
        return;
    text_add(out, "\nTime unless it says otherwise, in one notation: n tokens, d and e widths.\n");
    for (int s = 0; s < SURVEYS; s++)
        text_addf(out, "%s[%c] %s%s%s\n", style == TABLE_MARKDOWN ? "\n" : "", 'a' + s,
                  survey_title(s), survey_disagrees(s) ? "; " : "",
                  survey_disagrees(s) ? survey_disagrees(s) : "");
    text_addf(out,
              "%shere: the complexity of what runs, from its own paper or from its parameters\n",
              style == TABLE_MARKDOWN ? "\n" : "");
}

static void claim_json(Json *json, const System *system, int survey)
{
    const SystemClaim *claim = &system->claims[survey];

    if (!claim->complexity && !claim->class)
        return;
    jsonw_open(json, '{');
    jsonw_key(json, "source"), jsonw_string(json, survey_title(survey));
    jsonw_key(json, "complexity"), jsonw_string(json, claim->complexity);
    jsonw_key(json, "decoding"), jsonw_string(json, claim->decode);
    jsonw_key(json, "class"), jsonw_string(json, claim->class);
    jsonw_close(json, '}');
}

static void systems_json(Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '[');
    for (size_t i = 0; system_at(i); i++) {
        const System *system = system_at(i);

        jsonw_open(&json, '{');
        jsonw_key(&json, "system"), jsonw_string(&json, system->name);
        jsonw_key(&json, "paper"), jsonw_string(&json, system->cite);
        jsonw_key(&json, "part"), jsonw_string(&json, system_part_title(system->part));
        jsonw_key(&json, "runs"), jsonw_string(&json, system->runs);
        jsonw_key(&json, "claims"), jsonw_open(&json, '[');
        for (int s = 0; s < SURVEYS; s++)
            claim_json(&json, system, s);
        jsonw_close(&json, ']');
        jsonw_close(&json, '}');
    }
    jsonw_close(&json, ']');
    text_add(out, "\n");
}

bool command_list(Session *s, const Call *call, Text *out, Error *err)
{
    bool json = call->values[OPT_JSON], systems = call->values[OPT_TABLE];

    (void)s;
    if (json && systems)
        systems_json(out);
    else if (json)
        list_json(out);
    else if (systems)
        systems_list(call_style(call), out);
    else
        list_catalogue(call_style(call), out);
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for the list");
}
