/* One submission, with a Host that is killed, or a disk that fails, at each point at which it writes; then a Host that
 * goes on. The seam (system/io.h) counts points from a process's start, so every Host is a child of its own and this
 * process never writes through it. */
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runs/ledger.h"
#include "runs/publication.h"
#include "runs/records.h"
#include "runs/retention.h"
#include "support/support.h"
#include "system/io.h"

static const char digest[EPG_DIGEST_TEXT] = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

typedef struct shared {
    uint64_t begin, end; /* points of the submission in a Host that nothing befell */
    epg_code code;       /* what the Host with the fault came to */
} shared;

static char *directory;
static shared *facts;

static void need(epg_code code, const epg_error *err)
{
    if (code != EPG_OK) {
        (void)fprintf(stderr, "%s\n", err->text);
        _exit(90);
    }
}

static void make_program(epg_program *out)
{
    out->files = epg_alloc_array(1, sizeof *out->files);
    out->count = 1;
    out->files[0].path = epg_strdup("policy.py");
    (void)epg_buffer_text(&out->files[0].content, "x = 1\n");
    (void)memcpy(out->digest, digest, sizeof digest);
}

static void make_result(epg_evaluation_result *out)
{
    *out = (epg_evaluation_result){.episodes = epg_alloc_array(1, sizeof *out->episodes), .count = 1};
    out->feedback.score = 0.5;
    epg_value_put_null(&out->feedback.content);
    (void)epg_buffer_text(&epg_feedback_add(&out->feedback, "trace.txt", "text/plain", false)->content, "trace\n");
    (void)epg_buffer_text(&epg_feedback_add(&out->feedback, "bulk/a", "text/plain", true)->content, "bulk");
}

typedef struct machine {
    int run;
    epg_ledger *ledger;
    epg_publisher *publisher;
    epg_retention *retention;
    epg_session session;
    epg_config config;
    epg_program program;
} machine;

static void open_machine(machine *m, bool again)
{
    epg_error err = {0};
    EPG_AUTO_FREE char *path = epg_format("%s/run", directory);
    *m = (machine){.run = -1};
    epg_config_init(&m->config);
    need(epg_config_resolve(&m->config, &err), &err);
    epg_session_init(&m->session, &m->config);
    make_program(&m->program);
    if (again) {
        need(epg_run_directory_open(path, &m->run, &err), &err);
        need(epg_ledger_open(m->run, &m->ledger, NULL, &err), &err);
    } else {
        need(epg_run_directory_create(path, &m->program, NULL, 0, &m->run, &err), &err);
        need(epg_ledger_create(m->run, &m->ledger, &err), &err);
    }
    need(epg_publisher_open(m->run, &m->publisher, &err), &err);
    m->retention = epg_retention_new(1);
}

/* The order of writing of a Run. */
static epg_code publish_one(machine *m, bool charge, epg_error *err)
{
    epg_evidence_list evidence = {0};
    epg_evaluation_result result = {0};
    uint64_t index = m->session.submission_count;
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission *submission = epg_session_charge(&m->session, &(epg_indices){&index, 1}, digest);
    epg_submission_id(submission->number, id);
    make_result(&result);
    if (charge) {
        EPG_TRY(EPG_EVENT(m->ledger, "evaluation_started", err, epg_field_text("submission_id", id)));
        EPG_TRY(epg_ledger_sync(m->ledger, err));
    }
    EPG_TRY(epg_publish(m->publisher, submission, &m->program, &result, &evidence, err));
    if (evidence.count != 0) {
        return epg_fail(err, EPG_ERR_INTERNAL, "%s: %s", evidence.items[0].path, evidence.items[0].what);
    }
    EPG_TRY(EPG_EVENT(m->ledger, "submission_published", err, epg_field_text("submission_id", id)));
    EPG_TRY(epg_ledger_sync(m->ledger, err));
    epg_session_published(&m->session, 0.5, 0);
    EPG_TRY(epg_publish_latest(m->publisher, submission, &evidence, err));
    return epg_retention_apply(m->retention, m->publisher, submission->number, &evidence, err);
}

/* A Host that publishes two submissions (the second evicts the first one's bulk artifacts), under `fault`. */
_Noreturn static void be_host(const char *fault)
{
    machine m;
    epg_error err = {0};
    if (fault != NULL) {
        (void)setenv("EPG_IO_FAULT", fault, 1);
    }
    open_machine(&m, false);
    facts->begin = epg_io_points();
    epg_code code = publish_one(&m, true, &err);
    if (code == EPG_OK) {
        code = publish_one(&m, true, &err);
    }
    facts->end = epg_io_points();
    facts->code = code;
    _exit(0);
}

typedef struct ledger_facts {
    uint64_t started, published;
} ledger_facts;

static epg_code count_event(void *context, const epg_ledger_line *line, epg_error *err)
{
    ledger_facts *found = context;
    (void)err;
    found->started += strcmp(line->event, "evaluation_started") == 0;
    found->published += strcmp(line->event, "submission_published") == 0;
    return EPG_OK;
}

/* A Host that goes on from what is there: nothing is charged twice, and in the end all is as if nothing had happened.
 */
_Noreturn static void be_next_host(void)
{
    machine m;
    epg_error err = {0};
    ledger_facts found = {0};
    epg_evidence_list evidence = {0};
    open_machine(&m, true);
    need(epg_ledger_read(m.run, count_event, &found, NULL, NULL, NULL, &err), &err);
    for (uint64_t number = 1; number <= 2; number++) {
        if (number <= found.published) {
            uint64_t index = number - 1;
            (void)epg_session_charge(&m.session, &(epg_indices){&index, 1}, digest);
            epg_session_published(&m.session, 0.5, 0);
            need(epg_publish_latest(m.publisher, m.session.latest, &evidence, &err), &err);
            need(epg_retention_apply(m.retention, m.publisher, number, &evidence, &err), &err);
        } else {
            need(publish_one(&m, number > found.started, &err), &err);
        }
    }
    if (evidence.count != 0) {
        (void)fprintf(stderr, "%s: %s\n", evidence.items[0].path, evidence.items[0].what);
        _exit(91);
    }
    epg_ledger_close(m.ledger);
    _exit(0);
}

static int run_child(const char *fault, bool next)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (next) {
            be_next_host();
        }
        be_host(fault);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

typedef struct entry_list {
    char **lines;
    size_t count;
} entry_list;

static entry_list entries; /* nftw(3) takes no context */

/* Everything below the Run but the ledger, whose times differ, and staging. */
static int note_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    const char *name = path + strlen(directory);
    (void)type;
    (void)walk;
    if (strstr(name, "/events.jsonl") != NULL || strstr(name, "/staging") != NULL) {
        return 0;
    }
    EPG_AUTO_FREE char *content = S_ISREG(info->st_mode) ? epg_test_read_text(directory, name) : NULL;
    entries.lines = epg_grow_array(entries.lines, entries.count + 1, sizeof *entries.lines);
    entries.lines[entries.count++] = epg_format("%s %o %s", name, info->st_mode, content != NULL ? content : "");
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names, modes and contents, in one text. */
static char *picture(void)
{
    epg_buffer text = {0};
    EPG_AUTO_FREE char *path = epg_format("%s/run", directory);
    entries = (entry_list){0};
    ck_assert_int_eq(nftw(path, note_entry, 16, FTW_PHYS), 0);
    if (entries.count > 1) {
        qsort(entries.lines, entries.count, sizeof *entries.lines, by_text);
    }
    for (size_t i = 0; i < entries.count; i++) {
        (void)epg_buffer_format(&text, "%s\n", entries.lines[i]);
        free(entries.lines[i]);
    }
    free(entries.lines);
    return epg_buffer_take_text(&text);
}

static void set_up(void)
{
    /* Deaths and failures are played, none of it needs a disk: in memory a thousand Hosts take seconds. */
    if (access("/dev/shm", W_OK) == 0) {
        (void)setenv("TMPDIR", "/dev/shm", 1);
    }
    directory = epg_test_directory();
    facts = mmap(NULL, sizeof *facts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void start_over(void)
{
    epg_test_directory_free(directory);
    directory = epg_test_directory();
}

static void tear_down(void)
{
    (void)munmap(facts, sizeof *facts);
    epg_test_directory_free(directory);
}

/* What an undisturbed Host leaves, and between which points it published. */
static char *undisturbed(uint64_t *begin, uint64_t *end)
{
    ck_assert_int_eq(run_child(NULL, false), 0);
    ck_assert_int_eq(facts->code, EPG_OK);
    *begin = facts->begin;
    *end = facts->end;
    ck_assert_uint_gt(*end, *begin + 50);
    return picture();
}

/* The first line in which two pictures differ. */
static int first_difference(const char *a, const char *b)
{
    while (*a != '\0' && strcspn(a, "\n") == strcspn(b, "\n") && strncmp(a, b, strcspn(a, "\n")) == 0) {
        a += strcspn(a, "\n") + (a[strcspn(a, "\n")] != '\0');
        b += strcspn(b, "\n") + (b[strcspn(b, "\n")] != '\0');
    }
    return fprintf(stderr, "found: %.200s\nexpected: %.200s\n", a, b);
}

static void play(const char *fault, const char *expected)
{
    ck_assert_msg(run_child(NULL, true) == 0, "after %s: the next Host failed", fault);
    EPG_AUTO_FREE char *found = picture();
    ck_assert_msg(strcmp(found, expected) == 0 || first_difference(found, expected) == 0, "after %s", fault);
}

START_TEST(killed_at_any_point_it_goes_on_to_the_same_end)
{
    uint64_t begin = 0;
    uint64_t end = 0;
    EPG_AUTO_FREE char *expected = undisturbed(&begin, &end);
    for (uint64_t point = begin + 1; point <= end; point++) {
        EPG_AUTO_FREE char *fault = epg_format("%s@%llu", _i == 0 ? "kill" : "torn", (unsigned long long)point);
        start_over();
        ck_assert_int_eq(run_child(fault, false), SIGKILL);
        play(fault, expected);
    }
}
END_TEST

/* Neither copy, or both: whatever fails. */
static void check_both_or_neither(const char *fault)
{
    struct stat info;
    for (int number = 1; number <= 2; number++) {
        EPG_AUTO_FREE char *host = epg_format("%s/run/submissions/submission-%06d", directory, number);
        EPG_AUTO_FREE char *agent =
            epg_format("%s/run/workspace/feedback/submissions/submission-%06d", directory, number);
        ck_assert_msg((lstat(host, &info) == 0) == (lstat(agent, &info) == 0), "after %s: one copy of two", fault);
    }
}

START_TEST(a_call_that_fails_is_a_publication_fault_and_a_next_host_goes_on)
{
    static const char *const errors[] = {"ENOSPC", "EIO", "EMFILE"};
    uint64_t begin = 0;
    uint64_t end = 0;
    EPG_AUTO_FREE char *expected = undisturbed(&begin, &end);
    for (uint64_t point = begin + 1; point <= end; point++) {
        EPG_AUTO_FREE char *fault = epg_format("errno=%s@%llu", errors[_i], (unsigned long long)point);
        start_over();
        ck_assert_int_eq(run_child(fault, false), 0);
        ck_assert_msg(facts->code == EPG_OK || facts->code == EPG_ERR_PUBLICATION, "%s: %s", fault,
                      epg_code_name(facts->code));
        check_both_or_neither(fault);
        play(fault, expected);
    }
}
END_TEST

START_TEST(interruptions_and_short_writes_are_nothing)
{
    uint64_t begin = 0;
    uint64_t end = 0;
    EPG_AUTO_FREE char *expected = undisturbed(&begin, &end);
    EPG_AUTO_FREE char *fault =
        epg_format(_i == 0 ? "short@%llu+" : "errno=EINTR@%llu+", (unsigned long long)begin + 1);
    start_over();
    ck_assert_int_eq(run_child(fault, false), 0);
    ck_assert_int_eq(facts->code, EPG_OK);
    EPG_AUTO_FREE char *found = picture();
    ck_assert_str_eq(found, expected);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("publication faults");
    TCase *cases = tcase_create("faults");
    tcase_set_timeout(cases, 280);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_loop_test(cases, killed_at_any_point_it_goes_on_to_the_same_end, 0, 2);
    tcase_add_loop_test(cases, a_call_that_fails_is_a_publication_fault_and_a_next_host_goes_on, 0, 3);
    tcase_add_loop_test(cases, interruptions_and_short_writes_are_nothing, 0, 2);
    suite_add_tcase(suite, cases);
    return epg_test_main(suite);
}
