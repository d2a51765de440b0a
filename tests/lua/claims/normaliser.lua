-- Claims about mechanisms with something else in the place of one softmax.
local claims = require "support.claims"
local run, rows = claims.run, claims.rows

return {
  { "differential", "weights may be negative, and a row sums to 1 - lambda", function(is)
    local r = run("differential(depth=2)", { heads = 2 })
    local lambda = r:view("lambda"):totable()[1]
    is(lambda, "~", 0.8 - 0.6 * math.exp(-0.6))
    for _, row in ipairs(rows(r, "weights")) do is(claims.sum(row), "~", 1 - lambda) end
    is(r.figures.negative_share, ">", 0)
  end },
  { "differential", "With lambda = 0 it is plain attention.", function(is)
    local plain = rows(run("full", { heads = 2 }), "weights")
    for q, row in ipairs(rows(run("differential(lambda=0)", { heads = 2 }), "weights")) do
      for k = 1, #row, 9 do is(row[k], "~", plain[q][k]) end
    end
  end },
  { "differential", "noise that both have in common cancels", function(is)
    local r = run("differential(lambda=1,scale=1e-9)", { heads = 2 })
    for _, row in ipairs(rows(r, "weights")) do
      for _, x in ipairs(row) do is(x, "~", 0) end
    end
    for _, x in ipairs(rows(r, "weights_second")[1]) do is(x, "~", 1 / 64) end
  end },
}
