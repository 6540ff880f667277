/* What an agent's failure was, told from its words. */
#include <string.h>

#include "agents/pattern.h"
#include "agents/rules.h"
#include "base/memory.h"

static const struct {
    const char *name;
    const char *side;
} faults[] = {
    [EPG_FAULT_NONE] = {"none", "none"},
    [EPG_FAULT_LOGIN] = {"login", "user"},
    [EPG_FAULT_QUOTA] = {"quota", "user"},
    [EPG_FAULT_MODEL] = {"model", "user"},
    [EPG_FAULT_ROOT] = {"root", "user"},
    [EPG_FAULT_VERSION] = {"version", "user"},
    [EPG_FAULT_RATE_LIMIT] = {"rate_limit", "provider"},
    [EPG_FAULT_OVERLOAD] = {"overload", "provider"},
    [EPG_FAULT_NETWORK] = {"network", "provider"},
    [EPG_FAULT_OTHER] = {"other", "agent"},
};

/* Tried in this order, after the adapter's own. */
static const struct {
    epg_agent_fault fault;
    const char *pattern;
} common[] = {
    {EPG_FAULT_QUOTA,
     "(?i)insufficient[_ ]quota|exceeded your current quota|payment required|out of credits|quota (?:was )?exceeded"},
    {EPG_FAULT_ROOT, "(?i)(?:run|running|used?) (?:as|with) root\\b"},
    {EPG_FAULT_RATE_LIMIT, "(?i)\\brate.?limit|too many requests|\\bstatus:? 429\\b"},
    {EPG_FAULT_LOGIN, "(?i)\\bunauthorized\\b|\\bunauthenticated\\b|invalid api key|incorrect api key|not logged in"},
    {EPG_FAULT_MODEL, "(?i)\\bmodel\\b.{0,80}\\b(?:not found|not exist|unknown|not supported)|model_not_found"},
    {EPG_FAULT_OVERLOAD, "(?i)\\boverloaded\\b|service unavailable|internal server error|bad gateway|gateway time-?out|"
                         "\\bserver_error\\b|\\b(?:status|error):? 5[0-9][0-9]\\b"},
    {EPG_FAULT_NETWORK, "(?i)\\bE(?:CONNREFUSED|CONNRESET|NOTFOUND|TIMEDOUT|HOSTUNREACH|PIPE)\\b|\\bEAI_AGAIN\\b|"
                        "connection (?:was )?(?:refused|reset|closed|error|dropped|lost)|network error|fetch failed|"
                        "error sending request|error decoding response|stream (?:disconnected|closed)|socket hang up|"
                        "\\bdns\\b|could not resolve|request timed out|\\bterminated\\b"},
};

const char *epg_agent_fault_name(epg_agent_fault fault)
{
    return faults[fault].name;
}

const char *epg_agent_fault_side(epg_agent_fault fault)
{
    return faults[fault].side;
}

bool epg_agent_fault_parse(const char *name, epg_agent_fault *out)
{
    for (size_t i = EPG_FAULT_NONE + 1; i < EPG_COUNT(faults); i++) {
        if (strcmp(faults[i].name, name) == 0) {
            *out = (epg_agent_fault)i;
            return true;
        }
    }
    return false;
}

static epg_agent_fault of_status(int64_t status)
{
    switch (status) {
    case 401:
    case 403:
        return EPG_FAULT_LOGIN;
    case 402:
        return EPG_FAULT_QUOTA;
    case 404:
        return EPG_FAULT_MODEL;
    case 408:
        return EPG_FAULT_NETWORK;
    case 429:
        return EPG_FAULT_RATE_LIMIT;
    default:
        return status >= 500 && status <= 599 ? EPG_FAULT_OVERLOAD : EPG_FAULT_NONE;
    }
}

static bool has_status(const json_t *statuses, int64_t status)
{
    for (size_t i = 0; i < json_array_size(statuses); i++) {
        if (json_integer_value(json_array_get(statuses, i)) == status) {
            return true;
        }
    }
    return false;
}

epg_agent_fault epg_fault_classify(const json_t *errors, epg_patterns *patterns, int64_t status, epg_span message)
{
    for (size_t i = 0; i < json_array_size(errors); i++) {
        const json_t *one = json_array_get(errors, i);
        const char *text = json_string_value(json_object_get(one, "pattern"));
        const epg_pattern *pattern = text != NULL ? epg_patterns_get(patterns, text) : NULL;
        epg_agent_fault fault = EPG_FAULT_OTHER;
        if ((has_status(json_object_get(one, "status"), status) ||
             (pattern != NULL && epg_pattern_matches(pattern, message))) &&
            epg_agent_fault_parse(json_string_value(json_object_get(one, "fault")), &fault)) {
            return fault;
        }
    }
    /* A spent quota comes with the status of a rate limit: its words go before the status, all others after it. */
    for (size_t i = 0; i < EPG_COUNT(common); i++) {
        if (i == 1 && of_status(status) != EPG_FAULT_NONE) {
            return of_status(status);
        }
        const epg_pattern *pattern = epg_patterns_get(patterns, common[i].pattern);
        if (pattern != NULL && epg_pattern_matches(pattern, message)) {
            return common[i].fault;
        }
    }
    return EPG_FAULT_OTHER;
}
