# The lessons of scripts/lessons, put into the program as bytes, in the order of their names.
lessons := $(sort $(wildcard scripts/lessons/*.lua))
extra_objects += $(BUILD)/obj/lessons.o

$(BUILD)/gen/lessons.c: $(lessons) mk/lessons.mk
	@mkdir -p $(dir $@)
	$(Q){ echo '#include "app/lesson/lesson.h"'; \
	    for f in $(lessons); do \
	        echo "static const unsigned char $$(basename $$f .lua | tr -c 'a-z0-9\n' _ | sed 's/^/lesson_/')[] = {"; \
	        od -An -v -tu1 $$f | sed 's/[0-9][0-9]*/&,/g'; \
	        echo '};'; \
	    done; \
	    echo 'const ShippedLesson lessons_shipped[] = {'; \
	    for f in $(lessons); do \
	        id=$$(basename $$f .lua | tr -c 'a-z0-9\n' _ | sed 's/^/lesson_/'); \
	        echo "{ \"$$(basename $$f)\", $$id, sizeof($$id) },"; \
	    done; \
	    echo '{ 0 } };'; } > $@.tmp && mv $@.tmp $@

$(BUILD)/obj/lessons.o: $(BUILD)/gen/lessons.c
	@mkdir -p $(dir $@)
	$(Q)$(CC) $(ALL_CPPFLAGS) -std=c11 -c $< -o $@
