/* Progress never holds a Run up, whoever reads it. */
#include "runs/progress.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "support/support.h"

static size_t fill(int fd)
{
    char bytes[1024];
    size_t size = 0;
    ssize_t wrote = 0;
    memset(bytes, 'x', sizeof bytes);
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while ((wrote = write(fd, bytes, sizeof bytes)) > 0) {
        size += (size_t)wrote;
    }
    ck_assert_int_eq(fcntl(fd, F_SETFL, 0), 0);
    return size;
}

/* With the write end as stderr, which is given back after. */
static void tell(int as_stderr, epg_progress *progress, const char *text, int times)
{
    int kept = dup(STDERR_FILENO);
    ck_assert_int_ge(kept, 0);
    ck_assert_int_eq(dup2(as_stderr, STDERR_FILENO), STDERR_FILENO);
    for (int i = 0; i < times; i++) {
        epg_progress_line(progress, "event", "%s", text);
    }
    (void)dup2(kept, STDERR_FILENO);
    (void)close(kept);
}

START_TEST(a_reader_that_stops_does_not_stop_the_run)
{
    int ends[2];
    epg_progress progress;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    epg_progress_open(&progress, EPG_PROGRESS_PLAIN);
    size_t left = fill(ends[1]);
    tell(ends[1], &progress, "lost", 1000); /* comes back at all, and waits for the first line only */
    while (left > 0) {
        char bytes[4096];
        ssize_t got = read(ends[0], bytes, left < sizeof bytes ? left : sizeof bytes);
        ck_assert_int_gt(got, 0);
        left -= (size_t)got;
    }
    tell(ends[1], &progress, "told again", 1);
    char line[256] = "";
    ck_assert_int_gt(read(ends[0], line, sizeof line - 1), 0);
    ck_assert_ptr_nonnull(strstr(line, "told again"));
    ck_assert_ptr_null(strstr(line, "lost"));
    epg_progress_close(&progress);
    (void)close(ends[0]);
    (void)close(ends[1]);
}
END_TEST

START_TEST(lines_stay_within_eighty_columns_and_lose_nothing)
{
    int ends[2];
    epg_progress progress;
    char told[4096] = "";
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    epg_progress_open(&progress, EPG_PROGRESS_PLAIN);
    tell(ends[1], &progress,
         "submission-000061: score -1234.56 (best -1234.56), 1000 of 1000 Episodes failed, budget left 999999", 1);
    ck_assert_int_gt(read(ends[0], told, sizeof told - 1), 0);
    ck_assert_ptr_nonnull(strstr(told, "  submission-000061: score"));
    ck_assert_ptr_nonnull(strstr(told, "1000\n            Episodes failed, budget left 999999\n"));
    for (const char *line = told; *line != '\0'; line += strcspn(line, "\n") + 1) {
        ck_assert_uint_le(strcspn(line, "\n"), 80);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
}
END_TEST

START_TEST(episodes_are_told_with_what_failed)
{
    EPG_AUTO_FREE char *one = epg_progress_episodes(1, 0);
    EPG_AUTO_FREE char *many = epg_progress_episodes(20, 0);
    EPG_AUTO_FREE char *some = epg_progress_episodes(20, 3);
    ck_assert_str_eq(one, "1 Episode");
    ck_assert_str_eq(many, "20 Episodes");
    ck_assert_str_eq(some, "3 of 20 Episodes failed");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("progress");
    TCase *cases = tcase_create("progress");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_reader_that_stops_does_not_stop_the_run);
    tcase_add_test(cases, lines_stay_within_eighty_columns_and_lose_nothing);
    tcase_add_test(cases, episodes_are_told_with_what_failed);
    suite_add_tcase(suite, cases);
    return epg_test_main(suite);
}
