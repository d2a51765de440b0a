-- Sinkhorn sorting: a soft permutation of blocks, made by balancing rows and columns.
local input = "synthetic:blocks(shuffle=1)"

local function sorted(word) return { word, input = input, n = 64, d = 32 } end

local function document(rounds)
    return { "sinkhorn(block=8,sort_net=means,temperature=2,sinkhorn_iters=" .. rounds
        .. "):permutation", input = "synthetic:document", n = 64, d = 32 }
end

-- Sums of the rows and of the columns of the 8 x 8 permutation.
local function sums(run)
    local rows, columns = {}, { 0, 0, 0, 0, 0, 0, 0, 0 }
    for q = 1, 8 do
        rows[q] = 0
        for k, share in ipairs(run.row("permutation", q - 1)) do
            rows[q], columns[k] = rows[q] + share, columns[k] + share
        end
    end
    return rows, columns
end

-- Pairs of the blocks that are sorted to each other; the soft map itself mixes all keys.
local function pairs_of_blocks(run)
    local count = 0
    for q = 0, run.n - 1 do
        for _, cell in ipairs(run.row("connectivity_hard", q)) do count = count + cell end
    end
    return count
end

return {
    title = "Sinkhorn sorting",
    summary = "Blocks of keys are sorted next to the blocks that want them, by a soft permutation.",
    recap = [[
        Sinkhorn scores pairs of blocks and balances rows and columns. Balancing equalises; a
        low temperature sharpens. A query then sees its own block and the one that was sorted to
        it.
    ]],
    minutes = 5,
    steps = {
        {
            title = "The block one wants is elsewhere",
            text = [[
                Exact attention on 64 tokens in 8 blocks of 8. Every block attends to one block,
                somewhere in the text. Local attention would see almost nothing of it.
            ]],
            show = { "full:weights", input = input, n = 64, d = 32 },
            ask = {
                "Bright squares: how many in each row of blocks?",
                choices = { { "one", "One block of keys for each block of queries." },
                    { "two", "Count again, from left to right." },
                    { "eight", "That would be full attention between all blocks." } },
                answer = 1,
            },
            hint = "Go along one row of blocks.",
            explain = "If we could move each block of keys beside the block that wants it, local "
                .. "attention would be enough. That is sorting.",
        },
        {
            title = "Scores between blocks",
            text = [[
                A small network scores every pair of blocks: 8 × 8 numbers instead of 64 × 64.
                Here we use the mean query and the mean key of each block in its place.
            ]],
            show = sorted("sinkhorn(block=8,sort_net=means):sort_logits"),
            ask = {
                "n tokens in blocks of b: how many pairs of blocks are there?",
                choices = {
                    { "n²", "That many pairs of tokens." },
                    { "(n / b)²", "Blocks, squared." },
                    { "n b", "That is the cost of local attention." },
                },
                answer = 2,
            },
            hint = "There are n / b blocks.",
            explain = "With 64 tokens to a block, 4096 tokens have 64 blocks: 4096 pairs.",
        },
        {
            title = "Balancing",
            text = [[
                A permutation has one 1 in each row and in each column, else 0. We get near it
                step by step: make all numbers positive, divide each row by its sum, then each
                column, and again.

                This is Sinkhorn's method. Each step can be differentiated, so the network can
                learn through it.
            ]],
            show = sorted("sinkhorn(block=8,sort_net=means):permutation"),
            ask = {
                "After dividing the columns, do the rows still add up to 1?",
                choices = { { "yes", "Dividing columns changes the rows again." },
                    { "not quite, so it is repeated", "Each round brings both nearer to 1." },
                    { "they need not", "In a permutation they do." } },
                answer = 2,
            },
            hint = "Dividing a column changes one number in each row.",
            explain = [[
                After some rounds both hold, nearly; here there are 8. How near it comes to a
                permutation depends on how different the scores are.
            ]],
        },
        {
            title = "One round at a time",
            text = [[
                Another text, and no round yet: each row adds up to 1, the columns do not. Several
                blocks want the same source. Balance them, one round after the other.
            ]],
            show = document(0),
            task = "press p and raise sinkhorn_iters to 4, a round at a time; watch the sums",
            done = function(s) return s[1].params.sinkhorn_iters >= 4 end,
            solution = document(4),
            now = function(s)
                local rows, columns = sums(s[1])
                return ("sums of rows %.3f to %.3f, of columns %.3f to %.3f")
                    :format(math.min(table.unpack(rows)), math.max(table.unpack(rows)),
                        math.min(table.unpack(columns)), math.max(table.unpack(columns)))
            end,
            hint = "p opens the form on sinkhorn_iters. Each press of Right is one round more.",
            explain = "A column above 1 is a block that many want. Dividing the columns puts rows "
                .. "off, each round by less. Balancing equalises; it does not sharpen: few bright "
                .. "cells come from a low temperature.",
        },
        {
            title = "What is computed then",
            text = [[
                Each block of queries sees its own block and the one that was sorted to it: at most
                16 keys instead of 64. A block that was sorted to itself sees only its own 8.

                The map is soft: a sorted block is a mix, mostly of one block. Tab, then O shows
                the keys in their new order; O again, as in the text.
            ]],
            show = sorted("sinkhorn(block=8,sort_net=means):connectivity_hard"),
            now = function(s)
                local seen = pairs_of_blocks(s[1])
                return ("%d pairs, %.3g keys a query; the output is %s off"):format(seen,
                    seen / s[1].n, percent(s[1].error))
            end,
            ask = {
                "With 4096 tokens in blocks of 64: how many keys does a query see at most?",
                answer = function(s) return 2 * 64 end,
                within = 0,
            },
            hint = "Two blocks.",
            explain = [[
                Here the error is tiny, because each block wants just one other. A text whose
                blocks want several others is harder.
            ]],
        },
    },
}
