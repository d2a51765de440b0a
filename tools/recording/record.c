/* record.c -- plays keys to the real explorer in a pseudo-terminal and draws its screen.
 *
 *     record PROGRAM SCRIPT OUT.png OUT.apng
 *
 * libvterm keeps the screen, Canvas draws it with the fonts inside the program, so the pictures need
 * no terminal, no window and no font of the machine.  A script has one step a line:
 *
 *     size COLUMNSxLINES             before start
 *     start [ARGUMENT...]            run PROGRAM
 *     wait TEXT                      until it is on the screen
 *     key NAME...                    j C-p Up Enter Esc ...; a frame after each
 *     type TEXT                      letter by letter; a frame after each
 *     hold SECONDS                   the screen as it stands now, so long
 *     shot                           this screen is OUT.png
 *     end                            of the recording; the program is ended
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "draw/file/format.h"
#include "draw/page/canvas.h"
#include "terminal.h"

#define CELL_W     8 /* pixels; a letter of DejaVu Sans Mono is 0.602 em wide */
#define CELL_H     16
#define LETTER     13.29 /* em, pixels */
#define BASELINE   12    /* pixels below the top of a cell */
#define MARGIN     6
#define DELAY      0.1 /* seconds a frame */
#define MOST       600
#define SHADES     17 /* colours are multiples of it, so that a palette of 256 holds a recording */
#define KEY_HOLD   0.4 /* seconds after a key */
#define LETTER_HOLD 0.1

typedef struct Recording {
    Run      run;
    uint8_t *frames[MOST]; /* pixels; equal neighbours are one */
    int      count, width, height;
    bool     shot;
} Recording;

static const Rgb paper = { 16, 16, 18 }, ink = { 222, 222, 222 };

/* ---- one cell ---------------------------------------------------------------- */

static Rgb rgb_of(const Run *r, VTermColor colour, Rgb fallback, bool is_default)
{
    if (is_default)
        return fallback;
    vterm_screen_convert_color_to_rgb(r->screen, &colour);
    return (Rgb){ colour.rgb.red, colour.rgb.green, colour.rgb.blue };
}

/* Arms of the box-drawing signs: up, right, down, left; 1 light, 2 heavy. */
static const struct {
    uint32_t sign;
    uint8_t  arms[4];
} boxes[] = {
    { 0x2500, { 0, 1, 0, 1 } }, { 0x2501, { 0, 2, 0, 2 } }, { 0x2502, { 1, 0, 1, 0 } },
    { 0x2503, { 2, 0, 2, 0 } }, { 0x250C, { 0, 1, 1, 0 } }, { 0x250F, { 0, 2, 2, 0 } },
    { 0x2510, { 0, 0, 1, 1 } }, { 0x2513, { 0, 0, 2, 2 } }, { 0x2514, { 1, 1, 0, 0 } },
    { 0x2517, { 2, 2, 0, 0 } }, { 0x2518, { 1, 0, 0, 1 } }, { 0x251B, { 2, 0, 0, 2 } },
    { 0x251C, { 1, 1, 1, 0 } }, { 0x2524, { 1, 0, 1, 1 } }, { 0x252C, { 0, 1, 1, 1 } },
    { 0x2534, { 1, 1, 0, 1 } }, { 0x253C, { 1, 1, 1, 1 } },
};

static bool draw_box(Canvas *c, int x, int y, uint32_t sign, Rgb rgb)
{
    for (size_t i = 0; i < sizeof(boxes) / sizeof(*boxes); i++) {
        const uint8_t *arm = boxes[i].arms;
        double         half_x = CELL_W / 2.0, half_y = CELL_H / 2.0;

        if (boxes[i].sign != sign)
            continue;
        if (arm[0])
            canvas_rect(c, x + half_x - 1, y, arm[0], half_y + arm[0] - 1, rgb);
        if (arm[1])
            canvas_rect(c, x + half_x - 1, y + half_y - 1, half_x + 1, arm[1], rgb);
        if (arm[2])
            canvas_rect(c, x + half_x - 1, y + half_y - 1, arm[2], half_y + 1, rgb);
        if (arm[3])
            canvas_rect(c, x, y + half_y - 1, half_x + arm[3] - 1, arm[3], rgb);
        return true;
    }
    return false;
}

/* Blocks fill whole pixels, so a heat map has no seams. */
static bool draw_block(Canvas *c, int x, int y, uint32_t sign, Rgb rgb)
{
    if (sign == 0x2580)
        canvas_rect(c, x, y, CELL_W, CELL_H / 2.0, rgb);
    else if (sign >= 0x2581 && sign <= 0x2588) /* eighths from below */
        canvas_rect(c, x, y + CELL_H - 2.0 * (sign - 0x2580), CELL_W, 2.0 * (sign - 0x2580), rgb);
    else if (sign >= 0x2589 && sign <= 0x258F) /* eighths from the left */
        canvas_rect(c, x, y, 0x2590 - sign, CELL_H, rgb);
    else if (sign == 0x2590)
        canvas_rect(c, x + CELL_W / 2.0, y, CELL_W / 2.0, CELL_H, rgb);
    else
        return false;
    return true;
}

static void put_utf8(uint32_t sign, char out[5])
{
    int length = 0;

    if (sign < 0x80) {
        out[length++] = (char)sign;
    } else if (sign < 0x800) {
        out[length++] = (char)(0xC0 | sign >> 6);
        out[length++] = (char)(0x80 | (sign & 63));
    } else {
        out[length++] = (char)(0xE0 | (sign >> 12 & 15));
        out[length++] = (char)(0x80 | (sign >> 6 & 63));
        out[length++] = (char)(0x80 | (sign & 63));
    }
    out[length] = '\0';
}

static void draw_cell(Canvas *c, const Run *r, int column, int line)
{
    VTermScreenCell cell;
    int             x = MARGIN + column * CELL_W, y = MARGIN + line * CELL_H;
    char            letter[5];
    Rgb             front, back;

    if (!vterm_screen_get_cell(r->screen, (VTermPos){ line, column }, &cell))
        return;
    front = rgb_of(r, cell.fg, ink, VTERM_COLOR_IS_DEFAULT_FG(&cell.fg));
    back = rgb_of(r, cell.bg, paper, VTERM_COLOR_IS_DEFAULT_BG(&cell.bg));
    if (cell.attrs.reverse) {
        Rgb other = front;

        front = back;
        back = other;
    }
    if (memcmp(&back, &paper, sizeof(paper)) != 0)
        canvas_rect(c, x, y, CELL_W * (double)cell.width, CELL_H, back);
    if (cell.chars[0] <= ' ' || cell.chars[0] == (uint32_t)-1 ||
        draw_block(c, x, y, cell.chars[0], front) || draw_box(c, x, y, cell.chars[0], front))
        return;
    put_utf8(cell.chars[0], letter);
    canvas_text(c, x, y + BASELINE, letter,
                (CanvasText){ .font = FONT_MONO, .size = LETTER, .rgb = front });
}

/* ---- frames -------------------------------------------------------------------- */

static uint8_t *draw_screen(Recording *rec)
{
    const Run *r = &rec->run;
    Error      err = ERROR_INIT;
    Canvas    *c = canvas_new(CANVAS_PIXELS, 2 * MARGIN + r->cols * CELL_W,
                              2 * MARGIN + r->rows * CELL_H, 72, NULL, &paper, &err);
    uint8_t   *pixels = NULL;

    for (int line = 0; c && line < r->rows; line++)
        for (int column = 0; column < r->cols; column++)
            draw_cell(c, r, column, line);
    if (c && canvas_ok(c, &err))
        pixels = canvas_pixels(c, &rec->width, &rec->height);
    canvas_free(c);
    return pixels;
}

/* A palette halves the file; the eye sees no difference. */
static void round_colours(uint8_t *pixels, int64_t count)
{
    for (int64_t i = 0; i < 4 * count; i++)
        pixels[i] = (uint8_t)((pixels[i] + SHADES / 2) / SHADES * SHADES);
}

static bool hold(Recording *rec, double seconds)
{
    uint8_t *pixels = draw_screen(rec);

    if (!pixels)
        return fail(&rec->run, "cannot draw", "the screen");
    round_colours(pixels, (int64_t)rec->width * rec->height);
    for (double t = 0; t < seconds - DELAY / 2 && rec->count < MOST; t += DELAY)
        rec->frames[rec->count++] = pixels; /* the process ends soon: none is freed */
    return true;
}

static bool write_file(Run *r, const char *path, Text *bytes)
{
    FILE *file = fopen(path, "wb");
    bool  ok = file && fwrite(text_str(bytes), 1, bytes->length, file) == bytes->length;

    ok = file && fclose(file) == 0 && ok;
    text_free(bytes);
    return ok || fail(r, "cannot write", path);
}

static bool write_shot(Recording *rec, const char *path)
{
    uint8_t *pixels = draw_screen(rec);
    Text     png = { 0 };
    Error    err = ERROR_INIT;

    rec->shot = pixels && png_encode(pixels, rec->width, rec->height, 96, NULL, &png, &err);
    free(pixels);
    return rec->shot ? write_file(&rec->run, path, &png) : fail(&rec->run, "no picture", err.text);
}

static bool write_recording(Recording *rec, const char *path)
{
    Text  apng = { 0 };
    Error err = ERROR_INIT;

    if (!rec->count)
        return fail(&rec->run, "no frames for", path);
    if (!apng_encode(rec->frames, rec->count, rec->width, rec->height, 96, DELAY, NULL, &apng, &err))
        return fail(&rec->run, "no recording", err.text);
    return write_file(&rec->run, path, &apng);
}

/* ---- the script ---------------------------------------------------------------- */

static bool press(Recording *rec, char *names)
{
    for (char *name = strtok(names, " "); name; name = strtok(NULL, " "))
        if (!send_key(&rec->run, name) || !settle(&rec->run) || !hold(rec, KEY_HOLD))
            return false;
    return true;
}

static bool type(Recording *rec, const char *text)
{
    for (; *text; text++) {
        char letter[2] = { *text, '\0' };

        if (!send_bytes(&rec->run, letter, 1) || !settle(&rec->run) || !hold(rec, LETTER_HOLD))
            return false;
    }
    return true;
}

static void end_program(Run *r)
{
    kill(r->pid, SIGTERM);
    while (waitpid(r->pid, &r->status, WNOHANG) == 0)
        take_output(r, 20);
}

static bool step(Recording *rec, char *line, const char *png)
{
    Run  *r = &rec->run;
    char *verb = strtok(line, " "), *rest = strtok(NULL, "");

    rest = rest ? rest : line + strlen(line);
    if (!strcmp(verb, "size"))
        return sscanf(rest, "%dx%d", &r->cols, &r->rows) == 2 || fail(r, "no size", rest);
    if (!strcmp(verb, "start")) {
        open_terminal(r);
        return start(r, rest) && settle(r);
    }
    if (!strcmp(verb, "wait"))
        return wait_for(r, rest, true, PATIENCE) && settle(r);
    if (!strcmp(verb, "key"))
        return press(rec, rest);
    if (!strcmp(verb, "type"))
        return type(rec, rest);
    if (!strcmp(verb, "hold"))
        return hold(rec, atof(rest));
    if (!strcmp(verb, "shot"))
        return write_shot(rec, png);
    if (!strcmp(verb, "end")) {
        end_program(r);
        return true;
    }
    return fail(r, "unknown step", verb);
}

static bool play(Recording *rec, const char *script, const char *png)
{
    char  line[512];
    FILE *file = fopen(script, "r");
    bool  ok = file || fail(&rec->run, "cannot read", script);

    while (ok && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line && *line != '#')
            ok = step(rec, line, png);
    }
    if (file)
        fclose(file);
    return ok;
}

int main(int argc, char **argv)
{
    static Recording rec = { .run = { .rows = 32, .cols = 110, .in = -1, .fd = -1 } };

    if (argc != 5) {
        fprintf(stderr, "usage: record PROGRAM SCRIPT OUT.png OUT.apng\n");
        return 2;
    }
    rec.run.program = argv[1];
    if (!play(&rec, argv[2], argv[3]) || !write_recording(&rec, argv[4])) {
        char *screen = rec.run.vt ? screen_text(&rec.run) : NULL;

        fprintf(stderr, "record: %s: %s\n%s", argv[2], rec.run.message, screen ? screen : "");
        free(screen);
        if (rec.run.pid > 0)
            end_program(&rec.run);
        return 1;
    }
    return 0;
}
