-- Segments with a memory (Transformer-XL), and a memory that is compressed.
local input = "synthetic:clusters(clusters=8)"

-- Number of tokens that the last query sees, in any slot.
local function seen(run)
    local count = 0
    for _, cell in ipairs(run.row("connectivity", run.n - 1)) do count = count + cell end
    return count
end

return {
    title = "Recurrence and compression",
    summary = "A long text in segments, with a memory of the ones before, plain or squeezed.",
    recap = [[
        A memory carries segments on, and each layer reaches further back. A compressed memory
        sees more tokens, but through their mean, and seeing a mean is not the same as seeing each
        token.
    ]],
    minutes = 5,
    steps = {
        {
            title = "Segments",
            text = [[
                A long text is read in segments of 8 tokens, one after the other. A token looks
                back as far as its segment begins.

                Without a memory, the first token of a segment knows nothing of what came before.
            ]],
            show = { "transformer-xl(segment=8,mem_len=0):components", input = input, n = 64,
                d = 32, causal = true },
            ask = {
                "How many keys does token 40, the first of its segment, see?",
                answer = function(s)
                    local count = 0
                    for _, cell in ipairs(s[1].row("connectivity", 40)) do count = count + cell end
                    return count
                end,
                within = 0,
            },
            hint = "Nothing before its segment, and nothing later than itself.",
            explain = "It sees itself only. Cutting a text has a price at each cut.",
        },
        {
            title = "A memory of what was",
            text = [[
                Transformer-XL keeps what it computed for the last tokens: the memory. The next
                segment may look at it. It is not computed again, and no gradient goes into it.
            ]],
            show = { "transformer-xl(segment=8,mem_len=8):components", input = input, n = 64,
                d = 32, causal = true },
            runs = { without = { "transformer-xl(segment=8,mem_len=0)", input = input, n = 64,
                d = 32, causal = true } },
            now = function(s)
                return ("mass kept %s, without memory %s"):format(percent(s[1].mass),
                    percent(s.without.mass))
            end,
            ask = {
                "The picture is a staircase. What are the parts left of each step?",
                choices = {
                    { "the memory", "8 tokens from before the segment." },
                    { "the future", "Keys to the left are earlier ones." },
                    { "a global token", "Then it would be one column." },
                },
                answer = 1,
            },
            hint = "The legend below the picture names the colours.",
            explain = "A query sees 8 tokens of memory, and its segment as far as itself.",
        },
        {
            title = "Layers look further back",
            text = [[
                What lies in the memory has itself looked back, one layer below. So with each
                layer one sees about one memory further.
            ]],
            show = { "transformer-xl(segment=8,mem_len=8):reach", input = input, n = 64, d = 32,
                causal = true },
            ask = {
                "How many layers until the last token is reached from the first?",
                answer = function(s) return s[1].value("reach", 63, 0) end,
                within = 0,
            },
            hint = [[
                Look into the lower left corner: Tab, then G and Home, and read the line at the
                bottom. Tab comes back.
            ]],
            explain = "Reach grows with depth times memory, while each query still sees only a few "
                .. "keys.",
        },
        {
            title = "Squeeze what is old",
            text = [[
                What falls out of the memory is lost. The Compressive Transformer squeezes it first:
                4 tokens become 1 slot, here their mean. The slots are a second, coarse memory.
            ]],
            show = { "compressive(segment=8,mem_len=8,cmem_len=4,ratio=4):components",
                input = input, n = 64, d = 32, causal = true },
            runs = { plain = { "transformer-xl(segment=8,mem_len=8)", input = input, n = 64, d = 32,
                causal = true } },
            now = function(s)
                return ("seen: %s of the mass, before %s\noutput error: %s, before %s"):format(
                    percent(s[1].mass), percent(s.plain.mass), percent(s[1].error),
                    percent(s.plain.error))
            end,
            ask = {
                "4 slots of 4 tokens: how many more tokens does the last query see?",
                answer = function(s) return seen(s[1]) - seen(s.plain) end,
                within = 0,
            },
            hint = "Slots times tokens of a slot.",
            explain = function(s)
                return ("More is seen, but through means: the mass rose from %s to %s, the "
                    .. "error only went from %s to %s. Seeing a mean is not the same as seeing "
                    .. "each token.")
                    :format(percent(s.plain.mass), percent(s[1].mass), percent(s.plain.error),
                        percent(s[1].error))
            end,
        },
        {
            title = "What a slot holds",
            text = [[
                The same run, as weights. A slot is one key, so the 4 tokens in it always get the
                same weight.
            ]],
            show = { "compressive(segment=8,mem_len=8,cmem_len=4,ratio=4):weights", input = input,
                n = 64, d = 32, causal = true },
            task = "press p and set ratio to 1: nothing is squeezed",
            done = function(s)
                return s[1].mechanism == "compressive" and s[1].params.ratio == 1
            end,
            solution = { "compressive(segment=8,mem_len=8,cmem_len=4,ratio=1)", input = input,
                n = 64, d = 32, causal = true },
            now = function(s)
                return ("ratio %d: mass seen %s, error %s"):format(s[1].params.ratio,
                    percent(s[1].mass), percent(s[1].error))
            end,
            hint = "p opens the form on ratio. Type 1, then press Enter.",
            explain = "With ratio 1 it is a longer plain memory: less is seen, but sharply. The "
                .. "columns of equal weight, 4 wide, are gone.",
        },
    },
}
