# Samples and scripts, put into the program: its file copied alone finds them (app/shipped.h).
extra_objects += $(BUILD)/obj/shipped.o

shipped := $(sort $(filter-out %.py %.md,$(wildcard samples/*.*)) $(wildcard scripts/lua/*.lua scripts/lua/library/*.lua))

$(BUILD)/gen/shipped.S: tools/embed-files.sh mk/shipped.mk $(shipped)
	@mkdir -p $(@D)
	$(Q)tools/embed-files.sh $@ $(shipped)

$(BUILD)/obj/shipped.o: $(BUILD)/gen/shipped.S
	@mkdir -p $(@D)
	$(Q)$(CC) -c $< -o $@
