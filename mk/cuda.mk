# attnscope-cuda.so, built by `make cuda`, and by `make` where a GPU is present; nvcc is looked for in
# NVCC, CUDA_HOME, CUDA_PATH, PATH and /usr/local/cuda.
# CUDA=0 leaves it out.  CUDA_ARCH=90 compiles for one GPU only, which is quicker.
ifneq ($(CUDA),0)
NVCC := $(firstword $(wildcard $(NVCC) $(addsuffix /bin/nvcc,$(CUDA_HOME) $(CUDA_PATH))) \
          $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
endif
kernels := $(sort $(wildcard src/attn/cuda/kernels/*.cu))
kernel_headers := $(wildcard $(addprefix src/attn/cuda/,*.h *.def kernels/*.cuh))

ifneq ($(NVCC),)
cuda_home   := $(abspath $(dir $(realpath $(NVCC)))/..)
cuda_static := $(firstword $(wildcard $(cuda_home)/lib64/libcudart_static.a \
                                      $(cuda_home)/lib/libcudart_static.a))
CUDA_ARCH ?= 80 90
cuda_newest := $(lastword $(CUDA_ARCH))
NVCC_TARGETS = $(foreach a,$(CUDA_ARCH),-gencode arch=compute_$(a),code=sm_$(a)) \
               -gencode arch=compute_$(cuda_newest),code=compute_$(cuda_newest)
NVCC_FLAGS = -O3 -std=c++17 --compiler-options -Wall,-fPIC,-fvisibility=hidden,-fno-exceptions,-fno-threadsafe-statics \
             $(NVCC_TARGETS) -DDEVICE_NAME='"cuda"' -Isrc

# What only a Hopper's warpgroups do is for sm_90a and nothing else; without 90 it is left out.
warpgroup_objects := $(BUILD)/obj/attn/cuda/kernels/warpgroup.cu.o
ifneq ($(filter 90 90a,$(CUDA_ARCH)),)
# Products that the compiler makes wait for each other ("serialized") are an error.
$(warpgroup_objects): NVCC_TARGETS = -gencode arch=compute_90a,code=sm_90a -Xptxas -warn-spills
$(warpgroup_objects): NVCC_CHECK = >$@.log 2>&1 && ! grep -q serialized $@.log || \
                                   { cat $@.log; rm -f $@; exit 1; }
else
$(warpgroup_objects): NVCC_TARGETS += -DWITHOUT_WARPGROUP
endif
kernel_objects := $(kernels:src/%.cu=$(BUILD)/obj/%.cu.o)

# The profiler is C of the shared object's own, where CUPTI's headers are.
cupti_header := $(firstword $(wildcard $(cuda_home)/include/cupti_range_profiler.h \
                            $(cuda_home)/extras/CUPTI/include/cupti_range_profiler.h))
ifneq ($(cupti_header),)
cupti_objects := $(patsubst src/%.c,$(BUILD)/obj/%.o,$(wildcard src/attn/cuda/cupti/*.c))
CUPTI_FLAGS = -std=gnu11 -g -O2 -fPIC -fvisibility=hidden $(filter-out -Wpointer-arith,$(WARNINGS)) \
              $(if $(filter 1,$(WERROR)),-Werror) -MMD -MP -Isrc -Isrc/attn/cuda/cupti/shim \
              -isystem $(cuda_home)/include -isystem $(dir $(cupti_header))
else
NVCC_FLAGS += -DWITHOUT_PROFILER
endif

# fused.cu with the real cuDNN and a driver that runs nothing (tests/cudnn/plans.cc); cuDNN wants all
# functions of the driver to be there, so those of the toolkit's stub are, and fail.
cuda_stub := $(firstword $(wildcard $(cuda_home)/lib64/stubs/libcuda.so $(cuda_home)/lib/stubs/libcuda.so))
ifneq ($(and $(cuda_stub),$(wildcard $(cuda_home)/include/cudnn_graph.h)),)
$(BUILD)/tests/cudnn-driver.so: tests/cudnn/driver.c $(cuda_stub)
	@mkdir -p $(@D)
	$(Q)nm -D --defined-only $(cuda_stub) | \
	    sed -n 's/.* T \(cu[A-Za-z0-9_]*\)$$/__attribute__((weak)) int \1(void) { return 34; }/p' >$@.c
	$(Q)$(CC) -O2 -Wall -shared -fPIC -Wl,-soname,libcuda.so.1 $< $@.c -o $@
$(BUILD)/tests/attnscope-cudnn.so: tests/cudnn/plans.cc tests/cudnn/plans.h $(wildcard src/attn/cuda/kernels/fused*)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 -O1 -g -shared -fPIC -fvisibility=hidden -Isrc -Itests/cudnn -isystem $(cuda_home)/include \
	    -DDEVICE_NAME='"cuda"' $< -o $@ -ldl -Wl,-z,defs
$(BUILD)/tests/test_gpu_cudnn: | $(BUILD)/tests/cudnn-driver.so $(BUILD)/tests/attnscope-cudnn.so
endif

$(cupti_objects): $(BUILD)/obj/%.o: src/%.c mk/cuda.mk
	@mkdir -p $(@D)
	@$(if $(filter 1,$(V)),,echo "  CC    $<")
	$(Q)$(CC) $(CUPTI_FLAGS) -c $< -o $@

-include $(cupti_objects:.o=.d)

# The same objects with a CUPTI and a runtime of the tests' own (tests/cupti/fake.c).
ifneq ($(cupti_objects),)
$(BUILD)/tests/attnscope-cupti.so: $(wildcard tests/cupti/*) $(cupti_objects)
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fvisibility=hidden -MMD -MP,$(CUPTI_FLAGS)) -shared \
	    $(filter %.c %.o,$^) -o $@ -ldl -lpthread -Wl,-z,defs -Wl,-z,nodelete
$(BUILD)/tests/test_gpu_cupti: | $(BUILD)/tests/attnscope-cupti.so
endif

gpu_present := $(wildcard /dev/nvidiactl /dev/dxg)
all: $(if $(and $(filter yes,$(have_packages)),$(gpu_present)),$(BUILD)/attnscope-cuda.so)
cuda: $(BUILD)/attnscope-cuda.so ## build build/attnscope-cuda.so, the back end of --device cuda (needs nvcc, no GPU)

$(BUILD)/obj/%.cu.o: src/%.cu $(kernel_headers) mk/cuda.mk
	@mkdir -p $(@D)
	@$(if $(filter 1,$(V)),,echo "  NVCC  $<")
	$(Q)$(NVCC) $(NVCC_FLAGS) -c $< -o $@ $(NVCC_CHECK)

# Linked by the C compiler: cudart inside, one symbol outside, nothing else needed to open it.
# It stays where it is once opened: CUPTI may call back until the program ends.
$(BUILD)/attnscope-cuda.so: $(kernel_objects) $(cupti_objects)
	@$(if $(filter 1,$(V)),,echo "  LINK  $@")
	$(Q)$(CC) -shared -o $@ $^ $(cuda_static) -ldl -lpthread -lrt -lm -Wl,--exclude-libs,ALL -Wl,-z,defs \
	    -Wl,-z,nodelete
else
cuda:
	@echo "attnscope: no nvcc was found; install the CUDA toolkit, or name it: make cuda NVCC=/path/to/nvcc" >&2; exit 1
endif
.PHONY: cuda

# The same kernels on the CPU, thread by thread, for the tests (tests/emulated/emulated.h).
comma := ,
emulated_objects := $(kernels:src/%.cu=$(BUILD)/tests/emulated/%.o) \
                    $(patsubst tests/emulated/%.cc,$(BUILD)/tests/emulated/%.o,$(wildcard tests/emulated/*.cc))
# A product and a sum become one operation, as nvcc makes them, where this machine has that: on ARM always.
contracted := $(if $(filter x86_64% i386% i686%,$(shell $(CXX) -dumpmachine 2>/dev/null)),$(if \
              $(shell grep -m1 -ow fma /proc/cpuinfo 2>/dev/null),-mfma))
EMULATED_FLAGS = -std=c++17 -g -O2 -fPIC -fvisibility=hidden -DDEVICE_EMULATED -Isrc -Itests/emulated \
                 -Wall -Wno-unknown-pragmas $(contracted) $(if $(SANITIZE),-fno-omit-frame-pointer) $(COVERED_KERNELS)
# The kernels are what a sanitizer is to look at, not what runs them; that tells it what it cannot see.
EMULATED_LOOK = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all)
EMULATED_RACES = $(if $(SANITIZE),-DEMULATED_SANITIZED) $(if $(filter thread,$(SANITIZE)),-DEMULATED_RACES)

$(BUILD)/tests/emulated/%.o: src/%.cu $(kernel_headers) $(wildcard tests/emulated/*)
	@mkdir -p $(@D)
	@$(if $(filter 1,$(V)),,echo "  EMUL  $<")
	$(Q)$(CXX) $(EMULATED_FLAGS) $(EMULATED_LOOK) -x c++ -c $< -o $@

$(BUILD)/tests/emulated/%.o: tests/emulated/%.cc $(kernel_headers) $(wildcard tests/emulated/*.h)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(EMULATED_FLAGS) $(EMULATED_RACES) -c $< -o $@

$(BUILD)/tests/attnscope-emulated.so: $(emulated_objects)
	@$(if $(filter 1,$(V)),,echo "  LINK  $@")
	$(Q)$(CXX) -shared $(EMULATED_LOOK) $(COVERED_KERNELS) -o $@ $^ -lboost_context $(if $(SANITIZE),-Wl$(comma)-z$(comma)nodelete,-Wl$(comma)-z$(comma)defs)

# Races that are known, for the detector to find.
$(BUILD)/tests/planted: tests/emulated/planted.cu $(filter $(BUILD)/tests/emulated/%,$(emulated_objects:$(BUILD)/tests/emulated/attn/%=))
	$(Q)$(CXX) $(EMULATED_FLAGS) $(EMULATED_LOOK) -x c++ $< -x none $(filter %.o,$^) -lboost_context -o $@

$(patsubst tests/unit/gpu/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/gpu/test_*.c)): | $(BUILD)/tests/attnscope-emulated.so

.PHONY: bench-gpu
$(BUILD)/bench-gpu: tests/gpu/bench.c
$(BUILD)/bench-gpu-small: tests/gpu/bench_small.c
$(BUILD)/bench-gpu $(BUILD)/bench-gpu-small: $(BUILD)/libattnscope.a
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(filter %.c,$^) $(ALL_LDFLAGS) -Wl,--whole-archive \
	    $(BUILD)/libattnscope.a -Wl,--no-whole-archive $(ALL_LDLIBS) -o $@

bench-gpu: all cuda $(BUILD)/bench-gpu $(BUILD)/bench-gpu-small ## attention on a GPU against cuDNN's, as ratios; says so where there is none
	$(Q)$(BUILD)/bench-gpu || [ $$? = 77 ]
	$(Q)$(BUILD)/bench-gpu-small || [ $$? = 77 ]
