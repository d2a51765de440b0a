-- failures.lua -- a laboratory of failures: for each family an input it is made for, and one that
-- breaks it.
--
--   attnscope lua failures.lua [name=value...]     --help lists the settings
--
-- The figure has a row for each family: exact attention and the mechanism on what suits it,
-- then on what breaks it.  The table says what of the mass is left, and why.

local attn = require "attnscope"

local settings = require "library.arguments" {
  usage = "failures.lua [name=value...]",
  about = "Inputs that break each family of mechanisms, beside inputs that suit it.",
  { "families", "", "list", "default: all; the names are in the first column" },
  { "n", "64", "count", "length" },
  { "d", "32", "count", "head size" },
  { "seed", "0", "whole", "of inputs and draws" },
  { "width", "6.75", "number", "inches" },
  { "theme", "light", "text", "light, dark, print, slide or colour-blind" },
  { "dpi", "200", "count", "dots an inch" },
  { "out", "failures.png", "out", "the figure; - prints it" },
  { "csv", "", "out", "the table; - for standard output" },
}

-- An input with what the mechanism relies on, and one without it.
local laboratory = {
  { family = "window", mechanism = "window(window=9)", good = "previous", bad = "needle",
    why = "one far key holds all the mass: no window reaches it" },
  { family = "blocks", mechanism = "block-local(block=8)", good = "blocks(block=8)",
    bad = "clusters", why = "what belongs together is scattered over all blocks" },
  { family = "strided", mechanism = "sparse-strided", good = "grid", bad = "sink",
    why = "the first token is seen by the few queries only that lie at the stride" },
  { family = "random", mechanism = "bigbird(window=3,global=0)", good = "previous", bad = "needle",
    why = "random keys hit the one that matters by luck only" },
  { family = "global tokens", mechanism = "longformer(window=5,global=1)", good = "sink",
    bad = "clusters", why = "what is sought is neither near nor one of the global tokens" },
  { family = "hashing", mechanism = "reformer(block=8,rounds=4)", good = "clusters",
    bad = "needle", why = "all queries look for one key: it is in one bucket, they are in many" },
  { family = "clustered queries", mechanism = "clustered", good = "blocks", bad = "previous",
    why = "queries of a cluster share one row, but each wants a key of its own" },
  { family = "sorted blocks", mechanism = "sinkhorn(block=8)", good = "blocks(block=8)",
    bad = "sink", why = "a permutation gives the first block to one other block, but all want it" },
  { family = "low rank", mechanism = "nystrom(n_landmarks=8)", good = "uniform", bad = "previous",
    why = "one key for each query is a matrix of full rank" },
  { family = "kernel", mechanism = "linear", good = "uniform", bad = "needle",
    why = "the feature map is smooth: it cannot make one key stand out" },
  { family = "pooled keys", mechanism = "memory-compressed", good = "local", bad = "previous",
    why = "one key of several that were merged cannot be chosen" },
  { family = "sparse normaliser", mechanism = "entmax", good = "delimiter", bad = "normal",
    why = "rows without a favourite lose their many small weights" },
}

local function wanted(entry)
  if #settings.families == 0 then
    return true
  end
  for _, name in ipairs(settings.families) do
    if entry.family == name then
      return true
    end
  end
  return false
end

local function run(mechanism, structure)
  local input = settings.try(attn.random, {
    structure = structure, n = settings.n, d = settings.d, seed = settings.seed,
  })
  return settings.try(attn.run, mechanism, { input = input, seed = settings.seed, quality = true })
end

local function panel(result, title)
  return { result = result, view = "weights", title = title }
end

local panels, rows = {}, {}
for _, entry in ipairs(laboratory) do
  if wanted(entry) then
    local row = { family = entry.family, mechanism = entry.mechanism, why = entry.why }
    for _, kind in ipairs { "good", "bad" } do
      local exact = run("full", entry[kind])
      local result = run(entry.mechanism, entry[kind])
      local quality = result.record.quality
      settings.tell_warnings(result.record)
      panels[#panels + 1] = panel(exact, entry[kind])
      panels[#panels + 1] = panel(result, ("%s: error %.2g"):format(result.mechanism,
        quality.output_error))
      row[kind] = entry[kind]
      row[kind .. " mass"], row[kind .. " error"] = quality.mass_mean, quality.output_error
    end
    rows[#rows + 1] = row
    attn.log("info", "%-17s %-15s error %.3g -> %-9s error %.3g  %s", entry.family, entry.good,
      row["good error"], entry.bad, row["bad error"], entry.why)
  end
end
if #rows == 0 then
  local names = {}
  for i, entry in ipairs(laboratory) do
    names[i] = entry.family
  end
  settings.give_up("families: expected some of " .. table.concat(names, ", "))
end

settings:write_figure(settings.try(attn.figure, {
  panels = panels, grid = ("%dx4"):format(#rows),
  title = "What suits a family, and what breaks it",
}))
if settings.csv then
  settings:write_csv(settings.csv, rows, { "family", "mechanism", "good", "good mass", "good error",
    "bad", "bad mass", "bad error", "why" })
end
