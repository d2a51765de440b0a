/* inputs.c -- see inputs.h. */
#include "app/session/inputs.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "app/command/command_parts.h"
#include "input/input.h"

#define SAMPLE "sample:"

static const struct {
    const char *name, *help;
} samples[] = {
    { "induction.safetensors", "q, k, v of a trained model of 2 layers with 4 heads, 96 tokens" },
    { "induction.npz", "its second layer" },
    { "english.tokens.txt", "a short tale of 309 words and signs, one in each line" },
    { "english.txt", "the same as one reads it" },
    { "image.png", "an evening scene of 32 x 32 pixels" },
};

static bool is_sample(const char *spec)
{
    return !strncmp(spec, SAMPLE, strlen(SAMPLE));
}

static bool no_sample(const char *name, Error *err)
{
    Text names = { 0 };
    bool known = false;

    for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
        text_addf(&names, "%s %s", i ? "," : "", samples[i].name);
        known |= !strcmp(name, samples[i].name);
    }
    if (known)
        error_set(err, ERR_FILE, "input: the sample %s is not beside the program, in samples or "
                  "../share/attnscope/samples", name);
    else
        error_set(err, ERR_FILE, "input: there is no shipped sample '%.80s'; there are%s", name,
                  text_str(&names));
    text_free(&names);
    return false;
}

bool session_input_path(Session *s, const char *spec, Text *out, Error *err)
{
    const char *name = spec + strlen(SAMPLE), *arrays, *path = spec;
    char        file[NAME_MAX + 1];

    if (is_sample(spec)) {
        arrays = name + strcspn(name, "["); /* "induction.npz[q=k]" */
        snprintf(file, sizeof(file), "%.*s", (int)(arrays - name), name);
        path = *file && !strchr(file, '/') ? session_find_shipped(s, "samples", file) : NULL;
        if (!path)
            return no_sample(file, err);
        text_add(out, path);
        path = arrays;
    }
    text_add(out, path);
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for a path");
}

Input *session_read_input(Session *s, const char *spec, const InputChoice *choice, Error *err)
{
    Text   path = { 0 };
    Input *input = session_input_path(s, spec, &path, err)
                       ? input_load(text_str(&path), choice, err)
                       : NULL;

    text_free(&path);
    if (!input || !is_sample(spec))
        return input;
    input->name = arena_strdup(input->arena, spec);
    if (input->name)
        return input;
    input_free(input);
    error_set(err, ERR_NOMEM, "%s: not enough memory", spec);
    return NULL;
}

void inputs_describe(Text *out)
{
    Table t = { .cols = 3 }, files = { .cols = 2 };

    text_add(out, "made: --input 'synthetic:NAME(argument=value,..)'\n");
    for (const InputGenerator *g = input_generators(); g->name; g++) {
        const char *common = strstr(g->arguments, "match="); /* the last that all have */
        const char *own = common ? strchr(common, ',') : NULL;

        table_cell(&t, "  %s", g->name);
        table_cell(&t, "%s", own ? own + strlen(", ") : "");
        table_cell(&t, "%s", g->help);
    }
    table_write(&t, TABLE_TEXT, out);
    table_free(&t);
    text_add(out, "all of them take n=64, d=64, heads=1, seed=0 and match=0, the score of a full "
                  "match;\n0 of match, period, block and the like: chosen from n\n\n"
                  "that come with the program: --input sample:NAME\n");
    for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
        table_cell(&files, "  %s", samples[i].name);
        table_cell(&files, "%s", samples[i].help);
    }
    table_write(&files, TABLE_TEXT, out);
    table_free(&files);
    text_add(out, "texts and pictures hold no model: equal words and like pixels attend to each "
                  "other\n\nfrom files: npy, npz, safetensors, csv, json, txt, png; attnscope info "
                  "FILE says what one holds;\narrays that are called otherwise: "
                  "--input 'layer.npz[q=query,k=key,v=value]', also x, attn, segments, tokens\n");
}
