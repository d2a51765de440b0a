-- sweep_csv.lua -- cost of mechanisms over n: a CSV file, and exponents beside the claims.
--
--   attnscope lua sweep_csv.lua [name=value...]
--
--   mechanisms=full,bigbird   ids, or texts like 'bigbird(window=5)'; default: all
--   n=256:2048:x2             from:to:xFACTOR, from:to:+STEP or a list 256,512
--   d=64 heads=1 seed=0       of the generated input
--   structure=normal          its generator (attn.generators lists them)
--   causal=true               run them causally where they can
--   reps=3                    timed runs at least
--   quality=true              compare with full attention as well
--   out=sweep.csv             the file; - for standard output
--
-- A point that fails is a row with its status.  After Ctrl-C the rows measured
-- so far are written.

local attn = require "attnscope"

local settings = {
  mechanisms = "", n = "256:2048:x2", d = "64", heads = "1", seed = "0", structure = "normal",
  causal = "false", reps = "3", quality = "false", out = "sweep.csv",
}

local columns = {
  "mechanism", "n", "d", "heads", "causal", "status", "time_ms.median", "time_ms.q1", "time_ms.q3",
  "time_ms.first", "flops.counted", "memory.arena_peak", "memory.heap_peak",
  "quality.mass_mean", "quality.output_error", "message",
}

for _, word in ipairs(attn.args) do
  local name, value = word:match("^([%w_]+)=(.*)$")
  if not name or not settings[name] then
    error(("unknown setting '%s'; see the head of this script"):format(word), 0)
  end
  settings[name] = value
end

local function whole(text, what)
  return math.tointeger(tonumber(text))
    or error(what .. ": expected a whole number, got " .. text, 0)
end

-- "256:2048:x2" or "256,512,1024"
local function lengths(text)
  local out = {}
  local from, to, kind, step = text:match("^(%d+):(%d+):([x+])(%d+)$")
  if not from then
    for item in text:gmatch("[^,]+") do
      out[#out + 1] = whole(item, "n")
    end
    return out
  end
  local n, last, by = whole(from, "n"), whole(to, "n"), whole(step, "n")
  if by < (kind == "x" and 2 or 1) or n < 1 then
    error("n: '" .. text .. "' does not end", 0)
  end
  while n <= last do
    out[#out + 1] = n
    n = kind == "x" and n * by or n + by
  end
  return out
end

-- Commas inside parentheses belong to a mechanism's parameters.
local function mechanisms(text)
  local out, depth, item = {}, 0, ""
  if text == "" then
    for _, id in ipairs(attn.mechanisms { needs_x = false, needs_attn = false }) do
      local example = attn.info(id).example -- what cannot run without parameters brings some
      out[#out + 1] = example and ("%s(%s)"):format(id, example) or id
    end
    return out
  end
  for c in (text .. ","):gmatch(".") do
    depth = depth + (c == "(" and 1 or 0) - (c == ")" and 1 or 0)
    if c == "," and depth == 0 then
      out[#out + 1], item = item, ""
    else
      item = item .. c
    end
  end
  return out
end

local function id_of(text)
  return text:match("^[^(]+")
end

local rows, by_mechanism = {}, {}

local function measure(mechanism, input)
  local causal = settings.causal == "true" and attn.info(id_of(mechanism)).causal
  local good, record, message, _, failed = pcall(attn.profile, mechanism, {
    input = input, causal = causal, seed = whole(settings.seed, "seed"),
    quality = settings.quality == "true",
  }, { reps = whole(settings.reps, "reps") })
  if not good then
    return { status = "FAILED", message = record }
  end
  return record or failed or { status = "FAILED", message = message }
end

local function sweep(chosen)
  for _, n in ipairs(lengths(settings.n)) do
    local input = assert(attn.random {
      n = n, d = whole(settings.d, "d"), heads = whole(settings.heads, "heads"),
      seed = whole(settings.seed, "seed"), structure = settings.structure,
    })
    for _, mechanism in ipairs(chosen) do
      local row = measure(mechanism, input)
      row.mechanism, row.n = mechanism, n
      rows[#rows + 1] = row
      by_mechanism[mechanism] = by_mechanism[mechanism] or {}
      table.insert(by_mechanism[mechanism], row)
      attn.log("info", "%-24s n=%-7d %s", mechanism, n, row.status == "OK"
        and ("%.3f ms"):format(row.time_ms.median or row.time_ms.first) or row.status)
    end
    input:close()
  end
end

local function exponent(list, value)
  local xs, ys = {}, {}
  for _, row in ipairs(list) do
    local y = row.status == "OK" and value(row)
    if y and y > 0 then
      xs[#xs + 1], ys[#ys + 1] = row.n, y
    end
  end
  if #xs < 3 then
    return "-"
  end
  local fit = attn.fit(xs, ys)
  return ("%.2f +- %.2f"):format(fit.alpha, fit.stderr)
end

local function report(chosen, out)
  out:write(("%-24s %-16s %-16s %-16s %s\n"):format("exponent of n in", "time", "FLOPs", "memory",
    "claimed time"))
  for _, mechanism in ipairs(chosen) do
    local list = by_mechanism[mechanism] or {}
    out:write(("%-24s %-16s %-16s %-16s %s\n"):format(mechanism,
      exponent(list, function(row) return row.time_ms.median end),
      exponent(list, function(row) return row.flops.counted end),
      exponent(list, function(row) return row.memory.arena_peak end),
      attn.info(id_of(mechanism)).claim.time or "-"))
  end
end

local chosen = mechanisms(settings.mechanisms)
local done, why = pcall(sweep, chosen)
local to_stdout = settings.out == "-"

assert(attn.csv(to_stdout and io.stdout or settings.out, rows, columns))
report(chosen, to_stdout and io.stderr or io.stdout)
if not done then
  error(why, 0)
end
