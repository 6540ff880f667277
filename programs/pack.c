#define ZLIB_CONST
#include "programs/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/hash.h"
#include "system/files.h"
#include "system/io.h"
#include "system/output.h"

enum {
    ID_SIZE = GIT_OID_RAWSZ,
    HEADER_SIZE = 12,
    INDEX_HEADER_SIZE = 8 + 256 * 4,
    INDEX_ENTRY_SIZE = ID_SIZE + 4 + 4,
    LARGEST = INT32_MAX, /* offsets in an index are 31 bits wide, but for an extension that we do without */
    LAST_WHOLE_TYPE = GIT_OBJECT_TAG,
    PIECE = 16 * 1024
};

static const uint8_t index_magic[8] = {0xff, 't', 'O', 'c', 0, 0, 0, 2};

typedef struct packed {
    git_oid id;
    uint32_t crc;    /* of its bytes in the pack */
    uint32_t offset; /* where its bytes lie: in source - 1, or, for source 0, among those gathered here */
    uint32_t size;
    uint32_t source;
    uint32_t at; /* in the pack file that was written */
} packed;

/* A pack whose objects are joined. */
typedef struct source {
    int directory;
    char *name;
} source;

struct epg_pack {
    epg_buffer bytes; /* of new objects, as they are to lie in the pack file */
    packed *entries;
    size_t count;
    size_t capacity;
    uint64_t size;     /* of all entries */
    uint32_t *slots;   /* of a hash table, by id: the place of an entry + 1; 0: empty */
    size_t slot_count; /* a power of two, at least twice `capacity`; 0: no table */
    source *sources;
    size_t source_count;
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
    uint32_t left = ((const packed *)a)->offset;
    uint32_t right = ((const packed *)b)->offset;
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
    return pack;
}

void epg_pack_free(epg_pack *pack)
{
    if (pack != NULL) {
        epg_pack_clear(pack);
        (void)deflateEnd(&pack->zlib);
        epg_buffer_free(&pack->bytes);
        free(pack->entries);
        free(pack->slots);
        free(pack);
    }
}

void epg_pack_clear(epg_pack *pack)
{
    enum { BYTES_KEPT = 64 * 1024, ENTRIES_KEPT = 1024 };
    for (size_t i = 0; i < pack->source_count; i++) {
        free(pack->sources[i].name);
    }
    free(EPG_TAKE(pack->sources));
    pack->source_count = 0;
    if (pack->capacity > ENTRIES_KEPT) {
        free(EPG_TAKE(pack->entries));
        free(EPG_TAKE(pack->slots));
        pack->capacity = 0;
        pack->slot_count = 0;
    } else if (pack->slots != NULL) {
        memset(pack->slots, 0, pack->slot_count * sizeof *pack->slots);
    }
    pack->count = 0;
    pack->size = 0;
    if (pack->bytes.capacity > BYTES_KEPT) {
        epg_buffer_free(&pack->bytes);
    }
    epg_buffer_clear(&pack->bytes);
}

size_t epg_pack_count(const epg_pack *pack)
{
    return pack->count;
}

/* Where the id's slot is, or where it would be. An id is a hash already. */
static uint32_t *find_slot(const epg_pack *pack, const git_oid *id)
{
    size_t at = epg_read_be32(id->id) & (pack->slot_count - 1);
    while (pack->slots[at] != 0 && compare_ids(&pack->entries[pack->slots[at] - 1].id, id) != 0) {
        at = (at + 1) & (pack->slot_count - 1);
    }
    return &pack->slots[at];
}

static bool is_known(const epg_pack *pack, const git_oid *id)
{
    return pack->slot_count > 0 && *find_slot(pack, id) != 0;
}

/* Makes room for `count` entries in all. */
static void reserve(epg_pack *pack, size_t count)
{
    if (count <= pack->capacity) {
        return;
    }
    pack->capacity = pack->capacity == 0 ? 16 : pack->capacity;
    while (pack->capacity < count) {
        pack->capacity *= 2;
    }
    pack->entries = epg_grow_array(pack->entries, pack->capacity, sizeof *pack->entries);
    free(pack->slots);
    pack->slot_count = 2 * pack->capacity;
    pack->slots = epg_alloc_array(pack->slot_count, sizeof *pack->slots);
    for (size_t i = 0; i < pack->count; i++) {
        *find_slot(pack, &pack->entries[i].id) = (uint32_t)i + 1;
    }
}

static void add_entry(epg_pack *pack, const packed *entry)
{
    reserve(pack, pack->count + 1);
    *find_slot(pack, &entry->id) = (uint32_t)pack->count + 1;
    pack->entries[pack->count++] = *entry;
    pack->size += entry->size;
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

void epg_pack_add(epg_pack *pack, git_object_t type, const git_oid *id, epg_span content)
{
    if (!is_known(pack, id)) {
        size_t offset = pack->bytes.size;
        add_header(pack, type, content.size);
        add_compressed(pack, content);
        size_t size = pack->bytes.size - offset;
        packed entry = {.id = *id,
                        .crc = (uint32_t)crc32_z(0, pack->bytes.data + offset, size),
                        .offset = (uint32_t)offset,
                        .size = (uint32_t)size};
        add_entry(pack, &entry);
    }
}

/* Reads an index of ours or git's, in the order of offsets, into the room behind the pack's entries. */
static epg_code read_index(epg_pack *pack, epg_span index, uint64_t pack_size, size_t *out_count, epg_error *err)
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
    reserve(pack, pack->count + count);
    packed *entries = pack->entries + pack->count;
    for (size_t i = 0; i < count; i++) {
        entries[i] = (packed){.crc = epg_read_be32(crcs + i * 4), .offset = epg_read_be32(offsets + i * 4)};
        memcpy(entries[i].id.id, ids + i * ID_SIZE, ID_SIZE);
    }
    qsort(entries, count, sizeof *entries, compare_offsets);
    for (size_t i = 0; i < count; i++) {
        uint64_t end = i + 1 < count ? entries[i + 1].offset : pack_size - ID_SIZE;
        if (entries[i].offset < HEADER_SIZE || entries[i].offset >= end || end > pack_size - ID_SIZE) {
            return epg_fail(err, EPG_ERR_INVALID, "its index points outside of it");
        }
        entries[i].size = (uint32_t)(end - entries[i].offset);
    }
    *out_count = count;
    return EPG_OK;
}

/* An index of version 1, which git writes when it is told to: without a magic, and 24 bytes for each object. */
static bool is_old_index(epg_span index)
{
    enum { FAN_OUT = 256 * 4, OLD_ENTRY_SIZE = 4 + ID_SIZE };
    size_t fixed = FAN_OUT + 2 * ID_SIZE;
    return index.size > fixed && (index.size - fixed) % OLD_ENTRY_SIZE == 0 &&
           (index.size - fixed) / OLD_ENTRY_SIZE == epg_read_be32(index.data + FAN_OUT - 4);
}

/* An object's bytes in a pack file, a piece at a time. */
typedef void take_piece(void *context, epg_span piece);

static epg_code read_object(int fd, const packed *entry, take_piece *take, void *context, epg_error *err)
{
    uint8_t piece[PIECE];
    uint32_t crc = 0;
    for (uint32_t done = 0; done < entry->size;) {
        size_t want = entry->size - done < sizeof piece ? entry->size - done : sizeof piece;
        ssize_t got = pread(fd, piece, want, (off_t)entry->offset + done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return epg_fail_errno(err, errno, "can't read it");
        }
        if (got == 0) {
            return epg_fail(err, EPG_ERR_INVALID, "it is cut off");
        }
        crc = (uint32_t)crc32_z(crc, piece, (size_t)got);
        take(context, epg_span_of(piece, (size_t)got));
        done += (uint32_t)got;
    }
    return crc == entry->crc ? EPG_OK : epg_fail(err, EPG_ERR_INVALID, "an object in it was altered");
}

/* Of the first piece, the first byte holds the type. */
static void take_type(void *context, epg_span piece)
{
    int *type = context;
    if (*type < 0) {
        *type = (piece.data[0] >> 4) & 0x07;
    }
}

static epg_code check_objects(int fd, const packed *entries, size_t count, bool *whole, epg_error *err)
{
    *whole = true;
    for (size_t i = 0; i < count && *whole; i++) {
        int type = -1;
        EPG_TRY(read_object(fd, &entries[i], take_type, &type, err));
        *whole = type <= LAST_WHOLE_TYPE;
    }
    return EPG_OK;
}

static epg_code open_pack(int directory, const char *name, int *out, uint64_t *size, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) {
        return epg_fail_errno(err, errno, "can't open it");
    }
    if (!S_ISREG(info.st_mode) || info.st_size < HEADER_SIZE + ID_SIZE || info.st_size > LARGEST) {
        return epg_fail(err, EPG_ERR_INVALID, "it is cut off, too large or no file");
    }
    *out = epg_take_fd(&fd);
    *size = (uint64_t)info.st_size;
    return EPG_OK;
}

static epg_code read_source(epg_pack *pack, int directory, const char *name, epg_span index, size_t *count, bool *whole,
                            epg_error *err)
{
    EPG_AUTO_CLOSE int fd = -1;
    uint64_t size = 0;
    EPG_TRY(open_pack(directory, name, &fd, &size, err));
    EPG_TRY(read_index(pack, index, size, count, err));
    return check_objects(fd, pack->entries + pack->count, *count, whole, err);
}

epg_code epg_pack_append(epg_pack *pack, int directory, const char *name, bool *joinable, epg_error *err)
{
    EPG_AUTO_FREE char *index_name = epg_format("%s.idx", name);
    EPG_AUTO_FREE char *pack_name = epg_format("%s.pack", name);
    EPG_AUTO_BUFFER index = {0};
    size_t start = pack->count;
    size_t count = 0;
    bool whole = false;
    EPG_TRY(epg_file_read(directory, index_name, LARGEST, &index, err));
    if (is_old_index(epg_buffer_span(&index))) {
        *joinable = false;
        return EPG_OK;
    }
    if (read_source(pack, directory, pack_name, epg_buffer_span(&index), &count, &whole, err) != EPG_OK) {
        return epg_fail_within(err, "%s", pack_name);
    }
    *joinable = whole;
    if (!whole) {
        return EPG_OK;
    }
    pack->sources = epg_grow_array(pack->sources, pack->source_count + 1, sizeof *pack->sources);
    pack->sources[pack->source_count++] = (source){directory, EPG_TAKE(pack_name)};
    for (size_t i = 0; i < count; i++) {
        packed entry = pack->entries[start + i]; /* it may move to the front */
        entry.source = (uint32_t)pack->source_count;
        if (!is_known(pack, &entry.id)) {
            add_entry(pack, &entry);
        }
    }
    return EPG_OK;
}

/* --- writing --- */

/* A file that ends with the SHA-1 of what is before. */
typedef struct hashed {
    epg_output *file;
    EVP_MD_CTX *sum;
} hashed;

static void hashed_free(hashed *self)
{
    EVP_MD_CTX_free(self->sum);
}

static void put(void *context, epg_span bytes)
{
    const hashed *self = context;
    if (EVP_DigestUpdate(self->sum, bytes.data, bytes.size) != 1) {
        abort();
    }
    epg_output_put(self->file, bytes);
}

static void put_be32(hashed *self, uint32_t value)
{
    uint8_t bytes[4];
    epg_write_be32(bytes, value);
    put(self, epg_span_of(bytes, sizeof bytes));
}

/* One file under a temporary name that only a writer that died can have left behind. */
static epg_code hashed_begin(hashed *self, epg_output *file, int directory, const char *name, epg_error *err)
{
    if (epg_io_unlink(directory, name, 0) != 0 && errno != ENOENT) {
        return epg_fail_errno(err, errno, "can't remove %s", name);
    }
    EPG_TRY(epg_output_begin(file, directory, name, err));
    *self = (hashed){file, EVP_MD_CTX_new()};
    if (self->sum == NULL || EVP_DigestInit_ex(self->sum, EVP_sha1(), NULL) != 1) {
        abort(); /* out of memory, or a libcrypto without SHA-1, which can't serve git */
    }
    return EPG_OK;
}

static epg_code hashed_end(hashed *self, uint8_t hash[ID_SIZE], epg_error *err)
{
    if (EVP_DigestFinal_ex(self->sum, hash, NULL) != 1) {
        abort();
    }
    epg_output_put(self->file, epg_span_of(hash, ID_SIZE));
    return epg_output_end(self->file, 0444, true, err);
}

/* Opens the source of an entry, unless it is open already. */
static epg_code open_source(const epg_pack *pack, uint32_t number, uint32_t *open_number, int *fd, epg_error *err)
{
    uint64_t size = 0;
    if (number == *open_number) {
        return EPG_OK;
    }
    epg_close_cleanup(fd);
    *fd = -1;
    *open_number = number;
    return open_pack(pack->sources[number - 1].directory, pack->sources[number - 1].name, fd, &size, err);
}

static epg_code put_objects(epg_pack *pack, hashed *out, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = -1;
    uint32_t open_number = 0;
    uint32_t at = HEADER_SIZE;
    for (size_t i = 0; i < pack->count; i++) {
        packed *entry = &pack->entries[i];
        entry->at = at;
        at += entry->size;
        if (entry->source == 0) {
            put(out, epg_span_of(pack->bytes.data + entry->offset, entry->size));
            continue;
        }
        epg_code code = open_source(pack, entry->source, &open_number, &fd, err);
        if (code == EPG_OK) {
            code = read_object(fd, entry, put, out, err);
        }
        if (code != EPG_OK) {
            return epg_fail_within(err, "%s", pack->sources[entry->source - 1].name);
        }
    }
    return EPG_OK;
}

static epg_code write_pack(epg_pack *pack, int directory, const char *name, uint8_t hash[ID_SIZE], epg_error *err)
{
    EPG_AUTO_OUTPUT file = {.fd = -1};
    EPG_CLEANUP(hashed_free) hashed out = {NULL, NULL};
    EPG_TRY(hashed_begin(&out, &file, directory, name, err));
    put(&out, epg_span_text("PACK"));
    put_be32(&out, 2);
    put_be32(&out, (uint32_t)pack->count);
    EPG_TRY(put_objects(pack, &out, err));
    return hashed_end(&out, hash, err);
}

static void put_index(const epg_pack *pack, hashed *out)
{
    put(out, epg_span_of(index_magic, sizeof index_magic));
    size_t at = 0;
    for (unsigned first = 0; first < 256; first++) {
        while (at < pack->count && pack->entries[at].id.id[0] <= first) {
            at++;
        }
        put_be32(out, (uint32_t)at);
    }
    for (size_t i = 0; i < pack->count; i++) {
        put(out, epg_span_of(pack->entries[i].id.id, ID_SIZE));
    }
    for (size_t i = 0; i < pack->count; i++) {
        put_be32(out, pack->entries[i].crc);
    }
    for (size_t i = 0; i < pack->count; i++) {
        put_be32(out, pack->entries[i].at);
    }
}

static epg_code write_index(epg_pack *pack, int directory, const char *name, const uint8_t pack_hash[ID_SIZE],
                            epg_error *err)
{
    EPG_AUTO_OUTPUT file = {.fd = -1};
    EPG_CLEANUP(hashed_free) hashed out = {NULL, NULL};
    uint8_t hash[ID_SIZE];
    EPG_TRY(hashed_begin(&out, &file, directory, name, err));
    qsort(pack->entries, pack->count, sizeof *pack->entries, compare_entries);
    put_index(pack, &out);
    put(&out, epg_span_of(pack_hash, ID_SIZE));
    return hashed_end(&out, hash, err);
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
    uint8_t hash[ID_SIZE];
    char hex[2 * ID_SIZE + 1];
    if (pack->size > LARGEST - HEADER_SIZE - ID_SIZE) {
        return epg_fail(err, EPG_ERR_LIMIT, "a pack of 2 GiB or more is not written");
    }
    EPG_TRY(write_pack(pack, directory, pack_temporary, hash, err));
    EPG_TRY(write_index(pack, directory, index_temporary, hash, err));
    epg_hex(hash, sizeof hash, hex);
    (void)snprintf(name, EPG_PACK_NAME, "pack-%s", hex);
    EPG_TRY(put_in_place(directory, pack_temporary, name, ".pack", err));
    EPG_TRY(put_in_place(directory, index_temporary, name, ".idx", err));
    return epg_dir_sync(directory, err);
}
