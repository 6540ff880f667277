/* The Run directory: made whole or not at all. It is built under a temporary name beside its place and renamed there,
 * so nobody ever sees half of one, and a name that is taken meanwhile is never touched. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "runs/records.h"
#include "system/files.h"
#include "system/io.h"
#include "system/tree.h"

static epg_code make_directory(int dir, const char *name, mode_t mode, int *out, epg_error *err)
{
    if (epg_io_mkdir(dir, name, mode) != 0) {
        return epg_fail_errno(err, errno, "can't make '%s'", name);
    }
    return out != NULL ? epg_dir_open(dir, name, out, err) : EPG_OK;
}

/* A directory with a Program in it. */
static epg_code lay_program(int dir, const char *name, const epg_program *program, mode_t file_mode,
                            mode_t directory_mode, epg_error *err)
{
    EPG_AUTO_CLOSE int below = -1;
    EPG_TRY(make_directory(dir, name, 0700, &below, err));
    return epg_program_materialise(program, below, file_mode, directory_mode, true, err);
}

static epg_code lay_skills(int workspace, const epg_skill *skills, size_t count, epg_error *err)
{
    EPG_AUTO_CLOSE int dir = -1;
    EPG_TRY(make_directory(workspace, "skills", 0700, &dir, err));
    for (size_t i = 0; i < count; i++) {
        EPG_TRY(epg_skill_materialise(&skills[i], dir, err));
    }
    if (epg_io_fchmod(dir, 0500) != 0) {
        return epg_fail_errno(err, errno, "can't set the mode of 'skills'");
    }
    return epg_dir_sync(dir, err);
}

static epg_code lay_workspace(int run, const epg_program *initial, const epg_skill *skills, size_t count,
                              epg_error *err)
{
    EPG_AUTO_CLOSE int workspace = -1;
    EPG_AUTO_CLOSE int feedback = -1;
    EPG_AUTO_CLOSE int submissions = -1;
    EPG_AUTO_CLOSE int program = -1;
    EPG_TRY(make_directory(run, "workspace", 0700, &workspace, err));
    EPG_TRY(lay_program(workspace, "program", initial, 0644, 0755, err));
    EPG_TRY(epg_dir_open(workspace, "program", &program, err));
    if (epg_io_fchmod(program, 0700) != 0) {
        return epg_fail_errno(err, errno, "can't set the mode of 'program'");
    }
    EPG_TRY(make_directory(workspace, "analysis", 0700, NULL, err));
    EPG_TRY(make_directory(workspace, "feedback", 0700, &feedback, err));
    EPG_TRY(make_directory(feedback, "submissions", 0755, &submissions, err));
    EPG_TRY(lay_skills(workspace, skills, count, err));
    EPG_TRY(epg_dir_sync(submissions, err)); /* for its mode, the only one that others may read */
    EPG_TRY(epg_dir_sync(feedback, err));
    return epg_dir_sync(workspace, err);
}

static epg_code lay_all(int run, const epg_program *initial, const epg_skill *skills, size_t count, epg_error *err)
{
    EPG_AUTO_CLOSE int first = -1;
    static const char *const names[] = {"agent", "staging", "submissions"};
    for (size_t i = 0; i < EPG_COUNT(names); i++) {
        EPG_TRY(make_directory(run, names[i], 0700, NULL, err));
    }
    EPG_TRY(make_directory(run, "initial", 0700, &first, err));
    EPG_TRY(lay_program(first, "program", initial, 0400, 0500, err));
    EPG_TRY(epg_dir_sync(first, err));
    EPG_TRY(lay_workspace(run, initial, skills, count, err));
    return epg_dir_sync(run, err);
}

/* Splits "a/b/c" into the directory that is to hold the Run and its name there; both are the caller's. */
static epg_code split(const char *path, char **parent, char **name, epg_error *err)
{
    EPG_AUTO_FREE char *copy = epg_strdup(path);
    size_t size = strlen(copy);
    while (size > 1 && copy[size - 1] == '/') {
        copy[--size] = '\0';
    }
    char *slash = strrchr(copy, '/');
    const char *last = slash != NULL ? slash + 1 : copy;
    if (*last == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "'%s' can't name a new Run directory", path);
    }
    *name = epg_strdup(last);
    *parent = slash == NULL   ? epg_strdup(".")
              : slash == copy ? epg_strdup("/")
                              : epg_strndup(copy, (size_t)(slash - copy));
    return EPG_OK;
}

static epg_code make_run(int parent, const char *temporary, const char *name, const char *path,
                         const epg_program *initial, const epg_skill *skills, size_t count, int *out, epg_error *err)
{
    EPG_AUTO_CLOSE int run = -1;
    if (epg_io_mkdir(parent, temporary, 0700) != 0) {
        int why = errno;
        (void)epg_fail_errno(err, why, "can't make the Run directory '%s'", path);
        return why == EACCES || why == EROFS || why == EPERM ? epg_fail_as(err, EPG_ERR_USAGE, "choose another place")
                                                             : EPG_ERR_IO;
    }
    EPG_TRY(epg_dir_open(parent, temporary, &run, err));
    EPG_TRY(lay_all(run, initial, skills, count, err));
    if (epg_io_rename_new(parent, temporary, parent, name) != 0) {
        return errno == EEXIST ? epg_fail(err, EPG_ERR_USAGE, "'%s' exists already; a Run needs a new directory", path)
                               : epg_fail_errno(err, errno, "can't make the Run directory '%s'", path);
    }
    *out = epg_take_fd(&run);
    return EPG_OK;
}

epg_code epg_run_directory_create(const char *path, const epg_program *initial, const epg_skill *skills,
                                  size_t skill_count, int *run, epg_error *err)
{
    EPG_AUTO_FREE char *above = NULL;
    EPG_AUTO_FREE char *name = NULL;
    EPG_AUTO_CLOSE int parent = -1;
    struct stat info;
    epg_code code = split(path, &above, &name, err);
    if (code != EPG_OK || above == NULL) {
        return code;
    }
    parent = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0) {
        int why = errno;
        (void)epg_fail_errno(err, why, "'%s' is to hold the Run directory", above);
        return epg_fail_as(err, EPG_ERR_USAGE, why == ENOENT ? "make its parent first" : "choose another place");
    }
    if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "'%s' exists already; a Run needs a new directory", path);
    }
    EPG_AUTO_FREE char *temporary = epg_file_temporary_name(".epg-run-");
    EPG_AUTO_CLOSE int made = -1;
    code = make_run(parent, temporary, name, path, initial, skills, skill_count, &made, err);
    if (code != EPG_OK) {
        (void)epg_tree_remove(parent, temporary, 0, NULL);
        return code;
    }
    code = epg_dir_sync(parent, err);
    if (code != EPG_OK) {
        (void)epg_tree_remove(parent, name, 0, NULL);
        return code;
    }
    *run = epg_take_fd(&made);
    return EPG_OK;
}

static bool is_directory(int dir, const char *name)
{
    struct stat info;
    return fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
}

epg_directory_state epg_run_directory_state(int directory)
{
    struct stat info;
    if (fstatat(directory, "events.jsonl", &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode)) {
        return EPG_DIRECTORY_RUN;
    }
    if (fstatat(directory, "run.json", &info, AT_SYMLINK_NOFOLLOW) == 0 ||
        is_directory(directory, "submissions/submission-000001")) {
        return EPG_DIRECTORY_WITHOUT_EVENTS;
    }
    return is_directory(directory, "initial/program") && is_directory(directory, "workspace") ? EPG_DIRECTORY_UNFINISHED
                                                                                              : EPG_DIRECTORY_OTHER;
}

epg_code epg_run_directory_open(const char *path, int *run, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        (void)epg_fail_errno(err, errno, "can't open the Run directory '%s'", path);
        return epg_fail_as(err, EPG_ERR_USAGE, "name a Run");
    }
    switch (epg_run_directory_state(fd)) {
    case EPG_DIRECTORY_RUN:
        break;
    case EPG_DIRECTORY_UNFINISHED:
        return epg_fail(err, EPG_ERR_USAGE,
                        "'%s' was not set up to its end: it holds no event; remove it and start the Run again", path);
    case EPG_DIRECTORY_WITHOUT_EVENTS:
        return epg_fail(err, EPG_ERR_USAGE, "the record of '%s' is damaged: its events.jsonl is gone, or no file",
                        path);
    case EPG_DIRECTORY_OTHER:
        return epg_fail(err, EPG_ERR_USAGE, "'%s' is no Run directory: it has no events.jsonl", path);
    }
    *run = epg_take_fd(&fd);
    return EPG_OK;
}

static epg_code remove_temporaries(int directory, epg_error *err)
{
    int own = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = own >= 0 ? fdopendir(own) : NULL;
    int why = 0;
    bool any = false;
    if (listing == NULL) {
        why = errno;
        epg_close_cleanup(&own);
        return epg_fail_errno(err, why, "can't list the Run directory");
    }
    for (const struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        if (epg_starts_with(entry->d_name, EPG_FILE_TEMPORARY)) {
            any = true;
            why = epg_io_unlink(directory, entry->d_name, 0) != 0 ? errno : why;
        }
    }
    (void)closedir(listing);
    if (why != 0) {
        return epg_fail_errno(err, why, "can't remove what a dead Host left");
    }
    return any ? epg_dir_sync(directory, err) : EPG_OK;
}

epg_code epg_run_directory_recover(int run, epg_error *err)
{
    static const char *const places[] = {".", "agent", "assessment", "traces", "validation"};
    for (size_t i = 0; i < EPG_COUNT(places); i++) {
        EPG_AUTO_CLOSE int place = -1;
        if (epg_dir_open(run, places[i], &place, NULL) == EPG_OK) {
            EPG_TRY(remove_temporaries(place, err));
        }
    }
    return EPG_OK;
}

epg_code epg_run_directory_tidy(int run, epg_error *err)
{
    static const char *const used[] = {"records", "staging"};
    for (size_t i = 0; i < EPG_COUNT(used); i++) {
        EPG_TRY(epg_tree_remove(run, used[i], 0, err));
    }
    return epg_dir_sync(run, err);
}
