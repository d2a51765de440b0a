-- sharpening.lua -- the soft permutation of Sinkhorn attention, by temperature and iterations.
--
--   attnscope lua sharpening.lua [name=value...]     --help lists the settings
--
-- How far the rows are from summing to 1 after each iteration is printed as CSV.

local attn = require "attnscope"

local settings = require "library.arguments" {
  usage = "sharpening.lua [name=value...]",
  about = "The soft permutation of Sinkhorn attention, by temperature and iterations.",
  { "temperatures", "2,0.75,0.25,0.1", "numbers", "one row of panels each" },
  { "iterations", "1,2,8,50", "numbers", "the columns" },
  { "input", "", "text", "file; default: synthetic:normal of n" },
  { "n", "", "count", "length; default: the file's, or 64 of a generated one" },
  { "block", "8", "count", "tokens of a block" },
  { "seed", "0", "whole", "of every random draw" },
  { "fit", "false", "flag", "logits without parameters, from block means" },
  { "width", "6.75", "number", "inches" },
  { "out", "sharpening.png", "out", "the figure; - prints it" },
}

local input = settings.try(attn.load, settings.input or "synthetic:normal", {
  n = settings.n or not settings.input and 64 or nil, seed = settings.seed,
})
if input.n ~= input.m then
  settings.give_up(("%s has %d queries and %d keys, but sinkhorn sorts the blocks of one sequence; "
    .. "give q, k and v of one"):format(input.name, input.n, input.m), 1)
end
if input.causal then
  attn.log("info", "the input is causal; drawn not causal, since causal runs balance nothing")
end

local function run(temperature, iterations)
  return settings.try(attn.run, "sinkhorn", {
    input = input, seed = settings.seed,
    fit = settings.fit, block = settings.block, causal = false,
    temperature = temperature, sinkhorn_iters = math.tointeger(iterations) or iterations,
  })
end

-- The row error after each iteration of a run.
local function residuals(result)
  local out = {}
  for _, stage in ipairs(result:stages()) do
    out[#out + 1] = stage.traces["row error"]
  end
  return out
end

local temperatures, iterations, panels = settings.temperatures, settings.iterations, {}
print "temperature,iteration,row error"
for _, temperature in ipairs(temperatures) do
  local last
  for _, count in ipairs(iterations) do
    last = run(temperature, count)
    panels[#panels + 1] = {
      result = last, view = "permutation",
      title = ("temperature %g, %g iteration%s"):format(temperature, count,
        count == 1 and "" or "s"),
    }
  end
  for i, value in ipairs(residuals(last)) do
    print(("%g,%d,%.3g"):format(temperature, i, value))
  end
end

local figure = settings.try(attn.figure, {
  panels = panels, grid = ("%dx%d"):format(#temperatures, #iterations), shared_scale = true,
  title = "Sinkhorn: temperature sharpens, balancing equalises",
})
settings:write_figure(figure)
