/* The documents of a Run against those of a foreign one: same members, same kinds, and the same text where all values
 * are given. */
#include "runs/records.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/support.h"

static char *directory;
static char *path;

static void set_up(void)
{
    directory = epg_test_directory();
    path = epg_format("%s/run", directory);
}

static void tear_down(void)
{
    free(path);
    epg_test_directory_free(directory);
}

static json_t *sample(const char *name)
{
    EPG_AUTO_FREE char *whole = epg_format("tests/vectors/data/sample-run/%s", name);
    EPG_AUTO_FREE char *text = epg_test_read_text(EPG_TEST_SOURCE, whole);
    json_t *document = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(document);
    return document;
}

static const char *text_in(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    ck_assert_msg(text != NULL, "%s is missing", key);
    return text;
}

/* --- Making up what a Run has, from the sample's own values --- */

static void make_value(const json_t *value, epg_buffer *out)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: {
        EPG_AUTO_JSON *copy = json_copy((json_t *)(uintptr_t)value);
        epg_value_put_map(out, json_object_size(copy));
        while (json_object_size(copy) > 0) { /* in the order of keys */
            const char *least = NULL;
            const char *key = NULL;
            json_t *member = NULL;
            json_object_foreach(copy, key, member)
            {
                least = least == NULL || strcmp(key, least) < 0 ? key : least;
            }
            epg_value_put_key(out, least);
            make_value(json_object_get(copy, least), out);
            (void)json_object_del(copy, least);
        }
        break;
    }
    case JSON_STRING:
        epg_value_put_text(out, json_string_value(value));
        break;
    case JSON_INTEGER:
        epg_value_put_i64(out, json_integer_value(value));
        break;
    case JSON_REAL:
        epg_value_put_float(out, json_real_value(value));
        break;
    case JSON_ARRAY:
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        ck_abort_msg("the sample has no such value");
    }
}

static void make_spec(const json_t *run, const json_t *report, epg_spec *out)
{
    const json_t *benchmark = json_object_get(run, "benchmark");
    *out = (epg_spec){.id = epg_strdup(text_in(benchmark, "id")),
                      .primary_metric = epg_strdup(text_in(report, "primary_metric")),
                      .direction = EPG_MINIMIZE};
    make_value(json_object_get(json_object_get(benchmark, "environment"), "parameters"), &out->environment_parameters);
    char digest[EPG_DIGEST_TEXT];
    epg_error err = {0};
    epg_assert_ok(epg_value_environment_digest(epg_buffer_span(&out->environment_parameters), digest, &err), &err);
    memcpy(out->environment_digest, digest, sizeof digest);
}

static void make_config(const json_t *run, epg_config *out)
{
    epg_error err = {0};
    epg_config_init(out);
    epg_assert_ok(epg_config_from_json(out, json_object_get(run, "config"), "sample", &err), &err);
    epg_assert_ok(epg_config_resolve(out, &err), &err);
}

static void make_session(const json_t *run, epg_session *session)
{
    const json_t *list = json_object_get(run, "submissions");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const json_t *numbers = json_object_get(one, "episode_indices");
        uint64_t items[16];
        epg_indices indices = {items, json_array_size(numbers)};
        for (size_t j = 0; j < indices.count; j++) {
            items[j] = (uint64_t)json_integer_value(json_array_get(numbers, j));
        }
        (void)epg_session_charge(session, &indices, text_in(one, "program_digest"));
        epg_session_published(session, json_real_value(json_object_get(one, "score")), 0);
    }
    epg_session_finish(session, (uint64_t[]){2, 1}, 2);
}

static char *read_file(const char *name)
{
    char *text = epg_test_read_text(path, name);
    ck_assert_msg(text != NULL, "%s is not there", name);
    return text;
}

static int make_run(const epg_skill *skills, size_t count)
{
    epg_error err = {0};
    epg_program program EPG_CLEANUP(epg_program_free) = {0};
    int run = -1;
    epg_test_write_text(directory, "source/policy.py", "x = 1\n");
    epg_test_write_text(directory, "source/lib/help.py", "y = 1\n");
    EPG_AUTO_FREE char *source = epg_format("%s/source", directory);
    epg_assert_ok(epg_program_capture_path(source, &epg_program_default_limits, &program, &err), &err);
    epg_assert_ok(epg_run_directory_create(path, &program, skills, count, &run, &err), &err);
    return run;
}

START_TEST(run_json_of_the_same_run_is_the_same)
{
    EPG_AUTO_JSON *theirs = sample("run.json");
    EPG_AUTO_JSON *report = sample("assessment/report.json");
    epg_spec spec EPG_CLEANUP(epg_spec_free) = {0};
    epg_config config EPG_CLEANUP(epg_config_free) = {0};
    epg_session session EPG_CLEANUP(epg_session_free) = {0};
    epg_error err = {0};
    make_spec(theirs, report, &spec);
    make_config(theirs, &config);
    epg_session_init(&session, &config);
    make_session(theirs, &session);
    const json_t *skill = json_array_get(json_object_get(theirs, "skills"), 0);
    char name[] = "tiny-skill";
    epg_skill skills[1] = {{.name = name}};
    (void)strcpy(skills[0].files.digest, text_in(skill, "digest"));
    const epg_identity identity[] = {{"provider", "command"}, {"model", "scripted"}};
    const epg_run_record record = {
        .config = &config,
        .spec = &spec,
        .session = &session,
        .identity = identity,
        .identity_count = 2,
        .agent_has_returncode = true,
        .has_validation_report = true,
        .has_assessment_report = true,
        .final_submission = 2,
        .initial_program_digest = text_in(json_object_get(theirs, "initial_program"), "digest"),
        .skills = skills,
        .skill_count = 1,
        .terminal_reason = "finished",
    };
    int run = make_run(NULL, 0);
    epg_assert_ok(epg_run_record_write(run, &record, &err), &err);
    EPG_AUTO_JSON *ours = NULL;
    epg_assert_ok(epg_run_record_read(run, &ours, &err), &err);
    /* What differs on purpose: our version, and one more member of the config. */
    ck_assert_ptr_nonnull(text_in(ours, "library_version"));
    (void)json_object_set(ours, "library_version", json_object_get(theirs, "library_version"));
    (void)json_object_del(json_object_get(ours, "config"), "agent_grace_seconds");
    EPG_AUTO_FREE char *a = json_dumps(ours, JSON_SORT_KEYS | JSON_INDENT(2));
    EPG_AUTO_FREE char *b = json_dumps(theirs, JSON_SORT_KEYS | JSON_INDENT(2));
    ck_assert_str_eq(a, b);
    (void)close(run);
}
END_TEST

START_TEST(a_run_without_an_end_has_nulls_in_its_places)
{
    EPG_AUTO_JSON *theirs = sample("run.json");
    EPG_AUTO_JSON *report = sample("assessment/report.json");
    epg_spec spec EPG_CLEANUP(epg_spec_free) = {0};
    epg_config config EPG_CLEANUP(epg_config_free) = {0};
    epg_session session EPG_CLEANUP(epg_session_free) = {0};
    EPG_AUTO_BUFFER text = {0};
    EPG_AUTO_JSON *ours = NULL;
    EPG_AUTO_JSON *host = json_pack("{s:i,s:s}", "jobs", 2, "benchmark", "cartpole");
    epg_error err = {0};
    make_spec(theirs, report, &spec);
    make_config(theirs, &config);
    config.validate = config.assess = false;
    epg_session_init(&session, &config);
    const epg_run_record record = {.config = &config,
                                   .spec = &spec,
                                   .session = &session,
                                   .agent_start_failed = true,
                                   .initial_program_digest = "sha256:x",
                                   .terminal_reason = "agent_failed",
                                   .host = host};
    epg_run_record_to_json(&record, &text);
    epg_assert_ok(epg_json_parse(epg_buffer_span(&text), "run.json", &ours, &err), &err);
    ck_assert(json_is_null(json_object_get(json_object_get(ours, "agent"), "returncode")));
    ck_assert(json_is_null(json_object_get(ours, "final_submission_id")));
    ck_assert(json_is_null(json_object_get(ours, "validation")) && json_is_null(json_object_get(ours, "assessment")));
    ck_assert(json_is_null(json_object_get(json_object_get(ours, "config"), "validation")));
    ck_assert(json_equal(json_object_get(ours, "host"), host));
    ck_assert_uint_eq(json_array_size(json_object_get(ours, "submissions")), 0);
}
END_TEST

static void make_result(const json_t *candidate, epg_candidate_result *out)
{
    *out = (epg_candidate_result){
        .number = epg_submission_number(text_in(candidate, "submission_id")),
        .score = json_real_value(json_object_get(candidate, "score")),
        .episodes = (uint64_t)json_integer_value(json_object_get(candidate, "episodes")),
        .policy_failures = (uint64_t)json_integer_value(json_object_get(candidate, "policy_failures")),
    };
    (void)strcpy(out->program_digest, text_in(candidate, "program_digest"));
    make_value(json_object_get(candidate, "feedback_content"), &out->content);
}

START_TEST(reports_of_the_same_results_are_the_same)
{
    EPG_AUTO_JSON *recorded = sample("run.json");
    EPG_AUTO_JSON *validation = sample("validation/report.json");
    EPG_AUTO_JSON *assessment = sample("assessment/report.json");
    epg_spec spec EPG_CLEANUP(epg_spec_free) = {0};
    epg_config config EPG_CLEANUP(epg_config_free) = {0};
    epg_candidate_result results[2];
    epg_candidate_result final EPG_CLEANUP(epg_candidate_result_free) = {0};
    epg_error err = {0};
    struct stat info;
    make_spec(recorded, assessment, &spec);
    make_config(recorded, &config);
    for (size_t i = 0; i < 2; i++) {
        make_result(json_array_get(json_object_get(validation, "candidates"), i), &results[i]);
    }
    make_result(assessment, &final);
    int run = make_run(NULL, 0);
    size_t selected = epg_select_candidate(results, 2, spec.direction);
    epg_assert_ok(epg_validation_report_write(run, &config, &spec, results, 2, selected, &err), &err);
    epg_assert_ok(epg_assessment_report_write(run, &config, &spec, &final, &err), &err);
    static const char *const names[] = {"validation", "assessment"};
    for (size_t i = 0; i < 2; i++) {
        EPG_AUTO_FREE char *name = epg_format("%s/report.json", names[i]);
        EPG_AUTO_FREE char *theirs_name = epg_format("tests/vectors/data/sample-run/%s", name);
        EPG_AUTO_FREE char *ours = read_file(name);
        EPG_AUTO_FREE char *theirs = epg_test_read_text(EPG_TEST_SOURCE, theirs_name);
        ck_assert_str_eq(ours, theirs);
        ck_assert_int_eq(fstatat(run, name, &info, 0), 0);
        ck_assert_uint_eq(info.st_mode & 07777, 0400);
        ck_assert_int_eq(fstatat(run, names[i], &info, 0), 0);
        ck_assert_uint_eq(info.st_mode & 07777, 0500);
        epg_candidate_result_free(&results[i]);
    }
    (void)close(run);
}
END_TEST

START_TEST(a_report_can_be_written_again)
{
    EPG_AUTO_JSON *recorded = sample("run.json");
    EPG_AUTO_JSON *assessment = sample("assessment/report.json");
    epg_spec spec EPG_CLEANUP(epg_spec_free) = {0};
    epg_config config EPG_CLEANUP(epg_config_free) = {0};
    epg_candidate_result final EPG_CLEANUP(epg_candidate_result_free) = {0};
    epg_error err = {0};
    make_spec(recorded, assessment, &spec);
    make_config(recorded, &config);
    make_result(assessment, &final);
    int run = make_run(NULL, 0);
    for (int i = 0; i < 2; i++) {
        epg_assert_ok(epg_assessment_report_write(run, &config, &spec, &final, &err), &err);
    }
    (void)close(run);
}
END_TEST

START_TEST(the_best_is_selected_then_fewer_failures_then_the_order_of_finish)
{
    static const struct {
        double scores[3];
        uint64_t failures[3];
        epg_direction direction;
        size_t selected;
    } cases[] = {
        {{1, 2, 3}, {0, 0, 9}, EPG_MAXIMIZE, 2}, {{1, 2, 3}, {9, 0, 0}, EPG_MINIMIZE, 0},
        {{2, 2, 1}, {1, 0, 0}, EPG_MAXIMIZE, 1}, {{2, 2, 2}, {1, 1, 1}, EPG_MINIMIZE, 0},
        {{2, 2, 2}, {2, 1, 1}, EPG_MAXIMIZE, 1},
    };
    for (size_t i = 0; i < EPG_COUNT(cases); i++) {
        epg_candidate_result results[3] = {0};
        for (size_t j = 0; j < 3; j++) {
            results[j].score = cases[i].scores[j];
            results[j].policy_failures = cases[i].failures[j];
        }
        ck_assert_uint_eq(epg_select_candidate(results, 3, cases[i].direction), cases[i].selected);
    }
}
END_TEST

/* --- The Run directory --- */

START_TEST(the_run_directory_is_laid_out_with_exact_modes)
{
    static const struct {
        const char *path;
        mode_t mode;
    } entries[] = {
        {".", S_IFDIR | 0700},
        {"agent", S_IFDIR | 0700},
        {"initial", S_IFDIR | 0700},
        {"initial/program", S_IFDIR | 0500},
        {"initial/program/policy.py", S_IFREG | 0400},
        {"initial/program/lib", S_IFDIR | 0500},
        {"initial/program/lib/help.py", S_IFREG | 0400},
        {"submissions", S_IFDIR | 0700},
        {"workspace", S_IFDIR | 0700},
        {"workspace/analysis", S_IFDIR | 0700},
        {"workspace/feedback", S_IFDIR | 0700},
        {"workspace/feedback/submissions", S_IFDIR | 0755},
        {"workspace/program", S_IFDIR | 0700},
        {"workspace/program/policy.py", S_IFREG | 0644},
        {"workspace/program/lib/help.py", S_IFREG | 0644},
        {"workspace/skills", S_IFDIR | 0500},
        {"workspace/skills/tiny", S_IFDIR | 0500},
        {"workspace/skills/tiny/SKILL.md", S_IFREG | 0400},
        {"workspace/skills/tiny/go.sh", S_IFREG | 0500},
    };
    epg_skill skill EPG_CLEANUP(epg_skill_free) = {0};
    epg_error err = {0};
    epg_test_write_text(directory, "tiny/SKILL.md", "---\nname: tiny\n---\n");
    epg_test_write_text(directory, "tiny/go.sh", "#!/bin/sh\n");
    EPG_AUTO_FREE char *skill_path = epg_format("%s/tiny", directory);
    EPG_AUTO_FREE char *script = epg_format("%s/go.sh", skill_path);
    ck_assert_int_eq(chmod(script, 0755), 0);
    epg_assert_ok(epg_skill_capture(skill_path, &skill, &err), &err);
    mode_t before = umask(0077); /* modes are exact whatever the umask */
    int run = make_run(&skill, 1);
    (void)umask(before);
    for (size_t i = 0; i < EPG_COUNT(entries); i++) {
        struct stat info;
        ck_assert_msg(fstatat(run, entries[i].path, &info, AT_SYMLINK_NOFOLLOW) == 0, "%s", entries[i].path);
        ck_assert_msg((info.st_mode & (S_IFMT | 07777)) == entries[i].mode, "%s has mode %o", entries[i].path,
                      info.st_mode);
    }
    epg_assert_ok(epg_run_directory_tidy(run, &err), &err);
    struct stat info;
    ck_assert_int_ne(fstatat(run, "staging", &info, 0), 0);
    (void)close(run);
}
END_TEST

/* Tries to make a Run at `where` below the test's directory. */
static epg_code try_run(const char *where, epg_error *err)
{
    epg_program program = {0};
    int run = -1;
    EPG_AUTO_FREE char *whole = epg_format("%s/%s", directory, where);
    epg_code code = epg_run_directory_create(whole, &program, NULL, 0, &run, err);
    ck_assert_int_eq(run, -1);
    return code;
}

static size_t entries_in(const char *where)
{
    size_t count = 0;
    EPG_AUTO_FREE char *command = epg_format("ls -A '%s' | wc -l", where);
    FILE *pipe = popen(command, "re");
    ck_assert_int_eq(fscanf(pipe, "%zu", &count), 1);
    (void)pclose(pipe);
    return count;
}

START_TEST(a_path_that_can_t_be_a_new_run_is_refused_and_nothing_is_left)
{
    epg_error err = {0};
    epg_test_write_text(directory, "file", "");
    epg_test_write_text(directory, "taken/x", "");
    EPG_AUTO_FREE char *dangling = epg_format("%s/dangling", directory);
    ck_assert_int_eq(symlink("nowhere", dangling), 0);
    static const char *const wrong[] = {"taken",    "file", "dangling", "missing/run",
                                        "file/run", ".",    "taken/..", "taken/."};
    for (size_t i = 0; i < EPG_COUNT(wrong); i++) {
        epg_code code = try_run(wrong[i], &err);
        ck_assert_msg(code == EPG_ERR_USAGE, "%s: %s", wrong[i], err.text);
    }
    ck_assert_uint_eq(entries_in(directory), 3);
}
END_TEST

START_TEST(a_run_that_can_t_be_made_whole_leaves_nothing)
{
    epg_error err = {0};
    epg_program program EPG_CLEANUP(epg_program_free) = {0};
    int run = -1;
    /* Two files of which one stands where the other needs a directory: laying the Program fails in the middle. */
    program.files = epg_alloc_array(2, sizeof *program.files);
    program.count = 2;
    program.files[0].path = epg_strdup("a");
    program.files[1].path = epg_strdup("a/b");
    ck_assert_int_ne(epg_run_directory_create(path, &program, NULL, 0, &run, &err), EPG_OK);
    ck_assert_uint_eq(entries_in(directory), 0);
}
END_TEST

START_TEST(only_a_run_directory_is_opened_as_one)
{
    epg_error err = {0};
    int run = -1;
    epg_assert_code(epg_run_directory_open(path, &run, &err), EPG_ERR_USAGE, &err);
    epg_test_write_text(directory, "run/other", "");
    epg_assert_code(epg_run_directory_open(path, &run, &err), EPG_ERR_USAGE, &err);
    epg_test_write_text(directory, "run/events.jsonl", "");
    epg_assert_ok(epg_run_directory_open(path, &run, &err), &err);
    (void)close(run);
}
END_TEST

START_TEST(a_record_of_another_schema_is_refused_by_name)
{
    static const char *const texts[] = {"{\"schema\":\"evopolicygym/run-record/v9\"}", "{}", "[", "{\"schema\":8}"};
    epg_error err = {0};
    json_t *document = NULL;
    epg_test_write_text(directory, "run.json", texts[_i]);
    int run = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    epg_assert_code(epg_run_record_read(run, &document, &err), EPG_ERR_INVALID, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "run.json"));
    ck_assert(_i != 0 || strstr(err.text, "v9") != NULL);
    (void)close(run);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("records");
    TCase *cases = tcase_create("records");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, run_json_of_the_same_run_is_the_same);
    tcase_add_test(cases, a_run_without_an_end_has_nulls_in_its_places);
    tcase_add_test(cases, reports_of_the_same_results_are_the_same);
    tcase_add_test(cases, a_report_can_be_written_again);
    tcase_add_test(cases, the_best_is_selected_then_fewer_failures_then_the_order_of_finish);
    tcase_add_test(cases, the_run_directory_is_laid_out_with_exact_modes);
    tcase_add_test(cases, a_path_that_can_t_be_a_new_run_is_refused_and_nothing_is_left);
    tcase_add_test(cases, a_run_that_can_t_be_made_whole_leaves_nothing);
    tcase_add_test(cases, only_a_run_directory_is_opened_as_one);
    tcase_add_loop_test(cases, a_record_of_another_schema_is_refused_by_name, 0, 4);
    suite_add_tcase(suite, cases);
    return epg_test_main(suite);
}
