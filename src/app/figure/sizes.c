/* sizes.c -- the sizes of a mechanism that decide its picture, in words; see picture.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/picture.h"

/* What a size counts: "global token"; NULL: its name says it. */
static const char *counted_of(const Param *param, bool blocks)
{
    if (!strcmp(param->name, "global"))
        return blocks ? "global block" : "global token";
    if (!strcmp(param->name, "random"))
        return blocks ? "random block" : "random key";
    return NULL;
}

/* How exactly or in which pieces something is computed is no size of it. */
static bool is_of_computing(const Mechanism *m, const Param *param)
{
    return strstr(param->name, "iter") || (!strcmp(param->name, "chunk") &&
                                           params_find(m->params, "form"));
}

/* "clusters" of n_clusters. */
static const char *size_name(const Param *param)
{
    bool number = !strncmp(param->name, "n_", 2) && strlen(param->name) > 4;

    return param->name + (number ? 2 : 0);
}

/* The value of the run: what a call that left it to the mechanism got. */
static void print_size(const Run *run, const Param *param, const void *values, Text *out)
{
    for (int k = 0; k < run->size_count; k++)
        if (!strcmp(run->sizes[k].name, param->name)) {
            text_addf(out, "%lld", (long long)run->sizes[k].value);
            return;
        }
    params_print(param, values, out);
}

/* ", window 3" or ", 2 global tokens"; nothing of a size that changes nothing, or that the title
 * names. */
static void add_size(const Result *result, const Param *param, const void *values, bool blocks,
                     Text *out)
{
    const Assignments *given = &result->request.given;
    const char *counted = counted_of(param, blocks), *value;
    Text        text = { 0 };

    print_size(result->run, param, values, &text);
    value = text_str(&text);
    if (isdigit((unsigned char)*value) && strcmp(value, "0") != 0 &&
        (counted || strcmp(value, "1") != 0) && !assignments_find(given, param->name)) {
        text_add(out, out->length ? ", " : "");
        if (counted) {
            text_addf(out, "%s %s%s%s", value, counted, strcmp(value, "1") ? "s" : "",
                      strcmp(param->name, "random") ? "" : " a row");
        } else {
            picture_words(size_name(param), out);
            text_addf(out, " %s", value);
        }
    }
    text_free(&text);
}

void picture_sizes(const Result *result, Text *out)
{
    const Request   *request = &result->request;
    const Mechanism *m = result->run->mechanism;
    const Param     *block;
    void            *values;

    values = m && m->params && !request->above ? calloc(1, m->params_size) : NULL;
    if (values && params_bind(m->params, values, &request->given, NULL)) {
        Text size = { 0 };

        block = params_find(m->params, "block");
        if (block)
            params_print(block, values, &size);
        for (const Param *p = m->params; p->name; p++)
            if ((p->type == PARAM_TYPE_INT || p->type == PARAM_TYPE_LIST) &&
                !is_of_computing(m, p))
                add_size(result, p, values, block && strcmp(text_str(&size), "1"), out);
        text_free(&size);
    }
    free(values);
}

