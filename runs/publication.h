/* Publication: what the Agent and the record get of an ended submission, in both copies or in neither.
 *
 * The Host's copy:  RUN/submissions/ID/{program/, feedback.json, availability.json, artifacts/}
 * The Agent's:      RUN/workspace/feedback/submissions/ID/{feedback.json, availability.json, artifacts/}
 * What came last:   RUN/workspace/feedback/latest.json, which advances last
 *
 * How: both copies are staged in the Run's own RUN/staging, which the Agent has no business in; every file and
 * directory in them is synced; the Host's copy is renamed into place, then the Agent's; both are made read-only and
 * synced, and so are the directories that hold them. When the Agent's copy can't be had, the Host's is taken away
 * again. A Host that dies in the middle leaves a submission that the ledger does not call published: epg_publish,
 * called again on resume, first takes away what it finds and starts over. latest.json is written after the caller has
 * made the submission_published event durable (epg_publish_latest); resume writes it again.
 *
 * What the Agent does meanwhile to its workspace is told as evidence and changes nothing else: see contested.h. */
#ifndef EPG_RUNS_PUBLICATION_H
#define EPG_RUNS_PUBLICATION_H

#include "evaluation/evaluation.h"
#include "runs/availability.h"
#include "runs/contested.h"
#include "runs/session.h"

typedef struct epg_publisher epg_publisher;

/* For the Run directory open at `run` (borrowed for the publisher's life), whose layout exists (records.h). */
epg_code epg_publisher_open(int run, epg_publisher **out, epg_error *err);
/* For checking alone: makes nothing, so it works on a read-only file system. */
void epg_publisher_open_to_check(int run, epg_publisher **out);
bool epg_publisher_checks(const epg_publisher *publisher); /* opened in that way */
void epg_publisher_close(epg_publisher *publisher);

/* Publishes the running or just evaluated submission: its Program, its Episodes and Feedback (`result`; its episodes
 * stand in plan order, as the submission's indices). PUBLICATION when it can't be had; then neither copy is there. */
epg_code epg_publish(epg_publisher *publisher, const epg_submission *submission, const epg_program *program,
                     const epg_evaluation_result *result, epg_evidence_list *evidence, epg_error *err);
/* Writes workspace/feedback/latest.json for a published submission. */
epg_code epg_publish_latest(epg_publisher *publisher, const epg_submission *submission, epg_evidence_list *evidence,
                            epg_error *err);

/* Hex SHA-256 of the feedback.json that epg_publish wrote last: for the ledger (submission_published). */
const char *epg_publisher_feedback_sha256(const epg_publisher *publisher);

/* Compares what is published with what the Host knows: the Host's copy of the Program against `program_digest`, its
 * feedback.json against `feedback_sha256` (NULL: not), availability.json and the artifacts against what feedback.json
 * says of them, and the Agent's copy against the Host's; a file that belongs to none of these is told too. `settled`:
 * no Host was cut off while it evicted. Differences are noted as evidence; only the Host's own trouble is an error. */
epg_code epg_publication_check(epg_publisher *publisher, uint64_t number, const char *program_digest,
                               const epg_program_limits *limits, const char *feedback_sha256, bool settled,
                               epg_evidence_list *evidence, epg_error *err);

/* --- For retention --- */
typedef enum epg_copy { EPG_COPY_HOST, EPG_COPY_AGENT } epg_copy;
int epg_publisher_run(const epg_publisher *publisher);
/* Opens the directory that holds a copy of every submission; "submissions" or "workspace/feedback/submissions". */
epg_code epg_publisher_open_copies(epg_publisher *publisher, epg_copy copy, int *out, epg_evidence_list *evidence,
                                   epg_error *err);
/* Opens workspace/feedback. */
epg_code epg_publisher_open_feedback(epg_publisher *publisher, int *out, epg_evidence_list *evidence, epg_error *err);
const char *epg_copies_path(epg_copy copy); /* from the Run directory */
/* The availability of what epg_publish published last; number 0 when nothing was, or it was taken already. */
epg_availability epg_publisher_take_availability(epg_publisher *publisher);

#endif
