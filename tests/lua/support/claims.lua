-- claims.lua -- claims of cards, stage notes, presets, lessons and words, tried against runs.
-- A claim quotes its sentence, which must still stand there, and compares numbers of runs.
local check = require "support.check"
local claims = { claimed = {} } -- claimed: mechanisms with a claim

local function plain(text)
  return (text:gsub("%s+", " "))
end

-- All that is to be read of a mechanism, a preset or a lesson.
local function card(id)
  local texts = { attn.command("info", id), attn.info(id).teaches }
  for _, note in ipairs(attn.info(id).notes) do
    texts[#texts + 1] = note.text
  end
  return plain(table.concat(texts, "\n"))
end

local function preset(id)
  for _, p in ipairs(attn.presets()) do
    if p.id == id then
      return plain(p.title .. "\n" .. p.help .. "\n" .. p.command)
    end
  end
  error("no preset " .. id)
end

local function lesson(name)
  local file = assert(io.open("scripts/lessons/" .. name .. ".lua"))
  local text = file:read("a"):gsub('"%s*%.%.%s*"', "")
  file:close()
  return plain(text)
end

local function word(name) return plain(attn.command("info", name)) end

-- A page of docs that nobody generates.
local function page(name)
  local file = assert(io.open("docs/" .. name .. ".md"))
  local text = file:read("a")
  file:close()
  return plain(text)
end

local readers = { card = card, preset = preset, lesson = lesson, word = word, page = page }

local function holds(a, is, b)
  if is == "<" then return a < b end
  if is == "<=" then return a <= b end
  if is == ">" then return a > b end
  if is == ">=" then return a >= b end
  if is == "==" then return a == b end
  if is == "~" then return math.abs(a - b) <= 1e-4 * math.max(1, math.abs(b)) end
  error("no comparison " .. is)
end

-- Gets what a claim's function calls: is(measured, comparison, expected, what of).
local function compare(a, is, b, what)
  if a == nil or b == nil then error((what and what .. ": " or "") .. "nothing was measured", 2) end
  a = a == true and 1 or a or 0
  b = b == true and 1 or b or 0
  if not holds(a, is, b) then
    error(("%s%.6g %s %.6g does not hold"):format(what and what .. ": " or "", a, is, b), 2)
  end
end

-- Each row: a name, the words that it quotes, a function that measures.
function claims.try(kind, rows)
  for _, row in ipairs(rows) do
    local id, words, measure = row[1], row[2], row[3]
    if kind == "card" then claims.claimed[id] = true end
    check.case(("%s %s: %s"):format(kind, id, words), function()
      assert(readers[kind](id):find(plain(words), 1, true), "it does not say so any more")
      measure(compare)
    end)
  end
end

-- ---- runs ----------------------------------------------------------------------------

-- On 64 tokens unless the options say otherwise.
function claims.run(text, options)
  local o = { n = 64, d = 32, heads = 1, seed = 1, input = "synthetic:normal" }
  for name, value in pairs(options or {}) do o[name] = value end
  if type(o.input) == "string" then
    o.input = assert(attn.load(o.input, { n = o.n, d = o.d, heads = o.heads, seed = o.seed }))
  end
  o.n, o.d, o.heads = nil, nil, nil
  local result, message = attn.run(text, o)
  return assert(result, message)
end

function claims.flops(result) return result.stats.flops.total end

function claims.quality(text, options)
  local o = { quality = true }
  for name, value in pairs(options or {}) do o[name] = value end
  return claims.run(text, o).stats.quality
end

-- Layers until every token reaches every other; nil: not within so many.
function claims.layers(result, most)
  return result:reach({ layers = most or 254 }).full
end

-- A view's head as rows of numbers.
function claims.rows(result, view, head)
  return assert(result:view(view, head or 0)):totable()
end

-- Newest tokens of a row that hold 90 % of its weight, signs left out: the mean of the rows.
function claims.mean_span(result)
  local weights, total = claims.rows(result, "weights"), 0
  for q, row in ipairs(weights) do
    local all, near, span = 0, 0, 0
    for k = 1, q do all = all + math.abs(row[k]) end
    while near < 0.9 * all do
      near, span = near + math.abs(row[q - span]), span + 1
    end
    total = total + span / #weights
  end
  return total
end

-- Largest difference of two rows.
function claims.apart(a, b)
  local most = 0
  for i = 1, math.max(#a, #b) do most = math.max(most, math.abs((a[i] or 0) - (b[i] or 0))) end
  return most
end

function claims.sum(row)
  local total = 0
  for _, value in ipairs(row) do total = total + value end
  return total
end

-- Share of the squared singular values of the weights that the first few hold.
function claims.energy(result, count)
  local first, all = 0, 0
  for i, row in ipairs(result:view("spectrum"):totable()) do
    first, all = first + (i <= count and row[1] ^ 2 or 0), all + row[1] ^ 2
  end
  return first / all
end

-- Entropy of a row of weights, in nats.
function claims.entropy(row)
  local total = 0
  for _, w in ipairs(row) do
    if w > 0 then total = total - w * math.log(w) end
  end
  return total
end

function claims.mean_entropy(result, view)
  local total, rows = 0, claims.rows(result, view or "weights")
  for _, row in ipairs(rows) do total = total + claims.entropy(row) end
  return total / #rows
end

-- Rows that differ from all rows before them.
function claims.distinct(rows)
  local kept = {}
  for _, row in ipairs(rows) do
    local new = true
    for _, other in ipairs(kept) do
      if claims.apart(row, other) < 1e-6 then new = false end
    end
    if new then kept[#kept + 1] = row end
  end
  return #kept
end

-- Rank of a matrix, by elimination; pivots below this share of the first count as 0.
function claims.rank(matrix, share)
  local a, rank, first = {}, 0, nil
  for i, row in ipairs(matrix) do a[i] = { table.unpack(row) } end
  while rank < #a do
    local best, at_row, at_col = 0, 0, 0
    for i = rank + 1, #a do
      for j = 1, #a[1] do
        if math.abs(a[i][j]) > best then best, at_row, at_col = math.abs(a[i][j]), i, j end
      end
    end
    first = first or best
    if best <= (share or 1e-4) * first then break end
    rank = rank + 1
    a[rank], a[at_row] = a[at_row], a[rank]
    for i = rank + 1, #a do
      local factor = a[i][at_col] / a[rank][at_col]
      for j = 1, #a[1] do a[i][j] = a[i][j] - factor * a[rank][j] end
    end
  end
  return rank
end

-- The same input with its tokens in another order: order[i] is where row i comes from, from 0.
function claims.reordered(input, order)
  local tensors = {}
  for _, name in ipairs { "q", "k", "v" } do
    local from, to = input[name], input[name]:copy()
    for i, source in ipairs(order) do
      for c = 0, from.shape[3] - 1 do to:set(0, i - 1, c, from:get(0, source, c)) end
    end
    tensors[name] = to
  end
  if input.x then
    local from, to = input.x, input.x:copy()
    for i, source in ipairs(order) do
      for c = 0, from.shape[2] - 1 do to:set(i - 1, c, from:get(source, c)) end
    end
    tensors.x = to
  end
  return assert(attn.input(tensors))
end

return claims
