// declined.cuh -- why a way to attention that not every GPU or driver has is not taken.
#ifndef ATTN_CUDA_KERNELS_DECLINED_CUH
#define ATTN_CUDA_KERNELS_DECLINED_CUH

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

// Keeps the reason and returns the code.
template <size_t SIZE>
static int declined(char (&reason)[SIZE], int code, const char *format, ...)
{
    va_list rest;

    va_start(rest, format);
    vsnprintf(reason, SIZE, format, rest);
    va_end(rest);
    return code;
}

#endif
