-- Coroutines are resumed by our own functions: they do what the library's do.
package.path = "tests/lua/support/?.lua;" .. package.path
local check = require "check"
local equal = check.equal

check.case("values go in and out", function()
  local co = coroutine.create(function(a, b)
    local c = coroutine.yield(a + b)
    local d, e = coroutine.yield(c, nil, 3)
    return d, e, "end"
  end)
  equal(select("#", coroutine.resume(co, 1, 2)), 2)
  equal(table.pack(coroutine.resume(co, 7)).n, 4)
  equal(table.concat({ select(2, coroutine.resume(co, 8, 9)) }, " "), "8 9 end")
  equal(coroutine.status(co), "dead")
  local ok, why = coroutine.resume(co)
  equal(ok, false)
  equal(why, "cannot resume dead coroutine")
end)

check.case("wrapped, in a for loop and one in another", function()
  local function range(n)
    return coroutine.wrap(function()
      for i = 1, n do coroutine.yield(i) end
    end)
  end
  local sum = 0
  for i in range(4) do
    for j in range(i) do sum = sum + j end
  end
  equal(sum, 1 + 3 + 6 + 10)
  check.raises("cannot resume dead coroutine", (function()
    local f = coroutine.wrap(function() end)
    f()
    return f
  end)())
end)

check.case("errors", function()
  local co = coroutine.create(function() error({ 7 }) end)
  local ok, value = coroutine.resume(co)
  equal(ok, false)
  equal(value[1], 7)
  check.raises("oh", coroutine.wrap(function() error("oh") end))
  ok, value = pcall(coroutine.wrap(function() error({ 8 }) end))
  equal(value[1], 8)
  check.raises("thread expected", coroutine.resume, 3)
  check.raises("function expected", coroutine.wrap, 3)
  ok, value = coroutine.resume(coroutine.running())
  equal(ok, false)
  equal(value, "cannot resume non-suspended coroutine")
end)

check.case("what is to be closed is closed", function()
  local closed
  pcall(coroutine.wrap(function()
    local _ <close> = setmetatable({}, { __close = function() closed = true end })
    error("oh")
  end))
  assert(closed)
end)

check.case("through pcall and metamethods", function()
  local t = setmetatable({}, { __index = function(_, key) return coroutine.yield(key) end })
  local co = coroutine.wrap(function()
    local ok, value = pcall(function() return t.name .. "!" end)
    return ok, value
  end)
  equal(co(), "name")
  local ok, value = co("me")
  assert(ok and value == "me!")
end)

check.case("many values and deep ones", function()
  local many = {}
  for i = 1, 5000 do many[i] = i end
  local co = coroutine.wrap(function(...) return select("#", coroutine.yield(...)) end)
  equal(select("#", co(table.unpack(many))), 5000)
  equal(co(table.unpack(many, 1, 4000)), 4000)
  local function deep(n)
    if n == 0 then return "bottom" end
    return coroutine.wrap(deep)(n - 1)
  end
  equal(deep(100), "bottom")
  equal(select(2, pcall(deep, 100000)):match("C stack overflow"), "C stack overflow")
end)

check.case("runs within", function()
  local out = {}
  for n in coroutine.wrap(function()
    for _, n in ipairs { 8, 16 } do
      coroutine.yield(attn.run("full", { n = n, d = 4 }).input.n)
    end
  end) do
    out[#out + 1] = n
  end
  equal(table.concat(out, " "), "8 16")
end)
