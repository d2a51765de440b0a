/* app/command/info.h -- what info says of inputs; private to app/command. */
#ifndef APP_COMMAND_INFO_H
#define APP_COMMAND_INFO_H

#include "core/error.h"
#include "core/text.h"

/* The tensors of a file and what it is as an input; of a figure, its card. */
bool info_file(const char *path, Text *out, Error *err);
/* A generator's input holds no arrays to list, so its result is described. */
bool info_generator(const char *spec, Text *out, Error *err);

#endif
