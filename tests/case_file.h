/* case_file.h -- a reference case in one file.
 *
 * tests/oracle/MECH/CASE.npz is a zip archive of the case's folder: args.txt, the input, tensors
 * given as parameters and expected/.  An .npz in the folder is a folder of its arrays in the
 * archive ("input.npz/q.npy"), so numpy.load lists all arrays of a case.  Members are deflated,
 * sorted and without times: equal folders give equal files.
 */
#ifndef TESTS_CASE_FILE_H
#define TESTS_CASE_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <zip.h>

#include "check.h"

#define CASE_DAY (1 << 5 | 1) /* 1 January 1980, the first day that a zip archive can hold */

static inline bool case_ends(const char *name, const char *ending)
{
    size_t length = strlen(name), end = strlen(ending);

    return length >= end && !strcmp(name + length - end, ending);
}

static inline void case_add(zip_t *zip, const char *name, void *bytes, size_t size, bool deflated)
{
    zip_source_t *source = zip_source_buffer(zip, bytes, size, 1);
    zip_int64_t   index = zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8);

    CHECK(index >= 0, "%s: %s", name, zip_strerror(zip));
    zip_set_file_compression(zip, (zip_uint64_t)index, deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 9);
    zip_file_set_dostime(zip, (zip_uint64_t)index, 0, CASE_DAY, 0);
}

static inline void *case_member(zip_t *zip, zip_uint64_t index, size_t *size)
{
    zip_stat_t  stat;
    zip_file_t *file = zip_fopen_index(zip, index, 0);
    void       *bytes;

    CHECK(file && zip_stat_index(zip, index, 0, &stat) == 0, "%s", zip_strerror(zip));
    *size = stat.size;
    bytes = malloc(stat.size + 1);
    CHECK(zip_fread(file, bytes, stat.size + 1) == (zip_int64_t)stat.size, "%s", stat.name);
    zip_fclose(file);
    return bytes;
}

static inline zip_t *case_open(const char *path, int flags)
{
    int    why = 0;
    zip_t *zip = zip_open(path, flags, &why);

    CHECK(zip, "%s cannot be opened as a zip archive: error %d of libzip", path, why);
    return zip;
}

static inline void case_close(zip_t *zip)
{
    CHECK(!zip || zip_close(zip) == 0, "%s", zip_strerror(zip));
}

static inline void *case_read(const char *path, size_t *size)
{
    FILE       *f = fopen(path, "rb");
    struct stat status;
    void       *bytes;

    CHECK(f && fstat(fileno(f), &status) == 0, "%s cannot be opened", path);
    *size = (size_t)status.st_size;
    bytes = malloc(*size + 1);
    CHECK(fread(bytes, 1, *size, f) == *size, "%s cannot be read", path);
    fclose(f);
    return bytes;
}

static inline void case_write(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");

    CHECK(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0, "%s cannot be written", path);
}

/* The arrays of the archive `path` as members below `name`. */
static inline void case_pack_arrays(zip_t *zip, const char *path, const char *name)
{
    zip_t *arrays = case_open(path, ZIP_RDONLY);

    for (zip_int64_t i = 0; i < zip_get_num_entries(arrays, 0); i++) {
        char   member[1024];
        size_t size;
        void  *bytes = case_member(arrays, (zip_uint64_t)i, &size);

        snprintf(member, sizeof(member), "%s/%s", name, zip_get_name(arrays, (zip_uint64_t)i, 0));
        case_add(zip, member, bytes, size, true);
    }
    zip_discard(arrays);
}

/* Adds the files of `folder`, whose names in the archive begin with `before`. */
static inline void case_pack_folder(zip_t *zip, const char *folder, const char *before)
{
    struct dirent **entries;
    int             count = scandir(folder, &entries, NULL, alphasort);

    CHECK(count >= 0, "%s cannot be read", folder);
    for (int i = 0; i < count; i++) {
        char        path[1024], name[1024];
        struct stat status;
        size_t      size;

        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        snprintf(name, sizeof(name), "%s%s", before, entries[i]->d_name);
        if (entries[i]->d_name[0] == '.' || stat(path, &status) != 0) {
            free(entries[i]);
            continue;
        }
        if (S_ISDIR(status.st_mode)) {
            strncat(name, "/", sizeof(name) - strlen(name) - 1);
            case_pack_folder(zip, path, name);
        } else if (case_ends(name, ".npz")) {
            case_pack_arrays(zip, path, name);
        } else {
            void *bytes = case_read(path, &size);

            case_add(zip, name, bytes, size, true);
        }
        free(entries[i]);
    }
    free(entries);
}

static inline void case_pack(const char *folder, const char *file)
{
    zip_t *zip = case_open(file, ZIP_CREATE | ZIP_TRUNCATE);

    case_pack_folder(zip, folder, "");
    case_close(zip);
}

static inline void case_make_folders(const char *path)
{
    char part[1024];

    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        mkdir(part, 0777);
    }
}

/* The archive in `folder` that the member `name` belongs to ("input.npz/q.npy"), or "". */
static inline void case_archive_of(const char *folder, const char *name, char *archive, size_t room)
{
    const char *end = strstr(name, ".npz/");

    archive[0] = '\0';
    if (end)
        snprintf(archive, room, "%s/%.*s.npz", folder, (int)(end - name), name);
}

/* Writes the case `file` into `folder`, which exists or can be made. */
static inline void case_unpack(const char *file, const char *folder)
{
    zip_t *zip = case_open(file, ZIP_RDONLY), *arrays = NULL;
    char   archive[1024], last[1024] = "", path[2048];

    for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); i++) {
        const char *name = zip_get_name(zip, (zip_uint64_t)i, 0);
        size_t      size;
        void       *bytes = case_member(zip, (zip_uint64_t)i, &size);

        CHECK(name[0] != '/' && !strstr(name, ".."), "%s: member %s", file, name);
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        case_archive_of(folder, name, archive, sizeof(archive));
        case_make_folders(archive[0] ? archive : path);
        if (strcmp(archive, last) != 0) {
            case_close(arrays);
            arrays = archive[0] ? case_open(archive, ZIP_CREATE | ZIP_TRUNCATE) : NULL;
            memcpy(last, archive, sizeof(last));
        }
        if (arrays) {
            case_add(arrays, strstr(name, ".npz/") + strlen(".npz/"), bytes, size, false);
        } else {
            case_write(path, bytes, size);
            free(bytes);
        }
    }
    case_close(arrays);
    zip_discard(zip);
}

#endif
