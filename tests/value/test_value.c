#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"
#include "value/outcome.h"
#include "value/value.h"

#include "value/random_value.h"

/* Bytes from text with their own NULs: the size of a literal without its last one. */
#define LITERAL(text) epg_span_of((text), sizeof(text) - 1)
#define CONSTANT(text)                                                                                                 \
    {                                                                                                                  \
        (const uint8_t *)(text), sizeof(text) - 1                                                                      \
    } /* the same, as an initialiser */
#define P0 "\0\0\0\0\0\0\0\0"
#define P1 "\0\0\0\0\0\0\0\1"
#define P2 "\0\0\0\0\0\0\0\2"
#define P4 "\0\0\0\0\0\0\0\4"
#define P5 "\0\0\0\0\0\0\0\5"
#define HUGE "\xff\xff\xff\xff\xff\xff\xff\xff"

static epg_code check(epg_span bytes, epg_error *err)
{
    return epg_value_check(bytes, &epg_value_policy_limits, err);
}

static void expect_bytes(const epg_buffer *buffer, epg_span expected)
{
    epg_error err = {0};
    ck_assert(epg_span_equal(epg_buffer_span(buffer), expected));
    epg_assert_ok(check(expected, &err), &err);
    ck_assert_uint_eq(epg_value_length(expected), expected.size);
}

START_TEST(scalars_are_written_as_the_contract_says)
{
    const int64_t lowest = INT64_MIN;
    EPG_AUTO_BUFFER out = {0};
    epg_value_put_tuple(&out, 10);
    epg_value_put_null(&out);
    epg_value_put_bool(&out, true);
    epg_value_put_bool(&out, false);
    epg_value_put_i64(&out, lowest);
    epg_value_put_i64(&out, 0);
    epg_value_put_u64(&out, UINT64_MAX);
    epg_value_put_float(&out, -0.0);
    epg_value_put_float(&out, 1.5);
    epg_value_put_text(&out, "\xc3\xa9");
    epg_value_put_bytes(&out, LITERAL("\0\xff"));
    expect_bytes(&out, LITERAL("U\0\0\0\0\0\0\0\x0a"
                               "N"
                               "B1"
                               "B0"
                               "I\0\0\0\0\0\0\0\x14"
                               "-9223372036854775808"
                               "I" P1 "0"
                               "I\0\0\0\0\0\0\0\x14"
                               "18446744073709551615"
                               "F\x80\0\0\0\0\0\0\0"
                               "F\x3f\xf8\0\0\0\0\0\0"
                               "S" P2 "\xc3\xa9"
                               "Y" P2 "\0\xff"));
}
END_TEST

START_TEST(containers_and_tensors_are_written_as_the_contract_says)
{
    const uint64_t shape[] = {2, 1};
    EPG_AUTO_BUFFER out = {0};
    epg_value_put_map(&out, 2);
    epg_value_put_key(&out, "");
    epg_value_put_tensor(&out, "uint8", shape, 2, LITERAL("\7\x08"));
    epg_value_put_key_span(&out, LITERAL("a"));
    epg_value_put_list(&out, 0);
    expect_bytes(&out, LITERAL("M" P2 P0 "T" P5 "uint8" P2 P1 "2" P1 "1" P2 "\7\x08" P1 "a"
                               "L" P0));
}
END_TEST

START_TEST(scalars_are_read_in_place)
{
    bool truth = false;
    int64_t number = 0;
    uint64_t large = 0;
    double real = 0;
    epg_span span = {0};
    ck_assert(epg_value_get_bool(LITERAL("B1"), &truth) && truth);
    ck_assert(epg_value_get_bool(LITERAL("B0"), &truth) && !truth);
    ck_assert(epg_value_get_i64(LITERAL("I\0\0\0\0\0\0\0\x14-9223372036854775808"), &number));
    ck_assert_int_eq(number, INT64_MIN);
    ck_assert(!epg_value_get_u64(LITERAL("I" P2 "-1"), &large));
    ck_assert(!epg_value_get_i64(LITERAL("I\0\0\0\0\0\0\0\x13"
                                         "9223372036854775808"),
                                 &number));
    ck_assert(epg_value_get_u64(LITERAL("I\0\0\0\0\0\0\0\x13"
                                        "9223372036854775808"),
                                &large));
    ck_assert_uint_eq(large, UINT64_C(1) << 63);
    ck_assert(epg_value_get_float(LITERAL("F\x3f\xf8\0\0\0\0\0\0"), &real) && real == 1.5);
    ck_assert(epg_value_get_string(LITERAL("S" P1 "x"), &span) && span.size == 1 && span.data[0] == 'x');
    ck_assert(epg_value_get_bytes(LITERAL("Y" P0), &span) && span.size == 0);
    ck_assert(!epg_value_get_bool(LITERAL("I" P1 "1"), &truth)); /* kinds are kept apart */
    ck_assert(!epg_value_get_i64(LITERAL("B1"), &number));
    ck_assert(!epg_value_get_float(LITERAL("I" P1 "1"), &real));
    ck_assert(!epg_value_get_string(LITERAL("Y" P1 "x"), &span));
    ck_assert_int_eq(epg_value_kind(LITERAL("")), 0);
}
END_TEST

START_TEST(containers_are_walked_and_looked_up)
{
    epg_span map = LITERAL("M" P2 P1 "a"
                           "L" P2 "NB1" P1 "c"
                           "I" P1 "7");
    epg_value_cursor cursor;
    epg_span key = {0};
    epg_span item = {0};
    ck_assert(epg_value_enter(map, &cursor) && cursor.is_map && cursor.left == 2);
    ck_assert(epg_value_next(&cursor, &key, &item) && epg_span_equal(key, LITERAL("a")));
    epg_value_cursor inner;
    ck_assert(epg_value_enter(item, &inner) && !inner.is_map && inner.left == 2);
    ck_assert(epg_value_next(&inner, NULL, &item) && epg_span_equal(item, LITERAL("N")));
    ck_assert(epg_value_next(&inner, NULL, &item) && epg_span_equal(item, LITERAL("B1")));
    ck_assert(!epg_value_next(&inner, NULL, &item));
    ck_assert(epg_value_next(&cursor, &key, &item) && epg_span_equal(item, LITERAL("I" P1 "7")));
    ck_assert(!epg_value_next(&cursor, &key, &item));
    ck_assert(epg_value_lookup(map, "c", &item) && epg_value_kind(item) == 'I');
    ck_assert(!epg_value_lookup(map, "b", &item) && !epg_value_lookup(map, "", &item) &&
              !epg_value_lookup(map, "d", &item));
    ck_assert(!epg_value_lookup(LITERAL("L" P1 "N"), "a", &item));
    ck_assert(!epg_value_enter(LITERAL("N"), &cursor));
}
END_TEST

START_TEST(tensors_are_read_in_place)
{
    epg_value_tensor tensor;
    uint64_t dimension = 0;
    ck_assert(epg_value_get_tensor(LITERAL("T" P5 "uint8" P2 P1 "2" P1 "1" P2 "xy"), &tensor));
    ck_assert(epg_span_equal(tensor.dtype, LITERAL("uint8")) && epg_span_equal(tensor.data, LITERAL("xy")));
    ck_assert_uint_eq(tensor.rank, 2);
    ck_assert(epg_value_next_dimension(&tensor.shape, &dimension) && dimension == 2);
    ck_assert(epg_value_next_dimension(&tensor.shape, &dimension) && dimension == 1);
    ck_assert(!epg_value_next_dimension(&tensor.shape, &dimension));
}
END_TEST

static const struct {
    const char *what;
    epg_span bytes;
    const char *told; /* part of the error's text */
} refused[] = {
    {"nothing", {NULL, 0}, "cut short"},
    {"an unknown tag", CONSTANT("X"), "no kind of value"},
    {"bytes after the value", CONSTANT("NN"), "bytes follow the value, at byte 1"},
    {"a bool of 2", CONSTANT("B2"), "bool is neither"},
    {"half a bool", CONSTANT("B"), "cut short"},
    {"an empty int", CONSTANT("I" P0), "canonical decimal"},
    {"a lone minus", CONSTANT("I" P1 "-"), "canonical decimal"},
    {"minus zero", CONSTANT("I" P2 "-0"), "canonical decimal"},
    {"a plus sign", CONSTANT("I" P2 "+1"), "canonical decimal"},
    {"a leading zero", CONSTANT("I" P2 "01"), "canonical decimal"},
    {"a leading zero after the minus", CONSTANT("I\0\0\0\0\0\0\0\3-01"), "canonical decimal"},
    {"a space", CONSTANT("I" P2 " 1"), "canonical decimal"},
    {"2^64",
     CONSTANT("I\0\0\0\0\0\0\0\x14"
              "18446744073709551616"),
     "canonical decimal"},
    {"-2^63-1", CONSTANT("I\0\0\0\0\0\0\0\x14-9223372036854775809"), "canonical decimal"},
    {"10^20",
     CONSTANT("I\0\0\0\0\0\0\0\x15"
              "100000000000000000000"),
     "canonical decimal"},
    {"an int with a lying length", CONSTANT("I" HUGE "1"), "int is cut short"},
    {"NaN", CONSTANT("F\x7f\xf8\0\0\0\0\0\0"), "not finite"},
    {"infinity", CONSTANT("F\x7f\xf0\0\0\0\0\0\0"), "not finite"},
    {"minus infinity", CONSTANT("F\xff\xf0\0\0\0\0\0\0"), "not finite"},
    {"half a float", CONSTANT("F\x3f\xf8\0\0"), "float is cut short"},
    {"a surrogate", CONSTANT("S\0\0\0\0\0\0\0\3\xed\xa0\x80"), "valid UTF-8"},
    {"an overlong form", CONSTANT("S" P2 "\xc0\x80"), "valid UTF-8"},
    {"half a character", CONSTANT("S" P1 "\xc3"), "valid UTF-8"},
    {"half a string", CONSTANT("S" P2 "x"), "string is cut short"},
    {"half of bytes", CONSTANT("Y" P2 "x"), "bytes are cut short"},
    {"a list that promises more", CONSTANT("L" P2 "N"), "fewer items"},
    {"a list of 2^64-1", CONSTANT("L" HUGE "N"), "fewer items"},
    {"a list cut in its count", CONSTANT("L\0\0"), "count is cut short"},
    {"keys out of order",
     CONSTANT("M" P2 P1 "b"
              "N" P1 "a"
              "N"),
     "order of their bytes"},
    {"a key twice",
     CONSTANT("M" P2 P1 "a"
              "N" P1 "a"
              "N"),
     "unique"},
    {"a longer key before its own beginning",
     CONSTANT("M" P2 P2 "ab"
              "N" P1 "a"
              "N"),
     "order of their bytes"},
    {"an invalid key",
     CONSTANT("M" P1 P1 "\xff"
              "N"),
     "key isn't valid UTF-8"},
    {"a key without a value", CONSTANT("M" P1 P1 "a"), "value is cut short"},
    {"an unknown dtype", CONSTANT("T" P4 "int7" P0 P1 "x"), "dtype isn't known"},
    {"a dtype with more after it", CONSTANT("T" P5 "bool\0" P0 P1 "\1"), "dtype isn't known"},
    {"a tensor of another size", CONSTANT("T" P5 "uint8" P1 P1 "2" P1 "x"), "as long as its shape"},
    {"a tensor without its last item", CONSTANT("T" P5 "int16" P1 P1 "1" P1 "x"), "as long as its shape"},
    {"a shape whose product wraps to 0",
     CONSTANT("T" P5 "uint8" P2 "\0\0\0\0\0\0\0\x0a"
              "4294967296"
              "\0\0\0\0\0\0\0\x0a"
              "4294967296" P0),
     "as long as its shape"},
    {"a negative dimension", CONSTANT("T" P5 "uint8" P1 P2 "-1" P0), "dimension"},
    {"a rank of 2^64-1", CONSTANT("T" P5 "uint8" HUGE P1 "0"), "shape is cut short"},
    {"a bool item of 2", CONSTANT("T" P4 "bool" P1 P1 "1" P1 "\2"), "bool is over 1"},
    {"a float16 infinity", CONSTANT("T\0\0\0\0\0\0\0\7float16" P0 P2 "\0\x7c"), "isn't finite"},
    {"a float32 NaN", CONSTANT("T\0\0\0\0\0\0\0\7float32" P0 P4 "\0\0\xc0\x7f"), "isn't finite"},
    {"a float64 minus infinity", CONSTANT("T\0\0\0\0\0\0\0\7float64" P0 "\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\xf0\xff"),
     "isn't finite"},
};

START_TEST(what_is_not_canonical_is_refused_and_named)
{
    epg_error err = {0};
    epg_code code = check(refused[_i].bytes, &err);
    ck_assert_msg(code == EPG_ERR_INVALID, "%s: %s", refused[_i].what, epg_code_name(code));
    ck_assert_msg(strstr(err.text, refused[_i].told) != NULL, "%s: %s", refused[_i].what, err.text);
}
END_TEST

START_TEST(largest_finite_tensor_items_are_admitted)
{
    epg_error err = {0};
    epg_assert_ok(check(LITERAL("T\0\0\0\0\0\0\0\7float16" P0 P2 "\xff\x7b"), &err), &err);
    epg_assert_ok(check(LITERAL("T\0\0\0\0\0\0\0\7float32" P0 P4 "\xff\xff\x7f\xff"), &err), &err);
    epg_assert_ok(check(LITERAL("T" P5 "uint8" P2 P1 "0\0\0\0\0\0\0\0\x14"
                                "18446744073709551615" P0),
                        &err),
                  &err);
}
END_TEST

/* `levels` lists around one null. */
static void nest(epg_buffer *out, size_t levels)
{
    for (size_t i = 0; i < levels; i++) {
        epg_value_put_list(out, 1);
    }
    epg_value_put_null(out);
}

START_TEST(depth_is_bounded)
{
    EPG_AUTO_BUFFER fits = {0};
    EPG_AUTO_BUFFER deep = {0};
    epg_error err = {0};
    nest(&fits, 32);
    nest(&deep, 33);
    epg_assert_ok(check(epg_buffer_span(&fits), &err), &err);
    ck_assert_uint_eq(epg_value_length(epg_buffer_span(&fits)), fits.size);
    epg_assert_code(check(epg_buffer_span(&deep), &err), EPG_ERR_LIMIT, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "over 32 levels deep"));
    epg_buffer_clear(&deep);
    nest(&deep, 100000);
    epg_assert_code(epg_value_check(epg_buffer_span(&deep), &epg_value_trusted_limits, &err), EPG_ERR_LIMIT, &err);
    ck_assert_uint_eq(epg_value_length(epg_buffer_span(&deep)), 0);
}
END_TEST

START_TEST(an_empty_container_at_the_deepest_level_fits)
{
    EPG_AUTO_BUFFER out = {0};
    epg_error err = {0};
    nest(&out, 32);
    out.size--;
    epg_value_put_map(&out, 0);
    epg_assert_ok(check(epg_buffer_span(&out), &err), &err);
    ck_assert(comes_back(epg_buffer_span(&out), &epg_value_policy_limits));
}
END_TEST

START_TEST(nodes_are_bounded)
{
    EPG_AUTO_BUFFER out = {0};
    epg_error err = {0};
    epg_value_put_list(&out, 65535);
    for (size_t i = 0; i < 65535; i++) {
        epg_value_put_null(&out);
    }
    epg_assert_ok(check(epg_buffer_span(&out), &err), &err);
    epg_value_put_null(&out);
    epg_write_be64(out.data + 1, 65536);
    epg_assert_code(check(epg_buffer_span(&out), &err), EPG_ERR_LIMIT, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "over 65536 nodes"));
}
END_TEST

START_TEST(bytes_are_bounded)
{
    const size_t limit = (size_t)4 * 1024 * 1024;
    EPG_AUTO_FREE uint8_t *content = epg_alloc(limit);
    EPG_AUTO_BUFFER out = {0};
    epg_error err = {0};
    epg_value_put_bytes(&out, epg_span_of(content, limit - 9));
    epg_assert_ok(check(epg_buffer_span(&out), &err), &err);
    epg_buffer_clear(&out);
    epg_value_put_bytes(&out, epg_span_of(content, limit - 8));
    epg_assert_code(check(epg_buffer_span(&out), &err), EPG_ERR_LIMIT, &err);
}
END_TEST

static void expect_json(epg_span value, void (*put)(epg_span, epg_json_writer *, const char *), const char *expected)
{
    EPG_AUTO_BUFFER out = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &out, 0);
    put(value, &writer, NULL);
    epg_json_finish(&writer);
    ck_assert_str_eq(epg_buffer_cstr(&out), expected);
}

START_TEST(public_json_is_the_projection_of_the_contract)
{
    expect_json(LITERAL("M\0\0\0\0\0\0\0\3" P1 "b"
                        "U" P2 "Y" P2 "\0\xff"
                        "T" P5 "uint8" P1 P1 "1" P1 "\7" P1 "f"
                        "F\x80\0\0\0\0\0\0\0" P1 "i"
                        "I\0\0\0\0\0\0\0\x14"
                        "18446744073709551615"),
                epg_value_to_json,
                "{\"b\":{\"$type\":\"tuple\",\"items\":[{\"$type\":\"bytes\",\"base64\":\"AP8=\"},"
                "{\"$type\":\"tensor\",\"base64\":\"Bw==\",\"dtype\":\"uint8\",\"shape\":[1]}]},"
                "\"f\":-0.0,\"i\":18446744073709551615}");
    expect_json(LITERAL("M" P2 P0 "N\0\0\0\0\0\0\0\3a\0b"
                        "L" P0),
                epg_value_to_json, "{\"\":null,\"a\\u0000b\":[]}");
}
END_TEST

START_TEST(the_deepest_trusted_value_has_both_json_forms)
{
    EPG_AUTO_BUFFER out = {0};
    epg_error err = {0};
    for (size_t i = 0; i < EPG_VALUE_DEPTH_MAX; i++) {
        if (i % 2 == 0) {
            epg_value_put_tuple(&out, 1);
        } else {
            epg_value_put_map(&out, 1);
            epg_value_put_key(&out, "k");
        }
    }
    epg_value_put_null(&out);
    epg_assert_ok(epg_value_check(epg_buffer_span(&out), &epg_value_trusted_limits, &err), &err);
    ck_assert(comes_back(epg_buffer_span(&out), &epg_value_trusted_limits));
    EPG_AUTO_BUFFER json = {0};
    epg_json_writer writer;
    epg_json_begin(&writer, &json, 2);
    epg_value_to_json(epg_buffer_span(&out), &writer, NULL);
    epg_json_finish(&writer);
    EPG_AUTO_JSON *parsed = NULL;
    epg_assert_ok(epg_json_parse(epg_buffer_span(&json), "projection", &parsed, &err), &err);
}
END_TEST

static epg_code from_node(const char *text, epg_buffer *out, epg_error *err)
{
    EPG_AUTO_JSON *node = NULL;
    epg_assert_ok(epg_json_parse(epg_span_text(text), "node", &node, err), err);
    return epg_value_from_node(node, &epg_value_policy_limits, out, err);
}

START_TEST(nodes_are_appended_whole_or_not_at_all)
{
    EPG_AUTO_BUFFER out = {0};
    epg_error err = {0};
    (void)epg_buffer_text(&out, "before");
    epg_assert_code(from_node("[\"list\",[[\"int\",\"1\"],[\"int\",\"01\"]]]", &out, &err), EPG_ERR_INVALID, &err);
    ck_assert_str_eq(epg_buffer_cstr(&out), "before");
    epg_assert_ok(from_node("[\"map\",[[\"b\",[\"none\"]],[\"a\",[\"none\"]]]]", &out, &err), &err);
    ck_assert(epg_span_equal(epg_buffer_span(&out), LITERAL("beforeM" P2 P1 "aN" P1 "bN")));
    epg_assert_code(from_node("[\"map\",[[\"a\",[\"none\"]],[\"a\",[\"none\"]]]]", &out, &err), EPG_ERR_INVALID, &err);
    epg_assert_code(from_node("[\"tensor\",\"uint8\\u0000\",[],\"AA==\"]", &out, &err), EPG_ERR_INVALID, &err);
    epg_assert_code(from_node("[\"bytes\",\"AB==\"]", &out, &err), EPG_ERR_INVALID, &err);
}
END_TEST

START_TEST(nodes_are_bounded_in_bytes_before_the_value_is_whole)
{
    const epg_value_limits small = {.depth = 32, .nodes = 100, .bytes = 20};
    EPG_AUTO_JSON *node = json_pack("[s,[[s,s],[s,s]]]", "list", "string", "0123456789", "string", "0123456789");
    EPG_AUTO_BUFFER out = {0};
    epg_error err = {0};
    epg_assert_code(epg_value_from_node(node, &small, &out, &err), EPG_ERR_LIMIT, &err);
    ck_assert_uint_eq(out.size, 0);
}
END_TEST

START_TEST(digest_wants_a_map)
{
    char digest[EPG_DIGEST_TEXT];
    epg_error err = {0};
    epg_assert_code(epg_value_environment_digest(LITERAL("L" P0), digest, &err), EPG_ERR_INVALID, &err);
    epg_assert_code(epg_value_environment_digest(LITERAL("M" P1), digest, &err), EPG_ERR_INVALID, &err);
    epg_assert_ok(epg_value_environment_digest(LITERAL("M" P0), digest, &err), &err);
    ck_assert_str_eq(digest, "sha256:112fe20679c849da7447a364b0e7c5526f5162bda1f2663ce5adc7e4ca33ec10");
}
END_TEST

START_TEST(random_values_pass_the_check_and_come_back)
{
    uint64_t state = 1;
    EPG_AUTO_BUFFER out = {0};
    epg_error err = {0};
    for (size_t i = 0; i < 5000; i++) {
        epg_buffer_clear(&out);
        draw_value(&state, 6, &out);
        epg_assert_ok(check(epg_buffer_span(&out), &err), &err);
        ck_assert_uint_eq(epg_value_length(epg_buffer_span(&out)), out.size);
        ck_assert(comes_back(epg_buffer_span(&out), &epg_value_policy_limits));
    }
}
END_TEST

START_TEST(damaged_values_are_refused_or_are_other_values)
{
    uint64_t state = 2;
    size_t accepted = 0;
    EPG_AUTO_BUFFER out = {0};
    for (size_t i = 0; i < 20000; i++) {
        epg_buffer_clear(&out);
        draw_value(&state, 4, &out);
        damage(&state, &out);
        EPG_AUTO_FREE uint8_t *exact = epg_alloc(out.size); /* so that a sanitizer sees the first byte past the end */
        memcpy(exact, out.data, out.size);
        epg_span bytes = epg_span_of(exact, out.size);
        (void)epg_value_length(bytes);
        if (check(bytes, NULL) == EPG_OK) {
            accepted++;
            ck_assert_uint_eq(epg_value_length(bytes), bytes.size);
            ck_assert(comes_back(bytes, &epg_value_policy_limits));
        }
    }
    ck_assert_uint_gt(accepted, 100);
    ck_assert_uint_lt(accepted, 19000);
}
END_TEST

START_TEST(every_cut_of_a_value_is_refused)
{
    epg_span whole = LITERAL("M" P2 P1 "a"
                             "T" P5 "uint8" P1 P1 "1" P1 "x" P1 "b"
                             "L" P2 "F\x3f\xf8\0\0\0\0\0\0"
                             "U" P1 "S" P1 "y");
    epg_error err = {0};
    epg_assert_ok(check(whole, &err), &err);
    for (size_t size = 0; size < whole.size; size++) {
        EPG_AUTO_FREE uint8_t *cut = epg_alloc(size);
        memcpy(cut, whole.data, size);
        epg_assert_code(check(epg_span_of(cut, size), &err), EPG_ERR_INVALID, &err);
        ck_assert_uint_eq(epg_value_length(epg_span_of(cut, size)), 0);
    }
}
END_TEST

START_TEST(failures_have_their_public_names)
{
    ck_assert_ptr_null(epg_policy_failure_name(EPG_POLICY_OK));
    ck_assert_str_eq(epg_policy_failure_name(EPG_POLICY_EXCEPTION), "exception");
    ck_assert_str_eq(epg_policy_failure_name(EPG_POLICY_TIMEOUT), "timeout");
    ck_assert_str_eq(epg_policy_failure_name(EPG_POLICY_INVALID_ACTION), "invalid_action");
    ck_assert_str_eq(epg_policy_failure_name(EPG_POLICY_PROTOCOL_ERROR), "protocol_error");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("value");
    TCase *forms = tcase_create("forms");
    tcase_add_test(forms, scalars_are_written_as_the_contract_says);
    tcase_add_test(forms, containers_and_tensors_are_written_as_the_contract_says);
    tcase_add_test(forms, scalars_are_read_in_place);
    tcase_add_test(forms, containers_are_walked_and_looked_up);
    tcase_add_test(forms, tensors_are_read_in_place);
    tcase_add_test(forms, public_json_is_the_projection_of_the_contract);
    tcase_add_test(forms, the_deepest_trusted_value_has_both_json_forms);
    tcase_add_test(forms, nodes_are_appended_whole_or_not_at_all);
    tcase_add_test(forms, nodes_are_bounded_in_bytes_before_the_value_is_whole);
    tcase_add_test(forms, digest_wants_a_map);
    tcase_add_test(forms, failures_have_their_public_names);
    suite_add_tcase(suite, forms);
    TCase *checks = tcase_create("checks");
    tcase_add_loop_test(checks, what_is_not_canonical_is_refused_and_named, 0, (int)EPG_COUNT(refused));
    tcase_add_test(checks, largest_finite_tensor_items_are_admitted);
    tcase_add_test(checks, depth_is_bounded);
    tcase_add_test(checks, an_empty_container_at_the_deepest_level_fits);
    tcase_add_test(checks, nodes_are_bounded);
    tcase_add_test(checks, bytes_are_bounded);
    tcase_add_test(checks, every_cut_of_a_value_is_refused);
    suite_add_tcase(suite, checks);
    TCase *random = tcase_create("random");
    tcase_set_timeout(random, 120);
    tcase_add_test(random, random_values_pass_the_check_and_come_back);
    tcase_add_test(random, damaged_values_are_refused_or_are_other_values);
    suite_add_tcase(suite, random);
    return epg_test_main(suite);
}
