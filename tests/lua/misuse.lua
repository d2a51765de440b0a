-- Every function and method with arguments that it cannot take, one position after the other: a
-- result, nil with a message and a code, or an error that is a sentence with the script's place.
-- What Lua itself says of our own code ("attempt to index a nil value") is none.
local check = require "support.check"

local skipped = { -- functions that take long, end the test or write files
  attn = { command = true, memory = true, reload = true, lessons = true },
}

local writers = { csv = true, write = true, write_npz = true, save = true, save_steps = true,
  jsonl = true } -- which are given no name that would be a file
local sweep = attn.sweep { "full", n = "8,16", d = 4, ["repeat"] = 1 }

local function closed(object)
  object:close()
  return object
end

local function objects()
  local input = attn.random { n = 6, d = 4, heads = 2 }
  local result = attn.run("bigbird", { input = input })
  return {
    Tensor = attn.tensor { { 1, 2, 3 }, { 4, 5, 6 } }, Input = input, Result = result,
    Pattern = result:pattern(), Figure = attn.figure { panels = { result } }, Sweep = sweep,
    Job = attn.start("full", { input = input }),
  }
end

local function shut()
  return {
    closed(attn.tensor { 2, 3 }), closed(attn.random { n = 4, d = 4 }),
    closed(attn.run("full", { n = 4, d = 4 })), closed(objects().Pattern),
    closed(objects().Figure), closed(objects().Job),
  }
end

local function quiet() end

local endless = setmetatable({}, { __index = function(_, key) return key end })
local loop = {}
loop.panels, loop[1], loop.params = { loop }, loop, loop
local bad = {
  0, -1, 1.5, 0 / 0, 1 / 0, -1 / 0, 1e300, math.maxinteger, math.mininteger, 2 ^ 53, true, false,
  "", "x", "full", "full(", "a\0b", "full\0(", ("x"):rep(5000), "%s%n", "\27[2J", "/nonexistent/x",
  "/", "-", "/dev/null/x.png", {}, { {} }, { 1, 2 }, { 0, -1 }, { { 1 }, { 2, 3 } }, { x = 1 },
  { [{}] = 1 }, { n = "x" }, { n = 0 / 0 }, { n = -1 }, { n = 1e300 }, { n = math.maxinteger },
  { n = {} }, { heads = 0 }, { d = 1.5 }, { input = 3 }, { input = "a\0b" }, { params = 3 },
  { params = { [1] = 2 } }, { panels = 3 }, { panels = {} }, { panels = { 3 } },
  { panels = { {} } }, { panels = { { sweep = { 3 } } } }, { panels = { { scaling = { {} } } } },
  { panels = { { tensor = 3 } } }, { id = "a\0b", row = quiet }, { id = "!", row = quiet },
  { id = "m", params = { { name = "p", type = "?" } }, row = quiet }, { "full", n = {} },
  { id = "m", params = { 3 }, run = quiet }, { id = "m", views = { 3 }, run = quiet },
  { "nothing", n = "8" }, { q = 3 }, { q = "a\0b" }, { width = "wide" },
  { width = 0 / 0 }, { dpi = -1 }, { theme = "pink" }, { metadata = { [3] = 4 } }, endless, loop,
  quiet, coroutine.create(quiet), io.stdout,
}

-- How the error reads that f raises with these arguments; nil: none that is wrong.
local function complaint(f, ...)
  local good, message = xpcall(f, function(m) return m end, ...)
  if good then
    return nil
  elseif type(message) ~= "string" then
    return "an error that is a " .. type(message)
  elseif message:find("attempt to", 1, true) or message:find("[attnscope]", 1, true) then
    return message
  elseif message == "" or not message:find("%a") then
    return "an error without words"
  end
end

local wrong, seen = {}, {}

local function report(name, position, value, message)
  local text = ("%s, argument %d, %s: %s"):format(name, position, tostring(value):sub(1, 40),
    message:sub(1, 160))
  if not seen[name .. message] then
    seen[name .. message] = true
    wrong[#wrong + 1] = text
  end
end

-- f(before..., value) with every value, then with good ones before it.
local function try(name, f, ...)
  local before = { ... }
  local writes = writers[name:match("%a[%a_]*$")]
  local values = { table.unpack(bad) }
  table.move(shut(), 1, 6, #values + 1, values)
  for _, object in pairs(objects()) do
    values[#values + 1] = object
  end
  local good = { writes and "/nonexistent/x.png" or "full", { n = 8, d = 4 } }
  for at = 1, 3 do
    for _, value in ipairs(values) do
      if writes and (value == io.stdout or type(value) == "string" and not value:find "^/n") then
        value = "/nonexistent/y"
      end
      local given = { table.unpack(before) }
      for i = 1, at - 1 do
        given[#given + 1] = good[i]
      end
      given[#given + 1] = value
      local message = complaint(f, table.unpack(given))
      if message then
        report(name, at, value, message)
      end
    end
  end
  local message = complaint(f, table.unpack(before))
  if message then
    report(name, 0, nil, message)
  end
end

local function names_of(t)
  local names = {}
  for name, value in pairs(t) do
    if type(value) == "function" then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

-- Methods of userdata stand in the metatable's __index, which is a closure over them.
local function methods_of(object)
  if type(object) == "table" then
    return getmetatable(object).__index
  end
  local _, methods = debug.getupvalue(debug.getmetatable(object).__index, 1)
  return methods
end

-- object.name = value: a sentence with what to call instead, at the script's line.
check.case("fields of objects are not assigned", function()
  local instead = {
    Tensor = "t:set", Input = "attn.input", Result = "attn.run", Pattern = "p:union",
    Figure = "attn.figure", Job = "job:cancel",
  }
  local all = objects()
  for class, words in pairs(instead) do
    local object = all[class]
    for _, name in ipairs { "n", "shape", "nothing", 1 } do
      local message = complaint(function() object[name] = 3 end)
      assert(not message, message)
      local good, said = pcall(function() object[name] = 3 end)
      assert(not good and said:find("^[^:]+:%d+: " .. class), said)
      assert(said:find(("'%s' cannot be assigned; "):format(name), 1, true), said)
      assert(said:find(words, 1, true), said)
    end
    local good, said = pcall(function() object.close = 3 end)
    assert(not good and said:find("object:close(...)", 1, true), said)
    object:close()
  end
  local list = attn.sweep { "full", n = "8", d = 4, ["repeat"] = 1 }
  list[#list + 1] = list[1] -- a list stays one
  assert(#list == 2)
end)

for _, name in ipairs(names_of(attn)) do
  if not skipped.attn[name] then
    check.case("attn." .. name, function()
      wrong = {}
      try("attn." .. name, attn[name])
      assert(#wrong == 0, table.concat(wrong, "\n"))
    end)
  end
end

for _, name in ipairs(names_of(attn.ui)) do
  check.case("ui." .. name, function()
    wrong = {}
    try("ui." .. name, attn.ui[name])
    assert(#wrong == 0, table.concat(wrong, "\n"))
  end)
end

for class, object in pairs(objects()) do
  local methods = methods_of(object)
  for _, name in ipairs(names_of(methods)) do
    check.case(class .. ":" .. name, function()
      wrong = {}
      local fresh = objects()[class]
      if name ~= "close" then
        try(class .. ":" .. name, methods[name], fresh)
      end
      try(class .. "." .. name, methods[name]) -- on what is no object of its class, or closed
      assert(#wrong == 0, table.concat(wrong, "\n"))
    end)
  end
end
