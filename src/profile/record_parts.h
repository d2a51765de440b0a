/* profile/record_parts.h -- shared by the files that write a Record; private to them. */
#ifndef PROFILE_RECORD_PARTS_H
#define PROFILE_RECORD_PARTS_H

#include "profile/record.h"

/* null where it was not measured; whole numbers without an exponent. */
void record_key_number(Json *j, const char *key, Number number);
/* An empty text is null. */
void record_key_string(Json *j, const char *key, const char *value);

/* "12.3 us", "1.234 ms", "-". */
const char *record_ms_text(Number ms, char *text, size_t size);
const char *record_bytes_text(Number bytes, char *text, size_t size);
const char *record_count_text(Number count, char *text, size_t size); /* "-": unknown */

#endif
