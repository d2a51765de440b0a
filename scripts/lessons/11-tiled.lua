-- Exact attention in tiles: why memory is no argument, and what a fair comparison is.
return {
    title = "Exact attention in tiles",
    summary = "Softmax can be summed up tile by tile. So compare with that, not with naive code.",
    recap = [[
        Softmax can be summed up piece by piece, so exact attention needs no n × n matrix.
        Compare memory and time with that. Fewer FLOPs are not yet less time.
    ]],
    minutes = 5,
    steps = {
        {
            title = "The naive way",
            text = [[
                Naive code makes the whole matrix of scores, then the whole matrix of weights, then
                multiplies by V. Both matrices have n² numbers.
            ]],
            show = { "full:weights", input = "synthetic:normal", n = 512, d = 64 },
            ask = {
                "4 bytes a number: how many KiB is one matrix at n = 512?",
                answer = function(s) return s[1].n * s[1].m * 4 / 1024 end,
                within = 0.01,
                unit = "KiB",
            },
            hint = "512 × 512 × 4 bytes, and 1024 bytes are 1 KiB.",
            explain = "At twice the length it is four times as much. Long before time runs out, "
                .. "memory does.",
        },
        {
            title = "A softmax in pieces",
            text = [[
                A softmax needs the largest score and the sum of a row. Both can be kept while
                going through the keys piece by piece.

                If a new piece has a larger score, what was summed so far is scaled down to it.
                The result is the same, but for rounding.
            ]],
            show = { "full", at = "tile", input = "synthetic:normal", n = 128, d = 64 },
            ask = {
                "What must be kept for a row between two pieces?",
                choices = {
                    { "its largest score, its sum, its output so far",
                      "That is all: d + 2 numbers." },
                    { "all its scores so far", "That would be n numbers again." },
                    { "nothing", "Then the sum would be lost." },
                },
                answer = 1,
            },
            hint = "The output is a sum of values; it can be scaled, too.",
            explain = [[
                This is called online softmax. FlashAttention does it in fast memory, tile by
                tile.
            ]],
        },
        {
            title = "What was measured",
            text = [[
                The full attention of this program works like that. Its own memory was measured
                in a run of its own, at two lengths.
            ]],
            runs = {
                short = { "full", input = "synthetic:normal", n = 2048, d = 64, measure = true },
                long = { "full", input = "synthetic:normal", n = 4096, d = 64, measure = true },
            },
            now = function(s)
                return ("n = 2048: %s\nn = 4096: %s\none matrix at 4096: %s"):format(
                    bytes(s.short.memory), bytes(s.long.memory), bytes(s.long.n * s.long.m * 4))
            end,
            ask = {
                "Twice the length: how does this memory grow?",
                choices = {
                    { "twofold at most", "The output grows with n; the tiles do not grow." },
                    { "fourfold", "That would be a stored matrix." },
                    { "eightfold", "That would be even more than a matrix." },
                },
                answer = function(s)
                    local ratio = s.long.memory / s.short.memory
                    return ratio < 2.2 and 1 or ratio < 6 and 2 or 3
                end,
            },
            hint = "Divide the second number by the first.",
            explain = [[
                Exact attention needs memory linear in n. "Our method needs linear memory" is no
                advantage over it.
            ]],
        },
        {
            title = "Where the naive comparison misleads",
            text = [[
                Say a paper claims: ten times less memory than attention. It compared with naive
                code. Compared with tiles, what is left of it?
            ]],
            show = { "window(window=65):weights", input = "synthetic:normal", n = 512, d = 64 },
            runs = {
                window = { "window(window=65)", input = "synthetic:normal", n = 4096, d = 64,
                    measure = true },
                full = { "full", input = "synthetic:normal", n = 4096, d = 64, measure = true },
            },
            now = function(s)
                return ("at n = 4096, window of 65: %s\nexact in tiles: %s\ntwo matrices: %s")
                    :format(bytes(s.window.memory), bytes(s.full.memory),
                        bytes(2 * s.full.n * s.full.m * 4))
            end,
            ask = {
                "What can a sparse method still save, compared with tiles?",
                choices = {
                    { "work, and so time", "Pairs that are left out are not computed." },
                    { "a power of n in memory", "With tiles both grow only linearly." },
                    { "nothing at all", "It computes far fewer pairs." },
                },
                answer = 1,
            },
            hint = "Compare the memory of both; then think of pairs.",
            explain = [[
                Memory is linear in n for both; only a constant factor can be saved there. So
                attnscope measures everything against exact tiled attention, in time as in memory.
            ]],
        },
        {
            title = "FLOPs are not time",
            text = [[
                Fewer pairs need not make a program faster by the same factor. Small or scattered
                pieces can keep a processor less busy than one large product.
            ]],
            runs = {
                window = { "window(window=65)", input = "synthetic:normal", n = 2048, d = 64,
                    measure = true },
                full = { "full", input = "synthetic:normal", n = 2048, d = 64, measure = true },
            },
            now = function(s)
                return ("FLOPs: %.1f times fewer\n"
                    .. "time here: %.3g ms, exact %.3g ms, %.1f times less (%s)"):format(
                        s.full.flops / s.window.flops, s.window.time, s.full.time,
                        s.full.time / s.window.time, s.full.device)
            end,
            ask = {
                "Had the time fallen like the FLOPs, how long would the window take?",
                answer = function(s) return s.full.time * s.window.flops / s.full.flops end,
                within = 0.05,
                unit = "ms",
            },
            hint = "Divide the time of exact attention by the first number.",
            explain = function(s)
                local gap = s.full.flops / s.window.flops * s.window.time / s.full.time
                return (gap > 1.3 and "The time fell less than the FLOPs did. "
                    or gap < 0.77 and "The time fell more than the FLOPs did: the longer run also "
                    .. "lost time elsewhere, such as in the cache or to other programs. "
                    or "Here both fell alike; at other lengths they do not. ")
                    .. "Times differ from machine to machine; these are yours. The lesson "
                    .. "\"roofline\" says more."
            end,
        },
    },
}
