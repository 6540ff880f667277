#include "cli/traces_option.h"

#include <string.h>

#include "runs/traces.h"

epg_code epg_traces_option_read(const epg_options *options, bool *full, uint64_t *bytes, epg_error *err)
{
    const epg_option *what = epg_option_find(options, "record-traces");
    unsigned long long limit = 0;
    if (what->given && strcmp(what->value, "full") != 0 && strcmp(what->value, "digests") != 0) {
        return epg_fail(err, EPG_ERR_USAGE, "--record-traces takes full or digests");
    }
    EPG_TRY(epg_option_u64(options, "trace-bytes", 1, INT64_MAX, &limit, err));
    *full = what->given ? strcmp(what->value, "full") == 0 : *full;
    if (limit > 0 && !*full) {
        return epg_fail(err, EPG_ERR_USAGE, "--trace-bytes goes with --record-traces full");
    }
    *bytes = limit > 0 ? limit : *bytes > 0 ? *bytes : EPG_TRACES_BYTES;
    return EPG_OK;
}
