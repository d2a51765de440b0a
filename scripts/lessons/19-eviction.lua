-- A cache of a fixed size: what leaves it, by age or by use, and what is missed then.
local function cache(word)
    return { word .. ":cache", input = "sample:induction.safetensors", layer = 1, head = 1 }
end

-- Keys that the last query finds in the cache.
local function held(run)
    local count = 0
    for _, cell in ipairs(run.row("connectivity", run.n - 1)) do count = count + cell end
    return count
end

-- Mean share of the later rows' exact attention that lies on keys that are gone.
local function missed(run)
    local gone = run.row("evicted_mass", 1)
    local sum = 0
    for q = 50, 96 do sum = sum + gone[q] end
    return sum / 47
end

-- Mean weight of exact attention on keys from..to, of the rows before the words come again.
local function early(run, from, to)
    local sum = 0
    for q = 6, 47 do
        for k = from, to do sum = sum + run.value("weights", q, k, 1) / 42 end
    end
    return sum
end

return {
    title = "What leaves the cache",
    summary = "A decoder keeps the keys of all tokens. With room for 16, which ones stay?",
    recap = [[
        A window evicts by age and loses the first tokens, which rows use as a sink. Keeping
        them costs four places. H2O evicts by use: what got little attention leaves. None of
        them can know what a later query will ask for.
    ]],
    minutes = 5,
    steps = {
        {
            title = "Rows are steps",
            text = [[
                A word is written at each step, and its key joins the cache. A row of the picture
                is a step, a column is the life of a key.

                Here the cache is a window: who comes first leaves first. window=31 is 15 keys on
                each side; in causal order the 15 before and the token's own.
            ]],
            show = cache("window(window=31)"),
            ask = {
                "How many keys does the last query find in the cache?",
                answer = function(s) return held(s[1]) end,
                within = 0,
            },
            hint = "Its own key counts, too.",
            explain = "Without a limit it would be 96, and with each word one more. Memory is why "
                .. "keys are evicted.",
        },
        {
            title = "The first four",
            text = [[
                As many keys, but the first four of the text never leave: StreamingLLM keeps them
                whatever they say. Its window=12 counts the 11 before and the token's own.
            ]],
            show = cache("streaming-llm(window=12,sinks=4)"),
            runs = { window = { "window(window=31)", input = "sample:induction.safetensors",
                layer = 1 }, full = { "full", input = "sample:induction.safetensors", layer = 1 } },
            now = function(s)
                return ("this head keeps %s, with the window %s"):format(
                    percent(s[1].kept(1)), percent(s.window.kept(1)))
            end,
            ask = {
                "Why are just the first worth places?",
                choices = {
                    { "they are a sink", "Rows that look for nothing put their weight there." },
                    { "a text begins with what matters", "Any word may stand there." },
                    { "they are the newest", "The newest are along the diagonal." },
                },
                answer = 1,
            },
            hint = "Lesson 2 has a column that is bright in nearly all rows.",
            explain = function(s)
                return ("Rows 6 to 47 put %s on the first two, %s on the next two. Without the "
                    .. "sink it goes to keys that do not deserve it, and the output changes.")
                    :format(percent(early(s.full, 0, 1)), percent(early(s.full, 2, 3)))
            end,
        },
        {
            title = "By use",
            text = [[
                H2O adds up the attention that each key in the cache has got. 8 places are for the
                new key and the 7 before it. The other 8 are for those with the largest sums, the
                heavy hitters.
            ]],
            show = cache("h2o(heavy=8,recent=7)"),
            runs = { stream = { "streaming-llm(window=12,sinks=4)",
                input = "sample:induction.safetensors", layer = 1 } },
            now = function(s)
                return ("this head keeps %s, with sinks and window %s"):format(
                    percent(s[1].kept(1)), percent(s.stream.kept(1)))
            end,
            ask = {
                "Some columns end in the middle. Does such a key come back?",
                choices = {
                    { "yes, when a query needs it", "It is not stored any more." },
                    { "never", "What has left is gone for all later queries." },
                    { "if its sum grows", "Nothing is added once it is gone." },
                },
                answer = 2,
            },
            hint = "Follow a column from its end downwards.",
            explain = "It finds the sink by itself, as rows use it.",
        },
        {
            title = "What was needed later",
            text = [[
                The colours are now the weight that exact attention would have put on keys that
                are gone. From token 48 on the words come again, and this head looks for what
                followed the first time.
            ]],
            show = { "h2o(heavy=8,recent=7):evicted", input = "sample:induction.safetensors",
                layer = 1, head = 1 },
            ask = {
                "From query 49 on, what share of a row's exact attention is on evicted keys?",
                answer = function(s) return 100 * missed(s[1]) end,
                within = 0.06,
                unit = "%",
            },
            hint = "One bright line, nearly 1 in most rows. The rest of a row is small.",
            explain = function(s)
                return ("%s. Nearly all of them left before a query had asked for them. "
                    .. "Eviction guesses the future from the past."):format(percent(missed(s[1])))
            end,
        },
        {
            title = "More room",
            text = "Does a larger cache help this head? Give the heavy hitters more places.",
            show = cache("h2o(heavy=8,recent=7)"),
            task = "press p and set heavy to 24",
            done = function(s) return s[1].params.heavy >= 24 end,
            solution = cache("h2o(heavy=24,recent=7)"),
            now = function(s)
                return ("from query 49 on, this head misses %s"):format(percent(missed(s[1])))
            end,
            ask = {
                "What would find those keys?",
                choices = {
                    { "keep all, and read few", "Top-k, Quest and others do." },
                    { "a longer window", "Only one of 48 and more keys." },
                    { "other sums", "They are sums of the past as well." },
                },
                answer = 1,
            },
            hint = "Twice the room, and this head still misses most.",
            explain = "Memory stays large then, but little of it is read. The lesson on top-k "
                .. "is about that.",
        },
    },
}
