/* reader_words.c -- mechanisms, inputs and messages in words for readers of a figure, where a
 * command line has ids and options; see picture.h. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/picture.h"
#include "attn/run/position.h"

/* A path or a file's name stays as it is. */
static bool is_file_name(const char *word, size_t length)
{
    for (size_t k = 0; k + 1 < length; k++)
        if (word[k] == '/' || (word[k] == '.' && isalpha((unsigned char)word[k + 1])))
            return true;
    return false;
}

/* One word of a message: "causal" of "--causal", "random blocks" of "random_blocks", "m = 64" of
 * "m=64", "window 5" of "window=5". */
static void add_reader_word(const char *word, size_t length, Text *out)
{
    size_t name = 0; /* letters before this one */

    if (length > 2 && !strncmp(word, "--", 2) && isalpha((unsigned char)word[2])) {
        word += 2;
        length -= 2;
    }
    for (size_t k = 0; k < length; k++) {
        bool inner = name > 0 && k + 1 < length && isalnum((unsigned char)word[k + 1]);

        if (word[k] == '=' && inner)
            text_add(out, name == 1 ? " = " : " ");
        else
            text_add_bytes(out, word[k] == '_' && inner ? " " : word + k, 1);
        name = isalnum((unsigned char)word[k]) || word[k] == '_' ? name + 1 : 0;
    }
}

void add_reader_words(const char *text, Text *out)
{
    while (*text) {
        size_t length = strcspn(text, " ");

        if (is_file_name(text, length))
            text_add_bytes(out, text, length);
        else
            add_reader_word(text, length, out);
        text += length;
        length = strspn(text, " ");
        text_add_bytes(out, text, length);
        text += length;
    }
}

/* Name of a mechanism without its explanation: "Performer" of "Performer (FAVOR+)". */
static void add_name(const char *title, Text *out)
{
    const char *bracket = strstr(title, " ("), *colon = strstr(title, ": ");
    const char *end = bracket && (!colon || bracket < colon) ? bracket : colon;

    text_add_bytes(out, title, end ? (size_t)(end - title) : strlen(title));
}

/* ", window 5, causal" of "(window=5,causal=true)". */
static void add_settings(const char *at, Text *out)
{
    for (size_t length; *at && *at != ')'; at += length + (at[length] == ',')) {
        char one[160], *equals;

        length = strcspn(at, ",)");
        snprintf(one, sizeof(one), "%.*s", (int)length, at);
        equals = strchr(one, '=');
        if (equals)
            *equals = strcmp(equals + 1, "true") ? ' ' : '\0';
        text_add(out, ", ");
        if (equals && !strncmp(one, "position ", strlen("position ")))
            text_addf(out, "position %s", position_name(equals + 1));
        else
            picture_words(one, out);
    }
}

#define EXPRESSION "(expr="

static bool names_expression(const char *open)
{
    return !strncmp(open, EXPRESSION, strlen(EXPRESSION));
}

/* What is between the parentheses is an expression, "window(5)+cols(2)", or begins with one that
 * it names: expr="window(5)+cols(2)". */
static bool is_expression(const char *open)
{
    size_t inner = *open ? strcspn(open + 1, "(=)") : 0;

    return (*open && open[1 + inner] == '(') || names_expression(open);
}

/* "window(5) + cols(2)" of "(window(5)+cols(2))", and of it with a name, in quotes or without. */
static void add_expression(const char *open, Text *out)
{
    const char *at = open + (names_expression(open) ? strlen(EXPRESSION) : 1);
    char        end = *at == '"' ? '"' : ')';
    int         depth = 0;

    for (at += end == '"'; *at && (depth || (*at != end && *at != ',')); at++) {
        depth += strchr("([", *at) ? 1 : strchr(")]", *at) ? -1 : 0;
        if (*at == '+' && !depth && at[-1] != ' ')
            text_add(out, " + ");
        else
            text_add_bytes(out, at, 1);
    }
    at += *at == '"';
    if (*at == ',')
        add_settings(at + 1, out);
}

void mechanism_words(const Mechanism *m, const char *name, Text *out)
{
    size_t      id = m ? strlen(m->id) : 0;
    const char *open = name + id;

    if (!m || strncmp(name, m->id, id) != 0 || (*open && *open != '(') ||
        (strpbrk(open, "[{\"'@|:") && !names_expression(open))) {
        text_add(out, name);
    } else if (is_expression(open)) {
        add_expression(open, out);
    } else {
        add_name(m->title, out);
        add_settings(*open ? open + 1 : open, out);
    }
}

static void add_argument(const char *name, size_t length, const char *value, size_t bytes,
                         Text *out)
{
    if (length == strlen("kv_heads") && !strncmp(name, "kv_heads", length))
        text_addf(out, ", heads of k and v: %.*s", (int)bytes, value);
    else if (length == 1)
        text_addf(out, ", %.*s = %.*s", (int)length, name, (int)bytes, value);
    else
        text_addf(out, ", %.*s %.*s", (int)length, name, (int)bytes, value);
}

/* Where only allowed pairs are drawn, the size of the vectors is of no use either. */
static bool is_for_readers(const char *argument, bool pairs)
{
    return strncmp(argument, "match=", 6) != 0 && strncmp(argument, "heads=", 6) != 0 &&
           !(pairs && !strncmp(argument, "d=", 2));
}

void generated_words(const char *name, bool pairs, Text *out)
{
    const char *kind = strchr(name, ':') + 1, *at = kind + strcspn(kind, "(");

    text_addf(out, "%s%.*s input", strncmp(kind, "normal", 6) ? "synthetic " : "random ",
              (int)(at - kind), kind);
    while (*at == '(' || *at == ',') {
        const char *first = at + 1 + strspn(at + 1, " ");
        size_t      length = strcspn(first, "=,)"), bytes;

        at = first + length;
        if (*at != '=')
            continue;
        bytes = strcspn(at + 1, ",)");
        if (is_for_readers(first, pairs))
            add_argument(first, length, at + 1, bytes, out);
        at += 1 + bytes;
    }
}

/* One "key=value" of a model's input. */
static void add_model_option(const char *at, size_t length, Text *out)
{
    const char *equals = memchr(at, '=', length);
    size_t      key = equals ? (size_t)(equals - at) : length;
    const char *value = at + key + (equals != NULL);
    int         rest = (int)(at + length - value);
    bool        file = !strncmp(at, "text=", 5) || !strncmp(at, "ids=", 4);

    if (!strncmp(at, "max-tokens=", 11)) {
        text_addf(out, ", at most %.*s tokens", rest, value);
        return;
    }
    for (const char *c = value; file && c < at + length; c++)
        if (*c == '/' || *c == ':') { /* the name of a file */
            rest = (int)(at + length - c - 1);
            value = c + 1;
        }
    text_addf(out, ", %.*s %.*s", (int)key, at, rest, value);
}

void input_reader_words(const Input *input, Text *out)
{
    const char *name = input_short_name(input), *open = strchr(name, '[');
    size_t      end = strlen(name);

    if (!open || name[end - 1] != ']' || strncmp(input->name, "model:", 6) != 0) {
        text_add(out, name);
        return;
    }
    text_addf(out, "%.*s", (int)(open - name), name);
    for (const char *at = open + 1; at < name + end - 1;) {
        size_t length = strcspn(at, ",]");

        add_model_option(at, length, out);
        at += length + 1;
    }
}
