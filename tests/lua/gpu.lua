-- Records and figures of runs on a GPU, here the emulated one.
local check = require "support.check"
local case, equal = check.case, check.equal

local input = assert(attn.random { n = 24, d = 8, heads = 2 })
local options = { input = input, device = "cuda", measure = true, ["repeat"] = 2 }

case("a record of a GPU holds its tiers, with why one is missing", function()
  local r = assert(attn.run("full", options))
  local gpu = r.record.gpu
  assert(gpu, "no gpu in the record")
  assert(gpu.events.span_ms > 0 and gpu.activity.busy_ms > 0)
  equal(#gpu.activity.kernels, 1)
  assert(gpu.activity.kernels[1].name:find("attend_f32", 1, true))
  equal(gpu.counters.lacks, "counters refused: emulated")
  equal(gpu.counters.flops, nil)
  assert(r.record.stages[1].gpu.busy_ms > 0)
end)

case("a GPU's kernels are a plot", function()
  local r = assert(attn.run("full", options))
  local panels = { { result = r, view = "plot(device)" } }
  local text = attn.figure { panels = panels }:text { width = 90 }
  assert(text:find("attend", 1, true), text)
end)

case("costs of a sweep name the devices they were measured on", function()
  local sweep = attn.sweep { "full", n = "16,32", d = 8, ["repeat"] = 1,
    device = { "cpu", "cuda" } }
  local figure = attn.figure { panels = { { sweep = sweep } } }
  local text = figure:text { width = 120 }
  assert(text:find("measured on [^\n]*emulated on the CPU"), text)
  assert(text:find(" and ", 1, true), text)
  local said = attn.figure { panels = { { measured = "a GPU",
    scaling = { { name = "a", n = { 1, 2 }, cost = { 1, 2 } } } } } }
  assert(said:text { width = 120 }:find("measured on a GPU, ", 1, true))
end)

case("hand-made costs are measured where their records were", function()
  local here, there = {}, {}
  for i, n in ipairs { 16, 32 } do
    here[i] = assert(attn.run("full", { n = n, d = 8, measure = true, ["repeat"] = 1 }))
    there[i] = assert(attn.run("full", { n = n, d = 8, measure = true, ["repeat"] = 1,
      device = "cuda" })).record
  end
  local function said(panel)
    return attn.figure { panels = { panel } }:text { width = 150 }:match("measured on ([^\n]*)")
  end
  local gpu, cpu = "emulated on the CPU", attn.environment().cpu
  local mine = { name = "a", n = { 16, 32 }, cost = { 1, 4 }, records = there }
  equal(said { scaling = { mine } }:find(gpu, 1, true), 1)
  assert(not said({ scaling = { mine } }):find(cpu, 1, true))
  equal(said { scaling = { { name = "a", n = { 16, 32 }, cost = { 1, 4 } } },
    measured = there }:find(gpu, 1, true), 1)
  local plain = said { scaling = { { name = "a", n = { 16, 32 }, cost = { 1, 4 } } } }
  equal(plain:find(cpu, 1, true), 1)
  equal(said { scaling = { mine }, measured = "a GPU" }:find("a GPU, ", 1, true), 1)
  local both = said { scaling = { mine, { name = "b", records = here } } }
  assert(both:find(gpu, 1, true) and both:find(" and " .. cpu, 1, true), both)
end)

case("a curve of records needs no n and no cost", function()
  local records = {}
  for i, n in ipairs { 16, 32, 64 } do
    records[i] = attn.run("full", { n = n, d = 8, device = "cuda" }).record
  end
  records[4] = { mechanism = "full", n = 128, status = "OOM", message = "too large" }
  local panel = { scaling = { { name = "work", records = records, claim = 2 } }, cost = "flops" }
  local text = attn.figure { panels = { panel } }:text { width = 100 }
  assert(text:find("FLOPs", 1, true) and text:find("emulated", 1, true), text)
  check.raises("none of the 4 has n and time_ms", attn.figure,
    { panels = { { scaling = { { name = "time", records = records } } } } })
  check.raises("records: expected records or results, got number at 1", attn.figure,
    { panels = { { scaling = { { name = "time", records = { 3 } } } } } })
  check.raises("measured: expected table, got boolean", attn.figure,
    { panels = { { measured = true, scaling = { { n = { 1 }, cost = { 1 } } } } } })
end)

case("a GPU's record has its stages' counters, copies and memory", function()
  local r = assert(attn.run("linear", options)).record
  assert(r.memory.device_peak > 0 and #r.memory.timeline.device > 0)
  local copies = r.gpu.activity.copy_spans
  assert(#copies > 0 and r.gpu.activity.copies[copies[1][1] + 1].kind == "host to device")
  assert(r.stages[1].gpu.span_ms > 0 and r.stages[1].gpu.launches > 0)
  equal(r.stages[1].gpu.flops, nil)
end)
