/* Seals: hashes of documents in the ledger, so that what was changed after the fact shows.
 *
 * run_created, the first event, seals what was laid down before it: config.json and what stands in agent/ (members
 * "config_sha256", ...). submission_published seals feedback.json, which names the hashes of all artifacts; it and the
 * events that end a measure seal the step digests. All else is sealed by document_sealed events (path, bytes, sha256):
 * a report when it was written; the Agent's logs and the evidence, which grow, when a Host ends. A seal is of the first
 * `bytes` bytes: what grew after it is sealed by the next. run.json seals itself (records.h). */
#ifndef EPG_RUNS_SEAL_H
#define EPG_RUNS_SEAL_H

#include "agents/invocation.h"
#include "runs/history.h"

#define EPG_RUN_TASK_PATH "workspace/" EPG_TASK_FILE /* the Agent's copy of its task */

/* Hashes the first `limit` bytes (UINT64_MAX: all) of the regular file `path` ("a/b") below `run`. *bytes: its whole
 * size. NOT_FOUND, INVALID (a link, a directory). */
epg_code epg_seal_hash(int run, const char *path, uint64_t limit, char sha256[EPG_SHA256_HEX], uint64_t *bytes,
                       epg_error *err);

/* The newest seal of a path; NULL: none. */
const epg_history_seal *epg_seal_find(const epg_history *history, const char *path);

/* What is wrong with a document that is sealed; NULL: nothing. `grows`: it may be longer than its seal says. */
const char *epg_seal_check(int run, const epg_history_seal *seal, bool grows);

#endif
