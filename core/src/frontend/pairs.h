/* Records of a frontend's text (frontend_protocol.h), and those of certificates put together. */
#ifndef ORIBI_FRONTEND_PAIRS_H
#define ORIBI_FRONTEND_PAIRS_H

#include "frontend/tls.h"
#include "oribi/config/listener.h"

struct oribi__record {
    struct oribi_slice name;
    struct oribi_slice value;
};

/* How long the text is in n bytes of shared memory, which ends with zeros; a text ends with a line's end. There may be
 * zeros in it: responses of OCSP have some. */
size_t oribi__records_len(const char *p, size_t n);

/* The record at *at, which is moved behind it. False at the end, or where the text is no text of records: then *at is
 * not its end. */
bool oribi__record_next(const char **at, const char *end, struct oribi__record *record);

/* Is the name the word, a space and something? Gives that. */
bool oribi__record_begins(const struct oribi__record *record, const char *word, struct oribi_slice *rest);
bool oribi__record_is(const struct oribi__record *record, const char *word);

struct oribi__pairs {
    struct oribi_tls_certificate items[ORIBI_LISTENERS_MAX][ORIBI_TLS_CERTIFICATES_MAX];
    uint32_t counts[ORIBI_LISTENERS_MAX];
    uint32_t current; /* listener of the last certificate */
    struct oribi_slice client_ca;
    struct oribi_slice client_ca_name;
};

/* Takes a record of a certificate; its slices point into the text. False: it is none, or one too many. */
bool oribi__pairs_add(struct oribi__pairs *pairs, const struct oribi__record *record);

#endif
