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
}
