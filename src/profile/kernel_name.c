/* kernel_name.c -- see kernel_name.h; the Itanium C++ ABI, as much of it as kernels need. */
#include "profile/kernel_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    const char *at;
    char       *text;
    size_t      size, length;
} Reader;

static void put(Reader *r, const char *from, size_t count)
{
    for (size_t i = 0; i < count && r->length + 1 < r->size; i++)
        r->text[r->length++] = from[i];
    r->text[r->length] = '\0';
}

static void puts_of(Reader *r, const char *word)
{
    put(r, word, strlen(word));
}

/* "10attend_f32"; a name of a nameless namespace is passed over. */
static bool source_name(Reader *r)
{
    char *name;
    long  count = strtol(r->at, &name, 10);

    if (name == r->at || count <= 0 || strlen(name) < (size_t)count)
        return false;
    if (strncmp(name, "_GLOBAL__N", 10) != 0)
        put(r, name, (size_t)count);
    r->at = name + count;
    return true;
}

static const char *builtin(char letter)
{
    switch (letter) {
    case 'b': return "bool";
    case 'c': case 'a': return "char";
    case 'd': return "double";
    case 'f': return "float";
    case 'h': return "uchar";
    case 'i': return "int";
    case 'j': return "unsigned";
    case 'l': case 'x': return "int64";
    case 'm': case 'y': return "uint64";
    case 's': return "short";
    case 't': return "ushort";
    case 'v': return "void";
    default: return NULL;
    }
}

/* "Lb0E", "Li64E", "Lin1E", and of an enumeration "L10Arithmetic2E". */
static bool literal(Reader *r)
{
    bool   truth = *r->at == 'b';
    size_t kept = r->length;

    if (*r->at >= '1' && *r->at <= '9') {
        if (!source_name(r))
            return false;
        r->length = kept; /* the value says enough */
        r->text[kept] = '\0';
    } else if (builtin(*r->at)) {
        r->at++;
    } else {
        return false;
    }
    if (truth) {
        puts_of(r, *r->at == '0' ? "false" : "true");
        r->at += *r->at != '\0';
    } else {
        if (*r->at == 'n')
            puts_of(r, "-"), r->at++;
        put(r, r->at, strspn(r->at, "0123456789"));
        r->at += strspn(r->at, "0123456789");
    }
    return *r->at++ == 'E';
}

static bool argument(Reader *r)
{
    const char *word;

    if (*r->at == 'L')
        return r->at++, literal(r);
    if (*r->at >= '1' && *r->at <= '9')
        return source_name(r);
    word = builtin(*r->at);
    if (!word)
        return false;
    puts_of(r, word);
    r->at++;
    return true;
}

static void arguments(Reader *r)
{
    const char *before = "<";

    while (*r->at && *r->at != 'E') {
        puts_of(r, before);
        before = ",";
        if (!argument(r)) {
            puts_of(r, "...");
            break;
        }
    }
    if (*before == ',')
        puts_of(r, ">");
}

void kernel_name_text(const char *mangled, char *text, size_t size)
{
    Reader r = { .at = mangled + 2, .text = text, .size = size };
    bool   nested, ok = strncmp(mangled, "_Z", 2) == 0;

    text[0] = '\0';
    if (ok) {
        nested = *r.at == 'N';
        r.at += nested || *r.at == 'L';
        do {
            r.length = 0; /* of nested names the last one */
            r.at += *r.at == 'L';
            ok = source_name(&r);
        } while (ok && nested && *r.at != 'E' && *r.at != 'I');
        if (ok && *r.at == 'I')
            r.at++, arguments(&r);
    }
    if (!ok)
        snprintf(text, size, "%s", mangled);
}
