#include "cli/program_source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "runs/reading.h"
#include "system/files.h"
#include "system/io.h"
#include "system/tree.h"

static epg_code of_run(const char *path, const char *word, epg_program *out, epg_error *err)
{
    EPG_CLEANUP(epg_reading_free) epg_reading reading = {.run = -1};
    uint64_t number = 0;
    EPG_TRY(epg_reading_open(path, EPG_READ_SUBMISSIONS, &reading, err));
    EPG_TRY(epg_reading_find(&reading, word, &number, err));
    return epg_reading_program(&reading, number, out, err);
}

epg_code epg_cli_program_source(const char *text, const char *what, epg_program *out, epg_error *err)
{
    struct stat info;
    const char *colon = strrchr(text, ':');
    epg_code code;
    if (colon != NULL && colon != text && lstat(text, &info) != 0) {
        EPG_AUTO_FREE char *path = epg_strndup(text, (size_t)(colon - text));
        code = of_run(path, colon + 1, out, err);
    } else {
        code = epg_program_capture_path(text, &epg_program_default_limits, out, err);
    }
    EPG_AUTO_FREE char *events = epg_format("%s/events.jsonl", text);
    EPG_AUTO_FREE char *policy = epg_format("%s/policy.py", text);
    if (code != EPG_OK && lstat(events, &info) == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "%s: '%s' is a Run: name one of its Programs, as %s:best", what, text,
                        text);
    }
    if (code == EPG_ERR_LIMIT && lstat(policy, &info) != 0) { /* the wrong directory, which happens to be a large one */
        return epg_fail(err, EPG_ERR_USAGE, "%s: there is no policy.py in '%s', so it is no Program", what, text);
    }
    return code == EPG_OK ? EPG_OK : epg_fail_as(err, EPG_ERR_USAGE, "%s", what);
}

epg_code epg_cli_program_write(const epg_program *program, const char *path, const char *what, epg_error *err)
{
    if (epg_io_mkdir(AT_FDCWD, path, 0755) != 0) {
        int why = errno;
        bool mistake = why == EEXIST || why == ENOENT || why == ENOTDIR;
        (void)epg_fail_errno(err, why, "can't make the directory '%s'", path);
        return mistake ? epg_fail_as(err, EPG_ERR_USAGE, "%s", what) : EPG_ERR_IO;
    }
    EPG_AUTO_CLOSE int directory = -1;
    epg_code code = epg_dir_open(AT_FDCWD, path, &directory, err);
    if (code == EPG_OK) {
        code = epg_program_materialise(program, directory, 0644, 0755, false, err);
    }
    if (code != EPG_OK) {
        (void)epg_tree_remove(AT_FDCWD, path, 0, NULL);
    }
    return code;
}
