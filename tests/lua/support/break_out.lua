-- Run under --safe: everything here must fail.  Prints a line for each way out.
local path = ...
local function out(how) print("OUT " .. how) end
for _, name in ipairs { "io", "require", "package", "debug", "load", "loadfile", "dofile" } do
  if _G[name] ~= nil then out(name) end
end
for _, name in ipairs { "execute", "remove", "rename", "getenv", "exit", "tmpname", "setlocale" } do
  if os[name] ~= nil then out("os." .. name) end
end
local input = attn.random { n = 8, d = 4 }
local function try(how, f, ...)
  local ok, value = pcall(f, ...)
  if ok and value ~= nil and value ~= false then out(how) end
end
try("load", attn.load, path .. ".npz")
try("read", attn.read, path .. ".npy")
try("write", function() return attn.tensor({ 2, 2 }):write(path .. ".new.npy") end)
try("tensor parameter", attn.run, "random", { input = input, table = "@" .. path .. ".npy" })
try("csv", attn.csv, path .. ".new.csv", { { a = 1 } })
try("figure", function()
  local figure = attn.figure { panels = { { result = attn.run("full", { input = input }) } } }
  return figure:save(path .. ".new.png")
end)
try("command", attn.command, "figure", "full", "-n", "8", "-o", path .. ".new.png")
try("dump", attn.command, "run", "full", "-n", "8", "--dump", path .. ".new")
try("sweep", attn.sweep, { "full", n = "8", out = path .. ".new.jsonl" })
try("metatable", function() return getmetatable(attn.tensor { 1 }).__index == nil end)
try("memory", function()
  local all = {}
  for i = 1, 64 do
    all[i] = attn.tensor({ 1 << 27 })
  end
  return true
end)
try("bytecode", function() return string.dump(print) end)
local r = attn.run("bigbird", { input = input })
print(r and "ran" or "did not run")
