/* A command is a file behind links. What it needs besides is told by where it lies (in a node_modules tree, in the bin
 * of an interpreter's prefix) and by its first line. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "execution/agent_sandbox.h"
#include "execution/paths.h"

enum { LINE_MAX_SIZE = 512 };

static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL || slash == path ? epg_strdup("/") : epg_strndup(path, (size_t)(slash - path));
}

static char *find_file(const char *name, const char *search_path)
{
    EPG_AUTO_FREE char *all = epg_strdup(search_path != NULL ? search_path : "/usr/bin:/bin");
    char *rest = NULL;
    if (*name == '/') {
        return access(name, X_OK) == 0 ? epg_strdup(name) : NULL;
    }
    for (char *entry = strtok_r(all, ":", &rest); entry != NULL; entry = strtok_r(NULL, ":", &rest)) {
        EPG_AUTO_FREE char *path = epg_format("%s/%s", entry, name);
        if (*entry == '/' && access(path, X_OK) == 0) {
            return EPG_TAKE(path);
        }
    }
    return NULL;
}

/* The outermost node_modules directory of a path; NULL: none. Its packages use each other. */
static char *modules_of(const char *path)
{
    static const char name[] = "/node_modules/";
    const char *found = strstr(path, name);
    return found == NULL ? NULL : epg_strndup(path, (size_t)(found - path) + sizeof name - 2);
}

/* A directory with bin/NAME that is some interpreter's or venv's own. */
static bool is_prefix(const char *directory)
{
    static const char *const marks[] = {"pyvenv.cfg", "lib/python3", "lib/node_modules", "conda-meta", "include/node"};
    for (size_t i = 0; i < EPG_COUNT(marks); i++) {
        EPG_AUTO_FREE char *mark = epg_format("%s/%s", directory, marks[i]);
        if (access(mark, F_OK) == 0) {
            return true;
        }
    }
    /* lib/python3.12 and so on */
    for (int minor = 6; minor < 40; minor++) {
        EPG_AUTO_FREE char *mark = epg_format("%s/lib/python3.%d", directory, minor);
        if (access(mark, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* What belongs to the file at `path`, of which every link was followed. */
static epg_code add_real(const char *path, epg_words *paths, epg_error *err)
{
    EPG_AUTO_FREE char *modules = modules_of(path);
    EPG_AUTO_FREE char *directory = parent_of(path);
    EPG_AUTO_FREE char *prefix = parent_of(directory);
    if (epg_path_is_system(path)) {
        return EPG_OK;
    }
    if (modules != NULL) {
        EPG_TRY(epg_path_may_show(modules, path, err));
        epg_paths_add(paths, modules);
    } else if (epg_ends_with(directory, "/bin") && is_prefix(prefix)) {
        EPG_TRY(epg_path_may_show(prefix, path, err));
        epg_paths_add(paths, prefix);
    } else {
        epg_paths_add(paths, path);
    }
    return EPG_OK;
}

/* The interpreter of a script's first line ("#!/usr/bin/env -S node --flag"); NULL: it is no script. */
static char *interpreter_of(const char *path, const char *search_path)
{
    char line[LINE_MAX_SIZE];
    EPG_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t got = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;
    if (got < 3 || line[0] != '#' || line[1] != '!') {
        return NULL;
    }
    line[got] = '\0';
    line[strcspn(line, "\n")] = '\0';
    char *rest = line + 2;
    const char *word = NULL;
    while ((word = strsep(&rest, " \t")) != NULL) {
        if (*word != '\0' && *word != '-' && strchr(word, '=') == NULL && !epg_ends_with(word, "/env")) {
            return find_file(word, search_path);
        }
    }
    return NULL;
}

static epg_code add_command(const char *path, const char *search_path, unsigned depth, epg_words *paths, epg_error *err)
{
    enum { DEPTH_MAX = 4 };
    EPG_AUTO_FREE char *real = NULL;
    EPG_TRY(epg_paths_follow(path, paths, &real, err));
    EPG_TRY(add_real(real, paths, err));
    EPG_AUTO_FREE char *interpreter = interpreter_of(real, search_path);
    if (interpreter == NULL || depth == DEPTH_MAX) {
        return EPG_OK;
    }
    return add_command(interpreter, search_path, depth + 1, paths, err);
}

epg_code epg_installation_find(const char *command, const char *search_path, char ***out, epg_error *err)
{
    EPG_CLEANUP(epg_words_free) epg_words paths = {0};
    EPG_AUTO_FREE char *path = find_file(command, search_path);
    if (path == NULL) {
        return epg_fail(err, EPG_ERR_NOT_FOUND, "there is no program '%.256s' in the search path", command);
    }
    EPG_TRY(add_command(path, search_path, 0, &paths, err));
    if (paths.texts == NULL) {
        paths.texts = epg_alloc(sizeof *paths.texts);
    }
    *out = EPG_TAKE(paths.texts);
    paths.count = 0;
    return EPG_OK;
}

void epg_paths_free(char **paths)
{
    for (size_t i = 0; paths != NULL && paths[i] != NULL; i++) {
        free(paths[i]);
    }
    free(paths);
}
