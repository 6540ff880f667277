/* packed-refs: one file for the tags of a long history, a line each, sorted by name ("ID NAME", with "^ID" below it
 * where git itself has packed an annotated tag). A reference that has a file of its own counts before its line, so the
 * new packed-refs is durable before the files go, and one that is deleted loses its line first.
 *
 * The file grows with the history, so it is never held whole: it is written anew line by line, and a name is looked up
 * by halving. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "programs/store_internal.h"
#include "system/files.h"
#include "system/io.h"

enum { LOOSE_MAX = 1024, ID_DIGITS = EPG_OBJECT_ID_TEXT - 1, NEAR = 2 * 1024 };

static const char packed_file[] = "packed-refs";
/* Ours, and that of a user's `git pack-refs`. */
static const char *const headers[] = {"# pack-refs with: sorted \n", "# pack-refs with: peeled fully-peeled sorted \n"};

static bool is_header(epg_span line)
{
    bool found = false;
    for (size_t i = 0; i < EPG_COUNT(headers); i++) {
        found = found || epg_span_equal(line, epg_span_text(headers[i]));
    }
    return found;
}

/* The name in "ID NAME\n"; false: it is no such line. */
static bool name_in(epg_span line, epg_span *name)
{
    if (line.size <= ID_DIGITS + 2 || line.data[ID_DIGITS] != ' ' || memchr(line.data, 0, line.size) != NULL) {
        return false;
    }
    *name = epg_span_of(line.data + ID_DIGITS + 1, line.size - ID_DIGITS - 2);
    return true;
}

/* --- line by line --- */

typedef struct packed_lines {
    FILE *file; /* NULL: there is none */
    char *line; /* at hand, with its newline */
    size_t size;
    size_t room;
    epg_buffer last; /* the name before: they must come in order */
    bool begun;
    bool headed; /* the first line is a header that we know */
} packed_lines;

static void packed_lines_free(packed_lines *self)
{
    if (self->file != NULL) {
        (void)fclose(self->file);
    }
    free(self->line);
    epg_buffer_free(&self->last);
}

static epg_code open_packed(const epg_store *store, int *out, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = openat(store->directory, packed_file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd < 0 && errno == ENOENT) {
        return epg_fail(err, EPG_ERR_NOT_FOUND, "the history has no %s", packed_file);
    }
    if (fd < 0 || fstat(fd, &info) != 0) {
        return epg_fail_errno(err, errno, "can't open %s of the history", packed_file);
    }
    if (!S_ISREG(info.st_mode)) {
        return epg_fail(err, EPG_ERR_INVALID, "%s of the history is no regular file", packed_file);
    }
    *out = epg_take_fd(&fd);
    return EPG_OK;
}

static epg_code packed_lines_open(const epg_store *store, packed_lines *out, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = -1;
    EPG_TRY(open_packed(store, &fd, err));
    out->file = fdopen(fd, "r");
    if (out->file == NULL) {
        return epg_fail_errno(err, errno, "can't read %s of the history", packed_file);
    }
    (void)epg_take_fd(&fd);
    return EPG_OK;
}

static epg_code bad_line(epg_error *err, const char *what)
{
    return epg_fail(err, EPG_ERR_INVALID, "%s of the history has a line that is %s", packed_file, what);
}

/* The next line that names a reference, or belongs to the one before (`name` is empty then). *any: there is one. */
static epg_code next_line(packed_lines *self, epg_span *line, epg_span *name, bool *any, epg_error *err)
{
    *any = false;
    while (self->file != NULL) {
        ssize_t got = getline(&self->line, &self->room, self->file);
        if (got < 0) {
            return ferror(self->file) == 0 ? EPG_OK
                                           : epg_fail_errno(err, errno, "can't read %s of the history", packed_file);
        }
        *line = epg_span_of(self->line, (size_t)got);
        *name = epg_span_of(NULL, 0);
        self->headed = self->begun ? self->headed : is_header(*line);
        self->begun = true;
        if (self->line[0] == '#' || self->line[0] == '\n') {
            continue;
        }
        if (self->line[got - 1] != '\n') {
            return bad_line(err, "cut off");
        }
        if (self->line[0] == '^' && self->last.size > 0) {
            *any = true;
            return EPG_OK;
        }
        if (!name_in(*line, name)) {
            return bad_line(err, "none");
        }
        if (epg_span_compare(epg_buffer_span(&self->last), *name) >= 0) {
            return bad_line(err, "not in order");
        }
        epg_buffer_clear(&self->last);
        (void)epg_buffer_append_span(&self->last, *name);
        *any = true;
        return EPG_OK;
    }
    return EPG_OK;
}

epg_code epg_store_each_packed(epg_store *store, void (*visit)(void *context, const char *name), void *context,
                               epg_error *err)
{
    EPG_CLEANUP(packed_lines_free) packed_lines lines = {.file = NULL};
    EPG_TRY(packed_lines_open(store, &lines, err));
    for (;;) {
        epg_span line;
        epg_span name;
        bool any = false;
        EPG_TRY(next_line(&lines, &line, &name, &any, err));
        if (!lines.headed) {
            return epg_fail(err, EPG_ERR_INVALID, "is not as it was written");
        }
        if (!any) {
            return EPG_OK;
        }
        if (name.size > 0) {
            EPG_AUTO_FREE char *text = epg_strndup((const char *)name.data, name.size);
            visit(context, text);
        }
    }
}

/* --- looking one up --- */

/* Reads the piece of the file that begins at `at`, whole lines only: from the first that begins there or later, unless
 * `at_line` tells that one begins there, up to the last that ends in it. *start: where the first begins. */
static epg_code read_lines(int fd, off_t at, bool at_line, uint8_t piece[NEAR], epg_span *out, off_t *start,
                           epg_error *err)
{
    ssize_t got = 0;
    do {
        got = pread(fd, piece, NEAR, at);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return epg_fail_errno(err, errno, "can't read %s of the history", packed_file);
    }
    const uint8_t *first = at_line || got == 0 ? piece : memchr(piece, '\n', (size_t)got);
    const uint8_t *last = got > 0 ? memrchr(piece, '\n', (size_t)got) : NULL;
    if (first == NULL || last == NULL) {
        return bad_line(err, "longer than any, or cut off");
    }
    first += at_line ? 0 : 1;
    *out = epg_span_of(first, (size_t)(last + 1 - first));
    *start = at + (first - piece);
    return EPG_OK;
}

/* The first line in the text that names a reference; takes it, and what is before it, from the text. */
static bool take_named(epg_span *text, epg_span *line, epg_span *name)
{
    while (text->size > 0) {
        const uint8_t *end = memchr(text->data, '\n', text->size);
        *line = epg_span_of(text->data, (size_t)(end + 1 - text->data));
        *text = epg_span_of(end + 1, text->size - line->size);
        if (line->data[0] != '#' && line->data[0] != '^' && name_in(*line, name)) {
            return true;
        }
    }
    return false;
}

/* Narrows where the name's line may begin, [*low, *high), to what can be read at once. */
static epg_code halve(int fd, epg_span name, off_t *low, off_t *high, epg_error *err)
{
    uint8_t piece[NEAR];
    while (*high - *low > NEAR / 2) {
        epg_span text = {NULL, 0};
        epg_span line = text;
        epg_span found = text;
        off_t middle = *low + (*high - *low) / 2;
        off_t start = 0;
        EPG_TRY(read_lines(fd, middle, false, piece, &text, &start, err));
        const uint8_t *first = text.data;
        if (!take_named(&text, &line, &found)) {
            return bad_line(err, "none");
        }
        off_t at = start + (line.data - first);
        if (epg_span_compare(name, found) < 0) {
            *high = middle + 1; /* no line begins between there and `at` */
        } else {
            *low = at;
        }
    }
    return EPG_OK;
}

/* The file's size, where its last line is whole. */
static epg_code whole_size(int fd, off_t *size, epg_error *err)
{
    char last = '\0';
    *size = lseek(fd, 0, SEEK_END);
    if (*size > 0 && (pread(fd, &last, 1, *size - 1) != 1 || last != '\n')) {
        return epg_fail(err, EPG_ERR_IO, "%s of the history is cut off", packed_file);
    }
    return EPG_OK;
}

epg_code epg_store_find_packed(epg_store *store, const char *name, git_oid *out, epg_error *err)
{
    EPG_AUTO_CLOSE int fd = -1;
    uint8_t piece[NEAR];
    epg_span text = {NULL, 0};
    epg_span line = text;
    epg_span found = text;
    off_t start = 0;
    off_t high = 0;
    EPG_TRY(open_packed(store, &fd, err));
    EPG_TRY(whole_size(fd, &high, err));
    off_t size = high;
    EPG_TRY(read_lines(fd, 0, true, piece, &text, &start, err));
    const uint8_t *end = text.size > 0 ? memchr(text.data, '\n', text.size) : NULL;
    if (end == NULL || !is_header(epg_span_of(text.data, (size_t)(end + 1 - text.data)))) {
        return epg_fail(err, EPG_ERR_INVALID, "%s of the history is not as it was written", packed_file);
    }
    off_t low = end + 1 - text.data;
    EPG_TRY(halve(fd, epg_span_text(name), &low, &high, err));
    EPG_TRY(low < size ? read_lines(fd, low, true, piece, &text, &start, err) : EPG_OK);
    while (low < high && take_named(&text, &line, &found)) {
        char id[EPG_OBJECT_ID_TEXT] = "";
        memcpy(id, line.data, ID_DIGITS);
        if (epg_span_equal(found, epg_span_text(name))) {
            return git_oid_fromstr(out, id) == 0 ? EPG_OK : bad_line(err, "none");
        }
    }
    return epg_fail(err, EPG_ERR_NOT_FOUND, "the history has no %s", name);
}

/* --- writing it anew --- */

typedef struct loose_ref {
    char *name; /* "refs/tags/..." */
    char id[EPG_OBJECT_ID_TEXT];
} loose_ref;

typedef struct loose_refs {
    loose_ref *refs; /* in byte order of names */
    size_t count;
    size_t capacity;
} loose_refs;

static void loose_refs_free(loose_refs *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free(self->refs[i].name);
    }
    free(self->refs);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const loose_ref *)a)->name, ((const loose_ref *)b)->name);
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

static epg_code read_all_loose(int tags, loose_refs *out, epg_error *err)
{
    int own = openat(tags, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = own >= 0 ? fdopendir(own) : NULL;
    if (stream == NULL) {
        int why = errno;
        epg_close_cleanup(&own);
        return epg_fail_errno(err, why, "can't list the history's tags");
    }
    for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        loose_ref one = {.name = NULL};
        if (!read_loose(tags, entry->d_name, one.id)) {
            continue;
        }
        if (out->count == out->capacity) {
            out->capacity = out->capacity == 0 ? 64 : 2 * out->capacity;
            out->refs = epg_grow_array(out->refs, out->capacity, sizeof *out->refs);
        }
        one.name = epg_format(EPG_STORE_TAGS "%s", entry->d_name);
        out->refs[out->count++] = one;
    }
    (void)closedir(stream);
    if (out->count > 1) {
        qsort(out->refs, out->count, sizeof *out->refs, by_name);
    }
    return EPG_OK;
}

static void put_loose(epg_store_file *file, const loose_ref *ref)
{
    epg_output_put(&file->output, epg_span_text(ref->id));
    epg_output_put(&file->output, epg_span_text(" "));
    epg_output_put(&file->output, epg_span_text(ref->name));
    epg_output_put(&file->output, epg_span_text("\n"));
}

/* The lines of the old file with the loose ones among them, in order, and without those of `gone` (NULL: none). */
static epg_code put_merged(packed_lines *lines, const loose_refs *loose, const char *gone, epg_store_file *file,
                           epg_error *err)
{
    size_t next = 0;
    bool kept = false; /* the reference that a "^ID" belongs to */
    for (;;) {
        epg_span line;
        epg_span name;
        bool any = false;
        EPG_TRY(next_line(lines, &line, &name, &any, err));
        if (!any) {
            break;
        }
        if (name.size > 0) {
            kept = gone == NULL || !epg_span_equal(name, epg_span_text(gone));
            for (; next < loose->count && epg_span_compare(epg_span_text(loose->refs[next].name), name) <= 0; next++) {
                kept = kept && !epg_span_equal(epg_span_text(loose->refs[next].name), name);
                put_loose(file, &loose->refs[next]);
            }
        }
        if (kept) {
            epg_output_put(&file->output, line);
        }
    }
    for (; next < loose->count; next++) {
        put_loose(file, &loose->refs[next]);
    }
    return EPG_OK;
}

static epg_code write_packed(epg_store *store, const loose_refs *loose, const char *gone, epg_error *err)
{
    EPG_CLEANUP(packed_lines_free) packed_lines lines = {.file = NULL};
    EPG_CLEANUP(epg_store_file_free) epg_store_file file = {.directory = -1};
    epg_error why = {.text = ""};
    /* The lock first: a user's git that has it may be about to put what was loose into a new file. */
    EPG_TRY(epg_store_begin_file(store, packed_file, &file, err));
    epg_code code = packed_lines_open(store, &lines, &why);
    if (code != EPG_OK && code != EPG_ERR_NOT_FOUND) {
        return epg_fail(err, code, "%s", why.text);
    }
    epg_output_put(&file.output, epg_span_text(headers[0]));
    EPG_TRY(put_merged(&lines, loose, gone, &file, err));
    return epg_store_end_file(&file, err);
}

epg_code epg_store_pack_refs(epg_store *store, epg_error *err)
{
    EPG_AUTO_CLOSE int tags = -1;
    EPG_CLEANUP(loose_refs_free) loose_refs loose = {0};
    EPG_TRY(epg_dir_open_beneath(store->directory, "refs/tags", &tags, err));
    EPG_TRY(read_all_loose(tags, &loose, err));
    EPG_TRY(write_packed(store, &loose, NULL, err));
    for (size_t i = 0; i < loose.count; i++) {
        if (epg_io_unlink(store->directory, loose.refs[i].name, 0) != 0 && errno != ENOENT) {
            return epg_fail_errno(err, errno, "can't remove %s, which is packed", loose.refs[i].name);
        }
    }
    return EPG_OK;
}

epg_code epg_store_unpack_ref(epg_store *store, const char *name, epg_error *err)
{
    git_oid id;
    static const loose_refs none = {0};
    if (epg_store_find_packed(store, name, &id, err) == EPG_ERR_NOT_FOUND) {
        return EPG_OK;
    }
    return write_packed(store, &none, name, err);
}
