-- Positions: attention alone knows no order; what ALiBi, rotary and T5's buckets add to it.
local story = "sample:english.tokens.txt"
local same = "synthetic:copy(period=1)"

-- Head h of ALiBi subtracts its slope times the distance.
local alibi = { input = story, n = 28, heads = 8, causal = true, position = "alibi" }

local function with(word, options, cursor)
    local show = { word, cursor = cursor }
    for name, value in pairs(options) do show[name] = value end
    return show
end

-- What the last "the" gives to the five before it, in the pane's head.
local function earlier(pane)
    return 1 - pane.value("weights", 25, 25, pane.head)
end

return {
    title = "Positions, and who is near",
    summary = "Attention compares words and knows no order. Three ways to tell it who is near.",
    recap = [[
        Attention compares words and knows no order. ALiBi subtracts a slope times the distance,
        RoPE turns queries and keys by their place, T5 adds one learned number for each range of
        distances.
    ]],
    minutes = 5,
    steps = {
        {
            title = "No order",
            text = [[
                Attention compares words, not places. These are the first 28 words of a story:
                press t to see them. Query 3 is "the".
            ]],
            show = { "full:weights", input = story, n = 28, cursor = { 3, 3 } },
            ask = {
                "How many keys share the largest weight of row 3?",
                answer = function(s)
                    local row = s[1].row("weights", 3)
                    local most, count = math.max(table.unpack(row)), 0
                    for _, weight in ipairs(row) do
                        if weight > most - 1e-6 then count = count + 1 end
                    end
                    return count
                end,
                within = 0,
            },
            hint = "Count the bright cells of row 3: they are the words \"the\".",
            explain = [[
                Each "the", near or far, and their rows are all alike. If the words were
                shuffled, each would still get the same output.
            ]],
        },
        {
            title = "ALiBi: far costs",
            text = [[
                ALiBi subtracts from each score a slope times the distance. The pane shows
                what it adds: 0 on the diagonal, less the further back a key is.
            ]],
            show = with("full:position_bias", alibi),
            ask = {
                "Head 0: what is subtracted for a key 6 words back?",
                answer = function(s) return -s[1].value("position_bias", 20, 14, 0) end,
                within = 0,
            },
            hint = "Tab, then go 6 keys to the left of the diagonal and read the value below.",
            explain = [[
                Its slope is 1/2. A score that is 3 less makes the weight e^3, about 20 times,
                smaller.
            ]],
        },
        {
            title = "Each head its own slope",
            text = [[
                With 8 heads the slopes are 1/2, 1/4, 1/8 and so on: some heads look near,
                others far. Nothing of this is learned.
            ]],
            show = with("full:weights", alibi, { 25, 25 }),
            task = "press ] until row 25, the last \"the\", gives half its weight to earlier keys",
            done = function(s) return earlier(s[1]) >= 0.5 end,
            solution = with("full:weights@3", alibi),
            now = function(s)
                return ("head %d: row 25 gives %s to earlier keys"):format(s[1].head,
                    percent(earlier(s[1])))
            end,
            hint = "] is the next head, [ the one before.",
            explain = [[
                The paper trains on short texts and reads longer ones: a larger distance only
                costs more, and needs no number of its own.
            ]],
        },
        {
            title = "Rotary: turned by place",
            text = [[
                RoPE (rotary) turns queries and keys by an angle that grows with their place.
                Here all 28 words are the same word, so only places count.
            ]],
            show = { "full:weights", input = same, n = 28, position = "rope" },
            now = function(s)
                return ("turning takes %.3f from the score of query 5 and key 3, and %.3f from "
                    .. "that of 20 and 18"):format(-s[1].value("position_bias", 5, 3),
                    -s[1].value("position_bias", 20, 18))
            end,
            ask = {
                "What does a score depend on, besides the words?",
                choices = {
                    { "where the key stands", "Then whole columns would be bright or dark." },
                    { "how far apart the two are",
                      "Turning both by the same angle changes nothing." },
                    { "where the query stands", "5 and 20 stand apart: compare the numbers." },
                },
                answer = 2,
            },
            hint = "The picture is made of diagonals. What is the same all along one?",
            explain = [[
                Only the difference of the angles is left in the product: relative, though each
                vector is turned by its own place. Between equal words it fades over the first
                distances, then it wavers.
            ]],
        },
        {
            title = "T5: one number a bucket",
            text = [[
                T5 learns one number for each bucket of distances and adds it to the score.
                Near distances have buckets of their own, far ones share.
            ]],
            show = { "full:position_buckets", input = same, n = 28, position = "t5",
                causal = true },
            ask = {
                "From query 27 back: what is the smallest distance that shares its bucket?",
                answer = function(s)
                    local distance = 0
                    repeat distance = distance + 1
                    until s[1].value("position_buckets", 27, 27 - distance) ==
                        s[1].value("position_buckets", 27, 26 - distance)
                    return distance
                end,
                within = 0,
            },
            hint = "Tab, G goes to the last row, End to its end; go left until the value stays.",
            explain = [[
                Half of the 32 buckets are for single distances, half for ever longer ranges;
                from 113 on all is one bucket. So it, too, can read texts of any length.
            ]],
        },
    },
}
