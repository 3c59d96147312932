/* Options: names in every spelling, strict values, ranks of sources, finish. */
#include "config/options.c"

#include "oribi/base/buf.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include "tap.h"

#include <stdlib.h>

static char error[ORIBI_ERROR_TEXT_CAP];
static char shown[4096];

/* Value of an option as text. */
static const char *get(const struct oribi_options *options, const char *name)
{
    const struct oribi_option *option = oribi_options_find(name);
    if (!option)
        return "(no such option)";
    (void)oribi_options_get(options, option, shown, sizeof(shown));
    return shown;
}

static void set_ok(struct oribi_options *options, const char *name, const char *value)
{
    error[0] = '\0';
    ok_named(oribi_options_set(options, name, value, error) == 0, "%s takes \"%s\" %s", name, value, error);
}

static void set_fails(struct oribi_options *options, const char *name, const char *value, const char *text)
{
    error[0] = '\0';
    ok_named(oribi_options_set(options, name, value, error) == ORIBI_EINVAL, "%s refuses \"%.40s\"", name, value);
    is_str(error, text);
}

static void clear_environment(void)
{
    unsetenv("PORT");
    unsetenv("RACK_ENV");
    unsetenv("PLACK_ENV");
}

/* The table */

static void test_every_entry_is_complete_and_every_name_is_one_options_own(void)
{
    size_t count;
    size_t alias_count;
    const struct oribi_option *table = oribi_options_table(&count);
    const struct oribi_option_alias *names = oribi_options_aliases(&alias_count);
    for (size_t i = 0; i < count; i++) {
        const struct oribi_option *o = &table[i];
        bool numeric = o->type >= ORIBI_OPTION_COUNT;
        ok_named(o->name && o->help && o->width && o->lang && o->offset >= offsetof(struct oribi_options, limits),
                 "%s has its fields", o->name);
        ok_named((o->argument != NULL) == (o->type != ORIBI_OPTION_BOOL),
                 "%s: an argument's name unless it is a switch", o->name);
        bool counted = numeric || o->type == ORIBI_OPTION_LIST; /* its items */
        ok_named(numeric ? o->max > 0 && o->min <= o->max : counted || o->max == 0, "%s: its bounds", o->name);
        ok_named(oribi_options_find(o->name) == o, "%s is found by its name", o->name);
        if (o->short_flag)
            ok_named(oribi_options_find(o->short_flag) == o, "-%s is %s", o->short_flag, o->name);
        for (const char *p = o->aliases; p && *p;) {
            char alias[64] = "";
            size_t n = strcspn(p, " ");
            memcpy(alias, p, n);
            ok_named(oribi_options_find(alias) == o, "%s is %s", alias, o->name);
            p += n + (p[n] == ' ');
        }
        for (size_t k = 0; k < i; k++) {
            if (table[k].offset == o->offset)
                fail("%s and %s share a field", o->name, table[k].name);
        }
    }
    for (size_t i = 0; i < alias_count; i++) {
        struct oribi__option_name found = oribi__options_resolve(names[i].name);
        ok_named(found.alias == &names[i] && !found.option, "%s is no option's name", names[i].name);
    }
}

static void test_defaults_are_those_that_are_documented(void)
{
    static const char *const expected[][2] = {
        {"bind", ""},
        {"port", "9292"},
        {"workers", "0"},
        {"preload", "on"},
        {"head_timeout", "10s"},
        {"body_timeout", "10s"},
        {"idle_timeout", "75s"},
        {"write_timeout", "30s"},
        {"call_timeout", "1m"},
        {"shutdown_timeout", "30s"},
        {"head_bytes_max", "64K"},
        {"target_bytes_max", "16K"},
        {"fields_max", "100"},
        {"body_bytes_max", "1G"},
        {"body_memory_max", "16M"},
        {"requests_max", "0"},
        {"requests_jitter", "0"},
        {"err_respawn_interval", "1s"},
        {"access_log_format", "combined"},
    };
    struct oribi_options options;
    oribi_options_init(&options);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        ok_named(strcmp(get(&options, expected[i][0]), expected[i][1]) == 0, "%s is %s", expected[i][0], shown);
    struct oribi_limits limits;
    oribi_limits_init(&limits);
    const struct oribi_limits *set = &options.limits; /* field by field: padding has no value */
    ok_named(set->target_bytes_max == limits.target_bytes_max && set->head_bytes_max == limits.head_bytes_max &&
                 set->fields_max == limits.fields_max && set->body_bytes_max == limits.body_bytes_max &&
                 set->body_memory_max == limits.body_memory_max && set->underscores_allow == limits.underscores_allow &&
                 set->strict_target == limits.strict_target && set->connect_allow == limits.connect_allow,
             "the limits are those of limits.h");
    oribi_options_deinit(&options);
}

/* Names */

static void test_dashes_underscores_and_camel_case_are_one_name(void)
{
    static const char *const spellings[] = {"head_timeout", "head-timeout",   "HeadTimeout",
                                            "headtimeout",  "--head-timeout", "HEAD_TIMEOUT"};
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        const struct oribi_option *option = oribi_options_find(spellings[i]);
        ok_named(option && strcmp(option->name, "head_timeout") == 0, "%s", spellings[i]);
    }
    ok(oribi_options_find("P") != oribi_options_find("p"));
    ok(oribi_options_find("p") == oribi_options_find("port"));
    ok(oribi_options_find("P") == oribi_options_find("pid_file"));
    ok(oribi_options_find("") == NULL && oribi_options_find("--") == NULL && oribi_options_find("_") == NULL);
    ok(oribi_options_find("no_preload") == NULL);
    ok(oribi_options_find("timeout") == NULL);
}

static void test_an_unknown_name_gets_the_nearest_known_one(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    set_fails(&options, "wrokers", "1", "unknown option wrokers: did you mean workers?");
    set_fails(&options, "--head-timout", "1", "unknown option --head-timout: did you mean --head-timeout?");
    set_fails(&options, "MaxWorker", "1", "unknown option MaxWorker: did you mean max_workers?");
    set_fails(&options, "chunked_transfr", "1", "unknown option chunked_transfr: did you mean chunked_transfer?");
    set_fails(&options, "quantum_entanglement", "1", "unknown option quantum_entanglement: see --help all");
    set_fails(&options, "x", "1", "unknown option x: see --help all");
    set_fails(&options, "", "1", "unknown option : see --help all");
    set_fails(&options, "before_forks", "1", "unknown option before_forks: did you mean before_fork?");
    set_fails(&options, "--before-forks", "1", "unknown option --before-forks: see --help all");
    char longest[200];
    memset(longest, 'n', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    ok_eq(oribi_options_set(&options, longest, "1", error), ORIBI_EINVAL);
    options.lang = ORIBI_LANG_PERL;
    set_fails(&options, "evl", "1", "unknown option evl: did you mean eval?");
    options.lang = ORIBI_LANG_RUBY;
    set_fails(&options, "evil", "1", "unknown option evil: see --help all");
    oribi_options_deinit(&options);
}

static void test_names_of_other_servers_are_answered_with_what_they_are_here(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_RUBY;
    set_fails(&options, "worker_processes", "4",
              "unknown option worker_processes (Unicorn, Pitchfork): here it is workers");
    set_fails(&options, "--worker-processes", "4",
              "unknown option --worker-processes (Unicorn, Pitchfork): here it is --workers");
    set_fails(&options, "WorkerTimeout", "4", "unknown option WorkerTimeout (Puma): here it is call_timeout");
    set_fails(&options, "on_worker_boot", "", "unknown option on_worker_boot (Puma): here it is after_fork");
    set_fails(
        &options, "state_path", "x",
        "unknown option state_path (Puma): there is no state file: `ctl` finds the server of its folder by itself");
    set_fails(&options, "-c", "x", "unknown option -c (Unicorn): here it is --config");
    set_fails(&options, "--harakiri", "30", "unknown option --harakiri (uWSGI): here it is --call-timeout");
    set_fails(&options, "-e", "production",
              "unknown option -e (Puma, Unicorn): Puma's -e is --env (-E); source text is nothing that oribi serves");
    set_fails(&options, "-S", "tmp/puma.state",
              "unknown option -S (Puma): there is no state file: `ctl` finds the server of its folder by itself; a "
              "socket to "
              "serve on is --bind");
    set_fails(&options, "-t", "5:5", "-t is the time that a call may take; Puma's -t 5:5 is --threads 5:5");
    set_fails(&options, "socket", "127.0.0.1:3031",
              "socket takes the path of a unix socket; for an address use bind: \"127.0.0.1:3031\"");
    options.lang = ORIBI_LANG_PERL;
    set_ok(&options, "-e", "sub {}");
    set_ok(&options, "-S", "a.sock");
    set_fails(&options, "--ssl-cert-file", "x",
              "unknown option --ssl-cert-file (Puma, Starman): bind tls://host:port?certificate=FILE&key=FILE");
    set_fails(&options, "--net_server-port", "1",
              "unknown option --net_server-port (Starman): not there and not needed: Net::Server is not used");
    set_fails(&options, "--path", "/app",
              "unknown option --path (plackup): mount the application in its own file, with mount of Plack::Builder; a "
              "socket is --bind PATH");
    set_fails(&options, "--enable-ssl", "1",
              "unknown option --enable-ssl (Starman): bind tls://host:port?certificate=FILE&key=FILE");
    oribi_options_deinit(&options);
}

static void set_values(struct oribi_options *options, const char *expected, const char *name, const char *const *values,
                       size_t count)
{
    error[0] = '\0';
    int code = oribi_options_set_values(options, ORIBI_FROM_FILE, name, values, count, error);
    ok_eq(code, expected ? ORIBI_EINVAL : 0);
    is_str(error, expected ? expected : "");
}

#define VALUES(...) ((const char *const[]){__VA_ARGS__}), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static void test_one_value_where_one_is_meant(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    set_values(&options, NULL, "bind", VALUES(":1", ":2"));
    set_values(&options, NULL, "socket", VALUES("/a", "/b"));
    is_str(get(&options, "bind"), ":1\n:2\nunix:///a\nunix:///b");
    set_values(&options, NULL, "workers", VALUES("2"));
    set_values(&options, "workers takes one value, not 2: \"2\", \"7\"", "workers", VALUES("2", "7"));
    set_values(&options, "idle_timeout takes one value, not 3: \"1\", \"2\", ...", "idle_timeout",
               VALUES("1", "2", "3"));
    set_values(&options, "user takes one value, not 2: the group has an option of its own, group \"www-data\"", "user",
               VALUES("nobody", "www-data"));
    set_values(&options, "port takes one value, not 2: the host has an option of its own, host \"::\"", "port",
               VALUES("80", "::"));
    set_values(&options, "timeout takes one value, not 2: \"1\", \"2\"", "timeout", VALUES("1", "2"));
    set_values(&options, "workers needs a value", "workers", NULL, 0);
    set_values(&options, "bind needs a value", "bind", NULL, 0);
    set_values(&options, NULL, "reuse_port", NULL, 0);
    set_values(&options, "unknown option wrokers: did you mean workers?", "wrokers", VALUES("1"));
    ok(options.workers == 2 && options.reuse_port && !options.user && options.port == 9292);
    oribi_options_deinit(&options);
}

static void test_options_of_the_other_language_say_so(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_PERL;
    set_fails(&options, "threads", "1", "threads is an option of oribi only");
    options.lang = ORIBI_LANG_RUBY;
    set_fails(&options, "eval", "1", "eval is an option of oribi-psgi only");
    oribi_options_deinit(&options);
}

/* Values */

static void test_times_have_units_and_fractions(void)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"10", 10000},    {"0.5", 500},          {"1.25s", 1250},     {"250ms", 250},
        {"1.5m", 90000},  {"2h", 7200000},       {"0.001", 1},        {"0.0001", 1},
        {"1MS", 1},       {"24h", 86400000},     {"86400", 86400000}, {"1440m", 86400000},
        {"0.1h", 360000}, {"0.000000000001", 1}, {"007", 7000},
    };
    struct oribi_options options;
    oribi_options_init(&options);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int code = oribi_options_set(&options, "head_timeout", cases[i].text, error);
        ok_named(code == 0 && options.head_timeout_ms == cases[i].ms, "%s is %lld ms", cases[i].text,
                 (long long)options.head_timeout_ms);
    }
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 ",
                                      "-1",
                                      "+1",
                                      "1.",
                                      ".5",
                                      "1.s",
                                      "1d",
                                      "1mss",
                                      "s",
                                      "1e3",
                                      "0",
                                      "0.0",
                                      "0ms",
                                      "1,5",
                                      "24.001h",
                                      "86400.001",
                                      "86400001ms",
                                      "9223372036854775808",
                                      "9223372036854775807h",
                                      "1..2"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options.head_timeout_ms = 4711;
        int code = oribi_options_set(&options, "head_timeout", bad[i], error);
        ok_named(code == ORIBI_EINVAL && options.head_timeout_ms == 4711, "\"%s\" is refused and changes nothing",
                 bad[i]);
    }
    set_fails(&options, "head_timeout", "x",
              "head_timeout must be a time from 1ms to 24h, such as 10 (seconds), 250ms or 1.5m, not \"x\"");
    set_ok(&options, "call_timeout", "0");
    ok_eq(options.call_timeout_ms, 0);
    oribi_options_deinit(&options);
}

static void test_sizes_have_units(void)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {{"0", 0},          {"1", 1},           {"64K", 65536},      {"64k", 65536},
                 {"10M", 10485760}, {"2g", 2147483648}, {"1024G", 1LL << 40}};
    struct oribi_options options;
    oribi_options_init(&options);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int code = oribi_options_set(&options, "body_bytes_max", cases[i].text, error);
        ok_named(code == 0 && options.limits.body_bytes_max == cases[i].bytes, "%s is %lld bytes", cases[i].text,
                 (long long)options.limits.body_bytes_max);
    }
    static const char *const bad[] = {
        "", "K", "1.5M", "1KB", "1 K", "-1", "1025G", "1099511627777", "9223372036854775807G", "0x10"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(oribi_options_set(&options, "body_bytes_max", bad[i], error) == ORIBI_EINVAL, "\"%s\" is refused",
                 bad[i]);
    set_fails(&options, "head_bytes_max", "1023",
              "head_bytes_max must be a size from 1K to 1M, such as 64K or 1M, not \"1023\"");
    set_fails(&options, "head_bytes_max", "1048577",
              "head_bytes_max must be a size from 1K to 1M, such as 64K or 1M, not \"1048577\"");
    set_ok(&options, "head_bytes_max", "1024");
    set_ok(&options, "head_bytes_max", "1M");
    ok_eq(options.limits.head_bytes_max, 1048576);
    oribi_options_deinit(&options);
}

static void test_numbers_are_whole_and_within_bounds(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    set_ok(&options, "workers", "512");
    ok_eq(options.workers, 512);
    set_fails(&options, "workers", "513", "workers must be a whole number from 0 to 512, not \"513\"");
    set_fails(&options, "workers", "4.0", "workers must be a whole number from 0 to 512, not \"4.0\"");
    set_fails(&options, "workers", "-1", "workers must be a whole number from 0 to 512, not \"-1\"");
    set_fails(&options, "workers", "99999999999999999999",
              "workers must be a whole number from 0 to 512, not \"99999999999999999999\"");
    ok_eq(options.workers, 512);
    set_ok(&options, "workers", "Auto");
    ok_eq(options.workers, 0);
    set_fails(&options, "fields_max", "auto", "fields_max must be a whole number from 1 to 256, not \"auto\"");
    set_fails(&options, "fields_max", "0", "fields_max must be a whole number from 1 to 256, not \"0\"");
    set_ok(&options, "fields_max", "256");
    set_fails(&options, "fields_max", "257", "fields_max must be a whole number from 1 to 256, not \"257\"");
    set_ok(&options, "threads", "64");
    ok_eq(options.threads, 64);
    set_fails(&options, "threads", "65", "threads must be a whole number from 1 to 64, not \"65\"");
    set_fails(&options, "threads", "0", "threads must be a whole number from 1 to 64, not \"0\"");
    set_ok(&options, "threads", "0:5");
    ok_eq(options.threads, 5);
    set_ok(&options, "threads", "3:3");
    ok_eq(options.threads, 3);
    set_fails(&options, "threads", "5:4", "threads must be a whole number from 1 to 64, not \"5:4\"");
    set_fails(&options, "threads", "0:65", "threads must be a whole number from 1 to 64, not \"0:65\"");
    set_fails(&options, "threads", "0:0", "threads must be a whole number from 1 to 64, not \"0:0\"");
    set_fails(&options, "threads", ":5", "threads must be a whole number from 1 to 64, not \":5\"");
    oribi_options_deinit(&options);
}

/* Generated from the table: the bounds that doc/options.md tells are those that are kept, in both languages. */
static void test_every_number_is_taken_at_its_bounds_and_refused_beyond(void)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    for (size_t i = 0; i < count; i++) {
        const struct oribi_option *o = &table[i];
        struct oribi_options options;
        const char *unit = o->type == ORIBI_OPTION_TIME ? "ms" : "";
        char text[64];
        if (o->type < ORIBI_OPTION_COUNT)
            continue;
        oribi_options_init(&options);
        options.lang = o->lang == ORIBI_LANG_PERL ? ORIBI_LANG_PERL : ORIBI_LANG_RUBY;
        for (int high = 0; high < 2; high++) {
            int64_t bound = high ? o->max : o->min;
            int64_t beyond = high ? bound + 1 : bound - 1;
            (void)snprintf(text, sizeof(text), "%lld%s", (long long)bound, unit);
            ok_named(oribi_options_set(&options, o->name, text, error) == 0, "%s takes %s", o->name, text);
            char kept[64];
            (void)snprintf(kept, sizeof(kept), "%.60s", get(&options, o->name));
            (void)snprintf(text, sizeof(text), "%lld%s", (long long)beyond, unit);
            ok_named(oribi_options_set(&options, o->name, text, error) == ORIBI_EINVAL, "%s refuses %s", o->name, text);
            ok_named(strcmp(get(&options, o->name), kept) == 0, "%s stays %s", o->name, kept);
        }
        oribi_options_deinit(&options);
    }
}

static void test_ranges_are_one_number_or_two(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    set_ok(&options, "requests_max", "100");
    ok(options.requests_max.min == 100 && options.requests_max.max == 100);
    set_ok(&options, "requests_max", "50..100");
    ok(options.requests_max.min == 50 && options.requests_max.max == 100);
    is_str(get(&options, "requests_max"), "50..100");
    set_ok(&options, "requests_max", "7..7");
    is_str(get(&options, "requests_max"), "7");
    set_ok(&options, "requests_max", "2147483647");
    static const char *const bad[] = {"",      "..",  "1..",     "..2",        "2..1",         "0..5",
                                      "1...2", "1-2", "1..2..3", "2147483648", "1..2147483648"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(oribi_options_set(&options, "requests_max", bad[i], error) == ORIBI_EINVAL, "\"%s\" is refused",
                 bad[i]);
    set_fails(&options, "requests_max", "x", "requests_max must be N or N..M from 0 to 2147483647, not \"x\"");
    set_ok(&options, "requests_max", "0");
    ok(options.requests_max.min == 0 && options.requests_max.max == 0);
    oribi_options_deinit(&options);
}

static void test_switches_know_the_usual_words(void)
{
    static const char *const on[] = {"on", "true", "yes", "1", "On", "TRUE"};
    static const char *const off[] = {"off", "false", "no", "0", "", "OFF"};
    struct oribi_options options;
    oribi_options_init(&options);
    for (size_t i = 0; i < 6; i++) {
        set_ok(&options, "reuse_port", on[i]);
        ok(options.reuse_port);
        set_ok(&options, "reuse_port", off[i]);
        ok(!options.reuse_port);
        set_ok(&options, "no_reuse_port", off[i]);
        ok(options.reuse_port);
        set_ok(&options, "disable-reuse-port", on[i]);
        ok(!options.reuse_port);
        set_ok(&options, "enable_reuse_port", on[i]);
        ok(options.reuse_port);
    }
    set_fails(&options, "preload", "maybe", "preload must be on or off, not \"maybe\"");
    set_fails(&options, "no_preload", "maybe", "no_preload must be on or off, not \"maybe\"");
    set_fails(&options, "no_workers", "1", "unknown option no_workers: did you mean workers?");
    oribi_options_deinit(&options);
}

static void test_texts_are_one_line(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    set_ok(&options, "pid_file", "/run/oribi.pid");
    is_str(options.pid_file, "/run/oribi.pid");
    set_ok(&options, "pid_file", "");
    ok(options.pid_file == NULL);
    set_fails(&options, "pid_file", "a\nb", "pid_file must not contain control characters: \"a?b\"");
    set_fails(&options, "server_header", "a\r\nX-Evil: 1",
              "server_header must not contain control characters: \"a??X-Evil: 1\"");
    set_fails(&options, "server_header", "\xc3\xa9", "server_header must be plain ASCII: \"\xc3\xa9\"");
    set_ok(&options, "server_header", "");
    ok(options.server_header == NULL);
    set_ok(&options, "eval", "sub {\n    [200, [], []]\n}\n");
    is_str(options.eval, "sub {\n    [200, [], []]\n}\n");
    set_fails(&options, "access_log_skip", "up", "access_log_skip takes paths such as /up or /health/*, not \"up\"");
    set_fails(&options, "error_log_format", "xml", "error_log_format must be one of: text json; not \"xml\"");
    set_fails(&options, "request_id_header", "content-Length",
              "request_id_header must be the name of a header that is not the server's own, not \"content-Length\"");
    set_fails(&options, "access_log_format", "xml",
              "access_log_format must be common, combined, json, dev or a format with directives such as %h or "
              "$remote_addr, not \"xml\"");
    set_fails(&options, "access_log_format", "%h %z", "access_log_format: unknown directive %z; did you mean %h");
    set_ok(&options, "access_log_format", "json");
    oribi_options_deinit(&options);
}

static void test_a_text_may_have_64_kib(void)
{
    struct oribi_options options;
    char *text = oribi_mem_alloc(ORIBI_OPTION_TEXT_MAX + 2, 1);
    memset(text, 'x', ORIBI_OPTION_TEXT_MAX);
    oribi_options_init(&options);
    ok_eq(oribi_options_set(&options, "eval", text, error), 0);
    text[ORIBI_OPTION_TEXT_MAX] = 'x';
    set_fails(&options, "eval", text, "eval is longer than 65536 bytes");
    oribi_mem_free(text);
    oribi_options_deinit(&options);
}

static void test_lists_gather_their_items(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    set_ok(&options, "bind", "127.0.0.1:1");
    set_ok(&options, "listen", "/run/a.sock");
    ok_eq(options.bind.count, 2);
    is_str(get(&options, "bind"), "127.0.0.1:1\n/run/a.sock");
    set_fails(&options, "bind", "nowhere", "address \"nowhere\" needs a port from 0 to 65535");
    set_fails(&options, "include", "", "include must not be empty");
    ok_eq(options.bind.count, 2);
    for (int i = 2; i < ORIBI_OPTION_ITEMS_MAX; i++) {
        if (oribi_options_set(&options, "bind", ":1", error) != 0)
            fail("item %d", i);
    }
    ok_eq(options.bind.count, ORIBI_OPTION_ITEMS_MAX);
    set_fails(&options, "bind", ":1", "bind is given more than 64 times");
    oribi_options_deinit(&options);
}

static void test_values_survive_being_written_and_read(void)
{
    static const char *const set[][2] = {
        {"idle_timeout", "1500ms"}, {"write_timeout", "2h"},  {"body_bytes_max", "1536"},
        {"memory_max", "512M"},     {"requests_max", "5..9"}, {"preload", "off"},
        {"workers", "3"},           {"error_log", "/x y"},    {"bind", "/a"},
    };
    struct oribi_options options;
    struct oribi_options copy;
    size_t count;
    char value[256];
    const struct oribi_option *table = oribi_options_table(&count);
    oribi_options_init(&options);
    oribi_options_init(&copy);
    for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
        set_ok(&options, set[i][0], set[i][1]);
    for (size_t i = 0; i < count; i++) {
        (void)oribi_options_get(&options, &table[i], value, sizeof(value));
        if (table[i].type == ORIBI_OPTION_LIST && !*value)
            continue;
        int code = oribi_options_set(&copy, table[i].name, value, error);
        ok_named(code == 0 && strcmp(get(&copy, table[i].name), value) == 0, "%s = %s", table[i].name, value);
    }
    ok_eq(oribi_options_get(&options, oribi_options_find("error_log"), value, 3), 4);
    is_str(value, "/x");
    oribi_options_deinit(&options);
    oribi_options_deinit(&copy);
}

/* Names of other servers */

static void test_names_of_the_ruby_server_we_succeed(void)
{
    static const char *const given[][3] = {
        {"ConfigFile", "a.rb", "config"},
        {"Host", "::", "host"},
        {"Port", "80", "port"},
        {"Path", "/run/x.sock", "bind"},
        {"BackLog", "9", "backlog"},
        {"ReusePort", "true", "reuse_port"},
        {"MaxWorkers", "5", "workers"},
        {"MaxRequestPerChild", "1000", "requests_max"},
        {"OobGC", "true", "oob_gc"},
        {"MaxGCPerRequest", "7", "oob_gc_requests"},
        {"SpawnInterval", "2", "spawn_interval"},
        {"ErrRespawnInterval", "3", "err_respawn_interval"},
    };
    static const char *const held[] = {"a.rb", "::", "80", "unix:///run/x.sock", "9", "on", "5", "1000", "on",
                                       "7",    "2s", "3s"};
    struct oribi_options options;
    oribi_options_init(&options);
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        set_ok(&options, given[i][0], given[i][1]);
        is_str(get(&options, given[i][2]), held[i]);
    }
    set_ok(&options, "Timeout", "300");
    ok(options.head_timeout_ms == 300000 && options.body_timeout_ms == 300000 && options.write_timeout_ms == 300000);
    ok_eq(options.call_timeout_ms, 60000);
    set_ok(&options, "ChunkedTransfer", "true");
    set_ok(&options, "Chunked_Transfer", "no");
    set_fails(&options, "ChunkedTransfer", "perhaps", "ChunkedTransfer must be on or off, not \"perhaps\"");
    set_ok(&options, "MinRequestPerChild", "900");
    set_ok(&options, "MinGCPerRequest", "3");
    ok_eq(oribi_options_finish(&options, error), 0);
    ok(options.requests_max.min == 900 && options.requests_max.max == 1000);
    ok(options.oob_gc_requests.min == 3 && options.oob_gc_requests.max == 7);
    oribi_options_deinit(&options);
}

static void test_names_of_the_perl_servers_we_succeed(void)
{
    static const char *const given[][3] = {
        {"max-workers", "3", "workers"},
        {"workers", "4", "workers"},
        {"max-reqs-per-child", "50", "requests_max"},
        {"max-requests", "60", "requests_max"},
        {"spawn-interval", "0.5", "spawn_interval"},
        {"err-respawn-interval", "2", "err_respawn_interval"},
        {"keepalive-timeout", "2", "idle_timeout"},
        {"max-keepalive-reqs", "100", "keepalive_requests_max"},
        {"read-timeout", "5", "head_timeout"},
        {"backlog", "1024", "backlog"},
        {"preload-app", "1", "preload"},
        {"pid", "/run/p", "pid_file"},
        {"child-exit", "sub {}", "child_exit"},
        {"max-keepalive-connection", "77", "connections_max"},
        {"daemonize", "1", "daemonize"},
        {"error-log", "/var/log/e", "error_log"},
    };
    static const char *const held[] = {"3",  "4",    "50", "60",     "500ms",  "2s", "2s", "100",
                                       "5s", "1024", "on", "/run/p", "sub {}", "77", "on", "/var/log/e"};
    struct oribi_options options;
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_PERL;
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        set_ok(&options, given[i][0], given[i][1]);
        is_str(get(&options, given[i][2]), held[i]);
    }
    set_ok(&options, "max-readahead-reqs", "100");
    set_ok(&options, "min-readahead-reqs", "0");
    set_ok(&options, "min-reqs-per-child", "10");
    ok_eq(oribi_options_finish(&options, error), 0);
    ok(options.requests_max.min == 10 && options.requests_max.max == 60);
    oribi_options_deinit(&options);
}

static void test_keepalive_is_switched_off_by_each_of_its_names(void)
{
    static const char *const names[][2] = {
        {"disable_keepalive", "1"}, {"disable-keepalive", "on"}, {"keepalive", ""},
        {"keepalive", "off"},       {"enable_keepalive", "0"},   {"no-keepalive", "1"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct oribi_options options;
        oribi_options_init(&options);
        set_ok(&options, names[i][0], names[i][1]);
        ok_eq(options.keepalive_requests_max, 1);
        oribi_options_deinit(&options);
    }
    struct oribi_options options;
    oribi_options_init(&options);
    set_ok(&options, "max_keepalive_reqs", "9");
    set_ok(&options, "keepalive", "1");
    ok_eq(options.keepalive_requests_max, 9);
    set_fails(&options, "keepalive", "2", "keepalive must be on or off, not \"2\"");
    oribi_options_deinit(&options);
}

static void test_unix_paths_come_by_many_names(void)
{
    struct oribi_options options;
    char path[300] = "/";
    oribi_options_init(&options);
    set_ok(&options, "socket", "/run/a");
    set_ok(&options, "S", "rel.sock");
    set_ok(&options, "socket_path", "unix:///run/c");
    set_ok(&options, "port", "/run/d");
    is_str(get(&options, "bind"), "unix:///run/a\nunix://rel.sock\nunix:///run/c\nunix:///run/d");
    ok_eq(oribi_options_source(&options, oribi_options_find("port")), ORIBI_FROM_DEFAULT);
    memset(path + 1, 'p', sizeof(path) - 2);
    ok_eq(oribi_options_set(&options, "path", path, error), ORIBI_EINVAL);
    is_str(error, "path is longer than a socket's path may be");
    oribi_options_deinit(&options);
}

static void test_lower_ends_need_a_fitting_upper_end(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    set_ok(&options, "min_reqs_per_child", "10");
    ok_eq(oribi_options_finish(&options, error), ORIBI_EINVAL);
    is_str(error, "the lower end 10 of requests_max needs an upper end: set requests_max");
    set_ok(&options, "max_reqs_per_child", "9");
    ok_eq(oribi_options_finish(&options, error), ORIBI_EINVAL);
    is_str(error, "the lower end 10 of requests_max is above its upper end 9");
    set_ok(&options, "max_reqs_per_child", "10");
    ok_eq(oribi_options_finish(&options, error), 0);
    ok(options.requests_max.min == 10 && options.requests_max.max == 10);
    set_fails(&options, "min_reqs_per_child", "x",
              "min_reqs_per_child must be a whole number from 0 to 2147483647, not \"x\"");
    oribi_options_deinit(&options);
}

/* Ranks */

static int set_file(struct oribi_options *options, const char *name, const char *value)
{
    return oribi_options_set_from(options, ORIBI_FROM_FILE, name, value, error);
}

static void test_the_command_line_wins_in_either_order(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(set_file(&options, "workers", "2"), 0);
    set_ok(&options, "workers", "3");
    ok_eq(options.workers, 3);
    ok_eq(set_file(&options, "workers", "4"), 0);
    ok_eq(options.workers, 3);
    ok_eq(set_file(&options, "workers", "many"), ORIBI_EINVAL);
    ok_eq(set_file(&options, "timeout", "7"), 0);
    ok_eq(options.write_timeout_ms, 7000);
    set_ok(&options, "write_timeout", "8");
    ok_eq(set_file(&options, "timeout", "9"), 0);
    ok(options.write_timeout_ms == 8000 && options.body_timeout_ms == 9000);
    ok_eq(set_file(&options, "pid_file", "/a"), 0);
    set_ok(&options, "pid_file", "");
    ok_eq(set_file(&options, "pid_file", "/b"), 0);
    ok(options.pid_file == NULL);
    oribi_options_deinit(&options);
}

static void test_a_list_of_the_command_line_replaces_the_files(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(set_file(&options, "bind", ":1"), 0);
    ok_eq(set_file(&options, "bind", ":2"), 0);
    ok_eq(oribi_options_set(&options, "bind", "bad", error), ORIBI_EINVAL);
    is_str(get(&options, "bind"), ":1\n:2");
    set_ok(&options, "bind", ":3");
    set_ok(&options, "bind", ":4");
    ok_eq(set_file(&options, "bind", ":5"), 0);
    is_str(get(&options, "bind"), ":3\n:4");
    oribi_options_deinit(&options);
}

static void test_a_lower_end_follows_its_upper_ends_rank(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(set_file(&options, "MinRequestPerChild", "500"), 0);
    ok_eq(set_file(&options, "MaxRequestPerChild", "1000"), 0);
    set_ok(&options, "requests_max", "10");
    ok_eq(oribi_options_finish(&options, error), 0);
    ok(options.requests_max.min == 10 && options.requests_max.max == 10);
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    set_ok(&options, "min_reqs_per_child", "5");
    ok_eq(set_file(&options, "min_reqs_per_child", "6"), 0);
    ok_eq(set_file(&options, "requests_max", "10"), 0);
    ok_eq(oribi_options_finish(&options, error), 0);
    is_str(get(&options, "requests_max"), "5..10");
    oribi_options_deinit(&options);
}

static void test_commands_do_not_belong_into_the_file(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(set_file(&options, "check", "on"), ORIBI_EINVAL);
    is_str(error, "check belongs on the command line, not in the configuration file");
    ok_eq(set_file(&options, "config", "other.rb"), ORIBI_EINVAL);
    oribi_options_deinit(&options);
}

int main(void)
{
    clear_environment();
    test_every_entry_is_complete_and_every_name_is_one_options_own();
    test_defaults_are_those_that_are_documented();
    test_dashes_underscores_and_camel_case_are_one_name();
    test_an_unknown_name_gets_the_nearest_known_one();
    test_names_of_other_servers_are_answered_with_what_they_are_here();
    test_one_value_where_one_is_meant();
    test_options_of_the_other_language_say_so();
    test_times_have_units_and_fractions();
    test_sizes_have_units();
    test_numbers_are_whole_and_within_bounds();
    test_every_number_is_taken_at_its_bounds_and_refused_beyond();
    test_ranges_are_one_number_or_two();
    test_switches_know_the_usual_words();
    test_texts_are_one_line();
    test_a_text_may_have_64_kib();
    test_lists_gather_their_items();
    test_values_survive_being_written_and_read();
    test_names_of_the_ruby_server_we_succeed();
    test_names_of_the_perl_servers_we_succeed();
    test_keepalive_is_switched_off_by_each_of_its_names();
    test_unix_paths_come_by_many_names();
    test_lower_ends_need_a_fitting_upper_end();
    test_the_command_line_wins_in_either_order();
    test_a_list_of_the_command_line_replaces_the_files();
    test_a_lower_end_follows_its_upper_ends_rank();
    test_commands_do_not_belong_into_the_file();
    return done_testing();
}
