/* The table of all options: the one source of names, bounds, defaults and help for both commands, both bindings and
 * doc/options.md. */
#include "config/options_private.h"

#include "oribi/base/limits.h"
#include "oribi/base/metric.h"
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
     .help = "address to listen on, may be repeated: tcp://host:port, tcp://[::1]:port, [::]:port for every "
             "address, host:port, :port, unix:///path?umask=007, /path, fd://3, "
             "tls://host:port?certificate=FILE&key=FILE; with ?frontend=on HTTP/2 without TLS, with ?proxy=on trusted "
             "proxies begin with a PROXY header",
     .default_note = "127.0.0.1:9292; in production 0.0.0.0:9292, [::]:9292 on a machine without IPv4",
     .aliases = "listen l"},
    {TEXT(host, LISTEN, BOTH), RELOADS, .short_flag = "o", .argument = "HOST",
     .help = "host to listen on when bind is not given",
     .default_note = "127.0.0.1; in production 0.0.0.0, :: on a machine without IPv4"},
    {OPTION(COUNT, port, LISTEN, BOTH, port), RELOADS, .short_flag = "p", .argument = "PORT", .max = UINT16_MAX,
     .help = "port to listen on when bind is not given; 0 takes any free one", .default_text = "9292"},
    {COUNT(backlog, LISTEN, BOTH), .max = INT32_MAX, .default_text = "0",
     .help = "connections that may wait to be accepted; 0 takes the system's maximum",
     .default_note = "system maximum"},
    {SWITCH(reuse_port, LISTEN, BOTH), .default_text = "off",
     .help = "set SO_REUSEPORT, so that another server may listen on the same address"},
    {LIST(trusted_proxies, LISTEN, BOTH), RELOADS, .argument = "ADDR", .default_note = "none",
     .help = "peers whose X-Forwarded-For and X-Forwarded-Proto set REMOTE_ADDR and the scheme, may be repeated: "
             "10.0.0.0/8, ::1, unix for all on unix sockets"},
    {SWITCH(proxy_protocol, LISTEN, BOTH), RELOADS, .default_text = "off",
     .help = "expect a PROXY header (version 1 or 2) at the start of each connection of a trusted proxy, on every "
             "listener"},

    {OPTION(LIST, certificate, LISTEN, BOTH, certificates), .argument = "CERT[,KEY[,OCSP]]", .default_note = "none",
     COMPOSED("1[,2]?", "CERT KEY", "key ocsp"),
     .help =
         "files of a certificate with its chain, of its key (else it is in the first), and of an OCSP response, for "
         "all tls:// addresses, may be repeated: the name that a client asks for (SNI) says which one serves"},
    {TEXT(certificate_password_command, LISTEN, BOTH), .argument = "COMMAND", .default_note = "none",
     .help =
         "program with its arguments, parted by blanks, that gets the path of an encrypted key as its last argument "
         "and prints the key's password; no shell reads it"},
    {TEXT(client_ca, LISTEN, BOTH), .argument = "FILE", .default_note = "none",
     .help = "certificates of the authorities that sign those of clients, which tls:// addresses then ask for"},
    {TEXT(client_verify, LISTEN, BOTH), .argument = "HOW", .default_text = "required", .choices = "required optional",
     .help =
         "with client_ca: required refuses clients without a good certificate, optional tells the application of it "
         "in SSL_CLIENT_VERIFY"},
    {TEXT(tls_min, LISTEN, BOTH), .argument = "VERSION", .default_text = "1.2", .choices = "1.2 1.3",
     .help = "lowest version of TLS: 1.2 or 1.3"},
    {SWITCH(http2, LISTEN, BOTH), .default_text = "on", .help = "offer HTTP/2 to clients of tls:// addresses (ALPN)"},
    {OPTION(COUNT, hsts, LISTEN, BOTH, hsts_s), .argument = "SECONDS", .max = INT32_MAX, .default_text = "0",
     .help = "answers by TLS say for so long to use nothing else (Strict-Transport-Security); 0 says nothing"},
    {OPTION(COUNT, https_redirect, LISTEN, BOTH, https_redirect), RELOADS, .argument = "PORT", .max = UINT16_MAX,
     .default_text = "0",
     .help = "requests that did not come by HTTPS are sent to https:// at this port, but for health and "
             "/.well-known/acme-challenge/; 0 answers them"},
    {COUNT(frontends, LISTEN, BOTH), .max = ORIBI_FRONTENDS_MAX, .default_text = "0",
     .default_note = "one for four CPUs",
     .help =
         "processes that hold the clients of tls:// addresses and of those with ?frontend=on; 0 starts one for each "
         "four CPUs"},
    {TEXT(frontend_user, LISTEN, BOTH), .argument = "NAME", .default_note = "user",
     .help = "user that frontends run as, by name or number; needs a start as root"},
    {SWITCH(frontend_sandbox, LISTEN, BOTH), .default_text = "on",
     .help = "forbid frontends all system calls that they do not need, opening files among them (seccomp)"},

    {OPTION(LIST, static, LISTEN, BOTH, mounts), RELOADS, .argument = "[PREFIX=]FOLDER", .default_note = "none",
     COMPOSED("[1=]2?", "/PREFIX FOLDER", "cache header index html? fallthrough? symlinks nosniff? etag"),
     .help = "files that are sent without the application, may be repeated: /assets=public/assets?cache=no-cache, or "
             "public for the root, which goes on to the application where there is no such file"},
    {LIST(sendfile_root, LISTEN, BOTH), RELOADS, .argument = "FOLDER", .default_note = "none",
     COMPOSED("1", "FOLDER", NULL),
     .help = "a folder whose files an answer of the application may name in X-Sendfile, for the server to send them; "
             "may be repeated"},
    {LIST(sendfile_map, LISTEN, BOTH), RELOADS, .argument = "PREFIX=FOLDER", .default_note = "none",
     COMPOSED("1=2", "/PREFIX FOLDER", NULL),
     .help = "a prefix of the paths that an answer may name in X-Accel-Redirect, and the folder of its files, for the "
             "server to send them; may be repeated"},

    {TEXT(compress, LISTEN, BOTH), RELOADS, .argument = "CODINGS", .default_note = "none",
     .help = "content codings that the application's answers are compressed with, the preferred one first: gzip zstd "
             "br, as far as --version names them"},
    {COUNT(compress_level, LISTEN, BOTH), RELOADS, .max = ORIBI_COMPRESS_LEVEL_MAX, .default_text = "0",
     .help = "1 is fast, 9 is small; 0 takes a level for each coding: gzip 5, zstd 3, br 5"},
    {SIZE(compress_min, LISTEN, BOTH), RELOADS, .max = 1 << 30, .default_text = "1K",
     .help = "a shorter answer is not compressed, where its length is known"},
    {LIST(compress_types, LISTEN, BOTH), RELOADS, .argument = "TYPES",
     .help = "media types that are compressed, may be repeated: text/*, application/json, image/*+xml",
     .default_note = "text, JSON, JavaScript, XML, SVG, WebAssembly, fonts that are not compressed already"},
    {SWITCH(compress_private, LISTEN, BOTH), RELOADS, .default_text = "off",
     .help = "compress answers with Set-Cookie, Cache-Control: private or no-store as well, with padding of random "
             "length"},

    {OPTION(LIST, answer, LISTEN, BOTH, answers), RELOADS, .argument = "PATH=STATUS[:TEXT]", .default_note = "none",
     .max = ORIBI_FIXED_MAX, COMPOSED("1=2[:3]", "/PATH #STATUS *TEXT", NULL),
     .help = "answer that is given without the application, may be repeated: /robots.txt=200:User-agent: *"},
    {OPTION(LIST, redirect, LISTEN, BOTH, redirects), RELOADS, .argument = "FROM=[STATUS:]TO", .default_note = "none",
     .max = ORIBI_FIXED_MAX, COMPOSED("1=[3:]2", "/FROM TO #STATUS", NULL),
     .help = "redirect without the application, 301 unless it says 302, 303, 307 or 308, may be repeated: /old=/new, "
             "/was/*=308:/is/*"},
    {TEXT(health, LISTEN, BOTH), RELOADS, .argument = "PATH", .default_note = "none", COMPOSED("1", "/PATH", NULL),
     .help = "path that answers 200 while the server serves and 503 once its end begins, without the application"},

    {OPTION(LIST, header, LISTEN, BOTH, headers), RELOADS, .argument = "NAME:TEXT", .default_note = "none",
     COMPOSED("1:2", "NAME TEXT", NULL),
     .help = "header of every answer that does not have one of this name, may be repeated: X-Frame-Options:DENY"},
    {OPTION(LIST, error_page, LISTEN, BOTH, error_pages), RELOADS, .argument = "STATUS[,STATUS]=FILE",
     .default_note = "none", COMPOSED("1=2", "#STATUS FILE", NULL),
     .help = "file that the server's answers of these statuses have as their body, may be repeated: "
             "500,502=public/500.html"},

    /* ORIBI_GROUP_PROCESS */
    {COUNT(workers, PROCESS, BOTH), RELOADS, .short_flag = "w", .max = ORIBI_WORKERS_MAX,
     .help = "worker processes; auto or 0 starts one for each CPU this process may use", .default_text = "auto",
     .default_note = "auto; 1 in oribi in development", .aliases = "max_workers"},
    {COUNT(threads, PROCESS, RUBY), RELOADS, .min = 1, .max = ORIBI_THREADS_MAX, .default_text = "1",
     .default_note = "1; 3 in development where workers is not given",
     .help = "calls at a time in one worker, each in a thread of its own; of 0:5 the second number counts"},
    {SWITCH(single, PROCESS, BOTH), .default_text = "off",
     .default_note = "off; on in development where fork is not safe (macOS) and workers is not given",
     .help = "one process that serves by itself: nothing is forked, and a reload or an upgrade starts the program anew "
             "under the same pid"},
    {SWITCH(helper, PROCESS, BOTH), RELOADS, .default_text = "on",
     .help = "while a call is long, a second thread of the worker reads, answers mistakes and passes requests on"},
    {SWITCH(preload, PROCESS, BOTH), RELOADS, .default_text = "on", .aliases = "preload_app",
     .help = "load the application before the workers are forked, so that they share its memory"},
    {SWITCH(daemonize, PROCESS, BOTH), .short_flag = "D", .default_text = "off",
     .help = "go to the background once the server is up"},
    {TEXT(pid_file, PROCESS, BOTH), .short_flag = "P", .argument = "FILE", .aliases = "pid",
     .help = "write the supervisor's process id there; removed at the end"},
    {TEXT(restart_file, PROCESS, BOTH), RELOADS, .argument = "FILE", .default_note = "none",
     .help = "reload when this file is touched, such as tmp/restart.txt of Passenger, Puma and bin/rails restart; it "
             "need not be there yet, and is looked for from the application's folder"},
    {TEXT(user, PROCESS, BOTH), RELOADS, .argument = "NAME",
     .help = "user that the workers run as, by name or number; needs a start as root"},
    {TEXT(group, PROCESS, BOTH), RELOADS, .argument = "NAME", .help = "group that the workers run as",
     .default_note = "the user's"},
    {TIME(shutdown_timeout, PROCESS, BOTH), RELOADS, .max = HOURS_24,
     .help = "how long a graceful stop may take before what is left is killed", .default_text = "30s"},
    {TIME(boot_timeout, PROCESS, BOTH), RELOADS, .max = HOURS_24,
     .help = "how long loading the application and starting a worker may take; 0 is for ever", .default_text = "60s"},
    {TIME(spawn_interval, PROCESS, BOTH), RELOADS, .max = HOURS_24, .default_text = "0",
     .help = "least time between the starts of two workers"},
    {TIME(err_respawn_interval, PROCESS, BOTH), RELOADS, .max = HOURS_24, .default_text = "1s",
     .help = "pause before a failed start is tried again"},
    {COUNT(roll_max_unavailable, PROCESS, BOTH), RELOADS, .max = ORIBI_WORKERS_MAX, .default_text = "0",
     .default_note = "a tenth of the workers, at least 1",
     .help = "workers that are replaced at a time by a reload or by recycling; new ones are started first"},
    {TIME(drain_delay, PROCESS, BOTH), RELOADS, .max = HOURS_24, .default_text = "0",
     .help = "how long a graceful stop is only announced, so that a load balancer can send requests elsewhere first"},
    {TEXT(control, PROCESS, BOTH), .argument = "PATH", .default_note = "in /tmp/oribi-<uid>",
     .help =
         "unix socket for the ctl command: reload, upgrade, stop, status, workers; where it is not given, ctl finds "
         "the server from the folder in which it runs; none for no socket"},

    {TEXT(status, PROCESS, BOTH), .argument = "ADDR", .default_note = "none",
     .help = "address that answers with metrics and the server's state, served by the supervisor also while every "
             "worker is stuck: host:port on loopback, or /path of a unix socket; any other needs status_token"},
    {TEXT(status_token, PROCESS, BOTH), .argument = "TEXT", .default_note = "none", .secret = true,
     .help = "what clients of status must send, as Authorization: Bearer TEXT"},
    {TEXT(agent, PROCESS, BOTH), .argument = "ADDR", .default_note = "none",
     .help =
         "address that tells a load balancer's agent check how this server is, in one line: up ready with the share "
         "of its weight that it should get, maint while it starts, drain when it is about to stop; host:port in "
         "numbers, or /path of a unix socket"},

    {COUNT(metrics_max, PROCESS, BOTH), .max = ORIBI_METRIC_SERIES_MAX, .default_text = "1000",
     .help = "series of metrics of the application's own that the server has room for; changes of further ones are "
             "dropped and counted. Memory is taken by those that there are. 0 keeps none"},

    /* ORIBI_GROUP_TIMEOUT */
    {TIME(head_timeout, TIMEOUT, BOTH), RELOADS, .min = 1, .max = HOURS_24,
     .help = "time for a whole request head, from its first byte on; then 408", .default_text = "10s",
     .aliases = "read_timeout"},
    {TIME(body_timeout, TIMEOUT, BOTH), RELOADS, .min = 1, .max = HOURS_24,
     .help = "time to wait for the next bytes of a request body; then 408", .default_text = "10s"},
    {SIZE(body_rate_min, TIMEOUT, BOTH), RELOADS, .max = 1 << 30, .default_text = "256",
     .help = "least bytes per second of a whole request body, looked at once body_timeout has passed; 0 is any"},
    {TIME(idle_timeout, TIMEOUT, BOTH), RELOADS, .min = 1, .max = HOURS_24,
     .help = "how long a connection may rest between two requests", .default_text = "75s",
     .aliases = "keepalive_timeout"},
    {TIME(write_timeout, TIMEOUT, BOTH), RELOADS, .min = 1, .max = HOURS_24,
     .help = "how long a client may go without taking a byte of an answer; then its connection is closed",
     .default_text = "30s"},
    {TIME(call_timeout, TIMEOUT, BOTH), RELOADS, .short_flag = "t", .max = HOURS_24,
     .help = "how long the application may take for one request without sending a byte; then Oribi::CallTimeout is "
             "raised in it, and two seconds later its worker is ended and replaced. Waiting for the client does not "
             "count. 0 is for ever",
     .default_text = "60s", .default_note = "60s; 0 in development"},
    {TEXT(cancel_gone, TIMEOUT, BOTH), RELOADS, .argument = "METHODS", .default_text = "off",
     .help = "raise Oribi::ClientGone in a call whose client has left: off, on (GET and HEAD), or methods such as "
             "GET,HEAD,POST; the request is logged with 499. Needs helper"},
    {TEXT(gone_on, TIMEOUT, BOTH), RELOADS, .argument = "WHAT", .default_text = "auto", .choices = "auto fin reset",
     .help = "what tells that a client has left, for oribi.gone? and cancel_gone. reset: its connection is closed in "
             "both directions; fin: it has finished sending; auto: that, from a proxy or after a request that was to "
             "keep the connection"},
    {TIME(queue_time_max, TIMEOUT, BOTH), RELOADS, .max = HOURS_24, .default_text = "0",
     .help = "how long a complete request may wait for its call, a proxy's time included that X-Request-Start "
             "tells; then 503 with Retry-After. 0 is for ever"},

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
     .help = "a longer request body is kept in an unlinked file in TMPDIR; from 128K on only while three quarters of "
             "buffers_memory_max suffice for all",
     .default_text = "16M"},
    {SWITCH(multipart_stream, LIMIT, BOTH), RELOADS, .default_text = "off",
     .help =
         "take a form apart while it arrives that is longer than 128K (body_memory_max, if less): its large files are "
         "written once, to unlinked files that Oribi::Multipart hands to the application; a malformed form is refused "
         "with 400"},
    {SIZE(response_memory_max, LIMIT, BOTH), RELOADS, .min = 1024, .max = 1 << 30,
     .help = "more unsent output of one connection is kept in an unlinked file", .default_text = "1M"},
    {SIZE(buffers_memory_max, LIMIT, BOTH), RELOADS, .max = TERABYTE,
     .help = "bodies and unsent output that one worker keeps in memory, of all its connections; more goes to unlinked "
             "files. 0 is any amount",
     .default_text = "64M"},
    {SIZE(buffers_file_max, LIMIT, BOTH), RELOADS, .max = TERABYTE,
     .help = "bodies and unsent output that one worker keeps in unlinked files; beyond it a request gets 503 and an "
             "answer is cut. 0 is any amount",
     .default_text = "16G"},
    {SIZE(static_memory_max, LIMIT, BOTH), RELOADS, .max = TERABYTE,
     .help =
         "memory that one worker spends on files of static: those of up to 64 KiB are kept whole, of others what is "
         "known of them",
     .default_text = "32M"},
    {COUNT(static_open_max, LIMIT, BOTH), RELOADS, .max = 1000000,
     .help = "larger files of static that one worker keeps open", .default_text = "1024"},
    {COUNT(connections_max, LIMIT, BOTH), RELOADS, .min = 1, .max = 1000000,
     .help =
         "open connections of one worker. For one more the connection that is idle longest is closed, then the oldest "
         "unfinished request head; while all have requests it waits in the backlog. The soft limit of descriptors is "
         "raised for them as far as the hard limit allows",
     .default_text = "10000", .aliases = "max_keepalive_connection"},
    {COUNT(queue_max, LIMIT, BOTH), RELOADS, .max = 1000000, .default_text = "0",
     .help = "complete requests that may wait in one worker; beyond it 503 with Retry-After. 0 is any number"},
    {COUNT(keepalive_requests_max, LIMIT, BOTH), RELOADS, .max = INT32_MAX,
     .help = "requests answered on one connection; 1 turns keep-alive off, 0 is any number", .default_text = "0",
     .aliases = "max_keepalive_reqs"},
    {OPTION(BOOL, underscores_allow, LIMIT, BOTH, limits.underscores_allow), RELOADS, .default_text = "off",
     .help = "keep request fields with an underscore in their name, which look like others in the environment"},
    {OPTION(BOOL, strict_target, LIMIT, BOTH, limits.strict_target), RELOADS, .default_text = "off",
     .help = "refuse request targets with bytes above 127 or any of \\^`{|} unescaped, which browsers leave so; "
             "off hands them to the application as they came"},
    {OPTION(BOOL, connect_allow, LIMIT, BOTH, limits.connect_allow), RELOADS, .default_text = "off",
     .help = "hand CONNECT to the application instead of answering 501"},

    /* ORIBI_GROUP_RECYCLE */
    {RANGE(requests_max, RECYCLE, BOTH), RELOADS, .max = INT32_MAX, .default_text = "0",
     .help = "a worker is replaced after so many requests; with N..M each worker draws its own number. 0 is never",
     .aliases = "max_requests max_request_per_child max_reqs_per_child"},
    {COUNT(requests_jitter, RECYCLE, BOTH), RELOADS, .max = INT32_MAX, .default_text = "0",
     .help = "up to so many requests are added to requests_max, drawn for each worker"},
    {SIZE(memory_max, RECYCLE, BOTH), RELOADS, .max = TERABYTE, .default_text = "0",
     .help = "a worker that holds more memory (its share of what is shared counted) is replaced; 0 is never"},
    {TIME(age_max, RECYCLE, BOTH), RELOADS, .max = 365 * HOURS_24, .default_text = "0",
     .help = "a worker that has served for longer is replaced, some up to an eighth later; 0 is never"},
    {COUNT(refork_after, RECYCLE, BOTH), RELOADS, .max = INT32_MAX, .default_text = "0",
     .help = "the first worker with so many requests becomes the mold that all others are forked from anew; 0 is "
             "never"},
    {SWITCH(oob_gc, RECYCLE, RUBY), RELOADS, .default_text = "off",
     .help = "collect garbage between requests, while none waits, instead of during them"},
    {RANGE(oob_gc_requests, RECYCLE, RUBY), RELOADS, .min = 1, .max = INT32_MAX,
     .help = "with oob_gc: collect after so many requests; with N..M each worker draws its own number",
     .default_text = "5", .aliases = "max_gc_per_request"},
    {TIME(oob_gc_idle, RECYCLE, RUBY), RELOADS, .max = HOURS_24, .default_text = "0",
     .help = "with oob_gc: collect when a worker that has answered requests has had none for so long, instead of "
             "after a number of them; 0 is off"},

    /* ORIBI_GROUP_LOG */
    {TIME(slow_log, LOG, BOTH), RELOADS, .max = HOURS_24, .default_text = "0", .default_note = "0: off",
     .help = "a call that has not begun its answer after so long is logged with the line of code where it stands, "
             "again after twice, four times that and so on, and with its times when it ends"},
    {TEXT(access_log, LOG, BOTH), RELOADS, .argument = "FILE",
     .help = "one line for each answer; - is standard output, off is none", .default_note = "-; off in production"},
    {TEXT(access_log_format, LOG, BOTH), RELOADS, .argument = "FORMAT", .default_text = "combined",
     .default_note = "combined; dev in development on a terminal",
     .help = "common, combined, json, dev (for eyes), or a format of one's own with directives in the manner of Apache "
             "('%h %t \"%r\" %>s %b') or nginx ('$remote_addr \"$request\" $status')"},
    {LIST(access_log_skip, LOG, BOTH), RELOADS, .argument = "PATH", .default_note = "none",
     .help = "path whose requests have no line in the access log, may be repeated: /up, or /health/* for all that "
             "begin so"},
    {COUNT(access_log_sample, LOG, BOTH), RELOADS, .min = 1, .max = INT32_MAX, .default_text = "1",
     .help = "of so many answers below 400 of a worker one has a line in the access log; those from 400 on all have"},
    {SWITCH(request_id, LOG, BOTH), RELOADS, .default_text = "off",
     .help = "give each request an id: X-Request-Id of a trusted proxy where that is well-formed, else a new one. The "
             "application finds it as HTTP_X_REQUEST_ID, and lines of the logs have it"},
    {TEXT(request_id_header, LOG, BOTH), RELOADS, .argument = "NAME", .default_note = "none",
     .help = "header of each answer that says the request's id, such as X-Request-Id, unless the application sets it; "
             "turns request_id on"},
    {SWITCH(server_timing, LOG, BOTH), RELOADS, .default_text = "off",
     .help =
         "add Server-Timing to the application's answers: time in the queue and in the call, of streams until their "
         "head. Browsers show it, and so may anybody who asks"},
    {TEXT(error_log, LOG, BOTH), RELOADS, .argument = "FILE", .default_text = "-",
     .help = "where standard error goes, the server's and the application's; - leaves it alone"},
    {TEXT(error_log_format, LOG, BOTH), RELOADS, .argument = "NAME", .default_text = "text", .choices = "text json",
     .help = "the server's own lines as text, or as JSON with worker, generation and request id; what the application "
             "prints stays as it is"},
    {SWITCH(quiet, LOG, BOTH), RELOADS, .short_flag = "q", .default_text = "off",
     .help = "log warnings and errors only"},
    {SWITCH(verbose, LOG, BOTH), RELOADS, .short_flag = "v", .default_text = "off", .help = "log debugging lines too"},

    /* ORIBI_GROUP_APP */
    {LIST(warmup, APP, BOTH), RELOADS, .argument = "TARGET",
     .help = "path that a loaded application must answer with a status below 500 before workers are forked, may be "
             "repeated"},
    {TEXT(env, APP, BOTH), RELOADS, .short_flag = "E", .argument = "NAME", .aliases = "environment",
     .help = "environment that the application is to see; production and deployment change defaults",
     .default_note = "development"},
    {SWITCH(dev, APP, BOTH), .default_text = "off", .default_note = "on in development, but under rackup and plackup",
     .help = "development: loads the application anew when a file of it changes; one that does not load is a page with "
             "the error, not the end of the server"},
    {LIST(watch, APP, BOTH), .argument = "PATH",
     .help = "with dev: file, folder or pattern (\"views\", \"config/*.yml\", \"lib/**/*.tt\") whose changes load the "
             "application anew too, beside what it was loaded from; may be repeated"},
    {TEXT(chdir, APP, BOTH), RELOADS, .argument = "DIR",
     .help =
         "directory to change to before anything else is looked for; in the configuration file, before what it names"},
    {LIST(include, APP, BOTH), RELOADS, .short_flag = "I", .argument = "DIR",
     .help = "directory to search libraries in, may be repeated"},
    {LIST(require, APP, BOTH), RELOADS, .short_flag = "r", .argument = "NAME", .aliases = "modules M",
     .help = "library or module to load before the application, may be repeated"},
    {CODE(eval, APP, PERL), RELOADS, .short_flag = "e", .argument = "CODE",
     .help = "application given as source text instead of a file"},
    {CODE(child_exit, APP, PERL), RELOADS, .argument = "CODE",
     .help = "source text of a subroutine that each worker calls before it ends"},
    {SWITCH(early_hints, APP, BOTH), RELOADS, .default_text = "off", .default_note = "off in oribi, on in oribi-psgi",
     .help = "offer rack.early_hints or psgix.informational, by which the application sends 103 and other interim "
             "answers; nginx before 1.29 in front of the server does not understand them"},
    {TEXT(server_header, APP, BOTH), RELOADS, .argument = "TEXT",
     .help = "value of the Server field unless the application sets one; not set sends none"},

    /* ORIBI_GROUP_COMMAND */
    {TEXT(config, COMMAND, BOTH), .short_flag = "C", .argument = "FILE", .aliases = "config_file",
     .help = "configuration file; the command line wins over it",
     .default_note = "config/oribi.rb or config/oribi.pl when there is one"},
    {SWITCH(check, COMMAND, BOTH), .default_text = "off",
     .help = "load the configuration and the application, say whether that worked, and end; the command check tells "
             "everything that is wrong or risky"},
    {SWITCH(open, COMMAND, BOTH), .default_text = "off",
     .help = "in development start a browser once the server is up: the command in BROWSER, or xdg-open on a display"},
    {SWITCH(print_config, COMMAND, BOTH), .default_text = "off", .help = "print every option with its value and end"},
    {TEXT(completion, COMMAND, BOTH), .argument = "SHELL", .choices = "bash zsh fish",
     .help = "print a script that completes this command's words in a shell, bash, zsh or fish, and end"},
    {SWITCH(version, COMMAND, BOTH), .default_text = "off", .help = "print the version and end"},
    {SWITCH(help, COMMAND, BOTH), .short_flag = "h", .default_text = "off",
     .help = "print the options that are used most and end; --help all prints every option"},
};

_Static_assert(sizeof(table) / sizeof(table[0]) <= ORIBI_OPTIONS_MAX, "struct oribi_options keeps a source for each");

const struct oribi_option *oribi_options_table(size_t *count)
{
    *count = sizeof(table) / sizeof(table[0]);
    return table;
}
