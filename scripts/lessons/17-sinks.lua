-- Why sinks matter: a head with nothing to do looks at the first token, and a window hides it.
local model, story = "sample:tales.gguf", "sample:english.txt"

local function head(word)
    return { word .. ":weights@1", input = model, text = story, layer = 3, max_tokens = 64 }
end

-- Mean weight of the pane's head on token 0, without row 0, which has no other key.
local function first(pane)
    local sum = 0
    for q = 1, pane.n - 1 do sum = sum + pane.value("weights", q, 0, pane.head) end
    return sum / (pane.n - 1)
end

-- 1/2 + 1/3 + ... + 1/n: what rows 1 and later of a uniform head give to token 0, together.
local function even(n)
    local sum = 0
    for q = 1, n - 1 do sum = sum + 1 / (q + 1) end
    return sum
end

local function swap(word)
    return { word, model = model, text = story }
end

local window, sink = "window(window=17)", "streaming-llm(sinks=1,window=9)"

return {
    title = "Why sinks matter",
    summary = "A head with nothing to do looks at the first token; a window takes that away.",
    recap = [[
        Softmax weights sum to 1, so a head without anything to find puts them somewhere: on the
        first token. Keep that token beside the window, and most of the loss is gone.
    ]],
    minutes = 5,
    steps = {
        {
            title = "A bright column",
            text = [[
                Layer 3, head 1 of a small language model that reads a story. The first token is
                <s>: it only marks the beginning and means nothing. Row 0 has no other key, so the
                means leave it out.
            ]],
            show = head("full"),
            now = function(s)
                return ("rows 1 to %d: mean weight on the first token %s"):format(s[1].n - 1,
                    percent(first(s[1])))
            end,
            ask = {
                "How much would a uniform head give to it in these rows, on average?",
                answer = function(s) return 100 * even(s[1].n) / (s[1].n - 1) end,
                within = 0.1,
                unit = "%",
            },
            hint = function(s)
                return ("Row q has q + 1 keys: 1/(q + 1) of a uniform head's weight is on each.\n"
                    .. "1/2 + 1/3 + ... + 1/%d is %.2f. Divide it by the number of rows."):format(
                    s[1].n, even(s[1].n))
            end,
            explain = "This head gives far more to it than a uniform head would.\n"
                .. "Over 256 tokens it gives less than half: attnscope heads and screen 6 then "
                .. "call it mixed, not sink.",
        },
        {
            title = "Why there?",
            text = [[
                Weights of a row sum to 1. A head cannot say "nothing here". On words repeated three
                times this head finds even less to do.
            ]],
            show = { "full:weights@1", input = model, text = "sample:repeated.txt", layer = 3,
                max_tokens = 64 },
            now = function(s)
                return ("mean weight on the first token: %s"):format(percent(first(s[1])))
            end,
            ask = {
                "Why is the first token a good place for it?",
                choices = {
                    { "every query may see it", "In causal order it is the only one." },
                    { "it is the most important word", "It means nothing, and comes always." },
                    { "it is the nearest", "For most queries it is the farthest." },
                },
                answer = 1,
            },
            hint = "In causal order, row i sees the keys 0 to i. Which key is in every row?",
            explain = [[
                Training of large models does the same: such a token is called an attention sink
                (Xiao et al. 2023).
            ]],
        },
        {
            title = "A window hides it",
            text = [[
                window=17 is 8 tokens on each side: in causal order the 8 before and the token
                itself. So queries 9 and later do not see the sink. Their weight must go elsewhere.
            ]],
            show = head(window),
            now = function(s) return ("mass kept by the window: %s"):format(percent(s[1].mass)) end,
            ask = {
                "Row 40 under the window: what is the sum of its weights?",
                answer = function(s)
                    local sum = 0
                    for _, weight in ipairs(s[1].row("weights", 40, s[1].head)) do
                        sum = sum + weight
                    end
                    return sum
                end,
                within = 0.01,
            },
            hint = "It is a softmax still.",
            explain = [[
                The weight that lay on the sink is now on near tokens, and their values are added
                in full. The output is wrong although nothing near has changed.
            ]],
        },
        {
            title = "Keep one column",
            text = [[
                StreamingLLM keeps the first tokens beside the window. Its window=9 counts the token
                and the 8 before: the same keys. It keeps no first token yet; the parameter is
                called sinks.
            ]],
            show = head("streaming-llm(sinks=0,window=9)"),
            task = "press p and set sinks to 1",
            done = function(s) return s[1].params.sinks >= 1 end,
            solution = head(sink),
            now = function(s)
                return ("sinks %d: mass kept %s, error %s"):format(s[1].params.sinks,
                    percent(s[1].mass), percent(s[1].error))
            end,
            hint = "Press p, then Right, then Enter.",
            explain = "One column more, of 64.",
        },
        {
            title = "What the model loses",
            text = [[
                Both under all heads of all layers: the token and the 8 before it, and the same
                with one sink.
            ]],
            runs = { window = swap(window), sink = swap(sink) },
            now = function(s)
                return ("loss, in nats a token: exact %.2f, window %.2f, with a sink %.2f"):format(
                    s.window.own, s.window.loss, s.sink.loss)
            end,
            ask = {
                "What share of the window's extra loss does one sink save?",
                answer = function(s)
                    return 100 * (s.window.loss - s.sink.loss) / (s.window.loss - s.window.own)
                end,
                within = 0.25,
                unit = "%",
            },
            hint = "(window - with a sink) / (window - exact), times 100.",
            explain = [[
                For one more key in each row. The cache still holds 10 tokens, however long the
                text: that is how such models write on without end.
            ]],
        },
    },
}
