-- Routing by clusters: k-means, equal sizes, and what balance costs.
local input = "synthetic:clusters(clusters=8,spread=0.3)"

local function in_none(run)
    local members, clusters = {}, select(1, run.size("membership"))
    for c = 0, clusters - 1 do
        for t, is in ipairs(run.row("membership", c)) do
            if is > 0 then members[t] = (members[t] or 0) + 1 end
        end
    end
    local none = 0
    for t = 1, run.n do if not members[t] then none = none + 1 end end
    return none
end

return {
    title = "Clustering, and balance",
    summary = "Similar tokens are gathered by k-means. "
        .. "Equal groups are fast, but leave tokens out.",
    recap = [[
        Clusters of one size are fast, but a token may be in none. Larger clusters lose less and
        cost more. Clustered attention groups queries instead: its members share one row.
    ]],
    minutes = 5,
    steps = {
        {
            title = "Learned centres",
            text = [[
                The Routing Transformer learns a few centres, about √n of them. A centre gathers
                the tokens that are most similar to it. They attend to each other.

                LSH cuts space at random; centres are placed where the tokens are. The letters are
                clusters.
            ]],
            show = { "routing(n_clusters=8)", at = "route", input = input, n = 64, d = 32,
                fit = true },
            ask = {
                "64 tokens, 8 clusters of 8: what share of all pairs is computed?",
                choices = {
                    { "1/8", "8 clusters with 8 × 8 pairs each: 512 of 4096." },
                    { "1/64", "8 clusters with 8 × 8 pairs each: count again." },
                    { "all of them", "Only pairs of one cluster are computed." },
                },
                answer = 1,
            },
            hint = "8 × 8 × 8 of 64 × 64.",
            explain = "With √n clusters of √n tokens that is n √n pairs.",
        },
        {
            title = "Sorted by cluster",
            text = [[
                The pairs that are computed, by position. Press O: with the tokens sorted by
                cluster they become squares.
            ]],
            show = { "routing(n_clusters=8):connectivity", input = input, n = 64, d = 32,
                fit = true },
            task = "press O",
            done = function(s) return s[1].sorted end,
            solution = { "routing(n_clusters=8):connectivity", input = input, n = 64, d = 32,
                fit = true, sorted = true },
            now = function(s)
                return ("%d pairs, mass kept %s"):format(s[1].pairs, percent(s[1].mass))
            end,
            hint = "O is a capital letter: hold Shift.",
            explain = "8 squares of 8 would be 512 pairs. There are fewer: two clusters with the "
                .. "same tokens share their pairs. A token can be in two clusters, or in none.",
        },
        {
            title = "Why equal sizes",
            text = [[
                Real clusters have many sizes, but a computer is fast with blocks of one size. So
                each centre takes the 8 tokens most similar to it, no more, no less.
            ]],
            ask = {
                "Which tokens suffer?",
                choices = {
                    { "those that two centres take",
                      "They are computed twice. That costs work, not attention." },
                    { "those that no centre takes", "They are in no square at all." },
                    { "the first ones", "Position plays no part here." },
                },
                answer = 2,
            },
            now = function(s) return ("in no cluster: %d of %d tokens"):format(in_none(s[1]),
                s[1].n) end,
            hint = "Think of the ninth token of a group of nine.",
            explain = [[
                The size is a compromise: too small leaves tokens out, too large does more work.
            ]],
        },
        {
            title = "Larger clusters",
            text = [[
                Let the clusters take more than their share, and see what is gained.
            ]],
            show = { "routing(n_clusters=8):connectivity", input = input, n = 64, d = 32,
                fit = true, sorted = true },
            task = "press p, raise cluster_window: over 85 % of the mass in a quarter of all pairs",
            done = function(s) return s[1].mass and s[1].mass > 0.85 and s[1].density <= 0.25 end,
            solution = { "routing(n_clusters=8,cluster_window=10)", input = input, n = 64, d = 32,
                fit = true },
            now = function(s)
                return ("mass kept %s with %s of the pairs, left out %d"):format(
                    percent(s[1].mass), percent(s[1].density), in_none(s[1]))
            end,
            hint = "p opens the form on cluster_window. 0 means n / clusters, that is 8. Type a "
                .. "number, then Enter.",
            explain = "Pairs grow with the square of a cluster's size. Better centres, that leave "
                .. "fewer tokens out, cost nothing more.",
        },
        {
            title = "Cluster the queries only",
            text = [[
                Clustered attention goes another way. Only queries are clustered. The mean query of
                a cluster looks at all keys, and its members share the answer.

                No key is left out: what is lost is the difference between the members.
            ]],
            show = { "clustered(n_clusters=8):weights", input = input, n = 64, d = 32,
                sorted = true },
            now = function(s)
                return ("output error %s, %s FLOP"):format(percent(s[1].error), count(s[1].flops))
            end,
            ask = {
                "Sorted by cluster, why are there horizontal bands?",
                choices = {
                    { "members of a cluster have the same row",
                      "One row is computed for all of them." },
                    { "keys of a cluster have the same column", "Keys are not clustered here." },
                    { "the picture is too small", "Zoom in with +: the rows stay alike." },
                },
                answer = 1,
            },
            hint = "How many rows are computed? There are 8 clusters.",
            explain = "8 rows instead of 64, each with all keys: n times C work, for C clusters.",
        },
    },
}
