/* app/lesson/shipped.h -- the lessons put into the program by mk/lessons.mk. */
#ifndef APP_LESSON_SHIPPED_H
#define APP_LESSON_SHIPPED_H

#include <stddef.h>

typedef struct ShippedLesson {
    const char          *name; /* of the file; NULL ends the table */
    const unsigned char *bytes;
    size_t               size;
} ShippedLesson;

extern const ShippedLesson lessons_shipped[];

#endif
