# The two fonts of the figures, put into the program as read-only data.
font_files = $(FONT_DIR)/DejaVuSans.ttf $(FONT_DIR)/DejaVuSansMono.ttf
extra_objects += $(BUILD)/obj/fonts.o

$(BUILD)/gen/fonts.S: tools/embed-fonts.sh $(font_files)
	@mkdir -p $(@D)
	$(Q)tools/embed-fonts.sh $@ $(font_files)

$(BUILD)/obj/fonts.o: $(BUILD)/gen/fonts.S
	@mkdir -p $(@D)
	$(Q)$(CC) -c $< -o $@
