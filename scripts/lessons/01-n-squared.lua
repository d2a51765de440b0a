-- Why attention gets expensive: every query against every key.
return {
    title = "Why n squared hurts",
    summary = "Every query meets every key: twice the text, four times the work.",
    recap = [[
        Every query meets every key: n² scores. Twice the text is four times the work. Tiles
        save the memory of the matrix, not its work. Only pairs that are left out save work, and
        what a head looks at decides what that loses.
    ]],
    minutes = 5,
    steps = {
        {
            title = "Every query, every key",
            text = [[
                This is full attention on 64 tokens. A row is a query, a column is a key.
                A score says how well the two match. Softmax makes weights of the scores of a
                row, which add up to 1: how much this query looks at each key.
            ]],
            show = { "full:weights", input = "synthetic:clusters(clusters=4)", n = 64, d = 32 },
            ask = {
                "How many cells does the matrix have?",
                answer = function(s) return s[1].n * s[1].m end,
                within = 0.001,
            },
            hint = "64 rows, and each has 64 columns.",
            explain = function(s)
                return ("%d queries times %d keys. No cell was left out: that is what full means.")
                    :format(s[1].n, s[1].m)
            end,
        },
        {
            title = "Work for each cell",
            text = [[
                A score is a dot product of a query and a key, each with d numbers.
                That is d multiplications and d additions. Mixing the values with the weights
                costs the same again.
            ]],
            now = function(s)
                return ("n = %d, d = %d: %s FLOP in all"):format(s[1].n, s[1].d, count(s[1].flops))
            end,
            ask = {
                "4 d for each cell, so 4 n² d in all. What is most of the rest?",
                choices = {
                    { "the softmax", "It is a few operations a cell, without a factor d." },
                    { "the projections that make q, k, v",
                      "They are not counted here: q, k and v are given." },
                    { "reading the input", "Reading costs time, but it is no arithmetic." },
                },
                answer = 1,
            },
            hint = "What else happens to a score before it is a weight?",
            explain = function(s)
                local main = 4 * s[1].n * s[1].m * s[1].d
                return ("4 n² d is %s. The run counted %s. The difference is %s."):format(
                    count(main), count(s[1].flops), percent((s[1].flops - main) / s[1].flops))
            end,
        },
        {
            title = "Twice the text",
            text = [[
                Now there are 128 tokens. The picture looks the same, but it holds four times as
                many pairs, so a cell of the screen stands for more of them.
            ]],
            show = { "full:weights", input = "synthetic:clusters(clusters=4)", n = 128, d = 32 },
            runs = { short = { "full", input = "synthetic:clusters(clusters=4)", n = 64, d = 32 } },
            now = function(s)
                return ("64 tokens: %s FLOP\n128 tokens: %s FLOP"):format(count(s.short.flops),
                    count(s[1].flops))
            end,
            ask = {
                "How many times the work of 64 tokens is it?",
                answer = function(s) return s[1].flops / s.short.flops end,
                within = 0.05,
            },
            hint = "Divide the second number by the first.",
            explain = [[
                Twice the length is four times the work: that is what n squared means. From 256 to
                65536 tokens the text is 256 times as long, and the work 65536 times as much.
            ]],
        },
        {
            title = "Memory, too",
            text = [[
                Whoever stores all weights needs n² numbers for each head: at 65536 tokens and
                4 bytes a number, 16 GiB for one head of one layer.

                But exact attention can also go through the keys in tiles, and store none of
                them. The lesson "tiled" shows how.
            ]],
            ask = {
                "What can tiles not save?",
                choices = {
                    { "memory for the matrix", "They do save that: a tile is small." },
                    { "the n² scores", "Each score must still be computed once." },
                },
                answer = 2,
            },
            hint = "A tile is a part of the matrix. All parts together are the matrix.",
            explain = [[
                To do less than n² work, some pairs must be left out, or something else must stand
                for them. That is what the other mechanisms are about.
            ]],
        },
        {
            title = "Leave pairs out",
            text = [[
                The simplest way: a query looks only at its neighbours. This is a window of 9
                keys, and the work grows with n times 9.
            ]],
            show = { "window(window=9):weights", input = "synthetic:local", n = 128, d = 32 },
            runs = { all = { "full", input = "synthetic:local", n = 128, d = 32 } },
            task = "press p, set window to 33 or more for less than half of full's work",
            done = function(s)
                return s[1].mechanism == "window" and s[1].params.window >= 33
                    and s[1].flops < s.all.flops / 2
            end,
            solution = { "window(window=33):weights", input = "synthetic:local", n = 128, d = 32 },
            now = function(s)
                return ("window %d: %s of full's work, %s of its weight kept"):format(
                    s[1].params.window, percent(s[1].flops / s.all.flops), percent(s[1].mass))
            end,
            hint = "p opens the form on window. Type the number, then press Enter.",
            explain = "Work is saved, and some weight is lost. How much depends on what the heads "
                .. "look at. Here it is near, so a window loses little.",
        },
    },
}
