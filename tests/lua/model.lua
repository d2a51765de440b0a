-- A small model: tokens, the pass, a swap, heads, a layer as an input.
package.path = "tests/lua/support/?.lua;" .. package.path
local check = require "support.check"
local case, equal = check.case, check.equal

local model = assert(attn.model("tests/model/tiny.gguf"))
local ids = model:encode("the cat sat to the mat")

case("what it is", function()
  equal(model.arch, "llama")
  equal(model.layers, 2)
  equal(model.head_count, 2)
  equal(model:token(ids[2]), "he")
end)

case("a swap that changes nothing, and one that does", function()
  local plain = model:run(ids)
  local same = model:run(ids, { swap = "full" })
  local less = model:run(ids, { swap = "window(window=3)", layers = { 1 } })
  assert(math.abs(same.delta) < 1e-5 and same.agreement == 1)
  assert(math.abs(same.plain.loss - plain.loss) < 1e-6)
  assert(less.kl > 0)
  equal(#plain.nll, #ids - 1)
  check.raises("unknown mechanism", model.run, model, ids, { swap = "nothing" })
  check.raises("is no token", model.run, model, { -1 })
end)

case("many swaps in one pass, and a mixture", function()
  local first = { swap = "window(window=3)", layers = { 0 } }
  local second = { swap = "window(window=1)", layers = { 0, 1 }, heads = { 1 } }
  local all = model:run(ids, { swaps = { first, second, { first, second }, { second, first } } })
  equal(#all, 4)
  for i, one in ipairs { first, second } do
    local alone = model:run(ids, one)
    assert(math.abs(all[i].loss - alone.loss) < 1e-6)
    equal(all[i].flops, alone.flops)
  end
  -- The first part that names a head has it: layer 0 is whole, then head 1 of layer 1 is left.
  equal(all[3].flops_exact, all[1].flops_exact + all[2].flops_exact / 2)
  equal(all[4].flops_exact, all[3].flops_exact)
  equal(all[3].flops, all[1].flops + all[2].flops / 2)
  equal(all[4].flops, all[1].flops / 2 + all[2].flops)
  assert(math.abs(all[3].delta - all[4].delta) > 1e-6)
  check.raises("at least one swap", model.run, model, ids, { swaps = {} })
  check.raises("a table with swap", model.run, model, ids, { swaps = { { layers = { 0 } } } })
  equal(#model:read("tests/model/tiny.txt", 5), 5)
end)

case("a mixture from a file", function()
  local path = check.scratch("mixture.csv")
  local file = assert(io.open(path, "w"))
  file:write('layer,head,mechanism\n0,all,window(window=3)\n1,0,"pattern(window(5)+cols(2))"\n')
  file:close()
  local parts = { { swap = "window(window=3)", layers = { 0 } },
                  { swap = "pattern(window(5)+cols(2))", layers = { 1 }, heads = { 0 } } }
  local one = model:run(ids, { swap = "@" .. path })
  local all = model:run(ids, { swaps = { { swap = "@" .. path }, parts } })
  equal(one.swap, "@" .. path)
  -- Heads that run together differ between the ways, and with them the order of float sums.
  check.near(one.loss, all[2].loss, 1e-7)
  check.near(all[1].loss, all[2].loss, 1e-7)
  assert(one.delta ~= 0)
  check.raises("the file says the layers", model.run, model, ids,
    { swap = "@" .. path, layers = { 0 } })
  check.raises("cannot be a part", model.run, model, ids,
    { swaps = { { { swap = "window" }, { swap = "@" .. path } } } })
  check.raises("swap: nowhere.csv: No such file", model.run, model, ids, { swap = "@nowhere.csv" })
  local written = assert(model:generate(ids, 3, { swap = "@" .. path }))
  equal(#written.ids, 3)
  equal(written.swap, "@" .. path)
  os.remove(path)
end)

case("writing on", function()
  local written = assert(model:generate(ids, 4))
  equal(#written.ids, 4)
  equal(written.swap, nil)
  local next_one = model:run(ids).next[1]
  equal(written.ids[1], next_one.id)
  assert(math.abs(written.p[1] - next_one.p) < 1e-5)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(table.concat(ids, " "))
  file:close()
  local said = attn.command("model", "tests/model/tiny.gguf", "--ids", path, "--json")
  os.remove(path)
  equal(tonumber(said:match('"next":%[{"id":(%d+),')), next_one.id)
  local bytes = {}
  for i, id in ipairs(written.ids) do
    bytes[i] = model:token(id)
  end
  equal(written.text, table.concat(bytes))
  assert(written.read_keys > 0 and written.cache_bytes > 0 and written.seconds >= 0)
  local short = assert(model:generate(ids, 4, { swap = "window(window=3)" }))
  assert(short.read_keys < written.read_keys)
  local drawn = { temperature = 2, top_k = 8, seed = 3 }
  local once = model:generate(ids, 12, drawn).text
  equal(model:generate(ids, 12, drawn).text, once)
  assert(once ~= model:generate(ids, 12).text)
  drawn.seed = 4
  assert(once ~= model:generate(ids, 12, drawn).text)
  local none, message = model:generate(ids, 4, { swap = "linear" })
  assert(none == nil and message:find("writes token by token only with"), message)
  check.raises("from 1", model.generate, model, ids, 0)
  check.raises("unknown option 'swaps'", model.generate, model, ids, 1, { swaps = {} })
  check.raises("unknown option 'vary'", model.generate, model, ids, 1, { vary = "window=3,9" })
  check.raises("unknown option 'temperature'", model.run, model, ids, { temperature = 1 })
  check.raises("unknown option 'top_k'", model.run, model, ids, { top_k = 4 })
  check.raises("unknown option 'vary'", model.run, model, ids, { swaps = { { vary = "w=1" } } })
end)

case("swaps at the values of a name", function()
  local swaps = { { swap = "window" }, { swap = "full" },
                  { swap = "pattern(window(window)+cols(1))", layers = { 1 } } }
  local all = model:run(ids, { swaps = swaps, vary = "window=3,9" })
  equal(#all, 5)
  equal(all[2].swap, "window(window=9)")
  equal(all[2].value, 9)
  equal(all[2].given, 1)
  equal(all[3].swap, "full")
  equal(all[3].value, nil)
  equal(all[4].swap, "pattern(window(3)+cols(1))")
  equal(all[4].given, 3)
  local alone = model:run(ids, { swap = "window(window=9)" })
  assert(math.abs(all[2].loss - alone.loss) < 1e-6)
  alone = model:run(ids, { swap = "pattern(window(3)+cols(1))", layers = { 1 } })
  assert(math.abs(all[4].loss - alone.loss) < 1e-6)
  equal(#model:run(ids, { swap = "window", vary = "window=1:9:+4" }), 3)
  check.raises("vary needs swap or swaps", model.run, model, ids, { vary = "window=3" })
  check.raises("size is no parameter", model.run, model, ids, { swap = "window", vary = "size=3" })
  check.raises("expected NAME=VALUES", model.run, model, ids, { swap = "window", vary = "3" })
  check.raises("is a mixture", model.run, model, ids, { swaps = { swaps }, vary = "window=3" })
end)

-- The mean weight `back` tokens back, from the weights of exact attention on the layer.
local function mean_back(weights, head, back)
  local n, sum = weights.shape[2], 0
  for i = back, n - 1 do sum = sum + weights:get(head, i, i - back) end
  return sum / (n - back)
end

case("a head that looks a fixed number of tokens back", function()
  local tales = assert(attn.model("sample:tales.gguf"))
  local tokens = tales:encode(assert(io.open("samples/english.txt")):read("a"))
  local weights = assert(attn.run("full", { input = tales:layer(2, tokens) })).views.weights
  for _, row in ipairs(tales:heads(tokens)) do
    if row.layer == 2 then
      local best = 0
      for back = 2, 16 do best = math.max(best, mean_back(weights, row.head, back)) end
      assert(math.abs(row.offset - best) < 1e-4)
      assert(math.abs(mean_back(weights, row.head, row.offset_tokens) - best) < 1e-6)
      equal(row.words == "offset 2", row.head == 3)
      if row.head == 3 then equal(row.label, "mixed") end
      equal(row.offset_tokens, 2)
    end
  end
  equal(tales:heads(tales:encode("The"))[1].offset_tokens, nil)
end)

case("heads and a layer", function()
  local heads = model:heads(ids)
  equal(#heads, 4)
  equal(heads[4].layer, 1)
  equal(heads[4].head, 1)
  assert(heads[1].near > 0 and heads[1].near < 1)
  assert(model:heads(ids, 2)[1].near < model:heads(ids, 6)[1].near)
  equal(model:heads(ids, #ids)[1].near, nil)
  check.raises("from 1", model.heads, model, ids, 0)
  local layer = model:layer(1, ids)
  equal(layer.n, #ids)
  equal(layer.heads, 2)
  assert(attn.run("full", { input = layer }))
end)

case("exact attention keeps to the window of the input's model", function()
  local whole = model:layer(1, ids)
  local function input(window, causal)
    return attn.input { q = whole.q, k = whole.k, v = whole.v, window = window, causal = causal,
                        scale = whole.scale }
  end
  for _, causal in ipairs { true, false } do
    local own = attn.run("full", { input = input(3, causal), quality = true })
    local same = attn.run("window(window=5)", { input = input(nil, causal) })
    equal(own.record.flops.counted, own.record.flops.closed_form)
    equal(own.record.flops.counted, same.record.flops.counted)
    assert((own.output - same.output):map("abs"):max() < 1e-6)
    local kept = attn.run("window(window=5)", { input = input(3, causal), quality = true })
    assert(math.abs(kept.record.quality.mass_mean - 1) < 1e-6)
  end
  equal(input(3).window, 3)
  equal(whole.window, nil)
  local path = os.tmpname() .. ".safetensors"
  assert(input(3):save(path))
  equal(assert(attn.load(path)).window, 3)
  os.remove(path)
end)

case("closed", function()
  local other = attn.model("tests/model/tiny.gguf")
  other:close()
  check.raises("is closed", other.encode, other, "x")
  local none, message = attn.model("nowhere.gguf")
  assert(none == nil and message:find("nowhere"))
end)

case("its file becomes shorter while it is open", function()
  local path = check.scratch("shorter.gguf")
  local from = assert(io.open("tests/model/tiny.gguf", "rb"))
  local function write(bytes)
    local to = assert(io.open(path, "wb"))
    to:write(bytes)
    to:close()
  end
  write(from:read("a"))
  from:close()
  local other = assert(attn.model(path))
  assert(other:run(ids))
  write("")
  local none, message = other:run(ids)
  assert(none == nil and message:find("became shorter while it was read"), message)
  other:close()
  assert(model:run(ids)) -- another file is as it was
  os.remove(path)
end)
