-- Random calls: every function and member with arguments of every kind.  Nothing but
-- an error or a result may come of it; sanitizers watch the rest.
local check = require "support.check"

local skipped = { memory = true, csv = true, write = true, save = true, log = true, command = true }
local rounds = tonumber(os.getenv("ATTNSCOPE_FUZZ_ROUNDS") or 3000)

local function methods(object)
  local index = debug.getmetatable(object).__index
  local out = {}
  for i = 1, 2 do
    local _, members = debug.getupvalue(index, i)
    for name in pairs(members) do
      out[#out + 1] = name
    end
  end
  table.sort(out)
  return out
end

local function pick(list)
  return list[math.random(#list)]
end

local function objects()
  local input = assert(attn.random { n = 6, d = 4, heads = 2 })
  local result = assert(attn.run("bigbird", { input = input }))
  return {
    input, result, attn.tensor { { 1, 2 }, { 3, 4 } }, attn.tensor({ 2, 3, 2 }, "u8"),
    attn.tensor { 0, 3 }, result.output, attn.vector({ 1, 2, 3 }, "i64"):slice { 1 },
    attn.figure { panels = { result } },
  }
end

local keys = { "n", "d", "heads", "seed", "input", "q", "k", "v", "x", "tokens", "panels", "result",
  "tensor", "view", "head", "region", "minus", "title", "grid", "window", "causal", "repeat",
  "width", "height", "colours", "kind", "lo", "hi", "structure", "class", "text", "params",
  "position" }
local texts = { "", "full", "bigbird", "bigbird(window=3)", "weights", "f32", "u8", "exp", "x,y=(",
  "[", "synthetic:normal", "synthetic:needle(at=1)", "%s", "\0\xff", "rope", "1e999", '{"a":[1]}' }
local numbers = { 0, 1, 2, 3, 5, -1, 1.5, 0 / 0, 1 / 0, -1 / 0, 1e300, 64 }

local function value(pool, depth)
  local kind = math.random(9)
  if kind <= 3 then
    return pick(pool)
  elseif kind <= 5 then
    return pick(numbers)
  elseif kind == 6 then
    return pick(texts)
  elseif kind == 7 then
    return pick { true, false, print, math.abs, coroutine.create(print) }
  elseif depth > 3 then
    return nil
  end
  local t = {}
  for i = 1, math.random(0, 4) do
    t[math.random(2) == 1 and i or pick(keys)] = value(pool, depth + 1)
  end
  return t
end

check.case("random calls", function()
  math.randomseed(tonumber(os.getenv("ATTNSCOPE_FUZZ_SEED") or 7))
  local names = {}
  for name, f in pairs(attn) do
    if type(f) == "function" and not skipped[name] then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  local pool = objects()
  for round = 1, rounds do
    if round % 50 == 0 then
      pool = objects()
    end
    local a, b, c = value(pool, 0), value(pool, 0), value(pool, 0)
    if math.random(3) == 1 then
      pcall(attn[pick(names)], a, b, c)
    else
      local object = pick(pool)
      local name = pick(methods(object))
      pcall(function()
        if not skipped[name] then
          return object[name](object, a, b, c)
        end
      end)
      pcall(function() return object + a, a * object, -object, #object, tostring(object) end)
      pcall(function() return object[a] end)
    end
  end
end)
