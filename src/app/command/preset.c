/* preset.c -- presets: stored commands that draw a figure, and the command preset. */
#include <string.h>

#include "app/command/command.h"
#include "app/session/model_input.h"

static const Preset presets[] = {
#define PRESET(id, title, source, words, help) { id, title, source, words, help, false },
#define MODEL_PRESET(id, title, source, words, help) { id, title, source, words, help, true },
#include "app/command/presets.def"
#undef MODEL_PRESET
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

/* Its pictures depend on tokens: their number or an input is given. */
static bool has_data(const Preset *preset)
{
    return strstr(preset->words, " -n ") || strstr(preset->words, "--input");
}

void preset_command(const Preset *preset, Text *out)
{
    if (preset->model) {
        text_addf(out, "model MODEL.gguf --text " MODEL_USUAL_TEXT " %s -o %s.png", preset->words,
                  preset->id);
        return;
    }
    text_addf(out, "figure %s --title ", preset->words);
    word_quote(out, preset->title);
    text_add(out, " --caption ");
    text_addf(out, "'after %s%s'", preset->source, has_data(preset) ? "; {data}" : "");
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

/* What --preset and --input say stands elsewhere in the line that is made. */
static bool is_said(int id, bool model)
{
    return id == OPT_PRESET ||
           (model && (id == OPT_INPUT || id == OPT_TEXT || id == OPT_IDS || id == OPT_MOSTTOKENS ||
                      id == OPT_NOSPECIAL));
}

typedef struct PresetWords {
    const char *line;
    int         skip;   /* its first words: of the program and the command */
    const char *of;     /* the command */
    bool        preset; /* of the preset, not of the call that changes it */
    bool        model;
    const Call *changes; /* NULL: none */
} PresetWords;

static bool drops_word(const void *context, int id)
{
    const PresetWords *from = context;

    return from->preset ? is_replaced(from->changes, id) : is_said(id, from->model);
}

/* Appends the line's words without options that the changes replace. */
static bool add_preset_words(const PresetWords *from, Text *out, Error *err)
{
    WordRule rule = { command_find(from->of), from->skip, drops_word, from };

    return call_keep_words(from->line, &rule, out, err);
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

static bool no_panels(const Preset *preset, const Call *changes, Error *err)
{
    if (changes && changes->word_count)
        return error_set(err, ERR_USAGE,
                         "a preset brings its panels, '%s' is one too many; attnscope preset %s "
                         "prints the command to change",
                         changes->words[0], preset->id);
    return true;
}

/* The preset's words, then those of the call, parsed. */
static bool finish_call(const PresetWords *words, PresetCall *out, Error *err)
{
    const Call *changes = words->changes;
    PresetWords own = { .of = "figure", .model = words->model, .changes = changes };
    bool        ok = add_preset_words(words, &out->line, err);

    if (ok && changes && changes->line) {
        own.line = changes->line;
        own.skip = names_before(changes->line);
        ok = add_preset_words(&own, &out->line, err);
    }
    if (!ok || !parse_preset_line(out, err))
        return false;
    if (changes) {
        out->call.tty = changes->tty;
        out->call.paged = changes->paged;
        out->call.columns = changes->columns;
    }
    return true;
}

bool preset_call(const Preset *preset, const Call *changes, PresetCall *out, Error *err)
{
    Text command = { 0 };
    bool ok;

    *out = (PresetCall){ 0 };
    if (preset->model)
        return error_set(err, ERR_USAGE, "preset %s runs a model: attnscope figure --preset %s "
                         "--input model:FILE.gguf --text FILE -o %s.png, or an included sample: "
                         "--input model:" MODEL_INCLUDED " --text " MODEL_USUAL_TEXT, preset->id,
                         preset->id, preset->id);
    if (!no_panels(preset, changes, err))
        return false;
    preset_command(preset, &command);
    text_add(&out->line, "figure");
    ok = finish_call(&(PresetWords){ text_str(&command), 1, "figure", true, false, changes }, out,
                     err);
    text_free(&command);
    return ok;
}

/* "model PATH --text FILE": what --input says. */
static void add_model_words(const ModelSpec *parts, Text *out)
{
    const ModelText *text = &parts->text;

    text_add(out, "model ");
    word_quote(out, parts->path);
    text_addf(out, " --%s ", text->ids ? "ids" : "text");
    word_quote(out, text->ids ? text->ids : text->text ? text->text : MODEL_USUAL_TEXT);
    if (text->most)
        text_addf(out, " --max-tokens %lld", (long long)text->most);
    text_add(out, text->bare ? " --no-special" : "");
}

bool preset_model_call(const Preset *preset, const Call *changes, PresetCall *out, Error *err)
{
    const char *input = changes->values[OPT_INPUT];
    ModelSpec   parts;

    if (!preset->model || !input)
        return preset_call(preset, changes, out, err);
    *out = (PresetCall){ 0 };
    if (!model_spec_is(input))
        return error_set(err, ERR_USAGE, "preset %s runs a model: --input model:PATH, PATH a .gguf "
                         "file or a folder with config.json, not %.200s", preset->id, input);
    if (!no_panels(preset, changes, err) || !model_spec_parse(input, &parts, err))
        return false;
    add_model_words(&parts, &out->line);
    model_spec_free(&parts);
    return finish_call(&(PresetWords){ preset->words, 0, "model", true, true, changes }, out, err);
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
