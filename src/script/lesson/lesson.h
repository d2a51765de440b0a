/* script/lesson/lesson.h -- the inside of the reader of lessons; for its own files. */
#ifndef SCRIPT_LESSON_LESSON_H
#define SCRIPT_LESSON_LESSON_H

#include "app/lesson/lesson.h"
#include "script/host/binding.h"

/* Fills the lesson from the table on top; raises with step and field.  [-1, +0, v] */
void lesson_table_read(lua_State *L, Lesson *lesson);

#endif
