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
}
