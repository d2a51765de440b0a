/* input/assemble.h -- the state of turning a file's arrays into one Input.
 *
 * Shared by assemble.c (names, reading) and shapes.c (axes and their
 * agreement); nobody else includes it.
 */
#ifndef INPUT_ASSEMBLE_H
#define INPUT_ASSEMBLE_H

#include "input/load.h"

typedef enum Role { ROLE_Q, ROLE_K, ROLE_V, ROLE_X, ROLE_ATTN, ROLE_COUNT } Role;

/* One role's array as [heads, rows, columns] of the layer wanted. */
typedef struct Part {
    StoreEntry *entry; /* NULL: not in the file */
    bool        layered; /* named by layer */
    StoreBox    box;
} Part;

typedef struct Assembly {
    Input             *in;
    Store             *store;
    const InputChoice *choice;
    Part               parts[ROLE_COUNT];
    char               layout[STORE_MAX_RANK + 1]; /* letters, or empty */
    int64_t            layer;  /* wanted */
    int64_t            layers; /* in the file */
    int64_t           *held;   /* their numbers, ascending; NULL: the names give none */
} Assembly;

/* Finds the axes [heads, rows, columns] of one role's array. */
bool shapes_place(Assembly *a, Role role, Error *err);
/* All extents of all parts agree, and the layer wanted is there. */
bool shapes_check(const Assembly *a, Error *err);
/* heads, n, m, d, e, layer and layers of the whole sequence. */
bool shapes_set_sizes(Assembly *a, Error *err);

#endif
