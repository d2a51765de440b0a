/* request.c -- requests from text and back; see session.h. */
#include "app/command/command.h"
#include "app/session/internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void request_free(Request *request)
{
    if (request->above)
        request_free(request->above);
    free(request->above);
    request->above = NULL;
    assignments_free(&request->given);
}

bool request_copy(Request *to, const Request *from, Error *err)
{
    Assignments given;
    Request    *above = from->above ? calloc(1, sizeof(*above)) : NULL;

    if (from->above && !above)
        return error_set(err, ERR_NOMEM, "not enough memory for a request");
    if ((above && !request_copy(above, from->above, err)) ||
        !assignments_copy(&given, &from->given, err)) {
        if (above)
            request_free(above);
        free(above);
        return false;
    }
    *to = *from;
    to->given = given;
    to->above = above;
    return true;
}

bool request_without_position(const Request *with, Request *out, Error *err)
{
    if (!request_copy(out, with, err))
        return false;
    snprintf(out->position, sizeof(out->position), "none");
    for (int i = out->given.count - 1; i >= 0; i--)
        if (!strncmp(out->given.items[i].name, "pos_", 4))
            assignments_remove(&out->given, out->given.items[i].name);
    return true;
}

bool request_same(const Request *a, const Request *b)
{
    Text x = { 0 }, y = { 0 };
    bool same;

    request_text(a, &x);
    request_text(b, &y);
    same = !strcmp(text_str(&x), text_str(&y)) && !strcmp(a->position, b->position) &&
           a->causal == b->causal && a->seed == b->seed && a->fit == b->fit && a->keys == b->keys &&
           a->ops == b->ops && a->normal.n == b->normal.n;
    text_free(&x);
    text_free(&y);
    return same;
}

static bool set_file(Session *s, Request *request, const char *name, const char *value, Error *err)
{
    Tensor tensor;

    if (!input_read_npy(value + 1, s->tensors, &tensor, err))
        return error_prefix(err, "parameter %s", name);
    return assignments_set_tensor(&request->given, name, tensor, value, err);
}

static bool true_or_false(const char *name, const char *value, bool *out, Error *err)
{
    *out = !strcmp(value, "true");
    return *out || !strcmp(value, "false") ||
           error_set(err, ERR_PARAM, "%s: expected true or false, got '%s'", name, value);
}

/* Settings that are no parameters but may differ between panels: position, seed, causal, fit,
 * device and precision.  False: the name is none of them. */
static bool set_common(Session *s, Request *request, const char *name, const char *value,
                       Error *err, bool *ok)
{
    const Mechanism *m = mechanism_find(request->mechanism);
    char            *end;
    bool             truth = false;

    if (m && mechanism_param(m, &request->given, name))
        return false;
    *ok = true;
    if (!strcmp(name, "position")) {
        snprintf(request->position, sizeof(request->position), "%s", value);
    } else if (!strcmp(name, "seed")) {
        errno = 0;
        request->seed = strtoull(value, &end, 10);
        *ok = (*value && !*end && !errno && *value != '-') ||
              error_set(err, ERR_PARAM, "seed: expected a number from 0, got '%s'", value);
    } else if (!strcmp(name, "causal")) {
        *ok = true_or_false(name, value, &truth, err);
        request->causal = truth;
    } else if (!strcmp(name, "fit")) {
        *ok = true_or_false(name, value, &request->fit, err);
    } else if (!strcmp(name, "device")) {
        *ok = request_device(s, request, value,
                             strcmp(value, "cpu") ? request->precision : NULL, err);
    } else if (!strcmp(name, "precision")) {
        *ok = request_device(s, request, request->device, value, err);
    } else {
        return false;
    }
    return true;
}

static bool set_one(Session *s, Request *request, const char *name, const char *value, Error *err)
{
    bool ok;

    if (set_common(s, request, name, value, err, &ok))
        return ok;
    return *value == '@' ? set_file(s, request, name, value, err)
                         : assignments_set(&request->given, name, value, err);
}

bool request_set(Session *s, Request *request, const char *assignment, Error *err)
{
    const char *equals = strchr(assignment, '=');
    char        name[64];

    if (!equals || equals == assignment)
        return error_set(err, ERR_PARAM, "'%s': expected name=value", assignment);
    if ((size_t)(equals - assignment) >= sizeof(name))
        return error_set(err, ERR_PARAM, "'%s': the name is too long", assignment);
    snprintf(name, sizeof(name), "%.*s", (int)(equals - assignment), assignment);
    return set_one(s, request, name, equals + 1, err);
}

bool request_set_tensor(Session *s, Request *request, const char *name, const Tensor *t, Error *err)
{
    Tensor copy;
    char   shape[80];

    if (!tensor_contiguous(t))
        return error_set(err, ERR_PARAM, "parameter %s: the tensor is not contiguous", name);
    copy = tensor_new(s->tensors, t->dtype, t->rank, t->shape);
    if (!copy.data)
        return error_set(err, ERR_NOMEM, "parameter %s: not enough memory", name);
    memcpy(copy.data, t->data, (size_t)tensor_bytes(t));
    return assignments_set_tensor(&request->given, name, copy,
                                  tensor_shape_text(t, shape, sizeof(shape)), err);
}

static bool parse_content(Session *s, Request *request, const char *content, Error *err)
{
    const Mechanism *m = mechanism_find(request->mechanism);
    const Param     *bare = *content && m ? mechanism_text_param(m, content) : NULL;
    Assignments      list = { 0 };
    bool             ok;

    if (bare)
        return assignments_set(&request->given, bare->name, content, err);
    ok = (!m || mechanism_check_content(m, content, err)) &&
         assignments_parse(&list, content, err);
    for (int i = 0; ok && i < list.count; i++)
        ok = set_one(s, request, list.items[i].name, list.items[i].text, err);
    assignments_free(&list);
    return ok;
}

static bool parse_layer(Session *s, Request *request, const char *text, Error *err)
{
    const char      *open = strchr(text, '(');
    size_t           length = open ? (size_t)(open - text) : strlen(text);
    const Mechanism *mechanism;
    char            *content;
    bool             ok;

    if (length >= sizeof(request->mechanism))
        length = sizeof(request->mechanism) - 1;
    snprintf(request->mechanism, sizeof(request->mechanism), "%.*s", (int)length, text);
    if (!mechanism_find(request->mechanism) && preset_find(request->mechanism))
        return error_set(err, ERR_USAGE,
                         "'%s' is a preset, not a mechanism "
                         "(attnscope figure --preset %s draws it)",
                         request->mechanism, request->mechanism);
    if (!mechanism_parse(request->mechanism, &mechanism, err))
        return false;
    if (!open)
        return true;
    if (text[strlen(text) - 1] != ')')
        return error_set(err, ERR_USAGE,
                         strchr(text, ')') ? "'%s': text after the closing parenthesis"
                                           : "'%s': the parenthesis is not closed",
                         text);
    content = strndup(open + 1, strlen(open + 1) - 1);
    if (!content)
        return error_set(err, ERR_NOMEM, "not enough memory");
    ok = parse_content(s, request, content, err);
    free(content);
    return ok || error_prefix(err, "%s", request->mechanism);
}

/* End of the layer that begins at text: a '>' outside brackets and quotes. */
static const char *layer_end(const char *text)
{
    int  depth = 0;
    char quote = 0;

    for (; *text && (*text != '>' || depth > 0 || quote); text++) {
        if (quote || *text == '"' || *text == '\'')
            quote = !quote ? *text : quote == *text ? 0 : quote;
        else
            depth += (*text == '(' || *text == '[') - (*text == ')' || *text == ']');
    }
    return text;
}

/* Common settings of the layers are those of the layer below. */
static Request *layer_above(const Request *below, Error *err)
{
    Request *above = calloc(1, sizeof(*above));

    if (!above) {
        error_set(err, ERR_NOMEM, "not enough memory for a layer");
        return NULL;
    }
    *above = *below;
    above->given = (Assignments){ 0 };
    above->above = NULL;
    return above;
}

bool request_parse(Session *s, Request *request, const char *text, Error *err)
{
    for (;;) {
        const char *end = layer_end(text);
        size_t      length = (size_t)(end - text);
        char       *layer;
        bool        ok;

        while (length && isspace((unsigned char)*text)) {
            text++;
            length--;
        }
        while (length && isspace((unsigned char)text[length - 1]))
            length--;
        layer = strndup(text, length);
        ok = layer ? parse_layer(s, request, layer, err)
                   : error_set(err, ERR_NOMEM, "not enough memory");
        free(layer);
        if (!ok || !*end)
            return ok;
        request->above = layer_above(request, err);
        if (!request->above)
            return false;
        request = request->above;
        text = end + 1;
    }
}

static bool parse_with(Session *s, Request *request, const Mechanism *m, const char *parameters,
                       Error *err)
{
    Text text = { 0 };
    bool ok;

    text_addf(&text, "%s(%s)", m->id, parameters ? parameters : "");
    ok = request_parse(s, request, text_str(&text), err);
    text_free(&text);
    return ok;
}

bool request_example(Session *s, Request *request, const Mechanism *m, Error *err)
{
    return parse_with(s, request, m, m->example, err);
}

bool request_lacks_parameter(const Request *request)
{
    const Mechanism *m = mechanism_find(request->mechanism);

    for (const Param *p = m->params; p->name; p++)
        if (p->type == PARAM_TYPE_TEXT && !p->optional &&
            !assignments_find(&request->given, p->name))
            return true;
    return false;
}

bool request_first_look(Session *s, Request *request, const Mechanism *m, Error *err)
{
    const Input *input = session_input(s);
    bool         few = input && input->n <= SKETCH_TOKENS;

    return parse_with(s, request, m, few && m->sketch ? m->sketch : m->example, err);
}

/* ---- back to text ----------------------------------------------------------- */

static void add_assignment(const char *name, const char *value, int *count, Text *out)
{
    text_add(out, (*count)++ ? "," : "(");
    assignment_print(name, value, out);
}

/* below: NULL, or the request whose seed, position, causal, fit and device this one shares unless
 * it names its own. */
static void add_layer(const Request *request, const Request *below, Text *out)
{
    char number[32];
    int  count = 0;

    text_add(out, request->mechanism);
    for (int i = 0; i < request->given.count; i++)
        add_assignment(request->given.items[i].name, request->given.items[i].text, &count, out);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)request->seed);
    if (below && request->seed != below->seed)
        add_assignment("seed", number, &count, out);
    if (below && request->causal != below->causal && request->causal >= 0)
        add_assignment("causal", request->causal ? "true" : "false", &count, out);
    if (below && request->fit != below->fit)
        add_assignment("fit", request->fit ? "true" : "false", &count, out);
    if (below && strcmp(request->position, below->position) != 0)
        add_assignment("position", request->position, &count, out);
    if (below && request->ops != below->ops)
        add_assignment("device", request->ops ? request->device : "cpu", &count, out);
    if (below && request->ops && request->ops != below->ops)
        add_assignment("precision", request->precision, &count, out);
    if (count)
        text_add(out, ")");
}

void request_text_beside(const Request *request, const Request *first, Text *out)
{
    add_layer(request, first, out);
    for (; request->above; request = request->above) {
        text_add(out, " > ");
        add_layer(request->above, request, out);
    }
}

void request_text(const Request *request, Text *out)
{
    request_text_beside(request, NULL, out);
}

static void add_word(Text *out, const char *word)
{
    text_add(out, " ");
    word_quote(out, word);
}

static void add_choice(const Session *s, Text *out)
{
    const InputChoice *c = &s->choice;

    if (s->spec) {
        text_add(out, " --input");
        add_word(out, s->spec);
    }
    if (c->layer > 0)
        text_addf(out, " --layer %lld", (long long)c->layer);
    if (c->n)
        text_addf(out, " -n %lld", (long long)c->n);
    if (c->d)
        text_addf(out, " -d %lld", (long long)c->d);
    if (c->heads)
        text_addf(out, " --heads %lld", (long long)c->heads);
}

void request_options(const Session *s, const Request *request, Text *out)
{
    add_choice(s, out);
    request_settings(request, out);
}

void request_settings(const Request *request, Text *out)
{
    if (request->causal >= 0)
        text_add(out, request->causal ? " --causal" : " --no-causal");
    if (strcmp(request->position, "none") != 0)
        text_addf(out, " --position %s", request->position);
    if (request->keys)
        text_addf(out, " --keys %d", request->keys);
    if (request->ops)
        text_addf(out, " --device %s", request->device);
    if (request->ops && strcmp(request->precision, "f32") != 0)
        text_addf(out, " --precision %s", request->precision);
    if (request->fit)
        text_add(out, " --fit");
    if (request->seed)
        text_addf(out, " --seed %llu", (unsigned long long)request->seed);
}

void request_command(const Session *s, const Request *request, const char *verb, Text *out)
{
    Text word = { 0 };

    text_addf(out, "attnscope %s", verb);
    request_text(request, &word);
    add_word(out, text_str(&word));
    text_free(&word);
    request_options(s, request, out);
}
