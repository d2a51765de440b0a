/* span.c -- pictures of what one query sees; see picture_span. */
#include "attn/span.h"

#include <stdio.h>
#include <string.h>

#include "app/figure/picture.h"

int64_t picture_width(const Result *result)
{
    return result->run->width > 0 ? result->run->width : result->input->width;
}

/* "137" or "row,column" of an image with `width` columns and n pixels. */
static bool parse_query(const char *text, int64_t width, int64_t n, int64_t *query, Error *err)
{
    long long y, x;
    int       end = 0;

    if (sscanf(text, "%lld,%lld%n", &y, &x, &end) == 2 && !text[end]) {
        if (y < 0 || x < 0 || x >= width || y > n / width || y * width + x >= n)
            return error_set(err, ERR_USAGE,
                             "--span %s: the image has %lld columns and %lld rows (%lld pixels)",
                             text, (long long)width, (long long)((n - 1) / width + 1),
                             (long long)n);
        *query = y * width + x;
        return true;
    }
    end = 0;
    if (sscanf(text, "%lld%n", &y, &end) != 1 || text[end])
        return error_set(err, ERR_USAGE,
                         "--span: expected a query's number or row,column like 5,7, got '%s'",
                         text);
    if (y < 0 || y >= n)
        return error_set(err, ERR_USAGE, "--span %s: there are %lld queries (0..%lld)", text,
                         (long long)n, (long long)n - 1);
    *query = y;
    return true;
}

/* The input's own pixels, when the mechanism reads the sequence as that image. */
static const float *pixels_of(const Result *result, int64_t width)
{
    const Input *input = result->input;

    return input->pixels.data && input->width == width ? tensor_f32(&input->pixels) : NULL;
}

bool picture_span(Result *result, const char *query, Arena *arena, Panel *panel, Error *err)
{
    const View *base = panel->view, *span;
    int64_t     width = picture_width(result), at = 0, plane = panel->plane;
    char        title[sizeof(panel->title)];

    if (strcmp(base->rows, "query") != 0 || strcmp(base->cols, "key") != 0)
        return error_set(err, ERR_USAGE,
                         "%s of %s is not a matrix of queries and keys, so a query has no span in "
                         "it; take another view",
                         base->name, result->request.mechanism);
    if (!width)
        return error_set(err, ERR_USAGE,
                         "--span: the input is no image and %s reads it as none; give --input "
                         "FILE.png, or a mechanism with a width",
                         result->request.mechanism);
    if (!parse_query(query, width, view_rows(base), &at, err))
        return false;
    span = span_view(arena ? arena : result->run->arena, base, plane, at, width);
    if (!span)
        return error_set(err, ERR_NOMEM, "not enough memory for a picture");
    snprintf(title, sizeof(title), "%s", panel->title);
    panel_init(panel, span, result_components(result, span), 0, title);
    panel->picture = true;
    panel->pixels = pixels_of(result, width);
    panel->pixel_count = view_cols(base);
    panel->mark_row = at / width;
    panel->mark_col = at % width;
    return true;
}
