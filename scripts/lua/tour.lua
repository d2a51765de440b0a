-- tour.lua -- the explorer by itself: a window that grows, what it misses, and what finds it.
--
--   attnscope --script tour.lua [INPUT]
--
-- Enter after each question goes on, Esc or Ctrl-C ends it.

local attn = require "attnscope"

if not attn.has_ui then
  error("this script runs in the explorer: attnscope --script tour.lua", 0)
end

local function ask(text)
  return ui.ask(text .. "  [Enter]") ~= nil
end

local function tour()
  for _, pane in ipairs(ui.panes()) do
    pane:close()
  end
  local exact = assert(ui.open "full:weights")
  ui.set { linked = true }
  ui.wait()
  if not ask "Exact attention: every pair, n x n." then
    return
  end
  local near = assert(ui.open "window(window=3):weights")
  ui.wait()
  ui.animate(4, function(i)
    ui.message(("a window of %d keys"):format(2 * i + 3))
    near:set { window = 2 * i + 3 }
    return i < 14
  end)
  if not ask "A window is cheap, and blind beyond its edge." then
    return
  end
  assert(ui.open "bigbird:weights")
  ui.set { difference = true }
  ui.wait()
  if not ask "BigBird's random and global keys; shown is the difference to exact attention." then
    return
  end
  ui.set { difference = false, focus = 1 }
  exact:zoom { q = { 0, 16 }, k = { 0, 16 } }
  ui.wait()
  ui.message "the first 16 tokens of all three; 0 shows everything, ? the keys"
end

tour()
