-- The part of the module `attnscope` that is better written in Lua.
--
-- Embedded in the program and run once at start with the module, the classes'
-- method tables, and a function that makes a text harmless to terminals.  Each
-- function here is a row of the registration table (src/script/lua_module.c),
-- which describes it; misuse raises, the world's failures give nil, message, code.

local attn, classes, clean, sweeping = ...
local Tensor, Job = classes.Tensor, classes.Job
local io, os = io, os -- a script may lack them

-- The place that is put before the message becomes the caller's (src/script/lua_caller.c).
local function raise(format, ...)
  error(string.format(format, ...))
end

local function expect(kind, value, name)
  if type(value) ~= kind then
    raise("%s: expected %s, got %s", name, kind, type(value))
  end
end

-- No other keys than these words.
local function expect_keys(options, words, what)
  for key in pairs(options) do
    if not (" " .. words .. " "):find(" " .. tostring(key) .. " ", 1, true) then
      raise("%s has no option '%s'; it has %s", what, tostring(key), (words:gsub(" ", ", ")))
    end
  end
end

local function expect_object(value, class, name)
  if getmetatable(value) ~= "attnscope." .. class then
    raise("bad argument #1 to '%s' (attnscope.%s expected, got %s)", name, class, type(value))
  end
end

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return keys
end

-- inputs ------------------------------------------------------------------------

local choice_keys = { layer = true, n = true, d = true, heads = true, seed = true }

function attn.synthetic(spec, options)
  expect("string", spec, "spec")
  return attn.load("synthetic:" .. spec, options)
end

function attn.lessons()
  local text, message, code = attn.command("lesson", "list", "--json")
  if not text then return nil, message, code end
  return attn.from_json(text)
end

local random_keys = { structure = true, dist = true, m = true, dv = true }

-- A whole number from 1, or nil.
local function size_of(options, key)
  local value = options[key]
  if value ~= nil and (math.type(value) ~= "integer" or value < 1) then
    raise("%s: expected a whole number from 1, got %s", key, tostring(value))
  end
  return value
end

-- Normal numbers for other keys than queries, or values of another size: what does not depend on
-- a sequence is cut from one that is large enough.
local function random_cross(options, m, dv)
  local n, d = size_of(options, "n") or 64, size_of(options, "d") or 64
  m, dv = m or n, dv or d
  local large, message, code = attn.synthetic("normal", { n = math.max(n, m), d = math.max(d, dv),
                                                          heads = options.heads,
                                                          seed = options.seed })
  if not large then return nil, message, code end
  return attn.input {
    q = large.q:slice { nil, { 0, n }, { 0, d } }, k = large.k:slice { nil, { 0, m }, { 0, d } },
    v = large.v:slice { nil, { 0, m }, { 0, dv } },
    name = ("synthetic:normal(n=%d, m=%d, d=%d, dv=%d)"):format(n, m, d, dv),
  }
end

function attn.random(options)
  local choice, arguments = {}, {}
  options = options or {}
  expect("table", options, "options")
  for _, key in ipairs(sorted_keys(options)) do
    if choice_keys[key] then
      choice[key] = options[key]
    elseif not random_keys[key] then
      arguments[#arguments + 1] = string.format("%s=%s", key, options[key])
    end
  end
  local spec = options.structure or options.dist or "normal"
  expect("string", spec, options.structure and "structure" or "dist")
  local m, dv = size_of(options, "m"), size_of(options, "dv")
  if m or dv then
    if spec ~= "normal" or #arguments > 0 then
      raise("%s: only normal numbers have other keys than queries, or values of another size",
        m and "m" or "dv")
    end
    return random_cross(options, m, dv)
  end
  if #arguments > 0 then
    spec = spec .. "(" .. table.concat(arguments, ",") .. ")"
  end
  return attn.synthetic(spec, choice)
end

-- tensors -----------------------------------------------------------------------

local function rows(t, format, most)
  local parts, count = {}, t.shape[1]
  if not count then
    return string.format(format, t:get())
  end
  for i = 0, math.min(count, most) - 1 do
    parts[i + 1] = rows(t:slice { i }, format, most)
  end
  if count > most then
    parts[#parts + 1] = "..."
  end
  return "{" .. table.concat(parts, #t.shape == 1 and ", " or ",\n") .. "}"
end

function Tensor.tostring(t, format, most)
  expect_object(t, "Tensor", "tostring")
  local whole = t.dtype ~= "f32" and t.dtype ~= "f64"
  format, most = format or (whole and "%d" or "%.4g"), most or 12
  expect("string", format, "format")
  if math.type(most) ~= "integer" or most < 1 then
    raise("most: expected a whole number from 1, got %s", tostring(most))
  end
  return rows(t, format, most)
end

-- runs --------------------------------------------------------------------------

local run, start = attn.run, attn.start
local wanted = setmetatable({}, { __mode = "k" }) -- of each job: the views to be made

local function views_of(options)
  local views = type(options) == "table" and options.views or nil
  if views ~= nil then
    expect("table", views, "views")
    for _, name in ipairs(views) do
      expect("string", name, "views")
    end
  end
  return views
end

local function with_views(views, result, ...)
  for _, name in ipairs(result and views or {}) do
    local _ = result.views[name]
  end
  return result, ...
end

function attn.run(mechanism, options)
  local views = views_of(options)
  return with_views(views, run(mechanism, options))
end

function attn.start(mechanism, options)
  local views = views_of(options)
  local job, message, code = start(mechanism, options)
  if job then
    wanted[job] = views
  end
  return job, message, code
end
attn.run_async = attn.start

-- jobs --------------------------------------------------------------------------

local poll, wait = Job.poll, Job.wait
local watchers = setmetatable({}, { __mode = "k" }) -- of each job: its function
local glance = 0.1 -- seconds between calls of it

-- In the explorer, where a script may wait, the screen goes on meanwhile.
local function poll_alive(job, seconds)
  if attn.has_ui and not poll(job, 0) and seconds > 0 then
    local alive = pcall(attn.ui.sleep, math.min(seconds, 0.01))
    seconds = alive and 0 or seconds
  end
  return poll(job, seconds)
end

function Job.on_progress(job, f)
  poll(job, 0) -- is it one?
  expect("function", f, "f")
  watchers[job] = f
  return job
end

function Job.poll(job, seconds)
  local done, share, phase = poll_alive(job, seconds or 0.001)
  local f = not done and watchers[job]
  if f and f(job:progress()) == false then
    watchers[job] = nil
    job:cancel()
  end
  return done, share, phase
end

function Job.wait(job)
  local seconds = 0 -- the first call comes at once
  while not Job.poll(job, seconds) do
    seconds = glance
  end
  watchers[job] = nil
  return with_views(wanted[job], wait(job))
end

-- results -----------------------------------------------------------------------

function classes.Result.steps(result)
  expect_object(result, "Result", "steps")
  local stages, at = result:stages(), 0
  return function()
    at = at + 1
    return stages[at]
  end
end

-- figures -----------------------------------------------------------------------

local lookup -- of a row's column
local named_records, measure -- of a sweep, see below

local figure = attn.figure
local units = {
  time_ms = "time (ms)", ["time_ms.median"] = "time (ms)", memory = "memory (bytes)",
  mem = "memory (bytes)", ["memory.arena_peak"] = "memory (bytes)", flops = "FLOPs",
  ["flops.counted"] = "FLOPs", bytes = "traffic (bytes)",
}

-- Curves over x of a sweep's records, one for each mechanism and setting; of equal x the mean.
local function curves_of(sweep, x, column)
  expect("table", sweep, "sweep")
  local curves, by_name = {}, {}
  for _, point in ipairs(named_records(sweep, x)) do
    local at, cost = measure(point.record, x), measure(point.record, column)
    if point.record.status == "OK" and type(at) == "number" and type(cost) == "number" then
      local curve = by_name[point.name] or { name = point.name, n = {}, cost = {}, sums = {} }
      if not by_name[point.name] then
        by_name[point.name], curves[#curves + 1] = curve, curve
      end
      local sum = curve.sums[at] or { 0, 0 }
      if not curve.sums[at] then
        curve.sums[at], curve.n[#curve.n + 1] = sum, at
      end
      sum[1], sum[2] = sum[1] + cost, sum[2] + 1
    end
  end
  for _, curve in ipairs(curves) do
    table.sort(curve.n)
    for i, at in ipairs(curve.n) do
      curve.cost[i] = curve.sums[at][1] / curve.sums[at][2]
    end
    curve.sums = nil
  end
  return curves
end

-- Whether a record of the sweep has such a number.
local function has_measure(sweep, column)
  for _, record in ipairs(sweep) do
    if type(measure(record, column)) == "number" then
      return true
    end
  end
  return false
end

-- A panel of a sweep is one of scaling.
local function with_curves(panel)
  if type(panel) ~= "table" or panel.sweep == nil then
    return panel
  end
  expect("table", panel.sweep, "sweep")
  for _, key in ipairs { "x", "y", "cost" } do
    if panel[key] ~= nil then
      expect("string", panel[key], key)
    end
  end
  local made, x = {}, panel.x or "n"
  local column = panel.cost or panel.y or "time_ms"
  local name = panel.cost and panel.y
  if panel.y and not panel.cost and not has_measure(panel.sweep, panel.y) then
    column, name = "time_ms", panel.y -- the axis in words
  end
  for key, value in pairs(panel) do
    made[key] = value
  end
  made.sweep, made.cost = nil, nil
  made.scaling = curves_of(panel.sweep, x, column)
  if #made.scaling == 0 then
    raise("sweep: none of its %d records has %s and %s", #panel.sweep, x, column)
  end
  made.x, made.y = x, name or units[column] or column
  return made
end

-- What shows a matrix and has no region of its own shows that of the figure.
local function with_region(panel, region)
  if region == nil then
    return panel
  elseif type(panel) ~= "table" then
    return { result = panel, region = region }
  elseif panel.region ~= nil or panel.scaling ~= nil or panel.curve
    or tostring(panel.view):find("^plot%(") then
    return panel
  end
  local made = { region = region }
  for key, value in pairs(panel) do
    made[key] = value
  end
  return made
end

function attn.figure(options)
  if type(options) ~= "table" or type(options.panels) ~= "table" then
    if type(options) == "table" and options.region ~= nil then
      raise("region: it is of panels; a command has --region")
    end
    return figure(options)
  end
  local made, panels = {}, {}
  for key, value in pairs(options) do
    made[key] = value
  end
  for i, panel in ipairs(options.panels) do
    panels[i] = with_region(with_curves(panel), options.region)
  end
  made.region = nil
  made.panels = #options.panels == #panels and panels or options.panels
  return figure(made)
end

local text = classes.Figure.text

function attn.text(figure, options)
  return text(figure, options)
end

-- numbers -----------------------------------------------------------------------

-- Mechanisms are the list part, options of the runs the named part.
function attn.compare(options)
  expect("table", options, "options")
  local shared, records = {}, {}
  for key, value in pairs(options) do
    if math.type(key) ~= "integer" then
      shared[key] = value
    end
  end
  if shared.quality == nil then
    shared.quality = true
  end
  for _, mechanism in ipairs(options) do
    local record, message, code, failed = attn.profile(mechanism, shared)
    records[#records + 1] = record or failed
      or { mechanism = mechanism, status = "FAILED", message = message, code = code }
    if code == "CANCELLED" then
      break
    end
  end
  return records
end

-- definitions ---------------------------------------------------------------------

local function register(definition)
  expect("table", definition, "definition")
  if definition.row or definition.cell then
    return attn.pattern(definition)
  elseif definition.run or definition.forward then
    return attn.mechanism(definition)
  end
  raise("register: the table has none of row, cell, run and forward")
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

function classes.Context.step(context, name, views, charge)
  context:stage(name, charge)
  if views ~= nil then
    expect("table", views, "views")
    for _, view in ipairs(sorted_keys(views)) do
      context:view(view, views[view])
    end
  end
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
  end
  local exact, why = attn.run(options.reference or "full",
    { input = input, causal = causal, seed = 1 })
  if not exact then
    return case("the reference runs", false, why)
  end
  local _, worst = result.output:allclose(exact.output)
  report.error = math.max(report.error, worst)
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
  local report = { mechanism = id, ok = true, cases = {}, error = 0 }
  local can_be_causal = attn.info(id:match("^[^(]*")).causal
  for _, n in ipairs(options.n or { 1, 2, 7, 64 }) do
    check_size(report, id, n, false, options)
    if can_be_causal then
      check_size(report, id, n, true, options)
    end
  end
  return report
end

-- sweeps ------------------------------------------------------------------------

-- Flag of each option, and whether it is a switch.
local sweep_words = { grid = "params", budget_s = "budget", max_mem = "memory" } -- the same
local sweep_flags = {
  n = "--n", d = "--d", heads = "--heads", input = "--input", layer = "--layer",
  position = "--position", seed = "--seed", seeds = "--seeds", threads = "--threads",
  device = "--device", precision = "--precision", reps = "--repeat", within = "--within",
  memory = "--mem", budget = "--budget", shard = "--shard", out = "-o",
}
local sweep_switches = { quality = "--quality", fit = "--fit-tensors", resume = "--resume" }

-- A list of values is written with commas.
local function written(value, name)
  local kind = type(value)
  if kind == "table" then
    local parts = {}
    for i, item in ipairs(value) do
      parts[i] = tostring(item)
    end
    return table.concat(parts, ",")
  elseif kind ~= "number" and kind ~= "string" and kind ~= "boolean" then
    raise("%s: expected a number, text or list, got %s", name, kind)
  end
  return tostring(value)
end

-- Seeds that were listed are as many from the first on.
local function sweep_seeds(words, seeds)
  for i, seed in ipairs(seeds) do
    if math.type(seed) ~= "integer" or seed ~= seeds[1] + i - 1 then
      raise("seeds: expected how many, or numbers one after the other like {0, 1, 2}")
    end
  end
  if #seeds == 0 then
    raise("seeds: the list is empty")
  end
  for _, word in ipairs { "--seed", seeds[1], "--seeds", #seeds } do
    words[#words + 1] = tostring(word)
  end
end

local function sweep_option(words, key, value)
  if key == "seeds" and type(value) == "table" then
    return sweep_seeds(words, value)
  end
  key = sweep_words[key] or key
  if sweep_flags[key] then
    words[#words + 1] = sweep_flags[key]
    words[#words + 1] = written(value, key)
  elseif sweep_switches[key] then
    words[#words + 1] = value and sweep_switches[key] or nil
  elseif key == "causal" then
    words[#words + 1] = value and "--causal" or "--no-causal"
  elseif key == "params" then
    expect("table", value, key)
    for _, name in ipairs(sorted_keys(value)) do
      words[#words + 1] = "-p"
      words[#words + 1] = name .. "=" .. written(value[name], name)
    end
  else
    raise("sweep has no option '%s'; did you mean '%s'?", tostring(key),
      sweeping.nearest(tostring(key)))
  end
end

-- What `row` gave as a line, or nil: as it was.  The key is first, as in every line of a sweep.
local function changed_line(line, row)
  local record = attn.from_json(line)
  local key, before = record.key, attn.json(record)
  local after = row(record)
  if after == nil then
    return nil
  elseif type(after) ~= "table" then
    raise("row: expected a record or nil, got %s", type(after))
  elseif after.key ~= key then
    raise("row: the record's key must stay: a sweep that goes on knows the point by it")
  end
  local text = attn.json(after)
  if text == before then
    return nil
  end
  local rest = {}
  for name, value in pairs(after) do
    rest[name] = value
  end
  rest.key = nil
  text = attn.json(rest)
  return '{"key":' .. attn.json(key) .. (text == "[]" and "}" or "," .. text:sub(2))
end

-- One question of the sweep; false: it is to stop.
local function answer(work, functions, what, line, done, total, left)
  if what == "row" then
    sweeping.answer(work, functions.row and changed_line(line, functions.row))
  elseif what == "progress" then
    local go_on = not functions.progress
      or functions.progress(done, total, attn.from_json(line), left)
    sweeping.answer(work)
    return go_on ~= false
  elseif attn.has_ui and not pcall(attn.ui.sleep, 0.01) then
    sweeping.turn(work, 0.1)
  end
  return true
end

-- The sweep's output; what a function raises is raised when the sweep has ended in order.
local function watched_sweep(words, functions)
  local work <close>, message, code = sweeping.begin(table.unpack(words))
  if not work then
    return nil, message, code
  end
  while true do
    local question = table.pack(sweeping.turn(work, attn.has_ui and 0 or 0.1))
    if question[1] == "end" then
      return sweeping.finish(work)
    end
    local ok, go_on = pcall(answer, work, functions, table.unpack(question, 1, question.n))
    if not ok or not go_on then
      sweeping.stop(work)
      local text, why, how = sweeping.finish(work)
      if not ok then
        error(go_on, 0)
      end
      return text, why, how
    end
  end
end

-- Records of a sweep, with methods.
local Sweep = classes.Sweep
local sweep_meta = { __index = Sweep, __name = "attnscope.Sweep" }

local function as_sweep(records)
  for _, record in ipairs(records) do
    sweeping.named(record)
  end
  return setmetatable(records, sweep_meta)
end

-- The number itself, or the one that tells most of a group: "time_ms" is its median.
function measure(record, column)
  local value = lookup(record, column)
  if value == nil and type(record.params) == "table" then
    value = record.params[column]
  end
  if type(value) == "table" then
    return value.median or value.counted or value.peak or value.arena_peak or value.mass_mean
  end
  return value
end

local settings = { "position", "device", "precision", "threads", "causal", "d", "heads", "seed" }

-- What differs between records of the same mechanism: "params.window", "threads".
local function varied(records, mechanism, but)
  local seen, keys, known = {}, {}, {}
  local function look(key, value)
    value = tostring(value)
    if seen[key] ~= nil and seen[key] ~= value and not known[key] then
      known[key], keys[#keys + 1] = true, key
    end
    seen[key] = value
  end
  for _, record in ipairs(records) do
    if (record.asked or record.mechanism) == mechanism then
      for _, key in ipairs(settings) do
        look(key, record[key])
      end
      for key, value in pairs(type(record.params) == "table" and record.params or {}) do
        if key ~= but then
          look("params." .. key, type(value) == "table" and attn.json(value) or value)
        end
      end
    end
  end
  table.sort(keys)
  return keys
end

-- Each record with the name of its mechanism and of what else tells it from the others, the draw
-- and what lies along x left out.
function named_records(records, x)
  local out, keys = {}, {}
  for i, record in ipairs(records) do
    expect("table", record, "a record")
    local mechanism = record.asked or record.mechanism or "?"
    keys[mechanism] = keys[mechanism] or varied(records, mechanism, x)
    local name = mechanism
    local words = {}
    for _, key in ipairs(keys[mechanism]) do
      if key ~= x and key ~= "seed" then
        local value = tostring(lookup(record, key))
        words[#words + 1] = ("%s=%s"):format(key:gsub("^params%.", ""), value)
      end
    end
    if #words > 0 then
      words = table.concat(words, ", ")
      name = name:find("(", 1, true) and name .. " " .. words or ("%s(%s)"):format(name, words)
    end
    out[i] = { name = name, record = record }
  end
  return out
end

-- Mechanisms are the list part, the axes and options the named part.
function attn.sweep(options)
  expect("table", options, "options")
  local words, functions, records = { "sweep" }, {}, {}
  local mech = type(options.mech) == "string" and { options.mech } or options.mech or {}
  expect("table", mech, "mech")
  for _, list in ipairs { options, mech } do
    for _, mechanism in ipairs(list) do
      expect("string", mechanism, "mechanism")
      words[#words + 1] = "-m"
      words[#words + 1] = mechanism
    end
  end
  for same, key in pairs(sweep_words) do
    if options[same] ~= nil and options[key] ~= nil then
      raise("%s and %s are the same: give one", same, key)
    end
  end
  for _, key in ipairs(sorted_keys(options)) do
    if key == "progress" or key == "row" then
      expect("function", options[key], key)
      functions[key] = options[key]
    elseif math.type(key) ~= "integer" and key ~= "mech" then
      sweep_option(words, key, options[key])
    end
  end
  words[#words + 1] = "--json"
  local text, message, code
  if next(functions) then
    text, message, code = watched_sweep(words, functions)
  else
    text, message, code = attn.command(table.unpack(words))
  end
  if not text then
    return nil, message, code
  end
  for line in text:gmatch("[^\n]+") do
    records[#records + 1] = attn.from_json(line)
  end
  return as_sweep(records)
end

-- Measured stages under the ceilings of this machine, as the command roofline says them.
function attn.roofline(options)
  local words, named = { "roofline" }, {}
  options = options or {}
  expect("table", options, "options")
  for key, value in pairs(options) do
    if math.type(key) == "integer" then
      words[key + 1] = value
    else
      named[key] = value
    end
  end
  if #words == 1 then
    words[2] = "full"
  end
  for _, key in ipairs(sorted_keys(named)) do
    sweep_option(words, key, named[key])
  end
  words[#words + 1] = "--json"
  local text, message, code = attn.command(table.unpack(words))
  if not text then
    return nil, message, code
  end
  local roof = attn.from_json(text)
  roof.peak_gflops, roof.bw_gbs = roof.ceilings.peak / 1e9, roof.ceilings.stream / 1e9
  return roof
end

-- JSON --------------------------------------------------------------------------

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function json_string(s)
  return '"' .. s:gsub('[%c"\\]', function(c)
    return escapes[c] or string.format("\\u%04x", c:byte())
  end) .. '"'
end

-- The shortest text that reads back; JSON has no word for NaN and infinity.
local function json_number(x)
  if math.type(x) == "integer" then
    return tostring(x)
  elseif x ~= x or x == math.huge or x == -math.huge then
    return "null"
  end
  for digits = 6, 17 do
    local text = string.format("%." .. digits .. "g", x)
    if tonumber(text) == x then
      return text
    end
  end
end

local write_json

local function json_members(t, indent, depth, seen)
  local parts = {}
  if #t > 0 or (next(t) == nil and getmetatable(t) ~= attn.object) then
    for i = 1, #t do
      parts[i] = write_json(t[i], indent, depth + 1, seen)
    end
    return parts, "[", "]"
  end
  for _, key in ipairs(sorted_keys(t)) do
    if type(key) ~= "string" and type(key) ~= "number" then
      raise("json: a key is a %s", type(key))
    end
    parts[#parts + 1] = json_string(tostring(key)) .. (indent and ": " or ":")
      .. write_json(t[key], indent, depth + 1, seen)
  end
  return parts, "{", "}"
end

local function json_table(t, indent, depth, seen)
  if seen[t] then
    raise("json: a table holds itself")
  end
  seen[t] = true
  local parts, open, close = json_members(t, indent, depth, seen)
  seen[t] = nil
  if not indent or #parts == 0 then
    return open .. table.concat(parts, ",") .. close
  end
  local margin = "\n" .. string.rep(" ", indent * (depth + 1))
  return open .. margin .. table.concat(parts, "," .. margin)
    .. "\n" .. string.rep(" ", indent * depth) .. close
end

function write_json(value, indent, depth, seen)
  local kind = type(value)
  if value == nil or value == attn.null then
    return "null"
  elseif kind == "boolean" then
    return tostring(value)
  elseif kind == "number" then
    return json_number(value)
  elseif kind == "string" then
    return json_string(value)
  elseif kind == "table" then
    return json_table(value, indent, depth, seen)
  end
  raise("json: no word for a %s", kind)
end

function attn.json(value, indent)
  if indent ~= nil and (math.type(indent) ~= "integer" or indent < 0 or indent > 64) then
    raise("indent: expected a whole number from 0 to 64, got %s", tostring(indent))
  end
  return write_json(value, indent, 0, {})
end

-- CSV ---------------------------------------------------------------------------

-- "time_ms.median" of a nested row; a key of just that name wins.
function lookup(row, column)
  local value = row[column]
  if value ~= nil or type(column) ~= "string" then
    return value
  end
  for part in column:gmatch("[^.]+") do
    if type(row) ~= "table" then
      return nil
    end
    row = row[part]
  end
  return row
end

local function csv_cell(value)
  local kind = type(value)
  if value == nil or value == attn.null then
    return ""
  elseif kind == "number" and math.type(value) == "float" then
    value = value == value and json_number(value) or "nan"
  elseif kind == "table" then
    value = attn.json(value)
  else
    value = tostring(value)
  end
  if value:find('[,"\r\n]') then
    value = '"' .. value:gsub('"', '""') .. '"'
  end
  return value
end

local function csv_columns(rows)
  local all = {}
  for _, row in ipairs(rows) do
    for key in pairs(row) do
      all[key] = true
    end
  end
  return sorted_keys(all)
end

local function csv_text(rows, columns)
  local out, cells = {}, {}
  for i, column in ipairs(columns) do
    cells[i] = csv_cell(column)
  end
  out[1] = table.concat(cells, ",")
  for _, row in ipairs(rows) do
    for i, column in ipairs(columns) do
      cells[i] = csv_cell(lookup(row, column))
    end
    out[#out + 1] = table.concat(cells, ",")
  end
  return table.concat(out, "\n") .. "\n"
end

local function write_file(path, text)
  if path:find("\0", 1, true) then
    raise("path: there is a zero byte in it")
  end
  local file <close>, message = io.open(path .. ".tmp", "wb")
  if not file then
    return nil, message, "FILE"
  end
  local ok, why = file:write(text)
  if ok then
    ok, why = file:close()
  end
  if ok then
    ok, why = os.rename(path .. ".tmp", path)
  end
  if not ok then
    os.remove(path .. ".tmp")
    return nil, why, "FILE"
  end
  return true
end

function attn.csv(target, rows, columns)
  expect("table", rows, "rows")
  for _, row in ipairs(rows) do
    expect("table", row, "a row")
  end
  if columns ~= nil then
    expect("table", columns, "columns")
    for _, column in ipairs(columns) do
      expect("string", column, "a column")
    end
  end
  local text = csv_text(rows, columns or csv_columns(rows))
  if io.type(target) == "file" then
    local ok, message = target:write(text)
    if not ok then
      return nil, message, "FILE"
    end
    return true
  end
  expect("string", target, "target")
  return write_file(target, text)
end

function Sweep.rows(sweep)
  return sweep
end

function Sweep.filter(sweep, f)
  expect("function", f, "f")
  local kept = {}
  for _, record in ipairs(sweep) do
    if f(record) then
      kept[#kept + 1] = record
    end
  end
  return as_sweep(kept)
end

function Sweep.pivot(sweep, down, across, value)
  if value ~= nil then
    return attn.pivot(sweep, down, across, value)
  end
  expect("string", down, "down")
  expect("string", across, "value")
  local rows = {}
  for i, point in ipairs(named_records(sweep, down)) do
    rows[i] = { [down] = measure(point.record, down), mechanism = point.name,
                value = measure(point.record, across) }
  end
  return attn.pivot(rows, down, "mechanism", "value")
end

function Sweep.csv(sweep, target, columns)
  return attn.csv(target, sweep, columns)
end

function Sweep.jsonl(sweep, path)
  expect("string", path, "path")
  local lines = {}
  for i, record in ipairs(sweep) do
    lines[i] = attn.json(record) .. "\n"
  end
  return write_file(path, table.concat(lines))
end

function attn.read_sweep(path)
  expect("string", path, "path")
  if path:find("\0", 1, true) then
    raise("path: there is a zero byte in it")
  end
  local file <close>, message = io.open(path, "rb")
  if not file then
    return nil, message, "FILE"
  end
  local records, number = {}, 0
  for line in file:lines("L") do
    number = number + 1
    local record, why = attn.from_json(line)
    if record then
      records[#records + 1] = record
    elseif line:sub(-1) == "\n" then
      return nil, string.format("%s:%d: %s", path, number, why), "FORMAT"
    end
  end
  return as_sweep(records)
end

function attn.pivot(rows, down, across, value)
  expect("table", rows, "rows")
  expect("string", down, "down")
  expect("string", across, "across")
  expect("string", value, "value")
  for _, row in ipairs(rows) do
    expect("table", row, "a row")
  end
  local out, by_key, columns, known = {}, {}, { down }, {}
  for _, row in ipairs(rows) do
    local key, column = lookup(row, down), lookup(row, across)
    if key ~= nil and column ~= nil then
      column = tostring(column)
      if not known[column] then
        known[column] = true
        columns[#columns + 1] = column
      end
      if not by_key[key] then
        by_key[key] = { [down] = key }
        out[#out + 1] = by_key[key]
      end
      by_key[key][column] = measure(row, value)
    end
  end
  return out, columns
end

-- the explorer -------------------------------------------------------------------

local ask = attn.ui.ask

-- The choice whose beginning was typed, when it is the only one.
local function chosen(answer, choices)
  local found
  for _, choice in ipairs(choices) do
    if choice == answer then
      return choice
    elseif answer ~= "" and choice:sub(1, #answer) == answer then
      if found then return nil end
      found = choice
    end
  end
  return found
end

function attn.ui.ask(question, choices)
  if not choices then
    return ask(question)
  end
  expect("table", choices, "choices")
  local list, before = " (" .. table.concat(choices, ", ") .. ")", ""
  while true do
    local answer, message, code = ask(before .. question .. list)
    local choice = answer and chosen(answer, choices)
    if choice or not answer then
      return choice, message, code
    end
    before = ("'%s' is not one of them. "):format(answer)
  end
end

function attn.ui.link(on)
  expect("boolean", on, "on")
  return attn.ui.set { linked = on }
end

function attn.ui.mode(screen)
  expect("string", screen, "screen")
  return attn.ui.set { screen = screen }
end

function attn.ui.step(stage)
  if math.type(stage) ~= "integer" then
    raise("step: expected a stage from 0, got %s", tostring(stage))
  end
  return attn.ui.set { step = stage }
end

-- A number: so many stages a second, 0 stops.
function attn.ui.play(on)
  if type(on) == "number" then
    if not (on >= 0 and on <= 100) then
      raise("play: expected stages a second from 0 to 100, got %s", on)
    elseif on > 0 then
      local ok, message, code = attn.ui.set { pace = 1 / on }
      if not ok then return nil, message, code end
    end
    on = on > 0
  elseif on == nil then
    on = true
  end
  expect("boolean", on, "on")
  return attn.ui.set { playing = on }
end

local wait_for_all = attn.ui.wait

function attn.ui.wait(event)
  if attn.has_ui and event ~= nil and event ~= "done" and event ~= "drawn" then
    raise("wait: there is only the end of all that runs and is drawn, 'done'; got '%s'",
      tostring(event))
  end
  return wait_for_all()
end

function attn.ui.lesson(name)
  if type(name) == "table" then
    raise("lesson: a lesson is a file (docs/lessons.md); expected its path or its name")
  end
  expect("string", name, "lesson")
  return attn.ui.enter("lesson " .. name)
end

local set_pane = classes.Pane.set

-- mech is mechanism; params are settings like the others.
local function pane_settings(settings)
  if type(settings) ~= "table" or (settings.mech == nil and settings.params == nil) then
    return settings
  end
  local all = {}
  if settings.params ~= nil then
    expect("table", settings.params, "params")
    for key, value in pairs(settings.params) do
      all[key] = value
    end
  end
  for key, value in pairs(settings) do
    if key ~= "params" then
      all[key == "mech" and "mechanism" or key] = value
    end
  end
  return all
end

function classes.Pane.set(pane, settings)
  return set_pane(pane, pane_settings(settings))
end
classes.Pane.show = classes.Pane.set

function attn.ui.session(path)
  expect("string", path, "path")
  return attn.ui.enter("save " .. path)
end

function attn.ui.layout(text)
  if text ~= nil then
    expect("string", text, "layout")
  end
  return attn.ui.set { layout = text or "" }
end

-- A place of a note as text: a number, or all of the axis.
local function note_place(value, name)
  if value == nil then
    return "*"
  elseif math.type(value) ~= "integer" or value < 0 then
    raise("%s: expected a whole number from 0, got %s", name, tostring(value))
  end
  return tostring(value)
end

function classes.Pane.highlight(pane, note)
  if note == nil then
    return pane:set { notes = "" }
  end
  expect("table", note, "note")
  for key in pairs(note) do
    if key ~= "q" and key ~= "k" and key ~= "text" then
      raise("highlight has q, k and text, no '%s'", tostring(key))
    end
  end
  local q, k = note_place(note.q, "q"), note_place(note.k, "k")
  if q == "*" and k == "*" then
    raise("highlight: q, k or both are needed")
  end
  local text = note.text or ""
  expect("string", text, "text")
  if text:find("[|{}=%c]") then
    raise("text: none of | { } = can stand in it")
  end
  local state, message, code = pane:state()
  if not state then
    return nil, message, code
  end
  local before = state.notes and state.notes .. "|" or ""
  return pane:set { notes = before .. q .. ":" .. k .. ":" .. text }
end

function attn.ui.animate(rate, frame)
  expect("number", rate, "rate")
  expect("function", frame, "frame")
  local i = 0
  while frame(i) ~= false do
    i = i + 1
    attn.ui.wait()
    attn.ui.sleep(1 / rate)
  end
  return i
end

-- messages ----------------------------------------------------------------------

local levels = { debug = true, info = true, warning = true, error = true }

function attn.log(level, format, ...)
  if not levels[level] then
    raise("log: expected debug, info, warning or error, got '%s'", tostring(level))
  end
  if level == "debug" and not os.getenv("ATTNSCOPE_DEBUG") then
    return
  end
  local prefix = level == "info" and "" or level .. ": "
  io.stderr:write("attnscope: ", prefix, clean(string.format(format, ...)), "\n")
end
