/* constants.json: the bounds that this room knows; other rooms' bounds are in the table when their headers name them.
 */
#include "vectors/vectors.h"

#include <string.h>

#include "value/value.h"

void epg_vectors_constants(const json_t *document, epg_vector_report *report)
{
    const struct {
        const char *name;
        unsigned long long value;
    } numbers[] = {
        {"POLICY_MAX_FRAME_BYTES", epg_value_policy_limits.bytes},
        {"POLICY_MAX_VALUE_DEPTH", epg_value_policy_limits.depth},
        {"POLICY_MAX_VALUE_ITEMS", epg_value_policy_limits.nodes},
    };
    for (size_t i = 0; i < EPG_COUNT(numbers); i++) {
        const json_t *expected = json_object_get(document, numbers[i].name);
        epg_vector_verdict(report, numbers[i].name,
                           json_is_integer(expected) &&
                               (unsigned long long)json_integer_value(expected) == numbers[i].value,
                           "ours is %llu", numbers[i].value);
    }
}
