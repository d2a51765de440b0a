-- Writes a small llama model with random weights as a GGUF file: the tests of the command line and
-- of the documents read it.  Usage: attnscope lua tiny.lua OUT.gguf [SEED]
local out, seed = arg[1], tonumber(arg[2] or 1)
local layers, width, heads, kv, inner, context = 3, 32, 4, 2, 64, 512
local head = width // heads
local keys, infos, data = {}, {}, {}
local at = 0

local function text(s) return string.pack("<s8", s) end
local function key(name, kind, value)
    keys[#keys + 1] = text(name) .. string.pack("<I4", kind) .. value
end
local function int(name, value) key(name, 4, string.pack("<I4", value)) end
local function real(name, value) key(name, 6, string.pack("<f", value)) end
local function word(name, value) key(name, 8, text(value)) end
local function words(name, list)
    local all = {}
    for i, s in ipairs(list) do all[i] = text(s) end
    key(name, 9, string.pack("<I4I8", 8, #list) .. table.concat(all))
end

math.randomseed(seed)
local function normal()
    return math.sqrt(-2 * math.log(1 - math.random())) * math.cos(2 * math.pi * math.random())
end

local function tensor(name, rows, cols, deviation, mean)
    local values = {}
    for i = 1, rows * cols do values[i] = string.pack("<f", (mean or 0) + deviation * normal()) end
    infos[#infos + 1] = text(name) ..
        (rows == 1 and string.pack("<I4I8I4I8", 1, cols, 0, at)
            or string.pack("<I4I8I8I4I8", 2, cols, rows, 0, at))
    local bytes = table.concat(values)
    data[#data + 1] = bytes .. ("\0"):rep(-#bytes % 32)
    at = at + #bytes + -#bytes % 32
end

-- GPT-2's letters for bytes, and a few merges.
local pieces, letter, free = {}, {}, 256
for byte = 0, 255 do
    local shown = (byte >= 33 and byte <= 126) or (byte >= 161 and byte <= 172) or byte >= 174
    letter[byte] = utf8.char(shown and byte or free)
    free = shown and free or free + 1
    pieces[#pieces + 1] = letter[byte]
end
local blank = letter[32]
local merges = { "t h", "th e", blank .. " the", "i n", blank .. " a", "e r", "o u", "a n" }
for _, merge in ipairs(merges) do pieces[#pieces + 1] = (merge:gsub(" ", "")) end

word("general.architecture", "llama")
int("llama.block_count", layers)
int("llama.embedding_length", width)
int("llama.feed_forward_length", inner)
int("llama.context_length", context)
int("llama.attention.head_count", heads)
int("llama.attention.head_count_kv", kv)
real("llama.attention.layer_norm_rms_epsilon", 1e-5)
word("tokenizer.ggml.model", "gpt2")
word("tokenizer.ggml.pre", "gpt-2")
words("tokenizer.ggml.tokens", pieces)
words("tokenizer.ggml.merges", merges)
tensor("token_embd.weight", #pieces, width, 1)
for l = 0, layers - 1 do
    local blk = "blk." .. l .. "."
    tensor(blk .. "attn_norm.weight", 1, width, 0.1, 1)
    tensor(blk .. "attn_q.weight", width, width, 0.3)
    tensor(blk .. "attn_k.weight", kv * head, width, 0.3)
    tensor(blk .. "attn_v.weight", kv * head, width, 0.3)
    tensor(blk .. "attn_output.weight", width, width, 0.3)
    tensor(blk .. "ffn_norm.weight", 1, width, 0.1, 1)
    tensor(blk .. "ffn_gate.weight", inner, width, 0.2)
    tensor(blk .. "ffn_up.weight", inner, width, 0.2)
    tensor(blk .. "ffn_down.weight", width, inner, 0.2)
end
tensor("output_norm.weight", 1, width, 0.1, 1)

local front = "GGUF" .. string.pack("<I4I8I8", 3, #infos, #keys) .. table.concat(keys) ..
    table.concat(infos)
local file = assert(io.open(out, "wb"))
file:write(front, ("\0"):rep(-#front % 32), table.concat(data))
file:close()
