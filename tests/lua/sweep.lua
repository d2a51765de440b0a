-- Sweeps that ask the script as they go, and what can be done with their records.
local check = require "support.check"
local case, equal, raises = check.case, check.equal, check.raises

local function plan(more)
  local options = { "full", "window", n = "16,32", d = 8, ["repeat"] = 1 }
  for key, value in pairs(more) do options[key] = value end
  return options
end

case("progress is reported after each point", function()
  local seen = {}
  local sweep = assert(attn.sweep(plan {
    progress = function(done, total, record, left)
      seen[#seen + 1] = ("%d/%d %s"):format(done, total, record.mechanism)
      assert(left == nil or left >= 0)
      equal(record.status, "OK")
    end,
  }))
  equal(#sweep, 4)
  equal(#seen, 4)
  equal(seen[4]:sub(1, 4), "4/4 ")
end)

case("a sweep measures what one token more costs", function()
  local sweep = assert(attn.sweep { "full", "linear", n = "16,32", d = 8, decode = true })
  local adds = { full = 32, linear = 0 } -- two numbers of 8 channels in 2 bytes
  equal(#sweep, 4)
  for _, r in ipairs(sweep) do
    equal(r.causal, true)
    equal(r.decode.kv_bytes_per_token, adds[r.mechanism])
    equal(r.decode.state_bytes, r.mechanism == "full" and adds.full * r.n or 4 * 8 * 9)
    equal(r.decode.counted_flops, r.decode.decode_flops)
    assert(r.decode.step_ms.median > 0)
  end
end)

case("what a decoder holds at other lengths is what runs of these lengths say", function()
  local function decode(id, n)
    local input = assert(attn.load("synthetic:normal", { n = n, d = 8, heads = 2 }))
    local fine, r = pcall(attn.run, id, { input = input, decode = true, measure = false })
    return fine and r and r.stats.decode or nil -- some need a parameter, or another input
  end
  local compared = 0
  for _, id in ipairs(attn.mechanisms()) do
    -- A longer run without it has a longer prompt; the cache that grows has the prompt of its run.
    if id == "snapkv" then id = "snapkv(prompt=48)" end
    local short = decode(id, 64)
    for _, at in ipairs(short and short.held or {}) do
      if at.n == 128 or at.n == 512 then
        local long = decode(id, at.n)
        equal(at.bytes, long.state_bytes, id .. " at " .. at.n)
        compared = compared + 1
      end
    end
  end
  assert(compared > 60, compared)
end)

case("a sweep compares a sample of rows", function()
  local sweep = assert(attn.sweep { "window", n = 64, d = 8, quality_rows = 16 })
  equal(sweep[1].quality.rows, 16)
end)

case("row may change what is written, and the sweep goes on from it", function()
  local path = check.scratch("row.jsonl")
  os.remove(path)
  local count = 0
  local sweep = assert(attn.sweep(plan {
    output = path,
    row = function(record)
      count = count + 1
      record.note = { room = "cold", values = { 1, attn.null, "x\ny" } }
      if record.n == 16 then return record end
    end,
  }))
  equal(count, 4)
  for _, record in ipairs(sweep) do
    equal(record.note and record.note.room, record.n == 16 and "cold" or nil)
  end
  check.same(attn.read_sweep(path):filter(function(r) return r.n == 16 end)[1].note,
    { room = "cold", values = { 1, attn.null, "x\ny" } })
  sweep = assert(attn.sweep(plan { output = path, resume = true, row = function() count = 99 end }))
  equal(count, 4, "nothing was left to run")
  equal(#sweep, 4)
end)

case("a function that raises ends the sweep in order", function()
  local path = check.scratch("raised.jsonl")
  os.remove(path)
  local count = 0
  raises("on purpose", attn.sweep, plan {
    output = path,
    row = function()
      count = count + 1
      if count == 3 then error("on purpose") end
    end,
  })
  equal(count, 3)
  equal(#attn.read_sweep(path), 2, "the records before it are whole")
  equal(#assert(attn.sweep(plan { output = path, resume = true })), 4)
  os.remove(path)
  raises("on purpose", attn.sweep, plan {
    output = path, progress = function() error("on purpose") end,
  })
  equal(#attn.read_sweep(path), 1, "a reported point is written")
  os.remove(path)
  check.refuses("CANCELLED", attn.sweep, plan {
    output = path, progress = function() return false end,
  })
  equal(#attn.read_sweep(path), 1)
  os.remove(path)
end)

case("slips", function()
  raises("the record's key must stay", attn.sweep, plan {
    row = function(r) r.key = "x" return r end,
  })
  raises("expected a record or nil", attn.sweep, plan { row = function() return 3 end })
  raises("row: expected function", attn.sweep, plan { row = 3 })
  raises("progress: expected function", attn.sweep, plan { progress = true })
end)

case("from within a coroutine, and runs in the functions", function()
  local ns = {}
  local sweep = coroutine.wrap(function()
    return attn.sweep(plan { progress = function(_, _, record)
      ns[#ns + 1] = attn.run("full", { n = record.n, d = 4 }).input.n
    end })
  end)()
  equal(#sweep, 4)
  equal(ns[1] + ns[4], 48)
end)

case("what takes long may be called between two points", function()
  local slopes, times = 0, {}
  assert(attn.sweep { "full", n = "16,32,64", input = "synthetic:normal",
    row = function(record)
      record.note = #attn.run("full", { n = 8, d = 4 }) -- on the worker
      return record
    end,
    progress = function(_, _, record)
      times[#times + 1] = record.n
      if #times == 3 then
        slopes = attn.fit({ 16, 32, 64 }, { 1, 4, 16 }).alpha
      end
    end,
  })
  assert(math.abs(slopes - 2) < 1e-6, slopes)
end)

case("words of a sweep", function()
  local sweep = assert(attn.sweep(plan {}))
  local narrow = sweep:filter(function(r) return r.mechanism == "window" end)
  equal(#narrow, 2)
  local rows, columns = sweep:pivot("n", "mechanism", "flops.counted")
  equal(#rows, 2)
  equal(table.concat(columns, " "), "n full window")
  local path = check.scratch("words")
  assert(narrow:csv(path .. ".csv", { "n", "mechanism" }))
  equal(io.open(path .. ".csv"):read("a"), "n,mechanism\n16,window\n32,window\n")
  assert(sweep:csv(path .. ".csv"))
  local head = "," .. io.open(path .. ".csv"):read("l") .. ","
  for _, name in ipairs { "mechanism", "params", "time_ms.median", "time_ms.samples",
                          "flops.counted", "figures" } do
    assert(head:find("," .. name .. ",", 1, true), name)
  end
  assert(narrow:jsonl(path .. ".jsonl"))
  check.same(attn.read_sweep(path .. ".jsonl"), narrow)
  assert(attn.command("fit", path .. ".jsonl"):find("window"))
  check.refuses("FILE", narrow.jsonl, narrow, "/nowhere/at/all.jsonl")
end)

case("lists of values", function()
  local seen = 0
  local s = assert(attn.sweep { "full", "window", n = { 16, 32 }, d = 4,
    params = { window = { 3, 5 } }, seeds = { 4, 5 }, ["repeat"] = 1, memory = "1G", budget = 600,
    progress = function(done, total, row, eta)
      seen = seen + 1
      assert(done == seen and total == 12 and row.mechanism and (eta == nil or eta >= 0))
    end })
  equal(#s, 12)
  equal(seen, 12)
  local seeds = {}
  for _, record in ipairs(s) do
    seeds[record.seed] = true
  end
  check.same({ seeds[4], seeds[5], seeds[6] }, { true, true })
  local rows, columns = s:pivot("n", "flops")
  check.same(columns, { "n", "full", "window(window=3)", "window(window=5)" })
  equal(#rows, 2)
  equal(rows[1].full, s[1].flops.counted)
  check.raises("two records stand at n=16, mechanism=full: they differ in seed=4 and 5",
    s.pivot, s, "n", "mechanism", "time_ms")
  local one = s:filter(function(record)
    return record.seed == 4 and (record.mechanism == "full" or record.params.window == 3)
  end)
  equal(type(one:pivot("n", "mechanism", "time_ms")[1].window), "number")
  check.raises("one after the other", attn.sweep, { "full", n = 8, seeds = { 0, 2 } })
  check.raises("the list is empty", attn.sweep, { "full", n = 8, seeds = {} })
  check.raises("did you mean 'budget", attn.sweep, { "full", n = 8, budgets = 3 })
end)

case("a figure of a sweep", function()
  local s = attn.sweep { "full", "window", n = "16,32,64", d = 4, params = { window = "3,5" } }
  local function text(panel)
    panel.sweep = s
    return attn.figure({ panels = { panel } }):text { width = 120 }
  end
  local named = text {}
  for _, name in ipairs { "Full attention", "Sliding window, window 3", "Sliding window, window 5",
    "time %(ms%)", "Time over n", "d = 4, 1 head; measured on" } do
    assert(named:find(name), named)
  end
  assert(text({ x = "n", y = "flops", log = "xy" }):find("FLOPs"))
  local along = text { x = "window", y = "memory", log = "" }
  assert(along:find("memory %(bytes%)") and not along:find("Full"), along)
  assert(along:find("Memory over window", 1, true), along)
  for _, n in ipairs { 16, 32, 64 } do
    assert(along:find("Sliding window, n = " .. n, 1, true), along)
  end
  local rows, columns = s:pivot("window", "flops")
  equal(#rows, 2)
  check.same(columns, { "window", "window n=16", "window n=32", "window n=64" })
  assert(text({ y = "how long", log = "x" }):find("how long"))
  assert(text({ cost = "flops", y = "work" }):find("work"))
  local function refuses(what, panel)
    check.raises(what, text, panel)
  end
  refuses("none of its 9 records has n and quality", { cost = "quality" })
  refuses("log: expected", { log = "z" })
  refuses("x: expected string", { x = 3 })
end)

case("models of a fit", function()
  local xs, ys = { 16, 64, 256, 1024 }, {}
  for i, x in ipairs(xs) do
    ys[i] = 3 * x * math.log(x)
  end
  local fit = attn.fit(xs, ys, { model = "nlogn" })
  check.near(fit.c, 3, 1e-9)
  check.near(fit.r2, 1, 1e-12)
  equal(fit.model, "n log n")
  equal(fit.best, "n log n")
  local line = attn.fit(xs, ys, { model = "linear" })
  equal(line.alpha, attn.fit(xs, ys).alpha) -- the free exponent
  assert(line.r2 < fit.r2 and line.r2 > 0.9)
  equal(attn.fit(xs, ys).model, "power")
  check.raises("did you mean 'linear'", attn.fit, xs, ys, { model = "liner" })
  check.raises("as many y as x, got 4 x and 3 y", attn.fit, xs, { 1, 2, 3 })
end)
