/* Checking canonical bytes without building anything.
 *
 * One pass, no recursion: a stack of open containers, as deep as the limits allow, holds how many items each still
 * owes. A loop iteration reads the key that is due (if the innermost container is a map), then one value: a scalar is
 * checked whole, a container is pushed; then what is complete is popped. A count is compared with the nodes that are
 * still allowed before it is believed, so hostile counts cost nothing. */
#include "value/value.h"

#include <string.h>

#include "base/text.h"
#include "value/reader.h"

const epg_value_limits epg_value_policy_limits = {.depth = 32, .nodes = 65536, .bytes = (size_t)4 * 1024 * 1024};
const epg_value_limits epg_value_trusted_limits = {
    .depth = EPG_VALUE_DEPTH_MAX, .nodes = UINT32_MAX, .bytes = (size_t)1024 * 1024 * 1024};

typedef struct container {
    uint64_t left;
    bool is_map;
    bool has_last;
    epg_span last; /* of a map: the key before, which the next one must follow */
} container;

typedef struct check {
    const uint8_t *start;
    epg_value_reader reader;
    uint64_t nodes_left;
    uint32_t nodes_limit;
    uint32_t depth_limit;
    uint32_t depth; /* open containers */
    epg_error *err;
    container stack[EPG_VALUE_DEPTH_MAX + 1];
} check;

static epg_code refuse(const check *state, const uint8_t *at, const char *what)
{
    return epg_fail(state->err, EPG_ERR_INVALID, "%s, at byte %zu", what, (size_t)(at - state->start));
}

static epg_code check_bool(check *state)
{
    uint8_t byte = 0;
    if (!epg_value_read_byte(&state->reader, &byte)) {
        return refuse(state, state->reader.at, "bool is cut short");
    }
    return byte == '0' || byte == '1' ? EPG_OK : refuse(state, state->reader.at - 1, "bool is neither '0' nor '1'");
}

static epg_code check_int(check *state)
{
    const uint8_t *at = state->reader.at;
    epg_span text = {0};
    bool negative = false;
    uint64_t magnitude = 0;
    if (!epg_value_read_prefixed(&state->reader, &text)) {
        return refuse(state, at, "int is cut short");
    }
    if (!epg_value_decimal(text, &negative, &magnitude)) {
        return refuse(state, at, "int isn't canonical decimal text of -2^63 .. 2^64-1");
    }
    return EPG_OK;
}

static epg_code check_float(check *state)
{
    const uint8_t *at = state->reader.at;
    uint64_t bits = 0;
    if (!epg_value_read_be64(&state->reader, &bits)) {
        return refuse(state, at, "float is cut short");
    }
    const uint64_t exponent = UINT64_C(0x7ff) << 52;
    return (bits & exponent) != exponent ? EPG_OK : refuse(state, at, "float is not finite");
}

static epg_code check_string(check *state)
{
    const uint8_t *at = state->reader.at;
    epg_span text = {0};
    if (!epg_value_read_prefixed(&state->reader, &text)) {
        return refuse(state, at, "string is cut short");
    }
    return epg_utf8_valid(text.data, text.size) ? EPG_OK : refuse(state, at, "string isn't valid UTF-8");
}

static epg_code check_bytes(check *state)
{
    const uint8_t *at = state->reader.at;
    epg_span bytes = {0};
    return epg_value_read_prefixed(&state->reader, &bytes) ? EPG_OK : refuse(state, at, "bytes are cut short");
}

/* bool: 0 or 1 only. Floating types: the top two bytes of each (little-endian) item hold the whole exponent. */
static bool tensor_items_admissible(const epg_value_dtype *dtype, epg_span data)
{
    if (strcmp(dtype->name, "bool") == 0) {
        for (size_t i = 0; i < data.size; i++) {
            if (data.data[i] > 1) {
                return false;
            }
        }
    }
    if (dtype->exponent != 0) {
        for (size_t top = dtype->size - 2; top < data.size; top += dtype->size) {
            unsigned high = (unsigned)data.data[top] | ((unsigned)data.data[top + 1] << 8);
            if ((high & dtype->exponent) == dtype->exponent) {
                return false;
            }
        }
    }
    return true;
}

/* Reads the dimensions; *items is their product, UINT64_MAX when that is too large to be anyone's data. */
static epg_code check_shape(check *state, uint64_t *items)
{
    const uint8_t *at = state->reader.at;
    uint64_t rank = 0;
    if (!epg_value_read_be64(&state->reader, &rank)) {
        return refuse(state, at, "tensor is cut short");
    }
    uint64_t product = 1;
    bool empty = false;
    for (uint64_t i = 0; i < rank; i++) {
        epg_span text = {0};
        bool negative = false;
        uint64_t dimension = 0;
        at = state->reader.at;
        if (!epg_value_read_prefixed(&state->reader, &text)) {
            return refuse(state, at, "tensor's shape is cut short");
        }
        if (!epg_value_decimal(text, &negative, &dimension) || negative) {
            return refuse(state, at, "tensor's dimension isn't canonical decimal text of 0 .. 2^64-1");
        }
        empty = empty || dimension == 0;
        if (!empty && __builtin_mul_overflow(product, dimension, &product)) {
            product = UINT64_MAX;
        }
    }
    *items = empty ? 0 : product;
    return EPG_OK;
}

static epg_code check_tensor(check *state)
{
    const uint8_t *at = state->reader.at;
    epg_span name = {0};
    if (!epg_value_read_prefixed(&state->reader, &name)) {
        return refuse(state, at, "tensor is cut short");
    }
    const epg_value_dtype *dtype = epg_value_dtype_find(name);
    if (dtype == NULL) {
        return refuse(state, at, "tensor's dtype isn't known");
    }
    uint64_t items = 0;
    EPG_TRY(check_shape(state, &items));
    at = state->reader.at;
    epg_span data = {0};
    if (!epg_value_read_prefixed(&state->reader, &data)) {
        return refuse(state, at, "tensor's data is cut short");
    }
    if (data.size % dtype->size != 0 || data.size / dtype->size != items) {
        return refuse(state, at, "tensor's data isn't as long as its shape says");
    }
    if (!tensor_items_admissible(dtype, data)) {
        return refuse(state, at, dtype->exponent != 0 ? "tensor's data isn't finite" : "tensor's bool is over 1");
    }
    return EPG_OK;
}

static epg_code check_container(check *state, bool is_map)
{
    const uint8_t *at = state->reader.at;
    uint64_t count = 0;
    if (!epg_value_read_be64(&state->reader, &count)) {
        return refuse(state, at, "count is cut short");
    }
    if (count > epg_value_reader_left(&state->reader)) {
        return refuse(state, at, "container has fewer items than its count says");
    }
    if (count > state->nodes_left) {
        return epg_fail(state->err, EPG_ERR_LIMIT, "value has over %u nodes, at byte %zu", state->nodes_limit,
                        (size_t)(at - state->start));
    }
    if (count > 0 && state->depth >= state->depth_limit) {
        return epg_fail(state->err, EPG_ERR_LIMIT, "value is over %u levels deep, at byte %zu", state->depth_limit,
                        (size_t)(at - state->start));
    }
    state->nodes_left -= count;
    if (count > 0) {
        container *top = &state->stack[state->depth++];
        top->left = count;
        top->is_map = is_map;
        top->has_last = false;
    }
    return EPG_OK;
}

/* Reads the key that the innermost container wants before its next value, if it is a map. */
static epg_code check_key(check *state)
{
    container *top = &state->stack[state->depth - 1];
    if (!top->is_map) {
        return EPG_OK;
    }
    const uint8_t *at = state->reader.at;
    epg_span key = {0};
    if (!epg_value_read_prefixed(&state->reader, &key)) {
        return refuse(state, at, "map's key is cut short");
    }
    if (!epg_utf8_valid(key.data, key.size)) {
        return refuse(state, at, "map's key isn't valid UTF-8");
    }
    if (top->has_last && epg_span_compare(top->last, key) >= 0) {
        return refuse(state, at, "map's keys aren't unique and in the order of their bytes");
    }
    top->last = key;
    top->has_last = true;
    return EPG_OK;
}

static epg_code check_one(check *state)
{
    uint8_t kind = 0;
    if (!epg_value_read_byte(&state->reader, &kind)) {
        return refuse(state, state->reader.at, "value is cut short");
    }
    switch (kind) {
    case 'N':
        return EPG_OK;
    case 'B':
        return check_bool(state);
    case 'I':
        return check_int(state);
    case 'F':
        return check_float(state);
    case 'S':
        return check_string(state);
    case 'Y':
        return check_bytes(state);
    case 'T':
        return check_tensor(state);
    case 'L':
    case 'U':
        return check_container(state, false);
    case 'M':
        return check_container(state, true);
    default:
        return refuse(state, state->reader.at - 1, "no kind of value starts with this byte");
    }
}

epg_code epg_value_check(epg_span bytes, const epg_value_limits *limits, epg_error *err)
{
    if (bytes.size > limits->bytes) {
        return epg_fail(err, EPG_ERR_LIMIT, "value has %zu bytes, over %zu", bytes.size, limits->bytes);
    }
    if (bytes.size == 0) {
        return epg_fail(err, EPG_ERR_INVALID, "value is cut short, at byte 0");
    }
    if (limits->nodes == 0) {
        return epg_fail(err, EPG_ERR_LIMIT, "value has over 0 nodes, at byte 0");
    }
    check state; /* the stack is filled as it is used */
    state.start = bytes.data;
    state.reader = epg_value_reader_of(bytes);
    state.nodes_limit = limits->nodes;
    state.nodes_left = limits->nodes - 1;
    state.depth_limit = limits->depth < EPG_VALUE_DEPTH_MAX ? limits->depth : EPG_VALUE_DEPTH_MAX;
    state.depth = 0;
    state.err = err;
    EPG_TRY(check_one(&state));
    while (state.depth > 0) {
        container *top = &state.stack[state.depth - 1];
        if (top->left == 0) {
            state.depth--;
            continue;
        }
        top->left--;
        EPG_TRY(check_key(&state));
        EPG_TRY(check_one(&state));
    }
    if (epg_value_reader_left(&state.reader) != 0) {
        return refuse(&state, state.reader.at, "bytes follow the value");
    }
    return EPG_OK;
}
