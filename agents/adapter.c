#include "agents/adapter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "system/files.h"
#include "system/installed.h"

void epg_adapter_free(epg_adapter *adapter)
{
    free(adapter->name);
    free(adapter->path);
    json_decref(adapter->document);
    *adapter = (epg_adapter){0};
}

char *epg_adapter_user_directory(void)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    if (config != NULL && config[0] == '/') {
        return epg_format("%s/evopolicygym/agents", config);
    }
    return home != NULL && home[0] == '/' ? epg_format("%s/.config/evopolicygym/agents", home) : NULL;
}

char *epg_adapter_built_in_directory(void)
{
    char *found = epg_installed_find("agents", "agents/adapters");
    return found != NULL ? found : epg_strdup(EPG_DATA_DIRECTORY "/agents");
}

epg_code epg_adapter_read(const char *path, epg_adapter *out, epg_error *err)
{
    EPG_AUTO_BUFFER text = {0};
    EPG_AUTO_JSON *document = NULL;
    EPG_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return epg_fail(err, EPG_ERR_USAGE, "can't read the agent file %s: %s", path, strerror(errno));
    }
    if (epg_file_read_fd(fd, path, EPG_ADAPTER_BYTES_MAX, &text, err) != EPG_OK ||
        epg_json_parse(epg_buffer_span(&text), path, &document, err) != EPG_OK ||
        epg_adapter_check(document, path, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_USAGE, "agent file");
    }
    *out = (epg_adapter){.name = epg_strdup(json_string_value(json_object_get(document, "name"))),
                         .path = epg_strdup(path),
                         .document = json_incref(document)};
    return EPG_OK;
}

/* Reads every NAME.json of a directory into the list; files whose document has another name are at fault. */
static epg_code list_directory(const char *directory, bool built_in, epg_adapter_entry **list, size_t *count,
                               epg_error *err)
{
    DIR *stream = directory != NULL ? opendir(directory) : NULL;
    if (stream == NULL) {
        return directory == NULL || errno == ENOENT || errno == ENOTDIR
                   ? EPG_OK
                   : epg_fail_errno(err, errno, "can't read the agents' directory %s", directory);
    }
    for (struct dirent *item = readdir(stream); item != NULL; item = readdir(stream)) {
        if (item->d_name[0] == '.' || !epg_ends_with(item->d_name, ".json")) {
            continue;
        }
        EPG_AUTO_FREE char *path = epg_format("%s/%s", directory, item->d_name);
        EPG_AUTO_FREE char *name = epg_strndup(item->d_name, strlen(item->d_name) - strlen(".json"));
        epg_adapter_entry entry = {0};
        if (epg_adapter_read(path, &entry.adapter, &entry.error) == EPG_OK && strcmp(entry.adapter.name, name) != 0) {
            (void)epg_fail(&entry.error, EPG_ERR_USAGE, "agent file %s: its name is \"%s\"; call the file %s.json",
                           path, entry.adapter.name, entry.adapter.name);
        }
        if (entry.error.code != EPG_OK) {
            epg_adapter_free(&entry.adapter);
            entry.adapter.name = EPG_TAKE(name);
            entry.adapter.path = EPG_TAKE(path);
        }
        entry.adapter.built_in = built_in;
        *list = epg_grow_array(*list, *count + 1, sizeof **list);
        (*list)[(*count)++] = entry;
    }
    (void)closedir(stream);
    return EPG_OK;
}

static int by_name(const void *a, const void *b)
{
    const epg_adapter_entry *left = a;
    const epg_adapter_entry *right = b;
    int order = strcmp(left->adapter.name, right->adapter.name);
    return order != 0 ? order : (int)left->adapter.built_in - (int)right->adapter.built_in;
}

epg_code epg_adapter_list(epg_adapter_entry **out, size_t *count, epg_error *err)
{
    EPG_AUTO_FREE char *own = epg_adapter_user_directory();
    EPG_AUTO_FREE char *built_in = epg_adapter_built_in_directory();
    epg_adapter_entry *list = NULL;
    size_t found = 0;
    epg_code code = list_directory(own, false, &list, &found, err);
    if (code == EPG_OK) {
        code = list_directory(built_in, true, &list, &found, err);
    }
    if (code != EPG_OK) {
        epg_adapter_list_free(list, found);
        return code;
    }
    if (found > 0) {
        qsort(list, found, sizeof *list, by_name);
    }
    *out = list;
    *count = found;
    return EPG_OK;
}

void epg_adapter_list_free(epg_adapter_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        epg_adapter_free(&entries[i].adapter);
    }
    free(entries);
}

static epg_code not_found(const char *name, const epg_adapter_entry *list, size_t count, epg_error *err)
{
    EPG_AUTO_BUFFER names = {0};
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(list[i].adapter.name, list[i - 1].adapter.name) != 0) {
            epg_buffer_format(&names, "%s, ", list[i].adapter.name);
        }
    }
    return epg_fail(err, EPG_ERR_USAGE, "no agent is called \"%s\": there are %scommand, or give --agent-file FILE",
                    name, epg_buffer_cstr(&names));
}

epg_code epg_adapter_find(const char *name, epg_adapter *out, epg_error *err)
{
    epg_adapter_entry *list = NULL;
    size_t count = 0;
    EPG_TRY(epg_adapter_list(&list, &count, err));
    epg_code code = EPG_ERR_NOT_FOUND;
    for (size_t i = 0; i < count && code == EPG_ERR_NOT_FOUND; i++) {
        if (strcmp(list[i].adapter.name, name) != 0) {
            continue;
        }
        code = list[i].error.code;
        if (code == EPG_OK) {
            *out = list[i].adapter;
            list[i].adapter = (epg_adapter){0};
        } else {
            (void)epg_fail(err, code, "%s", list[i].error.text);
        }
    }
    if (code == EPG_ERR_NOT_FOUND) {
        code = not_found(name, list, count, err);
    }
    epg_adapter_list_free(list, count);
    return code;
}

const char *epg_adapter_title(const epg_adapter *adapter)
{
    return json_string_value(json_object_get(adapter->document, "title"));
}

bool epg_adapter_private_home(const epg_adapter *adapter)
{
    return json_is_true(json_object_get(json_object_get(adapter->document, "home"), "private"));
}

const json_t *epg_adapter_option(const epg_adapter *adapter, const char *name)
{
    return json_object_get(json_object_get(adapter->document, "options"), name);
}
