/* What the Host keeps of Episodes' steps when their records go. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "runs/coordinator.h"
#include "runs/digests.h"
#include "runs/seal.h"
#include "runs/traces.h"
#include "system/files.h"
#include "system/io.h"

/* A trace that can't be sealed is taken back: what no event vouches for is no part of a record. */
static epg_code seal(epg_run_state *self, const char *name, epg_error *err)
{
    EPG_AUTO_FREE char *path = epg_traces_path(name);
    epg_code code = epg_run_seal(self, path, EPG_SEAL_ONCE, err);
    if (code != EPG_OK) {
        (void)epg_io_unlink(self->run, path, 0);
    }
    return code;
}

static epg_code keep_whole(epg_run_state *self, int traces, int records, const char *name,
                           const epg_evaluation_result *result, epg_error *err)
{
    if (!self->traces_counted) {
        self->trace_bytes = epg_traces_bytes(traces); /* of an earlier Host, where the Run goes on */
        self->traces_counted = true;
    }
    uint64_t budget = self->request->trace_bytes;
    uint64_t room = budget > self->trace_bytes ? budget - self->trace_bytes : 0;
    uint64_t bytes = 0;
    EPG_TRY(epg_traces_write(traces, records, name, name, result, room, &bytes, err));
    if (bytes > 0) {
        EPG_TRY(seal(self, name, err));
        self->trace_bytes += bytes;
        return EPG_OK;
    }
    epg_run_evidence_traces(self, name, room);
    if (!self->traces_told) {
        self->traces_told = true;
        epg_progress_line(&self->progress, "traces", "the traces of %s do not fit into --trace-bytes: digests are kept",
                          name);
    }
    return EPG_OK;
}

/* Those of an evaluation that an earlier Host has sealed stand: only what they are is told. */
static epg_code keep_digests(epg_run_state *self, int traces, int records, const char *name,
                             const epg_evaluation_result *result, char sha256[EPG_SHA256_HEX], epg_error *err)
{
    EPG_AUTO_FREE char *path = epg_format("traces/%s.digests", name);
    const epg_history_seal *sealed = epg_seal_find(self->history, path);
    uint64_t bytes = 0;
    if (sealed != NULL) {
        memcpy(sha256, sealed->sha256, sizeof sealed->sha256);
        return EPG_OK;
    }
    EPG_TRY(epg_digests_write(traces, records, name, result, err));
    epg_error why = {.text = ""};
    epg_code code = epg_seal_hash(self->run, path, UINT64_MAX, sha256, &bytes, &why);
    if (code == EPG_ERR_NOT_FOUND) {
        return EPG_OK; /* there were too many records for digests */
    }
    *err = why;
    return code;
}

static epg_code keep(epg_run_state *self, const char *name, const epg_evaluation_result *result,
                     char sha256[EPG_SHA256_HEX], epg_error *err)
{
    EPG_AUTO_CLOSE int records = -1;
    EPG_AUTO_CLOSE int traces = -1;
    EPG_TRY(epg_dir_open(self->run, "records", &records, err));
    if (epg_io_mkdir(self->run, "traces", 0700) == 0) {
        EPG_TRY(epg_dir_sync(self->run, err));
    } else if (errno != EEXIST) {
        return epg_fail_errno(err, errno, "can't make the directory for traces");
    }
    EPG_TRY(epg_dir_open(self->run, "traces", &traces, err));
    EPG_TRY(keep_digests(self, traces, records, name, result, sha256, err));
    EPG_AUTO_FREE char *whole = epg_traces_path(name);
    return self->request->full_traces && epg_seal_find(self->history, whole) == NULL
               ? keep_whole(self, traces, records, name, result, err)
               : EPG_OK;
}

void epg_run_keep_traces(epg_run_state *self, const char *name, const epg_evaluation_result *result,
                         char sha256[EPG_SHA256_HEX])
{
    epg_error fault = {.text = ""};
    sha256[0] = '\0';
    if (keep(self, name, result, sha256, &fault) != EPG_OK) {
        epg_run_evidence_fault(self, "traces", &fault);
    }
}

static void drop_unsealed(const epg_run_state *self, const char *phase, uint64_t number)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(number, id);
    EPG_AUTO_FREE char *name = epg_format("%s%s", phase, id);
    EPG_AUTO_FREE char *digests = epg_format("traces/%s.digests", name);
    EPG_AUTO_FREE char *whole = epg_traces_path(name);
    const char *const paths[] = {digests, whole};
    for (size_t i = 0; i < EPG_COUNT(paths); i++) {
        if (epg_seal_find(self->history, paths[i]) == NULL) {
            (void)epg_io_unlink(self->run, paths[i], 0);
        }
    }
}

void epg_run_drop_unsealed_traces(epg_run_state *self)
{
    const epg_history *history = self->history;
    for (size_t i = 0; i < history->submission_count; i++) {
        if (history->submissions[i].facts.state == EPG_SUBMISSION_RUNNING) {
            drop_unsealed(self, "", i + 1);
        }
    }
    /* Power may have taken the event that a measure was started, and left its traces. */
    for (size_t i = 0; i < history->candidate_count; i++) {
        drop_unsealed(self, "validation-", history->candidates[i]);
        drop_unsealed(self, "assessment-", history->candidates[i]);
    }
}
