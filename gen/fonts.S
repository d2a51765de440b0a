    .section .rodata
    .global font_sans_start, font_sans_end
    .balign 16
font_sans_start:
    .incbin "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
font_sans_end:
    .byte 0
    .global font_mono_start, font_mono_end
    .balign 16
font_mono_start:
    .incbin "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf"
font_mono_end:
    .byte 0
    .section .note.GNU-stack,"",%progbits
