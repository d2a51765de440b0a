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
