-- Claims about states that forget.
local claims = require "support.claims"
local run, rows = claims.run, claims.rows

-- Mean of the last half of a row of a view that has one row for each head.
local function late(result, view, head)
  local row, total = rows(result, view)[head], 0
  for i = #row // 2 + 1, #row do total = total + row[i] end
  return total / (#row - #row // 2)
end

-- Gates [n,d] that are `open`, and `closed` at one token.
local function gates(n, d, open, token, closed)
  local t = attn.tensor { n, d }
  for i = 0, n - 1 do
    for c = 0, d - 1 do t:set(i, c, i == token and closed or open) end
  end
  return t
end

return {
  { "retnet", "Each head multiplies its state by a fixed factor below 1 at every token",
    function(is)
      local decay = run("retnet", { heads = 4 }):view("decay"):totable()
      for head = 1, 4 do
        is(decay[head], "==", 1 - 2 ^ (-4 - head))
      end
    end },
  { "retnet", "whose band along the diagonal widens from head to head", function(is)
    local r = run("retnet", { heads = 4, n = 1024 })
    for head = 2, 4 do
      is(late(r, "span", head), ">", 1.3 * late(r, "span", head - 1))
    end
  end },
  { "retnet", "the head decides it, not the data", function(is)
    local a, b = run("retnet", { n = 512, seed = 1 }), run("retnet", { n = 512, seed = 2 })
    is(math.abs(late(a, "span", 1) / late(b, "span", 1) - 1), "<", 0.1)
  end },
  { "retnet", "near tokens count more", function(is)
    local r = run("retnet", { n = 256 })
    local weights, near, far = rows(r, "weights"), 0, 0
    for i = 129, 256 do
      for t = 0, 15 do
        near = near + math.abs(weights[i][i - t])
        far = far + math.abs(weights[i][i - 96 - t])
      end
    end
    is(near, ">", 4 * far)
  end },
  { "gla", "Where a token closes its channels an edge appears in the matrix below it", function(is)
    local weights = rows(run("gla", { params = { gates = gates(64, 32, 1, 20, 0) } }), "weights")
    for i = 21, 64 do
      for j = 1, 20 do is(weights[i][j], "==", 0) end
      is(math.abs(weights[i][21]), ">", 0)
    end
  end },
  { "gla", "The data decide the span; in retnet only the head does", function(is)
    local long = run("gla", { params = { gates = gates(64, 32, 0.99, -1, 0) } })
    local short = run("gla", { params = { gates = gates(64, 32, 0.5, -1, 0) } })
    is(late(long, "span", 1), ">", 4 * late(short, "span", 1))
  end },
  { "gla", "What a gate has closed is gone for all later tokens", function(is)
    local recall = rows(run("gla", { params = { gates = gates(64, 32, 1, 63, 0) } }), "recall")[1]
    local r = run("gla", { params = { gates = gates(64, 32, 1, 63, 0) } })
    is(rows(r, "span")[1][64], "==", 1)
    is(math.abs(recall[64]), "~", 1)
  end },

  { "mamba2", "Any block below the diagonal has a rank of at most d", function(is)
    local weights, block = rows(run("mamba2", { d = 8 }), "weights"), {}
    for i = 33, 64 do block[#block + 1] = { table.unpack(weights[i], 1, 32) } end
    is(claims.rank(block), "<=", 8)
    is(claims.rank(weights), ">", 32)
  end },
  { "mamba2", "The gate falls where the step rises: the two curves mirror each other",
    function(is)
      local r = run("mamba2")
      local dt, gate = rows(r, "dt")[1], rows(r, "gates")[1]
      for i = 2, 64 do
        is((dt[i] - dt[i - 1]) * (gate[i] - gate[i - 1]), "<=", 0)
      end
    end },
  { "log-linear", "the triangle falls into squares that double away from the diagonal",
    function(is)
      local levels = rows(run("log-linear"), "levels")
      for i = 33, 64 do
        for j = 1, 32 do is(levels[i][j], "==", 6) end
      end
      for i = 17, 32 do
        for j = 1, 16 do is(levels[i][j], "==", 5) end
      end
      is(levels[64][64], "==", 0)
    end },
  { "log-linear",
    "Besides itself, a token reads one state for each set bit of its position",
    function(is)
      local levels = rows(run("log-linear"), "levels")
      for i = 0, 63 do
        local met, bits, number = {}, 0, i
        for j = 0, i do met[levels[i + 1][j + 1]] = true end
        while number > 0 do bits, number = bits + number % 2, number // 2 end
        local states = 0
        for _ in pairs(met) do states = states + 1 end
        is(states, "==", 1 + bits) -- its own level 0
      end
    end },
  { "log-linear", "The past is cut into runs of 1, 2, 4, ... tokens", function(is)
    local row, length = rows(run("log-linear"), "levels")[64], {}
    for j = 1, 63 do length[row[j]] = (length[row[j]] or 0) + 1 end
    for level = 1, 6 do is(length[level], "==", 2 ^ (level - 1)) end
  end },
  { "log-linear", "Memory and each step grow by the logarithm of the length", function(is)
    local function bytes(n) return run("log-linear", { n = n }).figures.state_bytes end
    is(bytes(256) - bytes(128), "==", bytes(128) - bytes(64))
    is(bytes(128) / bytes(64), "==", 8 / 7)
  end },
}
