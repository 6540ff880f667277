/* Policies that break the rules on purpose. After each the guest must serve the next Episode, and nothing is left. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/guests.h"
#include "support/support.h"

/* What such Policies know: the channel's numbers and the frame's sequence number, found in the caller's locals. */
static const char tools[] = "import os, signal, sys, threading, time\n"
                            "RECEIVE, SEND, VALUE = 250, 251, 18\n"
                            "def sequence():\n"
                            "    frame = sys._getframe()\n"
                            "    while frame.f_code.co_name != 'converse':\n"
                            "        frame = frame.f_back\n"
                            "    return frame.f_locals['data'][5:9]\n"
                            "def frame(body=b'N', kind=VALUE, number=None, length=None):\n"
                            "    number = sequence() if number is None else number\n"
                            "    length = len(body) + 5 if length is None else length\n"
                            "    return length.to_bytes(4, 'big') + bytes((kind,)) + number + body\n"
                            "def say(data):\n"
                            "    while data:\n"
                            "        data = data[os.write(SEND, data):]\n"
                            "def hang():\n"
                            "    while True:\n"
                            "        time.sleep(1)\n"
                            "def daemon(work):\n"
                            "    if os.fork() == 0:\n"
                            "        os.setsid()\n"
                            "        if os.fork() == 0:\n"
                            "            work()\n"
                            "        os._exit(0)\n"
                            "    os.wait()\n";

static epg_test_guest host;
static size_t descriptors;

/* The Policy whose act is `body`. */
static epg_policy *begin_with(const char *body)
{
    EPG_AUTO_FREE char *source = epg_format("%s"
                                            "class P:\n"
                                            "    turn = 0\n"
                                            "    def act(self, observation):\n"
                                            "        self.turn += 1\n"
                                            "        %s\n"
                                            "def make_policy(context):\n"
                                            "    return P()\n",
                                            tools, body);
    return epg_test_policy_begin(&host, source);
}

static epg_policy *start_with(const char *body)
{
    epg_policy *policy = begin_with(body);
    epg_policy_reply reply = epg_test_policy_start(policy, 7, 30);
    ck_assert_msg(reply.failure == EPG_POLICY_OK, "%s: %s", epg_policy_cause_name(reply.cause), reply.detail);
    return policy;
}

/* One harmless Episode. */
static void serve_one(void)
{
    epg_policy *policy = start_with("return 'fine'");
    EPG_AUTO_FREE char *answer = epg_test_policy_ask(policy);
    ck_assert_str_eq(answer, "fine");
    epg_test_policy_finish(policy, NULL);
}

static void open_host(void)
{
    epg_test_guest_open(&host);
    serve_one(); /* one process parked, all that is made once is made */
    descriptors = epg_test_open_descriptors();
}

/* The fork server and the spare are all that lives; no descriptor more than before. */
static void close_host(void)
{
    serve_one();
    ck_assert_uint_eq(epg_test_open_descriptors(), descriptors);
    for (int i = 0; i < 3000 && epg_descendants_count(getpid()) != 2; i++) {
        (void)usleep(10000); /* a spare that was asked for may not be forked yet */
    }
    ck_assert_uint_eq(epg_descendants_count(getpid()), 2);
    epg_test_guest_close(&host);
    ck_assert_uint_eq(epg_descendants_count(getpid()), 0);
}

static void expect(const epg_policy_reply *reply, epg_policy_failure failure, epg_policy_cause cause)
{
    ck_assert_msg(reply->failure == failure && reply->cause == cause, "%d %s: %s", (int)reply->failure,
                  epg_policy_cause_name(reply->cause), reply->detail != NULL ? reply->detail : "");
}

/* --- One act that goes wrong. --- */

typedef struct attack {
    const char *body;
    double seconds; /* the limit */
    epg_policy_failure failure;
    epg_policy_cause cause;
    const char *detail; /* a part of it, or NULL */
} attack;

#define PROTOCOL EPG_POLICY_PROTOCOL_ERROR
static const attack attacks[] = {
    {"hang()", 0.3, EPG_POLICY_TIMEOUT, EPG_CAUSE_TIMEOUT_ACT, "did not answer in time"},
    {"signal.signal(15, signal.SIG_IGN); hang()", 0.3, EPG_POLICY_TIMEOUT, EPG_CAUSE_TIMEOUT_ACT, NULL},
    {"os.kill(os.getpid(), signal.SIGSTOP)", 0.3, EPG_POLICY_TIMEOUT, EPG_CAUSE_TIMEOUT_ACT, NULL},
    {"while True: os.write(2, b'x' * 65536)", 0.5, EPG_POLICY_TIMEOUT, EPG_CAUSE_TIMEOUT_ACT, NULL},
    {"for b in frame(): os.write(SEND, bytes((b,))); time.sleep(0.1)", 0.5, EPG_POLICY_TIMEOUT, EPG_CAUSE_TIMEOUT_ACT,
     NULL},
    {"say(frame()[:11 - 2]); hang()", 0.3, EPG_POLICY_TIMEOUT, EPG_CAUSE_TIMEOUT_ACT, "did not finish"},
    {"os._exit(3)", 30, PROTOCOL, EPG_CAUSE_DIED, "status 3"},
    {"os._exit(0)", 30, PROTOCOL, EPG_CAUSE_DIED, "status 0"},
    {"os.kill(os.getpid(), 9)", 30, PROTOCOL, EPG_CAUSE_DIED, "signal 9"},
    {"os.abort()", 30, PROTOCOL, EPG_CAUSE_DIED, "signal 6"},
    {"os.killpg(0, 9)", 30, PROTOCOL, EPG_CAUSE_DIED, "signal 9"},
    {"os.closerange(3, 1000); hang()", 30, PROTOCOL, EPG_CAUSE_DIED, "closed its channel"},
    {"os.closerange(0, 1000)", 30, PROTOCOL, EPG_CAUSE_DIED, NULL},
    {"daemon(hang); os._exit(4)", 30, PROTOCOL, EPG_CAUSE_DIED, "status 4"},
    {"os.fork() or hang(); os._exit(5)", 30, PROTOCOL, EPG_CAUSE_DIED, "status 5"},
    {"os.execv('/bin/sh', ['sh', '-c', 'exit 6'])", 30, PROTOCOL, EPG_CAUSE_DIED, "status 6"},
    {"say(frame()[:3]); os._exit(7)", 30, PROTOCOL, EPG_CAUSE_PARTIAL_FRAME, "status 7"},
    {"say(frame()[:9]); os._exit(7)", 30, PROTOCOL, EPG_CAUSE_PARTIAL_FRAME, "status 7"},
    {"daemon(hang); say(frame()[:9]); os._exit(7)", 30, PROTOCOL, EPG_CAUSE_PARTIAL_FRAME, "status 7"},
    {"say(frame(length=4)); hang()", 30, PROTOCOL, EPG_CAUSE_MALFORMED_FRAME, "too short"},
    {"say(frame(length=0)); hang()", 30, PROTOCOL, EPG_CAUSE_MALFORMED_FRAME, "too short"},
    {"say(frame(b'')); hang()", 30, PROTOCOL, EPG_CAUSE_MALFORMED_FRAME, NULL},
    {"say(frame(b'NN')); hang()", 30, PROTOCOL, EPG_CAUSE_MALFORMED_FRAME, NULL},
    {"say(frame(b'junk')); hang()", 30, PROTOCOL, EPG_CAUSE_MALFORMED_FRAME, NULL},
    {"say(frame(b'F' + b'\\xff' * 8)); hang()", 30, PROTOCOL, EPG_CAUSE_MALFORMED_FRAME, NULL},
    {"say(frame(length=(4 << 20) + 6)); hang()", 30, PROTOCOL, EPG_CAUSE_OVERSIZED_FRAME, "4194305"},
    {"say(b'\\xff' * 100); hang()", 30, PROTOCOL, EPG_CAUSE_OVERSIZED_FRAME, NULL},
    {"say(b'{\"type\": \"action\", \"action\": 1}\\n'); hang()", 30, PROTOCOL, EPG_CAUSE_OVERSIZED_FRAME, NULL},
    {"say(frame((b'L' + bytes(7) + b'\\1') * 40 + b'N')); hang()", 30, PROTOCOL, EPG_CAUSE_INADMISSIBLE_VALUE, NULL},
    {"say(frame(b'L' + (65536).to_bytes(8, 'big') + b'N' * 65536)); hang()", 30, PROTOCOL, EPG_CAUSE_INADMISSIBLE_VALUE,
     NULL},
    {"say(frame(kind=99)); hang()", 30, PROTOCOL, EPG_CAUSE_UNEXPECTED_MESSAGE, "another type"},
    {"say(frame(kind=17)); hang()", 30, PROTOCOL, EPG_CAUSE_UNEXPECTED_MESSAGE, "another type"},
    {"say(frame(b'', kind=19)); hang()", 30, PROTOCOL, EPG_CAUSE_UNEXPECTED_MESSAGE, NULL},
    {"say(frame(number=bytes(4))); hang()", 30, PROTOCOL, EPG_CAUSE_UNEXPECTED_MESSAGE, "not asked for"},
    {"while True: say(frame(number=b'abcd'))", 30, PROTOCOL, EPG_CAUSE_UNEXPECTED_MESSAGE, "not asked for"},
    {"say(frame(b'\\x1b[31m' * 1000, kind=20)); hang()", 30, EPG_POLICY_EXCEPTION, EPG_CAUSE_ACT, "\\x1b[31m"},
};

START_TEST(an_attack_in_act_is_told_for_what_it_is)
{
    const attack *one = &attacks[_i];
    epg_policy *policy = start_with(one->body);
    epg_policy_reply reply = epg_test_policy_act(policy, epg_span_text("N"), one->seconds);
    expect(&reply, one->failure, one->cause);
    ck_assert_ptr_nonnull(reply.detail);
    ck_assert_msg(one->detail == NULL || strstr(reply.detail, one->detail) != NULL, "%s", reply.detail);
    epg_policy_end end;
    epg_test_policy_finish(policy, &end);
    ck_assert(end.ended.complete);
    epg_policy_end_free(&end);
}
END_TEST

START_TEST(an_attack_while_loading_is_told_too)
{
    static const attack loading[] = {
        {"hang()", 0.3, EPG_POLICY_TIMEOUT, EPG_CAUSE_TIMEOUT_START, NULL},
        {"os._exit(3)", 30, PROTOCOL, EPG_CAUSE_DIED, "status 3"},
        {"say(frame()); hang()", 30, PROTOCOL, EPG_CAUSE_UNEXPECTED_MESSAGE, "another type"},
    };
    for (size_t i = 0; i < EPG_COUNT(loading); i++) {
        EPG_AUTO_FREE char *source = epg_format("%s%s\n", tools, loading[i].body);
        epg_policy *policy = epg_test_policy_begin(&host, source);
        epg_policy_reply reply = epg_test_policy_start(policy, 7, loading[i].seconds);
        expect(&reply, loading[i].failure, loading[i].cause);
        epg_test_policy_finish(policy, NULL);
    }
}
END_TEST

/* --- Several acts. --- */

START_TEST(a_second_answer_is_never_the_next_action)
{
    epg_policy *policy = start_with("say(frame(b'S' + bytes(7) + b'\\5early')); return 'second'");
    EPG_AUTO_FREE char *answer = epg_test_policy_ask(policy);
    ck_assert_str_eq(answer, "early");
    epg_policy_reply reply = epg_test_policy_act(policy, epg_span_text("N"), 30);
    expect(&reply, PROTOCOL, EPG_CAUSE_UNEXPECTED_MESSAGE);
    epg_test_policy_finish(policy, NULL);
}
END_TEST

START_TEST(answers_sent_ahead_are_never_actions_however_many_numbers_they_try)
{
    epg_policy *policy = start_with("n = int.from_bytes(sequence(), 'big')\n"
                                    "        for i in range(-3000, 3000):\n"
                                    "            if i: say(frame(number=(n + i & 0xffffffff).to_bytes(4, 'big')))\n"
                                    "        hang()");
    epg_policy_reply reply = epg_test_policy_act(policy, epg_span_text("N"), 30);
    expect(&reply, PROTOCOL, EPG_CAUSE_UNEXPECTED_MESSAGE);
    epg_test_policy_finish(policy, NULL);
}
END_TEST

/* More than a pipe holds. */
static void put_large(epg_buffer *out)
{
    enum { CONTENT = 1 << 20 };
    EPG_AUTO_FREE uint8_t *content = epg_alloc(CONTENT);
    epg_value_put_bytes(out, epg_span_of(content, CONTENT));
}

START_TEST(a_policy_that_stops_reading_times_out)
{
    EPG_AUTO_BUFFER large = {0};
    put_large(&large);
    epg_policy *policy = start_with("say(frame()); hang()");
    ck_assert_int_eq(epg_test_policy_act(policy, epg_span_text("N"), 30).failure, EPG_POLICY_OK);
    epg_policy_reply reply = epg_test_policy_act(policy, epg_buffer_span(&large), 0.5);
    expect(&reply, EPG_POLICY_TIMEOUT, EPG_CAUSE_TIMEOUT_WRITE);
    epg_test_policy_finish(policy, NULL);
}
END_TEST

START_TEST(a_policy_that_dies_while_a_child_holds_its_pipes_is_seen_to_die)
{
    EPG_AUTO_BUFFER large = {0};
    put_large(&large);
    epg_policy *policy = start_with("daemon(hang); say(frame()); os._exit(8)");
    ck_assert_int_eq(epg_test_policy_act(policy, epg_span_text("N"), 30).failure, EPG_POLICY_OK);
    epg_policy_reply reply = epg_test_policy_act(policy, epg_buffer_span(&large), 60);
    expect(&reply, PROTOCOL, EPG_CAUSE_DIED);
    ck_assert_str_eq(reply.detail, "it exited with status 8");
    epg_test_policy_finish(policy, NULL);
}
END_TEST

START_TEST(frames_flooded_during_a_slow_step_are_not_kept)
{
    struct rusage before;
    struct rusage after;
    epg_policy *policy = start_with("flood = lambda: [say(data) for _ in iter(int, 1)]\n"
                                    "        data = frame(bytes(1 << 20), number=b'abcd')\n"
                                    "        threading.Thread(target=flood).start() if self.turn == 2 else None\n"
                                    "        return 1");
    ck_assert_int_eq(epg_test_policy_act(policy, epg_span_text("N"), 30).failure, EPG_POLICY_OK);
    (void)getrusage(RUSAGE_SELF, &before);
    epg_policy_reply reply = epg_test_policy_act(policy, epg_span_text("N"), 30);
    (void)usleep(300000); /* the slow step */
    if (reply.failure == EPG_POLICY_OK) {
        reply = epg_test_policy_act(policy, epg_span_text("N"), 30);
    }
    (void)getrusage(RUSAGE_SELF, &after);
    ck_assert_int_eq(reply.failure, EPG_POLICY_PROTOCOL_ERROR);
    ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 16 * 1024);
    epg_test_policy_finish(policy, NULL);
}
END_TEST

/* --- Leftovers. --- */

START_TEST(processes_left_by_a_clean_policy_are_ended)
{
    epg_policy_end end;
    epg_policy *policy = start_with("daemon(hang)\n"
                                    "        daemon(lambda: (signal.signal(15, signal.SIG_IGN), hang()))\n"
                                    "        os.fork() or hang()\n"
                                    "        return 1");
    ck_assert_int_eq(epg_test_policy_act(policy, epg_span_text("N"), 30).failure, EPG_POLICY_OK);
    epg_test_policy_finish(policy, &end);
    ck_assert(end.ended.complete);
    ck_assert_uint_eq(end.ended.killed, 3);
    ck_assert_int_eq(end.exit.code, 0);
    epg_policy_end_free(&end);
}
END_TEST

START_TEST(a_process_that_forks_itself_anew_all_the_time_is_ended)
{
    epg_policy_end end;
    epg_policy *policy = start_with("def again():\n"
                                    "            while True:\n"
                                    "                if os.fork(): os._exit(0)\n"
                                    "        daemon(again)\n"
                                    "        return 1");
    ck_assert_int_eq(epg_test_policy_act(policy, epg_span_text("N"), 30).failure, EPG_POLICY_OK);
    epg_test_policy_finish(policy, &end);
    ck_assert(end.ended.complete);
    epg_policy_end_free(&end);
}
END_TEST

START_TEST(a_leftover_that_holds_the_output_does_not_hold_us)
{
    epg_policy_end end;
    epg_policy *policy = start_with("daemon(lambda: [os.write(1, b'x' * 65536) for _ in iter(int, 1)])\n"
                                    "        return 1");
    ck_assert_int_eq(epg_test_policy_act(policy, epg_span_text("N"), 30).failure, EPG_POLICY_OK);
    epg_test_policy_finish(policy, &end);
    ck_assert(end.ended.complete);
    ck_assert_uint_le(end.log.size, host.execution.limits.log_bytes + 100);
    epg_policy_end_free(&end);
}
END_TEST

START_TEST(a_kept_child_and_what_is_below_it_live_on)
{
    const char *const argv[] = {"sh", "-c", "sleep 600 & sleep 600 & wait", NULL};
    const epg_spawn spawn = {.argv = argv, .search_path = "/usr/bin:/bin", .working_directory = -1};
    epg_error err = {0};
    epg_process child;
    epg_assert_ok(epg_process_spawn(&spawn, &child, &err), &err);
    for (int i = 0; i < 3000 && epg_descendants_count(child.pid) != 2; i++) {
        (void)usleep(10000);
    }
    epg_guest_keep(host.guest, child.pid);
    epg_policy *policy = start_with("daemon(hang); return 1");
    ck_assert_int_eq(epg_test_policy_act(policy, epg_span_text("N"), 30).failure, EPG_POLICY_OK);
    epg_test_policy_finish(policy, NULL);
    ck_assert(epg_process_running(&child));
    ck_assert_uint_eq(epg_descendants_count(child.pid), 2);
    epg_guest_forget(host.guest, child.pid);
    serve_one(); /* now it is a stray */
    ck_assert(!epg_process_running(&child));
    (void)close(child.pidfd);
}
END_TEST

/* --- The Host's own processes are of the same user: they can be hit, and that is survived. --- */

START_TEST(the_fork_server_may_be_killed)
{
    epg_policy_end end;
    epg_policy *policy = start_with("os.kill(os.getppid(), 9); return 'alive'");
    EPG_AUTO_FREE char *answer = epg_test_policy_ask(policy);
    ck_assert_str_eq(answer, "alive");
    epg_test_policy_finish(policy, &end);
    ck_assert_int_eq(end.exit.code, 0);
    ck_assert_uint_gt(end.max_rss_bytes, 1000000);
    epg_policy_end_free(&end);
}
END_TEST

START_TEST(the_fork_server_and_then_the_policy_may_be_killed)
{
    epg_policy_end end;
    epg_policy *policy = start_with("os.kill(os.getppid(), 9); os.kill(os.getpid(), 9)");
    epg_policy_reply reply = epg_test_policy_act(policy, epg_span_text("N"), 30);
    expect(&reply, PROTOCOL, EPG_CAUSE_DIED);
    epg_test_policy_finish(policy, &end);
    ck_assert_int_eq(end.exit.signal, 9);
    epg_policy_end_free(&end);
}
END_TEST

START_TEST(the_spare_may_be_killed)
{
    epg_policy *policy = start_with("me, server = os.getpid(), os.getppid()\n"
                                    "        path = '/proc/%d/task/%d/children' % (server, server)\n"
                                    "        while True:\n"
                                    "            others = [int(p) for p in open(path).read().split() if int(p) != me]\n"
                                    "            for p in others:\n"
                                    "                os.kill(p, 9)\n"
                                    "                while ') Z ' not in open('/proc/%d/stat' % p).read(): pass\n"
                                    "                return 1");
    ck_assert_int_eq(epg_test_policy_act(policy, epg_span_text("N"), 30).failure, EPG_POLICY_OK);
    epg_test_policy_finish(policy, NULL);
}
END_TEST

START_TEST(a_stop_asked_for_ends_every_wait)
{
    int ends[2];
    epg_error err = {0};
    epg_policy_reply reply;
    epg_policy *policy = NULL;
    const char *source = "import time\nclass P:\n    def act(self, o):\n        time.sleep(600)\n"
                         "def make_policy(context):\n    return P()\n";
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    epg_test_guest_prepare(&host);
    epg_test_guest_start(&host, ends[0]);
    policy = epg_test_policy_begin(&host, source);
    ck_assert_int_eq(epg_test_policy_start(policy, 7, 30).failure, EPG_POLICY_OK);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    epg_assert_code(epg_policy_act(policy, epg_span_text("N"), EPG_NEVER, &reply, &err), EPG_ERR_INTERRUPTED, &err);
    epg_test_policy_finish(policy, NULL);
    epg_guest_close(host.guest);
    epg_test_guest_start(&host, ends[0]); /* its server is not up yet */
    EPG_AUTO_FREE char *path = epg_test_guest_program(&host, source);
    epg_assert_code(epg_policy_begin(host.guest, path, &policy, &err), EPG_ERR_INTERRUPTED, &err);
    epg_test_guest_close(&host);
    (void)close(ends[0]);
    (void)close(ends[1]);
}
END_TEST

START_TEST(many_episodes_leave_nothing)
{
    epg_guest_stats stats;
    for (int i = 0; i < 30; i++) {
        epg_policy *policy = start_with(i % 3 == 0   ? "return 1"
                                        : i % 3 == 1 ? "daemon(hang); return 1"
                                                     : "os._exit(1)");
        (void)epg_test_policy_act(policy, epg_span_text("N"), 30);
        epg_test_policy_finish(policy, NULL);
    }
    epg_guest_statistics(host.guest, &stats);
    ck_assert_uint_eq(stats.spawned, 0);
    ck_assert_uint_ge(stats.parked_hits, 30);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("hostile");
    TCase *tests = tcase_create("hostile");
    tcase_set_timeout(tests, 200);
    tcase_add_checked_fixture(tests, open_host, close_host);
    tcase_add_loop_test(tests, an_attack_in_act_is_told_for_what_it_is, 0, EPG_COUNT(attacks));
    tcase_add_test(tests, an_attack_while_loading_is_told_too);
    tcase_add_test(tests, a_second_answer_is_never_the_next_action);
    tcase_add_test(tests, answers_sent_ahead_are_never_actions_however_many_numbers_they_try);
    tcase_add_test(tests, a_policy_that_stops_reading_times_out);
    tcase_add_test(tests, a_policy_that_dies_while_a_child_holds_its_pipes_is_seen_to_die);
    tcase_add_test(tests, frames_flooded_during_a_slow_step_are_not_kept);
    tcase_add_test(tests, processes_left_by_a_clean_policy_are_ended);
    tcase_add_test(tests, a_process_that_forks_itself_anew_all_the_time_is_ended);
    tcase_add_test(tests, a_leftover_that_holds_the_output_does_not_hold_us);
    tcase_add_test(tests, a_kept_child_and_what_is_below_it_live_on);
    tcase_add_test(tests, the_fork_server_may_be_killed);
    tcase_add_test(tests, the_fork_server_and_then_the_policy_may_be_killed);
    tcase_add_test(tests, the_spare_may_be_killed);
    tcase_add_test(tests, many_episodes_leave_nothing);
    suite_add_tcase(suite, tests);
    TCase *stop = tcase_create("stop");
    tcase_set_timeout(stop, 200);
    tcase_add_test(stop, a_stop_asked_for_ends_every_wait);
    suite_add_tcase(suite, stop);
    return suite;
}

int main(void)
{
    (void)epg_test_python();
    return epg_test_main(make_suite());
}
