/* list.c -- list: the catalogue of mechanisms, and the surveys' tables. */
#include "app/command/command.h"
#include "app/study/sweep.h"

#include <stdio.h>
#include <string.h>

static void table_head(Table *t, const char *const *heads)
{
    for (int i = 0; i < t->cols; i++)
        table_cell(t, "%s", heads[i]);
}

/* ---- the catalogue ------------------------------------------------------------ */

static void mechanism_row(Table *t, const Mechanism *m, bool claims)
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

/* Terminal widths that hold the whole table, and the table with its last column folded.  Narrower
 * ones leave out the titles. */
#define ROOM_ALL    174
#define ROOM_TITLES 116
#define ROOM_SYSTEMS 240 /* of the surveys' table */

static void list_narrow(int room, Text *out)
{
    bool titles = room >= ROOM_TITLES;

    for (unsigned bit = 1; bit <= CLASS_LAB; bit <<= 1)
        for (size_t i = 0; mechanism_at(i); i++) {
            const Mechanism *m = mechanism_at(i);
            Text             line = { 0 };
            char             classes[32];

            if ((m->classes & -m->classes) != bit)
                continue;
            text_addf(&line, "%-30s", m->id);
            if (titles)
                text_addf(&line, "%-52s", m->title);
            text_addf(&line, "%-10s", mechanism_classes(m, classes, sizeof(classes)));
            text_add(&line, m->claim_time);
            text_add_folded(out, text_str(&line), room, titles ? 92 : 40);
            text_free(&line);
        }
}

static void list_catalogue(TableStyle style, int room, Text *out)
{
    static const char *const heads[] = { "id",     "title",    "class", "time",
                                         "memory", "decoding", "year",  "arXiv", "fit" };
    static const char *const keys[] = { "id", "title", "class", "claim_time", "claim_memory",
                                        "claim_decode", "year", "arxiv", "fit" };
    Table t = { .cols = style == TABLE_TEXT ? 4 : 9 };

    if (style == TABLE_TEXT && room && room < ROOM_ALL) {
        list_narrow(room, out);
        return;
    }
    table_head(&t, style == TABLE_CSV ? keys : heads);
    for (unsigned bit = 1; bit <= CLASS_LAB; bit <<= 1)
        for (size_t i = 0; mechanism_at(i); i++) {
            unsigned classes = mechanism_at(i)->classes;

            if ((classes & -classes) == bit) /* by its first class */
                mechanism_row(&t, mechanism_at(i), t.cols > 4);
        }
    table_write(&t, style, out);
    table_free(&t);
}

static void mechanisms_json(Text *out)
{
    Json json = jsonw_to(out);
    char classes[32];

    jsonw_open(&json, '[');
    for (size_t i = 0; mechanism_at(i); i++) {
        const Mechanism *m = mechanism_at(i);

        jsonw_open(&json, '{');
        jsonw_key_string(&json, "id", m->id);
        jsonw_key_string(&json, "title", m->title);
        jsonw_key_string(&json, "class", mechanism_classes(m, classes, sizeof(classes)));
        jsonw_key_int(&json, "year", m->year);
        jsonw_key_string(&json, "arxiv", m->arxiv);
        jsonw_key_string(&json, "claim_time", m->claim_time);
        jsonw_key_string(&json, "claim_memory", m->claim_memory);
        jsonw_key_string(&json, "claim_decode", m->claim_decode);
        jsonw_key_bool(&json, "causal", m->causal);
        jsonw_key_bool(&json, "at_end", m->at_end != AT_END_NO);
        jsonw_key_string(&json, "fit", m->fit);
        jsonw_close(&json, '}');
    }
    jsonw_close(&json, ']');
    text_add(out, "\n");
}

/* ---- the surveys' tables -------------------------------------------------------- */

static void list_system(Table *t, const System *system)
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

/* A paragraph for each system: seven columns are too wide for most terminals. */
static void systems_narrow(int room, Text *out)
{
    for (size_t i = 0; system_at(i); i++) {
        const System    *system = system_at(i);
        const Mechanism *m = system_mechanism(system);
        Text             claimed = { 0 }, decode = { 0 }, line = { 0 };
        char             classes[32];

        if (!i || system->part != system_at(i - 1)->part)
            text_addf(out, "%s-- %s\n", i ? "\n" : "", system_part_title(system->part));
        system_claims(system, CLAIM_COMPLEXITY, &claimed);
        system_claims(system, CLAIM_DECODE, &decode);
        text_addf(&line, "%s, %s, %s:", system->name, system->cite,
                  system_class(system, classes, sizeof(classes)));
        if (strcmp(text_str(&claimed), "-") != 0)
            text_addf(&line, " claimed %s, decoding %s;", text_str(&claimed), text_str(&decode));
        text_addf(&line, " here %s as %s", m ? m->claim_time : "-", m ? system->runs : "-");
        text_add_folded(out, text_str(&line), room, 4);
        text_free(&claimed);
        text_free(&decode);
        text_free(&line);
    }
}

static void list_part(Table *t, SystemPart part)
{
    table_cell(t, "-- %s", system_part_title(part));
    for (int col = 1; col < t->cols; col++)
        table_cell(t, "%s", "");
}

static void systems_wide(TableStyle style, Text *out)
{
    static const char *const heads[] = { "system", "paper", "complexity claimed", "decoding",
                                         "class",  "here",  "runs as" };
    Table t = { .cols = 7 };

    table_head(&t, heads);
    for (size_t i = 0; system_at(i); i++) {
        if (style != TABLE_CSV && (!i || system_at(i)->part != system_at(i - 1)->part))
            list_part(&t, system_at(i)->part);
        list_system(&t, system_at(i));
    }
    table_write(&t, style, out);
    table_free(&t);
}

void systems_list(TableStyle style, int room, Text *out)
{
    if (style == TABLE_TEXT && room && room < ROOM_SYSTEMS)
        systems_narrow(room, out);
    else
        systems_wide(style, out);
    if (style == TABLE_CSV)
        return;
    text_add(out, "\n");
    text_add_folded(out,
                    "Time unless it says otherwise. n: tokens; d, e: widths; other letters are "
                    "explained on the mechanism's card.",
                    room, 0);
    for (int s = 0; s < SURVEYS; s++) {
        Text line = { 0 };

        text_addf(&line, "%s[%c] %s%s%s", style == TABLE_MARKDOWN ? "\n" : "", 'a' + s,
                  survey_title(s), survey_disagrees(s) ? "; " : "",
                  survey_disagrees(s) ? survey_disagrees(s) : "");
        text_add_folded(out, text_str(&line), room, 4);
        text_free(&line);
    }
    text_add(out, style == TABLE_MARKDOWN ? "\n" : "");
    text_add_folded(out,
                    "here: the complexity on the card of what runs, from its own paper or from its "
                    "parameters; where the run grows faster, the price on the card says so",
                    room, 0);
}

static void claim_json(Json *json, const System *system, int survey)
{
    const SystemClaim *claim = &system->claims[survey];

    if (!claim->complexity && !claim->class)
        return;
    jsonw_open(json, '{');
    jsonw_key_string(json, "source", survey_title(survey));
    jsonw_key_string(json, "complexity", claim->complexity);
    jsonw_key_string(json, "decoding", claim->decode);
    jsonw_key_string(json, "class", claim->class);
    jsonw_close(json, '}');
}

static void systems_json(Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '[');
    for (size_t i = 0; system_at(i); i++) {
        const System *system = system_at(i);

        jsonw_open(&json, '{');
        jsonw_key_string(&json, "system", system->name);
        jsonw_key_string(&json, "paper", system->cite);
        jsonw_key_string(&json, "part", system_part_title(system->part));
        jsonw_key_string(&json, "runs", system->runs);
        jsonw_key_open(&json, "claims", '[');
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
        mechanisms_json(out);
    else if (systems)
        systems_list(call_style(call), call_room(call), out);
    else
        list_catalogue(call_style(call), call_room(call), out);
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for the list");
}
