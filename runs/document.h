/* What a Run writes about itself beside the published schemas: config.json at its start, so that it can be resumed and
 * repeated, the retained invocation, and run.json at its end. */
#ifndef EPG_RUNS_DOCUMENT_H
#define EPG_RUNS_DOCUMENT_H

#include "runs/coordinator.h"

#define EPG_RUN_DOCUMENT_SCHEMA "evopolicygym/run-request/v1"
#define EPG_RUN_HOST_SCHEMA "evopolicygym/run-host/v1"

/* EPG_ERR_USAGE for a path or argument that is not UTF-8, which config.json can't hold: the Run could not be resumed.
 */
epg_code epg_run_document_check(const epg_run_request *request, epg_error *err);

/* RUN/config.json (0400): all that was asked for, no secret in it. */
epg_code epg_run_document_write(int run, const epg_run_request *request, const epg_spec *spec,
                                const epg_redactor *redactor, epg_error *err);

#define EPG_RUN_ADAPTER_FILE "adapter.json"

/* RUN/agent/instructions.md, invocation.json and, with an adapter (may be NULL), a copy of it (0400). */
epg_code epg_run_record_invocation(int run, const epg_invocation *invocation, const epg_adapter *adapter,
                                   const epg_redactor *redactor, epg_span instructions, epg_error *err);

/* RUN/run.json. */
epg_code epg_run_document_conclude(epg_run_state *self, const epg_run_outcome *outcome, epg_error *err);

#endif
