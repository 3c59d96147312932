/* The keys of the environment: name here, key, when an environment has it, and its value, as expressions of env.c's
 * set_values(), where `w` is the worker, `req` the request, `head` its head, `addressed` says whether the client has an
 * address (a peer on a unix socket has none; to call it 127.0.0.1 would make applications that trust this machine trust
 * everybody behind a proxy), and path_info is the decoded path. `false`: only some requests have the key, and what is
 * made for them stores it. */
#ifndef ORIBI_PERL_ENV_KEYS_H
#define ORIBI_PERL_ENV_KEYS_H

/* clang-format off: a key is a line */
#define PSGI_KEYS(X)                                                                                                   \
    X(REQUEST_METHOD, "REQUEST_METHOD", true, method_of(aTHX_ w, head->method))                                        \
    X(REQUEST_URI, "REQUEST_URI", true, request_uri_of(aTHX_ head))                                                    \
    X(PATH_INFO, "PATH_INFO", true, path_info)                                                                         \
    X(QUERY_STRING, "QUERY_STRING", true, head->query.n ? text_of(aTHX_ head->query) : copy_shared(aTHX_ w->empty))    \
    X(SCRIPT_NAME, "SCRIPT_NAME", true, copy_shared(aTHX_ w->empty))                                                   \
    X(SERVER_NAME, "SERVER_NAME", true, follow(aTHX_ w, PSGI_FOLLOWED_NAME, req->server_name))                         \
    X(SERVER_PORT, "SERVER_PORT", true, follow(aTHX_ w, PSGI_FOLLOWED_PORT, req->server_port))                         \
    X(SERVER_PROTOCOL, "SERVER_PROTOCOL", true, copy_shared(aTHX_ w->protocols[head->minor ? 1 : 0]))                  \
    X(REMOTE_ADDR, "REMOTE_ADDR", addressed, follow(aTHX_ w, PSGI_FOLLOWED_ADDR, req->remote_addr))                    \
    X(REMOTE_PORT, "REMOTE_PORT", addressed, text_of(aTHX_ req->remote_port))                                          \
    X(VERSION, "psgi.version", true, newRV_inc((SV *)w->lent.version.array))                                           \
    X(URL_SCHEME, "psgi.url_scheme", true, follow(aTHX_ w, PSGI_FOLLOWED_SCHEME, req->scheme))                         \
    X(INPUT, "psgi.input", true, psgi_lent_input(aTHX_ w, req))                                                        \
    X(ERRORS, "psgi.errors", true, newRV_inc((SV *)w->lent.errors.glob))                                               \
    X(MULTITHREAD, "psgi.multithread", true, newSViv(0))                                                               \
    X(MULTIPROCESS, "psgi.multiprocess", true, newSViv(w->multiprocess))                                               \
    X(RUN_ONCE, "psgi.run_once", true, newSViv(0))                                                                     \
    X(NONBLOCKING, "psgi.nonblocking", true, newSViv(0))                                                               \
    X(STREAMING, "psgi.streaming", true, newSViv(1))                                                                   \
    X(IO, "psgix.io", true, lend(w, PSGI_LAZY_IO))                                                                     \
    X(INPUT_BUFFERED, "psgix.input.buffered", true, newSViv(1))                                                        \
    X(HARAKIRI, "psgix.harakiri", true, newSViv(1))                                                                    \
    X(HARAKIRI_COMMIT, "psgix.harakiri.commit", false, NULL)                                                           \
    X(CLEANUP, "psgix.cleanup", true, newSViv(1))                                                                      \
    X(CLEANUP_HANDLERS, "psgix.cleanup.handlers", true, newRV_inc((SV *)w->lent.cleanup_handlers.array))               \
    X(INFORMATIONAL, "psgix.informational", w->early_hints, lend(w, PSGI_LAZY_INFORMATIONAL))                          \
    X(EXTEND, "oribi.extend_deadline", true, lend(w, PSGI_LAZY_EXTEND))                                                \
    X(GONE, "oribi.gone?", true, lend(w, PSGI_LAZY_GONE))                                                              \
    X(QUEUE_US, "oribi.queue_us", true, newSViv((IV)req->queue_us))                                                    \
    X(SENDFILE_TYPE, "plack.xsendfile.type", w->sendfile_type != NULL, newSVpv(w->sendfile_type, 0))                   \
    X(ACCEL_MAPPING, "HTTP_X_ACCEL_MAPPING", w->accel_mapping != NULL, newSVpv(w->accel_mapping, 0))                   \
    X(REQUEST_ID, "oribi.request_id", w->request_ids, text_of(aTHX_ req->request_id))                                  \
    X(TRAILERS, "oribi.trailers", false, NULL)                                                                         \
    X(UNREAD, "oribi.unread", false, NULL)
/* clang-format on */

#endif
