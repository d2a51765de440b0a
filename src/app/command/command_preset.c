/* command_preset.c -- the presets as a list, or one as the command it is. */
#include "app/command/command_parts.h"
#include "app/command/preset.h"

static void list_presets(TableStyle style, Text *out)
{
    Table t = { .cols = 3 };

    table_cell(&t, "preset");
    table_cell(&t, "title");
    table_cell(&t, "from");
    for (size_t i = 0; preset_at(i); i++) {
        table_cell(&t, "%s", preset_at(i)->id);
        table_cell(&t, "%s", preset_at(i)->title);
        table_cell(&t, "%s", preset_at(i)->source);
    }
    table_write(&t, style, out);
    table_free(&t);
}

static void list_json(Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '[');
    for (size_t i = 0; preset_at(i); i++) {
        const Preset *p = preset_at(i);
        Text          command = { 0 };

        preset_command(p, &command);
        jsonw_open(&json, '{');
        jsonw_key(&json, "id"), jsonw_string(&json, p->id);
        jsonw_key(&json, "title"), jsonw_string(&json, p->title);
        jsonw_key(&json, "source"), jsonw_string(&json, p->source);
        jsonw_key(&json, "help"), jsonw_string(&json, p->help);
        jsonw_key(&json, "command"), jsonw_string(&json, text_str(&command));
        jsonw_close(&json, '}');
        text_free(&command);
    }
    jsonw_close(&json, ']');
    text_add(out, "\n");
}

void presets_list(const Call *call, Text *out)
{
    if (call->values[OPT_JSON])
        list_json(out);
    else
        list_presets(call->values[OPT_CSV]  ? TABLE_CSV
                     : call->values[OPT_MD] ? TABLE_MARKDOWN
                                            : TABLE_TEXT,
                     out);
}

bool command_preset(Session *s, const Call *call, Text *out, Error *err)
{
    const Preset *preset;

    (void)s;
    if (!call->word_count) {
        presets_list(call, out);
        return true;
    }
    if (!preset_parse(call->words[0], &preset, err))
        return false;
    text_add(out, "attnscope ");
    preset_command(preset, out);
    text_add(out, "\n");
    return true;
}
