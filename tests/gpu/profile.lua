-- tests/gpu/profile.lua -- the profile of whole runs on a GPU: what belongs together agrees.
-- Prints a line a check; the last one is "failures N".
local failures = 0
local function check(good, ...)
  print(good and "ok" or "FAILED", string.format(...))
  if not good then failures = failures + 1 end
end

-- Share of the matrix work as counted that the hardware may do besides: none of the 128 rows of
-- a tile is beyond n = 2048, and a head of 64 or 128 is a multiple of every tile.
local MATRIX = 0.02

local function one(name, options)
  options.device, options["repeat"] = "cuda", 5
  local r = assert(attn.run(name, options))
  local record = r.record
  local gpu = record.gpu
  check(record.status == "OK" and gpu, "%s runs on %s", name, gpu and gpu.name or "nothing")
  check(gpu.events.span_ms, "%s: events %s", name, gpu.events.span_ms or gpu.events.lacks)
  if gpu.activity.lacks then
    print("skipped", name, "activity", gpu.activity.lacks)
  else
    local staged = 0
    for _, kernel in ipairs(gpu.activity.kernels) do
      staged = staged + (kernel.stage and kernel.launches or 0)
    end
    check(staged == gpu.activity.launches and staged > 0, "%s: %d of %d launches in a stage", name,
      staged, gpu.activity.launches)
    check(gpu.activity.dropped == 0, "%s: no record is lost", name)
  end
  if gpu.counters.lacks then
    print("skipped", name, "counters", gpu.counters.lacks)
    return nil
  end
  local parts = record.flops.counted_parts
  local matrix = parts.score + parts.mixing
  local more = gpu.counters.fused / matrix - 1
  check(gpu.counters.dram_read > 0, "%s: DRAM read %.0f bytes", name, gpu.counters.dram_read)
  return more
end

-- Short, so that the host's calls show.  CUPTI is first asked for after the first one's timed runs,
-- and stays in the process: the times of all later runs are taken with it there, at rest.
local function short()
  local options = { n = 256, d = 64, device = "cuda", ["repeat"] = 50 }
  return assert(attn.run("window", options)).record.time_ms
end
local before = short()

for _, d in ipairs { 64, 128 } do
  local input = assert(attn.random { n = 2048, d = d, heads = 4 })
  local full = one("full", { input = input })
  if full then
    -- exp by fused multiply-adds is about 10 beside 4 d of a cell: 4 % at d = 64, 2 % at 128
    check(full > -MATRIX and full < MATRIX + 10 / (4 * d),
      "full, d = %d: fused and tensor are %+.2f %% of score and mixing", d, 100 * full)
  end
  one("window", { input = input, params = { window = 257 } })
end
local after = short()
check(after.median < 1.25 * before.median,
  "a run takes %.4f ms before CUPTI is opened, and %.4f ms after", before.median, after.median)
print("failures " .. failures)
os.exit(failures == 0 and 0 or 1)
