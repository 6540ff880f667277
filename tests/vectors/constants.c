/* constants.json: the bounds and names that our headers state. (What no header states, the skills' limits and the
 * guest's ABI name, is held to the same file by the families and tests that meet it.) */
#include "vectors/vectors.h"

#include <string.h>

#include "benchmark/benchmark.h"
#include "programs/program.h"
#include "runs/config.h"
#include "runs/protocol.h"
#include "value/value.h"

static void check_numbers(const json_t *document, epg_vector_report *report)
{
    const epg_program_limits *program = &epg_program_default_limits;
    const struct {
        const char *group; /* NULL: at the top */
        const char *name;
        unsigned long long value;
    } numbers[] = {
        {NULL, "POLICY_MAX_FRAME_BYTES", epg_value_policy_limits.bytes},
        {NULL, "POLICY_MAX_VALUE_DEPTH", epg_value_policy_limits.depth},
        {NULL, "POLICY_MAX_VALUE_ITEMS", epg_value_policy_limits.nodes},
        {NULL, "SESSION_MAX_EPISODE_INDICES", EPG_SUBMIT_INDICES_MAX},
        {NULL, "SESSION_MAX_FRAME_BYTES", EPG_SESSION_FRAME_MAX},
        {NULL, "artifact_max_bytes", EPG_ARTIFACT_BYTES_MAX},
        {NULL, "feedback_max_artifacts", EPG_ARTIFACTS_MAX},
        {"program_limits", "max_file_bytes", program->file_bytes},
        {"program_limits", "max_files", program->files},
        {"program_limits", "max_total_bytes", program->total_bytes},
    };
    for (size_t i = 0; i < EPG_COUNT(numbers); i++) {
        const json_t *group = numbers[i].group != NULL ? json_object_get(document, numbers[i].group) : document;
        const json_t *expected = json_object_get(group, numbers[i].name);
        epg_vector_verdict(report, numbers[i].name,
                           json_is_integer(expected) &&
                               (unsigned long long)json_integer_value(expected) == numbers[i].value,
                           "ours is %llu", numbers[i].value);
    }
}

void epg_vectors_constants(const json_t *document, epg_vector_report *report)
{
    const char *protocol = json_string_value(json_object_get(document, "SESSION_PROTOCOL"));
    epg_vector_verdict(report, "SESSION_PROTOCOL", protocol != NULL && strcmp(protocol, EPG_SESSION_PROTOCOL) == 0,
                       "ours is %s", EPG_SESSION_PROTOCOL);
    check_numbers(document, report);
}
