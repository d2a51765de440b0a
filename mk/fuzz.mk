# Parsers with bytes that strangers wrote: libFuzzer (`make fuzz`), and the corpus as a test.
fuzz_common := $(filter-out tests/fuzz/fuzzer.c tests/fuzz/replay.c,$(sort $(wildcard tests/fuzz/*.c)))
fuzz_headers := $(wildcard tests/fuzz/*.h tests/fuzz/*.def)
fuzz_link = $(ALL_LDFLAGS) -Wl,--whole-archive $(BUILD)/libattnscope.a -Wl,--no-whole-archive $(ALL_LDLIBS)

HOURS     ?= 1
FUZZ_CC   ?= clang
FUZZ_BUILD = build/fuzz

# No parser reaches the kernels, and clang takes minutes over them with its sanitizers.
ifneq ($(findstring fuzzer,$(SANITIZE)),)
$(BUILD)/obj/attn/cpu/simd/%.o: DEBUG_FLAGS = -DATTNSCOPE_DEBUG -DATTNSCOPE_SANITIZED
endif

$(BUILD)/tests/replay: tests/fuzz/replay.c $(fuzz_common) $(fuzz_headers) $(BUILD)/libattnscope.a
	@mkdir -p $(@D)
	@$(if $(filter 1,$(V)),,echo "  TEST  $@")
	$(Q)$(CC) $(ALL_CPPFLAGS) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(filter %.c,$^) $(fuzz_link) -o $@

# Built with SANITIZE=fuzzer-no-link,...: what libFuzzer's main is linked into.
$(BUILD)/tests/fuzzer: tests/fuzz/fuzzer.c $(fuzz_common) $(fuzz_headers) $(BUILD)/libattnscope.a
	@mkdir -p $(@D)
	@$(if $(filter 1,$(V)),,echo "  TEST  $@")
	$(Q)$(CC) $(ALL_CPPFLAGS) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(filter %.c,$^) $(fuzz_link) \
	    -fsanitize=fuzzer -Wl,--wrap=mmap,--wrap=munmap -o $@

# The parsers' own sources counted line by line (gcov), among the others as they are.
covered := $(sort $(shell sed -n 's/"[^"]*$$//; s/^[^"]*"//p' tests/fuzz/targets.def))
covered_objects := $(covered:%=$(BUILD)/covered/%.o)

$(BUILD)/covered/%.o: src/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -O0 --coverage -c $< -o $@

$(BUILD)/tests/replay-covered: tests/fuzz/replay.c $(fuzz_common) $(fuzz_headers) $(covered_objects) \
                               $(BUILD)/libattnscope.a
	@mkdir -p $(@D)
	@$(if $(filter 1,$(V)),,echo "  TEST  $@")
	$(Q)$(CC) $(ALL_CPPFLAGS) $(filter-out -MMD -MP,$(ALL_CFLAGS)) tests/fuzz/replay.c $(fuzz_common) \
	    $(covered_objects) $(filter-out $(covered:%=$(BUILD)/obj/%.o),$(library)) $(extra_objects) \
	    --coverage $(ALL_LDFLAGS) $(ALL_LDLIBS) -o $@

fuzz: deeper ## feed every parser with made-up input for HOURS (1) in all; goes on where it stopped (TARGETS='npy png': only these)
	$(Q)tools/install-packages $(APT_PACKAGES) clang
	$(Q)$(MAKE) --no-print-directory $(jobs) BUILD=$(FUZZ_BUILD) CC='$(FUZZ_CC)' OPTIMISE=-O1 CUDA=0 \
	    SANITIZE=fuzzer-no-link,address,undefined $(FUZZ_BUILD)/tests/fuzzer
	$(Q)$(MAKE) --no-print-directory $(jobs) CUDA=0 $(BUILD)/tests/replay-covered
	$(Q)tests/fuzz/hours $(FUZZ_BUILD) $(BUILD) $(HOURS) $(TARGETS)

.PHONY: fuzz-keep
fuzz-keep: ## add the hours of build/fuzz/state to the ledger tests/fuzz/totals, to be committed (STATE=DIR: of another tree)
	$(Q)tests/fuzz/keep $(or $(STATE),$(FUZZ_BUILD)/state)
