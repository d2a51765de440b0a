-- Written from docs/lessons.md alone: what a distance penalty does to a head.
local input = "synthetic:normal"

local function near(run)
    local sum = 0
    for q = 8, run.n - 1 do
        local row = run.row("weights", q)
        for k = q - 7, q do sum = sum + row[k + 1] end
    end
    return sum / (run.n - 8)
end

return {
    title = "A penalty for distance",
    summary = "ALiBi subtracts from a score what grows with distance.",
    minutes = 3,
    steps = {
        {
            title = "No position",
            text = [[
                Random queries and keys, and no position at all. A query looks at any
                earlier key, near or far.

                - rows are queries
                - columns are keys
            ]],
            show = { "full:weights", input = input, n = 64, d = 32, causal = true, heads = 2 },
            now = function(s) return "on the 8 nearest keys: " .. percent(near(s[1])) end,
            ask = {
                "How many percent of the weight lie on the 8 nearest keys?",
                answer = function(s) return 100 * near(s[1]) end,
                within = 0.03,
                unit = "%",
            },
            hint = "It stands above.",
        },
        {
            title = "ALiBi",
            text = "Now the same head with --position alibi.",
            show = { "full:weights", input = input, n = 64, d = 32, causal = true, heads = 2,
                position = "alibi" },
            runs = { plain = { "full", input = input, n = 64, d = 32, causal = true, heads = 2 } },
            now = function(s)
                return ("nearest 8: %s\nwithout: %s"):format(percent(near(s[1])),
                    percent(near(s.plain)))
            end,
            task = "put the cursor on a key at least 30 tokens before its query",
            done = function(s) return s[1].query and s[1].query - s[1].key >= 30 end,
            solution = { "full:weights", input = input, n = 64, d = 32, causal = true, heads = 2,
                position = "alibi", cursor = { 50, 10 } },
            ask = {
                "What happened to far keys?",
                choices = {
                    { "their weights fell", "The penalty grows with distance." },
                    "they are masked",
                    { "nothing", "Compare the two numbers." },
                },
                answer = function(s) return near(s[1]) > near(s.plain) and 1 or 3 end,
            },
            hint = "Tab goes into the picture; arrows move.",
            explain = "Nothing is cut off: small weights are small, not zero.",
        },
        {
            title = "The stage",
            text = "The same run as an algorithm: its first stage.",
            show = { "full", at = 1, input = input, n = 32, d = 16 },
        },
    },
}
