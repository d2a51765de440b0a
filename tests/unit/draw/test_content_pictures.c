/* test_content_pictures.c -- what presets of content-based mechanisms show. */

#include "app/result/views.h"
#include "preview.h"

/* Sorted buckets never fall, are the same multiset, and chunks begin every 8 slots. */
TEST(both_orders_hold_the_same_tokens)
{
    Preview     *p = preview_open("reformer-orders", 4);
    const Panel *sorted = &p->figure->panels[1];
    int          count[2][64] = { { 0 } };
    double       cells[2] = { 0 };

    assert_null(p->figure->panels[0].col_order);
    for (int64_t i = 0; i < 48; i++) {
        count[0][(int)shown(p, 0, 0, i)]++;
        count[1][(int)shown(p, 1, 0, i)]++;
        assert_true(i == 0 || shown(p, 1, 0, i) >= shown(p, 1, 0, i - 1));
    }
    assert_memory_equal(count[0], count[1], sizeof(count[0]));
    assert_int_equal(sorted->slot_group_count, 6);
    for (int64_t c = 0; c < 6; c++)
        assert_int_equal(sorted->slot_groups[c], 8 * c);
    for (int64_t i = 0; i < 48; i++)
        for (int64_t j = 0; j < 48; j++) {
            cells[0] += shown(p, 2, i, j);
            cells[1] += shown(p, 3, i, j);
            if (shown(p, 3, i, j) > 0) /* own chunk, or the one before */
                assert_true(labs((long)(i / 8 - j / 8)) <= 1);
        }
    assert_true(cells[0] == cells[1] && cells[0] > 0);
    preview_close(p);
}

/* Fournier et al., Fig. 16: "block-wise attention whose keys have been sorted in a block-wise
 * fashion"; here no block keeps its own keys. */
TEST(each_block_sees_the_block_that_was_sorted_to_it)
{
    Preview *p = preview_open("fournier-fig16", 1);
    int      taken[3] = { 0 };

    for (int64_t u = 0; u < 3; u++) {
        int64_t source = -1;

        for (int64_t v = 0; v < 3; v++)
            if (shown(p, 0, 4 * u, 4 * v) > 0)
                source = v;
        assert_true(source >= 0 && source != u);
        taken[source]++;
        for (int64_t i = 4 * u; i < 4 * u + 4; i++)
            for (int64_t j = 0; j < 12; j++)
                assert_true((shown(p, 0, i, j) > 0) == (j / 4 == source));
    }
    for (int64_t v = 0; v < 3; v++)
        assert_int_equal(taken[v], 1);
    preview_close(p);
}

/* Fournier et al., Fig. 17: "Units can only attend other units in the same bucket, but not
 * themselves"; a lone token sees itself, since it sees nobody else. */
TEST(tokens_of_a_bucket_see_each_other)
{
    Preview *p = preview_open("fournier-fig17", 2);
    int      size[4] = { 0 };

    for (int64_t i = 0; i < 16; i++)
        size[(int)shown(p, 0, 0, i)]++;
    for (int64_t i = 0; i < 16; i++)
        for (int64_t j = 0; j < 16; j++) {
            int  of_i = (int)shown(p, 0, 0, i), of_j = (int)shown(p, 0, 0, j);
            bool sees = of_i == of_j && (i != j || size[of_i] == 1);

            assert_true(i > j || of_i <= of_j);
            assert_true((shown(p, 1, i, j) > 0) == sees);
        }
    preview_close(p);
}

/* Cells of the union beyond the own ones are in some round; cells of a round are in the union. */
TEST(rounds_make_their_union)
{
    Preview *p = preview_open("reformer-rounds", 6);

    for (int64_t i = 0; i < 64; i++)
        for (int64_t j = 0; j < 64; j++) {
            bool any = false;

            for (int round = 0; round < 4; round++)
                any |= shown(p, round, i, j) > 0;
            if (i != j)
                assert_true(any == (shown(p, 4, i, j) > 0));
            if (shown(p, 5, i, j) > 0) /* bits 1, 2, 4, 8: first found in that round */
                for (int round = 0; round < 4 && i != j; round++)
                    if (shown(p, 5, i, j) == 1 << round) {
                        assert_true(shown(p, round, i, j) > 0);
                        for (int before = 0; before < round; before++)
                            assert_true(shown(p, before, i, j) == 0);
                    }
            if (shown(p, 5, i, j) == COMPONENT_OTHER)
                assert_true(shown(p, 4, i, j) == 0);
        }
    preview_close(p);
}

static void check_bars(const Preview *p, int panel)
{
    const Panel *at = &p->figure->panels[panel];
    const View  *view = at->view;

    assert_non_null(view->row_load);
    assert_non_null(view->summary);
    for (int64_t c = 0; c < view_rows(view); c++) {
        int64_t size = 0;

        for (int64_t i = 0; i < view_cols(view); i++)
            size += shown(p, panel, c, i) > 0;
        assert_int_equal(view_load(view->row_load, at->plane, c, NULL), size);
    }
    for (int64_t i = 0; view->load && i < view_cols(view); i++) {
        int64_t times = 0;

        for (int64_t c = 0; c < view_rows(view); c++)
            times += shown(p, panel, c, i) > 0;
        assert_int_equal(view_load(view->load, at->plane, at->col_order ? at->col_order[i] : i,
                                   NULL), times);
    }
}

TEST(bars_count_members)
{
    Preview *p = preview_open("routing-clusters", 4);

    for (int panel = 0; panel < 2; panel++) {
        check_bars(p, panel);
        assert_non_null(p->figure->panels[panel].view->load);
        assert_non_null(strstr(p->figure->panels[panel].view->summary[0], "tokens in none"));
    }
    for (int panel = 2; panel < 4; panel++) {
        assert_non_null(p->figure->panels[panel].view->found);
        assert_int_equal(p->figure->panels[panel].view->found->keys, 8);
    }
    preview_close(p);
    p = preview_open("cluster-balance", 3);
    for (int panel = 0; panel < 3; panel++) {
        check_bars(p, panel);
        assert_non_null(p->figure->panels[panel].col_order);
        assert_true(p->figure->panels[panel].slot_group_count > 1);
    }
    preview_close(p);
}

static double largest_in_row(const Preview *p, int panel, int64_t u)
{
    double largest = 0;

    for (int64_t v = 0; v < 8; v++)
        largest = fmax(largest, shown(p, panel, u, v));
    return largest;
}

/* The largest deviation of a row sum from 1. */
static double row_error(const Preview *p, int panel)
{
    double worst = 0;

    for (int64_t u = 0; u < 8; u++) {
        double sum = 0;

        for (int64_t v = 0; v < 8; v++)
            sum += shown(p, panel, u, v);
        worst = fmax(worst, fabs(sum - 1));
    }
    return worst;
}

/* The curves beside the matrices end at what the matrices show; cold ones fall slower. */
static void residuals_fall(const Preview *p, int panel)
{
    Error err = ERROR_INIT;
    Plot *plot = panel_plot(&p->figure->panels[panel], &err);

    CHECK(plot, "%s", err.text);
    assert_int_equal(plot->count, 3);
    for (int k = 0; k < 3; k++) {
        const PlotSeries *s = &plot->series[k];

        assert_int_equal(s->count, 64);
        assert_true(s->y[63] < s->y[0]);
        CHECK_NEAR(s->y[63], row_error(p, k), 1e-5); /* the matrix is read in float32 */
    }
    assert_true(plot->series[0].y[63] < plot->series[1].y[63]);
    assert_true(plot->series[1].y[63] < plot->series[2].y[63]);
    assert_string_equal(plot->series[1].name, "temperature 0.5");
    plot_free(plot);
}

/* Mean entropy of a line's shares in nats; lines: rows or columns. */
static double line_entropy(const Preview *p, int panel, bool columns)
{
    double mean = 0;

    for (int64_t a = 0; a < 8; a++) {
        double sum = 0, entropy = 0;

        for (int64_t b = 0; b < 8; b++)
            sum += columns ? shown(p, panel, b, a) : shown(p, panel, a, b);
        for (int64_t b = 0; b < 8; b++) {
            double share = (columns ? shown(p, panel, b, a) : shown(p, panel, a, b)) / sum;

            entropy -= share > 0 ? share * log(share) : 0;
        }
        mean += entropy / 8;
    }
    return mean;
}

/* Panels 0 to 2 lower the temperature; 4 to 7 are the iterations 1, 2, 8 and 32 at 0.5. */
TEST(temperature_sharpens_and_balancing_equalises)
{
    Preview *p = preview_open("sinkhorn-sharpening", 10);

    for (int columns = 0; columns < 2; columns++) {
        assert_true(line_entropy(p, 0, columns) > line_entropy(p, 1, columns));
        assert_true(line_entropy(p, 1, columns) > line_entropy(p, 2, columns));
        assert_true(line_entropy(p, 4, columns) < line_entropy(p, 5, columns));
        assert_true(line_entropy(p, 5, columns) < line_entropy(p, 7, columns));
    }
    CHECK_NEAR(line_entropy(p, 4, true), 0.605, 2e-3);
    CHECK_NEAR(line_entropy(p, 7, true), 0.825, 2e-3);
    assert_string_equal(preset_find("sinkhorn-sharpening")->title,
                        "Sinkhorn: temperature sharpens, balancing equalises");
    assert_null(strstr(mechanism_find("sinkhorn")->teaches, "balancing sharpens"));
    preview_close(p);
}

TEST(a_permutation_sharpens_as_the_temperature_falls)
{
    Preview *p = preview_open("sinkhorn-sharpening", 10);
    double   sharp[3] = { 0 };

    for (int panel = 0; panel < 3; panel++)
        for (int64_t u = 0; u < 8; u++)
            sharp[panel] += largest_in_row(p, panel, u);
    assert_true(sharp[0] < sharp[1] && sharp[1] < sharp[2]);
    for (int panel = 4; panel < 7; panel++)
        assert_true(row_error(p, panel) > row_error(p, panel + 1));
    assert_true(row_error(p, 7) > row_error(p, 1)); /* the same, after all iterations */
    residuals_fall(p, 3);
    preview_close(p);
}

/* Rings stand where entmax has weight; sparsemax keeps fewer keys; bars count them. */
TEST(supports_shrink)
{
    Preview   *p = preview_open("entmax-support", 3);
    PatternRow row = { 0 };
    double     kept[2] = { 0 };

    for (int64_t i = 0; i < 32; i++) {
        int64_t size = 0;
        double  sum = 0;

        pattern_row(p->figure->panels[0].view->marks->cells, 0, i, &row);
        for (int64_t x = 0; x < row.count; x++)
            for (int64_t c = 0; c < row.runs[x].count; c++, size++)
                assert_true(shown(p, 1, i, row.runs[x].start + c * row.runs[x].step) > 0);
        assert_int_equal(view_load(p->figure->panels[1].view->row_load, 0, i, NULL), size);
        for (int64_t j = 0; j < 32; j++) {
            sum += shown(p, 0, i, j);
            kept[0] += shown(p, 1, i, j);
            kept[1] += shown(p, 2, i, j);
        }
        assert_true(fabs(sum - 1) < 1e-5);
    }
    assert_true(kept[1] < kept[0]);
    pattern_row_free(&row);
    preview_close(p);
}

/* Bars of numbers stay in their column for any name. */
TEST(as_text_no_line_is_too_long)
{
    static const struct {
        const char *name;
        int         panels;
    } presets[] = { { "experts-capacity", 3 }, { "cluster-balance", 3 } };

    for (size_t k = 0; k < 2; k++) {
        Preview *p = preview_open(presets[k].name, presets[k].panels);
        Text     out = { 0 };

        assert_true(figure_text(p->figure, &(TextOptions){ .width = 80 }, &out, NULL));
        for (const char *line = text_str(&out), *end; *line; line = end + (*end == '\n')) {
            end = line + strcspn(line, "\n");
            CHECK(end - line <= 80, "%s: %.*s", presets[k].name, (int)(end - line), line);
        }
        text_free(&out);
        preview_close(p);
    }
}

/* Each asked-for cell is placed or dropped, none beyond the capacity. */
TEST(what_is_beyond_the_capacity_is_dropped)
{
    Preview *p = preview_open("experts-capacity", 3);
    int64_t  dropped[3] = { 0 };

    for (int panel = 0; panel < 3; panel++) {
        const View *view = p->figure->panels[panel].view;
        int64_t     asked = 0;

        for (int64_t e = 0; e < 8; e++) {
            int64_t over, used = view_load(view->load, 0, e, &over);

            assert_true(used <= view->load->limit);
            assert_true(over == 0 || used == view->load->limit);
            asked += used + over;
            dropped[panel] += over;
        }
        assert_int_equal(asked, pattern_count(view->support));
        assert_int_equal(dropped[panel], pattern_count(view->marks->cells));
    }
    assert_true(dropped[1] < dropped[0]);
    preview_close(p);
}

/* Rows of all four are weights; elu + 1 alone has no peak among many keys. */
TEST(elu_is_flatter_than_the_other_maps)
{
    Preview *p = preview_open("feature-maps", 4);

    for (int panel = 0; panel < 4; panel++) {
        double top = 0;

        for (int64_t i = 0; i < 32; i++) {
            double sum = 0;

            for (int64_t j = 0; j < 32; j++) {
                assert_true(j <= i || !(shown(p, panel, i, j) > 0));
                sum += j <= i ? shown(p, panel, i, j) : 0;
                top = i < 16 || !(shown(p, panel, i, j) > top) ? top : shown(p, panel, i, j);
            }
            assert_true(sum > 0 && sum < 1 + 1e-4); /* eps takes its share */
        }
        assert_true(panel == 1 ? top < 0.1 : top > 0.1);
    }
    preview_close(p);
}

/* How much of the rows' mass is on the last `near` tokens. */
static double near_share(Preview *p, int panel, int64_t near)
{
    double last = 0, all = 0;

    for (int64_t i = 16; i < 32; i++)
        for (int64_t j = 0; j <= i; j++) {
            all += fabs(shown(p, panel, i, j));
            last += i - j < near ? fabs(shown(p, panel, i, j)) : 0;
        }
    return last / all;
}

/* Keys return every four tokens or so: what was written before is less and less of a row. */
TEST(rewritten_keys_end_their_columns)
{
    Preview *p = preview_open("delta-rule", 4);

    assert_true(near_share(p, 1, 8) > 1.2 * near_share(p, 0, 8));
    assert_true(near_share(p, 2, 8) > near_share(p, 1, 8));
    assert_true(near_share(p, 3, 8) > 1.2 * near_share(p, 0, 8));
    preview_close(p);
}

SUITE(NULL, NULL)
