#include "runs/protocol.h"

#include <string.h>

epg_frame_state epg_session_frame(epg_span bytes, epg_span *body)
{
    if (bytes.size < EPG_SESSION_FRAME_HEAD) {
        return EPG_FRAME_INCOMPLETE;
    }
    uint32_t size = epg_read_be32(bytes.data);
    if (size == 0 || size > EPG_SESSION_FRAME_MAX) {
        return EPG_FRAME_INVALID;
    }
    if (bytes.size - EPG_SESSION_FRAME_HEAD < size) {
        return EPG_FRAME_INCOMPLETE;
    }
    *body = epg_span_of(bytes.data + EPG_SESSION_FRAME_HEAD, size);
    return EPG_FRAME_WHOLE;
}

json_t *epg_session_decode(epg_span body)
{
    json_t *value = NULL;
    if (epg_json_parse_lenient(body, "request", &value, NULL) != EPG_OK) {
        return NULL;
    }
    if (!json_is_object(value)) {
        json_decref(value);
        return NULL;
    }
    return value;
}

/* --- Writing: a frame is begun, filled through the writer, and ended by setting its length. --- */

typedef struct frame_writer {
    epg_json_writer json;
    size_t start;
} frame_writer;

static void begin(frame_writer *frame, epg_buffer *out)
{
    frame->start = out->size;
    (void)epg_buffer_be32(out, 0);
    epg_json_begin(&frame->json, out, 0);
    epg_json_object(&frame->json, NULL);
}

static void end(frame_writer *frame)
{
    epg_buffer *out = frame->json.out;
    epg_json_end(&frame->json);
    epg_json_finish(&frame->json);
    epg_write_be32(out->data + frame->start, (uint32_t)(out->size - frame->start - EPG_SESSION_FRAME_HEAD));
}

static void put_indices(epg_json_writer *json, const epg_indices *indices)
{
    epg_json_array(json, "episode_indices");
    for (size_t i = 0; i < indices->count; i++) {
        epg_json_put_u64(json, NULL, indices->items[i]);
    }
    epg_json_end(json);
}

void epg_request_submit(epg_buffer *out, const epg_indices *indices)
{
    frame_writer frame;
    begin(&frame, out);
    put_indices(&frame.json, indices);
    epg_json_put_text(&frame.json, "method", "submit");
    epg_json_put_text(&frame.json, "protocol", EPG_SESSION_PROTOCOL);
    end(&frame);
}

void epg_request_finish(epg_buffer *out, const char *const *ids, size_t count)
{
    frame_writer frame;
    begin(&frame, out);
    epg_json_put_text(&frame.json, "method", "finish");
    epg_json_put_text(&frame.json, "protocol", EPG_SESSION_PROTOCOL);
    epg_json_array(&frame.json, "submission_ids");
    for (size_t i = 0; i < count; i++) {
        epg_json_put_text(&frame.json, NULL, ids[i]);
    }
    epg_json_end(&frame.json);
    end(&frame);
}

void epg_request_status(epg_buffer *out)
{
    frame_writer frame;
    begin(&frame, out);
    epg_json_put_text(&frame.json, "method", "status");
    epg_json_put_text(&frame.json, "protocol", EPG_SESSION_PROTOCOL);
    end(&frame);
}

void epg_request_wait(epg_buffer *out, const char *id)
{
    frame_writer frame;
    begin(&frame, out);
    epg_json_put_text(&frame.json, "method", "wait");
    epg_json_put_text(&frame.json, "protocol", EPG_SESSION_PROTOCOL);
    if (id != NULL) {
        epg_json_put_text(&frame.json, "submission_id", id);
    }
    end(&frame);
}

void epg_response_error(epg_buffer *out, const char *code, const char *message)
{
    frame_writer frame;
    begin(&frame, out);
    epg_json_object(&frame.json, "error");
    epg_json_put_text(&frame.json, "code", code);
    epg_json_put_text(&frame.json, "message", message);
    epg_json_end(&frame.json);
    epg_json_put_bool(&frame.json, "ok", false);
    epg_json_put_text(&frame.json, "protocol", EPG_SESSION_PROTOCOL);
    end(&frame);
}

void epg_response_refused(epg_buffer *out, const epg_decision *decision)
{
    epg_response_error(out, decision->code, decision->message);
}

static void begin_result(frame_writer *frame, epg_buffer *out)
{
    begin(frame, out);
    epg_json_put_bool(&frame->json, "ok", true);
    epg_json_put_text(&frame->json, "protocol", EPG_SESSION_PROTOCOL);
    epg_json_object(&frame->json, "result");
}

static void end_result(frame_writer *frame)
{
    epg_json_end(&frame->json);
    end(frame);
}

static void respond_failure(epg_buffer *out, const char *code)
{
    const char *message = "the Host had a fault of its own; the session is closed";
    if (strcmp(code, "evaluation_failed") == 0) {
        message = "the evaluation could not be completed, through no fault of the Program; the session is closed";
    } else if (strcmp(code, "publication_failed") == 0) {
        message = "the feedback could not be published; the session is closed";
    }
    epg_response_error(out, code, message);
}

void epg_response_submission(epg_buffer *out, const epg_submission *submission)
{
    if (submission->state != EPG_SUBMISSION_PUBLISHED) {
        respond_failure(out, submission->failure != NULL ? submission->failure : "session_failed");
        return;
    }
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(submission->number, id);
    EPG_AUTO_FREE char *feedback = epg_format("feedback/submissions/%s/feedback.json", id);
    frame_writer frame;
    begin_result(&frame, out);
    put_indices(&frame.json, &submission->indices);
    epg_json_put_u64(&frame.json, "episodes_remaining", submission->episodes_remaining);
    epg_json_put_u64(&frame.json, "episodes_used", submission->episodes_used);
    epg_json_put_text(&frame.json, "feedback", feedback);
    epg_json_put_text(&frame.json, "program_digest", submission->program_digest);
    epg_json_put_double(&frame.json, "score", submission->score);
    epg_json_put_text(&frame.json, "submission_id", id);
    end_result(&frame);
}

void epg_response_finished(epg_buffer *out, const epg_session *session)
{
    frame_writer frame;
    begin_result(&frame, out);
    epg_json_put_bool(&frame.json, "agent_authority_closed", true);
    epg_json_array(&frame.json, "candidate_submission_ids");
    for (size_t i = 0; i < session->candidate_count; i++) {
        char id[EPG_SUBMISSION_ID_TEXT];
        epg_submission_id(session->candidates[i], id);
        epg_json_put_text(&frame.json, NULL, id);
    }
    epg_json_end(&frame.json);
    end_result(&frame);
}

/* The submission that runs, under "running": null when none does. */
static void put_running(epg_json_writer *json, const epg_session *session, const epg_status_facts *facts)
{
    const epg_submission *running = epg_session_running(session);
    if (running == NULL) {
        epg_json_put_null(json, "running");
        return;
    }
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(running->number, id);
    epg_json_object(json, "running");
    epg_json_put_u64(json, "episodes", running->indices.count);
    epg_json_put_u64(json, "episodes_completed", facts->episodes_completed);
    epg_json_put_text(json, "submission_id", id);
    epg_json_end(json);
}

void epg_response_status(epg_buffer *out, const epg_session *session, const epg_status_facts *facts)
{
    const epg_config *config = session->config;
    char latest[EPG_SUBMISSION_ID_TEXT] = "";
    double score = 0;
    for (uint64_t number = session->submission_count; number > 0 && latest[0] == '\0'; number--) {
        if (epg_session_score(session, number, &score)) {
            epg_submission_id(number, latest);
        }
    }
    frame_writer frame;
    epg_json_writer *json = &frame.json;
    begin_result(&frame, out);
    epg_json_put_bool(json, "agent_authority_closed", session->end != EPG_SESSION_OPEN);
    epg_json_put_u64(json, "episode_budget", config->episode_budget);
    epg_json_put_u64(json, "episode_pool_size", config->episode_pool_size);
    epg_json_put_u64(json, "episodes_remaining", session->episodes_remaining);
    epg_json_put_u64(json, "episodes_used", config->episode_budget - session->episodes_remaining);
    epg_json_put_text(json, "latest_submission_id", latest[0] != '\0' ? latest : NULL);
    epg_json_put_u64(json, "max_episodes_in_next_submission",
                     epg_session_submissions_remaining(session) == 0 ? 0
                     : epg_config_submission_capacity(config) < session->episodes_remaining
                         ? epg_config_submission_capacity(config)
                         : session->episodes_remaining);
    put_running(json, session, facts);
    if (facts->has_deadline) {
        epg_json_put_double(json, "seconds_remaining", facts->seconds_remaining > 0 ? facts->seconds_remaining : 0.0);
    } else {
        epg_json_put_null(json, "seconds_remaining");
    }
    epg_json_put_u64(json, "submissions_remaining", epg_session_submissions_remaining(session));
    epg_json_put_u64(json, "submissions_used", session->submission_count);
    epg_json_put_u64(json, "waiting", facts->waiting);
    end_result(&frame);
}
