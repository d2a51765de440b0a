-- How far outputs in reduced precision are from the CPU's float32, for every mechanism: the largest
-- difference as a share of the largest output.  One line for each precision and mechanism.
--
-- A factor of a product is rounded to 11 bits (tf32, f16) or 8 (bf16); scores of some units then
-- are off by up to 2^-11 and 2^-8 times their size, weights by as much, and layers add up.
local bounds = { tf32 = 0.01, f16 = 0.01, bf16 = 0.05 }
local n = math.tointeger(arg[1]) or 257
local names = { "tf32", "bf16", "f16" }

-- Mechanisms whose choices (clusters, buckets, sorted blocks) follow from such products may choose
-- otherwise: another choice is another output, so theirs are told and not judged.
local function chooses(id)
  local card = attn.info(id)

  return card.class:find("LP") ~= nil or card.class:find("MoE") ~= nil
end

-- The largest entry by size; a NaN stays.
local function size(t)
  if t.shape[#t.shape] == 0 then
    return 0
  end
  local top, bottom = t:max(), t:min()

  return top ~= top and top or math.max(top, -bottom)
end

local function has_parameter(id, name)
  for _, parameter in ipairs(attn.info(id).params) do
    if parameter.name == name then
      return true
    end
  end
  return false
end

local function text_of(id)
  local example = attn.info(id).example

  return example and example ~= "" and ("%s(%s)"):format(id, example) or id
end

local function run(id, more)
  local options = { n = n, d = 64, heads = 2 }

  for k, v in pairs(more) do
    options[k] = v
  end
  local good, r, message = pcall(attn.run, text_of(id), options)
  if good and r then
    return r
  end
  return nil, tostring(good and message or r)
end

for _, id in ipairs(attn.mechanisms {}) do
  local exact, why = run(id, {})

  for _, precision in ipairs(names) do
    local r
    if exact and has_parameter(id, "precision") then
      why = "its own parameter precision says what is rounded"
    elseif exact then
      r, why = run(id, { device = "cuda", precision = precision })
    end
    local name = ("precision %-5s %-24s"):format(precision, id)
    if not exact or not r then
      print("SKIP " .. name .. " " .. why:gsub("\n.*", ""))
    else
      local largest = size(exact.output)
      local off = size(r.output - exact.output) / (largest > 0 and largest or 1)
      local word = off <= bounds[precision] and "PASS" or chooses(id) and "SKIP" or "FAIL"

      print(("%s %s off by %.1e of the largest output%s"):format(word, name, off,
        word == "SKIP" and " (it chose otherwise)" or ""))
    end
  end
end
