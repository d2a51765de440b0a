/* script/lesson/lesson.h -- the inside of the reader of lessons; for its own files. */
#ifndef SCRIPT_LESSON_LESSON_H
#define SCRIPT_LESSON_LESSON_H

#include "app/lesson/lesson.h"
#include "script/host/binding.h"

/* The table `s` that functions of a lesson are given.  What of it looks into runs stops
 * working when the call is over.  [-0, +1, m] */
void lesson_facts_push(lua_State *L, const LessonFacts *facts);
/* After the call; the facts need not live any longer.  [-0, +0, -] */
void lesson_facts_forget(lua_State *L);

/* Fills the lesson from the table on top; raises with step and field.  [-1, +0, v] */
void lesson_table_read(lua_State *L, Lesson *lesson);

#endif
