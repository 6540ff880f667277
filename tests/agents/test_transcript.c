/* Recorded streams of real CLIs become the documented form, with the numbers that their model reported; broken input is
 * survived. */
#include "agents/transcript.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "support/support.h"

#define STREAMS EPG_TEST_SOURCE "/tests/agents/streams"

typedef struct play {
    epg_adapter adapter;
    epg_transcript *transcript;
    epg_buffer out;
} play;

static void begin(play *on, const char *adapter)
{
    epg_error err = {0};
    *on = (play){0};
    if (adapter != NULL) {
        EPG_AUTO_FREE char *path = epg_format("%s/agents/adapters/%s.json", EPG_TEST_SOURCE, adapter);
        epg_assert_ok(epg_adapter_read(path, &on->adapter, &err), &err);
    }
    on->transcript = epg_transcript_new(adapter != NULL ? &on->adapter : NULL, NULL, &on->out);
}

static void end(play *on)
{
    epg_transcript_free(on->transcript);
    epg_adapter_free(&on->adapter);
    epg_buffer_free(&on->out);
}

static void feed(play *on, const char *text, size_t step)
{
    size_t size = strlen(text);
    for (size_t at = 0; at < size; at += step) {
        epg_transcript_stdout(on->transcript, epg_span_of(text + at, size - at < step ? size - at : step), &on->out);
    }
}

/* The nth line of the transcript whose event is `event`; a new reference, or NULL. */
static json_t *event_at(const play *on, const char *event, size_t n)
{
    EPG_AUTO_FREE char *copy = epg_strndup(epg_buffer_cstr(&on->out), on->out.size);
    char *rest = copy;
    for (char *line = strsep(&rest, "\n"); line != NULL && *line != '\0'; line = strsep(&rest, "\n")) {
        json_t *document = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        ck_assert_msg(document != NULL, "not JSON: %s", line);
        ck_assert(json_is_integer(json_object_get(document, "time_unix_ns")));
        if (strcmp(json_string_value(json_object_get(document, "event")), event) == 0 && n-- == 0) {
            return document;
        }
        json_decref(document);
    }
    return NULL;
}

static size_t count_of(const play *on, const char *event)
{
    size_t count = 0;
    for (json_t *found = event_at(on, event, 0); found != NULL; found = event_at(on, event, ++count)) {
        json_decref(found);
    }
    return count;
}

static void expect_text(const play *on, const char *event, size_t n, const char *key, const char *expected)
{
    EPG_AUTO_JSON *document = event_at(on, event, n);
    ck_assert_msg(document != NULL, "no %s %zu in\n%s", event, n, epg_buffer_cstr(&on->out));
    ck_assert_str_eq(json_string_value(json_object_get(document, key)), expected);
}

/* What the recorded CLIs' model said: two answers of 1234 tokens in (100 of them cached) and 56 out, or an error. */
static const struct recorded {
    const char *stream, *adapter;
    int exit_code;
    epg_agent_fault fault;
    epg_known tokens;
    uint64_t input, cached, output;
    double cost; /* < 0: unknown */
    size_t tools;
    const char *final, *session;
} recordings[] = {
    {"codex-ok", "codex", 0, EPG_FAULT_NONE, EPG_KNOWN_EXACTLY, 2468, 200, 112, -1, 1, "done", ""},
    {"codex-auth", "codex", 1, EPG_FAULT_LOGIN, EPG_KNOWN_NOT, 0, 0, 0, -1, 0, NULL, NULL},
    {"codex-badmodel", "codex", 1, EPG_FAULT_MODEL, EPG_KNOWN_NOT, 0, 0, 0, -1, 0, NULL, NULL},
    {"codex-overload", "codex", 1, EPG_FAULT_OVERLOAD, EPG_KNOWN_NOT, 0, 0, 0, -1, 0, NULL, NULL},
    {"codex-ratelimit", "codex", 1, EPG_FAULT_RATE_LIMIT, EPG_KNOWN_NOT, 0, 0, 0, -1, 0, NULL, NULL},
    {"claude-ok", "claude-code", 0, EPG_FAULT_NONE, EPG_KNOWN_EXACTLY, 2668, 200, 112, 0.009144, 1, "done",
     "347311b7-8767-4449-91ee-714f2e812c65"},
    {"claude-auth", "claude-code", 1, EPG_FAULT_LOGIN, EPG_KNOWN_EXACTLY, 0, 0, 0, 0, 0, NULL, ""},
    {"claude-badmodel", "claude-code", 1, EPG_FAULT_MODEL, EPG_KNOWN_EXACTLY, 0, 0, 0, 0, 0, NULL, ""},
    {"claude-overload", "claude-code", 1, EPG_FAULT_OVERLOAD, EPG_KNOWN_EXACTLY, 0, 0, 0, 0, 0, NULL, ""},
    {"claude-ratelimit", "claude-code", 1, EPG_FAULT_RATE_LIMIT, EPG_KNOWN_EXACTLY, 0, 0, 0, 0, 0, NULL, ""},
    {"kimi-ok", "kimi-code", 0, EPG_FAULT_NONE, EPG_KNOWN_NOT, 0, 0, 0, -1, 1, "done",
     "session_fb67d2a1-3182-4ba7-a9e5-3501246a137b"},
    {"kimi-auth", "kimi-code", 1, EPG_FAULT_LOGIN, EPG_KNOWN_NOT, 0, 0, 0, -1, 0, NULL, NULL},
    {"kimi-badmodel", "kimi-code", 1, EPG_FAULT_MODEL, EPG_KNOWN_NOT, 0, 0, 0, -1, 0, NULL, NULL},
    {"kimi-overload", "kimi-code", 1, EPG_FAULT_OVERLOAD, EPG_KNOWN_NOT, 0, 0, 0, -1, 0, NULL, NULL},
    {"kimi-ratelimit", "kimi-code", 1, EPG_FAULT_RATE_LIMIT, EPG_KNOWN_NOT, 0, 0, 0, -1, 0, NULL, NULL},
    {"gemini-ok", "gemini-cli", 0, EPG_FAULT_NONE, EPG_KNOWN_EXACTLY, 2468, 200, 112, -1, 1, "done",
     "6fc7a13f-a760-4e6a-840f-163d44f0b5aa"},
    {"gemini-auth", "gemini-cli", 145, EPG_FAULT_LOGIN, EPG_KNOWN_AT_LEAST, 0, 0, 0, -1, 0, NULL, ""},
    {"gemini-badmodel", "gemini-cli", 148, EPG_FAULT_MODEL, EPG_KNOWN_AT_LEAST, 0, 0, 0, -1, 0, NULL, ""},
    {"gemini-overload", "gemini-cli", 244, EPG_FAULT_OVERLOAD, EPG_KNOWN_AT_LEAST, 0, 0, 0, -1, 0, NULL, ""},
    {"gemini-ratelimit", "gemini-cli", 173, EPG_FAULT_RATE_LIMIT, EPG_KNOWN_AT_LEAST, 0, 0, 0, -1, 0, NULL, ""},
    {"qwen-ok", "qwen-code", 0, EPG_FAULT_NONE, EPG_KNOWN_EXACTLY, 2468, 200, 112, -1, 1, "done",
     "3e60f204-0fd2-439f-aa46-0944346f8e59"},
    {"qwen-auth", "qwen-code", 1, EPG_FAULT_LOGIN, EPG_KNOWN_EXACTLY, 0, 0, 0, -1, 0, NULL, ""},
    {"qwen-badmodel", "qwen-code", 1, EPG_FAULT_MODEL, EPG_KNOWN_EXACTLY, 0, 0, 0, -1, 0, NULL, ""},
    {"qwen-overload", "qwen-code", 1, EPG_FAULT_OVERLOAD, EPG_KNOWN_EXACTLY, 0, 0, 0, -1, 0, NULL, ""},
    {"opencode-ok", "opencode", 0, EPG_FAULT_NONE, EPG_KNOWN_EXACTLY, 2468, 200, 112, 0.008484, 1, "done",
     "ses_dd604072cffeCn5kybtML4frQ2"},
    {"opencode-auth", "opencode", 1, EPG_FAULT_LOGIN, EPG_KNOWN_NOT, 0, 0, 0, -1, 0, NULL, ""},
    {"opencode-badmodel", "opencode", 1, EPG_FAULT_MODEL, EPG_KNOWN_NOT, 0, 0, 0, -1, 0, NULL, ""},
    {"opencode-overload", "opencode", 1, EPG_FAULT_OVERLOAD, EPG_KNOWN_NOT, 0, 0, 0, -1, 0, NULL, ""},
    {"opencode-ratelimit", "opencode", 1, EPG_FAULT_RATE_LIMIT, EPG_KNOWN_NOT, 0, 0, 0, -1, 0, NULL, ""},
    {"qoder-auth", "qoder", 1, EPG_FAULT_LOGIN, EPG_KNOWN_EXACTLY, 0, 0, 0, -1, 0, NULL, ""},
};

START_TEST(recorded_streams_are_understood)
{
    const struct recorded *expected = &recordings[_i];
    EPG_AUTO_FREE char *name = epg_format("%s.ndjson", expected->stream);
    EPG_AUTO_FREE char *stderr_name = epg_format("%s.stderr.txt", expected->stream);
    EPG_AUTO_FREE char *text = epg_test_read_text(STREAMS, name);
    EPG_AUTO_FREE char *stderr_text = epg_test_read_text(STREAMS, stderr_name);
    static const size_t steps[] = {1, 7, 4096, 1000000};
    for (size_t i = 0; i < EPG_COUNT(steps); i++) {
        play on;
        begin(&on, expected->adapter);
        feed(&on, text, steps[i]);
        if (stderr_text != NULL) {
            epg_transcript_stderr(on.transcript, epg_span_text(stderr_text), &on.out);
        }
        epg_transcript_end(on.transcript, expected->exit_code, 0, &on.out);
        const epg_agent_error *error = epg_transcript_error(on.transcript);
        ck_assert_msg(error->fault == expected->fault, "%s: %s (%s)", name, epg_agent_fault_name(error->fault),
                      error->message != NULL ? error->message : "");
        ck_assert_msg(expected->fault == EPG_FAULT_NONE || error->final, "%s", name);
        epg_usage usage = epg_transcript_usage(on.transcript);
        ck_assert_msg(usage.tokens_known == expected->tokens, "%s: %s", name, epg_known_name(usage.tokens_known));
        ck_assert_uint_eq(usage.tokens.input, expected->input);
        ck_assert_uint_eq(usage.tokens.cached_input, expected->cached);
        ck_assert_uint_eq(usage.tokens.output, expected->output);
        ck_assert_msg((usage.cost_known == EPG_KNOWN_NOT) == (expected->cost < 0), "%s", name);
        if (expected->cost >= 0) {
            ck_assert_double_eq_tol(usage.cost, expected->cost, 1e-12);
        }
        epg_transcript_counts counts = epg_transcript_counts_of(on.transcript);
        ck_assert_uint_eq(counts.tool_calls, expected->tools);
        ck_assert_uint_eq(counts.tool_results, expected->tools);
        ck_assert_msg(counts.unknown_lines + counts.broken_lines + counts.long_lines == 0, "%s:\n%s", name,
                      epg_buffer_cstr(&on.out));
        if (expected->final != NULL) {
            ck_assert_str_eq(epg_transcript_final_text(on.transcript), expected->final);
            expect_text(&on, "tool_result", 0, "event", "tool_result");
        }
        if (expected->session != NULL && *expected->session != '\0') {
            ck_assert_str_eq(epg_transcript_session_id(on.transcript), expected->session);
        }
        end(&on);
    }
}
END_TEST

START_TEST(tool_calls_and_outcomes_have_one_form)
{
    static const char *const streams[][2] = {{"codex-ok", "codex"},    {"claude-ok", "claude-code"},
                                             {"kimi-ok", "kimi-code"}, {"gemini-ok", "gemini-cli"},
                                             {"qwen-ok", "qwen-code"}, {"opencode-ok", "opencode"}};
    for (size_t i = 0; i < EPG_COUNT(streams); i++) {
        play on;
        begin(&on, streams[i][1]);
        EPG_AUTO_FREE char *name = epg_format("%s.ndjson", streams[i][0]);
        EPG_AUTO_FREE char *text = epg_test_read_text(STREAMS, name);
        feed(&on, text, 100);
        EPG_AUTO_JSON *call = event_at(&on, "tool_call", 0);
        EPG_AUTO_JSON *result = event_at(&on, "tool_result", 0);
        ck_assert_str_eq(json_string_value(json_object_get(call, "id")),
                         json_string_value(json_object_get(result, "id")));
        EPG_AUTO_FREE char *input = json_dumps(json_object_get(call, "input"), JSON_ENCODE_ANY);
        ck_assert_msg(strstr(input, "echo changed >> program/policy.py && ls") != NULL, "%s: %s", name, input);
        ck_assert_msg(strncmp(json_string_value(json_object_get(result, "output")), "program", 7) == 0, "%s", name);
        ck_assert(json_is_false(json_object_get(result, "failed")));
        expect_text(&on, "message", count_of(&on, "message") - 1, "text", "done");
        expect_text(&on, "transcript", 0, "schema", EPG_TRANSCRIPT_SCHEMA);
        end(&on);
    }
}
END_TEST

START_TEST(counts_are_not_added_twice_and_not_promised)
{
    play on;
    begin(&on, "claude-code");
    EPG_AUTO_FREE char *text = epg_test_read_text(STREAMS, "claude-ok.ndjson");
    char *result = strstr(text, "{\"duration_api_ms\"");
    *result = '\0';
    feed(&on, text, 64);
    /* The same message in two lines counts once: two messages of 1334 in. Counts of a message's beginning are bounds.
     */
    epg_usage usage = epg_transcript_usage(on.transcript);
    ck_assert_int_eq(usage.tokens_known, EPG_KNOWN_AT_LEAST);
    ck_assert_uint_eq(usage.tokens.input, 2668);
    ck_assert_uint_eq(usage.tokens.output, 2);
    ck_assert_int_eq(usage.cost_known, EPG_KNOWN_NOT);
    epg_usage interval = epg_transcript_interval(on.transcript);
    ck_assert_uint_eq(interval.tokens.input, 2668);
    ck_assert_int_eq(interval.tokens_known, EPG_KNOWN_AT_LEAST);
    *result = '{';
    feed(&on, result, 64);
    epg_transcript_end(on.transcript, 0, 0, &on.out);
    usage = epg_transcript_usage(on.transcript);
    ck_assert_int_eq(usage.tokens_known, EPG_KNOWN_EXACTLY);
    ck_assert_uint_eq(usage.tokens.output, 112);
    interval = epg_transcript_interval(on.transcript); /* the total says nothing about the second interval */
    ck_assert_int_eq(interval.tokens_known, EPG_KNOWN_AT_LEAST);
    ck_assert_uint_eq(interval.tokens.input, 0);
    end(&on);
    begin(&on, "codex");
    (void)epg_transcript_interval(on.transcript);
    EPG_AUTO_FREE char *codex = epg_test_read_text(STREAMS, "codex-ok.ndjson");
    feed(&on, codex, 64);
    epg_transcript_end(on.transcript, -1, 15, &on.out);
    ck_assert_int_eq(epg_transcript_usage(on.transcript).tokens_known, EPG_KNOWN_AT_LEAST);
    ck_assert_int_eq(epg_transcript_interval(on.transcript).tokens_known, EPG_KNOWN_NOT);
    end(&on);
}
END_TEST

START_TEST(absurd_costs_and_counts_stay_numbers)
{
    play on;
    begin(&on, "opencode");
    const char *line =
        "{\"type\":\"step_finish\",\"part\":{\"cost\":1.7e308,\"tokens\":{\"input\":1e15,\"output\":1e15}}}\n";
    for (int i = 0; i < 20000; i++) { /* 2e19 tokens: more than 64 bits hold */
        feed(&on, line, strlen(line));
    }
    feed(&on, "{\"type\":\"step_finish\",\"part\":{\"cost\":0.25}}\n", 100);
    epg_usage usage = epg_transcript_usage(on.transcript);
    ck_assert_double_eq(usage.cost, 0.25);
    ck_assert_uint_ge(usage.tokens.input, UINT64_C(4000000000000000000));
    ck_assert_uint_ge(epg_usage_tokens_total(&usage), UINT64_C(8000000000000000000));
    end(&on);
}
END_TEST

START_TEST(usage_in_session_files_is_read_once)
{
    play on;
    begin(&on, "kimi-code");
    char *home = epg_test_directory();
    const char *first = "{\"type\":\"metadata\"}\n"
                        "{\"type\":\"usage.record\",\"usage\":{\"inputOther\":1134,\"inputCacheRead\":100,"
                        "\"inputCacheCreation\":0,\"output\":56}}\nnot json\n{\"type\":\"usage.rec";
    const char *second =
        "ord\",\"usage\":{\"inputOther\":4,\"inputCacheRead\":3,\"inputCacheCreation\":2,\"output\":1}}\n";
    EPG_AUTO_FREE char *both = epg_format("%s%s", first, second);
    const char *path = ".kimi-code/sessions/x/session_1/agents/main/wire.jsonl";
    epg_test_write_text(home, path, first);
    epg_test_write_text(home, ".kimi-code/sessions/x/other/agents/main/wire.jsonl", first);
    int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(symlinkat("x", fd, ".kimi-code/sessions/y"), 0);
    epg_transcript_home(on.transcript, fd, &on.out);
    epg_transcript_home(on.transcript, fd, &on.out);
    ck_assert_uint_eq(epg_transcript_usage(on.transcript).tokens.input, 1234);
    epg_test_write_text(home, path, both);
    epg_transcript_home(on.transcript, fd, &on.out);
    epg_transcript_end(on.transcript, 0, 0, &on.out);
    epg_usage usage = epg_transcript_usage(on.transcript);
    ck_assert_int_eq(usage.tokens_known, EPG_KNOWN_EXACTLY);
    ck_assert_uint_eq(usage.tokens.input, 1243);
    ck_assert_uint_eq(usage.tokens.cached_input, 103);
    ck_assert_uint_eq(usage.tokens.output, 57);
    (void)close(fd);
    epg_test_directory_free(home);
    end(&on);
}
END_TEST

START_TEST(broken_lines_are_told_and_passed_over)
{
    play on;
    begin(&on, "codex");
    feed(&on,
         "\n   \nnot json\n{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"a\xff\xfe "
         "b\"}}\r\n"
         "[1,2]\n{\"type\":\"of the future\"}\n{\"type\":\"item.completed\",\"item\":null}\n"
         "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"nul \\u0000 in it\"}}\n"
         "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":-5,\"output_tokens\":\"x\"}}\n"
         "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":18446744073709551615,\"output_tokens\":1e300}}\n"
         "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"last, without an end\"}}",
         3);
    epg_transcript_end(on.transcript, 0, 0, &on.out);
    epg_transcript_counts counts = epg_transcript_counts_of(on.transcript);
    ck_assert_uint_eq(counts.broken_lines, 2);
    ck_assert_uint_eq(counts.unknown_lines, 2);
    expect_text(&on, "message", 0, "text", "a\xef\xbf\xbd\xef\xbf\xbd b");
    ck_assert_str_eq(epg_transcript_final_text(on.transcript), "last, without an end");
    expect_text(&on, "skipped", 0, "reason", "not_json");
    ck_assert_int_eq(epg_transcript_usage(on.transcript).tokens_known, EPG_KNOWN_NOT);
    end(&on);
}
END_TEST

START_TEST(a_hundred_megabytes_in_one_line_are_survived)
{
    play on;
    begin(&on, "codex");
    EPG_AUTO_FREE char *block = epg_alloc(1 << 20);
    memset(block, 'x', 1 << 20);
    for (int i = 0; i < 100; i++) {
        epg_transcript_stdout(on.transcript, epg_span_of(block, 1 << 20), &on.out);
    }
    feed(&on, "\n{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"after\"}}\n", 1000);
    epg_transcript_end(on.transcript, 0, 0, &on.out);
    ck_assert_uint_eq(epg_transcript_counts_of(on.transcript).long_lines, 1);
    ck_assert_str_eq(epg_transcript_final_text(on.transcript), "after");
    ck_assert_uint_lt(on.out.size, 8192);
    EPG_AUTO_JSON *skipped = event_at(&on, "skipped", 0);
    ck_assert_int_eq(json_integer_value(json_object_get(skipped, "bytes")), 100 << 20);
    end(&on);
}
END_TEST

START_TEST(large_and_deep_content_is_cut)
{
    play on;
    begin(&on, "claude-code");
    EPG_AUTO_BUFFER line = {0};
    epg_buffer_text(
        &line,
        "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":\"");
    for (int i = 0; i < 100000; i++) {
        epg_buffer_text(&line, "\xc3\xa9");
    }
    epg_buffer_text(&line, "\"}]}}\n{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":"
                           "\"d\",\"name\":\"n\",\"input\":");
    for (int i = 0; i < 500; i++) {
        epg_buffer_text(&line, "{\"a\":");
    }
    epg_buffer_text(&line, "1");
    for (int i = 0; i < 500; i++) {
        epg_buffer_byte(&line, '}');
    }
    epg_buffer_text(&line, "}]}}\n");
    feed(&on, epg_buffer_cstr(&line), 65536);
    EPG_AUTO_JSON *result = event_at(&on, "tool_result", 0);
    ck_assert_int_eq(json_integer_value(json_object_get(result, "output_bytes")), 200000);
    ck_assert_uint_eq(json_string_length(json_object_get(result, "output")), EPG_TRANSCRIPT_TEXT_MAX);
    EPG_AUTO_JSON *call = event_at(&on, "tool_call", 0);
    ck_assert(json_is_string(json_object_get(call, "input")));
    end(&on);
}
END_TEST

START_TEST(secrets_are_hidden_in_what_is_written)
{
    epg_error err = {0};
    play on;
    begin(&on, "claude-code");
    epg_transcript_free(on.transcript);
    epg_buffer_clear(&on.out);
    EPG_CLEANUP(epg_redactor_cleanup) epg_redactor *redactor = epg_redactor_new();
    epg_redactor_add_value(redactor, "top-secret-value");
    epg_assert_ok(epg_redactor_ready(redactor, &err), &err);
    on.transcript = epg_transcript_new(&on.adapter, redactor, &on.out);
    feed(&on,
         "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"it is "
         "top\\u002dsecret\\u002dvalue\"},"
         "{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"n\",\"input\":{\"a\":[\"top-secret-value\"]}}]}}\n"
         "{\"type\":\"result\",\"is_error\":true,\"result\":\"key top-secret-value "
         "refused\",\"api_error_status\":401}\n",
         11);
    epg_transcript_end(on.transcript, 1, 0, &on.out);
    ck_assert_ptr_null(strstr(epg_buffer_cstr(&on.out), "secret"));
    ck_assert_str_eq(epg_transcript_error(on.transcript)->message, "key [redacted] refused");
    ck_assert_str_eq(epg_transcript_final_text(on.transcript), "it is [redacted]");
    EPG_AUTO_JSON *call = event_at(&on, "tool_call", 0);
    ck_assert(json_is_object(json_object_get(call, "input")));
    end(&on);
}
END_TEST

START_TEST(failures_without_a_word_in_the_stream_are_judged)
{
    static const struct {
        const char *adapter, *stderr_text;
        int exit_code, signal;
        epg_agent_fault fault;
    } cases[] = {
        {"claude-code",
         "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons\n", 1, 0,
         EPG_FAULT_ROOT},
        {"kimi-code", "file:///x/main.mjs:1\nimport x\n^^^\nSyntaxError: The requested module\n    at y\n", 1, 0,
         EPG_FAULT_VERSION},
        {"codex", "", 1, 0, EPG_FAULT_OTHER},
        {"codex", "", -1, 9, EPG_FAULT_OTHER},
        {NULL, "Error: connect ECONNREFUSED 127.0.0.1:9\n", 1, 0, EPG_FAULT_NETWORK},
        {NULL, "", 0, 0, EPG_FAULT_NONE},
    };
    for (size_t i = 0; i < EPG_COUNT(cases); i++) {
        play on;
        begin(&on, cases[i].adapter);
        epg_transcript_stderr(on.transcript, epg_span_text(cases[i].stderr_text), &on.out);
        epg_transcript_end(on.transcript, cases[i].exit_code, cases[i].signal, &on.out);
        const epg_agent_error *error = epg_transcript_error(on.transcript);
        ck_assert_msg(error->fault == cases[i].fault, "%zu: %s", i, epg_agent_fault_name(error->fault));
        end(&on);
    }
    ck_assert_str_eq(epg_agent_fault_side(EPG_FAULT_OVERLOAD), "provider");
    ck_assert_str_eq(epg_agent_fault_side(EPG_FAULT_LOGIN), "user");
}
END_TEST

START_TEST(an_agent_that_gets_over_an_error_has_none)
{
    play on;
    begin(&on, "codex");
    feed(&on, "{\"type\":\"error\",\"message\":\"Reconnecting... 1/5 (error sending request)\"}\n", 100);
    ck_assert_int_eq(epg_transcript_error(on.transcript)->fault, EPG_FAULT_NETWORK);
    ck_assert(!epg_transcript_error(on.transcript)->final);
    feed(&on, "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}\n", 100);
    epg_transcript_end(on.transcript, 0, 0, &on.out);
    ck_assert_int_eq(epg_transcript_error(on.transcript)->fault, EPG_FAULT_NONE);
    end(&on);
}
END_TEST

START_TEST(last_session_is_read_back_and_never_trusted)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"{\"event\":\"session\",\"id\":\"one\"}\n{\"event\":\"session\",\"id\":\"t-w_o.2\"}\n", "t-w_o.2"},
        {"{\"event\":\"session\",\"id\":\"one\"}\n{\"event\":\"session\",\"id\":\"--evil\"}\n", "one"},
        {"{\"event\":\"message\",\"text\":\"\\\"event\\\":\\\"session\\\"\",\"id\":\"x\"}\n", NULL},
        {"{\"event\":\"session\",\"id\":\"a b\"}\n{\"event\":\"session\",\"id\":7}\n{\"event\":\"session\"", NULL},
        {"", NULL},
    };
    char *directory = epg_test_directory();
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_ptr_null(epg_transcript_last_session(fd));
    for (size_t i = 0; i < EPG_COUNT(cases); i++) {
        epg_test_write_text(directory, "transcript.jsonl", cases[i].text);
        EPG_AUTO_FREE char *id = epg_transcript_last_session(fd);
        ck_assert_pstr_eq(id, cases[i].expected);
    }
    ck_assert_int_eq(unlinkat(fd, "transcript.jsonl", 0), 0);
    epg_test_write_text(directory, "other", cases[0].text);
    ck_assert_int_eq(symlinkat("other", fd, "transcript.jsonl"), 0);
    ck_assert_ptr_null(epg_transcript_last_session(fd));
    (void)close(fd);
    epg_test_directory_free(directory);
}
END_TEST

START_TEST(what_earlier_starts_used_is_added_up_and_never_trusted)
{
#define TOLD(in, known)                                                                                                \
    "\"cost\":0.5,\"cost_known\":\"" known "\",\"tokens\":{\"input\":" in ",\"output\":1},"                            \
    "\"tokens_known\":\"" known "\"}"
#define START "{\"event\":\"transcript\"}\n"
#define USAGE(in) "{\"event\":\"usage\"," TOLD(in, "lower_bound") "\n"
#define END(in) "{\"event\":\"end\",\"usage\":{" TOLD(in, "exact") "}\n"
    static const struct {
        const char *text;
        uint64_t starts, input;
        epg_known known;
        double cost;
    } cases[] = {
        {"", 0, 0, EPG_KNOWN_NOT, 0},
        {START, 1, 0, EPG_KNOWN_NOT, 0},
        {START USAGE("5") USAGE("7") END("8"), 1, 8, EPG_KNOWN_EXACTLY, 0.5},
        {START END("8") START END("9"), 2, 17, EPG_KNOWN_EXACTLY, 1},
        {START USAGE("7") START END("9"), 2, 16, EPG_KNOWN_AT_LEAST, 1},
        {START START END("9"), 2, 9, EPG_KNOWN_AT_LEAST, 0.5},
        {START "{\"event\":\"message\",\"text\":\"\\\"event\\\":\\\"end\\\"\"}\n" USAGE("7") "{\"event\":\"usa", 1, 7,
         EPG_KNOWN_AT_LEAST, 0.5},
        {START USAGE("9223372036854775807") START USAGE("9223372036854775807"), 2, INT64_MAX / 2, EPG_KNOWN_AT_LEAST,
         1},
        {START USAGE("-1"), 1, 0, EPG_KNOWN_AT_LEAST, 0.5},
        {START "{\"event\":\"usage\",\"cost\":-3,\"cost_known\":\"x\",\"tokens\":[],\"tokens_known\":2}\n", 1, 0,
         EPG_KNOWN_NOT, 0},
    };
    char *directory = epg_test_directory();
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    epg_usage usage;
    ck_assert_uint_eq(epg_transcript_past(fd, &usage, NULL, NULL), 0);
    for (size_t i = 0; i < EPG_COUNT(cases); i++) {
        epg_test_write_text(directory, "transcript.jsonl", cases[i].text);
        ck_assert_msg(epg_transcript_past(fd, &usage, NULL, NULL) == cases[i].starts, "case %zu", i);
        ck_assert_msg(usage.tokens.input == cases[i].input && usage.tokens_known == cases[i].known, "case %zu", i);
        ck_assert_msg(fabs(usage.cost - cases[i].cost) < 1e-12, "case %zu", i);
    }
    (void)close(fd);
    epg_test_directory_free(directory);
}
END_TEST

START_TEST(plain_text_and_notes_are_kept)
{
    play on;
    begin(&on, NULL);
    feed(&on, "step 1\nstep 2", 2);
    epg_transcript_note(on.transcript, "submission", "submission-000001", "score 1", NULL, &on.out);
    epg_transcript_end(on.transcript, 0, 0, &on.out);
    expect_text(&on, "output", 0, "text", "step 1");
    expect_text(&on, "output", 1, "text", "step 2");
    expect_text(&on, "note", 0, "id", "submission-000001");
    ck_assert_str_eq(epg_transcript_final_text(on.transcript), "step 2");
    expect_text(&on, "end", 0, "fault", "none");
    end(&on);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transcript");
    TCase *group = tcase_create("transcript");
    tcase_set_timeout(group, 60);
    tcase_add_loop_test(group, recorded_streams_are_understood, 0, (int)EPG_COUNT(recordings));
    tcase_add_test(group, tool_calls_and_outcomes_have_one_form);
    tcase_add_test(group, counts_are_not_added_twice_and_not_promised);
    tcase_add_test(group, absurd_costs_and_counts_stay_numbers);
    tcase_add_test(group, usage_in_session_files_is_read_once);
    tcase_add_test(group, broken_lines_are_told_and_passed_over);
    tcase_add_test(group, a_hundred_megabytes_in_one_line_are_survived);
    tcase_add_test(group, large_and_deep_content_is_cut);
    tcase_add_test(group, secrets_are_hidden_in_what_is_written);
    tcase_add_test(group, failures_without_a_word_in_the_stream_are_judged);
    tcase_add_test(group, an_agent_that_gets_over_an_error_has_none);
    tcase_add_test(group, plain_text_and_notes_are_kept);
    tcase_add_test(group, what_earlier_starts_used_is_added_up_and_never_trusted);
    tcase_add_test(group, last_session_is_read_back_and_never_trusted);
    suite_add_tcase(suite, group);
    return epg_test_main(suite);
}
