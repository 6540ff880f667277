/* RUN/evidence.jsonl: what only the Host should know. One object a line, schema `evopolicygym/host-evidence/v1`, never
 * shown to an Agent; nothing else depends on it, so it is written without syncing and a failed write is passed over. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "runs/coordinator.h"
#include "system/io.h"

static const char schema[] = "evopolicygym/host-evidence/v1";
enum { LOG_KEPT = 16 * 1024 };

epg_code epg_run_evidence_open(epg_run_state *self, epg_error *err)
{
    self->evidence_log = epg_io_open(self->run, "evidence.jsonl", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    if (self->evidence_log < 0) {
        (void)epg_fail_errno(err, errno, "can't make evidence.jsonl");
        return epg_fail_as(err, EPG_ERR_PUBLICATION, "evidence");
    }
    return EPG_OK;
}

static void write_line(epg_run_state *self, epg_json_writer *writer, epg_buffer *line)
{
    epg_json_end(writer);
    epg_json_finish(writer);
    (void)epg_buffer_byte(line, '\n');
    (void)epg_io_write_all(self->evidence_log, line->data, line->size);
}

static void begin(epg_json_writer *writer, epg_buffer *line)
{
    epg_json_begin(writer, line, 0);
    epg_json_object(writer, NULL);
}

static void put_printable(epg_json_writer *writer, const char *key, const char *text)
{
    if (text == NULL) {
        epg_json_put_null(writer, key);
        return;
    }
    size_t size = strnlen(text, LOG_KEPT);
    EPG_AUTO_FREE char *safe = epg_printable(text, size);
    epg_json_put_text(writer, key, safe);
}

void epg_run_evidence_episode(epg_run_state *self, const char *what, const epg_episode_result *episode)
{
    bool leftover = episode->ended.orphans > 0 || !episode->ended.complete;
    if (episode->failure == EPG_POLICY_OK && !leftover && episode->log == NULL) {
        return;
    }
    EPG_AUTO_BUFFER line = {0};
    epg_json_writer writer;
    begin(&writer, &line);
    epg_json_put_text(&writer, "cause", epg_policy_cause_name(episode->cause));
    put_printable(&writer, "detail", episode->detail);
    epg_json_object(&writer, "ended");
    epg_json_put_bool(&writer, "complete", episode->ended.complete);
    epg_json_put_u64(&writer, "killed", episode->ended.killed);
    epg_json_put_u64(&writer, "left_behind", episode->ended.orphans);
    epg_json_put_u64(&writer, "terminated", episode->ended.terminated);
    epg_json_end(&writer);
    epg_json_put_u64(&writer, "episode_index", episode->index);
    epg_json_put_text(&writer, "failure", epg_policy_failure_name(episode->failure));
    epg_json_put_text(&writer, "killed_by", episode->killed_by);
    epg_json_put_text(&writer, "kind", "episode");
    put_printable(&writer, "output", episode->log);
    epg_json_put_text(&writer, "schema", schema);
    epg_json_put_text(&writer, "subject", what);
    epg_json_put_i64(&writer, "time_unix_ns", epg_unix_ns());
    write_line(self, &writer, &line);
}

void epg_run_evidence_fault(epg_run_state *self, const char *what, const epg_error *fault)
{
    EPG_AUTO_BUFFER line = {0};
    epg_json_writer writer;
    begin(&writer, &line);
    epg_json_put_text(&writer, "code", epg_code_name(fault->code));
    epg_json_put_text(&writer, "kind", "fault");
    epg_json_put_text(&writer, "schema", schema);
    epg_json_put_text(&writer, "subject", what);
    put_printable(&writer, "text", fault->text);
    epg_json_put_i64(&writer, "time_unix_ns", epg_unix_ns());
    write_line(self, &writer, &line);
}

void epg_run_evidence_traces(epg_run_state *self, const char *what, uint64_t room)
{
    EPG_AUTO_BUFFER line = {0};
    epg_json_writer writer;
    begin(&writer, &line);
    epg_json_put_u64(&writer, "bytes_left", room);
    epg_json_put_text(&writer, "kept", "digests");
    epg_json_put_text(&writer, "kind", "traces");
    epg_json_put_text(&writer, "schema", schema);
    epg_json_put_text(&writer, "subject", what);
    epg_json_put_i64(&writer, "time_unix_ns", epg_unix_ns());
    write_line(self, &writer, &line);
}

void epg_run_evidence_findings(epg_run_state *self, const epg_evidence_list *found, size_t from)
{
    for (size_t i = from; i < found->count; i++) {
        EPG_AUTO_BUFFER line = {0};
        epg_json_writer writer;
        begin(&writer, &line);
        epg_json_put_text(&writer, "kind", "tampering");
        put_printable(&writer, "path", found->items[i].path);
        epg_json_put_text(&writer, "schema", schema);
        epg_json_put_i64(&writer, "time_unix_ns", epg_unix_ns());
        put_printable(&writer, "what", found->items[i].what);
        write_line(self, &writer, &line);
        epg_progress_line(&self->progress, "tampering", "the Agent touched what is not its own: %s %s",
                          found->items[i].path, found->items[i].what);
    }
}
