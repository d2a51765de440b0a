/* preset.c -- presets: stored commands that draw a figure, and the command preset. */
#include <string.h>

#include "app/command/command.h"

static const Preset presets[] = {
#define PRESET(id, title, source, words, help) { id, title, source, words, help },
#include "app/command/presets.def"
#undef PRESET
};

const Preset *preset_at(size_t index)
{
    return index < sizeof(presets) / sizeof(*presets) ? &presets[index] : NULL;
}

const Preset *preset_find(const char *id)
{
    for (size_t i = 0; preset_at(i); i++)
        if (!strcmp(presets[i].id, id))
            return &presets[i];
    return NULL;
}

bool preset_parse(const char *id, const Preset **out, Error *err)
{
    Meant nearest = { id, NULL, 2 + (int)strlen(id) / 4 };

    *out = preset_find(id);
    if (*out)
        return true;
    for (size_t i = 0; preset_at(i); i++)
        meant_offer(&nearest, presets[i].id);
    return error_set(err, ERR_USAGE, "unknown preset '%.64s'%s%s%s (attnscope preset lists them)",
                     id, nearest.name ? "; nearest is '" : "", nearest.name ? nearest.name : "",
                     nearest.name ? "'" : "");
}

void preset_command(const Preset *preset, Text *out)
{
    text_addf(out, "figure %s --title ", preset->words);
    word_quote(out, preset->title);
    text_add(out, " --caption ");
    text_addf(out, "'after %s'", preset->source);
}

/* ---- a preset and what changes it --------------------------------------------- */

/* The changes give another value. */
static bool is_replaced(const Call *changes, int id)
{
    if (!changes || id < 0 || id == OPT_PARAM)
        return false;
    if (id == OPT_CAUSAL || id == OPT_NOCAUSAL)
        return changes->values[OPT_CAUSAL] || changes->values[OPT_NOCAUSAL];
    return changes->values[id] != NULL;
}

/* How many words the option at words[at] takes, its value included. */
static int option_words(const char *word, int id)
{
    bool holds = word[1] == '-' ? strchr(word, '=') != NULL : word[2] != '\0';

    return id >= 0 && option_at(id)->value && !holds ? 2 : 1;
}

/* Appends the line's words without options that `changes` replaces; the first `skip` words name the
 * program and the command. */
static bool add_preset_words(const char *line, int skip, const Call *changes, bool preset,
                             Text *out, Error *err)
{
    const char *words[CALL_MAX_WORDS];
    Text        storage = { 0 };
    int         count = 0, length;
    bool        ok = call_split(line, words, CALL_MAX_WORDS, &count, &storage, err);

    for (int at = skip; ok && at < count; at += length) {
        int  id = call_option(command_find("figure"), words[at]);
        bool drop = preset ? is_replaced(changes, id) : id == OPT_PRESET;

        length = option_words(words[at], id);
        for (int i = at; !drop && i < at + length && i < count; i++) {
            text_add(out, " ");
            word_quote(out, words[i]);
        }
    }
    text_free(&storage);
    return ok;
}

static int names_before(const char *line)
{
    return strncmp(line, "attnscope ", strlen("attnscope ")) == 0 ? 2 : 1;
}

static bool parse_preset_line(PresetCall *out, Error *err)
{
    const char *words[CALL_MAX_WORDS];
    int         count;

    if (!call_split(text_str(&out->line), words, CALL_MAX_WORDS, &count, &out->storage, err) ||
        !call_parse(&out->call, words, count, err))
        return false;
    out->call.line = text_str(&out->line);
    return true;
}

bool preset_call(const Preset *preset, const Call *changes, PresetCall *out, Error *err)
{
    Text command = { 0 };
    bool ok;

    *out = (PresetCall){ 0 };
    if (changes && changes->word_count)
        return error_set(err, ERR_USAGE,
                         "a preset brings its panels, '%s' is one too many; attnscope preset %s "
                         "prints the command to change",
                         changes->words[0], preset->id);
    preset_command(preset, &command);
    text_add(&out->line, "figure");
    ok = add_preset_words(text_str(&command), 1, changes, true, &out->line, err);
    if (ok && changes && changes->line)
        ok = add_preset_words(changes->line, names_before(changes->line), changes, false,
                              &out->line, err);
    text_free(&command);
    if (!ok || !parse_preset_line(out, err))
        return false;
    if (changes) {
        out->call.tty = changes->tty;
        out->call.columns = changes->columns;
    }
    return true;
}

bool preset_expand(const char *line, PresetCall *out, Error *err)
{
    PresetCall    named = { 0 };
    const Preset *preset;
    bool          ok;

    *out = (PresetCall){ 0 };
    text_add(&named.line, line);
    ok = parse_preset_line(&named, err);
    if (ok && !named.call.values[OPT_PRESET]) {
        *out = named;
        return true;
    }
    ok = ok && preset_parse(named.call.values[OPT_PRESET], &preset, err) &&
         preset_call(preset, &named.call, out, err);
    preset_call_free(&named);
    return ok;
}

void preset_call_free(PresetCall *made)
{
    text_free(&made->line);
    text_free(&made->storage);
}

/* ---- the command preset -------------------------------------------------- */

static void presets_table(TableStyle style, Text *out)
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

static void presets_json(Text *out)
{
    Json json = jsonw_to(out);

    jsonw_open(&json, '[');
    for (size_t i = 0; preset_at(i); i++) {
        const Preset *p = preset_at(i);
        Text          command = { 0 };

        preset_command(p, &command);
        jsonw_open(&json, '{');
        jsonw_key_string(&json, "id", p->id);
        jsonw_key_string(&json, "title", p->title);
        jsonw_key_string(&json, "source", p->source);
        jsonw_key_string(&json, "help", p->help);
        jsonw_key_string(&json, "command", text_str(&command));
        jsonw_close(&json, '}');
        text_free(&command);
    }
    jsonw_close(&json, ']');
    text_add(out, "\n");
}

void preset_list(const Call *call, Text *out)
{
    if (call->values[OPT_JSON])
        presets_json(out);
    else
        presets_table(call_style(call), out);
}

bool command_preset(Session *s, const Call *call, Text *out, Error *err)
{
    const Preset *preset;

    (void)s;
    if (!call->word_count) {
        preset_list(call, out);
        return true;
    }
    if (!preset_parse(call->words[0], &preset, err))
        return false;
    text_add(out, "attnscope ");
    preset_command(preset, out);
    text_add(out, "\n");
    return true;
}
