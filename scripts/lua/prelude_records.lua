-- The prelude's third part: sweeps.  See prelude.lua, whose locals it has.

-- sweeps ------------------------------------------------------------------------

-- Flag of each option, and whether it is a switch.
local sweep_flags = {
  n = "--n", d = "--d", heads = "--heads", input = "--input", layer = "--layer",
  position = "--position", seed = "--seed", seeds = "--seeds", threads = "--threads",
  device = "--device", precision = "--precision", ["repeat"] = "--repeat", within = "--within",
  memory = "--mem", budget = "--budget", shard = "--shard", output = "-o",
  quality_rows = "--quality-rows",
}
local sweep_switches = {
  quality = "--quality", fit = "--fit-tensors", resume = "--resume", decode = "--decode",
}

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

-- Listed seeds must be consecutive: the first of them, and how many.
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

-- The record that `row` gave, as a line; nil: unchanged.  The key is first, as in every line.
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

-- Answers one question of the sweep; false: the sweep must stop.
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

-- The sweep's output; an error of a function is raised after the sweep has ended in order.
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
  return setmetatable(records, sweep_meta)
end

-- The number, or the main one of a group: the median of "time_ms".
function measure(record, column)
  local value = lookup(record, column)
  if value == nil and type(record.params) == "table" then
    value = record.params[column]
  end
  if type(value) == "table" then
    return value.median or value.counted or value.arena_peak or value.mass_mean
  end
  return value
end

local settings = { "n", "position", "device", "precision", "threads", "causal", "d", "heads",
  "seed" }

-- Columns that differ between records of one mechanism: "params.window", "threads".
local function varied(records, mechanism, but)
  local seen, keys, known = {}, {}, {}
  but = but:gsub("^params%.", "")
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

-- Each record with its name: the mechanism and the other columns that differ, except the seed and
-- x.
function named_records(records, x)
  local out, keys = {}, {}
  for i, record in ipairs(records) do
    expect("table", record, "a record")
    local mechanism = record.asked or record.mechanism or "?"
    keys[mechanism] = keys[mechanism] or varied(records, mechanism, x)
    local name = mechanism
    local params, others = {}, ""
    for _, key in ipairs(keys[mechanism]) do
      local word, value = key:gsub("^params%.", ""), tostring(lookup(record, key))
      if word ~= key and not name:find("(", 1, true) then
        params[#params + 1] = word .. "=" .. value
      elseif key ~= x and key ~= "seed" then
        others = others .. " " .. word .. "=" .. value
      end
    end
    if #params > 0 then
      name = ("%s(%s)"):format(name, table.concat(params, ", "))
    end
    name = name .. others
    out[i] = { name = name, record = record }
  end
  return out
end

-- The function that a sweep calls after each point, with the handlers before it.
local function told_points(progress)
  return function(done, total, record, left)
    tell("point", { done = done, total = total, record = record, left = left })
    if progress then
      return progress(done, total, record, left)
    end
  end
end

-- Mechanisms are the list part, the axes and options the named part.
function attn.sweep(options)
  expect("table", options, "options")
  local words, functions, records = { "sweep" }, {}, {}
  for _, mechanism in ipairs(options) do
    expect("string", mechanism, "mechanism")
    words[#words + 1] = "-m"
    words[#words + 1] = mechanism
  end
  for _, key in ipairs(sorted_keys(options)) do
    if key == "progress" or key == "row" then
      expect("function", options[key], key)
      functions[key] = options[key]
    elseif math.type(key) ~= "integer" then
      sweep_option(words, key, options[key])
    end
  end
  words[#words + 1] = "--json"
  if #handlers.point > 0 then
    functions.progress = told_points(functions.progress)
  end
  local text, message, code = watched_sweep(words, functions)
  if not text then
    return nil, message, code
  end
  for line in text:gmatch("[^\n]+") do
    records[#records + 1] = attn.from_json(line)
  end
  return as_sweep(records)
end

-- Measured stages under the ceilings of this machine, as the command roofline prints them.
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
  return attn.from_json(text)
end
