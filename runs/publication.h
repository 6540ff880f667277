/* Publication: what the Agent and the record get of an ended submission, in both copies or in neither.
 *
 *   RUN/submissions/ID/                      {program/, feedback.json, availability.json, artifacts/}   the Host's copy
 *   RUN/workspace/feedback/submissions/ID/   {feedback.json, availability.json, artifacts/}             the Agent's
 * copy RUN/workspace/feedback/latest.json       advances last
 *
 * How: both copies are staged in the Run's own RUN/staging, which the Agent has no business in; every file and
 * directory of them is synced; the Host's copy is renamed into place, then the Agent's; both directories are synced.
 * When the second rename can't be had, the first is undone. A Host that dies between the two leaves a submission that
 * the ledger does not call published: epg_publish, called again on resume, first takes away what it finds and starts
 * over. latest.json is written after the caller has made the submission_published event durable (epg_publish_latest).
 *
 * The Agent can write below RUN/workspace whenever it likes, and often as the same user. Nothing there is trusted to be
 * where it was left: all is reached through directory descriptors without following links; what stands in the way (a
 * directory made beforehand, a link, latest.json as a directory) is renamed into RUN/displaced; what is missing is made
 * again. Each such finding is noted as evidence for the Host and changes nothing else. */
#ifndef EPG_RUNS_PUBLICATION_H
#define EPG_RUNS_PUBLICATION_H

#include "evaluation/evaluation.h"
#include "runs/session.h"

/* Findings about what an Agent did to things that are not its own. */
typedef struct epg_evidence {
    char *path; /* from the Run directory: "workspace/feedback/latest.json" */
    char *what; /* one line: "was a symbolic link; moved to displaced/000001-latest.json" */
} epg_evidence;
typedef struct epg_evidence_list {
    epg_evidence *items;
    size_t count;
    size_t omitted; /* beyond EPG_EVIDENCE_MAX */
} epg_evidence_list;
enum { EPG_EVIDENCE_MAX = 256 };
void epg_evidence_note(epg_evidence_list *list, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void epg_evidence_free(epg_evidence_list *list);

typedef struct epg_publisher epg_publisher;

/* For the Run directory open at `run` (borrowed for the publisher's life), whose layout exists (records.h). */
epg_code epg_publisher_open(int run, epg_publisher **out, epg_error *err);
void epg_publisher_close(epg_publisher *publisher);

/* Publishes the running or just evaluated submission: its Program, its Episodes and Feedback (`result`; its episodes
 * stand in plan order, as the submission's indices). PUBLICATION when it can't be had; then neither copy is there. */
epg_code epg_publish(epg_publisher *publisher, const epg_submission *submission, const epg_program *program,
                     const epg_evaluation_result *result, epg_evidence_list *evidence, epg_error *err);
/* Writes workspace/feedback/latest.json for a published submission. */
epg_code epg_publish_latest(epg_publisher *publisher, const epg_submission *submission, epg_evidence_list *evidence,
                            epg_error *err);

/* Compares what is published with what the Host knows: the Host's copy against `program_digest` and the hashes in its
 * own feedback.json, feedback.json against `feedback_sha256` where given (NULL: not), the Agent's copy against the
 * Host's. Differences are noted as evidence; only the Host's own trouble is an error. */
epg_code epg_publication_check(epg_publisher *publisher, uint64_t number, const char *program_digest,
                               const char *feedback_sha256, epg_evidence_list *evidence, epg_error *err);

/* Hex SHA-256 of the feedback.json that epg_publish wrote last: for the ledger (submission_published). */
const char *epg_publisher_feedback_sha256(const epg_publisher *publisher);

/* --- For retention and tests: the two copies' directories, through descriptors. --- */
typedef enum epg_copy { EPG_COPY_HOST, EPG_COPY_AGENT } epg_copy;
/* Opens a published submission's directory; NOT_FOUND when it is not there, or is not a directory. */
epg_code epg_publisher_open_copy(epg_publisher *publisher, epg_copy copy, uint64_t number, int *out, epg_error *err);
/* Opens workspace/feedback, making it anew when it is gone or moving aside what stands there. */
epg_code epg_publisher_open_feedback(epg_publisher *publisher, int *out, epg_evidence_list *evidence, epg_error *err);
/* Replaces a file in a directory that an Agent can write to, moving a directory aside that has its name. `path` names
 * it in evidence, from the Run directory. */
epg_code epg_publisher_replace(epg_publisher *publisher, int dir, const char *name, const char *path, epg_span content,
                               unsigned mode, epg_evidence_list *evidence, epg_error *err);

#endif
