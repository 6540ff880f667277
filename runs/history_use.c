/* What is done with a history that was read. */
#include <stdlib.h>

#include "runs/history_parts.h"

static void free_episodes(epg_episode_result *episodes, size_t count)
{
    for (size_t i = 0; episodes != NULL && i < count; i++) {
        epg_episode_result_free(&episodes[i]);
    }
    free(episodes);
}

void epg_history_forget_episodes(epg_history_submission *submission)
{
    free_episodes(EPG_TAKE(submission->episodes), submission->facts.indices.count);
}

void epg_history_forget_submissions(epg_history *history)
{
    for (size_t i = 0; i < history->submission_count; i++) {
        epg_history_submission *submission = &history->submissions[i];
        epg_history_forget_episodes(submission);
        epg_indices_free(&submission->facts.indices);
        free(submission->stopped);
    }
    free(EPG_TAKE(history->submissions));
    history->submission_count = 0;
}

void epg_history_free(epg_history *history)
{
    json_decref(history->request);
    json_decref(history->record);
    epg_config_free(&history->config);
    epg_history_forget_submissions(history);
    for (size_t i = 0; i < history->validation_count; i++) {
        free_episodes(history->validation[i].episodes, history->validation[i].episode_count);
    }
    free_episodes(history->assessment.episodes, history->assessment.episode_count);
    for (size_t i = 0; i < history->seal_count; i++) {
        free(history->seals[i].path);
    }
    free(history->seals);
    free(history->candidates);
    free(history->validation);
    char *const texts[] = {history->benchmark_id,   history->environment_digest,
                           history->initial_digest, history->provider,
                           history->model,          history->metric,
                           history->finished_by,    history->terminal_reason,
                           history->agent_limit,    history->fault};
    for (size_t i = 0; i < EPG_COUNT(texts); i++) {
        free(texts[i]);
    }
    *history = (epg_history){0};
}

bool epg_history_is_recorded(const epg_history *history)
{
    return history->record != NULL && (history->recorded == 0 || history->recorded == history->event_count);
}

const char *epg_history_state(const epg_history *history, bool locked)
{
    if (locked) {
        return "running";
    }
    if (history->ended || history->interrupted) {
        return history->terminal_reason != NULL ? history->terminal_reason : "ended";
    }
    return "killed";
}

void epg_history_session(const epg_history *history, epg_session *session)
{
    session->direction = history->direction;
    for (size_t i = 0; i < history->submission_count; i++) {
        const epg_submission *facts = &history->submissions[i].facts;
        (void)epg_session_charge(session, &facts->indices, facts->program_digest);
        if (facts->state == EPG_SUBMISSION_PUBLISHED) {
            epg_session_published(session, facts->score, facts->policy_failures);
        } else if (facts->state == EPG_SUBMISSION_FAILED) {
            epg_session_failed(session, facts->failure);
        }
    }
    if (history->candidate_count > 0) {
        epg_session_finish(session, history->candidates, history->candidate_count);
    }
}

const epg_history_submission *epg_history_best(const epg_history *history, epg_direction direction)
{
    const epg_history_submission *best = NULL;
    for (size_t i = 0; i < history->submission_count; i++) {
        const epg_history_submission *one = &history->submissions[i];
        if (one->facts.state == EPG_SUBMISSION_PUBLISHED &&
            (best == NULL || epg_direction_better(direction, one->facts.score, best->facts.score))) {
            best = one;
        }
    }
    return best;
}
