-- Whatever is closed or collected in whatever order, nothing dangles.
local check = require "support.check"
local case, equal, raises = check.case, check.equal, check.raises

case("a tensor keeps its run and the run its input", function()
  local tensors = {}
  for i = 1, 20 do
    local input = attn.random { n = 32, d = 8, seed = i }
    local r = assert(attn.run("full", { input = input }))
    tensors[i] = { r.output, r.views.weights, r.output:slice { 0, { 3, 9 } } }
    if i % 3 == 0 then input:close() end
    if i % 2 == 0 then r:close() end
  end
  collectgarbage()
  collectgarbage()
  for _, t in ipairs(tensors) do
    local rows = t[2]:sum(2)
    assert(math.abs(rows:min() - 1) < 1e-5)
    equal((t[3]:allclose(t[1]:slice { 0, { 3, 9 } }, 0, 0)), true)
  end
end)

case("a closed result says so", function()
  local r = assert(attn.run("full", { n = 8, d = 4 }))
  local views = r.views
  r:close()
  r:close()
  raises("closed", function() return r.output end)
  raises("closed", function() return views.weights end)
  raises("closed", r.cell, r, 0, 0)
  equal(tostring(r), "Result (closed)")
end)

case("a figure keeps what it shows", function()
  local fig
  do
    local input <close> = attn.random { structure = "induction", n = 16, d = 16 }
    local a <close> = assert(attn.run("full", { input = input }))
    local b <close> = assert(attn.run("bigbird", { input = input }))
    local t <close> = attn.tensor { { 1, 2 }, { 3, 4 } }
    fig = attn.figure { panels = { a, { result = b, view = "weights", minus = a },
      { tensor = t } } }
  end
  collectgarbage()
  local text = assert(fig:text { width = 60 })
  assert(#text > 100)
  fig:close()
  raises("closed", fig.text, fig)
end)

case("a tensor parameter outlives its tensor", function()
  local r
  do
    local mask <close> = attn.tensor({ 8, 8 }, "u8")
    mask:set(0, 3, 1)
    r = assert(attn.run("pattern", { n = 8, d = 4, expr = "mask($m)", m = mask }))
  end
  collectgarbage()
  equal(r.stats.nnz, 1)
  equal(r.views.connectivity:sum(), 1)
end)

check.ours("garbage is collected as it grows", function()
  for _ = 1, 300 do
    local t = attn.tensor({ 512, 512 })
    t:set(0, 0, 1)
  end
  for i = 1, 30 do
    assert(attn.run("full", { n = 64, d = 8, seed = i }))
  end
  local m = attn.memory()
  assert(m.bytes > 0 and m.peak >= m.bytes and m.limit > m.peak)
end)

case("failures in the middle leave nothing behind", function()
  for _ = 1, 20 do
    pcall(attn.run, "bigbird", { n = 16, d = 4, window = {} , seed = 1 })
    pcall(attn.figure, { panels = { attn.run("full", { n = 8, d = 4 }), 5 } })
    pcall(attn.input, { q = attn.tensor { 2, 2 } })
    attn.from_json('{"a": [1, 2,')
  end
  collectgarbage()
end)

-- Every step finds Lua's memory at its end once; ASan watches the rest.
check.ours("running out of memory anywhere is an ordinary error", function()
  local enough = attn.memory().limit
  local function scenario()
    local input <close> = attn.random { n = 8, d = 4, structure = "induction" }
    local r = attn.run("bigbird", { input = input, window = 3 })
    local t = attn.tensor { { 1, 2 }, { 3, 4 } } + r.output:slice { 0, { 0, 2 }, { 0, 2 } }
    local figure = attn.figure { panels = { r, { tensor = t } } }
    return r.record, r:row(3), r:stages(), figure:text(), attn.command("list"), r.views.weights,
      t:totable(), attn.info("bigbird")
  end
  scenario()
  local failures, extra = 0, 64
  repeat
    collectgarbage()
    collectgarbage()
    local good, why = pcall(function()
      attn.memory(attn.memory().bytes + extra)
      return scenario()
    end)
    attn.memory(enough)
    if not good then
      failures = failures + 1
      assert(tostring(why):find("memory"), why)
    end
    extra = extra + 96
  until good
  assert(failures > 50, failures)
end)

case("a coroutine may run things", function()
  local co = coroutine.wrap(function()
    local r = assert(attn.run("full", { n = 8, d = 4 }))
    coroutine.yield(r.output:sum())
    return r.views.weights:sum()
  end)
  equal(math.type(co()), "float")
  assert(math.abs(co() - 8) < 1e-4)
end)
