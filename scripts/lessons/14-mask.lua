-- Why the mask comes before the softmax: what is left of a row when it comes after.
local input = "synthetic:normal(match=4)"
local row = 12 -- the query that is looked at

-- Share of a row's weight on the keys that a causal query may see.
local function left(run, query)
    local sum = 0
    for key, weight in ipairs(run.row("weights", query)) do
        if key - 1 <= query then sum = sum + weight end
    end
    return sum
end

return {
    title = "Why the mask comes before the softmax",
    summary = "A word may not look at later words. Cut them off before the weights are made.",
    recap = [[
        The mask comes before the softmax. After it, rows are too small; dividing them again
        fails where what is left is 0. Masked scores become minus infinity, and each row adds up
        to 1.
    ]],
    minutes = 5,
    steps = {
        {
            title = "The future",
            text = [[
                A model that writes text may not look at words that are still to come. Here
                nothing is masked: every query sees every key.
            ]],
            show = { "full:weights", input = input, n = 28, d = 32, cursor = { row, 20 } },
            ask = {
                "Which cells must not count?",
                choices = {
                    { "above the diagonal", "There the key comes after the query." },
                    { "below the diagonal", "There the key comes before the query." },
                    { "the diagonal", "There a word looks at itself, and that is allowed." },
                },
                answer = 1,
            },
            hint = "Rows are queries. A later key is further to the right.",
            explain = "Say we simply set these weights to 0, after the softmax. What is left?",
        },
        {
            title = "After: rows too small",
            text = [[
                The softmax shared a weight of 1 among all keys, later ones too. What they got is
                lost when they are set to 0.
            ]],
            now = function(s)
                return ("row %d: %s of its weight lies on later keys"):format(row,
                    percent(1 - left(s[1], row)))
            end,
            ask = {
                "What percentage of its weight is left in row 12?",
                answer = function(s) return 100 * left(s[1], row) end,
                within = 0.02,
                unit = "%",
            },
            hint = "A row adds up to 100 %.",
            explain = function(s)
                return ("Row 0 keeps %s, the last row all. The output of early words shrinks, and "
                    .. "by how much depends on words that they may not see."):format(
                    percent(left(s[1], 0)))
            end,
        },
        {
            title = "Before: rows of 1",
            text = [[
                Now mask the scores: later ones become minus infinity. exp makes 0 of them, and the
                softmax shares its 1 among the others.
            ]],
            task = "press p, set causal to yes, press Enter",
            done = function(s) return s[1].causal end,
            solution = { "full:weights", input = input, n = 28, d = 32, causal = true },
            now = function(s)
                return ("row %d adds up to %.3f on keys 0 to %d"):format(row, left(s[1], row), row)
            end,
            hint = "p opens the form on causal. Right goes to yes.",
            explain = "The upper right is empty, and no row has lost anything. Nearly half of the "
                .. "cells need not be computed at all.",
        },
        {
            title = "Divide afterwards?",
            text = [[
                One could mask after the softmax and divide each row by what is left. On paper
                that is the same: the common sum cancels out.
            ]],
            show = { "full:weights", input = input, n = 28, d = 32, cursor = { row, 5 } },
            runs = {
                before = { "full", input = input, n = 28, d = 32, causal = true },
            },
            now = function(s)
                return ("key 5 in row %d, after and divided: %.4f\nmasked before: %.4f"):format(row,
                    s[1].value("weights", row, 5) / left(s[1], row),
                    s.before.value("weights", row, 5))
            end,
            ask = {
                "Where could it go wrong in a computer?",
                choices = {
                    { "if later keys take nearly all", "What is left may round to 0." },
                    { "if all weights are alike", "Then enough is left in each row." },
                    { "nowhere", "A number in a computer has an end." },
                },
                answer = 1,
            },
            hint = "What if nearly nothing is left to divide by?",
            explain = "The next step shows such rows.",
        },
        {
            title = "Nothing left",
            text = [[
                The same input with scores 16 times as large: rows are sharp. Where the best key is
                a later one, next to nothing is left for the others.
            ]],
            show = { "full(scale=2.83):weights", input = input, n = 28, d = 32,
                cursor = { row, 20 } },
            now = function(s)
                return ("in row %d %s is left, in row 0 %.1g"):format(row, percent(left(s[1], row)),
                    left(s[1], 0))
            end,
            ask = {
                "In how many of the 28 rows is less than 1 % left? Count about.",
                answer = function(s)
                    local count = 0
                    for q = 0, s[1].n - 1 do
                        if left(s[1], q) < 0.01 then count = count + 1 end
                    end
                    return count
                end,
                within = 0.3,
            },
            hint = "Rows that are dark from the left up to the diagonal.",
            explain = [[
                With numbers of 32 bits dividing still works here. With 16 bits (fp16), what some
                of these rows have left is stored as 0, and dividing is 0/0. The same happens with
                32 bits where scores differ by more than about 100. If the mask comes first, the
                largest score that counts is taken off before exp: no row is empty.
            ]],
        },
    },
}
