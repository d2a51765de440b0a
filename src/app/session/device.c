/* device.c -- where requests run: the CPU, or the session's GPU; see app/session.h. */
#include "app/session/internal.h"

#include "app/session/device.h"

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

static void tell_trial(void *session, const char *text)
{
    session_progress(session, "%s", text);
}

Device *session_device(Session *s, Error *err)
{
    if (!s->device) {
        s->device = device_open(err);
        if (s->device)
            trials_apply(s->device, tell_trial, s);
    }
    return s->device;
}

bool device_word(const char *device, Error *err)
{
    return !*device || !strcmp(device, "cpu") || !strcmp(device, "cuda") ||
           !strcmp(device, "auto") ||
           error_set(err, ERR_USAGE, "--device: expected cpu, cuda or auto, got '%s'", device);
}

bool precision_word(const char *precision, Error *err)
{
    Arithmetic arithmetic;

    return !*precision || precision_parse(precision, &arithmetic, err);
}

/* What both words ask for; *gpu: not the CPU. */
static bool wanted(const char *device, const char *precision, bool *gpu, Arithmetic *arithmetic,
                   Error *err)
{
    *arithmetic = ARITHMETIC_F32;
    *gpu = strcmp(device, "cpu") != 0;
    if (!device_word(device, err) || !precision_parse(precision, arithmetic, err))
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
    snprintf(request->precision, sizeof(request->precision), "%s",
             arithmetic_name(gpu ? arithmetic : ARITHMETIC_F32));
    return gpu || !asked || automatic;
}

bool request_next_place(Session *s, Request *request, Error *err)
{
    int next = request->ops ? (int)arithmetic_of(request->ops) + 1 : 0;

    if (next > ARITHMETIC_F16)
        return request_device(s, request, "cpu", NULL, err);
    return request_device(s, request, "cuda", arithmetic_name((Arithmetic)next), err);
}

void request_place(const Request *request, Text *out)
{
    if (!request->ops)
        text_add(out, "cpu");
    else
        text_addf(out, "%s%s%s", request->device, arithmetic_of(request->ops) ? " " : "",
                  arithmetic_of(request->ops) ? request->precision : "");
}

const char *request_gpu(const Request *request)
{
    const Device *device = device_of(request->ops);

    return device ? device_info(device)->name : NULL;
}
