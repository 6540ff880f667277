/* The private home of a Run's Agent: directories and files that the adapter names, and a login brought in. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/invocation.h"
#include "agents/names.h"
#include "agents/pattern.h"
#include "agents/template.h"
#include "base/memory.h"
#include "base/text.h"
#include "system/files.h"
#include "system/io.h"
#include "system/tree.h"

enum { LOGIN_FILE_MAX = 4 * 1024 * 1024, LOGIN_FILES_MAX = 1000, LOGIN_TOKENS_MAX = 200 };

static epg_home_file *add_file(epg_invocation *out, char *path)
{
    out->home_files = epg_grow_array(out->home_files, out->home_file_count + 1, sizeof *out->home_files);
    epg_home_file *file = &out->home_files[out->home_file_count++];
    *file = (epg_home_file){.path = path};
    return file;
}

static epg_code add_content(epg_build *build, const json_t *described, epg_buffer *out, epg_error *err)
{
    const json_t *text = json_object_get(described, "text");
    if (text != NULL) {
        return epg_template_expand(json_string_value(text), epg_build_lookup, build, out, err);
    }
    EPG_AUTO_JSON *document = NULL;
    EPG_TRY(epg_template_expand_json(json_object_get(described, "json"), epg_build_lookup, build, &document, err));
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_put_json(&writer, NULL, document);
    epg_json_finish(&writer);
    return EPG_OK;
}

epg_code epg_build_home(epg_build *build, epg_invocation *out, epg_error *err)
{
    const epg_agent_request *request = build->request;
    const json_t *home = request->adapter != NULL ? json_object_get(request->adapter->document, "home") : NULL;
    EPG_AUTO_NAMES login = {0};
    if (request->home != NULL) {
        const json_t *directories = json_object_get(home, "directories");
        for (size_t i = 0; i < json_array_size(directories); i++) {
            (void)add_file(out, epg_format("%s/", json_string_value(json_array_get(directories, i))));
        }
        const json_t *files = json_object_get(home, "files");
        for (size_t i = 0; i < json_array_size(files); i++) {
            const json_t *described = json_array_get(files, i);
            if (epg_condition_holds(json_object_get(described, "when"), epg_build_lookup, build)) {
                epg_home_file *file = add_file(out, epg_strdup(json_string_value(json_object_get(described, "path"))));
                EPG_TRY(add_content(build, described, &file->content, err));
            }
        }
        const json_t *paths = json_object_get(home, "login");
        for (size_t i = 0; i < json_array_size(paths); i++) {
            epg_names_add(&login, json_string_value(json_array_get(paths, i)));
        }
    }
    out->login_paths = epg_names_give(&login);
    return EPG_OK;
}

/* Makes the directories before the last part of `path` and opens the last of them; *name: the last part. */
static epg_code open_parent(int home, const char *path, int *out, const char **name, epg_error *err)
{
    EPG_AUTO_FREE char *copy = epg_strdup(path);
    EPG_AUTO_CLOSE int at = dup(home);
    char *part = copy;
    for (char *slash = strchr(part, '/'); slash != NULL; slash = strchr(part, '/')) {
        *slash = '\0';
        if (epg_io_mkdir(at, part, 0700) != 0 && errno != EEXIST) {
            return epg_fail_errno(err, errno, "can't make %s in the agent's home", path);
        }
        int next = -1;
        EPG_TRY(epg_dir_open(at, part, &next, err));
        (void)close(at);
        at = next;
        part = slash + 1;
    }
    *name = path + (part - copy);
    *out = epg_take_fd(&at);
    return EPG_OK;
}

static epg_code write_file(int home, const char *path, epg_span content, epg_error *err)
{
    EPG_AUTO_CLOSE int parent = -1;
    const char *name = path;
    EPG_TRY(open_parent(home, path, &parent, &name, err));
    return *name == '\0' ? EPG_OK : epg_file_write_atomic(parent, name, content, 0600, err);
}

/* Long words of letters and the like, with a digit, are what tokens are made of; paths and addresses are not. */
#define TOKEN "(?<![A-Za-z0-9_.~+/=-])(?=[^0-9\\s]{0,256}[0-9])[A-Za-z0-9][A-Za-z0-9_.~+/=-]{23,}"

static void add_tokens(epg_span text, epg_names *out)
{
    EPG_AUTO_PATTERN *pattern = NULL;
    epg_span token;
    if (epg_pattern_new(TOKEN, false, &pattern, NULL) != EPG_OK) {
        return;
    }
    while (out->count < LOGIN_TOKENS_MAX && epg_pattern_capture(pattern, text, NULL, &token)) {
        epg_names_take(out, epg_strndup((const char *)token.data, token.size));
        const uint8_t *after = token.data + token.size;
        text = epg_span_of(after, text.size - (size_t)(after - text.data));
    }
}

/* What is done with the files of a login: copied into a home, or (home < 0) searched for tokens. */
typedef struct copying {
    int home;
    const char *path; /* of the directory that is walked, below both homes */
    size_t files;
    epg_names *tokens;
} copying;

static epg_code copy_file(copying *to, int directory, const char *name, const char *path, int flags, epg_error *err)
{
    EPG_AUTO_BUFFER content = {0};
    EPG_AUTO_CLOSE int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
    if (fd < 0) {
        return epg_fail_errno(err, errno, "can't read %s of the agent's login", path);
    }
    if (++to->files > LOGIN_FILES_MAX) {
        return epg_fail(err, EPG_ERR_LIMIT, "the agent's login has more than %d files", LOGIN_FILES_MAX);
    }
    EPG_TRY(epg_file_read_fd(fd, path, LOGIN_FILE_MAX, &content, err));
    if (to->home < 0) {
        add_tokens(epg_buffer_span(&content), to->tokens);
        return EPG_OK;
    }
    return write_file(to->home, path, epg_buffer_span(&content), err);
}

static epg_tree_step copy_entry(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    copying *to = context;
    if (!S_ISREG(entry->info.st_mode)) {
        return EPG_TREE_CONTINUE;
    }
    EPG_AUTO_FREE char *path = epg_format("%s/%s", to->path, entry->path);
    *code = copy_file(to, entry->dir, entry->name, path, O_NOFOLLOW, err);
    return *code == EPG_OK ? EPG_TREE_CONTINUE : EPG_TREE_STOP;
}

/* The named paths may be links (of a user who keeps such files elsewhere); what lies below them may not. */
static epg_code bring_in(int home, epg_names *tokens, int from, const char *path, epg_error *err)
{
    copying to = {.home = home, .path = path, .tokens = tokens};
    struct stat info;
    if (fstatat(from, path, &info, 0) != 0) {
        return errno == ENOENT || errno == ENOTDIR
                   ? EPG_OK
                   : epg_fail_errno(err, errno, "can't look at %s of the agent's login", path);
    }
    if (!S_ISDIR(info.st_mode)) {
        return copy_file(&to, from, path, path, 0, err);
    }
    EPG_AUTO_CLOSE int directory = openat(from, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        return epg_fail_errno(err, errno, "can't open %s of the agent's login", path);
    }
    return epg_tree_walk(directory, copy_entry, &to, err);
}

static epg_code bring_in_all(const epg_invocation *invocation, int home, epg_names *tokens, const char *login_directory,
                             epg_error *err)
{
    if (login_directory == NULL) {
        return EPG_OK;
    }
    EPG_AUTO_CLOSE int from = open(login_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0) {
        return epg_fail(err, EPG_ERR_USAGE, "can't open the agent's home %s: %s", login_directory, strerror(errno));
    }
    for (size_t i = 0; invocation->login_paths[i] != NULL; i++) {
        EPG_TRY(bring_in(home, tokens, from, invocation->login_paths[i], err));
    }
    return EPG_OK;
}

epg_code epg_invocation_lay_home(const epg_invocation *invocation, int home, const char *login_directory,
                                 epg_error *err)
{
    for (size_t i = 0; i < invocation->home_file_count; i++) {
        const epg_home_file *file = &invocation->home_files[i];
        EPG_TRY(write_file(home, file->path, epg_buffer_span(&file->content), err));
    }
    return bring_in_all(invocation, home, NULL, login_directory, err);
}

epg_code epg_invocation_login_secrets(epg_invocation *invocation, const char *login_directory, epg_error *err)
{
    EPG_AUTO_NAMES tokens = {0};
    EPG_TRY(bring_in_all(invocation, -1, &tokens, login_directory, err));
    EPG_AUTO_NAMES all = {0};
    for (size_t i = 0; invocation->secrets[i] != NULL; i++) {
        epg_names_add(&all, invocation->secrets[i]);
    }
    for (size_t i = 0; i < tokens.count; i++) {
        epg_names_add(&all, tokens.texts[i]);
    }
    epg_texts_free(invocation->secrets);
    invocation->secrets = epg_names_give(&all);
    return EPG_OK;
}
