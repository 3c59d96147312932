/* Names of well-known request fields, and the CGI names (RFC 3875 4.1.18) both bindings put them under. */
#ifndef ORIBI_HTTP_FIELDS_H
#define ORIBI_HTTP_FIELDS_H

#include "oribi/http/head.h"

#include <stddef.h>
#include <stdint.h>

/* X(id suffix, lower-case wire name, environment key). Order is free; ids are dense from 1. */
#define ORIBI_FIELDS(X)                                                                                                \
    X(ACCEPT, "accept", "HTTP_ACCEPT")                                                                                 \
    X(ACCEPT_CHARSET, "accept-charset", "HTTP_ACCEPT_CHARSET")                                                         \
    X(ACCEPT_ENCODING, "accept-encoding", "HTTP_ACCEPT_ENCODING")                                                      \
    X(ACCEPT_LANGUAGE, "accept-language", "HTTP_ACCEPT_LANGUAGE")                                                      \
    X(AUTHORIZATION, "authorization", "HTTP_AUTHORIZATION")                                                            \
    X(CACHE_CONTROL, "cache-control", "HTTP_CACHE_CONTROL")                                                            \
    X(CONNECTION, "connection", "HTTP_CONNECTION")                                                                     \
    X(CONTENT_LENGTH, "content-length", "CONTENT_LENGTH")                                                              \
    X(CONTENT_TYPE, "content-type", "CONTENT_TYPE")                                                                    \
    X(COOKIE, "cookie", "HTTP_COOKIE")                                                                                 \
    X(DNT, "dnt", "HTTP_DNT")                                                                                          \
    X(EXPECT, "expect", "HTTP_EXPECT")                                                                                 \
    X(FORWARDED, "forwarded", "HTTP_FORWARDED")                                                                        \
    X(HOST, "host", "HTTP_HOST")                                                                                       \
    X(IF_MATCH, "if-match", "HTTP_IF_MATCH")                                                                           \
    X(IF_MODIFIED_SINCE, "if-modified-since", "HTTP_IF_MODIFIED_SINCE")                                                \
    X(IF_NONE_MATCH, "if-none-match", "HTTP_IF_NONE_MATCH")                                                            \
    X(IF_RANGE, "if-range", "HTTP_IF_RANGE")                                                                           \
    X(IF_UNMODIFIED_SINCE, "if-unmodified-since", "HTTP_IF_UNMODIFIED_SINCE")                                          \
    X(KEEP_ALIVE, "keep-alive", "HTTP_KEEP_ALIVE")                                                                     \
    X(ORIGIN, "origin", "HTTP_ORIGIN")                                                                                 \
    X(PRAGMA, "pragma", "HTTP_PRAGMA")                                                                                 \
    X(PRIORITY, "priority", "HTTP_PRIORITY")                                                                           \
    X(RANGE, "range", "HTTP_RANGE")                                                                                    \
    X(REFERER, "referer", "HTTP_REFERER")                                                                              \
    X(SEC_CH_UA, "sec-ch-ua", "HTTP_SEC_CH_UA")                                                                        \
    X(SEC_CH_UA_MOBILE, "sec-ch-ua-mobile", "HTTP_SEC_CH_UA_MOBILE")                                                   \
    X(SEC_CH_UA_PLATFORM, "sec-ch-ua-platform", "HTTP_SEC_CH_UA_PLATFORM")                                             \
    X(SEC_FETCH_DEST, "sec-fetch-dest", "HTTP_SEC_FETCH_DEST")                                                         \
    X(SEC_FETCH_MODE, "sec-fetch-mode", "HTTP_SEC_FETCH_MODE")                                                         \
    X(SEC_FETCH_SITE, "sec-fetch-site", "HTTP_SEC_FETCH_SITE")                                                         \
    X(SEC_FETCH_USER, "sec-fetch-user", "HTTP_SEC_FETCH_USER")                                                         \
    X(SEC_WEBSOCKET_EXTENSIONS, "sec-websocket-extensions", "HTTP_SEC_WEBSOCKET_EXTENSIONS")                           \
    X(SEC_WEBSOCKET_KEY, "sec-websocket-key", "HTTP_SEC_WEBSOCKET_KEY")                                                \
    X(SEC_WEBSOCKET_PROTOCOL, "sec-websocket-protocol", "HTTP_SEC_WEBSOCKET_PROTOCOL")                                 \
    X(SEC_WEBSOCKET_VERSION, "sec-websocket-version", "HTTP_SEC_WEBSOCKET_VERSION")                                    \
    X(TE, "te", "HTTP_TE")                                                                                             \
    X(TRANSFER_ENCODING, "transfer-encoding", "HTTP_TRANSFER_ENCODING")                                                \
    X(UPGRADE, "upgrade", "HTTP_UPGRADE")                                                                              \
    X(UPGRADE_INSECURE_REQUESTS, "upgrade-insecure-requests", "HTTP_UPGRADE_INSECURE_REQUESTS")                        \
    X(USER_AGENT, "user-agent", "HTTP_USER_AGENT")                                                                     \
    X(VIA, "via", "HTTP_VIA")                                                                                          \
    X(X_CSRF_TOKEN, "x-csrf-token", "HTTP_X_CSRF_TOKEN")                                                               \
    X(X_FORWARDED_FOR, "x-forwarded-for", "HTTP_X_FORWARDED_FOR")                                                      \
    X(X_FORWARDED_HOST, "x-forwarded-host", "HTTP_X_FORWARDED_HOST")                                                   \
    X(X_FORWARDED_PORT, "x-forwarded-port", "HTTP_X_FORWARDED_PORT")                                                   \
    X(X_FORWARDED_PROTO, "x-forwarded-proto", "HTTP_X_FORWARDED_PROTO")                                                \
    X(X_REAL_IP, "x-real-ip", "HTTP_X_REAL_IP")                                                                        \
    X(X_REQUESTED_WITH, "x-requested-with", "HTTP_X_REQUESTED_WITH")                                                   \
    X(X_REQUEST_ID, "x-request-id", "HTTP_X_REQUEST_ID")                                                               \
    X(X_REQUEST_START, "x-request-start", "HTTP_X_REQUEST_START")

enum oribi_field_id {
    ORIBI_FIELD_OTHER = 0,
#define ORIBI_FIELD_ENUM(id, wire, env) ORIBI_FIELD_##id,
    ORIBI_FIELDS(ORIBI_FIELD_ENUM)
#undef ORIBI_FIELD_ENUM
        ORIBI_FIELD_COUNT
};

/* Which well-known field [name, name+n) is, any case; ORIBI_FIELD_OTHER if none. */
enum oribi_field_id oribi_field_find(const char *name, size_t n);

/* Static NUL-terminated text for ids 1 … COUNT-1. */
const char *oribi_field_env_key(enum oribi_field_id id);

/* Writes the environment key of an ORIBI_FIELD_OTHER field ("X-Foo" -> "HTTP_X_FOO") into `dst`, which must hold
 * name_len + 5 bytes (at most ORIBI_FIELD_NAME_BYTES_MAX + 5). Returns its length; no NUL. */
size_t oribi_field_write_env_key(const struct oribi_field *field, char *dst);

/* The field with this id, or NULL. */
const struct oribi_field *oribi_head_field(const struct oribi_head *head, enum oribi_field_id id);

#endif
