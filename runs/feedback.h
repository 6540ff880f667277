/* feedback.json and latest.json: what of an ended submission is public. Part of publication. */
#ifndef EPG_RUNS_FEEDBACK_H
#define EPG_RUNS_FEEDBACK_H

#include "evaluation/evaluation.h"
#include "runs/session.h"

#define EPG_FEEDBACK_SCHEMA "evopolicygym/feedback/v2"

/* Hex SHA-256 of every artifact, in the Feedback's order. */
void epg_feedback_hash(const epg_feedback *feedback, char (*hashes)[EPG_SHA256_HEX]);
void epg_feedback_to_json(const epg_submission *submission, const epg_evaluation_result *result,
                          const char (*hashes)[EPG_SHA256_HEX], epg_buffer *out);
void epg_latest_to_json(const epg_submission *submission, epg_buffer *out); /* of a published one */
/* The note that its commit gets in the git history. */
void epg_submission_note(const epg_submission *submission, epg_buffer *out);

#endif
