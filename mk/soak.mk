# The explorer under a monkey's keys and the sanitizers.
KEYS ?= 100000
SEED ?= 1
SOAK_FLAGS = BUILD=build/soak SANITIZE=address,undefined OPTIMISE=-O1 CUDA=0

# The program with a thread that tells what its heap holds.
$(BUILD)/attnscope-soak: tests/screen/heap.c $(objects) $(extra_objects)
	@$(if $(filter 1,$(V)),,echo "  LINK  $@")
	$(Q)$(CC) $(ALL_CPPFLAGS) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(ALL_LDFLAGS) $^ $(ALL_LDLIBS) -o $@

.PHONY: soak
soak: deeper ## KEYS (100000) random keys for the explorer in five terminals, under the sanitizers (SEED=1)
	$(Q)tools/install-packages $(APT_PACKAGES) libvterm-dev
	$(Q)$(MAKE) --no-print-directory $(jobs) $(SOAK_FLAGS) build/soak/attnscope-soak
	$(Q)tests/screen/soak build/soak/attnscope-soak $(KEYS) $(SEED)
