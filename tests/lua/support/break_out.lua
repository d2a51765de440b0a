-- Run under --safe with a .npy file's path (without .npy): everything here must fail.
-- Prints a line that begins with OUT for each way out.
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
for _, words in ipairs {
  { "figure", "full", "-n", "8", "-o", path .. ".new.png" },
  { "run", "full", "-n", "8", "--dump", path .. ".new" },
  { "rerender", path .. ".npy" }, { "merge", path .. ".npy", "-o", path .. ".new.jsonl" },
  { "fit", path .. ".npy" }, { "diff", path .. ".npy", path .. ".npy" },
  { "lua", "-e", "os.execute('true')" },
  { "sweep", "-m", "full", "--n", "8", "-o", path .. ".new.jsonl" },
} do
  try("command " .. words[1], attn.command, table.unpack(words))
end
try("sweep", attn.sweep, { "full", n = "8", out = path .. ".new.jsonl" })
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

-- Errors that are no texts, and finalizers that raise.
try("error in a metamethod", function()
  return tostring(setmetatable({}, { __tostring = function() error({}) end }))
end)
setmetatable({}, { __gc = function() error("in a finalizer") end })
collectgarbage()

-- And what is allowed works.
assert(attn.run("bigbird", { input = input }))
assert(attn.run("bigbird"))
assert(attn.pattern { id = "safe-near", row = function(i, row) row:range(i - 1, i + 1) end })
assert(attn.run("safe-near", { input = input }))
attn.log("info", "heard")
print("ran")
