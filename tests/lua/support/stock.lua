-- Run by stock lua5.4 with the module's folder in LUA_CPATH.
local early = coroutine.wrap(function()
  coroutine.yield()
  return require("attnscope").run("full", { n = 16 })
end)
early() -- a coroutine that is older than the module
local attn = require "attnscope"
assert(not attn.has_ui and #attn.mechanisms() > 60 and _G.attn == nil)
local r = assert(attn.run("bigbird", { n = 32, measure = true }))
assert(r.record.flops.counted > 0 and r.record.memory.heap_peak == nil)
assert(early().output)
attn.pattern { id = "own", row = function(i, row) row:range(i - 1, i + 1) end }
assert(attn.check("own").ok)
local job = attn.start("own", { n = 64 })
assert(job:wait().output)
assert(not pcall(attn.ui.panes))
local figure <close> = attn.figure { panels = { r } }
assert(#figure:text() > 0)
print "stock ok"
