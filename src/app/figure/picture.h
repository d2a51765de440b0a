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
 * A clock tells other numbers each time, so a file carries those it shows beside the command
 * that measured them (NUMBERS_KEY): all of each plot, and with what it was drawn.  A figure
 * of nothing but plots is drawn again from the file alone, without its input; where matrices
 * stand beside them, the command makes those and takes the plots from here.
 */

#define NUMBERS_KEY "attnscope:numbers"

typedef struct StoredFigure StoredFigure;

/* {"environment":..,"figure":..,"panels":[..]}: all plots of the figure and with what it is
 * drawn; nothing where it has none. */
void stored_figure_text(const Figure *figure, const PngOptions *options, Text *out);

/* {"figure":..,"exponents":..}: the same of a chart of exponents, which needs its records no
 * longer. */
void stored_chart_text(const ExponentChart *chart, const PngOptions *options, Text *out);

/* What the file holds; NULL: nothing that was measured, or an error (err->code). */
StoredFigure *stored_figure_read(const char *path, Error *err);
void          stored_figure_free(StoredFigure *stored);
/* On what, and when: "AMD EPYC, 2 threads, 2026-11-21 17:07 UTC". */
const char   *stored_figure_measured(const StoredFigure *stored);
/* The panel of this number in the whole figure; NULL: it is none of the plots. */
const Panel  *stored_figure_panel(const StoredFigure *stored, int panel);
/* It has a plot for each panel. */
bool          stored_figure_whole(const StoredFigure *stored);
/* The text it was read from, freed by the caller; NULL: no memory. */
char         *stored_figure_copy(const StoredFigure *stored);
/* A whole figure drawn again as `to`, with the metadata of the file `from`; format: as in
 * PngOptions. */
bool stored_figure_write(const StoredFigure *stored, const char *from, const char *format,
                         const char *to, Error *err);

/* The view of this name, or the mechanism's most telling one (NULL or "auto"):
 * connectivity coloured by components, else weights, else the first matrix.
 * "reach" is there beside the run's own views wherever pairs are allowed or not, "missed"
 * wherever there are pairs of queries and keys (it may take a while the first time).
 * So are the curves of app/result/views.h: "spectrum", "trace".
 * NULL with an error that lists the views there are. */
const View *result_view(Result *result, const char *name, Error *err);
/* "2x4", or "2x4~" for a loose grid; false: it is neither. */
bool picture_grid(const char *text, int *rows, int *cols, bool *loose);
/* The run's view that is probably meant; NULL: none is near. */
const char *picture_nearest_view(const Run *run, const char *name);
/* The pattern behind a connectivity-like view, to colour by cause; or NULL. */
const Pattern *result_components(const Result *result, const View *view);

/* Panel of a result's view with titles, token labels and defaults.  head < 0:
 * plane 0. */
bool picture_panel(Result *result, const char *view, int64_t head, Panel *out, Error *err);
/* Another result's curve of this name into the panel's plot. */
bool picture_overlay(Result *result, const char *view, int64_t head, Panel *panel, Error *err);
/* Turns a panel of queries against keys into the picture one query sees: its row laid
 * out on the image (the input's, or as the mechanism reads the sequence).  query: "137"
 * or "row,column".  The picture lives in the arena; NULL: as long as the run. */
bool picture_span(Result *result, const char *query, Arena *arena, Panel *panel, Error *err);
/* Columns of that image; 0: the sequence is none. */
int64_t picture_width(const Result *result);

/* Another depth for a panel that shows reach; does nothing to others. */
bool picture_reach(const Result *result, const ReachOptions *options, Panel *panel, Error *err);

/* Leaves a key out of the panel's ranges; does nothing where columns are no keys. */
bool picture_exclude(int64_t key, Panel *panel, Error *err);

/* One panel: a view of a result, or what it is more than the same of another. */
typedef struct PanelChoice {
    Result     *result;
    Result     *minus;      /* NULL: no difference */
    PanelSpec   spec;       /* view "": weights for a difference, else the most telling one */
    const char *title;      /* NULL: made of the request */
    bool        joins;      /* a curve that goes into the plot of the panel before it */
    const Ceilings *ceilings; /* of a roofline, borrowed; NULL: as the options say */
} PanelChoice;
/* NULL: none is chosen. */
const char *panel_choice_view(const PanelChoice *choice);

typedef struct PictureOptions {
    int64_t     head;       /* -1: the first */
    int         rows, cols; /* 0: chosen */
    bool        loose;      /* as in Figure */
    const char *pool, *scale, *map; /* NULL: default of the kind */
    const char *title;      /* NULL: none */
    const char *caption;    /* NULL: made of the input; where tensors are drawn, fitted
                               or given, both */
    Region      region;     /* all zero: everything */
    ReachOptions reach;     /* of panels that show it */
    bool        sorted;
    bool        shared_scale;
    const Ceilings *ceilings; /* of rooflines; NULL: not measured */
    const StoredFigure *stored; /* whose plots are taken, not made; borrowed; NULL: none */
    MarginChoice strips;    /* bars beside the matrices */
    bool        excludes;   /* key `excluded` counts in no range of colours and no strip */
    int64_t     excluded;
    const char *span;       /* the query whose picture is shown; NULL: matrices */
    Threads    *threads;
} PictureOptions;
/* At least 1 panel.  The results must outlive the figure. */
Figure *picture_of_panels(const PanelChoice *panels, int count, const PictureOptions *options,
                          Error *err);
/* The strips of the options, for a figure made without them; those panels that have none go
 * without, and it fails only where no panel has.  Any thread. */
bool picture_strips(Figure *figure, const PanelChoice *panels, int count,
                    const PictureOptions *options, const atomic_bool *cancel, Error *err);

/* The command that draws this again, without the program's name: "figure
 * 'bigbird(window=5):weights' ...".  What differs between the requests (seed,
 * position, causal) stands in the parentheses of each. */
void picture_command(const Session *s, const PanelChoice *panels, int count,
                     const PictureOptions *options, Text *out);
/* Why no command draws these again: an input or parameters that only a script has; NULL: one
 * does.  Static. */
const char *picture_untold(const Session *s, const PanelChoice *panels, int count);

/* What a file says of itself: keys and their values, copied. */
#define METADATA_OWN_MOST 16 /* pairs that PngOptions.metadata may add to those of a picture */
#define METADATA_MOST     (2 * (10 + METADATA_OWN_MOST))
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
/* Of a file drawn with the options: command, params, seed, input hash, version, the numbers of
 * plots, and the options' own. */
void picture_metadata(const Figure *figure, Result *const *results, int count,
                      const char *command, const PngOptions *options, Metadata *out);

/* A file of the kind that its ending or the options name, with its metadata. */
bool picture_save(const Figure *figure, Result *const *results, int count, const char *command,
                  const PngOptions *options, const char *path, Error *err);
/* The panels of one result as frames: as figure_frames. */
bool picture_save_frames(const Figure *figure, int only, Result *result, const char *command,
                         const PngOptions *options, const char *path, Error *err);
/* How the options say that panels look: pool, scale, colours. */
bool picture_looks(const PictureOptions *options, Panel *panel, Error *err);

/* What stands over, beside and under the panels of a picture. */

/* Appends "reach, 12 layers": a view and what else its name should say. */
void picture_view_name(const Run *run, const View *view, Text *out);
/* Titles, names of series and the caption of a figure whose panels are made. */
void picture_words(Figure *figure, const PanelChoice *panels, int count,
                   const PictureOptions *options);
/* How many panels join the plot that begins with `at`. */
int picture_joining(const PanelChoice *panels, int at, int count);
/* The result of panels[at], with what is not the same in all of them; or its own title where
 * it joins a plot. */
void picture_result_name(const PanelChoice *panels, int count, int at,
                         const PictureOptions *options, char *text, size_t size);
/* Head that a panel shows; -1: the first. */
int64_t picture_head(const PanelChoice *choice, const PictureOptions *options);

/* Panels of figures that are plots of measured numbers.
 *
 * plot(NAME) stands where a view does; results that share a plot are joined by " + ".
 */

/* What the request must measure, added to it; true: the view is a plot. */
bool request_for_plot(Request *request, const char *view, Error *err);
/* The first result has all that the second request asks for. */
bool request_covers(const Request *have, const Request *want);
/* A panel of the results' numbers; names NULL: made of the requests. */
bool picture_plot(PlotKind kind, Result *const *results, const char *const *names, int count,
                  const Ceilings *ceilings, Panel *out, Error *err);
/* Adds to the caption on which machines its plots were measured, and the last date. */
void picture_say_measured(Figure *figure);
/* The command that measures times over n: "compare full linear --plot scaling -n 4096 ...". */
void picture_scaling_command(const Request *const *requests, int count, int64_t last,
                             int64_t heads, int64_t d, Text *out);
/* The plot of the panel of this number in the figure, as a file held it. */
bool picture_stored(PlotKind kind, const StoredFigure *stored, int number, Panel *out, Error *err);

/* In words, where the tensors behind a picture are from: drawn, fitted, given. */

/* Appends "w1, w2: random seed 7; b1: file", at most so many names of an origin ("w1 and 3 more:
 * random seed 7"); nothing for runs that have none.  Of several mechanisms: "performer
 * (projection), rfa (projection): random seed 0". */
void origins_of_runs(const Run *const *runs, int count, int most, Text *out);

/* ---- the figure that words describe: planned, run, put together ---------------- */

typedef struct FigureRun {
    Result     *known;                /* a run made before, of use here; borrowed; NULL: none */
    FigurePlan  plan;
    int         count;                /* of panels */
    PanelChoice panels[FIGURE_PLAN_MOST];
    Result     *results[FIGURE_PLAN_MOST];   /* retained; of each panel */
    Result     *bases[FIGURE_PLAN_MOST];     /* retained; what is subtracted; NULL: nothing */
    char        titles[FIGURE_PLAN_MOST][128];
} FigureRun;

/* Loads the call's input and runs what its words ask for.  Free with figure_run_free
 * also on failure.  pictures_only: nobody looks at the results but the figure, so that a run
 * of which it shows allowed pairs leaves attention out (RunSpec.pairs_only). */
bool figure_run_make(Session *s, const Call *call, bool pictures_only, FigureRun *out, Error *err);
/* What the position of a result does, drawn beside it. */
bool figure_run_effect(Session *s, Result *with, int64_t head, FigureRun *out, Error *err);
/* With the call's options.  The drawing must outlive it. */
Figure *figure_run_draw(Session *s, const Call *call, FigureRun *drawing, Error *err);
void    figure_run_free(FigureRun *drawing);

/* A mechanism's steps as a figure, an animation, or files. */

/* What stands under the pictures of steps: numbers over the run, and over a replay. */
typedef struct StepCurves {
    const View *trace;    /* NULL: none */
    int         last[4];  /* steps whose plot (step_plot) is shown: the last of each stage */
    int         count;
} StepCurves;

/* One panel for each step of `which` (indices) that made something to see, and the curves
 * (NULL: none) under them. */
Figure *steps_figure(Result *result, const int *which, int count, const StepCurves *curves,
                     const PictureOptions *options, Error *err);
/* A plot of the numbers a stage of a replay is watched by; NULL: this is not its last step, or
 * there are none. */
Plot *step_last_plot(const Step *step);
/* The trace of the whole run, where the steps [from, to) are watched; NULL: they are not. */
const View *steps_watched(Result *result, int from, int to);
/* What steps [from, to) make, side by side in one figure; .apng: one after the other; with a
 * number in the name (steps-%02d.png): a file each, all of one size.  frame: the number
 * of the one that is written, from 1; NULL: all.  line: the command for the metadata. */
bool steps_save(Result *result, int from, int to, const PictureOptions *options,
                const char *frame, const char *line, const PngOptions *png, const char *path,
                Error *err);

/* False: "NAME-%02d.png" where there are no frames; "50%.png" is a name like any other. */
bool steps_name_once(const char *path, Error *err);

#endif
