#include "runs/feedback.h"

#include "base/text.h"

void epg_feedback_hash(const epg_feedback *feedback, char (*hashes)[EPG_SHA256_HEX])
{
    for (size_t i = 0; i < feedback->artifact_count; i++) {
        uint8_t hash[EPG_SHA256_SIZE];
        epg_sha256_once(feedback->artifacts[i].content.data, feedback->artifacts[i].content.size, hash);
        epg_hex(hash, sizeof hash, hashes[i]);
    }
}

static void put_artifacts(epg_json_writer *json, const epg_feedback *feedback, const char (*hashes)[EPG_SHA256_HEX])
{
    epg_json_array(json, "artifacts");
    for (size_t i = 0; i < feedback->artifact_count; i++) {
        const epg_artifact *artifact = &feedback->artifacts[i];
        EPG_AUTO_FREE char *path = epg_format("artifacts/%s", artifact->name);
        epg_json_object(json, NULL);
        epg_json_put_text(json, "media_type", artifact->media_type);
        epg_json_put_text(json, "name", artifact->name);
        epg_json_put_text(json, "path", path);
        epg_json_put_text(json, "retention", artifact->bulk ? "bulk" : "permanent");
        epg_json_put_text(json, "sha256", hashes[i]);
        epg_json_put_u64(json, "size", artifact->content.size);
        epg_json_end(json);
    }
    epg_json_end(json);
}

static void put_episodes(epg_json_writer *json, const epg_evaluation_result *result)
{
    epg_json_array(json, "episodes");
    for (size_t i = 0; i < result->count; i++) {
        const epg_episode_result *episode = &result->episodes[i];
        bool failed = episode->failure != EPG_POLICY_OK;
        epg_json_object(json, NULL);
        epg_json_put_u64(json, "episode_index", episode->index);
        epg_json_put_text(json, "failure", epg_policy_failure_name(episode->failure));
        if (failed) {
            epg_json_put_null(json, "reward");
        } else {
            epg_json_put_double(json, "reward", episode->reward);
        }
        epg_json_put_text(json, "status", failed ? "policy_failed" : "completed");
        epg_json_put_u64(json, "steps", episode->steps);
        epg_json_end(json);
    }
    epg_json_end(json);
}

void epg_feedback_to_json(const epg_submission *submission, const epg_evaluation_result *result,
                          const char (*hashes)[EPG_SHA256_HEX], epg_buffer *out)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_json_writer json;
    epg_submission_id(submission->number, id);
    epg_json_begin(&json, out, 2);
    epg_json_object(&json, NULL);
    put_artifacts(&json, &result->feedback, hashes);
    epg_value_to_json(epg_buffer_span(&result->feedback.content), &json, "content");
    epg_json_array(&json, "episode_indices");
    for (size_t i = 0; i < submission->indices.count; i++) {
        epg_json_put_u64(&json, NULL, submission->indices.items[i]);
    }
    epg_json_end(&json);
    put_episodes(&json, result);
    epg_json_put_u64(&json, "episodes_remaining", submission->episodes_remaining);
    epg_json_put_u64(&json, "episodes_used", submission->episodes_used);
    epg_json_put_text(&json, "program_digest", submission->program_digest);
    epg_json_put_text(&json, "schema", EPG_FEEDBACK_SCHEMA);
    epg_json_put_double(&json, "score", result->feedback.score);
    epg_json_put_text(&json, "submission_id", id);
    epg_json_end(&json);
    epg_json_finish(&json);
}

void epg_latest_to_json(const epg_submission *submission, epg_buffer *out)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_json_writer json;
    epg_submission_id(submission->number, id);
    EPG_AUTO_FREE char *feedback = epg_format("submissions/%s/feedback.json", id);
    epg_json_begin(&json, out, 2);
    epg_json_object(&json, NULL);
    epg_json_put_text(&json, "feedback", feedback);
    epg_json_put_text(&json, "program_digest", submission->program_digest);
    epg_json_put_text(&json, "schema", EPG_FEEDBACK_SCHEMA);
    epg_json_put_double(&json, "score", submission->score);
    epg_json_put_text(&json, "submission_id", id);
    epg_json_end(&json);
    epg_json_finish(&json);
}

void epg_submission_note(const epg_submission *submission, epg_buffer *out)
{
    char score[EPG_DOUBLE_TEXT];
    EPG_AUTO_BUFFER selector = {0};
    (void)epg_double_text(submission->score, score);
    epg_selector_text(&submission->indices, &selector);
    (void)epg_buffer_format(out, "Score: %s\nEpisodes: %s\nPolicy-Failures: %llu\n", score, epg_buffer_cstr(&selector),
                            (unsigned long long)submission->policy_failures);
}
