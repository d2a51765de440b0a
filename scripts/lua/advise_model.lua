-- advise_model.lua -- the cheapest mechanism for every layer of a model within a budget of loss.
--
--   attnscope lua advise_model.lua MODEL [name=value...]     --help lists the settings
--
-- Each candidate runs in each layer alone (by=head: in each head of each layer), on the text, and
-- its KL from the model as it is and its FLOPs are kept.  From exact attention everywhere, steps to
-- cheaper mechanisms are put in the order of KL for each FLOP saved; the convex hull of a layer's
-- candidates keeps that order sensible.  What steps do together is not the sum of what they do
-- alone, so the mixture after the first s steps is run as a whole, and s is found by bisection: the
-- last mixture that was run within the budget is the advice.  Its loss is measured, not added up.
-- The last line is a command that runs the mixture: `attnscope model MODEL --swap @advice.csv`.
--
-- Ctrl-C writes what is known by then: the best mixture so far, or before there is one a row for
-- each candidate that was tried in a layer, with the note "tried".

local attn = require "attnscope"

local settings = require "library.arguments" {
  usage = "advise_model.lua MODEL [name=value...]",
  about = "For every layer of a model the cheapest mechanism, within a budget of loss, as CSV.",
  words = 1,
  { "text", "sample:english.txt", "text", "file that the loss is of" },
  { "max_tokens", "512", "count", "of the text" },
  { "budget_loss", "0.1", "text", "nats a token that the loss may rise by, or a share of the "
    .. "model's own loss, such as 2%" },
  { "mechanisms", "pattern(window(9)+cols(1)),pattern(window(17)+cols(2)),"
    .. "pattern(window(33)+cols(4)),pattern(window(65)+cols(4)),pattern(window(129)+cols(4))",
    "mechanisms", "candidates" },
  { "by", "layer", "text", "layer, or head: a mechanism for every head, in so many more passes" },
  { "seed", "0", "whole", "of parameters that mechanisms would have learned" },
  { "out", "advice.csv", "out", "the file; - for standard output" },
}

local ROWS = 4096 -- of all variants that pass through a layer together

if settings.by ~= "layer" and settings.by ~= "head" then
  settings.give_up(("by: expected layer or head, got '%s'"):format(settings.by))
end
local amount, percent = settings.budget_loss:match("^%s*(.-)%s*(%%?)%s*$")
local budget = tonumber(amount) -- in percent until the model's own loss is known
if not budget or not (budget > 0) then
  settings.give_up(("budget_loss: expected nats above 0, or a share such as 2%%, got '%s'")
    :format(settings.budget_loss))
end

if not settings[1] then
  settings.give_up("MODEL is missing: a .gguf file, or a folder with config.json")
end

local model = settings.must(attn.model(settings[1]))
local ids = settings.must(model:read(settings.text, settings.max_tokens))
if not model.causal then
  settings.give_up(("%s is an encoder and has no loss; a decoder has (llama, qwen2, gpt2, ...)")
    :format(model.arch))
end
if #ids < 2 then
  settings.give_up("text: one token has no loss; give a longer one")
end

-- The parts that get a mechanism of their own.
local units = {}
for layer = 0, model.layers - 1 do
  for head = 0, settings.by == "head" and model.head_count - 1 or 0 do
    units[#units + 1] = { layer = layer, head = settings.by == "head" and head or nil }
  end
end

local function swap_of(unit, mechanism)
  return { swap = mechanism, layers = { unit.layer }, heads = unit.head and { unit.head },
           seed = settings.seed }
end

local function pass(swaps)
  local result, message = model:run(ids, { swaps = swaps })
  settings.raise_if_interrupted()
  return settings.must(result, message)
end

-- ---- each alone --------------------------------------------------------------

local began, spoke = os.time(), os.time()
local function say(done, all)
  local now = os.time()
  if os.difftime(now, spoke) >= 10 then
    spoke = now
    local took = os.difftime(now, began)
    attn.log("info", "each alone: %d of %d runs, %.0f s, about %.0f s left", done, all, took,
      took * (all - done) / done)
  end
end

local plain -- of the model as it is
local function try_all()
  local batch, jobs = math.max(1, ROWS // #ids - 1), {}
  for _, unit in ipairs(units) do
    unit.tried = { { mechanism = "full", kl = 0, delta = 0 } }
    for _, mechanism in ipairs(settings.mechanisms) do
      jobs[#jobs + 1] = { unit = unit, mechanism = mechanism }
    end
  end
  -- Those that begin in one layer share all layers below it.
  for first = 1, #jobs, batch do
    local swaps = {}
    for at = first, math.min(#jobs, first + batch - 1) do
      swaps[#swaps + 1] = swap_of(jobs[at].unit, jobs[at].mechanism)
    end
    local result = pass(swaps)
    plain = result.plain
    for x, one in ipairs(result) do
      local unit = jobs[first + x - 1].unit
      unit.tried[1].flops = one.flops_exact
      table.insert(unit.tried, { mechanism = one.swap, kl = one.kl, delta = one.delta,
                                 flops = one.flops, untrained = one.untrained })
    end
    say(math.min(#jobs, first + batch - 1), #jobs)
  end
end

-- ---- steps to cheaper ones -----------------------------------------------------

-- The candidates of a unit that are on the lower convex hull of KL over saved FLOPs, as steps from
-- one to the next: their KL for each FLOP rises.
local function steps_of(unit, out)
  local at = unit.tried[1]
  while true do
    local best, least
    for _, other in ipairs(unit.tried) do
      local saved = at.flops - other.flops
      if saved > 0 then
        local slope = (other.kl - at.kl) / saved
        if not least or slope < least or (slope == least and other.flops < best.flops) then
          best, least = other, slope
        end
      end
    end
    if not best then
      return
    end
    out[#out + 1] = { unit = unit, to = best, slope = least, order = #out }
    at = best
  end
end

-- The choice of each unit after so many steps.
local function after(steps, count)
  local chosen = {}
  for _, unit in ipairs(units) do
    chosen[unit] = unit.tried[1]
  end
  for s = 1, count do
    chosen[steps[s].unit] = steps[s].to
  end
  return chosen
end

local function run_mixture(chosen)
  local parts = {}
  for _, unit in ipairs(units) do
    if chosen[unit].mechanism ~= "full" then
      parts[#parts + 1] = swap_of(unit, chosen[unit].mechanism)
    end
  end
  return pass({ parts })[1]
end

-- ---- the advice ------------------------------------------------------------------

local steps, count, mixture = {}, 0, nil

-- count: the most steps whose mixture keeps within the budget (0: none does), and what it measures.
local function within()
  local high, start, runs = #steps, os.time(), 0
  while count < high do
    local middle = (count + high + 1) // 2
    local one = run_mixture(after(steps, middle))
    if one.delta <= budget then
      count, mixture = middle, one
    else
      high = middle - 1
    end
    runs = runs + 1
    local more = math.ceil(math.log(high - count + 1, 2))
    attn.log("info", "mixtures: %d of %d steps: loss %.4f (%+.4f), about %.0f s left", middle,
      #steps, one.loss, one.delta, os.difftime(os.time(), start) / runs * more)
  end
end

local function advise()
  try_all()
  if percent == "%" then
    budget = budget / 100 * plain.loss
  end
  for _, unit in ipairs(units) do
    steps_of(unit, steps)
  end
  table.sort(steps, function(a, b)
    return a.slope < b.slope or (a.slope == b.slope and a.order < b.order)
  end)
  within()
end

local columns = { "layer", "head", "mechanism", "delta alone", "KL alone", "of exact", "note" }
local function row(unit, one, note)
  return { layer = unit.layer, head = unit.head or "all", mechanism = one.mechanism,
           ["delta alone"] = one.delta, ["KL alone"] = one.kl,
           ["of exact"] = one.flops / unit.tried[1].flops, note = note }
end

-- What was tried before there was any mixture.
local function write_tried()
  local rows = {}
  for _, unit in ipairs(units) do
    for x = 2, #(unit.tried or {}) do
      rows[#rows + 1] = row(unit, unit.tried[x], "tried")
    end
  end
  settings:write_csv(settings.out, rows, columns)
  return #rows
end

local whole = settings.until_stopped(advise)
if not whole and not mixture then
  settings.give_up(("interrupted: %d of %d runs are written, and no mixture is known yet"):format(
    write_tried(), #units * #settings.mechanisms))
end

local rows, chosen, flops, exact, swapped = {}, after(steps, count), 0, 0, 0
for _, unit in ipairs(units) do
  local one, all = chosen[unit], unit.tried[1].flops
  flops, exact = flops + one.flops, exact + all
  swapped = swapped + (one.mechanism ~= "full" and 1 or 0)
  rows[#rows + 1] = row(unit, one, one.untrained and "untrained" or "")
end
settings:write_csv(settings.out, rows, columns)
if mixture then
  attn.log("info", "the whole mixture: loss %.4f -> %.4f (%+.4f of %.4g allowed), KL %.4f, "
    .. "agreement %.3f; %d of %d %ss are swapped; scores and mixing cost %.1f %% of exact "
    .. "attention's FLOPs",
    plain.loss, mixture.loss, mixture.delta, budget, mixture.kl, mixture.agreement, swapped, #units,
    settings.by, 100 * flops / exact)
  if settings.out ~= "-" then
    local word = settings.shell_word
    attn.log("info", "to run it: attnscope model %s --text %s --max-tokens %d%s --swap %s",
      word(settings[1]), word(settings.text), settings.max_tokens,
      settings.seed ~= 0 and (" --seed %d"):format(settings.seed) or "", word("@" .. settings.out))
  end
else
  attn.log("info", "loss %.4f: no swap keeps within %.4g nats; exact attention it is", plain.loss,
    budget)
end
if not whole then
  settings.give_up("interrupted: the best mixture so far is written, another may be cheaper")
end
