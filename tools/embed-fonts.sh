#!/bin/sh
# embed-fonts.sh OUT.S SANS.ttf MONO.ttf -- writes assembly that holds the fonts.
#
# Figures must not depend on the fonts of the machine they are drawn on, so the
# two fonts become part of the program.  The symbols are declared in
# src/draw/fonts.h.
set -eu

if [ $# -ne 3 ]; then
    echo "usage: embed-fonts.sh OUT.S SANS.ttf MONO.ttf" >&2
    exit 2
fi
for font in "$2" "$3"; do
    if [ ! -r "$font" ]; then
        echo "embed-fonts.sh: $font: not readable; install fonts-dejavu-core or set FONT_DIR" >&2
        exit 1
    fi
done

embed() {
    printf '    .global %s_start, %s_end\n    .balign 16\n' "$1" "$1"
    printf '%s_start:\n    .incbin "%s"\n%s_end:\n    .byte 0\n' "$1" "$2" "$1"
}

{
    echo '    .section .rodata'
    embed font_sans "$2"
    embed font_mono "$3"
    echo '    .section .note.GNU-stack,"",%progbits'
} > "$1.tmp"
mv "$1.tmp" "$1"
