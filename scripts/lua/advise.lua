-- advise.lua -- for every head: the cheapest mechanism that keeps a given share of the mass.
--
--   attnscope lua advise.lua [name=value...]     --help lists the settings
--
-- Each query head runs alone, with the key head of its group, through every candidate.  Kept is
-- the softmax mass of exact attention on the keys that the candidate looks at, mean over the
-- queries; FLOPs are counted.  A candidate
-- of several passes may look at all keys and still give something else: `error` leaves it out.  The
-- crossover is the length from which the candidate needs fewer FLOPs than exact attention,
-- from power laws through both over the lengths of `fit`.  With `time` or `memory` each candidate
-- is measured first, and one that exceeds them is not compared, since comparing takes long.  After
-- Ctrl-C the heads that were finished are written.

local attn = require "attnscope"

local settings = require "library.arguments" {
  usage = "advise.lua [name=value...]",
  about = "For every head the cheapest mechanism that keeps a share of the mass, as CSV.",
  { "input", "", "text", "file; default: the shipped sample" },
  { "layer", "", "whole", "of the file; default: its first" },
  { "n", "", "count", "cuts the file" },
  { "keep", "0.95", "share", "share of the mass, mean over the queries" },
  { "error", "0.5", "number", "of the output at most: keys may be seen and weighed otherwise" },
  { "time", "", "number", "milliseconds of a run at most, of one head" },
  { "memory", "", "number", "MiB of its own memory at most, of one head" },
  { "mechanisms", "window(window=9),window(window=33),window(window=129),dilated,bigbird,"
    .. "longformer,longformer(window=33,global=4),cascade,sparse-strided,sparse-fixed,"
    .. "axial(combine=union),logsparse,reformer(block=8),routing,adaptive-span", "mechanisms",
    "candidates" },
  { "fit", "128:512:x2", "lengths", "for the crossover" },
  { "seed", "0", "whole", "of every random draw" },
  { "all", "false", "flag", "a row for every candidate, not only the chosen one" },
  { "out", "advice.csv", "out", "the file; - for standard output" },
}

-- Query head h with the key head of its group, and all that the file says of them.
local function head_of(input, h)
  local group = h // (input.heads // input.kv_heads)
  local function one(t, head)
    return t:slice({ { head, head + 1 } }):copy()
  end
  return assert(attn.input { q = one(input.q, h), k = one(input.k, group), v = one(input.v, group),
                             x = input.x, segments = input.segments, tokens = input.tokens,
                             causal = input.causal, scale = input.scale })
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
    laws[mechanism] = #xs > 1 and attn.fit(xs, ys) or false
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

local function run(mechanism, input, options)
  options.input, options.seed = input, settings.seed
  local good, result, message = pcall(attn.run, mechanism, options)
  if not good or not result then
    return nil, good and message or result
  end
  return result.record
end

-- Measured milliseconds and MiB, and whether they exceed the settings `time` and `memory`.
local budget = settings.time or settings.memory
local function cost(mechanism, input)
  local record, why = run(mechanism, input, { ["repeat"] = 1 })
  if not record then
    return nil, why
  end
  local c = { flops = record.flops.counted, time = record.time_ms.median,
              memory = record.memory.arena_peak / 2 ^ 20 }
  c.beyond = c.time > (settings.time or math.huge) or c.memory > (settings.memory or math.huge)
  return c
end

local function try(mechanism, input)
  local tried, why, record = {}, nil, nil
  if budget then
    tried, why = cost(mechanism, input)
    if not tried or tried.beyond then
      return tried, why
    end
  end
  record, why = run(mechanism, input, { quality = true })
  if not record then
    return nil, why
  end
  tried.kept, tried.worst = record.quality.mass_mean, record.quality.mass_min
  tried.error, tried.flops = record.quality.output_error, record.flops.counted
  return tried
end

local function suits(tried)
  return not tried.beyond and tried.kept and tried.kept >= settings.keep
    and tried.error <= settings.error
end

local columns = { "layer", "head", "mechanism", "kept", "kept at worst", "output error", "FLOPs",
                  "of exact", "crossover n", "chosen", "runner-up" }
if budget then
  table.insert(columns, #columns - 1, "time ms")
  table.insert(columns, #columns - 1, "MiB")
end
local input, by_head, said = load(), {}, {}
head_size = input.d

-- Long inputs take minutes: every ten seconds a line says how far it is.
local began, spoke = os.time(), os.time()
local function say(h, at)
  local now = os.time()
  if os.difftime(now, spoke) >= 10 then
    local all = input.heads * #settings.mechanisms
    local done = h * #settings.mechanisms + at
    spoke = now
    attn.log("info", "%d of %d runs, %.0f s, about %.0f s left", done, all,
      os.difftime(now, began), os.difftime(now, began) * (all - done) / done)
  end
end

local function percent(tried, exact)
  return ("%.0f %% of the FLOPs"):format(100 * tried.flops / exact.flops)
end

-- What a reader needs to know when no candidate suits: which comes closest, and what it lacks.
local function closest(candidates)
  local near
  for _, c in ipairs(candidates) do
    if c.mechanism ~= "full" and c.mechanism ~= "none" and c.tried.kept
      and (not near or c.tried.kept > near.tried.kept) then
      near = c
    end
  end
  return near and (" (%s comes closest: it keeps %.4f, output error %.2g)"):format(near.mechanism,
    near.tried.kept, near.tried.error) or ""
end

-- The candidates that ran, the cheapest of them that suits, and exact attention.
local function advise(h, one)
  local exact, why = try("full", one)
  local best, second = { mechanism = "full", tried = exact }, nil
  local candidates = {}
  if exact and exact.beyond then
    best = { mechanism = "none", tried = { flops = math.huge } }
  end
  for at, mechanism in ipairs(exact and settings.mechanisms or {}) do
    local tried
    tried, why = try(mechanism, one)
    if tried then
      candidates[#candidates + 1] = { mechanism = mechanism, tried = tried }
      local this = candidates[#candidates]
      if suits(tried) and tried.flops < best.tried.flops then
        best, second = this, best
      elseif suits(tried) and (not second or tried.flops < second.tried.flops) then
        second = this
      end
      say(h, at)
    end
    settings.raise_if_interrupted()
    if not tried and not said[mechanism] then
      said[mechanism] = true
      settings.leave_out(mechanism, why)
    end
  end
  settings.tell_left_out()
  settings.raise_if_interrupted() -- `full` alone may have been tried
  settings.must(exact, why)
  if best.mechanism == "none" then
    best.tried = {}
  end
  if best.mechanism == "full" or best.mechanism == "none" then
    candidates[#candidates + 1] = best
  end
  if second and (second.mechanism == "full" or second.mechanism == "none") then
    second = nil -- exact attention is no runner-up
  end
  return candidates, best, exact, second
end

local function row(h, c, best, exact, second)
  return {
    layer = input.layer, head = h, mechanism = c.mechanism, kept = c.tried.kept,
    ["kept at worst"] = c.tried.worst, ["output error"] = c.tried.error, FLOPs = c.tried.flops,
    ["of exact"] = c.tried.flops and c.tried.flops / exact.flops, ["time ms"] = c.tried.time,
    ["crossover n"] = (c.mechanism == "full" or c.mechanism == "none") and "" or
      crossover(c.mechanism), MiB = c.tried.memory, chosen = c == best,
    ["runner-up"] = c == best and second and second.mechanism or "",
  }
end

-- Adds all rows of a head at once: Ctrl-C leaves no incomplete head.
local function take(h)
  local one <close> = head_of(input, h)
  local candidates, best, exact, second = advise(h, one)
  local rows = {}
  for _, c in ipairs(candidates) do
    if settings.all or c == best then
      rows[#rows + 1] = row(h, c, best, exact, second)
    end
  end
  by_head[h + 1] = rows
  if best.mechanism == "none" then
    attn.log("info", "head %d: none of these suits within the budget, nor does exact attention%s",
      h, closest(candidates))
  elseif best.mechanism == "full" then
    attn.log("info", "head %d: none of these keeps %g for fewer FLOPs%s; exact attention it is",
      h, settings.keep, closest(candidates))
  else
    attn.log("info", "head %d: %s keeps %.4f at %s%s", h, best.mechanism, best.tried.kept,
      percent(best.tried, exact), second and ("; then %s, %s"):format(second.mechanism,
      percent(second.tried, exact)) or "")
  end
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
