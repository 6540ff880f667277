/* The small families of a Run: seeds, selectors, the frames of the session, and the client's command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runs/client.h"
#include "runs/protocol.h"
#include "support/support.h"
#include "vectors/vectors.h"

/* --- seeds --- */

static bool number_of(const json_t *vector, const char *key, uint64_t *out)
{
    const char *text = json_string_value(json_object_get(vector, key));
    return text != NULL && epg_parse_u64(text, strlen(text), UINT64_MAX, out);
}

static uint64_t ours(const char *kind, uint64_t seed, uint64_t index)
{
    return strcmp(kind, "policy_seed") == 0            ? epg_policy_seed(seed, index)
           : strcmp(kind, "training_policy_seed") == 0 ? epg_training_policy_seed(seed, index)
           : strcmp(kind, "training_pool_seed") == 0   ? epg_training_pool_seed(seed)
           : strcmp(kind, "validation_seed") == 0      ? epg_validation_seed(seed)
                                                       : epg_assessment_seed(seed);
}

void epg_vectors_seeds(const json_t *document, epg_vector_report *report)
{
    static const char *const kinds[] = {"policy_seed", "training_policy_seed", "training_pool_seed", "validation_seed",
                                        "assessment_seed"};
    for (size_t k = 0; k < EPG_COUNT(kinds); k++) {
        const json_t *list = json_object_get(document, kinds[k]);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *vector = json_array_get(list, i);
            uint64_t seed = 0;
            uint64_t index = 0;
            uint64_t expected = 0;
            bool whole = (number_of(vector, "run_seed", &seed) || number_of(vector, "master", &seed)) &&
                         number_of(vector, "seed", &expected) && (number_of(vector, "index", &index) || k > 1);
            epg_vector_verdict(report, kinds[k], whole && ours(kinds[k], seed, index) == expected,
                               "seed %llu index %llu: ours is %llu, not %llu", (unsigned long long)seed,
                               (unsigned long long)index, (unsigned long long)ours(kinds[k], seed, index),
                               (unsigned long long)expected);
        }
        if (json_array_size(list) == 0) {
            epg_vector_fail(report, kinds[k], "no vectors");
        }
    }
}

/* --- selectors --- */

static bool same_indices(const json_t *expected, const epg_indices *indices)
{
    if (json_array_size(expected) != indices->count) {
        return false;
    }
    for (size_t i = 0; i < indices->count; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)indices->items[i]);
        if (strcmp(text, json_string_value(json_array_get(expected, i))) != 0) {
            return false;
        }
    }
    return true;
}

static bool matches(const json_t *vector, const epg_indices *indices)
{
    const json_t *expected = json_object_get(vector, "indices");
    if (json_is_array(expected)) {
        return same_indices(expected, indices);
    }
    uint64_t first = 0;
    uint64_t last = 0;
    return (json_int_t)indices->count == json_integer_value(json_object_get(vector, "count")) &&
           number_of(vector, "first", &first) && number_of(vector, "last", &last) && indices->items[0] == first &&
           indices->items[indices->count - 1] == last;
}

void epg_vectors_selectors(const json_t *document, epg_vector_report *report)
{
    for (size_t i = 0; i < json_array_size(document); i++) {
        const json_t *vector = json_array_get(document, i);
        const char *selector = json_string_value(json_object_get(vector, "selector"));
        bool expected = json_is_true(json_object_get(vector, "ok"));
        epg_indices indices EPG_CLEANUP(epg_indices_free) = {0};
        epg_error err = {0};
        if (selector == NULL) {
            epg_vector_fail(report, "selectors", "vector %zu has no selector", i);
            continue;
        }
        bool ok = epg_selector_parse(selector, &indices, &err) == EPG_OK;
        epg_vector_verdict(report, selector, ok == expected && (!ok || matches(vector, &indices)), "%s",
                           ok ? "accepted, or other indices" : err.text);
    }
}

/* --- frame_decoding --- */

/* The two vectors that are too long to be written out. */
static void build(const char *name, epg_buffer *out)
{
    bool deep = strcmp(name, "deep-nesting-100000") == 0;
    size_t count = deep ? 100000 : 5000;
    (void)epg_buffer_be32(out, (uint32_t)(deep ? 2 * count + 6 : count + 6));
    (void)epg_buffer_text(out, "{\"a\":");
    for (size_t i = 0; i < count; i++) {
        (void)epg_buffer_byte(out, deep ? '[' : '9');
    }
    for (size_t i = 0; deep && i < count; i++) {
        (void)epg_buffer_byte(out, ']');
    }
    (void)epg_buffer_byte(out, '}');
}

static int nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c - 'a' + 10;
}

static void from_hex(const char *hex, epg_buffer *out)
{
    for (; hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
        (void)epg_buffer_byte(out, (uint8_t)(nibble(hex[0]) << 4 | nibble(hex[1])));
    }
}

/* Both codecs of the vectors are frames of one JSON object and differ in their bound alone; between Host and Policy we
 * speak otherwise (frames of canonical bytes), so all are tried on the session's. */
void epg_vectors_frame_decoding(const json_t *document, epg_vector_report *report)
{
    for (size_t i = 0; i < json_array_size(document); i++) {
        const json_t *vector = json_array_get(document, i);
        const char *hex = json_string_value(json_object_get(vector, "hex"));
        json_int_t length = json_integer_value(json_object_get(vector, "length"));
        EPG_AUTO_BUFFER bytes = {0};
        EPG_AUTO_JSON *object = NULL;
        epg_span body = {0};
        if (hex != NULL) {
            from_hex(hex, &bytes);
        } else {
            build(epg_vector_name(vector), &bytes);
        }
        if (epg_session_frame(epg_buffer_span(&bytes), &body) == EPG_FRAME_WHOLE) {
            object = epg_session_decode(body);
        }
        epg_vector_verdict(
            report, epg_vector_name(vector),
            (json_int_t)bytes.size == length && (object != NULL) == json_is_true(json_object_get(vector, "ok")),
            "%zu bytes of %lld, %s", bytes.size, (long long)length, object != NULL ? "accepted" : "refused");
    }
}

/* --- cli --- */

static int run_client(const json_t *vector, char **out, char **diagnostics)
{
    const json_t *list = json_object_get(vector, "args");
    size_t count = json_array_size(list);
    EPG_AUTO_FREE char **argv = epg_alloc_array(count + 2, sizeof *argv);
    argv[0] = epg_strdup("evopolicygym-session");
    for (size_t i = 0; i < count; i++) {
        argv[i + 1] = epg_strdup(json_string_value(json_array_get(list, i)));
    }
    size_t out_size = 0;
    size_t diagnostics_size = 0;
    FILE *out_file = open_memstream(out, &out_size);
    FILE *diagnostics_file = open_memstream(diagnostics, &diagnostics_size);
    int exit_code = epg_client_main((int)count + 1, argv, out_file, diagnostics_file);
    (void)fclose(out_file);
    (void)fclose(diagnostics_file);
    for (size_t i = 0; i <= count; i++) {
        free(argv[i]);
    }
    return exit_code;
}

/* The "code" in what the client printed as JSON; NULL when it printed none. Caller frees. */
static char *error_code(const char *diagnostics)
{
    EPG_AUTO_JSON *document = NULL;
    if (epg_json_parse(epg_span_text(diagnostics), "stderr", &document, NULL) != EPG_OK ||
        !json_is_false(json_object_get(document, "ok"))) {
        return NULL;
    }
    const char *code = json_string_value(json_object_get(json_object_get(document, "error"), "code"));
    return code != NULL ? epg_strdup(code) : NULL;
}

void epg_vectors_cli(const json_t *document, epg_vector_report *report)
{
    char *workspace = epg_test_directory();
    epg_test_write_text(workspace, "program/policy.py", "");
    for (size_t i = 0; i < json_array_size(document); i++) {
        const json_t *vector = json_array_get(document, i);
        const char *code = json_string_value(json_object_get(vector, "stderr_error_code"));
        EPG_AUTO_FREE char *out = NULL;
        EPG_AUTO_FREE char *diagnostics = NULL;
        (void)unsetenv("EVOPOLICYGYM_SESSION_SOCKET");
        (void)unsetenv("EVOPOLICYGYM_WORKSPACE");
        if (json_array_size(json_object_get(vector, "env")) > 0) {
            (void)setenv("EVOPOLICYGYM_SESSION_SOCKET", "/nowhere/session.sock", 1);
            (void)setenv("EVOPOLICYGYM_WORKSPACE", workspace, 1);
        }
        int exit_code = run_client(vector, &out, &diagnostics);
        EPG_AUTO_FREE char *found = error_code(diagnostics);
        bool same = (code == NULL) == (found == NULL) && (code == NULL || strcmp(code, found) == 0);
        epg_vector_verdict(report, epg_vector_name(vector),
                           same && exit_code == json_integer_value(json_object_get(vector, "exit")) &&
                               strcmp(out, json_string_value(json_object_get(vector, "stdout"))) == 0 &&
                               *diagnostics != '\0',
                           "exit %d, stdout \"%s\", stderr \"%s\"", exit_code, out, diagnostics);
    }
    epg_test_directory_free(workspace);
}
