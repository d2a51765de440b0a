#!/bin/sh
# embed-files.sh OUT.S FILE... -- writes assembly that holds the files as the table shipped_files
# and the name of their bytes, shipped_id; src/app/shipped.c declares both.
set -eu
out=$1
shift
{
    echo '    .section .rodata'
    i=0
    for file in "$@"; do
        i=$((i + 1))
        printf 'name_%d:\n    .asciz "%s"\n    .balign 16\n' $i "$file"
        printf 'start_%d:\n    .incbin "%s"\nend_%d:\n    .byte 0\n' $i "$file" $i
    done
    printf '    .global shipped_id\nshipped_id:\n    .asciz "%.16s"\n' "$(cat "$@" | sha256sum)"
    echo '    .section .data.rel.ro,"aw"'
    printf '    .global shipped_files\n    .balign 8\nshipped_files:\n'
    i=0
    for file in "$@"; do
        i=$((i + 1))
        echo "    .quad name_$i, start_$i, end_$i - start_$i"
    done
    echo '    .quad 0, 0, 0'
    echo '    .section .note.GNU-stack,"",%progbits'
} >"$out.tmp"
mv "$out.tmp" "$out"
