#include "programs/skill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "programs/capture.h"
#include "system/files.h"
#include "system/io.h"

#define DOMAIN "evopolicygym/agent-skill/v1"
#define REQUIRED "SKILL.md"

enum { MAX_NAME = 64, MAX_SKILLS = 16, MAX_ALL_FILES = 2048, MAX_REQUIRED_BYTES = 256 * 1024 };
static const uint64_t max_all_bytes = UINT64_C(64) * 1024 * 1024;
static const epg_program_limits limits = {
    .files = 512,
    .total_bytes = UINT64_C(64) * 1024 * 1024,
    .file_bytes = UINT64_C(16) * 1024 * 1024,
};

void epg_skill_free(epg_skill *skill)
{
    free(skill->name);
    epg_program_free(&skill->files);
    *skill = (epg_skill){0};
}

static bool is_skill_name(epg_span name)
{
    bool after_dash = true;
    for (size_t i = 0; i < name.size; i++) {
        uint8_t byte = name.data[i];
        bool plain = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
        if (!plain && (byte != '-' || after_dash)) {
            return false;
        }
        after_dash = !plain;
    }
    return name.size > 0 && name.size <= MAX_NAME && !after_dash;
}

static epg_span trim(epg_span text)
{
    while (text.size > 0 && strchr(" \t\r", text.data[0]) != NULL && text.data[0] != '\0') {
        text = epg_span_of(text.data + 1, text.size - 1);
    }
    while (text.size > 0 && strchr(" \t\r", text.data[text.size - 1]) != NULL && text.data[text.size - 1] != '\0') {
        text.size--;
    }
    return text;
}

static epg_span unquote(epg_span text)
{
    bool quoted =
        text.size >= 2 && (text.data[0] == '"' || text.data[0] == '\'') && text.data[text.size - 1] == text.data[0];
    return quoted ? epg_span_of(text.data + 1, text.size - 2) : text;
}

static bool is_text(epg_span span, const char *text)
{
    return epg_span_equal(span, epg_span_text(text));
}

/* Takes one line, without its end, off the front; false at the end of the text. */
static bool take_line(epg_span *text, epg_span *line)
{
    if (text->size == 0) {
        return false;
    }
    const uint8_t *end = memchr(text->data, '\n', text->size);
    size_t size = end != NULL ? (size_t)(end - text->data) : text->size;
    size_t used = end != NULL ? size + 1 : size;
    *line = epg_span_of(text->data, size);
    *text = epg_span_of(text->data + used, text->size - used);
    return true;
}

/* The value of the one "name:" between the two "---" lines that the text starts with. */
static epg_code frontmatter_name(epg_span text, epg_span *out, epg_error *err)
{
    epg_span line = {0};
    size_t names = 0;
    if (!take_line(&text, &line) || !is_text(trim(line), "---") || line.data[0] != '-') {
        return epg_fail(err, EPG_ERR_INVALID, REQUIRED " must start with a line \"---\"");
    }
    while (take_line(&text, &line)) {
        epg_span whole = trim(line);
        if (is_text(whole, "---")) {
            return names == 1 ? EPG_OK
                              : epg_fail(err, EPG_ERR_INVALID, REQUIRED " must have one \"name:\", not %zu", names);
        }
        const uint8_t *colon = whole.size > 0 ? memchr(whole.data, ':', whole.size) : NULL;
        if (colon == NULL || !is_text(trim(epg_span_of(whole.data, (size_t)(colon - whole.data))), "name")) {
            continue;
        }
        size_t value_size = whole.size - (size_t)(colon - whole.data) - 1;
        *out = unquote(trim(epg_span_of(colon + 1, value_size)));
        names++;
    }
    return epg_fail(err, EPG_ERR_INVALID, REQUIRED " must end its first part with a line \"---\"");
}

static epg_code check_name(const epg_skill *skill, epg_error *err)
{
    const epg_program_file *file = epg_capture_find(&skill->files, REQUIRED); /* capture has seen to it */
    epg_span text = epg_buffer_span(&file->content);
    epg_span name = {0};
    if (text.size > MAX_REQUIRED_BYTES) {
        return epg_fail(err, EPG_ERR_LIMIT, REQUIRED " has more than %d bytes", MAX_REQUIRED_BYTES);
    }
    if (!epg_utf8_valid(text.data, text.size)) {
        return epg_fail(err, EPG_ERR_INVALID, REQUIRED " is not valid UTF-8");
    }
    EPG_TRY(frontmatter_name(text, &name, err));
    if (!is_skill_name(name)) {
        return epg_fail(err, EPG_ERR_INVALID,
                        "the name in " REQUIRED " must be lower-case letters and digits, joined by single \"-\", "
                        "at most %d",
                        MAX_NAME);
    }
    if (!is_text(name, skill->name)) {
        return epg_fail(err, EPG_ERR_INVALID, "the name in " REQUIRED " (%.*s) must be that of the Skill's directory",
                        (int)name.size, (const char *)name.data);
    }
    return EPG_OK;
}

static void set_digest(epg_skill *skill)
{
    epg_sha256 *hash = epg_sha256_new();
    epg_sha256_update(hash, DOMAIN, sizeof DOMAIN); /* with its NUL */
    epg_sha256_prefixed(hash, skill->name, strlen(skill->name));
    epg_sha256_be64(hash, skill->files.count);
    for (size_t i = 0; i < skill->files.count; i++) {
        const epg_program_file *file = &skill->files.files[i];
        uint8_t executable = file->executable ? 1 : 0;
        epg_sha256_prefixed(hash, file->path, strlen(file->path));
        epg_sha256_update(hash, &executable, 1);
        epg_sha256_prefixed(hash, file->content.data, file->content.size);
    }
    uint8_t result[EPG_SHA256_SIZE];
    epg_sha256_finish(hash, result);
    epg_digest_text(result, skill->files.digest);
}

static epg_code capture(const char *path, epg_skill *skill, epg_error *err)
{
    EPG_AUTO_CLOSE int directory = -1;
    EPG_TRY(epg_capture_open(path, "Skill", &directory, err));
    EPG_AUTO_FREE char *real = realpath(path, NULL); /* "." has a name too */
    const char *slash = real != NULL ? strrchr(real, '/') : NULL;
    if (slash == NULL) {
        return epg_fail_errno(err, errno, "can't resolve the Skill's path");
    }
    skill->name = epg_strdup(slash + 1);
    epg_capture_rules rules = {.what = "Skill", .required = REQUIRED, .limits = limits, .keep_executable = true};
    EPG_TRY(epg_capture_tree(directory, &rules, &skill->files, err));
    EPG_TRY(check_name(skill, err));
    set_digest(skill);
    return EPG_OK;
}

epg_code epg_skill_capture(const char *path, epg_skill *out, epg_error *err)
{
    epg_skill skill = {0};
    epg_code code = capture(path, &skill, err);
    if (code != EPG_OK) {
        epg_skill_free(&skill);
        EPG_AUTO_FREE char *shown = epg_printable(path, strlen(path));
        return epg_fail_within(err, "skill \"%s\"", shown);
    }
    *out = skill;
    return EPG_OK;
}

epg_code epg_skills_check(const epg_skill *skills, size_t count, epg_error *err)
{
    uint64_t files = 0;
    uint64_t bytes = 0;
    if (count > MAX_SKILLS) {
        return epg_fail(err, EPG_ERR_LIMIT, "%zu skills are more than the %d that a Run takes", count, MAX_SKILLS);
    }
    for (size_t i = 0; i < count; i++) {
        files += skills[i].files.count;
        bytes += skills[i].files.total_bytes;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(skills[i].name, skills[j].name) == 0) {
                return epg_fail(err, EPG_ERR_INVALID, "two skills are named \"%s\"; leave one away", skills[i].name);
            }
        }
    }
    if (files > MAX_ALL_FILES || bytes > max_all_bytes) {
        return epg_fail(err, EPG_ERR_LIMIT, "the skills hold more than %d files or %llu bytes together", MAX_ALL_FILES,
                        (unsigned long long)max_all_bytes);
    }
    return EPG_OK;
}

epg_code epg_skill_materialise(const epg_skill *skill, int directory, epg_error *err)
{
    if (epg_io_mkdir(directory, skill->name, 0700) != 0) {
        return epg_fail_errno(err, errno, "can't make the directory of skill \"%s\"", skill->name);
    }
    EPG_AUTO_CLOSE int below = -1;
    EPG_TRY(epg_dir_open(directory, skill->name, &below, err));
    return epg_capture_write(&skill->files, below, 0400, 0500, 0500, false, err);
}
