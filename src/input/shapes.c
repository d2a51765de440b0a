/* shapes.c -- which axis of an array is which, and whether the arrays agree.
 *
 * Axes have letters: h heads, n positions, d numbers of a vector, 1 a batch of
 * one, L layers.  A message names both arrays with their shapes.
 */
#include "input/assemble.h"

#include <string.h>

static void without(const char *letters, const char *drop, char *out)
{
    for (; *letters; letters++)
        if (!strchr(drop, *letters))
            *out++ = *letters;
    *out = '\0';
}

/* The letters of the axes of a q, k or v of this rank, or false. */
static bool letters_for(const char *layout, int rank, char out[STORE_MAX_RANK + 2])
{
    static const char *const plain[] = { "", "", "nd", "hnd", "1hnd" };

    if (!*layout) {
        if (rank < 2 || rank > 4)
            return false;
        strcpy(out, plain[rank]);
        return true;
    }
    strcpy(out, layout);
    if ((int)strlen(out) == rank)
        return true;
    without(layout, "1", out);
    if ((int)strlen(out) == rank)
        return true;
    if ((int)strlen(out) + 1 == rank) {
        memmove(out + 1, out, strlen(out) + 1);
        out[0] = '1';
        return true;
    }
    without(layout, "1h", out);
    return (int)strlen(out) == rank;
}

static bool attn_letters(int rank, char out[STORE_MAX_RANK + 2])
{
    static const char *const plain[] = { "", "", "nd", "hnd", "Lhnd", "L1hnd" };

    if (rank < 2 || rank > 5)
        return false;
    strcpy(out, plain[rank]);
    return true;
}

static bool bad_rank(const StoreEntry *entry, const char *wanted, Error *err)
{
    char shape[200];

    return error_set(err, ERR_DATA, "%.80s has shape %s; expected %s", entry->info.name,
                     store_shape_text(entry, shape, sizeof(shape)), wanted);
}

/* Places the axes named by letters; the layer axis is cut to one. */
static bool place_axes(Assembly *a, Part *part, const char *letters, Error *err)
{
    int64_t     stride[STORE_MAX_RANK];
    const char *axes = "hnd";
    char        shape[200];

    part->box = (StoreBox){ .extent = { 1, 1, 1 }, .stride = { 0, 0, 1 } };
    store_strides(part->entry, stride);
    store_shape_text(part->entry, shape, sizeof(shape));
    for (int i = 0; letters[i]; i++) {
        int64_t     extent = part->entry->info.shape[i];
        const char *axis = strchr(axes, letters[i]);

        if (extent < 1)
            return error_set(err, ERR_DATA, "%.80s has shape %s: it is empty",
                             part->entry->info.name, shape);
        if (axis) {
            part->box.extent[axis - axes] = extent;
            part->box.stride[axis - axes] = stride[i];
        } else if (letters[i] == 'L') {
            if (part->layered ? extent != 1 : a->layer >= extent)
                return error_set(err, ERR_DATA, "%.80s has shape %s: %lld layers, so layer %lld "
                                 "is not there", part->entry->info.name, shape,
                                 (long long)extent, (long long)a->layer);
            part->box.offset += part->layered ? 0 : a->layer * stride[i];
            if (!part->layered && extent > a->layers)
                a->layers = extent;
        } else if (extent != 1) {
            return error_set(err, ERR_DATA, "%.80s has shape %s: a batch of %lld sequences, and "
                             "one is read; save one of them", part->entry->info.name, shape,
                             (long long)extent);
        }
    }
    return true;
}

bool shapes_place(Assembly *a, Role role, Error *err)
{
    Part *part = &a->parts[role];
    int   rank;
    char  letters[STORE_MAX_RANK + 2];

    if (!part->entry)
        return true;
    if (!store_is_number(part->entry, err))
        return false;
    rank = part->entry->info.rank;
    if (role == ROLE_ATTN) {
        if (!attn_letters(rank, letters))
            return bad_rank(part->entry, "(n,m), (h,n,m) or (L,h,n,m)", err);
    } else if (role == ROLE_X) {
        if (rank != 2 && rank != 3)
            return bad_rank(part->entry, "(n,dm) or (1,n,dm)", err);
        strcpy(letters, rank == 2 ? "nd" : "1nd");
    } else if (!letters_for(a->layout, rank, letters)) {
        return bad_rank(part->entry, *a->layout ? "as many axes as the metadata layout names"
                                                : "(n,d), (h,n,d) or (1,h,n,d)", err);
    }
    return place_axes(a, part, letters, err);
}

static int64_t extent_of(const Assembly *a, Role role, int axis)
{
    return a->parts[role].entry ? a->parts[role].box.extent[axis] : 0;
}

/* Both given: the extents of axis `i` of one and axis `j` of the other agree. */
static bool same_extent(const Assembly *a, Role one, int i, Role other, int j, const char *what,
                        Error *err)
{
    const StoreEntry *first = a->parts[one].entry, *second = a->parts[other].entry;
    char              text[2][120];

    if (!first || !second || extent_of(a, one, i) == extent_of(a, other, j))
        return true;
    return error_set(err, ERR_DATA,
                     "%.80s has shape %s but %.80s has %s: %s differ, %lld and %lld%s",
                     first->info.name, store_shape_text(first, text[0], sizeof(text[0])),
                     second->info.name, store_shape_text(second, text[1], sizeof(text[1])), what,
                     (long long)extent_of(a, one, i), (long long)extent_of(a, other, j),
                     *a->layout ? "" : " (metadata layout names another order of axes)");
}

static bool check_groups(const Assembly *a, Role role, Error *err)
{
    int64_t heads = extent_of(a, ROLE_Q, 0), shared = extent_of(a, role, 0);
    char    text[2][120];

    if (!heads || !shared || heads % shared == 0)
        return true;
    return error_set(err, ERR_DATA, "%.80s has shape %s but %.80s has %s: %lld query heads cannot "
                     "share %lld key heads evenly", a->parts[ROLE_Q].entry->info.name,
                     store_shape_text(a->parts[ROLE_Q].entry, text[0], sizeof(text[0])),
                     a->parts[role].entry->info.name,
                     store_shape_text(a->parts[role].entry, text[1], sizeof(text[1])),
                     (long long)heads, (long long)shared);
}

static bool check_layers(const Assembly *a, Error *err)
{
    for (Role role = ROLE_Q; role < ROLE_ATTN; role++)
        if (a->parts[role].entry && !a->parts[role].layered && a->layers > 1)
            return error_set(err, ERR_DATA, "%.80s is of one layer, but the file holds %lld layers",
                             a->parts[role].entry->info.name, (long long)a->layers);
    if (a->held || a->layer < (a->layers ? a->layers : 1))
        return true;
    return error_set(err, ERR_DATA, "layer %lld is not in the file; it holds %lld layer%s, "
                     "counted from 0", (long long)a->layer,
                     (long long)(a->layers ? a->layers : 1), a->layers > 1 ? "s" : "");
}

/* Keys of lambda layers hold several channels (depths) for each of a query's. */
static bool check_head_sizes(const Assembly *a, Error *err)
{
    int64_t d = extent_of(a, ROLE_Q, 2);

    return (d > 0 && extent_of(a, ROLE_K, 2) % d == 0) ||
           same_extent(a, ROLE_Q, 2, ROLE_K, 2, "their head sizes d", err);
}

bool shapes_check(const Assembly *a, Error *err)
{
    return check_head_sizes(a, err) &&
           same_extent(a, ROLE_K, 1, ROLE_V, 1, "their numbers of keys", err) &&
           same_extent(a, ROLE_K, 0, ROLE_V, 0, "their numbers of heads", err) &&
           same_extent(a, ROLE_Q, 1, ROLE_ATTN, 1, "their numbers of queries", err) &&
           same_extent(a, ROLE_Q, 0, ROLE_ATTN, 0, "their numbers of heads", err) &&
           same_extent(a, ROLE_K, 1, ROLE_ATTN, 2, "their numbers of keys", err) &&
           same_extent(a, ROLE_V, 1, ROLE_ATTN, 2, "their numbers of keys", err) &&
           same_extent(a, a->parts[ROLE_Q].entry ? ROLE_Q : ROLE_V, 1, ROLE_X, 1,
                       "their lengths", err) &&
           check_groups(a, ROLE_K, err) && check_groups(a, ROLE_V, err) && check_layers(a, err);
}

static int64_t first_of(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return a ? a : b ? b : c ? c : d;
}

bool shapes_set_sizes(Assembly *a, Error *err)
{
    Input  *in = a->in;
    int64_t cut = a->choice->n;

    in->heads = first_of(extent_of(a, ROLE_Q, 0), extent_of(a, ROLE_K, 0),
                         extent_of(a, ROLE_V, 0), extent_of(a, ROLE_ATTN, 0));
    in->heads = in->heads ? in->heads : 1;
    in->n = first_of(extent_of(a, ROLE_Q, 1), extent_of(a, ROLE_ATTN, 1),
                     extent_of(a, ROLE_X, 1), extent_of(a, ROLE_V, 1));
    in->n = in->n ? in->n : extent_of(a, ROLE_K, 1);
    in->m = first_of(extent_of(a, ROLE_K, 1), extent_of(a, ROLE_V, 1),
                     extent_of(a, ROLE_ATTN, 2), in->n);
    in->d = first_of(extent_of(a, ROLE_Q, 2), extent_of(a, ROLE_K, 2),
                     extent_of(a, ROLE_V, 2), extent_of(a, ROLE_X, 2));
    in->e = first_of(extent_of(a, ROLE_V, 2), in->d, 0, 0);
    in->layer = a->layer;
    in->layers = a->layers ? a->layers : 1;
    in->held = a->held && a->held[a->layers - 1] >= a->layers ? a->held : NULL;
    if (cut > in->n)
        return error_set(err, ERR_DATA, "holds %lld position%s, so the first %lld cannot be taken",
                         (long long)in->n, in->n == 1 ? "" : "s", (long long)cut);
    return true;
}
