-- seeds.lua -- how far random mechanisms spread over their draws: a figure, and the draws as CSV.
--
--   attnscope lua seeds.lua [name=value...]     --help lists the settings

local attn = require "attnscope"

local settings = require "library.arguments" {
  usage = "seeds.lua [name=value...]",
  about = "Output error and mass kept of mechanisms that draw at random, over many seeds.",
  { "mechanisms", "performer(features=32,stabilize=false),performer(features=128,stabilize=false),"
    .. "reformer(block=8),bigbird,random,linformer(k=16)", "mechanisms", "what draws" },
  { "seeds", "20", "count", "draws of each" },
  { "seed", "0", "whole", "the first of them" },
  { "input", "", "text", "file; default: a generated one" },
  { "structure", "clusters", "text", "generator (attnscope lists them in attn.generators())" },
  { "layer", "", "whole", "of the file; default: its first" },
  { "n", "", "count", "length; default: the file's, or 128 of a generated one" },
  { "d", "32", "count", "head size of the generated input" },
  { "plots", "error-seeds,mass-seeds", "list", "beside each other" },
  { "width", "6.75", "number", "inches" },
  { "theme", "light", "text", "light, dark, print, slide or colour-blind" },
  { "out", "seeds.png", "out", "the figure; - prints it" },
  { "csv", "", "out", "the draws, one a row; - for standard output" },
}

local input, results, rows = settings:load(settings.structure, 128), {}, {}

local function note_draws(mechanism)
  for i = 0, settings.seeds - 1 do
    local seed = settings.seed + i
    local result = settings.must(attn.run(mechanism, {
      input = input, seed = seed, quality = true,
    }))
    local quality = result.record.quality
    rows[#rows + 1] = { mechanism = mechanism, seed = seed, error = quality.output_error,
                        mass = quality.mass_mean, tv = quality.total_variation }
    result:close()
  end
end

for _, mechanism in ipairs(settings.mechanisms) do
  local good, result, message = pcall(attn.run, mechanism, {
    input = input, seed = settings.seed, seeds = settings.seeds,
  })
  if good and result then
    results[#results + 1] = result
    settings.tell_warnings(result.record)
    if settings.csv then
      note_draws(mechanism)
    end
    attn.log("info", "%-28s error %.4g", mechanism, result.record.quality.output_error)
  else
    settings.stop_if_interrupted()
    settings.leave_out(mechanism, good and message or result)
  end
end
settings.tell_left_out()
if #results == 0 then
  settings.give_up("no mechanism could run on this input", 1)
end

local panels = {}
for i, plot in ipairs(settings.plots) do
  panels[i] = { result = results[1], view = ("plot(%s)"):format(plot),
                with = { table.unpack(results, 2) } }
end
settings:write_figure(settings.try(attn.figure, {
  panels = panels, grid = ("1x%d"):format(#panels),
  title = ("%d draws of each, n = %d"):format(settings.seeds, input.n),
}))
if settings.csv then
  settings:write_csv(settings.csv, rows, { "mechanism", "seed", "error", "mass", "tv" })
end
