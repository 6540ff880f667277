#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "support/support.h"

START_TEST(utf8_is_checked_strictly)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool valid;
    } cases[] = {
        {"", 0, true},
        {"a\0b", 3, true},
        {"\xc3\xa9", 2, true},
        {"\xf0\x9f\x98\x80", 4, true},
        {"\xc0\x80", 2, false},         /* overlong NUL */
        {"\xe0\x80\xaf", 3, false},     /* overlong */
        {"\xed\xa0\x80", 3, false},     /* surrogate */
        {"\xf4\x90\x80\x80", 4, false}, /* over U+10FFFF */
        {"\xc3", 1, false},
        {"\x80", 1, false},
        {"\xff", 1, false},
    };
    ck_assert(epg_utf8_valid(cases[_i].bytes, cases[_i].size) == cases[_i].valid);
}
END_TEST

START_TEST(doubles_are_written_shortest_and_read_back_exactly)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {1.0, "1.0"},   {0.1, "0.1"},      {2051.983870967742, "2051.983870967742"},
        {-0.0, "-0.0"}, {1e300, "1e+300"}, {5e-324, "4.94065645841247e-324"},
    };
    char text[EPG_DOUBLE_TEXT];
    size_t size = epg_double_text(cases[_i].value, text);
    ck_assert_str_eq(text, cases[_i].text);
    ck_assert_uint_eq(size, strlen(text));
    double back = strtod(text, NULL);
    ck_assert(back == cases[_i].value && signbit(back) == signbit(cases[_i].value));
}
END_TEST

START_TEST(numbers_are_read_only_when_whole)
{
    uint64_t value = 7;
    ck_assert(epg_parse_u64("18446744073709551615", 20, UINT64_MAX, &value));
    ck_assert_uint_eq(value, UINT64_MAX);
    ck_assert(epg_parse_u64("007", 3, 10, &value));
    ck_assert_uint_eq(value, 7);
    static const char *const wrong[] = {"18446744073709551616", "", "-1", "+1", " 1", "1 ", "0x1", "11"};
    for (size_t i = 0; i < EPG_COUNT(wrong); i++) {
        ck_assert_msg(!epg_parse_u64(wrong[i], strlen(wrong[i]), i == 7 ? 10 : UINT64_MAX, &value), "%s", wrong[i]);
    }
    ck_assert_uint_eq(value, 7);
    double number = 0;
    ck_assert(epg_parse_double("2.5e-1", &number) && number == 0.25);
    static const char *const not_numbers[] = {"", "nan", "inf", "0x10", "1e999", "1 ", "1.5s", "--1"};
    for (size_t i = 0; i < EPG_COUNT(not_numbers); i++) {
        ck_assert_msg(!epg_parse_double(not_numbers[i], &number), "%s", not_numbers[i]);
    }
}
END_TEST

START_TEST(base64_round_trips_and_refuses_what_is_not_strict)
{
    /* RFC 4648 section 10. */
    static const char *const plain[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
    static const char *const coded[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    for (size_t i = 0; i < EPG_COUNT(plain); i++) {
        EPG_AUTO_BUFFER out = {0};
        epg_base64_encode(epg_span_text(plain[i]), &out);
        ck_assert_str_eq(epg_buffer_cstr(&out), coded[i]);
        EPG_AUTO_BUFFER back = {0};
        ck_assert(epg_base64_decode(epg_span_text(coded[i]), &back));
        ck_assert_str_eq(epg_buffer_cstr(&back), plain[i]);
    }
    static const char *const wrong[] = {
        "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "AA==AA==", "Z g=", "Zm9v\n", "_w==", "===="};
    for (size_t i = 0; i < EPG_COUNT(wrong); i++) {
        EPG_AUTO_BUFFER out = {0};
        ck_assert_msg(!epg_base64_decode(epg_span_text(wrong[i]), &out), "%s", wrong[i]);
        ck_assert_uint_eq(out.size, 0);
    }
}
END_TEST

START_TEST(text_for_a_terminal_has_no_control_bytes)
{
    EPG_AUTO_FREE char *text = epg_printable("a\x1b[2J\xff\xc3\xa9\xc2\x9b\n", 11);
    ck_assert_str_eq(text, "a\\x1b[2J\\xff\xc3\xa9\\xc2\\x9b\\x0a");
}
END_TEST

START_TEST(characters_have_bytes_and_columns)
{
    static const struct {
        const char *text;
        size_t bytes, columns;
    } cases[] = {{"a", 1, 1},        {"\xc3\xa9", 2, 1}, {"\xe4\xb8\xad", 3, 2},
                 {"\xcc\x81", 2, 0}, {"\xff", 1, 1},     {"\xc3", 1, 1}};
    for (size_t i = 0; i < EPG_COUNT(cases); i++) {
        size_t columns = 9;
        ck_assert_uint_eq(epg_utf8_next(cases[i].text, strlen(cases[i].text), &columns), cases[i].bytes);
        ck_assert_uint_eq(columns, cases[i].columns);
    }
}
END_TEST

START_TEST(sha256_is_the_standard_one)
{
    uint8_t hash[EPG_SHA256_SIZE];
    char text[EPG_DIGEST_TEXT];
    epg_sha256_once("abc", 3, hash); /* FIPS 180-2, appendix B.1 */
    epg_digest_text(hash, text);
    ck_assert_str_eq(text, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert(epg_digest_text_valid(text));
    text[10] = 'G';
    ck_assert(!epg_digest_text_valid(text));
    ck_assert(!epg_digest_text_valid("sha256:"));
}
END_TEST

START_TEST(seeds_are_those_of_the_contract)
{
    ck_assert_uint_eq(epg_seed_indexed("evopolicygym/policy-seed/v1", 42, 4), UINT64_C(5949638583408168423));
    ck_assert_uint_eq(epg_seed("evopolicygym/training-pool/v1", 7), UINT64_C(11124507090634538075));
}
END_TEST

START_TEST(a_buffer_stops_at_its_bound)
{
    EPG_AUTO_BUFFER buffer = {.limit = 5};
    ck_assert(epg_buffer_text(&buffer, "abc"));
    ck_assert(!epg_buffer_text(&buffer, "def"));
    ck_assert(buffer.overflow);
    ck_assert_str_eq(epg_buffer_cstr(&buffer), "abc");
    ck_assert(epg_buffer_text(&buffer, "de"));
    epg_buffer_drop_front(&buffer, 2);
    ck_assert_str_eq(epg_buffer_cstr(&buffer), "cde");
}
END_TEST

START_TEST(prose_is_filled_into_lines)
{
    EPG_AUTO_BUFFER out = {0};
    (void)epg_buffer_text(&out, "what  ");
    epg_fill_text("one\n two   three", 6, 6, &out);
    ck_assert_str_eq(epg_buffer_cstr(&out), "what  one two three\n");
    epg_buffer_clear(&out);
    /* 79 columns, and then one more */
    epg_fill_text("0123456789012345678901234567890123456789012345678901234567890123456789012345678 0 1", 0, 4, &out);
    ck_assert_str_eq(epg_buffer_cstr(&out),
                     "0123456789012345678901234567890123456789012345678901234567890123456789012345678\n    0 1\n");
    epg_buffer_clear(&out);
    epg_fill_text("", 3, 3, &out);
    ck_assert_str_eq(epg_buffer_cstr(&out), "\n");
}
END_TEST

START_TEST(a_word_is_quoted_when_a_shell_would_read_it_otherwise)
{
    static const char *const cases[][2] = {{"out/first", "out/first"}, {"", "''"},         {"a b", "'a b'"},
                                           {"it's", "'it'\\''s'"},     {"$(x)", "'$(x)'"}, {"\xc3\xa9", "'\xc3\xa9'"},
                                           {"a\nb", "'a\nb'"},         {"~", "'~'"}};
    EPG_AUTO_FREE char *word = epg_shell_word(cases[_i][0]);
    ck_assert_str_eq(word, cases[_i][1]);
}
END_TEST

static Suite *text_suite(void)
{
    Suite *suite = suite_create("base text");
    TCase *tests = tcase_create("text");
    tcase_add_loop_test(tests, utf8_is_checked_strictly, 0, 11);
    tcase_add_loop_test(tests, doubles_are_written_shortest_and_read_back_exactly, 0, 6);
    tcase_add_test(tests, numbers_are_read_only_when_whole);
    tcase_add_test(tests, base64_round_trips_and_refuses_what_is_not_strict);
    tcase_add_test(tests, text_for_a_terminal_has_no_control_bytes);
    tcase_add_test(tests, characters_have_bytes_and_columns);
    tcase_add_test(tests, sha256_is_the_standard_one);
    tcase_add_test(tests, seeds_are_those_of_the_contract);
    tcase_add_test(tests, a_buffer_stops_at_its_bound);
    tcase_add_test(tests, prose_is_filled_into_lines);
    tcase_add_loop_test(tests, a_word_is_quoted_when_a_shell_would_read_it_otherwise, 0, 8);
    suite_add_tcase(suite, tests);
    return suite;
}

int main(void)
{
    return epg_test_main(text_suite());
}
