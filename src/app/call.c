/* call.c -- parses words to a Call by the table of options; see call.h. */
#include "app/command/command.h"
#include "app/figure/plan.h"
#include "app/glossary.h"
#include "app/session/model_input.h"
#include "core/text.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const Option options[] = {
#define OPTION(id, flag, letter, value, commands, help) { flag, letter, value, commands, help },
#include "app/options.def"
#undef OPTION
};

const Option *option_at(int id)
{
    return id >= 0 && id < OPT_COUNT ? &options[id] : NULL;
}

bool command_takes(const Command *command, const Option *option)
{
    size_t length = strlen(command->name);

    if (!strcmp(option->commands, "*"))
        return true;
    for (const char *s = option->commands; (s = strstr(s, command->name)); s += length)
        if ((s == option->commands || s[-1] == ' ') && (!s[length] || s[length] == ' '))
            return true;
    return false;
}

static int by_flag(const Command *command, const char *name, size_t length)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if (strlen(options[i].flag) == length && !strncmp(options[i].flag, name, length) &&
            command_takes(command, &options[i]))
            return i;
    return -1;
}

static int by_letter(const Command *command, char letter)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if (letter && options[i].letter == letter && command_takes(command, &options[i]))
            return i;
    return -1;
}

int call_option(const Command *command, const char *word)
{
    if (word[0] != '-' || !word[1])
        return -1;
    return word[1] == '-' ? by_flag(command, word + 2, strcspn(word + 2, "="))
                          : by_letter(command, word[1]);
}

/* How many words the option `id` at `word` takes, its value included. */
static int option_words(const char *word, int id)
{
    bool holds = word[1] == '-' ? strchr(word, '=') != NULL : word[2] != '\0';

    return id >= 0 && options[id].value && !holds ? 2 : 1;
}

bool call_keep_words(const char *line, const WordRule *rule, Text *out, Error *err)
{
    const char *words[CALL_MAX_WORDS];
    Text        storage = { 0 };
    int         count = 0, length;
    bool        ok = call_split(line, words, CALL_MAX_WORDS, &count, &storage, err);

    for (int at = rule->skip; ok && at < count; at += length) {
        int id = rule->command ? call_option(rule->command, words[at]) : -1;

        length = option_words(words[at], id);
        for (int i = at; !rule->drops(rule->context, id) && i < at + length && i < count; i++) {
            text_add(out, out->length ? " " : "");
            word_quote(out, words[i]);
        }
    }
    text_free(&storage);
    return ok;
}

/* "--csv=x" and "-q": of the option's own flag or letter. */
static bool is_named(const Option *option, const char *word)
{
    size_t length;

    if (word[1] != '-')
        return word[1] && option->letter == word[1];
    length = strcspn(word + 2, "=");
    return strlen(option->flag) == length && !strncmp(option->flag, word + 2, length);
}

/* The commands that take an option of this name, as in "compare sweep fit"; empty: none. */
static void others_with(const char *word, Text *out)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if (is_named(&options[i], word) && options[i].commands)
            text_addf(out, "%s%s", out->length ? " " : "", options[i].commands);
}

static bool unknown_option(const Command *command, const char *word, Error *err)
{
    const char *flag = word + strspn(word, "-");
    Meant       nearest = { flag, NULL, strlen(flag) < 5 ? 2 : 4 }; /* half a word is no typo */
    Text        others = { 0 };

    if (command->run == command_reach && (!strcmp(flag, "o") || !strncmp(flag, "output", 6)))
        return error_set(err, ERR_USAGE, "reach prints its numbers and writes no figure: attnscope "
                         "figure MECH:reach -o FILE draws them");
    others_with(word, &others);
    for (int i = 0; word[1] == '-' && !others.length && i < OPT_COUNT; i++)
        if (command_takes(command, &options[i]))
            meant_offer(&nearest, options[i].flag);
    error_set(err, ERR_USAGE, "%s has no option '%s'%s%s%s%s; attnscope %s --help lists %s",
              command->name, word, nearest.name ? "; did you mean --" : "",
              others.length ? " (an option of: " : nearest.name ? nearest.name : "",
              others.length ? text_str(&others) : nearest.name ? "?" : "",
              others.length ? ")" : "", command->name, others.length ? "its own" : "them");
    text_free(&others);
    return false;
}

bool command_draws(const Command *command)
{
    return command_takes(command, &options[OPT_OUTPUT]) &&
           command_takes(command, &options[OPT_FORMAT]);
}

/* The fits of a sweep go to several files, too: a chart and a table. */
static bool takes_files(const Command *command)
{
    return command_draws(command) || command->run == command_fit;
}

static bool add_output(Call *call, const char *path, Error *err)
{
    if (call->file_count && !takes_files(call->command))
        return error_set(err, ERR_USAGE, "%s writes one file: -o %s or -o %s?",
                         call->command->name, call->files[0], path);
    for (int i = 0; i < call->file_count; i++)
        if (!strcmp(call->files[i], path))
            return error_set(err, ERR_USAGE, "-o %s stands there twice", path);
    if (call->file_count == CALL_MAX_FILES)
        return error_set(err, ERR_USAGE, "more than %d files", CALL_MAX_FILES);
    call->files[call->file_count++] = path;
    call->values[OPT_OUTPUT] = call->files[0];
    return true;
}

/* An option that may be repeated; values[] has the first. */
static bool add_to_list(Call *call, int id, const char *value, const char **list, int *count,
                        Error *err)
{
    if (*count == CALL_MAX_WORDS)
        return error_set(err, ERR_USAGE, "more than %d --%s", CALL_MAX_WORDS, options[id].flag);
    list[(*count)++] = value;
    call->values[id] = list[0];
    return true;
}

static bool add_of_swap(Call *call, int id, const char *value, CallOfSwap *list, int *count,
                        Error *err)
{
    if (*count == CALL_MAX_WORDS)
        return error_set(err, ERR_USAGE, "more than %d --%s", CALL_MAX_WORDS, options[id].flag);
    list[(*count)++] = (CallOfSwap){ value, call->swap_count };
    call->values[id] = list[0].text;
    return true;
}

static bool set_option(Call *call, int id, const char *value, Error *err)
{
    if (id == OPT_OUTPUT)
        return add_output(call, value, err);
    if (id == OPT_MECH) { /* -m X is the word X: several may be given */
        if (call->word_count == CALL_MAX_WORDS)
            return error_set(err, ERR_USAGE, "more than %d words", CALL_MAX_WORDS);
        call->words[call->word_count++] = value;
        return true;
    }
    if (id == OPT_TEXT)
        return add_to_list(call, id, value, call->texts, &call->text_count, err);
    if (id == OPT_SWAP)
        return add_to_list(call, id, value, call->swaps, &call->swap_count, err);
    if (id == OPT_SWAPLAYERS)
        return add_of_swap(call, id, value, call->swap_layers, &call->swap_layers_count, err);
    if (id == OPT_SWAPHEADS)
        return add_of_swap(call, id, value, call->swap_heads, &call->swap_heads_count, err);
    if (id == OPT_STACK)
        return add_to_list(call, id, value, call->stacks, &call->stack_count, err);
    if (id != OPT_PARAM) {
        if (options[id].value && call->values[id] && !call->twice.flag)
            call->twice = (CallTwice){ options[id].flag, call->values[id], value };
        call->values[id] = value;
        return true;
    }
    if (call->param_count == CALL_MAX_WORDS)
        return error_set(err, ERR_USAGE, "more than %d parameters", CALL_MAX_WORDS);
    call->params[call->param_count++] = value;
    return true;
}

/* One option word; *at moves past a value given as the next word. */
static bool parse_option(Call *call, const char *const *words, int count, int *at, Error *err)
{
    const char *word = words[*at], *value = NULL;
    bool        is_long = word[1] == '-';
    size_t      length = is_long ? strcspn(word + 2, "=") : 1;
    int         id = call_option(call->command, word);

    if (id < 0)
        return unknown_option(call->command, word, err);
    value = word + (is_long ? 2 : 1) + length;
    if (!options[id].value) {
        if (*value)
            return error_set(err, ERR_USAGE, "--%s takes no value, got '%s'", options[id].flag,
                             word);
        return set_option(call, id, "", err);
    }
    if (*value == '=' && (is_long || value[1]))
        return set_option(call, id, value + 1, err);
    if (*value)
        return set_option(call, id, value, err);
    if (*at + 1 >= count)
        return error_set(err, ERR_USAGE, "--%s needs a value: %s", options[id].flag,
                         options[id].value);
    return set_option(call, id, words[++*at], err);
}

static bool unknown_command(const char *word, Error *err)
{
    Meant nearest = { word, NULL, 2 + (int)strlen(word) / 4 };
    Text  names = { 0 };

    for (size_t i = 0; command_at(i); i++) {
        meant_offer(&nearest, command_at(i)->name);
        text_addf(&names, "%s%s", i ? " " : "", command_at(i)->name);
    }
    if (gloss_find(word))
        error_set(err, ERR_USAGE, "'%s' is neither a command nor a file; it is a word that "
                  "'attnscope info %s' explains", word, word);
    else
        error_set(err, ERR_USAGE, "'%s' is neither a command nor a file%s%s%s (there are: %s)",
                  word, nearest.name ? "; nearest is '" : "", nearest.name ? nearest.name : "",
                  nearest.name ? "'" : "", text_str(&names));
    text_free(&names);
    return false;
}

/* Runs before the command: reports files of no known kind, and files of two kinds when --format
 * names one. */
static bool check_files(const Call *call, Error *err)
{
    const PngOptions kind = { .format = call->values[OPT_FORMAT] };
    FigureFormat     format;

    if (call->file_count && !command_draws(call->command))
        return true;
    if (call->file_count > 1 && kind.format)
        return error_set(err, ERR_USAGE, "--format is of one file: of several, each name's ending "
                                         "says its kind");
    for (int i = 0; i < call->file_count; i++)
        if (!figure_format(call->files[i], &kind, &format, err))
            return false;
    return true;
}

/* Reports words and options that the command would ignore. */
static bool check_surplus(const Call *call, Error *err)
{
    int formats = !!call->values[OPT_JSON] + !!call->values[OPT_CSV] + !!call->values[OPT_MD];

    if (call->word_count > call->command->most_words)
        return error_set(err, ERR_USAGE, "%s takes %d word%s; '%s' is one too many",
                         call->command->name, call->command->most_words,
                         call->command->most_words == 1 ? "" : "s",
                         call->words[call->command->most_words]);
    if (formats > 1)
        return error_set(err, ERR_USAGE, "choose one of --json, --csv and --md");
    if (call->values[OPT_CAUSAL] && call->values[OPT_NOCAUSAL])
        return error_set(err, ERR_USAGE, "choose one of --causal and --no-causal");
    return true;
}

bool call_gives_once(const Call *call, Error *err)
{
    const CallTwice *t = &call->twice;

    return !t->flag || error_set(err, ERR_USAGE, "--%s takes one value, but two are given: %.100s "
                                 "and %.100s", t->flag, t->first, t->second);
}

bool call_to_stdout(const Call *call)
{
    for (int i = 0; i < call->file_count; i++)
        if (!strcmp(call->files[i], "-"))
            return true;
    return false;
}

bool call_model_text(const Call *call, ModelText *out, Error *err)
{
    *out = (ModelText){ .text = call->values[OPT_TEXT], .ids = call->values[OPT_IDS],
                        .bare = call->values[OPT_NOSPECIAL] != NULL };
    if (out->text && out->ids)
        return error_set(err, ERR_USAGE, "choose one of --text and --ids");
    return call_int(call, OPT_MOSTTOKENS, 1, INT64_C(1) << 40, &out->most, err);
}

const char *call_keep_word(const char *word)
{
    typedef struct Kept {
        struct Kept *next;
        char         word[];
    } Kept;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static Kept           *all;
    size_t                 size = strlen(word) + 1;
    Kept                  *kept;

    pthread_mutex_lock(&lock);
    for (kept = all; kept && strcmp(kept->word, word) != 0;)
        kept = kept->next;
    if (!kept && (kept = malloc(sizeof(*kept) + size))) {
        memcpy(kept->word, word, size);
        kept->next = all;
        all = kept;
    }
    pthread_mutex_unlock(&lock);
    return kept ? kept->word : NULL;
}

/* Puts --text and its neighbours into the name of the input, which a session, a figure and a sweep
 * carry on. */
static bool join_model_text(Call *call, Error *err)
{
    const char *input = call->values[OPT_INPUT];
    ModelText   text;
    Text        spec = { 0 };
    bool        ok;

    if (!command_takes(call->command, &options[OPT_INPUT]) ||
        !(call->values[OPT_TEXT] || call->values[OPT_IDS] || call->values[OPT_MOSTTOKENS] ||
          call->values[OPT_NOSPECIAL]))
        return true;
    if (!input && call->command->run == command_rerender)
        return true; /* of a model that the figure names */
    if (!input || !model_spec_is(input))
        return error_set(err, ERR_USAGE, "--text, --ids, --max-tokens and --no-special are for a "
                         "model: --input model:PATH, PATH a .gguf file or a folder with "
                         "config.json%s%.100s", input ? ", not " : "", input ? input : "");
    if (call->text_count > 1)
        return error_set(err, ERR_USAGE, "%s takes one --text; attnscope model takes several",
                         call->command->name);
    ok = call_model_text(call, &text, err) && model_spec_write(input, &text, &spec, err);
    if (ok && !(call->values[OPT_INPUT] = call_keep_word(text_str(&spec))))
        ok = error_set(err, ERR_NOMEM, "not enough memory for an input's name");
    text_free(&spec);
    return ok;
}

bool call_parse(Call *call, const char *const *words, int count, Error *err)
{
    bool only_words = false;

    *call = (Call){ .command = count ? command_find(words[0]) : NULL };
    if (!call->command)
        return unknown_command(count ? words[0] : "", err);
    for (int i = 1; i < count; i++) {
        const char *word = words[i];

        if (!only_words && !strcmp(word, "--")) {
            only_words = true;
        } else if (!only_words && word[0] == '-' && word[1]) {
            if (!parse_option(call, words, count, &i, err))
                return false;
        } else if (call->word_count == CALL_MAX_WORDS) {
            return error_set(err, ERR_USAGE, "more than %d words", CALL_MAX_WORDS);
        } else {
            call->words[call->word_count++] = word;
        }
    }
    if (call->values[OPT_NOCAPTION]) /* nor the signs of what it would tell */
        call->values[OPT_CAPTION] = "";
    return check_surplus(call, err) && check_files(call, err) && join_model_text(call, err);
}

/* ---- a typed line ----------------------------------------------------------- */

/* Copies one word without its quotes; returns where it ended, NULL: open quote. */
static const char *split_word(const char *s, Text *out)
{
    char quote = 0;

    for (; *s && (quote || !isspace((unsigned char)*s)); s++) {
        if (quote && *s == quote)
            quote = 0;
        else if (!quote && (*s == '\'' || *s == '"'))
            quote = *s;
        else if (*s == '\\' && s[1] && quote != '\'')
            text_add_bytes(out, ++s, 1);
        else
            text_add_bytes(out, s, 1);
    }
    return quote ? NULL : s;
}

bool call_split(const char *line, const char **words, int most, int *count, Text *storage,
                Error *err)
{
    size_t starts[CALL_MAX_WORDS];

    *count = 0;
    if (most > CALL_MAX_WORDS)
        most = CALL_MAX_WORDS;
    for (;;) {
        while (isspace((unsigned char)*line))
            line++;
        if (!*line)
            break;
        if (*count == most)
            return error_set(err, ERR_USAGE, "more than %d words", most);
        starts[(*count)++] = storage->length;
        line = split_word(line, storage);
        if (!line)
            return error_set(err, ERR_USAGE, "a quote is not closed");
        text_add_bytes(storage, "", 1);
    }
    if (!text_ok(storage))
        return error_set(err, ERR_NOMEM, "not enough memory for the line");
    for (int i = 0; i < *count; i++)
        words[i] = storage->data + starts[i];
    return true;
}

/* ---- numbers of options ----------------------------------------------------- */

bool call_int(const Call *call, int id, int64_t lo, int64_t hi, int64_t *out, Error *err)
{
    const char *text = call->values[id];
    int64_t     value;

    if (!text)
        return true;
    if (!text_whole(text, &value))
        return error_set(err, ERR_USAGE, "--%s: expected an integer from %lld to %lld, got '%s'"
                         WHOLE_FORMS, options[id].flag, (long long)lo, (long long)hi, text);
    if (value < lo || value > hi)
        return error_set(err, ERR_USAGE, "--%s: expected an integer from %lld to %lld, got '%s'",
                         options[id].flag, (long long)lo, (long long)hi, text);
    *out = value;
    return true;
}

/* "8G", "512M", "1.5GiB" or plain bytes. */
bool call_size(const Call *call, int id, int64_t *out, Error *err)
{
    static const char units[] = "KMGT";
    const char       *text = call->values[id], *unit;
    char             *end;
    double            value;

    if (!text)
        return true;
    value = strtod(text, &end);
    unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    for (const char *u = units; unit && u <= unit; u++)
        value *= 1024;
    if (end == text || !(value >= 1) || (*end && !unit) ||
        (unit && end[1] && strcasecmp(end + 1, "iB") != 0 && strcasecmp(end + 1, "B") != 0))
        return error_set(err, ERR_USAGE, "--%s: expected a size like 512M or 8G, got '%s'",
                         options[id].flag, text);
    if (!(value < 0x1p62))
        return error_set(err, ERR_USAGE, "--%s: no memory is as large as '%s'", options[id].flag,
                         text);
    *out = (int64_t)value;
    return true;
}

#define IDS_MOST 16

/* Mechanisms that a word names: a panel may be a difference, or several curves. */
static int mechanisms_of(const char *words, char ids[IDS_MOST][48])
{
    PanelWord panel;
    Error     ignored;
    int       count = 0;

    for (const char *end; *words; words = *end ? end + 3 : end) {
        char *word = strndup(words, (size_t)((end = panel_word_end(words)) - words));
        bool  ok = word && panel_word_parse(word, &panel, &ignored);

        free(word);
        for (int side = 0; ok && side < 2; side++) {
            const char *text = side ? panel.minus : panel.mechanism;

            if (text && count < IDS_MOST)
                snprintf(ids[count++], 48, "%.*s", (int)strcspn(text, "("), text);
        }
        if (ok)
            panel_word_free(&panel);
    }
    return count;
}

static int mechanisms_named(const Call *call)
{
    char ids[IDS_MOST][48];
    int  count = 0;

    for (int w = 0; w < call->word_count; w++)
        count += mechanisms_of(call->words[w], ids);
    return count;
}

/* True: every mechanism runs from its parameters alone, so any input will do. */
static bool none_reads_input(const Call *call)
{
    char ids[IDS_MOST][48];

    for (int w = 0; w < call->word_count; w++)
        for (int i = mechanisms_of(call->words[w], ids); i > 0; i--) {
            const Mechanism *m = mechanism_find(ids[i - 1]);

            if (!m || !m->needs_none)
                return false;
        }
    return mechanisms_named(call) > 0;
}

/* The argument heads, not kv_heads. */
static bool names_heads(const char *spec)
{
    for (const char *at = spec; (at = strstr(at, "heads=")); at++)
        if (at > spec && at[-1] != '_')
            return true;
    return false;
}

int64_t call_heads(const Call *call, const char *spec)
{
    char ids[IDS_MOST][48];

    if (strncmp(spec, "synthetic:", strlen("synthetic:")) != 0 || names_heads(spec))
        return 0;
    for (int w = 0; w < call->word_count; w++)
        for (int i = mechanisms_of(call->words[w], ids); i > 0; i--) {
            const Mechanism *m = mechanism_find(ids[i - 1]);

            if (m && m->pairs_heads)
                return 2;
        }
    return 0;
}

bool call_load_input(Session *s, const Call *call, Error *err)
{
    InputChoice choice = INPUT_CHOICE_DEFAULT;
    const char *spec = call->values[OPT_INPUT];
    int64_t     seed = 0, memory = 0;

    if (!call_int(call, OPT_LAYER, 0, 100000, &choice.layer, err) ||
        !call_int(call, OPT_N, 1, INT64_C(1) << 40, &choice.n, err) ||
        !call_int(call, OPT_D, 1, 65536, &choice.d, err) ||
        !call_int(call, OPT_HEADS, 1, 65536, &choice.heads, err) ||
        !call_int(call, OPT_SEED, 0, INT64_MAX, &seed, err))
        return false;
    choice.seed = (uint64_t)seed;
    /* --mem limits a run, not its input; a larger limit allows a larger input, too. */
    if (!call_size(call, OPT_MEM, &memory, err))
        return false;
    choice.max_bytes = memory;
    if (!spec && session_input(s) && !call->values[OPT_N] && !call->values[OPT_D] &&
        !call->values[OPT_HEADS] && !call->values[OPT_LAYER])
        return true;
    if (!spec && (choice.n || choice.d || choice.heads))
        spec = "synthetic:normal";
    if (!spec)
        spec = session_default_sample(s, err);
    if (!spec && none_reads_input(call))
        spec = "synthetic:normal";
    if (spec && !choice.heads)
        choice.heads = call_heads(call, spec);
    return spec && session_load(s, spec, &choice, err) &&
           (!call->input_name || session_input_as(s, call->input_name, call->input_sha256, err));
}

/* With several mechanisms, a -p goes to those that have the parameter. */
static bool belongs(const Call *call, const char *mechanism, const char *assignment)
{
    const Mechanism *m = mechanism_find(mechanism);
    const Param     *choice = m && m->inner ? params_find(m->params, m->inner) : NULL;
    const Mechanism *inner = choice ? mechanism_find(choice->word) : NULL;
    size_t           length = choice ? strlen(choice->name) : 0;
    const char      *passed;
    char             name[64];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(assignment, "="), assignment);
    for (int i = 0; choice && i < call->param_count; i++)
        if (!strncmp(call->params[i], choice->name, length) && call->params[i][length] == '=')
            inner = mechanism_find(call->params[i] + length + 1);
    passed = m ? mechanism_inner_name(m, name) : NULL;
    return !strncmp(name, "pos_", 4) || (inner && passed && params_find(inner->params, passed)) ||
           (m && (params_find(m->params, name) || params_find(mechanism_common(), name) ||
                  (m->free_tensors && strchr(assignment, '@'))));
}

bool call_check_params(const Call *call, Error *err)
{
    for (int i = 0; i < call->param_count; i++) {
        bool found = mechanisms_named(call) < 2;

        for (int w = 0; w < call->word_count && !found; w++) {
            char ids[IDS_MOST][48];

            found = strchr(call->words[w], '>') != NULL; /* layers: each is checked later */
            for (int side = mechanisms_of(call->words[w], ids); side > 0 && !found; side--)
                found = belongs(call, ids[side - 1], call->params[i]);
        }
        if (!found)
            return error_set(err, ERR_PARAM, "-p %s: none of these mechanisms has this parameter",
                             call->params[i]);
    }
    return true;
}

/* "1%" or "0.01": a share above 0 and below 1. */
bool call_share(const Call *call, int id, double *out, Error *err)
{
    const char *text = call->values[id];
    char       *end;
    double      value;

    if (!text)
        return true;
    value = strtod(text, &end);
    if (*end == '%') {
        value /= 100;
        end++;
    }
    if (end == text || *end || !(value > 0) || !(value < 1))
        return error_set(err, ERR_USAGE, "--%s: expected a share such as 1%% or 0.01, not '%s'",
                         option_at(id)->flag, text);
    *out = value;
    return true;
}

bool call_request(Session *s, const Call *call, const char *mechanism, Request *out, Error *err)
{
    int64_t seed = 0, threads = 0, repeat = 0, seeds = 0, keys = 0, rows = 0;

    *out = REQUEST_INIT;
    if (call->values[OPT_POSITION])
        snprintf(out->position, sizeof(out->position), "%s", call->values[OPT_POSITION]);
    if (!request_device(s, out, call->values[OPT_DEVICE], call->values[OPT_PRECISION], err) ||
        !call_int(call, OPT_SEED, 0, INT64_MAX, &seed, err) ||
        !call_int(call, OPT_THREADS, 1, 4096, &threads, err) ||
        !call_int(call, OPT_REPEAT, 1, 1000000, &repeat, err) ||
        !call_int(call, OPT_KEYS, 1, MISSED_MOST, &keys, err) ||
        !call_int(call, OPT_SEEDS, 1, 100000, &seeds, err) ||
        !call_int(call, OPT_QROWS, 2, INT32_MAX, &rows, err) ||
        !call_share(call, OPT_WITHIN, &out->width, err) ||
        !call_size(call, OPT_MEM, &out->memory_limit, err))
        return false;
    out->seed = (uint64_t)seed;
    out->keys = (int)keys;
    out->fit = call->values[OPT_FIT] != NULL;
    out->threads = (int)threads;
    out->repeat = (int)repeat;
    out->seeds = (int)seeds;
    out->quality_rows = rows;
    if (call->values[OPT_CAUSAL] || call->values[OPT_NOCAUSAL])
        out->causal = call->values[OPT_CAUSAL] != NULL;
    out->decode = call->values[OPT_DECODE] != NULL;
    /* Parameters in the mechanism's own parentheses override the options. */
    if (!request_parse(s, out, mechanism, err))
        goto failed;
    for (Request *r = out; r; r = r->above)
        for (int i = 0; i < call->param_count; i++)
            if (((mechanisms_named(call) < 2 && !out->above) ||
                 belongs(call, r->mechanism, call->params[i])) &&
                !request_set(s, r, call->params[i], err))
                goto failed;
    return true;
failed:
    request_free(out);
    return false;
}

bool call_refuse_stack(const Call *call, Request *request, Error *err)
{
    if (!request->above)
        return true;
    request_free(request);
    return error_set(err, ERR_USAGE, "%s takes single mechanisms; a stack of layers (A > B) is for "
                     "reach and for figures of it", call->command->name);
}
