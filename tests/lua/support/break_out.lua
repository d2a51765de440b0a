-- Run under --safe with a .npy file's path (without .npy): everything here must fail.
-- Prints a line that begins with OUT for each way out; what gets past the fences to the
-- terminal holds the character ESC.
local path, sanitized = ...
local function out(how) print("OUT " .. how) end

-- What the state lacks.
for _, name in ipairs {
  "io", "require", "package", "debug", "load", "loadfile", "dofile", "loadstring",
} do
  if _G[name] ~= nil then out(name) end
end
for _, name in ipairs { "execute", "remove", "rename", "getenv", "exit", "tmpname", "setlocale" } do
  if os[name] ~= nil then out("os." .. name) end
end
-- Nothing that is left leads to them: the tables, their metatables and what those hold.
local seen, banned = {}, { popen = true, execute = true, getupvalue = true, loadlib = true,
  searchpath = true, sethook = true, getregistry = true, tmpfile = true, setmetatable = false }
local function look(value, where)
  if type(value) ~= "table" or seen[value] then return end
  seen[value] = true
  for key, inner in next, value do
    if banned[key] then out(where .. "." .. tostring(key)) end
    look(inner, where .. "." .. tostring(key))
    look(getmetatable(inner), where .. "." .. tostring(key) .. ".metatable")
  end
  look(getmetatable(value), where .. ".metatable")
end
look(_G, "_G")
look(getmetatable("").__index, "string")

local input = attn.random { n = 8, d = 4 }
local function try(how, f, ...)
  local ok, value = pcall(f, ...)
  if ok and value ~= nil and value ~= false then out(how) end
end

-- Files, by everything of the program that reads or writes one.
try("load", attn.load, path .. ".npz")
try("read", attn.read, path .. ".npy")
try("read /etc/passwd", attn.read, "/etc/passwd")
try("load /etc/passwd", attn.load, "/etc/passwd")
try("read_sweep", attn.read_sweep, "/etc/passwd")
try("write", function() return attn.tensor({ 2, 2 }):write(path .. ".new.npy") end)
try("write over", function() return attn.tensor({ 2, 2 }):write(path .. ".npy") end)
try("input:save", function() return input:save(path .. ".new.npz") end)
try("tensor parameter", attn.run, "random", { input = input, table = "@" .. path .. ".npy" })
try("csv", attn.csv, path .. ".new.csv", { { a = 1 } })
try("figure", function()
  local figure = attn.figure { panels = { { result = attn.run("full", { input = input }) } } }
  return figure:save(path .. ".new.png")
end)
try("steps", function()
  return attn.run("reformer", { input = input }):save_steps(path .. ".new.png")
end)
for _, name in ipairs { "/proc/self/environ", "/proc/self/mem", "/dev/stdin", "/proc/self/fd/0",
  path .. ".link.npy" } do
  try("read " .. name, attn.read, name)
  try("load " .. name, attn.load, name)
end
try("reload", attn.reload, path .. ".lua")
try("reload of a shipped one", attn.reload, "tour.lua")
try("a lesson's file", attn.command, "lesson", path .. ".lua", "--print")
try("write_npz", attn.write_npz, path .. ".new.npz", { a = attn.tensor { 1 } })

-- Standard output and error, past print: what a terminal obeys, bytes of files.
local evil = "\27[31mevil\27]0;title\a\x9b2J"
local drawn = attn.figure { title = evil,
  panels = { { result = attn.run("full", { input = input }), title = evil } } }
for _, to in ipairs { "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/tty" } do
  for _, format in ipairs { "ans", "txt", "png", "svg" } do
    try("figure to " .. to, drawn.save, drawn, to, { format = format })
  end
  try("csv to " .. to, attn.csv, to, { { a = evil } })
  try("tensor to " .. to, function() return attn.tensor({ 2 }):write(to) end)
end
print(evil, setmetatable({}, { __tostring = function() return evil end }))
print(drawn:text { colours = 24 })
attn.log("warning", "%s", evil)
warn("@on")
warn(evil)
attn.mechanism { id = "evil", run = function(ctx)
  ctx:stage(evil)
  ctx:warn(evil)
  return ctx.v
end }
print(attn.run("evil", { input = input }).warnings[1])
for _, words in ipairs {
  { "figure", "full", "-n", "8", "-o", "-" },
  { "figure", "full", "-n", "8", "-o", path .. ".new.png" },
  { "run", "full", "-n", "8", "--dump", path .. ".new" },
  { "rerender", path .. ".npy" }, { "merge", path .. ".npy", "-o", path .. ".new.jsonl" },
  { "fit", path .. ".npy" }, { "diff", path .. ".npy", path .. ".npy" },
  { "lua", "-e", "os.execute('true')" },
  { "sweep", "-m", "full", "--n", "8", "-o", path .. ".new.jsonl" },
} do
  try("command " .. words[1], attn.command, table.unpack(words))
end
try("sweep", attn.sweep, { "full", n = "8", output = path .. ".new.jsonl" })
try("vary", function()
  return attn.vary("bigbird", "window=3,5", { input = input }).figure:save(path .. ".new.png")
end)

-- Code that is no Lua text, and what does not belong to the script.
try("bytecode", function() return string.dump(print) end)
if type(getmetatable(attn.tensor { 1 })) == "table" then out("metatable of a tensor") end
try("metatable set", setmetatable, attn.tensor { 1 }, {})
for _, name in ipairs { "get", "matmul", "slice", "write" } do
  try("method " .. name .. " of a table", attn.tensor { 1 }[name], {})
end

-- What was given for one call, after it; and while it is used, what it needs is closed.
local context, row
attn.mechanism { id = "keeps", run = function(ctx) context = ctx return ctx.v end }
attn.pattern { id = "keeps-row", row = function(_, r) row = r end }
attn.run("keeps", { input = input })
attn.run("keeps-row", { input = input })
try("a context", function() return context.q end)
try("its method", context.normal, context, "a", { 2 })
try("a row", function() return row.n end)
local function shut_input() return attn.random { n = 8, d = 4 } end
for _, close in ipairs {
  function(i, options) -- in a text of the options
    options.dilation = { setmetatable({}, { __tostring = function()
      i:close()
      collectgarbage()
      return "3"
    end }) }
    return attn.run("dilated", options)
  end,
  function(i, options) -- by the mechanism itself, on the input's own worker
    attn.mechanism { id = "closes", run = function(ctx) i:close() return ctx.v end }
    return attn.run("closes", options)
  end,
  function(i, options) -- while the run is under way
    local job = attn.start("full", options)
    i:close()
    return job:wait()
  end,
} do
  local given = shut_input()
  assert(close(given, { input = given }).output) -- the run stays, as it is said
  try("a closed input", attn.run, "full", { input = given })
end
try("a result that its panel closes", function()
  local r = attn.run("full", { input = input })
  return attn.figure { panels = { setmetatable({ result = r }, { __index = function()
    r:close()
  end }) } } == nil
end)
local shut = attn.tensor { 4 }
try("closed in its own map", shut.map, shut, function(x) shut:close() return x end)
attn.mechanism { id = "replaces", run = function(ctx)
  attn.pattern { id = "replaces", row = print }
  collectgarbage()
  return ctx.v
end }
assert(attn.run("replaces", { input = input }))
attn.mechanism { id = "yields", run = function(ctx) coroutine.yield() return ctx.v end }
try("a yield through a run", coroutine.wrap(function()
  return attn.run("yields", { input = input })
end))
attn.mechanism { id = "within", run = function(ctx)
  setmetatable({}, { __gc = function() attn.run("full", { input = input }) end })
  collectgarbage()
  return ctx.v
end }
assert(attn.run("within", { input = input }))

-- Memory: texts, tables, tensors, deep calls.
try("string.rep", string.rep, "x", 1 << 40)
try("string.rep in steps", function()
  local s = "x"
  for _ = 1, 40 do s = s .. s end
  return true
end)
try("string.format", string.format, "%1000000000d", 1)
try("more memory", attn.memory, 1 << 33)
try("table", function()
  local all = {}
  for i = 1, 1 << 40 do all[i] = { i } end
  return true
end)
try("concat", function()
  local all = {}
  for i = 1, 1 << 13 do all[i] = ("x"):rep(1 << 20) end
  return table.concat(all)
end)
if not sanitized then -- a sanitizer's shadow leaves no room for a limit of the process
  try("tensors", function()
    local all = {}
    for i = 1, 64 do all[i] = attn.tensor({ 1 << 27 }) end
    return true
  end)
  try("a run", attn.run, "full", { n = 1 << 22, d = 512, heads = 64 })
end
try("many threads", function()
  for _ = 1, 20 do attn.run("full", { input = input, threads = 4096 }) end
end)
try("nested JSON", attn.from_json, ("["):rep(1 << 20))
try("a nested table", function()
  local all = {}
  for _ = 1, 1 << 20 do all = { all } end
  return attn.json(all)
end)
try("many mechanisms", function()
  for i = 1, 1000 do
    if not attn.pattern { id = "many-" .. i, row = print } then return nil end
  end
  return true
end)
try("recursion", function()
  local function deeper(n) return 1 + deeper(n + 1) end
  return deeper(0)
end)
try("unpack", function() return select("#", table.unpack({}, 1, 1 << 30)) end)
try("coroutines in coroutines", function()
  local function nest() return coroutine.wrap(nest)() end
  return nest()
end)
try("pattern", attn.run, "pattern", { input = input, pattern = ("("):rep(1 << 16) })

try("a repeated separator", string.rep, "x", 100, ("y"):rep(1 << 28))
try("a deep tensor", function()
  local all = { 1 }
  for _ = 1, 1 << 20 do all = { all } end
  return attn.tensor(all)
end)
try("a shape that overflows", attn.tensor, { 1 << 31, 1 << 31, 4 })
try("a reshape that overflows", function()
  return attn.tensor({ 2 }):reshape({ 1 << 31, 1 << 31, 4 })
end)
try("a slice behind the end", function() return attn.tensor({ 4 }):slice({ { 0, 1 << 40 } }) end)
try("panels", function()
  local panels, result = {}, attn.run("full", { input = input })
  for i = 1, 1 << 16 do panels[i] = { result = result } end
  return attn.figure { panels = panels, grid = "1000x66" }
end)
try("a name of a megabyte", attn.pattern, { id = ("x"):rep(1 << 20), row = print })

-- Errors that are no texts, and finalizers that raise.
try("error in a metamethod", function()
  return tostring(setmetatable({}, { __tostring = function() error({}) end }))
end)
setmetatable({}, { __gc = function() error("in a finalizer") end })
collectgarbage()

-- And what is allowed works.
assert(attn.run("bigbird", { input = input }))
assert(attn.run("bigbird"))
assert(attn.pattern { id = "keeps-row", row = function(i, row) row:range(i - 1, i + 1) end })
assert(attn.run("keeps-row", { input = input }))
attn.log("info", "heard")
-- At the very end, when much is closed already.
local all = { input, drawn, attn.run("full", { input = input }),
  attn.start("full", { input = input }) }
setmetatable(all, { __gc = function()
  for _, object in ipairs(all) do pcall(tostring, object) end
  pcall(all[4].wait, all[4])
  try("a figure at the end", drawn.save, drawn, path .. ".new.png")
  print("ended")
end })
print("ran")
