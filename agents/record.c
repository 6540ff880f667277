/* What is kept of an invocation, and what must not be. */
#include <string.h>

#include "agents/invocation.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

static void put_redacted(epg_json_writer *writer, const char *key, const char *text, const epg_redactor *redactor)
{
    EPG_AUTO_BUFFER clean = {0};
    (void)epg_redact(redactor, epg_span_text(text), &clean);
    epg_json_put_text(writer, key, epg_buffer_cstr(&clean));
}

static void put_names(epg_json_writer *writer, const char *key, char *const *names)
{
    epg_json_array(writer, key);
    for (size_t i = 0; names[i] != NULL; i++) {
        epg_json_put_text(writer, NULL, names[i]);
    }
    epg_json_end(writer);
}

epg_code epg_invocation_write(const epg_invocation *invocation, const epg_redactor *redactor, epg_buffer *out,
                              epg_error *err)
{
    for (size_t i = 0; invocation->recorded_argv[i] != NULL; i++) {
        if (!epg_utf8_valid(invocation->recorded_argv[i], strlen(invocation->recorded_argv[i]))) {
            return epg_fail(err, EPG_ERR_USAGE, "argument %zu of the agent's command is not UTF-8", i);
        }
    }
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_json_object(&writer, "agent");
    for (size_t i = 0; i < invocation->identity_count; i++) {
        put_redacted(&writer, invocation->identity[i].name, invocation->identity[i].value, redactor);
    }
    epg_json_end(&writer);
    epg_json_array(&writer, "command");
    for (size_t i = 0; invocation->recorded_argv[i] != NULL; i++) {
        put_redacted(&writer, NULL, invocation->recorded_argv[i], redactor);
    }
    epg_json_end(&writer);
    epg_json_put_text(&writer, "cwd", "workspace");
    epg_json_object(&writer, "environment");
    put_names(&writer, "fixed_names", invocation->fixed_names);
    put_names(&writer, "inherited_allowlist", invocation->inherit_names);
    epg_json_end(&writer);
    epg_json_put_text(&writer, "instructions", "agent/instructions.md");
    epg_json_put_text(&writer, "schema", "evopolicygym/agent-invocation/v1");
    epg_json_put_text(&writer, "stderr", "agent/stderr.log");
    epg_json_put_text(&writer, "stdout", "agent/stdout.log");
    epg_json_put_text(&writer, "stdout_media_type", invocation->stdout_media_type);
    epg_json_end(&writer);
    epg_json_finish(&writer);
    return EPG_OK;
}

epg_code epg_invocation_redactor(const epg_invocation *invocation, const epg_adapter *adapter, epg_redactor **out,
                                 epg_error *err)
{
    EPG_CLEANUP(epg_redactor_cleanup) epg_redactor *redactor = epg_redactor_new();
    for (size_t i = 0; invocation->secrets[i] != NULL; i++) {
        epg_redactor_add_value(redactor, invocation->secrets[i]);
    }
    const json_t *patterns = adapter != NULL ? json_object_get(adapter->document, "redact") : NULL;
    for (size_t i = 0; i < json_array_size(patterns); i++) {
        EPG_TRY(epg_redactor_add_pattern(redactor, json_string_value(json_array_get(patterns, i)), err));
    }
    EPG_TRY(epg_redactor_ready(redactor, err));
    *out = EPG_TAKE(redactor);
    return EPG_OK;
}
