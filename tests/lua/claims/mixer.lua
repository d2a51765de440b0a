-- Claims about mixing without a comparison of tokens.
local claims = require "support.claims"
local run, rows = claims.run, claims.rows
local sum = claims.sum

-- Two runs show the same view, whatever the input.
local function same(text, view)
  local a = run(text):view(view, 0)
  local b = run(text, { input = "synthetic:clusters" }):view(view, 0)
  return (select(2, a:allclose(b)))
end

-- Share of the variance of |x| that groups of cells explain.
local function explained(matrix, group)
  local total, count, sums, counts = 0, 0, {}, {}
  for i, row in ipairs(matrix) do
    for j, x in ipairs(row) do
      local g = group(i, j)
      sums[g], counts[g] = (sums[g] or 0) + math.abs(x), (counts[g] or 0) + 1
      total, count = total + math.abs(x), count + 1
    end
  end
  local mean, all, between = total / count, 0, 0
  for _, row in ipairs(matrix) do
    for _, x in ipairs(row) do all = all + (math.abs(x) - mean) ^ 2 end
  end
  for g, s in pairs(sums) do between = between + counts[g] * (s / counts[g] - mean) ^ 2 end
  return between / all
end

local function correlation(a, b)
  local ab, aa, bb = 0, 0, 0
  for i, row in ipairs(a) do
    for j, x in ipairs(row) do
      ab, aa, bb = ab + x * b[i][j], aa + x * x, bb + b[i][j] * b[i][j]
    end
  end
  return ab / math.sqrt(aa * bb), math.sqrt(aa / bb)
end

return {
  { "gmlp", "At initialisation the gate is 1 everywhere", function(is)
    local gate = run("gmlp"):view("gate", 0)
    is(gate:min(), ">", 0.99)
    is(gate:max(), "<", 1.01)
  end },
  { "gmlp", "One fixed, signed matrix over tokens", function(is)
    is(same("gmlp", "weights"), "==", 0)
    is(run("gmlp"):view("weights", 0):min(), "<", 0)
  end },
  { "mlp-mixer", "`mixing` is the same whatever the input", function(is)
    is(same("mlp-mixer", "mixing"), "==", 0)
    is(same("mlp-mixer", "gated"), ">", 0)
  end },
  { "mlp-mixer", "`gated` is a copy of it that the input dims here and there", function(is)
    local r = run("mlp-mixer")
    local alike, size = correlation(rows(r, "gated"), rows(r, "mixing"))
    is(alike, ">", 0.9)
    is(size, "<", 1)
  end },
  { "mlp-mixer", "Weights may be negative", function(is)
    is(run("mlp-mixer"):view("mixing", 0):min(), "<", 0)
  end },
  { "poolformer", "A band of equal cells and a negative diagonal", function(is)
    local w = rows(run("poolformer"), "weights")
    is(w[32][31], "~", w[32][33])
    is(w[32][32], "<", 0)
    is(w[32][34], "==", 0)
  end },
  { "poolformer", "Border rows are brighter, because fewer neighbours share the mean", function(is)
    local w = rows(run("poolformer"), "weights")
    is(w[1][2], ">", 1.4 * w[32][33])
  end },
  { "lambda", "vertical stripes by content, diagonals by position", function(is)
    local r = run("lambda")
    local content, position = rows(r, "weights_content"), rows(r, "weights_position")
    local function column(_, j) return j end
    local function diagonal(i, j) return i - j end
    is(explained(content, column), ">", explained(content, diagonal))
    is(explained(position, diagonal), ">", explained(position, column))
    is(r:view("weights", 0):min(), "<", 0)
  end },
  { "lambda", "one shared by all queries, one of each position", function(is)
    local views = run("lambda").views
    is(views.content_lambda.shape[2], "==", 1)
    is(views.position_lambda.shape[2], "==", 64)
  end },
  { "lite", "a dense map that is free to look far, and a band that looks near", function(is)
    local r = run("lite(kernel_size=3)")
    is(r:view("weights", 0):nnz(), "==", 64 * 64)
    is(sum(rows(r, "connectivity", 1)[32]), "==", 3)
  end },
  { "lite", "with half of the channels a quarter of the projections' work", function(is)
    for step in run("lite"):steps() do
      if step.name == "attention branch" then -- q, k, v and output, without 5 n^2 of the softmax
        is(step.flops.overhead - 5 * 64 * 64, "==", 4 * 2 * 64 * 32 * 32 / 4)
      end
    end
  end },
}
