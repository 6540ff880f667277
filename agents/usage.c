/* Agents report what they used in three ways, and one agent in more than one of them: a total of the session (mostly at
 * its end); its part with each step; a part that is known to be too small (counts taken when a message had only begun).
 * Each way has its own sums. A total counts before steps, steps before partial ones. A report under the key of an
 * earlier one takes its place. */
#include "agents/usage.h"

#include <string.h>

static uint64_t hash_of(epg_span key, epg_count kind)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)kind;
    for (size_t i = 0; i < key.size; i++) {
        hash = (hash ^ key.data[i]) * UINT64_C(1099511628211);
    }
    return hash | 1;
}

/* Never wraps, so that no report makes a sum smaller; input and output together still fit. */
static uint64_t more(uint64_t a, uint64_t b)
{
    const uint64_t most = INT64_MAX / 2;
    return a > most || b > most - a ? most : a + b;
}

static epg_tokens plus(epg_tokens a, epg_tokens b)
{
    return (epg_tokens){more(a.input, b.input), more(a.cached_input, b.cached_input),
                        more(a.cache_write, b.cache_write), more(a.output, b.output), more(a.reasoning, b.reasoning)};
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static epg_tokens minus(epg_tokens a, epg_tokens b)
{
    return (epg_tokens){less(a.input, b.input), less(a.cached_input, b.cached_input),
                        less(a.cache_write, b.cache_write), less(a.output, b.output), less(a.reasoning, b.reasoning)};
}

/* What was counted under this key before, and where the new count is to be kept. */
static epg_sums *place_of(epg_ledger *ledger, uint64_t key)
{
    for (size_t i = 0; i < EPG_USAGE_KEYS; i++) {
        if (ledger->recent[i].key == key) {
            return &ledger->recent[i].sums;
        }
    }
    size_t at = ledger->next++ % EPG_USAGE_KEYS;
    ledger->recent[at].key = key;
    ledger->recent[at].sums = (epg_sums){0};
    return &ledger->recent[at].sums;
}

void epg_ledger_add(epg_ledger *ledger, const epg_event *event)
{
    epg_sums *sums = &ledger->kinds[event->count];
    epg_sums report = {event->has_tokens, event->tokens, event->has_cost, event->cost};
    if (event->count == EPG_COUNT_TOTAL) {
        *sums = report;
        return;
    }
    if (event->id.size > 0) {
        epg_sums *before = place_of(ledger, hash_of(epg_buffer_span(&event->id), event->count));
        sums->tokens = minus(sums->tokens, before->tokens);
        sums->cost -= before->cost;
        *before = report;
    }
    sums->has_tokens = sums->has_tokens || report.has_tokens;
    sums->tokens = plus(sums->tokens, report.tokens);
    sums->has_cost = sums->has_cost || report.has_cost;
    sums->cost += report.cost;
}

static epg_known known_of(int kind, bool whole)
{
    return whole && kind != EPG_COUNT_PARTIAL ? EPG_KNOWN_EXACTLY : EPG_KNOWN_AT_LEAST;
}

epg_usage epg_ledger_usage(const epg_ledger *ledger, bool whole)
{
    epg_usage usage = {0};
    for (int kind = EPG_COUNT_PARTIAL; kind >= EPG_COUNT_TOTAL; kind--) {
        if (ledger->kinds[kind].has_tokens) {
            usage.tokens = ledger->kinds[kind].tokens;
            usage.tokens_known = known_of(kind, whole);
        }
        if (ledger->kinds[kind].has_cost) {
            usage.cost = ledger->kinds[kind].cost;
            usage.cost_known = known_of(kind, whole);
        }
    }
    return usage;
}

epg_usage epg_ledger_interval(epg_ledger *ledger, bool whole)
{
    epg_usage usage = {0};
    if (!ledger->had_interval) {
        usage = epg_ledger_usage(ledger, whole);
    } else {
        for (int kind = EPG_COUNT_PARTIAL; kind >= EPG_COUNT_TOTAL; kind--) {
            const epg_sums *now = &ledger->kinds[kind];
            const epg_sums *then = &ledger->marks[kind];
            /* A total that came for the first time holds the earlier intervals too: it says nothing about this one. */
            bool tells = kind != EPG_COUNT_TOTAL || then->has_tokens || then->has_cost;
            if (tells && now->has_tokens) {
                usage.tokens = minus(now->tokens, then->tokens);
                usage.tokens_known = EPG_KNOWN_AT_LEAST;
            }
            if (tells && now->has_cost) {
                usage.cost = now->cost > then->cost ? now->cost - then->cost : 0;
                usage.cost_known = EPG_KNOWN_AT_LEAST;
            }
        }
    }
    memcpy(ledger->marks, ledger->kinds, sizeof ledger->marks);
    ledger->had_interval = true;
    return usage;
}

uint64_t epg_usage_tokens_total(const epg_usage *usage)
{
    return usage->tokens.input + usage->tokens.output;
}

const char *epg_known_name(epg_known known)
{
    return known == EPG_KNOWN_EXACTLY ? "exact" : known == EPG_KNOWN_AT_LEAST ? "lower_bound" : "unknown";
}

static void put_count(epg_json_writer *writer, const char *key, bool known, uint64_t value)
{
    if (known) {
        epg_json_put_u64(writer, key, value);
    } else {
        epg_json_put_null(writer, key);
    }
}

static epg_known both(epg_known a, epg_known b)
{
    if (a == EPG_KNOWN_NOT || b == EPG_KNOWN_NOT) {
        return a == b ? EPG_KNOWN_NOT : EPG_KNOWN_AT_LEAST;
    }
    return a < b ? a : b;
}

void epg_usage_add(epg_usage *sum, const epg_usage *more)
{
    sum->tokens_known = both(sum->tokens_known, more->tokens_known);
    sum->tokens = plus(sum->tokens, more->tokens);
    sum->cost_known = both(sum->cost_known, more->cost_known);
    sum->cost += more->cost;
}

void epg_usage_write(const epg_usage *usage, epg_json_writer *writer, const char *key)
{
    bool known = usage->tokens_known != EPG_KNOWN_NOT;
    epg_json_object(writer, key);
    if (usage->cost_known != EPG_KNOWN_NOT) {
        epg_json_put_double(writer, "cost", usage->cost);
    } else {
        epg_json_put_null(writer, "cost");
    }
    epg_json_put_text(writer, "cost_known", epg_known_name(usage->cost_known));
    epg_json_object(writer, "tokens");
    put_count(writer, "cache_write", known, usage->tokens.cache_write);
    put_count(writer, "cached_input", known, usage->tokens.cached_input);
    put_count(writer, "input", known, usage->tokens.input);
    put_count(writer, "output", known, usage->tokens.output);
    put_count(writer, "reasoning", known, usage->tokens.reasoning);
    epg_json_end(writer);
    epg_json_put_text(writer, "tokens_known", epg_known_name(usage->tokens_known));
    epg_json_end(writer);
}
