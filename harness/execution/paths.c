/* An interpreter lives in a prefix (PREFIX/bin/python3, PREFIX/lib/python3.X), which is shown whole, since extension
 * modules find their libraries there in many ways. A venv is a prefix of its own that names another one in pyvenv.cfg.
 * Everything is shown at its own path: scripts, links and libraries name each other by it. */
#include "execution/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system/files.h"

/* `path` is `directory` or lies in it. */
static bool lies_in(const char *path, const char *directory)
{
    size_t size = strlen(directory);
    while (size > 1 && directory[size - 1] == '/') {
        size--;
    }
    if (size == 1) {
        return true;
    }
    return strncmp(path, directory, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

bool epg_path_is_system(const char *path)
{
    static const char *const places[] = {"/usr",   "/bin",   "/sbin",   "/lib",
                                         "/lib32", "/lib64", "/libx32", "/etc/alternatives"};
    for (size_t i = 0; i < EPG_COUNT(places); i++) {
        if (lies_in(path, places[i])) {
            return true;
        }
    }
    return false;
}

void epg_paths_add(epg_words *paths, const char *path)
{
    if (epg_path_is_system(path)) {
        return;
    }
    for (size_t i = 0; i < paths->count; i++) {
        if (lies_in(path, paths->texts[i])) {
            return;
        }
    }
    epg_words_add(paths, path);
}

static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL || slash == path ? epg_strdup("/") : epg_strndup(path, (size_t)(slash - path));
}

static size_t depth_of(const char *path)
{
    size_t depth = 0;
    for (; *path != '\0'; path++) {
        depth += *path == '/' && path[1] != '\0' && path[1] != '/';
    }
    return depth;
}

epg_code epg_path_may_show(const char *directory, const char *what, epg_error *err)
{
    const char *home = getenv("HOME");
    const struct passwd *user = getpwuid(getuid());
    bool whole_home = (home != NULL && *home == '/' && strcmp(home, "/") != 0 && lies_in(home, directory)) ||
                      (user != NULL && strcmp(user->pw_dir, "/") != 0 && lies_in(user->pw_dir, directory));
    if (whole_home || depth_of(directory) < 2) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "%.256s can't be shown in a sandbox without all of %.256s: use one in a directory of its own, "
                        "or in /usr",
                        what, directory);
    }
    return EPG_OK;
}

/* --- Links. --- */

static void append_part(char **path, const char *part, size_t size)
{
    char *longer = epg_format("%s/%.*s", *path, (int)size, part);
    free(*path);
    *path = longer;
}

/* Takes one part of `rest` onto `done`, a path without links; a link is added and its target put before the rest. */
static bool step(char **done, char **rest, epg_words *paths)
{
    char target[4096];
    const char *part = *rest + strspn(*rest, "/");
    size_t size = strcspn(part, "/");
    if (size == 2 && strncmp(part, "..", 2) == 0) {
        char *slash = strrchr(*done, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
    } else if (size != 1 || *part != '.') {
        append_part(done, part, size);
    }
    char *left = epg_strdup(part + size);
    ssize_t got = readlink(*done, target, sizeof target - 1);
    if (got > 0) {
        target[got] = '\0';
        epg_paths_add(paths, *done);
        char *joined = epg_format("%s%s", target, left);
        free(left);
        left = joined;
        char *slash = *target == '/' ? *done : strrchr(*done, '/');
        *slash = '\0';
    }
    free(*rest);
    *rest = left;
    return **rest != '\0';
}

epg_code epg_paths_follow(const char *path, epg_words *paths, char **real, epg_error *err)
{
    enum { STEPS_MAX = 256 };
    char *end = realpath(path, NULL);
    if (end == NULL) {
        (void)epg_fail_errno(err, errno, "can't find '%.256s'", path);
        (void)epg_fail_as(err, EPG_ERR_NOT_FOUND, "sandbox");
        return EPG_ERR_NOT_FOUND;
    }
    EPG_AUTO_FREE char *done = epg_strdup("");
    EPG_AUTO_FREE char *rest = epg_strdup(path);
    for (int i = 0; i < STEPS_MAX && step(&done, &rest, paths); i++) {
    }
    *real = end;
    return EPG_OK;
}

/* The value of `home` in a pyvenv.cfg, NULL without one. */
static char *venv_home(const char *prefix)
{
    enum { LIMIT = 64 * 1024 };
    EPG_AUTO_BUFFER text = {0};
    EPG_AUTO_FREE char *file = epg_format("%s/pyvenv.cfg", prefix);
    if (epg_file_read(AT_FDCWD, file, LIMIT, &text, NULL) != EPG_OK) {
        return NULL;
    }
    EPG_AUTO_FREE char *all = epg_buffer_take_text(&text);
    char *rest = NULL;
    for (char *line = strtok_r(all, "\r\n", &rest); line != NULL; line = strtok_r(NULL, "\r\n", &rest)) {
        char key[16] = "";
        int at = 0;
        if (sscanf(line, " %15[a-z] = %n", key, &at) == 1 && at > 0 && strcmp(key, "home") == 0) {
            return epg_strdup(line + at);
        }
    }
    return NULL;
}

/* Guix and Nix keep every package in a directory of its own below one that holds nothing private. */
static const char *store_of(const char *path)
{
    static const char *const stores[] = {"/nix/store", "/gnu/store"};
    for (size_t i = 0; i < EPG_COUNT(stores); i++) {
        if (lies_in(path, stores[i])) {
            return stores[i];
        }
    }
    return NULL;
}

static epg_code add_prefix(const char *python, epg_words *paths, epg_error *err)
{
    EPG_AUTO_FREE char *directory = parent_of(python);
    EPG_AUTO_FREE char *prefix = parent_of(directory);
    const char *store = store_of(python);
    if (epg_path_is_system(python)) {
        return EPG_OK;
    }
    if (store != NULL) {
        epg_paths_add(paths, store);
        return EPG_OK;
    }
    if (lies_in(prefix, "/tmp") || lies_in(prefix, "/dev") || lies_in(prefix, "/proc")) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "%.256s can't be used in a sandbox, which has a /tmp of its own: put it somewhere else",
                        python);
    }
    EPG_TRY(epg_path_may_show(prefix, python, err));
    epg_paths_add(paths, prefix);
    return EPG_OK;
}

epg_code epg_interpreter_paths(const char *python, epg_words *paths, char **run, epg_error *err)
{
    EPG_AUTO_FREE char *real = NULL;
    EPG_AUTO_FREE char *directory = parent_of(python);
    EPG_AUTO_FREE char *prefix = parent_of(directory);
    EPG_AUTO_FREE char *home = venv_home(prefix);
    EPG_TRY(epg_paths_follow(python, paths, &real, err));
    if (home != NULL) {
        EPG_AUTO_FREE char *base = epg_format("%s/python", home);
        EPG_TRY(add_prefix(python, paths, err));
        EPG_TRY(add_prefix(base, paths, err));
    }
    EPG_TRY(add_prefix(real, paths, err));
    *run = epg_strdup(home != NULL ? python : real);
    return EPG_OK;
}
