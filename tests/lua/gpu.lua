-- Records and figures of runs on a GPU, here the emulated one.
local check = require "support.check"
local case, equal = check.case, check.equal

local input = assert(attn.random { n = 24, d = 8, heads = 2 })
local options = { input = input, device = "cuda", measure = true, reps = 2 }

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
  local sweep = attn.sweep { "full", n = "16,32", d = 8, reps = 1, device = { "cpu", "cuda" } }
  local figure = attn.figure { panels = { { sweep = sweep } } }
  local text = figure:text { width = 120 }
  assert(text:find("measured on [^\n]*emulated on the CPU"), text)
  assert(text:find(" and ", 1, true), text)
  local said = attn.figure { panels = { { measured = "a GPU",
    scaling = { { name = "a", n = { 1, 2 }, cost = { 1, 2 } } } } } }
  assert(said:text { width = 120 }:find("measured on a GPU, ", 1, true))
end)

case("a GPU's record has its stages' counters, copies and memory", function()
  local r = assert(attn.run("linear", options)).record
  assert(r.memory.device_peak > 0 and #r.memory.timeline.device > 0)
  local copies = r.gpu.activity.copy_spans
  assert(#copies > 0 and r.gpu.activity.copies[copies[1][1] + 1].kind == "host to device")
  assert(r.stages[1].gpu.span_ms > 0 and r.stages[1].gpu.launches > 0)
  equal(r.stages[1].gpu.flops, nil)
end)
