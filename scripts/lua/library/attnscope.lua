---@meta attnscope
-- Made by `attnscope docs luals`; do not edit.
-- Indices of tokens, heads and axes count from 0; Lua lists from 1.
-- A wrong call raises an error; a failure outside the program (files, memory,
-- Ctrl-C) returns nil, message, code.

---The explorer, for scripts in it; elsewhere every function raises (attn.has_ui).
---@class attnscope.ui
local ui = {}

---A pane more: "bigbird(window=5):weights@1".
---@param text string
---@return attnscope.Pane?
---@return string?
---@return string?
function ui.open(text) end

---Default: the focused one.
---@param number? integer
---@return attnscope.Pane
function ui.pane(number) end

---All that are open.
---@return attnscope.Pane[]
function ui.panes() end

---Settings of the screen: screen (browse, compare, step, profile), linked, alone, difference, labels, strips, own-scales, theme, glyphs, focus, step (a stage from 0), playing, pace (seconds a stage), layout (panes as ROWSxCOLS where there is room; "": as their matrices are largest).
---@param settings table<string, any>
---@return true?
---@return string?
---@return string?
function ui.set(settings) end

---Goes to the step screen and on from stage to stage, so many a second if it is a number; false or 0 stops.
---@param on? boolean|number
---@return true?
---@return string?
---@return string?
function ui.play(on) end

---Opens a lesson: one of attn.lessons(), or a file (docs/lessons.md).
---@param name string
---@return true?
---@return string?
---@return string?
function ui.lesson(name) end

---Saves the session; ui.enter "restore PATH" brings it back.
---@param path string
---@return true?
---@return string?
---@return string?
function ui.session(path) end

---The same as they are now.
---@return table?
---@return string?
---@return string?
function ui.state() end

---What a key does, by its name: ui.action "difference"; docs/keys.md lists them.
---@param id string
---@return true?
---@return string?
---@return string?
function ui.action(id) end

---Keys as if pressed: ui.keys "j j S-Right".
---@param keys string
---@return true?
---@return string?
---@return string?
function ui.keys(keys) end

---A line as typed after a colon: ui.enter "restore figure-3".
---@param line string
---@return true?
---@return string?
---@return string?
function ui.enter(line) end

---Begins to write what is on the screen, one file at a time; ui.wait waits for it.  Refused at once: another ending, a folder that cannot be written.
---@param path string
---@return true?
---@return string?
---@return string?
function ui.export(path) end

---Marks these queries and no others; {} marks none.
---@param queries integer[]
---@return true?
---@return string?
---@return string?
function ui.mark(queries) end

---A line at the bottom.
---@param text any
function ui.message(text) end

---Waits for a typed answer; nil: Esc.  Of choices it is one, of which the beginning was typed; until then the question comes again.
---@param question string
---@param choices? string[]
---@return string?
function ui.ask(question, choices) end

---Waits; the explorer lives on.
---@param seconds number
function ui.sleep(seconds) end

---Until all runs are done and drawn.
function ui.wait() end

---Calls frame(0), frame(1), ... so many times a second, each when the one before is drawn, until it gives false; the number of frames.
---@param rate number
---@param frame fun(i: integer): boolean?
---@return integer
function ui.animate(rate, frame) end

---A key in all, browse, compare, step or profile: an action's name or a function; ui.map("F5", f) is in all.
---@param where string
---@param key string
---@param action string|function
---@return true?
---@return string?
---@return string?
function ui.map(where, key, action) end

---A command of your own, typed as :name WORDS; f gets the words as one text.  Tab completes its name, and messages show the help.  Names of the explorer's own are refused.
---@param name string
---@param f fun(rest: string)
---@param help? string
---@return true?
---@return string?
---@return string?
function ui.command(name, f, help) end

---Leaves the explorer.
function ui.leave() end

---A pane of the explorer, by its number.
---@class attnscope.Pane
---@field number integer as on the screen, from 1
local Pane = {}

---Parameters and settings, at once: pane:set{ window = 5, view = "weights", head = 1 }.  Names are those of a saved session (view, head, round, pool, scale, colours, sorted, position, seed, causal, query, key, ...), mechanism, and the mechanism's parameters, which may also stand in a table params.
---@param settings table<string, any>
---@return true?
---@return string?
---@return string?
function Pane:set(settings) end

---What it shows, by the same names: mechanism, view, head, query, key, running, problem; what is as usual is absent.
---@return table?
---@return string?
---@return string?
function Pane:state() end

---Brings a region into sight: { q = { 0, 64 }, k = { 0, 64 } }; nothing: all of it.
---@param region? table
---@return true?
---@return string?
---@return string?
function Pane:zoom(region) end

---Puts the cursor there; linked panes follow.
---@param query integer
---@param key integer
---@return true?
---@return string?
---@return string?
function Pane:cursor(query, key) end

---Marks a cell, or without one of them a whole column or row, with a few words: pane:highlight{ q = 5, k = 3, text = "near itself" }.  Eight at most; nothing takes all of them away.  Files that are written, saved sessions and undo have them too.
---@param note? { q?: integer, k?: integer, text?: string }
---@return true?
---@return string?
---@return string?
function Pane:highlight(note) end

---Closes it; those after it move up.
---@return true?
---@return string?
---@return string?
function Pane:close() end

---Numbers in up to four axes, row major.  +, -, * and / work element by element, on two tensors or a tensor and a number, and - before one; an axis of 1 is repeated along the other's, and so are leading axes that one of them lacks: [h,n,m] + [n,m].
---@class attnscope.Tensor
---@field shape integer[] extents of the axes
---@field dtype string f32, f64, i32, i64 or u8
---@operator add(attnscope.Tensor|number): attnscope.Tensor
---@operator sub(attnscope.Tensor|number): attnscope.Tensor
---@operator mul(attnscope.Tensor|number): attnscope.Tensor
---@operator div(attnscope.Tensor|number): attnscope.Tensor
---@operator unm: attnscope.Tensor
---@operator len: integer
local Tensor = {}

---The element at these indices.
---@param ... integer
---@return number
function Tensor:get(...) end

---Sets the element at the leading indices to the last argument.
---@param ... number
function Tensor:set(...) end

---A view without a copy: per axis {from, to[, step]} (to is left out), an index, or nil.
---@param axes (integer[]|integer|nil)[]
---@return attnscope.Tensor
function Tensor:slice(axes) end

---A view with the last two axes exchanged.
---@return attnscope.Tensor
function Tensor:transpose() end

---A contiguous copy that may be written.
---@return attnscope.Tensor
function Tensor:copy() end

---Nested Lua lists.
---@return table
function Tensor:totable() end

---The numbers as text, at most `most` (default 12) of an axis.
---@param format? string
---@param most? integer
---@return string
function Tensor:tostring(format, most) end

---Writes a .npy file.
---@param path string
---@return true?
---@return string?
---@return string?
function Tensor:write(path) end

---Size of the elements.
---@return integer
function Tensor:bytes() end

---Of all elements, or along an axis (counted from 0).
---@param axis? integer
---@return number|attnscope.Tensor
function Tensor:sum(axis) end

---As sum.
---@param axis? integer
---@return number|attnscope.Tensor
function Tensor:mean(axis) end

---As sum; NaN if there is a NaN.
---@param axis? integer
---@return number|attnscope.Tensor
function Tensor:min(axis) end

---As sum; NaN if there is a NaN.
---@param axis? integer
---@return number|attnscope.Tensor
function Tensor:max(axis) end

---Indices of the first largest element, one result per axis; or a tensor along an axis.
---@param axis? integer
---@return integer|attnscope.Tensor
---@return ...integer
function Tensor:argmax(axis) end

---How many elements are not 0.
---@return integer
function Tensor:nnz() end

---exp, log, sqrt, abs, square, sign, or a function, applied to every element.
---@param f string|fun(x: number): number
---@return attnscope.Tensor
function Tensor:map(f) end

---Softmax along the last axis; causal: columns after the row are left out (a number: columns after row + number).
---@param causal? boolean|integer
---@return attnscope.Tensor
function Tensor:softmax(causal) end

---The numbers along the last axis from the largest on, of equals the first first and NaN last, as f64; and the index of each, as i32.  With indices of one row alone: t:sort_desc(row), or (head, row).
---@param ... integer
---@return attnscope.Tensor
---@return attnscope.Tensor
function Tensor:sort_desc(...) end

---Running sums along an axis.
---@param axis integer
---@return attnscope.Tensor
function Tensor:cumsum(axis) end

---A copy of the same numbers in another shape.
---@param shape integer[]
---@return attnscope.Tensor
function Tensor:reshape(shape) end

---Product of [n,k] and [k,m], or of [h,n,k] and [h,k,m].
---@param other attnscope.Tensor
---@return attnscope.Tensor
function Tensor:matmul(other) end

---Whether all |a - b| <= atol + rtol |b|; and the largest |a - b|.
---@param other attnscope.Tensor
---@param rtol? number
---@param atol? number
---@return boolean
---@return number
function Tensor:allclose(other, rtol, atol) end

---Gives the memory back now.
function Tensor:close() end

---One layer of one sequence: what mechanisms are run on.
---@class attnscope.Input
---@field n integer queries
---@field m integer keys
---@field d integer size of a query and a key
---@field e integer size of a value
---@field heads integer query heads
---@field kv_heads integer heads of k and v; query head h looks at head h // (heads // kv_heads)
---@field layer integer which layer of the file this is
---@field layers integer how many layers the file holds
---@field held integer[] the numbers of these, ascending
---@field width integer pixels of a line of an image; 0: no image
---@field causal boolean? as the file says; nil: it does not
---@field scale number? of the scores, as the file says; nil: 1/sqrt(d)
---@field window integer? of its model's exact attention: |i - j| < window; nil: none
---@field name string path or generator
---@field kind string npz, safetensors, text, image, synthetic, tensors
---@field model string? the model it came from
---@field note string? how q, k and v came to be
---@field sha256 string fingerprint of the content
---@field q attnscope.Tensor? [h,n,d], read only
---@field k attnscope.Tensor? [kv_heads,m,d], read only
---@field v attnscope.Tensor? [kv_heads,m,e], read only
---@field x attnscope.Tensor? the layer's own input [n,dm], read only
---@field attn attnscope.Tensor? finished weights [h,n,m], read only
---@field segments attnscope.Tensor? document of each position [n]: $segments of patterns; read only
---@field tokens string[]? labels of the keys
---@operator len: integer
local Input = {}

---Label of key j, counted from 0.
---@param j integer
---@return string?
function Input:token(j) end

---Writes .npz, or .safetensors with the tokens.
---@param path string
---@return true?
---@return string?
---@return string?
function Input:save(path) end

---Lets go of it now; runs made on it stay.
function Input:close() end

---A finished run of a mechanism.
---@class attnscope.Result
---@field output attnscope.Tensor [h,n,e], read only
---@field views table<string, attnscope.Tensor> made when asked for
---@field params table<string, any> every parameter as it was bound
---@field stats table run_ms; flops {score, mixing, overhead, position, total}; nnz, density; threads, bytes; time_ms {median, q1, q3, min, ...} and memory {arena_peak, ...} where they were taken; quality
---@field record attnscope.Record as `attnscope run --json` prints it
---@field mechanism string its id
---@field text string mechanism and parameters as on a command line
---@field input attnscope.Input what it ran on
---@field figures table<string, number> the mechanism's own numbers
---@field warnings string[] what the run warned of
---@operator len: integer
local Result = {}

---Names of the views there are.
---@return string[]
function Result:view_names() end

---A whole view; or one head's matrix, or the part {q0, q1, k0, k1} of it, as f32.
---@param name string
---@param head? integer
---@param region? integer[]|{ q: integer[], k: integer[] }
---@return attnscope.Tensor?
---@return string?
---@return string?
function Result:view(name, head, region) end

---Why: allowed, components, weight, rank (1 is the largest), below (log of the row's top weight over it), score before the softmax (own_score: the row's weights are its softmax), share and length of what it adds to the output, exact {weight, rank, keys} of exact attention, and the value of every view.
---@param q integer
---@param k integer
---@param head? integer
---@return attnscope.Cell
function Result:cell(q, k, head) end

---The keys query q may see: {k, weight, components} each.
---@param q integer
---@param head? integer
---@return attnscope.RowEntry[]
function Result:row(q, head) end

---Steps of the algorithm: name, iteration, note, flops, arena_peak, views, traces; behind them those of its replay (replay = true), with what each said.
---@return attnscope.StageEntry[]
function Result:stages() end

---The same one after the other: for step in r:steps() do print(step.name) end
---@return fun(): attnscope.StageEntry?
function Result:steps() end

---What the steps make: side by side (.png, .svg, ...), one after the other (.apng), or a file each (steps-%02d.png).
---@param path string
---@param options? attnscope.SaveOptions
---@return true?
---@return string?
---@return string?
function Result:save_steps(path, options) end

---max_abs, mean_abs, rel_l2 of the outputs (relative to the other's); total_variation and kl of the weights, or kl_lacks.
---@param other attnscope.Result
---@return attnscope.Comparison?
---@return string?
---@return string?
function Result:compare(other) end

---The cells that queries may see, to be run again, compared, changed or drawn.
---@return attnscope.Pattern?
---@return string?
---@return string?
function Result:pattern() end

---What reaches what through layers of this: depths {layers, pairs, share, least, mean, most} from 0 layers on, full, fixed, mean_hops.
---@param options? attnscope.ReachOptions
---@return table?
---@return string?
---@return string?
function Result:reach(options) end

---Which of the strongest keys of exact attention were found: keys, found, mass, ranked, rounds {alone, together}, heads {found, mass}, queries [h,n].
---@param options? attnscope.MissedOptions
---@return table?
---@return string?
---@return string?
function Result:missed(options) end

---A shortest way from query q down to token k; nil when it is not reached.
---@param q integer
---@param k integer
---@param options? attnscope.ReachOptions
---@return integer[]?
---@return string?
---@return string?
function Result:reach_path(q, k, options) end

---Lets go of it now; its tensors stay.
function Result:close() end

---Which queries may see which keys, as a run left it.  attn.run(p) runs it on the same input or another of its size, a panel { pattern = p } draws it.
---@class attnscope.Pattern
---@field n integer queries
---@field m integer keys
---@field heads integer heads
---@field per_head boolean heads differ
---@field nnz integer allowed cells, over all heads
---@field density number their share of all cells
---@field runs attnscope.Tensor [c,6] i64, read only: head (-1: all), query, start, count, step, component.  Written as .npy it is what runs($t) of the pattern language takes.
---@operator len: integer
local Pattern = {}

---The keys query q may see, in increasing order.
---@param q integer
---@param head? integer
---@return integer[]
function Pattern:row(q, head) end

---Whether query q may see key k, and by which components.
---@param q integer
---@param k integer
---@param head? integer
---@return boolean
---@return string[]
function Pattern:cell(q, k, head) end

---same; cells that are in both, only_this or only_other; jaccard, the share of both in all.
---@param other attnscope.Pattern
---@return table
function Pattern:compare(other) end

---Cells of this or the other, with the components of both.
---@param other attnscope.Pattern
---@return attnscope.Pattern?
---@return string?
---@return string?
function Pattern:union(other) end

---Cells of both.
---@param other attnscope.Pattern
---@return attnscope.Pattern?
---@return string?
---@return string?
function Pattern:common(other) end

---Cells of this that are not the other's.
---@param other attnscope.Pattern
---@return attnscope.Pattern?
---@return string?
---@return string?
function Pattern:minus(other) end

---The same cells, all of one component (its colour: window, global, random, strided, block or other), which pictures call by the name.
---@param component string
---@param name? string
---@return attnscope.Pattern?
---@return string?
---@return string?
function Pattern:as(component, name) end

---Gives the memory back now.
function Pattern:close() end

---Panels side by side, for a file or the terminal.
---@class attnscope.Figure
---@operator len: integer
local Figure = {}

---Writes .png, .svg, .pdf, .txt or .ans.
---@param path string
---@param options? attnscope.SaveOptions
---@return true?
---@return string?
---@return string?
function Figure:save(path, options) end

---The figure as lines of text.
---@param options? attnscope.TextOptions
---@return string?
---@return string?
---@return string?
function Figure:text(options) end

---Lets go of what it shows.
function Figure:close() end

---A transformer read from a GGUF file or a folder with config.json.
---@class attnscope.Model
---@field arch string family: llama, gpt2, bert, ...
---@field causal boolean tokens see no later ones
---@field layers integer layers
---@field head_count integer heads of a layer
---@field kv_heads integer heads of k and v
---@field head_dim integer width of a head
---@field width integer width of the residual stream
---@field vocab integer tokens there are
---@field context integer tokens of a text, at most, in training
local Model = {}

---Ids of a text, with the tokens that the tokenizer puts around one unless special is false.
---@param text string
---@param special? boolean
---@return integer[]?
---@return string?
---@return string?
function Model:encode(text, special) end

---Ids of a text's file, or of sample:english.txt; of its first `most`.
---@param text string
---@param most? integer
---@return integer[]?
---@return string?
---@return string?
function Model:read(text, most) end

---The bytes a token stands for; "": none.
---@param id integer
---@return string
function Model:token(id) end

---The forward pass: loss, perplexity, nll of each token from the second on, next (id, p) after the last one, residual_norm, seconds.  With a swap these are of the swapped model, with delta, kl, kl_max, agreement, cosine, residual, flops, flops_exact and untrained, note (how a parameter was read) where there is one, and plain holds those of the model as it is.  Of swaps, and with vary, a list of such tables, with one plain; vary adds value and given, the place of its swap in swaps.
---@param ids integer[]
---@param options? attnscope.ModelOptions
---@return table?
---@return string?
---@return string?
function Model:run(ids, options) end

---The model writes `count` tokens on, as it is or with a swap that is a pattern or a mixture of patterns: ids, text, p (of each token), cache_bytes, read_keys (of the last token, over layers and heads), ended (by itself), seconds, and swap.
---@param ids integer[]
---@param count integer
---@param options? attnscope.GenerateOptions
---@return table?
---@return string?
---@return string?
function Model:generate(ids, count, options) end

---A table for each head: layer, head, label, words (the label as people read it), previous, self, first, next, entropy, distance, near (weight on the keys up to so many away; 8 unless given), offset (weight on the key offset_tokens before, the best of 2 to 16), induction, induction_rows.
---@param ids integer[]
---@param near? integer
---@return table[]?
---@return string?
---@return string?
function Model:heads(ids, near) end

---q, k, v and x of a layer, as an input.
---@param layer integer
---@param ids integer[]
---@return attnscope.Input?
---@return string?
---@return string?
function Model:layer(layer, ids) end

---Gives the memory back now.
function Model:close() end

---What a model runs with.
---@class attnscope.ModelOptions
---@field swap? string a mechanism in place of exact attention: "window(window=33)"; or a mixture from a CSV file, as advise_model.lua writes it: "@advice.csv"
---@field layers? integer[] layers of the swap (default: all)
---@field heads? integer[] heads of the swap (default: all)
---@field seed? integer of parameters the mechanism would have learned
---@field swaps? table[] many of swap, layers, heads and seed in one pass; one that is a list of such tables is a mixture: the first that names a head has it
---@field vary? string every swap at each value of a name, "window=9:129:x2": of its parameter, or of a word in it, as w in "pattern(window(w)+cols(4))"

---A swap, one of several.
---@class attnscope.ModelSwap
---@field swap? string a mechanism in place of exact attention: "window(window=33)"; or a mixture from a CSV file, as advise_model.lua writes it: "@advice.csv"
---@field layers? integer[] layers of the swap (default: all)
---@field heads? integer[] heads of the swap (default: all)
---@field seed? integer of parameters the mechanism would have learned

---What a model writes with.
---@class attnscope.GenerateOptions
---@field swap? string a mechanism in place of exact attention: "window(window=33)"; or a mixture from a CSV file, as advise_model.lua writes it: "@advice.csv"
---@field layers? integer[] layers of the swap (default: all)
---@field heads? integer[] heads of the swap (default: all)
---@field seed? integer of parameters the mechanism would have learned, and of the draws
---@field temperature? number 0 (default) takes the most probable token, larger draws more freely
---@field top_k? integer draws among so many tokens (default: all)

---A run that goes on while the script does.
---@class attnscope.Job
local Job = {}

---Waits so long (default 1 ms); whether it is done, and the first values of progress.
---@param seconds? number
---@return boolean
---@return number?
---@return string
function Job:poll(seconds) end

---How much is done, the phase it is in, and the seconds since its start.  The share (0 to 1) is that of the FLOPs of the run's closed form, or what a mechanism of one's own says by ctx:progress; in the phase seeds, of the seeds.  nil where nobody knows: the content decides what there is to do, another mechanism runs inside, it waits, or it is being measured or compared.  It grows within a phase: the stages of the run, then measuring, quality and seeds.
---@return number?
---@return string
---@return number
function Job:progress() end

---poll and wait call f now and then while the job runs; when it gives false, the job is cancelled.  The job itself, so that attn.start(...):on_progress(f):wait() can be said.
---@param f fun(share?: number, phase: string, seconds: number): boolean?
---@return attnscope.Job
function Job:on_progress(f) end

---What attn.run gives; the same again when asked again.
---@return attnscope.Result?
---@return string?
---@return string?
---@return attnscope.Record?
function Job:wait() end

---Ends it; wait gives nil, message, "CANCELLED".
function Job:cancel() end

---Cancels it, and gives its memory back.
function Job:close() end

---The keys that one query may see.
---@class attnscope.Row
---@field n integer queries
---@field m integer keys
---@field head integer head, 0 unless the pattern is said per head
---@field heads integer heads
---@field causal boolean later keys are cut off afterwards
---@operator len: integer
local Row = {}

---Allows key j.  Keys outside 0..m-1 are passed over.  The component (its colour): window, global, random, strided, block or other.
---@param j number
---@param component? string
function Row:add(j, component) end

---Allows the keys from, from + step, ... up to `to`, which is one of them.
---@param from number
---@param to number
---@param component? string
---@param step? integer
function Row:range(from, to, component, step) end

---One run of a mechanism of one's own.
---@class attnscope.Context
---@field q attnscope.Tensor queries [h,n,d]
---@field k attnscope.Tensor keys [h,m,d]
---@field v attnscope.Tensor values [h,m,e]
---@field x attnscope.Tensor? the layer's input, where there is one
---@field n integer queries
---@field m integer keys
---@field d integer size of a query
---@field e integer size of a value
---@field heads integer heads
---@field causal boolean queries must see no later key
---@field scale number of scores: the input's, else 1/sqrt(d)
---@field seed integer seed of random draws
---@field params table every parameter as it was bound
---@field rng attnscope.Context for ctx.rng:normal(shape)
---@operator len: integer
local Context = {}

---Begins a step; what is computed from here on is charged as score, mixing or overhead (the default).
---@param name string
---@param charge? string
function Context:stage(name, charge) end

---FLOPs of what was computed without tensors.
---@param flops number
---@param charge? string
function Context:charge(flops, charge) end

---Shows one of the mechanism's views; costs nothing when none is wanted.
---@param name string
---@param tensor attnscope.Tensor
function Context:view(name, tensor) end

---Normal numbers of the run's seed, from a stream of this name.  ctx.rng:normal(shape, deviation) does without a name: other numbers each time it is called in a run.
---@param name string
---@param shape integer[]
---@param deviation? number
---@return attnscope.Tensor
function Context:normal(name, shape, deviation) end

---How much is done, from 0 to 1: what the explorer, the command line and job:progress show.  Raises once the run is cancelled.
---@param share number
function Context:progress(share) end

---A warning with the result.
---@param text string
function Context:warn(text) end

---A parameter of a mechanism.
---@class attnscope.Param
---@field name? string as it is given: window
---@field type? string int (default), float, bool, enum, text or tensor
---@field default? any value when it is not given
---@field min? number smallest value
---@field max? number largest value
---@field values? string[] of an enum
---@field shape? string of a tensor, for readers
---@field help? string one line

---What a mechanism shows.
---@class attnscope.ViewPromise
---@field name? string weights: those that make the output of V
---@field kind? string default: the kind of that name, else tensor
---@field help? string one line
---@field maybe? boolean shown under some parameters only

---A pattern of one's own.
---@class attnscope.PatternOptions
---@field row? fun(i: integer, row: attnscope.Row, params: table) says which keys query i may see
---@field cell? fun(i: integer, j: integer, params: table): boolean instead of row: whether query i may see key j; asked for all n x m pairs, so for short inputs
---@field components? table<string, string> what the components mean here, as pictures name them: { window = "near" }
---@field per_head? boolean asks for each head (row.head); default: once for all
---@field id? string the name it runs by
---@field title? string default: the id
---@field authors? string who thought of it
---@field year? integer of the paper
---@field arxiv? string number of the paper
---@field source? string section or file that is followed
---@field formula? string plain text
---@field problem? string first on its card: what it is against
---@field idea? string then: what it does instead
---@field price? string then: what that costs
---@field notes? table<string, string> what each stage does: { scores = "Every query meets every key." }
---@field teaches? string what its picture shows
---@field example? string parameters that show it: "window=5"
---@field class? string of the surveys (default FP for a pattern, else LAB), or several: FP+KR
---@field claim_time? string "O(n w)"
---@field claim_memory? string "O(n)"
---@field claim_exponent? number of n in the claimed time
---@field causal? boolean has a causal form (default true)
---@field cross? boolean takes other keys than queries (default false)
---@field params? attnscope.Param[] its parameters

---A mechanism of one's own.
---@class attnscope.MechanismOptions
---@field run? fun(ctx: attnscope.Context): attnscope.Tensor computes the output [h,n,e]
---@field flops? fun(ctx: attnscope.Context, params: table): table|number closed form: score, mixing and overhead, or their sum; ctx has n, m, d, e and heads
---@field weights? fun(ctx: attnscope.Context): attnscope.Tensor its weights [h,n,m], asked for after run where somebody wants to see them, which is not part of its time and FLOPs
---@field views? (attnscope.ViewPromise|string)[] what it shows; the first is its picture
---@field id? string the name it runs by
---@field title? string default: the id
---@field authors? string who thought of it
---@field year? integer of the paper
---@field arxiv? string number of the paper
---@field source? string section or file that is followed
---@field formula? string plain text
---@field problem? string first on its card: what it is against
---@field idea? string then: what it does instead
---@field price? string then: what that costs
---@field notes? table<string, string> what each stage does: { scores = "Every query meets every key." }
---@field teaches? string what its picture shows
---@field example? string parameters that show it: "window=5"
---@field class? string of the surveys (default FP for a pattern, else LAB), or several: FP+KR
---@field claim_time? string "O(n w)"
---@field claim_memory? string "O(n)"
---@field claim_exponent? number of n in the claimed time
---@field causal? boolean has a causal form (default true)
---@field cross? boolean takes other keys than queries (default false)
---@field params? attnscope.Param[] its parameters

---Which mechanisms.
---@class attnscope.Filter
---@field class? string a class of the surveys: FP, M, LP, LR, KR, RC, DS, SP, ...
---@field text? string in id, title, authors or what it teaches
---@field causal? boolean has a causal form
---@field cross? boolean takes other keys than queries
---@field needs_x? boolean reads the layer's input x
---@field fit? boolean can fit its own tensors on the input
---@field needs_attn? boolean shows finished weights of the input

---What to take of a source.
---@class attnscope.InputOptions
---@field layer? integer layer of the file; else the first it holds
---@field n? integer length: cuts a file, sizes a generator
---@field d? integer head size of generated q, k, v
---@field heads? integer heads of generated q, k, v
---@field seed? integer of generated q, k, v
---@field q? string name of the file's array that is q, where it is another
---@field k? string of k
---@field v? string of v
---@field x? string of x
---@field attn? string of finished weights
---@field tokens? string of the tokens' labels
---@field segments? string of the positions' documents
---@field text? string of a model: the file that it reads, or sample:NAME
---@field ids? string of a model: a file of token ids instead
---@field max_tokens? integer of a model: at most this many tokens
---@field special? boolean of a model: with the tokens around a text (default true)

---Sizes and structure; other keys are the generator's own arguments.
---@class attnscope.RandomOptions: { [string]: any }
---@field n? integer length
---@field d? integer head size
---@field heads? integer heads
---@field seed? integer of the draw
---@field structure? string a generator's name (default normal)
---@field m? integer keys, where there are others than queries: of normal numbers
---@field dv? integer size of a value, where it is another: of normal numbers

---What attn.input is made of.
---@class attnscope.Tensors
---@field q? attnscope.Tensor [n,d] or [h,n,d]
---@field k? attnscope.Tensor [m,d] or [h,m,d]
---@field v? attnscope.Tensor [m,e] or [h,m,e]
---@field x? attnscope.Tensor the layer's own input [n,dm]
---@field segments? attnscope.Tensor [n] whole numbers: $segments of patterns
---@field tokens? string[] one label a key
---@field causal? boolean queries see no later key
---@field scale? number of the scores; default 1/sqrt(d)
---@field window? integer of exact attention: |i - j| < window; default none
---@field name? string for messages and figures

---How to run; other keys are the mechanism's own parameters.
---@class attnscope.RunOptions: { [string]: any }
---@field input? attnscope.Input|string default: --input; else synthetic:normal of n; else the shipped sample
---@field n? integer length, of an input given by name
---@field d? integer head size, of a generated input
---@field heads? integer heads, of a generated input
---@field layer? integer layer, of a file given by name
---@field causal? boolean default: as the input says
---@field position? string positional modifier; see attn.positions
---@field seed? integer seed of every random draw
---@field fit? boolean fit the mechanism's own tensors on the input
---@field keys? integer strongest ones the view missed looks for (default 8)
---@field device? string "cpu" (default), "cuda", or "auto": a GPU where one can be used
---@field precision? string of matrix products on a GPU: "f32" (default), "tf32", "bf16" or "f16"
---@field threads? integer default: all CPUs
---@field memory? integer limit of the run in bytes (default: half of what the machine, or its control group, gives, less where little of it is left)
---@field ["repeat"]? integer timed runs at least, and as many as 0.2 s hold; 1: as none
---@field within? number repeat until the median is known to +- this share
---@field measure? boolean take time and memory in runs of their own
---@field quality? boolean compare with full attention
---@field decode? boolean cost and time of one token more: the record's decode; implies causal
---@field quality_rows? integer compare so many rows of each head, drawn, instead of all: means with 95 % intervals
---@field per_head? boolean quality of each head alone, too: the record's quality.heads
---@field seeds? integer quality over so many seeds, from `seed` on
---@field views? string[] to be made with the run, also those that it makes only when asked for; one that it does not have raises
---@field params? table<string, any> parameters of the mechanism, for names that are options too

---How to measure.
---@class attnscope.ProfileOptions
---@field ["repeat"]? integer timed runs at least (default 7)

---How deep to follow what reaches what.
---@class attnscope.ReachOptions
---@field layers? integer 1 to 254; default 12, or one for each layer of a stack
---@field residual? boolean default true; false: walks of exactly so many layers
---@field hops? boolean also the matrix of hop counts, as the tensor `hops`

---How many keys to look for.
---@class attnscope.MissedOptions
---@field keys? integer strongest keys looked for; default 8

---What to run over one parameter, and what to show.
---@class attnscope.VaryOptions
---@field input? attnscope.Input|string as of attn.run
---@field n? integer length, of an input given by name
---@field d? integer head size, of a generated input
---@field heads? integer heads, of a generated input
---@field layer? integer layer, of a file given by name
---@field causal? boolean default: as the input says
---@field position? string positional modifier; see attn.positions
---@field seed? integer seed of every random draw
---@field seeds? integer quality over so many seeds: a band around the curve
---@field fit? boolean fit the mechanism's own tensors on the input
---@field device? string where it runs, as of attn.run
---@field precision? string of matrix products on a GPU
---@field threads? integer default: all CPUs
---@field memory? integer limit of a run in bytes (default: half of what the machine, or its control group, gives, less where little of it is left)
---@field ["repeat"]? integer timed runs at least, and as many as 0.2 s hold; 1: as none
---@field measure? boolean take time and memory even if no plot shows them
---@field plot? string plots beside each other: "error,flops"; also mass, tv, time, memory
---@field keep? string "95%" of the mass, or "error=5%": the smallest value that does
---@field title? string title of the figure
---@field caption? string line below the figure

---How to fit.
---@class attnscope.FitOptions
---@field drop? integer leave out so many of the smallest x
---@field over_log? boolean fit y / log x: a claimed log does not count
---@field model? string whose c and r2 are given: power (default: c x^alpha), constant, log, linear, nlogn, n^1.5 or quadratic; alpha is always the free exponent

---Axes and limits of a sweep; the list part names the mechanisms.
---@class attnscope.SweepOptions: { [string]: any }
---@field n? integer|string|integer[] lengths: 512, {256, 512} or "256:4096:x2"
---@field params? table<string, any> values of parameters: {window = {3, 5}}
---@field position? string|string[] positional modifiers
---@field seed? integer the first seed
---@field seeds? integer|integer[] so many seeds; or these, one after the other
---@field threads? integer|string|integer[] numbers of threads
---@field device? string|string[] devices: cpu, cuda or auto
---@field precision? string|string[] of matrix products on a GPU: f32, tf32, bf16, f16
---@field causal? boolean default: as the input says
---@field input? string a file, synthetic:NAME(args) or sample:NAME
---@field layer? integer layer of a file
---@field d? integer head size of a generated input
---@field heads? integer heads of a generated input
---@field ["repeat"]? integer timed runs at least, and as many as 0.2 s hold; 1: as none
---@field within? number|string repeat until the median is known to +- this share
---@field quality? boolean compare with full attention
---@field quality_rows? integer compare so many rows of each head, drawn, instead of all
---@field decode? boolean cost and time of one token more; implies causal
---@field fit? boolean fit the mechanisms' own tensors on the input
---@field memory? integer|string limit of a run: bytes or "8G"
---@field budget? number|string seconds, or "10m"; what is left is a record
---@field shard? string "2/8": only the second of eight parts
---@field output? string file of the records, which makes the sweep resumable
---@field resume? boolean run only the points that the file lacks or that did not end well
---@field row? fun(record: attnscope.Record): attnscope.Record? sees each record before it is written, and may give another with the same key
---@field progress? fun(done: integer, total: integer, record: attnscope.Record, left?: number): boolean? called after each point, with the seconds that are left, where they are known; false ends the sweep

---Records of a sweep: a list, with a few words on top.
---@class attnscope.Sweep
local Sweep = {}

---Those for which f gives true.
---@param f fun(record: attnscope.Record): boolean
---@return attnscope.Sweep
function Sweep:filter(f) end

---attn.pivot of it: s:pivot("n", "mechanism", "time_ms.median"); s:pivot("n", "time_ms") has a column for each mechanism and setting.
---@param down string
---@param across string
---@param value? string
---@return table[]
---@return string[]
function Sweep:pivot(down, across, value) end

---attn.csv of it, with params and figures as JSON where no columns are given.
---@param target string|file*
---@param columns? string[]
---@return true?
---@return string?
---@return string?
function Sweep:csv(target, columns) end

---Writes a record a line, as attn.read_sweep and the command fit read them.
---@param path string
---@return true?
---@return string?
---@return string?
function Sweep:jsonl(path) end

---What to measure; the list part names the mechanisms (default: full).
---@class attnscope.RooflineOptions: { [string]: any }
---@field n? integer length
---@field d? integer head size of a generated input
---@field heads? integer heads of a generated input
---@field input? string a file, synthetic:NAME(args) or sample:NAME
---@field layer? integer layer of a file
---@field causal? boolean default: as the input says
---@field position? string positional modifier
---@field seed? integer seed of every random draw
---@field params? table<string, any> parameters
---@field threads? integer default: all CPUs
---@field ["repeat"]? integer timed runs at least, and as many as 0.2 s hold; 1: as none
---@field within? number|string repeat until the median is known to +- this share
---@field memory? integer|string limit of a run: bytes or "8G"

---One picture of a figure.
---@class attnscope.Panel
---@field result? attnscope.Result what to show
---@field pattern? attnscope.Pattern or these cells
---@field tensor? attnscope.Tensor or this matrix
---@field kind? string what a tensor's cell is: weights, signed, pattern, ...
---@field curve? attnscope.Curve|boolean a tensor as a plot: a series each column
---@field with? attnscope.Result[] the same curve of these, in the same plot
---@field scaling? attnscope.Scaling[] or costs over n, with the slopes claimed
---@field measured? string|attnscope.Record[]|attnscope.Result[] of scaling: on what, in words or as the records that were; without it where the curves' records were, and of curves without records this machine's CPU
---@field setting? string of scaling: what all its runs share, for the caption, as "d = 64, 4 heads"; of a sweep found in its records
---@field sweep? attnscope.Sweep or the same of a sweep's records
---@field x? string of a sweep: the number along (default n), like "window"; of scaling: its name
---@field y? string of a sweep: the number up (default time_ms), like "flops", "memory", "quality.mass_mean"; of scaling: its name with its unit (default "time (ms)")
---@field log? string of both: axes with decades: "xy" (default), "x", "y" or ""
---@field cost? string of a sweep, or of scaling's records: the number up, when y is to be its name
---@field view? string default: the most informative one
---@field head? integer counted from 0
---@field region? integer[]|{ q: integer[], k: integer[] } {q0, q1, k0, k1}
---@field minus? attnscope.Result show the difference from the same view of this
---@field layers? integer of the view reach: 1 to 254
---@field residual? boolean of the view reach: default true
---@field sorted? boolean tokens in the mechanism's own order
---@field span? integer|string what this query sees, on the image; or "row,column"
---@field exclude? integer a key that counts in no range of colours and no strip
---@field strips? string bars beside the matrix: sums, entropy or kept
---@field queries? integer[] the bars of columns are the sum of these queries
---@field notes? string marked cells with a few words: "5:3:near itself"; a star for all of a row or column, bars between several
---@field pool? string max, mean, mass, cover, count or min
---@field scale? string linear, log or row
---@field cmap? string viridis, cividis, magma, grey, diverging or ink
---@field lo? number value of the map's beginning
---@field hi? number value of the map's end
---@field title? string above the panel
---@field caption? string below the panel

---How a tensor is drawn as a plot.
---@class attnscope.Curve
---@field x? string what the points are along, with its unit
---@field y? string what is shown, with its unit
---@field series? string their names with bars between: "plain|reversible"
---@field mark? string line (default), steps, bars or points
---@field log_x? boolean decades along
---@field log_y? boolean decades up
---@field first? number x of the first point; they are 1 apart
---@field along? number[] or the x of each point: { 16, 32, 64 }

---A cost over n.
---@class attnscope.Scaling
---@field name? string of the curve
---@field n? number[] lengths
---@field cost? number[] at each of them
---@field low? number[] lower end of an interval of each cost
---@field high? number[] upper end
---@field busy? boolean[] which costs were measured on a busy machine: their points are ringed, and the caption says so
---@field records? attnscope.Record[]|attnscope.Result[] where they were measured, and n and cost, where these are left out
---@field claim? number exponent of n that is claimed, drawn dashed

---What attn.figure takes.
---@class attnscope.FigureOptions
---@field panels? (attnscope.Result|attnscope.Panel)[] what to show
---@field preset? string instead: a published picture; see attn.presets
---@field command? string instead: words of the figure command, like "full bigbird -n 32 --diff"
---@field position_effect? attnscope.Result instead: its weights without and with its position, their difference, its bias
---@field head? integer of position_effect, counted from 0
---@field overview? attnscope.Result instead: its view in every layer and head of the input, as small matrices; also command with --overview
---@field view? string of overview (default: the most informative one)
---@field sort? string of overview: heads by this score, largest first; see heads
---@field title? string above all panels
---@field caption? string below all panels
---@field grid? string ROWSxCOLS like 2x4; 2x4~: fewer columns where they get narrow
---@field legend? boolean default true
---@field region? integer[]|{ q: integer[], k: integer[] } of every panel that has none of its own and shows a matrix
---@field width? number|string of files: inches, "6.75in", "8.5cm" or "900px"; also of save
---@field dpi? integer of files: dots an inch (default 300); also of save
---@field shared_scale? boolean one range of values for the panels of one quantity; false: none, not even for differences (default: true with grid, but not for a panel that would look empty)

---How to write a picture.
---@class attnscope.SaveOptions
---@field width? number|string inches, like 3.25 or "6.75in"; or "8.5cm", "85mm", "246pt", "900px"
---@field page? string paper around it: 16:9, 4:3, A4, or WxH as "13.333x7.5"
---@field dpi? integer dots an inch (default 300)
---@field theme? string light, dark, print, slide or colour-blind
---@field format? string png, svg, pdf, txt or ans, whatever the ending
---@field colours? integer of .ans: 24 for true colour (default), or 256
---@field metadata? table<string, any> to be put into the file as well: { author = "me" }
---@field transparent? boolean no background
---@field font? string sans, mono, or a .ttf or .otf file
---@field size? number|string one size of all letters: points, or "8pt", "3mm"
---@field letters? string of an SVG: outlines, text, or font (text with its font inside)
---@field labels? string which to draw of letters, axes, ticks: "axes,ticks"; "": none
---@field no_title? boolean no title of the figure and its panels
---@field no_caption? boolean no caption
---@field no_count? boolean no words below the panels
---@field delay? number seconds each frame of .apng stands (default 1)
---@field head? integer of save_steps, counted from 0
---@field sorted? boolean of save_steps: tokens in the mechanism's own order

---How to write text.
---@class attnscope.TextOptions
---@field width? integer columns (default 80)
---@field height? integer lines (default: as needed)
---@field utf8? boolean half blocks instead of ASCII (default true)
---@field colours? integer 0 none, 256, or 24 for true colour

---What to try.
---@class attnscope.CheckOptions
---@field n? integer[] lengths (default 1, 2, 7, 64)
---@field params? table<string, any> parameters of the mechanism
---@field reference? string what `error` is taken against (default: full)

---What is known of a mechanism.
---@class attnscope.Card
---@field id? string the name it runs by
---@field title? string as a reader knows it
---@field authors? string of the paper
---@field year? integer of the paper
---@field arxiv? string number of the paper
---@field source? string section or file that is followed
---@field formula? string plain text
---@field teaches? string what its picture shows
---@field example? string parameters for what cannot run without: "window=5"
---@field class? string of the surveys: "FP+M"
---@field classes? string[] the same, one by one
---@field claim_time? string "O(n w)"
---@field claim_memory? string "O(n)"
---@field claim_decode? string of one more token
---@field claim_exponent? number of n in the claimed time
---@field inputs? string[] what of an input it reads: q, k and v, or x, or attn, or nothing
---@field causal? boolean has a causal form
---@field no_causal? string why it has none
---@field cross? boolean takes other keys than queries
---@field at_end? boolean a causal run takes fewer queries than keys: the last positions
---@field needs_x? boolean reads the layer's input x
---@field needs_attn? boolean shows finished weights of the input
---@field needs_none? boolean reads no input
---@field own_rows? boolean the output's rows are not the queries
---@field position? boolean takes positional modifiers
---@field fit? string what can be fitted on the input
---@field params? attnscope.ParamCard[] its parameters
---@field views? attnscope.ViewCard[] its views
---@field notes? { stage: string, text: string }[] what each stage does

---A parameter of a mechanism.
---@class attnscope.ParamCard
---@field name? string as in a run's options
---@field type? string int, float, bool, enum, text, tensor, list or per-head
---@field default? string written
---@field min? number least value
---@field max? number largest value
---@field values? string[] of an enum
---@field shape? string of a tensor
---@field drawn? string how a tensor is drawn that is not given
---@field help? string its meaning

---A view of a mechanism.
---@class attnscope.ViewCard
---@field name? string as in result.views
---@field kind? string what a number in it is
---@field help? string what it shows
---@field maybe? boolean not always there

---What was measured of a run.
---@class attnscope.Record: { [string]: any }
---@field mechanism? string its id
---@field status? string OK, or why there are no numbers: OOM, UNSUPPORTED, CANCELLED, FAILED
---@field message? string of a run that failed
---@field params? table<string, any> every parameter
---@field n? integer queries
---@field m? integer keys
---@field d? integer head size of queries and keys
---@field e? integer head size of values
---@field heads? integer heads
---@field kv_heads? integer? heads of k and v where query heads share them; else nil
---@field causal? boolean no later keys
---@field position? string positional modifier
---@field seed? integer of the draws
---@field device? string that it ran on: cpu, or a GPU's back end
---@field precision? string asked for: f32, tf32, bf16, f16
---@field computed? string what products were computed in
---@field threads? integer that ran
---@field free_processors? number while it was timed, less what other processes used
---@field oversubscribed? boolean more threads than these
---@field input? string its name
---@field time_ms? table median, q1, q3, min, median_low, median_high, first, samples; absent: not measured
---@field flops? table counted, closed_form; counted_parts and closed_form_parts: score, mixing, overhead, position
---@field memory? table arena_peak, heap_peak, device_peak (of a GPU), rss_peak, allocations, arena_allocations, timeline (step_ms, arena, heap, device), largest
---@field nnz? integer allowed cells, of attn.profile's
---@field density? number their share of all cells, of attn.profile's
---@field bytes? number that must move at least
---@field gpu? table of a run on a GPU: name, source, graph (replayed, why, plain_ms; absent: not asked for), and a table for each tier, whose lacks says why it is not there: events (span_ms), activity (busy_ms, copy_ms, idle_ms, launches, allocated, dropped, kernels (name, stage, launches, total_ms, least_ms, most_ms, grid, block, registers, shared, local), spans (kernel and stage from 0, start_ms, end_ms), copies (kind, count, bytes, ms), copy_spans (as spans, of copies)), counters (flops, fp32, fp64, tensor, fused, dram_read, dram_written, occupancy, passes); what a tier does not know is absent
---@field quality? table mass_mean, mass_min, output_error, total_variation, kl or kl_lacks, worst; of a sample rows (of each head), and mass_margin, output_error_margin, total_variation_margin, kl_margin: half of the 95 % intervals
---@field stages? table[] name, iteration, flops, bytes, intensity, time_ms, allocations, arena_peak, heap_peak of each; gpu of a run on a GPU: span_ms [events], busy_ms, copy_ms, launches [activity], idle_ms, and what gpu.counters has, of the stage
---@field tensors? table<string, string> where tensor parameters are from
---@field notes? string[] of the run: how a parameter was read
---@field warnings? string[] of the run
---@field environment? table the machine

---One query and one key.
---@class attnscope.Cell: { [string]: any }
---@field allowed? boolean the query may see the key
---@field weight? number 0: masked
---@field rank? integer 1: the largest of the row
---@field below? number log of the row's top weight over it
---@field score? number before the softmax
---@field own_score? boolean the row's weights are the softmax of its scores
---@field evicted_after? integer the earlier query after which the key left the cache
---@field share? number of what it adds to the output
---@field length? number of what it adds
---@field exact? table weight, rank and keys of exact attention
---@field components? string[] what allows it: "window", "global"
---@field bucket_q? integer|integer[] bucket or cluster of the token at q; of several rounds a list; absent: tokens are not grouped
---@field bucket_k? integer|integer[] of the token at k (where queries alone are grouped: of its query)
---@field q_token? string label of the query
---@field k_token? string label of the key
---@field values? table<string, number> of every view of this shape

---A key that a query sees.
---@class attnscope.RowEntry
---@field k? integer the key
---@field weight? number its weight
---@field components? string[] what allows it

---A step of the algorithm.
---@class attnscope.StageEntry: { [string]: any }
---@field name? string of the step
---@field caption? string what it said, else the note; absent: neither
---@field note? string what the step does, in general
---@field said? string by the step itself, in a replay
---@field iteration? integer of a step that comes several times, from 0
---@field replay? boolean of the replay
---@field flops? table score, mixing, overhead, position, total
---@field arena_peak? integer bytes held at most
---@field traces? table<string, number> numbers that the step is watched by
---@field views? string[] that it made

---How far two results differ.
---@class attnscope.Comparison
---@field max_abs? number largest difference of the outputs
---@field mean_abs? number mean difference
---@field rel_l2? number norm of the difference, relative to the other's
---@field total_variation? number of the weights, mean over the rows
---@field kl? number mean over the rows of KL(weights || the other's), in nats; absent: see kl_lacks
---@field kl_lacks? string why there is no kl: no weights, rows that do not sum to 1 or hold negative weights, or a key that only this one weighs, which makes it infinite

---What attn.check found.
---@class attnscope.Report
---@field mechanism? string what was tried
---@field ok? boolean all cases hold
---@field cases? table[] name, ok and text of each
---@field error? number? the largest difference to the reference; nil: nothing ran

---y = c x^alpha through points.
---@class attnscope.Growth
---@field alpha? number the exponent
---@field lo? number lower end of its 95 % interval
---@field hi? number upper end
---@field stderr? number of the regression
---@field c? number the factor
---@field r2? number share of the variance explained
---@field count? integer points
---@field model? string whose c and r2 these are: power, or as was asked for
---@field best? string nearest of 1, log n, n, n log n, n^1.5, n^2
---@field models? table<string, number> the deviation that each leaves
---@field slopes? number[] between neighbours

---Stages and ceilings.
---@class attnscope.Roofline
---@field ceilings? table of the first mechanism's device: device, precision, name (of a GPU), peak, tensor, gemm (FLOPs a second), stream (bytes a second)
---@field devices? table[] the same of every device and precision that a mechanism ran in
---@field points? table[] of each stage: mechanism, stage, device, computed, source (what tier its numbers are of), time_ms, flops, bytes, intensity, flops_per_second, roof, bound_ms (the larger of flops / peak and bytes / stream), of_bound (bound_ms / time_ms)
---@field runs? table[] of each mechanism: the same of its stages together, without stage
---@field threads? integer that ran
---@field environment? table the machine

---A stack of layers, and the shape that they share.
---@class attnscope.CacheOptions
---@field model? string a GGUF file, a folder with config.json, or a config.json: its layers and sizes are the defaults of the other options
---@field layers? string full, window(KEYS), window(KEYS,sinks=S), a mechanism that keeps keys such as h2o(heavy=64,recent=64), a state such as retnet(HEADS,KEYS,VALUES), or state(..) of a mechanism that is not known; +conv(CHANNELS,WIDTH) adds a short convolution to it; xN repeats a layer or brackets: "(window(4096)x5,full)x8"; KEYS counts the query's own, as sliding_window in a config.json; default: full
---@field depth? integer how many layers; the list begins again; default: the model's, or as many as given
---@field n? integer tokens, the step's included; default: 1
---@field heads? integer heads of queries; default: 1
---@field kv_heads? integer heads of keys and values; default: as many
---@field dim? integer numbers of a head; default: 128
---@field rank? integer latent attention: numbers of the latent, which all heads share
---@field rope? integer latent attention: numbers with positions, which all heads share
---@field dtype? string of cached numbers: bf16, f16, f32, f8, q8, q5 or q4 (the last three with a scale of 16 bits for 32 numbers); default: bf16
---@field bits? number of a cached number; default: as the dtype says
---@field group? integer cached numbers that share a scale; default: as the dtype says
---@field scale_bits? number of a scale; default: 16

---What a stack holds and reads while it generates one sequence.
---@class attnscope.Cache
---@field layers? integer how many
---@field token_bytes? number that one token more adds
---@field cache_bytes? number held after n tokens
---@field state_bytes? number of them in states, which do not grow with n
---@field read_bytes? number of those held, that a step reads; absent where the tokens decide it
---@field step_flops? number of a step's scores, softmax and sums of values, or states; absent there, too, and where a layer is state(..)

---The module: `local attn = require "attnscope"`; also the global attn.
---@class attnscope.attn
---@field version string of attnscope
---@field has_ui boolean the interactive program is there
---@field ui attnscope.ui the explorer; also the global ui
---@field null any JSON's null in a list
---@field object table metatable of a table that JSON writes as {} when empty
---@field args string[] words after FILE; [0] is FILE
local attn = {}

---Ids of the mechanisms, in the order of the catalogue.
---@param filter? attnscope.Filter
---@return string[]
function attn.mechanisms(filter) end

---Card of a mechanism: id, title, authors, year, arxiv, source, formula, teaches, class, classes, claim, causal, cross, at_end, needs_x, needs_attn, needs_none, own_rows, fit, example, sketch, params, views, notes.
---@param id string
---@return attnscope.Card
function attn.info(id) end

---The positional modifiers.
---@return table[]
function attn.positions() end

---Published pictures: id, title, source, help, the command each one is, and model: it runs a model that the user names.
---@return table[]
function attn.presets() end

---The lessons, with what is done of each: id, title, summary, minutes, steps, done, at, and file of one that does not come with the program.
---@return table[]?
---@return string?
---@return string?
function attn.lessons() end

---The synthetic inputs.
---@return table[]
function attn.generators() end

---A file, synthetic:NAME(arguments), or sample:NAME.  Of a file with other names attn.load(path, { q = "query", k = "key", v = "value" }).
---@param spec string
---@param options? attnscope.InputOptions
---@return attnscope.Input?
---@return string?
---@return string?
function attn.load(spec, options) end

---attn.load of a generator: "induction(period=4)".
---@param spec string
---@param options? attnscope.InputOptions
---@return attnscope.Input?
---@return string?
---@return string?
function attn.synthetic(spec, options) end

---Normal numbers, or a structure to be found: attn.random{ n = 64, d = 16, heads = 2 }.
---@param options? attnscope.RandomOptions
---@return attnscope.Input?
---@return string?
---@return string?
function attn.random(options) end

---A transformer: a GGUF file, or a folder with config.json.
---@param path string
---@return attnscope.Model?
---@return string?
---@return string?
function attn.model(path) end

---An input made of tensors, which are copied.
---@param tensors attnscope.Tensors
---@return attnscope.Input?
---@return string?
---@return string?
function attn.input(tensors) end

---Zeros of a shape, or the numbers of nested lists; dtype f32 unless given.
---@param shape integer[]|number[][]
---@param dtype? string
---@return attnscope.Tensor
function attn.tensor(shape, dtype) end

---A tensor with one axis.
---@param values number[]
---@param dtype? string
---@return attnscope.Tensor
function attn.vector(values, dtype) end

---The array of a .npy or .csv file, or that of a name in a .npz, .safetensors or .json file: attn.read("layer.npz", "query").
---@param path string
---@param name? string
---@return attnscope.Tensor?
---@return string?
---@return string?
function attn.read(path, name) end

---Tensors by name as one .npz file: numpy.load reads it.
---@param path string
---@param tensors table<string, attnscope.Tensor>
---@return true?
---@return string?
---@return string?
function attn.write_npz(path, tensors) end

---Adds a pattern to the catalogue: attn.pattern{ id = "near", row = function(i, row) row:range(i - 2, i + 2, "window") end }.  Its id then runs like any other.
---@param definition attnscope.PatternOptions
---@return string?
---@return string?
---@return string?
function attn.pattern(definition) end

---Adds a mechanism to the catalogue; its function computes the output with tensors.
---@param definition attnscope.MechanismOptions
---@return string?
---@return string?
---@return string?
function attn.mechanism(definition) end

---Adds what a table says: a pattern if it has row or cell, a mechanism if it has run, or a list of both.  attn.pattern and attn.mechanism do so at once.
---@param definition table
---@return string|string[]?
---@return string?
---@return string?
function attn.register(definition) end

---Runs a script's file again; the patterns and mechanisms that it defines, whose ids it gives, take the place of those before, and the explorer's panes show them.
---@param file string
---@return string[]?
---@return string?
---@return string?
function attn.reload(file) end

---Tries a mechanism at several sizes: shape, finite numbers, the same twice, no look ahead when causal, weights @ V = output, counted FLOPs as declared; and how far it is from full attention or another reference, which may be said alone: attn.check("mine", "window").  ok, and cases of name, ok and text.
---@param mechanism string
---@param options? attnscope.CheckOptions|string
---@return attnscope.Report
function attn.check(mechanism, options) end

---Runs a mechanism: "bigbird" or "bigbird(window=5)".  A run that failed gives its record as a fourth value.
---@param mechanism string|attnscope.Pattern
---@param options? attnscope.RunOptions
---@return attnscope.Result?
---@return string?
---@return string?
---@return attnscope.Record?
function attn.run(mechanism, options) end

---As run, but goes on at once; runs of one input wait for each other.
---@param mechanism string|attnscope.Pattern
---@param options? attnscope.RunOptions
---@return attnscope.Job?
---@return string?
---@return string?
function attn.start(mechanism, options) end

---Measures a mechanism; its record, with nnz and density.
---@param mechanism string|attnscope.Pattern
---@param options? attnscope.RunOptions
---@param plan? attnscope.ProfileOptions
---@return attnscope.Record?
---@return string?
---@return string?
---@return attnscope.Record?
function attn.profile(mechanism, options, plan) end

---Records with quality: attn.compare{"full", "bigbird", n=512, ["repeat"]=5}; a point that failed is a record too.  budget="pairs=5%" chooses each mechanism's size, as attn.budget does, and says it in the record's warnings; per_head=true adds quality.heads.
---@param options table
---@return attnscope.Record[]
function attn.compare(options) end

---A mechanism's text with the size (window, block, features ...) that takes about this share of full attention's pairs or FLOPs: attn.budget("window", "pairs=5%", { n = 512 }) gives "window(window=27)", and a line that says what it reached.  A size that the text gives stays.
---@param mechanism string
---@param budget string
---@param options? attnscope.RunOptions
---@return string?
---@return string?
---@return string?
function attn.budget(mechanism, budget, options) end

---One parameter at several values: attn.vary("performer", "features=16:512:x2").  parameter, values, exact (the costs of full attention), lines of points (value, error, mass, tv, flops, time, memory, each with _low and _high where there is a band, or problem; with `keep` a line's smallest), and figure.
---@param mechanisms string|string[]
---@param range string
---@param options? attnscope.VaryOptions
---@return table?
---@return string?
---@return string?
function attn.vary(mechanisms, range, options) end

---A figure of panels, of a preset, of a command's words, or of what a position does.
---@param options attnscope.FigureOptions
---@return attnscope.Figure?
---@return string?
---@return string?
function attn.figure(options) end

---y = c x^alpha by least squares of the logarithms: alpha, its 95 % interval lo and hi (Student's; four different x at least, equal x count as their mean), stderr, c, r2, count; best: the nearest of 1, log n, n, n log n, n^1.5 and n^2, models: the deviation that each leaves; slopes: between neighbours.
---@param xs number[]
---@param ys number[]
---@param options? attnscope.FitOptions
---@return attnscope.Growth
function attn.fit(xs, ys, options) end

---What a stack of layers holds and reads while it generates: attn.cache{layers="(window(4096),full)x21", heads=16, kv_heads=8, dim=256, n=8192}.
---@param options attnscope.CacheOptions
---@return attnscope.Cache
function attn.cache(options) end

---Records of all combinations, as the command sweep makes them: attn.sweep{"full", "bigbird", n="256:4096:x2", output="cost.jsonl", resume=true}, or with lists attn.sweep{"window", n={256, 512}, params={window={3, 5}}, seeds={0, 1}}; a point that failed is a record too.  If the function `row` or `progress` raises an error, the sweep first ends in order, then the error is raised.  The file holds whole records, and resume goes on.
---@param options attnscope.SweepOptions
---@return attnscope.Sweep?
---@return string?
---@return string?
function attn.sweep(options) end

---Records of a file that a sweep wrote (.jsonl); a half-written last line is ignored.
---@param path string
---@return attnscope.Sweep?
---@return string?
---@return string?
function attn.read_sweep(path) end

---Rows with one column for each value of `across`, and the columns' names: attn.pivot(records, "n", "mechanism", "time_ms.median").  The name of a group means its main number: time_ms is the median.
---@param rows table[]
---@param down string
---@param across string
---@param value string
---@return table[]
---@return string[]
function attn.pivot(rows, down, across, value) end

---Stages under what this machine can do at most: attn.roofline{"full", "linear", n=512}.  A mechanism may say its device: "full(device=cuda)" stands under the GPU's ceilings.
---@param options? attnscope.RooflineOptions
---@return attnscope.Roofline?
---@return string?
---@return string?
function attn.roofline(options) end

---Rows as CSV; a column "time_ms.median" looks inside a table, as the columns of tables of names do where none are given.
---@param target string|file*
---@param rows table[]
---@param columns? string[]
---@return true?
---@return string?
---@return string?
function attn.csv(target, rows, columns) end

---JSON with sorted keys; an empty table is [] unless its metatable is attn.object.
---@param value any
---@param indent? integer
---@return string
function attn.json(value, indent) end

---An object's nulls are absent; a list's are attn.null.
---@param text string
---@return any?
---@return string?
---@return string?
function attn.from_json(text) end

---Any command as in the shell: attn.command("run", "full", "-n", "64").
---@param ... string
---@return string?
---@return string?
---@return string?
function attn.command(...) end

---Calls f after each event of this name; what it gives takes f away again.  run: { mechanism, result } of attn.run and Job:wait, { mechanism, pane } of a run in the explorer.  compare: { records } of attn.compare.  point: { done, total, record, left } of attn.sweep.  figure: { path, figure } of Figure:save, { path } of the explorer.  In init.lua and files of --lua also of plain commands: { mechanism, record } of run, { records } of compare, { done, total, record, left } of sweep, { path } of figure.  An error in f is reported, and the script goes on; what f does itself tells nobody.
---@param event string
---@param f fun(event: table)
---@return fun(): boolean
function attn.on(event, f) end

---A line on standard error: debug (if ATTNSCOPE_DEBUG is set), info, warning or error.
---@param level string
---@param format string
---@param ... any
function attn.log(level, format, ...) end

---Ctrl-C was pressed.
---@return boolean
function attn.interrupted() end

---Of Lua's own objects: bytes, peak, limit; sets the limit.
---@param limit? integer
---@return table
function attn.memory(limit) end

---The machine, as in every record.
---@return table
function attn.environment() end

_G.attn = attn
_G.ui = ui
return attn
