/* What coordinator and worker say to each other: frames (system/frame.h) on the worker's stdin and stdout, so that a
 * worker can as well be started by a cluster's launcher. Bodies are canonical bytes unless told otherwise.
 *
 * coordinator to worker:
 *   'C' configure (map)             -> 'S' spec, or 'X'
 *   'N' plan (map split, seed, count) -> 'P' list of [seed, scenario] as often as needed, then 'D'; or 'X'
 *   'G' Program (packed)            -> nothing
 *   'E' Episode (map)               -> 'R' record bytes as often as needed, then 'Z' outcome (map); or 'X'
 *   'F' Feedback (int count)        -> 'Q' wants (be64 index, be64 offset) answered by
 *   'K' piece (be64 size, 1 byte failure, be64 steps, 8 bytes reward, bytes)
 *                                   -> then 'A' artifact (map) and its 'V' content in pieces, as often as needed, and
 *                                      'B' score and content (map); or 'X'
 *
 * A reply carries the sequence number of what it answers. 'X' is a map {code, text}: a trusted fault; the worker ends
 * after one. End of input ends the worker. */
#ifndef EPG_EVALUATION_WIRE_H
#define EPG_EVALUATION_WIRE_H

#include "evaluation/episode.h"
#include "evaluation/evaluation.h"

enum {
    EPG_WIRE_CONFIGURE = 'C',
    EPG_WIRE_SPEC = 'S',
    EPG_WIRE_PLAN = 'N',
    EPG_WIRE_PLANNED = 'P',
    EPG_WIRE_DONE = 'D',
    EPG_WIRE_PROGRAM = 'G',
    EPG_WIRE_EPISODE = 'E',
    EPG_WIRE_RECORD = 'R',
    EPG_WIRE_OUTCOME = 'Z',
    EPG_WIRE_FEEDBACK = 'F',
    EPG_WIRE_WANT = 'Q',
    EPG_WIRE_PIECE = 'K',
    EPG_WIRE_ARTIFACT = 'A',
    EPG_WIRE_CONTENT = 'V',
    EPG_WIRE_RESULT = 'B',
    EPG_WIRE_FAULT = 'X'
};
enum {
    EPG_WIRE_BODY_LIMIT = 80 * 1024 * 1024, /* a packed Program with its paths */
    EPG_WIRE_PIECE_SIZE = 256 * 1024
};

typedef struct epg_worker_config {
    char *benchmark;
    char *benchmark_python;    /* NULL: the default */
    uint64_t benchmark_memory; /* bytes; 0: no limit */
    char *source_root;         /* NULL: the working directory */
    char *python;
    char *preload; /* NULL: nothing */
    char *guest_root;
    epg_profile profile;
    epg_guest_limits limits;
    int64_t call_limit_ns;
    int64_t policy_limit_ns;
} epg_worker_config;
void epg_worker_config_free(epg_worker_config *config);

void epg_wire_put_config(epg_buffer *out, const epg_worker_config *config);
epg_code epg_wire_get_config(epg_span body, epg_worker_config *out, epg_error *err);

void epg_wire_put_plan(epg_buffer *out, const char *split, uint64_t seed, uint64_t count);
epg_code epg_wire_get_plan(epg_span body, char **split, uint64_t *seed, uint64_t *count, epg_error *err);
void epg_wire_put_planned(epg_buffer *out, const epg_episode_spec *specs, size_t count);
/* Appends to `specs` at *at; never past `count`. */
epg_code epg_wire_get_planned(epg_span body, epg_episode_spec *specs, uint64_t count, uint64_t *at, epg_error *err);

void epg_wire_put_episode(epg_buffer *out, const epg_episode_spec *spec, uint64_t policy_seed);
epg_code epg_wire_get_episode(epg_span body, epg_episode_spec *spec, uint64_t *policy_seed, epg_error *err);
void epg_wire_put_outcome(epg_buffer *out, const epg_episode_outcome *outcome);
epg_code epg_wire_get_outcome(epg_span body, epg_episode_result *out, epg_error *err);

void epg_wire_put_artifact(epg_buffer *out, const epg_artifact *artifact);
epg_code epg_wire_get_artifact(epg_span body, epg_feedback *feedback, uint64_t *size, epg_error *err);
void epg_wire_put_result(epg_buffer *out, const epg_feedback *feedback);
epg_code epg_wire_get_result(epg_span body, epg_feedback *feedback, epg_error *err);

void epg_wire_put_fault(epg_buffer *out, const epg_error *fault);
/* Fills `err` with the fault and returns its code; only BENCHMARK, EXECUTION, USAGE, UNAVAILABLE, INTERRUPTED are
 * taken. */
epg_code epg_wire_get_fault(epg_span body, epg_error *err);

#endif
