/* What the process profile bounds, to keep accidents small. */
#include <stdlib.h>
#include <string.h>

#include "support/guests.h"
#include "support/support.h"

static epg_test_guest host;

static void prepare_host(void)
{
    epg_test_guest_prepare(&host);
}

static void close_host(void)
{
    epg_test_guest_close(&host);
}

/* One act of this body. */
static epg_policy_reply act_once(const char *body, epg_policy_end *end, char **detail)
{
    EPG_AUTO_FREE char *source = epg_format("import os, tempfile\n"
                                            "class P:\n"
                                            "    def act(self, observation):\n"
                                            "        %s\n"
                                            "def make_policy(context):\n"
                                            "    return P()\n",
                                            body);
    epg_test_guest_start(&host, -1);
    epg_policy *policy = epg_test_policy_begin(&host, source);
    ck_assert_int_eq(epg_test_policy_start(policy, 7, 30).failure, EPG_POLICY_OK);
    epg_policy_reply reply = epg_test_policy_act(policy, epg_span_text("N"), 60);
    *detail = reply.detail != NULL ? epg_strdup(reply.detail) : NULL;
    epg_test_policy_finish(policy, end);
    return reply;
}

typedef struct bound {
    const char *body;
    epg_policy_cause cause;
    const char *detail;
} bound;

static const bound bounds[] = {
    {"return len(bytearray(300 << 20))", EPG_CAUSE_ACT, "MemoryError"},
    {"return len(bytearray(20 << 20))", EPG_CAUSE_NONE, NULL},
    {"kept = [os.open('/dev/null', 0) for _ in range(400)]", EPG_CAUSE_ACT, "OSError: [Errno 24]"},
    {"kept = [os.open('/dev/null', 0) for _ in range(40)]", EPG_CAUSE_NONE, NULL},
    {"tempfile.TemporaryFile('wb', 0).write(bytes(4 << 20))", EPG_CAUSE_NONE, NULL}, /* a short write */
    {"f = tempfile.TemporaryFile('wb', 0); f.write(bytes(4 << 20)); f.write(b'x')", EPG_CAUSE_ACT,
     "OSError: [Errno 27]"},
    {"while True: pass", EPG_CAUSE_DIED, "signal 24"},
};

START_TEST(a_limit_is_met_as_the_policys_own_failure)
{
    const bound *one = &bounds[_i];
    epg_policy_end end;
    char *detail = NULL;
    host.execution.limits = (epg_guest_limits){
        .memory_bytes = 200 << 20, .cpu_seconds = 1, .descriptors = 300, .file_bytes = 1 << 20, .log_bytes = 4096};
    epg_policy_reply reply = act_once(one->body, &end, &detail);
    ck_assert_msg(reply.cause == one->cause, "%s: %s", epg_policy_cause_name(reply.cause), detail);
    ck_assert_msg(one->detail == NULL || strstr(detail, one->detail) != NULL, "%s", detail);
    if (one->cause == EPG_CAUSE_DIED) {
        ck_assert_ptr_nonnull(end.killed_by);
        ck_assert_str_eq(end.killed_by, "cpu");
        ck_assert_int_gt(end.cpu_ns, 300000000); /* the kernel counts in ticks */
    }
    free(detail);
    epg_policy_end_free(&end);
}
END_TEST

START_TEST(without_limits_there_are_none)
{
    epg_policy_end end;
    char *detail = NULL;
    host.execution.limits = (epg_guest_limits){.log_bytes = 4096};
    epg_policy_reply reply = act_once("return len(bytearray(300 << 20))", &end, &detail);
    ck_assert_msg(reply.failure == EPG_POLICY_OK, "%s", detail);
    free(detail);
    epg_policy_end_free(&end);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("limits");
    TCase *tests = tcase_create("limits");
    tcase_set_timeout(tests, 200);
    tcase_add_checked_fixture(tests, prepare_host, close_host);
    tcase_add_loop_test(tests, a_limit_is_met_as_the_policys_own_failure, 0, EPG_COUNT(bounds));
    tcase_add_test(tests, without_limits_there_are_none);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    (void)epg_test_python();
    return epg_test_main(make_suite());
}
