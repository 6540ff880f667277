/* The shape of an adapter: every key known, every type right, every pattern compiling, every placeholder and condition
 * naming something that is there. Errors say where: "FILE: options.model.pattern: ...". */
#include <string.h>

#include "agents/adapter.h"
#include "agents/pattern.h"
#include "agents/rules.h"
#include "agents/template.h"
#include "base/memory.h"
#include "base/text.h"

typedef enum kind { TEXT, BOOL, OBJECT, LIST, TEXTS, WHEN } kind;
typedef struct field {
    const char *name;
    kind kind;
    bool required;
} field;

typedef struct check {
    const char *what;
    const json_t *document;
} check;

static epg_code wrong(const check *on, const char *place, const char *key, const char *why, epg_error *err)
{
    return epg_fail(err, EPG_ERR_INVALID, "%s: %s%s%s: %s", on->what, place, *place != '\0' && *key != '\0' ? "." : "",
                    key, why);
}

static bool is_texts(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!json_is_string(json_array_get(value, i))) {
            return false;
        }
    }
    return json_is_array(value);
}

static const char *kind_fault(kind wanted, const json_t *value)
{
    switch (wanted) {
    case TEXT:
        return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value)
                   ? NULL
                   : "is not a string";
    case BOOL:
        return json_is_boolean(value) ? NULL : "is not true or false";
    case OBJECT:
        return json_is_object(value) ? NULL : "is not an object";
    case LIST:
        return json_is_array(value) ? NULL : "is not a list";
    case TEXTS:
        return is_texts(value) ? NULL : "is not a list of strings";
    case WHEN:
        return json_is_string(value) || is_texts(value) ? NULL : "is not a condition";
    }
    return "is not known";
}

static const field *find_field(const field *fields, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(fields[i].name, name) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

static epg_code check_fields(const check *on, const char *place, const json_t *object, const field *fields,
                             size_t count, epg_error *err)
{
    if (!json_is_object(object)) {
        return wrong(on, place, "", "is not an object", err);
    }
    const char *key = NULL;
    json_t *value = NULL;
    json_t *walked = epg_json_unconst(object);
    json_object_foreach(walked, key, value)
    {
        const field *known = find_field(fields, count, key);
        if (known == NULL) {
            return wrong(on, place, key, "is not a key that is known here", err);
        }
        const char *fault = kind_fault(known->kind, value);
        if (fault != NULL) {
            return wrong(on, place, key, fault, err);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (fields[i].required && json_object_get(object, fields[i].name) == NULL) {
            return wrong(on, place, fields[i].name, "is missing", err);
        }
    }
    return EPG_OK;
}
#define CHECK_FIELDS(on, place, object, fields, err) check_fields(on, place, object, fields, EPG_COUNT(fields), err)

static epg_code check_pattern(const check *on, const char *place, const json_t *text, epg_error *err)
{
    EPG_AUTO_PATTERN *pattern = NULL;
    if (text == NULL || epg_pattern_new(json_string_value(text), false, &pattern, err) == EPG_OK) {
        return EPG_OK;
    }
    return epg_fail_within(err, "%s: %s", on->what, place);
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

/* For conditions and placeholders: what may be named. */
static const char *known_name(void *context, const char *name)
{
    static const char *const fixed[] = {"home", "root", "task", "version", "resume", "workspace", "keep_from_tools"};
    const json_t *document = context;
    const json_t *environment = json_object_get(document, "environment");
    if (epg_starts_with(name, "env:")) {
        return in_list(json_object_get(environment, "inherit"), name + 4) ||
                       in_list(json_object_get(environment, "secret"), name + 4)
                   ? ""
                   : NULL;
    }
    for (size_t i = 0; i < EPG_COUNT(fixed); i++) {
        if (strcmp(fixed[i], name) == 0) {
            return "";
        }
    }
    return json_object_get(json_object_get(document, "options"), name) != NULL ? "" : NULL;
}

/* Arguments may hold the task too, and no secret: other users of the machine can read them. */
static const char *known_in_arguments(void *context, const char *name)
{
    const json_t *option = json_object_get(json_object_get((json_t *)context, "options"), name);
    if (json_is_true(json_object_get(option, "secret"))) {
        return NULL;
    }
    if (strcmp(name, "instructions") == 0 || strcmp(name, "instructions_file") == 0) {
        return "";
    }
    return known_name(context, name);
}

static epg_code check_template(const check *on, const char *place, const json_t *text, epg_lookup *known,
                               epg_error *err)
{
    EPG_AUTO_JSON *ignored = NULL;
    if (epg_template_expand_json(text, known, epg_json_unconst(on->document), &ignored, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_INVALID, "%s: %s: a placeholder that names nothing", on->what, place);
    }
    return EPG_OK;
}

static epg_code check_when(const check *on, const char *place, const json_t *object, epg_error *err)
{
    if (epg_condition_check(json_object_get(object, "when"), known_name, epg_json_unconst(on->document), err) !=
        EPG_OK) {
        return epg_fail_within(err, "%s: %s", on->what, place);
    }
    return EPG_OK;
}

static epg_code check_name(const check *on, epg_error *err)
{
    const char *schema = json_string_value(json_object_get(on->document, "schema"));
    const char *name = json_string_value(json_object_get(on->document, "name"));
    if (strcmp(schema, EPG_ADAPTER_SCHEMA) != 0) {
        return epg_fail(err, EPG_ERR_INVALID, "%s: schema is \"%s\", and this version reads \"%s\"", on->what, schema,
                        EPG_ADAPTER_SCHEMA);
    }
    if (!epg_pattern_once("[a-z0-9]+(-[a-z0-9]+)*", true, epg_span_text(name)) || strlen(name) > 64 ||
        strcmp(name, "command") == 0) {
        return wrong(on, "name", "", "must be lower-case words joined by '-', at most 64 bytes, and not \"command\"",
                     err);
    }
    return EPG_OK;
}

static epg_code check_executable(const check *on, epg_error *err)
{
    static const field executable[] = {{"names", TEXTS, true}, {"install", TEXT, false}};
    static const field version[] = {
        {"arguments", TEXTS, true}, {"pattern", TEXT, true}, {"tested", TEXTS, true}, {"minimum", TEXT, false}};
    static const field need[] = {
        {"command", TEXTS, true}, {"pattern", TEXT, true}, {"minimum", TEXT, true}, {"what", TEXT, true}};
    const json_t *found = json_object_get(on->document, "executable");
    EPG_TRY(CHECK_FIELDS(on, "executable", found, executable, err));
    if (json_array_size(json_object_get(found, "names")) == 0) {
        return wrong(on, "executable", "names", "is empty", err);
    }
    found = json_object_get(on->document, "version");
    if (found != NULL) {
        EPG_TRY(CHECK_FIELDS(on, "version", found, version, err));
        EPG_TRY(check_pattern(on, "version.pattern", json_object_get(found, "pattern"), err));
    }
    found = json_object_get(on->document, "needs");
    for (size_t i = 0; i < json_array_size(found); i++) {
        const json_t *one = json_array_get(found, i);
        EPG_TRY(CHECK_FIELDS(on, "needs", one, need, err));
        EPG_TRY(check_pattern(on, "needs.pattern", json_object_get(one, "pattern"), err));
        if (json_array_size(json_object_get(one, "command")) == 0) {
            return wrong(on, "needs", "command", "is empty", err);
        }
    }
    return EPG_OK;
}

static epg_code check_options(const check *on, epg_error *err)
{
    static const field fields[] = {{"help", TEXT, true},     {"pattern", TEXT, true}, {"required", BOOL, false},
                                   {"default", TEXT, false}, {"secret", BOOL, false}, {"identity", BOOL, false}};
    const char *name = NULL;
    json_t *option = NULL;
    json_t *options = json_object_get(on->document, "options");
    json_object_foreach(options, name, option)
    {
        EPG_AUTO_FREE char *place = epg_format("options.%s", name);
        EPG_AUTO_FREE char *pattern_place = epg_format("options.%s.pattern", name);
        EPG_TRY(CHECK_FIELDS(on, place, option, fields, err));
        const json_t *pattern = json_object_get(option, "pattern");
        EPG_TRY(check_pattern(on, pattern_place, pattern, err));
        if (!epg_pattern_once("[a-z][a-z0-9-]{0,63}", true, epg_span_text(name))) {
            return wrong(on, place, "", "an option's name must be of lower-case letters, digits and '-'", err);
        }
        if (epg_pattern_once("home|root|task|version|resume|workspace|provider", true, epg_span_text(name))) {
            return wrong(on, place, "", "this name is the Host's own", err);
        }
        const json_t *standard = json_object_get(option, "default");
        if (standard != NULL &&
            !epg_pattern_once(json_string_value(pattern), true, epg_span_text(json_string_value(standard)))) {
            return wrong(on, place, "default", "does not match the option's own pattern", err);
        }
    }
    return EPG_OK;
}

static epg_code check_arguments(const check *on, epg_error *err)
{
    static const field group[] = {{"when", WHEN, false}, {"arguments", TEXTS, true}};
    const json_t *arguments = json_object_get(on->document, "arguments");
    for (size_t i = 0; i < json_array_size(arguments); i++) {
        const json_t *item = json_array_get(arguments, i);
        EPG_AUTO_FREE char *place = epg_format("arguments[%zu]", i);
        if (!json_is_string(item)) {
            EPG_TRY(CHECK_FIELDS(on, place, item, group, err));
            EPG_TRY(check_when(on, place, item, err));
            item = json_object_get(item, "arguments");
        }
        EPG_TRY(check_template(on, place, item, known_in_arguments, err));
    }
    return EPG_OK;
}

static epg_code check_task(const check *on, epg_error *err)
{
    static const field fields[] = {{"ways", TEXTS, true}};
    const json_t *task = json_object_get(on->document, "task");
    EPG_TRY(CHECK_FIELDS(on, "task", task, fields, err));
    const json_t *ways = json_object_get(task, "ways");
    for (size_t i = 0; i < json_array_size(ways); i++) {
        if (!epg_pattern_once("argument|stdin|file", true, epg_span_text(json_string_value(json_array_get(ways, i))))) {
            return wrong(on, "task", "ways", "holds something else than \"argument\", \"stdin\", \"file\"", err);
        }
    }
    return json_array_size(ways) > 0 ? EPG_OK : wrong(on, "task", "ways", "is empty", err);
}

static epg_code check_variable_names(const check *on, const char *place, const json_t *names, epg_error *err)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        if (!epg_pattern_once("[A-Za-z_][A-Za-z0-9_]*", true,
                              epg_span_text(json_string_value(json_array_get(names, i))))) {
            return wrong(on, place, "", "holds something that is not a variable's name", err);
        }
    }
    return EPG_OK;
}

static epg_code check_environment(const check *on, epg_error *err)
{
    static const field fields[] = {
        {"inherit", TEXTS, false}, {"secret", TEXTS, false}, {"keep_from_tools", TEXTS, false}, {"set", LIST, false}};
    static const field set[] = {{"when", WHEN, false}, {"name", TEXT, true}, {"value", TEXT, true}};
    const json_t *environment = json_object_get(on->document, "environment");
    if (environment == NULL) {
        return EPG_OK;
    }
    EPG_TRY(CHECK_FIELDS(on, "environment", environment, fields, err));
    static const char *const lists[] = {"inherit", "secret", "keep_from_tools"};
    for (size_t i = 0; i < EPG_COUNT(lists); i++) {
        EPG_AUTO_FREE char *place = epg_format("environment.%s", lists[i]);
        EPG_TRY(check_variable_names(on, place, json_object_get(environment, lists[i]), err));
    }
    const json_t *entries = json_object_get(environment, "set");
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        EPG_AUTO_FREE char *place = epg_format("environment.set[%zu]", i);
        EPG_TRY(CHECK_FIELDS(on, place, entry, set, err));
        EPG_TRY(check_when(on, place, entry, err));
        EPG_TRY(check_template(on, place, json_object_get(entry, "value"), known_name, err));
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (!epg_pattern_once("[A-Za-z_][A-Za-z0-9_]*", true, epg_span_text(name)) ||
            epg_pattern_once("PATH|HOME|PYTHON.*|EVOPOLICYGYM_.*|LD_.*", true, epg_span_text(name))) {
            return wrong(on, place, "name", "is no variable that an adapter may set", err);
        }
    }
    return EPG_OK;
}

static bool is_path_below(const char *path)
{
    return epg_pattern_once("(?!.*(?:^|/)\\.\\.?(?:/|$))[^/\\x00-\\x1f]+(?:/[^/\\x00-\\x1f]+)*", true,
                            epg_span_text(path));
}

static epg_code check_paths(const check *on, const char *place, const json_t *paths, epg_error *err)
{
    for (size_t i = 0; i < json_array_size(paths); i++) {
        if (!is_path_below(json_string_value(json_array_get(paths, i)))) {
            return wrong(on, place, "", "holds something that is not a plain relative path", err);
        }
    }
    return EPG_OK;
}

static epg_code check_home(const check *on, epg_error *err)
{
    static const field fields[] = {
        {"private", BOOL, true}, {"directories", TEXTS, false}, {"files", LIST, false}, {"login", TEXTS, false}};
    static const field file[] = {
        {"when", WHEN, false}, {"path", TEXT, true}, {"text", TEXT, false}, {"json", OBJECT, false}};
    const json_t *home = json_object_get(on->document, "home");
    if (home == NULL) {
        return EPG_OK;
    }
    EPG_TRY(CHECK_FIELDS(on, "home", home, fields, err));
    EPG_TRY(check_paths(on, "home.directories", json_object_get(home, "directories"), err));
    EPG_TRY(check_paths(on, "home.login", json_object_get(home, "login"), err));
    const json_t *files = json_object_get(home, "files");
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *one = json_array_get(files, i);
        EPG_AUTO_FREE char *place = epg_format("home.files[%zu]", i);
        EPG_TRY(CHECK_FIELDS(on, place, one, file, err));
        EPG_TRY(check_when(on, place, one, err));
        const json_t *text = json_object_get(one, "text");
        const json_t *json = json_object_get(one, "json");
        if ((text == NULL) == (json == NULL)) {
            return wrong(on, place, "", "needs one of \"text\" and \"json\"", err);
        }
        if (!is_path_below(json_string_value(json_object_get(one, "path")))) {
            return wrong(on, place, "path", "is not a plain relative path", err);
        }
        EPG_TRY(check_template(on, place, text != NULL ? text : json, known_name, err));
    }
    return EPG_OK;
}

static epg_code check_login_and_root(const check *on, epg_error *err)
{
    static const field login[] = {{"variables", TEXTS, false}, {"files", TEXTS, false}, {"how", TEXT, true}};
    static const field root[] = {{"option", TEXT, false}};
    static const field help[] = {{"help", LIST, true}};
    const json_t *found = json_object_get(on->document, "login");
    if (found != NULL) {
        EPG_TRY(CHECK_FIELDS(on, "login", found, login, err));
        EPG_TRY(check_variable_names(on, "login.variables", json_object_get(found, "variables"), err));
        EPG_TRY(check_paths(on, "login.files", json_object_get(found, "files"), err));
    }
    found = json_object_get(on->document, "root");
    if (found != NULL) {
        EPG_TRY(CHECK_FIELDS(on, "root", found, root, err));
        const char *option = json_string_value(json_object_get(found, "option"));
        if (option != NULL && json_object_get(json_object_get(on->document, "options"), option) == NULL) {
            return wrong(on, "root", "option", "is no option of this adapter", err);
        }
    }
    found = json_object_get(on->document, "check");
    if (found != NULL) {
        EPG_TRY(CHECK_FIELDS(on, "check", found, help, err));
        const json_t *lists = json_object_get(found, "help");
        for (size_t i = 0; i < json_array_size(lists); i++) {
            if (!is_texts(json_array_get(lists, i))) {
                return wrong(on, "check", "help", "is not a list of lists of strings", err);
            }
        }
    }
    return EPG_OK;
}

epg_code epg_adapter_check(const json_t *document, const char *what, epg_error *err)
{
    static const field fields[] = {
        {"schema", TEXT, true},         {"name", TEXT, true},       {"title", TEXT, true},
        {"executable", OBJECT, true},   {"version", OBJECT, false}, {"needs", LIST, false},
        {"options", OBJECT, false},     {"task", OBJECT, true},     {"arguments", LIST, true},
        {"environment", OBJECT, false}, {"home", OBJECT, false},    {"login", OBJECT, false},
        {"root", OBJECT, false},        {"check", OBJECT, false},   {"stream", OBJECT, false},
        {"errors", LIST, false},        {"redact", TEXTS, false}};
    const check on = {what, document};
    EPG_TRY(CHECK_FIELDS(&on, "", document, fields, err));
    EPG_TRY(check_name(&on, err));
    EPG_TRY(check_executable(&on, err));
    EPG_TRY(check_options(&on, err));
    EPG_TRY(check_task(&on, err));
    EPG_TRY(check_environment(&on, err));
    EPG_TRY(check_arguments(&on, err));
    EPG_TRY(check_home(&on, err));
    EPG_TRY(check_login_and_root(&on, err));
    const json_t *redact = json_object_get(document, "redact");
    for (size_t i = 0; i < json_array_size(redact); i++) {
        EPG_TRY(check_pattern(&on, "redact", json_array_get(redact, i), err));
    }
    if (epg_rules_check(json_object_get(document, "stream"), json_object_get(document, "errors"), err) != EPG_OK) {
        return epg_fail_within(err, "%s", what);
    }
    return EPG_OK;
}
