/* Feedback and the baseline of an external Benchmark: the exchanges of more than one answer.
 *
 * While it makes Feedback, the Benchmark asks for records, one Episode and some of its steps at a time, so that neither
 * side ever holds an Evaluation as one document. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "benchmark/external_internal.h"

enum { STEPS_BYTES = 256 * 1024 };

/* --- Records --- */

static void put_head(const epg_record_head *head, epg_buffer *out)
{
    const char *failure = epg_policy_failure_name(head->failure);
    epg_value_put_map(out, 7);
    epg_value_put_key(out, "environment_seed");
    epg_value_put_u64(out, head->environment_seed);
    epg_value_put_key(out, "initial_observation");
    if (head->has_observation) {
        (void)epg_buffer_append_span(out, head->initial_observation);
    } else {
        epg_value_put_null(out);
    }
    epg_value_put_key(out, "policy_failure");
    if (failure != NULL) {
        epg_value_put_text(out, failure);
    } else {
        epg_value_put_null(out);
    }
    epg_value_put_key(out, "policy_seed");
    epg_value_put_u64(out, head->policy_seed);
    epg_value_put_key(out, "reward");
    if (failure == NULL && isfinite(head->reward)) {
        epg_value_put_float(out, head->reward);
    } else {
        epg_value_put_null(out);
    }
    epg_value_put_key(out, "scenario");
    (void)epg_buffer_append_span(out, head->scenario);
    epg_value_put_key(out, "steps");
    epg_value_put_u64(out, head->steps);
}

static void put_transition(const epg_transition *step, epg_buffer *out)
{
    epg_value_put_map(out, 6);
    epg_value_put_key(out, "action");
    (void)epg_buffer_append_span(out, step->action);
    epg_value_put_key(out, "metrics");
    (void)epg_buffer_append_span(out, step->metrics);
    epg_value_put_key(out, "observation");
    (void)epg_buffer_append_span(out, step->observation);
    epg_value_put_key(out, "reward");
    epg_value_put_float(out, step->reward);
    epg_value_put_key(out, "terminated");
    epg_value_put_bool(out, step->terminated);
    epg_value_put_key(out, "truncated");
    epg_value_put_bool(out, step->truncated);
}

typedef struct feedback_talk {
    epg_external *self;
    const epg_records *records;
    bool inside;      /* a record was handed over: its steps can be asked for */
    int64_t deadline; /* moves on with all that is handed over: many records take long, however quick each is */
    epg_feedback *out;
} feedback_talk;

static epg_code give_record(feedback_talk *talk, epg_error *err)
{
    EPG_AUTO_BUFFER body = {0};
    epg_record_head head = {0};
    EPG_TRY(talk->records->next_record(talk->records->context, &head, &talk->inside, err));
    if (talk->inside) {
        talk->deadline = epg_external_deadline(talk->self);
        put_head(&head, &body);
    } else {
        epg_value_put_null(&body);
    }
    return epg_external_send(talk->self, EPG_ASK_RECORD, epg_buffer_span(&body), (epg_span){NULL, 0}, "feedback",
                             talk->deadline, err);
}

/* At most as many steps as it wants, and not many bytes; none: the Episode has no more. */
static epg_code give_steps(feedback_talk *talk, epg_span body, epg_error *err)
{
    EPG_AUTO_BUFFER head = {0};
    EPG_AUTO_BUFFER steps = {0};
    uint64_t most = 0;
    uint64_t count = 0;
    bool have = true;
    if (body.size == 0 || !epg_value_get_u64(body, &most) || most == 0 || !talk->inside) {
        return epg_external_breaks(talk->self, "feedback",
                                   "it asked for steps without a positive number of them, or outside of a record", err);
    }
    while (have && count < most && steps.size < STEPS_BYTES) {
        epg_transition step = {.reward = 0.0};
        EPG_TRY(talk->records->next_step(talk->records->context, &step, &have, err));
        if (have) {
            put_transition(&step, &steps);
            count++;
        }
    }
    talk->deadline = count > 0 ? epg_external_deadline(talk->self) : talk->deadline;
    epg_value_put_list(&head, count);
    return epg_external_send(talk->self, EPG_ASK_STEPS, epg_buffer_span(&head), epg_buffer_span(&steps), "feedback",
                             talk->deadline, err);
}

/* --- What it hands over --- */

static char *text_of(epg_span map, const char *key)
{
    epg_span value;
    epg_span text;
    if (!epg_value_lookup(map, key, &value) || !epg_value_get_string(value, &text) ||
        (text.size > 0 && memchr(text.data, '\0', text.size) != NULL)) {
        return NULL;
    }
    return epg_strndup((const char *)text.data, text.size);
}

static bool is_map(epg_span body)
{
    return body.size > 0 && epg_value_kind(body) == 'M';
}

static epg_code take_artifact(feedback_talk *talk, epg_span body, epg_error *err)
{
    EPG_AUTO_FREE char *name = NULL;
    EPG_AUTO_FREE char *media_type = NULL;
    EPG_AUTO_FREE char *retention = NULL;
    epg_span value;
    epg_span content = {NULL, 0};
    if (is_map(body)) {
        name = text_of(body, "name");
        media_type = text_of(body, "media_type");
        retention = text_of(body, "retention");
    }
    bool bulk = retention != NULL && strcmp(retention, "bulk") == 0;
    if (name == NULL || media_type == NULL || retention == NULL || (!bulk && strcmp(retention, "permanent") != 0) ||
        !epg_value_lookup(body, "content", &value) || !epg_value_get_bytes(value, &content)) {
        return epg_external_breaks(talk->self, "feedback",
                                   "an artifact must be a map of name, media_type, retention (\"permanent\" or "
                                   "\"bulk\") and content (bytes)",
                                   err);
    }
    if (talk->out->artifact_count >= EPG_ARTIFACTS_MAX || content.size > EPG_ARTIFACT_BYTES_MAX) {
        return epg_external_breaks(talk->self, "feedback",
                                   "it gave more than 1,024 artifacts or one larger than 16 MiB", err);
    }
    (void)epg_buffer_append_span(&epg_feedback_add(talk->out, name, media_type, bulk)->content, content);
    return EPG_OK;
}

static epg_code take_result(feedback_talk *talk, epg_span body, epg_error *err)
{
    epg_span score;
    epg_span content;
    if (!is_map(body) || !epg_value_lookup(body, "score", &score) || !epg_value_get_float(score, &talk->out->score) ||
        !epg_value_lookup(body, "content", &content)) {
        return epg_external_breaks(talk->self, "feedback", "its result must be a map of score (a float) and content",
                                   err);
    }
    (void)epg_buffer_append_span(&talk->out->content, content);
    epg_error cause = {.text = ""};
    return epg_feedback_check(talk->out, &cause) == EPG_OK
               ? EPG_OK
               : epg_external_fails(talk->self, "feedback", cause.text, err);
}

static epg_code converse(feedback_talk *talk, epg_error *err)
{
    for (;;) {
        epg_frame frame;
        EPG_TRY(epg_external_hear(talk->self, "feedback", talk->deadline, &frame, err));
        switch (frame.type) {
        case EPG_TELL_WANT_RECORD:
            EPG_TRY(give_record(talk, err));
            break;
        case EPG_TELL_WANT_STEPS:
            EPG_TRY(give_steps(talk, frame.body, err));
            break;
        case EPG_TELL_ARTIFACT:
            EPG_TRY(take_artifact(talk, frame.body, err));
            break;
        case EPG_ASK_FEEDBACK | 0x20:
            return take_result(talk, frame.body, err);
        default:
            return epg_external_breaks(talk->self, "feedback", "it sent an unexpected frame", err);
        }
    }
}

epg_code epg_external_feedback(epg_benchmark *benchmark, const epg_records *records, epg_feedback *out, epg_error *err)
{
    epg_external *self = (epg_external *)benchmark;
    EPG_CLEANUP(epg_feedback_free) epg_feedback made = {.score = 0.0};
    feedback_talk talk = {.self = self, .records = records, .deadline = epg_external_deadline(self), .out = &made};
    EPG_AUTO_BUFFER count = {0};
    epg_value_put_u64(&count, records->count);
    self->sequence++;
    EPG_TRY(epg_external_send(self, EPG_ASK_FEEDBACK, epg_buffer_span(&count), (epg_span){NULL, 0}, "feedback",
                              talk.deadline, err));
    EPG_TRY(converse(&talk, err));
    *out = made;
    made = (epg_feedback){.score = 0.0};
    return EPG_OK;
}

/* --- The baseline --- */

static epg_code take_file(epg_external *self, epg_span body, epg_program *program, epg_error *err)
{
    EPG_AUTO_FREE char *path = is_map(body) ? text_of(body, "path") : NULL;
    epg_span value;
    epg_span content = {NULL, 0};
    if (path == NULL || !epg_value_lookup(body, "content", &value) || !epg_value_get_bytes(value, &content)) {
        return epg_external_breaks(self, "baseline", "a file must be a map of path and content (bytes)", err);
    }
    if (program->count >= epg_program_default_limits.files) {
        return epg_external_breaks(self, "baseline", "it gave more than 1,000 files", err);
    }
    program->files = epg_grow_array(program->files, program->count + 1, sizeof *program->files);
    epg_program_file *file = &program->files[program->count++];
    *file = (epg_program_file){.path = EPG_TAKE(path)};
    (void)epg_buffer_append_span(&file->content, content);
    program->total_bytes += content.size;
    return EPG_OK;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const epg_program_file *)a)->path, ((const epg_program_file *)b)->path);
}

epg_code epg_external_baseline(epg_benchmark *benchmark, epg_program *out, epg_error *err)
{
    epg_external *self = (epg_external *)benchmark;
    EPG_CLEANUP(epg_program_free) epg_program program = {.count = 0};
    epg_frame frame = {.type = EPG_TELL_FILE};
    epg_error cause = {.text = ""};
    int64_t deadline = epg_external_deadline(self);
    self->sequence++;
    EPG_TRY(
        epg_external_send(self, EPG_ASK_BASELINE, (epg_span){NULL, 0}, (epg_span){NULL, 0}, "baseline", deadline, err));
    for (;;) {
        EPG_TRY(epg_external_hear(self, "baseline", deadline, &frame, err));
        if (frame.type != EPG_TELL_FILE) {
            break;
        }
        EPG_TRY(take_file(self, frame.body, &program, err));
    }
    if (frame.type != EPG_TELL_DONE) {
        return epg_external_breaks(self, "baseline", "it sent an unexpected frame", err);
    }
    if (program.count > 0) {
        qsort(program.files, program.count, sizeof *program.files, by_path);
    }
    if (epg_program_seal(&program, &epg_program_default_limits, &cause) != EPG_OK) {
        return epg_external_fails(self, "baseline", cause.text, err);
    }
    *out = program;
    program = (epg_program){.count = 0};
    return EPG_OK;
}
