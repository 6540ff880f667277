#include "agents/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/names.h"
#include "agents/pattern.h"
#include "agents/template.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "system/process.h"
#include "system/tree.h"

/* Takes what is there; false at the end. What is over the bound is read and forgotten. */
static bool take_output(int fd, epg_buffer *output)
{
    char chunk[16384];
    ssize_t size = read(fd, chunk, sizeof chunk);
    if (size > 0 && output->size < EPG_PROBE_OUTPUT) {
        epg_buffer_append(output, chunk, (size_t)size);
    }
    return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Reads until the process has ended (whoever else holds the pipe is not waited for) or the deadline passed. */
static bool follow(const epg_process *process, int fd, int64_t deadline, epg_buffer *output)
{
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = process->pidfd, .events = POLLIN}};
    while (epg_monotonic_ns() < deadline) {
        if (poll(fds, 2, epg_poll_timeout_ms(deadline)) < 0 && errno != EINTR) {
            return false;
        }
        if (fds[0].revents != 0 && !take_output(fd, output)) {
            fds[0].fd = -1;
            fds[0].revents = 0;
        }
        if (fds[1].revents != 0) {
            while (fds[0].fd >= 0 && poll(fds, 1, 0) > 0 && take_output(fd, output)) {
            }
            return true;
        }
    }
    return false;
}

epg_code epg_probe_run(const char *const *argv, const char *const *environment, const char *path, int *exit_code,
                       epg_buffer *output, epg_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return epg_fail_errno(err, errno, "can't make a pipe");
    }
    EPG_AUTO_CLOSE int in = ends[0];
    EPG_AUTO_CLOSE int out = ends[1];
    (void)fcntl(in, F_SETFL, O_NONBLOCK);
    const epg_fd_map fds[] = {{out, 1}, {out, 2}};
    epg_spawn spawn = {.argv = argv,
                       .environment = environment,
                       .search_path = path,
                       .working_directory = -1,
                       .fds = fds,
                       .fd_count = EPG_COUNT(fds),
                       .new_session = true,
                       .die_with_parent = true};
    epg_process process;
    EPG_TRY(epg_process_spawn(&spawn, &process, err));
    (void)close(epg_take_fd(&out));
    bool ended = follow(&process, in, epg_deadline_after_ns(EPG_PROBE_SECONDS * EPG_SECOND), output);
    epg_exit how;
    (void)kill(-process.pid, SIGKILL); /* it leads its own session, and is not reaped yet: the number is its own */
    epg_process_end(&process, 0, &how);
    if (!ended) {
        return epg_fail(err, EPG_ERR_TIMEOUT, "%s does not end within %d s", argv[0], EPG_PROBE_SECONDS);
    }
    *exit_code = how.signal != 0 ? 128 + how.signal : how.code;
    return EPG_OK;
}

/* As execvp would find it: "" for a name that is nowhere, else the first of it in PATH, executable or not. */
static char *find_in_path(const char *name, const char *path)
{
    if (strchr(name, '/') != NULL) {
        return access(name, F_OK) == 0 ? epg_strdup(name) : NULL;
    }
    EPG_AUTO_FREE char *copy = epg_strdup(path != NULL ? path : "");
    char *rest = copy;
    char *found = NULL;
    for (char *directory = strsep(&rest, ":"); directory != NULL; directory = strsep(&rest, ":")) {
        char *candidate = epg_format("%s/%s", directory, name);
        if (*directory == '/' && access(candidate, X_OK) == 0) {
            free(found);
            return candidate;
        }
        if (*directory == '/' && found == NULL && access(candidate, F_OK) == 0) {
            found = candidate;
        } else {
            free(candidate);
        }
    }
    return found;
}

char *epg_probe_find(const epg_adapter *adapter, const char *executable, const char *path, char **why)
{
    const json_t *described = json_object_get(adapter->document, "executable");
    const json_t *names = json_object_get(described, "names");
    const char *install = json_string_value(json_object_get(described, "install"));
    char *found = executable != NULL ? find_in_path(executable, path) : NULL;
    for (size_t i = 0; executable == NULL && found == NULL && i < json_array_size(names); i++) {
        found = find_in_path(json_string_value(json_array_get(names, i)), path);
    }
    struct stat info;
    bool sound = found != NULL && stat(found, &info) == 0 && S_ISREG(info.st_mode) && access(found, X_OK) == 0;
    if (!sound && why != NULL) {
        const char *name = executable != NULL ? executable : json_string_value(json_array_get(names, 0));
        *why = found != NULL ? epg_format("%s is not an executable file", found)
                             : epg_format("%s was not found%s%s", name, install != NULL ? "; install it with: " : "",
                                          install != NULL ? install : "");
    }
    if (!sound) {
        free(found);
        return NULL;
    }
    return found;
}

/* A probe must not write into the user's home: it gets one of its own for as long as it runs. */
static epg_code run_in_home(const char *const *argv, char *const *environment, int *exit_code, epg_buffer *output,
                            epg_error *err)
{
    EPG_AUTO_FREE char *home = NULL;
    EPG_AUTO_CLOSE int fd = -1;
    EPG_TRY(epg_tree_temporary("evopolicygym-probe-", &home, &fd, err));
    static const char *const kept[] = {"PATH", "LANG", "LC_ALL", "USER", "LOGNAME", "SHELL"};
    EPG_AUTO_NAMES names = {0};
    for (size_t i = 0; i < EPG_COUNT(kept); i++) {
        const char *value = epg_environment_get(environment, kept[i]);
        if (value != NULL) {
            epg_names_take(&names, epg_format("%s=%s", kept[i], value));
        }
    }
    epg_names_take(&names, epg_format("HOME=%s", home));
    epg_names_take(&names, epg_format("TMPDIR=%s", home));
    char **given = epg_names_give(&names);
    epg_code code = epg_probe_run(argv, (const char *const *)given, epg_environment_get(environment, "PATH"), exit_code,
                                  output, err);
    epg_texts_free(given);
    (void)epg_tree_remove(AT_FDCWD, home, 0, NULL);
    return code;
}

static epg_code answer_of(const char *executable, const json_t *arguments, char *const *environment, int *exit_code,
                          epg_buffer *output, epg_error *err)
{
    size_t count = json_array_size(arguments);
    EPG_AUTO_FREE const char **argv = epg_alloc_array(count + 2, sizeof *argv);
    argv[0] = executable;
    for (size_t i = 0; i < count; i++) {
        argv[i + 1] = json_string_value(json_array_get(arguments, i));
    }
    return run_in_home(argv, environment, exit_code, output, err);
}

epg_code epg_probe_version(const epg_adapter *adapter, const char *executable, char *const *environment, char **out,
                           epg_error *err)
{
    const json_t *described = json_object_get(adapter->document, "version");
    EPG_AUTO_BUFFER output = {0};
    EPG_AUTO_PATTERN *pattern = NULL;
    int exit_code = 0;
    epg_span group;
    if (described == NULL) {
        return epg_fail(err, EPG_ERR_UNAVAILABLE, "agent %s has no version probe", adapter->name);
    }
    if (answer_of(executable, json_object_get(described, "arguments"), environment, &exit_code, &output, err) !=
        EPG_OK) {
        return epg_fail_as(err, EPG_ERR_UNAVAILABLE, "version probe");
    }
    EPG_TRY(epg_pattern_new(json_string_value(json_object_get(described, "pattern")), false, &pattern, err));
    if (!epg_pattern_capture(pattern, epg_buffer_span(&output), "version", &group)) {
        EPG_AUTO_FREE char *shown = epg_printable(epg_buffer_cstr(&output), output.size < 200 ? output.size : 200);
        return epg_fail(err, EPG_ERR_UNAVAILABLE, "%s tells no version (exit code %d): \"%s\"", executable, exit_code,
                        shown);
    }
    *out = epg_printable((const char *)group.data, group.size < 64 ? group.size : 64);
    return EPG_OK;
}

bool epg_probe_tested(const epg_adapter *adapter, const char *version)
{
    const json_t *tested = json_object_get(json_object_get(adapter->document, "version"), "tested");
    for (size_t i = 0; version != NULL && i < json_array_size(tested); i++) {
        if (strcmp(json_string_value(json_array_get(tested, i)), version) == 0) {
            return true;
        }
    }
    return false;
}

/* --- check --- */

void epg_check_report_free(epg_check_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        free(report->lines[i].what);
        free(report->lines[i].text);
    }
    free(report->lines);
    free(report->executable);
    free(report->version);
    *report = (epg_check_report){0};
}

/* Takes `text`. */
static void add(epg_check_report *report, epg_check_state state, const char *what, char *text)
{
    report->lines = epg_grow_array(report->lines, report->count + 1, sizeof *report->lines);
    epg_check_line *line = &report->lines[report->count++];
    line->state = state;
    line->what = epg_strdup(what);
    line->text = text;
    report->ready = report->ready && state != EPG_CHECK_MISSING;
}

static void check_version(const epg_agent_request *request, epg_check_report *report)
{
    const epg_adapter *adapter = request->adapter;
    const json_t *described = json_object_get(adapter->document, "version");
    const char *minimum = json_string_value(json_object_get(described, "minimum"));
    epg_error why = {0};
    if (described == NULL) {
        add(report, EPG_CHECK_NOTE, "version", epg_strdup("the adapter has no version probe"));
    } else if (epg_probe_version(adapter, report->executable, request->environment, &report->version, &why) != EPG_OK) {
        add(report, EPG_CHECK_MISSING, "version", epg_strdup(why.text));
    } else if (minimum != NULL && epg_version_compare(report->version, minimum) < 0) {
        add(report, EPG_CHECK_MISSING, "version",
            epg_format("%s is too old: %s or later is needed", report->version, minimum));
    } else if (epg_probe_tested(adapter, report->version)) {
        add(report, EPG_CHECK_GOOD, "version", epg_format("%s, tested", report->version));
    } else {
        add(report, EPG_CHECK_NOTE, "version",
            epg_format("%s, which this adapter was not tested with", report->version));
    }
}

static void check_need(const epg_agent_request *request, const json_t *need, epg_check_report *report)
{
    const json_t *command = json_object_get(need, "command");
    const char *what = json_string_value(json_object_get(need, "what"));
    const char *minimum = json_string_value(json_object_get(need, "minimum"));
    EPG_AUTO_JSON *rest = json_copy(epg_json_unconst(command));
    (void)json_array_remove(rest, 0);
    EPG_AUTO_BUFFER output = {0};
    EPG_AUTO_PATTERN *pattern = NULL;
    epg_error why = {0};
    epg_span group;
    int exit_code = 0;
    if (answer_of(json_string_value(json_array_get(command, 0)), rest, request->environment, &exit_code, &output,
                  &why) != EPG_OK) {
        add(report, EPG_CHECK_MISSING, what, epg_format("%s %s or later is needed: %s", what, minimum, why.text));
        return;
    }
    bool told = epg_pattern_new(json_string_value(json_object_get(need, "pattern")), false, &pattern, NULL) == EPG_OK &&
                epg_pattern_capture(pattern, epg_buffer_span(&output), "version", &group);
    EPG_AUTO_FREE char *version = told ? epg_strndup((const char *)group.data, group.size) : epg_strdup("unknown");
    bool enough = told && epg_version_compare(version, minimum) >= 0;
    add(report, enough ? EPG_CHECK_GOOD : EPG_CHECK_MISSING, what,
        enough ? epg_strdup(version) : epg_format("version %s is too old: %s or later is needed", version, minimum));
}

static bool file_below(const char *directory, const char *path)
{
    EPG_AUTO_FREE char *whole = epg_format("%s/%s", directory, path);
    return access(whole, F_OK) == 0;
}

static void check_login(const epg_agent_request *request, const char *login_directory, epg_check_report *report)
{
    const json_t *login = json_object_get(request->adapter->document, "login");
    const json_t *variables = json_object_get(login, "variables");
    const json_t *files = json_object_get(login, "files");
    const char *home = request->home != NULL ? login_directory : epg_environment_get(request->environment, "HOME");
    if (login == NULL) {
        return;
    }
    for (size_t i = 0; i < json_array_size(variables); i++) {
        const char *name = json_string_value(json_array_get(variables, i));
        const char *value = epg_environment_get(request->environment, name);
        if (value != NULL && *value != '\0') {
            add(report, EPG_CHECK_GOOD, "login", epg_format("%s is set (whether it is accepted is not tried)", name));
            return;
        }
    }
    for (size_t i = 0; home != NULL && i < json_array_size(files); i++) {
        const char *path = json_string_value(json_array_get(files, i));
        if (file_below(home, path)) {
            add(report, EPG_CHECK_GOOD, "login",
                epg_format("%s/%s is there (whether it is accepted is not tried)", home, path));
            return;
        }
    }
    add(report, EPG_CHECK_MISSING, "login",
        epg_format("none found: %s", json_string_value(json_object_get(login, "how"))));
}

static void check_root(const epg_agent_request *request, epg_check_report *report)
{
    const json_t *root = json_object_get(request->adapter->document, "root");
    const char *option = json_string_value(json_object_get(root, "option"));
    if (root == NULL || !request->root) {
        return;
    }
    for (size_t i = 0; option != NULL && i < request->option_count; i++) {
        if (strcmp(request->options[i].name, option) == 0) {
            add(report, EPG_CHECK_GOOD, "root", epg_format("option %s is given", option));
            return;
        }
    }
    add(report, EPG_CHECK_MISSING, "root",
        option != NULL
            ? epg_format("it refuses to run as root: run as another user, or give the option %s (%s)", option,
                         json_string_value(json_object_get(epg_adapter_option(request->adapter, option), "help")))
            : epg_strdup("it refuses to run as root: run as another user"));
}

/* Every long option that would be used must stand in the CLI's help. */
static void check_help(const epg_agent_request *request, const epg_invocation *invocation, epg_check_report *report)
{
    const json_t *lists = json_object_get(json_object_get(request->adapter->document, "check"), "help");
    EPG_AUTO_BUFFER output = {0};
    if (json_array_size(lists) == 0) {
        return;
    }
    for (size_t i = 0; i < json_array_size(lists); i++) {
        epg_error why = {0};
        int exit_code = 0;
        epg_code code =
            answer_of(report->executable, json_array_get(lists, i), request->environment, &exit_code, &output, &why);
        if (code != EPG_OK || exit_code != 0) {
            add(report, EPG_CHECK_MISSING, "dry run",
                code != EPG_OK ? epg_strdup(why.text) : epg_format("its help ends with exit code %d", exit_code));
            return;
        }
    }
    EPG_AUTO_BUFFER unknown = {0};
    for (size_t i = 1; invocation->argv[i] != NULL; i++) {
        const char *word = invocation->argv[i];
        if (epg_pattern_once("--[a-z][a-z0-9-]*", true, epg_span_text(word)) &&
            strstr(epg_buffer_cstr(&output), word) == NULL) {
            epg_buffer_format(&unknown, "%s%s", unknown.size > 0 ? " " : "", word);
        }
    }
    if (unknown.size > 0) {
        add(report, EPG_CHECK_MISSING, "dry run", epg_format("its help does not know: %s", epg_buffer_cstr(&unknown)));
    } else {
        add(report, EPG_CHECK_GOOD, "dry run", epg_strdup("its help knows every option that would be used"));
    }
}

void epg_agent_check(const epg_agent_request *request, const char *login_directory, epg_check_report *out)
{
    epg_check_report report = {.ready = true};
    const char *path = epg_environment_get(request->environment, "PATH");
    EPG_AUTO_INVOCATION invocation = {0};
    epg_error why = {0};
    char *fault = NULL;
    report.executable = epg_probe_find(request->adapter, request->executable, path, &fault);
    if (report.executable == NULL) {
        add(&report, EPG_CHECK_MISSING, "executable", fault);
    } else {
        add(&report, EPG_CHECK_GOOD, "executable", epg_strdup(report.executable));
        check_version(request, &report);
        const json_t *needs = json_object_get(request->adapter->document, "needs");
        for (size_t i = 0; i < json_array_size(needs); i++) {
            check_need(request, json_array_get(needs, i), &report);
        }
    }
    if (epg_invocation_build(request, &invocation, &why) != EPG_OK) {
        add(&report, EPG_CHECK_MISSING, "options", epg_strdup(why.text));
    } else if (report.executable != NULL) {
        check_help(request, &invocation, &report);
    }
    check_login(request, login_directory, &report);
    check_root(request, &report);
    *out = report;
}
