#include "programs/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/capture.h"
#include "system/files.h"
#include "system/io.h"
#include "system/tree.h"

#define DOMAIN "evopolicygym/program/v1"
#define REQUIRED "policy.py"
#define ENTRY_POINT "policy.py:make_policy"
#define ABI "policy/v2"

const epg_program_limits epg_program_default_limits = {
    .files = 1000,
    .total_bytes = UINT64_C(64) * 1024 * 1024,
    .file_bytes = UINT64_C(16) * 1024 * 1024,
};

void epg_program_free(epg_program *program)
{
    for (size_t i = 0; i < program->count; i++) {
        free(program->files[i].path);
        epg_buffer_free(&program->files[i].content);
    }
    free(program->files);
    *program = (epg_program){0};
}

static void set_digest(epg_program *program)
{
    epg_sha256 *hash = epg_sha256_new();
    epg_sha256_update(hash, DOMAIN, sizeof DOMAIN); /* with its NUL */
    epg_sha256_prefixed(hash, ENTRY_POINT, strlen(ENTRY_POINT));
    epg_sha256_prefixed(hash, ABI, strlen(ABI));
    epg_sha256_be64(hash, program->count);
    for (size_t i = 0; i < program->count; i++) {
        const epg_program_file *file = &program->files[i];
        epg_sha256_prefixed(hash, file->path, strlen(file->path));
        epg_sha256_prefixed(hash, file->content.data, file->content.size);
    }
    uint8_t result[EPG_SHA256_SIZE];
    epg_sha256_finish(hash, result);
    epg_digest_text(result, program->digest);
}

epg_code epg_program_capture(int directory, const epg_program_limits *limits, epg_program *out, epg_error *err)
{
    epg_capture_rules rules = {.what = "Program", .required = REQUIRED, .limits = *limits};
    EPG_TRY(epg_capture_tree(directory, &rules, out, err));
    set_digest(out);
    return EPG_OK;
}

epg_code epg_program_capture_path(const char *path, const epg_program_limits *limits, epg_program *out, epg_error *err)
{
    EPG_AUTO_CLOSE int directory = -1;
    EPG_TRY(epg_capture_open(path, "Program", &directory, err));
    return epg_program_capture(directory, limits, out, err);
}

void epg_program_copy(const epg_program *from, epg_program *out)
{
    epg_program copy = *from;
    copy.files = epg_alloc_array(from->count, sizeof *copy.files);
    for (size_t i = 0; i < from->count; i++) {
        copy.files[i].path = epg_strdup(from->files[i].path);
        copy.files[i].executable = from->files[i].executable;
        (void)epg_buffer_append(&copy.files[i].content, from->files[i].content.data, from->files[i].content.size);
    }
    *out = copy;
}

void epg_program_pack(const epg_program *program, epg_buffer *out)
{
    (void)epg_buffer_be64(out, program->count);
    for (size_t i = 0; i < program->count; i++) {
        const epg_program_file *file = &program->files[i];
        size_t path_size = strlen(file->path);
        (void)epg_buffer_be64(out, path_size);
        (void)epg_buffer_append(out, file->path, path_size);
        (void)epg_buffer_be64(out, file->content.size);
        (void)epg_buffer_append_span(out, epg_buffer_span(&file->content));
    }
}

/* Whether a path obeys the rules of a snapshot: each component by itself, and not deeper than a tree may be. */
static const char *path_fault(epg_span path)
{
    size_t depth = 0;
    size_t start = 0;
    for (size_t i = 0; i <= path.size; i++) {
        if (i < path.size && path.data[i] != '/') {
            continue;
        }
        const char *fault = epg_capture_name_fault((const char *)path.data + start, i - start);
        if (fault != NULL) {
            return fault;
        }
        if (++depth > EPG_TREE_DEPTH) {
            return "is too deep";
        }
        start = i + 1;
    }
    return NULL;
}

/* A path can't be a file and a directory at once: no directory of `path` is a file of the Program. */
static bool is_below_file(const epg_program *program, const char *path)
{
    EPG_AUTO_FREE char *prefix = epg_strdup(path);
    for (char *slash = strrchr(prefix, '/'); slash != NULL; slash = strrchr(prefix, '/')) {
        *slash = '\0';
        if (epg_capture_find(program, prefix) != NULL) {
            return true;
        }
    }
    return false;
}

static epg_code check(const epg_program *program, const epg_program_limits *limits, epg_error *err)
{
    if (program->count > limits->files || program->total_bytes > limits->total_bytes) {
        return epg_fail(err, EPG_ERR_LIMIT, "the Program is over its limits");
    }
    for (size_t i = 0; i < program->count; i++) {
        const epg_program_file *file = &program->files[i];
        if (file->content.size > limits->file_bytes) {
            return epg_fail(err, EPG_ERR_LIMIT, "file %zu of the Program is over its limit", i);
        }
        const char *fault = path_fault(epg_span_text(file->path));
        if (fault != NULL) {
            return epg_fail(err, EPG_ERR_INVALID, "a path of file %zu of the Program %s", i, fault);
        }
        if (i > 0 && strcmp(program->files[i - 1].path, file->path) >= 0) {
            return epg_fail(err, EPG_ERR_INVALID, "file %zu of the Program is out of order", i);
        }
    }
    for (size_t i = 0; i < program->count; i++) {
        if (is_below_file(program, program->files[i].path)) {
            return epg_fail(err, EPG_ERR_INVALID, "file %zu of the Program lies below another file", i);
        }
    }
    if (epg_capture_find(program, REQUIRED) == NULL) {
        return epg_fail(err, EPG_ERR_INVALID, "the Program has no %s at its root", REQUIRED);
    }
    return EPG_OK;
}

epg_code epg_program_seal(epg_program *program, const epg_program_limits *limits, epg_error *err)
{
    EPG_TRY(check(program, limits, err));
    set_digest(program);
    return EPG_OK;
}

static bool take_u64(epg_span *from, uint64_t *out)
{
    if (from->size < 8) {
        return false;
    }
    *out = epg_read_be64(from->data);
    *from = epg_span_of(from->data + 8, from->size - 8);
    return true;
}

static bool take_bytes(epg_span *from, epg_span *out)
{
    uint64_t size = 0;
    if (!take_u64(from, &size) || size > from->size) {
        return false;
    }
    *out = epg_span_of(from->data, (size_t)size);
    *from = epg_span_of(from->data + size, from->size - (size_t)size);
    return true;
}

static epg_code unpack_files(epg_span bytes, const epg_program_limits *limits, epg_program *out, epg_error *err)
{
    enum { LEAST_FILE = 17 }; /* two lengths and one byte of path */
    uint64_t count = 0;
    if (!take_u64(&bytes, &count) || count > bytes.size / LEAST_FILE) {
        return epg_fail(err, EPG_ERR_INVALID, "a packed Program is cut off");
    }
    if (count > limits->files) {
        return epg_fail(err, EPG_ERR_LIMIT, "a packed Program holds more than %llu files",
                        (unsigned long long)limits->files);
    }
    out->files = epg_alloc_array((size_t)count, sizeof *out->files);
    for (uint64_t i = 0; i < count; i++) {
        epg_span path;
        epg_span content;
        if (!take_bytes(&bytes, &path) || !take_bytes(&bytes, &content)) {
            return epg_fail(err, EPG_ERR_INVALID, "a packed Program is cut off");
        }
        if (path.size > 0 && memchr(path.data, '\0', path.size) != NULL) {
            return epg_fail(err, EPG_ERR_INVALID, "a packed Program's path holds a NUL");
        }
        epg_program_file *file = &out->files[out->count++];
        file->path = epg_strndup((const char *)path.data, path.size);
        (void)epg_buffer_append_span(&file->content, content);
        out->total_bytes += content.size;
    }
    if (bytes.size != 0) {
        return epg_fail(err, EPG_ERR_INVALID, "bytes are left after a packed Program");
    }
    return epg_program_seal(out, limits, err);
}

epg_code epg_program_unpack(epg_span bytes, const epg_program_limits *limits, epg_program *out, epg_error *err)
{
    epg_program program = {0};
    epg_code code = unpack_files(bytes, limits, &program, err);
    if (code != EPG_OK) {
        epg_program_free(&program);
        return code;
    }
    *out = program;
    return EPG_OK;
}

typedef struct writing {
    const epg_program *program;
    unsigned file_mode;
    unsigned executable_mode;
    unsigned directory_mode;
    bool sync;
} writing;

static epg_code close_directory(const writing *self, int directory, epg_error *err)
{
    if (epg_io_fchmod(directory, self->directory_mode) != 0) {
        return epg_fail_errno(err, errno, "can't set the mode of a Program's directory");
    }
    return self->sync ? epg_dir_sync(directory, err) : EPG_OK;
}

static epg_code write_directory(const writing *self, size_t *next, size_t prefix, int directory, epg_error *err);

static epg_code enter_directory(const writing *self, size_t *next, size_t prefix, size_t name_size, int directory,
                                epg_error *err)
{
    EPG_AUTO_FREE char *name = epg_strndup(self->program->files[*next].path + prefix, name_size);
    if (epg_io_mkdir(directory, name, 0700) != 0) {
        return epg_fail_errno(err, errno, "can't make a Program's directory \"%s\"", name);
    }
    EPG_AUTO_CLOSE int below = -1;
    EPG_TRY(epg_dir_open(directory, name, &below, err));
    return write_directory(self, next, prefix + name_size + 1, below, err);
}

/* Writes the files from *next on that share the first `prefix` bytes of their paths: those of one directory lie
 * together, since "a/" sorts all that is below it into one run. */
static epg_code write_directory(const writing *self, size_t *next, size_t prefix, int directory, epg_error *err)
{
    const char *first = *next < self->program->count ? self->program->files[*next].path : "";
    while (*next < self->program->count && strncmp(self->program->files[*next].path, first, prefix) == 0) {
        const epg_program_file *file = &self->program->files[*next];
        const char *name = file->path + prefix;
        const char *slash = strchr(name, '/');
        if (slash != NULL) {
            EPG_TRY(enter_directory(self, next, prefix, (size_t)(slash - name), directory, err));
            continue;
        }
        unsigned mode = file->executable ? self->executable_mode : self->file_mode;
        EPG_TRY(epg_file_write_new(directory, name, epg_buffer_span(&file->content), mode, self->sync, err));
        ++*next;
    }
    return close_directory(self, directory, err);
}

epg_code epg_capture_write(const epg_program *program, int directory, unsigned file_mode, unsigned executable_mode,
                           unsigned directory_mode, bool sync, epg_error *err)
{
    writing self = {
        .program = program,
        .file_mode = file_mode,
        .executable_mode = executable_mode,
        .directory_mode = directory_mode,
        .sync = sync,
    };
    size_t next = 0;
    return write_directory(&self, &next, 0, directory, err);
}

epg_code epg_program_materialise(const epg_program *program, int directory, unsigned file_mode, unsigned directory_mode,
                                 bool sync, epg_error *err)
{
    return epg_capture_write(program, directory, file_mode, file_mode, directory_mode, sync, err);
}
