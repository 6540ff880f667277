#define ZLIB_CONST
#include "programs/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/hash.h"
#include "system/files.h"
#include "system/io.h"

enum {
    ID_SIZE = GIT_OID_RAWSZ,
    HEADER_SIZE = 12,
    INDEX_HEADER_SIZE = 8 + 256 * 4,
    INDEX_ENTRY_SIZE = ID_SIZE + 4 + 4,
    LARGEST = INT32_MAX, /* offsets in an index are 31 bits wide, but for an extension that we do without */
    LAST_WHOLE_TYPE = GIT_OBJECT_TAG
};

static const uint8_t index_magic[8] = {0xff, 't', 'O', 'c', 0, 0, 0, 2};

typedef struct packed {
    git_oid id;
    uint32_t crc; /* of its bytes in the pack */
    size_t offset;
} packed;

struct epg_pack {
    epg_buffer bytes; /* the pack file, as far as it is made */
    packed *entries;
    size_t count;
    size_t capacity;
    void *known; /* search(3) tree of owned git_oid */
    z_stream zlib;
};

static int compare_ids(const void *a, const void *b)
{
    return memcmp(((const git_oid *)a)->id, ((const git_oid *)b)->id, ID_SIZE);
}

static int compare_entries(const void *a, const void *b)
{
    return compare_ids(&((const packed *)a)->id, &((const packed *)b)->id);
}

static int compare_offsets(const void *a, const void *b)
{
    size_t left = ((const packed *)a)->offset;
    size_t right = ((const packed *)b)->offset;
    return (left > right) - (left < right);
}

static void sha1(epg_span bytes, uint8_t out[ID_SIZE])
{
    if (EVP_Digest(bytes.data, bytes.size, out, NULL, EVP_sha1(), NULL) != 1) {
        abort(); /* a libcrypto without SHA-1 can't serve git */
    }
}

epg_pack *epg_pack_new(void)
{
    epg_pack *pack = epg_alloc(sizeof *pack);
    if (deflateInit(&pack->zlib, Z_BEST_SPEED) != Z_OK) {
        abort(); /* out of memory */
    }
    epg_pack_clear(pack);
    return pack;
}

void epg_pack_free(epg_pack *pack)
{
    if (pack != NULL) {
        epg_pack_clear(pack);
        (void)deflateEnd(&pack->zlib);
        epg_buffer_free(&pack->bytes);
        free(pack->entries);
        free(pack);
    }
}

void epg_pack_clear(epg_pack *pack)
{
    enum { KEPT = 4 * 1024 * 1024 };
    tdestroy(pack->known, free);
    pack->known = NULL;
    pack->count = 0;
    if (pack->bytes.capacity > KEPT) {
        epg_buffer_free(&pack->bytes);
    }
    epg_buffer_clear(&pack->bytes);
    (void)epg_buffer_text(&pack->bytes, "PACK");
    (void)epg_buffer_be32(&pack->bytes, 2);
    (void)epg_buffer_be32(&pack->bytes, 0); /* the count, known at the end */
}

size_t epg_pack_count(const epg_pack *pack)
{
    return pack->count;
}

/* Remembers the id; false when it was known. */
static bool remember(epg_pack *pack, const git_oid *id)
{
    if (tfind(id, &pack->known, compare_ids) != NULL) {
        return false;
    }
    git_oid *own = epg_alloc(sizeof *own);
    *own = *id;
    if (tsearch(own, &pack->known, compare_ids) == NULL) {
        abort(); /* out of memory */
    }
    return true;
}

/* Type and size: 4 bits of the size stand in the first byte, 7 in each that follows. */
static void add_header(epg_pack *pack, git_object_t type, size_t size)
{
    uint8_t byte = (uint8_t)(((unsigned)type << 4) | (size & 0x0fU));
    for (size >>= 4; size > 0; size >>= 7) {
        (void)epg_buffer_byte(&pack->bytes, byte | 0x80U);
        byte = (uint8_t)(size & 0x7fU);
    }
    (void)epg_buffer_byte(&pack->bytes, byte);
}

static void add_compressed(epg_pack *pack, epg_span content)
{
    z_stream *zlib = &pack->zlib;
    size_t room = deflateBound(zlib, content.size);
    (void)deflateReset(zlib);
    zlib->next_in = content.data;
    zlib->avail_in = (uInt)content.size;
    zlib->next_out = epg_buffer_reserve(&pack->bytes, room);
    zlib->avail_out = (uInt)room;
    if (deflate(zlib, Z_FINISH) != Z_STREAM_END) {
        abort(); /* the bound is one */
    }
    pack->bytes.size += room - zlib->avail_out;
}

static void add_entry(epg_pack *pack, const git_oid *id, size_t offset)
{
    if (pack->count == pack->capacity) {
        pack->capacity = pack->capacity == 0 ? 16 : pack->capacity * 2;
        pack->entries = epg_grow_array(pack->entries, pack->capacity, sizeof *pack->entries);
    }
    pack->entries[pack->count++] = (packed){
        .id = *id,
        .crc = (uint32_t)crc32_z(0, pack->bytes.data + offset, pack->bytes.size - offset),
        .offset = offset,
    };
}

void epg_pack_add(epg_pack *pack, git_object_t type, const git_oid *id, epg_span content)
{
    if (remember(pack, id)) {
        size_t offset = pack->bytes.size;
        add_header(pack, type, content.size);
        add_compressed(pack, content);
        add_entry(pack, id, offset);
    }
}

/* Reads an index of ours or git's into entries in the order of their offsets; the caller frees. */
static epg_code read_index(epg_span index, size_t pack_size, packed **out, size_t *out_count, epg_error *err)
{
    uint8_t hash[ID_SIZE];
    size_t fixed = INDEX_HEADER_SIZE + 2 * ID_SIZE;
    if (index.size < fixed || memcmp(index.data, index_magic, sizeof index_magic) != 0) {
        return epg_fail(err, EPG_ERR_INVALID, "it is not an index of version 2");
    }
    size_t count = epg_read_be32(index.data + INDEX_HEADER_SIZE - 4);
    if (count == 0 || (index.size - fixed) / INDEX_ENTRY_SIZE != count ||
        (index.size - fixed) % INDEX_ENTRY_SIZE != 0) {
        return epg_fail(err, EPG_ERR_INVALID, "its index has another size than its count says");
    }
    sha1(epg_span_of(index.data, index.size - ID_SIZE), hash);
    if (memcmp(hash, index.data + index.size - ID_SIZE, ID_SIZE) != 0) {
        return epg_fail(err, EPG_ERR_INVALID, "its index was altered");
    }
    const uint8_t *ids = index.data + INDEX_HEADER_SIZE;
    const uint8_t *crcs = ids + count * ID_SIZE;
    const uint8_t *offsets = crcs + count * 4;
    EPG_AUTO_FREE packed *entries = epg_alloc_array(count, sizeof *entries);
    for (size_t i = 0; i < count; i++) {
        memcpy(entries[i].id.id, ids + i * ID_SIZE, ID_SIZE);
        entries[i].crc = epg_read_be32(crcs + i * 4);
        entries[i].offset = epg_read_be32(offsets + i * 4);
    }
    qsort(entries, count, sizeof *entries, compare_offsets);
    for (size_t i = 0; i < count; i++) {
        size_t end = i + 1 < count ? entries[i + 1].offset : pack_size - ID_SIZE;
        if (entries[i].offset < HEADER_SIZE || entries[i].offset >= end || end > pack_size - ID_SIZE) {
            return epg_fail(err, EPG_ERR_INVALID, "its index points outside of it");
        }
    }
    *out = EPG_TAKE(entries);
    *out_count = count;
    return EPG_OK;
}

/* Copies the objects as they lie there. */
static epg_code copy_objects(epg_pack *pack, epg_span bytes, const packed *entries, size_t count, bool *joinable,
                             epg_error *err)
{
    for (size_t i = 0; i < count; i++) {
        size_t end = i + 1 < count ? entries[i + 1].offset : bytes.size - ID_SIZE;
        epg_span object = epg_span_of(bytes.data + entries[i].offset, end - entries[i].offset);
        if ((uint32_t)crc32_z(0, object.data, object.size) != entries[i].crc) {
            return epg_fail(err, EPG_ERR_INVALID, "an object in it was altered");
        }
        if (((object.data[0] >> 4) & 0x07U) > LAST_WHOLE_TYPE) {
            *joinable = false;
            return EPG_OK;
        }
    }
    for (size_t i = 0; i < count; i++) {
        size_t end = i + 1 < count ? entries[i + 1].offset : bytes.size - ID_SIZE;
        if (remember(pack, &entries[i].id)) {
            size_t offset = pack->bytes.size;
            (void)epg_buffer_append(&pack->bytes, bytes.data + entries[i].offset, end - entries[i].offset);
            add_entry(pack, &entries[i].id, offset);
        }
    }
    *joinable = true;
    return EPG_OK;
}

epg_code epg_pack_append(epg_pack *pack, int directory, const char *name, bool *joinable, epg_error *err)
{
    EPG_AUTO_FREE char *index_name = epg_format("%s.idx", name);
    EPG_AUTO_FREE char *pack_name = epg_format("%s.pack", name);
    EPG_AUTO_BUFFER index = {0};
    EPG_AUTO_BUFFER bytes = {0};
    EPG_AUTO_FREE packed *entries = NULL;
    size_t count = 0;
    EPG_TRY(epg_file_read(directory, index_name, LARGEST, &index, err));
    EPG_TRY(epg_file_read(directory, pack_name, LARGEST, &bytes, err));
    if (bytes.size < HEADER_SIZE + ID_SIZE) {
        return epg_fail(err, EPG_ERR_INVALID, "%s is cut off", pack_name);
    }
    epg_code code = read_index(epg_buffer_span(&index), bytes.size, &entries, &count, err);
    if (code == EPG_OK) {
        code = copy_objects(pack, epg_buffer_span(&bytes), entries, count, joinable, err);
    }
    return code == EPG_OK ? EPG_OK : epg_fail_within(err, "%s", pack_name);
}

static void make_index(const epg_pack *pack, const uint8_t pack_hash[ID_SIZE], epg_buffer *out)
{
    (void)epg_buffer_append(out, index_magic, sizeof index_magic);
    size_t at = 0;
    for (unsigned first = 0; first < 256; first++) {
        while (at < pack->count && pack->entries[at].id.id[0] <= first) {
            at++;
        }
        (void)epg_buffer_be32(out, (uint32_t)at);
    }
    for (size_t i = 0; i < pack->count; i++) {
        (void)epg_buffer_append(out, pack->entries[i].id.id, ID_SIZE);
    }
    for (size_t i = 0; i < pack->count; i++) {
        (void)epg_buffer_be32(out, pack->entries[i].crc);
    }
    for (size_t i = 0; i < pack->count; i++) {
        (void)epg_buffer_be32(out, (uint32_t)pack->entries[i].offset);
    }
    (void)epg_buffer_append(out, pack_hash, ID_SIZE);
    uint8_t hash[ID_SIZE];
    sha1(epg_buffer_span(out), hash);
    (void)epg_buffer_append(out, hash, ID_SIZE);
}

/* One file under a temporary name that only a writer that died can have left behind. */
static epg_code write_temporary(int directory, const char *name, const epg_buffer *bytes, epg_error *err)
{
    if (epg_io_unlink(directory, name, 0) != 0 && errno != ENOENT) {
        return epg_fail_errno(err, errno, "can't remove %s", name);
    }
    return epg_file_write_new(directory, name, epg_buffer_span(bytes), 0444, true, err);
}

static epg_code put_in_place(int directory, const char *temporary, const char *name, const char *suffix, epg_error *err)
{
    EPG_AUTO_FREE char *whole = epg_format("%s%s", name, suffix);
    if (epg_io_rename(directory, temporary, directory, whole) != 0) {
        return epg_fail_errno(err, errno, "can't rename %s to %s", temporary, whole);
    }
    return EPG_OK;
}

epg_code epg_pack_write(epg_pack *pack, int directory, char name[EPG_PACK_NAME], epg_error *err)
{
    static const char pack_temporary[] = "tmp_pack_epg";
    static const char index_temporary[] = "tmp_idx_epg";
    EPG_AUTO_BUFFER index = {0};
    uint8_t hash[ID_SIZE];
    char hex[2 * ID_SIZE + 1];
    if (pack->bytes.size > LARGEST - ID_SIZE) {
        return epg_fail(err, EPG_ERR_LIMIT, "a pack of 2 GiB or more is not written");
    }
    epg_write_be32(pack->bytes.data + 8, (uint32_t)pack->count);
    sha1(epg_buffer_span(&pack->bytes), hash);
    (void)epg_buffer_append(&pack->bytes, hash, sizeof hash);
    qsort(pack->entries, pack->count, sizeof *pack->entries, compare_entries);
    make_index(pack, hash, &index);
    epg_hex(hash, sizeof hash, hex);
    (void)snprintf(name, EPG_PACK_NAME, "pack-%s", hex);
    EPG_TRY(write_temporary(directory, pack_temporary, &pack->bytes, err));
    EPG_TRY(write_temporary(directory, index_temporary, &index, err));
    EPG_TRY(put_in_place(directory, pack_temporary, name, ".pack", err));
    EPG_TRY(put_in_place(directory, index_temporary, name, ".idx", err));
    return epg_dir_sync(directory, err);
}
