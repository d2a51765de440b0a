-- arguments.lua -- settings of a script as name=value words, its --help, and what goes with them.
--
--   local settings = require "library.arguments" {
--     about = "what the script does", usage = "script.lua [name=value...]",
--     { "n", "64", "whole", "length" }, { "out", "a.png", "text", "file; - prints" },
--   }
--
-- Kinds: text, number, whole, flag, list (commas; those inside parentheses belong to the
-- item), numbers, lengths ("256:4096:x2", "8:32:+8" or a list).  A default of "" is nil (an
-- empty list).  `words = 1` allows one word that is no setting: settings[1].

local attn = require "attnscope"

local kinds = {}

local function refuse(name, expected, text)
  error(("%s: expected %s, got '%s'"):format(name, expected, text), 0)
end

function kinds.text(_, text)
  return text
end

function kinds.number(name, text)
  return tonumber(text) or refuse(name, "a number", text)
end

function kinds.whole(name, text)
  return math.tointeger(tonumber(text)) or refuse(name, "a whole number", text)
end

function kinds.flag(name, text)
  if text ~= "true" and text ~= "false" then
    refuse(name, "true or false", text)
  end
  return text == "true"
end

function kinds.list(_, text)
  local out, depth, item = {}, 0, ""
  for c in (text .. ","):gmatch(".") do
    depth = depth + (c == "(" and 1 or 0) - (c == ")" and 1 or 0)
    if c == "," and depth == 0 then
      out[#out + 1], item = item ~= "" and item or nil, ""
    else
      item = item .. c
    end
  end
  return out
end

function kinds.numbers(name, text)
  local out = kinds.list(name, text)
  for i, item in ipairs(out) do
    out[i] = kinds.number(name, item)
  end
  return out
end

function kinds.lengths(name, text)
  local from, to, kind, step = text:match("^(%d+):(%d+):([x+])(%d+)$")
  local out = {}
  if not from then
    for i, item in ipairs(kinds.list(name, text)) do
      out[i] = kinds.whole(name, item)
    end
    return out
  end
  local n, last, by = kinds.whole(name, from), kinds.whole(name, to), kinds.whole(name, step)
  if by < (kind == "x" and 2 or 1) or n < 1 then
    error(name .. ": '" .. text .. "' does not end", 0)
  end
  while n <= last do
    out[#out + 1] = n
    n = kind == "x" and n * by or n + by
  end
  return out
end

local function print_help(rows)
  print(("usage: attnscope lua %s\n\n%s\n\nsettings"):format(rows.usage, rows.about))
  for _, row in ipairs(rows) do
    local word = row[1] .. "=" .. row[2]
    print(("  %-24s %s"):format(word, row[4]))
  end
end

local function nearest(rows, name)
  local best, most = nil, 0
  for _, row in ipairs(rows) do
    local same = 0
    while same < #name and name:sub(same + 1, same + 1) == row[1]:sub(same + 1, same + 1) do
      same = same + 1
    end
    if same > most then
      best, most = row[1], same
    end
  end
  return best and ("; did you mean '%s'?"):format(best) or "; --help lists them"
end

local methods = {}

-- The input of `input`, else a generated one of n, d, heads, seed and `structure`.
function methods:load(structure)
  if self.input then
    return assert(attn.load(self.input, { layer = self.layer, n = self.n, seed = self.seed }))
  end
  return assert(attn.random {
    structure = structure or self.structure or "normal", n = self.n or 64, d = self.d or 32,
    heads = self.heads, seed = self.seed,
  })
end

-- What was asked for; else those of the filter, with a sample value where they need one.
function methods:chosen(filter)
  if #self.mechanisms > 0 then
    return self.mechanisms
  end
  local out = {}
  for _, id in ipairs(attn.mechanisms(filter)) do
    local example = attn.info(id).example
    out[#out + 1] = example and ("%s(%s)"):format(id, example) or id
  end
  return out
end

-- Into the file `out`, or as text for "-".
function methods:write_figure(figure, options)
  if self.out == "-" then
    print((assert(figure:text { width = 100 })))
    return
  end
  options = options or {}
  options.width = options.width or self.width
  options.theme = options.theme or self.theme
  options.dpi = options.dpi or self.dpi
  assert(figure:save(self.out, options))
  attn.log("info", "%s: %d panel%s", self.out, #figure, #figure == 1 and "" or "s")
end

-- Rows as CSV into `path`, or to standard output for "-".
function methods.write_csv(_, path, rows, columns)
  assert(attn.csv(path == "-" and io.stdout or path, rows, columns))
  if path ~= "-" then
    attn.log("info", "%s: %d row%s", path, #rows, #rows == 1 and "" or "s")
  end
end

return function(rows)
  local texts, kind_of, settings, free = {}, {}, setmetatable({}, { __index = methods }), 0
  for _, row in ipairs(rows) do
    texts[row[1]], kind_of[row[1]] = row[2], assert(kinds[row[3]], row[3])
  end
  for _, word in ipairs(attn.args) do
    local name, value = word:match("^([%w_]+)=(.*)$")
    if word == "--help" or word == "-h" then
      print_help(rows)
      os.exit(true, true)
    elseif name and texts[name] then
      texts[name] = value
    elseif not name and free < (rows.words or 0) and word:sub(1, 1) ~= "-" then
      free = free + 1
      settings[free] = word
    else
      error(("unknown setting '%s'%s"):format(word, nearest(rows, name or word)), 0)
    end
  end
  for name, text in pairs(texts) do
    if text ~= "" or kind_of[name] == kinds.list or kind_of[name] == kinds.lengths then
      settings[name] = kind_of[name](name, text)
    end
  end
  return settings
end
