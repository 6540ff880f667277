#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "runs/coordinator.h"
#include "system/signals.h"

enum { WORKERS_MAX = 256, FDS_MAX = 1 + EPG_AGENT_FDS + EPG_GATEWAY_CONNECTIONS + 1 + WORKERS_MAX };

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void epg_run_show(epg_run_state *self, bool now)
{
    self->shown.budget_remaining = self->session.episodes_remaining;
    epg_progress_show(&self->progress, &self->shown, now);
}

/* A terminal that goes away takes nothing with it but the progress line. */
static void take_signals(epg_run_state *self)
{
    int number = 0;
    while ((number = epg_signals_take(self->signals)) != 0) {
        if (number == SIGHUP) {
            self->progress.live = false;
            continue;
        }
        if (self->interrupted != 0) {
            self->hurry = true;
        } else {
            self->interrupted = number;
            epg_progress_line(&self->progress, "interrupted", "%s: ending the Run; once more to hurry",
                              strsignal(number));
        }
    }
}

static size_t gather(const epg_run_state *self, struct pollfd fds[FDS_MAX])
{
    size_t count = 0;
    fds[count++] = (struct pollfd){.fd = self->signals, .events = POLLIN};
    if (self->agent != NULL) {
        count += epg_agent_poll_fds(self->agent, fds + count, EPG_AGENT_FDS);
    }
    if (self->gateway != NULL) {
        count += epg_gateway_poll_fds(self->gateway, fds + count, EPG_GATEWAY_CONNECTIONS + 1);
    }
    if (self->evaluation != NULL) {
        count += epg_evaluation_poll_fds(self->evaluation, fds + count, WORKERS_MAX);
    }
    return count;
}

static int64_t next_deadline(const epg_run_state *self, int64_t deadline)
{
    deadline = sooner(deadline, epg_ledger_deadline(self->ledger));
    if (self->gateway != NULL) {
        deadline = sooner(deadline, epg_gateway_deadline(self->gateway));
    }
    bool moves = self->progress.live || self->progress.mode == EPG_PROGRESS_JSON;
    return moves ? sooner(deadline, epg_deadline_after_ns(EPG_SECOND)) : deadline;
}

epg_code epg_run_wait(epg_run_state *self, int64_t deadline, epg_error *err)
{
    struct pollfd fds[FDS_MAX];
    size_t count = gather(self, fds);
    if (poll(fds, count, epg_poll_timeout_ms(next_deadline(self, deadline))) < 0 && errno != EINTR) {
        return epg_fail_errno(err, errno, "can't wait");
    }
    take_signals(self);
    if (self->agent != NULL) {
        EPG_TRY(epg_agent_turn(self->agent, err));
    }
    if (self->gateway != NULL) {
        EPG_TRY(epg_gateway_turn(self->gateway, err));
    }
    EPG_TRY(epg_ledger_sync_due(self->ledger, err));
    epg_run_show(self, false);
    return EPG_OK;
}

epg_code epg_run_evaluate(epg_run_state *self, const epg_evaluation_plan *plan, epg_evaluation_result *out,
                          epg_error *err)
{
    bool done = false;
    EPG_TRY(epg_evaluation_start(self->pool, plan, &self->evaluation, err));
    epg_code code = epg_evaluation_turn(self->evaluation, &done, err);
    while (code == EPG_OK && !done) {
        code = epg_run_wait(self, EPG_NEVER, err);
        if (code == EPG_OK && self->interrupted != 0) {
            code = epg_fail(err, EPG_ERR_INTERRUPTED, "%s", strsignal(self->interrupted));
        }
        if (code == EPG_OK) {
            code = epg_evaluation_turn(self->evaluation, &done, err);
        }
    }
    if (code == EPG_OK) {
        epg_evaluation_take(self->evaluation, out);
    } else {
        (void)epg_ledger_sync(self->ledger, NULL); /* with the records of those Episodes that ended */
    }
    epg_evaluation_free(EPG_TAKE(self->evaluation));
    return code;
}
