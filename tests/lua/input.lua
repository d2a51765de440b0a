-- Inputs: generated, of tensors, saved and loaded.
local check = require "support.check"
local case, equal, raises = check.case, check.equal, check.raises

case("random", function()
  local i = assert(attn.random { n = 16, d = 8, heads = 2, seed = 3 })
  equal(i.n, 16)
  equal(i.m, 16)
  equal(i.d, 8)
  equal(i.heads, 2)
  equal(i.kind, "synthetic")
  equal(#i, 16)
  check.same(i.q.shape, { 2, 16, 8 })
  equal(i.causal, nil)
  equal(i.model, nil)
  assert(tostring(i):find("n=16", 1, true))
  local same = attn.random { n = 16, d = 8, heads = 2, seed = 3 }
  equal(i.sha256, same.sha256)
  equal((i.q:allclose(same.q, 0, 0)), true)
  equal((i.q:allclose(attn.random({ n = 16, d = 8, heads = 2, seed = 4 }).q)), false)
end)

case("structures", function()
  local i = assert(attn.synthetic("induction(period=4)", { n = 16, d = 16 }))
  equal(#i.tokens, 16)
  equal(i:token(0), i.tokens[1])
  raises("outside 0..15", i.token, i, 16)
  local j = assert(attn.random { structure = "induction", n = 16, d = 16, period = 4 })
  equal((i.q:allclose(j.q, 0, 0)), true)
  for _, g in ipairs(attn.generators()) do
    assert(attn.synthetic(g.name, { n = 12, d = 8 }), g.name)
  end
end)

case("inputs cannot be written", function()
  local i = attn.random { n = 4, d = 4 }
  raises("belongs to a run or an input", function() i.q:set(0, 0, 0, 1) end)
  i.q:copy():set(0, 0, 0, 1)
end)

case("of tensors", function()
  local t = attn.random({ n = 6, d = 4 })
  local i = assert(attn.input { q = t.q, k = t.k, v = t.v, causal = true, name = "mine",
    tokens = { "a", "b", "c", "d", "e", "f" } })
  equal(i.causal, true)
  equal(i:token(5), "f")
  check.same(i.q.shape, { 1, 6, 4 })
  local flat = assert(attn.input { q = t.q:slice { 0 }, k = t.k:slice { 0 }, v = t.v:slice { 0 } })
  equal((flat.q:allclose(i.q, 0, 0)), true)
  local cross = assert(attn.input { q = t.q, k = t.k:slice { nil, { 0, 3 } },
    v = t.v:slice { nil, { 0, 3 } } })
  equal(cross.n, 6)
  equal(cross.m, 3)
  equal(assert(attn.input { x = attn.tensor { 5, 4 } }).n, 5)
  check.raises("v is missing", attn.input, { q = t.q, k = t.k })
  check.raises("q is missing", attn.input, { k = t.k, v = t.v })
  local values = assert(attn.input { v = t.v, x = attn.tensor { 6, 3 }, tokens = { "a", "b", "c",
    "d", "e", "f" } })
  equal(values.heads, 1)
  equal(values.m, 6)
  check.refuses("DATA", attn.input, { v = t.v, x = attn.tensor { 5, 3 } })
  check.refuses("DATA", attn.input, { q = attn.tensor { 2, 3 }, k = attn.tensor { 2, 4 },
    v = attn.tensor { 2, 4 } })
  check.refuses("DATA", attn.input, { q = attn.tensor { 0, 3 }, k = attn.tensor { 0, 3 },
    v = attn.tensor { 0, 3 } })
  check.refuses("DATA", attn.input, { q = attn.vector { 1 }, k = attn.vector { 1 },
    v = attn.vector { 1 } })
  raises("expected 6", attn.input, { q = t.q, k = t.k, v = t.v, tokens = { "a" } })
  raises("did you mean 'tokens'", attn.input, { token = {} })
  raises("expected a Tensor", attn.input, { q = 1 })
end)

case("segments", function()
  local t = attn.random { n = 6, d = 4 }
  local ids = attn.tensor({ 6 }, "i64")
  for i = 3, 5 do ids:set(i, 1) end
  local i = assert(attn.input { q = t.q, k = t.k, v = t.v, segments = ids })
  equal(i.segments.dtype, "i64")
  equal(assert(attn.run("pattern(same($segments))", { input = i })).stats.nnz, 18)
  equal(assert(attn.run("pattern(same($doc))", { input = t, doc = ids })).stats.nnz, 18)
  local path = check.scratch("attnscope-lua-segments.npz")
  assert(i:save(path))
  equal(assert(attn.load(path)).segments:get(5), 1)
  os.remove(path)
  check.refuses("DATA", attn.input, { q = t.q, k = t.k, v = t.v, segments = attn.tensor { 6 } })
  check.refuses("DATA", attn.input, { q = t.q, k = t.k, v = t.v,
    segments = attn.tensor({ 5 }, "i64") })
  equal(t.segments, nil)
end)

case("saved and loaded", function()
  local t = attn.random { n = 5, d = 4, heads = 2 }
  local i = attn.input { q = t.q, k = t.k, v = t.v, causal = true,
    tokens = { "x", '"y"', "z\n", "w", "\xff" } }
  local path = check.scratch("attnscope-lua-test.safetensors")
  assert(i:save(path))
  local back = assert(attn.load(path))
  equal((back.k:allclose(i.k, 0, 0)), true)
  equal(back.causal, true)
  equal(back:token(1), '"y"')
  equal(assert(attn.load(path, { n = 3 })).n, 3)
  os.remove(path)
  path = check.scratch("attnscope-lua-test.npz")
  assert(i:save(path))
  equal((assert(attn.load(path)).v:allclose(i.v, 0, 0)), true)
  os.remove(path)
  check.refuses("FILE", attn.load, path)
  raises(".npz or .safetensors", i.save, i, "x.bin")
  raises("did you mean 'heads'", attn.load, "x", { head = 1 })
  raises("whole number", attn.load, "x", { n = 1.5 })
end)

case("arrays with names of their own", function()
  local made, path = attn.random { n = 6, d = 4, heads = 2 }, check.scratch("attnscope-names.npz")
  local labels = attn.vector({ 5, 6, 7, 8, 9, 10 }, "i32")
  assert(attn.write_npz(path, { query = made.q, key = made.k, value = made.v, q = made.v,
                                ids = labels }))
  local i = assert(attn.load(path, { q = "query", k = "key", v = "value", tokens = "ids", n = 4 }))
  equal((i.q:allclose(made.q:slice { nil, { 0, 4 } }, 0, 0)), true)
  equal(i:token(1), "6")
  equal(i.name, path .. "[q=query,k=key,v=value,tokens=ids]")
  equal(attn.run("full", { input = i.name }).output.shape[2], 6) -- as on a command line
  local why = check.refuses("DATA", attn.load, path, { q = "querry" })
  assert(why:find("did you mean 'query'", 1, true), why)
  raises("expected ROLE=ARRAY", attn.load, path .. "[z=query]")
  raises("expected ROLE=ARRAY", attn.load, path .. "[]")
  raises("cannot be the name", attn.load, path, { q = "a,b" })
  raises("no arrays to be named", attn.load, "samples/english.tokens.txt[q=query]")
  raises("zero byte", attn.load, path .. "\0")
  assert(os.rename(path, path .. "[q=query]"))
  equal(attn.load(path .. "[q=query]").k, nil) -- a file of that name
  assert(attn.load(path .. "[q=query]", { k = "key", v = "value" }).k)
  os.remove(path .. "[q=query]")
end)

case("random, other keys than queries", function()
  local i = attn.random { n = 6, m = 9, d = 4, dv = 3, heads = 2, seed = 5 }
  check.same({ i.n, i.m, i.d, i.e, i.heads }, { 6, 9, 4, 3, 2 })
  check.same(attn.random { n = 6, m = 9, d = 4, dv = 3, heads = 2, seed = 5 }.sha256, i.sha256)
  equal(attn.run("full", { input = i }).output.shape[3], 3)
  equal(attn.random { n = 6, dv = 2, d = 4 }.m, 6)
  local blocks = attn.random { n = 6, structure = "blocks" }
  equal(attn.random({ n = 6, structure = "blocks" }).name, blocks.name)
  raises("only normal numbers", attn.random, { n = 6, m = 9, structure = "blocks" })
  raises("m: expected a whole number", attn.random, { m = 1.5 })
end)

case("samples", function()
  local i = assert(attn.load("sample:english.tokens.txt", { n = 12 }))
  equal(#i.tokens, 12)
  equal(attn.run("full", { input = "sample:english.tokens.txt", n = 12 }).output.shape[2], 12)
  local none, why = attn.load("sample:x")
  equal(none, nil)
  assert(why:find("no shipped sample 'x'", 1, true), why)
end)

case("closed", function()
  local i = attn.random { n = 4, d = 4 }
  local q = i.q
  i:close()
  raises("closed", function() return i.n end)
  raises("closed", attn.run, "full", { input = i })
  equal(#q, 1)
end)

case("grouped heads and a scale", function()
  local q = attn.random({ n = 8, d = 4, heads = 6 }).q
  local k = attn.random({ n = 8, d = 4, heads = 2 }).k
  local i = assert(attn.input { q = q, k = k, v = k, causal = true, scale = 0.25 })
  equal(i.heads, 6)
  equal(i.kv_heads, 2)
  equal(i.scale, 0.25)
  equal(attn.random({ n = 8 }).scale, nil)
  local path = os.tmpname() .. ".safetensors"
  assert(i:save(path))
  local again = assert(attn.load(path))
  equal(again.scale, 0.25)
  equal(again.kv_heads, 2)
  equal(again.causal, true)
  os.remove(path)
  raises("expected a positive number", attn.input, { q = q, k = k, v = k, scale = -1 })
end)
