/* The bounded log of a Policy's output, against a plain copy of all that was appended. */

#include "support/support.h"
#include "system/log.h"

static void check(const epg_log *log, const char *all, size_t size, size_t half)
{
    EPG_AUTO_BUFFER expected = {0};
    EPG_AUTO_BUFFER text = {0};
    size_t kept = size <= 2 * half ? size : 2 * half;
    ck_assert_uint_eq(epg_log_dropped(log), size - kept);
    if (kept == size) {
        (void)epg_buffer_append(&expected, all, size);
    } else {
        (void)epg_buffer_append(&expected, all, half);
        (void)epg_buffer_format(&expected, "\n[%zu bytes not kept]\n", size - kept);
        (void)epg_buffer_append(&expected, all + size - half, half);
    }
    epg_log_text(log, &text);
    ck_assert(epg_span_equal(epg_buffer_span(&text), epg_buffer_span(&expected)));
}

START_TEST(head_and_tail_are_kept_whatever_the_pieces)
{
    enum { TOTAL = 300 };
    char all[TOTAL];
    for (size_t i = 0; i < TOTAL; i++) {
        all[i] = (char)('a' + i * i % 26);
    }
    for (size_t half = 0; half <= 40; half++) {
        for (size_t piece = 1; piece <= 100; piece += 7) {
            epg_log log;
            epg_log_open(&log, 2 * half);
            for (size_t at = 0; at < TOTAL;) {
                size_t size = TOTAL - at < piece ? TOTAL - at : piece;
                epg_log_append(&log, (const uint8_t *)all + at, size);
                at += size;
                check(&log, all, at, half);
            }
            epg_log_close(&log);
        }
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("log");
    TCase *tests = tcase_create("log");
    tcase_add_test(tests, head_and_tail_are_kept_whatever_the_pieces);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(make_suite());
}
