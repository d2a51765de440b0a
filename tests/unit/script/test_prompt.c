/* test_prompt.c -- names that a prompt offers. */
#include <lualib.h>

#include "check.h"
#include "script/console/console.h"

static void count_name(void *context, const char *name)
{
    (void)name;
    ++*(int *)context;
}

/* Each part of a long word is looked up in the part before. */
TEST(a_word_of_many_parts_is_completed)
{
    static char word[2000 * 3 + 16];
    lua_State  *L = luaL_newstate();
    size_t      length = 0;
    int         count = 0;

    assert_non_null(L);
    luaL_openlibs(L);
    for (int i = 0; i < 2000; i++)
        length += (size_t)snprintf(word + length, sizeof(word) - length, "_G.");
    snprintf(word + length, sizeof(word) - length, "tostr");
    complete_names(L, word, count_name, &count);
    assert_int_equal(count, 0); /* whole names of 255 bytes at most */
    word[length - 3 * 1940] = '\0';
    snprintf(word + strlen(word), 8, "tostr");
    complete_names(L, word, count_name, &count);
    assert_int_equal(count, 1);
    assert_int_equal(lua_gettop(L), 0);
    lua_close(L);
}

SUITE(NULL, NULL)
