/* app/command/preset.h -- published pictures as stored commands.
 *
 * A preset is a figure command with a name (presets.def).  It can be printed,
 * changed by further options, and what it draws remembers the whole command,
 * not the name.
 */
#ifndef APP_COMMAND_PRESET_H
#define APP_COMMAND_PRESET_H

#include "app/call.h"

typedef struct Preset {
    const char *id;     /* "fournier-fig11" */
    const char *title;  /* of the figure */
    const char *source; /* publication and number of its figure */
    const char *words;  /* of the figure command: panels and options */
    const char *help;   /* one line: what to see */
} Preset;

const Preset *preset_at(size_t index);     /* NULL past the end */
const Preset *preset_find(const char *id); /* NULL: unknown */
/* Unknown: the error names the nearest. */
bool preset_parse(const char *id, const Preset **out, Error *err);
/* "figure ... --title '...' --caption '...'" */
void preset_command(const Preset *preset, Text *out);

/* A call made of a preset; its strings live here. */
typedef struct PresetCall {
    Call call;
    Text line, storage;
} PresetCall;

/* `changes` (NULL: none) is the call that names the preset: its other options
 * replace the preset's.  Free with preset_call_free also on failure. */
bool preset_call(const Preset *preset, const Call *changes, PresetCall *out, Error *err);
/* The same of a whole line, "figure ...", with a preset in it or without. */
bool preset_expand(const char *line, PresetCall *out, Error *err);
void preset_call_free(PresetCall *made);

#endif
