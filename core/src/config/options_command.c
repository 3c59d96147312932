/* The command line, and what can only be decided once everybody has spoken. */
#include "config/options_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_machine.h"
#include "oribi/base/os/os_process.h"
#include "oribi/base/os/os_terminal.h"
#include "oribi/config/acme.h"
#include "oribi/config/address.h"
#include "oribi/config/trust.h"
#include "oribi/http/compress.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEVELOPMENT_THREADS = 3 }; /* of oribi's one worker in development */

/* One "--name", "--name=value" or "--name value" at argv[*at]; moves *at to the last argument used. */
static int parse_long(struct oribi_options *options, size_t argc, const char *const *argv, size_t *at, char *error)
{
    char name[ORIBI__OPTION_NAME_CAP + 16];
    const char *argument = argv[*at];
    const char *equals = strchr(argument, '=');
    size_t n = equals ? (size_t)(equals - argument) : strlen(argument);
    if (n >= sizeof(name))
        return oribi__options_unknown(options->lang, argument, error);
    memcpy(name, argument, n);
    name[n] = '\0';
    struct oribi__option_name found = oribi__options_resolve(name);
    if (!found.option && !found.alias) {
        if (!oribi__options_ignore(options, name, &found.takes_value))
            return oribi__options_unknown(options->lang, name, error);
        *at += !equals && found.takes_value;
        return 0;
    }
    const char *value = equals ? equals + 1 : "on";
    if (!equals && found.takes_value) {
        if (*at + 1 >= argc)
            return oribi__refuse(error, "%s needs a value", name);
        value = argv[++*at];
    }
    return oribi_options_set(options, name, value, error);
}

/* nginx -s reload, nginx -t. */
static int refuse_as_nginx(const char *name, const char *value, char *error)
{
    static const char *const commands[][2] = {
        {"reload", "reload"}, {"stop", "stop --now"}, {"quit", "stop"}, {"reopen", "reopen"}};
    for (size_t i = 0; value && name[1] == 's' && i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(value, commands[i][0]) == 0)
            return oribi__refuse(error, "-s %s: a running server is told by the command ctl: ctl %s", value,
                                 commands[i][1]);
    return 0;
}

/* A cluster of single letters, the last of which may take the rest of the argument or the next one: -qD, -w4, -w 4. */
static int parse_short(struct oribi_options *options, size_t argc, const char *const *argv, size_t *at, char *error)
{
    for (const char *p = argv[*at] + 1; *p; p++) {
        char name[] = {'-', *p, '\0'};
        const char *value = "on";
        struct oribi__option_name found = oribi__options_resolve(name);
        if (refuse_as_nginx(name, p[1] ? p + 1 : *at + 1 < argc ? argv[*at + 1] : NULL, error) < 0)
            return ORIBI_EINVAL;
        if (!found.option && !found.alias) {
            if (!oribi__options_ignore(options, name, &found.takes_value))
                return oribi__options_unknown(options->lang, name, error);
            continue;
        }
        bool took_rest = found.takes_value;
        if (found.takes_value && p[1]) {
            value = p + 1;
        } else if (found.takes_value) {
            if (*at + 1 >= argc)
                return oribi__refuse(error, "%s needs a value%s", name,
                                     *p == 't' ? ": it is call_timeout; the command check tests a configuration" : "");
            value = argv[++*at];
        }
        int code = oribi_options_set(options, name, value, error);
        if (code < 0 || took_rest)
            return code;
    }
    return 0;
}

/* `oribi restart`, as pumactl and start scripts have it, and `--helper off`, where no application has that name. */
static int refuse_word(const char *word, char *error)
{
    static const char *const commands[][2] = {
        {"status", "status"},     {"reload", "reload"}, {"upgrade", "upgrade"}, {"stop", "stop"},
        {"workers", "workers N"}, {"reopen", "reopen"}, {"restart", "reload"},  {"phased-restart", "reload"},
        {"halt", "stop --now"},   {"stacks", "stacks"}, {"top", "top"},
    };
    static const char *const switches[] = {"on", "off", "yes", "no", "true", "false"};
    if (access(word, F_OK) == 0)
        return 0;
    if (strcmp(word, "start") == 0)
        return oribi__refuse(error, "start: no such file; the server starts without a word");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(word, commands[i][0]) == 0)
            return oribi__refuse(error, "%s: no such file; a running server is told by the command ctl: ctl %s", word,
                                 commands[i][1]);
    }
    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        if (strcmp(word, switches[i]) == 0)
            return oribi__refuse(error, "%s: no such file; a switch is --NAME, --no-NAME or --NAME=%s", word, word);
    }
    return 0;
}

/* `oribi help`, where no application has that name. */
static bool is_call_for_help(const struct oribi_options *options, const char *word)
{
    return !options->app && strcmp(word, "help") == 0 && access(word, F_OK) != 0;
}

int oribi_options_parse(struct oribi_options *options, size_t argc, const char *const *argv, char *error)
{
    bool ended = false;
    for (size_t i = 0; i < argc; i++) {
        const char *argument = argv[i];
        int code = 0;
        if (!ended && strcmp(argument, "--") == 0) {
            ended = true;
        } else if (!ended && strncmp(argument, "--", 2) == 0) {
            code = parse_long(options, argc, argv, &i, error);
        } else if (!ended && argument[0] == '-' && argument[1]) {
            code = parse_short(options, argc, argv, &i, error);
        } else {
            if (is_call_for_help(options, argument)) {
                options->help = true;
                continue;
            }
            code = refuse_word(argument, error);
            if (code < 0)
                return code;
            if (options->app)
                return oribi__refuse(error, "only one application can be served, not %.60s and %.60s", options->app,
                                     argument);
            oribi__option_replace_text(&options->app, argument);
        }
        if (code < 0)
            return code;
    }
    return 0;
}

/* Finishing */

static bool is_given(const struct oribi_options *options, const char *name)
{
    const struct oribi_option *option = oribi_options_find(name);
    assert(option);
    return oribi_options_source(options, option) != ORIBI_FROM_DEFAULT;
}

/* Both languages call the same thing by two names. */
static bool is_production(const struct oribi_options *options)
{
    return strcmp(options->env, "production") == 0 || strcmp(options->env, "deployment") == 0;
}

static bool is_development(const struct oribi_options *options)
{
    return strcmp(options->env, "development") == 0;
}

/* `rackup -p 3000` means port 3000 although the configuration file has a bind. */
static bool is_bind_outranked(const struct oribi_options *options, const struct oribi_option *bind)
{
    enum oribi_option_source host = oribi_options_source(options, oribi_options_find("host"));
    enum oribi_option_source port = oribi_options_source(options, oribi_options_find("port"));
    return oribi_options_source(options, bind) < (host > port ? host : port);
}

/* Puma listens on both; here an address would be lost without a word. Launchers name both, so that the command line
 * may. */
static int check_beside_bind(const struct oribi_options *options, const struct oribi_option *bind, char *error)
{
    static const char *const names[] = {"port", "host"};
    for (size_t i = 0; i < 2 && oribi_options_source(options, bind) == ORIBI_FROM_FILE; i++) {
        if (oribi_options_source(options, oribi_options_find(names[i])) == ORIBI_FROM_FILE)
            return oribi__refuse(
                error, "the configuration file has bind and %s: bind takes all addresses, as \"host:port\"", names[i]);
    }
    return 0;
}

/* Launchers fill in 0.0.0.0 for every address. */
static const char *host_of(const struct oribi_options *options)
{
    bool of_launcher = oribi_options_source(options, oribi_options_find("host")) <= ORIBI_FROM_LAUNCHER;
    const char *host = options->host;
    if (!host)
        host = is_production(options) ? "0.0.0.0" : "127.0.0.1";
    return of_launcher && strcmp(host, "0.0.0.0") == 0 && oribi_os_has_only_ipv6() ? "::" : host;
}

/* host and port become one bind unless one was given. The source is "default": a listener handed down then takes its
 * place. */
static int finish_bind(struct oribi_options *options, char *error)
{
    const struct oribi_option *bind = oribi_options_find("bind");
    char address[ORIBI_ERROR_TEXT_CAP];
    if (options->bind.count > 0 && !is_bind_outranked(options, bind))
        return check_beside_bind(options, bind, error);
    oribi__option_clear(options, bind);
    *oribi__option_source(options, bind) = ORIBI_FROM_DEFAULT;
    const char *host = host_of(options);
    bool bare_v6 = strchr(host, ':') && host[0] != '[';
    int n =
        snprintf(address, sizeof(address), "%s%s%s:%u", bare_v6 ? "[" : "", host, bare_v6 ? "]" : "", options->port);
    if (n < 0 || (size_t)n >= sizeof(address))
        return oribi__refuse(error, "host is longer than a name may be");
    return oribi__option_assign(options, bind, "host", address, error);
}

/* --- acme --- */

enum { HTTP_PORT = 80, HTTPS_PORT = 443 };

/* All addresses for browsers, where no address was asked for in any way. */
static int bind_for_acme(struct oribi_options *options, const struct oribi_option *bind, char *error)
{
    static const char *const both[] = {"tls://[::]:443", "tcp://[::]:80?frontend=on"};
    static const char *const ipv4[] = {"tls://0.0.0.0:443", "tcp://0.0.0.0:80?frontend=on"};
    const char *const *addresses = oribi_os_has_ipv6() ? both : ipv4;
    oribi__option_clear(options, bind);
    int code = oribi__option_assign(options, bind, "bind", addresses[0], error);
    return code < 0 ? code : oribi__option_assign(options, bind, "bind", addresses[1], error);
}

/* Frontends answer the authority (http-01), which asks at port 80 (RFC 8555 8.3). */
static void add_frontends(struct oribi_options *options)
{
    for (size_t i = 0; i < options->bind.count; i++) {
        struct oribi_address address;
        char ignored[ORIBI_ERROR_TEXT_CAP]; /* a bind that is wrong is refused when it is opened */
        char **item = &options->bind.items[i];
        if (oribi_address_parse(*item, &address, ignored) < 0 || address.type != ORIBI_ADDRESS_TCP || address.tls ||
            address.frontend || address.port != HTTP_PORT || strstr(*item, "frontend=off"))
            continue;
        size_t room = strlen(*item) + sizeof("?frontend=on");
        char *text = oribi_mem_alloc(room, 1);
        (void)snprintf(text, room, "%s%cfrontend=on", *item, strchr(*item, '?') ? '&' : '?'); /* fits */
        oribi__option_replace_text(item, text);
        oribi_mem_free(text);
    }
}

static bool has_tls(const struct oribi_options *options)
{
    struct oribi_address address;
    char ignored[ORIBI_ERROR_TEXT_CAP];
    for (size_t i = 0; i < options->bind.count; i++)
        if (oribi_address_parse(options->bind.items[i], &address, ignored) == 0 && address.tls)
            return true;
    return false;
}

static int finish_acme(struct oribi_options *options, char *error)
{
    const struct oribi_option *bind = oribi_options_find("bind");
    int code = oribi_acme_check(options, error);
    if (code < 0 || !oribi_acme_wanted(options))
        return code;
    if (oribi_options_source(options, bind) == ORIBI_FROM_DEFAULT && !is_given(options, "port") &&
        !is_given(options, "host")) {
        code = bind_for_acme(options, bind, error);
        if (!is_given(options, "https_redirect"))
            options->https_redirect = HTTPS_PORT;
    }
    add_frontends(options);
    if (code < 0 || has_tls(options))
        return code;
    return oribi__refuse(error, "acme needs an address that begins with tls://: bind tls://[::]:443 too, or give none "
                                "(bind, host, port, PORT) for 443 and 80");
}

static int join_lower_end(struct oribi_options *options, const char *name, struct oribi_range *range,
                          struct oribi_option_lower_end end, char *error)
{
    if (end.value == 0 || end.source < oribi_options_source(options, oribi_options_find(name)))
        return 0;
    if (range->max == 0)
        return oribi__refuse(error, "the lower end %u of %s needs an upper end: set %s", end.value, name, name);
    if (end.value > range->max)
        return oribi__refuse(error, "the lower end %u of %s is above its upper end %u", end.value, name, range->max);
    range->min = end.value;
    return 0;
}

/* One process in development: what an application keeps in memory (messages of Action Cable's async adapter, a
 * MemoryStore, counters of limiters) is then the same for every request. Threads, since such applications call
 * themselves too. */
static void finish_workers(struct oribi_options *options)
{
    if (options->workers > 0)
        return;
    if (options->lang == ORIBI_LANG_RUBY && is_development(options) && !is_given(options, "workers")) {
        options->workers = 1;
        if (!is_given(options, "threads"))
            options->threads = DEVELOPMENT_THREADS;
        return;
    }
    uint32_t cpus = oribi_os_cpu_count();
    options->workers = cpus < ORIBI_WORKERS_MAX ? cpus : ORIBI_WORKERS_MAX;
}

/* --- single --- */

static bool needs_frontend(const struct oribi_options *options)
{
    struct oribi_address address;
    char ignored[ORIBI_ERROR_TEXT_CAP]; /* a bind that is wrong is refused when it is opened */
    for (size_t i = 0; i < options->bind.count; i++)
        if (oribi_address_parse(options->bind.items[i], &address, ignored) == 0 && (address.tls || address.frontend))
            return true;
    return false;
}

/* Names the first setting that a single process cannot have; NULL: none. A number of workers in the environment is
 * meant for other starts. */
static const char *against_single(const struct oribi_options *options)
{
    if (options->workers > 1 && oribi_options_source(options, oribi_options_find("workers")) > ORIBI_FROM_ENVIRONMENT)
        return "workers above 1";
    if (options->daemonize)
        return "daemonize";
    if (options->user)
        return "user";
    if (needs_frontend(options))
        return "addresses with tls:// or frontend=on";
    if (options->warmup.count > 0)
        return "warmup";
    if (options->requests_max.max > 0)
        return "requests_max";
    if (options->memory_max > 0)
        return "memory_max";
    if (options->age_max_ms > 0)
        return "age_max";
    return options->refork_after > 0 ? "refork_after" : NULL;
}

bool oribi_options_prefer_single(const struct oribi_options *options, bool forks_safely)
{
    return !forks_safely && is_development(options) && !is_given(options, "workers") && !against_single(options);
}

static int finish_single(struct oribi_options *options, char *error)
{
    if (!is_given(options, "single"))
        options->single = oribi_options_prefer_single(options, oribi_os_forks_safely());
    const char *against = options->single ? against_single(options) : NULL;
    if (against)
        return oribi__refuse(error, "single and %s exclude each other: nothing is forked", against);
    if (options->single && is_given(options, "workers"))
        options->workers = 1;
    return 0;
}

static int check_warmup(const struct oribi_options *options, char *error)
{
    if (options->warmup.count > 0 && !options->preload)
        return oribi__refuse(error, "warmup needs preload: only then an application is there before the workers are");
    for (size_t i = 0; i < options->warmup.count; i++) {
        const unsigned char *p = (const unsigned char *)options->warmup.items[i];
        bool is_path = *p == '/';
        for (; *p; p++)
            is_path = is_path && *p > ' ' && *p < 0x7f;
        if (!is_path)
            return oribi__refuse(error, "warmup takes paths such as /health?full=1, not \"%.80s\"",
                                 options->warmup.items[i]);
    }
    return 0;
}

static int check_proxies(const struct oribi_options *options, char *error)
{
    struct oribi_trust trust;
    struct oribi_address address;
    int code = oribi_trust_parse(&options->trusted_proxies, &trust, error);
    if (code < 0 || trust.count > 0 || trust.unix_peers)
        return code;
    bool asked = options->proxy_protocol;
    for (size_t i = 0; i < options->bind.count; i++) {
        char ignored[ORIBI_ERROR_TEXT_CAP]; /* a bind that is wrong is refused when it is opened */
        asked |= oribi_address_parse(options->bind.items[i], &address, ignored) == 0 && address.proxy;
    }
    return asked ? oribi__refuse(error, "the PROXY protocol needs trusted_proxies: from whom it is believed") : 0;
}

int oribi_options_compress_rules(const struct oribi_options *options, struct oribi_compress_rules *rules, char *error)
{
    *rules = (struct oribi_compress_rules){.min = options->compress_min, .private_too = options->compress_private};
    int code = options->compress ? oribi_compress_rules_codings(rules, options->compress, error) : 0;
    if (code == 0 && options->compress_types.count == 0)
        code = oribi_compress_rules_types(rules, oribi_compress_types_default, error);
    for (size_t i = 0; i < options->compress_types.count && code == 0; i++)
        code = oribi_compress_rules_types(rules, options->compress_types.items[i], error);
    return code;
}

static int check_combinations(const struct oribi_options *options, char *error)
{
    if (options->limits.target_bytes_max > options->limits.head_bytes_max)
        return oribi__refuse(error, "target_bytes_max (%u) must not be above head_bytes_max (%u), which contains it",
                             options->limits.target_bytes_max, options->limits.head_bytes_max);
    if (options->quiet && options->verbose)
        return oribi__refuse(error, "quiet and verbose exclude each other");
    if (options->group && !options->user)
        return oribi__refuse(
            error, "group needs user: a process that switches its group alone keeps the other rights of root");
    if (options->eval && options->app)
        return oribi__refuse(error, "eval and an application file exclude each other");
    if (options->dev && options->daemonize)
        return oribi__refuse(error, "dev and daemonize exclude each other: errors are to be seen");
    if (options->requests_jitter > 0 && options->requests_max.max == 0)
        return oribi__refuse(error, "requests_jitter needs requests_max");
    struct oribi_compress_rules rules;
    int code = check_proxies(options, error);
    if (code == 0)
        code = oribi__options_check_answers(options, error);
    if (code == 0)
        code = oribi__options_check_status(options, error);
    if (code == 0)
        code = oribi__options_check_gone(options, error);
    if (code == 0)
        code = oribi_options_compress_rules(options, &rules, error);
    return code < 0 ? code : check_warmup(options, error);
}

bool oribi_options_at_terminal(const struct oribi_options *options)
{
    return options->env && is_development(options) && !options->daemonize && oribi_process_has_terminal();
}

int oribi_options_finish(struct oribi_options *options, char *error)
{
    int code;
    if ((code = oribi__options_read_environment(options, error)) < 0)
        return code;
    if (!options->env)
        oribi__option_replace_text(&options->env, "development");
    if ((code = finish_bind(options, error)) < 0)
        return code;
    if ((code = finish_acme(options, error)) < 0)
        return code;
    if ((code = join_lower_end(options, "requests_max", &options->requests_max, options->requests_min, error)) < 0)
        return code;
    if ((code = join_lower_end(options, "oob_gc_requests", &options->oob_gc_requests, options->oob_gc_requests_min,
                               error)) < 0)
        return code;
    if ((code = check_combinations(options, error)) < 0)
        return code;
    if ((code = finish_single(options, error)) < 0)
        return code;
    finish_workers(options);
    if (options->single)
        options->workers = 1;
    if (!is_given(options, "early_hints")) /* what applications of either world expect to be offered */
        options->early_hints = options->lang == ORIBI_LANG_PERL;
    if (is_development(options) && !is_given(options, "call_timeout")) /* a developer stops in the middle of a call */
        options->call_timeout_ms = 0;
    if (is_development(options) && !is_given(options, "dev") && !options->daemonize)
        options->dev = true;
    options->request_id |= options->request_id_header != NULL;
    if (!options->access_log)
        oribi__option_replace_text(&options->access_log, is_production(options) ? "off" : "-");
    if (is_development(options) && !is_given(options, "access_log_format") && !options->daemonize &&
        strcmp(options->access_log, "-") == 0 && oribi_terminal_is(STDOUT_FILENO))
        oribi__option_replace_text(&options->access_log_format, "dev");
    return 0;
}
