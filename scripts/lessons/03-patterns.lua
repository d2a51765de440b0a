-- Fixed patterns: a window, what it cannot see, and how layers carry it further.
local function far(run, layers)
    local count = 0
    for _, hops in ipairs(run.row("reach", 0)) do
        if hops >= 0 and hops <= layers then count = count + 1 end
    end
    return count
end

return {
    title = "Fixed patterns, and how far they reach",
    summary = "A window sees little in one layer; layers carry it on.",
    recap = [[
        A fixed pattern chooses pairs by position. Its work grows with n. What it loses depends
        on the head, and the worst row may lose all. Layers carry information further; strides
        make that quick.
    ]],
    minutes = 5,
    steps = {
        {
            title = "A window",
            text = [[
                A fixed pattern says beforehand which pairs are computed: by position, whatever
                the tokens are. This is a window of 5: the token itself and two on each side.
            ]],
            show = { "window(window=5):connectivity", input = "synthetic:local", n = 64, d = 32 },
            now = function(s)
                return ("%d of %d pairs, %s"):format(s[1].pairs, s[1].n * s[1].m,
                    percent(s[1].density))
            end,
            ask = {
                "How many keys does a query in the middle see?",
                answer = function(s)
                    local count = 0
                    for _, cell in ipairs(s[1].row("connectivity", 32)) do count = count + cell end
                    return count
                end,
                within = 0,
            },
            hint = "The cursor is in the middle. Count the cells of its row.",
            explain = "Five, however long the text is. So the work grows with n, not with n².",
        },
        {
            title = "What is lost",
            text = [[
                Here attention falls off with distance. The mass kept is the share of exact
                attention that lies on the pairs computed.
            ]],
            task = "press p and widen the window: keep over 90 % of the mass in at most a quarter "
                .. "of the pairs",
            done = function(s) return s[1].mass and s[1].mass > 0.9 and s[1].density <= 0.25 end,
            solution = { "window(window=9)", input = "synthetic:local", n = 64, d = 32 },
            now = function(s)
                return ("window %d: mass kept %s, %s of the pairs"):format(s[1].params.window,
                    percent(s[1].mass), percent(s[1].density))
            end,
            hint = "Right makes it larger, Enter closes the form.",
            explain = "For this head a narrow window is nearly enough.",
        },
        {
            title = "A head that looks far",
            text = [[
                Another input: the last queries all look for one token near the start. The
                window cannot see it.
            ]],
            show = { "window(window=9):connectivity", "full:weights",
                input = "synthetic:needle(at=8,queries=24)", n = 64, d = 32 },
            now = function(s)
                return ("mean mass kept %s, in the worst row %s"):format(percent(s[1].mass),
                    percent(s[1].mass_min))
            end,
            ask = {
                "Tab twice: pane 2 is exact. What does the key that they all want look like?",
                choices = {
                    { "as a bright column", "One key, many queries." },
                    { "as a bright row", "A row is one query with all its keys." },
                    { "on the diagonal", "There every token meets itself." },
                },
                answer = 1,
            },
            hint = "Keys are columns.",
            explain = [[
                The last queries lose nearly everything. A mean hides such rows, so the worst row is
                shown, too.
            ]],
        },
        {
            title = "Layers carry it on",
            text = [[
                After one layer a token knows its neighbours. In the next layer a neighbour reads
                it, and knows what it knew. The view reach shows how many layers it takes from a
                key to a query.
            ]],
            show = { "window(window=5):reach", input = "synthetic:local", n = 64, d = 32,
                layers = 12 },
            now = function(s)
                return ("query 0 is reached from %d tokens in 1 layer, from %d in 2"):format(
                    far(s[1], 1), far(s[1], 2))
            end,
            ask = {
                "From how many tokens is query 0 reached after 4 layers?",
                answer = function(s) return far(s[1], 4) end,
                within = 0,
            },
            hint = "Each layer adds two more tokens on its one side.",
            explain = "A window reaches half its width further with each layer: slow, but steady.",
        },
        {
            title = "Gaps reach further",
            text = [[
                A dilated window leaves gaps: as many keys, twice as far apart, so it reaches
                further. But after 40 layers there still is a chessboard.
            ]],
            show = { "dilated(window=5,dilation=2):reach", input = "synthetic:local", n = 28,
                d = 32, layers = 40 },
            ask = {
                "With a gap of 2 in every layer, which tokens never meet?",
                choices = {
                    { "even and odd ones", "Steps of 2 never change even to odd." },
                    { "the first and the last one", "They may, if both are even or both odd." },
                    { "all of them meet in the end", "Look at the cells that are not reached." },
                },
                answer = function(s)
                    local even, odd = s[1].value("reach", 0, 26), s[1].value("reach", 0, 27)
                    return even > 0 and odd < 0 and 1 or even < 0 and 2 or 3
                end,
            },
            hint = "Start at token 0 and make steps of 2.",
            explain = "So dilated windows need other layers or heads with another gap beside them.",
        },
        {
            title = "Neighbours and strides",
            text = [[
                The Sparse Transformer takes both: near tokens, here 7 on each side, and every
                8th token. One step along the stride, one to a neighbour: two layers do.
            ]],
            show = { "sparse-strided(stride=8):reach", input = "synthetic:local", n = 64, d = 32 },
            runs = { pairs = { "sparse-strided(stride=8)", input = "synthetic:local", n = 64,
                d = 32 } },
            now = function(s) return ("%s of all pairs are computed"):format(
                percent(s.pairs.density)) end,
            ask = {
                "How many layers does it take from key 63 to query 0?",
                answer = function(s) return s[1].value("reach", 0, 63) end,
                within = 0,
            },
            hint = "The text above and the colours say it.",
            explain = [[
                With a stride of √n a row has a few times √n keys: n √n pairs in all, between a
                window and full attention.
            ]],
        },
    },
}
