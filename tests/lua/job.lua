-- Jobs: runs that go on while the script does.
package.path = "tests/lua/support/?.lua;" .. package.path
local check = require "check"

check.case("a job gives what a run gives", function()
  local input = attn.random { n = 64, d = 8 }
  local job = attn.start("bigbird", { input = input, seed = 3 })
  local result = job:wait()
  assert(result.output:allclose(attn.run("bigbird", { input = input, seed = 3 }).output, 0, 0))
  assert(job:poll())
  check.equal(tostring(job), "Job (done)")
  check.equal(job:wait(), result)
  local share, phase, seconds = job:progress()
  check.equal(share, 1)
  check.equal(phase, "")
  assert(seconds >= 0)
  check.equal(select(2, job:poll()), 1)
end)

check.case("several jobs, in order and on inputs of their own", function()
  local input, jobs = attn.random { n = 128, d = 8 }, {}
  for i = 1, 5 do
    local even = i % 2 == 0
    jobs[i] = attn.start("full", { input = even and input or nil, n = not even and 32 or nil })
  end
  for i = 5, 1, -1 do
    check.equal(jobs[i]:wait().output.shape[2], i % 2 == 0 and 128 or 32)
  end
end)

check.case("cancelled", function()
  local job = attn.start("full", { n = 16384, d = 64, ["repeat"] = 1000 })
  assert(not job:poll(0.05))
  local _, phase, seconds = job:progress()
  check.equal(type(phase), "string")
  assert(seconds >= 0.05)
  job:cancel()
  check.refuses("CANCELLED", job.wait, job)
  check.refuses("CANCELLED", job.wait, job)
end)

check.case("progress is reported, and false cancels", function()
  local calls, seen, last = 0, {}, -1
  local job = attn.start("full", { n = 4096, d = 64, ["repeat"] = 20 })
  local result = job:on_progress(function(_, phase, seconds)
    calls = calls + 1
    seen[phase] = true
    assert(seconds > last)
    last = seconds
  end):wait()
  check.equal(result.output.shape[2], 4096)
  assert(calls >= 1 and next(seen))
  job = attn.start("full", { n = 16384, d = 64, ["repeat"] = 1000 })
  calls = 0
  job:on_progress(function()
    calls = calls + 1
    return calls < 3
  end)
  check.refuses("CANCELLED", job.wait, job)
  assert(calls >= 3 and calls <= 4, calls)
  check.raises("on purpose", function()
    attn.start("full", { n = 8192, d = 64, ["repeat"] = 1000 }):on_progress(function()
      error("on purpose")
    end):wait()
  end)
  check.raises("expected function", job.on_progress, job, 3)
  check.raises("Job", job.on_progress, {}, print)
end)

check.case("a mechanism of the script runs on in poll and wait", function()
  local calls = 0
  attn.pattern { id = "counting", row = function(i, row) calls = calls + 1 row:add(i) end }
  local job = attn.start("counting", { n = 20 })
  for _ = 1, 1000 do
    if job:poll(0.01) then break end
  end
  assert(job:wait())
  assert(calls >= 20)
  attn.pattern { id = "endless", row = function() while true do end end }
  job = attn.start("endless", { n = 20 })
  job:cancel()
  check.refuses("CANCELLED", job.wait, job)
end)

check.case("failures, misuse, and jobs left alone", function()
  attn.pattern { id = "failing", row = function() error("no") end }
  check.refuses("SCRIPT", function() return attn.start("failing", { n = 4 }):wait() end)
  check.raises("unknown mechanism", attn.start, "nothing")
  check.raises("did you mean", attn.start, "bigbird", { windw = 3 })
  local job <close> = attn.start("full", { n = 4096, ["repeat"] = 100 })
  local other = attn.start("full", { n = 4096, ["repeat"] = 100 })
  other:close()
  check.raises("closed", other.wait, other)
  attn.start("full", { n = 4096, ["repeat"] = 100 })
  collectgarbage()
end)

check.case("the share that is done", function()
  local last, middle = 0, false
  local job = attn.start("full", { n = 8192, d = 64, threads = 1 })
  while true do
    local done, share, phase = job:poll(0.005)
    check.equal(type(phase), "string")
    if done then break end
    if share then
      assert(share >= last and share <= 1, share)
      middle = middle or share > 0.1 and share < 0.9
      last = share
    end
  end
  assert(middle, "progress is reported during one operation")
  check.equal((job:progress()), 1)
end)

check.case("nobody knows the share where content or another mechanism decides", function()
  for _, what in ipairs { "gshard", "reversible" } do
    local job = attn.start(what, { n = 1024, d = 32 })
    repeat
      local done, share = job:poll()
      assert(done or share == nil, what)
    until done
  end
  local shares = {}
  attn.start("random", { n = 256, d = 16, seeds = 40 }):on_progress(function(share, phase)
    if phase == "seeds" then shares[#shares + 1] = share end
  end):wait()
  for i = 2, #shares do assert(shares[i] >= shares[i - 1]) end
end)
