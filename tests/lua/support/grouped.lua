-- support/grouped.lua FOLDER -- inputs as real models have them: 6 query heads on 2 key heads,
-- fewer queries than keys or as many, causal, with a scale of their own.  wide.safetensors holds
-- what grouped.safetensors means, with k and v written once for each query head.
local folder = arg[1]

local function normal(heads, n, seed)
  return attn.random { n = n, d = 16, heads = heads, seed = seed }.q
end

local function widened(t)
  local heads, all = t:totable(), {}
  for h = 0, 5 do
    all[h + 1] = heads[h // 3 + 1]
  end
  return attn.tensor(all)
end

local function save(name, tensors)
  assert(attn.input(tensors):save(("%s/%s.safetensors"):format(folder, name)))
end

local q, k, v = normal(6, 64, 1), normal(2, 64, 2), normal(2, 64, 3)
save("grouped", { q = q, k = k, v = v, causal = true, scale = 0.5 })
save("wide", { q = q, k = widened(k), v = widened(v), causal = true, scale = 0.5 })
save("cross", { q = normal(6, 24, 1), k = k, v = v, causal = false, scale = 0.5 })
