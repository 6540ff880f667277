#include "programs/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utf8proc.h>

#include "base/text.h"
#include "system/tree.h"

/* Entries of every kind, so that a tree of directories and excluded files, which no limit counts, ends too. */
enum { MAX_ENTRIES = 100000 };

typedef struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
    struct timespec changed; /* an mtime can be set back by whoever writes; this one can't */
} stamp;

typedef struct capture {
    const epg_capture_rules *rules;
    epg_program files; /* in the order of the walk until it is done */
    stamp *stamps;     /* one a file, in the order of the walk */
    size_t capacity;
    size_t compared; /* by the second walk */
    size_t entries;
} capture;

typedef enum kind { KIND_FILE, KIND_DIRECTORY, KIND_EXCLUDED } kind;

static stamp stamp_of(const struct stat *info)
{
    return (stamp){info->st_dev, info->st_ino, info->st_size, info->st_mtim, info->st_ctim};
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_stamp(const stamp *a, const stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           same_time(a->modified, b->modified) && same_time(a->changed, b->changed);
}

static bool is_nfc(const char *name, size_t size)
{
    bool ascii = true;
    for (size_t i = 0; i < size; i++) {
        ascii = ascii && ((unsigned char)name[i] & 0x80U) == 0;
    }
    if (ascii) {
        return true;
    }
    utf8proc_uint8_t *composed = NULL;
    utf8proc_ssize_t length = utf8proc_map((const utf8proc_uint8_t *)name, (utf8proc_ssize_t)size, &composed,
                                           UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    bool same = length >= 0 && (size_t)length == size && memcmp(composed, name, size) == 0;
    free(composed);
    return same;
}

const char *epg_capture_name_fault(const char *name, size_t size)
{
    if (size == 0) {
        return "is empty";
    }
    if ((size == 1 && name[0] == '.') || (size == 2 && name[0] == '.' && name[1] == '.')) {
        return "is \".\" or \"..\"";
    }
    if (memchr(name, '/', size) != NULL || memchr(name, '\0', size) != NULL) {
        return "holds a slash or a NUL";
    }
    if (memchr(name, '\\', size) != NULL) {
        return "holds a backslash";
    }
    if (!epg_utf8_valid(name, size)) {
        return "is not valid UTF-8";
    }
    return is_nfc(name, size) ? NULL : "is not in Unicode normal form C";
}

static epg_code refuse(epg_error *err, epg_code code, const capture *self, const char *path, const char *rule)
{
    EPG_AUTO_FREE char *shown = epg_printable(path, strlen(path));
    return epg_fail(err, code, "%s file \"%s\" %s", self->rules->what, shown, rule);
}

static epg_code changed(epg_error *err, const capture *self, const char *path)
{
    return refuse(err, EPG_ERR_CHANGED, self, path, "changed while it was captured; submit when nothing writes to it");
}

bool epg_capture_excludes(const char *name, bool is_directory)
{
    return is_directory ? strcmp(name, ".git") == 0 || strcmp(name, "__pycache__") == 0 : epg_ends_with(name, ".pyc");
}

/* Tells what an entry is to a snapshot. Excluded names obey the rules for names and kinds like any other. */
static epg_code classify(const capture *self, const epg_tree_entry *entry, kind *out, epg_error *err)
{
    const char *fault = epg_capture_name_fault(entry->name, strlen(entry->name));
    if (fault != NULL) {
        EPG_AUTO_FREE char *rule = epg_format("has a name that %s", fault);
        return refuse(err, EPG_ERR_INVALID, self, entry->path, rule);
    }
    if (S_ISLNK(entry->info.st_mode)) {
        return refuse(err, EPG_ERR_INVALID, self, entry->path, "is a symbolic link; put the file itself there");
    }
    if (S_ISDIR(entry->info.st_mode)) {
        *out = epg_capture_excludes(entry->name, true) ? KIND_EXCLUDED : KIND_DIRECTORY;
        return EPG_OK;
    }
    if (!S_ISREG(entry->info.st_mode)) {
        return refuse(err, EPG_ERR_INVALID, self, entry->path, "is neither a regular file nor a directory");
    }
    *out = epg_capture_excludes(entry->name, false) ? KIND_EXCLUDED : KIND_FILE;
    return EPG_OK;
}

/* Why a file that was listed can't be opened: it is gone or another one now, its owner forbids it, or the Host fails.
 */
static epg_code open_failed(const capture *self, const char *path, int error, epg_error *err)
{
    switch (error) {
    case ENOENT:
    case ELOOP:
    case ENOTDIR:
    case ENXIO:
    case EWOULDBLOCK: /* a lease is held on it: its holder would be asked, and waited for */
        return changed(err, self, path);
    case EACCES:
    case EPERM:
        return refuse(err, EPG_ERR_INVALID, self, path, "can't be read: give its owner permission to read it");
    default: {
        EPG_AUTO_FREE char *shown = epg_printable(path, strlen(path));
        return epg_fail_errno(err, error, "can't open %s file \"%s\"", self->rules->what, shown);
    }
    }
}

static epg_code check_limits(const capture *self, const epg_tree_entry *entry, epg_error *err)
{
    const epg_program_limits *limits = &self->rules->limits;
    uint64_t size = (uint64_t)entry->info.st_size;
    if (self->files.count >= limits->files) {
        return epg_fail(err, EPG_ERR_LIMIT, "the %s holds more than %llu files", self->rules->what,
                        (unsigned long long)limits->files);
    }
    if (size > limits->file_bytes) {
        EPG_AUTO_FREE char *rule = epg_format("has %llu bytes, more than the %llu that a file may have",
                                              (unsigned long long)size, (unsigned long long)limits->file_bytes);
        return refuse(err, EPG_ERR_LIMIT, self, entry->path, rule);
    }
    if (size > limits->total_bytes - self->files.total_bytes) {
        return epg_fail(err, EPG_ERR_LIMIT, "the %s holds more than %llu bytes", self->rules->what,
                        (unsigned long long)limits->total_bytes);
    }
    return EPG_OK;
}

/* Reads exactly the `size` bytes that the file had when it was listed; one more or one less is a change. */
static epg_code read_whole(const capture *self, int fd, const char *path, size_t size, epg_buffer *out, epg_error *err)
{
    (void)epg_buffer_reserve(out, size + 1);
    for (;;) {
        ssize_t got = read(fd, epg_buffer_reserve(out, size + 1 - out->size), size + 1 - out->size);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            EPG_AUTO_FREE char *shown = epg_printable(path, strlen(path));
            return epg_fail_errno(err, errno, "can't read %s file \"%s\"", self->rules->what, shown);
        }
        out->size += (size_t)got;
        if (out->size > size || (got == 0 && out->size < size)) {
            return changed(err, self, path);
        }
        if (got == 0) {
            out->data[size] = '\0';
            return EPG_OK;
        }
    }
}

static bool unchanged(int fd, const stamp *listed)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    stamp now = stamp_of(&info);
    return same_stamp(&now, listed);
}

static void keep_file(capture *self, const epg_tree_entry *entry, const stamp *listed, epg_buffer *content)
{
    if (self->files.count == self->capacity) {
        self->capacity = self->capacity == 0 ? 16 : self->capacity * 2;
        self->files.files = epg_grow_array(self->files.files, self->capacity, sizeof *self->files.files);
        self->stamps = epg_grow_array(self->stamps, self->capacity, sizeof *self->stamps);
    }
    self->stamps[self->files.count] = *listed;
    self->files.files[self->files.count++] = (epg_program_file){
        .path = epg_strdup(entry->path),
        .content = *content,
        .executable = self->rules->keep_executable && (entry->info.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0,
    };
    self->files.total_bytes += content->size;
    *content = (epg_buffer){0};
}

static epg_code capture_file(capture *self, const epg_tree_entry *entry, epg_error *err)
{
    EPG_TRY(check_limits(self, entry, err));
    EPG_AUTO_CLOSE int fd = openat(entry->dir, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return open_failed(self, entry->path, errno, err);
    }
    stamp listed = stamp_of(&entry->info);
    if (!unchanged(fd, &listed)) {
        return changed(err, self, entry->path);
    }
    EPG_AUTO_BUFFER content = {0};
    EPG_TRY(read_whole(self, fd, entry->path, (size_t)entry->info.st_size, &content, err));
    if (!unchanged(fd, &listed)) {
        return changed(err, self, entry->path);
    }
    keep_file(self, entry, &listed, &content);
    return EPG_OK;
}

static epg_code compare_file(capture *self, const epg_tree_entry *entry, epg_error *err)
{
    stamp now = stamp_of(&entry->info);
    size_t at = self->compared;
    if (at >= self->files.count || strcmp(self->files.files[at].path, entry->path) != 0 ||
        !same_stamp(&self->stamps[at], &now)) {
        return changed(err, self, entry->path);
    }
    self->compared++;
    return EPG_OK;
}

typedef epg_code take_file(capture *self, const epg_tree_entry *entry, epg_error *err);

static epg_tree_step visit(capture *self, const epg_tree_entry *entry, take_file *take, epg_code *code, epg_error *err)
{
    kind what = KIND_FILE;
    *code = EPG_OK;
    if (++self->entries > MAX_ENTRIES) {
        *code = epg_fail(err, EPG_ERR_LIMIT, "the %s's directory holds more than %d entries", self->rules->what,
                         MAX_ENTRIES);
        return EPG_TREE_STOP;
    }
    *code = classify(self, entry, &what, err);
    if (*code == EPG_OK && what == KIND_FILE) {
        *code = take(self, entry, err);
    }
    if (*code != EPG_OK) {
        return EPG_TREE_STOP;
    }
    return what == KIND_EXCLUDED ? EPG_TREE_SKIP : EPG_TREE_CONTINUE;
}

static epg_tree_step capture_visit(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    return visit(context, entry, capture_file, code, err);
}

static epg_tree_step compare_visit(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    return visit(context, entry, compare_file, code, err);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const epg_program_file *)a)->path, ((const epg_program_file *)b)->path);
}

/* An unreadable directory is its owner's doing, a vanished one too; a failing disk is not. */
static epg_code walk(int directory, epg_tree_visit *visitor, capture *self, epg_error *err)
{
    epg_error local = {.text = ""};
    epg_error *told = err != NULL ? err : &local;
    epg_code code = epg_tree_walk(directory, visitor, self, told);
    if (code != EPG_ERR_IO) {
        return code;
    }
    switch (told->sys_errno) {
    case EACCES:
    case EPERM:
        return epg_fail_as(told, EPG_ERR_INVALID, "the %s can't be read", self->rules->what);
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
        return epg_fail_as(told, EPG_ERR_CHANGED, "the %s changed while it was captured", self->rules->what);
    default:
        return code;
    }
}

/* Once the files are read, whatever the second walk stumbles over is new. */
static epg_code walk_again(int directory, capture *self, epg_error *err)
{
    self->entries = 0;
    epg_code code = walk(directory, compare_visit, self, err);
    if (code == EPG_ERR_INVALID || code == EPG_ERR_LIMIT) {
        return epg_fail_as(err, EPG_ERR_CHANGED, "the %s changed while it was captured", self->rules->what);
    }
    EPG_TRY(code);
    if (self->compared < self->files.count) {
        return changed(err, self, self->files.files[self->compared].path);
    }
    return EPG_OK;
}

static epg_code capture_all(int directory, capture *self, epg_error *err)
{
    EPG_TRY(walk(directory, capture_visit, self, err));
    EPG_TRY(walk_again(directory, self, err));
    if (self->files.count > 0) {
        qsort(self->files.files, self->files.count, sizeof *self->files.files, compare_paths);
    }
    if (epg_capture_find(&self->files, self->rules->required) == NULL) {
        return epg_fail(err, EPG_ERR_INVALID, "the %s has no %s at its root: add one", self->rules->what,
                        self->rules->required);
    }
    return EPG_OK;
}

epg_code epg_capture_tree(int directory, const epg_capture_rules *rules, epg_program *out, epg_error *err)
{
    capture self = {.rules = rules};
    epg_code code = capture_all(directory, &self, err);
    free(self.stamps);
    if (code != EPG_OK) {
        epg_program_free(&self.files);
        return code;
    }
    *out = self.files;
    return EPG_OK;
}

epg_code epg_capture_open(const char *path, const char *what, int *out, epg_error *err)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') {
        size--; /* "link/" would be followed */
    }
    EPG_AUTO_FREE char *bare = epg_strndup(path, size);
    EPG_AUTO_FREE char *shown = epg_printable(path, strlen(path));
    int fd = open(bare, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        *out = fd;
        return EPG_OK;
    }
    switch (errno) {
    case ENOENT:
        return epg_fail(err, EPG_ERR_INVALID, "%s directory \"%s\" does not exist", what, shown);
    case ELOOP:
    case ENOTDIR:
        return epg_fail(err, EPG_ERR_INVALID, "\"%s\" is not a directory (a symbolic link is not followed)", shown);
    case EACCES:
        return epg_fail(err, EPG_ERR_INVALID, "%s directory \"%s\" can't be read", what, shown);
    default:
        return epg_fail_errno(err, errno, "can't open %s directory \"%s\"", what, shown);
    }
}

const epg_program_file *epg_capture_find(const epg_program *program, const char *path)
{
    if (program->count == 0) {
        return NULL;
    }
    epg_program_file key = {.path = epg_strdup(path)};
    const epg_program_file *found = bsearch(&key, program->files, program->count, sizeof key, compare_paths);
    free(key.path);
    return found;
}
