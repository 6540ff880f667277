/* `agent-session/v3` on the wire (CONTRACTS section 8): frames of one compact JSON object, 1 to 65,536 bytes. */
#ifndef EPG_RUNS_PROTOCOL_H
#define EPG_RUNS_PROTOCOL_H

#include "runs/session.h"

#define EPG_SESSION_PROTOCOL "agent-session/v3"
enum { EPG_SESSION_FRAME_HEAD = 4, EPG_SESSION_FRAME_MAX = 65536 };

/* What the first bytes of a stream hold. */
typedef enum epg_frame_state { EPG_FRAME_INCOMPLETE, EPG_FRAME_WHOLE, EPG_FRAME_INVALID } epg_frame_state;
/* WHOLE: *body is the frame's content, borrowed; bytes after it are not looked at. INVALID: a length of 0 or over the
 * bound (told from the head alone). */
epg_frame_state epg_session_frame(epg_span bytes, epg_span *body);

/* The object in a frame's body; NULL when it is not one JSON object. Caller owns it. */
json_t *epg_session_decode(epg_span body);

/* Requests, whole frames with their heads. */
void epg_request_submit(epg_buffer *out, const epg_indices *indices);
void epg_request_finish(epg_buffer *out, const char *const *ids, size_t count);
void epg_request_status(epg_buffer *out);
void epg_request_wait(epg_buffer *out, const char *id); /* NULL: the one that runs, else the latest */

/* Responses, whole frames with their heads. */
void epg_response_error(epg_buffer *out, const char *code, const char *message);
void epg_response_refused(epg_buffer *out, const epg_decision *decision);
/* The answer to a submit, and to a wait for it, by the submission's state (published or failed). */
void epg_response_submission(epg_buffer *out, const epg_submission *submission);
void epg_response_finished(epg_buffer *out, const epg_session *session);

/* What `status` tells beside the session's own state. */
typedef struct epg_status_facts {
    bool has_deadline;
    double seconds_remaining;    /* of the Agent's time; not below 0 */
    uint64_t episodes_completed; /* of the running submission */
    size_t waiting;              /* submits and finishes in line */
} epg_status_facts;
void epg_response_status(epg_buffer *out, const epg_session *session, const epg_status_facts *facts);

#endif
