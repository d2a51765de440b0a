# Two measures of the tests, neither a part of `make test` (docs/testing.md): what of the program they reach,
# and which small changes of it they let through.
#
# Both build a tree of their own with SHARED=1: programs and tests load the program's objects as
# one library, so that a changed file is one compilation and one link, and no test is linked anew.
ifneq ($(SHARED),)
# Its own functions first; a library found by LD_LIBRARY_PATH is loaded in its place.
as_library = -shared -Wl,-soname,libattnscope.so,-Bsymbolic $(COVERED)
$(library): ALL_CFLAGS += $(COVERED)
$(BUILD)/attnscope $(unit_bin): LDFLAGS += -Wl,--enable-new-dtags,-rpath,$(abspath $(BUILD))

# How tools/mutants/one compiles a file of src and links the library.
$(BUILD)/compile: Makefile mk/mutants.mk | $(BUILD)/config.txt
	$(file >$@,exec $(CC) $(filter-out -g -MMD -MP,$(ALL_CPPFLAGS) $(ALL_CFLAGS)) -w -g0 -c "$$@")
	$(file >$(BUILD)/link,exec $(CC) $(as_library) -Wl,--strip-debug $(ALL_LDFLAGS) "$$@" $(ALL_LDLIBS))

.PHONY: measured
measured: $(BUILD)/attnscope $(unit_bin) $(BUILD)/tests/attnscope-emulated.so $(BUILD)/compile
	$(Q)printf '%s\n' $(library) $(extra_objects) >$(BUILD)/objects
endif

COUNT ?= 60
SEED  ?= 1
ROOM  ?= all
JOBS  ?= $(shell nproc)

.PHONY: mutants coverage
in_tree = $(MAKE) --no-print-directory $(jobs) SHARED=1 OPTIMISE=-O1 CUDA=0

coverage: deeper ## lines and branches that the tests reach, by room (gcov; with lcov also as pages)
	$(Q)$(in_tree) BUILD=build/coverage CFLAGS='$(CFLAGS) -fPIC' COVERED='--coverage -fprofile-update=atomic' measured
	$(Q)JOBS=$(JOBS) tools/coverage/run build/coverage

mutants: deeper ## small changes of the program, one at a time: which do the tests let through? (COUNT=60 SEED= ROOM= JOBS=)
	$(Q)[ -s build/coverage/map ] || $(MAKE) --no-print-directory coverage
	$(Q)$(in_tree) BUILD=build/mutants CFLAGS='$(CFLAGS) -fPIC' measured
	$(Q)JOBS=$(JOBS) tools/mutants/run build/mutants build/coverage/map '$(SEED)' '$(COUNT)' '$(ROOM)' $(sources)
