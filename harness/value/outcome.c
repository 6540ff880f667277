#include "value/outcome.h"

#include <stddef.h>

const char *epg_policy_failure_name(epg_policy_failure failure)
{
    switch (failure) {
    case EPG_POLICY_OK:
        return NULL;
    case EPG_POLICY_EXCEPTION:
        return "exception";
    case EPG_POLICY_TIMEOUT:
        return "timeout";
    case EPG_POLICY_INVALID_ACTION:
        return "invalid_action";
    case EPG_POLICY_PROTOCOL_ERROR:
        return "protocol_error";
    }
    return NULL;
}
