-- advise.lua -- for every head: the cheapest mechanism that keeps a given share of the mass.
--
--   attnscope lua advise.lua [name=value...]     --help lists the settings
--
-- Each head runs alone through every candidate.  Kept is the softmax mass of exact attention
-- on the keys that the candidate looks at, mean over the queries; FLOPs are counted.  A candidate
-- of several passes may look at all keys and still give something else: `error` leaves it out.  The
-- crossover is the length from which the candidate needs fewer FLOPs than exact attention,
-- from power laws through both over the lengths of `fit`.  After Ctrl-C the heads that were
-- finished are written.

local attn = require "attnscope"

local settings = require "library.arguments" {
  usage = "advise.lua [name=value...]",
  about = "For every head the cheapest mechanism that keeps a share of the mass, as CSV.",
  { "input", "", "text", "file; default: the shipped sample" },
  { "layer", "0", "whole", "of the file" },
  { "n", "", "count", "cuts the file" },
  { "keep", "0.95", "share", "share of the mass, mean over the queries" },
  { "error", "0.5", "number", "of the output at most: keys may be seen and weighed otherwise" },
  { "mechanisms", "window(window=9),window(window=33),window(window=129),dilated,bigbird,"
    .. "longformer,longformer(window=33,global=4),cascade,sparse-strided,sparse-fixed,"
    .. "axial(combine=union),logsparse,reformer(block=8),routing,adaptive-span", "mechanisms",
    "candidates" },
  { "fit", "128:512:x2", "lengths", "for the crossover" },
  { "seed", "0", "whole", "of every random draw" },
  { "all", "false", "flag", "a row for every candidate, not only the chosen one" },
  { "out", "advice.csv", "out", "the file; - for standard output" },
}

local function head_of(input, h)
  local cut = { { h, h + 1 } }
  return assert(attn.input { q = input.q:slice(cut):copy(), k = input.k:slice(cut):copy(),
                             v = input.v:slice(cut):copy(), causal = input.causal })
end

local function load()
  local path = settings.input or attn.run("full").input.name -- the sample
  return settings.must(attn.load(path, { layer = settings.layer, n = settings.n }))
end

-- FLOPs as c n^alpha, from counts of short generated inputs; nil: they do not run.
local laws, head_size = {}, nil
local function law(mechanism)
  if laws[mechanism] == nil then
    local xs, ys = {}, {}
    for _, n in ipairs(settings.fit) do
      local options = { n = n, d = head_size, seed = settings.seed }
      local good, result = pcall(attn.run, mechanism, options)
      if good and result then
        xs[#xs + 1], ys[#ys + 1] = n, result.record.flops.counted
      end
    end
    settings.raise_if_interrupted() -- it is not the mechanism that has no law
    laws[mechanism] = #xs > 1 and attn.fit(xs, ys, { boot = 0 }) or false
  end
  return laws[mechanism]
end

-- "<= 128", a length, or "never".
local function crossover(mechanism)
  local own, exact = law(mechanism), law("full")
  if not own or not exact then
    return "n/a"
  end
  local first = settings.fit[1]
  if own.c * first ^ own.alpha < exact.c * first ^ exact.alpha then
    return "<= " .. first
  elseif own.alpha >= exact.alpha then
    return "never"
  end
  return ("%.0f"):format((own.c / exact.c) ^ (1 / (exact.alpha - own.alpha)))
end

local function try(mechanism, input)
  local good, result, message = pcall(attn.run, mechanism, {
    input = input, seed = settings.seed, quality = true,
  })
  if not good or not result then
    return nil, good and message or result
  end
  local record = result.record
  return { kept = record.quality.mass_mean, worst = record.quality.mass_min,
           error = record.quality.output_error, flops = record.flops.counted }
end

local function suits(tried)
  return tried.kept and tried.kept >= settings.keep and tried.error <= settings.error
end

local columns = { "layer", "head", "mechanism", "kept", "kept at worst", "output error", "FLOPs",
                  "of exact", "crossover n", "chosen" }
local input, by_head, said = load(), {}, {}
head_size = input.d

-- The candidates that ran, the cheapest of them that suits, and exact attention.
local function advise(one)
  local exact, why = try("full", one)
  local best = { mechanism = "full", tried = exact }
  local candidates = {}
  for _, mechanism in ipairs(exact and settings.mechanisms or {}) do
    local tried
    tried, why = try(mechanism, one)
    if tried then
      candidates[#candidates + 1] = { mechanism = mechanism, tried = tried }
      if suits(tried) and tried.flops < best.tried.flops then
        best = candidates[#candidates]
      end
    end
    settings.raise_if_interrupted()
    if not tried and not said[mechanism] then
      said[mechanism] = true
      attn.log("warning", "left out: %s: %s", mechanism, why)
    end
  end
  settings.raise_if_interrupted() -- `full` alone may have been tried
  settings.must(exact, why)
  candidates[#candidates + 1] = best.mechanism == "full" and best or nil
  return candidates, best, exact
end

local function row(h, c, best, exact)
  return {
    layer = settings.layer, head = h, mechanism = c.mechanism, kept = c.tried.kept,
    ["kept at worst"] = c.tried.worst, ["output error"] = c.tried.error, FLOPs = c.tried.flops,
    ["of exact"] = c.tried.flops / exact.flops,
    ["crossover n"] = c.mechanism == "full" and "" or crossover(c.mechanism), chosen = c == best,
  }
end

-- Its rows all at once: none of a head that Ctrl-C came into.
local function take(h)
  local one <close> = head_of(input, h)
  local candidates, best, exact = advise(one)
  local rows = {}
  for _, c in ipairs(candidates) do
    if settings.all or c == best then
      rows[#rows + 1] = row(h, c, best, exact)
    end
  end
  by_head[h + 1] = rows
  attn.log("info", "head %d: %s keeps %.4f at %.0f %% of the FLOPs", h, best.mechanism,
    best.tried.kept or 1, 100 * best.tried.flops / exact.flops)
end

local function all_heads()
  for h = 0, input.heads - 1 do
    take(h)
  end
end

if not settings.until_stopped(all_heads) then
  attn.log("warning", "interrupted: %d of %d heads", #by_head, input.heads)
end
local rows = {}
for _, own in ipairs(by_head) do
  table.move(own, 1, #own, #rows + 1, rows)
end
settings:write_csv(settings.out, rows, columns)
