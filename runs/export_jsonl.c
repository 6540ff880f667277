/* The JSONL form: see export.h. Every line has "schema" (the first), "type", and what it is about under its name. */
#include "runs/export_internal.h"

#define SCHEMA "evopolicygym/trajectory/v1"

static void open_line(epg_export_state *state, epg_json_writer *writer)
{
    epg_json_begin(writer, &state->out, 0);
    epg_json_object(writer, NULL);
}

static void close_line(epg_export_state *state, epg_json_writer *writer)
{
    epg_json_end(writer);
    epg_json_finish(writer);
    (void)epg_buffer_byte(&state->out, '\n');
}

static epg_code begin(void *form, epg_export_state *state, const char *task, epg_error *err)
{
    (void)form;
    (void)err;
    epg_json_writer writer;
    open_line(state, &writer);
    epg_config_to_json(&state->reading->history.config, &writer, "config");
    epg_json_put_text(&writer, "initial_program_digest", state->reading->history.initial_digest);
    epg_summary_run_json(state->reading, &writer, "run");
    epg_json_put_text(&writer, "schema", SCHEMA);
    epg_json_put_text(&writer, "task", task);
    epg_json_put_text(&writer, "type", "run");
    close_line(state, &writer);
    return EPG_OK;
}

static epg_code agent(void *form, epg_export_state *state, const json_t *event, epg_error *err)
{
    (void)form;
    (void)err;
    epg_json_writer writer;
    open_line(state, &writer);
    epg_json_put_json(&writer, "agent", event);
    epg_json_put_text(&writer, "type", "agent");
    close_line(state, &writer);
    return EPG_OK;
}

static epg_code submission(void *form, epg_export_state *state, uint64_t number, const json_t *feedback, epg_error *err)
{
    (void)form;
    (void)err;
    epg_json_writer writer;
    open_line(state, &writer);
    if (feedback != NULL) {
        epg_json_put_json(&writer, "feedback", feedback);
    } else {
        epg_json_put_null(&writer, "feedback");
    }
    epg_summary_submission_json(state->reading, number, &state->marks[number - 1], &writer, "submission");
    epg_json_put_text(&writer, "type", "submission");
    close_line(state, &writer);
    return EPG_OK;
}

static epg_code end(void *form, epg_export_state *state, epg_error *err)
{
    (void)form;
    (void)err;
    epg_json_writer writer;
    open_line(state, &writer);
    epg_summary_run_json(state->reading, &writer, "outcome");
    epg_json_put_text(&writer, "type", "outcome");
    close_line(state, &writer);
    return EPG_OK;
}

epg_code epg_export_jsonl(epg_export_state *state, epg_error *err)
{
    static const epg_export_form form = {begin, agent, submission, end};
    return epg_export_walk(state, &form, NULL, err);
}
