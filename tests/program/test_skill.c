/* Agent Skills: what the vectors leave open. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "programs/skill.h"
#include "support/support.h"

static char *directory;
static epg_error err;
static epg_skill skill;

static void set_up(void)
{
    directory = epg_test_directory();
    err = (epg_error){.text = ""};
    skill = (epg_skill){0};
}

static void tear_down(void)
{
    epg_skill_free(&skill);
    epg_test_directory_free(directory);
}

static epg_code capture(const char *name)
{
    EPG_AUTO_FREE char *path = epg_format("%s/%s", directory, name);
    return epg_skill_capture(path, &skill, &err);
}

static const struct {
    const char *text;
    epg_code code;
} heads[] = {
    {"---\r\nname: s\r\n---\r\n", EPG_OK},
    {"---\nname: \"s\"\ntitle: name: other\n---\nname: later\n", EPG_OK},
    {"---\nname:\n---\n", EPG_ERR_INVALID},
    {"---\nname: 's\"\n---\n", EPG_ERR_INVALID},
    {"---\nname: S\n---\n", EPG_ERR_INVALID},
    {"---\nname: t\n---\n", EPG_ERR_INVALID},
    {"---\ndescription: d\n---\n", EPG_ERR_INVALID},
    {"\n---\nname: s\n---\n", EPG_ERR_INVALID},
    {"\xef\xbb\xbf---\nname: s\n---\n", EPG_ERR_INVALID},
    {"", EPG_ERR_INVALID},
};

START_TEST(the_head_of_skill_md_is_checked)
{
    epg_test_write_text(directory, "s/SKILL.md", heads[_i].text);
    epg_assert_code(capture("s"), heads[_i].code, &err);
    if (heads[_i].code == EPG_OK) {
        ck_assert_str_eq(skill.name, "s");
    }
}
END_TEST

static const char *const bad_names[] = {"a--b", "-a", "a-", "A", "a_b", "a.b"};

START_TEST(bad_names_are_refused_though_they_agree)
{
    EPG_AUTO_FREE char *path = epg_format("%s/SKILL.md", bad_names[_i]);
    EPG_AUTO_FREE char *text = epg_format("---\nname: %s\n---\n", bad_names[_i]);
    epg_test_write_text(directory, path, text);
    epg_assert_code(capture(bad_names[_i]), EPG_ERR_INVALID, &err);
}
END_TEST

START_TEST(skill_md_has_a_limit_of_its_own)
{
    enum { LIMIT = 256 * 1024 };
    EPG_AUTO_FREE char *text = epg_alloc(LIMIT + 2);
    memset(text, 'x', LIMIT + 1);
    static const char head[] = "---\nname: s\n---\n";
    memcpy(text, head, sizeof head - 1);
    epg_test_write(directory, "s/SKILL.md", text, LIMIT);
    epg_assert_ok(capture("s"), &err);
    epg_skill_free(&skill);
    epg_test_write(directory, "s/SKILL.md", text, LIMIT + 1);
    epg_assert_code(capture("s"), EPG_ERR_LIMIT, &err);
}
END_TEST

START_TEST(at_most_512_files)
{
    epg_test_write_text(directory, "s/SKILL.md", "---\nname: s\n---\n");
    for (int i = 0; i < 511; i++) {
        EPG_AUTO_FREE char *path = epg_format("s/%d", i);
        epg_test_write_text(directory, path, "");
    }
    epg_assert_ok(capture("s"), &err);
    epg_skill_free(&skill);
    epg_test_write_text(directory, "s/one-more", "");
    epg_assert_code(capture("s"), EPG_ERR_LIMIT, &err);
}
END_TEST

START_TEST(a_skill_named_by_a_dot_has_its_directorys_name)
{
    epg_test_write_text(directory, "s/SKILL.md", "---\nname: s\n---\n");
    epg_assert_ok(capture("s/."), &err);
    ck_assert_str_eq(skill.name, "s");
}
END_TEST

START_TEST(a_run_takes_so_many_skills_and_no_more)
{
    enum { MOST = 16 };
    epg_skill skills[MOST + 1] = {0};
    for (size_t i = 0; i < EPG_COUNT(skills); i++) {
        skills[i].name = epg_format("s%zu", i);
        skills[i].files.count = 128;
        skills[i].files.total_bytes = 4 * 1024 * 1024;
    }
    epg_assert_ok(epg_skills_check(skills, MOST, &err), &err);
    epg_assert_code(epg_skills_check(skills, MOST + 1, &err), EPG_ERR_LIMIT, &err);
    skills[3].files.count++;
    epg_assert_code(epg_skills_check(skills, MOST, &err), EPG_ERR_LIMIT, &err);
    skills[3].files.count--;
    skills[3].files.total_bytes++;
    epg_assert_code(epg_skills_check(skills, MOST, &err), EPG_ERR_LIMIT, &err);
    skills[3].files.total_bytes--;
    free(skills[3].name);
    skills[3].name = epg_strdup("s5");
    epg_assert_code(epg_skills_check(skills, MOST, &err), EPG_ERR_INVALID, &err);
    for (size_t i = 0; i < EPG_COUNT(skills); i++) {
        free(skills[i].name);
    }
}
END_TEST

static void assert_mode(const char *path, mode_t mode)
{
    EPG_AUTO_FREE char *whole = epg_format("%s/%s", directory, path);
    struct stat info;
    ck_assert_int_eq(lstat(whole, &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777U, mode);
}

START_TEST(a_skill_is_laid_out_read_only)
{
    epg_test_write_text(directory, "s/SKILL.md", "---\nname: s\n---\n");
    epg_test_write_text(directory, "s/bin/run.sh", "#!/bin/sh\n");
    EPG_AUTO_FREE char *script = epg_format("%s/s/bin/run.sh", directory);
    EPG_AUTO_FREE char *target = epg_format("%s/skills", directory);
    ck_assert_int_eq(chmod(script, 0755), 0);
    ck_assert_int_eq(mkdir(target, 0700), 0);
    epg_assert_ok(capture("s"), &err);
    int fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    epg_assert_ok(epg_skill_materialise(&skill, fd, &err), &err);
    ck_assert_int_eq(close(fd), 0);
    assert_mode("skills/s", 0500);
    assert_mode("skills/s/SKILL.md", 0400);
    assert_mode("skills/s/bin", 0500);
    assert_mode("skills/s/bin/run.sh", 0500);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("skill");
    TCase *tests = tcase_create("skill");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, the_head_of_skill_md_is_checked, 0, (int)EPG_COUNT(heads));
    tcase_add_loop_test(tests, bad_names_are_refused_though_they_agree, 0, (int)EPG_COUNT(bad_names));
    tcase_add_test(tests, skill_md_has_a_limit_of_its_own);
    tcase_add_test(tests, at_most_512_files);
    tcase_add_test(tests, a_skill_named_by_a_dot_has_its_directorys_name);
    tcase_add_test(tests, a_run_takes_so_many_skills_and_no_more);
    tcase_add_test(tests, a_skill_is_laid_out_read_only);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
