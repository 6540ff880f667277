/* How a Policy's Episode can fail: public data, shared by guest, Benchmark and records (CONTRACTS section 7). */
#ifndef EPG_VALUE_OUTCOME_H
#define EPG_VALUE_OUTCOME_H

typedef enum epg_policy_failure {
    EPG_POLICY_OK = 0,
    EPG_POLICY_EXCEPTION,
    EPG_POLICY_TIMEOUT,
    EPG_POLICY_INVALID_ACTION,
    EPG_POLICY_PROTOCOL_ERROR
} epg_policy_failure;

/* "exception", "timeout", "invalid_action", "protocol_error"; NULL for OK. */
const char *epg_policy_failure_name(epg_policy_failure failure);

#endif
