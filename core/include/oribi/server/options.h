/* Every option of both commands: one table gives name, type, bounds, default, help and the names that the servers we succeed use for it.
 * Ruby, Perl, --help and doc/options.md all read this table; values arrive as text and are checked here, once. */
#ifndef ORIBI_SERVER_OPTIONS_H
#define ORIBI_SERVER_OPTIONS_H

#include "oribi/base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oribi_option_type {
    ORIBI_OPTION_TEXT,
    ORIBI_OPTION_LIST,  /* text, may be given several times */
    ORIBI_OPTION_BOOL,  /* on off true false yes no 1 0 */
    ORIBI_OPTION_COUNT, /* whole number */
    ORIBI_OPTION_SIZE,  /* bytes; K M G suffix */
    ORIBI_OPTION_TIME,  /* kept in ms; plain number is seconds, fractions allowed; suffix ms s m h */
    ORIBI_OPTION_RANGE, /* N or N..M */
};

enum oribi_option_lang { ORIBI_LANG_RUBY = 1, ORIBI_LANG_PERL = 2, ORIBI_LANG_BOTH = 3 };

struct oribi_option {
    const char *name;     /* underscores, as in the config file */
    const char *short_flag; /* "w" or NULL */
    const char *argument; /* placeholder for --help: "N", "FILE"; NULL for booleans */
    const char *help;     /* one line */
    const char *default_text;
    const char *aliases;  /* space-separated names of other servers: "max_workers MaxWorkers"; "" if none */
    enum oribi_option_type type;
    enum oribi_option_lang lang;
    int64_t min;
    int64_t max;
    size_t offset; /* private: of the field in struct oribi_options */
};

struct oribi_text_list {
    char **items;
    size_t count;
};

struct oribi_range {
    uint32_t min; /* both 0: never */
    uint32_t max;
};

/* Times in ms, sizes in bytes. Texts are owned by the struct; NULL when not set. */
struct oribi_options {
    struct oribi_limits limits;
    struct oribi_text_list bind;
    uint32_t port; /* shorthand: 0 when not given */
    char *host;
    uint32_t workers; /* 0 until oribi_options_finish(): usable CPUs */
    uint32_t threads;
    uint32_t backlog; /* 0: system maximum */
    bool preload;
    bool helper;
    bool reuse_port;
    char *config;
    char *env;
    char *chdir;
    char *pid_file;
    char *user;
    char *group;
    char *access_log; /* path, "-" for stdout, "off" */
    char *access_log_format; /* common, combined, json */
    char *error_log;
    char *server_header;
    bool daemonize;
    bool quiet;
    bool verbose;

    int64_t head_timeout_ms;
    int64_t body_timeout_ms;
    uint32_t body_rate_min; /* bytes per second over the whole body, after body_timeout; 0: none */
    int64_t idle_timeout_ms;
    int64_t write_timeout_ms;
    int64_t call_timeout_ms;
    int64_t shutdown_timeout_ms;
    int64_t boot_timeout_ms;

    uint32_t keepalive_requests_max; /* answers per connection; 1: no keep-alive, 0: unlimited */
    uint32_t connections_max;        /* open connections per worker */
    int64_t response_memory_max;     /* unsent output kept in memory per connection; beyond it a file */

    struct oribi_range requests_max;
    uint32_t requests_jitter;
    int64_t memory_max;
    int64_t spawn_interval_ms;
    int64_t err_respawn_interval_ms;
};

const struct oribi_option *oribi_options_table(size_t *count);

/* Fills in the defaults. Give back with deinit. */
void oribi_options_init(struct oribi_options *options);
void oribi_options_deinit(struct oribi_options *options);

/* Room that always holds the text of an error. */
enum { ORIBI_OPTIONS_ERROR_CAP = 256 };

/* Sets one option from text. `name` may use underscores, dashes, CamelCase or an alias, any of the table's. 0, or ORIBI_EINVAL with one
 * line in `error`: an unknown name gives the nearest known one, a bad value says what is allowed. */
int oribi_options_set(struct oribi_options *options, const char *name, const char *value, char *error);

/* The table entry for a name in any of those spellings, or NULL. */
const struct oribi_option *oribi_options_find(const char *name);

/* Writes the current value as text that oribi_options_set() accepts (lists: newline between items). Returns its length, cut at cap. */
size_t oribi_options_get(const struct oribi_options *options, const struct oribi_option *option, char *dst, size_t cap);

/* Fills what depends on the machine or on other options: workers from usable CPUs, bind from host, port, PORT and env (production binds
 * 0.0.0.0), and checks combinations. Same results as set. */
int oribi_options_finish(struct oribi_options *options, char *error);

#endif
