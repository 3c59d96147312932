/* Options that do not fit together, or that are a risk where they are used. What is wrong in any case has been refused
 * by oribi_options_finish(). */
#include "command/check_private.h"

#include "oribi/config/address.h"
#include "oribi/config/trust.h"

#include <string.h>

#define RISK ORIBI_CHECK_RISK

enum {
    TOKEN_BYTES_MIN = 16,
    V4_BITS = 96, /* of an IPv4 range before the operator's own */
};

static bool is_environment(const struct oribi_options *options, const char *name)
{
    return options->env && strcmp(options->env, name) == 0;
}

/* The first bind that other machines reach, NULL: none. */
static const char *open_address(const struct oribi_options *options, struct oribi_address *address)
{
    char ignored[ORIBI_ERROR_TEXT_CAP]; /* check_ports.c tells of wrong ones */
    for (size_t i = 0; i < options->bind.count; i++)
        if (oribi_address_parse(options->bind.items[i], address, ignored) == 0 && address->type == ORIBI_ADDRESS_TCP &&
            !oribi__options_is_loopback(address->name))
            return address->text;
    return NULL;
}

static bool trusts_all(const struct oribi_options *options)
{
    struct oribi_trust trust;
    char ignored[ORIBI_ERROR_TEXT_CAP]; /* oribi_options_finish() has checked it */
    if (oribi_trust_parse(&options->trusted_proxies, &trust, ignored) < 0)
        return false;
    for (uint32_t i = 0; i < trust.count; i++) {
        static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
        bool is_v4 = memcmp(trust.ranges[i].addr, v4, sizeof(v4)) == 0;
        if (trust.ranges[i].bits == 0 || (is_v4 && trust.ranges[i].bits == V4_BITS))
            return true;
    }
    return false;
}

static void look_at_reach(struct oribi_check *check, const struct oribi_options *options)
{
    struct oribi_address address;
    const char *open = open_address(options, &address);
    if (open && is_environment(options, "development"))
        oribi__check_say(check, RISK, "environment",
                         "Development shows errors with code and settings, and calls have no deadline",
                         "set env to production, or bind to 127.0.0.1",
                         "env is development, and %s can be reached from other machines", open);
    if (open && trusts_all(options))
        oribi__check_say(check, RISK, "trusted-proxies", "Each client says which address and scheme it has",
                         "name the addresses of the proxies alone",
                         "trusted_proxies trusts every address, and %s can be reached from other machines", open);
}

static void look_at_status(struct oribi_check *check, const struct oribi_options *options)
{
    struct oribi_address address;
    char ignored[ORIBI_ERROR_TEXT_CAP]; /* oribi_options_finish() has checked it */
    if (options->status && oribi_address_parse(options->status, &address, ignored) == 0 &&
        address.type == ORIBI_ADDRESS_TCP && !oribi__options_is_loopback(address.name) &&
        strlen(options->status_token) < TOKEN_BYTES_MIN)
        oribi__check_say(check, RISK, "status-token", "A short token can be guessed, and /stacks shows the code",
                         "take a random one, such as of openssl rand -hex 16",
                         "status on %s can be reached from other machines, and status_token has %zu characters",
                         address.text, strlen(options->status_token));
}

static void look_at_production(struct oribi_check *check, const struct oribi_options *options, bool is_root)
{
    if (!is_environment(options, "production") && !is_environment(options, "deployment"))
        return;
    if (options->call_timeout_ms == 0)
        oribi__check_say(check, RISK, "call-timeout", "A call that hangs occupies its worker until somebody notices",
                         "set call_timeout to more than the longest call takes", "call_timeout is 0 in production");
    if (options->call_timeout_ms == 0 && options->shutdown_timeout_ms == 0)
        oribi__check_say(check, RISK, "shutdown-timeout", "A call that hangs keeps a stop or a reload from ending",
                         "set shutdown_timeout", "shutdown_timeout is 0, and so is call_timeout");
    if (options->boot_timeout_ms == 0)
        oribi__check_say(check, RISK, "boot-timeout", "A start or a reload whose application hangs never fails",
                         "set boot_timeout to more than loading takes", "boot_timeout is 0 in production");
    if (is_root && !options->user)
        oribi__check_say(check, RISK, "root", "A hole in the application is a hole in the machine",
                         "set user, or start as another user", "workers run as root in production");
}

/* Two options of which one undoes the other. */
static void look_at_pairs(struct oribi_check *check, const struct oribi_options *options)
{
    bool logs_to_terminal = !options->error_log || strcmp(options->error_log, "-") == 0;
    if (options->daemonize && logs_to_terminal)
        oribi__check_say(check, RISK, "daemon-log", "A daemon has no terminal, and what goes wrong is not found out",
                         "set error_log to a file", "daemonize is on, and error_log is -");
    if (options->slow_log_ms > 0 && options->call_timeout_ms > 0 && options->slow_log_ms >= options->call_timeout_ms)
        oribi__check_say(check, RISK, "slow-log", "Calls are ended before the log tells where they stand",
                         "set slow_log to less than call_timeout", "slow_log %lld ms is not below call_timeout %lld ms",
                         (long long)options->slow_log_ms, (long long)options->call_timeout_ms);
    if (options->memory_max > 0 && options->buffers_memory_max > options->memory_max)
        oribi__check_say(check, RISK, "buffers-of-worker",
                         "Slow clients alone can have a worker replaced again and again",
                         "set buffers_memory_max to well below memory_max",
                         "buffers_memory_max %lld is above memory_max %lld, both in bytes of one worker",
                         (long long)options->buffers_memory_max, (long long)options->memory_max);
}

void oribi__check_settings(struct oribi_check *check, const struct oribi_options *options, bool is_root)
{
    look_at_reach(check, options);
    look_at_status(check, options);
    look_at_production(check, options, is_root);
    look_at_pairs(check, options);
}
