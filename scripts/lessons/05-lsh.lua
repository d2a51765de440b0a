-- LSH attention (Reformer): hash, sort, cut into chunks, look one chunk back.
local input = "synthetic:clusters(clusters=8,spread=0.3,match=6,seed=3)"

return {
    title = "LSH, and why the chunk before",
    summary = "Similar tokens get the same bucket; sorting puts a bucket side by side.",
    minutes = 6,
    steps = {
        {
            title = "What we want to find",
            text = [[
                Full attention on 64 tokens that belong to 8 groups. The members of a group are
                scattered over the text, and look at each other.

                Most of the matrix is nearly 0. It would be nice to compute only the bright cells.
                But which are they?
            ]],
            show = { "full:weights", input = input, n = 64, d = 32 },
            ask = {
                "A window of near keys would find few of them. Why?",
                choices = {
                    { "the weights are too small", "The bright cells are far from 0." },
                    { "members of a group are far apart in the text",
                      "A window knows where a key is, not what it is." },
                    { "the matrix is not square", "It is: 64 queries, 64 keys." },
                },
                answer = 2,
            },
            hint = "Look at one row. Are its bright cells close to each other?",
            explain = "So the set of keys must depend on what the tokens are: content, not place.",
        },
        {
            title = "Hash: close vectors meet",
            text = [[
                Reformer uses one vector for query and key. It turns the vector by a random
                rotation, and takes the axis that it is nearest to. That axis is its bucket.

                Vectors with a small angle between them get the same bucket with high probability.
                The letters are buckets. Nothing was compared with anything else.
            ]],
            show = { "reformer(block=8,rounds=1,exclude_self=false)", at = "hash", input = input, n = 64, d = 32,
                seed = 1 },
            ask = {
                "Why must query and key be the same vector here?",
                choices = {
                    { "so that i looks at j's bucket when j looks at i's",
                      "One vector, one hash: similar tokens share a bucket." },
                    { "to save parameters", "It does save some, but it is not the reason." },
                    { "because of the causal mask", "There is none here." },
                },
                answer = 1,
            },
            hint = "With two vectors a token would have two buckets: one as query, one as key.",
            explain = "With different vectors for q and k, a bucket could hold many queries and no "
                .. "key at all.",
        },
        {
            title = "Sort by bucket",
            text = [[
                Now the tokens are sorted by bucket, and within a bucket by position.
                Every bucket is one run of letters. Tokens that should see each other stand
                side by side.
            ]],
            show = { "reformer(block=8,rounds=1,exclude_self=false)", at = "sort", input = input, n = 64, d = 32,
                seed = 1 },
            ask = {
                "Sorting n tokens costs how much?",
                choices = {
                    { "n² steps", "That would be no gain at all." },
                    { "n log n steps", "This is where Reformer's n log n comes from." },
                    { "nothing", "Comparing and moving is work, though cheap." },
                },
                answer = 2,
            },
            hint = "Any good sorting algorithm will do.",
            explain = "Compared with n² that is almost nothing.",
        },
        {
            title = "Chunks of equal size",
            text = [[
                Buckets have different sizes, which is bad for a computer. So the sorted row is
                cut into chunks of 8, whatever the buckets are.

                The cut can fall in the middle of a bucket.
            ]],
            show = { "reformer(block=8,rounds=1,exclude_self=false)", at = "chunk", input = input, n = 64, d = 32,
                seed = 1 },
            runs = {
                alone = { "reformer(block=8,rounds=1,exclude_self=false,chunks_before=0)", input = input, n = 64,
                    d = 32, seed = 1 },
                before = { "reformer(block=8,rounds=1,exclude_self=false)", input = input, n = 64, d = 32, seed = 1 },
            },
            now = function(s)
                return ("own chunk only: %s of the mass kept\nand the one before: %s"):format(
                    percent(s.alone.mass), percent(s.before.mass))
            end,
            ask = {
                "How many percentage points of mass does the chunk before add?",
                answer = function(s) return 100 * (s.before.mass - s.alone.mass) end,
                within = 0.05,
                unit = "%",
            },
            hint = "Subtract the first number from the second.",
            explain = "The tail of a bucket that was cut finds its head in the chunk before. "
                .. "That is why a query sees its own chunk and the previous one.",
        },
        {
            title = "In the mechanism's own order",
            text = [[
                These are the pairs that Reformer computes, by position. It looks like dust.
                Press O: the same cells, with the tokens sorted by bucket.
            ]],
            show = { "reformer(block=8,rounds=1,exclude_self=false):connectivity", input = input, n = 64, d = 32,
                seed = 1 },
            task = "press O to see the tokens in sorted order",
            done = function(s) return s[1].sorted end,
            solution = { "reformer(block=8,rounds=1,exclude_self=false):connectivity", input = input, n = 64, d = 32,
                seed = 1, sorted = true },
            now = function(s)
                return ("%d of %d pairs are computed, %s"):format(s[1].pairs, s[1].n * s[1].m,
                    percent(s[1].density))
            end,
            hint = "O is a capital letter: hold Shift.",
            explain = "Blocks along the diagonal, each with a part below it: own chunk and the "
                .. "chunk before, and of these only keys of the same bucket.",
        },
        {
            title = "One hash is a gamble",
            text = [[
                Close vectors can still fall on different sides of a cut. So Reformer hashes
                several times. A pair that one round misses may meet in another.

                Each round costs as much as the first.
            ]],
            task = "press p and raise rounds until more than 80 % of the mass is kept",
            done = function(s) return s[1].mass and s[1].mass > 0.8 end,
            solution = { "reformer(block=8,rounds=8,exclude_self=false)", input = input, n = 64, d = 32, seed = 1 },
            show = { "reformer(block=8,rounds=1,exclude_self=false)", input = input, n = 64, d = 32, seed = 1 },
            now = function(s)
                return ("rounds %d: %s kept, %s FLOP"):format(s[1].params.rounds,
                    percent(s[1].mass), count(s[1].flops))
            end,
            hint = "p opens the form with rounds on top. Right makes it larger.",
            explain = "Every round finds pairs that the others missed. The first rounds help most.",
        },
        {
            title = "What it costs",
            text = [[
                A round compares each token with its chunk and the one before: 2 times the block.
                For fixed block and rounds the work grows like n; the sorting adds n log n.
            ]],
            show = { "reformer(block=8,rounds=4,exclude_self=false):connectivity", input = input, n = 64, d = 32,
                seed = 1 },
            runs = {
                short = { "reformer(block=16,rounds=4)", n = 256, d = 32 },
                long = { "reformer(block=16,rounds=4)", n = 512, d = 32 },
            },
            now = function(s)
                return ("256 tokens: %s FLOP\n512 tokens: %s FLOP"):format(count(s.short.flops),
                    count(s.long.flops))
            end,
            ask = {
                "Twice the text is how many times the work?",
                answer = function(s) return s.long.flops / s.short.flops end,
                within = 0.05,
            },
            hint = "Divide the second number by the first.",
            explain = "Not 2, but not 4 either: there are more buckets to hash into as well. "
                .. "Full attention would need 4 times the work.",
        },
    },
}
