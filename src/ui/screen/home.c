/* home.c -- what a person who has never been here can do first, over the list.
 *
 * The first key closes it and does what it always does.  A mark in the state folder remembers that
 * it was seen; where the mark cannot be written, it is shown again.
 */
#include <stdio.h>
#include <unistd.h>

#include "app/lesson/lesson.h"
#include "app/program.h"
#include "ui/screen/home.h"
#include "ui/shell/shell.h"

#define MARK  "welcomed"
#define WIDTH 58

static const struct {
    const char *key, *words;
} ways[] = {
    { "Enter", "open the mechanism under the cursor" },
    { "Space, c", "mark some of them, compare the marked" },
    { "s", "its algorithm, stage by stage" },
    { "E", "another input: a trained model, a picture" },
    { "?", "help by task: your own files and models" },
};
#define WAYS ((int)(sizeof(ways) / sizeof(*ways)))

static int lesson_count(void)
{
    LessonList list = { 0 };
    Error      ignored = ERROR_INIT;
    int        count = lessons_find(&list, &ignored) ? list.count : 0;

    lessons_free(&list);
    return count;
}

static void draw_way(Ui *ui, Area box, int line, const char *key, const char *words)
{
    term_text(ui->term, box.y + line, box.x + 3, 11, key, ui_style(ui, ROLE_KEY));
    term_text(ui->term, box.y + line, box.x + 15, box.w - 17, words, ui_style(ui, ROLE_TEXT));
}

static void home_draw(Ui *ui, Area area)
{
    Area all = ui_whole(ui), box = { 0, 0, WAYS + 7, WIDTH };
    char lessons[80];

    (void)area;
    box.w = box.w < all.w ? box.w : all.w;
    box.h = box.h < all.h ? box.h : all.h;
    box.y = all.y + (all.h - box.h) / 2;
    box.x = all.x + (all.w - box.w) / 2;
    term_fill(ui->term, box, ' ', (Style){ 0 });
    ui_frame(ui, box, "Welcome", true);
    term_text(ui->term, box.y + 2, box.x + 3, box.w - 6,
              "What attention mechanisms connect, lose and cost.", ui_style(ui, ROLE_TEXT));
    snprintf(lessons, sizeof(lessons), "%d lessons, about five minutes each", lesson_count());
    draw_way(ui, box, 4, "5", lessons);
    for (int i = 0; i < WAYS && 5 + i < box.h - 1; i++)
        draw_way(ui, box, 5 + i, ways[i].key, ways[i].words);
}

/* Not taken: the key does what it does without this. */
static bool home_key(Ui *ui, uint32_t key)
{
    Text  path = { 0 };
    Error ignored = ERROR_INIT;

    (void)key;
    ui_pop(ui);
    if (place_state(MARK, &path, &ignored) && place_make_folders(text_str(&path), &ignored))
        place_write(text_str(&path), "", 0, &ignored);
    text_free(&path);
    return false;
}

static void home_press(Ui *ui, const Event *event)
{
    if (event->kind == EVENT_PRESS)
        home_key(ui, 0);
}

const Screen screen_home = {
    .mode = "WELCOME",
    .scope = IN_HOME,
    .draw = home_draw,
    .key = home_key,
    .press = home_press,
    .escape = "go on",
};

void home_greet(Ui *ui)
{
    Text  path = { 0 };
    Error ignored = ERROR_INIT;

    if (place_state(MARK, &path, &ignored) && access(text_str(&path), F_OK) != 0)
        ui_push(ui, SCREEN_HOME);
    text_free(&path);
}
