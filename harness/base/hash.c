#include "base/hash.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

struct epg_sha256 {
    EVP_MD_CTX *context;
};

epg_sha256 *epg_sha256_new(void)
{
    epg_sha256 *hash = epg_alloc(sizeof *hash);
    hash->context = EVP_MD_CTX_new();
    if (hash->context == NULL || EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) != 1) {
        abort(); /* a libcrypto without SHA-256 is not one that we can run on */
    }
    return hash;
}

void epg_sha256_update(epg_sha256 *hash, const void *data, size_t size)
{
    if (size > 0 && EVP_DigestUpdate(hash->context, data, size) != 1) {
        abort();
    }
}

void epg_sha256_be64(epg_sha256 *hash, uint64_t value)
{
    uint8_t bytes[8];
    epg_write_be64(bytes, value);
    epg_sha256_update(hash, bytes, sizeof bytes);
}

void epg_sha256_prefixed(epg_sha256 *hash, const void *data, size_t size)
{
    epg_sha256_be64(hash, size);
    epg_sha256_update(hash, data, size);
}

void epg_sha256_finish(epg_sha256 *hash, uint8_t out[EPG_SHA256_SIZE])
{
    if (EVP_DigestFinal_ex(hash->context, out, NULL) != 1) {
        abort();
    }
    epg_sha256_free(hash);
}

void epg_sha256_free(epg_sha256 *hash)
{
    if (hash != NULL) {
        EVP_MD_CTX_free(hash->context);
        free(hash);
    }
}

void epg_sha256_once(const void *data, size_t size, uint8_t out[EPG_SHA256_SIZE])
{
    epg_sha256 *hash = epg_sha256_new();
    epg_sha256_update(hash, data, size);
    epg_sha256_finish(hash, out);
}

void epg_hex(const uint8_t *bytes, size_t size, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * size] = '\0';
}

static const char digest_prefix[] = "sha256:";
enum { PREFIX_SIZE = sizeof digest_prefix - 1 };

void epg_digest_text(const uint8_t hash[EPG_SHA256_SIZE], char out[EPG_DIGEST_TEXT])
{
    memcpy(out, digest_prefix, PREFIX_SIZE);
    epg_hex(hash, EPG_SHA256_SIZE, out + PREFIX_SIZE);
}

bool epg_digest_text_valid(const char *text)
{
    return strlen(text) == EPG_DIGEST_TEXT - 1 && strncmp(text, digest_prefix, PREFIX_SIZE) == 0 &&
           strspn(text + PREFIX_SIZE, "0123456789abcdef") == (size_t)EPG_SHA256_SIZE * 2;
}

static uint8_t digit(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void epg_digest_bytes(const char *text, uint8_t hash[EPG_SHA256_SIZE])
{
    bool valid = epg_digest_text_valid(text);
    for (size_t i = 0; i < EPG_SHA256_SIZE; i++) {
        const char *pair = text + PREFIX_SIZE + 2 * i;
        hash[i] = (uint8_t)(valid ? digit(pair[0]) << 4 | digit(pair[1]) : 0);
    }
}

static uint64_t seed_of(const char *domain, uint64_t seed, const uint64_t *index)
{
    uint8_t out[EPG_SHA256_SIZE];
    epg_sha256 *hash = epg_sha256_new();
    epg_sha256_update(hash, domain, strlen(domain) + 1);
    epg_sha256_be64(hash, seed);
    if (index != NULL) {
        epg_sha256_be64(hash, *index);
    }
    epg_sha256_finish(hash, out);
    return epg_read_be64(out);
}

uint64_t epg_seed(const char *domain, uint64_t seed)
{
    return seed_of(domain, seed, NULL);
}

uint64_t epg_seed_indexed(const char *domain, uint64_t seed, uint64_t index)
{
    return seed_of(domain, seed, &index);
}
