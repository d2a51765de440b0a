-- arguments.lua -- settings of a script as name=value words, its --help, and what goes with them.
--
--   local settings = require "library.arguments" {
--     about = "what the script does", usage = "script.lua [name=value...]",
--     { "n", "64", "whole", "length" }, { "out", "a.png", "text", "file; - prints" },
--   }
--
-- Kinds: text, number, share (of 1), whole, count (from 1 on), flag, list (commas; those inside
-- parentheses belong to the item), mechanisms (a list of known ones), numbers, lengths
-- ("256:4096:x2", "8:32:+8" or a list), out (a file to be written, "-": standard output).  A
-- default of "" is nil (an empty list).  `words = 1` allows one word that is no setting:
-- settings[1].
--
-- settings.give_up, settings.must and settings.try end the script with one line and no traceback.
-- Work whose finished part must survive Ctrl-C runs in settings.until_stopped.

local attn = require "attnscope"

local kinds, methods = {}, {}

-- Ends the script: status 2 for wrong settings, 1 for a failure outside it, 130 after Ctrl-C.
function methods.give_up(message, status)
  message = tostring(message):gsub("^[^\n]-%.lua:%d+: ", "") -- the place in a script is of no use
  if attn.has_ui or not os or not os.exit then -- in the explorer, or attnscope lua --safe
    error(message, 0)
  end
  attn.log("error", "%s", message)
  os.exit(attn.interrupted() and 130 or status or 2, true)
end

-- For loops that skip failed runs: Ctrl-C still ends the script.
function methods.stop_if_interrupted()
  if attn.interrupted() then
    methods.give_up("interrupted")
  end
end

-- Runs f to its end or to Ctrl-C, which may raise between any two instructions; results that f has
-- stored by then stay.  False: f was stopped.
function methods.until_stopped(f, ...)
  local good, why = pcall(f, ...)
  if not good and not attn.interrupted() then
    error(why, 0)
  end
  return not attn.interrupted()
end

-- For use inside f, where a run that Ctrl-C ended looks like a failed one.
function methods.raise_if_interrupted()
  if attn.interrupted() then
    error("interrupted", 0)
  end
end

-- The word as a shell reads it back.
function methods.shell_word(text)
  local plain = text:find("^[%w%._/:+-]+$")
  return plain and text or "'" .. text:gsub("'", "'\\''") .. "'"
end

-- Returns the value; nil and a message end the script.
function methods.must(value, message)
  if not value then
    methods.give_up(message or "it failed", 1)
  end
  return value
end

-- Returns the function's value; an error, or nil and a message, ends the script.
function methods.try(f, ...)
  local good, value, message = pcall(f, ...)
  return methods.must(good and value, good and message or value)
end

local function refuse(name, expected, text)
  methods.give_up(("%s: expected %s, got '%s'"):format(name, expected, text))
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

function kinds.share(name, text)
  local number = tonumber(text)
  return number and number > 0 and number <= 1 and number
    or refuse(name, "a share above 0, of 1 at most", text)
end

function kinds.count(name, text)
  local number = math.tointeger(tonumber(text))
  return number and number >= 1 and number or refuse(name, "a whole number from 1 on", text)
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

function kinds.mechanisms(name, text)
  local out = kinds.list(name, text)
  for _, item in ipairs(out) do
    local good, message = pcall(attn.info, item:match("^[^(]*"))
    if not good then
      methods.give_up(("%s: %s"):format(name, message))
    end
  end
  return out
end

-- Opened before anything runs, so that no work is lost.
function kinds.out(name, text)
  if text == "-" or not io then
    return text
  end
  local there = io.open(text)
  local file, message = io.open(text, "a")
  if not file then
    methods.give_up(("%s: %s"):format(name, message), 1)
  end
  file:close()
  if there then
    there:close()
  else
    os.remove(text)
  end
  return text
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
      out[i] = kinds.count(name, item)
    end
    return out
  end
  local n, last, by = kinds.whole(name, from), kinds.whole(name, to), kinds.whole(name, step)
  if by < (kind == "x" and 2 or 1) or n < 1 then
    methods.give_up(name .. ": '" .. text .. "' does not end")
  elseif last < n then
    methods.give_up(name .. ": '" .. text .. "' holds no length: it begins behind its end")
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
    print(#word > 24 and ("  %s\n  %-24s %s"):format(word, "", row[4])
      or ("  %-24s %s"):format(word, row[4]))
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

-- The input of `input`, else a generated one of n, d, heads, seed and `structure`.
function methods:load(structure, usual)
  if self.input then
    return self.must(attn.load(self.input, { layer = self.layer, n = self.n, seed = self.seed }))
  end
  return self.try(attn.random, {
    structure = structure or self.structure or "normal", n = self.n or usual or 64,
    d = self.d or 32, heads = self.heads, seed = self.seed,
  })
end

-- The mechanisms of the setting, else those of the filter, with a sample value where needed.
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

-- Writes the figure into the file `out`, or prints it for "-".
function methods:write_figure(figure, options)
  if self.out == "-" then
    print((assert(figure:text { width = 100 })))
    return
  end
  options = options or {}
  options.width = options.width or self.width
  options.theme = options.theme or self.theme
  options.dpi = options.dpi or self.dpi
  self.try(figure.save, figure, self.out, options)
  attn.log("info", "%s: %d panel%s", self.out, #figure, #figure == 1 and "" or "s")
end

-- Mechanisms that could not run on the input, by the reason, in the order of their refusals.
local left_out, reasons = {}, {}

-- Notes why a mechanism is left out; tell_left_out says so, in one line for all of a reason.
function methods.leave_out(mechanism, why)
  local reason = why:match("^[%w-]+ (needs .*)$") or why:match("^[%w-]+ (reads .*)$") or why
  if not left_out[reason] then
    left_out[reason] = { why = why }
    reasons[#reasons + 1] = reason
  end
  table.insert(left_out[reason], mechanism)
end

function methods.tell_left_out()
  for _, reason in ipairs(reasons) do
    local those = left_out[reason]
    if #those == 1 then
      attn.log("warning", "left out: %s", those.why)
    else
      attn.log("warning", "left out: %s: each %s", table.concat(those, ", "), reason)
    end
  end
  left_out, reasons = {}, {}
end

-- What runs warned of, each warning once.
local reported = {}
function methods.tell_warnings(record)
  for _, warning in ipairs(record.warnings) do
    if not reported[warning] then
      reported[warning] = true
      attn.log("warning", "%s", warning)
    end
  end
end

-- Rows as CSV into `path`, or to standard output for "-".
function methods:write_csv(path, rows, columns)
  self.must(attn.csv(path == "-" and io.stdout or path, rows, columns))
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
      methods.give_up(("unknown setting '%s'%s"):format(word, nearest(rows, name or word)))
    end
  end
  local lists = { [kinds.list] = true, [kinds.mechanisms] = true, [kinds.lengths] = true }
  for name, text in pairs(texts) do
    if text ~= "" or lists[kind_of[name]] then
      settings[name] = kind_of[name](name, text)
    end
  end
  return settings
end
