-- The prelude's fourth part: JSON and CSV.  See prelude.lua, whose locals it has.

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

-- A metatable may claim any length.
local ENTRIES_MOST <const> = 1 << 26

local function json_members(t, indent, depth, seen)
  local parts = {}
  if #t > ENTRIES_MOST then
    raise("json: a list has %s entries, more than %d", tostring(#t), ENTRIES_MOST)
  end
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

-- "time_ms.median" of a nested row; a key of exactly that name goes first.
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

-- Named values, whose names can be parts of a column's.
local function is_group(value)
  if type(value) ~= "table" or next(value) == nil then
    return false
  end
  for key in pairs(value) do
    if type(key) ~= "string" or key:find(".", 1, true) then
      return false
    end
  end
  return true
end

-- A table that holds itself has no end; attn.json says so.
local function add_columns(all, row, before, whole)
  for key, value in pairs(row) do
    local column = before == "" and key or before .. key
    if is_group(value) and not whole[column] and #before < 400 then
      add_columns(all, value, column .. ".", whole)
    else
      all[column] = true
    end
  end
end

-- whole: names of groups that are one column each, as JSON.
local function csv_columns(rows, whole)
  local all = {}
  for _, row in ipairs(rows) do
    add_columns(all, row, "", whole)
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

-- whole: groups that stay together where no columns are given.
local function write_csv(target, rows, columns, whole)
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
  local text = csv_text(rows, columns or csv_columns(rows, whole))
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

function attn.csv(target, rows, columns)
  return write_csv(target, rows, columns, {})
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

-- Steps from one word to the other: letters put in, left out or changed.
local function slips(a, b)
  local row = {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local corner = row[0]
    row[0] = i
    for j = 1, #b do
      local above = row[j]
      row[j] = math.min(above + 1, row[j - 1] + 1,
        corner + (a:byte(i) == b:byte(j) and 0 or 1))
      corner = above
    end
  end
  return row[#b]
end

-- True, or null where the group that would hold the column was not measured; else false.
local function has_column(row, name)
  if row[name] ~= nil or type(row.params) == "table" and row.params[name] ~= nil then
    return true
  end
  for part in name:gmatch("[^.]+") do
    if type(row) ~= "table" then
      return row == attn.null and row
    end
    row = row[part]
  end
  return row ~= nil
end

local function offer_columns(group, lead, offer)
  for key, value in pairs(group) do
    if type(key) == "string" then
      offer(lead .. key)
      if type(value) == "table" and #lead == 0 then
        offer_columns(value, key .. ".", offer)
      end
    end
  end
end

-- A column that no record has is an error, with the name nearest to it.
local function check_column(rows, name)
  local best, nearest, unmeasured, absent = math.huge, nil, false, false
  for _, row in ipairs(rows) do
    local found = has_column(row, name)
    if found == true then
      return
    end
    unmeasured, absent = unmeasured or found == attn.null, absent or not found
  end
  if unmeasured and not absent then
    return
  end
  for _, row in ipairs(rows) do
    offer_columns(row, "", function(other)
      local count = slips(name, other)
      if count < best or count == best and other < nearest then
        best, nearest = count, other
      end
    end)
  end
  if nearest then
    raise("no record has a column '%s'; did you mean '%s'?", name, nearest)
  end
end

-- What tells two records of one cell apart: "params.window=5 and 9".
local function apart(a, b)
  local names, parts = { "seed", "process.number", "position", "device", "precision", "threads",
    "causal", "d", "heads", "n", "input.source" }, {}
  for _, record in ipairs { a, b } do
    for key in pairs(type(record.params) == "table" and record.params or {}) do
      names[#names + 1] = "params." .. key
    end
  end
  table.sort(names)
  for at, name in ipairs(names) do
    local x, y = lookup(a, name), lookup(b, name)
    if x ~= y and name ~= names[at - 1] then
      parts[#parts + 1] = string.format("%s=%s and %s", name, tostring(x), tostring(y))
    end
  end
  return table.concat(parts, ", ")
end

local function check_double(a, b, where)
  local what = apart(a, b)
  raise("two records stand at %s%s; filter them first, or put what differs across", where,
    #what > 0 and ": they differ in " .. what or " with two values")
end

local function pivot_table(rows, down, across, value)
  local out, by_key, columns, known, from = {}, {}, { down }, {}, {}
  for _, row in ipairs(rows) do
    local key, column = lookup(row, down), lookup(row, across)
    if key ~= nil and column ~= nil then
      column = tostring(column)
      if not known[column] then
        known[column] = true
        columns[#columns + 1] = column
      end
      if not by_key[key] then
        by_key[key], from[key] = { [down] = key }, {}
        out[#out + 1] = by_key[key]
      end
      local held, new = by_key[key][column], measure(row, value)
      if from[key][column] and held ~= nil and new ~= nil and held ~= new then
        check_double(from[key][column], row,
          string.format("%s=%s, %s=%s", down, tostring(key), across, column))
      end
      if new ~= nil then
        by_key[key][column], from[key][column] = new, row
      end
    end
  end
  return out, columns
end

function Sweep.pivot(sweep, down, across, value)
  if value ~= nil then
    return attn.pivot(sweep, down, across, value)
  end
  expect("string", down, "down")
  expect("string", across, "value")
  check_column(sweep, down)
  check_column(sweep, across)
  local rows = {}
  for i, point in ipairs(named_records(sweep, down)) do
    rows[i] = { [down] = measure(point.record, down), mechanism = point.name,
                value = measure(point.record, across) }
  end
  return pivot_table(rows, down, "mechanism", "value")
end

-- Each mechanism has other parameters and figures, so these stay together.
function Sweep.csv(sweep, target, columns)
  return write_csv(target, sweep, columns, { params = true, figures = true })
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
  for _, name in ipairs { down, across, value } do
    check_column(rows, name)
  end
  return pivot_table(rows, down, across, value)
end
