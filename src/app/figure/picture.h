/* app/figure/picture.h -- figures of results: the same for the screen, PNG and Lua. */
#ifndef APP_FIGURE_PICTURE_H
#define APP_FIGURE_PICTURE_H

#include "app/figure/plan.h"
#include "app/figure/plots.h"
#include "app/result/steps.h"
#include "app/result/views.h"
#include "app/session/session.h"
#include "attn/run.h"
#include "core/text.h"
#include "draw/figure/figure.h"
#include "draw/plot/exponents.h"

/* The measured plots of a figure, as its file holds them.
 *
 * A clock gives other numbers each time, so the file carries each plot with its numbers and options
 * (NUMBERS_KEY) beside the command that measured them.  A figure of plots alone is drawn again from
 * its file, without the input.  Where there are matrices, too, the command makes those, and the
 * plots come from the file.
 */

#define NUMBERS_KEY "attnscope:numbers"
/* The user's scripts that define mechanisms of the figure, "a.lua, b.lua", and their SHA-256. */
#define SCRIPT_KEY      "attnscope:script"
#define SCRIPT_HASH_KEY "attnscope:script-sha256"
#define FONT_HASH_KEY   "attnscope:font-sha256"

typedef struct StoredFigure StoredFigure;

/* {"panels":[{"panel":0,"title":..,"series":[..]}]}: the numbers of a figure of plots. */
bool figure_numbers_json(const Figure *figure, Text *out, Error *err);
/* The same with the look of the page; nothing for a figure without plots. */
void stored_figure_text(const Figure *figure, const PngOptions *options, Text *out);
/* {"figure":..,"exponents":..}: the same for a chart of exponents. */
void stored_chart_text(const ExponentChart *chart, const PngOptions *options, Text *out);

/* A whole file. */
bool figure_write(const char *path, const Text *bytes, Error *err);

/* Reads the plots of a file; NULL: it holds none, or an error (err->code). */
StoredFigure *stored_figure_read(const char *path, Error *err);
void          stored_figure_free(StoredFigure *stored);
/* Machine and time of the measurement: "AMD EPYC, 2 threads, 2026-11-21 17:07 UTC". */
const char   *stored_figure_measured(const StoredFigure *stored);
/* The plot of this panel of the whole figure; NULL: the panel is no plot. */
const Panel  *stored_figure_panel(const StoredFigure *stored, int panel);
/* The font file that its letters are of; NULL: a font of the program. */
const char   *stored_figure_font(const StoredFigure *stored);
/* Every panel of the figure is a plot. */
bool          stored_figure_whole(const StoredFigure *stored);
/* The text it was read from, freed by the caller; NULL: no memory. */
char         *stored_figure_copy(const StoredFigure *stored);
/* It is drawn, and its text says so, with the look's dots per inch, theme and sizes. */
bool          stored_figure_set_look(StoredFigure *stored, const PngOptions *look, Error *err);
/* Draws a figure of plots again as `to`, with the metadata of the file `from` and this command;
 * format: as in PngOptions; font: a file in place of its font, or NULL. */
bool stored_figure_write(const StoredFigure *stored, const char *from, const char *line,
                         const char *font,
                         const char *format, const char *to, Error *err);

/* The view of this name, or the mechanism's most informative one (NULL or "auto"): connectivity
 * coloured by components, else weights, else the first matrix.  Every run with pairs has "reach";
 * runs of queries and keys have "missed", which may take long the first time; "spectrum" and
 * "trace" are curves (views.h).  NULL with an error that lists the views. */
const View *result_view(Result *result, const char *name, Error *err);
/* "2x4", or "2x4~" for a loose grid; false: it is neither. */
bool picture_grid(const char *text, int *rows, int *cols, bool *loose);
/* The run's view whose name is nearest; NULL: none is near. */
const char *picture_nearest_view(const Run *run, const char *name);
/* The pattern behind a connectivity-like view, to colour by cause; or NULL. */
const Pattern *view_components(const View *view);

/* Panel of a result's view with titles, token labels and defaults.  head < 0:
 * plane 0. */
bool picture_panel(Result *result, const char *view, int64_t head, Panel *out, Error *err);
/* Adds another result's curve of this name to the panel's plot. */
bool picture_overlay(Result *result, const char *view, int64_t head, Panel *panel, Error *err);
/* Replaces a panel of queries and keys by the image that one query sees: its row, laid out on the
 * input's image or as the mechanism reads the sequence.  query: "137" or "row,column".  The arena
 * owns the image; NULL: the run's arena. */
bool picture_span(Result *result, const char *query, Arena *arena, Panel *panel, Error *err);
/* Columns of that image; 0: the sequence is no image. */
int64_t picture_width(const Result *result);

/* Sets the depth of a panel that shows reach; leaves others alone. */
bool picture_reach(const Result *result, const ReachOptions *options, Panel *panel, Error *err);

/* Shows a part of the panel's matrix; all zero: everything. */
bool picture_region(Region region, Panel *panel, Error *err);
/* Leaves a key out of the panel's colour range; does nothing where columns are no keys. */
bool picture_exclude(int64_t key, Panel *panel, Error *err);

/* One panel: a view of a result, or the difference of two views. */
typedef struct PanelChoice {
    Result     *result;
    Result     *minus;      /* NULL: no difference */
    PanelSpec   spec;       /* view "": weights for a difference, else the most informative one */
    const char *title;      /* NULL: made of the request */
    bool        joins;      /* joins the plot of the panel before it, as a curve */
    const Ceilings *ceilings; /* of a roofline, borrowed; NULL: as the options say */
} PanelChoice;
/* NULL: none is chosen. */
const char *panel_choice_view(const PanelChoice *choice);

typedef struct PictureOptions {
    int64_t     head;       /* -1: the first */
    int         rows, cols; /* 0: chosen */
    bool        loose;      /* fewer columns where panels get narrow */
    const char *pool, *scale, *map; /* NULL: default of the kind */
    const char *title;      /* NULL: none */
    const char *caption;    /* NULL: made of the input and of the origin of tensors */
    Region      region;     /* all zero: everything */
    ReachOptions reach;     /* of panels that show it */
    bool        sorted;
    ScaleSharing sharing;
    const Ceilings *ceilings; /* of rooflines; NULL: not measured */
    const StoredFigure *stored; /* source of plots, not measured; borrowed; NULL: none */
    MarginChoice strips;    /* bars beside the matrices */
    bool        excludes;   /* key `excluded` is left out of colour ranges and strips */
    int64_t     excluded;
    const char *span;       /* the query whose picture is shown; NULL: matrices */
    Threads    *threads;
} PictureOptions;
/* At least 1 panel.  The results must outlive the figure. */
Figure *picture_of_panels(const PanelChoice *panels, int count, const PictureOptions *options,
                          Error *err);
/* Adds the strips of the options to a figure made without them.  A panel without strips is skipped;
 * fails where no panel has any.  Any thread. */
bool picture_strips(Figure *figure, const PanelChoice *panels, int count,
                    const PictureOptions *options, const atomic_bool *cancel, Error *err);

/* The command that draws this again, without the program's name: "figure
 * 'bigbird(window=5):weights' ...".  Seed, position and causal of a panel stand in its parentheses
 * where the panels differ. */
void picture_command(const Session *s, const PanelChoice *panels, int count,
                     const PictureOptions *options, Text *out);
/* Why no command can draw these panels: input or parameters exist in a script only; NULL: a command
 * can.  Static. */
const char *picture_no_command(const Session *s, const PanelChoice *panels, int count);

/* Metadata of a file: keys and values, copied. */
#define METADATA_OWN_MOST 16 /* pairs that PngOptions.metadata may add to those of a picture */
#define METADATA_MOST     (2 * (12 + METADATA_OWN_MOST))
typedef struct Metadata {
    Text        storage;
    size_t      starts[METADATA_MOST];
    const char *list[METADATA_MOST + 1];
    int         count;
} Metadata;

void metadata_add(Metadata *m, const char *key, const char *value);
/* key, value, ..., NULL; valid until the next is added. */
const char *const *metadata_list(Metadata *m);
void metadata_free(Metadata *m);
/* A file, none of the program's fonts; NULL: no. */
bool font_is_file(const char *font);
/* SHA-256 of a font file, in hex; false: no file, or it cannot be read. */
bool font_sha256(const char *font, char hex[65]);
/* The hash of the font file that the options name. */
void metadata_add_font(Metadata *m, const PngOptions *options);
/* Fills the metadata of a picture: command, params, seed, input hash, version, the numbers of
 * plots, and the options' own pairs. */
void picture_metadata(const Figure *figure, Result *const *results, int count,
                      const char *command, const PngOptions *options, Metadata *out);

/* Writes a file of the kind that its ending or the options name, with its metadata. */
bool picture_save(const Figure *figure, Result *const *results, int count, const char *command,
                  const PngOptions *options, const char *path, Error *err);
/* Writes the panels of one result as frames; only: as in figure_frames. */
bool picture_save_frames(const Figure *figure, int only, Result *result, const char *command,
                         const PngOptions *options, const char *path, Error *err);
/* Sets pool, scale and colours of the panel. */
bool picture_looks(const PictureOptions *options, Panel *panel, Error *err);

/* ---- words around the panels --------------------------------------------- */

/* Appends a name of the program as words: "position_bias" as "position bias". */
void picture_words(const char *name, Text *out);
/* A plot of all heads: of measured numbers, or with a curve for each of them. */
bool picture_all_heads(const Panel *panel);
/* Appends the name of a view with its details: "reach, 12 layers". */
void picture_view_name(const Run *run, const View *view, Text *out);
/* A generator's name, "synthetic:normal(n=48, d=64, heads=1, seed=0, match=12)", for readers:
 * "random normal input, n = 48, d = 64, seed 0".  They need neither one head nor how it makes
 * matches, nor d where only allowed pairs are drawn. */
void generated_words(const char *name, bool pairs, Text *out);
/* "BigBird, window 5" of "bigbird(window=5)"; a stack, and settings with brackets or texts in them,
 * stay as they are. */
void mechanism_words(const Mechanism *m, const char *name, Text *out);
/* Appends "window 3, 2 global tokens, 3 random keys a row": the sizes of a mechanism that its title
 * does not name, as the run had them. */
void picture_sizes(const Result *result, Text *out);
/* Sets titles, names of series and caption of a figure whose panels are made. */
void picture_caption(Figure *figure, const PanelChoice *panels, int count,
                   const PictureOptions *options);
/* The caption of a figure of steps: the given one, or what the run is made from. */
void picture_caption_steps(Figure *figure, const Result *result, const PictureOptions *options);
/* The next of these lines, which a result's run warned of, with the mechanism in front of it;
 * false: there is none. */
bool result_warning(const Result *result, const char **lines, Text *out);
/* The same of one head: rows are counted in it alone, and what it has none of is left out.  head
 * below 0: of all. */
bool result_head_warning(const Result *result, int64_t head, const char **lines, Text *out);
/* Adds all of them, a line each; lines that differ in numbers alone become one, "N of 64 rows". */
void result_warning_lines(const Result *result, Text *out);
/* Appends a message for readers, which may begin with a mechanism's id: "Linformer has no causal
 * form". */
void add_reason_words(const char *message, Text *out);

#define REASONS 32 /* of one figure; the signs tell so many apart */
/* What the runs of a figure warned of, each once; zeroed before the first. */
typedef struct Reasons {
    Text lines[REASONS];
    int  count;
} Reasons;

/* Appends the signs of these lines; new ones become reasons. */
void reasons_sign(Reasons *all, const char *lines, Text *signs);
/* Appends "; + Linformer has no causal form: ..." for each reason. */
void reasons_text(const Reasons *all, Text *out);
void reasons_free(Reasons *all);
/* Puts a sign before the title of each panel whose runs warned, and the reason into the caption. */
void picture_warn(Figure *figure, const PanelChoice *panels, int count,
                  const PictureOptions *options);
/* Without a caption no signs: the texts as they were stand in *kept, to be shown again. False: out
 * of memory, and they cannot be. */
bool figure_hide_signs(Figure *figure, Text *kept);
void figure_show_signs(Figure *figure, const Text *kept);
/* Lines that differ only in numbers, as one; zeroed before the first. */
typedef struct Like {
    const char *mark;
    Text        line, others; /* the first; then another number of each: "4, 6, 8" */
} Like;
typedef struct Likes {
    Like *items; /* owned */
    int   count;
    bool  failed; /* without memory for all */
} Likes;
/* Adds a result's lines, "window: ...", each to be written after the mark. */
void likes_add(const Result *result, const char *lines, const char *mark, Likes *all);
/* Appends "note  window=2 is even: ...; likewise 4, 6", folded at `room` columns; frees them. */
void likes_write(Likes *all, int room, Text *out);
/* Appends "warning  performer: ..." of all results, each once, folded at `room` columns. */
void results_warnings(Result *const *results, int count, int room, Text *out);
/* Number of panels that join the plot which begins with `at`. */
int picture_joining(const PanelChoice *panels, int at, int count);
/* The name of panels[at]'s result with what differs between the panels; its own title where it
 * joins a plot. */
void picture_result_name(const PanelChoice *panels, int count, int at,
                         const PictureOptions *options, char *text, size_t size);
/* Head that a panel shows; -1: the first. */
int64_t picture_head(const PanelChoice *choice, const PictureOptions *options);

/* ---- plots of measured numbers as panels --------------------------------- */

/* Adds to the request what a plot(NAME) measures; true: the view is a plot. */
bool request_for_plot(Request *request, const char *view, Error *err);
/* The result of the first request has all that the second one asks for. */
bool request_covers(const Request *have, const Request *want);
/* Makes a panel of the results' numbers; names NULL: made of the requests. */
bool picture_plot(PlotKind kind, Result *const *results, const char *const *names, int count,
                  const Ceilings *ceilings, Panel *out, Error *err);
/* Adds machines and the last date of the measurements to the caption. */
void picture_add_measured(Figure *figure);
/* The command that measures times over n: "compare full linear --plot scaling -n 4096 ...". */
void picture_scaling_command(const Request *const *requests, int count, int64_t last,
                             int64_t heads, int64_t d, Text *out);
/* Copies the plot of panel `number` from the figure's file. */
bool picture_stored(PlotKind kind, const StoredFigure *stored, int number, Panel *out, Error *err);

/* ---- origins of tensors -------------------------------------------------- */

/* Appends "w1, w2: random seed 7; b1: file", at most `most` names of each origin ("w1 and 3 more:
 * random seed 7"); nothing for runs without such tensors.  Several mechanisms: "performer
 * (projection), rfa (projection): random seed 0". */
void origins_of_runs(const Run *const *runs, int count, int most, Text *out);
/* The same for readers of a figure whose caption says this seed: "centroids drawn at random or
 * fitted to the input; Linformer (2 parameters) drawn at random, seed 7".  Symbols are only
 * counted, and random blocks say themselves that they are random. */
void origins_in_words(const Run *const *runs, int count, int most, uint64_t seed, Text *out);
/* "projection drawn at random; b1 from a file": where the tensors of the pictures come from.
 * Returns whether there are any. */
bool panels_origins(const PanelChoice *panels, int count, Text *out);
/* "MiniLM, text english.txt, at most 96 tokens". */
void input_reader_words(const Input *input, Text *out);
/* Appends the program's words as a reader's: "random blocks" for "random_blocks", "window 5" for
 * "window=5", "causal" for "--causal". */
void add_reader_words(const char *text, Text *out);

/* ---- the figure that words describe: planned, run, put together ---------------- */

typedef struct FigureRun {
    Result     *known;                /* an earlier run to use again; borrowed; NULL: none */
    FigurePlan  plan;
    int         count;                /* of panels */
    PanelChoice panels[FIGURE_PLAN_MOST];
    Result     *results[FIGURE_PLAN_MOST];   /* retained; of each panel */
    Result     *bases[FIGURE_PLAN_MOST];     /* retained; subtracted; NULL: nothing is */
    char        titles[FIGURE_PLAN_MOST][128];
} FigureRun;

/* Loads the call's input, plans its words and runs the plan.  Free with figure_run_free also on
 * failure.  pictures_only: only the figure uses the results, so a run of which it shows allowed
 * pairs leaves out attention (RunSpec.pairs_only), and one of which it shows views leaves out
 * figures (RunSpec.views_only). */
bool figure_run_make(Session *s, const Call *call, bool pictures_only, FigureRun *out, Error *err);
/* Plans and runs panels for the effect of the result's position. */
bool figure_run_effect(Session *s, Result *with, int64_t head, FigureRun *out, Error *err);
/* Draws with the call's options.  The run must outlive the figure. */
Figure *figure_run_draw(Session *s, const Call *call, FigureRun *drawing, Error *err);
void    figure_run_free(FigureRun *drawing);

/* ---- steps of a mechanism as a figure, an animation, or files ------------ */

/* Curves below the pictures of steps: over the run, and over a replay. */
typedef struct StepCurves {
    const View *trace;    /* NULL: none */
    int         last[4];  /* steps whose plot (step_plot) is shown: the last of each stage */
    int         count;
} StepCurves;

/* One panel for each step of `which` (indices) that made a matrix, and the curves (NULL: none)
 * below. */
Figure *steps_figure(Result *result, const int *which, int count, const StepCurves *curves,
                     const PictureOptions *options, Error *err);
/* The plot of a replay stage's trace, on its last step; NULL: another step, or no trace. */
Plot *step_last_plot(const Step *step);
/* The trace of the whole run, where the steps [from, to) have one; NULL: none. */
const View *steps_watched(Result *result, int from, int to);
/* Saves the pictures of steps [from, to) side by side in one figure; .apng: one after the other;
 * with a number in the name (steps-%02d.png): one file for each, all of one size.  frame: the
 * number of the one to write, from 1; NULL: all.  line: the command for the metadata. */
bool steps_save(Result *result, int from, int to, const PictureOptions *options,
                const char *frame, const char *line, const PngOptions *png, const char *path,
                Error *err);

/* False: the name asks for frames ("NAME-%02d.png") where there are none.  "50%.png" is a plain
 * name. */
bool steps_name_once(const char *path, Error *err);

#endif
