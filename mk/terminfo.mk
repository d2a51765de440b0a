# The direct-colour terminal entries, compiled by tic and embedded as text: ncurses
# reads a whole entry from TERMINFO=b64:...
$(BUILD)/gen/terminfo_direct.h: src/ui/term/direct.ti
	@mkdir -p $(@D)
	$(Q)tic -x -o $(BUILD)/gen/terminfo $<
	$(Q){ for t in xterm tmux; do \
	    printf 'static const char terminfo_%s[] =\n' $$t; \
	    base64 -w 76 $$(find $(BUILD)/gen/terminfo -name attn-$$t) | sed 's/.*/    "&"/'; \
	    echo '    ;'; done; } > $@.tmp && mv $@.tmp $@

$(BUILD)/obj/ui/term/curses.o: | $(BUILD)/gen/terminfo_direct.h
