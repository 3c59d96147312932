/* TLS of the frontend's clients, by OpenSSL 3.0 or later: contexts from PEM, handshakes, and a transport for the rest
 * of the connection. Reads no file, asks no clock but the system's, logs nothing. */
#ifndef ORIBI_FRONTEND_TLS_H
#define ORIBI_FRONTEND_TLS_H

#include "oribi/base/buf.h"
#include "oribi/event/out.h"
#include "oribi/worker/frontend_protocol.h"

#include <stdbool.h>
#include <stdint.h>

enum { ORIBI_TLS_CERTIFICATES_MAX = ORIBI_FRONTEND_CERTIFICATES_MAX }; /* of a listener */

/* Borrowed during the call. */
struct oribi_tls_certificate {
    struct oribi_slice chain;    /* PEM: the certificate, then intermediate ones */
    struct oribi_slice key;      /* PEM */
    struct oribi_slice password; /* of the key, where that is encrypted; n 0: none */
    struct oribi_slice ocsp;     /* DER of an OCSP response, n 0: none */
    struct oribi_slice name;     /* what the file is called, for errors */
    struct oribi_slice names;    /* of a certificate by ACME: its host names, comma separated; n 0: it is none */
    bool placeholder;            /* self-signed for `names`, made anew; chain and key are empty */
};

enum oribi_tls_verify { ORIBI_TLS_VERIFY_NONE, ORIBI_TLS_VERIFY_OPTIONAL, ORIBI_TLS_VERIFY_REQUIRED };

struct oribi_tls_config {
    const struct oribi_tls_certificate *certificates; /* the first one serves names that no other one has */
    uint32_t count;
    struct oribi_slice client_ca;      /* PEM; n 0: client certificates are not asked for */
    struct oribi_slice client_ca_name; /* what the file is called, for errors */
    enum oribi_tls_verify verify;
    bool h2;    /* offer h2 before http/1.1 (ALPN) */
    bool tls12; /* TLS 1.2 besides 1.3, AEAD with ECDHE only */
};

struct oribi_tls;

/* Gives the contexts of one listener, held once. `tickets` NULL: none; borrowed for ever. 0; ORIBI_EINVAL with one line
 * in `error` (ORIBI_ERROR_TEXT_CAP) that names the certificate: no certificate in it, a key that does not fit, a chain
 * out of order, expired or not yet valid (that alone is a warning: 0, and `error` says it; else error[0] is 0);
 * ORIBI_ENOMEM. A placeholder counts neither here nor for the expiry below: INT64_MAX. */
int oribi_tls_create(const struct oribi_tls_config *config, const struct oribi_tls_tickets *tickets,
                     struct oribi_tls **out, char *error);

/* When the certificate of that index in the configuration expires, as below. */
int64_t oribi_tls_ends_s(const struct oribi_tls *tls, uint32_t i);

/* Is the certificate of that index a placeholder? */
bool oribi_tls_is_placeholder(const struct oribi_tls *tls, uint32_t i);

void oribi_tls_retain(struct oribi_tls *tls);
void oribi_tls_release(struct oribi_tls *tls);

/* When the first of its certificates expires, seconds since 1970; INT64_MAX: they are placeholders. For metrics. */
int64_t oribi_tls_expires_s(const struct oribi_tls *tls);

/* Facts about one certificate by itself. */
struct oribi_tls_look {
    int64_t begins_s; /* seconds since 1970 */
    int64_t expires_s;
    int rsa_bits;     /* of its key; 0: it is none of RSA */
    bool lacks_chain; /* another authority has signed it, and nothing stands behind it */
    bool lacks_names; /* no subjectAltName */
};

/* 0; or ORIBI_EINVAL with one line in `error`, as oribi_tls_create(). */
int oribi_tls_look(const struct oribi_tls_certificate *certificate, struct oribi_tls_look *look, char *error);

struct oribi_tls_session;

/* Begins a session on a connected, non-blocking socket. Borrows fd; holds tls. NULL: out of memory. */
struct oribi_tls_session *oribi_tls_accept(struct oribi_tls *tls, int fd);

/* Before the first step of the handshake: bytes that were read from the socket already; copied. 0 or ORIBI_ENOMEM. */
int oribi_tls_early(struct oribi_tls_session *session, struct oribi_slice bytes);

enum oribi_tls_step {
    ORIBI_TLS_DONE,
    ORIBI_TLS_READS,  /* wait until the socket can be read */
    ORIBI_TLS_WRITES, /* wait until the socket can be written */
    ORIBI_TLS_PLAIN,  /* the client speaks HTTP without TLS: answer 400 on the socket, and close */
    ORIBI_TLS_GONE,   /* it has closed or reset the connection */
    ORIBI_TLS_FAILED, /* an alert was sent or came: oribi_tls_reason() */
};

/* Goes on with the handshake; call again when the socket is ready. */
enum oribi_tls_step oribi_tls_handshake(struct oribi_tls_session *session);
const char *oribi_tls_reason(const struct oribi_tls_session *session); /* one line, static words of OpenSSL */

/* After PLAIN: what was read of the socket. Valid as long as the session. */
struct oribi_slice oribi_tls_first(const struct oribi_tls_session *session);

/* After DONE. Slices are valid as long as the session; empty where there is nothing. */
struct oribi_tls_info {
    bool h2; /* ALPN said so */
    bool resumed;
    struct oribi_slice version; /* "TLSv1.3" */
    struct oribi_slice cipher;  /* "TLS_AES_256_GCM_SHA384" */
    struct oribi_slice sni;     /* lower case; empty where it has other bytes than printable ASCII */
    struct oribi_slice alpn;    /* "h2", "http/1.1" */
    /* of a client certificate, as mod_ssl names and writes them */
    struct oribi_slice verify;  /* "NONE", "SUCCESS", "FAILED" (verify optional) */
    struct oribi_slice subject; /* SSL_CLIENT_S_DN, RFC 2253 */
    struct oribi_slice issuer;  /* SSL_CLIENT_I_DN */
    struct oribi_slice serial;  /* SSL_CLIENT_M_SERIAL, hex */
    struct oribi_slice begins;  /* SSL_CLIENT_V_START */
    struct oribi_slice ends;    /* SSL_CLIENT_V_END */
    struct oribi_slice pem;     /* SSL_CLIENT_CERT; empty when longer than 8 KiB */
};
const struct oribi_tls_info *oribi_tls_info(const struct oribi_tls_session *session);

/* The transport of the session (out.h), which then belongs to it: its release frees the session. Records are made
 * of all that one call gives (up to 64 KiB) and leave by one send(2). An idle session holds no buffer of ours. */
struct oribi_transport *oribi_tls_transport(struct oribi_tls_session *session);

/* The info of the session that has given this transport. */
const struct oribi_tls_info *oribi_tls_info_of(const struct oribi_transport *transport);

/* Frees that info, where nobody asks any more: a session that may be idle for hours needs none. */
void oribi_tls_forget_info(struct oribi_transport *transport);

/* Frees a session whose transport was not taken. */
void oribi_tls_session_destroy(struct oribi_tls_session *session);

#endif
