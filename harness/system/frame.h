/* Frames over a pair of descriptors, with deadlines on reads and on writes.
 *
 * On the wire: 4 bytes big-endian length of what follows; 1 byte type; 4 bytes big-endian sequence number; body.
 * A channel owns its descriptors, puts them into non-blocking mode and polls; a peer that stops reading or writing
 * can't hold the caller past the deadline. Reads take at most 64 KiB at a time. */
#ifndef EPG_SYSTEM_FRAME_H
#define EPG_SYSTEM_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "system/company.h"
#include "system/patience.h"

enum { EPG_FRAME_HEAD = 9, EPG_FRAME_READ_SIZE = 65536 };

typedef struct epg_frame {
    uint8_t type;
    uint32_t sequence;
    epg_span body; /* borrowed from the channel, valid until its next receive or fill */
} epg_frame;

/* What else comes from the peer while it is waited for, as its output does: `serve` takes what can be read. */
typedef struct epg_aside {
    int fd; /* -1: nothing; not owned */
    void (*serve)(void *context);
    void *context;
} epg_aside;

typedef struct epg_channel {
    int in;
    int out;           /* may equal `in` for a socket */
    int cancel;        /* a descriptor that ends any wait with INTERRUPTED when it is readable; -1: none; not owned */
    epg_aside aside;   /* served in any wait, so that a peer that must get rid of it first goes on */
    size_t body_limit; /* largest body accepted from the peer */
    epg_buffer input;
    size_t consumed;        /* bytes at the front of `input` that belong to frames handed out already */
    bool broken;            /* a send did not get through: what the peer has is unknown */
    epg_company *company;   /* NULL, or told when the peer takes long; not owned */
    epg_patience *patience; /* NULL: a receive never waits in a read */
    bool blocks;            /* reads wait now, or did until the patience's end */
    bool served;            /* something came aside since the last receive began */
} epg_channel;

/* What is wrong with what came: the internal classifications that Host-only evidence keeps apart. */
typedef enum epg_frame_fault {
    EPG_FRAME_OK = 0,
    EPG_FRAME_CLOSED,    /* the end, between two frames */
    EPG_FRAME_PARTIAL,   /* the end, or the deadline, inside a frame: see the code */
    EPG_FRAME_OVERSIZED, /* a length over the bound */
    EPG_FRAME_MALFORMED  /* a length too short for a head */
} epg_frame_fault;

/* Also makes SIGPIPE ignored where it had its default disposition. Each descriptor may be -1 for a one-way channel. */
void epg_channel_open(epg_channel *channel, int in, int out, size_t body_limit); /* takes both descriptors */
void epg_channel_close(epg_channel *channel);
/* From now on a receive first waits in its read, for up to 10 ms, and only then looks at its deadline, at `cancel` and
 * aside: for a peer that mostly answers at once. Best effort. A peer that says something aside is waited for the dearer
 * way, at once for all, until it is silent. */
void epg_channel_be_patient(epg_channel *channel);

/* Sends one frame whole. TIMEOUT: the peer did not take it in time (the channel is then unusable); CLOSED: it is gone.
 */
epg_code epg_channel_send(epg_channel *channel, uint8_t type, uint32_t sequence, epg_span body, int64_t deadline,
                          epg_error *err);
/* As send, with a body in two parts that are not joined in memory. */
epg_code epg_channel_send2(epg_channel *channel, uint8_t type, uint32_t sequence, epg_span head, epg_span tail,
                           int64_t deadline, epg_error *err);

/* Receives one frame. CLOSED, TIMEOUT, PROTOCOL (oversized, malformed, partial at the end), INTERRUPTED; `fault` (may
 * be NULL) gets the classification. */
epg_code epg_channel_receive(epg_channel *channel, epg_frame *frame, int64_t deadline, epg_frame_fault *fault,
                             epg_error *err);

/* For a poll loop: takes what can be read now (one read; CLOSED at the end) without waiting; then frames one by one:
 * *have is false when no whole frame is there yet. Take all frames after each fill: a fill reads nothing more, whatever
 * the peer sends, while a frame of the largest size is buffered. */
epg_code epg_channel_fill(epg_channel *channel, epg_error *err);
epg_code epg_channel_next(epg_channel *channel, epg_frame *frame, bool *have, epg_frame_fault *fault, epg_error *err);
/* True when bytes beyond the frame handed out last are waiting (buffered, or readable now): a peer speaking early. */
bool epg_channel_pending(epg_channel *channel);

#endif
