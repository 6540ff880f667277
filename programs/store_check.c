/* The whole repository, looked at as one that somebody may have been at: which files are there, whether packs, indexes
 * and references are what the store writes, and whether all objects that references reach are there as their ids say.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "programs/store_internal.h"
#include "system/files.h"
#include "system/tree.h"

enum { SMALL_MAX = 64 * 1024, PACK_MAX = INT32_MAX, SHA1_SIZE = GIT_OID_RAWSZ, HEX = EPG_OBJECT_ID_TEXT - 1 };

typedef struct checker {
    epg_store *store;
    const epg_store_check *check;
    uint64_t checks;
    void *seen;     /* search(3) tree of owned git_oid */
    git_oid *stack; /* objects yet to be read */
    size_t depth;
    size_t capacity;
} checker;

static void fault(checker *self, const char *path, const char *what)
{
    self->check->fault(self->check->context, path, what);
}

static void expect(checker *self, bool holds, const char *path, const char *what)
{
    self->checks++;
    if (!holds) {
        fault(self, path, what);
    }
}

static bool is_hex(const char *text, size_t size)
{
    return strspn(text, "0123456789abcdef") >= size;
}

/* --- files --- */

static void check_fixed(checker *self, const epg_tree_entry *entry, const char *content)
{
    EPG_AUTO_BUFFER found = {0};
    bool same = epg_file_read(entry->dir, entry->name, SMALL_MAX, &found, NULL) == EPG_OK &&
                epg_span_equal(epg_buffer_span(&found), epg_span_text(content));
    expect(self, same, entry->path, "is not as the Host wrote it");
}

static void check_fixed_there(checker *self)
{
    for (size_t i = 0; i < EPG_STORE_FIXED; i++) {
        const char *name = epg_store_fixed_name(i);
        expect(self, faccessat(self->store->directory, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0, name, "is missing");
    }
}

/* Packs and indexes end in the SHA-1 of all before it; an index names its pack's before that. */
static void check_pack_file(checker *self, const epg_tree_entry *entry, bool is_index)
{
    EPG_AUTO_BUFFER bytes = {0};
    uint8_t hash[SHA1_SIZE];
    bool whole = epg_file_read(entry->dir, entry->name, PACK_MAX, &bytes, NULL) == EPG_OK && bytes.size > SHA1_SIZE &&
                 EVP_Digest(bytes.data, bytes.size - SHA1_SIZE, hash, NULL, EVP_sha1(), NULL) == 1 &&
                 memcmp(hash, bytes.data + bytes.size - SHA1_SIZE, SHA1_SIZE) == 0;
    expect(self, whole, entry->path, "was altered: its checksum does not hold");
    EPG_AUTO_FREE char *base = epg_strndup(entry->name, strlen("pack-") + HEX);
    EPG_AUTO_FREE char *other = epg_format("%s%s", base, is_index ? ".pack" : ".idx");
    EPG_AUTO_FREE char *path = epg_format("objects/pack/%s", other);
    bool there = faccessat(entry->dir, other, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    expect(self, there || !self->check->settled, path, "is missing"); /* a writer that was cut off leaves one of two */
}

static bool check_pack(checker *self, const epg_tree_entry *entry)
{
    static const char begin[] = "objects/pack/pack-";
    const char *hex = entry->path + sizeof begin - 1;
    if (!epg_starts_with(entry->path, begin) || !is_hex(hex, HEX)) {
        return false;
    }
    bool is_index = strcmp(hex + HEX, ".idx") == 0;
    if (!is_index && strcmp(hex + HEX, ".pack") != 0) {
        return false;
    }
    check_pack_file(self, entry, is_index);
    return true;
}

/* An object that a user's git wrote; what it holds is checked when something reaches it. */
static bool is_loose_object(const char *path)
{
    static const char begin[] = "objects/";
    const char *hex = path + sizeof begin - 1;
    return epg_starts_with(path, begin) && is_hex(hex, 2) && hex[2] == '/' && is_hex(hex + 3, HEX - 2) &&
           hex[3 + HEX - 2] == '\0';
}

static void check_known(checker *self, const char *reference, const char *path)
{
    bool known = strcmp(reference, EPG_STORE_MAIN) == 0 || strcmp(reference, EPG_STORE_NOTES) == 0 ||
                 (epg_starts_with(reference, EPG_STORE_TAGS) &&
                  self->check->known(self->check->context, reference + strlen(EPG_STORE_TAGS)));
    EPG_AUTO_FREE char *what = epg_format("holds the reference %s, which is not of the Host's making", reference);
    expect(self, known, path, strcmp(path, reference) == 0 ? "is a reference that is not of the Host's making" : what);
}

static void check_reference(checker *self, const epg_tree_entry *entry)
{
    EPG_AUTO_BUFFER text = {0};
    bool whole = epg_file_read(entry->dir, entry->name, SMALL_MAX, &text, NULL) == EPG_OK && text.size == HEX + 1 &&
                 is_hex(epg_buffer_cstr(&text), HEX) && text.data[HEX] == '\n';
    expect(self, whole, entry->path, "is not a reference as the Host writes it");
    check_known(self, entry->path, entry->path);
}

static void visit_packed(void *context, const char *name)
{
    check_known(context, name, "packed-refs");
}

static void check_packed_references(checker *self)
{
    epg_error why = {.text = ""};
    bool read = epg_store_each_packed(self->store, visit_packed, self, &why) == EPG_OK;
    expect(self, read, "packed-refs", why.text);
}

/* What a write that goes on, or whose writer died, has there for a while. */
static bool is_temporary(const char *path)
{
    return epg_ends_with(path, ".lock") || epg_starts_with(path, "objects/pack/tmp_");
}

static epg_tree_step visit_file(void *context, const epg_tree_entry *entry, epg_code *code, epg_error *err)
{
    checker *self = context;
    (void)code;
    (void)err;
    if (S_ISDIR(entry->info.st_mode)) {
        return EPG_TREE_CONTINUE;
    }
    const char *content = epg_store_fixed_content(entry->path);
    if (!S_ISREG(entry->info.st_mode)) {
        fault(self, entry->path, "is no regular file");
    } else if (content != NULL) {
        check_fixed(self, entry, content);
    } else if (strcmp(entry->path, "packed-refs") == 0) {
        check_packed_references(self);
    } else if (!self->check->settled && is_temporary(entry->path)) {
        self->checks++;
    } else if (epg_starts_with(entry->path, "refs/")) {
        check_reference(self, entry);
    } else if (!check_pack(self, entry) && !is_loose_object(entry->path)) {
        fault(self, entry->path, "is not of the Host's making");
    }
    return EPG_TREE_CONTINUE;
}

/* --- objects --- */

static int compare_ids(const void *a, const void *b)
{
    return memcmp(((const git_oid *)a)->id, ((const git_oid *)b)->id, GIT_OID_RAWSZ);
}

static void reach(checker *self, const git_oid *id)
{
    if (tfind(id, &self->seen, compare_ids) != NULL) {
        return;
    }
    git_oid *own = epg_alloc(sizeof *own);
    *own = *id;
    if (tsearch(own, &self->seen, compare_ids) == NULL) {
        abort(); /* out of memory */
    }
    if (self->depth == self->capacity) {
        self->capacity = self->capacity == 0 ? 256 : 2 * self->capacity;
        self->stack = epg_grow_array(self->stack, self->capacity, sizeof *self->stack);
    }
    self->stack[self->depth++] = *id;
}

static bool reach_from_commit(checker *self, const git_oid *id)
{
    EPG_AUTO_GIT(git_commit) *commit = NULL;
    if (git_commit_lookup(&commit, self->store->repo, id) != 0) {
        return false;
    }
    reach(self, git_commit_tree_id(commit));
    for (unsigned i = 0; i < git_commit_parentcount(commit); i++) {
        reach(self, git_commit_parent_id(commit, i));
    }
    return true;
}

static bool reach_from_tree(checker *self, const git_oid *id)
{
    EPG_AUTO_GIT(git_tree) *tree = NULL;
    if (git_tree_lookup(&tree, self->store->repo, id) != 0) {
        return false;
    }
    for (size_t i = 0; i < git_tree_entrycount(tree); i++) {
        reach(self, git_tree_entry_id(git_tree_entry_byindex(tree, i)));
    }
    return true;
}

/* libgit2 compares what it reads with its id. */
static void read_object(checker *self, const git_oid *id)
{
    EPG_AUTO_GIT(git_odb_object) *object = NULL;
    bool sound = git_odb_read(&object, self->store->odb, id) == 0;
    if (sound && git_odb_object_type(object) == GIT_OBJECT_COMMIT) {
        sound = reach_from_commit(self, id);
    } else if (sound && git_odb_object_type(object) == GIT_OBJECT_TREE) {
        sound = reach_from_tree(self, id);
    }
    self->checks++;
    if (!sound) {
        char hex[EPG_OBJECT_ID_TEXT];
        EPG_AUTO_FREE char *path = epg_format("objects %s", git_oid_tostr(hex, sizeof hex, id));
        fault(self, path, "is missing or was altered");
    }
}

static void check_objects(checker *self, const char *reference)
{
    git_oid id;
    if (epg_store_get_ref(self->store, reference, &id, NULL) == EPG_OK) {
        reach(self, &id);
    }
    while (self->depth > 0) {
        git_oid next = self->stack[--self->depth];
        read_object(self, &next);
    }
}

/* Each snapshot is the child of the one before, and main is the newest: so main reaches all. A Host that was cut off,
 * or works on while we read, may have got further. */
static void check_main(checker *self)
{
    git_oid main;
    git_oid newest;
    EPG_AUTO_FREE char *tag = epg_format(EPG_STORE_TAGS "%s", self->check->newest);
    bool good = epg_store_get_ref(self->store, EPG_STORE_MAIN, &main, NULL) == EPG_OK &&
                epg_store_get_ref(self->store, tag, &newest, NULL) == EPG_OK;
    if (good && git_oid_equal(&main, &newest) == 0) {
        good = !self->check->settled && git_graph_descendant_of(self->store->repo, &main, &newest) == 1;
    }
    expect(self, good, EPG_STORE_MAIN, "does not name the newest snapshot");
}

epg_code epg_store_check_all(epg_store *store, const epg_store_check *check, uint64_t *checks, epg_error *err)
{
    checker self = {.store = store, .check = check};
    epg_code code = EPG_OK;
    if (!check->foreign) {
        code = epg_tree_walk(store->directory, visit_file, &self, err);
        check_fixed_there(&self);
    }
    if (code == EPG_OK) {
        check_main(&self);
        check_objects(&self, EPG_STORE_MAIN);
        check_objects(&self, EPG_STORE_NOTES);
        *checks += self.checks;
    }
    tdestroy(self.seen, free);
    free(self.stack);
    return code;
}
