/* wire_values, wire_invalid, wire_lenient, environment_digests: node form, canonical bytes, public JSON, digest. */
#include "vectors/vectors.h"

#include <string.h>

#include "value/value.h"

/* Writes a JSON value, sorted and compact, the one way in which two of them are compared here. */
static void compact(const json_t *value, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 0);
    epg_json_put_json(&writer, NULL, value);
    epg_json_finish(&writer);
}

static void compact_form(epg_span value, void (*put)(epg_span, epg_json_writer *, const char *), epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 0);
    put(value, &writer, NULL);
    epg_json_finish(&writer);
}

static bool is_form(epg_span value, void (*put)(epg_span, epg_json_writer *, const char *), const json_t *expected)
{
    EPG_AUTO_BUFFER ours = {0};
    EPG_AUTO_BUFFER theirs = {0};
    compact_form(value, put, &ours);
    compact(expected, &theirs);
    return epg_span_equal(epg_buffer_span(&ours), epg_buffer_span(&theirs));
}

void epg_vectors_wire_values(const json_t *document, epg_vector_report *report)
{
    size_t index = 0;
    const json_t *vector = NULL;
    json_array_foreach(document, index, vector)
    {
        const char *name = epg_vector_name(vector);
        const json_t *node = json_object_get(vector, "node");
        const json_t *public_json = json_object_get(vector, "public_json");
        EPG_AUTO_BUFFER bytes = {0};
        epg_error err = {0};
        if (epg_value_from_node(node, &epg_value_policy_limits, &bytes, &err) != EPG_OK) {
            epg_vector_fail(report, name, "refused: %s", err.text);
            continue;
        }
        epg_span value = epg_buffer_span(&bytes);
        epg_vector_verdict(report, name,
                           is_form(value, epg_value_to_node, node) &&
                               (public_json == NULL || is_form(value, epg_value_to_json, public_json)),
                           "comes back as another node or another public JSON");
    }
}

void epg_vectors_wire_invalid(const json_t *document, epg_vector_report *report)
{
    size_t index = 0;
    const json_t *vector = NULL;
    json_array_foreach(document, index, vector)
    {
        EPG_AUTO_BUFFER bytes = {0};
        epg_code code = epg_value_from_node(json_object_get(vector, "node"), &epg_value_policy_limits, &bytes, NULL);
        epg_vector_verdict(report, epg_vector_name(vector), code != EPG_OK && bytes.size == 0, "accepted");
    }
}

/* What the other side of the contract takes although it isn't in the form that it writes. We take map keys in any
 * order, as the contract says; base64 is strict, so set padding bits are refused: a refusal is right when the value
 * that they made of it is not what they were given. What they refuse, we refuse. */
void epg_vectors_wire_lenient(const json_t *document, epg_vector_report *report)
{
    size_t index = 0;
    const json_t *vector = NULL;
    json_array_foreach(document, index, vector)
    {
        const char *name = epg_vector_name(vector);
        EPG_AUTO_JSON *node = NULL;
        EPG_AUTO_JSON *expected = NULL;
        EPG_AUTO_BUFFER bytes = {0};
        epg_error err = {0};
        const char *node_text = json_string_value(json_object_get(vector, "node_json"));
        const char *expected_text = json_string_value(json_object_get(vector, "reencoded_json"));
        bool accepted = json_is_true(json_object_get(vector, "accepted"));
        if (node_text == NULL || epg_json_parse(epg_span_text(node_text), "node_json", &node, &err) != EPG_OK) {
            epg_vector_fail(report, name, "no node_json to decode");
            continue;
        }
        epg_code code = epg_value_from_node(node, &epg_value_policy_limits, &bytes, &err);
        if (!accepted) {
            epg_vector_verdict(report, name, code != EPG_OK, "accepted");
        } else if (code != EPG_OK) {
            epg_vector_verdict(report, name,
                               json_is_false(json_object_get(vector, "reencoded_equal")) &&
                                   strstr(err.text, "base64") != NULL,
                               "refused: %s", err.text);
        } else if (expected_text == NULL ||
                   epg_json_parse(epg_span_text(expected_text), "reencoded_json", &expected, &err) != EPG_OK) {
            epg_vector_fail(report, name, "no reencoded_json to compare with");
        } else {
            epg_vector_verdict(report, name, is_form(epg_buffer_span(&bytes), epg_value_to_node, expected),
                               "comes back as another node");
        }
    }
}

void epg_vectors_environment_digests(const json_t *document, epg_vector_report *report)
{
    size_t index = 0;
    const json_t *vector = NULL;
    json_array_foreach(document, index, vector)
    {
        const char *name = epg_vector_name(vector);
        const char *expected = json_string_value(json_object_get(vector, "digest"));
        EPG_AUTO_BUFFER bytes = {0};
        epg_error err = {0};
        char digest[EPG_DIGEST_TEXT] = "";
        if (epg_value_from_node(json_object_get(vector, "parameters"), &epg_value_trusted_limits, &bytes, &err) !=
                EPG_OK ||
            epg_value_environment_digest(epg_buffer_span(&bytes), digest, &err) != EPG_OK) {
            epg_vector_fail(report, name, "refused: %s", err.text);
            continue;
        }
        epg_vector_verdict(report, name, expected != NULL && strcmp(expected, digest) == 0, "ours is %s", digest);
    }
}
