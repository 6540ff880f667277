/* What the files that read a history share. Private to runs/. */
#ifndef EPG_RUNS_HISTORY_PARTS_H
#define EPG_RUNS_HISTORY_PARTS_H

#include "runs/event_line.h"
#include "runs/history.h"

/* run_created, document_sealed, and the step digests of the evaluation `name` that an event seals. */
void epg_history_take_created(epg_history *history, const epg_event_line *event);
void epg_history_take_seal(epg_history *history, const epg_event_line *event);
void epg_history_take_traces(epg_history *history, const char *name, const epg_event_line *event);
/* run_resumed: the Agent's copy of its task will be written anew. */
void epg_history_reopen_task(epg_history *history);

/* config.json, run.json and the invocation. `skims`: run.json is not read where there is a config.json: it grows with
 * submissions, and who is in a hurry needs nothing of it that config.json and the ledger don't tell. */
epg_code epg_history_read_documents(int run, bool skims, epg_history *history, epg_error *err);
void epg_history_complete_from_record(epg_history *history);
void epg_history_forget_episodes(epg_history_submission *submission);
void epg_history_take_metric(epg_history *history, const char *metric, const char *direction);

#endif
