-- Kernel attention: features instead of scores, and how many of them.
local input = "synthetic:clusters(match=4)"

return {
    title = "Kernels, and how many features",
    summary = "Softmax as a product of features: linear in n, noisy with few features.",
    recap = [[
        Features replace the softmax, so the order of the product changes and work grows with n.
        Few features are noisy. For short texts the exact answer is cheaper.
    ]],
    minutes = 5,
    steps = {
        {
            title = "The order of a product",
            text = [[
                Exact attention: (Q Kᵀ) V. The bracket is n × n. Without the softmax one could
                write Q (Kᵀ V) instead: that bracket is only d × d.

                The softmax stands in between. Kernel methods replace it by features: a map φ with
                φ(q)·φ(k) in the place of exp(q·k).
            ]],
            show = { "full:weights", input = input, n = 64, d = 32 },
            ask = {
                "Which bracket does not grow with n in size?",
                choices = { { "Q Kᵀ", "It has n rows and n columns." },
                    { "Kᵀ V", "d rows and d columns, for any n." } },
                answer = 2,
            },
            hint = "K and V have n rows and d columns. Kᵀ V sums over n.",
            explain = "Sizes do not grow, and the work is n times a constant: linear attention.",
        },
        {
            title = "Random features",
            text = [[
                Performer draws M random directions. A feature is an exponential of the product with
                one of them. On average φ(q)·φ(k) is exactly exp(q·k).

                On average: with few directions it is noisy. Here are 8.
            ]],
            show = { "performer(features=8):weights", "full:weights", input = input, n = 64,
                d = 32 },
            now = function(s)
                return ("the output differs by %s from exact attention"):format(percent(s[1].error))
            end,
            ask = {
                "Press Tab twice: pane 2 is exact. What does the noise look like?",
                choices = {
                    { "wrong stripes: whole columns too bright or too dark",
                      "A direction near to one key raises it for many queries." },
                    { "the diagonal is missing", "Nothing is masked here." },
                    { "a shift to the right", "Positions do not move." },
                },
                answer = 1,
            },
            hint = "Compare the columns of both.",
            explain = "Errors are not spread evenly. A few features decide what many queries see.",
        },
        {
            title = "More features",
            text = [[
                In theory, the noise of φ(q)·φ(k) falls like 1/√M: four times the features, half
                the noise. See how the output does.
            ]],
            show = { "performer(features=8):weights", input = input, n = 64, d = 32 },
            task = "press p and raise features until the output error is below 50 %, with at most "
                .. "160 features",
            done = function(s)
                return s[1].error and s[1].error < 0.5 and s[1].params.features <= 160
            end,
            solution = { "performer(features=128)", input = input, n = 64, d = 32 },
            now = function(s)
                return ("%d features: error %s, %s FLOP"):format(s[1].params.features,
                    percent(s[1].error), count(s[1].flops))
            end,
            hint = "p opens the form on features. Type 128, then press Enter.",
            explain = "It takes more here: each row is also divided by a noisy sum, and sharp rows "
                .. "are hard. exp(q·k) is large for few keys, and a random direction rarely points "
                .. "there.",
        },
        {
            title = "Linear, but from where on?",
            text = [[
                Linear in n is not the same as cheap. With M features the work is about 8 n M d;
                half of it makes the features. Full attention needs about 4 n² d.
            ]],
            show = { "performer(features=128):weights", input = input, n = 64, d = 32 },
            runs = {
                full = { "full", input = "synthetic:normal", n = 64, d = 32 },
                long = { "full", input = "synthetic:normal", n = 1024, d = 32 },
                kernel = { "performer(features=128)", input = "synthetic:normal", n = 1024,
                    d = 32 },
            },
            now = function(s)
                return ("n = 64: %s FLOP, full %s\nn = 1024: %s FLOP, full %s"):format(
                    count(s[1].flops), count(s.full.flops), count(s.kernel.flops),
                    count(s.long.flops))
            end,
            ask = {
                "At n = 1024, full attention is how many times the work?",
                answer = function(s) return s.long.flops / s.kernel.flops end,
                within = 0.05,
            },
            hint = "Divide the last two numbers.",
            explain = "Both are equal near n = 2 · M, here 256. For shorter texts kernels do more "
                .. "work than the exact answer takes.",
        },
        {
            title = "Only positive features",
            text = [[
                There are also features with sine and cosine. They are good where a weight is large.
                But they can be negative, and where a true weight is small they can be very wrong.
            ]],
            show = { "performer(features=8,kernel=trig):weights", input = input, n = 64, d = 32 },
            runs = {
                positive = { "performer(features=8)", input = input, n = 64, d = 32 },
                many = { "performer(features=128,kernel=trig)", input = input, n = 64, d = 32 },
                many_positive = { "performer(features=128)", input = input, n = 64, d = 32 },
            },
            now = function(s)
                return ("error with 8 features: %s, with positive ones %s"):format(
                    percent(s[1].error), percent(s.positive.error))
            end,
            ask = {
                "The weights of a row are divided by their sum. What if some are negative?",
                choices = {
                    { "the sum may come near 0", "Then everything blows up." },
                    { "nothing happens", "What if the sum is nearly 0?" },
                    { "the sum is always 1", "It is divided by the sum to get there." },
                },
                answer = 1,
            },
            hint = "Positive and negative numbers can cancel.",
            explain = function(s)
                return ("Performer takes positive features: no division by almost nothing. "
                    .. "With 128 features, though, sine and cosine do better here: "
                    .. "%s against %s."):format(percent(s.many.error),
                    percent(s.many_positive.error))
            end,
        },
    },
}
