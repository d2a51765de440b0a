-- What a window costs with depth: layers pass on what they saw, and not everything gets through.
local model, story, again = "sample:tales.gguf", "sample:english.txt", "sample:repeated.txt"

local function swap(word, layers, text)
    return { word, model = model, text = text or story, layers = layers }
end

local function cost(run) return run.loss - run.own end

-- A layer of the model under the mechanism: what the pane shows beside the losses.
local function pane(word, layer)
    return { word, input = model, text = story, layer = layer, max_tokens = 64 }
end

local function reach(layers)
    return { "window(window=9):reach", input = "synthetic:uniform", n = 64, d = 32, causal = true,
        layers = layers }
end

return {
    title = "What a window costs with depth",
    summary = "Layers of windows reach further and further, and still lose more and more.",
    recap = [[
        A window's reach grows with each layer, and its loss too. Layers differ: the cheap model
        keeps exact attention where it is needed and windows elsewhere.
    ]],
    minutes = 5,
    steps = {
        {
            title = "Reach grows with layers",
            text = [[
                window=9 is 4 tokens on each side: in causal order the 4 before and the token
                itself. The next layer reads tokens that have read others. The pane shows after how
                many layers a query has heard of a key.
            ]],
            show = reach(4),
            ask = {
                "How far back do 4 layers reach?",
                answer = function(s)
                    local row, least = s[1].row("reach", 63, 0), 63
                    for k = 63, 0, -1 do
                        if row[k + 1] > 0 and row[k + 1] <= 4 then least = k end
                    end
                    return 63 - least
                end,
                within = 0,
            },
            hint = "4 layers, 4 tokens each.",
            explain = "Nothing is out of reach if there are enough layers. So is all well?",
        },
        {
            title = "One layer at a time",
            text = [[
                A trained model of 4 layers reads a story. The same window, 4 tokens back, stands
                under one layer at a time; the others stay exact. The pane shows layer 0 under it.
            ]],
            show = pane("window(window=9):weights", 0),
            runs = { l0 = swap("window(window=9)", "0"), l1 = swap("window(window=9)", "1"),
                l2 = swap("window(window=9)", "2"), l3 = swap("window(window=9)", "3") },
            now = function(s)
                return ("nats a token: layer 0 %+.3f, 1 %+.3f, 2 %+.3f, 3 %+.3f"):format(
                    cost(s.l0), cost(s.l1), cost(s.l2), cost(s.l3))
            end,
            ask = {
                "How much is it if the four costs just add up?",
                answer = function(s)
                    return cost(s.l0) + cost(s.l1) + cost(s.l2) + cost(s.l3)
                end,
                within = 0.05,
            },
            hint = "Add the four numbers.",
            explain = "Next: all four at once.",
        },
        {
            title = "All layers at once",
            text = [[
                Now window=9 stands under all layers. Each layer works on what the one below could
                pass on. The pane shows layer 3.
            ]],
            show = pane("window(window=9):weights", 3),
            runs = { all = swap("window(window=9)"), l0 = swap("window(window=9)", "0"),
                l1 = swap("window(window=9)", "1"), l2 = swap("window(window=9)", "2"),
                l3 = swap("window(window=9)", "3") },
            now = function(s)
                return ("all layers: %+.3f nats\nsum of the single ones: %+.3f"):format(
                    cost(s.all), cost(s.l0) + cost(s.l1) + cost(s.l2) + cost(s.l3))
            end,
            ask = {
                "All at once costs",
                choices = {
                    { "less than the sum", "The windows lose some of the same things." },
                    { "more than the sum", "What one layer lost, another could have brought." },
                },
                answer = function(s)
                    local sum = cost(s.l0) + cost(s.l1) + cost(s.l2) + cost(s.l3)
                    return cost(s.all) < sum and 1 or 2
                end,
            },
            hint = "Compare the two numbers.",
            explain = [[
                The losses of single layers do not add up. A mixture must be run as a whole, as
                attnscope model --swap does.
            ]],
        },
        {
            title = "Reach is not enough",
            text = [[
                16 words repeated three times: to copy, a token must find what stands a round
                before.
                A round is 39 tokens. window=25 is 12 tokens back, so 4 layers reach 48, as the
                pane shows.
            ]],
            show = { "window(window=25):reach", input = model, text = again, layers = 4 },
            runs = { deep = swap("window(window=25)", nil, again),
                wide = swap("window(window=129)", nil, again) },
            now = function(s)
                return ("nats a token: exact %.2f, window=25 %.2f, window=129 %.2f"):format(
                    s.deep.own, s.deep.loss, s.wide.loss)
            end,
            ask = {
                "Can the layers pass the words on?",
                choices = {
                    { "yes, the loss stays small", "Compare the losses." },
                    { "no: what a token passes on is a mixture",
                      "One word cannot be read from it." },
                },
                answer = function(s) return cost(s.deep) < 0.5 and 1 or 2 end,
            },
            hint = "Is the loss with window=25 near the exact one?",
            explain = [[
                Reach says what could get through, not what does. This model was trained with
                exact attention; one trained with windows learns to pass on more.
            ]],
        },
        {
            title = "A mixture",
            text = [[
                Many large models mix: windows in most layers, exact attention in some. Here two
                of four layers keep it, and two have window=17, 8 tokens back. The pane shows one
                of the two.
            ]],
            show = pane("window(window=17):weights", 1),
            runs = { all = swap("window(window=17)"), upper = swap("window(window=17)", "2-3"),
                middle = swap("window(window=17)", "1-2"),
                lower = swap("window(window=17)", "0-1") },
            now = function(s)
                return ("windows in all layers %+.3f, in 0 and 1 %+.3f, in 1 and 2 %+.3f, "
                    .. "in 2 and 3 %+.3f"):format(cost(s.all), cost(s.lower), cost(s.middle),
                    cost(s.upper))
            end,
            ask = {
                "Which layers should have the windows?",
                choices = { "0 and 1", "1 and 2", "2 and 3" },
                answer = function(s)
                    local best = 1
                    local costs = { cost(s.lower), cost(s.middle), cost(s.upper) }
                    for i = 2, 3 do if costs[i] < costs[best] then best = i end end
                    return best
                end,
            },
            hint = "The smallest of the last three numbers.",
            explain = function(s)
                local costs = { cost(s.lower), cost(s.middle), cost(s.upper) }
                return ("Windows in two layers cost between %+.3f and %+.3f nats, depending on "
                    .. "which two. attnscope model --each shows what each layer of your model "
                    .. "loses, and the script advise_model.lua "
                    .. "finds such a mixture within a budget."):format(
                    math.min(table.unpack(costs)), math.max(table.unpack(costs)))
            end,
        },
    },
}
