#include "value/reader.h"

#include <string.h>

/* 20 digits hold every magnitude; nineteen can't overflow, the twentieth is looked at before it is added. */
bool epg_value_decimal(epg_span text, bool *negative, uint64_t *magnitude)
{
    bool minus = text.size > 0 && text.data[0] == '-';
    size_t first = minus ? 1 : 0;
    size_t digits = text.size - first;
    if (digits == 0 || digits > 20 || (text.data[first] == '0' && (minus || digits > 1))) {
        return false;
    }
    uint64_t value = 0;
    for (size_t i = first; i < text.size; i++) {
        unsigned digit = (unsigned)text.data[i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    if (minus && value > (uint64_t)INT64_MAX + 1) {
        return false;
    }
    *negative = minus;
    *magnitude = value;
    return true;
}

static const epg_value_dtype dtypes[] = {
    {"bool", 1, 0},   {"uint8", 1, 0},         {"uint16", 2, 0},        {"uint32", 4, 0},
    {"uint64", 8, 0}, {"int8", 1, 0},          {"int16", 2, 0},         {"int32", 4, 0},
    {"int64", 8, 0},  {"float16", 2, 0x7c00u}, {"float32", 4, 0x7f80u}, {"float64", 8, 0x7ff0u},
};

const epg_value_dtype *epg_value_dtype_find(epg_span name)
{
    for (size_t i = 0; i < EPG_COUNT(dtypes); i++) {
        if (strlen(dtypes[i].name) == name.size && memcmp(dtypes[i].name, name.data, name.size) == 0) {
            return &dtypes[i];
        }
    }
    return NULL;
}
