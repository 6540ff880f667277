#include "base/clock.h"
#include "support/support.h"

START_TEST(durations_leave_room_for_half_as_much_again)
{
    ck_assert_int_eq(epg_duration_ns(0.25), 250000000);
    ck_assert_int_eq(epg_duration_ns(3e9), INT64_C(3000000000000000000));
    ck_assert_int_eq(epg_duration_ns(8.9e9), EPG_NEVER / 2);
    ck_assert_int_eq(epg_duration_ns(1e300), EPG_NEVER / 2);
}
END_TEST

START_TEST(deadlines_saturate_and_are_never_before_now)
{
    int64_t now = epg_monotonic_ns();
    ck_assert_int_eq(epg_deadline_after_ns(EPG_NEVER), EPG_NEVER);
    ck_assert_int_eq(epg_deadline_after_seconds(1e300), EPG_NEVER);
    ck_assert_int_ge(epg_deadline_after_ns(-5), now);
    ck_assert_int_ge(epg_deadline_after_seconds(-5), now);
    ck_assert_int_ge(epg_deadline_after_seconds(100), now + 100 * EPG_SECOND);
}
END_TEST

START_TEST(a_poll_waits_for_a_deadline_whole)
{
    ck_assert_int_eq(epg_poll_timeout_ms(EPG_NEVER), -1);
    ck_assert_int_eq(epg_poll_timeout_ms(epg_monotonic_ns() - 1), 0);
    int left = epg_poll_timeout_ms(epg_deadline_after_ns(1000 * EPG_SECOND + 1));
    ck_assert_int_gt(left, 0);
    ck_assert_int_le(left, 1000 * 1000 + 1);
}
END_TEST

static Suite *clock_suite(void)
{
    Suite *suite = suite_create("base clock");
    TCase *tests = tcase_create("clock");
    tcase_add_test(tests, durations_leave_room_for_half_as_much_again);
    tcase_add_test(tests, deadlines_saturate_and_are_never_before_now);
    tcase_add_test(tests, a_poll_waits_for_a_deadline_whole);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(clock_suite());
}
