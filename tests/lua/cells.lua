-- The cells of a run as a Pattern.
local check = require "support.check"
local case, equal, raises, near = check.case, check.equal, check.raises, check.near

local input = assert(attn.random { n = 40, d = 8, heads = 2, seed = 3 })
local function pattern_of(what, options)
  options = options or {}
  options.input = options.input or input
  local r = assert(attn.run(what, options))
  return assert(r:pattern()), r
end

case("what it says of itself is what the run says", function()
  for _, what in ipairs { "window(window=5)", "bigbird(random=2)", "reformer(block=4,rounds=2)",
    "longformer(window=5,global=2)", "axial" } do
    local p, r = pattern_of(what)
    equal(p.n, 40, what)
    equal(#p, 40)
    equal(p.m, 40)
    equal(p.heads, 2)
    equal(p.nnz, r.stats.nnz, what)
    near(p.density, r.stats.density, 1e-12)
    for h = 0, 1 do
      for _, q in ipairs { 0, 7, 39 } do
        local keys = {}
        for i, entry in ipairs(r:row(q, h)) do keys[i] = entry.k end
        check.same(p:row(q, h), keys)
        for k = 0, 39, 13 do
          local cell, allowed, parts = r:cell(q, k, h), p:cell(q, k, h)
          equal(allowed, cell.allowed)
          check.same(parts, cell.components)
        end
      end
    end
  end
end)

case("a cell says after which query its key was evicted", function()
  local input = assert(attn.load("synthetic:normal", { n = 96 }))
  local r = assert(attn.run("h2o(heavy=8,recent=8)", { input = input, causal = true }))
  local left = r:view("evicted_at"):totable()[1]
  local gone = 0
  for k = 0, 95, 5 do
    local cell = r:cell(60, k)
    equal(cell.evicted_after, left[k + 1] >= 0 and left[k + 1] < 60 and left[k + 1] or nil)
    gone = gone + (cell.evicted_after and 1 or 0)
  end
  assert(gone > 3 and gone < 19, gone)
end)

case("it runs again, on its input or another", function()
  for _, what in ipairs { "bigbird(random=2)", "window(window=7)", "block-local(block=8)" } do
    local p, r = pattern_of(what, { seed = 5 })
    local again = assert(attn.run(p))
    equal(again.mechanism, "pattern")
    assert(again.output:allclose(r.output, 1e-6, 1e-6), what)
    equal(again.stats.nnz, p.nnz)
    equal(again:pattern():compare(p).same, true)
    equal(attn.run(p, { n = 40, d = 4, heads = 2 }).input.d, 4)
    equal(attn.start(p, { causal = true }):wait().stats.nnz < p.nnz, true)
    equal(attn.profile(p, { threads = 1 }, { ["repeat"] = 2 }).mechanism, "pattern")
    check.refuses("PARAM", function()
      local ok, why = pcall(attn.run, p, { n = 30, heads = 2 })
      return nil, why, ok and "OK" or "PARAM"
    end)
  end
end)

case("compared and combined", function()
  local five, nine = pattern_of "window(window=5)", pattern_of "window(window=9)"
  local d = five:compare(nine)
  equal(d.same, false)
  equal(d.both, five.nnz)
  equal(d.only_this, 0)
  equal(d.only_other, nine.nnz - five.nnz)
  near(d.jaccard, five.nnz / nine.nnz, 1e-12)
  equal(five:compare(five).jaccard, 1)
  local rest = nine:minus(five)
  equal(rest.nnz, nine.nnz - five.nnz)
  equal(rest:union(five):compare(nine).same, true)
  equal(rest:common(five).nnz, 0)
  equal(nine:common(five):compare(five).same, true)
  local global = pattern_of "pattern(expr=global(2))"
  local _, parts = five:union(global):cell(0, 1)
  check.same(parts, { "window", "global" })
  raises("differ", five.compare, five, attn.run("window", { n = 8 }):pattern())
end)

case("heads of their own", function()
  local p = pattern_of "pattern(expr='window(3);global(1)')"
  equal(p.per_head, true)
  check.same(p:row(9, 0), { 8, 9, 10 })
  check.same(p:row(9, 1), { 0 })
  equal(attn.run(p):pattern():compare(p).same, true)
  equal(#p.runs.shape, 2)
end)

case("as a file for the command line", function()
  local p = pattern_of "bigbird(random=2)"
  local path = check.scratch("runs.npy")
  assert(p.runs:write(path))
  local text = attn.command("run", "pattern(expr=runs($t))", "-p", "t=@" .. path, "--input",
    "synthetic:normal", "-n", "40", "-d", "8", "--heads", "2", "--json")
  equal(attn.from_json(text).flops.counted, attn.run(p).record.flops.counted)
  os.remove(path)
end)

case("drawn", function()
  local p = pattern_of "window(window=5)"
  local f = assert(attn.figure { panels = { { pattern = p, title = "cells" }, attn.run(p) } })
  p:close()
  assert(f:text():find("cells"))
  local path = check.scratch("cells.png")
  assert(attn.figure({ panels = { { pattern = pattern_of "window(window=5)" } } }):save(path))
  assert(attn.figure({ panels = { { tensor = attn.tensor { { 1, 2 }, { 3, 4 } } } } }):save(path))
  os.remove(path)
end)

local function words_of(figure)
  local path = check.scratch("named.svg")
  assert(figure:save(path, { letters = "text" }))
  local file = assert(io.open(path))
  local svg = file:read("a")
  file:close()
  os.remove(path)
  return svg
end

case("components are given and named", function()
  local near, far = pattern_of "window(window=3)", pattern_of "dilated(dilation=4,window=3)"
  local both = near:as("window", "near by"):union(far:as("global", "far off"))
  check.same({ select(2, both:cell(8, 4)) }, { { "global" } })
  check.same({ select(2, both:cell(8, 8)) }, { { "window", "global" } })
  equal(both:compare(near:union(far)).same, true)
  local figure = attn.figure { panels = { { pattern = both } } }
  both, near, far = nil, nil, nil
  collectgarbage()
  local svg = words_of(figure)
  assert(svg:find(">near by<", 1, true) and svg:find(">far off<", 1, true), "the legend's names")
  raises("invalid option", pattern_of("window").as, pattern_of "window", "near")
end)

case("slips, and what has no cells", function()
  local p = pattern_of "window(window=5)"
  raises("query 40", p.row, p, 40)
  raises("head 2", p.row, p, 0, 2)
  p:close()
  raises("closed", p.row, p, 0)
  raises("closed", attn.run, p)
  equal(tostring(p), "Pattern (closed)")
  check.refuses("UNSUPPORTED", function()
    return attn.run("product-key-memory", { input = "synthetic:blocks(n=32,d=16)" }):pattern()
  end)
  local bad = attn.tensor({ { 0, 0, 0, 1, 1, 1 }, { -1, 0, 0, 1, 1, 1 } }, "i64")
  raises("line 1 of the runs has head -1", attn.run, "pattern(expr=runs($t))", { n = 8, t = bad })
  for field, value in pairs { [1] = 8, [2] = 8, [3] = 9, [4] = 0, [5] = 256 } do
    local line = { -1, 0, 0, 1, 1, 1 }
    line[field + 1] = value
    raises("line 0 of the runs has", attn.run, "pattern(expr=runs($t))",
      { n = 8, t = attn.tensor({ line }, "i64") })
  end
  raises("expected whole numbers", attn.run, "pattern(expr=runs($t))",
    { n = 8, t = attn.tensor { 2, 6 } })
end)
