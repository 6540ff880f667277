#include "runs/kept_records.h"

enum { PIECE = 256 * 1024 };

static epg_code read_piece(void *context, uint64_t index, uint64_t offset, epg_buffer *out, uint64_t *size,
                           epg_record_end *end, epg_error *err)
{
    epg_kept_records *self = context;
    const epg_episode_result *one = &self->items[index];
    if (offset >= one->record_size) {
        return epg_fail(err, EPG_ERR_INVALID, "an Episode's record is cut short");
    }
    uint64_t part = one->record_size - offset < PIECE ? one->record_size - offset : PIECE;
    *size = one->record_size;
    *end = (epg_record_end){one->failure, one->steps, one->reward};
    return epg_spool_read(&self->spools, one->spool, one->record_offset + offset, (size_t)part, out, err);
}

void epg_kept_records_open(epg_kept_records *kept, int directory, const char *name, const epg_episode_result *items,
                           size_t count)
{
    kept->items = items;
    epg_spools_open(&kept->spools, directory, name, false);
    kept->reader = epg_record_reader_new(read_piece, kept, count);
    epg_record_reader_records(kept->reader, &kept->records);
}

void epg_kept_records_close(epg_kept_records *kept)
{
    if (kept->reader != NULL) {
        epg_record_reader_free(kept->reader);
        epg_spools_close(&kept->spools);
    }
    *kept = (epg_kept_records){0};
}
