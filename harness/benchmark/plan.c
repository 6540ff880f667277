#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "benchmark/defaults.h"

static bool known_split(const char *split)
{
    return strcmp(split, "train") == 0 || strcmp(split, "validation") == 0 || strcmp(split, "test") == 0;
}

epg_code epg_default_episodes(const char *name, const char *split, uint64_t seed, uint64_t count, epg_episode_spec *out,
                              epg_error *err)
{
    if (!known_split(split)) {
        EPG_AUTO_FREE char *shown = epg_printable(split, strnlen(split, 100));
        return epg_fail(err, EPG_ERR_USAGE, "benchmark %s has no split \"%s\": it has train, validation and test", name,
                        shown);
    }
    EPG_AUTO_BUFFER text = {0};
    (void)epg_buffer_format(&text, "evopolicygym-%s/episode-seed/v1", name);
    (void)epg_buffer_byte(&text, 0);
    (void)epg_buffer_text(&text, split);
    (void)epg_buffer_byte(&text, 0);
    (void)epg_buffer_be64(&text, seed);
    (void)epg_buffer_be64(&text, 0);
    for (uint64_t i = 0; i < count; i++) {
        epg_write_be64(text.data + text.size - 8, i);
        uint8_t hash[EPG_SHA256_SIZE];
        epg_sha256_once(text.data, text.size, hash);
        out[i].environment_seed = epg_read_be64(hash);
        epg_value_put_null(&out[i].scenario);
    }
    return EPG_OK;
}
