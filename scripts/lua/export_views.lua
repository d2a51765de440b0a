-- export_views.lua -- every view of every mechanism on one input, as .npz files for Python.
--
--   attnscope lua export_views.lua [FOLDER] [name=value...]     --help lists the settings
--
--   import numpy; z = numpy.load("views/bigbird.npz"); z["weights"].shape
--
-- Each file holds output and all views of a run (indices, masks, weights, features, ...); the
-- file input.npz what they ran on; views.json says of each view its kind and meaning.

local attn = require "attnscope"

local settings = require "library.arguments" {
  usage = "export_views.lua [FOLDER] [name=value...]",
  about = "Every view of every mechanism as FOLDER/MECHANISM.npz, with FOLDER/views.json.",
  words = 1,
  { "mechanisms", "", "mechanisms", "ids, or texts like 'bigbird(window=5)'; default: all" },
  { "input", "", "text", "file; default: a generated one" },
  { "structure", "blocks", "text", "generator of it" },
  { "layer", "", "whole", "of the file; default: its first" },
  { "n", "", "count", "length; default: the file's, or 64 of a generated one" },
  { "d", "32", "count", "head size of the generated input" },
  { "heads", "2", "count", "heads of the generated input" },
  { "seed", "0", "whole", "of every random draw" },
  { "causal", "false", "flag", "run causally" },
  { "most", "67108864", "whole", "bytes of a view at most; a larger one is named and left out" },
}

local folder = settings[1] or "views"
if not os.execute("mkdir -p -- " .. settings.shell_word(folder)) then
  settings.give_up(folder .. ": the folder cannot be made", 1)
end

local function meanings(id)
  local out = {}
  for _, view in ipairs(attn.info(id).views) do
    out[view.name] = view
  end
  return out
end

local index, used = {}, {}

-- Names of files: bigbird.npz, then bigbird-2.npz.
local function file_name(id)
  used[id] = (used[id] or 0) + 1
  return used[id] == 1 and id or ("%s-%d"):format(id, used[id])
end

local function export(result)
  local tensors, described, known = { output = result.output }, {}, meanings(result.mechanism)
  for _, name in ipairs(result:view_names()) do
    local good, tensor = pcall(function() return result.views[name] end)
    if not good then
      attn.log("warning", "%s: %s left out: %s", result.text, name, tensor)
    elseif tensor and tensor:bytes() > settings.most then
      attn.log("warning", "%s: %s left out: %d bytes", result.text, name, tensor:bytes())
    elseif tensor then
      local view = known[name] or known[name:match("^[^@]+")] or {}
      tensors[name] = tensor
      described[name] = { kind = view.kind, help = view.help, shape = tensor.shape,
                          dtype = tensor.dtype }
    end
  end
  local name = file_name(result.mechanism)
  settings.must(attn.write_npz(("%s/%s.npz"):format(folder, name), tensors))
  index[name] = { mechanism = result.text, views = described,
                  title = attn.info(result.mechanism).title }
end

local input = settings:load(settings.structure)
settings.must(input:save(folder .. "/input.npz"))
local count = 0
for _, mechanism in ipairs(settings:chosen { needs_attn = false }) do
  local good, result, message = pcall(attn.run, mechanism, {
    input = input, seed = settings.seed, causal = settings.causal or nil,
  })
  if good and result then
    export(result)
    count = count + 1
    result:close()
  else
    settings.stop_if_interrupted()
    settings.leave_out(mechanism, good and message or result)
  end
end
settings.tell_left_out()
local file = settings.must(io.open(folder .. "/views.json", "w"))
settings.must(file:write(attn.json({ input = input.name, mechanisms = index }, 1), "\n"))
settings.must(file:close())
attn.log("info", "%s: %d mechanisms, input.npz, views.json", folder, count)
