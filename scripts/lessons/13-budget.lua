-- Choosing a mechanism: what the head looks at, what may be lost, what may be spent.
return {
    title = "Choosing for a budget",
    summary = "First look what the heads attend to, then what each mechanism loses for its cost.",
    recap = [[
        First ask whether exact attention is too slow. Then look at what the head attends to,
        compare errors for the same work, and check with the clock.
    ]],
    minutes = 5,
    steps = {
        {
            title = "Start with the exact answer",
            text = [[
                Before you replace attention, see what it does. On this input the heads look near.
                At this length exact attention in tiles may be good enough.
            ]],
            show = { "full:weights", input = "synthetic:local", n = 256, d = 32 },
            now = function(s) return ("exact: %s FLOP, error 0"):format(count(s[1].flops)) end,
            ask = {
                "Which question comes first?",
                choices = {
                    { "how long are the texts, and is exact too slow?",
                      "If it is fast enough, nothing has to be lost." },
                    { "which mechanism is the newest?", "That says little about your heads." },
                    { "which has the best exponent?", "Exponents matter for long texts only." },
                },
                answer = 1,
            },
            hint = "What if there is no problem?",
            explain = "Then we look at what may be left out.",
        },
        {
            title = "Two candidates",
            text = [[
                Two candidates for a tenth of the exact work. Both are linear in n. On this input
                one of them fits.
            ]],
            show = { "window(window=17):weights", "performer(features=12,stabilize=false):weights",
                input = "synthetic:local", n = 256, d = 32 },
            runs = { full = { "full", input = "synthetic:local", n = 256, d = 32 } },
            now = function(s)
                return ("window: %s of the work\nperformer: %s of the work"):format(
                    percent(s[1].flops / s.full.flops), percent(s[2].flops / s.full.flops))
            end,
            ask = {
                "Which loses less here?",
                choices = { { "the window", "What is attended to is near." },
                    { "the performer", "Few features blur everything." } },
                answer = function(s) return s[1].error < s[2].error and 1 or 2 end,
            },
            hint = "This head looks near. Which of the two pictures keeps that?",
            explain = function(s)
                return ("Error: window %s, performer %s. Not because windows are better: because "
                    .. "this head looks near."):format(percent(s[1].error), percent(s[2].error))
            end,
        },
        {
            title = "The same on another input",
            text = [[
                Now tokens attend to their group, wherever it is. A window of the same width, and
                LSH with buckets.
            ]],
            show = { "window(window=17):weights",
                "reformer(block=16,rounds=2,exclude_self=false):weights",
                input = "synthetic:clusters(clusters=16,spread=0.3)", n = 256, d = 32 },
            ask = {
                "Which keeps more of the mass here?",
                choices = { { "the window", "It keeps what is near; here that is chance." },
                    { "LSH", "It looks for similar tokens, and that is what this head wants." } },
                answer = function(s) return s[1].mass > s[2].mass and 1 or 2 end,
            },
            hint = "Tokens of a group stand anywhere. Which of the two looks for them?",
            explain = function(s)
                return ("Mass kept: window %s, LSH %s. Near: window. Similar: hashing or clusters. "
                    .. "One token for all: a global token. Smooth and flat: low rank or kernels.")
                    :format(percent(s[1].mass), percent(s[2].mass))
            end,
        },
        {
            title = "Spend until it is enough",
            text = [[
                Say the error may be 5 %. Take the cheapest window that reaches it. p changes it by
                hand; Ctrl-K finds the smallest value that keeps 95 % of the mass (q leaves its
                picture).
            ]],
            show = { "window(window=5):weights", input = "synthetic:local", n = 256, d = 32 },
            runs = { full = { "full", input = "synthetic:local", n = 256, d = 32 } },
            task = "with at most a tenth of the exact work, get the output error below 5 % by "
                .. "a wider window",
            done = function(s)
                return s[1].error and s[1].error < 0.05 and s[1].flops <= s.full.flops / 10
            end,
            solution = { "window(window=17)", input = "synthetic:local", n = 256, d = 32 },
            now = function(s)
                return ("window %s: error %s, %s of the exact work"):format(
                    tostring(s[1].params.window), percent(s[1].error),
                    percent(s[1].flops / s.full.flops))
            end,
            hint = "Press p, then Right some times, then Enter.",
            explain = [[
                Beyond that, more work buys nothing you need. Ctrl-V draws error beside cost for a
                whole range.
            ]],
        },
        {
            title = "Check with the clock",
            text = [[
                FLOPs are a promise, time is a fact. Measured here: exact attention against a
                window of 17, at n = 1024.
            ]],
            show = { "full:weights", "window(window=17):weights", input = "synthetic:local",
                n = 1024, d = 32 },
            runs = {
                full = { "full", input = "synthetic:local", n = 1024, d = 32, measure = true },
                window = { "window(window=17)", input = "synthetic:local", n = 1024, d = 32,
                    measure = true },
            },
            now = function(s)
                return ("exact %.3g ms, window %.3g ms (%s)"):format(s.full.time, s.window.time,
                    s.full.device)
            end,
            ask = {
                "By FLOPs alone, how many times faster should the window be, roughly?",
                answer = function(s) return s.full.flops / s.window.flops end,
                within = 0.2,
            },
            hint = "4 n² d against 4 n 17 d, so n / 17.",
            explain = function(s)
                return ("FLOPs: %.0f times fewer. Time: %.1f times less. Decide by the time "
                    .. "at your length, and by the error on your heads."):format(
                    s.full.flops / s.window.flops, s.full.time / s.window.time)
            end,
        },
    },
}
