# attnscope -- one non-recursive Makefile; everything it makes is under build/.
#
# CFLAGS, CPPFLAGS, LDFLAGS and LDLIBS given by the user are appended.
# V=1 shows the commands.  WERROR=1 makes warnings errors (make check does).

VERSION  = 0.1.0
BUILD   ?= build
CC      ?= cc
CUDA    ?= auto
V       ?= 0
Q        = $(if $(filter 1,$(V)),,@)
SHARED  ?=

PACKAGES = ncursesw cairo-ft cairo freetype2 libpng libzip jansson libpcre2-8 glib-2.0 zlib openblas lua5.4
APT_PACKAGES = build-essential pkg-config ca-certificates libncurses-dev ncurses-bin libpng-dev \
               libopenblas-dev liblua5.4-dev libcairo2-dev libfreetype-dev libzip-dev \
               libjansson-dev libpcre2-dev libglib2.0-dev libmd-dev zlib1g-dev libedit-dev \
               fonts-dejavu-core
TEST_PACKAGES = libcmocka-dev libvterm-dev clang parallel libboost-context-dev lua5.4
FONT_DIR ?= /usr/share/fonts/truetype/dejavu

WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual \
           -Wwrite-strings -Wpointer-arith -Wformat=2 -Wundef -Wvla -Wdouble-promotion
# -Wconversion is off: it fires on every int64_t -> double of the FLOP formulas.
SANITIZE ?=
OPTIMISE ?= -O2
DEBUG_FLAGS = $(if $(SANITIZE),-DATTNSCOPE_DEBUG -DATTNSCOPE_SANITIZED -fsanitize=$(SANITIZE) \
              -fno-sanitize-recover=all -fno-omit-frame-pointer)

have_test_packages = $(shell pkg-config --exists cmocka vterm 2>/dev/null && \
                       test -f /usr/include/boost/context/fiber.hpp && command -v clang >/dev/null && \
                       command -v parallel >/dev/null && command -v lua5.4 >/dev/null && echo yes || echo no)
have_packages := $(shell pkg-config --exists $(PACKAGES) 2>/dev/null && \
                 test -f $(FONT_DIR)/DejaVuSans.ttf && echo yes || echo no)
# The Lua prompt can do without.
EDIT := $(shell pkg-config --exists libedit 2>/dev/null && echo yes)
# Two builds of a commit give the same bytes wherever they lie.  Objects are of a program and of a shared library.
ALL_CFLAGS = -std=c11 -g '-fdebug-prefix-map=$(CURDIR)=.' $(OPTIMISE) -fno-math-errno -ffp-contract=off $(WARNINGS) \
             -fPIC -fno-semantic-interposition \
             $(if $(filter 1,$(WERROR)),-Werror) $(DEBUG_FLAGS) -MMD -MP -pthread $(CFLAGS)
ALL_CPPFLAGS = -D_GNU_SOURCE -DATTNSCOPE_VERSION='"$(VERSION)"' -Isrc -I$(BUILD)/gen \
               $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null) \
               $(if $(EDIT),-DHAVE_LIBEDIT) $(CPPFLAGS)
ALL_LDFLAGS = -pthread -Wl,-E $(DEBUG_FLAGS) $(LDFLAGS)
ALL_LDLIBS = $(shell pkg-config --libs $(PACKAGES) $(if $(EDIT),libedit) 2>/dev/null) -lmd -ldl -lm $(LDLIBS)

PREFIX  ?= /usr/local

sources  := $(sort $(filter-out src/attn/cuda/cupti/%,$(shell find src -name '*.c')))
objects  := $(sources:src/%.c=$(BUILD)/obj/%.o)
library  := $(filter-out $(BUILD)/obj/main.o,$(objects))
units    := $(sort $(wildcard tests/unit/*/test_*.c))
unit_bin := $(patsubst %.c,$(BUILD)/tests/%,$(notdir $(units)))
vpath test_%.c $(sort $(dir $(units)))

.PHONY: all help deeper run deps layouts test-deps test test-alloc test-kill test-gate test-gpu unit check bench docs figures asan ubsan tsan races fuzz module \
        clean install uninstall deb dist
.DEFAULT_GOAL := all

ifeq ($(have_packages),no)
all: missing
else
all: $(BUILD)/attnscope ## build build/attnscope
endif

help: ## this list
	@sed -n 's/^\([a-z_-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | sort | expand -t 12

# ---- what is needed ----------------------------------------------------------

.PHONY: missing
missing:
	@echo "attnscope: some packages are missing. On Debian, run:" >&2
	@echo "  apt-get install $(strip $(APT_PACKAGES))" >&2
	@echo "or 'make deps', which does so (with sudo when you are not root)." >&2
	@exit 1

deps: ## install the Debian packages needed to build and run
	$(Q)tools/install-packages $(APT_PACKAGES)

test-deps: ## install what the tests need besides
	$(Q)tools/install-packages $(APT_PACKAGES) $(TEST_PACKAGES)

# As many jobs as there are processors, unless -j says otherwise.
jobs = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

run: ## install what is missing, build, open the explorer on a sample
	$(Q)if [ $(have_packages) = no ]; then $(MAKE) --no-print-directory deps; fi
	$(Q)$(MAKE) --no-print-directory $(jobs) $(BUILD)/attnscope
	$(Q)$(BUILD)/attnscope $(ARGS)

# ---- building ------------------------------------------------------------------

$(BUILD)/config.txt: Makefile tools/configuration
	@mkdir -p $(BUILD)
	$(Q)CUDA=$(CUDA) tools/configuration > $@.tmp && mv $@.tmp $@
	@cat $@

# Objects of other flags are made anew.  They are the same with warnings as errors or without, and by a relative or an
# absolute BUILD.
.PHONY: flags
$(BUILD)/flags: flags | $(BUILD)/config.txt
# $(file) also writes under make -n, where no rule has made the folder.
	$(file >$(shell mkdir -p $(@D))$@.tmp,$(filter-out -Werror -I$(BUILD)/gen,$(ALL_CPPFLAGS) $(ALL_CFLAGS)))
	@if cmp -s $@.tmp $@; then rm $@.tmp; else mv $@.tmp $@; fi

$(objects): $(BUILD)/flags

$(BUILD)/obj/%.o: src/%.c
	@mkdir -p $(@D)
	@$(if $(filter 1,$(V)),,echo "  CC    $<")
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@

# The commit of a clone, for records; empty in an unpacked archive.  Written where it changed.
# `make install` by root must find it too, or it would build the program anew, without: git calls the
# clone of another user unsafe unless it is named here.
git = GIT_OPTIONAL_LOCKS=0 git -c safe.directory='$(CURDIR)'
.PHONY: commit
$(BUILD)/gen/commit.h: commit
	@mkdir -p $(@D)
	$(Q)if [ "$$($(git) rev-parse --show-toplevel 2>/dev/null)" = "$$(pwd -P)" ]; then \
	    commit=$$($(git) describe --always --dirty --tags 2>/dev/null); fi; \
	echo "#define ATTNSCOPE_COMMIT \"$$commit\"" >$@.tmp; \
	if cmp -s $@.tmp $@; then rm $@.tmp; else mv $@.tmp $@; fi
$(BUILD)/obj/profile/environment.o: $(BUILD)/gen/commit.h

include $(wildcard mk/*.mk)

ifeq ($(SHARED),)
$(BUILD)/attnscope: $(objects) $(extra_objects)
	@$(if $(filter 1,$(V)),,echo "  LINK  $@")
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(ALL_LDLIBS) -o $@
else
# Programs and tests that load the program's objects as one library (mk/mutants.mk).
tested_library := $(BUILD)/libattnscope.so

$(tested_library): $(library) $(extra_objects)
	@$(if $(filter 1,$(V)),,echo "  LINK  $@")
	$(Q)$(CC) $(as_library) $(ALL_LDFLAGS) $^ $(ALL_LDLIBS) -o $@

$(BUILD)/attnscope: $(BUILD)/obj/main.o $(tested_library)
	@$(if $(filter 1,$(V)),,echo "  LINK  $@")
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(ALL_LDLIBS) -o $@
endif

$(BUILD)/libattnscope.a: $(library) $(extra_objects)
	$(Q)rm -f $@ && ar rcs $@ $^

-include $(objects:.o=.d)

# The same objects as a module of stock Lua, but for files that ask where they run; the interpreter brings liblua.
in_module := $(shell grep -rl --include='*.c' ATTNSCOPE_MODULE src)
shared_objects = $(filter-out $(BUILD)/obj/ui/% $(BUILD)/obj/cli/% $(in_module:src/%.c=$(BUILD)/obj/%.o),$(library))
module_objects = $(in_module:src/%.c=$(BUILD)/module/%.o)
$(module_objects): $(BUILD)/module/%.o: src/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	@$(if $(filter 1,$(V)),,echo "  CC    $< (module)")
	$(Q)$(CC) $(ALL_CPPFLAGS) -DATTNSCOPE_MODULE $(ALL_CFLAGS) -c $< -o $@
-include $(module_objects:.o=.d)

$(BUILD)/module/attnscope.so: $(shared_objects) $(module_objects) $(extra_objects)
	@$(if $(filter 1,$(V)),,echo "  LINK  $@")
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-Bsymbolic $^ $(filter-out -llua%,$(ALL_LDLIBS)) -o $@

module: $(BUILD)/module/attnscope.so ## build/module/attnscope.so, for require "attnscope" in lua5.4

# ---- tests ----------------------------------------------------------------------

tested_library ?= $(BUILD)/libattnscope.a
tested = $(if $(SHARED),$(tested_library),-Wl,--whole-archive $(tested_library) -Wl,--no-whole-archive)

$(BUILD)/tests/test_%: test_%.c $(tested_library) $(wildcard tests/*.h)
	@mkdir -p $(@D)
	@$(if $(filter 1,$(V)),,echo "  TEST  $@")
	$(Q)$(CC) $(ALL_CPPFLAGS) -Itests -Itests/unit $(ALL_CFLAGS) $< $(ALL_LDFLAGS) $(tested) $(ALL_LDLIBS) \
	    -lcmocka -lvterm -lutil -o $@

$(BUILD)/tests/test_cli: | $(BUILD)/attnscope # which it runs

# Its stock interpreter, where there is one; sanitized builds would have to be loaded first.
stock := $(if $(SANITIZE),,$(shell command -v lua5.4 >/dev/null 2>&1 && echo module))

test: ## install what is missing, build, run every test (no GPU, no network)
	$(Q)if [ $(have_packages)$(have_test_packages) != yesyes ]; then $(MAKE) --no-print-directory test-deps; fi
	$(Q)$(MAKE) --no-print-directory $(jobs) suite

.PHONY: suite
suite: $(BUILD)/attnscope $(unit_bin) $(BUILD)/tests/attnscope-emulated.so $(BUILD)/tests/replay $(stock)
	$(Q)BUILD=$(BUILD) tests/run-all $(unit_bin)

unit: $(unit_bin) $(BUILD)/tests/attnscope-emulated.so ## the unit tests only
	$(Q)for t in $(unit_bin); do $$t || exit 1; done

# A build in a folder one deeper finds what is shipped beside it.
deeper:
	$(Q)mkdir -p build && for folder in samples scripts; do ln -sfn ../$$folder build/$$folder; done

# One library that all programs load, so that none of them is linked whole.  Numbers that no integer can hold become
# others on ARM than on x86; `undefined` leaves them alone.
casts = -fsanitize=float-cast-overflow -fno-sanitize-recover=float-cast-overflow
under_sanitizers = $(MAKE) --no-print-directory $(jobs) BUILD=build/sanitized SANITIZE=address,undefined OPTIMISE=-O1 \
                   SHARED=1 CFLAGS='$(CFLAGS) $(casts)'

asan: deeper ## the whole suite under the address and undefined-behaviour sanitizers
	+$(Q)$(under_sanitizers) test

# Not in CI's time: the emulated device, dearer than all other programs together (asan has it).
sanitized_bin = $(filter-out $(BUILD)/tests/test_gpu_%,$(unit_bin))

sanitize: deeper ## unit programs, command line and parsers' corpus under these sanitizers, without the emulated device
	+$(Q)$(under_sanitizers) CUDA=0 sanitized

.PHONY: sanitize sanitized
sanitized: $(BUILD)/attnscope $(BUILD)/tests/replay $(sanitized_bin)
	$(Q)BUILD=$(BUILD) SUITES='cli fuzz' tests/run-all $(sanitized_bin)

ubsan: asan ## same as asan: both run together

# What has more than one thread: the pool, the worker, signals, passes of a model, runs for figures.
raced = $(addprefix $(BUILD)/tests/test_,core progress missed app_reach input_mapped model_forward model_write \
                                         profile_measure ui_actions)

tsan: deeper ## the thread pool, the worker and the explorer under the thread sanitizer (KEYS=1500 of a monkey)
	$(Q)$(MAKE) --no-print-directory $(jobs) BUILD=build/tsan SANITIZE=thread OPTIMISE=-O1 CUDA=0 SHARED=1 raced

.PHONY: raced
raced: $(BUILD)/attnscope $(raced)
	$(Q)tests/raced $(BUILD)/attnscope $(raced)

# Of these the device's side is elsewhere: choices of the host, failures, times.
not_raced = $(addprefix tests/unit/gpu/test_gpu_,metrics.c profile.c ceilings.c memory.c device.c trials.c sessions.c \
                                             exclusive.c)

races: deeper ## the GPU's kernels, emulated, under the thread sanitizer: accesses that nothing puts in order
	$(Q)$(MAKE) --no-print-directory BUILD=build/races SANITIZE=thread OPTIMISE=-O1 CUDA=0 \
	    build/races/tests/attnscope-emulated.so build/races/tests/planted \
	    $(patsubst tests/unit/gpu/%.c,build/races/tests/%,$(filter-out $(not_raced),$(wildcard tests/unit/gpu/test_*.c)))
	$(Q)tests/emulated/races build/races

# The same objects; only run_execute takes longer.
$(BUILD)/tests/attnscope-slower: tests/gate/slow.c $(BUILD)/attnscope
	@mkdir -p $(@D)
	@$(if $(filter 1,$(V)),,echo "  LINK  $@")
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $< $(objects) $(extra_objects) $(ALL_LDFLAGS) \
	    -Wl,--wrap=run_execute $(ALL_LDLIBS) -o $@

test-gate: $(BUILD)/attnscope $(BUILD)/tests/attnscope-slower ## diff's verdicts on time beside two busy loops: false alarms of 200, 5 % slower of 10 (about half an hour; COMPARISONS='40 10')
	$(Q)tests/gate/run $^ $(COMPARISONS)

test-gpu: all cuda $(unit_bin) ## the tests that need a GPU; says so and passes where there is none (CASES=DIR: more reference cases; PARTS='same ..': only these)
	$(Q)CASES='$(CASES)' PARTS='$(PARTS)' tests/gpu/run $(BUILD)/attnscope

test-alloc: all ## allocations that fail, COUNT (300) of each command and mechanism; hours with COUNT=0
	$(Q)tests/alloc/run $(BUILD)/attnscope $(or $(COUNT),300) $(SEED)

test-kill: all ## a sweep whose four workers are killed at COUNT (100) random moments
	$(Q)tests/sweep/kill $(BUILD)/attnscope $(or $(COUNT),100) $(SEED)

layouts: all ## measure the layout of 500 random figures: words that overlap or leave the page
	$(Q)tests/layout/run $(BUILD)/attnscope 500

bench_bin = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/bench/*.c))
$(bench_bin): $(BUILD)/%: %.c $(BUILD)/libattnscope.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $< $(ALL_LDFLAGS) -Wl,--whole-archive \
	    $(BUILD)/libattnscope.a -Wl,--no-whole-archive $(ALL_LDLIBS) -o $@

# With CHECK nothing but the comparison: 6 pairs of each point, then 30 of those that look dearer.
bench: $(if $(CHECK),,$(bench_bin)) all ## speeds as ratios of this machine's ceilings; the catalogue's times kept in bench-history (CHECK=1 [BASE=COMMIT]: fail if a point became dearer)
ifndef CHECK
	$(Q)for part in $(bench_bin); do \
	    env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $$part && echo || exit 1; done
	$(Q)tests/screen/bench $(BUILD)/attnscope
	@echo
endif
	$(Q)CHECK='$(CHECK)' BASE='$(BASE)' tests/bench/history $(BUILD)/attnscope

# CHECKED=build: of a build whose warnings were errors already (WERROR=1 make test).
CHECKED ?= build/check

check: ## layers, tables against files, documents fresh, warnings of gcc and clang as errors
	$(Q)tools/check-layers
	$(Q)tools/check-width
	$(Q)$(MAKE) --no-print-directory BUILD=$(CHECKED) WERROR=1 CUDA=0 all \
	    $(CHECKED)/bench-gpu $(CHECKED)/bench-gpu-small
	$(Q)for room in ui script; do tools/link-cycle $(CHECKED) $$room 10 >/dev/null || exit 1; done
	$(Q)tools/check-docs $(CHECKED)/attnscope
	$(Q)tools/check-warnings-clang $(CHECKED) "$(PACKAGES)"
	+$(Q)$(if $(NVCC),$(MAKE) --no-print-directory cuda)

docs: all ## write docs/*.md, the man page and the Lua stubs from the tables
	$(Q)tools/write-docs $(BUILD)/attnscope

figures: all ## the README's pictures; the surveys' into build/survey
	@mkdir -p docs/images
	$(Q)$(BUILD)/attnscope figure bigbird -n 48 -o docs/images/bigbird.png
	$(Q)$(BUILD)/attnscope figure full bigbird 'pattern(window(9)+stride(8))' 'reformer(block=12)' \
	    routing 'sinkhorn(block=12)' --input samples/induction.safetensors --layer 1 --head 1 \
	    --titles 'Full attention: weights | BigBird | window + stride | Reformer, blocks of 12 | Routing | Sinkhorn, blocks of 12' \
	    --grid 2x3 --width 6.75 --dpi 200 -o docs/images/mechanisms.png
	$(Q)$(BUILD)/attnscope figure --preset slides-bigbird --dpi 150 -o docs/images/bigbird-blocks.png
	$(Q)$(BUILD)/attnscope figure --preset slides-alibi-effect --grid 1x4 --dpi 150 \
	    -o docs/images/alibi-effect.png
	$(Q)$(BUILD)/attnscope lua scripts/lua/survey.lua $(BUILD)/survey

figure-growth: all ## the README's chart of growth, measured anew: on a quiet machine
	$(Q)$(BUILD)/attnscope sweep -m full,sparse-strided,axial,longformer,bigbird,reformer,routing \
	    -m linformer,nystrom,performer,linear,luna --n 256:4096:x2 -d 32 --threads 1 --repeat 9 --resume \
	    -o $(BUILD)/growth.jsonl
	$(Q)$(BUILD)/attnscope fit $(BUILD)/growth.jsonl --dpi 150 -o docs/images/growth.png

# ---- the rest -----------------------------------------------------------------------

compile_commands.json: ## for editors
	$(Q)bear -- $(MAKE) -B all

LUA_MODULES     ?= $(PREFIX)/lib/lua/5.4
BASH_COMPLETION ?= $(PREFIX)/share/bash-completion/completions
ZSH_COMPLETION  ?= $(PREFIX)/share/zsh/site-functions
FISH_COMPLETION ?= $(PREFIX)/share/fish/vendor_completions.d
shared           = $(DESTDIR)$(PREFIX)/share/attnscope

licences         = $(DESTDIR)$(PREFIX)/share/doc/attnscope

# Files that the program writes get their mode by install, as all others: the administrator's umask may
# hide what is written by a redirection from everybody else.
install: all module ## install program, data, manual, completions, Lua module and scripts under PREFIX (default /usr/local)
	install -Dm755 $(BUILD)/attnscope $(DESTDIR)$(PREFIX)/bin/attnscope
	install -Dm644 docs/attnscope.1 $(DESTDIR)$(PREFIX)/share/man/man1/attnscope.1
	install -d $(shared)/samples/export $(shared)/lua/library $(shared)/scripts $(licences)
	install -m644 LICENSE LICENSE.fonts $(licences)
	install -m644 samples/*.safetensors samples/*.npz samples/*.txt samples/*.png samples/*.gguf $(shared)/samples
	install -m644 samples/export/*.py $(shared)/samples/export
	install -m644 scripts/lua/*.lua $(shared)/lua
	install -m644 scripts/lua/library/*.lua $(shared)/lua/library
	install -m755 scripts/slurm-array.sh scripts/sweep-parallel.sh $(shared)/scripts
	install -Dm644 build/module/attnscope.so $(DESTDIR)$(LUA_MODULES)/attnscope.so
	for shell in bash zsh fish; do \
	    $(BUILD)/attnscope completions $$shell >$(BUILD)/completions.$$shell || exit 1; done
	install -Dm644 $(BUILD)/completions.bash $(DESTDIR)$(BASH_COMPLETION)/attnscope
	install -Dm644 $(BUILD)/completions.zsh $(DESTDIR)$(ZSH_COMPLETION)/_attnscope
	install -Dm644 $(BUILD)/completions.fish $(DESTDIR)$(FISH_COMPLETION)/attnscope.fish
	if [ -f $(BUILD)/attnscope-cuda.so ]; then \
	    install -Dm644 $(BUILD)/attnscope-cuda.so $(DESTDIR)$(PREFIX)/lib/attnscope/attnscope-cuda.so; fi

# Lessons of the machine may stand beside what is removed (docs/lessons.md).  Folders of others stay;
# those that only programs such as this one make go if nothing else is in them.
uninstall: ## remove what install put there
	rm -rf $(DESTDIR)$(PREFIX)/bin/attnscope $(addprefix $(shared)/,samples lua scripts) $(licences) \
	    $(DESTDIR)$(PREFIX)/lib/attnscope \
	    $(DESTDIR)$(PREFIX)/share/man/man1/attnscope.1 $(DESTDIR)$(LUA_MODULES)/attnscope.so \
	    $(DESTDIR)$(BASH_COMPLETION)/attnscope $(DESTDIR)$(ZSH_COMPLETION)/_attnscope \
	    $(DESTDIR)$(FISH_COMPLETION)/attnscope.fish
	for folder in $(shared) $(addprefix $(DESTDIR),$(LUA_MODULES) $(PREFIX)/lib/lua $(BASH_COMPLETION) \
	        $(PREFIX)/share/bash-completion $(FISH_COMPLETION) $(PREFIX)/share/fish); do \
	    if [ -d $$folder ]; then rmdir --ignore-fail-on-non-empty $$folder; fi; done

# A Debian package of the committed files, built as a Debian package is.  PACK_DEBIAN is what a
# machine needs for it besides.
PACK_DEBIAN = debhelper lintian fakeroot

deb: ## build/deb/attnscope_VERSION_ARCH.deb, checked by lintian
	$(Q)tools/install-packages $(APT_PACKAGES) $(PACK_DEBIAN)
	$(Q)tools/debian/package $(BUILD)/deb $(VERSION) "$(APT_PACKAGES)"

dist: ## build/attnscope-VERSION.tar.gz from the committed files
	@mkdir -p $(BUILD)
	git archive --prefix=attnscope-$(VERSION)/ -o $(BUILD)/attnscope-$(VERSION).tar.gz HEAD

# ---- on machines without the packages ---------------------------------------------

# The program and the libraries it needs in one folder that may lie anywhere, for machines where none
# of the packages are and nobody may install them.  Of the system it needs glibc alone, as new as
# that of the machine it was made on; fonts and terminal descriptions are in the program.
bundle := $(BUILD)/attnscope-$(VERSION)-linux-$(shell uname -m)

# DT_RPATH, which is looked at for the libraries' own libraries too.
$(BUILD)/attnscope-bundled: $(objects) $(extra_objects)
	@$(if $(filter 1,$(V)),,echo "  LINK  $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/attnscope' \
	    $(filter %.o,$^) $(ALL_LDLIBS) -o $@

.PHONY: bundle
bundle: all $(BUILD)/attnscope-bundled ## the program with its libraries in one folder and archive, for machines without the packages
	$(Q)rm -rf $(bundle) $(bundle).tar.gz
	$(Q)$(MAKE) --no-print-directory install DESTDIR= PREFIX=$(abspath $(bundle)) >/dev/null
	$(Q)tools/bundle-libraries $(BUILD)/attnscope-bundled $(bundle)
	$(Q)tar -C $(BUILD) -czf $(bundle).tar.gz $(notdir $(bundle))
	@[ -f $(BUILD)/attnscope-cuda.so ] || echo "without the GPU's back end ('make cuda' builds it first)"
	@echo "$(bundle).tar.gz"

clean: ## remove build/
	rm -rf build
