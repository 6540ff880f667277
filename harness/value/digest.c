#include "value/value.h"

static const char domain[] = "evopolicygym/environment-parameters/v1"; /* its NUL is part of what is hashed */

epg_code epg_value_environment_digest(epg_span parameters, char out[EPG_DIGEST_TEXT], epg_error *err)
{
    if (epg_value_kind(parameters) != 'M') {
        return epg_fail(err, EPG_ERR_INVALID, "environment parameters must be a map");
    }
    if (epg_value_check(parameters, &epg_value_trusted_limits, err) != EPG_OK) {
        return epg_fail_within(err, "environment parameters");
    }
    uint8_t hash[EPG_SHA256_SIZE];
    epg_sha256 *state = epg_sha256_new();
    epg_sha256_update(state, domain, sizeof domain);
    epg_sha256_update(state, parameters.data, parameters.size);
    epg_sha256_finish(state, hash);
    epg_digest_text(hash, out);
    return EPG_OK;
}
