/* app/command/cache.h -- what the command `cache` and Lua's attn.cache share. */
#ifndef APP_COMMAND_CACHE_H
#define APP_COMMAND_CACHE_H

#include "app/session/session.h"
#include "model/cache.h"

/* The cache of a model by its configuration.  word: a GGUF file, a folder with config.json, a
 * config.json or a sample, with or without "model:".  Free with model_cache_free, also on
 * failure. */
bool cache_of_model(Session *s, const char *word, ModelCache *out, Error *err);

#endif
