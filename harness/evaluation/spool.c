#include "evaluation/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "system/files.h"
#include "system/io.h"

void epg_spools_open(epg_spools *spools, int directory, const char *name, bool durable)
{
    *spools = (epg_spools){.directory = directory, .name = epg_strdup(name), .durable = durable};
}

void epg_spools_close(epg_spools *spools)
{
    for (unsigned i = 0; i < spools->count; i++) {
        epg_sha256_free(spools->files[i].hash);
        if (spools->files[i].fd >= 0) {
            (void)close(spools->files[i].fd);
        }
    }
    free(spools->files);
    free(spools->name);
    *spools = (epg_spools){.directory = -1};
}

void epg_spools_remove(int directory, const char *name)
{
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;
    if (listing == NULL) {
        epg_close_cleanup(&fd);
        return;
    }
    EPG_AUTO_FREE char *prefix = epg_format("%s-", name);
    const struct dirent *entry = NULL;
    while ((entry = readdir(listing)) != NULL) {
        if (epg_starts_with(entry->d_name, prefix) && epg_ends_with(entry->d_name, ".spool")) {
            (void)epg_io_unlink(directory, entry->d_name, 0);
        }
    }
    (void)closedir(listing);
}

/* A file without a name in the temporary directory. */
static int open_unlinked(void)
{
    const char *base = getenv("TMPDIR");
    EPG_AUTO_FREE char *path = epg_format("%s/epg-spool-XXXXXX", base != NULL && base[0] == '/' ? base : "/tmp");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        (void)unlink(path);
    }
    return fd;
}

static epg_code open_file(const epg_spools *spools, unsigned number, epg_spool *file, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = -1;
    if (spools->directory < 0) {
        fd = open_unlinked();
    } else {
        EPG_AUTO_FREE char *name = epg_format("%s-%u.spool", spools->name, number);
        fd = epg_io_open(spools->directory, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
        if (fd >= 0 && spools->durable) {
            EPG_TRY(epg_dir_sync(spools->directory, err));
        }
    }
    off_t end = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    if (end < 0) {
        return epg_fail_errno(err, errno, "can't open a file for Episode records");
    }
    file->size = (uint64_t)end;
    file->fd = epg_take_fd(&fd);
    return EPG_OK;
}

static epg_code get_file(epg_spools *spools, unsigned number, epg_spool **out, epg_error *err)
{
    while (spools->count <= number) {
        spools->files = epg_grow_array(spools->files, spools->count + 1, sizeof *spools->files);
        spools->files[spools->count++] = (epg_spool){.fd = -1};
    }
    epg_spool *file = &spools->files[number];
    if (file->fd < 0 && open_file(spools, number, file, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_PUBLICATION, "records");
    }
    *out = file;
    return EPG_OK;
}

epg_code epg_spool_begin(epg_spools *spools, unsigned number, epg_error *err)
{
    epg_spool *file = NULL;
    EPG_TRY(get_file(spools, number, &file, err));
    epg_sha256_free(file->hash);
    file->hash = epg_sha256_new();
    file->start = file->size;
    return EPG_OK;
}

epg_code epg_spool_append(epg_spools *spools, unsigned number, epg_span bytes, epg_error *err)
{
    epg_spool *file = &spools->files[number];
    if (epg_io_write_all(file->fd, bytes.data, bytes.size) != 0) {
        (void)epg_fail_errno(err, errno, "can't write an Episode's record");
        return epg_fail_as(err, EPG_ERR_PUBLICATION, "records");
    }
    epg_sha256_update(file->hash, bytes.data, bytes.size);
    file->size += bytes.size;
    return EPG_OK;
}

epg_code epg_spools_sync(epg_spools *spools, epg_error *err)
{
    for (unsigned i = 0; i < spools->count; i++) {
        epg_spool *file = &spools->files[i];
        if (file->dirty && epg_io_fdatasync(file->fd) != 0) {
            (void)epg_fail_errno(err, errno, "can't sync Episodes' records");
            return epg_fail_as(err, EPG_ERR_PUBLICATION, "records");
        }
        file->dirty = false;
    }
    return EPG_OK;
}

void epg_spool_end(epg_spools *spools, unsigned number, uint64_t *offset, uint64_t *size, char sha256[EPG_SHA256_HEX])
{
    epg_spool *file = &spools->files[number];
    file->dirty = spools->durable;
    uint8_t digest[EPG_SHA256_SIZE];
    epg_sha256_finish(file->hash, digest);
    file->hash = NULL;
    epg_hex(digest, sizeof digest, sha256);
    *offset = file->start;
    *size = file->size - file->start;
}

epg_code epg_spool_read(epg_spools *spools, unsigned number, uint64_t offset, size_t size, epg_buffer *out,
                        epg_error *err)
{
    epg_spool *file = NULL;
    EPG_TRY(get_file(spools, number, &file, err));
    uint8_t *to = epg_buffer_reserve(out, size);
    size_t got = 0;
    while (got < size) {
        ssize_t part = pread(file->fd, to + got, size - got, (off_t)(offset + got));
        if (part < 0 && errno == EINTR) {
            continue;
        }
        if (part <= 0) {
            (void)epg_fail_errno(err, part < 0 ? errno : EIO, "can't read an Episode's record");
            return epg_fail_as(err, EPG_ERR_PUBLICATION, "records");
        }
        got += (size_t)part;
    }
    out->size += size;
    return EPG_OK;
}

bool epg_spool_holds(epg_spools *spools, unsigned number, uint64_t offset, uint64_t size, const char *sha256)
{
    enum { PIECE = 256 * 1024, FILES_MAX = 4096 };
    epg_spool *file = NULL;
    if (number >= FILES_MAX || get_file(spools, number, &file, NULL) != EPG_OK || file == NULL || size == 0 ||
        size > file->size || offset > file->size - size) {
        return false;
    }
    epg_sha256 *hash = epg_sha256_new();
    EPG_AUTO_BUFFER piece = {0};
    bool whole = true;
    for (uint64_t at = 0; whole && at < size; at += piece.size) {
        epg_buffer_clear(&piece);
        size_t part = size - at < PIECE ? (size_t)(size - at) : PIECE;
        whole = epg_spool_read(spools, number, offset + at, part, &piece, NULL) == EPG_OK;
        epg_sha256_update(hash, piece.data, piece.size);
    }
    uint8_t digest[EPG_SHA256_SIZE];
    char text[EPG_SHA256_HEX];
    epg_sha256_finish(hash, digest);
    epg_hex(digest, sizeof digest, text);
    return whole && strcmp(text, sha256) == 0;
}
