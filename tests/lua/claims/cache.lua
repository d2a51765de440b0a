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
  { "snapkv", "the cache grows again with each word", function(is)
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
  { "vertical-slash", "It saves the prompt, not the words after it: decoding reads every key",
    function(is)
      local r = run("vertical-slash", { n = 256 })
      is(mean(keys(r)), "<", 9)
      is(r.figures.step_bytes, "==", r.figures.state_bytes)
    end },
}
