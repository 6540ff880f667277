/* Every commit and note adds a pack, and each pack is one more to search. When there are many, small ones are joined by
 * size, as one carries in counting: the smallest, and larger ones as long as what was gathered outweighs them. So packs
 * stay few, each object is copied a number of times that grows with the logarithm of the history, and no call copies
 * more than MAX_JOINED_BYTES, nor holds the places of more than MAX_JOINED_OBJECTS in memory: a pack that has got half
 * as large stays as it is. References get into one file for the same reason. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "programs/store_internal.h"
#include "system/files.h"
#include "system/io.h"

enum {
    MANY_NOTES = 16,
    MANY_PACKS = 48,
    MANY_REFS = 64,
    AT_LEAST_JOINED = 24,
    MAX_JOINED_BYTES = 64 * 1024 * 1024,
    MAX_JOINED_OBJECTS = 16 * 1024,
    INDEX_ENTRY = 28
};

typedef struct pack_file {
    char *name; /* without its suffix */
    size_t size;
    size_t objects; /* about */
} pack_file;

typedef struct pack_list {
    pack_file *packs;
    size_t count;
} pack_list;

static void pack_list_free(pack_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->packs[i].name);
    }
    free(list->packs);
}

/* Calls `take` for each name in a directory. */
static epg_code each_name(int directory, void (*take)(void *context, int directory, const char *name), void *context,
                          epg_error *err)
{
    int own = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = own >= 0 ? fdopendir(own) : NULL;
    if (stream == NULL) {
        int error = errno;
        epg_close_cleanup(&own);
        return epg_fail_errno(err, error, "can't list a directory of the history");
    }
    const struct dirent *entry = NULL;
    while ((entry = readdir(stream)) != NULL) {
        take(context, directory, entry->d_name);
    }
    (void)closedir(stream);
    return EPG_OK;
}

/* A pack counts when its index is there, and when nobody asked to keep it ("pack-*.keep"). */
static void take_pack(void *context, int directory, const char *name)
{
    static const char suffix[] = ".idx";
    pack_list *list = context;
    if (!epg_starts_with(name, "pack-") || !epg_ends_with(name, suffix)) {
        return;
    }
    EPG_AUTO_FREE char *base = epg_strndup(name, strlen(name) - strlen(suffix));
    EPG_AUTO_FREE char *pack = epg_format("%s.pack", base);
    EPG_AUTO_FREE char *keep = epg_format("%s.keep", base);
    struct stat info;
    struct stat index;
    if (fstatat(directory, pack, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
        info.st_size <= MAX_JOINED_BYTES / 2 && fstatat(directory, name, &index, AT_SYMLINK_NOFOLLOW) == 0 &&
        index.st_size / INDEX_ENTRY <= MAX_JOINED_OBJECTS / 2 && faccessat(directory, keep, F_OK, 0) != 0) {
        list->packs = epg_grow_array(list->packs, list->count + 1, sizeof *list->packs);
        list->packs[list->count++] =
            (pack_file){EPG_TAKE(base), (size_t)info.st_size, (size_t)index.st_size / INDEX_ENTRY};
    }
}

static void count_name(void *context, int directory, const char *name)
{
    (void)directory;
    (void)name;
    ++*(size_t *)context;
}

static int compare_sizes(const void *a, const void *b)
{
    const pack_file *left = a;
    const pack_file *right = b;
    return left->size != right->size ? (left->size > right->size) - (left->size < right->size)
                                     : strcmp(left->name, right->name);
}

/* How many of the packs, smallest first, are to be joined. */
static size_t choose(const pack_list *list)
{
    size_t sum = 0;
    size_t objects = 0;
    size_t chosen = 0;
    while (chosen < list->count && (chosen < AT_LEAST_JOINED || list->packs[chosen].size <= sum) &&
           sum + list->packs[chosen].size <= MAX_JOINED_BYTES &&
           objects + list->packs[chosen].objects <= MAX_JOINED_OBJECTS) {
        objects += list->packs[chosen].objects;
        sum += list->packs[chosen++].size;
    }
    return chosen;
}

static epg_code remove_pack(epg_store *store, const char *name, epg_error *err)
{
    static const char *const suffixes[] = {".idx", ".pack"}; /* no index may be there without its pack */
    for (size_t i = 0; i < EPG_COUNT(suffixes); i++) {
        EPG_AUTO_FREE char *file = epg_format("%s%s", name, suffixes[i]);
        if (epg_io_unlink(store->packs, file, 0) != 0 && errno != ENOENT) {
            return epg_fail_errno(err, errno, "can't remove %s from the history", file);
        }
    }
    return EPG_OK;
}

/* An index that a user's git made over all packs would name those that went: git takes it away too when it repacks. */
static epg_code remove_overall_index(epg_store *store, epg_error *err)
{
    static const char name[] = "multi-pack-index";
    if (faccessat(store->packs, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 && epg_io_unlink(store->packs, name, 0) != 0 &&
        errno != ENOENT) {
        return epg_fail_errno(err, errno, "can't remove %s from the history", name);
    }
    return EPG_OK;
}

static epg_code remove_joined(epg_store *store, const pack_list *list, size_t chosen, const bool *joined,
                              const char *made, epg_error *err)
{
    EPG_TRY(remove_overall_index(store, err));
    for (size_t i = 0; i < chosen; i++) {
        if (joined[i] && strcmp(list->packs[i].name, made) != 0) {
            EPG_TRY(remove_pack(store, list->packs[i].name, err));
        }
    }
    return epg_dir_sync(store->packs, err);
}

/* Writes the joined pack, and removes the others once it is durable. Packs with deltas, which a user's `git gc` made,
 * stay as they are. */
static epg_code join(epg_store *store, const pack_list *list, size_t chosen, epg_error *err)
{
    char made[EPG_PACK_NAME];
    EPG_AUTO_FREE bool *joined = epg_alloc_array(chosen, sizeof *joined);
    size_t joined_count = 0;
    for (size_t i = 0; i < chosen; i++) {
        EPG_TRY(epg_pack_append(store->pack, store->packs, list->packs[i].name, &joined[i], err));
        joined_count += joined[i] ? 1 : 0;
    }
    if (joined_count < 2) {
        return EPG_OK;
    }
    EPG_TRY(epg_pack_write(store->pack, store->packs, made, err));
    epg_code code = remove_joined(store, list, chosen, joined, made, err);
    epg_code attached = epg_store_attach(store, code == EPG_OK ? err : NULL); /* libgit2 has the removed ones open */
    return code == EPG_OK ? attached : code;
}

static epg_code join_packs(epg_store *store, epg_error *err)
{
    EPG_CLEANUP(pack_list_free) pack_list list = {0};
    EPG_TRY(each_name(store->packs, take_pack, &list, err));
    if (list.count < MANY_PACKS) {
        return EPG_OK;
    }
    qsort(list.packs, list.count, sizeof *list.packs, compare_sizes);
    if (store->pack == NULL) {
        store->pack = epg_pack_new();
    }
    epg_code code = join(store, &list, choose(&list), err);
    epg_store_abandon(store);
    return code;
}

epg_code epg_store_maintain(epg_store *store, epg_error *err)
{
    size_t loose = 0;
    EPG_AUTO_CLOSE int tags = -1;
    if (store->note_count >= MANY_NOTES) {
        EPG_TRY(epg_store_write_notes(store, err));
    }
    EPG_TRY(join_packs(store, err));
    EPG_TRY(epg_dir_open_beneath(store->directory, "refs/tags", &tags, err));
    EPG_TRY(each_name(tags, count_name, &loose, err));
    return loose < MANY_REFS ? EPG_OK : epg_store_pack_refs(store, err);
}

typedef struct removal {
    bool any;
    int why; /* of the last that failed; 0: none did */
} removal;

static void remove_left(void *context, int directory, const char *name)
{
    removal *self = context;
    if (epg_ends_with(name, ".lock") || epg_starts_with(name, "tmp_")) {
        self->any = true;
        self->why = epg_io_unlink(directory, name, 0) != 0 ? errno : self->why;
    }
}

/* A pack whose index never came or, after a power cut, an index without its pack: its writer was cut off in between,
 * and nothing rests on it. */
static void note_unindexed(void *context, int directory, const char *name)
{
    char **found = context;
    static const char index[] = ".idx";
    static const char pack[] = ".pack";
    bool is_index = epg_ends_with(name, index);
    if (!is_index && !epg_ends_with(name, pack)) {
        return;
    }
    size_t suffix = is_index ? sizeof index - 1 : sizeof pack - 1;
    EPG_AUTO_FREE char *other = epg_format("%.*s%s", (int)(strlen(name) - suffix), name, is_index ? pack : index);
    if (faccessat(directory, other, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        return;
    }
    if (is_index) {
        (void)epg_io_unlink(directory, name, 0); /* it only says where in the pack things were */
    } else {
        free(*found);
        *found = epg_strdup(name);
    }
}

static bool any_tag(void *context, const char *tag)
{
    (void)context;
    (void)tag;
    return true;
}

static void count_fault(void *context, const char *path, const char *what)
{
    (void)path;
    (void)what;
    ++*(size_t *)context;
}

/* It goes only when nothing is missing without it: an index that somebody took away can be made again. */
static epg_code remove_unindexed(epg_store *store, epg_error *err)
{
    EPG_AUTO_FREE char *name = NULL;
    size_t faults = 0;
    uint64_t checks = 0;
    epg_store_check check = {
        .known = any_tag, .fault = count_fault, .context = &faults, .newest = "initial", .foreign = true};
    EPG_TRY(each_name(store->packs, note_unindexed, &name, err));
    if (name == NULL) {
        return EPG_OK;
    }
    EPG_TRY(epg_store_check_all(store, &check, &checks, err));
    if (faults == 0 && epg_io_unlink(store->packs, name, 0) != 0) {
        return epg_fail_errno(err, errno, "can't remove %s from the history", name);
    }
    return epg_dir_sync(store->packs, err);
}

epg_code epg_store_recover(epg_store *store, epg_error *err)
{
    static const char *const places[] = {".", "objects/pack", "refs/heads", "refs/notes", "refs/tags"};
    for (size_t i = 0; i < EPG_COUNT(places); i++) {
        EPG_AUTO_CLOSE int place = -1;
        removal left = {.any = false};
        EPG_TRY(epg_dir_open_beneath(store->directory, places[i], &place, err));
        EPG_TRY(each_name(place, remove_left, &left, err));
        if (left.why != 0) {
            return epg_fail_errno(err, left.why, "can't remove what a dead writer left in the history");
        }
        if (left.any) {
            EPG_TRY(epg_dir_sync(place, err));
        }
    }
    return remove_unindexed(store, err);
}
