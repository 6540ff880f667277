/* Publication and retention beside an Agent that gets in the way. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "support/host.h"
#include "support/support.h"
#include "system/tree.h"

static const char policy[] = "class P:\n    def act(self, o):\n        return 1\n";
static test_host host;

static void open_host(const char *config_text)
{
    EPG_AUTO_JSON *object = NULL;
    epg_config config;
    epg_error err = {0};
    epg_config_init(&config);
    epg_assert_ok(epg_json_parse(epg_span_text(config_text), "config", &object, &err), &err);
    epg_assert_ok(epg_config_from_json(&config, object, "config", &err), &err);
    test_host_open(&host, &config, policy, NULL);
}

static void set_up(void)
{
    open_host("{\"episode_budget\":100}");
}

static void tear_down(void)
{
    test_host_close(&host);
}

static json_t *submit(void)
{
    EPG_AUTO_BUFFER request = {0};
    epg_request_submit(&request, &(epg_indices){(uint64_t[]){0, 2}, 2});
    return test_exchange(&host, epg_buffer_span(&request));
}

static void submit_well(void)
{
    EPG_AUTO_JSON *reply = submit();
    ck_assert_str_eq(test_error_code(reply), "");
}

static char *in_run(const char *path)
{
    return epg_format("%s/%s", host.path, path);
}

static void expect_mode(const char *path, mode_t expected)
{
    struct stat info;
    EPG_AUTO_FREE char *whole = in_run(path);
    ck_assert_msg(lstat(whole, &info) == 0, "%s is not there", path);
    ck_assert_msg((info.st_mode & 07777) == (expected & 07777) && (info.st_mode & S_IFMT) == (expected & S_IFMT),
                  "%s has mode %o", path, info.st_mode);
}

static void expect_same(const char *a, const char *b)
{
    EPG_AUTO_FREE char *first = epg_test_read_text(host.path, a);
    EPG_AUTO_FREE char *second = epg_test_read_text(host.path, b);
    ck_assert_msg(first != NULL && second != NULL && strcmp(first, second) == 0, "%s and %s differ", a, b);
}

static json_t *read_json(const char *path)
{
    EPG_AUTO_FREE char *text = epg_test_read_text(host.path, path);
    json_t *document = NULL;
    epg_error err = {0};
    ck_assert_msg(text != NULL, "%s is not there", path);
    epg_assert_ok(epg_json_parse(epg_span_text(text), path, &document, &err), &err);
    return document;
}

/* Whether evidence about `path` says `what`. */
static bool told(const char *path, const char *what)
{
    for (size_t i = 0; i < host.evidence.count; i++) {
        if (strcmp(host.evidence.items[i].path, path) == 0 && strstr(host.evidence.items[i].what, what) != NULL) {
            return true;
        }
    }
    return false;
}

static void expect_evidence(const char *path, const char *what)
{
    for (size_t i = 0; i < host.evidence.count && !told(path, what); i++) {
        (void)fprintf(stderr, "evidence: %s: %s\n", host.evidence.items[i].path, host.evidence.items[i].what);
    }
    ck_assert_msg(told(path, what), "nobody told that %s: %s", path, what);
}

/* All that a good publication of submission 1 leaves. */
static void expect_whole(void)
{
    static const struct {
        const char *path;
        mode_t mode;
    } entries[] = {
        {"submissions", S_IFDIR | 0700},
        {"submissions/submission-000001", S_IFDIR | 0555},
        {"submissions/submission-000001/program", S_IFDIR | 0555},
        {"submissions/submission-000001/program/policy.py", S_IFREG | 0444},
        {"submissions/submission-000001/feedback.json", S_IFREG | 0444},
        {"submissions/submission-000001/availability.json", S_IFREG | 0444},
        {"submissions/submission-000001/artifacts", S_IFDIR | 0555},
        {"submissions/submission-000001/artifacts/trace.txt", S_IFREG | 0444},
        {"submissions/submission-000001/artifacts/bulk", S_IFDIR | 0555},
        {"submissions/submission-000001/artifacts/bulk/frames.bin", S_IFREG | 0444},
        {"workspace/feedback", S_IFDIR | 0700},
        {"workspace/feedback/submissions", S_IFDIR | 0755},
        {"workspace/feedback/submissions/submission-000001", S_IFDIR | 0555},
        {"workspace/feedback/submissions/submission-000001/feedback.json", S_IFREG | 0444},
        {"workspace/feedback/submissions/submission-000001/availability.json", S_IFREG | 0444},
        {"workspace/feedback/submissions/submission-000001/artifacts/bulk/frames.bin", S_IFREG | 0444},
        {"workspace/feedback/latest.json", S_IFREG | 0444},
        {"workspace/feedback/retention.json", S_IFREG | 0444},
    };
    for (size_t i = 0; i < EPG_COUNT(entries); i++) {
        expect_mode(entries[i].path, entries[i].mode);
    }
    expect_same("submissions/submission-000001/feedback.json",
                "workspace/feedback/submissions/submission-000001/feedback.json");
    expect_same("submissions/submission-000001/artifacts/trace.txt",
                "workspace/feedback/submissions/submission-000001/artifacts/trace.txt");
    EPG_AUTO_JSON *latest = read_json("workspace/feedback/latest.json");
    ck_assert_str_eq(json_string_value(json_object_get(latest, "submission_id")), "submission-000001");
}

START_TEST(a_publication_is_whole_in_both_copies_with_exact_modes)
{
    submit_well();
    expect_whole();
    ck_assert_uint_eq(host.evidence.count, 0);
    EPG_AUTO_FREE char *text = epg_test_read_text(host.path, "submissions/submission-000001/availability.json");
    ck_assert_str_eq(text, "{\n"
                           "  \"bulk_artifacts\": [\n"
                           "    {\n"
                           "      \"available\": true,\n"
                           "      \"name\": \"bulk/frames.bin\",\n"
                           "      \"path\": \"artifacts/bulk/frames.bin\",\n"
                           "      \"sha256\": \"9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f\",\n"
                           "      \"size\": 16\n"
                           "    }\n"
                           "  ],\n"
                           "  \"bulk_status\": \"available\",\n"
                           "  \"schema\": \"evopolicygym/artifact-availability/v1\",\n"
                           "  \"submission_id\": \"submission-000001\"\n"
                           "}\n");
}
END_TEST

/* Keys and kinds of values, without the values. */
static void expect_same_shape(const json_t *ours, const json_t *theirs, const char *where)
{
    ck_assert_msg(json_typeof(ours) == json_typeof(theirs), "%s is of another kind", where);
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)theirs, key, value)
    {
        EPG_AUTO_FREE char *inside = epg_format("%s.%s", where, key);
        const json_t *member = json_object_get(ours, key);
        ck_assert_msg(member != NULL, "%s is missing", inside);
        if (strcmp(key, "content") != 0) {
            expect_same_shape(member, value, inside);
        }
    }
    ck_assert_msg(json_object_size(ours) == json_object_size(theirs), "%s has other members", where);
    if (json_array_size(ours) > 0 && json_array_size(theirs) > 0) {
        EPG_AUTO_FREE char *inside = epg_format("%s[0]", where);
        expect_same_shape(json_array_get(ours, 0), json_array_get(theirs, 0), inside);
    }
}

START_TEST(documents_have_the_shape_of_a_foreign_runs)
{
    static const char *const paths[] = {"submissions/submission-000001/feedback.json",
                                        "submissions/submission-000001/availability.json",
                                        "workspace/feedback/latest.json", "workspace/feedback/retention.json"};
    submit_well();
    for (size_t i = 0; i < EPG_COUNT(paths); i++) {
        EPG_AUTO_FREE char *path = epg_format("tests/vectors/data/sample-run/%s", paths[i]);
        EPG_AUTO_FREE char *text = epg_test_read_text(EPG_TEST_SOURCE, path);
        EPG_AUTO_JSON *theirs = json_loads(text, 0, NULL);
        EPG_AUTO_JSON *ours = read_json(paths[i]);
        expect_same_shape(ours, theirs, paths[i]);
    }
}
END_TEST

/* --- Obstacles of an Agent's making. Each is made before the first submit. --- */

static void make_submission_directory(void)
{
    epg_test_write_text(host.path, "workspace/feedback/submissions/submission-000001/feedback.json", "forged");
}

static void make_submission_link(void)
{
    EPG_AUTO_FREE char *link = in_run("workspace/feedback/submissions/submission-000001");
    ck_assert_int_eq(symlink("/", link), 0);
}

static void make_latest_directory(void)
{
    epg_test_write_text(host.path, "workspace/feedback/latest.json/x/y", "mine");
}

static void make_latest_link(void)
{
    EPG_AUTO_FREE char *target = in_run("victim");
    EPG_AUTO_FREE char *link = in_run("workspace/feedback/latest.json");
    epg_test_write_text(host.path, "victim", "untouched");
    ck_assert_int_eq(symlink(target, link), 0);
}

static void make_retention_directory(void)
{
    epg_test_write_text(host.path, "workspace/feedback/retention.json/x", "mine");
}

static void remove_feedback(void)
{
    EPG_AUTO_FREE char *submissions = in_run("workspace/feedback/submissions");
    EPG_AUTO_FREE char *feedback = in_run("workspace/feedback");
    ck_assert_int_eq(rmdir(submissions), 0);
    ck_assert_int_eq(rmdir(feedback), 0);
}

static void replace_feedback_by_link(void)
{
    EPG_AUTO_FREE char *outside = epg_format("%s/outside", host.directory);
    EPG_AUTO_FREE char *feedback = in_run("workspace/feedback");
    remove_feedback();
    ck_assert_int_eq(mkdir(outside, 0700), 0);
    ck_assert_int_eq(symlink(outside, feedback), 0);
}

static void replace_submissions_by_fifo(void)
{
    EPG_AUTO_FREE char *submissions = in_run("workspace/feedback/submissions");
    ck_assert_int_eq(rmdir(submissions), 0);
    ck_assert_int_eq(mkfifo(submissions, 0600), 0);
}

static void replace_workspace_by_file(void)
{
    EPG_AUTO_FREE char *workspace = in_run("workspace");
    EPG_AUTO_FREE char *aside = in_run("aside");
    ck_assert_int_eq(rename(workspace, aside), 0);
    ck_assert_int_eq(symlink("aside", workspace), 0);
}

static void lock_feedback(void)
{
    EPG_AUTO_FREE char *submissions = in_run("workspace/feedback/submissions");
    EPG_AUTO_FREE char *feedback = in_run("workspace/feedback");
    ck_assert_int_eq(chmod(submissions, 0500), 0);
    ck_assert_int_eq(chmod(feedback, 0000), 0);
}

static const struct {
    void (*make)(void);
    const char *path;
    const char *what;
} obstacles[] = {
    {make_submission_directory, "workspace/feedback/submissions/submission-000001", "a directory stood here; moved to"},
    {make_submission_link, "workspace/feedback/submissions/submission-000001", "a symbolic link stood here"},
    {make_latest_directory, "workspace/feedback/latest.json",
     "a directory stood here; moved to displaced/000001-latest"},
    {make_latest_link, "workspace/feedback/latest.json", "a symbolic link stood here; replaced"},
    {make_retention_directory, "workspace/feedback/retention.json", "a directory stood here"},
    {remove_feedback, "workspace/feedback", "was gone; made again"},
    {replace_feedback_by_link, "workspace/feedback", "a symbolic link stood here"},
    {replace_submissions_by_fifo, "workspace/feedback/submissions", "a special file stood here"},
    {replace_workspace_by_file, "workspace", "a symbolic link stood here"},
    {lock_feedback, "workspace/feedback", "mode"},
};

/* Publishes submission 1 straight away: some obstacles take the Agent's own Program with them. */
static void publish_directly(void)
{
    epg_error err = {0};
    epg_program program EPG_CLEANUP(epg_program_free) = {0};
    EPG_AUTO_FREE char *source = in_run("initial/program");
    epg_evaluation_result result EPG_CLEANUP(epg_evaluation_result_free) = {
        .episodes = epg_alloc_array(2, sizeof *result.episodes), .count = 2};
    epg_indices indices = {(uint64_t[]){0, 2}, 2};
    epg_assert_ok(epg_program_capture_path(source, &epg_program_default_limits, &program, &err), &err);
    epg_submission *running = epg_session_charge(&host.session, &indices, program.digest);
    result.episodes[1].index = 2;
    epg_value_put_null(&result.feedback.content);
    (void)epg_buffer_text(&epg_feedback_add(&result.feedback, "trace.txt", "text/plain", false)->content, "trace\n");
    (void)epg_buffer_text(&epg_feedback_add(&result.feedback, "bulk/frames.bin", "image/x", true)->content,
                          "0123456789abcdef");
    epg_assert_ok(epg_publish(host.publisher, running, &program, &result, &host.evidence, &err), &err);
    epg_session_published(&host.session, 0, 0);
    epg_assert_ok(epg_publish_latest(host.publisher, running, &host.evidence, &err), &err);
    epg_assert_ok(epg_retention_apply(host.retention, host.publisher, 1, &host.evidence, &err), &err);
}

START_TEST(an_obstacle_is_moved_aside_and_told)
{
    struct stat info;
    EPG_AUTO_FREE char *outside = epg_format("%s/outside", host.directory);
    obstacles[_i].make();
    publish_directly();
    expect_whole();
    expect_evidence(obstacles[_i].path, obstacles[_i].what);
    if (lstat(outside, &info) == 0) {
        ck_assert_uint_eq(info.st_nlink, 2); /* nothing was made where a link led */
    }
    EPG_AUTO_FREE char *victim = epg_test_read_text(host.path, "victim");
    ck_assert(victim == NULL || strcmp(victim, "untouched") == 0);
}
END_TEST

START_TEST(a_hundred_thousand_files_in_the_way_cost_nothing)
{
    if (access("/dev/shm", W_OK) == 0) {
        (void)setenv("TMPDIR", "/dev/shm", 1); /* so many are made sooner in memory */
    }
    set_up();
    EPG_AUTO_FREE char *base = in_run("workspace/feedback/latest.json");
    ck_assert_int_eq(mkdir(base, 0700), 0);
    int dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 100000; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%d", i);
        ck_assert_int_eq(mknodat(dir, name, S_IFREG | 0600, 0), 0);
    }
    (void)close(dir);
    publish_directly();
    expect_whole();
    expect_evidence("workspace/feedback/latest.json", "moved to displaced/000001-latest.json");
    tear_down();
}
END_TEST

START_TEST(a_submission_that_can_t_be_published_leaves_neither_copy)
{
    struct stat info;
    EPG_AUTO_FREE char *host_copy = in_run("submissions/submission-000001");
    host.fail_publication = true;
    EPG_AUTO_JSON *reply = submit();
    ck_assert_str_eq(test_error_code(reply), "publication_failed");
    ck_assert_int_ne(lstat(host_copy, &info), 0);
    EPG_AUTO_FREE char *latest = epg_test_read_text(host.path, "workspace/feedback/latest.json");
    ck_assert_ptr_null(latest);
    EPG_AUTO_FREE char *staging = in_run("staging");
    ck_assert_int_eq(lstat(staging, &info), 0);
    ck_assert_uint_eq(info.st_nlink, 2);
}
END_TEST

START_TEST(what_a_host_that_died_had_half_published_is_published_anew)
{
    /* The Host's copy was renamed into place, the Agent's was not or was too, and the ledger tells of neither. */
    epg_test_write_text(host.path, "submissions/submission-000001/feedback.json", "of before");
    epg_test_write_text(host.path, "staging/host/feedback.json", "of before");
    epg_test_write_text(host.path, "staging/agent/artifacts/x", "of before");
    if (_i == 1) {
        epg_test_write_text(host.path, "workspace/feedback/submissions/submission-000001/feedback.json", "of before");
    }
    publish_directly();
    expect_whole();
    ck_assert_uint_eq(host.evidence.count, 0);
}
END_TEST

/* --- Checking afterwards --- */

static void check_publication(void)
{
    epg_error err = {0};
    EPG_CLEANUP(epg_submission_free) epg_submission submission = {0};
    ck_assert(epg_session_recall(&host.session, 1, &submission));
    bool is_last = host.session.submission_count == 1; /* the publisher knows the hash of the last */
    epg_assert_ok(epg_publication_check(host.publisher, 1, submission.program_digest, NULL,
                                        is_last ? epg_publisher_feedback_sha256(host.publisher) : NULL, true,
                                        &host.evidence, &err),
                  &err);
}

START_TEST(what_nobody_touched_is_found_so)
{
    submit_well();
    check_publication();
    ck_assert_uint_eq(host.evidence.count, 0);
}
END_TEST

static const struct {
    const char *path; /* below the Run; NULL content removes it */
    const char *content;
    const char *told_path;
    const char *what;
} edits[] = {
    {"submissions/submission-000001/program/policy.py", "x = 1\n", "submissions/submission-000001/program",
     "does not have the digest"},
    {"submissions/submission-000001/program/more.py", "x = 1\n", "submissions/submission-000001/program",
     "does not have the digest"},
    {"submissions/submission-000001/program/policy.py", NULL, "submissions/submission-000001/program", "policy.py"},
    {"submissions/submission-000001/artifacts/trace.txt", "forged\n",
     "submissions/submission-000001/artifacts/trace.txt", "does not have the hash"},
    {"submissions/submission-000001/artifacts/trace.txt", NULL, "submissions/submission-000001/artifacts/trace.txt",
     "is gone"},
    {"submissions/submission-000001/feedback.json", "{}", "submissions/submission-000001/feedback.json",
     "does not have the hash that the ledger gives it"},
    {"submissions/submission-000001/feedback.json", NULL, "submissions/submission-000001/feedback.json",
     "feedback.json"},
    {"submissions/submission-000001/availability.json", "{", "submissions/submission-000001/availability.json", "JSON"},
    {"submissions/submission-000001/availability.json", NULL, "submissions/submission-000001/availability.json",
     "availability.json"},
    {"workspace/feedback/submissions/submission-000001/feedback.json", "{}",
     "workspace/feedback/submissions/submission-000001/feedback.json", "was edited"},
    {"workspace/feedback/submissions/submission-000001/artifacts/trace.txt", "tracE\n",
     "workspace/feedback/submissions/submission-000001/artifacts/trace.txt", "was edited"},
    {"workspace/feedback/submissions/submission-000001/artifacts/bulk/frames.bin", NULL,
     "workspace/feedback/submissions/submission-000001/artifacts/bulk/frames.bin", "was removed"},
    {"workspace/feedback/submissions/submission-000001/extra", "x",
     "workspace/feedback/submissions/submission-000001/extra", "was added"},
};

START_TEST(an_edit_after_the_fact_is_told)
{
    EPG_AUTO_FREE char *path = in_run(edits[_i].path);
    EPG_AUTO_FREE char *directory = epg_strndup(path, (size_t)(strrchr(path, '/') - path));
    submit_well();
    ck_assert_int_eq(chmod(directory, 0700), 0);
    if (access(path, F_OK) == 0) {
        ck_assert_int_eq(chmod(path, 0600), 0);
    }
    if (edits[_i].content != NULL) {
        epg_test_write_text(host.path, edits[_i].path, edits[_i].content);
    } else {
        ck_assert_int_eq(unlink(path), 0);
    }
    check_publication();
    expect_evidence(edits[_i].told_path, edits[_i].what);
    for (size_t i = 0; i < host.evidence.count; i++) { /* and nothing else is accused */
        ck_assert_msg(strcmp(host.evidence.items[i].path, edits[_i].told_path) == 0, "%s: %s",
                      host.evidence.items[i].path, host.evidence.items[i].what);
    }
}
END_TEST

START_TEST(what_may_have_been_evicted_is_not_missed_when_the_list_of_it_is_broken)
{
    static const char availability[] = "submissions/submission-000001/availability.json";
    submit_well();
    for (size_t i = 0; i < 2; i++) {
        EPG_AUTO_FREE char *folder = epg_format("%s/%s/submission-000001/artifacts/bulk", host.path,
                                                i == 0 ? "submissions" : "workspace/feedback/submissions");
        EPG_AUTO_FREE char *frames = epg_format("%s/frames.bin", folder);
        ck_assert_int_eq(chmod(folder, 0700), 0);
        ck_assert_int_eq(unlink(frames), 0);
    }
    EPG_AUTO_FREE char *folder = in_run("submissions/submission-000001");
    EPG_AUTO_FREE char *path = in_run(availability);
    ck_assert_int_eq(chmod(folder, 0700), 0);
    ck_assert_int_eq(chmod(path, 0600), 0);
    epg_test_write_text(host.path, availability, "{");
    check_publication();
    ck_assert_uint_eq(host.evidence.count, 1);
    expect_evidence(availability, "JSON");
}
END_TEST

START_TEST(a_copy_that_is_gone_is_told)
{
    epg_error err = {0};
    static const char *const copies[] = {"submissions", "workspace/feedback/submissions"};
    EPG_AUTO_FREE char *path = epg_format("%s/submission-000001", copies[_i]);
    EPG_AUTO_FREE char *parent = in_run(copies[_i]);
    submit_well();
    int dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    epg_assert_ok(epg_tree_remove(dir, "submission-000001", 0, &err), &err);
    (void)close(dir);
    check_publication();
    expect_evidence(path, "copy is gone");
}
END_TEST

/* --- Retention --- */

static void expect_file(const char *path, const char *expected)
{
    EPG_AUTO_FREE char *ours = epg_test_read_text(host.path, path);
    ck_assert_msg(ours != NULL && strcmp(ours, expected) == 0, "%s: %s", path, ours);
}

/* The recorded Run had the same artifact sizes and limit; its frames had other bytes. */
static char *sample_with_our_hash(const char *path)
{
    static const char theirs[] = "be45cb2605bf36bebde684841a28f0fd43c69850a3dce5fedba69928ee3a8991";
    static const char ours[] = "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f";
    EPG_AUTO_FREE char *whole = epg_format("tests/vectors/data/sample-run-eviction/%s", path);
    char *text = epg_test_read_text(EPG_TEST_SOURCE, whole);
    char *at = strstr(text, theirs);
    if (at != NULL) {
        memcpy(at, ours, sizeof ours - 1);
    }
    return text;
}

START_TEST(the_oldest_bulk_artifacts_go_as_in_a_foreign_run)
{
    static const char *const paths[] = {
        "submissions/submission-000001/availability.json",
        "submissions/submission-000002/availability.json",
        "submissions/submission-000003/availability.json",
        "workspace/feedback/retention.json",
        "workspace/feedback/submissions/submission-000001/availability.json",
        "workspace/feedback/submissions/submission-000002/availability.json",
        "workspace/feedback/submissions/submission-000003/availability.json",
    };
    open_host("{\"episode_budget\":100,\"bulk_feedback_retention_bytes\":70}");
    for (int i = 0; i < 3; i++) {
        submit_well();
    }
    for (size_t i = 0; i < EPG_COUNT(paths); i++) {
        EPG_AUTO_FREE char *expected = sample_with_our_hash(paths[i]);
        expect_file(paths[i], expected);
    }
    struct stat info;
    EPG_AUTO_FREE char *gone = in_run("submissions/submission-000001/artifacts/bulk/frames.bin");
    EPG_AUTO_FREE char *gone_too = in_run("workspace/feedback/submissions/submission-000001/artifacts/bulk/frames.bin");
    ck_assert_int_ne(lstat(gone, &info), 0);
    ck_assert_int_ne(lstat(gone_too, &info), 0);
    expect_mode("submissions/submission-000001", S_IFDIR | 0555);
    expect_mode("submissions/submission-000001/artifacts/bulk", S_IFDIR | 0555);
    expect_mode("submissions/submission-000001/artifacts/trace.txt", S_IFREG | 0444);
    expect_mode("submissions/submission-000002/artifacts/bulk/frames.bin", S_IFREG | 0444);
    /* What was evicted is missed by nobody. */
    check_publication();
    ck_assert_uint_eq(host.evidence.count, 0);
    test_host_close(&host);
}
END_TEST

START_TEST(the_newest_is_kept_though_it_is_over_the_limit)
{
    open_host("{\"episode_budget\":100,\"bulk_feedback_retention_bytes\":1}");
    submit_well();
    submit_well();
    EPG_AUTO_JSON *retention = read_json("workspace/feedback/retention.json");
    ck_assert(json_is_true(json_object_get(retention, "over_limit_to_preserve_latest")));
    ck_assert_int_eq(json_integer_value(json_object_get(retention, "retained_bytes_across_host_and_workspace")), 32);
    expect_mode("submissions/submission-000002/artifacts/bulk/frames.bin", S_IFREG | 0444);
    test_host_close(&host);
}
END_TEST

START_TEST(eviction_follows_no_link_out_of_a_copy)
{
    EPG_AUTO_FREE char *victim = NULL;
    open_host("{\"episode_budget\":100,\"bulk_feedback_retention_bytes\":1}");
    submit_well();
    epg_test_write_text(host.directory, "victim/frames.bin", "precious");
    victim = epg_format("%s/victim", host.directory);
    EPG_AUTO_FREE char *copy = in_run("workspace/feedback/submissions/submission-000001/artifacts");
    EPG_AUTO_FREE char *bulk = epg_format("%s/bulk", copy);
    EPG_AUTO_FREE char *aside = epg_format("%s/aside", copy);
    ck_assert_int_eq(chmod(copy, 0700), 0);
    ck_assert_int_eq(rename(bulk, aside), 0);
    ck_assert_int_eq(symlink(victim, bulk), 0);
    submit_well();
    EPG_AUTO_FREE char *kept = epg_test_read_text(host.directory, "victim/frames.bin");
    ck_assert_str_eq(kept, "precious");
    expect_evidence("workspace/feedback/submissions/submission-000001", "could not be evicted");
    test_host_close(&host);
}
END_TEST

START_TEST(retention_goes_on_from_what_is_on_disk)
{
    epg_error err = {0};
    EPG_AUTO_FREE char *before = NULL;
    open_host("{\"episode_budget\":100,\"bulk_feedback_retention_bytes\":70}");
    for (int i = 0; i < 3; i++) {
        submit_well();
    }
    before = epg_test_read_text(host.path, "workspace/feedback/retention.json");
    epg_retention_free(host.retention);
    host.retention = epg_retention_new(70);
    epg_assert_ok(epg_retention_restore(host.retention, host.publisher, 1, &err), &err);
    epg_assert_ok(epg_retention_restore(host.retention, host.publisher, 2, &err), &err);
    if (_i == 1) { /* the newest may be learned of before it is applied */
        epg_assert_ok(epg_retention_restore(host.retention, host.publisher, 3, &err), &err);
    }
    epg_assert_ok(epg_retention_apply(host.retention, host.publisher, 3, &host.evidence, &err), &err);
    expect_file("workspace/feedback/retention.json", before);
    ck_assert_uint_eq(epg_retention_bytes(host.retention), 64);
    submit_well();
    EPG_AUTO_JSON *retention = read_json("workspace/feedback/retention.json");
    ck_assert_uint_eq(json_array_size(json_object_get(retention, "evicted_submission_ids")), 2);
    test_host_close(&host);
}
END_TEST

/* Which artifacts go is read back: a list that is not the one that was written evicts nothing, and is told. */
START_TEST(nothing_is_evicted_by_a_list_that_was_altered)
{
    static const char *const edits_of_list[] = {"s/\"size\": 16/\"size\": 1/", "s/frames/others/g; s/16/17/", "2,9d",
                                                "4,$d", "$d"};
    epg_error err = {0};
    open_host("{\"episode_budget\":100,\"bulk_feedback_retention_bytes\":70}");
    submit_well();
    submit_well();
    epg_retention_free(host.retention);
    host.retention = epg_retention_new(40);
    epg_assert_ok(epg_retention_restore(host.retention, host.publisher, 1, &err), &err);
    epg_assert_ok(epg_retention_restore(host.retention, host.publisher, 2, &err), &err);
    EPG_AUTO_FREE char *before = epg_test_read_text(host.path, "workspace/feedback/retention.json");
    EPG_AUTO_FREE char *edit =
        epg_format("cd '%s/submissions/submission-000001' && chmod u+w . availability.json &&"
                   " sed -i '%s' availability.json && chmod 555 . && chmod 444 availability.json",
                   host.path, edits_of_list[_i]);
    ck_assert_int_eq(system(edit), 0);
    epg_assert_code(epg_retention_apply(host.retention, host.publisher, 2, &host.evidence, &err), EPG_ERR_PUBLICATION,
                    &err);
    ck_assert_ptr_nonnull(strstr(err.text, "availability.json"));
    ck_assert_uint_eq(epg_retention_bytes(host.retention), 64);
    expect_mode("submissions/submission-000001/artifacts/bulk/frames.bin", S_IFREG | 0444);
    expect_mode("workspace/feedback/submissions/submission-000001/artifacts/bulk/frames.bin", S_IFREG | 0444);
    expect_file("workspace/feedback/retention.json", before);
    test_host_close(&host);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("publication");
    TCase *cases = tcase_create("publication");
    TCase *own = tcase_create("with a Host of their own");
    tcase_set_timeout(cases, 120);
    tcase_set_timeout(own, 120);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, a_publication_is_whole_in_both_copies_with_exact_modes);
    tcase_add_test(cases, documents_have_the_shape_of_a_foreign_runs);
    tcase_add_loop_test(cases, an_obstacle_is_moved_aside_and_told, 0, (int)EPG_COUNT(obstacles));
    tcase_add_test(cases, a_submission_that_can_t_be_published_leaves_neither_copy);
    tcase_add_loop_test(cases, what_a_host_that_died_had_half_published_is_published_anew, 0, 2);
    tcase_add_test(cases, what_nobody_touched_is_found_so);
    tcase_add_loop_test(cases, an_edit_after_the_fact_is_told, 0, (int)EPG_COUNT(edits));
    tcase_add_test(cases, what_may_have_been_evicted_is_not_missed_when_the_list_of_it_is_broken);
    tcase_add_loop_test(cases, a_copy_that_is_gone_is_told, 0, 2);
    tcase_add_test(own, a_hundred_thousand_files_in_the_way_cost_nothing);
    tcase_add_test(own, the_oldest_bulk_artifacts_go_as_in_a_foreign_run);
    tcase_add_test(own, the_newest_is_kept_though_it_is_over_the_limit);
    tcase_add_test(own, eviction_follows_no_link_out_of_a_copy);
    tcase_add_loop_test(own, retention_goes_on_from_what_is_on_disk, 0, 2);
    tcase_add_loop_test(own, nothing_is_evicted_by_a_list_that_was_altered, 0, 5);
    suite_add_tcase(suite, cases);
    suite_add_tcase(suite, own);
    return epg_test_main(suite);
}
