/* SHA-256 (OpenSSL's libcrypto) and the digest texts made of it. */
#ifndef EPG_BASE_HASH_H
#define EPG_BASE_HASH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

enum { EPG_SHA256_SIZE = 32, EPG_SHA256_HEX = 65, EPG_DIGEST_TEXT = 72 };

typedef struct epg_sha256 epg_sha256;
epg_sha256 *epg_sha256_new(void);
void epg_sha256_update(epg_sha256 *hash, const void *data, size_t size);
void epg_sha256_be64(epg_sha256 *hash, uint64_t value);
void epg_sha256_prefixed(epg_sha256 *hash, const void *data, size_t size); /* be64(size) + data */
void epg_sha256_finish(epg_sha256 *hash, uint8_t out[EPG_SHA256_SIZE]);    /* frees the hash */
void epg_sha256_free(epg_sha256 *hash);                                    /* for paths that do not finish */

void epg_sha256_once(const void *data, size_t size, uint8_t out[EPG_SHA256_SIZE]);
void epg_hex(const uint8_t *bytes, size_t size, char *out);                           /* 2 * size + 1 bytes */
void epg_digest_text(const uint8_t hash[EPG_SHA256_SIZE], char out[EPG_DIGEST_TEXT]); /* "sha256:" + hex */
bool epg_digest_text_valid(const char *text);
/* The hash that a valid digest text tells; zeros for another text. */
void epg_digest_bytes(const char *text, uint8_t hash[EPG_SHA256_SIZE]);

/* CONTRACTS section 5: first 8 bytes, big-endian, of H(domain + "\0" + be64(seed) [+ be64(index)]).
 * `domain` is written without its closing NUL, e.g. "evopolicygym/policy-seed/v1". */
uint64_t epg_seed(const char *domain, uint64_t seed);
uint64_t epg_seed_indexed(const char *domain, uint64_t seed, uint64_t index);

#endif
