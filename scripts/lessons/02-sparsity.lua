-- What the rows of a softmax look like: sharp, flat, and what that means for leaving keys out.
local function top(row, count)
    table.sort(row, function(a, b) return a > b end)
    local sum = 0
    for i = 1, count do sum = sum + row[i] end
    return sum
end

-- Mean share of the largest `count` weights of a row.
local function kept(run, count)
    local sum = 0
    for q = 0, run.n - 1 do sum = sum + top(run.row("weights", q), count) end
    return sum / run.n
end

return {
    title = "What softmax sparsity looks like",
    summary = "Softmax makes few weights large and most of them small. "
        .. "How few depends on the head.",
    recap = [[
        Softmax shares a weight of 1 in each row: sharp heads give it to few keys, flat heads to
        all. The mass kept is what a set of pairs holds of it.
    ]],
    minutes = 5,
    steps = {
        {
            title = "A sharp head",
            text = [[
                Here each token looks at the one before it. A row has one bright cell. All other
                weights are almost 0, though softmax never gives exactly 0.

                Such a row is sparse: few keys hold nearly all of its weight.
            ]],
            show = { "full:weights", input = "synthetic:previous", n = 64, d = 32,
                cursor = { 40, 39 } },
            now = function(s)
                local largest = top(s[1].row("weights", 40), 1)
                return ("the largest weight of row 40: %.3f"):format(largest)
            end,
            ask = {
                "What do all weights of one row add up to?",
                choices = {
                    { "1", "Softmax divides by the sum of the row." },
                    { "64, the number of keys", "More keys share it; the sum stays." },
                    { "it depends on the head", "How they share it depends on the head." },
                },
                answer = 1,
            },
            hint = "Softmax makes probabilities.",
            explain = "So a row has a weight of 1 to share. If one key takes nearly all of it, the "
                .. "others share what is left. Another normaliser, entmax, gives exact zeros.",
        },
        {
            title = "A flat head",
            text = [[
                Now all keys are the same vector. Every score is the same, so every weight is the
                same. Whichever keys are left out, their share is lost.
            ]],
            show = { "full:weights", input = "synthetic:uniform", n = 64, d = 32 },
            ask = {
                "What percentage of the weight do the 16 largest of 64 keys hold?",
                answer = function(s) return 100 * kept(s[1], 16) end,
                within = 0.02,
                unit = "%",
            },
            hint = "All weights are 1/64.",
            explain = "16 of 64 keys hold 16/64 of the weight. A flat row is the worst case for "
                .. "every method that keeps few keys.",
        },
        {
            title = "Between the two",
            text = [[
                Most heads are between the two. Here tokens attend to members of their group:
                about 8 of 64 keys matter in each row.
            ]],
            show = { "full:weights", input = "synthetic:clusters(clusters=8,spread=0.3)", n = 64,
                d = 32 },
            now = function(s)
                return ("the 4 largest of 64: %s\nthe 8 largest: %s\nthe 16 largest: %s"):format(
                    percent(kept(s[1], 4)), percent(kept(s[1], 8)), percent(kept(s[1], 16)))
            end,
            ask = {
                "Which of these is the smallest share of the keys that holds 90 % of the weight?",
                choices = {
                    { "a sixteenth (4)", "They hold less: read the first line of three." },
                    { "an eighth (8)", "An eighth of the pairs would nearly do." },
                    { "a quarter (16)", "Fewer hold that much already." },
                },
                answer = function(s)
                    return kept(s[1], 4) > 0.9 and 1 or kept(s[1], 8) > 0.9 and 2 or 3
                end,
            },
            hint = "Which line is the first above 90 %?",
            explain = [[
                The share of exact attention's weight that a method's pairs hold is called the
                mass kept. No method with 8 keys in each row can keep more than these 8 do.
            ]],
        },
        {
            title = "Temperature",
            text = [[
                Scores are multiplied by a factor before the softmax, 1/√d as a rule. A larger
                factor makes rows sharper, a smaller one flatter. The order stays.
            ]],
            show = { "full:weights", input = "synthetic:normal", n = 64, d = 32 },
            runs = {
                sharp = { "full(scale=0.5)", input = "synthetic:normal", n = 64, d = 32 },
                flat = { "full(scale=0.02)", input = "synthetic:normal", n = 64, d = 32 },
            },
            task = "press p and set scale so that the 4 largest keys hold more than 60 %",
            done = function(s) return kept(s[1], 4) > 0.6 end,
            solution = { "full(scale=0.5):weights", input = "synthetic:normal", n = 64, d = 32 },
            now = function(s)
                return ("scale %.3g (0 means 1/√d = 0.177)\n4 largest of 64: %s"):format(
                    s[1].params.scale, percent(kept(s[1], 4)))
            end,
            hint = "p opens the form on scale. Type 0.5, then press Enter.",
            explain = function(s)
                return ("At 0.02 the 4 largest hold %s, at 0.5 %s. Sparsity is no law: it comes "
                    .. "from how large the scores are."):format(percent(kept(s.flat, 4)),
                    percent(kept(s.sharp, 4)))
            end,
        },
        {
            title = "A head of a real model",
            text = [[
                This is the second layer of a small model that was trained on repeated words.
                Its head 1 looks at what followed the same word the last time. Where there is
                nothing to find, it looks at the first tokens.
            ]],
            show = { "full:weights", input = "sample:induction.safetensors", layer = 1,
                scale = "log" },
            task = "go to head 1 with ] and look for a bright column",
            done = function(s) return s[1].head == 1 end,
            solution = { "full:weights", input = "sample:induction.safetensors", layer = 1,
                head = 1 },
            hint = "] is the next head, [ the one before.",
            explain = [[
                Column 0 is where attention goes that finds nothing: a sink. Softmax must give its
                1 to someone. Colours are logarithmic here; s changes that.
            ]],
        },
    },
}
