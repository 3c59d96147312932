/* Declarations that the sources of TLS share: tls.c (contexts, tickets), tls_certificate.c (PEM),
 * tls_placeholder.c (self-signed), tls_session.c (handshakes), tls_transport.c (records). */
#ifndef ORIBI_FRONTEND_TLS_PRIVATE_H
#define ORIBI_FRONTEND_TLS_PRIVATE_H

#include "frontend/tls.h"
#include "oribi/base/buf.h"

#include <openssl/ssl.h>

enum {
    ORIBI__TLS_RECORD_BYTES = 16 * 1024, /* of a record, RFC 8446 5.1 */
    ORIBI__TLS_SEND_BYTES = 144 * 1024,  /* that one call makes records of */
    ORIBI__TLS_NAME_MAX = 253,           /* bytes of a host name, RFC 1035 2.3.4 */
    ORIBI__TLS_NAMES_MAX = 100,          /* of a certificate; others are left out */
    ORIBI__TLS_PEM_TOLD_MAX = 8 * 1024,
};

struct oribi__tls_name {
    char *text; /* lower case; "*.example.com" */
    size_t len;
    uint32_t context;
};

struct oribi_tls {
    uint32_t holds;
    SSL_CTX **contexts; /* of certificates with the same names; the first is the default */
    uint32_t context_count;
    struct oribi__tls_name *names;
    uint32_t name_count;
    struct oribi_buf **staples; /* OCSP responses of contexts */
    uint32_t staple_count;
    BIO_METHOD *method;
    const struct oribi_tls_tickets *tickets;
    int64_t expires_s;
    int64_t ends_s[ORIBI_TLS_CERTIFICATES_MAX]; /* of each certificate */
    bool placeholders[ORIBI_TLS_CERTIFICATES_MAX];
    uint32_t end_count;
    bool h2;
    bool asks_client;
    struct oribi_buf cipher;             /* records on their way to the socket, within one call */
    char plain[ORIBI__TLS_RECORD_BYTES]; /* bytes that become one record, likewise; in a handshake, those that came */
    size_t plain_len;                    /* bytes in `plain` that came in a handshake */
};

/* A session's client, as far as it is known. */
struct oribi__tls_about {
    struct oribi_tls_info info;
    char *text; /* what slices of info point to */
    char *name; /* the name that the client has asked for */
};

struct oribi_tls_session {
    struct oribi_transport transport; /* first */
    struct oribi_tls *tls;
    SSL *ssl;
    struct oribi_buf unsent; /* records that the socket has not taken */
    struct oribi_buf early;  /* what was read from the socket before the handshake */
    int fd;
    bool dry;      /* the last read(2) has emptied the socket */
    bool owed;     /* the next byte to be written is in a record already */
    bool broken;   /* an error of TLS: nothing more can be read or written */
    bool accepted; /* info is filled in */
    uint8_t first_len;
    char first[5];
    struct oribi__tls_about *about; /* NULL: nobody asks any more */
    const char *reason;
};

/* tls_certificate.c. Puts a certificate, its chain and key into a context. 0, or ORIBI_EINVAL with `error`; a warning
 * stands in `warning`. Gives the end of its time, and its names appended to tls->names. */
int oribi__tls_use(struct oribi_tls *tls, const struct oribi_tls_certificate *certificate, uint32_t *context,
                   char *error, char *warning);
/* tls_placeholder.c. Gives a new key (EC P-256) and a certificate that it has signed for these host names, comma
 * separated: from an hour ago to seven days from then. 0; ORIBI_EINVAL: no name, one that is empty or too long, or more
 * than ORIBI__TLS_NAMES_MAX; ORIBI_ENOMEM. */
int oribi__tls_placeholder(struct oribi_slice names, X509 **leaf, EVP_PKEY **key);

SSL_CTX *oribi__tls_context(struct oribi_tls *tls); /* tls.c: another one with all settings; NULL: no memory */

/* tls_transport.c */
BIO_METHOD *oribi__tls_method(void);
extern const struct oribi_transport oribi__tls_transport_ops;

/* Sends records that have been made. 0; ORIBI_AGAIN: some are kept; or a code of base/os/os.h. */
int oribi__tls_flush(struct oribi_tls_session *session);

#endif
