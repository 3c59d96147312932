/* Every option of both commands: one table gives name, type, bounds, default, help and the names that the servers we
 * succeed use for it. Ruby, Perl, --help and doc/options.md all read this table; values arrive as text and are
 * checked here, once. */
#ifndef ORIBI_CONFIG_OPTIONS_H
#define ORIBI_CONFIG_OPTIONS_H

#include "oribi/base/error.h"
#include "oribi/base/limits.h"
#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oribi_buf;
struct oribi_fixed_lines;
struct oribi_compress_rules;

enum oribi_option_type {
    ORIBI_OPTION_TEXT,  /* one line; empty: not set */
    ORIBI_OPTION_CODE,  /* text of any shape: source code given on the command line */
    ORIBI_OPTION_LIST,  /* text, may be given several times */
    ORIBI_OPTION_BOOL,  /* on off true false yes no 1 0; empty is off */
    ORIBI_OPTION_COUNT, /* whole number */
    ORIBI_OPTION_SIZE,  /* bytes; K M G suffix */
    ORIBI_OPTION_TIME,  /* kept in ms; plain number is seconds, fractions allowed; suffix ms s m h */
    ORIBI_OPTION_RANGE, /* N or N..M */
};

enum oribi_option_lang { ORIBI_LANG_RUBY = 1, ORIBI_LANG_PERL = 2, ORIBI_LANG_BOTH = 3 };

enum oribi_option_group {
    ORIBI_GROUP_LISTEN,
    ORIBI_GROUP_PROCESS,
    ORIBI_GROUP_TIMEOUT,
    ORIBI_GROUP_LIMIT,
    ORIBI_GROUP_WEBSOCKET,
    ORIBI_GROUP_RECYCLE,
    ORIBI_GROUP_LOG,
    ORIBI_GROUP_APP,
    ORIBI_GROUP_COMMAND, /* what the command does instead of serving; not for config files */
    ORIBI_GROUP_COUNT,
};

/* How several arguments of the configuration file's word become the one line of the option (config/arguments.h). */
struct oribi_option_composed {
    /* Arguments by number in the order of the line, with what stands between them: "[1=]2?". In brackets: one that may
     * be left out, at most one of them. A question mark at the end: settings follow, as a query. NULL: the option's
     * word takes values as they are. */
    const char *form;
    /* Their names in the order of the word: "/PREFIX FOLDER". A slash: the text begins with one; #: a number, or
     * several with commas; *: any text, with newlines too; +: one text or several, joined
     * with commas (the only one of its form). */
    const char *arguments;
    const char *settings; /* names of the settings, a question mark behind switches: "cache html?"; or NULL */
};

struct oribi_option {
    const char *name;         /* underscores, as in the config file */
    const char *short_flag;   /* "w" or NULL */
    const char *argument;     /* placeholder for --help: "N", "FILE"; NULL for booleans */
    const char *help;         /* one line */
    const char *default_text; /* as oribi_options_set() takes it; NULL is not set */
    const char *default_note; /* what people are told instead where the default depends on something; or NULL */
    const char *choices;      /* space-separated values of a text that has only these; or NULL */
    const char *aliases; /* names of other servers for the same, separated by spaces; one letter: a flag; or NULL */
    enum oribi_option_type type;
    enum oribi_option_lang lang;
    enum oribi_option_group group;
    /* Does a reload take a changed value over? The new generation's workers have it, and its supervisor. Otherwise only
     * a restart does, and a reload warns. */
    bool reloads;
    bool secret; /* log lines and --print-config show no value */
    struct oribi_option_composed composed;
    int64_t min;
    int64_t max;     /* of a list: items, 0 is ORIBI_OPTION_ITEMS_MAX */
    uint16_t offset; /* private: of the field in struct oribi_options */
    uint16_t width;  /* private: of the field in bytes */
};

struct oribi_text_list {
    char **items;
    size_t count;
};

struct oribi_range {
    uint32_t min; /* both 0: never */
    uint32_t max;
};

enum {
    ORIBI_OPTIONS_MAX = 150, /* entries of the table */
    ORIBI_OPTIONS_IGNORED_MAX = 8,
    ORIBI_OPTION_ITEMS_MAX = 64, /* of one list whose entry says nothing else */
    ORIBI_OPTION_TEXT_MAX = 64 * 1024,
    ORIBI_WORKERS_MAX = 512,
};

/* Sources of a value, weakest first. The stronger one wins, whichever is read first. */
enum oribi_option_source {
    ORIBI_FROM_DEFAULT,
    /* a default of rackup, `rails server` or plackup, which they pass on as if their user had given it */
    ORIBI_FROM_LAUNCHER,
    ORIBI_FROM_ENVIRONMENT, /* oribi_options_variables() */
    ORIBI_FROM_FILE,        /* configuration file */
    ORIBI_FROM_COMMAND,     /* command line, rackup -O, plackup, method call */
};

enum { ORIBI_FRONTENDS_MAX = 16 };

/* From the deadline of a call to the kill of its worker, which ends itself after 2 s (worker/deadline.h). */
enum { ORIBI_CALL_GRACE_MS = 4000 };

struct oribi_option_lower_end {
    uint32_t value;
    uint8_t source;
};

/* Times in ms, sizes in bytes. Texts are owned by the struct; NULL when not set. */
struct oribi_options {
    enum oribi_option_lang lang; /* whose options count; ORIBI_LANG_BOTH after init */
    struct oribi_limits limits;

    struct oribi_text_list bind;
    uint32_t port; /* shorthand, turned into bind by finish */
    char *host;
    uint32_t backlog; /* 0: system maximum */
    bool reuse_port;
    bool proxy_protocol; /* on every listener; bind has ?proxy=on for one */
    struct oribi_text_list trusted_proxies;
    struct oribi_text_list
        certificates; /* of tls://: CERT[,KEY[,OCSP]], files; config/address.h has those of one bind */
    char *certificate_password_command; /* NULL: none */
    struct oribi_text_list acme;        /* lines of config/acme.h */
    bool acme_terms;                    /* the authority's terms of service are agreed to */
    char *acme_directory;               /* URL */
    char *acme_dir;                     /* NULL: oribi_acme_dir() */
    char *acme_command;                 /* the client */
    char *acme_user;                    /* of the client; NULL: oribi-acme, or nobody */
    char *client_ca;                    /* file; NULL: client certificates are not asked for */
    char *client_verify;                /* required, optional */
    char *tls_min;                      /* 1.2, 1.3 */
    bool http2;                         /* offered to clients of tls:// */
    uint32_t https_redirect;            /* port of https:// that other requests are sent to; 0: none */
    uint32_t hsts_s;                    /* Strict-Transport-Security, max-age; 0: none */
    uint32_t frontends;                 /* 0: one for each four CPUs */
    char *frontend_user;                /* NULL: user */
    bool frontend_sandbox;
    int64_t frontend_drain_ms;            /* over which WebSockets are closed; 0: at once */
    struct oribi_text_list mounts;        /* lines of files/mount.h */
    struct oribi_text_list sendfile_root; /* folders */
    struct oribi_text_list sendfile_map;  /* PREFIX=FOLDER, see oribi_mount_map_read() */

    struct oribi_text_list answers;     /* lines of files/fixed.h */
    struct oribi_text_list redirects;   /* the same */
    char *health;                       /* the same */
    struct oribi_text_list headers;     /* lines of http/response.h */
    struct oribi_text_list error_pages; /* lines of files/fixed.h */

    /* oribi_options_compress_rules() reads them */
    char *compress; /* codings, the preferred one first; NULL: answers go as they are */
    uint32_t compress_level;
    int64_t compress_min;
    struct oribi_text_list compress_types; /* none: those of http/compress.h */
    bool compress_private;

    uint32_t workers; /* 0 until oribi_options_finish(): usable CPUs */
    uint32_t threads;
    bool single; /* one process, without fork */
    bool preload;
    bool helper;
    bool daemonize;
    bool open; /* start a browser when the server is up; development alone */
    char *pid_file;
    char *restart_file; /* reloads when it is touched; NULL: none */
    char *user;
    char *group;
    int64_t shutdown_timeout_ms;
    int64_t boot_timeout_ms;
    int64_t spawn_interval_ms;
    int64_t err_respawn_interval_ms;
    uint32_t roll_max_unavailable; /* workers replaced at a time; 0: a tenth, at least one */
    int64_t drain_delay_ms;
    char *control; /* path of the control socket; NULL: none */
    char *status;  /* address of the status listener; NULL: none */
    char *status_token;
    char *agent;          /* address that tells a load balancer how much to send; NULL: none */
    uint32_t metrics_max; /* series of the application's own; 0: none */

    int64_t head_timeout_ms;
    int64_t body_timeout_ms;
    bool multipart_stream;  /* forms are taken apart while they arrive: event/body.h */
    uint32_t body_rate_min; /* bytes per second over the whole body, after body_timeout; 0: none */
    int64_t idle_timeout_ms;
    int64_t write_timeout_ms;
    int64_t call_timeout_ms;
    int64_t slow_log_ms;       /* 0: off */
    int64_t queue_time_max_ms; /* 0: none */
    uint32_t queue_max;        /* 0: none */

    /* WebSockets, which frontends hold */
    struct oribi_text_list websocket_origins; /* beside the request's own host */
    int64_t websocket_ping_ms;                /* 0: none is sent */
    int64_t websocket_message_max;            /* bytes */
    int64_t websocket_pending_max;            /* bytes that wait for one client */
    uint32_t websockets_max;                  /* of a frontend; 0: nine tenths of connections_max */
    uint32_t websocket_rate_max;              /* messages a second; 0: any number */
    int64_t events_ping_ms;                   /* between two comments of an event stream; 0: none is sent */
    uint32_t events_max;                      /* streams of a frontend; 0: nine tenths of connections_max */
    struct oribi_text_list history;           /* of channels: "PREFIX MESSAGES AGE"; oribi_history_read() */
    int64_t history_memory_max;               /* bytes of all histories of a frontend */
    uint32_t subscriptions_max;               /* of a frontend */
    char *cancel_gone;                        /* off, on, or methods; oribi_options_cancels() reads it */
    char *gone_on;                            /* auto, fin, reset */

    uint32_t keepalive_requests_max; /* answers per connection; 1: no keep-alive, 0: unlimited */
    uint32_t connections_max;        /* open connections per worker */
    int64_t buffers_memory_max;      /* bodies and unsent output in memory, all connections of a worker; 0: none */
    int64_t buffers_file_max;        /* bodies and unsent output in files, all connections of a worker */
    int64_t static_memory_max;       /* memory that files/cache.h may take */
    uint32_t static_open_max;        /* descriptors that files/cache.h may take */
    int64_t response_memory_max;     /* unsent output kept in memory per connection; beyond it a file */

    struct oribi_range requests_max;
    uint32_t requests_jitter;
    int64_t memory_max;
    int64_t age_max_ms;
    uint32_t refork_after;
    bool oob_gc;
    struct oribi_range oob_gc_requests;
    int64_t oob_gc_idle_ms; /* 0: by the number of requests */

    char *access_log;                       /* path, "-" for stdout, "off"; never NULL after finish */
    char *access_log_format;                /* common, combined, json, dev, or what config/log_format.h reads */
    struct oribi_text_list access_log_skip; /* paths; with a star at the end all that begin so */
    uint32_t access_log_sample;             /* of so many answers below 400 one is logged; 1: all */
    bool request_id;                        /* the application gets the request's id as X-Request-Id */
    char *request_id_header;                /* field of the answer that has it; NULL: none */
    bool server_timing;                     /* answers of calls say how long they took */
    char *error_log_format;                 /* text, json */
    char *error_log;                        /* path, or "-" for stderr */
    bool quiet;
    bool verbose;

    char *env; /* never NULL after finish */
    char *config;
    char *chdir;
    char *server_header;           /* NULL: none */
    bool dev;                      /* reloads when a file changes; errors while loading are shown, not fatal */
    struct oribi_text_list watch;  /* files, folders and patterns, beside what the application was loaded from */
    bool early_hints;              /* the binding offers interim answers to the application */
    char *eval;                    /* Perl: source of the application */
    char *child_exit;              /* Perl: source of a hook */
    struct oribi_text_list warmup; /* targets requested inside a freshly loaded application */
    struct oribi_text_list include;
    struct oribi_text_list require;
    char *app; /* the one argument that is no option, or NULL */

    bool check;
    bool print_config;
    char *completion; /* a shell; NULL: none is asked for */
    bool help;
    bool version;

    /* private */
    char *start_dir;                   /* working directory before the first change to `chdir`; NULL: there was none */
    char *entered_dir;                 /* value of `chdir` that the working directory stands for; NULL: none */
    bool timeout_named;                /* `timeout` was given, which other servers mean the application by */
    bool ignores_environment;          /* libraries do: the variables are a server's */
    uint8_t source[ORIBI_OPTIONS_MAX]; /* enum oribi_option_source by place in the table */
    struct oribi_option_lower_end requests_min; /* given by a name of their own, joined by finish */
    struct oribi_option_lower_end oob_gc_requests_min;
    const struct oribi__foreign_name *ignored[ORIBI_OPTIONS_IGNORED_MAX]; /* flags of other servers, for the log */
    uint32_t ignored_count;
};

const struct oribi_option *oribi_options_table(size_t *count);

/* A name of another server that means something here which is no plain renaming. */
struct oribi_option_alias {
    const char *name;   /* underscores */
    const char *effect; /* for the documentation */
    enum oribi_option_lang lang;
    /* private */
    bool is_switch;
    int (*apply)(struct oribi_options *, enum oribi_option_source, const char *name, const char *value, char *error);
};
const struct oribi_option_alias *oribi_options_aliases(size_t *count);

/* A variable of the environment that sets an option where neither command line nor configuration file do. Of several
 * for one option the first that is set and not empty counts. */
struct oribi_option_variable {
    const char *name;
    const char *option;
    enum oribi_option_lang lang;
};
const struct oribi_option_variable *oribi_options_variables(size_t *count);

/* Fills in the defaults. Give back with deinit. */
void oribi_options_init(struct oribi_options *options);
void oribi_options_deinit(struct oribi_options *options);

/* Sets one option from text, as the command line does. `name` may use underscores, dashes, CamelCase or an alias,
 * any of the table's, and for booleans no_, enable_ or disable_ before it. Borrows both. 0, or ORIBI_EINVAL with one
 * line in `error`: an unknown name gives the nearest known one, a bad value says what is allowed. Further values of
 * a list add to it. */
int oribi_options_set(struct oribi_options *options, const char *name, const char *value, char *error);

/* Sets an option from another source: a value from a weaker source than the one heard before is checked and dropped;
 * the first value of a stronger one replaces a list. */
int oribi_options_set_from(struct oribi_options *options, enum oribi_option_source source, const char *name,
                           const char *value, char *error);

/* Sets one option from everything that a configuration file gives for it: several values for a list, one for all
 * others, none for a switch that is turned on. More than one value where one is meant is refused. Same results; what
 * was set before a bad value of a list stays set. */
int oribi_options_set_values(struct oribi_options *options, enum oribi_option_source source, const char *name,
                             const char *const *values, size_t count, char *error);

/* Reads a command line without the command's own name: --name=value, --name value, --flag, --no-flag, -w 4, -w4,
 * -qD, and the application as the one other argument; `--` ends the options. Same results as set. */
int oribi_options_parse(struct oribi_options *options, size_t argc, const char *const *argv, char *error);

/* The table entry for a name in any of those spellings, or NULL (also for those of oribi_options_aliases()). */
const struct oribi_option *oribi_options_find(const char *name);

/* The option here for another server's name. */
struct oribi_option_foreign {
    const char *server; /* the servers that have it */
    const char *here;   /* option or hook that does the same; NULL: advice says what to do */
    const char *advice;
};

/* Fills `found` for a name of another server that is no name here, in any spelling; its texts are static. False for
 * any other name. */
bool oribi_options_find_foreign(const char *name, struct oribi_option_foreign *found);

/* "text", "code", "list", "bool", "count", "size", "time", "range": what a value of this type is, in one word. */
const char *oribi_option_type_name(enum oribi_option_type type);

/* The source of this name: "launcher", "environment", "file" or "command"; ORIBI_FROM_DEFAULT for any other. */
enum oribi_option_source oribi_option_source_named(const char *name);

/* The source of the option's value. */
enum oribi_option_source oribi_options_source(const struct oribi_options *options, const struct oribi_option *option);

/* Writes the current value as text that oribi_options_set() accepts (lists: newline between items). NUL-terminated,
 * cut at cap - 1. Returns the length it has uncut. */
size_t oribi_options_get(const struct oribi_options *options, const struct oribi_option *option, char *dst, size_t cap);

/* The request limit of one worker, at random within requests_max N..M plus requests_jitter, so that workers do not
 * leave together. 0: no limit. */
uint64_t oribi_options_draw_limit(const struct oribi_options *options);

/* How long a process that is replaced while the server goes on may take to end, 0: no bound. Nothing hurries there, so
 * each call may last as long as its own limit allows; a stop has shutdown_timeout alone. */
static inline int64_t oribi_options_finish_ms(int64_t shutdown_timeout_ms, int64_t call_timeout_ms)
{
    int64_t call_ms = call_timeout_ms > 0 ? call_timeout_ms + ORIBI_CALL_GRACE_MS : 0;
    return shutdown_timeout_ms > 0 && call_ms > shutdown_timeout_ms ? call_ms : shutdown_timeout_ms;
}

/* Changes the working directory to `chdir`; does nothing without it, or when it has been entered already. Call it
 * after the command line was read, and again after the configuration file, which may have the option too. Both
 * relative to the directory of the start, which is remembered for the starts of later generations. Same results as
 * set; ORIBI_ESYS when the directory cannot be entered. */
int oribi_options_enter_dir(struct oribi_options *options, char *error);

/* Fills what depends on the environment, on the machine or on other options: oribi_options_variables(); workers from
 * usable CPUs (in development oribi has one, with threads); bind from host, port and env (production binds every
 * address) unless a bind of the same or a stronger source is there; access_log from env. Then checks combinations.
 * Same results as set. */
int oribi_options_finish(struct oribi_options *options, char *error);

/* Is this server one process (`single`) where nobody has said so? In development, where the system's fork is not safe
 * (oribi_os_forks_safely()), `workers` is not given, and no other option needs further processes. Pure; finish asks
 * it. */
bool oribi_options_prefer_single(const struct oribi_options *options, bool forks_safely);

/* After that: does a developer sit at a terminal from which the server was started, and which it did not leave? */
bool oribi_options_at_terminal(const struct oribi_options *options);

/* Looks at what the options name on the disk: the folders of `static`, and those that its links may lead to. 0, or a
 * code of os.h with one line in `error` that names the option and the folder. For the process that the files are read
 * in: its user may see less than the one who started it. */
int oribi_options_check_files(const struct oribi_options *options, char *error);

/* Logs a warning for each mount that has the prefix of one before it. */
void oribi_options_warn_of_files(const struct oribi_options *options);

/* The lines of answers, redirects and health, borrowed from the options. */
struct oribi_fixed_lines oribi_options_fixed_lines(const struct oribi_options *options);

/* Fills in which answers are compressed; `rules` borrows texts of the options. offered_count is 0 where none are. Same
 * results as set; after finish it cannot fail. */
int oribi_options_compress_rules(const struct oribi_options *options, struct oribi_compress_rules *rules, char *error);

/* Are calls of this method, or of any, ended when their client has gone (cancel_gone)? */
bool oribi_options_cancels_any(const struct oribi_options *options);
bool oribi_options_cancels(const struct oribi_options *options, struct oribi_slice method);

/* A reload. Announce: writes what a supervisor has to know of a new generation's options, "name=value" lines,
 * NUL-terminated; lines that do not fit into cap (ORIBI_OPTIONS_ANNOUNCED_CAP is enough) are left out. Returns the
 * length. Take over: gives `into`, a copy of the supervisor's own options, the values of those lines that a reload
 * takes over, and logs a warning for each other one that differs. Takes no memory and leaves texts alone, which the
 * copy may therefore share with what it was copied from. */
enum { ORIBI_OPTIONS_ANNOUNCED_CAP = 3000 };
size_t oribi_options_announce(const struct oribi_options *options, char *dst, size_t cap);
void oribi_options_take_over(struct oribi_options *into, const char *text);

/* Options that an operator has set, for the log. Differing: appends a line "name fingerprint value" for each option of
 * the options' language that was given another value than its default, and a NUL: values shortened, secrets left out;
 * addresses and the environment have lines of their own. Show: appends "workers 4, call_timeout 30s" of such lines to
 * `text`, and to `json` the members of an object. Show changes: "workers 2 → 4" of options that differ between two such
 * texts and that a reload takes over, nothing when they are the same; in JSON pairs. Differing is: is `value` shown for
 * this option? All borrow their texts. */
void oribi_options_differing(const struct oribi_options *options, struct oribi_buf *out);
bool oribi_options_differing_is(const char *lines, const char *name, const char *value);
void oribi_options_show(const char *lines, struct oribi_buf *text, struct oribi_buf *json);
void oribi_options_show_changes(const char *before, const char *now, struct oribi_buf *text, struct oribi_buf *json);

/* Appends the text of --help, which fits a screen: at most 40 lines of 100 columns, but for the last line, for
 * ORIBI_LANG_RUBY or ORIBI_LANG_PERL. `pages` is the folder that doc/ was installed as. */
void oribi_options_help(struct oribi_buf *out, enum oribi_option_lang lang, const char *command, const char *pages);

/* The text of `--help all`: every option of the language. */
void oribi_options_help_all(struct oribi_buf *out, enum oribi_option_lang lang, const char *command, const char *pages);

/* Title of a group, for documents: "Listening". */
const char *oribi_options_group_title(enum oribi_option_group group);

/* Writes what holds where an option is not given, variables of the environment included: "PORT, else 9292".
 * NUL-terminated, cut at cap - 1; empty for an option that is not set then. */
void oribi_options_default_text(const struct oribi_option *option, enum oribi_option_lang lang, char *dst, size_t cap);

/* The values of an option, for documents: "0..512", "on, off". Text of the table, or written to `dst`. */
enum { ORIBI_OPTION_VALUE_TEXT_CAP = 128 };
const char *oribi_option_value_text(const struct oribi_option *option, char dst[ORIBI_OPTION_VALUE_TEXT_CAP]);

/* Appends "name = value" lines of every option that the options' language has: --print-config. Options whose word takes
 * several arguments are shown as the configuration file has them, a line each. */
void oribi_options_print(struct oribi_buf *out, const struct oribi_options *options);

/* Appends the tables of doc/options.md. */
void oribi_options_doc(struct oribi_buf *out);

#endif
