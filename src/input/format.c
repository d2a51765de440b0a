/* format.c -- which format a file is in: by its first bytes, then by its name.
 *
 * Pickles are told apart here too, so that they are refused with the command
 * that converts them instead of with a parser's complaint.
 */
#include <string.h>
#include <strings.h>

#include "input/labels.h"
#include "input/load.h"
#include "input/pickle.h"

static bool begins(Mapped bytes, const char *magic, int64_t length)
{
    return bytes.size >= length && memcmp(bytes.data, magic, (size_t)length) == 0;
}

static bool has_extension(const char *path, const char *extension)
{
    size_t length = strlen(path), tail = strlen(extension);

    return length >= tail && strcasecmp(path + length - tail, extension) == 0;
}

static bool looks_like_safetensors(Mapped bytes)
{
    uint64_t length = 0;

    if (bytes.size < 10 || bytes.data[8] != '{')
        return false;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes.data[i];
    return length >= 2 && length <= (uint64_t)bytes.size - 8;
}

static bool is_pickle(const char *path, Mapped bytes)
{
    static const char *const extensions[] = { ".pt", ".pth", ".bin", ".ckpt", ".pkl" };

    if (bytes.size >= 2 && bytes.data[0] == 0x80 && bytes.data[1] >= 2 && bytes.data[1] <= 5)
        return true;
    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
        if (has_extension(path, extensions[i]))
            return true;
    return false;
}

/* No zero byte and valid UTF-8 as far as looked at. */
static bool is_text(Mapped bytes)
{
    int64_t end = bytes.size < 4096 ? bytes.size : 4096;

    for (int64_t at = 0, step; at < end; at += step) {
        step = labels_utf8(bytes.data + at, bytes.size - at);
        if (step == 0 || bytes.data[at] == 0)
            return false;
    }
    return bytes.size > 0;
}

static InputFormat format_by_content(Mapped bytes)
{
    if (begins(bytes, "\x93NUMPY", 6))
        return FORMAT_NPY;
    if (begins(bytes, "PK\3\4", 4) || begins(bytes, "PK\5\6", 4))
        return FORMAT_NPZ;
    if (begins(bytes, "\x89PNG\r\n\x1a\n", 8))
        return FORMAT_PNG;
    if (bytes.size > 2 && bytes.data[0] == 'P' && strchr("2356", bytes.data[1]) &&
        strchr(" \t\r\n#", bytes.data[2]))
        return FORMAT_PNM;
    return looks_like_safetensors(bytes) ? FORMAT_SAFETENSORS : FORMAT_UNKNOWN;
}

static const struct {
    const char *extension;
    InputFormat format;
} extensions[] = {
    { ".npy", FORMAT_NPY },          { ".npz", FORMAT_NPZ },
    { ".safetensors", FORMAT_SAFETENSORS },
    { ".json", FORMAT_JSON },        { ".csv", FORMAT_CSV },
    { ".tsv", FORMAT_CSV },          { ".png", FORMAT_PNG },
    { ".pgm", FORMAT_PNM },          { ".ppm", FORMAT_PNM },
    { ".pnm", FORMAT_PNM },          { ".txt", FORMAT_TEXT },
    { ".ids", FORMAT_TEXT },         { ".md", FORMAT_TEXT },
};

bool load_find_format(const char *path, Mapped bytes, InputFormat *out, Error *err)
{
    *out = format_by_content(bytes);
    if (*out == FORMAT_UNKNOWN && is_pickle(path, bytes))
        return pickle_refuse(err);
    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
        if (*out == FORMAT_UNKNOWN && has_extension(path, extensions[i].extension))
            *out = extensions[i].format;
    if (*out == FORMAT_UNKNOWN && begins(bytes, "{\"key\":", 7) && has_extension(path, ".jsonl"))
        return error_set(err, ERR_FORMAT, "holds the records of a sweep, not an input: attnscope "
                         "fit, diff and merge read it");
    if (*out == FORMAT_UNKNOWN && is_text(bytes))
        *out = FORMAT_TEXT;
    if (bytes.size == 0)
        return error_set(err, ERR_FORMAT, "is empty");
    if (*out == FORMAT_UNKNOWN)
        return error_set(err, ERR_FORMAT, "%s; npy, npz, safetensors, CSV, JSON, text, PNG and PGM "
                         "files "
                         "are read", begins(bytes, "GGUF", 4) ? "is a GGUF file, which is not read"
                         : "is in no format known here");
    return true;
}
