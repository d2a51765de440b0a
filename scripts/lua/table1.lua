-- table1.lua -- the surveys' Table 1, measured: claimed exponents of n beside counted and timed.
--
--   attnscope lua table1.lua [name=value...]     --help lists the settings
--
-- A row says "as claimed" when the claimed exponent lies within the tolerance of the
-- counted FLOPs, which do not depend on the machine.  Each row is printed as it is measured; after
-- Ctrl-C the table is of what was measured so far.

local attn = require "attnscope"
local growth = require "library.growth"

local settings = require "library.arguments" {
  usage = "table1.lua [name=value...]",
  about = "The exponents of n in FLOPs, time and memory of each mechanism, beside the claimed one.",
  { "mechanisms", "", "list", "default: all that the surveys' tables name" },
  { "n", "256:2048:x2", "lengths", "three at least" },
  { "d", "64", "count", "head size" },
  { "repeat", "3", "count", "timed runs at least" },
  { "tolerance", "0.15", "number", "of an exponent" },
  { "out", "table1.md", "out", "Markdown (.md) or .csv; - prints Markdown" },
  { "records", "", "out", "file of the records (.jsonl), which makes a second start go on" },
}

if #settings.n < 3 then
  settings.give_up("n: an exponent needs three lengths")
end

local scratch = not settings.records and os.tmpname() or nil
local file = settings.records or scratch .. ".jsonl"
local options = { n = settings.n, d = settings.d, ["repeat"] = settings["repeat"], output = file,
                  resume = settings.records and io.open(settings.records) ~= nil or nil }
if #settings.mechanisms == 0 then
  options[1] = "table1"
else
  table.move(settings.mechanisms, 1, #settings.mechanisms, 1, options)
end

local function written(fit)
  if not fit then
    return "n/a"
  end
  return fit.lo and ("%.2f (%.2f to %.2f)"):format(fit.alpha, fit.lo, fit.hi)
    or ("%.2f"):format(fit.alpha)
end

local function verdict(claimed, fit)
  if not claimed or not fit then
    return "n/a"
  end
  local away = fit.alpha - claimed
  return math.abs(away) <= settings.tolerance and "as claimed"
    or away < 0 and "below the claim" or "above the claim"
end

local columns = { "mechanism", "class", "claimed time", "claimed exponent", "FLOPs", "time",
                  "memory", "verdict" }

local function row_of(name, list)
  local info = attn.info(name)
  local flops = growth(list, function(r) return r.flops.counted end)
  return {
    mechanism = name, class = info.class, ["claimed time"] = info.claim_time,
    ["claimed exponent"] = info.claim_exponent or "n/a", FLOPs = written(flops),
    time = written(growth(list, function(r) return r.time_ms.median end)),
    memory = written(growth(list, function(r) return r.memory.arena_peak end)),
    verdict = verdict(info.claim_exponent, flops),
  }
end

local groups, order = {}, {} -- the records of each mechanism, the names as they came
local lengths = {}
for _, n in ipairs(settings.n) do
  lengths[n] = true
end

-- Keeps one record of each length; a file may hold other lengths, and older records of a point.
local function take(record)
  local name = record.mechanism
  if (record.n and not lengths[record.n]) or (record.d and record.d ~= settings.d) then
    return
  elseif not groups[name] then
    groups[name] = {}
    order[#order + 1] = name
  end
  local list, at = groups[name], 1
  while list[at] and list[at].n ~= record.n do
    at = at + 1
  end
  list[at] = record
  return list
end

-- Records that a resumed sweep has already; failed points run again.
if options.resume then
  for _, record in ipairs(attn.read_sweep(file) or {}) do
    if record.status == "OK" then
      take(record)
    end
  end
end

-- Reports the measured point, and the row once its mechanism has all points.
function options.progress(done, total, record, left)
  local list = take(record) or {}
  local wait = left and (", %.0f s left"):format(left) or ""
  if #list < #settings.n then
    local time = record.time_ms and (record.time_ms.median or record.time_ms.first)
    attn.log("info", "%d of %d: %s, n = %d, %s%s", done, total, record.mechanism, record.n,
      record.status == "OK" and time and ("%.3g ms"):format(time) or record.status, wait)
    return
  end
  local row = row_of(record.mechanism, list)
  attn.log("info", "%d of %d: %s grows by %s in FLOPs, %s in time, %s in memory; %s%s", done, total,
    row.mechanism, row.FLOPs, row.time, row.memory, row.verdict, wait)
end

-- Ctrl-C ends the sweep, and then raises; what was measured is in the file.
local function measured()
  local good, records, message = pcall(attn.sweep, options)
  if not (good and records) then
    local why = attn.interrupted() and "interrupted" or good and message or records
    records = attn.interrupted() and attn.read_sweep(file)
    attn.log("warning", "%s", why)
  end
  if scratch then
    os.remove(scratch)
    os.remove(file)
  end
  return records or settings.give_up("nothing was measured", 1)
end

local records = measured()
for _, record in ipairs(records) do
  take(record)
end
local rows = {}
for _, name in ipairs(order) do
  rows[#rows + 1] = row_of(name, groups[name])
end

local function markdown()
  local lines = {
    "| " .. table.concat(columns, " | ") .. " |", "|" .. (" --- |"):rep(#columns),
  }
  for _, row in ipairs(rows) do
    local cells = {}
    for i, column in ipairs(columns) do
      cells[i] = tostring(row[column]):gsub("|", "\\|")
    end
    lines[#lines + 1] = "| " .. table.concat(cells, " | ") .. " |"
  end
  return ("# Claimed and measured growth\n\nExponents of n over n = %s, d = %d, with 95 %% "
    .. "intervals; measured on %s.\n\n"):format(table.concat(settings.n, ", "), settings.d,
      attn.environment().cpu or "this machine") .. table.concat(lines, "\n") .. "\n"
end

if settings.out:match("%.csv$") then
  settings:write_csv(settings.out, rows, columns)
elseif settings.out == "-" then
  io.stdout:write(markdown())
else
  local file = settings.must(io.open(settings.out, "w"))
  settings.must(file:write(markdown()))
  settings.must(file:close())
  attn.log("info", "%s: %d mechanisms", settings.out, #rows)
end
