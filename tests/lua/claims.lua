-- What cards, stage notes, presets and lessons say, tried against runs: support/claims.lua.
local check = require "support.check"
local claims = require "support.claims"

for _, family in ipairs { "pattern", "learned", "chosen", "cache", "lowrank", "memory", "mixer",
                         "normaliser", "routing", "lab", "recurrent", "delta" } do
  claims.try("card", require("claims." .. family))
end
claims.try("preset", require "claims.presets")
claims.try("lesson", require "claims.lessons")
claims.try("word", require "claims.words")
claims.try("page", require "claims.pages")

check.case("every mechanism has a claim that is measured", function()
  for _, id in ipairs(attn.mechanisms()) do
    assert(claims.claimed[id], id .. " has none: add one to tests/lua/claims")
  end
end)
