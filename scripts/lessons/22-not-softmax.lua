-- Rows that do not sum to 1, and a cache of latents.
local input = "synthetic:clusters(clusters=4)"

local function shown(word, more)
    local o = { word, input = input, n = 28, d = 16, causal = true }
    for name, value in pairs(more or {}) do o[name] = value end
    return o
end

local function row_sum(run, query)
    local total = 0
    for _, weight in ipairs(run.row("weights", query)) do total = total + weight end
    return total
end

return {
    title = "Weights without a softmax",
    summary = "A softmax shares out 1. A row may also sum to more, or to less, or be a difference.",
    recap = [[
        A sigmoid weighs each key alone, so rows sum to anything. A difference of two softmaxes
        removes what both have. A latent keeps the softmax and makes its keys and values from a
        short vector.
    ]],
    minutes = 4,
    steps = {
        {
            title = "Each key alone",
            text = [[
                A softmax divides by the sum of a row: what one key gains, others lose. A sigmoid
                maps each score to a weight from 0 to 1, and divides by nothing.
            ]],
            show = shown("sigmoid:weights"),
            runs = { softmax = shown("full") },
            now = function(s)
                return ("row 27 sums to %.2f, with softmax to %.2f"):format(row_sum(s[1], 27),
                    row_sum(s.softmax, 27))
            end,
            ask = {
                "A key that matches well is added. What happens to the weights of the others?",
                choices = {
                    { "nothing", "Each depends on its own score alone." },
                    { "they shrink", "That is a softmax." },
                    { "they grow", "No key reads the score of another." },
                },
                answer = 1,
            },
            hint = "Nothing is divided by the sum.",
            explain = "So a row may be dark where nothing matches. A softmax must put its 1 "
                .. "somewhere, and often that is the first token.",
        },
        {
            title = "What two maps share",
            text = [[
                Differential attention computes two softmaxes and subtracts a share lambda of the
                second. What both give to keys that do not matter cancels.
            ]],
            show = shown("differential(lambda=0.5):weights", { heads = 2 }),
            ask = {
                "lambda is 0.5. What does a row sum to?",
                answer = function(s) return row_sum(s[1], 20) end,
                within = 0.01,
            },
            hint = "Each softmax sums to 1.",
            explain = function(s)
                return ("%.0f %% of the weights are negative: there the second map was the "
                    .. "larger. It takes two heads for one map."):format(
                    100 * s[1].figures.negative_share)
            end,
        },
        {
            title = "A cache of latents",
            text = [[
                MLA keeps the softmax. But its cache holds one short vector a token, for all
                heads. Keys and values are made from it. The shorter it is, the more they lose.
                A model with rotary positions keeps one small key beside it.
            ]],
            show = shown("mla(rank=16):weights", { heads = 4, n = 128 }),
            now = function(s)
                return ("%.0f %% of the cache; keys and values are off by %.0f %%"):format(
                    100 * s[1].figures.kv_ratio, 100 * s[1].figures.rank_error)
            end,
            task = "press p and raise rank until keys and values are off by less than 10 %",
            done = function(s) return s[1].figures.rank_error < 0.1 end,
            solution = shown("mla(rank=64):weights", { heads = 4, n = 128 }),
            ask = {
                "Four heads of 16 channels. How many numbers a token do keys and values take?",
                answer = function(s) return 2 * 4 * s[1].d end,
                within = 0,
            },
            hint = "A key and a value for each head.",
            explain = "Here the latent is the best of its rank for this text. A trained model "
                .. "learns keys that fit into it.",
        },
    },
}
