-- sweep_csv.lua -- cost of mechanisms over n: a CSV file, and exponents beside the claims.
--
--   attnscope lua sweep_csv.lua [name=value...]     --help lists the settings
--
-- A point that fails is a row with its status.  After Ctrl-C the rows measured
-- so far are written.

local attn = require "attnscope"
local growth = require "library.growth"

local settings = require "library.arguments" {
  usage = "sweep_csv.lua [name=value...]",
  about = "Time, FLOPs and memory of mechanisms over n as CSV; exponents beside the claims.",
  { "mechanisms", "", "mechanisms", "ids, or texts like 'bigbird(window=5)'; default: all" },
  { "n", "256:2048:x2", "lengths", "from:to:xFACTOR, from:to:+STEP or a list" },
  { "d", "64", "count", "head size of the generated input" },
  { "heads", "1", "count", "its heads" },
  { "seed", "0", "whole", "of every random draw" },
  { "structure", "normal", "text", "its generator" },
  { "causal", "false", "flag", "run causally what can" },
  { "repeat", "3", "count", "timed runs at least" },
  { "quality", "false", "flag", "compare with full attention as well" },
  { "out", "sweep.csv", "out", "the file; - for standard output" },
}

local columns = {
  "mechanism", "n", "d", "heads", "causal", "status", "time_ms.median", "time_ms.q1", "time_ms.q3",
  "time_ms.first", "flops.counted", "memory.arena_peak", "memory.heap_peak",
  "quality.mass_mean", "quality.output_error", "message",
}

local function id_of(text)
  return text:match("^[^(]+")
end

local rows, by_mechanism = {}, {}

local function measure(mechanism, input)
  local causal = settings.causal and attn.info(id_of(mechanism)).causal
  local good, record, message, _, failed = pcall(attn.profile, mechanism, {
    input = input, causal = causal, seed = settings.seed,
    quality = settings.quality,
  }, { ["repeat"] = settings["repeat"] })
  if not good then
    return { status = "FAILED", message = record }
  end
  return record or failed or { status = "FAILED", message = message }
end

local function sweep(chosen)
  for _, n in ipairs(settings.n) do
    local input = settings.must(attn.random {
      n = n, d = settings.d, heads = settings.heads, seed = settings.seed,
      structure = settings.structure,
    })
    for _, mechanism in ipairs(chosen) do
      local row = measure(mechanism, input)
      settings.raise_if_interrupted() -- it is no failure of the mechanism
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

local function exponent(list, cost)
  local fit = growth(list, cost)
  return fit and ("%.2f +- %.2f"):format(fit.alpha, fit.stderr) or "-"
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
      attn.info(id_of(mechanism)).claim_time or "-"))
  end
end

local chosen = settings:chosen { needs_x = false, needs_attn = false }
local done = settings.until_stopped(sweep, chosen)
local to_stdout = settings.out == "-"

settings.must(attn.csv(to_stdout and io.stdout or settings.out, rows, columns))
report(chosen, to_stdout and io.stderr or io.stdout)
if not done then
  settings.give_up("interrupted", 1)
end
