/* The Host's own call of digests.h. */
#include "runs/coordinator.h"
#include "runs/digests.h"
#include "system/files.h"

void epg_run_keep_digests(epg_run_state *self, const char *name, const epg_evaluation_result *result)
{
    EPG_AUTO_CLOSE int records = -1;
    epg_error fault = {.text = ""};
    epg_code code = epg_dir_open(self->run, "records", &records, &fault);
    if (code == EPG_OK) {
        code = epg_digests_write(self->run, records, name, result, &fault);
    }
    if (code != EPG_OK) {
        epg_run_evidence_fault(self, "traces", &fault);
    }
}
