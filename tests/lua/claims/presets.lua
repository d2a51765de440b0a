-- What the published pictures say is to be seen.
local claims = require "support.claims"
local run, rows, sum = claims.run, claims.rows, claims.sum
local clusters = "synthetic:clusters"

return {
  { "fournier-fig10", "any two tokens are at most two hops apart", function(is)
    is(claims.layers(run("star", { n = 12 })), "==", 2)
  end },
  { "fournier-fig12", "the band is 1, 3, 7, 15 cells wide; more layers end as full attention",
    function(is)
      for layer, width in ipairs { 1, 3, 7, 15 } do
        is(#run(("cascade(layer=%d)"):format(layer - 1)):pattern():row(32), "==", width)
      end
      is(run("cascade(layer=3)", { n = 12 }).stats.density, "<", 1)
      is(run("cascade(layer=4)", { n = 12 }).stats.density, "==", 1)
    end },
  { "fournier-fig13", "diagonals at distances that double: 1, 2, 4, 8", function(is)
    local p = run("logsparse", { n = 16, causal = true }):pattern()
    is(attn.json(p:row(15)) == attn.json { 7, 11, 13, 14, 15 }, "==", true)
  end },
  { "fournier-fig14", "together they cover the square", function(is)
    local p, total = run("blockbert(blocks=3)", { heads = 3, n = 12 }):pattern(), 0
    for q = 0, 11 do
      for k = 0, 11 do
        local any = p:cell(q, k, 0) or p:cell(q, k, 1) or p:cell(q, k, 2)
        total = total + (any and 1 or 0)
      end
    end
    is(total, "==", 144)
  end },
  { "tay-fig5", "two passes reach every pixel", function(is)
    is(run("axial", { input = "synthetic:grid(width=8)" }):pattern().nnz, "==", 64 * 64)
  end },
  { "delta-rule", "a sum keeps every write, the delta rule ends a column where its key is written "
      .. "again, a gate fades the rest", function(is)
    local o = { input = "synthetic:clusters(clusters=4)", n = 64, causal = true }
    local shares = {}
    for _, text in ipairs { "retnet(decay=none)", "deltanet", "gated-deltanet" } do
      local weights, near, all = rows(run(text, o), "weights"), 0, 0
      for i = 33, 64 do
        for j = 1, i do
          all = all + math.abs(weights[i][j])
          near = near + (i - j < 8 and math.abs(weights[i][j]) or 0)
        end
      end
      shares[#shares + 1] = near / all
    end
    is(shares[2], ">", 1.2 * shares[1])
    is(shares[3], ">", shares[2])
  end },
  { "recent", "top-k and Quest keep that line, H2O's cache of 8 keys and DeltaNet's gate lose it",
    function(is)
      local input = assert(attn.load("sample:induction.safetensors", { layer = 1 }))
      -- Mean share of a row that lies on the key 47 tokens back, where the words come again.
      local function line(text)
        local weights, total = rows(assert(attn.run(text, { input = input })), "weights", 1), 0
        for q = 50, 96 do
          local all = 0
          for k = 1, q do all = all + math.abs(weights[q][k]) end
          total = total + math.abs(weights[q][q - 47]) / all / 47
        end
        return total
      end
      is(line("full"), ">", 0.8)
      is(line("topk"), ">", 0.8)
      is(line("quest"), ">", 0.8)
      is(line("h2o"), "<", 0.1)
      is(line("gated-deltanet"), "<", 0.1)
    end },
  { "feature-maps", "exp's parabola and an untrained hedgehog have peaks as well",
    function(is)
      local peaks = {}
      for _, text in ipairs { "full", "linear(feature_map=taylor2)", "linear(feature_map=hedgehog)",
                              "linear" } do
        local weights, total = rows(run(text, { n = 32, causal = true }), "weights"), 0
        for q = 9, 32 do total = total + math.max(table.unpack(weights[q])) end
        peaks[#peaks + 1] = total / 24
      end
      for map = 1, 3 do is(peaks[map], ">", 1.5 * peaks[4]) end
    end },
  { "slides-longformer", "the same number of keys reaches twice as far with gaps", function(is)
    local near = run("window(window=5)"):pattern():row(32)
    local far = run("dilated(window=5,dilation=2)"):pattern():row(32)
    is(#near, "==", #far)
    is(far[#far] - 32, "==", 2 * (near[#near] - 32))
  end },
  { "slides-alibi-effect", "what is near gains what is far loses", function(is)
    local o = { causal = true, heads = 8, n = 24 }
    local plain = rows(run("full", o), "weights", 1)
    o.position = "alibi"
    local biased = rows(run("full", o), "weights", 1)
    local near = 0
    for q = 13, 24 do
      for k = q - 3, q do near = near + biased[q][k] - plain[q][k] end
    end
    is(near, ">", 0.5)
    is(sum(biased[24]), "~", sum(plain[24]))
  end },
  { "slides-deberta", "beyond the largest distance k = 6 rows and columns are flat", function(is)
    local r = run("full", { n = 24, position = "disentangled", params = { pos_k = 6 } })
    local to, from = rows(r, "position_c2p"), rows(r, "position_p2c")
    for k = 2, 16 do
      is(to[24][k], "~", to[24][1])
      is(from[k][24], "~", from[1][24])
    end
  end },
  { "reformer-rounds", "each round misses other pairs", function(is)
    local r = run("reformer(block=8)", { input = clusters })
    local rounds = r:missed().rounds
    for _, round in ipairs(rounds) do is(round.alone, "<", rounds[#rounds].together) end
  end },
  { "routing-clusters", "k-means on the input helps", function(is)
    is(run("routing", { input = clusters, fit = true }):missed().found, ">",
      run("routing", { input = clusters }):missed().found)
  end },
  { "entmax-support", "softmax smears what entmax leaves out", function(is)
    local function keys(alpha)
      return run("entmax", { n = 32, params = { alpha = alpha } }).views.support:nnz()
    end
    is(keys(2), "<", keys(1.5))
    is(keys(1.5), "<", 32 * 32)
    is(run("full", { n = 32 }).views.weights:nnz(), "==", 32 * 32)
  end },
  { "sinkhorn-sharpening", "a low temperature leaves few cells in each row and takes more "
    .. "iterations", function(is)
      local function last(temperature)
        local r = run(("sinkhorn(block=8,temperature=%g,sinkhorn_iters=64)"):format(temperature))
        local count = 0
        for _, e in ipairs(r:view("row_error"):totable()) do
          count = count + (e[1] > 1e-3 and 1 or 0)
        end
        return count
      end
      is(last(0.1), ">", last(0.5))
      is(last(0.5), ">", last(2))
    end },
  { "lab-memory", "plain: a triangle; reversible: flat; checkpointed: a saw, and longer",
    function(is)
      local o = { input = clusters, n = 96 }
      local r, c = run("reversible", o), run("checkpointing", o)
      local plain, flat = r:view("memory_plain"), r:view("memory_reversible")
      is(plain:max() / plain:min(), ">", 5)
      is(flat:max() / flat:min(), "<", 2)
      is(c:view("memory"):max(), "<", plain:max())
      is(c.figures.recomputed_layers, ">", 0)
    end },
  { "lab-gpipe", "more micro-batches shrink the bubble", function(is)
    local function idle(pieces)
      return attn.run(("micro-batching(devices=4,micro_batches=%d)"):format(pieces))
        .figures.bubble_fraction
    end
    is(idle(4), "<", idle(1))
    is(idle(8), "<", idle(4))
  end },
  { "sigmoid-rows", "early rows have far less, unless b counts the keys that they see",
    function(is)
      local o = { input = "synthetic:clusters(match=2)", n = 64, causal = true }
      local length = rows(run("sigmoid", o), "row_sum")[1]
      local seen = rows(run("sigmoid(bias_rule=visible)", o), "row_sum")[1]
      for q = 1, 8 do
        is(length[q], "<", 0.5)
        is(seen[q], ">", 2 * length[q])
      end
    end },
  { "natten-corner", "every row has as many keys as any other, also those of the grid's corners",
    function(is)
      for _, more in ipairs { "", ",dilation=2", ",tile=2" } do
        local p = run("natten(grid=[8,8],kernel=3" .. more .. ")", { n = 64 }):pattern()
        for q = 0, 63 do is(#p:row(q), "==", #p:row(0)) end
      end
    end },
  { "streaming-sinks", "the first tokens stay in the cache for ever", function(is)
    local p = run("streaming-llm(sinks=2,window=8)", { n = 32, causal = true }):pattern()
    for q = 2, 31 do is((p:cell(q, 0)) and (p:cell(q, 1)), "==", true) end
  end },
  { "h2o-comb", "beside the newest keys a few columns go on, those with the most attention so far",
    function(is)
      local r = run("h2o(heavy=6,recent=6)", { input = clusters, n = 64, heads = 1 })
      local p, left = r:pattern(), rows(r, "evicted_at")[1]
      for q = 13, 63 do is(#p:row(q), "==", 13) end
      for k = 1, 64 do
        local last = left[k] < 0 and 63 or left[k]
        for q = k - 1, 63 do is(p:cell(q, k - 1), "==", q <= last) end
      end
    end },
  { "cache-over-time", "a column is the life of a key", function(is)
    for _, text in ipairs {
      "h2o(heavy=6,recent=6)", "snapkv(prompt=32,observation=4,keep=8)",
      "streaming-llm(sinks=4,window=8)", "window(window=23)",
      "compressive(segment=8,mem_len=8,cmem_len=4,ratio=4)" } do
      local r = run(text, { input = clusters, n = 64, heads = 1, causal = true })
      local cache, evicted, gone = rows(r, "cache"), rows(r, "evicted"), 0
      for k = 1, 64 do
        is(cache[k][k] & 2, "==", 2)
        for q = k + 1, 64 do
          is(cache[q][k] == 0, "==", cache[q - 1][k] == 0 or cache[q - 1][k] == 4)
          if cache[q][k] > 0 then is(evicted[q][k], "==", 0) end
          if cache[q][k] == 4 then gone = gone + 1 end
        end
      end
      is(gone, ">", 16)
    end
  end },
  { "cache-over-time", "where it ends, later queries would have had attention for it",
    function(is)
      local o = { input = clusters, n = 64, heads = 1, causal = true }
      local r, full = run("h2o(heavy=6,recent=6)", o), run("full", o)
      local cache, evicted, exact = rows(r, "cache"), rows(r, "evicted"), rows(full, "weights")
      local mass, kept, most = rows(r, "evicted_mass")[1], rows(r, "kept_mass")[1], 0
      for q = 1, 64 do
        local lost = 0
        for k = 1, q do
          if cache[q][k] == 0 then
            is(evicted[q][k], "~", exact[q][k])
            lost = lost + exact[q][k]
          end
        end
        is(mass[q], "~", lost)
        is(mass[q] + kept[q], "~", 1)
        most = math.max(most, mass[q])
      end
      is(most, ">", 0.5)
    end },
  { "snapkv-votes", "below it the kept columns, the rows that voted and new tokens", function(is)
    local r = run("snapkv", { input = clusters, n = 64, heads = 1 })
    local p, kept = r:pattern(), rows(r, "kept")[1]
    for q = 48, 63 do
      for k = 0, q do is(p:cell(q, k), "==", k > 47 or kept[k + 1] > 0) end
    end
  end },
  { "vertical-slash", "choose which columns and diagonals are kept", function(is)
    local r = run("vertical-slash", { input = clusters, n = 64, heads = 1 })
    local sums, kept = claims.rows(r, "vertical_scores")[1], claims.rows(r, "columns")[1]
    local least, most = math.huge, 0
    for x = 3, 64 do
      if kept[x] > 0 then least = math.min(least, sums[x]) else most = math.max(most, sums[x]) end
    end
    is(least, ">=", most)
  end },
  { "topk-rows", "no other 8 keys hold more of it", function(is)
    local r = run("topk", { input = clusters, n = 64, causal = true, heads = 1 })
    local kept, best = r:view("kept_mass"):totable()[1], r:view("best_mass"):totable()[1]
    for q = 1, 64 do is(kept[q], "~", best[q]) end
  end },
  { "quest-pages", "the newest page and the three largest bounds are read", function(is)
    local r = run("quest", { input = clusters, n = 64, causal = true, heads = 1 })
    local bounds, selected = claims.rows(r, "bounds"), claims.rows(r, "selected")
    for q = 1, 64 do
      local newest, least, most = (q - 1) // 4 + 1, math.huge, -math.huge
      is(selected[q][newest], "==", 2)
      for u = 1, newest - 1 do
        if selected[q][u] == 1 then least = math.min(least, bounds[q][u])
        else most = math.max(most, bounds[q][u]) end
      end
      is(least, ">=", most)
      if newest > 4 then is(most, ">", -math.huge) end
    end
    is(r:missed().found, "<", 1)
  end },
  { "dsa-indexer", "an indexer of random weights finds what chance finds", function(is)
    local found, chance, keys = 0, 0, 0
    for q = 1, 64 do
      chance, keys = chance + math.min(8, q) ^ 2 / q, keys + math.min(8, q)
    end
    for seed = 0, 7 do
      local r = run("dsa", { input = clusters, n = 64, causal = true, heads = 1, seed = seed })
      found = found + r:missed().found / 8
    end
    is(math.abs(found - chance / keys), "<", 0.05)
  end },
  { "moba-blocks", "in each row at most two whole blocks before them", function(is)
    local r = run("moba(block=8,topk=3)", { input = clusters, n = 64, causal = true, heads = 1 })
    local p, selected = r:pattern(), claims.rows(r, "selected")
    for q = 0, 63 do
      local row, others = selected[q + 1], 0
      for u = 0, 7 do
        if row[u + 1] == 1 then others = others + 1 end
        for k = u * 8, u * 8 + 7 do
          is(p:cell(q, k), "==", row[u + 1] > 0 and k <= q)
        end
      end
      is(others, "==", math.min(q // 8, 2))
      is(row[q // 8 + 1], "==", 2)
    end
  end },
  { "differential-maps", "times lambda is larger than the first, the difference is negative",
    function(is)
      local r = run("differential(depth=4)", { input = clusters, n = 48, heads = 2, causal = true })
      local first, second = claims.rows(r, "weights_first"), claims.rows(r, "weights_second")
      local weights, lambda = claims.rows(r, "weights"), r:view("lambda"):totable()[1]
      for q = 1, 48, 7 do
        for k = 1, q do
          is(weights[q][k] < 0, "==", lambda * second[q][k] > first[q][k])
        end
      end
    end },
  { "nsa-parts", "of the blocks between the first and the last two, the one with most importance",
    function(is)
      local r = run("nsa", { input = clusters, n = 64, causal = true, heads = 1 })
      local importance, selected = claims.rows(r, "importance"), claims.rows(r, "selected")
      for q = 25, 64 do
        local own, best = (q - 1) // 8 + 1, 2
        for b = 3, own - 2 do
          if importance[q][b] > importance[q][best] then best = b end
        end
        for b = 1, 8 do
          local fixed = b == 1 or b == own or b == own - 1
          is(selected[q][b], "==", fixed and 2 or b == best and 1 or 0)
        end
      end
    end },
  { "mla-latent", "the more is cut, the farther the weights are from exact attention", function(is)
    local options = { input = clusters, n = 64, causal = true }
    local few, more = run("mla(rank=2)", options).figures, run("mla(rank=8)", options).figures
    is(few.rank_error, ">", more.rank_error)
    is(few.relative_error, ">", more.relative_error)
  end },
  { "lab-ponder", "a column ends where its token has halted", function(is)
    local r = run("act", { input = clusters, n = 48, params = { b_halt = -1 } })
    local halting, updates = r:view("halting"):totable(), r:view("updates"):totable()
    for token = 1, 48 do
      for step = 1, #halting do is(halting[step][token] > 0, "==", step <= updates[token]) end
    end
  end },
}
