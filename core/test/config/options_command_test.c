/* The command line, and what finish decides. */
#include "config/options_command.c"

#include "tap.h"

#include <stdlib.h>

static char error[ORIBI_ERROR_TEXT_CAP];

/* Parses a command line given as separate words. */
#define PARSE(options, ...)                                                                                            \
    oribi_options_parse((options), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),                        \
                        (const char *const[]){__VA_ARGS__}, error)

static void clear_environment(void)
{
    unsetenv("PORT");
    unsetenv("RACK_ENV");
    unsetenv("PLACK_ENV");
    unsetenv("RAILS_ENV");
    unsetenv("APP_ENV");
    unsetenv("DANCER_ENVIRONMENT");
    unsetenv("MOJO_MODE");
    unsetenv("WEB_CONCURRENCY");
    unsetenv("RAILS_MAX_THREADS");
}

static void test_long_options_take_their_value_either_way(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(PARSE(&options, "--workers=3", "--head-timeout", "5s", "--bind", ":1", "--bind=:2", "config.ru"), 0);
    ok_eq(options.workers, 3);
    ok_eq(options.head_timeout_ms, 5000);
    ok_eq(options.bind.count, 2);
    is_str(options.app, "config.ru");
    oribi_options_deinit(&options);
}

static void test_switches_take_no_value_and_turn_off_with_no(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(PARSE(&options, "--no-preload", "--daemonize", "app.psgi", "--disable-keepalive", "--reuse-port=off",
                "--check"),
          0);
    ok(!options.preload && options.daemonize && !options.reuse_port && options.check);
    ok_eq(options.keepalive_requests_max, 1);
    is_str(options.app, "app.psgi");
    oribi_options_deinit(&options);
}

static void test_short_flags_cluster_and_take_values(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(
        PARSE(&options, "-qD", "-w4", "-p", "8080", "-o", "::1", "-Ilib", "-I", "t/lib", "-S/run/x", "-Mstrict", "-h"),
        0);
    ok(options.quiet && options.daemonize && options.help);
    ok_eq(options.workers, 4);
    ok_eq(options.port, 8080);
    is_str(options.host, "::1");
    ok_eq(options.include.count, 2);
    is_str(options.include.items[0], "lib");
    is_str(options.bind.items[0], "unix:///run/x");
    is_str(options.require.items[0], "strict");
    oribi_options_deinit(&options);
}

static void test_two_dashes_end_the_options(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(PARSE(&options, "--", "--odd-name.ru"), 0);
    is_str(options.app, "--odd-name.ru");
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    ok_eq(PARSE(&options, "-"), 0);
    is_str(options.app, "-");
    oribi_options_deinit(&options);
}

static void check_refused(const char *text, int code)
{
    ok_eq(code, ORIBI_EINVAL);
    is_str(error, text);
}

static void test_mistakes_are_named_as_they_were_typed(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    check_refused("--workers needs a value", PARSE(&options, "--workers"));
    check_refused("-w needs a value", PARSE(&options, "-w"));
    check_refused("-w needs a value", PARSE(&options, "-qw"));
    check_refused("--workers must be a whole number from 0 to 512, not \"x\"", PARSE(&options, "--workers", "x"));
    check_refused("unknown option --wrokers: did you mean --workers?", PARSE(&options, "--wrokers", "3"));
    check_refused("unknown option --wrokers: did you mean --workers?", PARSE(&options, "--wrokers=3"));
    check_refused("unknown option -Z: see --help all", PARSE(&options, "-Z"));
    check_refused("only one application can be served, not a.ru and b.ru", PARSE(&options, "a.ru", "b.ru"));
    check_refused("off: no such file; a switch is --NAME, --no-NAME or --NAME=off", PARSE(&options, "--helper", "off"));
    check_refused("yes: no such file; a switch is --NAME, --no-NAME or --NAME=yes",
                  PARSE(&options, "--server-timing", "yes"));
    check_refused("top: no such file; a running server is told by the command ctl: ctl top", PARSE(&options, "top"));
    check_refused("--preload must be on or off, not \"maybe\"", PARSE(&options, "--preload=maybe"));
    oribi_options_deinit(&options);
}

/* Finish */

static const char *bind_of(struct oribi_options *options)
{
    int code = oribi_options_finish(options, error);
    return code < 0 ? error : options->bind.count == 1 ? options->bind.items[0] : "(more than one)";
}

static void check_bind(const char *expected, const char *env, const char *host, const char *port, const char *port_env)
{
    struct oribi_options options;
    oribi_options_init(&options);
    clear_environment();
    if (env)
        (void)oribi_options_set(&options, "env", env, error);
    if (host)
        (void)oribi_options_set(&options, "host", host, error);
    if (port)
        (void)oribi_options_set(&options, "port", port, error);
    if (port_env)
        setenv("PORT", port_env, 1);
    is_str(bind_of(&options), expected);
    clear_environment();
    oribi_options_deinit(&options);
}

static void test_bind_comes_from_host_port_and_environment(void)
{
    check_bind("127.0.0.1:9292", NULL, NULL, NULL, NULL);
    check_bind("0.0.0.0:9292", "production", NULL, NULL, NULL);
    check_bind("0.0.0.0:9292", "deployment", NULL, NULL, NULL);
    check_bind("127.0.0.1:9292", "staging", NULL, NULL, NULL);
    check_bind("127.0.0.1:8080", NULL, NULL, "8080", NULL);
    check_bind("127.0.0.1:0", NULL, NULL, "0", NULL);
    check_bind("localhost:9292", "production", "localhost", NULL, NULL);
    check_bind("[::1]:9292", NULL, "::1", NULL, NULL);
    check_bind("[::1]:9292", NULL, "[::1]", NULL, NULL);
    check_bind("127.0.0.1:5000", NULL, NULL, NULL, "5000");
    check_bind("127.0.0.1:8080", NULL, NULL, "8080", "5000");
    check_bind("127.0.0.1:9292", NULL, NULL, NULL, "");
    check_bind("PORT in the environment must be a whole number from 0 to 65535, not \"web\"", NULL, NULL, NULL, "web");
    check_bind("address \"a b:9292\" has a host that is neither a name nor a number", NULL, "a b", NULL, NULL);
}

static void test_a_bind_wins_over_host_and_port(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    setenv("PORT", "5000", 1);
    ok_eq(PARSE(&options, "-b", "/run/x", "-p", "1", "-o", "h"), 0);
    is_str(bind_of(&options), "/run/x");
    ok_eq(oribi_options_source(&options, oribi_options_find("bind")), ORIBI_FROM_COMMAND);
    oribi_options_deinit(&options);
    clear_environment();
    oribi_options_init(&options);
    is_str(bind_of(&options), "127.0.0.1:9292");
    ok_eq(oribi_options_source(&options, oribi_options_find("bind")), ORIBI_FROM_DEFAULT);
    oribi_options_deinit(&options);
}

static void check_env(const char *expected, enum oribi_option_lang lang, const char *option, const char *rack,
                      const char *plack)
{
    struct oribi_options options;
    oribi_options_init(&options);
    options.lang = lang;
    clear_environment();
    if (option)
        (void)oribi_options_set(&options, "env", option, error);
    if (rack)
        setenv("RACK_ENV", rack, 1);
    if (plack)
        setenv("PLACK_ENV", plack, 1);
    ok_eq(oribi_options_finish(&options, error), 0);
    is_str(options.env, expected);
    clear_environment();
    oribi_options_deinit(&options);
}

static void test_the_environment_is_the_languages_own(void)
{
    check_env("development", ORIBI_LANG_RUBY, NULL, NULL, "production");
    check_env("test", ORIBI_LANG_RUBY, NULL, "test", "production");
    check_env("production", ORIBI_LANG_PERL, NULL, "test", "production");
    check_env("development", ORIBI_LANG_PERL, NULL, NULL, "");
    check_env("staging", ORIBI_LANG_PERL, "staging", "test", "production");
}

/* The value of `option` after finish, with these variables and this value in the configuration file; or the error. */
static const char *finished(enum oribi_option_lang lang, const char *option, const char *const variables[][2],
                            const char *file_value)
{
    static char shown[512];
    struct oribi_options options;
    oribi_options_init(&options);
    options.lang = lang;
    clear_environment();
    for (size_t i = 0; variables[i][0]; i++)
        setenv(variables[i][0], variables[i][1], 1);
    if (file_value)
        ok_eq(oribi_options_set_from(&options, ORIBI_FROM_FILE, option, file_value, error), 0);
    if (oribi_options_finish(&options, error) < 0)
        snprintf(shown, sizeof(shown), "%s", error);
    else
        (void)oribi_options_get(&options, oribi_options_find(option), shown, sizeof(shown));
    clear_environment();
    oribi_options_deinit(&options);
    return shown;
}

#define VARIABLES(...) ((const char *const[8][2]){__VA_ARGS__}) /* the rest is NULL */
#define NO_VARIABLES   VARIABLES({NULL, NULL})

/* Is one process preferred with this option set, where fork is not safe, and where it is? */
static void check_single(bool expected, const char *env, const char *name, const char *value)
{
    struct oribi_options options;
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_BOTH;
    ok_eq(oribi_options_set(&options, "env", env, error), 0);
    if (name)
        ok_eq(oribi_options_set(&options, name, value, error), 0);
    ok_named(oribi_options_prefer_single(&options, false) == expected, "%s: %s %s", env, name ? name : "", value);
    ok(!oribi_options_prefer_single(&options, true));
    oribi_options_deinit(&options);
}

static void test_development_is_one_process_where_fork_is_not_safe(void)
{
    check_single(true, "development", NULL, "");
    check_single(true, "development", "threads", "5");
    check_single(true, "development", "preload", "off");
    check_single(true, "development", "bind", "127.0.0.1:1");
    check_single(false, "production", NULL, "");
    check_single(false, "test", NULL, "");
    check_single(false, "development", "workers", "1");
    check_single(false, "development", "workers", "4");
    check_single(false, "development", "daemonize", "on");
    check_single(false, "development", "user", "nobody");
    check_single(false, "development", "bind", "tls://127.0.0.1:1");
    check_single(false, "development", "bind", "127.0.0.1:1?frontend=on");
    check_single(false, "development", "warmup", "/");
    check_single(false, "development", "requests_max", "9");
    check_single(false, "development", "memory_max", "1G");
    check_single(false, "development", "age_max", "1h");
    check_single(false, "development", "refork_after", "9");
}

static void test_a_single_process_is_one_worker(void)
{
    is_str(finished(ORIBI_LANG_RUBY, "single", NO_VARIABLES, NULL), "off");
    is_str(finished(ORIBI_LANG_RUBY, "single", NO_VARIABLES, "on"), "on");
    is_str(finished(ORIBI_LANG_RUBY, "single", VARIABLES({"WEB_CONCURRENCY", "7"}), "on"), "on");
    struct oribi_options options;
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_PERL;
    ok_eq(PARSE(&options, "--single", "-E", "production"), 0);
    ok_eq(oribi_options_finish(&options, error), 0);
    ok_eq(options.workers, 1);
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_RUBY;
    ok_eq(PARSE(&options, "--single", "-w", "2"), 0);
    ok_eq(oribi_options_finish(&options, error), ORIBI_EINVAL);
    is_str(error, "single and workers above 1 exclude each other: nothing is forked");
    oribi_options_deinit(&options);
}

static void test_words_of_other_commands_are_no_application(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(PARSE(&options, "restart"), ORIBI_EINVAL);
    is_str(error, "restart: no such file; a running server is told by the command ctl: ctl reload");
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    ok_eq(PARSE(&options, "start"), ORIBI_EINVAL);
    is_str(error, "start: no such file; the server starts without a word");
    oribi_options_deinit(&options);
}

static void test_frameworks_variables_decide_the_environment(void)
{
    is_str(finished(ORIBI_LANG_RUBY, "env", VARIABLES({"RAILS_ENV", "production"}), NULL), "production");
    is_str(finished(ORIBI_LANG_RUBY, "env", VARIABLES({"APP_ENV", "production"}), NULL), "production");
    is_str(finished(ORIBI_LANG_RUBY, "env", VARIABLES({"RACK_ENV", ""}, {"RAILS_ENV", "b"}, {"APP_ENV", "c"}), NULL),
           "b");
    is_str(finished(ORIBI_LANG_RUBY, "env", VARIABLES({"RACK_ENV", "a"}, {"RAILS_ENV", "b"}, {"APP_ENV", "c"}), NULL),
           "a");
    is_str(finished(ORIBI_LANG_RUBY, "env", VARIABLES({"MOJO_MODE", "production"}), NULL), "development");
    is_str(finished(ORIBI_LANG_PERL, "env", VARIABLES({"DANCER_ENVIRONMENT", "production"}), NULL), "production");
    is_str(finished(ORIBI_LANG_PERL, "env", VARIABLES({"MOJO_MODE", "production"}), NULL), "production");
    is_str(finished(ORIBI_LANG_PERL, "env", VARIABLES({"PLACK_ENV", "a"}, {"MOJO_MODE", "c"}), NULL), "a");
    is_str(finished(ORIBI_LANG_PERL, "env", VARIABLES({"RAILS_ENV", "production"}), NULL), "development");
    is_str(finished(ORIBI_LANG_RUBY, "bind", VARIABLES({"RAILS_ENV", "production"}), NULL), "0.0.0.0:9292");
    is_str(finished(ORIBI_LANG_RUBY, "access_log", VARIABLES({"APP_ENV", "production"}), NULL), "off");
    is_str(finished(ORIBI_LANG_PERL, "bind", VARIABLES({"MOJO_MODE", "deployment"}), NULL), "0.0.0.0:9292");
    is_str(finished(ORIBI_LANG_RUBY, "env", VARIABLES({"RAILS_ENV", "production"}), "staging"), "staging");
}

static void test_variables_set_workers_and_threads_of_oribi(void)
{
    is_str(finished(ORIBI_LANG_RUBY, "workers", VARIABLES({"WEB_CONCURRENCY", "7"}), NULL), "7");
    is_str(finished(ORIBI_LANG_RUBY, "workers", VARIABLES({"WEB_CONCURRENCY", "0"}), NULL), "1");
    is_str(finished(ORIBI_LANG_RUBY, "workers", VARIABLES({"WEB_CONCURRENCY", "7"}), "3"), "3");
    is_str(finished(ORIBI_LANG_RUBY, "threads", VARIABLES({"RAILS_MAX_THREADS", "5"}), NULL), "5");
    is_str(finished(ORIBI_LANG_RUBY, "threads", VARIABLES({"RAILS_MAX_THREADS", "5"}, {"RACK_ENV", "production"}), "2"),
           "2");
    is_str(finished(ORIBI_LANG_RUBY, "workers", VARIABLES({"WEB_CONCURRENCY", "many"}), NULL),
           "WEB_CONCURRENCY in the environment must be a whole number from 0 to 512, not \"many\"");
    is_str(finished(ORIBI_LANG_RUBY, "threads", VARIABLES({"RAILS_MAX_THREADS", "0"}), NULL),
           "RAILS_MAX_THREADS in the environment must be a whole number from 1 to 64, not \"0\"");
    is_str(finished(ORIBI_LANG_RUBY, "workers", VARIABLES({"WEB_CONCURRENCY", "many"}), "3"), "3");
    char cpus[16];
    snprintf(cpus, sizeof(cpus), "%u", oribi_os_cpu_count());
    is_str(finished(ORIBI_LANG_PERL, "workers", VARIABLES({"WEB_CONCURRENCY", "7"}), NULL), cpus);
}

static void test_development_has_one_worker_with_threads_in_ruby(void)
{
    char cpus[16];
    snprintf(cpus, sizeof(cpus), "%u", oribi_os_cpu_count());
    is_str(finished(ORIBI_LANG_RUBY, "workers", NO_VARIABLES, NULL), "1");
    is_str(finished(ORIBI_LANG_RUBY, "threads", NO_VARIABLES, NULL), "3");
    is_str(finished(ORIBI_LANG_RUBY, "threads", VARIABLES({"RAILS_MAX_THREADS", "8"}), NULL), "8");
    is_str(finished(ORIBI_LANG_RUBY, "workers", VARIABLES({"RAILS_MAX_THREADS", "8"}), NULL), "1");
    is_str(finished(ORIBI_LANG_RUBY, "threads", VARIABLES({"WEB_CONCURRENCY", "2"}), NULL), "1");
    is_str(finished(ORIBI_LANG_RUBY, "workers", NO_VARIABLES, "auto"), cpus);
    is_str(finished(ORIBI_LANG_RUBY, "workers", VARIABLES({"RACK_ENV", "production"}), NULL), cpus);
    is_str(finished(ORIBI_LANG_RUBY, "threads", VARIABLES({"RACK_ENV", "production"}), NULL), "1");
    is_str(finished(ORIBI_LANG_RUBY, "workers", VARIABLES({"RACK_ENV", "staging"}), NULL), cpus);
    is_str(finished(ORIBI_LANG_PERL, "workers", NO_VARIABLES, NULL), cpus);
}

static void test_calls_have_no_deadline_in_development(void)
{
    is_str(finished(ORIBI_LANG_RUBY, "call_timeout", NO_VARIABLES, NULL), "0");
    is_str(finished(ORIBI_LANG_PERL, "call_timeout", NO_VARIABLES, NULL), "0");
    is_str(finished(ORIBI_LANG_PERL, "call_timeout", NO_VARIABLES, "60s"), "1m");
    is_str(finished(ORIBI_LANG_RUBY, "call_timeout", VARIABLES({"RACK_ENV", "production"}), NULL), "1m");
    is_str(finished(ORIBI_LANG_PERL, "call_timeout", VARIABLES({"PLACK_ENV", "staging"}), NULL), "1m");
}

static void test_the_stronger_of_bind_and_port_counts(void)
{
    static const struct {
        enum oribi_option_source bind;
        enum oribi_option_source port;
        enum oribi_option_source host;
        const char *expected;
    } cases[] = {
        {ORIBI_FROM_FILE, ORIBI_FROM_LAUNCHER, ORIBI_FROM_LAUNCHER, "[::1]:1"},
        {ORIBI_FROM_FILE, ORIBI_FROM_FILE, ORIBI_FROM_DEFAULT,
         "the configuration file has bind and port: bind takes all addresses, as \"host:port\""},
        {ORIBI_FROM_FILE, ORIBI_FROM_DEFAULT, ORIBI_FROM_FILE,
         "the configuration file has bind and host: bind takes all addresses, as \"host:port\""},
        {ORIBI_FROM_COMMAND, ORIBI_FROM_FILE, ORIBI_FROM_FILE, "[::1]:1"},
        {ORIBI_FROM_FILE, ORIBI_FROM_COMMAND, ORIBI_FROM_DEFAULT, "127.0.0.1:2"},
        {ORIBI_FROM_FILE, ORIBI_FROM_DEFAULT, ORIBI_FROM_COMMAND, "h:9292"},
        {ORIBI_FROM_FILE, ORIBI_FROM_COMMAND, ORIBI_FROM_LAUNCHER, "h:2"},
        {ORIBI_FROM_COMMAND, ORIBI_FROM_COMMAND, ORIBI_FROM_COMMAND, "[::1]:1"},
        {ORIBI_FROM_DEFAULT, ORIBI_FROM_LAUNCHER, ORIBI_FROM_LAUNCHER, "h:2"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oribi_options options;
        oribi_options_init(&options);
        if (cases[i].bind)
            ok_eq(oribi_options_set_from(&options, cases[i].bind, "bind", "[::1]:1", error), 0);
        if (cases[i].port)
            ok_eq(oribi_options_set_from(&options, cases[i].port, "port", "2", error), 0);
        if (cases[i].host)
            ok_eq(oribi_options_set_from(&options, cases[i].host, "host", "h", error), 0);
        is_str(bind_of(&options), cases[i].expected);
        oribi_options_deinit(&options);
    }
    is_str(finished(ORIBI_LANG_RUBY, "bind", VARIABLES({"PORT", "5000"}), "[::1]:1"), "[::1]:1");
    is_str(finished(ORIBI_LANG_RUBY, "port", VARIABLES({"PORT", "5000"}), "8000"), "8000");
}

static void test_the_access_log_is_off_in_production(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(oribi_options_finish(&options, error), 0);
    is_str(options.access_log, "-");
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    ok_eq(PARSE(&options, "-E", "production"), 0);
    ok_eq(oribi_options_finish(&options, error), 0);
    is_str(options.access_log, "off");
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    ok_eq(PARSE(&options, "-E", "production", "--access-log", "/var/log/a"), 0);
    ok_eq(oribi_options_finish(&options, error), 0);
    is_str(options.access_log, "/var/log/a");
    oribi_options_deinit(&options);
}

static void test_workers_are_the_usable_cpus(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(oribi_options_finish(&options, error), 0);
    ok_eq(options.workers, oribi_os_cpu_count());
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    ok_eq(PARSE(&options, "-w", "17"), 0);
    ok_eq(oribi_options_finish(&options, error), 0);
    ok_eq(options.workers, 17);
    oribi_options_deinit(&options);
}

static void check_combination(const char *expected, const char *const *argv, size_t argc)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(oribi_options_parse(&options, argc, argv, error), 0);
    ok_eq(oribi_options_finish(&options, error), expected ? ORIBI_EINVAL : 0);
    if (expected)
        is_str(error, expected);
    oribi_options_deinit(&options);
}

#define COMBINE(expected, ...)                                                                                         \
    check_combination((expected), (const char *const[]){__VA_ARGS__},                                                  \
                      sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void test_combinations_that_make_no_sense_are_refused(void)
{
    COMBINE("target_bytes_max (16384) must not be above head_bytes_max (16383), which contains it", "--head-bytes-max",
            "16383");
    COMBINE(NULL, "--head-bytes-max", "16384");
    COMBINE("quiet and verbose exclude each other", "-q", "-v");
    COMBINE("group needs user: a process that switches its group alone keeps the other rights of root", "--group",
            "www");
    COMBINE(NULL, "--group", "www", "--user", "www");
    COMBINE("eval and an application file exclude each other", "-e", "sub {}", "app.psgi");
    COMBINE("requests_jitter needs requests_max", "--requests-jitter", "5");
    COMBINE(NULL, "--requests-jitter", "5", "--requests-max", "10");
    COMBINE("warmup needs preload: only then an application is there before the workers are", "--warmup", "/",
            "--no-preload");
    COMBINE("warmup takes paths such as /health?full=1, not \"health\"", "--warmup", "/", "--warmup", "health");
    COMBINE("warmup takes paths such as /health?full=1, not \"/a b\"", "--warmup", "/a b");
    COMBINE("warmup takes paths such as /health?full=1, not \"/\xc3\xa4\"", "--warmup", "/\xc3\xa4");
    COMBINE(NULL, "--warmup", "/", "--warmup", "/~");
    COMBINE("the PROXY protocol needs trusted_proxies: from whom it is believed", "--proxy-protocol");
    COMBINE("the PROXY protocol needs trusted_proxies: from whom it is believed", "-b", ":0", "-b", ":0?proxy=on");
    COMBINE(NULL, "-b", ":0?proxy=on", "--trusted-proxies", "unix");
    COMBINE(NULL, "--proxy-protocol", "--trusted-proxies", "10.0.0.0/8, ::1");
    COMBINE("trusted_proxies takes addresses such as 10.0.0.0/8, ::1 or unix, not \"localhost\"", "--trusted-proxies",
            "::1 localhost");
}

static bool hints(enum oribi_option_lang lang, const char *argument)
{
    struct oribi_options options;
    oribi_options_init(&options);
    options.lang = lang;
    ok_eq(oribi_options_parse(&options, argument != NULL, &argument, error), 0);
    ok_eq(oribi_options_finish(&options, error), 0);
    bool on = options.early_hints;
    oribi_options_deinit(&options);
    return on;
}

static void test_early_hints_are_offered_where_they_are_expected(void)
{
    ok(!hints(ORIBI_LANG_RUBY, NULL) && hints(ORIBI_LANG_RUBY, "--early-hints"));
    ok(hints(ORIBI_LANG_PERL, NULL) && !hints(ORIBI_LANG_PERL, "--no-early-hints"));
}

int main(void)
{
    clear_environment();
    test_long_options_take_their_value_either_way();
    test_switches_take_no_value_and_turn_off_with_no();
    test_short_flags_cluster_and_take_values();
    test_two_dashes_end_the_options();
    test_mistakes_are_named_as_they_were_typed();
    test_bind_comes_from_host_port_and_environment();
    test_a_bind_wins_over_host_and_port();
    test_the_environment_is_the_languages_own();
    test_development_is_one_process_where_fork_is_not_safe();
    test_a_single_process_is_one_worker();
    test_words_of_other_commands_are_no_application();
    test_frameworks_variables_decide_the_environment();
    test_variables_set_workers_and_threads_of_oribi();
    test_development_has_one_worker_with_threads_in_ruby();
    test_calls_have_no_deadline_in_development();
    test_the_stronger_of_bind_and_port_counts();
    test_the_access_log_is_off_in_production();
    test_workers_are_the_usable_cpus();
    test_combinations_that_make_no_sense_are_refused();
    test_early_hints_are_offered_where_they_are_expected();
    return done_testing();
}
