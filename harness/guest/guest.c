#include "guest/guest.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "guest/internal.h"

epg_code epg_guest_open(const epg_execution *execution, int cancel, epg_guest **out, epg_error *err)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random || epg_become_subreaper() != 0) {
        (void)epg_fail_errno(err, errno, "can't prepare to own Policy processes");
        return epg_fail_as(err, EPG_ERR_EXECUTION, "guest");
    }
    epg_guest *guest = epg_alloc(sizeof *guest);
    *guest = (epg_guest){
        .execution = *execution,
        .cancel = cancel,
        .server = {.process = {.pid = -1, .pidfd = -1}, .control = -1, .output = -1},
        .spare = epg_no_seat,
        .random = random,
    };
    epg_seat_park(guest);
    *out = guest;
    return EPG_OK;
}

void epg_guest_join(epg_guest *guest, epg_company *company)
{
    guest->company = company;
}

void epg_guest_close(epg_guest *guest)
{
    if (guest == NULL) {
        return;
    }
    epg_ended ended;
    epg_seats_end(guest);
    (void)epg_guest_end_strays(guest, &ended, NULL);
    free(guest);
}

void epg_guest_keep(epg_guest *guest, pid_t pid)
{
    if (guest->kept_count < EPG_GUEST_KEPT) {
        guest->kept[guest->kept_count++] = pid;
    }
}

void epg_guest_forget(epg_guest *guest, pid_t pid)
{
    for (size_t i = 0; i < guest->kept_count; i++) {
        if (guest->kept[i] == pid) {
            guest->kept[i] = guest->kept[--guest->kept_count];
            return;
        }
    }
}

void epg_guest_statistics(const epg_guest *guest, epg_guest_stats *out)
{
    *out = guest->stats;
}

static const char *const cause_names[] = {
    [EPG_CAUSE_NONE] = "none",
    [EPG_CAUSE_LOAD] = "load",
    [EPG_CAUSE_MAKE_POLICY] = "make_policy",
    [EPG_CAUSE_ACT] = "act",
    [EPG_CAUSE_TIMEOUT_START] = "timeout_start",
    [EPG_CAUSE_TIMEOUT_ACT] = "timeout_act",
    [EPG_CAUSE_TIMEOUT_WRITE] = "timeout_write",
    [EPG_CAUSE_MALFORMED_FRAME] = "malformed_frame",
    [EPG_CAUSE_PARTIAL_FRAME] = "partial_frame",
    [EPG_CAUSE_OVERSIZED_FRAME] = "oversized_frame",
    [EPG_CAUSE_INADMISSIBLE_VALUE] = "inadmissible_value",
    [EPG_CAUSE_UNEXPECTED_MESSAGE] = "unexpected_message",
    [EPG_CAUSE_DIED] = "died",
    [EPG_CAUSE_REFUSED_ACTION] = "refused_action",
};

const char *epg_policy_cause_name(epg_policy_cause cause)
{
    return cause_names[cause];
}
