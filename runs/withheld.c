#include "runs/withheld.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void epg_withholding_free(epg_withholding *self)
{
    free(self->variables);
    *self = (epg_withholding){0};
}

static bool is_secret(const epg_redactor *redactor, const char *text)
{
    EPG_AUTO_BUFFER ignored = {0};
    return redactor != NULL && epg_redact(redactor, epg_span_text(text), &ignored) > 0;
}

static char *replace(const char *text, const char *part, const char *by)
{
    EPG_AUTO_BUFFER out = {0};
    for (const char *at = strstr(text, part); at != NULL; at = strstr(text, part)) {
        (void)epg_buffer_append(&out, text, (size_t)(at - text));
        (void)epg_buffer_text(&out, by);
        text = at + strlen(part);
    }
    (void)epg_buffer_text(&out, text);
    return epg_buffer_take_text(&out);
}

static void need(epg_withholding *self, const char *variable)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->variables[i] == variable) {
            return;
        }
    }
    self->variables = epg_grow_array(self->variables, self->count + 1, sizeof *self->variables);
    self->variables[self->count++] = variable;
}

/* The variable whose value is, or stands in, `word` and is secret: the longest; NULL: none. */
static const char *find_variable(const epg_withholding *self, const char *word, bool whole)
{
    const char *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; self->environment != NULL && self->environment[i] != NULL; i++) {
        const char *equals = strchr(self->environment[i], '=');
        const char *value = equals != NULL ? equals + 1 : "";
        size_t size = strlen(value);
        bool fits =
            whole ? strcmp(value, word) == 0
                  : size >= EPG_REDACTION_VALUE_MIN && strstr(word, value) != NULL && is_secret(self->redactor, value);
        if (fits && size > longest) {
            found = self->environment[i];
            longest = size;
        }
    }
    return found;
}

static char *placeholder(const char *variable)
{
    return epg_format("[secret:%.*s]", (int)(strchr(variable, '=') - variable), variable);
}

char *epg_withhold(epg_withholding *self, const char *word, bool secret)
{
    char *kept = epg_strdup(word);
    if (secret) {
        const char *variable = find_variable(self, word, true);
        free(kept);
        self->lost = self->lost || variable == NULL;
        if (variable != NULL) {
            need(self, variable);
        }
        return variable != NULL ? placeholder(variable) : epg_strdup(EPG_REDACTED);
    }
    while (is_secret(self->redactor, kept)) {
        const char *variable = find_variable(self, kept, false);
        if (variable == NULL) {
            EPG_AUTO_BUFFER out = {0};
            (void)epg_redact(self->redactor, epg_span_text(kept), &out);
            free(kept);
            self->lost = true;
            return epg_buffer_take_text(&out);
        }
        EPG_AUTO_FREE char *by = placeholder(variable);
        char *next = replace(kept, strchr(variable, '=') + 1, by);
        free(kept);
        kept = next;
        need(self, variable);
    }
    return kept;
}

void epg_withholding_write(const epg_withholding *self, epg_json_writer *writer, const char *key)
{
    epg_json_object(writer, key);
    epg_json_put_bool(writer, "lost", self->lost);
    epg_json_array(writer, "variables");
    for (size_t i = 0; i < self->count; i++) {
        EPG_AUTO_FREE char *name = epg_strndup(self->variables[i], strcspn(self->variables[i], "="));
        epg_json_put_text(writer, NULL, name);
    }
    epg_json_end(writer);
    epg_json_end(writer);
}

char *epg_withheld_restore(const char *word, const json_t *withheld)
{
    const json_t *variables = json_object_get(withheld, "variables");
    char *restored = epg_strdup(word);
    for (size_t i = 0; i < json_array_size(variables); i++) {
        const char *name = json_string_value(json_array_get(variables, i));
        const char *value = name != NULL ? getenv(name) : NULL;
        if (value != NULL) {
            EPG_AUTO_FREE char *place = epg_format("[secret:%s]", name);
            char *next = replace(restored, place, value);
            free(restored);
            restored = next;
        }
    }
    return restored;
}

char *epg_withheld_missing(const json_t *withheld)
{
    const json_t *variables = json_object_get(withheld, "variables");
    for (size_t i = 0; i < json_array_size(variables); i++) {
        const char *name = json_string_value(json_array_get(variables, i));
        if (name != NULL && getenv(name) == NULL) {
            return epg_format(
                "the Agent was given a secret from the variable %s, which is not set now: set it, and try "
                "again",
                name);
        }
    }
    if (json_is_true(json_object_get(withheld, "lost"))) {
        return epg_strdup("the Agent was given a secret on its command line, which is not kept: begin anew with "
                          "'run NEW --like RUN -- COMMAND', and give the secret in a variable (--secret NAME)");
    }
    return NULL;
}
