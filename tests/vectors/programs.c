/* programs, skills: directories made as the vectors say, captured, and compared in files, sizes, digest or refusal. */
#include "vectors/vectors.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "programs/program.h"
#include "programs/skill.h"
#include "support/support.h"

/* The content of {"text": ...} or {"base64": ...}. */
static void content_of(const json_t *file, epg_buffer *out)
{
    const json_t *text = json_object_get(file, "text");
    const char *base64 = json_string_value(json_object_get(file, "base64"));
    if (json_is_string(text)) {
        (void)epg_buffer_append(out, json_string_value(text), json_string_length(text));
    } else if (base64 != NULL) {
        (void)epg_base64_decode(epg_span_text(base64), out);
    }
}

static void write_files(const char *root, const json_t *files)
{
    const char *path = NULL;
    const json_t *file = NULL;
    json_object_foreach((json_t *)(uintptr_t)files, path, file)
    {
        EPG_AUTO_BUFFER content = {0};
        content_of(file, &content);
        epg_test_write(root, path, epg_buffer_cstr(&content), content.size);
    }
}

static void write_raw_names(const char *root, const json_t *files)
{
    size_t index = 0;
    const json_t *file = NULL;
    json_array_foreach(files, index, file)
    {
        EPG_AUTO_BUFFER name = {0};
        EPG_AUTO_BUFFER content = {0};
        (void)epg_base64_decode(epg_span_text(json_string_value(json_object_get(file, "path_base64"))), &name);
        content_of(file, &content);
        epg_test_write(root, epg_buffer_cstr(&name), epg_buffer_cstr(&content), content.size);
    }
}

static void make_executable(const char *root, const json_t *paths)
{
    size_t index = 0;
    const json_t *path = NULL;
    json_array_foreach(paths, index, path)
    {
        EPG_AUTO_FREE char *whole = epg_format("%s/%s", root, json_string_value(path));
        (void)chmod(whole, 0755);
    }
}

static bool make_socket(const char *path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)stpncpy(address.sun_path, path, sizeof address.sun_path - 1);
    bool made = fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    (void)close(fd);
    return made;
}

/* "symlink NAME -> TARGET", "hard link NAME -> TARGET", "mkfifo NAME", "unix socket NAME"; false for anything else. */
static bool set_up(const char *root, const char *setup)
{
    char name[256];
    char target[256];
    if (setup == NULL) {
        return true;
    }
    if (sscanf(setup, "symlink %255s -> %255s", name, target) == 2) {
        EPG_AUTO_FREE char *path = epg_format("%s/%s", root, name);
        return symlink(target, path) == 0;
    }
    if (sscanf(setup, "hard link %255s -> %255s", name, target) == 2) {
        EPG_AUTO_FREE char *path = epg_format("%s/%s", root, name);
        EPG_AUTO_FREE char *from = epg_format("%s/%s", root, target);
        return link(from, path) == 0;
    }
    if (sscanf(setup, "mkfifo %255s", name) == 1) {
        EPG_AUTO_FREE char *path = epg_format("%s/%s", root, name);
        return mkfifo(path, 0600) == 0;
    }
    if (sscanf(setup, "unix socket %255s", name) == 1) {
        EPG_AUTO_FREE char *path = epg_format("%s/%s", root, name);
        return make_socket(path);
    }
    return false;
}

/* The directory of one vector below `parent`; false, with a failure told, when its setup isn't known. */
static bool build(const char *root, const json_t *vector, epg_vector_report *report)
{
    const char *setup = json_string_value(json_object_get(vector, "setup"));
    (void)mkdir(root, 0755);
    write_files(root, json_object_get(vector, "files"));
    write_raw_names(root, json_object_get(vector, "raw_name_files"));
    make_executable(root, json_object_get(vector, "executable_files"));
    if (!set_up(root, setup)) {
        epg_vector_fail(report, epg_vector_name(vector), "its setup can't be made: %s", setup);
        return false;
    }
    return true;
}

static bool same_files(const epg_program *program, const json_t *listed)
{
    if (program->count != json_array_size(listed)) {
        return false;
    }
    for (size_t i = 0; i < program->count; i++) {
        const char *path = json_string_value(json_array_get(listed, i));
        if (path == NULL || strcmp(path, program->files[i].path) != 0) {
            return false;
        }
    }
    return true;
}

static void judge(const json_t *vector, epg_code code, const epg_program *files, const epg_error *err,
                  epg_vector_report *report)
{
    const char *name = epg_vector_name(vector);
    if (!json_is_true(json_object_get(vector, "ok"))) {
        const char *expected = json_string_value(json_object_get(vector, "error_class"));
        bool limit = expected != NULL && strstr(expected, "Limit") != NULL;
        bool right = limit ? code == EPG_ERR_LIMIT : code == EPG_ERR_INVALID || code == EPG_ERR_LIMIT;
        right = right && (limit || strcmp(expected, "ProgramSourceError") != 0 || code == EPG_ERR_INVALID);
        epg_vector_verdict(report, name, right, "ours is %s, theirs %s", epg_code_name(code), expected);
        return;
    }
    const char *digest = json_string_value(json_object_get(vector, "digest"));
    if (code != EPG_OK) {
        epg_vector_fail(report, name, "refused: %s", err->text);
        return;
    }
    bool right = digest != NULL && strcmp(digest, files->digest) == 0 &&
                 same_files(files, json_object_get(vector, "listed_files")) &&
                 files->total_bytes == (uint64_t)json_integer_value(json_object_get(vector, "total_bytes"));
    epg_vector_verdict(report, name, right, "ours is %s of %zu files", files->digest, files->count);
}

static epg_program_limits limits_of(const json_t *vector)
{
    epg_program_limits limits = epg_program_default_limits;
    const json_t *given = json_object_get(vector, "limits");
    uint64_t number = 0;
    limits.files = epg_json_is_u64(json_object_get(given, "max_files"), &number) ? number : limits.files;
    limits.total_bytes =
        epg_json_is_u64(json_object_get(given, "max_total_bytes"), &number) ? number : limits.total_bytes;
    limits.file_bytes = epg_json_is_u64(json_object_get(given, "max_file_bytes"), &number) ? number : limits.file_bytes;
    return limits;
}

static void run_program(const json_t *vector, epg_vector_report *report)
{
    char *parent = epg_test_directory();
    EPG_AUTO_FREE char *root = epg_format("%s/program", parent);
    epg_program program = {0};
    epg_error err = {.text = ""};
    bool built = true;
    const char *name = epg_vector_name(vector);
    if (strcmp(name, "REJ-root-is-file") == 0) {
        epg_test_write_text(parent, "program", "");
    } else if (strcmp(name, "REJ-root-missing") != 0) {
        built = build(root, vector, report);
    }
    if (built) {
        epg_program_limits limits = limits_of(vector);
        epg_code code = epg_program_capture_path(root, &limits, &program, &err);
        judge(vector, code, &program, &err, report);
    }
    epg_program_free(&program);
    epg_test_directory_free(parent);
}

void epg_vectors_programs(const json_t *document, epg_vector_report *report)
{
    size_t index = 0;
    const json_t *vector = NULL;
    json_array_foreach(document, index, vector)
    {
        run_program(vector, report);
    }
}

static void run_skill(const json_t *vector, epg_vector_report *report)
{
    char *parent = epg_test_directory();
    EPG_AUTO_FREE char *root =
        epg_format("%s/%s", parent, json_string_value(json_object_get(vector, "directory_name")));
    epg_skill skill = {0};
    epg_error err = {.text = ""};
    if (build(root, vector, report)) {
        epg_code code = epg_skill_capture(root, &skill, &err);
        judge(vector, code, &skill.files, &err, report);
    }
    epg_skill_free(&skill);
    epg_test_directory_free(parent);
}

void epg_vectors_skills(const json_t *document, epg_vector_report *report)
{
    size_t index = 0;
    const json_t *vector = NULL;
    json_array_foreach(document, index, vector)
    {
        run_skill(vector, report);
    }
}
