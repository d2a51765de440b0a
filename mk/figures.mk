# Pictures of the documents.  The explorer is recorded in a pseudo-terminal, so this needs libvterm.
$(BUILD)/record: tools/recording/record.c tests/screen/terminal.c tests/screen/terminal.h $(BUILD)/libattnscope.a
	$(Q)$(CC) $(ALL_CPPFLAGS) -Itests/screen $(ALL_CFLAGS) $(filter %.c,$^) $(ALL_LDFLAGS) \
	    $(BUILD)/libattnscope.a $(ALL_LDLIBS) -lvterm -lutil -o $@

.PHONY: recording
recording: all $(BUILD)/record ## the README's screenshot and recording of the explorer, made anew
	$(Q)tools/recording/run $(BUILD) docs/images

.PHONY: gallery
gallery: all ## the pictures of docs/gallery.md, by the commands on that page
	$(Q)tools/gallery $(BUILD)/attnscope
