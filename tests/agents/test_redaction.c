/* No secret passes, in any of the forms that it is looked for in, however the stream is cut. */
#include "agents/redaction.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/support.h"

#define SECRET "s3cr3t/Value+\"with\\all\n&more"
#define SECRET_PLAIN "abcdefghijklmnop0123"

static epg_redactor *redactor_with(const char *value)
{
    epg_error err;
    epg_redactor *redactor = epg_redactor_new();
    if (value != NULL) {
        epg_redactor_add_value(redactor, value);
    }
    epg_assert_ok(epg_redactor_ready(redactor, &err), &err);
    return redactor;
}

/* The redacted form of `text`, fed in chunks of `step` bytes. */
static char *filtered(const epg_redactor *redactor, const char *text, size_t step, uint64_t *found)
{
    epg_redaction stream;
    epg_buffer out = {0};
    size_t size = strlen(text);
    epg_redaction_begin(&stream, redactor);
    for (size_t at = 0; at < size; at += step) {
        epg_redaction_feed(&stream, epg_span_of(text + at, size - at < step ? size - at : step), &out);
    }
    epg_redaction_end(&stream, &out);
    *found = stream.found;
    return epg_buffer_take_text(&out);
}

static void expect(const epg_redactor *redactor, const char *text, const char *expected)
{
    for (size_t step = 1; step <= strlen(text); step++) {
        uint64_t found = 0;
        EPG_AUTO_FREE char *got = filtered(redactor, text, step, &found);
        ck_assert_msg(strcmp(got, expected) == 0, "%s\ncut every %zu bytes gives\n%s\nnot\n%s", text, step, got,
                      expected);
    }
    EPG_AUTO_BUFFER whole = {0};
    (void)epg_redact(redactor, epg_span_text(text), &whole);
    ck_assert_str_eq(epg_buffer_cstr(&whole), expected);
}

START_TEST(exact_value_is_hidden_across_any_cut)
{
    EPG_CLEANUP(epg_redactor_cleanup) epg_redactor *redactor = redactor_with(SECRET_PLAIN);
    expect(redactor, "key=" SECRET_PLAIN "; and again " SECRET_PLAIN SECRET_PLAIN "!",
           "key=[redacted]; and again [redacted][redacted]!");
    expect(redactor, "abcdefghijklmnop012 abcdefghijklmnop01", "abcdefghijklmnop012 abcdefghijklmnop01");
}
END_TEST

START_TEST(escaped_and_encoded_forms_are_hidden)
{
    EPG_CLEANUP(epg_redactor_cleanup) epg_redactor *redactor = redactor_with(SECRET);
    expect(redactor, "<" SECRET ">", "<[redacted]>");
    /* as JSON, as JSON in JSON, percent-encoded in both cases, and as a form */
    expect(redactor, "{\"a\":\"s3cr3t/Value+\\\"with\\\\all\\n&more\"}", "{\"a\":\"[redacted]\"}");
    expect(redactor, "{\"a\":\"s3cr3t\\/Value\\u002b\\u0022with\\u005call\\u000a\\u0026more\"}",
           "{\"a\":\"[redacted]\"}");
    expect(redactor, "\"{\\\"a\\\":\\\"s3cr3t/Value+\\\\\\\"with\\\\\\\\all\\\\n&more\\\"}\"",
           "\"{\\\"a\\\":\\\"[redacted]\\\"}\"");
    expect(redactor, "q=s3cr3t%2FValue%2B%22with%5Call%0A%26more&r=1", "q=[redacted]&r=1");
    expect(redactor, "q=s3cr3t%2fValue%2b%22with%5call%0a%26more&r=1", "q=[redacted]&r=1");
}
END_TEST

START_TEST(base64_is_hidden_at_every_alignment)
{
    EPG_CLEANUP(epg_redactor_cleanup) epg_redactor *redactor = redactor_with(SECRET_PLAIN);
    /* made with coreutils' base64 of "", "x", "xy" and then the value, then "." */
    static const char *const texts[] = {"YWJjZGVmZ2hpamtsbW5vcDAxMjMu",
                                        "eGFiY2RlZmdoaWprbG1ub3AwMTIzLg==", "eHlhYmNkZWZnaGlqa2xtbm9wMDEyMy4="};
    static const char *const hidden[] = {"[redacted]Mu", "eG[redacted]zLg==", "eHl[redacted]My4="};
    for (size_t i = 0; i < EPG_COUNT(texts); i++) {
        uint64_t found = 0;
        EPG_AUTO_FREE char *got = filtered(redactor, texts[i], 5, &found);
        ck_assert_uint_eq(found, 1);
        ck_assert_msg(strstr(got, EPG_REDACTED) != NULL, "%s", got);
        /* At most the two characters that also depend on what stands around the value are left of it on either side. */
        ck_assert_msg(strlen(got) <= strlen(hidden[i]) + 2, "%s", got);
    }
}
END_TEST

START_TEST(known_kinds_of_keys_are_hidden)
{
    EPG_CLEANUP(epg_redactor_cleanup) epg_redactor *redactor = redactor_with(NULL);
    expect(redactor, "OPENAI_API_KEY=sk-proj-0aB1cD2eF3gH4iJ5kL6m\n", "OPENAI_API_KEY=[redacted]\n");
    expect(redactor, "{\"output\":\"line\\nsk-ant-api03-0aB1cD2eF3gH4iJ5\\n\"}",
           "{\"output\":\"line\\n[redacted]\\n\"}");
    expect(redactor, "ghp_0123456789abcdefghijABCDEFGHIJ012345 x", "[redacted] x");
    expect(redactor, "AIzaSyA0123456789abcdefghijABCDEFGHIJ01", "[redacted]");
    expect(redactor, "Authorization: Bearer abcdefghijklmnopqrst.UVW-xyz_0==, ok", "Authorization: [redacted], ok");
    expect(redactor, "http://user:hunter22@proxy:3128/", "http://[redacted]@proxy:3128/");
    expect(redactor, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "[redacted]\n");
    expect(redactor, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlMTIz.", "[redacted].");
}
END_TEST

START_TEST(ordinary_text_is_left_alone)
{
    EPG_CLEANUP(epg_redactor_cleanup) epg_redactor *redactor = redactor_with(NULL);
    const char *text = "task-0123456789-abcdefghijk disk-usage-of-the-whole-machine bearer of news eyJ "
                       "https://example.org/a:b@c sk-learn-is-a-library-of-python -----BEGIN CERTIFICATE-----";
    expect(redactor, text, text);
}
END_TEST

START_TEST(short_values_hide_nothing_and_long_ones_all)
{
    EPG_CLEANUP(epg_redactor_cleanup) epg_redactor *small = redactor_with("on");
    expect(small, "on and on", "on and on");
    EPG_AUTO_BUFFER value = {0};
    for (unsigned i = 0; i < 20000; i++) {
        epg_buffer_byte(&value, (uint8_t)("0123456789abcdefghijklmnopqrstuvwxyz/+_-"[(i * 7919U + i / 40U) % 40U]));
    }
    EPG_CLEANUP(epg_redactor_cleanup) epg_redactor *large = redactor_with(epg_buffer_cstr(&value));
    EPG_AUTO_BUFFER text = {0};
    epg_buffer_text(&text, "before ");
    epg_buffer_append_span(&text, epg_buffer_span(&value));
    epg_buffer_text(&text, " after");
    uint64_t found = 0;
    EPG_AUTO_FREE char *got = filtered(large, epg_buffer_cstr(&text), 4096, &found);
    ck_assert_uint_gt(found, 0);
    ck_assert_uint_eq(strlen(got), strlen("before  after") + found * strlen(EPG_REDACTED));
    ck_assert(strncmp(got, "before [redacted]", 17) == 0);
    ck_assert(strcmp(got + strlen(got) - 16, "[redacted] after") == 0);
}
END_TEST

START_TEST(what_is_held_back_is_bounded)
{
    epg_error err;
    EPG_CLEANUP(epg_redactor_cleanup) epg_redactor *redactor = epg_redactor_new();
    epg_assert_ok(epg_redactor_add_pattern(redactor, "<secret>[a-z]*</secret>", &err), &err);
    epg_assert_code(epg_redactor_add_pattern(redactor, "(open", &err), EPG_ERR_INVALID, &err);
    epg_assert_ok(epg_redactor_ready(redactor, &err), &err);
    epg_redaction stream;
    epg_redaction_begin(&stream, redactor);
    EPG_AUTO_BUFFER out = {0};
    char block[4096];
    memset(block, 'a', sizeof block);
    epg_redaction_feed(&stream, epg_span_text("<secret>"), &out);
    for (int i = 0; i < 256; i++) {
        epg_redaction_feed(&stream, epg_span_of(block, sizeof block), &out);
        ck_assert_uint_le(stream.pending.size, EPG_REDACTION_HOLD + sizeof block + 64);
    }
    epg_redaction_end(&stream, &out);
    ck_assert_uint_eq(out.size, 8 + 256 * sizeof block);
    expect(redactor, "a <secret>abc</secret> b", "a [redacted] b");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("redaction");
    TCase *group = tcase_create("redaction");
    tcase_add_test(group, exact_value_is_hidden_across_any_cut);
    tcase_add_test(group, escaped_and_encoded_forms_are_hidden);
    tcase_add_test(group, base64_is_hidden_at_every_alignment);
    tcase_add_test(group, known_kinds_of_keys_are_hidden);
    tcase_add_test(group, ordinary_text_is_left_alone);
    tcase_add_test(group, short_values_hide_nothing_and_long_ones_all);
    tcase_add_test(group, what_is_held_back_is_bounded);
    suite_add_tcase(suite, group);
    return epg_test_main(suite);
}
