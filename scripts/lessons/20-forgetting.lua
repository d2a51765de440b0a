-- A state instead of a cache: it adds, it fades, it corrects.
local input = "synthetic:clusters(clusters=4)"

local function shown(word)
    return { word, input = input, n = 28, d = 16, causal = true }
end

-- Mean span of the rows: tokens that hold nine tenths of a row.
local function span(run) return run.figures.mean_span end

return {
    title = "A state that forgets",
    summary = "A state has one size for any text. So what is old must fade, or be replaced.",
    recap = [[
        A sum keeps every write and mixes them all. A decay or a gate makes old writes fade. The
        delta rule replaces what a key returned before. In each the state stays as small as it
        was.
    ]],
    minutes = 5,
    steps = {
        {
            title = "A sum",
            text = [[
                Here is no cache. A state S of d × d numbers adds k v for each token, and a query
                reads q S. The picture is the matrix that this amounts to: how much of each
                token's value a query gets. It is never computed.
            ]],
            show = shown("retnet(decay=none):weights"),
            ask = {
                "d is 16. How many numbers does the state hold after 28 tokens?",
                answer = function(s) return s[1].d * s[1].d end,
                within = 0,
            },
            hint = "The text's length is not in it.",
            explain = function(s)
                return ("As many as the keys and values of %d tokens. After a million tokens it "
                    .. "is the same."):format(s[1].figures.kv_equal_tokens)
            end,
        },
        {
            title = "Old writes fade",
            text = [[
                Before each write RetNet multiplies the state by a fixed number below 1, for this
                head 31/32.

                A row's span: its newest tokens that hold 90 % of the weight.
            ]],
            show = shown("retnet:weights"),
            runs = { sum = shown("retnet(decay=none)") },
            now = function(s)
                return ("a row's span: %.1f tokens, in the sum %.1f"):format(span(s[1]),
                    span(s.sum))
            end,
            ask = {
                "How much of its weight in the sum has token 0 left for query 27?",
                answer = function(s)
                    return 100 * s[1].value("weights", 27, 0) / s.sum.value("weights", 27, 0)
                end,
                within = 0.03,
                unit = "%",
            },
            hint = "31/32, once for each of 27 steps: (31/32)^27.",
            explain = "Each head has another number, so some remember longer. To forget costs "
                .. "one product for each number of the state.",
        },
        {
            title = "The text decides",
            text = [[
                Gated linear attention computes the factors from the token: one for each channel
                of the key. A root makes them milder: gate_norm.
            ]],
            show = shown("gla:weights"),
            task = "press p and lower gate_norm until a row's span is below 6 tokens",
            done = function(s) return span(s[1]) < 6 end,
            solution = shown("gla(gate_norm=2):weights"),
            now = function(s) return ("a row's span: %.1f tokens"):format(span(s[1])) end,
            ask = {
                "What does a small factor do that a trained gate may want?",
                choices = {
                    { "it clears the state", "At the end of a sentence, say." },
                    { "it writes more strongly", "What is written now is not multiplied." },
                    { "it saves memory", "The state has one size." },
                },
                answer = 1,
            },
            hint = "It multiplies what is old.",
            explain = "A fixed decay forgets at one pace. A gate can keep a name for long and drop "
                .. "the rest.",
        },
        {
            title = "Replace, not add",
            text = [[
                This text repeats four keys. The delta rule first reads what the state returns for
                a key. It writes only the difference to the new value.
            ]],
            show = shown("deltanet:weights"),
            runs = { sum = shown("retnet(decay=none)") },
            now = function(s)
                return ("a row's span: %.1f tokens, in the sum %.1f"):format(span(s[1]),
                    span(s.sum))
            end,
            ask = {
                "Where does a column of the picture fade?",
                choices = {
                    { "where its key is written again", "The new value takes its place." },
                    { "after a fixed number of steps", "That is RetNet." },
                    { "it does not", "Compare its upper and its lower end." },
                },
                answer = 1,
            },
            hint = "Tokens of a cluster have nearly the same key.",
            explain = "What is not written again stays. So it forgets by content, not by age.",
        },
        {
            title = "How well it remembers",
            text = [[
                The test: give the last state each written key, and compare what it returns with
                the value. 1 is a perfect memory.
            ]],
            show = shown("deltanet:recall"),
            runs = { sum = shown("retnet(decay=none)"), gates = shown("gla(gate_norm=2)") },
            now = function(s)
                return ("mean recall: delta rule %.2f, sum %.2f, gates %.2f"):format(
                    s[1].figures.mean_recall, s.sum.figures.mean_recall,
                    s.gates.figures.mean_recall)
            end,
            ask = {
                "Why can none remember 1000 different keys with d = 16?",
                choices = {
                    { "a state has room for 16", "16 directions; more keys overlap." },
                    { "they forget too fast", "The sum forgets nothing." },
                    { "the text is too long", "Length alone is no problem." },
                },
                answer = 1,
            },
            hint = "How many directions are there in 16 dimensions?",
            explain = "A cache grows and finds any token. A state is small, so models mix both: "
                .. "a few layers of full attention among many states.",
        },
    },
}
