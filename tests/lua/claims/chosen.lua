-- Claims about mechanisms whose queries choose their keys.
local claims = require "support.claims"
local run, rows = claims.run, claims.rows

-- Keys of each query of head 0.
local function kept(r) return rows(r, "kept")[1] end

return {
  { "topk", "No choice of k keys holds more of the softmax", function(is)
    local best = run("topk(k=6)", { causal = true }).figures
    is(best.mass, "~", best.best_mass)
    for _, other in ipairs { "dsa(topk=6)", "quest(page=2,budget=6)" } do
      is(run(other, { causal = true }).figures.mass, "<", best.mass)
    end
  end },
  { "topk", "flat rows need many keys and peaked rows one", function(is)
    local r = run("topk(mass=0.5,scale=4)")
    local flat = run("topk(mass=0.5,scale=0.001)")
    is(kept(r)[1], "<=", 2)
    is(kept(flat)[1], ">=", 31)
  end },
  { "topk", "This costs as many products as full attention.", function(is)
    is(run("topk(k=1)").stats.flops.score, "==", run("full").stats.flops.score)
    is(run("topk(k=1)").stats.flops.mixing, "<", run("full").stats.flops.mixing / 60)
  end },
  { "dsa", "The gap between kept_mass and best_mass is what the cheap scorer loses",
    function(is)
      local f = run("dsa(topk=8)", { causal = true }).figures
      is(f.mass, "<", f.best_mass)
      is(run("dsa(topk=64)", { causal = true }).figures.relative_error, "<=", 1e-6)
    end },
  { "quest", "what the best choice of as many keys would hold", function(is)
    local options = { n = 300, d = 8, causal = true } -- of so many keys most are passed over
    local best = run("quest(page=4,budget=8)", options)
    local exact = rows(run("full", options), "weights")
    for i = 2, 300, 13 do
      local read, held = rows(best, "connectivity")[i], 0
      local count = claims.sum(read)
      table.sort(exact[i], function(a, b) return a > b end)
      for x = 1, count do held = held + exact[i][x] end
      is(rows(best, "best_mass")[1][i], "~", held)
    end
  end },
  { "quest",
    "Query heads that share keys choose by themselves: a step reads what any of them chose",
    function(is)
      local pages = 75 -- each with two bounds of 8 numbers of 2 bytes
      local function keys(heads)
        local options = { n = 300, d = 8, heads = heads, causal = true,
          input = "synthetic:normal(kv_heads=1)" }
        local f = run("quest(page=4,budget=8)", options).figures
        return (f.step_bytes / 2 - 2 * 8 * pages) / (2 * 8)
      end
      is(keys(1), "==", 8)
      is(keys(4), ">", 8)
      is(keys(4), "<=", 4 * 8)
    end },
  { "quest", "No score in the page can be larger", function(is)
    local r = run("quest(page=4,budget=64,scale=1)")
    local bounds, q, k = rows(r, "bounds"), r.input.q:totable()[1], r.input.k:totable()[1]
    for i = 1, 64, 9 do
      for j = 1, 64 do
        local score = 0
        for c = 1, 32 do score = score + q[i][c] * k[j][c] end
        is(score, "<=", bounds[i][(j - 1) // 4 + 1] + 1e-4)
      end
    end
  end },
  { "moba", "Triangles on the diagonal, and in each row a few squares that move from row to row",
    function(is)
      local r = run("moba", { n = 64, causal = true, heads = 1 })
      local p, moved = r:pattern(), 0
      for q = 0, 63 do
        local own, squares = q // 8, math.min(q // 8, 2)
        is(#p:row(q), "==", q % 8 + 1 + 8 * squares)
        for k = own * 8, 63 do is(p:cell(q, k), "==", k <= q) end
        for k = 1, own * 8 - 1 do
          if k % 8 > 0 then is(p:cell(q, k), "==", p:cell(q, k - 1)) end
          if q % 8 > 0 and p:cell(q, k) ~= p:cell(q - 1, k) then moved = moved + 1 end
        end
      end
      is(moved, ">", 0)
    end },
  { "moba", "With topk=1 only the triangles stay; with all blocks it is full attention",
    function(is)
      local p = run("moba(topk=1)", { n = 64, causal = true, heads = 1 }):pattern()
      for q = 0, 63 do is(#p:row(q), "==", q % 8 + 1) end
      for _, causal in ipairs { false, true } do
        local all = run("moba(topk=8)", { n = 64, causal = causal }).figures
        is(all.relative_error, "<=", 1e-6)
      end
    end },
  { "moba", "The whole cache is still held", function(is)
    local few = run("moba", { n = 64, causal = true }).figures
    local all = run("moba(topk=8)", { n = 64, causal = true }).figures
    is(few.state_bytes, "==", all.state_bytes)
    is(few.step_bytes, "<", all.step_bytes / 2)
    is(run("moba", { n = 128, causal = true }).figures.state_bytes, "==", 2 * few.state_bytes)
  end },
  { "nsa", "A blurred staircase, squares chosen per group, and a band", function(is)
    local r = run("nsa", { causal = true, heads = 2 })
    local steps, squares = rows(r, "weights_cmp"), rows(r, "connectivity_slc")
    local band = rows(r, "connectivity_win")
    for q = 1, 64 do
      for c = 1, 15 do is(steps[q][c] > 0, "==", 4 * c + 4 <= q) end
      for k = 1, 64 do
        is(band[q][k], "==", k <= q and q - k < 8 and 1 or 0)
        is(squares[q][k], "==", k <= q and squares[q][(k - 1) // 8 * 8 + 1] or 0)
      end
    end
  end },
  { "nsa", "Every block chosen by importance is at least as important as every block left out",
    function(is)
      local r, chosen = run("nsa", { causal = true, input = "synthetic:clusters" }), 0
      local importance, selected = rows(r, "importance"), rows(r, "selected")
      for q = 1, 64 do
        local least, most = math.huge, 0
        for b = 1, (q - 1) // 8 + 1 do
          local of = importance[q][b]
          if selected[q][b] == 1 then least, chosen = math.min(least, of), chosen + 1 end
          if selected[q][b] == 0 then most = math.max(most, of) end
        end
        is(most, "<=", least)
      end
      is(chosen, ">", 0)
    end },
  { "nsa", "I_i[b] = sum over the group's heads and c of overlap(c,b) P_i[c]", function(is)
    local r = run("nsa(cmp_block=8,cmp_stride=8)", { causal = true })
    local weights = rows(r, "weights_cmp")
    for q, row in ipairs(rows(r, "importance")) do
      for b, of in ipairs(row) do is(of, "~", weights[q][b]) end
    end
  end },
  { "nsa", "The compressed part still grows with n^2/s", function(is)
    local function compressed(n)
      for step in run("nsa", { n = n, causal = true }):steps() do
        if step.name:find("compressed") then return step.flops.total end
      end
    end
    is(compressed(1024) / compressed(512), ">", 3.5)
  end },
  { "nsa", "compressed keys beside the cache, which is held whole", function(is)
    local f = run("nsa", { n = 256, causal = true }).figures
    local all = run("moba(block=256)", { n = 256, causal = true }).figures
    is(f.state_bytes, "==", 2 * 64 * (256 + 63))
    is(f.step_bytes, "<", all.step_bytes / 2)
  end },
}
