#include "runs/retention.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/files.h"
#include "system/io.h"

enum { AVAILABILITY_MAX = 16 * 1024 * 1024 };

typedef struct kept_bulk {
    uint64_t number;
    uint64_t bytes; /* in both copies */
} kept_bulk;

struct epg_retention {
    uint64_t limit;
    uint64_t bytes; /* kept, in both copies */
    /* Submissions that still have bulk artifacts, oldest first, from `first` on. Which they are is read back when they
     * go: a long Run has many. */
    kept_bulk *kept;
    size_t first;
    size_t count; /* of all in `kept`, with those before `first` */
    size_t room;
    uint64_t *evicted; /* numbers, in order */
    size_t evicted_count;
    size_t evicted_room;
    uint64_t newest;
};

epg_retention *epg_retention_new(uint64_t limit_bytes)
{
    epg_retention *retention = epg_alloc(sizeof *retention);
    retention->limit = limit_bytes;
    return retention;
}

void epg_retention_free(epg_retention *retention)
{
    if (retention != NULL) {
        free(retention->kept);
        free(retention->evicted);
        free(retention);
    }
}

uint64_t epg_retention_bytes(const epg_retention *retention)
{
    return retention->bytes;
}

static void remember_evicted(epg_retention *retention, uint64_t number)
{
    if (retention->evicted_count == retention->evicted_room) {
        retention->evicted_room = retention->evicted_room == 0 ? 16 : 2 * retention->evicted_room;
        retention->evicted = epg_grow_array(retention->evicted, retention->evicted_room, sizeof(uint64_t));
    }
    retention->evicted[retention->evicted_count++] = number;
}

static void take_up(epg_retention *retention, const epg_availability *availability)
{
    uint64_t bytes = 2 * epg_availability_bytes(availability);
    retention->newest = availability->number;
    bool any = false;
    for (size_t i = 0; i < availability->count; i++) {
        any = any || availability->items[i].available;
    }
    if (!any) {
        if (availability->count > 0) {
            remember_evicted(retention, availability->number);
        }
        return;
    }
    if (retention->count == retention->room) {
        size_t live = retention->count - retention->first;
        if (retention->first < live + 1) { /* mostly live: grow; else the space of those that went is used again */
            retention->room = retention->room == 0 ? 16 : 2 * retention->room;
            retention->kept = epg_grow_array(retention->kept, retention->room, sizeof *retention->kept);
        }
        memmove(retention->kept, retention->kept + retention->first, live * sizeof *retention->kept);
        retention->first = 0;
        retention->count = live;
    }
    retention->kept[retention->count++] = (kept_bulk){availability->number, bytes};
    retention->bytes += bytes;
}

/* --- Evicting one submission --- */

static epg_code fail_at(epg_error *err, const char *doing, const char *path)
{
    return epg_fail_errno(err, errno, "can't %s '%s'", doing, path);
}

static bool has_mode(int fd, mode_t mode)
{
    struct stat info;
    return fstat(fd, &info) == 0 && (info.st_mode & 07777) == mode;
}

/* Removes one artifact below the copy open at `top`; gone already is success. */
static epg_code remove_artifact(int top, const char *name, const char *path, epg_error *err)
{
    EPG_AUTO_CLOSE int dir = -1;
    EPG_AUTO_FREE char *whole = epg_format("artifacts/%s", name);
    char *slash = strrchr(whole, '/');
    struct stat info;
    *slash = '\0';
    EPG_TRY(epg_dir_open_beneath(top, whole, &dir, err));
    bool gone = fstatat(dir, slash + 1, &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
    if (gone && has_mode(dir, 0555)) {
        return EPG_OK;
    }
    if (epg_io_fchmod(dir, 0755) != 0) {
        return fail_at(err, "set the mode of", path);
    }
    epg_code code = epg_io_unlink(dir, slash + 1, 0) == 0 || errno == ENOENT ? EPG_OK : fail_at(err, "remove", path);
    if (epg_io_fchmod(dir, 0555) != 0 && code == EPG_OK) {
        code = fail_at(err, "set the mode of", path);
    }
    return code == EPG_OK ? epg_dir_sync(dir, err) : code;
}

/* availability.json first, then the files, so that it never claims what is gone. */
static epg_code evict_within(int run, int top, const epg_availability *gone, const char *path,
                             epg_evidence_list *evidence, epg_error *err)
{
    EPG_AUTO_BUFFER document = {0};
    EPG_AUTO_FREE char *document_path = epg_format("%s/availability.json", path);
    epg_availability_to_json(gone, &document);
    if (epg_io_fchmod(top, 0755) != 0) {
        return fail_at(err, "set the mode of", path);
    }
    epg_code code = epg_contested_replace(run, top, "availability.json", epg_buffer_span(&document), 0444,
                                          document_path, evidence, err);
    if (epg_io_fchmod(top, 0555) != 0 && code == EPG_OK) {
        code = fail_at(err, "set the mode of", path);
    }
    for (size_t i = 0; i < gone->count && code == EPG_OK; i++) {
        code = gone->items[i].available ? EPG_OK : remove_artifact(top, gone->items[i].name, path, err);
    }
    return code;
}

static epg_code evict_copy(epg_publisher *publisher, epg_copy copy, const epg_availability *gone,
                           epg_evidence_list *evidence, epg_error *err)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    EPG_AUTO_CLOSE int copies = -1;
    EPG_AUTO_CLOSE int top = -1;
    epg_submission_id(gone->number, id);
    EPG_AUTO_FREE char *path = epg_format("%s/%s", epg_copies_path(copy), id);
    EPG_TRY(epg_publisher_open_copies(publisher, copy, &copies, evidence, err));
    epg_error why = {0};
    epg_code code = epg_dir_open(copies, id, &top, &why);
    if (code == EPG_OK) {
        code = evict_within(epg_publisher_run(publisher), top, gone, path, evidence, &why);
    }
    if (code != EPG_OK && copy == EPG_COPY_AGENT) {
        /* The Agent has been at its copy. What it does there is its own loss. */
        epg_evidence_note(evidence, path, "bulk artifacts could not be evicted: %s", why.text);
        return EPG_OK;
    }
    return code == EPG_OK ? EPG_OK : epg_fail(err, code, "evicting from %s: %s", path, why.text);
}

static epg_code read_host_copy(epg_publisher *publisher, uint64_t number, epg_availability *out, epg_error *err)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    EPG_AUTO_CLOSE int copies = -1;
    EPG_AUTO_CLOSE int top = -1;
    EPG_AUTO_BUFFER text = {0};
    EPG_AUTO_JSON *document = NULL;
    epg_submission_id(number, id);
    EPG_TRY(epg_publisher_open_copies(publisher, EPG_COPY_HOST, &copies, NULL, err));
    EPG_TRY(epg_dir_open(copies, id, &top, err));
    EPG_TRY(epg_file_read(top, "availability.json", AVAILABILITY_MAX, &text, err));
    EPG_TRY(epg_json_parse(epg_buffer_span(&text), "availability.json", &document, err));
    return epg_availability_from_json(document, number, out, err);
}

static epg_code evict_oldest(epg_retention *retention, epg_publisher *publisher, epg_evidence_list *evidence,
                             epg_error *err)
{
    const kept_bulk *oldest = &retention->kept[retention->first];
    epg_availability gone EPG_CLEANUP(epg_availability_free) = {0};
    if (read_host_copy(publisher, oldest->number, &gone, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_PUBLICATION, "evicting from submission %llu",
                           (unsigned long long)oldest->number);
    }
    uint64_t bytes = 0;
    for (size_t i = 0; i < gone.count; i++) {
        gone.items[i].available = false;
        bytes += 2 * gone.items[i].size;
    }
    if (bytes != oldest->bytes) { /* what it does not name would stay, and be counted as gone */
        return epg_fail(err, EPG_ERR_PUBLICATION,
                        "evicting from submission %llu: its availability.json was altered in the Run's directory",
                        (unsigned long long)oldest->number);
    }
    EPG_TRY(evict_copy(publisher, EPG_COPY_HOST, &gone, evidence, err));
    EPG_TRY(evict_copy(publisher, EPG_COPY_AGENT, &gone, evidence, err));
    retention->bytes -= oldest->bytes;
    remember_evicted(retention, oldest->number);
    retention->first++;
    return EPG_OK;
}

/* --- The whole --- */

void epg_retention_to_json(const epg_retention *retention, epg_buffer *out)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_json_writer json;
    epg_json_begin(&json, out, 2);
    epg_json_object(&json, NULL);
    epg_json_array(&json, "evicted_submission_ids");
    for (size_t i = 0; i < retention->evicted_count; i++) {
        epg_submission_id(retention->evicted[i], id);
        epg_json_put_text(&json, NULL, id);
    }
    epg_json_end(&json);
    epg_json_put_u64(&json, "limit_bytes", retention->limit);
    epg_json_put_bool(&json, "over_limit_to_preserve_latest", retention->bytes > retention->limit);
    epg_submission_id(retention->newest, id);
    epg_json_put_text(&json, "protected_submission_id", id);
    epg_json_put_u64(&json, "retained_bytes_across_host_and_workspace", retention->bytes);
    epg_json_put_text(&json, "schema", "evopolicygym/bulk-feedback-retention/v1");
    epg_json_put_text(&json, "status", "complete");
    epg_json_end(&json);
    epg_json_finish(&json);
}

static bool is_removed(int top, const char *name)
{
    EPG_AUTO_CLOSE int dir = -1;
    EPG_AUTO_FREE char *whole = epg_format("artifacts/%s", name);
    char *slash = strrchr(whole, '/');
    struct stat info;
    *slash = '\0';
    return epg_dir_open_beneath(top, whole, &dir, NULL) == EPG_OK && has_mode(dir, 0555) &&
           fstatat(dir, slash + 1, &info, AT_SYMLINK_NOFOLLOW) != 0;
}

/* Whether nothing is left to do for what the Host's availability.json tells to be gone. */
static bool is_evicted(int top, const epg_availability *availability)
{
    EPG_AUTO_BUFFER expected = {0};
    EPG_AUTO_BUFFER found = {0};
    epg_availability_to_json(availability, &expected);
    bool done = has_mode(top, 0555) &&
                epg_file_read(top, "availability.json", AVAILABILITY_MAX, &found, NULL) == EPG_OK &&
                epg_span_equal(epg_buffer_span(&expected), epg_buffer_span(&found));
    for (size_t i = 0; i < availability->count && done; i++) {
        done = availability->items[i].available || is_removed(top, availability->items[i].name);
    }
    return done;
}

/* Goes on with an eviction in whose middle a Host died. */
static epg_code finish_eviction(epg_publisher *publisher, epg_copy copy, const epg_availability *availability,
                                epg_error *err)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    EPG_AUTO_CLOSE int copies = -1;
    EPG_AUTO_CLOSE int top = -1;
    epg_submission_id(availability->number, id);
    EPG_TRY(epg_publisher_open_copies(publisher, copy, &copies, NULL, err));
    if (epg_dir_open(copies, id, &top, NULL) != EPG_OK || is_evicted(top, availability)) {
        return EPG_OK;
    }
    return evict_copy(publisher, copy, availability, NULL, err);
}

static epg_code finish_evictions(epg_publisher *publisher, const epg_availability *availability, epg_error *err)
{
    bool any_gone = false;
    for (size_t i = 0; i < availability->count; i++) {
        any_gone = any_gone || !availability->items[i].available;
    }
    if (!any_gone) {
        return EPG_OK;
    }
    EPG_TRY(finish_eviction(publisher, EPG_COPY_HOST, availability, err));
    return finish_eviction(publisher, EPG_COPY_AGENT, availability, err);
}

epg_code epg_retention_restore(epg_retention *retention, epg_publisher *publisher, uint64_t number, epg_error *err)
{
    epg_availability availability EPG_CLEANUP(epg_availability_free) = {0};
    if (read_host_copy(publisher, number, &availability, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_INVALID, "submission %llu", (unsigned long long)number);
    }
    EPG_TRY(finish_evictions(publisher, &availability, err));
    take_up(retention, &availability);
    return EPG_OK;
}

epg_code epg_retention_learn(epg_retention *retention, epg_publisher *publisher, uint64_t number, epg_error *err)
{
    epg_availability availability EPG_CLEANUP(epg_availability_free) = {0};
    EPG_TRY(read_host_copy(publisher, number, &availability, err));
    take_up(retention, &availability);
    return EPG_OK;
}

static epg_code apply(epg_retention *retention, epg_publisher *publisher, epg_evidence_list *evidence, epg_error *err)
{
    EPG_AUTO_CLOSE int feedback = -1;
    EPG_AUTO_BUFFER document = {0};
    while (retention->bytes > retention->limit && retention->first < retention->count &&
           retention->kept[retention->first].number != retention->newest) {
        EPG_TRY(evict_oldest(retention, publisher, evidence, err));
    }
    epg_retention_to_json(retention, &document);
    EPG_TRY(epg_publisher_open_feedback(publisher, &feedback, evidence, err));
    return epg_contested_replace(epg_publisher_run(publisher), feedback, "retention.json", epg_buffer_span(&document),
                                 0444, "workspace/feedback/retention.json", evidence, err);
}

epg_code epg_retention_apply(epg_retention *retention, epg_publisher *publisher, uint64_t number,
                             epg_evidence_list *evidence, epg_error *err)
{
    epg_availability availability EPG_CLEANUP(epg_availability_free) = epg_publisher_take_availability(publisher);
    if (retention->newest != number && availability.number == number) {
        take_up(retention, &availability);
    } else if (retention->newest != number) {
        EPG_TRY(epg_retention_restore(retention, publisher, number, err));
    }
    epg_code code = apply(retention, publisher, evidence, err);
    return code == EPG_OK ? EPG_OK : epg_fail_as(err, EPG_ERR_PUBLICATION, "bulk retention");
}
