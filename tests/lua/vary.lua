-- One parameter at several values.
local check = require "support.check"
local case, equal, raises = check.case, check.equal, check.raises

local input = assert(attn.random { n = 32, d = 8, heads = 2 })

case("points, exact costs and a figure", function()
  local v = assert(attn.vary({ "window", "linformer(k=8)" }, "window=1:17:+8", { input = input }))
  equal(v.parameter, "window")
  check.same(v.values, { 1, 9, 17 })
  equal(#v.lines, 2)
  local points = v.lines[1].points
  for i = 2, 3 do
    assert(points[i].error < points[i - 1].error and points[i].mass > points[i - 1].mass)
    assert(points[i].flops > points[i - 1].flops)
  end
  equal(points[2].value, 9)
  equal(points[1].time, nil, "nothing was measured")
  assert(v.exact.flops > points[1].flops)
  equal(v.lines[2].fixed, true)
  equal(#v.lines[2].points, 1)
  equal(#v.figure, 2)
  local text = v.figure:text { width = 80 }
  assert(text:find("output error", 1, true) and text:find("FLOPs", 1, true), text)
end)

case("the smallest value that keeps so much", function()
  local v = attn.vary("window", "window=63,1,33", { input = input, keep = "99%", plot = "mass" })
  equal(v.lines[1].smallest, 63)
  equal(attn.vary("window", "window=1,3", { input = input, keep = "99%" }).lines[1].smallest, nil)
end)

case("seeds make a band, failures say why", function()
  local v = attn.vary("performer", "kernel=relu,cosine,trig",
    { input = input, seeds = 3, plot = "error,time" })
  check.same(v.values, { "relu", "cosine", "trig" })
  local points = v.lines[1].points
  assert(points[2].problem:find("cosine", 1, true) and not points[2].error)
  assert(points[3].error_low <= points[3].error and points[3].error <= points[3].error_high)
  assert(points[3].time > 0 and points[3].memory > 0)
  assert(v.figure:text():gsub("%s+", " "):find("left out: Performer at cosine", 1, true))
  local none = attn.vary("performer", "features=8,16", { input = input, plot = "mass" })
  equal(none.figure, nil)
  assert(none.problem:find("no mass kept", 1, true), none.problem)
end)

case("the figure outlives what it was made of", function()
  local path = check.scratch("attnscope-vary.png")
  local figure = attn.vary("nystrom", "n_landmarks=4,8", { n = 16 }).figure
  collectgarbage()
  assert(figure:save(path))
  os.remove(path)
end)

case("slips", function()
  raises("has the parameter features", attn.vary, "linear", "features=1:2", { input = input })
  raises("plot: 'speed'", attn.vary, "performer", "features=8:16",
    { input = input, plot = "speed" })
  raises("keep: 'most'", attn.vary, "performer", "features=8:16", { input = input, keep = "most" })
  raises("expected NAME=VALUES", attn.vary, "performer", "features", { input = input })
  raises("did you mean", attn.vary, "performer", "features=8:16", { inputs = input })
end)
