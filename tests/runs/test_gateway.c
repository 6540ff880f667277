/* Clients of every kind against a Host that turns in the same thread: so what blocks it would hang the test. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/host.h"
#include "support/support.h"

static const char policy[] = "class P:\n    def act(self, o):\n        return 1\n";
static test_host host;
static size_t descriptors_before;

static void open_host(int64_t request_ns)
{
    epg_config config;
    epg_gateway_limits limits = {.request_ns = request_ns};
    descriptors_before = epg_test_open_descriptors();
    epg_config_init(&config);
    config.episode_budget = 100;
    test_host_open(&host, &config, policy, &limits);
}

/* Nothing may be left: neither a descriptor nor the socket or its directory. */
static void close_host(void)
{
    struct stat info;
    EPG_AUTO_FREE char *socket_path = epg_strdup(epg_gateway_socket_path(host.gateway));
    EPG_AUTO_FREE char *directory = epg_strndup(socket_path, (size_t)(strrchr(socket_path, '/') - socket_path));
    test_host_close(&host);
    ck_assert_int_ne(lstat(socket_path, &info), 0);
    ck_assert_int_ne(lstat(directory, &info), 0);
    ck_assert_uint_eq(epg_test_open_descriptors(), descriptors_before);
}

static void submit_request(epg_buffer *out, uint64_t index)
{
    epg_request_submit(out, &(epg_indices){&index, 1});
}

/* Connects and sends a submit of one Episode; the answer is read later. */
static int start_submit(uint64_t index)
{
    EPG_AUTO_BUFFER request = {0};
    int fd = test_connect(&host);
    submit_request(&request, index);
    test_send(fd, epg_buffer_span(&request));
    return fd;
}

static json_t *reply_of(int fd)
{
    EPG_AUTO_BUFFER reply = {0};
    epg_span body = {0};
    test_receive(&host, fd, &reply);
    ck_assert_int_eq(epg_session_frame(epg_buffer_span(&reply), &body), EPG_FRAME_WHOLE);
    ck_assert_uint_eq(reply.size, body.size + EPG_SESSION_FRAME_HEAD);
    return epg_session_decode(body);
}

static const char *id_in(const json_t *reply)
{
    const char *id = json_string_value(json_object_get(json_object_get(reply, "result"), "submission_id"));
    return id != NULL ? id : "";
}

static json_t *ask_status(void)
{
    EPG_AUTO_BUFFER request = {0};
    epg_request_status(&request);
    return test_exchange(&host, epg_buffer_span(&request));
}

static json_int_t status_number(const char *key)
{
    EPG_AUTO_JSON *reply = ask_status();
    return json_integer_value(json_object_get(json_object_get(reply, "result"), key));
}

static json_t *ask_wait(const char *id)
{
    EPG_AUTO_BUFFER request = {0};
    epg_request_wait(&request, id);
    return test_exchange(&host, epg_buffer_span(&request));
}

START_TEST(ten_clients_at_once_are_served_in_the_order_in_which_they_came)
{
    int fds[10];
    open_host(0);
    for (size_t i = 0; i < EPG_COUNT(fds); i++) {
        fds[i] = start_submit(i);
        test_host_turn(&host);
    }
    for (size_t i = EPG_COUNT(fds); i-- > 0;) { /* answers are read in another order than they were made */
        char id[EPG_SUBMISSION_ID_TEXT];
        EPG_AUTO_JSON *reply = reply_of(fds[i]);
        epg_submission_id(i + 1, id);
        ck_assert_str_eq(id_in(reply), id);
    }
    ck_assert_uint_eq(host.session.episodes_remaining, 90);
    close_host();
}
END_TEST

START_TEST(a_submit_waits_in_line_while_one_runs_and_status_does_not)
{
    open_host(0);
    host.hold_evaluation = true;
    int first = start_submit(0);
    test_host_turn(&host);
    int second = start_submit(1);
    test_host_turn(&host);
    ck_assert_uint_eq(host.session.submission_count, 1);
    ck_assert_int_eq(status_number("waiting"), 1);
    ck_assert_int_eq(status_number("episodes_remaining"), 99);
    host.hold_evaluation = false;
    EPG_AUTO_JSON *second_reply = reply_of(second);
    EPG_AUTO_JSON *first_reply = reply_of(first);
    ck_assert_str_eq(id_in(first_reply), "submission-000001");
    ck_assert_str_eq(id_in(second_reply), "submission-000002");
    close_host();
}
END_TEST

START_TEST(a_finish_waits_for_the_submit_before_it)
{
    const char *ids[] = {"submission-000001"};
    EPG_AUTO_BUFFER request = {0};
    open_host(0);
    host.hold_evaluation = true;
    int submit = start_submit(0);
    test_host_turn(&host);
    int finish = test_connect(&host);
    epg_request_finish(&request, ids, 1);
    test_send(finish, epg_buffer_span(&request));
    test_host_turn(&host);
    ck_assert_int_eq(host.session.end, EPG_SESSION_OPEN);
    host.hold_evaluation = false;
    EPG_AUTO_JSON *reply = reply_of(finish);
    ck_assert_str_eq(test_error_code(reply), "");
    ck_assert_int_eq(host.session.end, EPG_SESSION_FINISHED);
    EPG_AUTO_JSON *submitted = reply_of(submit);
    ck_assert_str_eq(id_in(submitted), "submission-000001");
    close_host();
}
END_TEST

START_TEST(a_client_that_vanishes_in_an_evaluation_is_charged_once_and_wait_has_the_result)
{
    open_host(0);
    host.hold_evaluation = true;
    int fd = start_submit(3);
    test_host_turn(&host);
    (void)close(fd);
    test_host_turn(&host);
    int waiting = test_connect(&host);
    EPG_AUTO_BUFFER request = {0};
    epg_request_wait(&request, NULL);
    test_send(waiting, epg_buffer_span(&request));
    test_host_turn(&host);
    host.hold_evaluation = false;
    EPG_AUTO_JSON *reply = reply_of(waiting);
    ck_assert_str_eq(id_in(reply), "submission-000001");
    ck_assert_uint_eq(host.session.episodes_remaining, 99);
    EPG_AUTO_JSON *again = ask_wait("submission-000001"); /* and later as well */
    ck_assert(json_equal(reply, again));
    close_host();
}
END_TEST

START_TEST(a_client_that_vanishes_in_line_is_not_charged)
{
    open_host(0);
    host.hold_evaluation = true;
    int first = start_submit(0);
    test_host_turn(&host);
    int second = start_submit(1);
    test_host_turn(&host);
    (void)close(second);
    test_host_turn(&host);
    ck_assert_uint_eq(epg_gateway_waiting(host.gateway), 0);
    host.hold_evaluation = false;
    EPG_AUTO_JSON *reply = reply_of(first);
    ck_assert_str_eq(id_in(reply), "submission-000001");
    test_host_turn(&host);
    ck_assert_uint_eq(host.session.submission_count, 1);
    close_host();
}
END_TEST

START_TEST(a_client_that_does_not_wait_for_its_answer_is_served_when_the_host_is_free)
{
    open_host(0);
    (void)close(start_submit(0));
    test_host_turn(&host);
    test_host_turn(&host);
    EPG_AUTO_JSON *reply = ask_wait(NULL);
    ck_assert_str_eq(id_in(reply), "submission-000001");
    close_host();
}
END_TEST

START_TEST(a_client_that_only_ends_its_sending_has_not_vanished)
{
    open_host(0);
    host.hold_evaluation = true;
    int fd = start_submit(0);
    (void)shutdown(fd, SHUT_WR);
    for (int i = 0; i < 3; i++) {
        test_host_turn(&host);
    }
    host.hold_evaluation = false;
    EPG_AUTO_JSON *reply = reply_of(fd);
    ck_assert_str_eq(id_in(reply), "submission-000001");
    close_host();
}
END_TEST

START_TEST(clients_that_stall_hold_up_nobody_however_many)
{
    int stalled[3 * EPG_GATEWAY_CONNECTIONS];
    open_host(0);
    for (size_t i = 0; i < EPG_COUNT(stalled); i++) {
        stalled[i] = test_connect(&host);
        test_send(stalled[i], epg_span_of("\0\0", 2));
        test_host_turn(&host);
    }
    EPG_AUTO_JSON *reply = reply_of(start_submit(0));
    ck_assert_str_eq(id_in(reply), "submission-000001");
    for (size_t i = 0; i < EPG_COUNT(stalled); i++) {
        (void)close(stalled[i]);
    }
    close_host();
}
END_TEST

START_TEST(a_request_that_is_not_whole_in_time_is_refused)
{
    open_host(50 * EPG_MILLISECOND);
    int fd = test_connect(&host);
    test_send(fd, epg_span_of("\0\0\0", 3));
    EPG_AUTO_JSON *reply = reply_of(fd); /* the sending side stays open */
    ck_assert_str_eq(test_error_code(reply), "invalid_request");
    close_host();
}
END_TEST

START_TEST(a_request_may_come_byte_by_byte)
{
    EPG_AUTO_BUFFER request = {0};
    open_host(0);
    submit_request(&request, 0);
    int slow = test_connect(&host);
    for (size_t i = 0; i < request.size; i++) {
        test_send(slow, epg_span_of(request.data + i, 1));
        test_host_turn(&host);
        if (i == request.size / 2) {
            ck_assert_int_eq(status_number("submissions_used"), 0); /* others are served meanwhile */
        }
    }
    EPG_AUTO_JSON *reply = reply_of(slow);
    ck_assert_str_eq(id_in(reply), "submission-000001");
    close_host();
}
END_TEST

START_TEST(a_flood_behind_a_request_is_not_read)
{
    EPG_AUTO_BUFFER request = {0};
    static uint8_t flood[100000];
    open_host(0);
    submit_request(&request, 0);
    (void)epg_buffer_append(&request, flood, sizeof flood);
    int fd = test_connect(&host);
    size_t sent = 0;
    while (sent < request.size) {
        ssize_t put = send(fd, request.data + sent, request.size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put <= 0) {
            break;
        }
        sent += (size_t)put;
    }
    EPG_AUTO_JSON *reply = reply_of(fd);
    ck_assert_str_eq(id_in(reply), "submission-000001");
    close_host();
}
END_TEST

START_TEST(a_waiting_gateway_asks_for_no_turns)
{
    struct pollfd fds[EPG_GATEWAY_CONNECTIONS + 1];
    open_host(0);
    host.hold_evaluation = true;
    int fd = start_submit(0);
    test_host_turn(&host);
    (void)shutdown(fd, SHUT_WR);
    test_host_turn(&host);
    size_t count = epg_gateway_poll_fds(host.gateway, fds, EPG_COUNT(fds));
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(poll(fds, count, 0), 0); /* a half-closed peer must not make the loop spin */
    ck_assert_int_eq(epg_gateway_deadline(host.gateway), EPG_NEVER);
    (void)close(fd);
    close_host();
}
END_TEST

START_TEST(after_the_end_everything_but_reading_is_refused)
{
    open_host(0);
    EPG_AUTO_JSON *first = reply_of(start_submit(0));
    ck_assert_str_eq(id_in(first), "submission-000001");
    epg_session_close(&host.session);
    EPG_AUTO_JSON *refused = reply_of(start_submit(1));
    ck_assert_str_eq(test_error_code(refused), "session_closed");
    EPG_AUTO_JSON *waited = ask_wait(NULL);
    ck_assert_str_eq(id_in(waited), "submission-000001");
    ck_assert_uint_eq(host.session.episodes_remaining, 99);
    close_host();
}
END_TEST

START_TEST(a_program_that_is_a_link_is_refused_and_costs_nothing)
{
    open_host(0);
    EPG_AUTO_FREE char *program = epg_format("%s/workspace/program", host.path);
    EPG_AUTO_FREE char *aside = epg_format("%s/workspace/aside", host.path);
    ck_assert_int_eq(rename(program, aside), 0);
    ck_assert_int_eq(symlink("aside", program), 0);
    EPG_AUTO_JSON *reply = reply_of(start_submit(0));
    ck_assert_str_eq(test_error_code(reply), "program_invalid");
    ck_assert_uint_eq(host.session.episodes_remaining, 100);
    close_host();
}
END_TEST

START_TEST(closing_gives_answers_under_way_their_time)
{
    EPG_AUTO_BUFFER reply = {0};
    open_host(0);
    int fd = start_submit(0);
    test_host_turn(&host);
    test_host_close(&host);
    uint8_t *place = epg_buffer_reserve(&reply, 4096);
    ssize_t got = recv(fd, place, 4096, 0);
    ck_assert_int_gt(got, EPG_SESSION_FRAME_HEAD);
    ck_assert_int_eq(recv(fd, place, 4096, 0), 0);
    (void)close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gateway");
    TCase *cases = tcase_create("gateway");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, ten_clients_at_once_are_served_in_the_order_in_which_they_came);
    tcase_add_test(cases, a_submit_waits_in_line_while_one_runs_and_status_does_not);
    tcase_add_test(cases, a_finish_waits_for_the_submit_before_it);
    tcase_add_test(cases, a_client_that_vanishes_in_an_evaluation_is_charged_once_and_wait_has_the_result);
    tcase_add_test(cases, a_client_that_vanishes_in_line_is_not_charged);
    tcase_add_test(cases, a_client_that_does_not_wait_for_its_answer_is_served_when_the_host_is_free);
    tcase_add_test(cases, a_client_that_only_ends_its_sending_has_not_vanished);
    tcase_add_test(cases, clients_that_stall_hold_up_nobody_however_many);
    tcase_add_test(cases, a_request_that_is_not_whole_in_time_is_refused);
    tcase_add_test(cases, a_request_may_come_byte_by_byte);
    tcase_add_test(cases, a_flood_behind_a_request_is_not_read);
    tcase_add_test(cases, a_waiting_gateway_asks_for_no_turns);
    tcase_add_test(cases, after_the_end_everything_but_reading_is_refused);
    tcase_add_test(cases, a_program_that_is_a_link_is_refused_and_costs_nothing);
    tcase_add_test(cases, closing_gives_answers_under_way_their_time);
    suite_add_tcase(suite, cases);
    return epg_test_main(suite);
}
