-- The part of the module `attnscope` that is better written in Lua.
--
-- Embedded in the program and run once at start with the module, the classes'
-- method tables, and a function that makes a text harmless to terminals.  Each
-- function here is a row of the registration table (src/script/api/module.c),
-- which describes it; misuse raises, other failures give nil, message, code.
-- prelude_define.lua, prelude_records.lua, prelude_text.lua and prelude_ui.lua go on in the same
-- chunk (mk/script.mk).

local attn, classes, clean, sweeping = ...
local Tensor, Job = classes.Tensor, classes.Job
local io, os = io, os -- a script may lack them

-- The place before the message becomes that of the caller (src/script/host/class.c).
local function raise(format, ...)
  error(string.format(format, ...))
end

local function expect(kind, value, name)
  if type(value) ~= kind then
    raise("%s: expected %s, got %s", name, kind, type(value))
  end
end

-- Raises for a key that is not among these words.
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

-- events ------------------------------------------------------------------------

local handlers = { run = {}, compare = {}, point = {}, figure = {} }
local telling = setmetatable({}, { __mode = "k" }) -- coroutines inside a handler

-- A handler that fails is reported and hurts nothing else.  What it does itself tells nobody, so
-- none calls itself for ever.
local function tell(event, about)
  local list, here = handlers[event], coroutine.running()
  if #list == 0 or telling[here] then
    return
  end
  telling[here] = true
  for _, f in ipairs({ table.unpack(list) }) do
    local ok, why = pcall(f, about)
    if not ok then
      local text = type(why) == "string" and why or "an error that is no text"
      pcall(attn.log, "error", "on %s: %s", event, text)
      if attn.has_ui then
        pcall(attn.ui.message, clean("on " .. event .. ": " .. text))
      end
    end
  end
  telling[here] = nil
end

function attn.on(event, f)
  expect("string", event, "event")
  local list = handlers[event]
  if not list then
    raise("on: there is no event '%s'; there are %s", event,
      table.concat(sorted_keys(handlers), ", "))
  end
  expect("function", f, "f")
  list[#list + 1] = f
  return function()
    for i = #list, 1, -1 do
      if list[i] == f then
        table.remove(list, i)
        return true
      end
    end
    return false
  end
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

local random_keys = { structure = true, m = true, dv = true }

-- A whole number from 1, or nil.
local function size_of(options, key)
  local value = options[key]
  if value ~= nil and (math.type(value) ~= "integer" or value < 1) then
    raise("%s: expected a whole number from 1, got %s", key, tostring(value))
  end
  return value
end

-- Normal numbers with other keys than queries, or values of another size: they are cut from an
-- input that is large enough.
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
  local spec = options.structure or "normal"
  expect("string", spec, "structure")
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

-- Tells of the run and passes its results on.
local function told_run(result, ...)
  if result then
    tell("run", { mechanism = result.mechanism, result = result })
  end
  return result, ...
end

function attn.run(mechanism, options)
  local views = views_of(options)
  return told_run(with_views(views, run(mechanism, options)))
end

function attn.start(mechanism, options)
  local views = views_of(options)
  local job, message, code = start(mechanism, options)
  if job then
    wanted[job] = views
  end
  return job, message, code
end

-- jobs --------------------------------------------------------------------------

local poll, wait = Job.poll, Job.wait
local watchers = setmetatable({}, { __mode = "k" }) -- of each job: its function
local told = setmetatable({}, { __mode = "k" }) -- jobs whose run was told of
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
  poll(job, 0) -- raises unless it is a Job
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
  if told[job] then
    return with_views(wanted[job], wait(job))
  end
  told[job] = true
  return told_run(with_views(wanted[job], wait(job)))
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
  time_ms = "time (ms)", ["time_ms.median"] = "time (ms)", cpu_ms = "processor time (ms)",
  memory = "memory (bytes)", ["memory.arena_peak"] = "memory (bytes)",
  ["memory.heap_peak"] = "heap (bytes)", ["memory.device_peak"] = "GPU memory (bytes)",
  ["memory.rss_peak"] = "memory of the process (bytes)",
  flops = "FLOPs", ["flops.counted"] = "FLOPs", ["flops.closed_form"] = "FLOPs, closed form",
  bytes = "traffic (bytes)", ["quality.mass_mean"] = "mass kept",
  ["quality.output_error"] = "output error", ["quality.total_variation"] = "total variation",
  ["decode.state_bytes"] = "cache (bytes)",
  ["decode.kv_bytes_per_token"] = "cache of one token more (bytes)",
  ["decode.step_bytes"] = "read in a decoding step (bytes)",
  ["decode.decode_flops"] = "FLOPs of a decoding step",
  ["decode.counted_flops"] = "FLOPs of the measured step",
  ["decode.step_ms"] = "time of a decoding step (ms)",
  ["decode.step_ms.median"] = "time of a decoding step (ms)",
}

-- The axis of a column: "gpu activity busy (ms)" of "gpu.activity.busy_ms".  A word that the path
-- repeats stands once.
local function axis_of(column)
  if units[column] then
    return units[column]
  end
  local words, before = {}, nil
  for word in column:gsub("^params%.", ""):gmatch("[^._]+") do
    if word ~= before then
      words[#words + 1] = word
    end
    before = word
  end
  local last = words[#words]
  if #words > 1 and (last == "bytes" or last == "ms") then
    words[#words] = "(" .. last .. ")"
  end
  return table.concat(words, " ")
end

-- "Sliding window, window 3, n = 16" of "window(window=3) n=16".
local function reader_name(name)
  local id, params, others = name:match("^([%w-]+)(%b())(.*)$")
  if not id then
    id, others = name:match("^([%w-]+)(.*)$")
  end
  local found, card = pcall(attn.info, id)
  if not found or not card then
    return name
  end
  local words = card.title:gsub(" %(.*", ""):gsub(": .*", "")
  for key, value in (params or ""):sub(2, -2):gmatch("([%w_]+)=([^,]+)") do
    words = words .. ", " .. key:gsub("_", " ") .. " " .. value
  end
  for key, value in others:gmatch(" ([%w_]+)=(%S+)") do
    words = words .. (#key == 1 and ", %s = %s" or ", %s %s"):format(key, value)
  end
  return words
end

-- What all records of a sweep share, for the caption: "d = 64, 4 heads, causal".
local function setting_of(sweep, x)
  local function shared(key)
    local value = key ~= x and sweep[1] and sweep[1][key] or nil
    for _, record in ipairs(sweep) do
      value = record[key] == value and value or nil
    end
    return value
  end
  local words, heads, position = {}, shared "heads", shared "position"
  for _, key in ipairs { "n", "d" } do
    words[#words + 1] = shared(key) and key .. " = " .. shared(key)
  end
  words[#words + 1] = heads and ("%d head%s"):format(heads, heads == 1 and "" or "s")
  words[#words + 1] = position and position ~= "none" and "position " .. position or nil
  words[#words + 1] = shared "causal" and "causal" or nil
  return table.concat(words, ", ")
end

-- Whether the column is a time that is too long: more threads than processors were free.
local function is_busy(record, column)
  return record.oversubscribed == true and column:find("_ms", 1, true) ~= nil
end

-- Curves of a sweep's records over x, one for each mechanism and setting; equal x give the mean.
local function curves_of(sweep, x, column)
  expect("table", sweep, "sweep")
  local curves, by_name = {}, {}
  for _, point in ipairs(named_records(sweep, x)) do
    local at, cost = measure(point.record, x), measure(point.record, column)
    if point.record.status == "OK" and type(at) == "number" and type(cost) == "number" then
      local curve = by_name[point.name]
        or { name = reader_name(point.name), n = {}, cost = {}, busy = {}, sums = {} }
      if not by_name[point.name] then
        by_name[point.name], curves[#curves + 1] = curve, curve
      end
      local sum = curve.sums[at] or { 0, 0, false }
      if not curve.sums[at] then
        curve.sums[at], curve.n[#curve.n + 1] = sum, at
      end
      sum[1], sum[2] = sum[1] + cost, sum[2] + 1
      sum[3] = sum[3] or is_busy(point.record, column)
    end
  end
  for _, curve in ipairs(curves) do
    table.sort(curve.n)
    for i, at in ipairs(curve.n) do
      curve.cost[i] = curve.sums[at][1] / curve.sums[at][2]
      curve.busy[i] = curve.sums[at][3]
    end
    curve.sums = nil
  end
  return curves
end

-- On which machines the records were measured: "NVIDIA H200 and AMD EPYC, 2 threads".
local function machines_of(sweep)
  local names, known = {}, {}
  for _, record in ipairs(sweep) do
    local gpu, cpu = record.gpu and record.gpu.name, record.environment and record.environment.cpu
    local other = record.device and record.device ~= "cpu" and record.device -- it has no times
    local name = gpu or other or cpu and ("%s, %d thread%s"):format(cpu, record.threads or 1,
      record.threads == 1 and "" or "s")
    if name and record.status == "OK" and not known[name] then
      known[name], names[#names + 1] = true, name
    end
  end
  return #names > 0 and table.concat(names, " and ") or nil
end

-- The records of a Record or a Result, of a list of them, or of a Sweep.
local function records_of(value, name)
  local one = type(value) == "userdata" or type(value) == "table" and value.mechanism ~= nil
  local out = {}
  expect("table", one and {} or value, name)
  for i, item in ipairs(one and { value } or value) do
    local record = getmetatable(item) == "attnscope.Result" and item.record or item
    if type(record) ~= "table" or record.mechanism == nil then
      raise("%s: expected records or results, got %s at %d", name, type(item), i)
    end
    out[i] = record
  end
  return out
end

-- A curve with records, which give n and cost where the curve leaves them out.
local function curve_of(curve, records, x, column)
  local made = { n = {}, cost = {}, busy = {} }
  for _, record in ipairs(records) do
    local at, cost = measure(record, x), measure(record, column)
    if record.status == "OK" and type(at) == "number" and type(cost) == "number" then
      made.n[#made.n + 1], made.cost[#made.cost + 1] = at, cost
      made.busy[#made.n] = is_busy(record, column)
    end
  end
  if #made.n == 0 and not (curve.n and curve.cost) then
    raise("records: none of the %d has %s and %s", #records, x, column)
  end
  for key, value in pairs(curve) do
    made[key] = value
  end
  made.records = nil
  if curve.n or curve.cost then
    made.busy = nil -- of other points
  end
  return made
end

-- Replaces the records of a scaling panel by numbers, and those of `measured` by words.
local function with_records(panel)
  local made, all = { scaling = {} }, {}
  for key, value in pairs(panel) do
    made[key] = made[key] or value
  end
  for k, curve in ipairs(panel.scaling) do
    local records = type(curve) == "table" and curve.records
    made.scaling[k] = curve
    if records then
      records = records_of(records, "records")
      table.move(records, 1, #records, #all + 1, all)
      made.scaling[k] = curve_of(curve, records, panel.x or "n", panel.cost or "time_ms")
      made.y = panel.y or axis_of(panel.cost or "time_ms")
    end
  end
  made.cost = nil
  if type(panel.measured) == "string" then
    return made
  end
  made.measured = machines_of(panel.measured and records_of(panel.measured, "measured") or all)
  return made
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

-- Turns a panel of a sweep into one of scaling.
local function with_curves(panel)
  if type(panel) ~= "table" or panel.sweep == nil then
    return type(panel) == "table" and type(panel.scaling) == "table" and with_records(panel)
      or panel
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
  made.x, made.y = axis_of(x), name or axis_of(column)
  made.setting = panel.setting or setting_of(panel.sweep, x)
  made.measured = panel.measured or machines_of(panel.sweep)
  return made
end

-- A panel that shows a matrix and has no region gets that of the figure.
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
  local budget = shared.budget
  shared.budget = nil
  for _, mechanism in ipairs(options) do
    local sized, note, code = mechanism, nil, nil
    local record, message, failed
    if budget then
      sized, note, code = attn.budget(mechanism, budget, shared)
    end
    if sized then
      record, message, code, failed = attn.profile(sized, shared)
    else
      message = note
    end
    record = record or failed
      or { mechanism = mechanism, status = "FAILED", message = message, code = code }
    if sized and note then
      record.warnings = record.warnings or {}
      table.insert(record.warnings, note)
    end
    records[#records + 1] = record
    if code == "CANCELLED" then
      break
    end
  end
  tell("compare", { records = records })
  return records
end
