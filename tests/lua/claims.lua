-- What cards, stage notes, presets and lessons say, tried against runs: support/claims.lua.
local check = require "support.check"
local claims = require "support.claims"

for _, family in ipairs { "pattern", "learned", "lowrank" } do
  claims.try("card", require("claims." .. family))
end
