-- survey.lua -- the surveys' and the slides' pictures, redrawn: one PNG each and an index.
--
--   attnscope lua survey.lua [FOLDER] [name=value...]     --help lists the settings
--
-- FOLDER/index.md shows them with source, what to see and the command of each.

local attn = require "attnscope"

local settings = require "library.arguments" {
  usage = "survey.lua [FOLDER] [name=value...]", words = 1,
  about = "The surveys' pictures into FOLDER (default: survey), with an index.",
  { "presets", "", "list", "default: all (attnscope preset lists them)" },
  { "width", "", "number", "inches; default: each picture's own" },
  { "dpi", "200", "count", "dots an inch" },
  { "theme", "light", "text", "light, dark, print, slide or colour-blind" },
  { "format", "png", "text", "or txt" },
}
local folder = settings[1] or "survey"

local function chosen()
  local wanted, out = {}, {}
  for _, id in ipairs(settings.presets) do
    wanted[id] = true
  end
  for _, preset in ipairs(attn.presets()) do
    if (#settings.presets == 0 and not preset.model) or wanted[preset.id] then
      out[#out + 1] = preset
      wanted[preset.id] = nil
    end
  end
  local unknown = next(wanted)
  if unknown then
    settings.give_up(("unknown preset '%s'; attnscope preset lists them"):format(unknown))
  end
  return out
end

-- Opened for writing; the folder is made for the first file.
local function open(path)
  local file = io.open(path, "w")
  if not file and os.execute("mkdir -p -- " .. settings.shell_word(folder)) then
    file = io.open(path, "w")
  end
  return file or settings.give_up(path .. ": cannot be written", 1)
end

local options = { theme = settings.theme, dpi = settings.dpi, width = settings.width }
local presets = chosen()
local index <close> = open(folder .. "/index.md")
index:write("# The surveys' pictures, redrawn\n\nMade by `attnscope lua survey.lua`. ",
  "Each picture knows its command: `attnscope rerender FILE.png --check`.\n")
for _, preset in ipairs(presets) do
  local name = preset.id .. "." .. settings.format
  local figure <close> = settings.must(attn.figure { preset = preset.id })
  settings.must(figure:save(folder .. "/" .. name, options))
  index:write(("\n## %s\n\nAfter %s: %s.\n\n"):format(preset.title, preset.source, preset.help))
  index:write(settings.format == "png" and ("![%s](%s)\n"):format(preset.title, name)
    or ("[%s](%s)\n"):format(name, name))
  index:write(("\n    attnscope figure --preset %s\n    attnscope %s\n"):format(preset.id,
    preset.command))
end
attn.log("info", "%s: %d picture%s and index.md", folder, #presets, #presets == 1 and "" or "s")
