-- The prelude's second part: mechanisms of a script, and their checks.  See prelude.lua, whose
-- locals it has.

-- definitions ---------------------------------------------------------------------

local function register(definition)
  expect("table", definition, "definition")
  if definition.row or definition.cell then
    return attn.pattern(definition)
  elseif definition.run then
    return attn.mechanism(definition)
  end
  raise("register: the table has none of row, cell and run")
end

function attn.register(definition)
  expect("table", definition, "definition")
  if #definition == 0 then
    return register(definition)
  end
  local ids = {}
  for i, one in ipairs(definition) do
    local id, message, code = register(one)
    if not id then return nil, message, code end
    ids[i] = id
  end
  return ids
end

-- checks --------------------------------------------------------------------------

local function finite(t)
  local low, high = t:min(), t:max()
  return low == low and low > -math.huge and high < math.huge
end

-- The same input with other values and keys from position `from` on.
local function changed_after(input, from)
  local k, v = input.k:copy(), input.v:copy()
  for h = 0, k.shape[1] - 1 do
    for i = from, k.shape[2] - 1 do
      for c = 0, k.shape[3] - 1 do
        k:set(h, i, c, 3 - k:get(h, i, c))
      end
      for c = 0, v.shape[3] - 1 do
        v:set(h, i, c, 7 - v:get(h, i, c))
      end
    end
  end
  return attn.input { q = input.q, k = k, v = v }
end

local function look_ahead(run, input, out)
  local from = input.n // 2
  local other, message = run(changed_after(input, from), true)
  if not other then
    return false, message
  end
  local before = { nil, { 0, from } }
  local same, worst = other.output:slice(before):allclose(out:slice(before), 1e-5, 1e-6)
  return same, string.format("rows before %d change by %.3g", from, worst)
end

-- The last half of the queries, with all keys: the last rows of all queries' output.
local function last_queries(run, input, out)
  local from = input.n // 2
  local last, message = run(attn.input { q = input.q:slice { nil, { from } }:copy(), k = input.k,
    v = input.v }, true)
  if not last then
    return false, message
  end
  local same, worst = last.output:allclose(out:slice { nil, { from } }, 1e-5, 1e-6)
  return same, string.format("differs by %.3g", worst)
end

local function check_flops(result)
  local record = result.record
  local counted, closed = record.flops.counted, record.flops.closed_form
  if not counted or not closed then
    return true, "no closed form"
  end
  return math.abs(counted - closed) <= 1e-9 * math.max(1, closed),
    string.format("counted %.6g, declared %.6g", counted, closed)
end

local function check_weights(result, input)
  local weights
  for _, name in ipairs(result:view_names()) do
    weights = weights or name == "weights" and result.views.weights
  end
  if not weights or input.v.shape[1] ~= weights.shape[1] then
    return true, "no weights to multiply"
  end
  local same, worst = weights:matmul(input.v):allclose(result.output, 1e-4, 1e-4)
  return same, string.format("differs by %.3g", worst)
end

local function check_size(report, id, n, causal, options)
  local input = attn.random { n = n, d = 8, heads = 2, seed = 1 }
  local function run(on, causal_now)
    local given = { input = on, causal = causal_now, seed = 1, params = options.params }
    return attn.run(id, given)
  end
  local function case(name, ok, text)
    name = string.format("%s, n=%d%s", name, n, causal and ", causal" or "")
    report.cases[#report.cases + 1] = { name = name, ok = ok, text = text or "" }
    report.ok = report.ok and ok
  end
  local result, message = run(input, causal)
  if not result then
    return case("runs", false, message)
  end
  local shape = table.concat(result.output.shape, ",")
  case("shape", shape == string.format("2,%d,8", n), shape)
  case("finite", finite(result.output))
  case("the same twice", (run(input, causal).output:allclose(result.output, 0, 0)))
  case("weights @ V", check_weights(result, input))
  case("FLOPs", check_flops(result))
  if causal and n > 1 then
    case("no look ahead", look_ahead(run, input, result.output))
    if attn.info(id:match("^[^(]*")).at_end then
      case("the last queries alone", last_queries(run, input, result.output))
    end
  end
  local exact, why = attn.run(options.reference or "full",
    { input = input, causal = causal, seed = 1 })
  if not exact then
    return case("the reference runs", false, why)
  end
  local _, worst = result.output:allclose(exact.output)
  report.error = math.max(report.error or 0, worst)
end

function attn.check(id, options)
  expect("string", id, "mechanism")
  if type(options) == "string" then
    options = { reference = options }
  end
  options = options or {}
  expect("table", options, "options")
  expect_keys(options, "n params reference", "check")
  expect("table", options.n or {}, "n")
  local report = { mechanism = id, ok = true, cases = {} }
  local can_be_causal = attn.info(id:match("^[^(]*")).causal
  for _, n in ipairs(options.n or { 1, 2, 7, 64 }) do
    check_size(report, id, n, false, options)
    if can_be_causal then
      check_size(report, id, n, true, options)
    end
  end
  return report
end
