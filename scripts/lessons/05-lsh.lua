-- LSH attention (Reformer): hash, sort, cut into chunks, look one chunk back.
local input = "synthetic:clusters(clusters=8,spread=0.3,match=6,seed=3)"

-- In causal order, as language models have it: all pictures and numbers of the lesson.
local function causal(word, options)
    local shown = { word, input = input, n = 64, d = 32, seed = 1, causal = true }
    for name, value in pairs(options or {}) do shown[name] = value end
    return shown
end

local one = "reformer(block=8,rounds=1,exclude_self=false)"

-- Reformer whose chunks also look so many chunks back and ahead.
local function around(before, after)
    return ("reformer(block=8,rounds=1,exclude_self=false,chunks_before=%d,chunks_after=%d)")
        :format(before, after)
end

-- FLOPs of a stage.
local function of(run, name)
    for _, stage in ipairs(run.stages) do
        if stage.name == name then return stage.flops end
    end
end

return {
    title = "LSH, and why the chunk before",
    summary = "Similar tokens get the same bucket; sorting puts a bucket side by side.",
    recap = [[
        LSH finds similar tokens without comparing all: hash, sort, cut into chunks. A query
        sees its chunk and the one before. One round misses pairs; more rounds find more of
        them, at the same price each.
    ]],
    minutes = 5,
    steps = {
        {
            title = "What we want to find",
            text = [[
                Full attention on 64 tokens of 8 groups, in causal order. The members of a group are
                scattered over the text, and look at each other. Most cells are nearly 0: only the
                bright ones are worth computing.
            ]],
            show = causal("full:weights"),
            ask = {
                "A window of near keys would find few of them. Why?",
                choices = {
                    { "the weights are too small",
                      "Members of a group have large weights: the bright cells." },
                    { "members of a group are far apart in the text",
                      "A window knows where a key is, not what it is." },
                    { "the matrix is not square", "It is: 64 queries, 64 keys." },
                },
                answer = 2,
            },
            hint = "Look at one row. Are its bright cells close to each other?",
            explain = "So the keys must be chosen by what the tokens are, not by their place.",
        },
        {
            title = "Hash: close vectors meet",
            text = [[
                Reformer uses one vector for query and key, so that a token has one bucket. It
                turns the vector at random. The nearest axis, with its direction, is the bucket,
                here a letter.

                Close vectors are likely to get the same bucket, and no token was compared with
                another.
            ]],
            show = causal(one, { at = "hash" }),
        },
        {
            title = "Sort, and cut into chunks",
            text = [[
                Sorted by bucket, then by position, tokens that should meet stand side by side.
                Chunks are cut every 8 tokens, even inside a bucket: look at the A's.
            ]],
            show = causal(one, { at = "chunk" }),
            runs = { alone = causal(around(0, 0)), before = causal(around(1, 0)),
                after = causal(around(1, 1)) },
            now = function(s)
                return ("mass kept:\nown chunk %s\n"
                    .. "+ the one before %s\n+ the one after %s"):format(percent(s.alone.mass),
                    percent(s.before.mass), percent(s.after.mass))
            end,
            ask = {
                "Why does the chunk after add nothing?",
                choices = {
                    { "no bucket goes on there", "The A's do: their chunks are cut apart." },
                    { "its A's come later in the text",
                      "What a query may see stands before it." },
                    { "it is empty", "All chunks have 8 tokens." },
                },
                answer = 2,
            },
            hint = "Within a bucket tokens stand by position.",
            explain = [[
                The tail of a cut bucket finds its head in the chunk before; the head must not see
                the tail. So a query sees its own chunk and the previous one. The A's fill two
                and a half chunks, so even this misses some.
            ]],
        },
        {
            title = "In the mechanism's own order",
            text = [[
                The pairs that Reformer computes, by position: they look like dust.
            ]],
            show = causal(one .. ":connectivity"),
            task = "press O to see the tokens in sorted order",
            done = function(s) return s[1].sorted end,
            solution = causal(one .. ":connectivity", { sorted = true }),
            now = function(s)
                local all = s[1].n * (s[1].n + 1) // 2
                return ("%d of %d causal pairs are computed, %s"):format(s[1].pairs, all,
                    percent(s[1].pairs / all))
            end,
            hint = "O is a capital letter: hold Shift.",
            explain = [[
                Triangles along the diagonal, some with a part to their left: earlier keys of the
                same bucket, in the own chunk and the one before.
            ]],
        },
        {
            title = "One hash is a gamble",
            text = [[
                Close vectors can still get different buckets. So Reformer hashes several times,
                and a pair that one round misses may meet in another. Each round costs as
                much as the first.
            ]],
            task = "press p and raise rounds: keep over 95 % of the mass in at most 8 rounds",
            done = function(s)
                return s[1].mass and s[1].mass > 0.95 and s[1].params.rounds <= 8
            end,
            solution = causal("reformer(block=8,rounds=8,exclude_self=false)"),
            show = causal(one),
            now = function(s)
                return ("rounds %d: %s kept, %s FLOP"):format(s[1].params.rounds,
                    percent(s[1].mass), count(s[1].flops))
            end,
            hint = "p opens the form on rounds. Right makes it larger, Enter closes the form.",
            explain = [[
                The first rounds help most. A round more keeps all pairs that the rounds before it
                found. It stays a gamble: another seed draws other rotations.
            ]],
        },
        {
            title = "What it costs",
            text = [[
                A round compares each token with two chunks, however long the text is. But the
                hash costs, too: n tokens, and n / block axes for each.
            ]],
            show = causal("reformer(block=8,rounds=4,exclude_self=false):connectivity"),
            runs = {
                short = { "reformer(block=16,rounds=4)", n = 256, d = 32, causal = true },
                long = { "reformer(block=16,rounds=4)", n = 512, d = 32, causal = true },
            },
            now = function(s)
                return ("256 tokens: hash %s, attend %s FLOP\n512 tokens: hash %s, attend %s FLOP")
                    :format(count(of(s.short, "hash")), count(of(s.short, "attend")),
                        count(of(s.long, "hash")), count(of(s.long, "attend")))
            end,
            ask = {
                "Which of them grows like n²?",
                choices = {
                    { "the hash", "Twice the tokens, and twice the axes." },
                    { "to attend", "Twice the text is about twice that work." },
                    { "neither of them", "Divide the lower numbers by the upper." },
                },
                answer = function(s)
                    local function times(stage) return of(s.long, stage) / of(s.short, stage) end
                    return times("hash") > 3 and 1 or times("attend") > 3 and 2 or 3
                end,
            },
            hint = "Like n² means: twice the text, four times the work.",
            explain = [[
                With a fixed number of buckets it would not, but then buckets get longer than
                chunks. The parameter n_buckets2 hashes in two small parts instead.
            ]],
        },
    },
}
