-- Choosing keys by their scores, beside a window of the same size; and its price.
local function head(word)
    return { word, input = "sample:induction.safetensors", layer = 1, head = 1 }
end

local function run(word) return { word, input = "sample:induction.safetensors", layer = 1 } end

return {
    title = "Why top-k beats a window",
    summary = "Eight keys are enough for a row, if they are the right ones. Finding them is work.",
    recap = [[
        A row of exact attention has few large weights, but they may be anywhere. A window reads
        the nearest keys, top-k the best. Top-k must score all keys to know them; Quest and
        others score groups of keys instead.
    ]],
    minutes = 5,
    steps = {
        {
            title = "A key far back",
            text = [[
                A head of a trained model, on 48 words that come twice. In the second half it
                looks for the word that followed the first time.
            ]],
            show = head("full:weights"),
            ask = {
                "How far back is the bright key of query 80?",
                answer = function(s)
                    local row, best = s[1].row("weights", 80, 1), 1
                    for k, weight in ipairs(row) do best = weight > row[best] and k or best end
                    return 80 - (best - 1)
                end,
                within = 0,
            },
            hint = "Tab, then the arrows: the line at the bottom has query and key.",
            explain = "In the second half there is one bright key in nearly all rows, and it is "
                .. "always as far away.",
        },
        {
            title = "Eight keys, the nearest",
            text = [[
                window=15 is 7 keys on each side: in causal order a row reads the 7 before and the
                token itself. Most of the mass of this head is further away.
            ]],
            show = head("window(window=15):weights"),
            task = "press p and widen the window: keep 95 % of this head's mass in at most 80 % of "
                .. "the pairs",
            done = function(s)
                return (s[1].kept(1) or 0) >= 0.95 and s[1].pairs / 4656 <= 0.8
            end,
            solution = head("window(window=95):weights"),
            now = function(s)
                return ("kept %s, with %s of the pairs"):format(percent(s[1].kept(1)),
                    percent(s[1].pairs / 4656))
            end,
            hint = "It must reach 47 tokens back, so 2 x 47 + 1.",
            explain = function(s)
                return ("It keeps %s, for %s of the pairs. Most of these pairs are there only to "
                    .. "reach one far key."):format(percent(s[1].kept(1)),
                    percent(s[1].pairs / 4656))
            end,
        },
        {
            title = "Eight keys, the best",
            text = "Top-k reads the 8 keys with the largest scores, near or far.",
            show = head("topk(k=8):weights"),
            runs = { window = run("window(window=15)") },
            now = function(s)
                return ("this head keeps %s\nin a window of as many pairs %s"):format(
                    percent(s[1].kept(1)), percent(s.window.kept(1)))
            end,
            ask = {
                "Can any other 8 keys of a row keep more of its mass?",
                choices = {
                    { "no", "The largest scores are the largest weights." },
                    { "yes, with luck", "More than the 8 largest weights?" },
                    { "yes, a wider window", "That is more than 8." },
                },
                answer = 1,
            },
            hint = "The softmax does not change the order.",
            explain = "It is the best choice there is, so it is the measure for all others: the "
                .. "view best_mass.",
        },
        {
            title = "The price",
            text = [[
                To know the 8 largest scores, top-k computes all of them. What it spares is the
                second half: weights times values.
            ]],
            show = head("topk(k=8):kept"),
            runs = { full = run("full"), window = run("window(window=15)") },
            ask = {
                "Its work, as a share of full attention's?",
                answer = function(s) return 100 * s[1].flops / s.full.flops end,
                within = 0.1,
                unit = "%",
            },
            hint = "All scores are half of the work, 8 values a row are little.",
            explain = function(s)
                return ("%s; the window takes %s. As n grows it stays near half.")
                    :format(percent(s[1].flops / s.full.flops),
                        percent(s.window.flops / s.full.flops))
            end,
        },
        {
            title = "Guess, then read",
            text = [[
                Quest keeps the least and the largest number of each channel for a page of 4 keys.
                They bound the page's best score. Each row reads the 4 most promising pages.
            ]],
            show = head("quest:weights"),
            now = function(s)
                return ("this head keeps %s with %s of the pairs"):format(
                    percent(s[1].kept(1)), percent(s[1].pairs / 4656))
            end,
            ask = {
                "n keys in pages of 4: how many bounds are computed for a query?",
                choices = {
                    { "n", "One for a page, not for a key." },
                    { "n / 4", "And only the chosen pages are read." },
                    { "16", "So many keys are read." },
                },
                answer = 2,
            },
            hint = "One bound for each page.",
            explain = "MoBA takes a block's mean, DSA a small key of its own for each token. All "
                .. "guess the scores before they read keys.",
        },
    },
}
