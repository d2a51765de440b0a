-- The prelude's last part: words for the explorer, and messages.  See prelude.lua, whose locals it
-- has.

-- the explorer -------------------------------------------------------------------

local ask = attn.ui.ask

-- The only choice that begins with the typed answer; nil: there are none or several.
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

-- on: a number of stages a second, 0 stops.
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

function attn.ui.lesson(name)
  if type(name) == "table" then
    raise("lesson: a lesson is a file (docs/lessons.md); expected its path or its name")
  end
  expect("string", name, "lesson")
  return attn.ui.enter("lesson " .. name)
end

local set_pane = classes.Pane.set

-- params are settings like the others.
local function pane_settings(settings)
  if type(settings) ~= "table" or settings.params == nil then
    return settings
  end
  expect("table", settings.params, "params")
  local all = {}
  for key, value in pairs(settings.params) do
    all[key] = value
  end
  for key, value in pairs(settings) do
    if key ~= "params" then
      all[key] = value
    end
  end
  return all
end

function classes.Pane.set(pane, settings)
  return set_pane(pane, pane_settings(settings))
end

function attn.ui.session(path)
  expect("string", path, "path")
  return attn.ui.enter("save " .. path)
end

-- A note's row or column as text: a number, or * for the whole axis.
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

-- figures -----------------------------------------------------------------------

local save_figure = classes.Figure.save

function classes.Figure.save(figure, path, options)
  local ok, message, code = save_figure(figure, path, options)
  if ok then
    tell("figure", { path = path, figure = figure })
  end
  return ok, message, code
end

return tell, handlers -- for the explorer's own events
