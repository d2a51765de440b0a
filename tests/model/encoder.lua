-- Writes a small bert model with random weights as a folder: an encoder, which predicts no next
-- token.  Usage: attnscope lua encoder.lua FOLDER (it exists)
local folder = arg[1]
local layers, width, inner, words, places = 2, 16, 32, 64, 64
local header, data, at = {}, {}, 0

math.randomseed(1)
local function tensor(name, rows, cols, mean)
    local values = {}
    for i = 1, rows * (cols or 1) do
        values[i] = string.pack("<f", (mean or 0) + 0.2 * (math.random() - 0.5))
    end
    header[#header + 1] = ('"%s":{"dtype":"F32","shape":[%d%s],"data_offsets":[%d,%d]}'):format(
        name, rows, cols and "," .. cols or "", at, at + 4 * #values)
    data[#data + 1] = table.concat(values)
    at = at + 4 * #values
end

local function linear(name, outputs, inputs)
    tensor(name .. ".weight", outputs, inputs)
    tensor(name .. ".bias", outputs)
end

local function norm(name)
    tensor(name .. ".weight", width, nil, 1)
    tensor(name .. ".bias", width)
end

tensor("embeddings.word_embeddings.weight", words, width)
tensor("embeddings.position_embeddings.weight", places, width)
tensor("embeddings.token_type_embeddings.weight", 2, width)
norm("embeddings.LayerNorm")
for l = 0, layers - 1 do
    local at_layer = "encoder.layer." .. l .. "."
    for _, part in ipairs { "query", "key", "value" } do
        linear(at_layer .. "attention.self." .. part, width, width)
    end
    linear(at_layer .. "attention.output.dense", width, width)
    norm(at_layer .. "attention.output.LayerNorm")
    linear(at_layer .. "intermediate.dense", inner, width)
    linear(at_layer .. "output.dense", width, inner)
    norm(at_layer .. "output.LayerNorm")
end

local file = assert(io.open(folder .. "/config.json", "w"))
file:write(('{"model_type":"bert","vocab_size":%d,"hidden_size":%d,"num_hidden_layers":%d,' ..
    '"num_attention_heads":2,"intermediate_size":%d,"max_position_embeddings":%d,' ..
    '"type_vocab_size":2,"hidden_act":"gelu","layer_norm_eps":1e-12}'):format(
    words, width, layers, inner, places))
file:close()
local text = "{" .. table.concat(header, ",") .. "}"
text = text .. (" "):rep(-#text % 8)
file = assert(io.open(folder .. "/model.safetensors", "wb"))
file:write(string.pack("<I8", #text), text, table.concat(data))
file:close()
