/* The submissions of a report: facts, Episodes, what the Program changed, Feedback, Episodes to replay. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runs/report_parts.h"

enum { DIFF_MAX = 8 * 1024 * 1024, DIFF_SHOWN = 48 * 1000, FEEDBACK_SHOWN = 24 * 1000, REPLAY_SHOWN = 40 * 1000 };

typedef struct part {
    bool told; /* stands in the report */
    json_t *replay;
    json_t *feedback;
    epg_buffer diff;
} part;

typedef struct parts {
    const epg_reading *reading;
    epg_report_room *room;
    size_t count;
    epg_submission_mark *marks;
    part *items;
    bool no_snapshots;
} parts;

static void parts_free(parts *self)
{
    for (size_t i = 0; i < self->count; i++) {
        json_decref(self->items[i].replay);
        json_decref(self->items[i].feedback);
        epg_buffer_free(&self->items[i].diff);
    }
    free(self->items);
    free(self->marks);
}

static bool is_candidate(const epg_history *history, uint64_t number)
{
    bool found = history->selected == number;
    for (size_t i = 0; i < history->candidate_count; i++) {
        found = found || history->candidates[i] == number;
    }
    return found;
}

/* All, or when they are too many: the first, the last, candidates, what was best so far, and the rest evenly. */
static void choose(parts *self)
{
    size_t most = self->room->submissions;
    size_t told = 0;
    for (size_t i = 0; i < self->count; i++) {
        bool special = i == 0 || i + 1 == self->count || is_candidate(&self->reading->history, i + 1) ||
                       (self->marks[i].improves && told < most / 2);
        bool even = self->count <= most || i * (most / 2) / self->count != (i + 1) * (most / 2) / self->count;
        self->items[i].told = special || even;
        told += self->items[i].told;
    }
    self->room->submissions_left = self->count - told;
}

/* --- what is read of each --- */

static void read_diff(parts *self, size_t at)
{
    epg_error err;
    part *one = &self->items[at];
    if (self->marks[at].same || self->no_snapshots) {
        return;
    }
    one->diff.limit = DIFF_MAX;
    epg_code code = epg_reading_diff(self->reading, at, at + 1, &one->diff, &err);
    if (code == EPG_ERR_NOT_FOUND) {
        self->no_snapshots = true;
    } else if (code != EPG_OK) {
        epg_buffer_free(&one->diff);
        (void)epg_buffer_format(&one->diff, "(%s)", err.text);
    }
}

/* The submissions that matter most first, so that their Episodes have room: selected, best, last, first, candidates. */
static size_t rank(const parts *self, size_t at)
{
    const epg_history *history = &self->reading->history;
    if (history->selected == at + 1) {
        return 0;
    }
    if (self->marks[at].best) {
        return 1;
    }
    if (at == 0 || at + 1 == self->count) {
        return 2;
    }
    return is_candidate(history, at + 1) ? 3 : self->marks[at].improves ? 4 : at % 4 == 0 ? 5 : 6;
}

static void read_replays(parts *self, size_t wanted)
{
    for (size_t i = 0; i < self->count; i++) {
        part *one = &self->items[i];
        if (!one->told || one->feedback == NULL || rank(self, i) != wanted) {
            continue;
        }
        size_t room = self->room->replays < REPLAY_SHOWN ? self->room->replays : REPLAY_SHOWN;
        one->replay = epg_report_replay(self->reading, i + 1, one->feedback, room);
        if (one->replay != NULL && json_array_size(json_object_get(one->replay, "episodes")) == 0) {
            self->room->replays_left++;
        } else if (one->replay != NULL) {
            EPG_AUTO_FREE char *text = json_dumps(one->replay, JSON_COMPACT);
            size_t cost = text != NULL ? epg_report_cost(epg_span_text(text)) : 0;
            self->room->replays -= cost < self->room->replays ? cost : self->room->replays;
        }
    }
}

static void read_parts(parts *self)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->items[i].told) {
            (void)epg_reading_feedback(self->reading, i + 1, &self->items[i].feedback, NULL);
            read_diff(self, i);
        }
    }
    for (size_t wanted = 0; wanted <= 6; wanted++) {
        read_replays(self, wanted);
    }
}

/* --- what is written of each --- */

static size_t take_room(size_t *room, size_t left, size_t most)
{
    size_t fair = *room / left;
    size_t given = fair > most / 8 ? fair : most / 8; /* small ones leave room for large ones */
    given = given > most ? most : given;
    return given < *room ? given : *room;
}

static void spend(size_t *room, size_t cost)
{
    *room -= cost < *room ? cost : *room;
}

static void put_text(epg_json_writer *writer, const char *key, epg_span text, size_t *room, size_t left, size_t most,
                     uint64_t *cut)
{
    size_t before = writer->out->size;
    *cut += epg_report_put_text(writer, key, text, take_room(room, left, most)) > 0;
    spend(room, epg_report_cost(epg_span_of(writer->out->data + before, writer->out->size - before)));
}

static const char *outcome_of(const epg_episode_result *episode)
{
    return !episode->finished ? "unfinished" : epg_policy_failure_name(episode->failure);
}

/* Columns: failures {place: name}, indices, rewards, steps. `episodes` NULL: none is told. */
static void put_episodes(const epg_episode_result *episodes, size_t count, epg_report_room *room,
                         epg_json_writer *writer)
{
    count = episodes != NULL ? count : 0;
    size_t before = writer->out->size;
    size_t told = count * 24 <= room->episodes ? count : room->episodes / 24;
    room->episodes_left += count - told;
    epg_json_object(writer, "episodes");
    epg_json_array(writer, "failures");
    for (size_t i = 0; i < told; i++) {
        if (!episodes[i].finished || episodes[i].failure != EPG_POLICY_OK) {
            epg_json_array(writer, NULL);
            epg_json_put_u64(writer, NULL, i);
            epg_json_put_text(writer, NULL, outcome_of(&episodes[i]));
            epg_json_end(writer);
        }
    }
    epg_json_end(writer);
    epg_json_array(writer, "indices");
    for (size_t i = 0; i < told; i++) {
        epg_json_put_u64(writer, NULL, episodes[i].index);
    }
    epg_json_end(writer);
    epg_json_array(writer, "rewards");
    for (size_t i = 0; i < told; i++) {
        bool known = episodes[i].finished && episodes[i].failure == EPG_POLICY_OK;
        epg_json_put_double(writer, NULL, known ? epg_report_round(episodes[i].reward) : 0);
    }
    epg_json_end(writer);
    epg_json_array(writer, "steps");
    for (size_t i = 0; i < told; i++) {
        epg_json_put_u64(writer, NULL, episodes[i].steps);
    }
    epg_json_end(writer);
    epg_json_end(writer);
    spend(&room->episodes, writer->out->size - before);
}

static void put_measure(const epg_history_measure *measure, const char *phase, epg_report_room *room,
                        epg_json_writer *writer)
{
    epg_json_object(writer, NULL);
    put_episodes(measure->episodes, (size_t)measure->episode_count, room, writer);
    epg_json_put_u64(writer, "number", measure->number);
    epg_json_put_text(writer, "phase", phase);
    if (measure->completed) {
        epg_json_put_double(writer, "score", measure->score);
    } else {
        epg_json_put_null(writer, "score");
    }
    epg_json_end(writer);
}

void epg_report_put_held_out(const epg_reading *reading, epg_report_room *room, epg_json_writer *writer)
{
    const epg_history *history = &reading->history;
    epg_json_array(writer, "held_out");
    for (size_t i = 0; i < history->validation_count; i++) {
        put_measure(&history->validation[i], "validation", room, writer);
    }
    if (history->assessment_started) {
        put_measure(&history->assessment, "assessment", room, writer);
    }
    epg_json_end(writer);
}

static void put_submission(parts *self, size_t at, size_t left, epg_json_writer *writer)
{
    part *one = &self->items[at];
    epg_report_room *room = self->room;
    epg_json_object(writer, NULL);
    put_text(writer, "diff", epg_buffer_span(&one->diff), &room->diffs, left, DIFF_SHOWN, &room->diffs_cut);
    const epg_history_submission *submission = &self->reading->history.submissions[at];
    put_episodes(submission->episodes, submission->facts.indices.count, room, writer);
    epg_summary_submission_json(self->reading, at + 1, &self->marks[at], writer, "facts");
    EPG_AUTO_BUFFER content = {0};
    if (one->feedback != NULL) {
        epg_json_writer own;
        epg_json_begin(&own, &content, 2);
        epg_json_put_json(&own, NULL, json_object_get(one->feedback, "content"));
        epg_json_finish(&own);
    }
    put_text(writer, "feedback", epg_buffer_span(&content), &room->feedback, left, FEEDBACK_SHOWN, &room->feedback_cut);
    epg_json_put_u64(writer, "number", at + 1);
    if (one->replay != NULL) {
        epg_json_put_json(writer, "replay", one->replay);
    } else {
        epg_json_put_null(writer, "replay");
    }
    epg_json_end(writer);
}

void epg_report_put_submissions(const epg_reading *reading, epg_report_room *room, epg_json_writer *writer)
{
    size_t count = reading->history.submission_count;
    EPG_CLEANUP(parts_free)
    parts self = {.reading = reading,
                  .room = room,
                  .count = count,
                  .marks = epg_alloc_array(count, sizeof *self.marks),
                  .items = epg_alloc_array(count, sizeof *self.items)};
    epg_summary_marks(reading, self.marks);
    choose(&self);
    read_parts(&self);
    size_t left = count - room->submissions_left;
    epg_json_array(writer, "submissions");
    for (size_t i = 0; i < count; i++) {
        if (self.items[i].told) {
            put_submission(&self, i, left--, writer);
        }
    }
    epg_json_end(writer);
}
