-- figure_grid.lua -- one figure of many mechanisms on the same input.
--
--   attnscope lua figure_grid.lua [name=value...]     --help lists the settings
--
-- Mechanisms that cannot run on this input are left out and named.

local attn = require "attnscope"

local settings = require "library.arguments" {
  usage = "figure_grid.lua [name=value...]",
  about = "One figure of every fixed and learned pattern on the same input.",
  { "mechanisms", "", "mechanisms",
    "ids, or texts like 'bigbird(window=5)'; default: those of classes" },
  { "classes", "FP,LP", "list", "classes of the surveys, or all" },
  { "input", "", "text", "file; default: a generated one" },
  { "structure", "induction", "text", "generator of it" },
  { "layer", "", "whole", "of the file; default: its first" },
  { "n", "", "count", "length; default: the file's, or 64 of a generated one" },
  { "d", "32", "count", "head size of the generated input" },
  { "view", "auto", "text", "default: each mechanism's most informative one" },
  { "head", "0", "whole", "counted from 0" },
  { "seed", "0", "whole", "of every random draw" },
  { "sorted", "false", "flag", "tokens in the mechanism's own order" },
  { "cols", "", "count", "columns of panels; default: at most 4" },
  { "width", "6.75", "number", "inches" },
  { "theme", "light", "text", "light, dark, print, slide or colour-blind" },
  { "out", "grid.png", "out", "the figure; - prints it" },
}

local function chosen()
  if #settings.mechanisms > 0 or settings.classes[1] == "all" then
    return settings:chosen()
  end
  local out, seen = {}, {}
  for _, class in ipairs(settings.classes) do
    for _, text in ipairs(settings:chosen { class = class }) do
      if not seen[text] then
        seen[text] = true
        out[#out + 1] = text
      end
    end
  end
  return out
end

local function panels(input)
  local out = {}
  for _, id in ipairs(chosen()) do
    local good, result, message = pcall(attn.run, id, { input = input, seed = settings.seed })
    if good and result then
      out[#out + 1] = {
        result = result, view = settings.view, title = attn.info(id:match("^[^(]+")).title,
        head = math.min(settings.head, input.heads - 1), sorted = settings.sorted,
      }
    else
      settings.stop_if_interrupted()
      settings.leave_out(id, good and message or result)
    end
  end
  return out
end

local input = settings:load()
local list = panels(input)
settings.tell_left_out()
if #list == 0 then
  settings.give_up("no mechanism could run on this input", 1)
end
local cols = settings.cols or math.min(4, #list)
local figure = settings.try(attn.figure, {
  panels = list, grid = ("%dx%d"):format((#list + cols - 1) // cols, cols), legend = true,
  title = ("%d mechanisms, n = %d"):format(#list, input.n),
})
settings:write_figure(figure)
