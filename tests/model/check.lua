-- See tests/model/check.  Every number that the command line gives is one value.
local attn = require "attnscope"
local binary, models, folder, work = table.unpack(arg)
local passed, failed, printed = 0, 0, 0
local where = ""

local function judge(ok, what, got, want)
    if ok then passed = passed + 1 return end
    failed = failed + 1
    if printed < 40 then
        printed = printed + 1
        print(("FAIL %s %s: %s, wanted %s"):format(where, what, tostring(got), tostring(want)))
    end
end
local function close(got, want, tolerance, what)
    judge(type(got) == "number" and math.abs(got - want) <= tolerance, what, got, want)
end
local function same(got, want, what) judge(got == want, what, got, want) end

local function slurp(path)
    local file = io.open(path, "rb")
    if not file then return nil end
    local all = file:read("a")
    file:close()
    return all
end
local function quote(word) return "'" .. word:gsub("'", "'\\''") .. "'" end
local function ask(...)
    local words = {}
    for i, word in ipairs { binary, ... } do words[i] = quote(word) end
    local pipe = io.popen(table.concat(words, " ") .. " 2>&1")
    local said = pipe:read("a")
    pipe:close()
    local value = attn.from_json(said)
    judge(type(value) == "table", table.concat({ ... }, " "), said, "JSON")
    return type(value) == "table" and value or {}
end
local function list(n) return type(n) == "table" and n or {} end

-- ---- parts --------------------------------------------------------------------------------

local function write_ids(ids)
    local path = work .. "/ids"
    local file = assert(io.open(path, "w"))
    file:write(table.concat(ids, " "), "\n")
    file:close()
    return path
end

local function check_tensor(t, want, what)
    local squares = 0
    if not t then judge(false, what, t, "a tensor") return end
    local shape = t.shape
    for axis, extent in ipairs(want.shape) do same(shape[axis], extent, what .. ": shape") end
    close(t:sum(), want.sum, 1e-3 * want.norm, what .. ": sum")
    squares = t:map("square"):sum()
    close(math.sqrt(squares), want.norm, 1e-4 * want.norm, what .. ": norm")
    for _, entry in ipairs(want.at) do
        local value = entry[#entry]
        local place = {}
        for axis = 1, #entry - 1 do place[axis] = entry[axis] end
        close(t:get(table.unpack(place)), value, 1e-3 * math.max(1, math.abs(value)),
            what .. ": entry")
    end
end

local function check_layer(model, ids, layer, want)
    local input, why = attn.load("model:" .. model, { ids = ids, layer = layer })
    if not input then judge(false, "layer " .. layer, why, "an input") return end
    for _, role in ipairs { "q", "k", "v", "x" } do
        if want[role] then
            check_tensor(input[role], want[role], "layer " .. layer .. " " .. role)
        end
    end
    if want.o then
        local run, reason = attn.run("full", { input = input }) -- its own window goes with it
        check_tensor(run and run.output, want.o,
            "layer " .. layer .. " o " .. tostring(reason or ""))
        if run then run:close() end
    end
    input:close()
end

local function check_top(model, ids, want)
    local got = ask("model", model, "--ids", ids, "--max-tokens", tostring(want.position + 1),
        "--json")
    for k, entry in ipairs(want.next) do
        local id, text, p = entry[1], entry[2], entry[3]
        local at
        for _, next in ipairs(list(got.next)) do at = next.id == id and next or at end
        judge(at ~= nil, "top 5: id", "nothing", id)
        close(at and at.p, p, 1e-4, "top 5: p")
        same(at and at.text, text, "top 5: text")
    end
end

local function check_swap(got, want, n)
    if want.loss then
        close(got.loss, want.loss, 2e-4, "swap: loss")
        close(got.delta, want.delta, 2e-4, "swap: delta")
        close(got.perplexity, want.perplexity, 3e-4 * want.perplexity, "swap: perplexity")
    else
        same(got.loss, nil, "swap: loss")
    end
    if want.kl then
        close(got.kl, want.kl, 2e-4 + 1e-3 * want.kl, "swap: kl")
        close(got.kl_max, want.kl_max, 1e-3 + 1e-3 * want.kl_max, "swap: kl_max")
        close(got.agreement, want.agreement, 1.001 / n, "swap: agreement")
    end
    close(got.cosine, want.cosine, 1e-4, "swap: cosine")
    for l, value in ipairs(want.residual) do
        close(list(got.residual)[l], value, 1e-4, "swap: residual")
    end
end

local function check_swaps(model, ids, swaps, n)
    for _, want in ipairs(swaps) do
        local words = { "model", model, "--ids", ids, "--swap", want.swap, "--json" }
        if want.layers and want.layers ~= "all" then
            table.insert(words, "--layers")
            table.insert(words, want.layers)
        end
        check_swap(list(list(ask(table.unpack(words)).swaps)[1]), want, n)
    end
end

local tolerance = { entropy = 1e-3, distance = 2e-3 }
local function check_heads(model, ids, layers)
    local got, by = ask("heads", model, "--ids", ids, "--json"), {}
    for _, score in ipairs(list(got.scores)) do by[score.layer .. "." .. score.head] = score end
    for layer, want in pairs(layers) do
        for head = 0, #want.label - 1 do
            local score = by[layer .. "." .. head] or {}
            for _, name in ipairs { "previous", "self", "first", "next", "entropy", "distance",
                                    "induction" } do
                if want[name] then
                    close(score[name], want[name][head + 1], tolerance[name] or 1e-4,
                        "head " .. name)
                end
            end
            same(score.induction_rows, want.induction_rows, "head rows")
            same(score.label, want.label[head + 1], "head label")
        end
    end
end

local function check_norms(model, ids, want)
    local pipe = io.popen(("%s model %s --ids %s"):format(quote(binary), quote(model), quote(ids)))
    local l = 0
    for line in pipe:lines() do
        local name, norm = line:match("^(%w+) +([%d.e+]+) +[%d.na/]+$")
        if norm and (name == "embedding" or tonumber(name) == l - 1) and l < #want then
            l = l + 1
            close(tonumber(norm), want[l], 1e-4 * want[l], "residual norm")
        end
    end
    pipe:close()
    same(l, #want, "residual norms")
end

-- ---- a text of a model ----------------------------------------------------------------------

local function check_text(model, text, name)
    local n, ids = #text.ids, write_ids(text.ids)
    local got = ask("model", model, "--ids", ids, "--json")
    where = name
    same(got.tokens, n, "tokens")
    for i, id in ipairs(text.ids) do same(list(got.ids)[i], id, "id") end
    if text.loss then
        close(got.loss, text.loss, 2e-4, "loss")
        close(got.perplexity, math.exp(text.loss), 3e-4 * math.exp(text.loss), "perplexity")
    else
        same(got.loss, nil, "loss")
    end
    for t, value in ipairs(text.nll or {}) do close(list(got.nll)[t], value, 1e-3, "nll") end
    for _, top in ipairs(text.top5 or {}) do check_top(model, ids, top) end
    if text.argmax and text.loss then
        same(list(list(got.next)[1]).id, text.argmax[n], "argmax")
    end
    for layer, want in pairs(text.layers) do
        check_layer(model, ids, #text.layers > 0 and layer - 1 or tonumber(layer), want)
    end
    if text.residual_norm then check_norms(model, ids, text.residual_norm) end
    if text.heads then check_heads(model, ids, text.heads) end
    check_swaps(model, ids, text.swaps or { text.swap }, n)
end

local function check_ids(model, source, ids)
    if not slurp(source) then return end
    local got = ask("model", model, "--text", source, "--json")
    same(#list(got.ids), #ids, "ids of the text")
    for i, id in ipairs(ids) do same(list(got.ids)[i], id, "id of the text") end
end

local function check_file(file, json)
    local model = models .. "/" .. file
    local values = attn.from_json(slurp(folder .. "/" .. json) or "")
    if not values then return end
    if not (slurp(model) or slurp(model .. "/config.json")) then
        print("SKIPPED " .. model .. " is not there")
        return
    end
    for name, text in pairs(values.texts) do
        check_text(model, text, file .. " " .. name)
        check_ids(model, folder .. "/" .. name .. ".txt", text.ids)
    end
end

local function check_tiny()
    local values = attn.from_json(slurp(folder .. "/tiny.json"))
    local source = work .. "/tiny.txt"
    local file = assert(io.open(source, "w"))
    file:write(values.text)
    file:close()
    for name, text in pairs(values.models) do
        local model = models .. "/tiny/" .. name
        if slurp(model) or slurp(model .. "/config.json") then
            check_text(model, text, name)
            check_ids(model, source, text.ids)
        else
            print("SKIPPED " .. model .. " is not there")
        end
    end
end

check_tiny()
check_file("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2.json")
check_file("all-MiniLM-L6-v2", "minilm.json")
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0)
