-- sharpening.lua -- the soft permutation of Sinkhorn attention, by temperature and iterations.
--
--   attnscope lua sharpening.lua [name=value...]
--
--   out=sharpening.png            .png or .txt; - prints text
--   temperatures=2,0.75,0.25,0.1  one row of panels each
--   iterations=1,2,8,50           the columns
--   input=FILE                    default: synthetic:normal of n
--   n=64 block=8 seed=0 width=6.75
--   fit=false                     true: logits without parameters, from block means
--
-- How far the rows are from summing to 1 after each iteration is printed as CSV.

local attn = require "attnscope"

local settings = {
  out = "sharpening.png", temperatures = "2,0.75,0.25,0.1", iterations = "1,2,8,50", input = "",
  n = "64", block = "8", seed = "0", width = "6.75", fit = "false",
}

for _, word in ipairs(attn.args) do
  local name, value = word:match("^([%w_]+)=(.*)$")
  if not name or not settings[name] then
    error(("unknown setting '%s'; see the head of this script"):format(word), 0)
  end
  settings[name] = value
end

local function number(name, text)
  return tonumber(text) or error(("%s: expected a number, got %s"):format(name, text), 0)
end

local function numbers(name)
  local out = {}
  for item in settings[name]:gmatch("[^,]+") do
    out[#out + 1] = number(name, item)
  end
  return out
end

local function whole(name)
  return math.tointeger(number(name, settings[name])) or error(name .. ": expected a whole number", 0)
end

local function run(temperature, iterations)
  return assert(attn.run("sinkhorn", {
    input = settings.input ~= "" and settings.input or "synthetic:normal", n = whole "n",
    seed = whole "seed", fit = settings.fit == "true", block = whole "block",
    temperature = temperature, sinkhorn_iters = math.tointeger(iterations) or iterations,
  }))
end

-- The row error after each iteration of a run.
local function residuals(result)
  local out = {}
  for _, stage in ipairs(result:stages()) do
    out[#out + 1] = stage.traces["row error"]
  end
  return out
end

local temperatures, iterations, panels = numbers "temperatures", numbers "iterations", {}
print "temperature,iteration,row error"
for _, temperature in ipairs(temperatures) do
  local last
  for _, count in ipairs(iterations) do
    last = run(temperature, count)
    panels[#panels + 1] = {
      result = last, view = "permutation",
      title = ("temperature %g, %g iteration%s"):format(temperature, count, count == 1 and "" or "s"),
    }
  end
  for i, value in ipairs(residuals(last)) do
    print(("%g,%d,%.3g"):format(temperature, i, value))
  end
end

local figure = attn.figure {
  panels = panels, rows = #temperatures, cols = #iterations, shared_scale = true,
  title = "Sinkhorn: the permutation sharpens",
}
if settings.out == "-" then
  print(assert(figure:text { width = 100 }))
else
  assert(figure:save(settings.out, { width = number("width", settings.width) }))
  attn.log("info", "%s: %d panels", settings.out, #panels)
end
