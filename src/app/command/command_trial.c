/* command_trial.c -- tries the GPU's faster ways, and keeps what came of it. */
#include "app/command/command_parts.h"

#include <string.h>

#include "app/command/trial_runs.h"

static bool way_of(const char *word, DeviceWay *out, Error *err)
{
    return way_named(word, out) ||
           error_set(err, ERR_USAGE, "trial: expected wgmma or graphs, got '%s'", word);
}

static bool here(Session *s, const Call *call, Text *out, Error *err)
{
    Verdict   verdict;
    DeviceWay way;
    int64_t   n = 0;

    if (!trials_allowed()) /* the variables that it sets would stay, and what it breaks too */
        return error_set(err, ERR_USAGE, "trial --here is for a process of its own: say 'trial'");
    trials_forbid(); /* else this one would begin trials of what it does not try */
    if (call->word_count != 1)
        return error_set(err, ERR_USAGE, "trial --here needs one word: wgmma or graphs");
    if (!way_of(call->words[0], &way, err) ||
        !call_int(call, OPT_N, 1, INT64_C(1) << 20, &n, err) ||
        !trial_here(s, way, n, &verdict, err))
        return false;
    text_addf(out, "%s\n", verdict.what);
    return verdict.good || error_set(err, ERR_DIFFERENCE, "%s is not to be used", way_name(way));
}

/* What it came to also goes for this process's own runs from here on. */
static void settle(Device *device, DeviceWay way, const Verdict *verdict)
{
    device_hold(device, NULL);
    device_way_settle(device, way, verdict->good, verdict->what);
    device_leave(device);
}

static bool is_stopped(void *context)
{
    return session_stopped(context);
}

/* Tries one and says so; what was not tried is no failure of the others. */
static void try_one(Session *s, Device *device, DeviceWay way, Text *out)
{
    Error   err = ERROR_INIT;
    Verdict verdict;

    if (device_way(device, way) == WAY_ABSENT) {
        text_addf(out, "  %-10s %s\n", way_name(way), device_way_text(device, way));
        return;
    }
    session_progress(s, "trying %s", way_name(way));
    if (!trial_make(way, is_stopped, s, &verdict, &err)) {
        text_addf(out, "  %-10s %s\n", way_name(way), err.text);
        return;
    }
    settle(device, way, &verdict);
    text_addf(out, "  %-10s %s: %s\n", way_name(way), verdict.good ? "used" : "not used",
              verdict.what);
    if (!trial_keep(device, way, &verdict, &err))
        text_addf(out, "  %-10s not kept: %s\n", "", err.text);
}

bool command_trial(Session *s, const Call *call, Text *out, Error *err)
{
    DeviceWay ways[DEVICE_WAYS] = { WAY_WARPGROUP, WAY_GRAPHS };
    int       count = call->word_count ? call->word_count : DEVICE_WAYS;
    Device   *device;
    Text      path = { 0 };

    if (call->values[OPT_HERE])
        return here(s, call, out, err);
    if (call->values[OPT_N])
        return error_set(err, ERR_USAGE, "trial: -n goes with --here");
    for (int i = 0; i < call->word_count; i++)
        if (!way_of(call->words[i], &ways[i], err))
            return false;
    trials_forbid(); /* of its own accord, before */
    device = session_device(s, err);
    if (!device)
        return false;
    text_addf(out, "%s\n", device_info(device)->name);
    session_heeds_stop(s, true);
    for (int i = 0; i < count && !session_stopped(s); i++)
        try_one(s, device, ways[i], out);
    session_heeds_stop(s, false);
    if (session_stopped(s))
        return error_set(err, ERR_CANCELLED, "trial: stopped; nothing is kept of the one that ran");
    if (trials_path(&path, NULL))
        text_addf(out, "  kept in    %s\n", text_str(&path));
    text_free(&path);
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory");
}
