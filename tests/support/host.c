#include "support/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "runs/records.h"
#include "support/support.h"
#include "system/socket.h"

enum { TRUSTED_FAULT = 99 };

/* Not Check's assertions: the vector runner uses this too, and it runs no Check tests. */
static void require(bool holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "test host: %s\n", what);
        abort();
    }
}

static void need(epg_code code, const epg_error *err)
{
    require(code == EPG_OK, err->text);
}

static void make_program(const char *policy, epg_program *out)
{
    epg_error err = {0};
    char *directory = epg_test_directory();
    epg_test_write_text(directory, "policy.py", policy);
    need(epg_program_capture_path(directory, &epg_program_default_limits, out, &err), &err);
    epg_test_directory_free(directory);
}

void test_host_open(test_host *host, epg_config *config, const char *policy, const epg_gateway_limits *limits)
{
    epg_error err = {0};
    epg_program initial EPG_CLEANUP(epg_program_free) = {0};
    *host = (test_host){.directory = epg_test_directory(), .run = -1, .config = *config};
    *config = (epg_config){0};
    host->path = epg_format("%s/run", host->directory);
    make_program(policy, &initial);
    need(epg_config_resolve(&host->config, &err), &err);
    need(epg_run_directory_create(host->path, &initial, NULL, 0, &host->run, &err), &err);
    need(epg_ledger_create(host->run, &host->ledger, &err), &err);
    need(epg_publisher_open(host->run, &host->publisher, &err), &err);
    need(epg_gateway_open(limits, &host->gateway, &err), &err);
    host->retention = epg_retention_new(host->config.bulk_feedback_retention_bytes);
    epg_session_init(&host->session, &host->config);
}

void test_host_close(test_host *host)
{
    epg_gateway_close(host->gateway, 0);
    epg_ledger_close(host->ledger);
    epg_publisher_close(host->publisher);
    epg_retention_free(host->retention);
    epg_evidence_free(&host->evidence);
    epg_session_free(&host->session);
    epg_config_free(&host->config);
    epg_program_free(&host->running);
    (void)close(host->run);
    free(host->path);
    epg_test_directory_free(host->directory);
    *host = (test_host){0};
}

static void answer_error(test_host *host, epg_connection_id connection, const char *code, const char *message)
{
    EPG_AUTO_BUFFER frame = {0};
    epg_response_error(&frame, code, message);
    (void)epg_gateway_reply(host->gateway, connection, epg_buffer_span(&frame));
}

/* --- Evaluating --- */

static int returned_value(const epg_program *program)
{
    const char *text = NULL;
    for (size_t i = 0; i < program->count; i++) {
        if (strcmp(program->files[i].path, "policy.py") == 0) {
            text = strstr(epg_buffer_cstr(&program->files[i].content), "return ");
        }
    }
    return text != NULL ? atoi(text + strlen("return ")) : 0;
}

static void evaluate(const epg_submission *submission, int value, epg_evaluation_result *out)
{
    *out = (epg_evaluation_result){.episodes = epg_alloc_array(submission->indices.count, sizeof *out->episodes),
                                   .count = submission->indices.count};
    for (size_t i = 0; i < out->count; i++) {
        out->episodes[i] = (epg_episode_result){.index = submission->indices.items[i], .reward = value, .steps = 1};
    }
    out->feedback.score = value;
    epg_value_put_map(&out->feedback.content, 1);
    epg_value_put_key(&out->feedback.content, "mean");
    epg_value_put_float(&out->feedback.content, value);
    (void)epg_buffer_text(&epg_feedback_add(&out->feedback, "trace.txt", "text/plain", false)->content, "trace\n");
    (void)epg_buffer_text(
        &epg_feedback_add(&out->feedback, "bulk/frames.bin", "application/octet-stream", true)->content,
        "0123456789abcdef");
}

static void fail_running(test_host *host, const char *code)
{
    EPG_AUTO_BUFFER frame = {0};
    epg_error err = {0};
    epg_submission *running = epg_session_running(&host->session);
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(running->number, id);
    epg_session_failed(&host->session, code);
    need(EPG_EVENT(host->ledger, code, &err, epg_field_text("submission_id", id),
                   epg_field_u64("episodes_remaining", running->episodes_remaining)),
         &err);
    epg_response_submission(&frame, running);
    (void)epg_gateway_reply_held(host->gateway, running->number, epg_buffer_span(&frame));
}

/* An obstacle that can't be moved aside, because where it would go is taken by a file. */
static void spoil_publication(test_host *host, const char *id)
{
    EPG_AUTO_FREE char *obstacle = epg_format("workspace/feedback/submissions/%s/mine.txt", id);
    epg_test_write_text(host->path, "displaced", "");
    epg_test_write_text(host->path, obstacle, "mine");
}

static void publish(test_host *host, epg_submission *running, const epg_evaluation_result *result)
{
    EPG_AUTO_BUFFER frame = {0};
    epg_error err = {0};
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(running->number, id);
    if (host->fail_publication) {
        spoil_publication(host, id);
        epg_code code = epg_publish(host->publisher, running, &host->running, result, &host->evidence, &err);
        require(code == EPG_ERR_PUBLICATION, "a publication that can't be had was had");
        fail_running(host, "publication_failed");
        return;
    }
    need(epg_publish(host->publisher, running, &host->running, result, &host->evidence, &err), &err);
    epg_session_published(&host->session, result->feedback.score, result->policy_failures);
    need(EPG_EVENT(host->ledger, "submission_published", &err, epg_field_text("submission_id", id),
                   epg_field_text("program_digest", running->program_digest), epg_field_double("score", running->score),
                   epg_field_u64("episodes_remaining", running->episodes_remaining)),
         &err);
    need(epg_ledger_sync(host->ledger, &err), &err);
    need(epg_publish_latest(host->publisher, running, &host->evidence, &err), &err);
    need(epg_retention_apply(host->retention, host->publisher, running->number, &host->evidence, &err), &err);
    epg_response_submission(&frame, running);
    (void)epg_gateway_reply_held(host->gateway, running->number, epg_buffer_span(&frame));
}

static void finish_evaluation(test_host *host, epg_submission *running)
{
    epg_error err = {0};
    char id[EPG_SUBMISSION_ID_TEXT];
    int value = returned_value(&host->running);
    epg_submission_id(running->number, id);
    if (value == TRUSTED_FAULT) {
        fail_running(host, "evaluation_failed");
        return;
    }
    epg_evaluation_result result EPG_CLEANUP(epg_evaluation_result_free) = {0};
    evaluate(running, value, &result);
    for (size_t i = 0; i < result.count; i++) {
        need(EPG_EVENT(host->ledger, "episode_completed", &err, epg_field_text("submission_id", id),
                       epg_field_u64("episode_index", result.episodes[i].index), epg_field_text("status", "completed"),
                       epg_field_u64("completed", i + 1), epg_field_u64("total", result.count)),
             &err);
    }
    publish(host, running, &result);
}

/* --- Commands --- */

static void start_submission(test_host *host, epg_connection_id connection, const epg_decision *decision)
{
    epg_error err = {0};
    epg_program program = {0};
    char id[EPG_SUBMISSION_ID_TEXT];
    EPG_AUTO_BUFFER indices = {0};
    EPG_AUTO_FREE char *source = epg_format("%s/workspace/program", host->path);
    if (host->fail_session) {
        epg_session_failed(&host->session, "session_failed");
        answer_error(host, connection, "session_failed", "the test wants it");
        return;
    }
    if (epg_program_capture_path(source, &epg_program_default_limits, &program, &err) != EPG_OK) {
        answer_error(host, connection, "program_invalid", err.text);
        return;
    }
    epg_submission *running = epg_session_charge(&host->session, &decision->indices, program.digest);
    epg_program_free(&host->running);
    host->running = program;
    epg_submission_id(running->number, id);
    epg_indices_text(&running->indices, &indices);
    need(EPG_EVENT(host->ledger, "evaluation_started", &err, epg_field_text("submission_id", id),
                   epg_field_text("program_digest", running->program_digest),
                   epg_field_text("episode_indices", epg_buffer_cstr(&indices)),
                   epg_field_u64("episodes", running->indices.count),
                   epg_field_u64("episodes_remaining", running->episodes_remaining)),
         &err);
    epg_gateway_hold(host->gateway, connection, running->number);
}

static void finish_session(test_host *host, epg_connection_id connection, const epg_decision *decision)
{
    EPG_AUTO_BUFFER frame = {0};
    epg_error err = {0};
    epg_session_finish(&host->session, decision->candidates, decision->candidate_count);
    need(EPG_EVENT(host->ledger, "finish_requested", &err, epg_field_u64("candidate_count", decision->candidate_count),
                   epg_field_u64("episodes_remaining", host->session.episodes_remaining)),
         &err);
    epg_response_finished(&frame, &host->session);
    (void)epg_gateway_reply(host->gateway, connection, epg_buffer_span(&frame));
}

static void record_rejection(test_host *host, const epg_decision *decision)
{
    epg_error err = {0};
    epg_field fields[3] = {epg_field_text("reason", decision->code)};
    size_t count = 1;
    if (decision->has_candidate_count) {
        fields[count++] = epg_field_u64("candidate_count", decision->candidate_count);
    }
    if (decision->has_episodes_remaining) {
        fields[count++] = epg_field_u64("episodes_remaining", host->session.episodes_remaining);
    }
    need(epg_ledger_append(host->ledger, "finish_rejected", fields, count, &err), &err);
}

static void wait_for_submission(test_host *host, epg_connection_id connection, uint64_t number)
{
    EPG_AUTO_BUFFER frame = {0};
    EPG_CLEANUP(epg_submission_free) epg_submission submission = {0};
    (void)epg_session_recall(&host->session, number, &submission);
    if (submission.state == EPG_SUBMISSION_RUNNING) {
        epg_gateway_hold(host->gateway, connection, number);
        return;
    }
    epg_response_submission(&frame, &submission);
    (void)epg_gateway_reply(host->gateway, connection, epg_buffer_span(&frame));
}

static void answer_status(test_host *host, epg_connection_id connection)
{
    EPG_AUTO_BUFFER frame = {0};
    epg_status_facts facts = {.waiting = epg_gateway_waiting(host->gateway)};
    epg_response_status(&frame, &host->session, &facts);
    (void)epg_gateway_reply(host->gateway, connection, epg_buffer_span(&frame));
}

static void handle(test_host *host, const epg_gateway_request *request)
{
    epg_decision decision EPG_CLEANUP(epg_decision_free) = {0};
    epg_session_check(&host->session, request->object, &decision);
    if (decision.code != NULL) {
        EPG_AUTO_BUFFER frame = {0};
        if (decision.record_rejection) {
            record_rejection(host, &decision);
        }
        epg_response_refused(&frame, &decision);
        (void)epg_gateway_reply(host->gateway, request->connection, epg_buffer_span(&frame));
        return;
    }
    switch (decision.method) {
    case EPG_METHOD_SUBMIT:
        start_submission(host, request->connection, &decision);
        break;
    case EPG_METHOD_FINISH:
        finish_session(host, request->connection, &decision);
        break;
    case EPG_METHOD_WAIT:
        wait_for_submission(host, request->connection, decision.wait_for);
        break;
    case EPG_METHOD_STATUS:
        answer_status(host, request->connection);
        break;
    case EPG_METHOD_NONE:
        break;
    }
}

void test_host_turn(test_host *host)
{
    epg_error err = {0};
    epg_gateway_request request;
    need(epg_gateway_turn(host->gateway, &err), &err);
    for (bool again = true; again;) {
        while (epg_gateway_next(host->gateway, epg_session_running(&host->session) == NULL, &request)) {
            handle(host, &request);
            json_decref(request.object);
        }
        epg_submission *running = epg_session_running(&host->session);
        again = running != NULL && !host->hold_evaluation; /* whoever is next in line has its turn now */
        if (again) {
            finish_evaluation(host, running);
        }
    }
}

/* --- A client --- */

int test_connect(const test_host *host)
{
    epg_error err = {0};
    int fd = -1;
    need(epg_socket_connect(epg_gateway_socket_path(host->gateway), epg_deadline_after_ns(10 * EPG_SECOND), &fd, &err),
         &err);
    return fd;
}

void test_send(int fd, epg_span bytes)
{
    require(send(fd, bytes.data, bytes.size, MSG_NOSIGNAL) == (ssize_t)bytes.size, "send");
}

void test_receive(test_host *host, int fd, epg_buffer *out)
{
    int64_t deadline = epg_deadline_after_ns(60 * EPG_SECOND);
    for (;;) {
        test_host_turn(host);
        uint8_t *place = epg_buffer_reserve(out, 4096);
        ssize_t got = recv(fd, place, 4096, MSG_DONTWAIT);
        if (got > 0) {
            out->size += (size_t)got;
        } else if (got == 0 || errno == ECONNRESET) {
            break;
        } else {
            struct pollfd fds[EPG_GATEWAY_CONNECTIONS + 2] = {{.fd = fd, .events = POLLIN}};
            size_t count = 1 + epg_gateway_poll_fds(host->gateway, fds + 1, EPG_GATEWAY_CONNECTIONS + 1);
            int64_t next = epg_gateway_deadline(host->gateway);
            (void)poll(fds, count, epg_poll_timeout_ms(next < deadline ? next : deadline));
            require(epg_monotonic_ns() < deadline, "no answer");
        }
    }
    (void)close(fd);
}

json_t *test_exchange(test_host *host, epg_span request)
{
    EPG_AUTO_BUFFER reply = {0};
    epg_span body = {0};
    int fd = test_connect(host);
    test_send(fd, request);
    (void)shutdown(fd, SHUT_WR);
    test_receive(host, fd, &reply);
    return epg_session_frame(epg_buffer_span(&reply), &body) == EPG_FRAME_WHOLE ? epg_session_decode(body) : NULL;
}

const char *test_error_code(const json_t *reply)
{
    const char *code = json_string_value(json_object_get(json_object_get(reply, "error"), "code"));
    return code != NULL ? code : "";
}
