/* app/scripts.h -- the user's scripts that this process ran: the points of a sweep run them too,
 * and figures and records name those that define their mechanisms.
 *
 * The list is the program's, as the catalogue is; entries stay until scripts_forget.  One thread
 * adds; others look while it waits.
 */
#ifndef APP_SCRIPTS_H
#define APP_SCRIPTS_H

#include "app/session/session.h"
#include "attn/run/mechanism.h"
#include "core/text.h"

/* A file that is run now; everywhere: each process runs it by itself (init.lua).  NULL: no memory,
 * or it cannot be read. */
const MechanismScript *scripts_add_file(const char *path, bool everywhere, Error *err);
/* Code that no file holds: of -e, standard input, a prompt.  NULL: no memory. */
const MechanismScript *scripts_add_code(const char *name, Error *err);
const MechanismScript *scripts_at(int index); /* NULL past the end */
/* Calls the script with this content, or the last of several, by the name that a figure has for it,
 * until scripts_rename_none: the figure made again has the same bytes. NULL: no script has it, or
 * no memory. */
const MechanismScript *scripts_rename(const char *sha256, const char *name, size_t length);
void scripts_rename_none(void);
/* When no mechanism of theirs is left. */
void scripts_forget(void);

/* The request runs a mechanism that the script defines, perhaps inside another one. */
bool script_is_of_request(const MechanismScript *script, const Request *request);
/* Gives `add` each file, once and in order, that a process has to run before it knows the
 * mechanisms of the request.  False: `add` failed, or code that no file holds defines one. */
bool scripts_of_request(const Request *request,
                        bool (*add)(void *context, const MechanismScript *script, Error *err),
                        void *context, Error *err);
/* The file of the list still has the content that was run last. */
bool script_file_unchanged(const char *path, Error *err);

#endif
