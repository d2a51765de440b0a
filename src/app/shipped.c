/* shipped.c -- shipped files beside the program, or unpacked from it; see shipped.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/program.h"
#include "app/shipped.h"

/* Made by tools/embed-files.sh; ends with a NULL name. */
typedef struct ShippedFile {
    const char          *name; /* "samples/english.txt" */
    const unsigned char *data;
    int64_t              size;
} ShippedFile;

extern const ShippedFile shipped_files[];
extern const char        shipped_id[]; /* differs where any of their bytes does */

/* Above the program's folder: the source tree, with build/ one or two folders deep; PREFIX/share,
 * of PREFIX/bin and of the Lua module in PREFIX/lib/lua/5.4 or, in a Debian package, in
 * PREFIX/lib/ARCHITECTURE/lua/5.4. */
static const char *const roots[] = { "/../", "/../../", "/../share/attnscope/",
                                     "/../../../share/attnscope/",
                                     "/../../../../share/attnscope/" };

static bool find_beside(const char *folder, const char *name, Text *path)
{
    Text home = { 0 };
    bool found = false;

    if (place_home(&home))
        for (size_t i = 0; !found && i < sizeof(roots) / sizeof(*roots); i++) {
            text_clear(path);
            text_addf(path, "%s%s%s/%s", text_str(&home), roots[i], folder, name);
            found = text_ok(path) && access(text_str(path), R_OK) == 0;
        }
    text_free(&home);
    return found;
}

/* A folder among the temporary files that belongs to this user and that nobody else can write. */
static bool add_temporary_folder(Text *path)
{
    const char *set = getenv("TMPDIR");
    struct stat about;

    text_clear(path);
    text_addf(path, "%s/attnscope-%u", set && *set == '/' ? set : "/tmp", (unsigned)getuid());
    if (!text_ok(path))
        return false;
    mkdir(text_str(path), 0700);
    return lstat(text_str(path), &about) == 0 && S_ISDIR(about.st_mode) &&
           about.st_uid == getuid() && !(about.st_mode & (S_IWGRP | S_IWOTH));
}

/* In the user's cache, or among the temporary files where that cannot be written. */
static bool unpacked_path(const ShippedFile *file, bool temporary, Text *path)
{
    Text cache = { 0 };
    bool ok = temporary ? add_temporary_folder(path) : place_cache("shipped", &cache, NULL);

    if (ok && !temporary) {
        text_clear(path);
        text_add(path, text_str(&cache));
    }
    text_addf(path, "/%s/%s", shipped_id, file->name);
    text_free(&cache);
    return ok && text_ok(path);
}

static bool is_unpacked(const ShippedFile *file, const char *path)
{
    struct stat about;
    int         fd = open(path, O_RDONLY | O_CLOEXEC);
    bool        same = false;

    if (fd < 0)
        return false;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size == file->size) {
        void *bytes = mmap(NULL, (size_t)file->size, PROT_READ, MAP_PRIVATE, fd, 0);

        if (bytes != MAP_FAILED) {
            same = !memcmp(bytes, file->data, (size_t)file->size);
            munmap(bytes, (size_t)file->size);
        }
    }
    close(fd);
    return same;
}

/* Under another name first: another process may read or write the same file. */
static bool unpack(const ShippedFile *file, const char *path)
{
    Text  part = { 0 };
    FILE *f = NULL;
    bool  ok = place_make_folders(path, NULL);

    text_addf(&part, "%s.%ld.tmp", path, (long)getpid());
    if (ok && text_ok(&part))
        f = fopen(text_str(&part), "we");
    ok = f && fwrite(file->data, 1, (size_t)file->size, f) == (size_t)file->size;
    if (f && fclose(f) != 0)
        ok = false;
    if (ok)
        ok = rename(text_str(&part), path) == 0;
    if (f && !ok)
        unlink(text_str(&part));
    text_free(&part);
    return ok;
}

/* All of them: a script requires others of its folder. */
static bool unpack_all(bool temporary)
{
    Text path = { 0 };
    bool ok = true;

    for (const ShippedFile *f = shipped_files; ok && f->name; f++)
        ok = unpacked_path(f, temporary, &path) &&
             (is_unpacked(f, text_str(&path)) || unpack(f, text_str(&path)));
    text_free(&path);
    return ok;
}

static bool find_unpacked(const ShippedFile *f, bool temporary, Text *path)
{
    return unpacked_path(f, temporary, path) &&
           (is_unpacked(f, text_str(path)) || unpack_all(temporary));
}

static bool find_inside(const char *folder, const char *name, Text *path)
{
    const ShippedFile *f = shipped_files;
    size_t             length = strlen(folder);

    while (f->name && !(!strncmp(f->name, folder, length) && f->name[length] == '/' &&
                        !strcmp(f->name + length + 1, name)))
        f++;
    return f->name && (find_unpacked(f, false, path) || find_unpacked(f, true, path));
}

bool shipped_find(const char *folder, const char *name, Text *path)
{
    return find_beside(folder, name, path) || find_inside(folder, name, path);
}
