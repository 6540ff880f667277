/* The Host's own call of digests.h. */
#include "runs/coordinator.h"
#include "runs/digests.h"
#include "runs/seal.h"
#include "system/files.h"

void epg_run_keep_digests(epg_run_state *self, const char *name, const epg_evaluation_result *result,
                          char sha256[EPG_SHA256_HEX])
{
    EPG_AUTO_FREE char *path = epg_format("traces/%s.digests", name);
    uint64_t bytes = 0;
    EPG_AUTO_CLOSE int records = -1;
    epg_error fault = {.text = ""};
    epg_code code = epg_dir_open(self->run, "records", &records, &fault);
    if (code == EPG_OK) {
        code = epg_digests_write(self->run, records, name, result, &fault);
    }
    sha256[0] = '\0';
    if (code == EPG_OK) {
        code = epg_seal_hash(self->run, path, UINT64_MAX, sha256, &bytes, &fault);
        if (code == EPG_ERR_NOT_FOUND) { /* there were too many records for digests */
            return;
        }
    }
    if (code != EPG_OK) {
        epg_run_evidence_fault(self, "traces", &fault);
    }
}
