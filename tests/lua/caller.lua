-- What is raised names the line of the script that called, whoever found the mistake: a binding,
-- the part that is written in Lua, or a binding that it calls.
local check = require "support.check"
local case, equal = check.case, check.equal

local here = debug.getinfo(1, "S").short_src

-- f calls in one line, which is the message's; `what` is in it.
local function raises_here(what, f)
  local line = debug.getinfo(f, "S").linedefined
  local good, message = pcall(f)
  assert(not good, "it did not raise")
  assert(type(message) == "string", "no text")
  local place = ("%s:%d: "):format(here, line)
  if message:sub(1, #place) ~= place then
    error("expected a message of " .. place .. ", got: " .. message, 2)
  end
  assert(message:find(what, 1, true), "expected '" .. what .. "' in: " .. message)
  assert(not message:find("[attnscope]", 1, true), message)
end

local input = attn.random { n = 16, d = 4 }
local result = attn.run("full", { input = input })
local sweep = attn.sweep { "full", n = "8,16", d = 4, ["repeat"] = 1 }

case("functions in Lua", function()
  raises_here("#1 to 'figure'", function() local _ = attn.figure(3) end)
  raises_here("unknown option", function() attn.figure { panels = { result }, tittle = "" } end)
  raises_here("panels: expected a list", function() local _ = attn.figure {} end)
  raises_here("sweep: expected table", function() attn.figure { panels = { { sweep = 3 } } } end)
  local nothing = { result = result, view = "nothing" }
  raises_here("view 'nothing'", function() attn.figure { panels = { nothing } } end)
  raises_here("spec: expected string", function() attn.synthetic(3) end)
  raises_here("options: expected table", function() attn.random(3) end)
  raises_here("", function() attn.random { heads = "many" } end)
  raises_here("", function() attn.csv(3) end)
  raises_here("options: expected table", function() attn.compare(3) end)
  raises_here("unknown mechanism", function() attn.compare { "fulll" } end)
  raises_here("mechanism: expected string", function() attn.check(3) end)
  raises_here("unknown mechanism", function() attn.check "fulll" end)
  raises_here("options: expected table", function() attn.sweep() end)
  raises_here("sweep has no option", function() attn.sweep { "full", nn = 3 } end)
  raises_here("n: expected a number", function() attn.sweep { "full", n = print } end)
  raises_here("", function() attn.roofline { params = 3 } end)
  raises_here("path: expected string", function() attn.read_sweep(3) end)
  raises_here("rows: expected table", function() attn.pivot(3) end)
  raises_here("json: no word for a function", function() attn.json { print } end)
  raises_here("rows: expected table", function() attn.csv("x", 3) end)
  raises_here("target: expected string", function() attn.csv(3, {}) end)
  raises_here("log: expected debug", function() attn.log("loud", "") end)
end)

case("methods in Lua", function()
  raises_here("f: expected function", function() sweep:filter(3) end)
  raises_here("path: expected string", function() sweep:jsonl() end)
  raises_here("down: expected string", function() sweep:pivot() end)
  raises_here("target: expected string", function() sweep:csv() end)
  raises_here("format: expected string", function() input.q:tostring(3) end)
  raises_here("most: expected a whole number", function() input.q:tostring("%g", "many") end)
  local job = attn.start("full", { input = input })
  raises_here("f: expected function", function() job:on_progress() end)
  raises_here("", function() job:poll("long") end)
  assert(job:wait())
end)

case("functions in C", function()
  raises_here("unknown mechanism", function() attn.run("fulll", { input = input }) end)
  raises_here("unknown mechanism", function() attn.info "fulll" end)
  raises_here("has no member", function() return result.outputt end)
  raises_here("needs the interactive program", function() attn.ui.action "difference" end)
  raises_here("needs the interactive program", function() attn.ui.play(true) end)
end)

case("a function that is given raises in its own place", function()
  raises_here("mine", function() sweep:filter(function() error "mine" end) end)
  local options = { "full", n = "8" }
  raises_here("mine", function() options.row = function() error "mine" end attn.sweep(options) end)
  local given = {}
  local _, message = pcall(sweep.filter, sweep, function() error(given) end)
  equal(message, given)
  _, message = pcall(sweep.filter, sweep, function() error("[attnscope]: so they say", 0) end)
  equal(message, "[attnscope]: so they say")
end)

case("a call goes through pcall, coroutines and tail calls", function()
  local co = coroutine.wrap(function()
    return sweep:filter(function() return coroutine.yield(7) end)
  end)
  equal(co(), 7)
  equal(co(true), 7)
  equal(#co(true), 2)
  equal(select("#", attn.pivot(sweep, "n", "mechanism", "status")), 2)
end)
