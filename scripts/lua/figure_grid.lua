-- figure_grid.lua -- one figure of every fixed and learned pattern on the same input.
--
--   attnscope lua figure_grid.lua [name=value...]
--
--   out=grid.png        .png or .txt; - prints text
--   classes=FP,LP       which classes of the surveys, or all
--   mechanisms=a,b      or these ids
--   input=FILE          default: synthetic:induction of n
--   n=64                length of the generated input
--   view=weights        default: each mechanism's most telling one
--   head=0 seed=0 cols=4 width=6.75 theme=light
--   sorted=true         tokens in the mechanism's own order
--
-- Mechanisms that cannot run on this input are left out and named.

local attn = require "attnscope"

local settings = {
  out = "grid.png", classes = "FP,LP", mechanisms = "", input = "", n = "64", view = "auto",
  head = "0", seed = "0", cols = "", width = "6.75", theme = "light", sorted = "false",
}

for _, word in ipairs(attn.args) do
  local name, value = word:match("^([%w_]+)=(.*)$")
  if not name or not settings[name] then
    error(("unknown setting '%s'; see the head of this script"):format(word), 0)
  end
  settings[name] = value
end

local function number(name)
  return tonumber(settings[name]) or error(name .. ": expected a number, got " .. settings[name], 0)
end

local function whole(name)
  return math.tointeger(number(name)) or error(name .. ": expected a whole number", 0)
end

local function items(text)
  local out = {}
  for item in text:gmatch("[^,]+") do
    out[#out + 1] = item
  end
  return out
end

local function chosen()
  if settings.mechanisms ~= "" then
    return items(settings.mechanisms)
  elseif settings.classes == "all" then
    return attn.mechanisms()
  end
  local out, seen = {}, {}
  for _, class in ipairs(items(settings.classes)) do
    for _, id in ipairs(attn.mechanisms { class = class }) do
      if not seen[id] then
        seen[id] = true
        local example = attn.info(id).example -- what cannot run without parameters brings some
        out[#out + 1] = example and ("%s(%s)"):format(id, example) or id
      end
    end
  end
  return out
end

local function open_input()
  if settings.input ~= "" then
    return assert(attn.load(settings.input, { seed = whole "seed" }))
  end
  return assert(attn.random { structure = "induction", n = whole "n", d = 32, seed = whole "seed" })
end

local function panels(input)
  local out = {}
  for _, id in ipairs(chosen()) do
    local good, result, message = pcall(attn.run, id, { input = input, seed = whole "seed" })
    if good and result then
      out[#out + 1] = {
        result = result, view = settings.view, title = attn.info(id:match("^[^(]+")).title,
        head = math.min(whole "head", input.heads - 1), sorted = settings.sorted == "true",
      }
    else
      attn.log("warning", "left out: %s", good and message or result)
    end
  end
  return out
end

local input = open_input()
local list = panels(input)
if #list == 0 then
  error("no mechanism could run on this input", 0)
end
local cols = settings.cols ~= "" and whole "cols" or math.min(4, #list)
local figure = attn.figure {
  panels = list, cols = cols, rows = (#list + cols - 1) // cols, legend = true,
  title = ("%d mechanisms, n = %d"):format(#list, input.n),
}
if settings.out == "-" then
  print(assert(figure:text { width = 100 }))
else
  assert(figure:save(settings.out, { width = number "width", theme = settings.theme }))
  attn.log("info", "%s: %d panels", settings.out, #list)
end
