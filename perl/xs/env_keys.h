/* The keys of the environment: name here, key, when an environment has it, and its value, as expressions of env.c's
 * set_values(), where `w` is the worker, `req` the request, `head` its head, `addressed` says whether the client has an
 * address (a peer on a unix socket has none; to call it 127.0.0.1 would make applications that trust this machine trust
 * everybody behind a proxy), `https` whether the scheme is that, `tls` whether it speaks TLS with a frontend, `named`
 * whether it named the host in SNI, path_info is the decoded path where it differs, and `old` the value that the
 * request before has left, which the expression takes: values.h. `false`: only some requests have the key, and what is
 * made for them stores it. */
#ifndef ORIBI_PERL_ENV_KEYS_H
#define ORIBI_PERL_ENV_KEYS_H

/* clang-format off: a key is a line */
#define PSGI_KEYS(X)                                                                                                   \
    X(REQUEST_METHOD, "REQUEST_METHOD", true, method_of(aTHX_ w, old, head->method))                                   \
    X(REQUEST_URI, "REQUEST_URI", true, request_uri_of(aTHX_ w, old, head))                                            \
    X(PATH_INFO, "PATH_INFO", true, path_info_of(aTHX_ w, old, head, path_info))                                       \
    X(QUERY_STRING, "QUERY_STRING", true, query_of(aTHX_ w, old, head))                                                \
    X(SCRIPT_NAME, "SCRIPT_NAME", true, SHARED(w->empty))                                                              \
    X(SERVER_NAME, "SERVER_NAME", true, follow(aTHX_ w, old, PSGI_FOLLOWED_NAME, req->server_name))                    \
    X(SERVER_PORT, "SERVER_PORT", true, follow(aTHX_ w, old, PSGI_FOLLOWED_PORT, req->server_port))                    \
    X(SERVER_PROTOCOL, "SERVER_PROTOCOL", true, SHARED(w->protocols[oribi_req_protocol(req)]))                         \
    X(REMOTE_ADDR, "REMOTE_ADDR", addressed, follow(aTHX_ w, old, PSGI_FOLLOWED_ADDR, req->remote_addr))               \
    X(REMOTE_PORT, "REMOTE_PORT", addressed, TEXT(req->remote_port))                                                   \
    X(HTTPS, "HTTPS", https, SHARED(w->on))                                                                            \
    X(SSL_PROTOCOL, "SSL_PROTOCOL", tls, follow(aTHX_ w, old, PSGI_FOLLOWED_TLS_VERSION, req->client->tls_version))    \
    X(SSL_CIPHER, "SSL_CIPHER", tls, follow(aTHX_ w, old, PSGI_FOLLOWED_CIPHER, req->client->cipher))                  \
    X(SSL_TLS_SNI, "SSL_TLS_SNI", named, follow(aTHX_ w, old, PSGI_FOLLOWED_SNI, req->client->sni))                    \
    X(VERSION, "psgi.version", true, REFERENCE(w->lent.version.array))                                                 \
    X(URL_SCHEME, "psgi.url_scheme", true, follow(aTHX_ w, old, PSGI_FOLLOWED_SCHEME, req->scheme))                    \
    X(INPUT, "psgi.input", true, input_of(aTHX_ w, old, req))                                                          \
    X(ERRORS, "psgi.errors", true, REFERENCE(w->lent.errors.glob))                                                     \
    X(MULTITHREAD, "psgi.multithread", true, NUMBER(0))                                                                \
    X(MULTIPROCESS, "psgi.multiprocess", true, NUMBER(w->multiprocess))                                                \
    X(RUN_ONCE, "psgi.run_once", true, NUMBER(0))                                                                      \
    X(NONBLOCKING, "psgi.nonblocking", true, NUMBER(0))                                                                \
    X(STREAMING, "psgi.streaming", true, NUMBER(1))                                                                    \
    X(IO, "psgix.io", true, lend(aTHX_ w, old, PSGI_LAZY_IO))                                                          \
    X(INPUT_BUFFERED, "psgix.input.buffered", true, NUMBER(1))                                                         \
    X(HARAKIRI, "psgix.harakiri", true, NUMBER(1))                                                                     \
    X(HARAKIRI_COMMIT, "psgix.harakiri.commit", false, NULL)                                                           \
    X(CLEANUP, "psgix.cleanup", true, NUMBER(1))                                                                       \
    X(CLEANUP_HANDLERS, "psgix.cleanup.handlers", true, REFERENCE(w->lent.cleanup_handlers.array))                     \
    X(INFORMATIONAL, "psgix.informational", w->early_hints, lend(aTHX_ w, old, PSGI_LAZY_INFORMATIONAL))               \
    X(EXTEND, "oribi.extend_deadline", true, lend(aTHX_ w, old, PSGI_LAZY_EXTEND))                                     \
    X(GONE, "oribi.gone?", true, lend(aTHX_ w, old, PSGI_LAZY_GONE))                                                   \
    X(QUEUE_US, "oribi.queue_us", true, NUMBER((IV)req->queue_us))                                                     \
    X(SENDFILE_TYPE, "plack.xsendfile.type", w->sendfile_type != NULL, CONSTANT(w->sendfile_type))                     \
    X(ACCEL_MAPPING, "HTTP_X_ACCEL_MAPPING", w->accel_mapping != NULL, CONSTANT(w->accel_mapping))                     \
    X(REQUEST_ID, "oribi.request_id", w->request_ids, TEXT(req->request_id))                                           \
    X(TRAILERS, "oribi.trailers", false, NULL)                                                                         \
    X(UNREAD, "oribi.unread", false, NULL)
/* clang-format on */

#endif
