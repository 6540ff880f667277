#include "runs/ledger.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/support.h"

static char *directory;
static int run;

static void set_up(void)
{
    directory = epg_test_directory();
    run = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void tear_down(void)
{
    (void)close(run);
    epg_test_directory_free(directory);
}

/* A ledger of `count` events. */
static void write_events(int count)
{
    epg_ledger *ledger = NULL;
    epg_error err = {0};
    epg_assert_ok(epg_ledger_create(run, &ledger, &err), &err);
    for (int i = 0; i < count; i++) {
        epg_assert_ok(EPG_EVENT(ledger, "episode_completed", &err, epg_field_i64("z", i),
                                epg_field_text("status", "completed"), epg_field_double("reward", 0.1),
                                epg_field_null("failure"), epg_field_bool("b", true),
                                epg_field_u64("seed", UINT64_MAX)),
                      &err);
    }
    epg_assert_ok(epg_ledger_sync(ledger, &err), &err);
    epg_ledger_close(ledger);
}

typedef struct tally {
    uint64_t lines;
    uint64_t chained;
} tally;

static epg_code count_line(void *context, const epg_ledger_line *line, epg_error *err)
{
    tally *found = context;
    (void)err;
    found->lines++;
    found->chained += line->chained;
    return EPG_OK;
}

static void replace_text(char *text, const char *from, const char *to)
{
    char *at = strstr(text, from);
    ck_assert_ptr_nonnull(at);
    memcpy(at, to, strlen(to));
}

START_TEST(a_line_has_the_contracts_keys_sorted_and_the_hash_of_the_line_before)
{
    write_events(2);
    EPG_AUTO_FREE char *text = epg_test_read_text(directory, "events.jsonl");
    char *second = strchr(text, '\n');
    *second++ = '\0';
    ck_assert_int_eq(
        strncmp(text, "{\"b\":true,\"event\":\"episode_completed\",\"failure\":null,\"monotonic_ns\":", 67), 0);
    ck_assert_ptr_nonnull(strstr(text,
                                 ",\"previous\":\"0000000000000000000000000000000000000000000000000000000000000000\","
                                 "\"reward\":0.1,\"schema\":\"evopolicygym/run-event/v1\","
                                 "\"seed\":18446744073709551615,\"status\":\"completed\",\"time_unix_ns\":"));
    uint8_t hash[EPG_SHA256_SIZE];
    char hex[EPG_SHA256_HEX];
    epg_sha256_once(text, strlen(text), hash);
    epg_hex(hash, sizeof hash, hex);
    ck_assert_ptr_nonnull(strstr(second, hex));
}
END_TEST

START_TEST(the_file_is_made_once_with_its_mode)
{
    epg_ledger *ledger = NULL;
    epg_error err = {0};
    struct stat info;
    write_events(0);
    ck_assert_int_eq(fstatat(run, "events.jsonl", &info, 0), 0);
    ck_assert_uint_eq(info.st_mode & 07777, 0644);
    epg_assert_code(epg_ledger_create(run, &ledger, &err), EPG_ERR_EXISTS, &err);
}
END_TEST

START_TEST(going_on_extends_the_chain)
{
    epg_ledger *ledger = NULL;
    epg_error err = {0};
    bool torn = true;
    tally found = {0};
    uint64_t count = 0;
    char head[EPG_SHA256_HEX];
    char same[EPG_SHA256_HEX];
    write_events(3);
    epg_assert_ok(epg_ledger_open(run, &ledger, &torn, &err), &err);
    ck_assert(!torn);
    ck_assert_uint_eq(epg_ledger_count(ledger), 3);
    epg_assert_ok(EPG_EVENT(ledger, "run_finished", &err, epg_field_null("x")), &err);
    epg_ledger_head(ledger, head);
    epg_ledger_close(ledger);
    epg_assert_ok(epg_ledger_read(run, count_line, &found, &count, same, &torn, &err), &err);
    ck_assert_uint_eq(found.chained, 4);
    ck_assert_uint_eq(count, 4);
    ck_assert_str_eq(head, same);
}
END_TEST

START_TEST(a_torn_last_line_is_cut_and_told)
{
    epg_ledger *ledger = NULL;
    epg_error err = {0};
    bool torn = false;
    tally found = {0};
    write_events(2);
    EPG_AUTO_FREE char *text = epg_test_read_text(directory, "events.jsonl");
    size_t whole = strlen(text);
    EPG_AUTO_FREE char *path = epg_format("%s/events.jsonl", directory);
    ck_assert_int_eq(truncate(path, (off_t)whole - 20), 0);
    epg_assert_ok(epg_ledger_read(run, count_line, &found, NULL, NULL, &torn, &err), &err);
    ck_assert(torn);
    ck_assert_uint_eq(found.lines, 1);
    torn = false;
    epg_assert_ok(epg_ledger_open(run, &ledger, &torn, &err), &err);
    ck_assert(torn);
    ck_assert_uint_eq(epg_ledger_count(ledger), 1);
    epg_assert_ok(EPG_EVENT(ledger, "again", &err, epg_field_null("x")), &err);
    epg_ledger_close(ledger);
    found = (tally){0};
    epg_assert_ok(epg_ledger_read(run, count_line, &found, NULL, NULL, &torn, &err), &err);
    ck_assert(!torn);
    ck_assert_uint_eq(found.chained, 2);
}
END_TEST

START_TEST(an_altered_a_removed_and_an_added_line_break_the_chain)
{
    epg_ledger *ledger = NULL;
    epg_error err = {0};
    write_events(4);
    EPG_AUTO_FREE char *text = epg_test_read_text(directory, "events.jsonl");
    char *second = strchr(text, '\n') + 1;
    char *third = strchr(second, '\n') + 1;
    EPG_AUTO_FREE char *changed = NULL;
    if (_i == 0) {
        replace_text(second, "\"reward\":0.1", "\"reward\":0.9");
        changed = epg_strdup(text);
    } else if (_i == 1) {
        changed = epg_format("%.*s%s", (int)(second - text), text, third);
    } else {
        changed = epg_format("%.*s%.*s%s", (int)(third - text), text, (int)(third - second), second, third);
    }
    epg_test_write_text(directory, "events.jsonl", changed);
    epg_assert_code(epg_ledger_open(run, &ledger, NULL, &err), EPG_ERR_INVALID, &err);
    ck_assert_ptr_nonnull(strstr(err.text, _i == 1 ? "line 2" : "line 3"));
    tally found = {0};
    epg_assert_ok(epg_ledger_read(run, count_line, &found, NULL, NULL, NULL, &err), &err);
    ck_assert_uint_eq(found.lines - found.chained, 1);
}
END_TEST

START_TEST(what_is_no_ledger_is_refused)
{
    static const char *const contents[] = {"not json\n", "[1]\n", "\n"};
    epg_ledger *ledger = NULL;
    epg_error err = {0};
    epg_assert_code(epg_ledger_open(run, &ledger, NULL, &err), EPG_ERR_NOT_FOUND, &err);
    epg_test_write_text(directory, "events.jsonl", contents[_i]);
    epg_assert_code(epg_ledger_open(run, &ledger, NULL, &err), EPG_ERR_INVALID, &err);
    ck_assert_int_eq(unlinkat(run, "events.jsonl", 0), 0);
    ck_assert_int_eq(symlinkat("/dev/zero", run, "events.jsonl"), 0);
    epg_assert_code(epg_ledger_open(run, &ledger, NULL, &err), EPG_ERR_IO, &err);
}
END_TEST

START_TEST(a_line_without_an_end_is_bounded)
{
    epg_error err = {0};
    tally found = {0};
    char *path = epg_format("%s/events.jsonl", directory);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq(ftruncate(fd, 100 * 1024 * 1024), 0);
    (void)close(fd);
    free(path);
    epg_assert_code(epg_ledger_read(run, count_line, &found, NULL, NULL, NULL, &err), EPG_ERR_LIMIT, &err);
}
END_TEST

START_TEST(a_foreign_hosts_events_are_read_and_told_unchained)
{
    epg_error err = {0};
    tally found = {0};
    EPG_AUTO_FREE char *path = epg_format("%s/tests/vectors/data/sample-run", EPG_TEST_SOURCE);
    int foreign = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    epg_assert_ok(epg_ledger_read(foreign, count_line, &found, NULL, NULL, NULL, &err), &err);
    (void)close(foreign);
    ck_assert_uint_eq(found.lines, 36);
    ck_assert_uint_eq(found.chained, 0);
}
END_TEST

START_TEST(nothing_is_due_when_all_is_synced)
{
    epg_ledger *ledger = NULL;
    epg_error err = {0};
    epg_assert_ok(epg_ledger_create(run, &ledger, &err), &err);
    ck_assert_int_eq(epg_ledger_deadline(ledger), EPG_NEVER);
    epg_assert_ok(EPG_EVENT(ledger, "x", &err, epg_field_null("y")), &err);
    ck_assert_int_lt(epg_ledger_deadline(ledger), EPG_NEVER);
    epg_assert_ok(epg_ledger_sync(ledger, &err), &err);
    ck_assert_int_eq(epg_ledger_deadline(ledger), EPG_NEVER);
    epg_ledger_close(ledger);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ledger");
    TCase *cases = tcase_create("ledger");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, a_line_has_the_contracts_keys_sorted_and_the_hash_of_the_line_before);
    tcase_add_test(cases, the_file_is_made_once_with_its_mode);
    tcase_add_test(cases, going_on_extends_the_chain);
    tcase_add_test(cases, a_torn_last_line_is_cut_and_told);
    tcase_add_loop_test(cases, an_altered_a_removed_and_an_added_line_break_the_chain, 0, 3);
    tcase_add_loop_test(cases, what_is_no_ledger_is_refused, 0, 3);
    tcase_add_test(cases, a_line_without_an_end_is_bounded);
    tcase_add_test(cases, a_foreign_hosts_events_are_read_and_told_unchained);
    tcase_add_test(cases, nothing_is_due_when_all_is_synced);
    suite_add_tcase(suite, cases);
    return epg_test_main(suite);
}
