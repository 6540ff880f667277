/* epg_program_unpack on any bytes: it ends, reads nothing past their end, and takes exactly what packs to the same
 * bytes. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "programs/program.h"
#include "value/random_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    epg_program program = {0};
    EPG_AUTO_BUFFER packed = {0};
    if (epg_program_unpack(epg_span_of(data, size), &epg_program_default_limits, &program, NULL) == EPG_OK) {
        epg_program_pack(&program, &packed);
        if (!epg_span_equal(epg_buffer_span(&packed), epg_span_of(data, size))) {
            abort();
        }
    }
    epg_program_free(&program);
    return 0;
}

/* Files with names that are near to each other and to what is refused, in their order more often than not. */
void epg_fuzz_seed(uint64_t *state, epg_buffer *out)
{
    static const char *const names[] = {"..", "A\\", "a", "a-b", "a/b", "a/b/c", "e\xcc\x81", "policy.py", "q", "\xff"};
    uint64_t count = 0;
    EPG_AUTO_BUFFER files = {0};
    for (size_t i = 0; i < EPG_COUNT(names); i++) {
        bool likely = i == 2 || i == 3 || i == 7 || i == 8;
        if (draw_below(state, likely ? 2 : 12) == 0 || (i == 7 && draw_below(state, 4) != 0)) {
            (void)epg_buffer_be64(&files, strlen(names[i]));
            (void)epg_buffer_text(&files, names[i]);
            (void)epg_buffer_be64(&files, i);
            (void)epg_buffer_append(&files, "0123456789", i);
            count++;
        }
    }
    (void)epg_buffer_be64(out, count);
    (void)epg_buffer_append_span(out, epg_buffer_span(&files));
    if (draw_below(state, 2) == 0) {
        damage(state, out);
    }
}
