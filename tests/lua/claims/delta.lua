-- Claims about states that are corrected.
local claims = require "support.claims"
local run, rows = claims.run, claims.rows

local n, d = 16, 8

-- [count,width] of what f gives for a row and a column.
local function matrix(count, width, f)
  local t = attn.tensor { count, width }
  for i = 0, count - 1 do
    for c = 0, width - 1 do t:set(i, c, f(i, c)) end
  end
  return t
end

-- A tensor [count] of what f gives for a token.
local function line(count, f)
  local t = attn.tensor { count }
  for i = 0, count - 1 do t:set(i, f(i)) end
  return t
end

-- Unit keys: token i writes along channel `channel(i)`.  Values and queries are those of a seed.
local function written(count, channel)
  local own = assert(attn.load("synthetic:normal", { n = count, d = d }))
  return assert(attn.input {
    q = own.q, v = own.v,
    k = matrix(count, d, function(i, c) return c == channel(i) and 1 or 0 end),
  })
end

local function cosine(a, b)
  local ab, aa, bb = 0, 0, 0
  for c = 1, #a do ab, aa, bb = ab + a[c] * b[c], aa + a[c] ^ 2, bb + b[c] ^ 2 end
  return ab / math.sqrt(aa * bb)
end

local function always(x) return function() return x end end

return {
  { "deltanet", "Orthogonal keys are all recalled", function(is)
    local r = run("deltanet", { input = written(d, function(i) return i end),
                                params = { beta = line(d, always(1)) } })
    for _, recall in ipairs(rows(r, "recall")[1]) do is(recall, "~", 1) end
  end },
  { "deltanet", "Where a key is written again its old column of A ends, and the state returns the "
      .. "new value: recall of the old one is only the cosine of the two values", function(is)
    local input = written(12, function(i) return i == 9 and 2 or i % 6 end) -- 2 again at 8 and 9
    local r = run("deltanet", { input = input, params = { beta = line(12, always(1)) } })
    local weights = rows(r, "weights")
    is(math.abs(weights[8][3]), ">", 1e-3)
    for i = 9, 12 do is(math.abs(weights[i][3]), "<", 1e-5) end
    local values = input.v:totable()[1]
    is(rows(r, "recall")[1][3], "~", cosine(values[3], values[10]))
    is(rows(r, "recall")[1][10], "~", 1)
  end },
  { "deltanet", "surprise marks what the state did not know", function(is)
    local own = written(4, always(0))
    local same = assert(attn.input { q = own.q, k = own.k,
                                     v = matrix(4, d, function(_, c) return c + 1 end) })
    local surprise = rows(run("deltanet", { input = same, params = { beta = line(4, always(1)) } }),
                          "surprise")[1]
    is(surprise[1], ">", 1)
    for i = 2, 4 do is(surprise[i], "<", 1e-4) end
  end },
  { "deltanet", "a key that is written twice returns the sum of both values", function(is)
    local r = run("linear(feature_map=identity,normalize=false)",
                  { input = written(2, always(0)), causal = true })
    local values, memory = r.input.v:totable()[1], rows(r, "memory")
    for c = 1, d do is(memory[1][c], "~", values[1][c] + values[2][c]) end
  end },
  { "gated-deltanet", "a gate fades all columns of A from its row on", function(is)
    local beta = line(n, always(0.5))
    local function weights(gate)
      local gates = line(n, function(i) return i == 6 and gate or 1 end)
      return rows(run("gated-deltanet", { n = n, d = d, params = { beta = beta, gates = gates } }),
                  "weights")
    end
    local open, half = weights(1), weights(0.5)
    for i = 7, n do
      for j = 1, i do is(half[i][j], "~", (j <= 6 and 0.5 or 1) * open[i][j]) end
    end
  end },
  { "gated-deltanet", "Gates of 1 give deltanet; a gate of 0 starts the state again", function(is)
    local beta = line(n, always(0.5))
    local plain = run("deltanet", { n = n, d = d, params = { beta = beta } }).output
    local o = { n = n, d = d, params = { beta = beta, gates = line(n, always(1)) } }
    is(select(2, plain:allclose(run("gated-deltanet", o).output)), "<", 1e-5)
    o.params.gates = line(n, function(i) return i == 6 and 0 or 1 end)
    local weights = rows(run("gated-deltanet", o), "weights")
    for i = 7, n do
      for j = 1, 6 do is(weights[i][j], "==", 0) end
    end
  end },
  { "rwkv7", "Channels with a decay near 1 are its long-term memory", function(is)
    local ones = matrix(n, d, always(1))
    local input = assert(attn.input { q = ones, k = matrix(n, d, function(i, c)
      return i == 0 and 1 or 0 end), v = ones })
    local decay = matrix(n, d, function(_, c) return c == 0 and 1 or 0.5 end)
    local rate = matrix(n, d, always(0))
    local ka = line(d, always(0))
    local r = run("rwkv7", { input = input,
                             params = { decay = decay, rate = rate, ka_scale = ka } })
    local memory = rows(r, "memory")
    is(memory[1][1], "~", 1)
    for c = 2, d do is(memory[c][1], "<", 0.001) end
  end },
  { "rwkv7", "What is removed, what is written, and how fast every channel fades or learns are "
      .. "vectors of their own", function(is)
    local r = run("rwkv7", { n = n, d = d })
    is(cosine(rows(r, "removal")[1], rows(r, "keys")[1]), "<", 0.9999)
    for _, name in ipairs { "decay", "rate", "removal", "keys" } do
      is(#rows(r, name)[1], "==", d)
    end
  end },
  { "rwkv7", "Updating and reading its state costs half as much again as under a delta rule",
    function(is)
    local o = { n = 32, params = { beta = line(32, always(1)) } }
    local delta = run("deltanet(form=recurrent)", o)
    local own = run("rwkv7(form=recurrent)", { n = 32 })
    local ratio = own.stats.flops.mixing / delta.stats.flops.mixing
    is(ratio, ">", 1.4)
    is(ratio, "<", 1.6)
  end },
  { "rwkv7", "Computing the decay and the rate of a token costs about half as much as that",
    function(is)
      for _, d in ipairs { 32, 64, 128 } do
        local stats = run("rwkv7(form=recurrent)", { n = 32, d = d }).stats.flops
        is(stats.overhead / stats.mixing, ">", 0.4)
        is(stats.overhead / stats.mixing, "<", 0.6)
      end
    end },
}
