#include "runs/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runs/protocol.h"

void epg_submission_id(uint64_t number, char out[EPG_SUBMISSION_ID_TEXT])
{
    (void)snprintf(out, EPG_SUBMISSION_ID_TEXT, "submission-%06llu", (unsigned long long)number);
}

uint64_t epg_submission_number(const char *id)
{
    static const char prefix[] = "submission-";
    uint64_t number = 0;
    char again[EPG_SUBMISSION_ID_TEXT];
    if (!epg_starts_with(id, prefix) ||
        !epg_parse_u64(id + sizeof prefix - 1, strlen(id) - (sizeof prefix - 1), UINT64_MAX, &number)) {
        return 0;
    }
    epg_submission_id(number, again);
    return strcmp(again, id) == 0 ? number : 0;
}

void epg_session_init(epg_session *session, const epg_config *config)
{
    *session = (epg_session){.config = config, .episodes_remaining = config->episode_budget};
}

void epg_submission_free(epg_submission *submission)
{
    epg_indices_free(&submission->indices);
    *submission = (epg_submission){0};
}

/* What is kept of a submission that others have followed. */
struct epg_past_submission {
    uint8_t digest[EPG_SHA256_SIZE];
    double score;
    uint64_t episodes_remaining;
    const char *failure;
    uint64_t indices_at; /* in past_indices */
    uint32_t policy_failures;
    uint32_t state;
};

static void forget_latest(epg_session *session)
{
    if (session->latest != NULL) {
        epg_submission_free(session->latest);
        free(EPG_TAKE(session->latest));
    }
}

void epg_session_free(epg_session *session)
{
    forget_latest(session);
    epg_buffer_free(&session->past_indices);
    free(session->past);
    free(session->candidates);
    *session = (epg_session){0};
}

epg_submission *epg_session_running(const epg_session *session)
{
    epg_submission *latest = session->latest;
    return latest != NULL && latest->state == EPG_SUBMISSION_RUNNING ? latest : NULL;
}

/* The latest goes to those of the past. */
static void put_away(epg_session *session)
{
    const epg_submission *latest = session->latest;
    size_t count = session->submission_count;
    if (latest == NULL) {
        return;
    }
    if ((count & (count - 1)) == 0) { /* doubles when it is a power of two, so the cost of one is constant */
        session->past = epg_grow_array(session->past, 2 * count, sizeof *session->past);
    }
    epg_past_submission *past = &session->past[count - 1];
    *past = (epg_past_submission){.score = latest->score,
                                  .episodes_remaining = latest->episodes_remaining,
                                  .failure = latest->failure,
                                  .indices_at = session->past_indices.size,
                                  .policy_failures = (uint32_t)latest->policy_failures,
                                  .state = latest->state};
    epg_digest_bytes(latest->program_digest, past->digest);
    epg_indices_pack(&latest->indices, &session->past_indices);
    forget_latest(session);
}

bool epg_session_recall(const epg_session *session, uint64_t number, epg_submission *out)
{
    if (number < 1 || number > session->submission_count) {
        return false;
    }
    if (number == session->submission_count) {
        *out = *session->latest;
        epg_indices_copy(&session->latest->indices, &out->indices);
        return true;
    }
    const epg_past_submission *past = &session->past[number - 1];
    *out = (epg_submission){.number = number,
                            .state = past->state,
                            .score = past->score,
                            .policy_failures = past->policy_failures,
                            .episodes_remaining = past->episodes_remaining,
                            .failure = past->failure};
    epg_span packed = epg_buffer_span(&session->past_indices);
    (void)epg_indices_unpack(epg_span_of(packed.data + past->indices_at, packed.size - past->indices_at),
                             &out->indices);
    out->episodes_used = out->indices.count;
    epg_digest_text(past->digest, out->program_digest);
    return true;
}

bool epg_session_score(const epg_session *session, uint64_t number, double *score)
{
    if (number < 1 || number > session->submission_count) {
        return false;
    }
    bool is_latest = number == session->submission_count;
    const epg_past_submission *past = is_latest ? NULL : &session->past[number - 1];
    *score = is_latest ? session->latest->score : past->score;
    return (is_latest ? session->latest->state : past->state) == EPG_SUBMISSION_PUBLISHED;
}

uint64_t epg_session_submissions_remaining(const epg_session *session)
{
    uint64_t made = session->submission_count;
    return made < session->config->max_submissions ? session->config->max_submissions - made : 0;
}

void epg_decision_free(epg_decision *decision)
{
    epg_indices_free(&decision->indices);
    free(decision->candidates);
    *decision = (epg_decision){0};
}

/* --- Checks. Each returns true when the request may go on; otherwise the decision holds the refusal. --- */

static bool refuse(epg_decision *decision, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool refuse(epg_decision *decision, const char *code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(decision->message, sizeof decision->message, format, arguments);
    va_end(arguments);
    decision->code = code;
    return false;
}

/* Whether the request has the member, and nothing but it, beside "protocol" and "method". */
static bool has_only(const json_t *request, const char *member)
{
    return json_object_size(request) == 3 && json_object_get(request, member) != NULL;
}

static bool read_index(const json_t *item, uint64_t pool, epg_indices *indices, epg_decision *decision)
{
    uint64_t index = 0;
    if (!epg_json_is_u64(item, &index) || index >= pool) {
        return refuse(decision, "invalid_request", "episode_indices takes whole numbers from 0 to %llu",
                      (unsigned long long)(pool - 1));
    }
    if (indices->count > 0 && index <= indices->items[indices->count - 1]) {
        return refuse(decision, "invalid_request", "episode_indices must strictly increase");
    }
    indices->items[indices->count++] = index;
    return true;
}

static bool read_indices(const epg_session *session, const json_t *list, epg_decision *decision)
{
    if (!json_is_array(list) || json_array_size(list) == 0) {
        return refuse(decision, "invalid_request", "episode_indices takes a list of at least one index");
    }
    size_t count = json_array_size(list);
    epg_indices indices = {epg_alloc_array(count, sizeof *indices.items), 0};
    for (size_t i = 0; i < count; i++) {
        if (!read_index(json_array_get(list, i), session->config->episode_pool_size, &indices, decision)) {
            epg_indices_free(&indices);
            return false;
        }
    }
    decision->indices = indices;
    return true;
}

static bool check_counts(const epg_session *session, size_t count, epg_decision *decision)
{
    const epg_config *config = session->config;
    if (count > EPG_SUBMIT_INDICES_MAX) {
        return refuse(decision, "episode_limit", "at most %d Episodes in one submission", EPG_SUBMIT_INDICES_MAX);
    }
    uint64_t submissions_left = epg_session_submissions_remaining(session);
    if (submissions_left == 0) {
        return refuse(decision, "submission_limit", "all %llu submissions are used: call finish",
                      (unsigned long long)config->max_submissions);
    }
    if (config->max_episodes_per_submission != 0 && count > config->max_episodes_per_submission) {
        return refuse(decision, "episode_limit", "at most %llu Episodes in one submission",
                      (unsigned long long)config->max_episodes_per_submission);
    }
    if (count > session->episodes_remaining) {
        return refuse(decision, "budget_exhausted", "%llu Episodes are left, %llu were asked for",
                      (unsigned long long)session->episodes_remaining, (unsigned long long)count);
    }
    uint64_t after = session->episodes_remaining - count;
    uint64_t spendable = (submissions_left - 1) * epg_config_submission_capacity(config);
    if (config->finish_budget_policy == EPG_FINISH_REQUIRE_EXHAUSTION && after > spendable) {
        return refuse(decision, "budget_allocation",
                      "the whole budget must be spent: select at least %llu Episodes, or the rest can't be spent in "
                      "the %llu submissions after this one",
                      (unsigned long long)(session->episodes_remaining - spendable),
                      (unsigned long long)(submissions_left - 1));
    }
    return true;
}

static bool check_submit(const epg_session *session, const json_t *request, epg_decision *decision)
{
    if (!has_only(request, "episode_indices")) {
        return refuse(decision, "invalid_request", "submit takes episode_indices and nothing else");
    }
    return read_indices(session, json_object_get(request, "episode_indices"), decision) &&
           check_counts(session, decision->indices.count, decision);
}

static uint64_t best_or_last(const epg_session *session, bool best)
{
    uint64_t found = 0;
    double found_score = 0;
    for (uint64_t number = 1; number <= session->submission_count; number++) {
        double score = 0;
        if (epg_session_score(session, number, &score) &&
            (!best || found == 0 || epg_direction_better(session->direction, score, found_score))) {
            found = number;
            found_score = score;
        }
    }
    return found;
}

uint64_t epg_session_named(const epg_session *session, const char *word)
{
    bool best = strcmp(word, "best") == 0;
    if (best || strcmp(word, "last") == 0) {
        return best_or_last(session, best);
    }
    uint64_t number = epg_submission_number(word);
    if (number == 0 && !epg_parse_u64(word, strlen(word), UINT64_MAX, &number)) {
        return 0;
    }
    double score = 0;
    return epg_session_score(session, number, &score) ? number : 0;
}

static bool refuse_unknown(const epg_session *session, const char *word, epg_decision *decision)
{
    static const char code[] = "unknown_submission";
    enum { SHOWN = 40 };
    EPG_AUTO_FREE char *shown = epg_printable(word, strnlen(word, SHOWN));
    uint64_t last = best_or_last(session, false);
    if (last == 0) {
        return refuse(decision, code, "\"%.100s\" can't be a candidate: nothing is published in this Run yet", shown);
    }
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(last, id);
    if (last == 1) {
        return refuse(decision, code, "\"%.100s\" is no published submission of this Run: there is %s alone", shown,
                      id);
    }
    return refuse(decision, code,
                  "\"%.100s\" is no published submission of this Run: there are submission-000001 to %s; "
                  "1, best and last name one too",
                  shown, id);
}

/* The checks of finish on ids that are non-empty texts, at least one. */
static bool check_ids(const epg_session *session, const char *const *ids, size_t count, bool any_budget,
                      epg_decision *decision)
{
    uint64_t most = session->config->max_candidates;
    if (count > most) {
        return refuse(decision, "candidate_limit", "finish takes at most %llu submission%s, not %zu",
                      (unsigned long long)most, most == 1 ? "" : "s", count);
    }
    EPG_AUTO_FREE uint64_t *candidates = epg_alloc_array(count, sizeof *candidates);
    size_t unknown = count;
    for (size_t i = 0; i < count; i++) {
        candidates[i] = epg_session_named(session, ids[i]);
        unknown = candidates[i] == 0 && unknown == count ? i : unknown;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(ids[j], ids[i]) == 0 || (candidates[i] != 0 && candidates[j] == candidates[i])) {
                return refuse(decision, "duplicate_submission", "a submission is named twice");
            }
        }
    }
    if (unknown < count) {
        return refuse_unknown(session, ids[unknown], decision);
    }
    bool must_spend = session->config->finish_budget_policy == EPG_FINISH_REQUIRE_EXHAUSTION && !any_budget;
    if (must_spend && session->episodes_remaining > 0) {
        decision->has_episodes_remaining = true;
        return refuse(decision, "budget_remaining", "%llu Episodes are left and must be spent before finish",
                      (unsigned long long)session->episodes_remaining);
    }
    decision->candidates = EPG_TAKE(candidates);
    return true;
}

static bool check_finish(const epg_session *session, const json_t *request, epg_decision *decision)
{
    if (!has_only(request, "submission_ids")) {
        return refuse(decision, "invalid_request", "finish takes submission_ids and nothing else");
    }
    const json_t *list = json_object_get(request, "submission_ids");
    decision->record_rejection = true; /* until it is admitted */
    size_t count = json_is_array(list) ? json_array_size(list) : 0;
    if (count == 0) {
        return refuse(decision, "invalid_request", "submission_ids takes a list of at least one submission id");
    }
    decision->has_candidate_count = true;
    decision->candidate_count = count;
    EPG_AUTO_FREE const char **ids = epg_alloc_array(count, sizeof *ids);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_string(id) || json_string_length(id) == 0) {
            return refuse(decision, "invalid_request", "submission_ids takes submission ids");
        }
        /* An id with NUL is cut here, and is unknown either way: "submission-000001\0" is refused by its length. */
        ids[i] = strlen(json_string_value(id)) == json_string_length(id) ? json_string_value(id) : "";
    }
    return check_ids(session, ids, count, false, decision);
}

static bool check_status(const json_t *request, epg_decision *decision)
{
    return json_object_size(request) == 2 || refuse(decision, "invalid_request", "status takes nothing");
}

/* NULL also for a text that holds NUL, which a comparison would cut. */
static const char *text_member(const json_t *request, const char *key)
{
    const char *text = NULL;
    return epg_json_text(request, key, "request", &text, NULL) == EPG_OK ? text : NULL;
}

static bool check_wait(const epg_session *session, const json_t *request, epg_decision *decision)
{
    const json_t *id = json_object_get(request, "submission_id");
    const char *text = text_member(request, "submission_id");
    if (json_object_size(request) != (id == NULL ? 2 : 3) || (id != NULL && text == NULL)) {
        return refuse(decision, "invalid_request", "wait takes a submission_id or nothing");
    }
    uint64_t number = text != NULL ? epg_submission_number(text) : session->submission_count;
    if (number == 0 || number > session->submission_count) {
        return refuse(decision, "unknown_submission",
                      id != NULL ? "there is no such submission in this Run" : "nothing was submitted in this Run yet");
    }
    decision->wait_for = number;
    return true;
}

epg_method epg_session_method_of(const json_t *request)
{
    static const char *const names[] = {
        [EPG_METHOD_SUBMIT] = "submit",
        [EPG_METHOD_FINISH] = "finish",
        [EPG_METHOD_STATUS] = "status",
        [EPG_METHOD_WAIT] = "wait",
    };
    const char *protocol = text_member(request, "protocol");
    const char *method = text_member(request, "method");
    if (protocol == NULL || strcmp(protocol, EPG_SESSION_PROTOCOL) != 0 || method == NULL) {
        return EPG_METHOD_NONE;
    }
    for (size_t i = EPG_METHOD_SUBMIT; i < EPG_COUNT(names); i++) {
        if (strcmp(method, names[i]) == 0) {
            return (epg_method)i;
        }
    }
    return EPG_METHOD_NONE;
}

static bool check(const epg_session *session, const json_t *request, epg_method method, epg_decision *decision)
{
    if (request == NULL || !json_is_object(request)) {
        return refuse(decision, "invalid_request", "a request is one frame of 1 to %d bytes that holds a JSON object",
                      EPG_SESSION_FRAME_MAX);
    }
    bool reads_only = method == EPG_METHOD_STATUS || method == EPG_METHOD_WAIT;
    if (session->end != EPG_SESSION_OPEN && !reads_only) {
        return refuse(decision, "session_closed",
                      "the session is closed: nothing can be submitted or finished any more");
    }
    const char *protocol = text_member(request, "protocol");
    if (protocol == NULL || strcmp(protocol, EPG_SESSION_PROTOCOL) != 0) {
        return refuse(decision, "protocol_mismatch", "this session speaks %s", EPG_SESSION_PROTOCOL);
    }
    switch (method) {
    case EPG_METHOD_SUBMIT:
        return check_submit(session, request, decision);
    case EPG_METHOD_FINISH:
        return check_finish(session, request, decision);
    case EPG_METHOD_STATUS:
        return check_status(request, decision);
    case EPG_METHOD_WAIT:
        return check_wait(session, request, decision);
    case EPG_METHOD_NONE:
        break;
    }
    return refuse(decision, "invalid_request", "method must be submit, finish, status or wait");
}

/* What a refused decision keeps: its code, its message and what the ledger records. */
static void settle(epg_decision *decision, epg_method method, bool admitted)
{
    decision->method = method;
    if (admitted) {
        decision->record_rejection = false;
        decision->has_candidate_count = false;
        return;
    }
    epg_indices_free(&decision->indices);
}

void epg_session_check(const epg_session *session, const json_t *request, epg_decision *out)
{
    *out = (epg_decision){0};
    epg_method method = epg_session_method_of(request);
    bool admitted = check(session, request, method, out);
    settle(out, method, admitted);
}

void epg_session_check_candidates(const epg_session *session, const char *const *ids, size_t count, bool any_budget,
                                  epg_decision *out)
{
    *out = (epg_decision){.candidate_count = count};
    bool admitted = count > 0 ? check_ids(session, ids, count, any_budget, out)
                              : refuse(out, "invalid_request", "name at least one submission");
    settle(out, EPG_METHOD_FINISH, admitted);
}

/* --- Transitions --- */

epg_submission *epg_session_charge(epg_session *session, const epg_indices *indices,
                                   const char program_digest[EPG_DIGEST_TEXT])
{
    put_away(session);
    session->episodes_remaining -= indices->count;
    session->submission_count++;
    session->latest = epg_alloc(sizeof *session->latest);
    epg_submission *submission = session->latest;
    *submission = (epg_submission){
        .number = session->submission_count,
        .state = EPG_SUBMISSION_RUNNING,
        .episodes_used = indices->count,
        .episodes_remaining = session->episodes_remaining,
    };
    epg_indices_copy(indices, &submission->indices);
    (void)snprintf(submission->program_digest, sizeof submission->program_digest, "%s", program_digest);
    return submission;
}

void epg_session_published(epg_session *session, double score, uint64_t policy_failures)
{
    epg_submission *running = epg_session_running(session);
    if (running != NULL) {
        running->state = EPG_SUBMISSION_PUBLISHED;
        running->score = score;
        running->policy_failures = policy_failures;
    }
}

void epg_session_failed(epg_session *session, const char *code)
{
    static const char *const known[] = {"evaluation_failed", "publication_failed"};
    const char *failure = "session_failed";
    for (size_t i = 0; i < EPG_COUNT(known); i++) {
        failure = strcmp(code, known[i]) == 0 ? known[i] : failure;
    }
    epg_submission *running = epg_session_running(session);
    if (running != NULL) {
        running->state = EPG_SUBMISSION_FAILED;
        running->failure = failure;
    }
    if (session->end == EPG_SESSION_OPEN) {
        session->end = EPG_SESSION_FAILED;
        session->failure = failure;
    }
}

void epg_session_finish(epg_session *session, const uint64_t *candidates, size_t count)
{
    free(session->candidates);
    session->candidates = epg_alloc_array(count, sizeof *candidates);
    memcpy(session->candidates, candidates, count * sizeof *candidates);
    session->candidate_count = count;
    session->end = EPG_SESSION_FINISHED;
}

void epg_session_close(epg_session *session)
{
    if (session->end == EPG_SESSION_OPEN) {
        session->end = EPG_SESSION_CLOSED;
    }
}
