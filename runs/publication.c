#include "runs/publication.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs/feedback.h"
#include "system/files.h"
#include "system/io.h"
#include "system/tree.h"

struct epg_publisher {
    int run;
    bool checks; /* and makes nothing */
    char feedback_sha256[EPG_SHA256_HEX];
    epg_availability latest;
};

epg_code epg_publisher_open(int run, epg_publisher **out, epg_error *err)
{
    EPG_AUTO_CLOSE int staging = -1;
    EPG_TRY(epg_contested_staging(run, &staging, err));
    *out = epg_alloc(sizeof **out);
    (*out)->run = run;
    return EPG_OK;
}

void epg_publisher_open_to_check(int run, epg_publisher **out)
{
    *out = epg_alloc(sizeof **out);
    (*out)->run = run;
    (*out)->checks = true;
}

void epg_publisher_close(epg_publisher *publisher)
{
    if (publisher != NULL) {
        epg_availability_free(&publisher->latest);
        free(publisher);
    }
}

bool epg_publisher_checks(const epg_publisher *publisher)
{
    return publisher->checks;
}

int epg_publisher_run(const epg_publisher *publisher)
{
    return publisher->run;
}

const char *epg_publisher_feedback_sha256(const epg_publisher *publisher)
{
    return publisher->feedback_sha256;
}

epg_availability epg_publisher_take_availability(epg_publisher *publisher)
{
    epg_availability latest = publisher->latest;
    publisher->latest = (epg_availability){0};
    return latest;
}

/* --- The two copies' directories --- */

const char *epg_copies_path(epg_copy copy)
{
    return copy == EPG_COPY_HOST ? "submissions" : "workspace/feedback/submissions";
}

epg_code epg_publisher_open_feedback(epg_publisher *publisher, int *out, epg_evidence_list *evidence, epg_error *err)
{
    EPG_AUTO_CLOSE int workspace = -1;
    int run = publisher->run;
    EPG_TRY(epg_contested_directory(run, run, "workspace", 0700, "workspace", &workspace, evidence, err));
    return epg_contested_directory(run, workspace, "feedback", 0700, "workspace/feedback", out, evidence, err);
}

epg_code epg_publisher_open_copies(epg_publisher *publisher, epg_copy copy, int *out, epg_evidence_list *evidence,
                                   epg_error *err)
{
    int run = publisher->run;
    const char *path = epg_copies_path(copy);
    if (publisher->checks) {
        return epg_dir_open_beneath(run, path, out, err);
    }
    if (copy == EPG_COPY_HOST) {
        return epg_contested_directory(run, run, "submissions", 0700, path, out, evidence, err);
    }
    EPG_AUTO_CLOSE int feedback = -1;
    EPG_TRY(epg_publisher_open_feedback(publisher, &feedback, evidence, err));
    return epg_contested_directory(run, feedback, "submissions", 0755, path, out, evidence, err);
}

/* --- Staging --- */

/* What is written, the same for both copies. */
typedef struct content {
    char id[EPG_SUBMISSION_ID_TEXT];
    const epg_program *program;
    epg_program artifacts; /* a view: paths and contents are the Feedback's */
    epg_buffer feedback;
    epg_buffer availability;
} content;

static void content_cleanup(content *c)
{
    free(c->artifacts.files);
    epg_buffer_free(&c->feedback);
    epg_buffer_free(&c->availability);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const epg_program_file *)a)->path, ((const epg_program_file *)b)->path);
}

/* Artifacts are laid down as a Program is: files in the order of their paths. */
static void view_artifacts(const epg_feedback *feedback, epg_program *out)
{
    *out = (epg_program){.files = epg_alloc_array(feedback->artifact_count, sizeof *out->files),
                         .count = feedback->artifact_count};
    for (size_t i = 0; i < out->count; i++) {
        out->files[i] =
            (epg_program_file){.path = feedback->artifacts[i].name, .content = feedback->artifacts[i].content};
    }
    if (out->count > 1) {
        qsort(out->files, out->count, sizeof *out->files, by_path);
    }
}

static epg_code stage_files(int dir, const char *name, const epg_program *files, epg_error *err)
{
    EPG_AUTO_CLOSE int below = -1;
    if (epg_io_mkdir(dir, name, 0700) != 0) {
        return epg_fail_errno(err, errno, "can't make '%s'", name);
    }
    EPG_TRY(epg_dir_open(dir, name, &below, err));
    return epg_program_materialise(files, below, 0444, 0555, false, err);
}

/* Makes staging/name with all of one copy in it. Its mode is still 0755: a directory that is to get another
 * parent must be writable to who moves it. */
static epg_code stage_copy(int staging, const char *name, const content *c, bool with_program, int *out, epg_error *err)
{
    EPG_AUTO_CLOSE int top = -1;
    EPG_TRY(epg_tree_remove(staging, name, 0, err)); /* what a Host that died had begun */
    if (epg_io_mkdir(staging, name, 0755) != 0) {
        return epg_fail_errno(err, errno, "can't make 'staging/%s'", name);
    }
    EPG_TRY(epg_dir_open(staging, name, &top, err));
    if (with_program) {
        EPG_TRY(stage_files(top, "program", c->program, err));
    }
    EPG_TRY(stage_files(top, "artifacts", &c->artifacts, err));
    EPG_TRY(epg_file_write_new(top, "feedback.json", epg_buffer_span(&c->feedback), 0444, false, err));
    EPG_TRY(epg_file_write_new(top, "availability.json", epg_buffer_span(&c->availability), 0444, false, err));
    *out = epg_take_fd(&top);
    return EPG_OK;
}

/* --- Installing --- */

/* An unpublished leftover of a Host that died between the two renames. The Host's copy is installed first, so where it
 * is there, what stands at the Agent's is ours as well and no obstacle of the Agent's making. */
static epg_code remove_leftover(int hosts, int agents, const char *id, epg_error *err)
{
    struct stat info;
    if (fstatat(hosts, id, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? EPG_OK : epg_fail_errno(err, errno, "can't look at 'submissions/%s'", id);
    }
    EPG_TRY(epg_tree_remove(agents, id, 0, err));
    return epg_tree_remove(hosts, id, 0, err);
}

/* The last touch to an installed copy: read-only, and durable where it stands. Its own entries are synced only here,
 * after the rename: what is not yet told as published is made anew when a Run goes on, so before that tear nobody sees.
 */
static epg_code seal(int copy, int parent, epg_error *err)
{
    if (epg_io_fchmod(copy, 0555) != 0) {
        return epg_fail_errno(err, errno, "can't set the mode of a publication");
    }
    EPG_TRY(epg_dir_sync(copy, err));
    return epg_dir_sync(parent, err);
}

static epg_code install_both(epg_publisher *publisher, int staging, const content *c, epg_evidence_list *evidence,
                             epg_error *err)
{
    EPG_AUTO_CLOSE int hosts = -1;
    EPG_AUTO_CLOSE int agents = -1;
    EPG_AUTO_CLOSE int host = -1;
    EPG_AUTO_CLOSE int agent = -1;
    EPG_AUTO_FREE char *host_path = epg_format("%s/%s", epg_copies_path(EPG_COPY_HOST), c->id);
    EPG_AUTO_FREE char *agent_path = epg_format("%s/%s", epg_copies_path(EPG_COPY_AGENT), c->id);
    int run = publisher->run;
    EPG_TRY(stage_copy(staging, "host", c, true, &host, err));
    EPG_TRY(stage_copy(staging, "agent", c, false, &agent, err));
    EPG_TRY(epg_staging_sync(staging, err));
    EPG_TRY(epg_publisher_open_copies(publisher, EPG_COPY_HOST, &hosts, evidence, err));
    EPG_TRY(epg_publisher_open_copies(publisher, EPG_COPY_AGENT, &agents, evidence, err));
    EPG_TRY(remove_leftover(hosts, agents, c->id, err));
    EPG_TRY(epg_contested_install(run, staging, "host", hosts, c->id, host_path, evidence, err));
    epg_code code = epg_contested_install(run, staging, "agent", agents, c->id, agent_path, evidence, err);
    if (code == EPG_OK) {
        code = seal(host, hosts, err);
    }
    if (code == EPG_OK) {
        code = seal(agent, agents, err);
    }
    if (code != EPG_OK) { /* both or neither */
        (void)epg_tree_remove(agents, c->id, 0, NULL);
        (void)epg_tree_remove(hosts, c->id, 0, NULL);
    }
    return code;
}

static epg_code publish(epg_publisher *publisher, const epg_submission *submission, const epg_program *program,
                        const epg_evaluation_result *result, epg_evidence_list *evidence, epg_error *err)
{
    EPG_AUTO_CLOSE int staging = -1;
    content c EPG_CLEANUP(content_cleanup) = {.program = program};
    size_t count = result->feedback.artifact_count;
    char(*hashes)[EPG_SHA256_HEX] EPG_CLEANUP(epg_free_cleanup) = epg_alloc_array(count, sizeof *hashes);
    epg_availability availability EPG_CLEANUP(epg_availability_free) = {0};
    epg_submission_id(submission->number, c.id);
    epg_feedback_hash(&result->feedback, hashes);
    epg_feedback_to_json(submission, result, (const char(*)[EPG_SHA256_HEX])hashes, &c.feedback);
    epg_availability_of(submission->number, &result->feedback, (const char(*)[EPG_SHA256_HEX])hashes, &availability);
    epg_availability_to_json(&availability, &c.availability);
    view_artifacts(&result->feedback, &c.artifacts);
    EPG_TRY(epg_contested_staging(publisher->run, &staging, err));
    epg_code code = install_both(publisher, staging, &c, evidence, err);
    if (code != EPG_OK) {
        (void)epg_tree_remove(staging, "host", 0, NULL);
        (void)epg_tree_remove(staging, "agent", 0, NULL);
        return code;
    }
    uint8_t hash[EPG_SHA256_SIZE];
    epg_sha256_once(c.feedback.data, c.feedback.size, hash);
    epg_hex(hash, sizeof hash, publisher->feedback_sha256);
    epg_availability_free(&publisher->latest);
    publisher->latest = availability;
    availability = (epg_availability){0};
    return EPG_OK;
}

epg_code epg_publish(epg_publisher *publisher, const epg_submission *submission, const epg_program *program,
                     const epg_evaluation_result *result, epg_evidence_list *evidence, epg_error *err)
{
    char id[EPG_SUBMISSION_ID_TEXT];
    epg_submission_id(submission->number, id);
    epg_code code = publish(publisher, submission, program, result, evidence, err);
    return code == EPG_OK ? EPG_OK : epg_fail_as(err, EPG_ERR_PUBLICATION, "publishing %s", id);
}

epg_code epg_publish_latest(epg_publisher *publisher, const epg_submission *submission, epg_evidence_list *evidence,
                            epg_error *err)
{
    EPG_AUTO_CLOSE int feedback = -1;
    EPG_AUTO_BUFFER document = {0};
    epg_latest_to_json(submission, &document);
    epg_code code = epg_publisher_open_feedback(publisher, &feedback, evidence, err);
    if (code == EPG_OK) {
        code = epg_contested_replace(publisher->run, feedback, "latest.json", epg_buffer_span(&document), 0444,
                                     "workspace/feedback/latest.json", evidence, err);
    }
    return code == EPG_OK ? EPG_OK : epg_fail_as(err, EPG_ERR_PUBLICATION, "advancing latest.json");
}
