# Two measures of the tests, neither a part of `make test` (docs/testing.md): what of the program they reach,
# and which small changes of it they let through.
#
# Both build a tree of their own with SHARED=1: programs and tests load the program's objects as
# one library, so that a changed file is one compilation and one link, and no test is linked anew.
ifneq ($(SHARED),)
# Its own functions first; a library found by LD_LIBRARY_PATH is loaded in its place.
as_library = -shared -Wl,-soname,libattnscope.so,-Bsymbolic $(COVERED)
$(objects): ALL_CFLAGS += $(COVERED)
$(BUILD)/attnscope: LDFLAGS += $(COVERED)
$(BUILD)/attnscope $(unit_bin): LDFLAGS += -Wl,--enable-new-dtags,-rpath,$(abspath $(BUILD))

# How tools/mutants/one compiles a file of src and links the library, and so for the emulated kernels.
quick_linker := $(if $(shell command -v ld.lld 2>/dev/null),-fuse-ld=lld)
$(BUILD)/compile: Makefile mk/mutants.mk | $(BUILD)/config.txt
	$(file >$@,exec $(CC) $(filter-out -g -MMD -MP,$(ALL_CPPFLAGS) $(ALL_CFLAGS)) -w -g0 "$$@")
	$(file >$(BUILD)/link,exec $(CC) $(quick_linker) $(as_library) -Wl,--strip-debug $(ALL_LDFLAGS) "$$@" $(ALL_LDLIBS))
	$(file >$(BUILD)/link-program,exec $(CC) $(ALL_LDFLAGS) -Wl$(comma)--enable-new-dtags$(comma)-rpath$(comma)$(abspath $(BUILD)) "$$@" $(BUILD)/libattnscope.so $(ALL_LDLIBS))
	$(file >$@-kernels,exec $(CXX) $(filter-out -g,$(EMULATED_FLAGS)) -w -x c++ "$$@")
	$(file >$(BUILD)/link-kernels,exec $(CXX) $(quick_linker) -shared "$$@" -lboost_context)

.PHONY: measured
measured: $(BUILD)/attnscope $(unit_bin) $(BUILD)/tests/attnscope-emulated.so $(BUILD)/compile
	$(Q)printf '%s\n' $(library) $(extra_objects) >$(BUILD)/objects
	$(Q)printf '%s\n' $(emulated_objects) >$(BUILD)/objects-kernels
endif

KERNELS ?= 15
BUDGET  ?= 100
SEED    ?= 1
ROOM    ?= all
JOBS    ?= $(shell nproc)

.PHONY: mutants coverage
in_tree = $(MAKE) --no-print-directory $(jobs) SHARED=1 OPTIMISE=-O1 CUDA=0

coverage: deeper ## lines and branches that the tests reach, by room (gcov; with lcov also as pages)
	+$(Q)$(in_tree) BUILD=build/coverage COVERED='--coverage -fprofile-update=atomic' \
	    COVERED_KERNELS=--coverage measured
	$(Q)JOBS=$(JOBS) tools/coverage/run build/coverage

mutants: deeper ## small changes of the program, one at a time: which do the tests let through? (COUNT=60 KERNELS=15 SEED= ROOM= JOBS= BUDGET= AGAIN= RESULTS=)
	$(Q)[ -s build/coverage/map ] || $(MAKE) --no-print-directory coverage
	+$(Q)$(in_tree) BUILD=build/mutants CFLAGS='$(CFLAGS) -g0' measured
	$(Q)JOBS=$(JOBS) BUDGET=$(BUDGET) AGAIN=$(AGAIN) RESULTS='$(RESULTS)' \
	    tools/mutants/run build/mutants build/coverage/map '$(SEED)' '$(or $(COUNT),60)' '$(KERNELS)' '$(ROOM)' $(sources) $(kernels)
