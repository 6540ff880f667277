/* How it works. Lines come out of the bytes (lines.h), rules make events of a line (rules.h), and each event is written
 * as one line of ours and counted. Everything that is kept (texts, usage, the error that stands) is bounded. Text that
 * comes in parts is held until its last part, so that a message is one event. */
#include "agents/transcript.h"

#include <stdlib.h>
#include <string.h>

#include "agents/lines.h"
#include "agents/pattern.h"
#include "agents/rules.h"
#include "agents/session_files.h"
#include "agents/usage.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

enum {
    SKIPPED_MAX = 200,    /* lines that say "not understood"; the rest is only counted */
    SKIPPED_TEXT = 200,   /* bytes kept of such a line */
    ERROR_TEXT = 1000,    /* bytes of the error that stands */
    STDERR_TAIL = 2048,   /* bytes of stderr that may tell why the agent failed */
    STDERR_LINE = 65536,  /* longest line of stderr looked at */
    INPUT_DEPTH_MAX = 48, /* of a tool's input kept as JSON; deeper ones are kept as text */
};

struct epg_transcript {
    const json_t *rules; /* NULL: plain text */
    const json_t *stderr_rules;
    const json_t *errors;
    const epg_redactor *redactor;
    epg_patterns *patterns;
    epg_lines out_lines;
    epg_lines err_lines;
    epg_session_files *sources;
    const json_t **source_rules;
    size_t source_count;
    epg_ledger ledger;
    bool ended, whole;
    epg_buffer part; /* a message that goes on */
    epg_buffer final_text;
    char *session_id;
    epg_agent_error error;
    epg_buffer stderr_tail;
    epg_transcript_counts counts;
    uint64_t skipped;
    const json_t *line_rules; /* of the line at hand */
    epg_buffer *out;          /* of the call at hand */
};

static void emit(epg_transcript *t, const char *event, json_t *fields)
{
    json_object_set_new(fields, "event", json_string(event));
    json_object_set_new(fields, "time_unix_ns", json_integer(epg_unix_ns()));
    json_object_set_new(fields, "monotonic_ns", json_integer(epg_monotonic_ns()));
    size_t before = t->out->size;
    epg_json_writer writer;
    epg_json_begin(&writer, t->out, 0);
    epg_json_put_json(&writer, NULL, fields);
    epg_json_finish(&writer);
    epg_buffer_byte(t->out, '\n');
    json_decref(fields);
    size_t added = t->out->size - before;
    if (t->counts.bytes + added > (uint64_t)EPG_TRANSCRIPT_BYTES_MAX && !t->ended) {
        t->out->size = before;
        t->counts.cut = true;
        return;
    }
    t->counts.bytes += added;
}

/* Clean, redacted and bounded; what was cut is told beside it. */
static void put_text_bounded(epg_transcript *t, json_t *fields, const char *key, epg_span text, size_t most)
{
    EPG_AUTO_BUFFER hidden = {0};
    EPG_AUTO_BUFFER clean = {0};
    if (t->redactor != NULL) {
        (void)epg_redact(t->redactor, text, &hidden);
    } else {
        epg_buffer_append_span(&hidden, text);
    }
    epg_utf8_clean(epg_buffer_span(&hidden), &clean);
    size_t size = clean.size;
    if (size > most) {
        size = most;
        while (size > 0 && (clean.data[size] & 0xc0) == 0x80) {
            size--;
        }
        EPG_AUTO_FREE char *told = epg_format("%s_bytes", key);
        json_object_set_new(fields, told, json_integer((json_int_t)clean.size));
    }
    json_object_set_new(fields, key, json_stringn(epg_buffer_cstr(&clean), size));
}

static void put_text(epg_transcript *t, json_t *fields, const char *key, const epg_buffer *text)
{
    put_text_bounded(t, fields, key, epg_buffer_span(text), EPG_TRANSCRIPT_TEXT_MAX);
}

static bool within_depth(const json_t *value, unsigned left)
{
    if (left == 0) {
        return false;
    }
    const char *key = NULL;
    json_t *item = NULL;
    json_t *walked = epg_json_unconst(value);
    json_object_foreach(walked, key, item)
    {
        if (!within_depth(item, left - 1)) {
            return false;
        }
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!within_depth(json_array_get(value, i), left - 1)) {
            return false;
        }
    }
    return true;
}

/* A tool's input as JSON where it is small and sound after redaction, else as text. */
static void put_input(epg_transcript *t, json_t *fields, const json_t *input)
{
    if (input == NULL) {
        json_object_set_new(fields, "input", json_null());
        return;
    }
    if (json_is_string(input)) {
        put_text_bounded(t, fields, "input", epg_span_of(json_string_value(input), json_string_length(input)),
                         EPG_TRANSCRIPT_TEXT_MAX);
        return;
    }
    EPG_AUTO_FREE char *dumped = json_dumps(input, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    EPG_AUTO_BUFFER hidden = {0};
    EPG_AUTO_JSON *again = NULL;
    epg_span text = epg_span_text(dumped != NULL ? dumped : "null");
    if (t->redactor != NULL) {
        (void)epg_redact(t->redactor, text, &hidden);
    } else {
        epg_buffer_append_span(&hidden, text);
    }
    if (hidden.size <= EPG_TRANSCRIPT_TEXT_MAX && within_depth(input, INPUT_DEPTH_MAX) &&
        epg_json_parse_lenient(epg_buffer_span(&hidden), "", &again, NULL) == EPG_OK) {
        json_object_set(fields, "input", again);
    } else {
        put_text(t, fields, "input", &hidden);
    }
}

static void keep_final_text(epg_transcript *t, epg_span text)
{
    EPG_AUTO_JSON *box = json_object();
    put_text_bounded(t, box, "text", text, EPG_TRANSCRIPT_TEXT_MAX);
    const json_t *kept = json_object_get(box, "text");
    epg_buffer_clear(&t->final_text);
    epg_buffer_append(&t->final_text, json_string_value(kept), json_string_length(kept));
}

static void emit_message(epg_transcript *t, const char *event, const epg_buffer *text)
{
    json_t *fields = json_object();
    put_text(t, fields, "text", text);
    emit(t, event, fields);
}

static void flush_part(epg_transcript *t)
{
    if (t->part.size > 0) {
        t->counts.messages++;
        keep_final_text(t, epg_buffer_span(&t->part));
        emit_message(t, "message", &t->part);
        epg_buffer_clear(&t->part);
    }
}

static void take_message(epg_transcript *t, const epg_event *event)
{
    if (event->partial) {
        if (t->part.size < EPG_TRANSCRIPT_TEXT_MAX) {
            epg_buffer_append_span(&t->part, epg_buffer_span(&event->text));
        }
        return;
    }
    t->counts.messages++;
    keep_final_text(t, epg_buffer_span(&event->text));
    emit_message(t, "message", &event->text);
}

static void take_session(epg_transcript *t, const epg_event *event)
{
    const char *id = epg_buffer_cstr(&event->id);
    if (*id == '\0' || strlen(id) > 256 || (t->session_id != NULL && strcmp(t->session_id, id) == 0)) {
        return;
    }
    json_t *fields = json_object();
    put_text(t, fields, "id", &event->id);
    free(t->session_id);
    t->session_id = epg_strdup(json_string_value(json_object_get(fields, "id")));
    if (event->name.size > 0) {
        put_text(t, fields, "model", &event->name);
    }
    emit(t, "session", fields);
}

static void take_tool(epg_transcript *t, const epg_event *event)
{
    json_t *fields = json_object();
    put_text(t, fields, "id", &event->id);
    if (event->kind == EPG_EVENT_TOOL_CALL) {
        t->counts.tool_calls++;
        put_text(t, fields, "name", &event->name);
        put_input(t, fields, event->input);
        emit(t, "tool_call", fields);
        return;
    }
    t->counts.tool_results++;
    put_text(t, fields, "output", &event->text);
    json_object_set_new(fields, "failed",
                        json_boolean(event->failed || (event->has_exit_code && event->exit_code != 0)));
    json_object_set_new(fields, "exit_code", event->has_exit_code ? json_integer(event->exit_code) : json_null());
    emit(t, "tool_result", fields);
}

static json_t *usage_fields(const epg_usage *usage)
{
    EPG_AUTO_BUFFER text = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &text, 0);
    epg_usage_write(usage, &writer, NULL);
    epg_json_finish(&writer);
    json_t *fields = NULL;
    return epg_json_parse(epg_buffer_span(&text), "usage", &fields, NULL) == EPG_OK ? fields : json_object();
}

/* Many agents tell the same numbers again and again. */
static void take_usage(epg_transcript *t, const epg_event *event)
{
    epg_usage before = epg_ledger_usage(&t->ledger, false);
    epg_ledger_add(&t->ledger, event);
    epg_usage after = epg_ledger_usage(&t->ledger, false);
    if (before.tokens_known != after.tokens_known || before.cost_known != after.cost_known ||
        before.cost < after.cost || memcmp(&before.tokens, &after.tokens, sizeof after.tokens) != 0) {
        emit(t, "usage", usage_fields(&after));
    }
}

static void keep_error(epg_transcript *t, epg_agent_fault fault, int64_t status, bool final, epg_span message)
{
    EPG_AUTO_JSON *box = json_object();
    put_text_bounded(t, box, "text", message, ERROR_TEXT);
    const json_t *kept = json_object_get(box, "text");
    free(t->error.message);
    t->error =
        (epg_agent_error){fault, status, final, epg_printable(json_string_value(kept), json_string_length(kept))};
}

static void take_error(epg_transcript *t, const epg_event *event)
{
    t->counts.errors++;
    epg_agent_fault fault = epg_fault_classify(t->errors, t->patterns, event->status, epg_buffer_span(&event->text));
    if (event->final || !t->error.final) {
        keep_error(t, fault, event->status, event->final, epg_buffer_span(&event->text));
    }
    json_t *fields = json_object();
    put_text_bounded(t, fields, "message", epg_buffer_span(&event->text), EPG_TRANSCRIPT_TEXT_MAX);
    json_object_set_new(fields, "fault", json_string(epg_agent_fault_name(fault)));
    json_object_set_new(fields, "final", json_boolean(event->final));
    json_object_set_new(fields, "status", event->status != 0 ? json_integer(event->status) : json_null());
    emit(t, "error", fields);
}

static void take_event(void *context, const epg_event *event)
{
    epg_transcript *t = context;
    if (event->kind != EPG_EVENT_MESSAGE || !event->partial) {
        flush_part(t);
    }
    switch (event->kind) {
    case EPG_EVENT_SESSION:
        take_session(t, event);
        break;
    case EPG_EVENT_MESSAGE:
        take_message(t, event);
        break;
    case EPG_EVENT_THINKING:
        emit_message(t, "thinking", &event->text);
        break;
    case EPG_EVENT_NOTICE:
        emit_message(t, "notice", &event->text);
        break;
    case EPG_EVENT_TOOL_CALL:
    case EPG_EVENT_TOOL_RESULT:
        take_tool(t, event);
        break;
    case EPG_EVENT_USAGE:
        take_usage(t, event);
        break;
    case EPG_EVENT_ERROR:
        take_error(t, event);
        break;
    case EPG_EVENT_RESULT:
        if (event->text.size > 0) {
            keep_final_text(t, epg_buffer_span(&event->text));
        }
        free(t->error.message); /* the agent got over what went wrong before */
        t->error = (epg_agent_error){0};
        break;
    }
}

static void skip(epg_transcript *t, const char *reason, epg_span line, uint64_t size)
{
    if (++t->skipped > SKIPPED_MAX) {
        return;
    }
    json_t *fields = json_object();
    json_object_set_new(fields, "reason", json_string(reason));
    json_object_set_new(fields, "bytes", json_integer((json_int_t)size));
    put_text_bounded(t, fields, "text", epg_span_of(line.data, line.size < 4096 ? line.size : 4096), SKIPPED_TEXT);
    emit(t, "skipped", fields);
}

static bool is_blank(epg_span line)
{
    for (size_t i = 0; i < line.size; i++) {
        if (line.data[i] != ' ' && line.data[i] != '\t') {
            return false;
        }
    }
    return true;
}

/* A line of JSON: false when it is none. */
static bool apply_line(epg_transcript *t, epg_span line, bool *applied)
{
    EPG_AUTO_BUFFER clean = {0};
    EPG_AUTO_JSON *document = NULL;
    if (!epg_utf8_valid(line.data, line.size)) {
        epg_utf8_clean(line, &clean);
        line = epg_buffer_span(&clean);
    }
    if (epg_json_parse_lenient(line, "line", &document, NULL) != EPG_OK || !json_is_object(document)) {
        return false;
    }
    *applied = epg_rules_apply(t->line_rules, document, t->patterns, take_event, t);
    return true;
}

static void take_line(void *context, epg_span line, uint64_t dropped)
{
    epg_transcript *t = context;
    bool applied = false;
    t->counts.lines++;
    if (dropped > 0) {
        t->counts.long_lines++;
        skip(t, "too_long", line, dropped);
    } else if (is_blank(line)) {
        return;
    } else if (t->line_rules == NULL) {
        EPG_AUTO_BUFFER text = {0};
        epg_buffer_append_span(&text, line);
        keep_final_text(t, line);
        emit_message(t, "output", &text);
    } else if (!apply_line(t, line, &applied)) {
        t->counts.broken_lines++;
        skip(t, "not_json", line, line.size);
    } else if (!applied) {
        t->counts.unknown_lines++;
        skip(t, "unknown", line, line.size);
    }
}

/* Other lines of a session's files are the agent's own business. */
static void take_home_line(void *context, epg_span line, uint64_t dropped)
{
    bool applied = false;
    if (dropped == 0) {
        (void)apply_line(context, line, &applied);
    }
}

static void keep_stderr_tail(epg_transcript *t, epg_span line)
{
    size_t size = line.size < STDERR_TAIL / 2 ? line.size : STDERR_TAIL / 2;
    if (t->stderr_tail.size + size + 1 > STDERR_TAIL) {
        epg_buffer_drop_front(&t->stderr_tail, t->stderr_tail.size + size + 1 - STDERR_TAIL);
    }
    epg_buffer_append(&t->stderr_tail, line.data, size);
    epg_buffer_byte(&t->stderr_tail, '\n');
}

static void take_stderr_line(void *context, epg_span line, uint64_t dropped)
{
    (void)dropped;
    epg_transcript *t = context;
    if (is_blank(line)) {
        return;
    }
    keep_stderr_tail(t, line);
    for (size_t i = 0; i < json_array_size(t->stderr_rules); i++) {
        const json_t *rule = json_array_get(t->stderr_rules, i);
        const struct epg_pattern *pattern =
            epg_patterns_get(t->patterns, json_string_value(json_object_get(rule, "pattern")));
        epg_event event = {.kind = EPG_EVENT_ERROR, .final = json_is_true(json_object_get(rule, "final"))};
        epg_span message = line;
        if (pattern != NULL && epg_pattern_capture(pattern, line, "message", &message)) {
            epg_buffer_append_span(&event.text, message);
            take_event(t, &event);
            epg_buffer_free(&event.text);
            return;
        }
    }
}

epg_transcript *epg_transcript_new(const epg_adapter *adapter, const epg_redactor *redactor, epg_buffer *out)
{
    epg_transcript *t = epg_alloc(sizeof *t);
    t->redactor = redactor;
    t->patterns = epg_patterns_new();
    t->out_lines.limit = EPG_TRANSCRIPT_LINE_MAX;
    t->err_lines.limit = STDERR_LINE;
    t->out = out;
    json_t *fields = json_object();
    json_object_set_new(fields, "schema", json_string(EPG_TRANSCRIPT_SCHEMA));
    json_object_set_new(fields, "agent", json_string(adapter != NULL ? adapter->name : "command"));
    if (adapter != NULL) {
        const json_t *stream = json_object_get(adapter->document, "stream");
        const char *format = json_string_value(json_object_get(stream, "format"));
        bool json_lines = format != NULL && strcmp(format, "json-lines") == 0;
        const json_t *files = json_object_get(stream, "files");
        t->rules = json_lines ? json_object_get(stream, "rules") : NULL;
        t->stderr_rules = json_object_get(stream, "stderr");
        t->errors = json_object_get(adapter->document, "errors");
        t->source_count = json_array_size(files);
        t->sources = epg_alloc_array(t->source_count, sizeof *t->sources);
        t->source_rules = epg_alloc_array(t->source_count, sizeof(const json_t *));
        for (size_t i = 0; i < t->source_count; i++) {
            const json_t *one = json_array_get(files, i);
            t->sources[i].glob = json_string_value(json_object_get(one, "glob"));
            t->source_rules[i] = json_object_get(one, "rules");
        }
    }
    emit(t, "transcript", fields);
    return t;
}

void epg_transcript_free(epg_transcript *t)
{
    if (t == NULL) {
        return;
    }
    for (size_t i = 0; i < t->source_count; i++) {
        epg_session_files_free(&t->sources[i]);
    }
    free(t->sources);
    free(t->source_rules);
    epg_patterns_free(t->patterns);
    epg_buffer_free(&t->out_lines.pending);
    epg_buffer_free(&t->err_lines.pending);
    epg_buffer_free(&t->part);
    epg_buffer_free(&t->final_text);
    epg_buffer_free(&t->stderr_tail);
    free(t->session_id);
    free(t->error.message);
    free(t);
}

void epg_transcript_stdout(epg_transcript *t, epg_span bytes, epg_buffer *out)
{
    t->out = out;
    t->line_rules = t->rules;
    epg_lines_feed(&t->out_lines, bytes, take_line, t);
}

void epg_transcript_stderr(epg_transcript *t, epg_span bytes, epg_buffer *out)
{
    t->out = out;
    epg_lines_feed(&t->err_lines, bytes, take_stderr_line, t);
}

void epg_transcript_note(epg_transcript *t, const char *name, const char *id, const char *detail,
                         const epg_usage *usage, epg_buffer *out)
{
    t->out = out;
    flush_part(t);
    json_t *fields = json_object();
    json_object_set_new(fields, "name", json_string(name));
    json_object_set_new(fields, "id", id != NULL ? json_string(id) : json_null());
    if (detail != NULL) {
        put_text_bounded(t, fields, "detail", epg_span_text(detail), EPG_TRANSCRIPT_TEXT_MAX);
    } else {
        json_object_set_new(fields, "detail", json_null());
    }
    if (usage != NULL) {
        json_object_set_new(fields, "usage", usage_fields(usage));
    }
    emit(t, "note", fields);
}

void epg_transcript_home(epg_transcript *t, int home, epg_buffer *out)
{
    t->out = out;
    for (size_t i = 0; i < t->source_count; i++) {
        t->line_rules = t->source_rules[i];
        epg_session_files_read(&t->sources[i], home, EPG_TRANSCRIPT_LINE_MAX, take_home_line, t);
    }
}

/* An agent that failed without a word in its stream: stderr may say why. */
static void judge_end(epg_transcript *t, int exit_code, int signal)
{
    if (t->error.fault != EPG_FAULT_NONE || (exit_code == 0 && signal == 0)) {
        return;
    }
    epg_span tail = epg_buffer_span(&t->stderr_tail);
    while (tail.size > 0 && tail.data[tail.size - 1] == '\n') {
        tail.size--;
    }
    epg_agent_fault fault = epg_fault_classify(t->errors, t->patterns, 0, tail);
    const uint8_t *line = tail.size > 0 ? memrchr(tail.data, '\n', tail.size) : NULL;
    if (line != NULL && fault == EPG_FAULT_OTHER) {
        tail = epg_span_of(line + 1, tail.size - (size_t)(line + 1 - tail.data));
    }
    EPG_AUTO_FREE char *message =
        signal != 0 ? epg_format("ended by signal %d", signal) : epg_format("exit code %d", exit_code);
    EPG_AUTO_BUFFER text = {0};
    epg_buffer_text(&text, message);
    if (tail.size > 0) {
        epg_buffer_text(&text, ": ");
        epg_buffer_append_span(&text, tail);
    }
    keep_error(t, fault, 0, true, epg_buffer_span(&text));
}

void epg_transcript_end(epg_transcript *t, int exit_code, int signal, epg_buffer *out)
{
    t->out = out;
    t->line_rules = t->rules;
    epg_lines_end(&t->out_lines, take_line, t);
    epg_lines_end(&t->err_lines, take_stderr_line, t);
    flush_part(t);
    judge_end(t, exit_code, signal);
    t->ended = true;
    t->whole = signal == 0 && exit_code >= 0 && exit_code <= 128; /* above: a shell's way to tell a signal */
    epg_usage usage = epg_ledger_usage(&t->ledger, t->whole);
    json_t *fields = json_object();
    json_object_set_new(fields, "exit_code", exit_code >= 0 ? json_integer(exit_code) : json_null());
    json_object_set_new(fields, "signal", signal != 0 ? json_integer(signal) : json_null());
    json_object_set_new(fields, "usage", usage_fields(&usage));
    json_object_set_new(fields, "fault", json_string(epg_agent_fault_name(t->error.fault)));
    json_object_set_new(fields, "cut", json_boolean(t->counts.cut));
    json_object_set_new(fields, "lines", json_integer((json_int_t)t->counts.lines));
    uint64_t passed_over = t->counts.broken_lines + t->counts.unknown_lines + t->counts.long_lines;
    json_object_set_new(fields, "lines_not_understood", json_integer((json_int_t)passed_over));
    emit(t, "end", fields);
}

epg_usage epg_transcript_usage(const epg_transcript *t)
{
    return epg_ledger_usage(&t->ledger, t->ended && t->whole);
}

epg_usage epg_transcript_interval(epg_transcript *t)
{
    return epg_ledger_interval(&t->ledger, t->ended && t->whole);
}

const char *epg_transcript_final_text(const epg_transcript *t)
{
    return t->final_text.size > 0 ? epg_buffer_cstr(&t->final_text) : NULL;
}

const char *epg_transcript_session_id(const epg_transcript *t)
{
    return t->session_id;
}

const epg_agent_error *epg_transcript_error(const epg_transcript *t)
{
    return &t->error;
}

epg_transcript_counts epg_transcript_counts_of(const epg_transcript *t)
{
    return t->counts;
}
