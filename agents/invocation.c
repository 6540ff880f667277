#include "agents/invocation.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agents/names.h"
#include "agents/pattern.h"
#include "agents/template.h"
#include "base/memory.h"
#include "base/text.h"

/* Linux takes no argument of more than 32 pages of 4 KiB, its NUL included. */
enum { ARGUMENT_MAX = 128 * 1024 - 1 };

static const char *const way_names[] = {[EPG_TASK_AUTO] = "auto",
                                        [EPG_TASK_ARGUMENT] = "argument",
                                        [EPG_TASK_STDIN] = "stdin",
                                        [EPG_TASK_FILE_WAY] = "file"};

const char *epg_task_way_name(epg_task_way way)
{
    return way_names[way];
}

bool epg_task_way_parse(const char *name, epg_task_way *out)
{
    for (size_t i = 0; i < EPG_COUNT(way_names); i++) {
        if (strcmp(way_names[i], name) == 0) {
            *out = (epg_task_way)i;
            return true;
        }
    }
    return false;
}

void epg_texts_free(char **texts)
{
    for (size_t i = 0; texts != NULL && texts[i] != NULL; i++) {
        free(texts[i]);
    }
    free(texts);
}

void epg_invocation_free(epg_invocation *invocation)
{
    epg_texts_free(invocation->argv);
    epg_texts_free(invocation->recorded_argv);
    epg_texts_free(invocation->environment);
    epg_texts_free(invocation->fixed_names);
    epg_texts_free(invocation->inherit_names);
    epg_texts_free(invocation->login_paths);
    epg_texts_free(invocation->secrets);
    for (size_t i = 0; i < invocation->identity_count; i++) {
        free(invocation->identity[i].name);
        free(invocation->identity[i].value);
    }
    free(invocation->identity);
    for (size_t i = 0; i < invocation->home_file_count; i++) {
        free(invocation->home_files[i].path);
        epg_buffer_free(&invocation->home_files[i].content);
    }
    free(invocation->home_files);
    free(invocation->stdout_media_type);
    *invocation = (epg_invocation){0};
}

static const char *given_option(const epg_agent_request *request, const char *name)
{
    for (size_t i = 0; i < request->option_count; i++) {
        if (strcmp(request->options[i].name, name) == 0) {
            return request->options[i].value;
        }
    }
    return NULL;
}

static const char *option_value(const epg_agent_request *request, const char *name)
{
    const char *given = given_option(request, name);
    if (given != NULL || request->adapter == NULL) {
        return given;
    }
    return json_string_value(json_object_get(epg_adapter_option(request->adapter, name), "default"));
}

static bool in_list(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(json_string_value(json_array_get(list, i)), name) == 0) {
            return true;
        }
    }
    return false;
}

/* A variable that the Agent will really get from the Host's environment. */
static const char *inherited(const epg_agent_request *request, const char *name)
{
    const json_t *environment = json_object_get(request->adapter->document, "environment");
    bool listed =
        in_list(json_object_get(environment, "inherit"), name) || in_list(json_object_get(environment, "secret"), name);
    const char *value = listed ? epg_environment_get(request->environment, name) : NULL;
    return value != NULL && *value != '\0' ? value : NULL;
}

const char *epg_build_lookup(void *context, const char *name)
{
    const epg_build *build = context;
    const epg_agent_request *request = build->request;
    if (epg_starts_with(name, "env:")) {
        return inherited(request, name + 4);
    }
    const struct {
        const char *name;
        const char *value;
    } fixed[] = {{"instructions", build->instructions},
                 {"instructions_file", build->instructions_file},
                 {"workspace", request->workspace},
                 {"home", request->home},
                 {"resume", request->resume},
                 {"version", request->version},
                 {"root", request->root ? "yes" : NULL},
                 {"task", way_names[build->way]},
                 {"keep_from_tools", build->keep_from_tools}};
    for (size_t i = 0; i < EPG_COUNT(fixed); i++) {
        if (strcmp(fixed[i].name, name) == 0) {
            return fixed[i].value;
        }
    }
    return option_value(request, name);
}

static epg_code check_value(const char *name, const char *value, epg_error *err)
{
    if (strcmp(name, "model") == 0 && !epg_pattern_once("\\S{1,128}", true, epg_span_text(value))) {
        return epg_fail(err, EPG_ERR_USAGE, "the model must be 1 to %d bytes without white space", EPG_MODEL_MAX);
    }
    if (strcmp(name, "effort") == 0 && !epg_pattern_once("[A-Za-z0-9_-]{1,64}", true, epg_span_text(value))) {
        return epg_fail(err, EPG_ERR_USAGE, "the effort must be 1 to %d bytes of letters, digits, '_' and '-'",
                        EPG_EFFORT_MAX);
    }
    if (!epg_utf8_valid(value, strlen(value)) ||
        !epg_pattern_once("[^\\x00-\\x1f\\x7f]{1,4096}", true, epg_span_text(value))) {
        return epg_fail(err, EPG_ERR_USAGE, "option %s must be 1 to 4096 bytes of plain text", name);
    }
    return EPG_OK;
}

static epg_code unknown_option(const epg_adapter *adapter, const char *given, epg_error *err)
{
    EPG_AUTO_BUFFER names = {0};
    const char *name = NULL;
    json_t *option = NULL;
    json_t *options = json_object_get(adapter->document, "options");
    json_object_foreach(options, name, option)
    {
        epg_buffer_format(&names, "%s%s", names.size > 0 ? ", " : "", name);
    }
    return epg_fail(err, EPG_ERR_USAGE, "agent %s has no option \"%s\"; it has: %s", adapter->name, given,
                    names.size > 0 ? epg_buffer_cstr(&names) : "none");
}

static epg_code check_options(const epg_agent_request *request, epg_error *err)
{
    for (size_t i = 0; i < request->option_count; i++) {
        const epg_pair *given = &request->options[i];
        EPG_TRY(check_value(given->name, given->value, err));
        if (request->adapter == NULL) {
            continue;
        }
        const json_t *option = epg_adapter_option(request->adapter, given->name);
        if (option == NULL) {
            return unknown_option(request->adapter, given->name, err);
        }
        const char *pattern = json_string_value(json_object_get(option, "pattern"));
        if (!epg_pattern_once(pattern, true, epg_span_text(given->value))) {
            return epg_fail(err, EPG_ERR_USAGE, "agent %s: option %s must match %s (%s)", request->adapter->name,
                            given->name, pattern, json_string_value(json_object_get(option, "help")));
        }
    }
    if (request->adapter == NULL) {
        return EPG_OK;
    }
    const char *name = NULL;
    json_t *option = NULL;
    json_t *options = json_object_get(request->adapter->document, "options");
    json_object_foreach(options, name, option)
    {
        if (json_is_true(json_object_get(option, "required")) && option_value(request, name) == NULL) {
            return epg_fail(err, EPG_ERR_USAGE, "agent %s needs the option %s: %s", request->adapter->name, name,
                            json_string_value(json_object_get(option, "help")));
        }
    }
    return EPG_OK;
}

static epg_code check_request(const epg_agent_request *request, epg_error *err)
{
    const char *executable = request->executable;
    if (executable != NULL &&
        (*executable == '\0' || strlen(executable) > EPG_EXECUTABLE_MAX || strpbrk(executable, "\r\n") != NULL)) {
        return epg_fail(err, EPG_ERR_USAGE, "the agent's executable must be a path of 1 to %d bytes in one line",
                        EPG_EXECUTABLE_MAX);
    }
    if (request->adapter == NULL && (request->command_count == 0 || request->command[0][0] == '\0')) {
        return epg_fail(err, EPG_ERR_USAGE, "no agent command: put it after --, as in `-- python3 agent.py`");
    }
    for (size_t i = 0; i < request->secret_count + request->inherit_count; i++) {
        const char *name = i < request->secret_count ? request->secret[i] : request->inherit[i - request->secret_count];
        if (!epg_pattern_once("[A-Za-z_][A-Za-z0-9_]*", true, epg_span_text(name)) ||
            epg_pattern_once("PATH|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED|EVOPOLICYGYM_.*", true,
                             epg_span_text(name))) {
            return epg_fail(err, EPG_ERR_USAGE, "\"%s\" is no variable that an agent can inherit", name);
        }
    }
    return check_options(request, err);
}

/* The three replacements in a user's own argument. */
static char *expand_own(epg_build *build, const char *text)
{
    static const char *const names[] = {"{instructions}", "{instructions_file}", "{workspace}"};
    const char *const values[] = {build->instructions, build->instructions_file, build->request->workspace};
    EPG_AUTO_BUFFER out = {0};
    while (*text != '\0') {
        size_t taken = 0;
        for (size_t i = 0; i < EPG_COUNT(names) && taken == 0; i++) {
            if (epg_starts_with(text, names[i])) {
                epg_buffer_text(&out, values[i]);
                taken = strlen(names[i]);
            }
        }
        if (taken == 0) {
            epg_buffer_byte(&out, (uint8_t)*text);
            taken = 1;
        }
        text += taken;
    }
    return epg_buffer_take_text(&out);
}

static epg_code add_expanded(epg_build *build, const json_t *text, epg_names *argv, epg_error *err)
{
    EPG_AUTO_BUFFER out = {0};
    EPG_TRY(epg_template_expand(json_string_value(text), epg_build_lookup, build, &out, err));
    epg_names_take(argv, epg_buffer_take_text(&out));
    return EPG_OK;
}

/* The first of the adapter's names that is in PATH, or its first. */
static const char *adapter_executable(const epg_agent_request *request)
{
    const json_t *names = json_object_get(json_object_get(request->adapter->document, "executable"), "names");
    const char *path = epg_environment_get(request->environment, "PATH");
    for (size_t i = 0; path != NULL && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        EPG_AUTO_FREE char *copy = epg_strdup(path);
        char *rest = copy;
        for (char *directory = strsep(&rest, ":"); directory != NULL; directory = strsep(&rest, ":")) {
            EPG_AUTO_FREE char *candidate = epg_format("%s/%s", directory, name);
            if (*directory != '\0' && access(candidate, X_OK) == 0) {
                return name;
            }
        }
    }
    return json_string_value(json_array_get(names, 0));
}

static epg_code make_argv(epg_build *build, epg_names *argv, epg_error *err)
{
    const epg_agent_request *request = build->request;
    if (request->adapter != NULL) {
        epg_names_add(argv, request->executable != NULL ? request->executable : adapter_executable(request));
        const json_t *arguments = json_object_get(request->adapter->document, "arguments");
        for (size_t i = 0; i < json_array_size(arguments); i++) {
            const json_t *item = json_array_get(arguments, i);
            if (json_is_string(item)) {
                EPG_TRY(add_expanded(build, item, argv, err));
                continue;
            }
            const json_t *list = json_object_get(item, "arguments");
            if (!epg_condition_holds(json_object_get(item, "when"), epg_build_lookup, build)) {
                continue;
            }
            for (size_t k = 0; k < json_array_size(list); k++) {
                EPG_TRY(add_expanded(build, json_array_get(list, k), argv, err));
            }
        }
    }
    for (size_t i = 0; i < request->command_count; i++) {
        epg_names_take(argv, expand_own(build, request->command[i]));
    }
    return EPG_OK;
}

static bool fits(const epg_names *argv)
{
    long most = sysconf(_SC_ARG_MAX);
    size_t all = 0;
    for (size_t i = 0; i < argv->count; i++) {
        size_t size = strlen(argv->texts[i]);
        all += size + 1 + sizeof(char *);
        if (size > ARGUMENT_MAX) {
            return false;
        }
    }
    return most <= 0 || all < (size_t)most / 2; /* the other half is the environment's */
}

static bool own_command_holds(const epg_agent_request *request, const char *placeholder)
{
    for (size_t i = 0; i < request->command_count; i++) {
        if (strstr(request->command[i], placeholder) != NULL) {
            return true;
        }
    }
    return false;
}

/* The ways to try, in order. */
static size_t ways_of(const epg_agent_request *request, epg_task_way ways[3])
{
    if (request->task_way != EPG_TASK_AUTO) {
        ways[0] = request->task_way;
        return 1;
    }
    if (request->adapter == NULL) {
        ways[0] = own_command_holds(request, "{instructions}") ? EPG_TASK_ARGUMENT : EPG_TASK_FILE_WAY;
        return 1;
    }
    const json_t *names = json_object_get(json_object_get(request->adapter->document, "task"), "ways");
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(names) && count < 3; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        count += epg_task_way_parse(name, &ways[count]) ? 1 : 0;
    }
    return count;
}

static epg_code check_way(const epg_agent_request *request, epg_error *err)
{
    if (request->task_way == EPG_TASK_AUTO) {
        return EPG_OK;
    }
    if (request->adapter == NULL) {
        return request->task_way != EPG_TASK_ARGUMENT || own_command_holds(request, "{instructions}")
                   ? EPG_OK
                   : epg_fail(err, EPG_ERR_USAGE,
                              "the task is to be an argument, but no argument holds {instructions}");
    }
    const json_t *ways = json_object_get(json_object_get(request->adapter->document, "task"), "ways");
    return in_list(ways, way_names[request->task_way])
               ? EPG_OK
               : epg_fail(err, EPG_ERR_USAGE, "agent %s can't take the task by %s", request->adapter->name,
                          way_names[request->task_way]);
}

static epg_code settle_argv(epg_build *build, epg_names *argv, epg_error *err)
{
    const epg_agent_request *request = build->request;
    epg_task_way ways[3];
    size_t count = ways_of(request, ways);
    EPG_TRY(check_way(request, err));
    for (size_t i = 0; i < count; i++) {
        build->way = ways[i];
        epg_names_free(argv);
        EPG_TRY(make_argv(build, argv, err));
        if (fits(argv)) {
            return EPG_OK;
        }
    }
    return epg_fail(
        err, EPG_ERR_USAGE,
        "the task text has %zu bytes, more than an argument can hold (%d), and %s%s; shorten the Benchmark's "
        "description or skills",
        strlen(request->instructions), ARGUMENT_MAX, request->adapter != NULL ? "agent " : "this command",
        request->adapter != NULL ? request->adapter->name : " takes it as {instructions}");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const epg_pair *)a)->name, ((const epg_pair *)b)->name);
}

static void add_identity(epg_invocation *out, const char *name, const char *value)
{
    if (value == NULL) {
        return;
    }
    out->identity = epg_grow_array(out->identity, out->identity_count + 1, sizeof *out->identity);
    epg_pair *pair = &out->identity[out->identity_count++];
    *pair = (epg_pair){epg_strdup(name), epg_strdup(value)};
    for (char *c = pair->name; *c != '\0'; c++) {
        *c = *c == '-' ? '_' : *c;
    }
}

static void make_identity(const epg_agent_request *request, epg_invocation *out)
{
    add_identity(out, "provider", request->adapter != NULL ? request->adapter->name : "command");
    add_identity(out, "cli_version", request->version);
    if (request->adapter == NULL) {
        for (size_t i = 0; i < request->option_count; i++) {
            add_identity(out, request->options[i].name, request->options[i].value);
        }
    } else {
        const char *name = NULL;
        json_t *option = NULL;
        json_t *options = json_object_get(request->adapter->document, "options");
        json_object_foreach(options, name, option)
        {
            if (!json_is_false(json_object_get(option, "identity")) &&
                !json_is_true(json_object_get(option, "secret"))) {
                add_identity(out, name, option_value(request, name));
            }
        }
    }
    qsort(out->identity, out->identity_count, sizeof *out->identity, by_name);
}

static epg_code build_all(epg_build *build, epg_invocation *out, epg_error *err)
{
    EPG_AUTO_NAMES argv = {0};
    EPG_AUTO_NAMES recorded = {0};
    build->instructions = build->request->instructions;
    EPG_TRY(settle_argv(build, &argv, err));
    build->instructions = EPG_RECORDED_INSTRUCTIONS;
    EPG_TRY(make_argv(build, &recorded, err));
    out->argv = epg_names_give(&argv);
    out->recorded_argv = epg_names_give(&recorded);
    out->task_way = build->way;
    EPG_TRY(epg_build_environment(build, out, err));
    EPG_TRY(epg_build_home(build, out, err));
    make_identity(build->request, out);
    const json_t *stream =
        build->request->adapter != NULL ? json_object_get(build->request->adapter->document, "stream") : NULL;
    const char *format = json_string_value(json_object_get(stream, "format"));
    bool json_lines = format != NULL && strcmp(format, "json-lines") == 0;
    out->stdout_media_type = epg_strdup(json_lines ? "application/x-ndjson" : "text/plain");
    return EPG_OK;
}

epg_code epg_invocation_build(const epg_agent_request *request, epg_invocation *out, epg_error *err)
{
    EPG_TRY(check_request(request, err));
    epg_build build = {.request = request};
    epg_invocation made = {0};
    if (request->adapter != NULL) {
        const json_t *names =
            json_object_get(json_object_get(request->adapter->document, "environment"), "keep_from_tools");
        build.keep_from_tools = names != NULL ? json_dumps(names, JSON_COMPACT) : epg_strdup("[]");
    }
    build.instructions_file = epg_format("%s/%s", request->workspace, EPG_TASK_FILE);
    epg_code code = build_all(&build, &made, err);
    free(build.instructions_file);
    free(build.keep_from_tools);
    if (code != EPG_OK) {
        epg_invocation_free(&made);
        return code;
    }
    *out = made;
    return EPG_OK;
}
