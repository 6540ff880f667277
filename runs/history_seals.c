/* The seals that a ledger holds: see seal.h. */
#include <string.h>

#include "runs/history_parts.h"
#include "runs/seal.h"

static void add(epg_history *history, const char *path, uint64_t bytes, const char *sha256)
{
    if (path == NULL || sha256 == NULL || strlen(sha256) != EPG_SHA256_HEX - 1) {
        return;
    }
    history->seals = epg_grow_array(history->seals, history->seal_count + 1, sizeof *history->seals);
    epg_history_seal *seal = &history->seals[history->seal_count++];
    *seal = (epg_history_seal){.path = epg_strdup(path), .bytes = bytes};
    memcpy(seal->sha256, sha256, sizeof seal->sha256);
}

void epg_history_take_created(epg_history *history, const epg_event_line *event)
{
    static const char *const members[][2] = {{"adapter_sha256", "agent/adapter.json"},
                                             {"config_sha256", "config.json"},
                                             {"instructions_sha256", "agent/instructions.md"},
                                             {"invocation_sha256", "agent/invocation.json"}};
    history->created = true;
    for (size_t i = 0; i < EPG_COUNT(members); i++) {
        add(history, members[i][1], UINT64_MAX, epg_event_line_text(event, members[i][0]));
    }
}

void epg_history_take_seal(epg_history *history, const epg_event_line *event)
{
    add(history, epg_event_line_text(event, "path"), epg_event_line_u64(event, "bytes"),
        epg_event_line_text(event, "sha256"));
}

void epg_history_take_traces(epg_history *history, const char *name, const epg_event_line *event)
{
    EPG_AUTO_FREE char *path = epg_format("traces/%s.digests", name);
    add(history, path, UINT64_MAX, epg_event_line_text(event, "traces_sha256"));
}

void epg_history_reopen_task(epg_history *history)
{
    for (size_t i = 0; i < history->seal_count; i++) {
        if (strcmp(history->seals[i].path, EPG_RUN_TASK_PATH) == 0) {
            history->seals[i].reopened = true;
        }
    }
}
