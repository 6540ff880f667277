/* Node form to canonical bytes. Only the structure is looked at here; what the values themselves must be (canonical
 * ints, finite floats, tensors that fit their shape, the limits) is judged once, on the result, by epg_value_check. */
#include "value/value.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { BASE64_OF_DOUBLE = 12 };

typedef struct nodes {
    epg_buffer out; /* bounded by the limit on bytes */
    uint32_t depth_left;
    epg_error *err;
} nodes;

static epg_code put_node(nodes *state, const json_t *node);

static epg_code refuse(const nodes *state, const char *what)
{
    return epg_fail(state->err, EPG_ERR_INVALID, "node: %s", what);
}

static epg_span text_of(const json_t *text)
{
    return epg_span_of(json_string_value(text), json_string_length(text));
}

static epg_code put_bool(nodes *state, const json_t *node)
{
    const json_t *truth = json_array_get(node, 1);
    if (json_array_size(node) != 2 || !json_is_boolean(truth)) {
        return refuse(state, "[\"bool\", true | false] is wanted");
    }
    epg_value_put_bool(&state->out, json_is_true(truth));
    return EPG_OK;
}

static epg_code put_int(nodes *state, const json_t *node)
{
    const json_t *text = json_array_get(node, 1);
    if (json_array_size(node) != 2 || !json_is_string(text)) {
        return refuse(state, "[\"int\", decimal text] is wanted");
    }
    (void)epg_buffer_byte(&state->out, 'I');
    epg_value_put_key_span(&state->out, text_of(text));
    return EPG_OK;
}

static epg_code decode(const nodes *state, const json_t *text, epg_buffer *out)
{
    if (!json_is_string(text) || !epg_base64_decode(text_of(text), out)) {
        return refuse(state, "strict base64 is wanted");
    }
    return EPG_OK;
}

static epg_code put_float(nodes *state, const json_t *node)
{
    const json_t *text = json_array_get(node, 1);
    if (json_array_size(node) != 2 || json_string_length(text) != BASE64_OF_DOUBLE) {
        return refuse(state, "[\"float\", base64 of 8 bytes] is wanted");
    }
    EPG_AUTO_BUFFER bytes = {0};
    EPG_TRY(decode(state, text, &bytes));
    if (bytes.size != 8) {
        return refuse(state, "a float has 8 bytes");
    }
    (void)epg_buffer_byte(&state->out, 'F');
    (void)epg_buffer_append_span(&state->out, epg_buffer_span(&bytes));
    return EPG_OK;
}

static epg_code put_string(nodes *state, const json_t *node)
{
    const json_t *text = json_array_get(node, 1);
    if (json_array_size(node) != 2 || !json_is_string(text)) {
        return refuse(state, "[\"string\", text] is wanted");
    }
    epg_value_put_string(&state->out, text_of(text));
    return EPG_OK;
}

static epg_code put_bytes(nodes *state, const json_t *node)
{
    if (json_array_size(node) != 2) {
        return refuse(state, "[\"bytes\", base64] is wanted");
    }
    EPG_AUTO_BUFFER bytes = {0};
    EPG_TRY(decode(state, json_array_get(node, 1), &bytes));
    epg_value_put_bytes(&state->out, epg_buffer_span(&bytes));
    return EPG_OK;
}

static epg_code put_tensor(nodes *state, const json_t *node)
{
    const json_t *dtype = json_array_get(node, 1);
    const json_t *dimensions = json_array_get(node, 2);
    if (json_array_size(node) != 4 || !json_is_string(dtype) || !json_is_array(dimensions)) {
        return refuse(state, "[\"tensor\", dtype, [dimensions], base64] is wanted");
    }
    if (strlen(json_string_value(dtype)) != json_string_length(dtype)) {
        return refuse(state, "the tensor's dtype isn't known");
    }
    size_t rank = json_array_size(dimensions);
    EPG_AUTO_FREE uint64_t *shape = epg_alloc_array(rank, sizeof *shape);
    for (size_t i = 0; i < rank; i++) {
        if (!epg_json_is_u64(json_array_get(dimensions, i), &shape[i])) {
            return refuse(state, "a tensor's dimension is an integer, 0 or more");
        }
    }
    EPG_AUTO_BUFFER data = {0};
    EPG_TRY(decode(state, json_array_get(node, 3), &data));
    epg_value_put_tensor(&state->out, json_string_value(dtype), shape, rank, epg_buffer_span(&data));
    return EPG_OK;
}

/* The items of ["list" | "tuple" | "map", [...]]. */
static epg_code items_of(const nodes *state, const json_t *node, const json_t **out)
{
    const json_t *items = json_array_get(node, 1);
    if (json_array_size(node) != 2 || !json_is_array(items)) {
        return refuse(state, "[\"list\" | \"tuple\" | \"map\", [...]] is wanted");
    }
    *out = items;
    return EPG_OK;
}

static epg_code put_items(nodes *state, const json_t *node, void (*put_head)(epg_buffer *out, uint64_t count))
{
    const json_t *items = NULL;
    EPG_TRY(items_of(state, node, &items));
    size_t count = json_array_size(items);
    put_head(&state->out, count);
    for (size_t i = 0; i < count; i++) {
        EPG_TRY(put_node(state, json_array_get(items, i)));
    }
    return EPG_OK;
}

static epg_code put_list(nodes *state, const json_t *node)
{
    return put_items(state, node, epg_value_put_list);
}

static epg_code put_tuple(nodes *state, const json_t *node)
{
    return put_items(state, node, epg_value_put_tuple);
}

static int compare_pairs(const void *left, const void *right)
{
    const json_t *const *a = left;
    const json_t *const *b = right;
    return epg_span_compare(text_of(json_array_get(*a, 0)), text_of(json_array_get(*b, 0)));
}

/* The pairs in the order of their keys; a key given twice is left for the check of the result to find. */
static epg_code put_map(nodes *state, const json_t *node)
{
    const json_t *items = NULL;
    EPG_TRY(items_of(state, node, &items));
    size_t count = json_array_size(items);
    EPG_AUTO_FREE const json_t **pairs = epg_alloc_array(count, sizeof(const json_t *));
    for (size_t i = 0; i < count; i++) {
        pairs[i] = json_array_get(items, i);
        if (json_array_size(pairs[i]) != 2 || !json_is_string(json_array_get(pairs[i], 0))) {
            return refuse(state, "a map's item is [key, node]");
        }
    }
    qsort(pairs, count, sizeof(const json_t *), compare_pairs);
    epg_value_put_map(&state->out, count);
    for (size_t i = 0; i < count; i++) {
        epg_value_put_key_span(&state->out, text_of(json_array_get(pairs[i], 0)));
        EPG_TRY(put_node(state, json_array_get(pairs[i], 1)));
    }
    return EPG_OK;
}

static epg_code put_none(nodes *state, const json_t *node)
{
    if (json_array_size(node) != 1) {
        return refuse(state, "[\"none\"] is wanted");
    }
    epg_value_put_null(&state->out);
    return EPG_OK;
}

static epg_code put_node(nodes *state, const json_t *node)
{
    static const struct {
        const char *tag;
        epg_code (*put)(nodes *state, const json_t *node);
        bool nests;
    } kinds[] = {
        {"none", put_none, false},     {"bool", put_bool, false},     {"int", put_int, false},
        {"float", put_float, false},   {"string", put_string, false}, {"bytes", put_bytes, false},
        {"tensor", put_tensor, false}, {"list", put_list, true},      {"tuple", put_tuple, true},
        {"map", put_map, true},
    };
    const json_t *tag = json_array_get(node, 0);
    if (!json_is_string(tag)) {
        return refuse(state, "an array that starts with a tag is wanted");
    }
    for (size_t i = 0; i < EPG_COUNT(kinds); i++) {
        if (!epg_span_equal(text_of(tag), epg_span_text(kinds[i].tag))) {
            continue;
        }
        if (!kinds[i].nests) {
            return kinds[i].put(state, node);
        }
        if (state->depth_left == 0) { /* an empty container one level below the limit is still in it */
            return epg_fail(state->err, EPG_ERR_LIMIT, "node: nested too deep");
        }
        state->depth_left--;
        EPG_TRY(kinds[i].put(state, node));
        state->depth_left++;
        return EPG_OK;
    }
    return refuse(state, "the tag isn't known");
}

epg_code epg_value_from_node(const json_t *node, const epg_value_limits *limits, epg_buffer *out, epg_error *err)
{
    uint32_t depth = limits->depth < EPG_VALUE_DEPTH_MAX ? limits->depth : EPG_VALUE_DEPTH_MAX;
    nodes state = {.out = {.limit = limits->bytes}, .depth_left = depth + 1, .err = err};
    epg_code code = put_node(&state, node);
    if (code == EPG_OK && state.out.overflow) {
        code = epg_fail(err, EPG_ERR_LIMIT, "node: value has over %zu bytes", limits->bytes);
    }
    if (code == EPG_OK) {
        code = epg_value_check(epg_buffer_span(&state.out), limits, err);
    }
    if (code == EPG_OK && !epg_buffer_append_span(out, epg_buffer_span(&state.out))) {
        code = epg_fail(err, EPG_ERR_LIMIT, "node: no room for the value");
    }
    epg_buffer_free(&state.out);
    return code;
}
