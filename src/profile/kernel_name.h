/* profile/kernel_name.h -- a kernel's name as its source has it. */
#ifndef PROFILE_KERNEL_NAME_H
#define PROFILE_KERNEL_NAME_H

#include <stddef.h>

/* "_Z10attend_f32ILb0EEvPKf" -> "attend_f32<false>": the name with its template arguments, as
 * far as they are numbers, truths and plain types; what is no mangled name stays. */
void kernel_name_text(const char *mangled, char *text, size_t size);

#endif
