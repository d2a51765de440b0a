/* position.c -- the list of positional modifiers; see position.h. */
#include "attn/run/position.h"

#include <string.h>

#include "core/text.h"

#define POSITION(id) extern const Position position_##id;
#include "attn/positions.def"
#undef POSITION

static const Position *const positions[] = {
#define POSITION(id) &position_##id,
#include "attn/positions.def"
#undef POSITION
};
#define POSITIONS (sizeof(positions) / sizeof(*positions))

#define NO_POSITION "none"

bool position_fits(const Position *p, unsigned taken)
{
    bool turns = p->class_ == POSITION_INPUT && !p->added;

    return (taken & p->class_) || ((taken & POSITION_TURN) && turns);
}

const Position *position_at(size_t index)
{
    return index < POSITIONS ? positions[index] : NULL;
}

const Position *position_find(const char *id)
{
    for (size_t i = 0; i < POSITIONS; i++)
        if (!strcmp(positions[i]->id, id))
            return positions[i];
    return NULL;
}

const char *position_name(const char *id)
{
    const Position *p = position_find(id);

    return p ? p->name : id;
}

static bool position_unknown(const char *id, Error *err)
{
    Meant nearest = { id, NULL, ANY_SLIPS };
    Text  names = { 0 };

    meant_offer(&nearest, NO_POSITION);
    text_add(&names, NO_POSITION);
    for (size_t i = 0; i < POSITIONS; i++) {
        meant_offer(&nearest, positions[i]->id);
        text_addf(&names, " %s", positions[i]->id);
    }
    error_set(err, ERR_USAGE, "unknown position '%.64s'; nearest is '%s' (there are: %s)", id,
              nearest.name, text_str(&names));
    text_free(&names);
    return false;
}

bool position_parse(const char *id, const Position **out, Error *err)
{
    *out = position_find(id);
    return *out || !strcmp(id, NO_POSITION) || position_unknown(id, err);
}
