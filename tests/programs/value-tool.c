/* value-tool: the C codec as a filter, for tests that hold another codec against it. One request a line on stdin, one
 * answer a line on stdout:
 *   check HEX   checks canonical bytes within the Policy's limits: "ok NODE" or "no CODE TEXT"
 *   node JSON   encodes a node: "ok HEX" or "no CODE TEXT"
 *   public HEX  the public JSON projection: "ok JSON" or "no CODE TEXT" */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "value/value.h"

static bool unhex(const char *text, epg_buffer *out)
{
    size_t size = strlen(text);
    for (size_t i = 0; i + 1 < size; i += 2) {
        char pair[3] = {text[i], text[i + 1], '\0'};
        char *end = NULL;
        unsigned long byte = strtoul(pair, &end, 16);
        if (*end != '\0') {
            return false;
        }
        (void)epg_buffer_byte(out, (uint8_t)byte);
    }
    return size % 2 == 0;
}

static epg_code check(const char *hex, void (*put)(epg_span, epg_json_writer *, const char *), epg_buffer *answer,
                      epg_error *err)
{
    EPG_AUTO_BUFFER bytes = {0};
    if (!unhex(hex, &bytes)) {
        return epg_fail(err, EPG_ERR_USAGE, "not hexadecimal");
    }
    EPG_TRY(epg_value_check(epg_buffer_span(&bytes), &epg_value_policy_limits, err));
    epg_json_writer writer;
    epg_json_begin(&writer, answer, 0);
    put(epg_buffer_span(&bytes), &writer, NULL);
    epg_json_finish(&writer);
    return EPG_OK;
}

static epg_code node(const char *text, epg_buffer *answer, epg_error *err)
{
    EPG_AUTO_JSON *parsed = NULL;
    EPG_AUTO_BUFFER bytes = {0};
    EPG_TRY(epg_json_parse(epg_span_text(text), "node", &parsed, err));
    EPG_TRY(epg_value_from_node(parsed, &epg_value_policy_limits, &bytes, err));
    EPG_AUTO_FREE char *hex = epg_alloc(2 * bytes.size + 1);
    epg_hex(bytes.data, bytes.size, hex);
    (void)epg_buffer_text(answer, hex);
    return EPG_OK;
}

static void answer_line(const char *line)
{
    EPG_AUTO_BUFFER answer = {0};
    epg_error err = {0};
    epg_code code = EPG_ERR_USAGE;
    if (strncmp(line, "check ", 6) == 0) {
        code = check(line + 6, epg_value_to_node, &answer, &err);
    } else if (strncmp(line, "public ", 7) == 0) {
        code = check(line + 7, epg_value_to_json, &answer, &err);
    } else if (strncmp(line, "node ", 5) == 0) {
        code = node(line + 5, &answer, &err);
    }
    if (code == EPG_OK) {
        printf("ok %s\n", epg_buffer_cstr(&answer));
    } else {
        printf("no %s %s\n", epg_code_name(code), err.text);
    }
}

int main(void)
{
    EPG_AUTO_FREE char *line = NULL;
    size_t capacity = 0;
    ssize_t size = 0;
    while ((size = getline(&line, &capacity, stdin)) > 0) {
        if (line[size - 1] == '\n') {
            line[size - 1] = '\0';
        }
        answer_line(line);
    }
    return 0;
}
