/* device.c -- where requests run: the CPU, or the session's GPU; see app/session.h. */
#include "app/session_parts.h"

#include "attn/cuda/library.h"

#include <stdio.h>
#include <string.h>

static bool precision_parse(const char *text, Arithmetic *out, Error *err)
{
    static const char *const names[] = { "f32", "tf32", "bf16", "f16" };

    for (int x = 0; x <= ARITHMETIC_F16; x++)
        if (!strcmp(text, names[x])) {
            *out = (Arithmetic)x;
            return true;
        }
    return error_set(err, ERR_USAGE, "--precision: expected f32, tf32, bf16 or f16, got '%s'", text);
}

Device *session_device(Session *s, Error *err)
{
    if (!s->device)
        s->device = device_open(err);
    return s->device;
}

bool request_device(Session *s, Request *request, const char *device, const char *precision,
                    Error *err)
{
    bool       automatic = device && !strcmp(device, "auto");
    Arithmetic arithmetic = ARITHMETIC_F32;
    Device    *gpu;

    snprintf(request->device, sizeof(request->device), "cpu");
    snprintf(request->precision, sizeof(request->precision), "f32");
    request->ops = NULL;
    if (precision && *precision && !precision_parse(precision, &arithmetic, err))
        return false;
    if (device && *device && !automatic && strcmp(device, "cpu") != 0 &&
        strcmp(device, "cuda") != 0)
        return error_set(err, ERR_USAGE, "--device: expected cpu, cuda or auto, got '%s'", device);
    if ((!device || !*device || !strcmp(device, "cpu")) && arithmetic != ARITHMETIC_F32)
        return error_set(err, ERR_USAGE, "--precision %s: the CPU computes in f32; say --device cuda",
                         precision);
    if (!device || !*device || !strcmp(device, "cpu"))
        return true;
    gpu = session_device(s, automatic ? NULL : err);
    if (!gpu)
        return automatic;
    request->ops = device_ops(gpu, arithmetic);
    snprintf(request->device, sizeof(request->device), "cuda");
    if (precision && *precision)
        snprintf(request->precision, sizeof(request->precision), "%s", precision);
    return true;
}
