/* device.c -- where requests run: the CPU, or the session's GPU; see app/session.h. */
#include "app/session_parts.h"

#include "attn/cuda/library.h"

#include <stdio.h>
#include <string.h>

static bool precision_parse(const char *text, Arithmetic *out, Error *err)
{
    for (int x = 0; x <= ARITHMETIC_F16; x++)
        if (!strcmp(text, arithmetic_name((Arithmetic)x))) {
            *out = (Arithmetic)x;
            return true;
        }
    return error_set(err, ERR_USAGE, "--precision: expected f32, tf32, bf16 or f16, got '%s'",
                     text);
}

Device *session_device(Session *s, Error *err)
{
    if (!s->device)
        s->device = device_open(err);
    return s->device;
}

/* What both words ask for; *gpu: not the CPU. */
static bool wanted(const char *device, const char *precision, bool *gpu, Arithmetic *arithmetic,
                   Error *err)
{
    *arithmetic = ARITHMETIC_F32;
    *gpu = strcmp(device, "cpu") != 0;
    if (*gpu && strcmp(device, "cuda") != 0 && strcmp(device, "auto") != 0)
        return error_set(err, ERR_USAGE, "--device: expected cpu, cuda or auto, got '%s'", device);
    if (!precision_parse(precision, arithmetic, err))
        return false;
    return *gpu || *arithmetic == ARITHMETIC_F32 ||
           error_set(err, ERR_USAGE, "--precision %s: the CPU computes in f32; say --device cuda",
                     precision);
}

bool request_device(Session *s, Request *request, const char *device, const char *precision,
                    Error *err)
{
    Arithmetic arithmetic;
    Device    *gpu = NULL;
    bool       asked, automatic;

    device = device && *device ? device : "cpu";
    precision = precision && *precision ? precision : "f32";
    if (!wanted(device, precision, &asked, &arithmetic, err))
        return false;
    automatic = !strcmp(device, "auto");
    if (asked)
        gpu = session_device(s, automatic ? NULL : err);
    request->ops = gpu ? device_ops(gpu, arithmetic) : NULL;
    snprintf(request->device, sizeof(request->device), "%s", gpu ? "cuda" : "cpu");
    snprintf(request->precision, sizeof(request->precision), "%s", gpu ? precision : "f32");
    return gpu || !asked || automatic;
}
