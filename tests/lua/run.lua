-- Runs, results, records.
local check = require "support.check"
local case, equal, near, raises = check.case, check.equal, check.near, check.raises

local input = assert(attn.random { n = 24, d = 8, heads = 2 })

case("views that are wanted with the run", function()
  local r = attn.run("bigbird", { n = 16, d = 4, views = { "weights", "connectivity" } })
  check.equal(rawget(r.views, "weights").shape[2], 16)
  check.raises("did you mean 'weights'", attn.run, "full", { n = 8, views = { "weigths" } })
  check.raises("views: expected table", attn.run, "full", { n = 8, views = "weights" })
  local job = attn.start("full", { n = 8, views = { "weigths" } })
  check.raises("did you mean 'weights'", job.wait, job)
end)

case("output is weights times values", function()
  local r = assert(attn.run("full", { input = input }))
  equal(r.mechanism, "full")
  equal(r.input, input)
  equal(#r, 24)
  local weights = r.views.weights
  check.same(weights.shape, { 2, 24, 24 })
  local close, worst = weights:matmul(input.v):allclose(r.output, 1e-4, 1e-5)
  assert(close, worst)
  local rows = weights:sum(2)
  near(rows:min(), 1, 1e-5)
  near(rows:max(), 1, 1e-5)
  equal(rawequal(weights, r.views.weights), true, "the view is made once")
end)

case("every mechanism of the catalogue runs or says why not", function()
  for _, id in ipairs(attn.mechanisms { needs_x = false }) do
    local good, r, message, code = pcall(attn.run, id, { input = input })
    if good and r then
      local card = attn.info(id)
      if not card.own_rows and not card.needs_none then
        local heads, n, e = table.unpack(r.output.shape) -- 2 heads of 8, or the layer input of 16
        check.same({ n, heads * e }, { 24, 16 })
      end
      for _, name in ipairs(r:view_names()) do
        assert(r:view(name), id .. "." .. name)
      end
      assert(card.needs_none or r.stats.flops.total > 0, id)
    elseif good then
      equal(type(message), "string", id)
      equal(type(code), "string", id)
    end
  end
end)

case("parameters of every type", function()
  local r = assert(attn.run("bigbird", { input = input, window = 5, seed = 4 }))
  equal(r.params.window, 5)
  equal(r.text, "bigbird(window=5)")
  local same = assert(attn.run("bigbird(window=5)", { input = input, seed = 4 }))
  equal((r.output:allclose(same.output, 0, 0)), true)
  local nested = assert(attn.run("bigbird", { input = input, params = { window = 5.0 }, seed = 4 }))
  equal((r.output:allclose(nested.output, 0, 0)), true)
  local p = assert(attn.run("pattern", { input = input, expr = "window(3)+global(1)" }))
  equal(p:cell(5, 0).allowed, true)
  equal(p:cell(5, 9).allowed, false)
  local half = assert(attn.run("full", { input = input, scale = 0.5 }))
  near(half.params.scale, 0.5, 0)
end)

case("a tensor parameter", function()
  local mask = attn.tensor({ 24, 24 }, "u8")
  for i = 0, 23 do
    mask:set(i, 23 - i, 1)
  end
  local r = assert(attn.run("pattern", { input = input, expr = "mask($m)", m = mask }))
  equal(r.stats.nnz, 48)
  near(r.output:get(0, 0, 0), input.v:get(0, 23, 0), 1e-6)
  local turned = assert(attn.run("pattern", { input = input, expr = "mask($m)",
    m = mask:transpose() }))
  equal((r.output:allclose(turned.output, 0, 0)), true)
end)

case("misuse raises", function()
  raises("bigbird", attn.run, "bigbrid", { input = input })
  raises("did you mean 'window'", attn.run, "bigbird", { input = input, windo = 5 })
  raises("did you mean 'causal'", attn.run, "bigbird", { input = input, casual = true })
  raises("at least 0, got -1", attn.run, "bigbird", { input = input, window = -1 })
  raises("an integer, got 'many'", attn.run, "bigbird", { input = input, window = "many" })
  raises("unknown position 'rop'", attn.run, "full", { input = input, position = "rop" })
  raises("the input here is loaded", attn.run, "full", { input = input, n = 5 })
  raises("whole number, got string", attn.run, "full", { input = input, seed = "x" })
  raises("true or false", attn.run, "full", { input = input, causal = 1 })
  raises("table expected", attn.run, "full", 5)
  raises("expected a number, text", attn.run, "bigbird", { input = input, window = print })
  raises("parameters are named", attn.run, "bigbird", { 5, input = input })
end)

case("the world refuses", function()
  check.refuses("FILE", attn.run, "full", { input = "/nonexistent.npz" })
  local r, message, code, record = attn.run("full", { input = input, memory = 1000 })
  equal(r, nil)
  equal(code, "NOMEM", message)
  equal(record.status, "OOM")
  local cross = attn.input { q = input.q, k = input.k:slice { nil, { 0, 12 } },
    v = input.v:slice { nil, { 0, 12 } } }
  for _, id in ipairs(attn.mechanisms { cross = false, needs_x = false }) do
    equal(select(3, attn.run(id, { input = cross })), "DATA", id)
  end
end)

case("causal and positions", function()
  local r = assert(attn.run("full", { input = input, causal = true }))
  equal(r.views.weights:get(0, 3, 4), 0)
  equal(r:cell(3, 4).allowed, false)
  equal(r.record.causal, true)
  local plain = assert(attn.run("full", { input = input }))
  for _, position in ipairs(attn.positions()) do
    local p = assert(attn.run("full", { input = input, position = position.id }))
    equal(p.record.position, position.id)
    equal((p.output:allclose(plain.output)), false, position.id)
  end
  assert(attn.run("full", { input = input, position = "t5", pos_buckets = nil }))
end)

case("parts of views", function()
  local r = assert(attn.run("full", { input = input }))
  local all = r:view("weights")
  check.same(r:view("weights", 1).shape, { 24, 24 })
  local part = r:view("weights", 1, { 2, 5, 10, 20 })
  check.same(part.shape, { 3, 10 })
  equal((part:allclose(all:slice { 1, { 2, 5 }, { 10, 20 } }, 0, 0)), true)
  equal((part:allclose(r:view("weights", 1, { q = { 2, 5 }, k = { 10, 20 } }), 0, 0)), true)
  part = r:view("weights", 1, { q = { 20 } }) -- what is not said is the edge
  equal((part:allclose(all:slice { 1, { 20, 24 }, { 0, 24 } }, 0, 0)), true)
  part = r:view("weights", 1, { k = { [2] = 3 } })
  equal((part:allclose(all:slice { 1, { 0, 24 }, { 0, 3 } }, 0, 0)), true)
  for _, edges in ipairs { { 0, 25 }, { 0, 24, 0, 25 }, { -1, 4 }, { 0, 4, -1, 4 }, { 4, 4 },
    { 0, 4, 5, 5 } } do
    raises("not inside 24 x 24", r.view, r, "weights", 0, edges)
  end
  raises("outside 0..1", r.view, r, "weights", 2)
  raises("did you mean 'weights'", r.view, r, "weigths")
  raises("did you mean 'weights'", function() return r.views.wieghts end)
  raises("belongs to a run", function() r.output:set(0, 0, 0, 1) end)
end)

case("cells and rows say why", function()
  local r = assert(attn.run("bigbird", { input = input, window = 3 }))
  local cell = r:cell(12, 12, 1)
  equal(cell.allowed, true)
  equal(cell.components[1], "window")
  near(cell.weight, r.views.weights:get(1, 12, 12), 1e-6)
  near(cell.values.weights, cell.weight, 0)
  local total, rank = 0, 1
  for _, key in ipairs(r:row(12, 1)) do
    total = total + key.weight
    rank = rank + (key.weight > cell.weight and 1 or 0)
    assert(#key.components > 0)
  end
  near(total, 1, 1e-5)
  equal(cell.rank, rank)
  -- the score is exact attention's, and the row's weights are its softmax
  local other = r:cell(12, 11, 1)
  equal(cell.own_score, true)
  near(cell.score - other.score, math.log(cell.weight / other.weight), 1e-4)
  assert(cell.below >= 0 and cell.exact.weight < cell.weight and cell.exact.keys >= cell.exact.rank)
  local share = 0
  for _, key in ipairs(r:row(12, 1)) do share = share + r:cell(12, key.k, 1).share end
  near(share, 1, 1e-4)
  raises("query 24 is outside 0..23", r.cell, r, 24, 0)
  raises("outside 0..23", r.cell, r, 0, -1)
  raises("outside 0..1", r.cell, r, 0, 0, 2)
end)

case("a fit on the input", function()
  local r = assert(attn.run("routing", { n = 32, d = 8, fit = true }))
  equal(r.record.tensors.centroids, "fitted")
  equal(assert(attn.run("routing(fit=true)", { n = 32, d = 8 })).output:sum(), r.output:sum())
  check.refuses("UNSUPPORTED", attn.run, "full", { n = 8, fit = true })
end)

case("who was missed", function()
  local r = assert(attn.run("reformer", { n = 64, d = 16, block = 8, keys = 4 }))
  local m = assert(r:missed())
  equal(m.keys, 4)
  equal(m.ranked, false)
  equal(#m.rounds, 4)
  assert(m.rounds[1].together == m.rounds[1].alone)
  near(m.rounds[4].together, m.found, 1e-12)
  check.same(m.queries.shape, { 1, 64 })
  near(m.queries:sum() / 64, m.found, 1e-12)
  equal(r:missed({ keys = 2 }).keys, 2)
  raises("from 1 to 1024, got 0", r.missed, r, { keys = 0 })
  check.refuses("UNSUPPORTED", function() return attn.run("switch", { n = 8, d = 4 }):missed() end)
end)

case("stages", function()
  local r = assert(attn.run("reformer", { input = input }))
  local stages, sum = r:stages(), 0
  assert(#stages > 1)
  for _, stage in ipairs(stages) do
    equal(type(stage.name), "string")
    equal(type(stage.note), "string")
    sum = sum + stage.flops.total
  end
  equal(stages[1].views[2], "buckets")
  local errors = assert(attn.run("sinkhorn", { input = input, params = { block = 4 } })):stages()
  equal(errors[4].name, "balance")
  assert(errors[4].traces["row error"] > errors[5].traces["row error"])
  near(sum, r.stats.flops.total, 1e-6 * sum)
end)

case("replay", function()
  local r = assert(attn.run("full", { input = input, causal = true }))
  local own, tiles, tokens = 0, 0, 0
  for _, stage in ipairs(r:stages()) do
    own = own + (stage.replay and 0 or 1)
    tiles = tiles + (stage.name == "tile" and 1 or 0)
    tokens = tokens + (stage.name == "token" and 1 or 0)
    assert(stage.replay == (stage.said ~= nil))
  end
  equal(own, 1)
  assert(tiles > 1 and tokens > 1)
  local sums = r:view("running_sum", 0)
  equal(sums.shape[2], tiles)
  assert(sums:get(0, 0) >= 1)
  assert(r:view("output_off", 0):max() > 0)
end)

case("each head that is left out needs the same memory", function()
  local most = {}
  for stage in assert(attn.run("head-pruning", { n = 32, d = 8, heads = 2 })):steps() do
    most[stage.name] = most[stage.name] or stage.arena_peak
    equal(stage.arena_peak, most[stage.name], stage.name .. " " .. tostring(stage.iteration))
  end
  assert(most.importance > 0 and most.prune > 0)
end)

case("comparison", function()
  local full = assert(attn.run("full", { input = input }))
  local same = full:compare(assert(attn.run("full", { input = input })))
  equal(same.max_abs, 0)
  equal(same.rel_l2, 0)
  equal(same.total_variation, 0)
  local narrow = assert(attn.run("pattern(window(3))", { input = input }))
  local d = narrow:compare(full)
  assert(d.max_abs >= d.mean_abs and d.mean_abs > 0)
  assert(d.total_variation > 0 and d.total_variation <= 1)
  near((narrow.output - full.output):map("abs"):max(), d.max_abs, 1e-6)
  raises("shapes", full.compare, full, attn.run("full", { n = 8, d = 8 }))
end)

case("records", function()
  local record = assert(attn.profile("full", { input = input, quality = true }, { ["repeat"] = 3 }))
  equal(record.mechanism, "full")
  equal(record.status, "OK")
  assert(#record.time_ms.samples >= 3)
  assert(record.time_ms.median > 0 and record.memory.arena_peak > 0)
  near(record.quality.mass_mean, 1, 1e-6)
  local r = assert(attn.run("full", { input = input }))
  equal(r.record.time_ms.median, nil, "not measured is absent")
  equal(r.stats.status, "OK")
  assert(r.stats.run_ms > 0)
  raises("did you mean 'repeat'", attn.profile, "full", { input = input }, { rep = 3 })
  local nothing, _, code, failed = attn.profile("full", { input = input, memory = 1000 })
  equal(nothing, nil)
  equal(code, "NOMEM")
  equal(failed.status, "OOM")
end)

case("compare of several", function()
  local records = attn.compare { "full", "pattern(window(3))", input = input, ["repeat"] = 2 }
  equal(#records, 2)
  near(records[1].quality.output_error, 0, 1e-5)
  assert(records[2].quality.mass_mean < 1)
end)

case("inputs by name are shared", function()
  local a = assert(attn.run("full", { n = 16, d = 8 }))
  local b = assert(attn.run("bigbird", { n = 16, d = 8 }))
  equal(a.input, b.input)
  local s = assert(attn.run("full", { input = "synthetic:sink", n = 8, d = 4 }))
  equal(s.input.n, 8)
end)

case("reach over depth", function()
  local r = assert(attn.run("pattern(window(3)+global(1))", { input = input }))
  local s = assert(r:reach { layers = 5, hops = true })
  equal(s.full, 2)
  equal(s.fixed, 2)
  equal(s.layers, 5)
  equal(s.residual, true)
  equal(#s.depths, 6)
  equal(s.depths[1].pairs, 24)
  equal(s.depths[3].pairs, 576)
  equal(s.depths[3].least, 24)
  near(s.depths[3].share, 1, 0)
  equal(s.hops.dtype, "i32")
  check.same(s.hops.shape, { 24, 24 })
  equal(s.hops:get(20, 9), 2)
  equal(s.hops:get(20, 20), 0)
  check.same(r:reach_path(20, 9), { 20, 0, 9 })
  check.same(r:reach_path(20, 20), { 20 })
  local w = assert(attn.run("window", { input = input, window = 3 }))
  equal(w:reach({ layers = 4 }).full, nil)
  equal(w:reach({ layers = 4 }).fixed, nil)
  equal(w:reach_path(20, 9, { layers = 4 }), nil)
  equal(#w:reach_path(20, 9), 12)
  local strict = w:reach { layers = 2, residual = false, hops = true }
  equal(strict.mean_hops, nil)
  equal(strict.hops:get(9, 9), 2)
  equal(strict.hops:get(9, 12), -1)
  raises("1 to 254", w.reach, w, { layers = 255 })
  raises("did you mean 'layers'", w.reach, w, { layer = 3 })
  raises("outside 0..23", w.reach_path, w, 24, 0)
end)

case("a stack of layers", function()
  local r = assert(attn.run("pattern(band(-1,-1)) > pattern(band(-8,-8))", { input = input }))
  equal(r:reach().layers, 2)
  check.same(r:reach_path(20, 11), { 20, 12, 11 })
  equal(r:reach_path(20, 18), nil)
  local seeds = assert(attn.run("bigbird > bigbird(seed=7)",
    { input = input, seed = 3, window = 5 }))
  equal(seeds.text, "bigbird(window=5) > bigbird(window=5,seed=7)")
  equal(seeds.params.window, 5)
  raises("no parameter 'windw'", attn.run, "full > bigbird", { input = input, windw = 3 })
end)

case("KL of the weights, where there is one", function()
  local input = attn.random { n = 32, d = 8, heads = 2 }
  local full = attn.run("full", { input = input })
  local window = attn.run("window(window=5)", { input = input, quality = true })
  local d = window:compare(full)
  -- The record takes the sum of an exact row as 1, which in float it is but for rounding.
  check.near(d.kl, window.record.quality.kl, 1e-6)
  check.near(d.total_variation, window.record.quality.total_variation, 1e-6)
  equal(d.kl_lacks, nil)
  equal(full:compare(full).kl, 0)
  -- The weights are those of full attention on the kept cells, so KL is the mean of -ln(mass).
  local sum = 0
  for h = 0, 1 do
    for q = 0, 31 do
      local mass = 0
      for _, entry in ipairs(window:row(q, h)) do
        mass = mass + full.views.weights:get(h, q, entry.k)
      end
      sum = sum - math.log(mass)
    end
  end
  check.near(d.kl, sum / 64, 1e-5)
  d = full:compare(window)
  equal(d.kl, nil)
  assert(d.kl_lacks:find("infinite"), d.kl_lacks)
  d = attn.run("pattern(expr=window(1)-window(1))", { input = input }):compare(full)
  equal(d.kl, nil)
  assert(d.kl_lacks:find("do not sum to 1"), d.kl_lacks)
end)

case("a file of a parameter is the world's", function()
  check.refuses("FILE", attn.run, "reformer", { input = input, rotations = "@nope.npy" })
  check.refuses("FILE", attn.run, "reformer(rotations=@nope.npy)", { input = input })
  check.refuses("FILE", attn.start, "reformer", { input = input,
    params = { rotations = "@nope.npy" } })
  check.refuses("FILE", attn.vary, "reformer(rotations=@nope.npy)", "rounds=1,2",
    { input = input })
  raises("must be at least 0", attn.run, "bigbird", { input = input, window = -3 })
end)

case("quality of each head", function()
  local two = assert(attn.random { n = 32, d = 8, heads = 2 })
  local one = assert(attn.run("window(window=5)", { input = two, per_head = true })).record
  equal(#one.quality.heads, 2)
  local mean = (one.quality.heads[1].mass_mean + one.quality.heads[2].mass_mean) / 2
  assert(math.abs(mean - one.quality.mass_mean) < 1e-9)
  equal(attn.run("window(window=5)", { input = two, quality = true }).record.quality.heads, nil)
end)

case("sizes for a budget", function()
  local text, note = attn.budget("window", "pairs=5%", { n = 512 })
  local w = tonumber(text:match "^window%(window=(%d+)%)$")
  assert(w and math.abs(w / 512 - 0.05) < 0.005, text)
  assert(note:find("window=" .. w .. " takes", 1, true), note)
  equal(attn.budget("window(window=7)", "pairs=5%", { n = 64 }), "window(window=7)")
  equal(attn.budget("full", "pairs=5%", { n = 64 }), "full")
  raises("such as pairs=5%", attn.budget, "window", "pairs", { n = 64 })
  raises("has no parameter 'size'", attn.budget, "full", "pairs=5%", { size = 64 })
  local records = attn.compare { "full", "window", n = 128, budget = "flops=25%", per_head = true,
    ["repeat"] = 1 }
  near(records[2].flops.counted / records[1].flops.counted, 0.25, 0.01)
  local said = records[2].warnings[#records[2].warnings]
  assert(said:find("window=" .. records[2].params.window .. " takes", 1, true), said)
  equal(#records[2].quality.heads, 1)
end)

case("quality of a sample of rows", function()
  local input = attn.random { n = 200, d = 8, heads = 2 }
  local all = assert(attn.run("window", { input = input, quality = true })).record.quality
  local some = assert(attn.run("window", { input = input, quality_rows = 100 })).record.quality
  equal(all.rows, nil)
  equal(some.rows, 100)
  equal(some.mass_min, nil)
  assert(some.mass_margin > 0 and some.mass_margin < some.mass_mean / 4)
  check.near(some.mass_mean, all.mass_mean, 2 * some.mass_margin)
  check.near(some.output_error, all.output_error, 2 * some.output_error_margin)
  raises("number from 2 to", attn.run, "window", { input = input, quality_rows = 1 })
  local said = attn.command("run", "window", "-n", "200", "-d", "8", "--quality-rows", "100")
  local number = "([%d.e-]+) %+%- ([%d.e-]+)"
  local mass, margin = said:match("  quality  mass kept " .. number .. ",")
  assert(tonumber(mass) < 1 and tonumber(margin) < 0.5, said)
  assert(said:find("KL " .. number .. "\n           of 100 of 200 rows of each head, drawn;"), said)
end)
