-- Claims about caches of fixed size, and about lines that the last queries choose.
local claims = require "support.claims"
local run, rows = claims.run, claims.rows

-- Keys of each query.
local function keys(r)
  local counts, p = {}, r:pattern()
  for q = 0, p.n - 1 do counts[q + 1] = #p:row(q) end
  return counts
end

local function state(text, n) return run(text, { n = n, causal = true }).figures.state_bytes end

local function mean(values)
  local total = 0
  for _, x in ipairs(values) do total = total + x end
  return total / #values
end

local function ones(h, value)
  local t = attn.tensor { h }
  for i = 0, h - 1 do t:set(i, value) end
  return t
end

return {
  { "streaming-llm", "A band and a strip at the left edge", function(is)
    local p = run("streaming-llm", { n = 48, causal = true }):pattern()
    for q = 20, 47 do
      local row = p:row(q)
      is(#row, "==", 12)
      is(row[4], "==", 3)
      is(row[5], "==", q - 7)
    end
  end },
  { "streaming-llm", "The cache stays the same however long the text is", function(is)
    is(state("streaming-llm", 64), "==", state("streaming-llm", 256))
    is(state("streaming-llm(window=0)", 256), "==", 4 * state("streaming-llm(window=0)", 64))
  end },
  { "streaming-llm", "What lies between the sinks and the window is forgotten", function(is)
    local p = run("streaming-llm(sinks=4,window=8)", { n = 48, causal = true }):pattern()
    for q = 16, 47 do
      for k = 0, q do is(p:cell(q, k), "==", k < 4 or k > q - 8) end
    end
  end },
  { "streaming-llm", "A learned sink empties the strip: its share leaves the matrix", function(is)
    local with = run("streaming-llm", { n = 48, causal = true, heads = 2,
                                        params = { sink_logits = ones(2, 5) } })
    local plain = run("streaming-llm", { n = 48, causal = true, heads = 2 })
    is(with.figures.mean_sink_mass, "<", plain.figures.mean_sink_mass / 2)
    is(plain.figures.mean_logit_mass, "==", 0)
    for q, share in ipairs(rows(with, "logit_mass")[1]) do
      local sum = 0
      for _, w in ipairs(rows(with, "weights")[q]) do sum = sum + w end
      is(sum + share, "~", 1)
    end
  end },
  { "h2o", "Columns that end: a comb with few long teeth, and the newest keys along the diagonal",
    function(is)
      local r = run("h2o", { n = 96, heads = 1 })
      local p, left, long = r:pattern(), rows(r, "evicted_at")[1], 0
      for k = 0, 95 do
        local seen = {}
        for q = k, 95 do seen[#seen + 1] = (p:cell(q, k)) end
        for at = 2, #seen do is(seen[at - 1] or not seen[at], "==", true) end
        for at = 1, math.min(4, #seen) do is(seen[at], "==", true) end
        long = long + ((left[k + 1] < 0 or left[k + 1] > k + 24) and k < 72 and 1 or 0)
      end
      is(long, ">", 0)
      is(long, "<", 16)
    end },
  { "h2o", "Every key of the cache has a bar; the lowest of the older ones leaves", function(is)
    local r = run("h2o", { n = 48, heads = 1 })
    local weights, left = rows(r, "weights"), rows(r, "evicted_at")[1]
    local bars = {}
    for k = 1, 48 do bars[k] = 0 end
    for q = 1, 48 do
      local gone
      for k = 1, 48 do
        bars[k] = bars[k] + weights[q][k]
        if left[k] == q - 1 then gone = k end
      end
      for k = 1, q - 4 do
        if gone and weights[q][k] > 0 then is(bars[gone], "<=", bars[k]) end
      end
    end
    for k, sum in ipairs(rows(r, "accumulated")[1]) do is(sum, "~", bars[k], 1e-4) end
  end },
  { "h2o", "What has left never returns, though a later query may need it", function(is)
    local r = run("h2o", { n = 96, heads = 1, input = "synthetic:clusters" })
    local p, left = r:pattern(), rows(r, "evicted_at")[1]
    for k = 0, 95 do
      for q = left[k + 1] + 1, left[k + 1] < 0 and -1 or 95 do
        is(p:cell(q, k), "==", false)
      end
    end
    is(r.figures.mass, "<", 0.9 * r.figures.best_mass)
  end },
  { "h2o", "Sums favour old keys, which had more queries to collect from", function(is)
    local kept = rows(run("h2o(heavy=16)", { n = 256, heads = 1 }), "evicted_at")[1]
    local early, late = 0, 0
    for k = 1, 252 do
      if kept[k] < 0 and k <= 126 then early = early + 1 end
      if kept[k] < 0 and k > 126 then late = late + 1 end
    end
    is(early, ">", late)
  end },
  { "snapkv", "A full triangle, then below the line a few columns per head and the dense end",
    function(is)
      local p = run("snapkv", { n = 64, heads = 1 }):pattern()
      for q = 0, 63 do is(#p:row(q), "==", q < 48 and q + 1 or 8 + 4 + q - 47) end
    end },
  { "snapkv", "Every key gets the votes around it", function(is)
    local r = run("snapkv(pool=max,kernel=3)", { n = 64, heads = 1 })
    local votes, pooled = rows(r, "votes")[1], rows(r, "pooled")[1]
    for j = 2, 43 do
      is(pooled[j], "~", math.max(votes[j - 1], votes[j], votes[j + 1]))
    end
  end },
  { "snapkv", "Pooling keeps clusters of votes and widens lone peaks", function(is)
    local function pieces(text)
      local kept, count = rows(run(text, { n = 256, heads = 1 }), "kept")[1], 0
      for j = 1, 188 do count = count + (kept[j] == 1 and kept[j - 1] ~= 1 and 1 or 0) end
      return count
    end
    is(pieces("snapkv(keep=24)"), "<", pieces("snapkv(keep=24,kernel=1)"))
  end },
  { "snapkv", "Reading the prompt costs as much as full attention", function(is)
    local full = run("full", { n = 64, causal = true })
    is(run("snapkv(prompt=64)", { n = 64 }).stats.flops.score, "==", full.stats.flops.score)
    is(run("snapkv(prompt=64)", { n = 64 }).figures.relative_error, "<=", 1e-6)
  end },
  { "snapkv", "the cache grows again with each token", function(is)
    local full = run("vertical-slash", { n = 64 }).figures
    local cut = run("snapkv", { n = 64 }).figures
    is(cut.kv_bytes_per_token, "==", full.kv_bytes_per_token)
    is(cut.state_bytes, "<", full.state_bytes / 2)
    is(state("snapkv(prompt=48)", 65) - state("snapkv(prompt=48)", 64), "==",
       cut.kv_bytes_per_token)
  end },
  { "vertical-slash", "Stripes and slashes over the true map", function(is)
    local r = run("vertical-slash", { n = 48, heads = 1 })
    local p, columns, diagonals = r:pattern(), rows(r, "columns")[1], rows(r, "diagonals")[1]
    for q = 0, 47 do
      for k = 0, q do
        is(p:cell(q, k), "==", columns[k + 1] > 0 or diagonals[q - k + 1] > 0)
      end
    end
  end },
  { "vertical-slash", "the first columns and the nearest diagonals always are", function(is)
    local r = run("vertical-slash", { n = 48, heads = 1 })
    for x = 1, 2 do
      is(rows(r, "columns")[1][x], "==", 2)
      is(rows(r, "diagonals")[1][x], "==", 2)
    end
  end },
  { "vertical-slash", "It saves the prompt, not the tokens after it: decoding reads every key",
    function(is)
      local r = run("vertical-slash", { n = 256 })
      is(mean(keys(r)), "<", 9)
      is(r.figures.step_bytes, "==", r.figures.state_bytes)
    end },
}
