/* The ledger of what an agent used, from reports of different kinds that must not be added twice. */
#ifndef EPG_AGENTS_USAGE_H
#define EPG_AGENTS_USAGE_H

#include "agents/rules.h"
#include "agents/transcript.h"

/* Sums of one kind of report. */
typedef struct epg_sums {
    bool has_tokens;
    epg_tokens tokens;
    bool has_cost;
    double cost;
} epg_sums;

enum { EPG_USAGE_KEYS = 64 };

typedef struct epg_ledger {
    epg_sums kinds[3]; /* by epg_count */
    epg_sums marks[3]; /* the same, when the last interval ended */
    bool had_interval;
    struct {
        uint64_t key; /* a hash of the key and the kind, 0: free */
        epg_sums sums;
    } recent[EPG_USAGE_KEYS];
    size_t next;
} epg_ledger;

void epg_ledger_add(epg_ledger *ledger, const epg_event *event);
/* `whole`: the agent ended by itself, so nothing that it used is missing from complete reports. */
epg_usage epg_ledger_usage(const epg_ledger *ledger, bool whole);
epg_usage epg_ledger_interval(epg_ledger *ledger, bool whole);

#endif
