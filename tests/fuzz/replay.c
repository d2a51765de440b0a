/* replay.c -- feeds files to a parser, without libFuzzer: replay TARGET FILE...
 *
 * `replay --list` prints the targets and the sources of their parsers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "target.h"

static int list_targets(void)
{
    const NamedTarget *target;

    for (int i = 0; (target = target_at(i)); i++)
        printf("%s %s\n", target->name, target->sources);
    return 0;
}

/* Feeds it from a block of its size, so that a sanitizer sees a read behind its end. */
static bool feed_file(const NamedTarget *target, const char *path)
{
    FILE    *file = fopen(path, "rb");
    char     block[4096];
    Text     bytes = { 0 };
    uint8_t *exact;
    size_t   got;

    if (!file) {
        perror(path);
        return false;
    }
    while ((got = fread(block, 1, sizeof(block), file)) > 0)
        text_add_bytes(&bytes, block, got);
    fclose(file);
    exact = malloc(bytes.length ? bytes.length : 1);
    if (bytes.length)
        memcpy(exact, bytes.data, bytes.length);
    target->feed(exact, bytes.length);
    free(exact);
    text_free(&bytes);
    return true;
}

int main(int argc, char **argv)
{
    const NamedTarget *target = argc > 1 ? target_named(argv[1]) : NULL;
    bool               ok = true;

    if (argc == 2 && !strcmp(argv[1], "--list"))
        return list_targets();
    if (!target) {
        fprintf(stderr, "usage: replay TARGET FILE...; replay --list\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        fprintf(stderr, "%s\n", argv[i]);
        ok &= feed_file(target, argv[i]);
    }
    return ok ? 0 : 1;
}
