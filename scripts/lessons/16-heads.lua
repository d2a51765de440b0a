-- What heads of a trained model do: previous token, induction, and what a head is worth.
local model, story, again = "sample:tales.gguf", "sample:english.txt", "sample:repeated.txt"

local function head(layer, number, text, mechanism)
    return { (mechanism or "full") .. ":weights@" .. number, input = model, text = text,
        layer = layer, max_tokens = 64 }
end

-- Mean weight, over queries 1 and later, on the key that `key` names for a query (nil: no such).
local function weight_on(pane, key)
    local sum, count = 0, 0
    for q = 1, pane.n - 1 do
        local k = key(q)
        if k and k >= 0 then
            sum, count = sum + pane.value("weights", q, k, pane.head), count + 1
        end
    end
    return sum / count
end

-- "+6.42", and "0.00" for what rounds to it.
local function nats(number)
    local text = ("%+.2f"):format(number)
    return tonumber(text) == 0 and "0.00" or text
end

local function itself(q) return q end
local function before(q) return q - 1 end

local function loss(layers, heads)
    return { "window(window=17)", model = model, text = again, layers = layers, heads = heads }
end

return {
    title = "What a head does",
    summary = "Heads of a small trained model: one looks back a step, one finds what came next.",
    recap = [[
        Heads learn habits. Some look at the token before, some at themselves. An induction head
        finds the token that followed the same word earlier, and a model that has one can copy.
    ]],
    minutes = 5,
    steps = {
        {
            title = "A model that has read novels",
            text = [[
                A language model of 4 layers with 4 heads each, trained on old novels, reads a
                story. This is layer 1, head 3. Press t to see the tokens.
            ]],
            show = head(1, 3, story),
            ask = {
                "What does this head look at most?",
                choices = {
                    { "each token at itself", "The bright cells are not on the diagonal." },
                    { "each token at the one before it", "They stand one cell left of it." },
                    { "all tokens at the first one", "That would be a bright column." },
                },
                answer = function(s)
                    return weight_on(s[1], before) > weight_on(s[1], itself) and 2 or 1
                end,
            },
            hint = "Put the cursor on a bright cell: the inspector names query and key.",
            explain = function(s)
                return ("On average %s of its weight is on the token before: a previous-token "
                    .. "head."):format(percent(weight_on(s[1], before)))
            end,
        },
        {
            title = "Find a head of another kind",
            text = [[
                Nobody set what a head does: training did. In layer 0 most heads look at many
                tokens at once. One of them looks at almost nothing but itself.
            ]],
            show = head(0, 0, story),
            task = "press ] until the head gives half its weight to the token itself",
            done = function(s) return weight_on(s[1], itself) > 0.5 end,
            solution = head(0, 2, story),
            now = function(s)
                return ("head %d: %s on the token itself"):format(s[1].head,
                    percent(weight_on(s[1], itself)))
            end,
            hint = "] is the next head, [ the one before. The diagonal must be bright.",
            explain = [[
                Layer 0 has seen no other token yet: this head passes on which token stands here,
                and nothing of the text around it. Press Tab, then A to see all layers and heads.
            ]],
        },
        {
            title = "Words that come again",
            text = [[
                Here 16 nonsense words are repeated three times. This is layer 3, head 0. In the
                second round it finds bright cells that it did not have in the first.
            ]],
            show = head(3, 0, again),
            ask = {
                "On which token are they?",
                choices = {
                    { "on the same word, where it stood first", "Read the key's label with care." },
                    { "on the word that followed the same word before",
                      "So the model knows what comes next." },
                    { "on the word just before", "They are far from the diagonal." },
                },
                answer = 2,
            },
            hint = "Put the cursor on a bright cell in the lower half and read query and key.",
            explain = [[
                An induction head (Olsson et al. 2022): attnscope heads --repeat tests it on random
                words. A head of a lower layer writes into each token which token came before it.
                This head looks at a token that came after the same token as its own.
            ]],
        },
        {
            title = "What copying is worth",
            text = [[
                window=17 is 8 tokens on each side: in causal order the 8 before and the token
                itself. A round is longer than that. So under every head it hides the round before.
            ]],
            runs = {
                narrow = loss(),
                wide = { "window(window=129)", model = model, text = again },
            },
            now = function(s)
                return ("loss, in nats a token: exact %.2f, window=129 %.2f, window=17 %.2f")
                    :format(s.narrow.own, s.wide.loss, s.narrow.loss)
            end,
            ask = {
                "How many nats a token does the narrow window cost?",
                answer = function(s) return s.narrow.loss - s.narrow.own end,
                within = 0.1,
            },
            hint = "Subtract the exact loss from the loss with window=17.",
            explain = [[
                With the wide window the model copies; with the narrow one it guesses nonsense
                words.
            ]],
        },
        {
            title = "One head alone",
            text = "Now only one head of layer 3 gets window=17. All others stay exact.",
            runs = { induction = loss("3", "0"), other = loss("3", "2") },
            now = function(s)
                return ("narrow in head 0: %s nats\nnarrow in head 2: %s nats"):format(
                    nats(s.induction.loss - s.induction.own), nats(s.other.loss - s.other.own))
            end,
            ask = {
                "Which head should keep a long reach?",
                choices = {
                    { "head 0, the induction head", "What it needs is far away." },
                    { "head 2", "It looks near: a window hides little from it." },
                },
                answer = function(s)
                    return s.induction.loss > s.other.loss and 1 or 2
                end,
            },
            hint = "A larger loss is worse.",
            explain = [[
                A mechanism is chosen for a head, not for a model. Screen 6 swaps one under any
                layer and head; attnscope heads labels them all.
            ]],
        },
    },
}
