/* The two JSON forms of checked canonical bytes. Recursion is as deep as the value, EPG_VALUE_DEPTH_MAX at most. */
#include "value/value.h"

#include "base/text.h"
#include "value/reader.h"

static void put_base64(epg_json_writer *writer, const char *key, epg_span bytes)
{
    EPG_AUTO_BUFFER text = {0};
    epg_base64_encode(bytes, &text);
    epg_json_put_span(writer, key, epg_buffer_span(&text));
}

static void put_int(epg_json_writer *writer, const char *key, epg_span bytes)
{
    int64_t number = 0;
    uint64_t large = 0;
    if (epg_value_get_i64(bytes, &number)) {
        epg_json_put_i64(writer, key, number);
    } else if (epg_value_get_u64(bytes, &large)) {
        epg_json_put_u64(writer, key, large);
    }
}

static void put_shape(epg_json_writer *writer, const char *key, epg_span shape)
{
    uint64_t dimension = 0;
    epg_json_array(writer, key);
    while (epg_value_next_dimension(&shape, &dimension)) {
        epg_json_put_u64(writer, NULL, dimension);
    }
    epg_json_end(writer);
}

static void tensor_to_json(epg_span bytes, epg_json_writer *writer, const char *key)
{
    epg_value_tensor tensor = {0};
    (void)epg_value_get_tensor(bytes, &tensor);
    epg_json_object(writer, key);
    epg_json_put_text(writer, "$type", "tensor");
    put_base64(writer, "base64", tensor.data);
    epg_json_put_span(writer, "dtype", tensor.dtype);
    put_shape(writer, "shape", tensor.shape);
    epg_json_end(writer);
}

static void items_to_json(epg_span bytes, epg_json_writer *writer, const char *key)
{
    epg_value_cursor cursor = {0};
    epg_span name = {0};
    epg_span item = {0};
    (void)epg_value_enter(bytes, &cursor);
    if (cursor.is_map) {
        epg_json_object(writer, key);
    } else {
        epg_json_array(writer, key);
    }
    while (epg_value_next(&cursor, &name, &item)) {
        if (cursor.is_map) {
            epg_json_key_span(writer, name);
        }
        epg_value_to_json(item, writer, NULL);
    }
    epg_json_end(writer);
}

void epg_value_to_json(epg_span bytes, epg_json_writer *writer, const char *key)
{
    bool truth = false;
    double number = 0;
    epg_span span = {0};
    switch (epg_value_kind(bytes)) {
    case 'B':
        (void)epg_value_get_bool(bytes, &truth);
        epg_json_put_bool(writer, key, truth);
        break;
    case 'I':
        put_int(writer, key, bytes);
        break;
    case 'F':
        (void)epg_value_get_float(bytes, &number);
        epg_json_put_double(writer, key, number);
        break;
    case 'S':
        (void)epg_value_get_string(bytes, &span);
        epg_json_put_span(writer, key, span);
        break;
    case 'Y':
        (void)epg_value_get_bytes(bytes, &span);
        epg_json_object(writer, key);
        epg_json_put_text(writer, "$type", "bytes");
        put_base64(writer, "base64", span);
        epg_json_end(writer);
        break;
    case 'T':
        tensor_to_json(bytes, writer, key);
        break;
    case 'U':
        epg_json_object(writer, key);
        epg_json_put_text(writer, "$type", "tuple");
        items_to_json(bytes, writer, "items");
        epg_json_end(writer);
        break;
    case 'L':
    case 'M':
        items_to_json(bytes, writer, key);
        break;
    default:
        epg_json_put_null(writer, key);
        break;
    }
}

static void int_to_node(epg_span bytes, epg_json_writer *writer)
{
    epg_value_reader reader = epg_value_reader_of(epg_span_of(bytes.data + 1, bytes.size - 1));
    epg_span text = {0};
    (void)epg_value_read_prefixed(&reader, &text);
    epg_json_put_span(writer, NULL, text);
}

static void items_to_node(epg_span bytes, epg_json_writer *writer)
{
    epg_value_cursor cursor = {0};
    epg_span name = {0};
    epg_span item = {0};
    (void)epg_value_enter(bytes, &cursor);
    epg_json_array(writer, NULL);
    while (epg_value_next(&cursor, &name, &item)) {
        if (cursor.is_map) {
            epg_json_array(writer, NULL);
            epg_json_put_span(writer, NULL, name);
            epg_value_to_node(item, writer, NULL);
            epg_json_end(writer);
        } else {
            epg_value_to_node(item, writer, NULL);
        }
    }
    epg_json_end(writer);
}

static void put_node_content(epg_span bytes, epg_json_writer *writer)
{
    bool truth = false;
    epg_span span = {0};
    epg_value_tensor tensor = {0};
    switch (epg_value_kind(bytes)) {
    case 'B':
        (void)epg_value_get_bool(bytes, &truth);
        epg_json_put_bool(writer, NULL, truth);
        break;
    case 'I':
        int_to_node(bytes, writer);
        break;
    case 'F':
        put_base64(writer, NULL, epg_span_of(bytes.data + 1, 8));
        break;
    case 'S':
        (void)epg_value_get_string(bytes, &span);
        epg_json_put_span(writer, NULL, span);
        break;
    case 'Y':
        (void)epg_value_get_bytes(bytes, &span);
        put_base64(writer, NULL, span);
        break;
    case 'T':
        (void)epg_value_get_tensor(bytes, &tensor);
        epg_json_put_span(writer, NULL, tensor.dtype);
        put_shape(writer, NULL, tensor.shape);
        put_base64(writer, NULL, tensor.data);
        break;
    case 'L':
    case 'U':
    case 'M':
        items_to_node(bytes, writer);
        break;
    default:
        break;
    }
}

static const char *node_tag(char kind)
{
    static const struct {
        char kind;
        const char *tag;
    } tags[] = {{'N', "none"},  {'B', "bool"},   {'I', "int"},  {'F', "float"}, {'S', "string"},
                {'Y', "bytes"}, {'T', "tensor"}, {'L', "list"}, {'U', "tuple"}, {'M', "map"}};
    for (size_t i = 0; i < EPG_COUNT(tags); i++) {
        if (tags[i].kind == kind) {
            return tags[i].tag;
        }
    }
    return "none";
}

void epg_value_to_node(epg_span bytes, epg_json_writer *writer, const char *key)
{
    epg_json_array(writer, key);
    epg_json_put_text(writer, NULL, node_tag(epg_value_kind(bytes)));
    put_node_content(bytes, writer);
    epg_json_end(writer);
}
