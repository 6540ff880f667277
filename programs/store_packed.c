/* packed-refs: one file for the tags of a long history, a line each, sorted by name ("ID NAME", with "^ID" below it
 * where git itself has packed an annotated tag). A reference that has a file of its own counts before its line, so the
 * new packed-refs is durable before the files go, and one that is deleted loses its line first. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "programs/store_internal.h"
#include "system/files.h"
#include "system/io.h"

enum { PACKED_MAX = 1024 * 1024 * 1024, LOOSE_MAX = 1024, ID_DIGITS = EPG_OBJECT_ID_TEXT - 1 };

static const char packed_file[] = "packed-refs";
/* Ours, and that of a user's `git pack-refs`. */
static const char *const headers[] = {"# pack-refs with: sorted \n", "# pack-refs with: peeled fully-peeled sorted \n"};

/* One reference: its line, with those that belong to it. */
typedef struct packed_ref {
    char *name;
    char *lines;
} packed_ref;

typedef struct packed_refs {
    packed_ref *refs;
    size_t count;
    size_t capacity;
} packed_refs;

static void packed_refs_free(packed_refs *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free(self->refs[i].name);
        free(self->refs[i].lines);
    }
    free(self->refs);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const packed_ref *)a)->name, ((const packed_ref *)b)->name);
}

/* Takes both texts over. */
static void add(packed_refs *self, char *name, char *lines)
{
    if (self->count == self->capacity) {
        self->capacity = self->capacity == 0 ? 64 : 2 * self->capacity;
        self->refs = epg_grow_array(self->refs, self->capacity, sizeof *self->refs);
    }
    self->refs[self->count++] = (packed_ref){name, lines};
}

static epg_code take_line(packed_refs *self, const char *line, size_t size, epg_error *err)
{
    if (size == 0 || line[0] == '#') {
        return EPG_OK;
    }
    if (line[0] == '^' && self->count > 0) {
        packed_ref *last = &self->refs[self->count - 1];
        char *longer = epg_format("%s%.*s\n", last->lines, (int)size, line);
        free(last->lines);
        last->lines = longer;
        return EPG_OK;
    }
    if (size <= ID_DIGITS + 1 || line[ID_DIGITS] != ' ') {
        return epg_fail(err, EPG_ERR_INVALID, "%s of the history has a line that is none", packed_file);
    }
    add(self, epg_strndup(line + ID_DIGITS + 1, size - ID_DIGITS - 1), epg_format("%.*s\n", (int)size, line));
    return EPG_OK;
}

static epg_code read_packed(const epg_store *store, packed_refs *out, epg_error *err)
{
    EPG_AUTO_BUFFER text = {0};
    epg_error why = {.text = ""};
    epg_code code = epg_file_read(store->directory, packed_file, PACKED_MAX, &text, &why);
    if (code == EPG_ERR_NOT_FOUND) {
        return EPG_OK;
    }
    if (code != EPG_OK) {
        return epg_fail(err, code, "%s", why.text);
    }
    const char *line = epg_buffer_cstr(&text);
    while (*line != '\0') {
        size_t size = strcspn(line, "\n");
        EPG_TRY(take_line(out, line, size, err));
        line += size + (line[size] == '\n' ? 1 : 0);
    }
    return EPG_OK;
}

static epg_code write_packed(epg_store *store, packed_refs *refs, epg_error *err)
{
    EPG_AUTO_BUFFER text = {0};
    if (refs->count > 1) {
        qsort(refs->refs, refs->count, sizeof *refs->refs, by_name);
    }
    (void)epg_buffer_text(&text, headers[0]);
    for (size_t i = 0; i < refs->count; i++) {
        (void)epg_buffer_text(&text, refs->refs[i].lines);
    }
    return epg_store_replace_file(store, packed_file, epg_buffer_span(&text), err);
}

/* The id that a tag's own file holds; false when it is no such file (a lock, a symbolic reference). */
static bool read_loose(int tags, const char *name, char id[EPG_OBJECT_ID_TEXT])
{
    EPG_AUTO_BUFFER text = {0};
    git_oid parsed;
    if (epg_store_check_name(name, NULL) != EPG_OK || epg_file_read(tags, name, LOOSE_MAX, &text, NULL) != EPG_OK ||
        text.size != EPG_OBJECT_ID_TEXT || git_oid_fromstr(&parsed, epg_buffer_cstr(&text)) != 0) {
        return false;
    }
    (void)git_oid_tostr(id, EPG_OBJECT_ID_TEXT, &parsed);
    return true;
}

static epg_code read_all_loose(int tags, packed_refs *out, epg_error *err)
{
    int own = openat(tags, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = own >= 0 ? fdopendir(own) : NULL;
    if (stream == NULL) {
        int why = errno;
        epg_close_cleanup(&own);
        return epg_fail_errno(err, why, "can't list the history's tags");
    }
    for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        char id[EPG_OBJECT_ID_TEXT];
        if (read_loose(tags, entry->d_name, id)) {
            add(out, epg_format(EPG_STORE_TAGS "%s", entry->d_name),
                epg_format("%s " EPG_STORE_TAGS "%s\n", id, entry->d_name));
        }
    }
    (void)closedir(stream);
    return EPG_OK;
}

/* What is packed and has no file of its own, besides those. */
static void merge(packed_refs *packed, packed_refs *loose)
{
    size_t count = loose->count;
    if (count > 1) {
        qsort(loose->refs, count, sizeof *loose->refs, by_name);
    }
    for (size_t i = 0; i < packed->count; i++) {
        packed_ref *one = &packed->refs[i];
        if (count == 0 || bsearch(one, loose->refs, count, sizeof *one, by_name) == NULL) {
            add(loose, EPG_TAKE(one->name), EPG_TAKE(one->lines));
        }
    }
}

epg_code epg_store_pack_refs(epg_store *store, epg_error *err)
{
    EPG_AUTO_CLOSE int tags = -1;
    EPG_CLEANUP(packed_refs_free) packed_refs packed = {0};
    EPG_CLEANUP(packed_refs_free) packed_refs refs = {0};
    EPG_TRY(epg_dir_open_beneath(store->directory, "refs/tags", &tags, err));
    EPG_TRY(read_packed(store, &packed, err));
    EPG_TRY(read_all_loose(tags, &refs, err));
    size_t loose = refs.count;
    EPG_AUTO_FREE char **gone = epg_alloc_array(loose, sizeof *gone);
    for (size_t i = 0; i < loose; i++) {
        gone[i] = epg_strdup(refs.refs[i].name);
    }
    merge(&packed, &refs);
    epg_code code = write_packed(store, &refs, err);
    for (size_t i = 0; i < loose; i++) {
        if (code == EPG_OK && epg_io_unlink(store->directory, gone[i], 0) != 0 && errno != ENOENT) {
            code = epg_fail_errno(err, errno, "can't remove %s, which is packed", gone[i]);
        }
        free(gone[i]);
    }
    return code;
}

epg_code epg_store_unpack_ref(epg_store *store, const char *name, epg_error *err)
{
    EPG_CLEANUP(packed_refs_free) packed_refs packed = {0};
    EPG_CLEANUP(packed_refs_free) packed_refs others = {0};
    EPG_TRY(read_packed(store, &packed, err));
    for (size_t i = 0; i < packed.count; i++) {
        packed_ref *one = &packed.refs[i];
        if (strcmp(one->name, name) != 0) {
            add(&others, EPG_TAKE(one->name), EPG_TAKE(one->lines));
        }
    }
    return others.count < packed.count ? write_packed(store, &others, err) : EPG_OK;
}

epg_code epg_store_each_packed(epg_store *store, void (*visit)(void *context, const char *name), void *context,
                               epg_error *err)
{
    EPG_AUTO_BUFFER text = {0};
    EPG_CLEANUP(packed_refs_free) packed_refs packed = {0};
    EPG_TRY(epg_file_read(store->directory, packed_file, PACKED_MAX, &text, err));
    bool headed = false;
    for (size_t i = 0; i < EPG_COUNT(headers); i++) {
        headed = headed || epg_starts_with(epg_buffer_cstr(&text), headers[i]);
    }
    if (!headed || text.data[text.size - 1] != '\n') {
        return epg_fail(err, EPG_ERR_INVALID, "is not as it was written");
    }
    EPG_TRY(read_packed(store, &packed, err));
    for (size_t i = 0; i < packed.count; i++) {
        visit(context, packed.refs[i].name);
    }
    return EPG_OK;
}
