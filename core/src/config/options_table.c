/* The table of all options: the one source of names, bounds, defaults and help for both commands, both bindings and
 * doc/options.md. */
#include "config/options_private.h"

#include "oribi/base/limits.h"
#include "oribi/base/metric.h"
#include "oribi/config/acme.h"
#include "oribi/files/fixed.h"
#include "oribi/http/compress.h"

#include <stdint.h>

/* One word for each type: name, group, languages. The field has the option's name; times end in _ms. */
#define OPTION(is, called, in, with, field)                                                                            \
    .name = #called, .type = ORIBI_OPTION_##is, .group = ORIBI_GROUP_##in, .lang = ORIBI_LANG_##with,                  \
    .offset = offsetof(struct oribi_options, field), .width = sizeof(((struct oribi_options *)0)->field)
#define TEXT(called, in, with)   OPTION(TEXT, called, in, with, called)
#define CODE(called, in, with)   OPTION(CODE, called, in, with, called)
#define LIST(called, in, with)   OPTION(LIST, called, in, with, called)
#define SWITCH(called, in, with) OPTION(BOOL, called, in, with, called)
#define COUNT(called, in, with)  OPTION(COUNT, called, in, with, called), .argument = "N"
#define SIZE(called, in, with)   OPTION(SIZE, called, in, with, called), .argument = "SIZE"
#define TIME(called, in, with)   OPTION(TIME, called, in, with, called##_ms), .argument = "TIME"
#define RANGE(called, in, with)  OPTION(RANGE, called, in, with, called), .argument = "N[..M]"
/* A reload takes a changed value over (see oribi_option.reloads); without this word only a restart does. */
#define RELOADS .reloads = true
/* How the configuration file's word is composed into the line. */
#define COMPOSED(...) .composed = {__VA_ARGS__}

#define HOURS_24 ((int64_t)24 * 3600 * 1000)
#define TERABYTE ((int64_t)1 << 40)

static const struct oribi_option table[] = {
    /* ORIBI_GROUP_LISTEN */
    {LIST(bind, LISTEN, BOTH), RELOADS, .short_flag = "b", .argument = "ADDR",
     COMPOSED("1?", "ADDR", "certificate key ocsp frontend? ipv6only? proxy?"),
     .help = "address to listen on; repeatable: host:port, :port, [::1]:port, [::]:port for every address, "
             "tcp://host:port, unix:///path?umask=007, /path, fd://3, tls://host:port?certificate=FILE&key=FILE. "
             "?frontend=on: HTTP/2 without TLS. ?proxy=on: expect a PROXY header from trusted proxies",
     .default_note = "127.0.0.1:9292; in production 0.0.0.0:9292, [::]:9292 on a machine without IPv4",
     .aliases = "listen l"},
    {TEXT(host, LISTEN, BOTH), RELOADS, .short_flag = "o", .argument = "HOST",
     .help = "host to listen on, without bind",
     .default_note = "127.0.0.1; in production 0.0.0.0, :: on a machine without IPv4"},
    {OPTION(COUNT, port, LISTEN, BOTH, port), RELOADS, .short_flag = "p", .argument = "PORT", .max = UINT16_MAX,
     .help = "port to listen on, without bind; 0: any free port", .default_text = "9292"},
    {COUNT(backlog, LISTEN, BOTH), .max = INT32_MAX, .default_text = "0",
     .help = "connections that may wait to be accepted; 0: the system's maximum", .default_note = "system maximum"},
    {SWITCH(reuse_port, LISTEN, BOTH), .default_text = "off",
     .help = "set SO_REUSEPORT, so that another server may listen on the same address"},
    {LIST(trusted_proxies, LISTEN, BOTH), RELOADS, .argument = "ADDR", .default_note = "none",
     .help = "peers whose X-Forwarded-For and X-Forwarded-Proto set REMOTE_ADDR and the scheme; repeatable: "
             "10.0.0.0/8, ::1, unix for all unix sockets"},
    {SWITCH(proxy_protocol, LISTEN, BOTH), RELOADS, .default_text = "off",
     .help = "expect a PROXY header (version 1 or 2) from trusted proxies, on every listener"},

    {OPTION(LIST, certificate, LISTEN, BOTH, certificates), .argument = "CERT[,KEY[,OCSP]]", .default_note = "none",
     COMPOSED("1[,2]?", "CERT KEY", "key ocsp"),
     .help = "files: certificate with its chain, key (if it is not in the first), OCSP response; for all tls:// "
             "addresses; repeatable: the name that a client asks for (SNI) chooses one"},
    {TEXT(certificate_password_command, LISTEN, BOTH), .argument = "COMMAND", .default_note = "none",
     .help = "a command line, split at spaces, run without a shell; gets the path of an encrypted key as its last "
             "argument and prints the password"},
    {LIST(acme, LISTEN, BOTH), .argument = "NAME[,NAME]...", .default_note = "none", .max = ORIBI_ACME_CERTIFICATES_MAX,
     COMPOSED("1?", "+NAME", "email"),
     .help = "get a certificate for these names from Let's Encrypt, and renew it (port 80 must lead here); repeatable: "
             "one certificate each"},
    {SWITCH(acme_terms, LISTEN, BOTH), .default_text = "off",
     .help = "agree to the terms of service of that authority"},
    {TEXT(acme_directory, LISTEN, BOTH), .argument = "URL",
     .default_text = "https://acme-v02.api.letsencrypt.org/directory", .help = "directory of another authority (ACME)"},
    {TEXT(acme_dir, LISTEN, BOTH), .argument = "DIR", .default_note = "/var/lib/oribi/acme",
     .help = "folder of keys, certificates and the account"},
    {TEXT(acme_command, LISTEN, BOTH), .argument = "COMMAND", .default_text = "uacme",
     .help = "ACME client: uacme, or a command line with its arguments and hooks"},
    {TEXT(acme_user, LISTEN, BOTH), .argument = "NAME", .default_note = "oribi-acme, else nobody",
     .help = "user of the ACME client; needs a start as root"},
    {TEXT(client_ca, LISTEN, BOTH), .argument = "FILE", .default_note = "none",
     .help = "ask clients of tls:// addresses for certificates signed by these authorities"},
    {TEXT(client_verify, LISTEN, BOTH), .argument = "HOW", .default_text = "required", .choices = "required optional",
     .help = "with client_ca: required: reject clients without a valid certificate; optional: let them in, the "
             "application sees SSL_CLIENT_VERIFY"},
    {TEXT(tls_min, LISTEN, BOTH), .argument = "VERSION", .default_text = "1.2", .choices = "1.2 1.3",
     .help = "lowest version of TLS: 1.2 or 1.3"},
    {SWITCH(http2, LISTEN, BOTH), .default_text = "on", .help = "offer HTTP/2 to clients of tls:// addresses (ALPN)"},
    {OPTION(COUNT, hsts, LISTEN, BOTH, hsts_s), .argument = "SECONDS", .max = INT32_MAX, .default_text = "0",
     .help = "send Strict-Transport-Security with this max-age over TLS; 0: off"},
    {OPTION(COUNT, https_redirect, LISTEN, BOTH, https_redirect), RELOADS, .argument = "PORT", .max = UINT16_MAX,
     .default_text = "0",
     .help =
         "redirect plain requests to https:// on this port, except health and /.well-known/acme-challenge/; 0: off"},
    {COUNT(frontends, LISTEN, BOTH), .max = ORIBI_FRONTENDS_MAX, .default_text = "0",
     .default_note = "one for four CPUs",
     .help = "processes that hold the clients of tls:// addresses and of ?frontend=on; 0: one for each four CPUs"},
    {TEXT(frontend_user, LISTEN, BOTH), .argument = "NAME", .default_note = "user",
     .help = "user of frontends, by name or number; needs a start as root"},
    {SWITCH(frontend_sandbox, LISTEN, BOTH), .default_text = "on",
     .help = "forbid frontends all system calls that they do not need, opening files among them (seccomp)"},
    {TIME(frontend_drain, LISTEN, BOTH), .max = HOURS_24, .default_text = "5s",
     .help = "time over which a frontend that is replaced or stops closes its WebSockets, one after another, so that "
             "not all clients come back at once; 0: all at once"},

    {OPTION(LIST, static, LISTEN, BOTH, mounts), RELOADS, .argument = "[PREFIX=]FOLDER", .default_note = "none",
     COMPOSED("[1=]2?", "/PREFIX FOLDER", "cache header index html? fallthrough? symlinks nosniff? etag"),
     .help = "send files without the application; repeatable: /assets=public/assets?cache=no-cache, or public for the "
             "root, where missing files go to the application"},
    {LIST(sendfile_root, LISTEN, BOTH), RELOADS, .argument = "FOLDER", .default_note = "none",
     COMPOSED("1", "FOLDER", NULL), .help = "folder whose files the application may name in X-Sendfile; repeatable"},
    {LIST(sendfile_map, LISTEN, BOTH), RELOADS, .argument = "PREFIX=FOLDER", .default_note = "none",
     COMPOSED("1=2", "/PREFIX FOLDER", NULL),
     .help = "prefix of paths that the application may name in X-Accel-Redirect, and the folder of their files; "
             "repeatable"},

    {TEXT(compress, LISTEN, BOTH), RELOADS, .argument = "CODINGS", .default_note = "none",
     .help = "compress the application's answers with these codings, preferred first: gzip zstd br, if --version "
             "names them"},
    {COUNT(compress_level, LISTEN, BOTH), RELOADS, .max = ORIBI_COMPRESS_LEVEL_MAX, .default_text = "0",
     .help = "1: fast, 9: small; 0: gzip 5, zstd 3, br 5"},
    {SIZE(compress_min, LISTEN, BOTH), RELOADS, .max = 1 << 30, .default_text = "1K",
     .help = "do not compress shorter answers, if their length is known"},
    {LIST(compress_types, LISTEN, BOTH), RELOADS, .argument = "TYPES",
     .help = "media types to compress; repeatable: text/*, application/json, image/*+xml",
     .default_note = "text, JSON, JavaScript, XML, SVG, WebAssembly, fonts that are not compressed already"},
    {SWITCH(compress_private, LISTEN, BOTH), RELOADS, .default_text = "off",
     .help =
         "also compress answers with Set-Cookie, Cache-Control: private or no-store, with padding of random length"},

    {OPTION(LIST, answer, LISTEN, BOTH, answers), RELOADS, .argument = "PATH=STATUS[:TEXT]", .default_note = "none",
     .max = ORIBI_FIXED_MAX, COMPOSED("1=2[:3]", "/PATH #STATUS *TEXT", NULL),
     .help = "answer without the application; repeatable: /robots.txt=200:User-agent: *"},
    {OPTION(LIST, redirect, LISTEN, BOTH, redirects), RELOADS, .argument = "FROM=[STATUS:]TO", .default_note = "none",
     .max = ORIBI_FIXED_MAX, COMPOSED("1=[3:]2", "/FROM TO #STATUS", NULL),
     .help = "redirect without the application, with 301, or 302, 303, 307, 308; repeatable: /old=/new, "
             "/was/*=308:/is/*"},
    {TEXT(health, LISTEN, BOTH), RELOADS, .argument = "PATH", .default_note = "none", COMPOSED("1", "/PATH", NULL),
     .help = "path that answers 200 while the server serves, 503 once a stop begins, without the application"},

    {OPTION(LIST, header, LISTEN, BOTH, headers), RELOADS, .argument = "NAME:TEXT", .default_note = "none",
     COMPOSED("1:2", "NAME TEXT", NULL),
     .help = "header for every answer that does not have it; repeatable: X-Frame-Options:DENY"},
    {OPTION(LIST, error_page, LISTEN, BOTH, error_pages), RELOADS, .argument = "STATUS[,STATUS]=FILE",
     .default_note = "none", COMPOSED("1=2", "#STATUS FILE", NULL),
     .help = "file for the server's own answers of these statuses; repeatable: 500,502=public/500.html"},

    /* ORIBI_GROUP_PROCESS */
    {COUNT(workers, PROCESS, BOTH), RELOADS, .short_flag = "w", .max = ORIBI_WORKERS_MAX,
     .help = "worker processes; auto or 0: one for each CPU that this process may use", .default_text = "auto",
     .default_note = "auto; 1 in oribi in development", .aliases = "max_workers"},
    {COUNT(threads, PROCESS, RUBY), RELOADS, .min = 1, .max = ORIBI_THREADS_MAX, .default_text = "1",
     .default_note = "1; 3 in development where workers is not given",
     .help = "calls at a time in one worker, each in its thread; of 0:5 the second number counts"},
    {SWITCH(single, PROCESS, BOTH), .default_text = "off",
     .default_note = "off; on in development where fork is not safe (macOS) and workers is not given",
     .help = "one process that serves by itself, without forking; a reload or upgrade starts the program anew under "
             "its pid"},
    {SWITCH(helper, PROCESS, BOTH), RELOADS, .default_text = "on",
     .help = "a second thread of the worker reads, refuses and passes requests on while a call is long"},
    {SWITCH(preload, PROCESS, BOTH), RELOADS, .default_text = "on", .aliases = "preload_app",
     .help = "load the application before the workers are forked, so that they share its memory"},
    {SWITCH(daemonize, PROCESS, BOTH), .short_flag = "D", .default_text = "off",
     .help = "go to the background once the server is up"},
    {TEXT(pid_file, PROCESS, BOTH), .short_flag = "P", .argument = "FILE", .aliases = "pid",
     .help = "write the supervisor's process id to this file; removed at the end"},
    {TEXT(restart_file, PROCESS, BOTH), RELOADS, .argument = "FILE", .default_note = "none",
     .help = "reload when this file is touched, such as tmp/restart.txt; it need not exist; relative to the "
             "application's folder"},
    {TEXT(user, PROCESS, BOTH), RELOADS, .argument = "NAME",
     .help = "user of the workers, by name or number; needs a start as root"},
    {TEXT(group, PROCESS, BOTH), RELOADS, .argument = "NAME", .help = "group of the workers",
     .default_note = "the user's"},
    {TIME(shutdown_timeout, PROCESS, BOTH), RELOADS, .max = HOURS_24,
     .help = "time for a graceful stop; what is left then is killed", .default_text = "30s"},
    {TIME(boot_timeout, PROCESS, BOTH), RELOADS, .max = HOURS_24,
     .help = "time for loading the application and starting a worker; 0: no limit", .default_text = "60s"},
    {TIME(spawn_interval, PROCESS, BOTH), RELOADS, .max = HOURS_24, .default_text = "0",
     .help = "least time between the starts of two workers"},
    {TIME(err_respawn_interval, PROCESS, BOTH), RELOADS, .max = HOURS_24, .default_text = "1s",
     .help = "pause before a failed start is tried again"},
    {COUNT(roll_max_unavailable, PROCESS, BOTH), RELOADS, .max = ORIBI_WORKERS_MAX, .default_text = "0",
     .default_note = "a tenth of the workers, at least 1",
     .help = "workers replaced at a time by a reload or recycling; new ones start first"},
    {TIME(drain_delay, PROCESS, BOTH), RELOADS, .max = HOURS_24, .default_text = "0",
     .help = "time between the announcement of a graceful stop and its begin, for load balancers"},
    {TEXT(control, PROCESS, BOTH), .argument = "PATH", .default_note = "in /tmp/oribi-<uid>",
     .help = "unix socket of the ctl command; without it ctl finds the server by the folder; none: no socket"},

    {TEXT(status, PROCESS, BOTH), .argument = "ADDR", .default_note = "none",
     .help = "address of metrics and state, answered even while every worker is stuck: host:port on loopback, or "
             "/path of a unix socket; others need status_token"},
    {TEXT(status_token, PROCESS, BOTH), .argument = "TEXT", .default_note = "none", .secret = true,
     .help = "clients of status must send Authorization: Bearer TEXT"},
    {TEXT(agent, PROCESS, BOTH), .argument = "ADDR", .default_note = "none",
     .help = "address for a load balancer's agent check: up ready with the share of weight, maint during the start, "
             "drain before a stop; host:port in numbers, or /path of a unix socket"},

    {COUNT(metrics_max, PROCESS, BOTH), .max = ORIBI_METRIC_SERIES_MAX, .default_text = "1000",
     .help = "series of the application's own metrics; changes of further ones are dropped and counted; 0: no metrics"},

    /* ORIBI_GROUP_TIMEOUT */
    {TIME(head_timeout, TIMEOUT, BOTH), RELOADS, .min = 1, .max = HOURS_24,
     .help = "time for a whole request head, from its first byte on, then 408; and for a new connection to send one",
     .default_text = "10s", .aliases = "read_timeout"},
    {TIME(body_timeout, TIMEOUT, BOTH), RELOADS, .min = 1, .max = HOURS_24,
     .help = "time to wait for the next bytes of a request body; then 408", .default_text = "10s"},
    {SIZE(body_rate_min, TIMEOUT, BOTH), RELOADS, .max = 1 << 30, .default_text = "256",
     .help = "least bytes per second of a request body, checked after body_timeout; 0: any"},
    {TIME(idle_timeout, TIMEOUT, BOTH), RELOADS, .min = 1, .max = HOURS_24,
     .help = "time that a connection may rest between two requests", .default_text = "75s",
     .aliases = "keepalive_timeout"},
    {TIME(write_timeout, TIMEOUT, BOTH), RELOADS, .min = 1, .max = HOURS_24,
     .help = "time without the client taking a byte of an answer; then its connection is closed",
     .default_text = "30s"},
    {TIME(call_timeout, TIMEOUT, BOTH), RELOADS, .short_flag = "t", .max = HOURS_24,
     .help = "time that a call may take without sending a byte; then Oribi::CallTimeout is raised in it, and a worker "
             "still in it two seconds later is killed and replaced. Waiting for the client does not count. 0: no limit",
     .default_text = "60s", .default_note = "60s; 0 in development"},
    {TEXT(cancel_gone, TIMEOUT, BOTH), RELOADS, .argument = "METHODS", .default_text = "off",
     .help = "raise Oribi::ClientGone in a call whose client has left: off, on (GET and HEAD), or methods such as "
             "GET,HEAD,POST. The access log has 499. Needs helper"},
    {TEXT(gone_on, TIMEOUT, BOTH), RELOADS, .argument = "WHAT", .default_text = "auto", .choices = "auto fin reset",
     .help = "when a client counts as gone (oribi.gone?, cancel_gone): reset: closed in both directions; fin: has "
             "finished sending; auto: fin from a proxy or after a request that was to keep the connection"},
    {TIME(queue_time_max, TIMEOUT, BOTH), RELOADS, .max = HOURS_24, .default_text = "0",
     .help = "time that a complete request may wait for its call, from the proxy on with X-Request-Start; then 503 "
             "with Retry-After. 0: no limit"},

    /* ORIBI_GROUP_LIMIT */
    {OPTION(SIZE, target_bytes_max, LIMIT, BOTH, limits.target_bytes_max), RELOADS, .argument = "SIZE", .min = 64,
     .max = ORIBI_HEAD_BYTES_CAP, .help = "longest request target; beyond it 414", .default_text = "16K"},
    {OPTION(SIZE, head_bytes_max, LIMIT, BOTH, limits.head_bytes_max), RELOADS, .argument = "SIZE", .min = 1024,
     .max = ORIBI_HEAD_BYTES_CAP, .help = "longest request head; beyond it 431", .default_text = "64K"},
    {OPTION(COUNT, fields_max, LIMIT, BOTH, limits.fields_max), RELOADS, .argument = "N", .min = 1,
     .max = ORIBI_FIELDS_CAP, .help = "most header fields of a request; beyond it 431", .default_text = "100"},
    {OPTION(SIZE, body_bytes_max, LIMIT, BOTH, limits.body_bytes_max), RELOADS, .argument = "SIZE", .max = TERABYTE,
     .help = "longest request body; beyond it 413", .default_text = "1G"},
    {OPTION(SIZE, body_memory_max, LIMIT, BOTH, limits.body_memory_max), RELOADS, .argument = "SIZE", .min = 1024,
     .max = 1 << 30,
     .help = "longer request bodies go to an unlinked file in TMPDIR; above 128K also when three quarters of "
             "buffers_memory_max are in use",
     .default_text = "16M"},
    {SWITCH(multipart_stream, LIMIT, BOTH), RELOADS, .default_text = "off",
     .help = "split forms over 128K (or body_memory_max, if less) while they arrive: large files are written once, to "
             "unlinked files for Oribi::Multipart; a malformed form gets 400"},
    {SIZE(response_memory_max, LIMIT, BOTH), RELOADS, .min = 1024, .max = 1 << 30,
     .help = "more unsent output of one connection goes to an unlinked file", .default_text = "1M"},
    {SIZE(buffers_memory_max, LIMIT, BOTH), RELOADS, .max = TERABYTE,
     .help = "bodies and unsent output that one worker keeps in memory; more goes to unlinked files. 0: no limit",
     .default_text = "64M"},
    {SIZE(buffers_file_max, LIMIT, BOTH), RELOADS, .max = TERABYTE,
     .help = "bodies and unsent output that one worker keeps in unlinked files; beyond it requests get 503 and "
             "answers are cut. 0: no limit",
     .default_text = "16G"},
    {SIZE(static_memory_max, LIMIT, BOTH), RELOADS, .max = TERABYTE,
     .help = "memory of one worker for files of static: files up to 64 KiB whole, of others what is known of them",
     .default_text = "32M"},
    {COUNT(static_open_max, LIMIT, BOTH), RELOADS, .max = 1000000,
     .help = "larger files of static that one worker keeps open", .default_text = "1024"},
    {COUNT(connections_max, LIMIT, BOTH), RELOADS, .min = 1, .max = 1000000,
     .help = "open connections of one worker. A further one replaces the longest idle connection, then the oldest "
             "unfinished request head, else it waits in the backlog. The soft limit of descriptors is raised as needed",
     .default_text = "10000", .aliases = "max_keepalive_connection"},
    {COUNT(queue_max, LIMIT, BOTH), RELOADS, .max = 1000000, .default_text = "0",
     .help = "complete requests that may wait in one worker; beyond it 503 with Retry-After. 0: no limit"},
    {COUNT(keepalive_requests_max, LIMIT, BOTH), RELOADS, .max = INT32_MAX,
     .help = "requests on one connection; 1: no keep-alive, 0: no limit", .default_text = "0",
     .aliases = "max_keepalive_reqs"},
    {OPTION(BOOL, underscores_allow, LIMIT, BOTH, limits.underscores_allow), RELOADS, .default_text = "off",
     .help = "keep request fields with an underscore in their name, which look like others in the environment"},
    {OPTION(BOOL, strict_target, LIMIT, BOTH, limits.strict_target), RELOADS, .default_text = "off",
     .help = "refuse request targets with bytes above 127 or any of \\^`{|} unescaped, as browsers send them"},
    {OPTION(BOOL, connect_allow, LIMIT, BOTH, limits.connect_allow), RELOADS, .default_text = "off",
     .help = "pass CONNECT to the application instead of answering 501"},

    /* ORIBI_GROUP_WEBSOCKET */
    {LIST(websocket_origins, WEBSOCKET, BOTH), .argument = "ORIGIN", .default_note = "the request's own host",
     .help = "pages that may open WebSockets, beside those of the request's own host; others get 403; repeatable: "
             "https://example.com, https://*.example.com, * for all"},
    {TIME(websocket_ping, WEBSOCKET, BOTH), .max = HOURS_24, .default_text = "30s",
     .help = "time without a frame of the client after which it is sent a Ping; after two without an answer its "
             "connection is closed. 0: no Pings"},
    {SIZE(websocket_message_max, WEBSOCKET, BOTH), .min = 1, .max = 1 << 30, .default_text = "1M",
     .help = "longest message of a client; beyond it the socket is closed with 1009"},
    {SIZE(websocket_pending_max, WEBSOCKET, BOTH), .min = 1024, .max = 1 << 30, .default_text = "256K",
     .help = "bytes that may wait for a slow client; beyond it its messages are not read, and a channel's closes the "
             "socket with 1013. One may always wait"},
    {COUNT(websockets_max, WEBSOCKET, BOTH), .max = 1000000, .default_text = "0",
     .default_note = "nine tenths of connections_max",
     .help = "open WebSockets of one frontend; beyond it 503. 0: nine tenths of connections_max"},
    {COUNT(websocket_rate_max, WEBSOCKET, BOTH), .max = 1000000, .default_text = "0",
     .help = "messages that a client may send in a second; beyond it the socket is closed with 1008. 0: no limit"},
    {TIME(events_ping, WEBSOCKET, BOTH), .max = HOURS_24, .default_text = "15s",
     .help = "time without an event after which an event stream gets a comment, so that proxies keep it open. 0: none"},
    {COUNT(events_max, WEBSOCKET, BOTH), .max = 1000000, .default_text = "0",
     .default_note = "nine tenths of connections_max",
     .help = "open event streams of one frontend; beyond it 503. 0: nine tenths of connections_max"},
    {LIST(history, WEBSOCKET, BOTH), .argument = "PREFIX,MESSAGES,AGE", .default_note = "none", .max = 32,
     COMPOSED("1,2,3", "PREFIX #MESSAGES AGE"),
     .help = "channels whose name begins so keep their last messages for clients that come back: so many, no older "
             "than this age; repeatable, the first that fits counts"},
    {SIZE(history_memory_max, WEBSOCKET, BOTH), .min = 1024, .max = TERABYTE, .default_text = "64M",
     .help = "memory of all histories of one frontend; beyond it the oldest messages of all channels go"},
    {COUNT(subscriptions_max, WEBSOCKET, BOTH), .min = 1, .max = 100000000, .default_text = "1000000",
     .help = "subscriptions to channels of all clients of one frontend; beyond it a socket is closed with 1013"},

    /* ORIBI_GROUP_RECYCLE */
    {RANGE(requests_max, RECYCLE, BOTH), RELOADS, .max = INT32_MAX, .default_text = "0",
     .help = "replace a worker after so many requests; N..M: each worker draws its number. 0: never",
     .aliases = "max_requests max_request_per_child max_reqs_per_child"},
    {COUNT(requests_jitter, RECYCLE, BOTH), RELOADS, .max = INT32_MAX, .default_text = "0",
     .help = "add up to so many requests to requests_max, drawn for each worker"},
    {SIZE(memory_max, RECYCLE, BOTH), RELOADS, .max = TERABYTE, .default_text = "0",
     .help = "replace a worker that holds more memory (PSS); 0: never"},
    {TIME(age_max, RECYCLE, BOTH), RELOADS, .max = 365 * HOURS_24, .default_text = "0",
     .help = "replace a worker that has served for longer, or up to an eighth longer; 0: never"},
    {COUNT(refork_after, RECYCLE, BOTH), RELOADS, .max = INT32_MAX, .default_text = "0",
     .help = "the first worker with so many requests becomes the mold from which all others are forked anew; 0: never"},
    {SWITCH(oob_gc, RECYCLE, RUBY), RELOADS, .default_text = "off",
     .help = "collect garbage between requests, while none waits, instead of during them"},
    {RANGE(oob_gc_requests, RECYCLE, RUBY), RELOADS, .min = 1, .max = INT32_MAX,
     .help = "with oob_gc: collect after so many requests; N..M: each worker draws its number", .default_text = "5",
     .aliases = "max_gc_per_request"},
    {TIME(oob_gc_idle, RECYCLE, RUBY), RELOADS, .max = HOURS_24, .default_text = "0",
     .help = "with oob_gc: collect when a worker has had no request for so long, instead of after a number of them; "
             "0: off"},

    /* ORIBI_GROUP_LOG */
    {TIME(slow_log, LOG, BOTH), RELOADS, .max = HOURS_24, .default_text = "0", .default_note = "0: off",
     .help = "log a call that has not begun its answer after so long, with its line of code; again after twice, four "
             "times that and so on, and at its end"},
    {TEXT(access_log, LOG, BOTH), RELOADS, .argument = "FILE",
     .help = "one line for each answer; -: standard output, off: none", .default_note = "-; off in production"},
    {TEXT(access_log_format, LOG, BOTH), RELOADS, .argument = "FORMAT", .default_text = "combined",
     .default_note = "combined; dev in development on a terminal",
     .help = "common, combined, json, dev, or a format of your own in the manner of Apache ('%h %t \"%r\" %>s %b') or "
             "nginx ('$remote_addr \"$request\" $status')"},
    {LIST(access_log_skip, LOG, BOTH), RELOADS, .argument = "PATH", .default_note = "none",
     .help = "path without lines in the access log; repeatable: /up, or /health/* for all that begin so"},
    {COUNT(access_log_sample, LOG, BOTH), RELOADS, .min = 1, .max = INT32_MAX, .default_text = "1",
     .help = "a worker logs one of so many answers below 400, and all from 400 on"},
    {SWITCH(request_id, LOG, BOTH), RELOADS, .default_text = "off",
     .help = "give each request an id: X-Request-Id of a trusted proxy, else a new one, as HTTP_X_REQUEST_ID and in "
             "the logs"},
    {TEXT(request_id_header, LOG, BOTH), RELOADS, .argument = "NAME", .default_note = "none",
     .help = "header that tells clients the request's id, such as X-Request-Id, unless the application sets it; turns "
             "request_id on"},
    {SWITCH(server_timing, LOG, BOTH), RELOADS, .default_text = "off",
     .help = "add Server-Timing to the application's answers: time in the queue and in the call (streams: until their "
             "head), visible to everybody"},
    {TEXT(error_log, LOG, BOTH), RELOADS, .argument = "FILE", .default_text = "-",
     .help = "file for standard error of the server and the application; -: leave it"},
    {TEXT(error_log_format, LOG, BOTH), RELOADS, .argument = "NAME", .default_text = "text", .choices = "text json",
     .help = "the server's own lines as text, or as JSON with worker, generation and request id"},
    {SWITCH(quiet, LOG, BOTH), RELOADS, .short_flag = "q", .default_text = "off",
     .help = "log warnings and errors only"},
    {SWITCH(verbose, LOG, BOTH), RELOADS, .short_flag = "v", .default_text = "off", .help = "log debugging lines too"},

    /* ORIBI_GROUP_APP */
    {LIST(warmup, APP, BOTH), RELOADS, .argument = "TARGET",
     .help =
         "path that a loaded application must answer with a status below 500 before workers are forked; repeatable"},
    {TEXT(env, APP, BOTH), RELOADS, .short_flag = "E", .argument = "NAME", .aliases = "environment",
     .help = "environment that the application sees; production and deployment change defaults",
     .default_note = "development"},
    {SWITCH(dev, APP, BOTH), .default_text = "off", .default_note = "on in development",
     .help = "development: load the application anew when a file of it changes; if it does not load, answer with a "
             "page about the error"},
    {LIST(watch, APP, BOTH), .argument = "PATH",
     .help = "with dev: more files, folders or patterns (\"views\", \"config/*.yml\", \"lib/**/*.tt\") whose changes "
             "load the application anew; repeatable"},
    {TEXT(chdir, APP, BOTH), RELOADS, .argument = "DIR",
     .help = "directory to change to before anything else is looked for; in the configuration file, before what it "
             "names"},
    {LIST(include, APP, BOTH), RELOADS, .short_flag = "I", .argument = "DIR",
     .help = "directory to search libraries in; repeatable"},
    {LIST(require, APP, BOTH), RELOADS, .short_flag = "r", .argument = "NAME", .aliases = "modules M",
     .help = "library or module to load before the application; repeatable"},
    {CODE(eval, APP, PERL), RELOADS, .short_flag = "e", .argument = "CODE",
     .help = "application given as source text instead of a file"},
    {CODE(child_exit, APP, PERL), RELOADS, .argument = "CODE",
     .help = "source text of a subroutine that each worker calls before it ends"},
    {SWITCH(early_hints, APP, BOTH), RELOADS, .default_text = "off", .default_note = "off in oribi, on in oribi-psgi",
     .help = "offer rack.early_hints or psgix.informational for 103 and other interim answers; nginx before 1.29 does "
             "not understand them"},
    {TEXT(server_header, APP, BOTH), RELOADS, .argument = "TEXT",
     .help = "value of the Server field, unless the application sets one; not set: none"},

    /* ORIBI_GROUP_COMMAND */
    {TEXT(config, COMMAND, BOTH), .short_flag = "C", .argument = "FILE", .aliases = "config_file",
     .help = "configuration file; the command line wins over it",
     .default_note = "config/oribi.rb or config/oribi.pl when there is one"},
    {SWITCH(check, COMMAND, BOTH), .default_text = "off",
     .help = "load configuration and application, say whether that worked, and end; the command check also reports "
             "risks"},
    {SWITCH(open, COMMAND, BOTH), .default_text = "off",
     .help = "in development start a browser once the server is up: BROWSER, or xdg-open on a display"},
    {SWITCH(print_config, COMMAND, BOTH), .default_text = "off", .help = "print every option with its value and end"},
    {TEXT(completion, COMMAND, BOTH), .argument = "SHELL", .choices = "bash zsh fish",
     .help = "print a script that completes this command's words in a shell, bash, zsh or fish, and end"},
    {SWITCH(version, COMMAND, BOTH), .default_text = "off", .help = "print the version and end"},
    {SWITCH(help, COMMAND, BOTH), .short_flag = "h", .default_text = "off",
     .help = "print the most used options and end; --help all prints every option"},
};

_Static_assert(sizeof(table) / sizeof(table[0]) <= ORIBI_OPTIONS_MAX, "struct oribi_options keeps a source for each");

const struct oribi_option *oribi_options_table(size_t *count)
{
    *count = sizeof(table) / sizeof(table[0]);
    return table;
}
