/* The session's rules beyond what the vectors replay, and its resumption by playing transitions again. */
#include "runs/session.h"

#include <stdlib.h>
#include <string.h>

#include "runs/protocol.h"
#include "support/support.h"

static const char digest[EPG_DIGEST_TEXT] = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

static epg_config config;
static epg_session session;

static void open_session(const char *text)
{
    EPG_AUTO_JSON *object = NULL;
    epg_error err = {0};
    epg_assert_ok(epg_json_parse(epg_span_text(text), "config", &object, &err), &err);
    epg_config_init(&config);
    epg_assert_ok(epg_config_from_json(&config, object, "config", &err), &err);
    epg_assert_ok(epg_config_resolve(&config, &err), &err);
    epg_session_init(&session, &config);
}

static void close_session(void)
{
    epg_session_free(&session);
    epg_config_free(&config);
}

/* The members of a request beside its protocol. */
static const char *verdict(const char *members, epg_decision *decision)
{
    EPG_AUTO_FREE char *text = epg_format("{\"protocol\":\"agent-session/v3\",%s}", members);
    EPG_AUTO_JSON *object = NULL;
    epg_error err = {0};
    epg_assert_ok(epg_json_parse(epg_span_text(text), "request", &object, &err), &err);
    epg_session_check(&session, object, decision);
    return decision->code != NULL ? decision->code : "admitted";
}

static const char *code_of(const char *members)
{
    epg_decision decision;
    const char *code = verdict(members, &decision);
    epg_decision_free(&decision);
    return code;
}

static void submit(const char *list, double score)
{
    EPG_AUTO_FREE char *members = epg_format("\"method\":\"submit\",\"episode_indices\":%s", list);
    epg_decision decision;
    ck_assert_str_eq(verdict(members, &decision), "admitted");
    (void)epg_session_charge(&session, &decision.indices, digest);
    epg_session_published(&session, score, 0);
    epg_decision_free(&decision);
}

START_TEST(ids_are_numbers_of_six_digits_and_more)
{
    static const char *const wrong[] = {"",
                                        "submission-",
                                        "submission-1",
                                        "submission-0000001",
                                        "submission-000000",
                                        "submission--00001",
                                        "Submission-000001",
                                        "submission-00000a",
                                        "submission-18446744073709551616"};
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(1, id);
    ck_assert_str_eq(id, "submission-000001");
    ck_assert_uint_eq(epg_submission_number("submission-000001"), 1);
    epg_submission_id(1234567, id);
    ck_assert_str_eq(id, "submission-1234567");
    ck_assert_uint_eq(epg_submission_number(id), 1234567);
    for (size_t i = 0; i < EPG_COUNT(wrong); i++) {
        ck_assert_msg(epg_submission_number(wrong[i]) == 0, "%s", wrong[i]);
    }
}
END_TEST

START_TEST(a_check_changes_nothing)
{
    epg_decision decision;
    open_session("{\"episode_budget\":4}");
    ck_assert_str_eq(verdict("\"method\":\"submit\",\"episode_indices\":[0,3]", &decision), "admitted");
    ck_assert_uint_eq(decision.indices.count, 2);
    ck_assert_uint_eq(session.episodes_remaining, 4);
    ck_assert_uint_eq(session.submission_count, 0);
    epg_decision_free(&decision);
    close_session();
}
END_TEST

START_TEST(a_charge_is_never_refunded)
{
    epg_indices indices = {(uint64_t[]){0, 1, 2}, 3};
    open_session("{\"episode_budget\":4}");
    epg_submission *running = epg_session_charge(&session, &indices, digest);
    ck_assert_uint_eq(running->number, 1);
    ck_assert_ptr_eq(epg_session_running(&session), running);
    epg_session_failed(&session, "evaluation_failed");
    ck_assert_uint_eq(session.episodes_remaining, 1);
    ck_assert_int_eq(session.end, EPG_SESSION_FAILED);
    ck_assert_str_eq(session.failure, "evaluation_failed");
    ck_assert_str_eq(code_of("\"method\":\"submit\",\"episode_indices\":[0]"), "session_closed");
    close_session();
}
END_TEST

START_TEST(checks_stand_in_the_order_of_the_contract)
{
    open_session("{\"episode_budget\":4,\"episode_pool_size\":3000,\"max_submissions\":1,"
                 "\"max_episodes_per_submission\":3}");
    submit("[0,1]", 1);
    /* Out of the pool comes before every limit, a repeated index too. */
    ck_assert_str_eq(code_of("\"method\":\"submit\",\"episode_indices\":[3000]"), "invalid_request");
    ck_assert_str_eq(code_of("\"method\":\"submit\",\"episode_indices\":[5,5]"), "invalid_request");
    /* All submissions are used: before the cap and the budget. */
    ck_assert_str_eq(code_of("\"method\":\"submit\",\"episode_indices\":[0,1,2,3,4]"), "submission_limit");
    epg_buffer many = {0};
    (void)epg_buffer_text(&many, "\"method\":\"submit\",\"episode_indices\":[0");
    for (int i = 1; i < 2049; i++) {
        (void)epg_buffer_format(&many, ",%d", i);
    }
    (void)epg_buffer_text(&many, "]");
    ck_assert_str_eq(code_of(epg_buffer_cstr(&many)), "episode_limit");
    epg_buffer_free(&many);
    close_session();
}
END_TEST

START_TEST(text_that_goes_on_after_nul_is_another_text)
{
    open_session("{\"episode_budget\":4}");
    submit("[0]", 1.0);
    ck_assert_str_eq(code_of("\"method\":\"submit\\u0000\",\"episode_indices\":[0]"), "invalid_request");
    ck_assert_str_eq(code_of("\"method\":\"status\\u0000x\""), "invalid_request");
    ck_assert_str_eq(code_of("\"method\":\"wait\",\"submission_id\":\"submission-000001\\u0000\""), "invalid_request");
    ck_assert_str_eq(code_of("\"method\":\"finish\",\"submission_ids\":[\"submission-000001\\u0000\"]"),
                     "unknown_submission");
    EPG_AUTO_JSON *other =
        json_loads("{\"protocol\":\"agent-session/v3\\u0000\",\"method\":\"status\"}", JSON_ALLOW_NUL, NULL);
    epg_decision decision;
    epg_session_check(&session, other, &decision);
    ck_assert_str_eq(decision.code, "protocol_mismatch");
    epg_decision_free(&decision);
    close_session();
}
END_TEST

START_TEST(indices_up_to_the_end_of_64_bits_are_only_out_of_the_pool)
{
    open_session("{}");
    ck_assert_str_eq(code_of("\"method\":\"submit\",\"episode_indices\":[18446744073709551615]"), "invalid_request");
    ck_assert_str_eq(code_of("\"method\":\"submit\",\"episode_indices\":[999]"), "admitted");
    ck_assert_str_eq(code_of("\"method\":\"submit\",\"episode_indices\":[1000]"), "invalid_request");
    close_session();
}
END_TEST

START_TEST(without_validation_one_candidate_is_handed_over)
{
    open_session("{\"episode_budget\":4}");
    submit("[0]", 1);
    submit("[1]", 2);
    ck_assert_str_eq(code_of("\"method\":\"finish\",\"submission_ids\":[\"submission-000001\",\"submission-000002\"]"),
                     "candidate_limit");
    ck_assert_str_eq(code_of("\"method\":\"finish\",\"submission_ids\":[\"submission-000002\"]"), "admitted");
    close_session();
}
END_TEST

START_TEST(finish_takes_numbers_best_and_last)
{
    static const struct {
        const char *ids;
        const char *code;
        uint64_t first;
    } cases[] = {
        {"[\"2\"]", "admitted", 2},
        {"[\"best\"]", "admitted", 2},
        {"[\"last\"]", "admitted", 3},
        {"[\"last\",\"submission-000001\"]", "admitted", 3},
        {"[\"best\",\"2\"]", "duplicate_submission", 0},
        {"[\"submission-000003\",\"last\"]", "duplicate_submission", 0},
        {"[\"4\"]", "unknown_submission", 0},
        {"[\"0\"]", "unknown_submission", 0},
        {"[\"initial\"]", "unknown_submission", 0},
        {"[\"99999999999999999999\"]", "unknown_submission", 0},
    };
    epg_decision decision;
    open_session("{\"episode_budget\":4,\"validation\":{\"episodes_per_candidate\":1}}");
    submit("[0]", 1);
    submit("[1]", 3);
    submit("[2]", 2);
    EPG_AUTO_FREE char *members = epg_format("\"method\":\"finish\",\"submission_ids\":%s", cases[_i].ids);
    ck_assert_str_eq(verdict(members, &decision), cases[_i].code);
    ck_assert_uint_eq(decision.candidates != NULL ? decision.candidates[0] : 0, cases[_i].first);
    epg_decision_free(&decision);
    session.direction = EPG_MINIMIZE;
    ck_assert_uint_eq(epg_session_named(&session, "best"), 1);
    close_session();
}
END_TEST

START_TEST(an_unknown_candidate_is_told_what_there_is)
{
    epg_decision decision;
    open_session("{\"episode_budget\":4}");
    ck_assert_str_eq(verdict("\"method\":\"finish\",\"submission_ids\":[\"best\"]", &decision), "unknown_submission");
    ck_assert_str_eq(decision.message, "\"best\" can't be a candidate: nothing is published in this Run yet");
    submit("[0]", 1);
    submit("[1]", 3);
    ck_assert_str_eq(verdict("\"method\":\"finish\",\"submission_ids\":[\"submission-3\"]", &decision),
                     "unknown_submission");
    ck_assert_str_eq(decision.message, "\"submission-3\" is no published submission of this Run: there are "
                                       "submission-000001 to submission-000002; 1, best and last name one too");
    close_session();
}
END_TEST

START_TEST(a_failed_submission_is_no_candidate)
{
    epg_decision decision;
    const char *ids[] = {"submission-000002"};
    epg_indices indices = {(uint64_t[]){0}, 1};
    open_session("{\"episode_budget\":4}");
    submit("[0]", 1);
    (void)epg_session_charge(&session, &indices, digest);
    epg_session_failed(&session, "publication_failed");
    epg_session_check_candidates(&session, ids, 1, true, &decision);
    ck_assert_str_eq(decision.code, "unknown_submission");
    epg_decision_free(&decision);
    close_session();
}
END_TEST

START_TEST(an_operator_may_hand_over_with_budget_left_when_it_says_so)
{
    epg_decision decision;
    const char *ids[] = {"submission-000001"};
    open_session("{\"episode_budget\":4,\"finish_budget_policy\":\"require_budget_exhaustion\"}");
    submit("[0]", 1);
    epg_session_close(&session);
    epg_session_check_candidates(&session, ids, 1, false, &decision);
    ck_assert_str_eq(decision.code, "budget_remaining");
    epg_decision_free(&decision);
    epg_session_check_candidates(&session, ids, 1, true, &decision);
    ck_assert_ptr_null(decision.code);
    ck_assert_uint_eq(decision.candidates[0], 1);
    epg_decision_free(&decision);
    close_session();
}
END_TEST

START_TEST(status_and_wait_are_answered_after_the_end_too)
{
    epg_decision decision;
    open_session("{\"episode_budget\":4}");
    ck_assert_str_eq(code_of("\"method\":\"wait\""), "unknown_submission");
    submit("[0]", 1);
    epg_session_close(&session);
    ck_assert_str_eq(code_of("\"method\":\"status\""), "admitted");
    ck_assert_str_eq(code_of("\"method\":\"status\",\"x\":1"), "invalid_request");
    ck_assert_str_eq(verdict("\"method\":\"wait\",\"submission_id\":\"submission-000001\"", &decision), "admitted");
    ck_assert_uint_eq(decision.wait_for, 1);
    epg_decision_free(&decision);
    ck_assert_str_eq(code_of("\"method\":\"wait\",\"submission_id\":\"submission-000002\""), "unknown_submission");
    ck_assert_str_eq(code_of("\"method\":\"wait\",\"submission_id\":1"), "invalid_request");
    close_session();
}
END_TEST

static char *reply_text(void)
{
    epg_buffer frame = {0};
    epg_status_facts facts = {.has_deadline = true, .seconds_remaining = 2.5, .episodes_completed = 1, .waiting = 2};
    epg_response_status(&frame, &session, &facts);
    epg_buffer_drop_front(&frame, EPG_SESSION_FRAME_HEAD);
    return epg_buffer_take_text(&frame);
}

START_TEST(status_tells_what_remains_and_what_runs)
{
    epg_indices indices = {(uint64_t[]){0, 1}, 2};
    open_session("{\"episode_budget\":10,\"max_submissions\":5,\"max_episodes_per_submission\":3}");
    submit("[0]", 1);
    (void)epg_session_charge(&session, &indices, digest);
    EPG_AUTO_FREE char *text = reply_text();
    ck_assert_str_eq(text,
                     "{\"ok\":true,\"protocol\":\"agent-session/v3\",\"result\":{\"agent_authority_closed\":false,"
                     "\"episode_budget\":10,\"episode_pool_size\":10,\"episodes_remaining\":7,\"episodes_used\":3,"
                     "\"latest_submission_id\":\"submission-000001\",\"max_episodes_in_next_submission\":3,"
                     "\"running\":{\"episodes\":2,\"episodes_completed\":1,\"submission_id\":\"submission-000002\"},"
                     "\"seconds_remaining\":2.5,\"submissions_remaining\":3,\"submissions_used\":2,\"waiting\":2}}");
    close_session();
}
END_TEST

START_TEST(ten_thousand_submissions_are_kept_in_order)
{
    epg_indices indices = {(uint64_t[]){7}, 1};
    open_session("{\"episode_budget\":20000}");
    for (int i = 1; i <= 10000; i++) {
        (void)epg_session_charge(&session, &indices, digest);
        epg_session_published(&session, i, 0);
    }
    ck_assert_uint_eq(session.episodes_remaining, 10000);
    for (uint64_t number = 1; number <= 10000; number++) {
        double score = 0;
        ck_assert(epg_session_score(&session, number, &score));
        ck_assert_double_eq(score, (double)number);
    }
    epg_submission none = {0};
    ck_assert(!epg_session_recall(&session, 10001, &none));
    ck_assert(!epg_session_recall(&session, 0, &none));
    close_session();
}
END_TEST

/* A submission that others followed is told as it was. */
START_TEST(the_past_is_recalled_as_it_was)
{
    static const char other[EPG_DIGEST_TEXT] =
        "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    epg_indices scattered = {(uint64_t[]){0, 2, 3, 4, 1000, 99999}, 6};
    epg_indices all = {epg_alloc_array(2000, sizeof(uint64_t)), 2000};
    for (size_t i = 0; i < all.count; i++) {
        all.items[i] = i;
    }
    open_session("{\"episode_budget\":20000,\"episode_pool_size\":100000}");
    (void)epg_session_charge(&session, &scattered, digest);
    epg_session_published(&session, -0.25, 3);
    (void)epg_session_charge(&session, &all, other);
    epg_session_published(&session, 2.5, 0);
    for (int last = 0; last < 2; last++) {
        EPG_CLEANUP(epg_submission_free) epg_submission first = {0};
        EPG_CLEANUP(epg_submission_free) epg_submission second = {0};
        ck_assert(epg_session_recall(&session, 1, &first));
        ck_assert(epg_session_recall(&session, 2, &second));
        ck_assert_uint_eq(first.number, 1);
        ck_assert_int_eq(first.state, EPG_SUBMISSION_PUBLISHED);
        ck_assert_double_eq(first.score, -0.25);
        ck_assert_uint_eq(first.policy_failures, 3);
        ck_assert_uint_eq(first.episodes_used, 6);
        ck_assert_uint_eq(first.episodes_remaining, 19994);
        ck_assert_str_eq(first.program_digest, digest);
        ck_assert_uint_eq(first.indices.count, scattered.count);
        ck_assert_mem_eq(first.indices.items, scattered.items, scattered.count * sizeof *scattered.items);
        ck_assert_uint_eq(second.number, 2);
        ck_assert_str_eq(second.program_digest, other);
        ck_assert_uint_eq(second.episodes_used, 2000);
        ck_assert_uint_eq(second.episodes_remaining, 17994);
        ck_assert_uint_eq(second.indices.count, all.count);
        ck_assert_mem_eq(second.indices.items, all.items, all.count * sizeof *all.items);
        (void)epg_session_charge(&session, &scattered, digest); /* now both are of the past */
    }
    epg_indices_free(&all);
    close_session();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("session");
    TCase *cases = tcase_create("session");
    tcase_add_test(cases, ids_are_numbers_of_six_digits_and_more);
    tcase_add_test(cases, a_check_changes_nothing);
    tcase_add_test(cases, a_charge_is_never_refunded);
    tcase_add_test(cases, checks_stand_in_the_order_of_the_contract);
    tcase_add_test(cases, text_that_goes_on_after_nul_is_another_text);
    tcase_add_test(cases, indices_up_to_the_end_of_64_bits_are_only_out_of_the_pool);
    tcase_add_test(cases, without_validation_one_candidate_is_handed_over);
    tcase_add_test(cases, a_failed_submission_is_no_candidate);
    tcase_add_test(cases, an_operator_may_hand_over_with_budget_left_when_it_says_so);
    tcase_add_test(cases, status_and_wait_are_answered_after_the_end_too);
    tcase_add_test(cases, status_tells_what_remains_and_what_runs);
    tcase_add_loop_test(cases, finish_takes_numbers_best_and_last, 0, 10);
    tcase_add_test(cases, an_unknown_candidate_is_told_what_there_is);
    tcase_add_test(cases, ten_thousand_submissions_are_kept_in_order);
    tcase_add_test(cases, the_past_is_recalled_as_it_was);
    suite_add_tcase(suite, cases);
    return epg_test_main(suite);
}
