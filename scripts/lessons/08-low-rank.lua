-- Low rank: n keys projected to k slots, and what that blurs.
local near = "synthetic:local"

return {
    title = "Low rank, and what it blurs",
    summary = "Fewer, mixed keys: cheap for any length, but neighbours become hard to tell apart.",
    recap = [[
        Low rank mixes n keys into k slots. Work and memory grow with n times k, but a query
        cannot tell apart the keys of a slot. Smooth heads lose little, sharp heads much.
    ]],
    minutes = 5,
    steps = {
        {
            title = "Fewer keys, each a mix",
            text = [[
                Linformer does not choose keys. It mixes all n keys into k slots, by a learned
                matrix with k rows. Every query then looks at k slots: n times k work.

                Here the mix is simple: each slot is the mean of 8 neighbours.
            ]],
            show = { "linformer(k=8,projection=mean-pool):weights", input = near, n = 64, d = 32 },
            runs = { full = { "full", input = near, n = 64, d = 32 } },
            now = function(s)
                return ("%s FLOP, full attention %s"):format(count(s[1].flops), count(s.full.flops))
            end,
            ask = {
                "Full attention is how many times the work?",
                answer = function(s) return s.full.flops / s[1].flops end,
                within = 0.05,
            },
            hint = "Divide. There are 64 keys and 8 slots.",
            explain = "About n / 2k times: half of the work makes the slots, half attends to them. "
                .. "And k does not have to grow with n.",
        },
        {
            title = "Steps instead of a slope",
            text = [[
                In this input attention falls off smoothly with distance. But the picture has
                steps: within a slot all 8 keys get the same weight.
            ]],
            show = { "linformer(k=8,projection=mean-pool):weights", "full:weights", input = near,
                n = 64, d = 32 },
            ask = {
                "Press Tab twice: pane 2 is exact. What does the blur lose?",
                choices = {
                    { "which of 8 neighbours is meant", "All keys of a slot get one weight." },
                    { "the far keys", "They are in slots of their own." },
                    { "the first row", "Every query looks at all the slots." },
                },
                answer = 1,
            },
            hint = "Compare the width of the bright band. Tab goes on to these words.",
            explain = "A query cannot tell the keys of a slot apart. That is the blur.",
        },
        {
            title = "Rank",
            text = [[
                The map of weights is a product of an n × k and a k × n matrix. Its rank is k at
                most. Exact softmax weights usually have full rank, but their singular values
                fall off: the first few hold most.
            ]],
            show = { "full:spectrum", input = near, n = 64, d = 32 },
            ask = {
                "If the singular values fell off very slowly, a small k would be",
                choices = {
                    { "a good choice", "Then much would be in the part that k leaves out." },
                    { "a bad choice", "Much would be in the part that k leaves out." },
                    { "neither", "Rank k keeps at most the k largest of them." },
                },
                answer = 2,
            },
            hint = "A map of rank k can match at most k of them.",
            explain = "A sharp head, like \"look at the token before\", has a flat spectrum: it is "
                .. "sparse, but not of low rank.",
        },
        {
            title = "More slots",
            text = [[
                With more slots the steps get finer. With k = n nothing is mixed any more.
            ]],
            show = { "linformer(k=8,projection=mean-pool):weights", input = near, n = 64, d = 32 },
            runs = { full = { "full", input = near, n = 64, d = 32 } },
            task = "press p and raise k until the output error is below 20 %, with fewer FLOPs "
                .. "than exact attention",
            done = function(s)
                return s[1].error and s[1].error < 0.2 and s[1].flops < s.full.flops
            end,
            solution = { "linformer(k=24,projection=mean-pool)", input = near, n = 64, d = 32 },
            now = function(s)
                return ("k = %d: error %s, %s FLOP (exact %s)"):format(s[1].params.k,
                    percent(s[1].error), count(s[1].flops), count(s.full.flops))
            end,
            hint = "Type 24, then Enter.",
            explain = "For a head that is this sharp, k must be a good part of n, and then little "
                .. "is saved; at k = n / 2 almost nothing. A smoother head needs less.",
        },
        {
            title = "No causal mask",
            text = [[
                Each slot mixes keys from the whole text, later ones too. A query that may only
                look back would see the future through the mix.
            ]],
            ask = {
                "For which use is this a problem?",
                choices = {
                    { "classifying a whole text", "There every token may see every other." },
                    { "writing a text word by word",
                      "The next word must not leak into the slots." },
                    { "none", "A model that sees the answer learns nothing." },
                },
                answer = 2,
            },
            hint = "Where must the future stay hidden?",
            explain = [[
                So Linformer is for encoders, and for a fixed longest length: its matrix has a
                column for each position.
            ]],
        },
    },
}
