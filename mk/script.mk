# The Lua prelude, put into the program as bytes.
extra_objects += $(BUILD)/obj/prelude.o

# One chunk in this order.
prelude := $(addprefix scripts/lua/prelude,.lua _define.lua _records.lua _text.lua _ui.lua)

$(BUILD)/gen/prelude.c: $(prelude)
	@mkdir -p $(@D)
	$(Q){ echo '#include <stddef.h>'; \
	    echo 'extern const unsigned char script_prelude[]; extern const size_t script_prelude_size;'; \
	    echo 'const unsigned char script_prelude[] = {'; \
	    cat $^ | od -An -v -tu1 | sed 's/[0-9][0-9]*/&,/g'; \
	    echo '};'; \
	    echo 'const size_t script_prelude_size = sizeof(script_prelude);'; } > $@.tmp && mv $@.tmp $@

$(BUILD)/obj/prelude.o: $(BUILD)/gen/prelude.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -c $< -o $@
