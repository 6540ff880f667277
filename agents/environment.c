/* The Agent's environment: an allow-list, what is set, and what the Host owns. */
#include <string.h>

#include "agents/invocation.h"
#include "agents/names.h"
#include "agents/template.h"
#include "base/memory.h"

static const char *const common_names[] = {"HOME",          "HTTP_PROXY",   "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
                                           "SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR",      "LANG",      "LC_ALL",
                                           "USER",          "LOGNAME",      "SHELL"};
static const char *const host_names[] = {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED",
                                         "EVOPOLICYGYM_SESSION_SOCKET", "EVOPOLICYGYM_WORKSPACE"};

void epg_names_take(epg_names *names, char *text)
{
    names->texts = epg_grow_array(names->texts, names->count + 2, sizeof *names->texts);
    names->texts[names->count++] = text;
    names->texts[names->count] = NULL;
}

void epg_names_add(epg_names *names, const char *text)
{
    epg_names_take(names, epg_strdup(text));
}

bool epg_names_hold(const epg_names *names, const char *text)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->texts[i], text) == 0) {
            return true;
        }
    }
    return false;
}

char **epg_names_give(epg_names *names)
{
    char **texts = names->texts != NULL ? names->texts : epg_alloc(sizeof *texts);
    *names = (epg_names){0};
    return texts;
}

void epg_names_free(epg_names *names)
{
    epg_texts_free(names->texts);
    *names = (epg_names){0};
}

const char *epg_environment_get(char *const *environment, const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++) {
        if (strncmp(environment[i], name, size) == 0 && environment[i][size] == '=') {
            return environment[i] + size + 1;
        }
    }
    return NULL;
}

static void add_names(epg_names *names, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!epg_names_hold(names, name)) {
            epg_names_add(names, name);
        }
    }
}

static epg_code add_set(epg_build *build, const json_t *entries, epg_names *fixed, epg_names *values, epg_error *err)
{
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        if (!epg_condition_holds(json_object_get(entry, "when"), epg_build_lookup, build)) {
            continue;
        }
        const char *name = json_string_value(json_object_get(entry, "name"));
        EPG_AUTO_BUFFER value = {0};
        EPG_TRY(epg_template_expand(json_string_value(json_object_get(entry, "value")), epg_build_lookup, build, &value,
                                    err));
        if (!epg_names_hold(fixed, name)) {
            epg_names_add(fixed, name);
            epg_names_take(values, epg_format("%s=%s", name, epg_buffer_cstr(&value)));
        }
    }
    return EPG_OK;
}

/* The allow-list, without what is set already; values are taken over for those that the Host has. */
static void inherit(const epg_agent_request *request, const epg_names *allowed, const epg_names *fixed, epg_names *kept,
                    epg_names *values)
{
    for (size_t i = 0; i < allowed->count; i++) {
        const char *name = allowed->texts[i];
        const char *value = epg_environment_get(request->environment, name);
        if (epg_names_hold(fixed, name)) {
            continue;
        }
        epg_names_add(kept, name);
        if (value != NULL) {
            epg_names_take(values, epg_format("%s=%s", name, value));
        }
    }
}

static void add_secret_values(const epg_build *build, const json_t *secret, epg_names *out)
{
    const epg_agent_request *request = build->request;
    for (size_t i = 0; i < json_array_size(secret) + request->secret_count; i++) {
        const char *name = i < request->secret_count
                               ? request->secret[i]
                               : json_string_value(json_array_get(secret, i - request->secret_count));
        const char *value = epg_environment_get(request->environment, name);
        if (value != NULL) {
            epg_names_add(out, value);
        }
    }
    for (size_t i = 0; request->adapter != NULL && i < request->option_count; i++) {
        const json_t *option = epg_adapter_option(request->adapter, request->options[i].name);
        if (json_is_true(json_object_get(option, "secret"))) {
            epg_names_add(out, request->options[i].value);
        }
    }
}

epg_code epg_build_environment(epg_build *build, epg_invocation *out, epg_error *err)
{
    const epg_agent_request *request = build->request;
    const json_t *environment =
        request->adapter != NULL ? json_object_get(request->adapter->document, "environment") : NULL;
    EPG_AUTO_NAMES fixed = {0};
    EPG_AUTO_NAMES allowed = {0};
    EPG_AUTO_NAMES kept = {0};
    EPG_AUTO_NAMES values = {0};
    EPG_AUTO_NAMES secrets = {0};
    for (size_t i = 0; i < EPG_COUNT(host_names); i++) {
        epg_names_add(&fixed, host_names[i]);
    }
    if (request->home != NULL) {
        epg_names_add(&fixed, "HOME");
        epg_names_take(&values, epg_format("HOME=%s", request->home));
    }
    EPG_TRY(add_set(build, json_object_get(environment, "set"), &fixed, &values, err));
    for (size_t i = 0; i < EPG_COUNT(common_names); i++) {
        epg_names_add(&allowed, common_names[i]);
    }
    add_names(&allowed, json_object_get(environment, "inherit"));
    add_names(&allowed, json_object_get(environment, "secret"));
    for (size_t i = 0; i < request->inherit_count + request->secret_count; i++) {
        const char *name =
            i < request->inherit_count ? request->inherit[i] : request->secret[i - request->inherit_count];
        if (!epg_names_hold(&allowed, name)) {
            epg_names_add(&allowed, name);
        }
    }
    inherit(request, &allowed, &fixed, &kept, &values);
    add_secret_values(build, json_object_get(environment, "secret"), &secrets);
    out->fixed_names = epg_names_give(&fixed);
    out->inherit_names = epg_names_give(&kept);
    out->environment = epg_names_give(&values);
    out->secrets = epg_names_give(&secrets);
    return EPG_OK;
}

char **epg_invocation_environment(const epg_invocation *invocation, const char *path, const char *session_directory,
                                  const char *session_socket, const char *workspace)
{
    epg_names names = {0};
    bool has_path = path != NULL && *path != '\0';
    epg_names_take(&names, epg_format("PATH=%s%s%s", session_directory, has_path ? ":" : "", has_path ? path : ""));
    epg_names_add(&names, "PYTHONDONTWRITEBYTECODE=1");
    epg_names_add(&names, "PYTHONUNBUFFERED=1");
    epg_names_take(&names, epg_format("EVOPOLICYGYM_SESSION_SOCKET=%s", session_socket));
    epg_names_take(&names, epg_format("EVOPOLICYGYM_WORKSPACE=%s", workspace));
    for (size_t i = 0; invocation->environment[i] != NULL; i++) {
        epg_names_add(&names, invocation->environment[i]);
    }
    return epg_names_give(&names);
}
