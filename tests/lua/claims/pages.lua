-- Sentences of pages that are written by hand.
local claims = require "support.claims"

return {
  { "faq", "All mechanisms of class FP alone take this, and so do `full`, `bigbird`, `longformer`, "
      .. "`adaptive-span`, `topk`, `moba`, `nsa`, `dsa`, `quest`, `snapkv`, `vertical-slash`, "
      .. "`mla`, `sigmoid`, `entmax` and `differential`.", function(is)
    local named = {}
    for id in ("full bigbird longformer adaptive-span topk moba nsa dsa quest snapkv "
        .. "vertical-slash mla sigmoid entmax differential"):gmatch("%S+") do
      named[id] = true
    end
    for _, id in ipairs(attn.mechanisms()) do
      local card = attn.command("info", id)
      local said = card:find("class     FP (", 1, true) ~= nil or named[id] or false
      is(card:find("also with fewer queries than keys", 1, true) ~= nil, "==", said, id)
    end
  end },
  { "reach", "With `--causal` a global token hands on only what stands before it, so they "
      .. "need many.",
    function(is)
      for _, text in ipairs { "longformer", "bigbird" } do
        is(claims.layers(claims.run(text)), "==", 2, text)
        is(claims.layers(claims.run(text, { causal = true })), ">", 6, text)
      end
    end },
}
