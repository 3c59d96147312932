/* The frontend's side of its link to the supervisor: the configuration that it was started with, and the messages
 * afterwards. */
#include "frontend/config.h"

#include "frontend/pairs.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/worker/frontend_protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static int refuse(char *error, const char *what)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s", what);
    return ORIBI_EINVAL;
}

/* NUL-terminated copies, for interfaces that want them. */
static bool copy(struct oribi_slice text, char *dst, size_t cap)
{
    if (text.n >= cap)
        return false;
    memcpy(dst, text.p, text.n);
    dst[text.n] = '\0';
    return true;
}

static int set_option(struct oribi_options *options, struct oribi_slice name, struct oribi_slice value, char *error)
{
    char word[ORIBI_FRONTEND_WORD_MAX];
    char *text = oribi_mem_try_alloc(value.n + 1, 1);
    if (!text)
        return ORIBI_ENOMEM;
    memcpy(text, value.p, value.n);
    int code = copy(name, word, sizeof(word)) ? oribi_options_set(options, word, text, error)
                                              : refuse(error, "an option's name is too long");
    oribi_mem_free(text);
    return code;
}

static int add_listener(struct oribi_frontend_config *config, struct oribi_slice value, char *error)
{
    char text[ORIBI_FRONTEND_WORD_MAX];
    struct oribi_frontend_listener *item = &config->listeners[config->listener_count];
    int tls = 0;
    int proxy = 0;
    int inherited = 0;
    if (config->listener_count == ORIBI_LISTENERS_MAX || !copy(value, text, sizeof(text)) ||
        sscanf(text, "%d %u %u %d %d %d %127s", &item->listener.fd, &item->index, &item->hash, &tls, &proxy, &inherited,
               item->listener.text) != 7)
        return refuse(error, "a listener that cannot be read");
    item->tls = tls != 0;
    item->listener.proxy = proxy != 0;
    item->listener.inherited = inherited != 0;
    item->listener.is_unix = strncmp(item->listener.text, "unix:", 5) == 0;
    config->listener_count++;
    return oribi_os_set_cloexec(item->listener.fd, true) < 0 ? refuse(error, "a listener is not open") : 0;
}

/* --- certificates --- */

static enum oribi_tls_verify verify_of(const struct oribi_options *options)
{
    return options->client_verify && strcmp(options->client_verify, "optional") == 0 ? ORIBI_TLS_VERIFY_OPTIONAL
                                                                                     : ORIBI_TLS_VERIFY_REQUIRED;
}

/* For whoever watches: the first of all certificates to expire. */
static void tell_expiry(const struct oribi_frontend_config *config)
{
    int64_t first_s = INT64_MAX;
    for (uint32_t i = 0; i < config->listener_count; i++) {
        const struct oribi_tls *tls = config->listeners[i].contexts;
        if (tls && oribi_tls_expires_s(tls) < first_s)
            first_s = oribi_tls_expires_s(tls);
    }
    if (config->slot)
        atomic_store_explicit(&config->slot->expires_s, first_s == INT64_MAX ? 0 : first_s, memory_order_relaxed);
}

/* The first one that has expired in `made` and is good in `now`, or any that has expired where `now` is NULL; there
 * those of ACME may serve on, since they are renewed by the server that begins. */
static int check_expiry(const struct oribi__pairs *pairs, uint32_t i, const struct oribi_tls *made,
                        const struct oribi_tls *now, char *error)
{
    int64_t now_s = oribi_clock_wall_s();
    for (uint32_t k = 0; k < pairs->counts[i]; k++) {
        struct oribi_slice name = pairs->items[i][k].name;
        if (oribi_tls_ends_s(made, k) > now_s || (now && oribi_tls_ends_s(now, k) <= now_s) ||
            (!now && pairs->items[i][k].names.n))
            continue;
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%.*s: it has expired", (int)(name.n < 140 ? name.n : 140), name.p);
        return ORIBI_EINVAL;
    }
    return 0;
}

/* A placeholder is no better than the certificate that serves: its file has vanished. */
static int check_placeholders(const struct oribi__pairs *pairs, uint32_t i, const struct oribi_tls *made,
                              const struct oribi_tls *now, char *error)
{
    for (uint32_t k = 0; now && k < pairs->counts[i]; k++) {
        struct oribi_slice name = pairs->items[i][k].name;
        if (!oribi_tls_is_placeholder(made, k) || oribi_tls_is_placeholder(now, k))
            continue;
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%.*s: the file has gone", (int)(name.n < 140 ? name.n : 140),
                       name.p);
        return ORIBI_EINVAL;
    }
    return 0;
}

/* At a begin: the server is to start with whatever it finds in the place of a certificate that it gets by itself. */
static void make_do(struct oribi__pairs *pairs, uint32_t i)
{
    for (uint32_t k = 0; k < pairs->counts[i]; k++) {
        struct oribi_tls_certificate *item = &pairs->items[i][k];
        struct oribi_tls_look look;
        char error[ORIBI_ERROR_TEXT_CAP];
        if (item->names.n == 0 || item->placeholder || oribi_tls_look(item, &look, error) == 0)
            continue;
        oribi_log(ORIBI_LOG_WARN, "certificate %s; a placeholder serves until a new one has come", error);
        *item = (struct oribi_tls_certificate){.name = item->name, .names = item->names, .placeholder = true};
    }
}

/* All contexts anew, or none: a bad pair leaves what serves. `error` may hold a warning after 0. */
static int make_contexts(struct oribi_frontend_config *config, struct oribi__pairs *pairs, bool strict, char *error)
{
    struct oribi_tls *made[ORIBI_LISTENERS_MAX] = {NULL};
    char warning[ORIBI_ERROR_TEXT_CAP] = "";
    int code = 0;
    for (uint32_t i = 0; i < config->listener_count && code == 0; i++) {
        struct oribi_tls_config tls = {.certificates = pairs->items[i],
                                       .count = pairs->counts[i],
                                       .client_ca = pairs->client_ca,
                                       .client_ca_name = pairs->client_ca_name,
                                       .verify = verify_of(config->options),
                                       .h2 = config->options->http2,
                                       .tls12 =
                                           !config->options->tls_min || strcmp(config->options->tls_min, "1.3") != 0};
        if (!config->listeners[i].tls)
            continue;
        if (!strict && !config->listeners[i].contexts)
            make_do(pairs, i);
        code = oribi_tls_create(&tls, config->tickets, &made[i], error);
        if (code == 0 && error[0])
            (void)snprintf(warning, sizeof(warning), "%s", error);
        if (code == 0 && (strict || config->listeners[i].contexts))
            code = check_expiry(pairs, i, made[i], config->listeners[i].contexts, error);
        if (code == 0)
            code = check_placeholders(pairs, i, made[i], config->listeners[i].contexts, error);
    }
    for (uint32_t i = 0; i < config->listener_count; i++) {
        if (!made[i])
            continue;
        struct oribi_tls *old = code == 0 ? config->listeners[i].contexts : made[i];
        if (code == 0)
            config->listeners[i].contexts = made[i];
        oribi_tls_release(old);
    }
    if (code == 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s", warning);
        tell_expiry(config);
    }
    return code;
}

/* --- the text --- */

static int set_local_option(struct oribi_options *options, const struct oribi__record *record, char *error)
{
    struct oribi_slice name;
    if (oribi__record_is(record, "folder"))
        return set_option(options, ORIBI_SLICE("chdir"), record->value, error);
    if (!oribi__record_begins(record, "option", &name) || !oribi__frontend_is_of_local(name))
        return refuse(error, "a record that no supervisor of this version writes");
    return set_option(options, name, record->value, error);
}

/* Replaces config->local by the options in `text`; an error leaves it as it was. */
static int take_local(struct oribi_frontend_config *config, struct oribi_slice text, char *error)
{
    const char *at = text.p;
    const char *end = text.p + text.n;
    struct oribi__record record;
    struct oribi_options *options = oribi_mem_try_alloc(1, sizeof(*options));
    if (!options)
        return ORIBI_ENOMEM;
    oribi_options_init(options);
    int code = set_option(options, ORIBI_SLICE("access_log"),
                          config->has_access_log ? ORIBI_SLICE("-") : ORIBI_SLICE("off"), error);
    while (code == 0 && oribi__record_next(&at, end, &record))
        code = set_local_option(options, &record, error);
    if (code == 0 && at != end)
        code = refuse(error, "what the supervisor has written of files cannot be read");
    struct oribi_options *out = code == 0 ? config->local : options;
    if (code == 0)
        config->local = options;
    if (out) {
        oribi_options_deinit(out);
        oribi_mem_free(out);
    }
    return code;
}

static int take_records(struct oribi_frontend_config *config, struct oribi_options *options, const char *p, size_t n,
                        char *error)
{
    const char *at = p;
    const char *end = p + n;
    struct oribi__record record;
    struct oribi_slice name;
    int code = 0;
    bool strict = false;
    struct oribi__pairs *pairs = oribi_mem_try_alloc(1, sizeof(*pairs));
    if (!pairs)
        return ORIBI_ENOMEM;
    while (code == 0 && oribi__record_next(&at, end, &record)) {
        if (options && oribi__record_begins(&record, "option", &name))
            code = set_option(options, name, record.value, error);
        else if (options && oribi__record_is(&record, "local"))
            code = take_local(config, record.value, error);
        else if (options && oribi__record_is(&record, "listener"))
            code = add_listener(config, record.value, error);
        else if (options && oribi__record_is(&record, "strict"))
            strict = true;
        else if (!oribi__pairs_add(pairs, &record))
            code = refuse(error, "a record that no supervisor of this version writes");
    }
    if (code == 0 && at != end)
        code = refuse(error, "what the supervisor has written cannot be read");
    if (code == 0)
        code = make_contexts(config, pairs, strict, error);
    oribi_mem_free(pairs);
    return code;
}

/* Keys are in it: no copy stays behind. */
static int take_text(struct oribi_frontend_config *config, struct oribi_options *options, int fd, char *error)
{
    size_t n = 0;
    if (oribi_process_shared_memory_size(fd, &n) < 0 || n == 0 || n > ORIBI_FRONTEND_TEXT_MAX)
        return refuse(error, "what the supervisor has written cannot be read");
    char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return refuse(error, "what the supervisor has written cannot be mapped");
    int code = take_records(config, options, p, oribi__records_len(p, n), error);
    explicit_bzero(p, n);
    (void)munmap(p, n); /* whole mapping: cannot fail */
    return code;
}

/* --- the begin --- */

/* A user of its own has its own group; else user and group are those of the workers. */
static int become_user(const struct oribi_options *options, char *error)
{
    if (options->frontend_user)
        return oribi_process_switch_user(options->frontend_user, NULL, error);
    return geteuid() == 0 && (options->user || options->group)
               ? oribi_process_switch_user(options->user, options->group, error)
               : 0;
}

/* Takes the descriptor. */
static void take_access_log(struct oribi_frontend_config *config, int fd)
{
    if (fd == STDOUT_FILENO) {
        config->has_access_log = true;
        return;
    }
    config->has_access_log = dup2(fd, STDOUT_FILENO) >= 0 || config->has_access_log;
    oribi_os_close(fd);
}

/* Lines go where the supervisor's do, by a descriptor of its: a frontend opens no file. */
static void take_log(const struct oribi_options *options, int fd)
{
    oribi_log_init(fd, options->verbose ? ORIBI_LOG_DEBUG : options->quiet ? ORIBI_LOG_WARN : ORIBI_LOG_INFO);
    oribi_log_set_json(options->error_log_format && strcmp(options->error_log_format, "json") == 0);
    oribi_os_close(fd);
}

int oribi_frontend_config_take(struct oribi_frontend_config *config, char *error)
{
    const char *text = getenv("ORIBI_FRONTEND");
    int version = 0;
    int text_fd = -1;
    int board_fd = -1;
    int tickets_fd = -1;
    int log_fd = -1;
    int access_fd = -1;
    int slots_fd = -1;
    unsigned own_slot = 0;
    unsigned count = 0;
    int n = sscanf(text ? text : "", "%d %d %d %d %u %d %d %d %d %d %u %u %d %u %d %d %d %d %d", &version, &text_fd,
                   &config->control_fd, &board_fd, &count, &config->handoff.take_fd, &config->handoff.give_fd,
                   &tickets_fd, &log_fd, &access_fd, &config->channel_first, &config->channel_count, &slots_fd,
                   &own_slot, &config->inbox_fd, &config->inbox_write_fd, &config->joins_fd, &config->joins_write_fd,
                   &config->predecessor_fd);
    if (n != 19 || own_slot >= ORIBI_FRONTENDS_MAX || version != ORIBI_FRONTEND_PROTOCOL || count == 0 ||
        count > ORIBI_SLOTS_MAX || config->channel_count == 0 || config->channel_count > ORIBI_CHANNELS_MAX ||
        config->channel_first > ORIBI_CHANNELS_MAX + 1 - config->channel_count)
        return refuse(error, "this program is started by a server's supervisor alone");
    (void)unsetenv("ORIBI_FRONTEND"); /* fails for names with `=` only */
    const int fds[] = {text_fd, config->control_fd, board_fd, config->handoff.take_fd, config->handoff.give_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (oribi_os_set_cloexec(fds[i], true) < 0)
            return refuse(error, "a descriptor of the supervisor's is not open");
    (void)oribi_os_set_nonblock(config->control_fd, true); /* it is open: cannot fail */
    const int publish_fds[] = {config->inbox_fd, config->inbox_write_fd, config->joins_fd, config->joins_write_fd,
                               config->predecessor_fd};
    for (size_t i = 0; i < sizeof(publish_fds) / sizeof(publish_fds[0]); i++)
        if (publish_fds[i] >= 0 && oribi_os_set_cloexec(publish_fds[i], true) < 0)
            return refuse(error, "a descriptor of the supervisor's is not open");
    if (oribi_scoreboard_attach(&config->board, count, board_fd) < 0)
        return refuse(error, "cannot map the scoreboard");
    if (tickets_fd >= 0) {
        void *tickets = mmap(NULL, sizeof(struct oribi_tls_tickets), PROT_READ, MAP_SHARED, tickets_fd, 0);
        oribi_os_close(tickets_fd);
        if (tickets == MAP_FAILED)
            return refuse(error, "cannot map the keys of session tickets");
        config->tickets = tickets;
    }
    if (slots_fd >= 0) {
        struct oribi_frontend_slot *slots =
            mmap(NULL, ORIBI_FRONTENDS_MAX * sizeof(*slots), PROT_READ | PROT_WRITE, MAP_SHARED, slots_fd, 0);
        oribi_os_close(slots_fd);
        if (slots == MAP_FAILED)
            return refuse(error, "cannot map the counters of frontends");
        config->slots = slots;
        config->slot = &slots[own_slot];
    }
    if (access_fd >= 0)
        take_access_log(config, access_fd);
    struct oribi_options *options = oribi_mem_alloc(1, sizeof(*options)); /* lives as long as the process */
    oribi_options_init(options);
    config->options = options;
    oribi_log_init(STDERR_FILENO, ORIBI_LOG_INFO);
    int code = take_text(config, options, text_fd, error);
    oribi_os_close(text_fd);
    if (code == 0 && !config->local)
        code = refuse(error, "what the supervisor has written says nothing of files");
    if (log_fd >= 0)
        take_log(options, log_fd);
    if (code == 0 && error[0])
        oribi_log(ORIBI_LOG_WARN, "certificate %s", error);
    return code < 0 ? code : become_user(options, error);
}

/* --- messages --- */

static void say(const struct oribi_frontend_config *config, char kind, const char *text)
{
    char line[ORIBI_ERROR_TEXT_CAP + 1];
    int n = snprintf(line, sizeof(line), "%c%s", kind, text); /* cut when longer */
    if (n > 0)
        (void)send(config->control_fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1,
                   MSG_NOSIGNAL | MSG_DONTWAIT); /* a supervisor that is gone is seen by its end */
}

void oribi_frontend_ready(const struct oribi_frontend_config *config)
{
    say(config, ORIBI_FRONTEND_SAYS_READY, "");
}

void oribi_frontend_failed(const struct oribi_frontend_config *config, const char *text)
{
    say(config, ORIBI_FRONTEND_SAYS_FAILED, text);
}

void oribi_frontend_local_taken(const struct oribi_frontend_config *config)
{
    say(config, ORIBI_FRONTEND_SAYS_LOCAL, "");
}

void oribi_frontend_inbox_ended(const struct oribi_frontend_config *config)
{
    say(config, ORIBI_FRONTEND_SAYS_INBOX, "");
}

void oribi_frontend_rows_written(const struct oribi_frontend_config *config)
{
    say(config, ORIBI_FRONTEND_SAYS_SOCKETS, "");
}

static enum oribi_frontend_command take_certificates(struct oribi_frontend_config *config, int fd)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    int code = take_text(config, NULL, fd, error);
    oribi_os_close(fd);
    say(config, code == 0 ? ORIBI_FRONTEND_SAYS_TAKEN : ORIBI_FRONTEND_SAYS_REFUSED, error);
    return code == 0 ? ORIBI_FRONTEND_CERTIFICATES : ORIBI_FRONTEND_NOTHING;
}

static enum oribi_frontend_command take_local_anew(struct oribi_frontend_config *config, int fd)
{
    struct oribi_buf text = {0};
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    int code = oribi__frontend_text_read(fd, &text);
    oribi_os_close(fd);
    if (code == 0)
        code = take_local(config, oribi_slice(text.p, text.len), error);
    oribi_buf_deinit(&text);
    if (code == 0)
        return ORIBI_FRONTEND_LOCAL;
    oribi_log(ORIBI_LOG_ERROR, "frontend: cannot read the local content of a reload: %s", error);
    oribi_frontend_local_taken(config);
    return oribi_frontend_control_take(config);
}

enum oribi_frontend_command oribi_frontend_control_take(struct oribi_frontend_config *config)
{
    char kind = 0;
    int passed;
    ssize_t n = oribi__frontend_message_receive(config->control_fd, &kind, 1, &passed);
    if (n == ORIBI_AGAIN)
        return ORIBI_FRONTEND_NOTHING;
    if (n <= 0)
        return ORIBI_FRONTEND_ORPHANED;
    if (kind == ORIBI_FRONTEND_TOLD_CERTIFICATES && passed >= 0)
        return take_certificates(config, passed);
    if (kind == ORIBI_FRONTEND_TOLD_LOCAL && passed >= 0)
        return take_local_anew(config, passed);
    if (kind == ORIBI_FRONTEND_TOLD_SOCKETS && passed >= 0) {
        config->rows_fd = passed;
        return ORIBI_FRONTEND_SOCKETS;
    }
    if (kind == ORIBI_FRONTEND_TOLD_INBOX && passed >= 0) {
        config->inbox_new_fd = passed;
        return ORIBI_FRONTEND_INBOX;
    }
    if (kind == ORIBI_FRONTEND_TOLD_INBOX_WRITE && passed >= 0) {
        oribi_os_close(config->inbox_write_fd);
        config->inbox_write_fd = passed;
        return oribi_frontend_control_take(config);
    }
    if (kind == ORIBI_FRONTEND_TOLD_REOPEN && passed >= 0)
        take_log(config->options, passed);
    else if (kind == ORIBI_FRONTEND_TOLD_ACCESS_LOG && passed >= 0)
        take_access_log(config, passed);
    else
        oribi_os_close(passed);
    switch (kind) {
    case ORIBI_FRONTEND_TOLD_ACCESS_LOG:
        return ORIBI_FRONTEND_REOPEN;
    case ORIBI_FRONTEND_TOLD_DRAIN:
        return ORIBI_FRONTEND_DRAIN;
    case ORIBI_FRONTEND_TOLD_STOP:
        return ORIBI_FRONTEND_STOP;
    case ORIBI_FRONTEND_TOLD_GIVE_UP:
        return ORIBI_FRONTEND_GIVE_UP;
    default:
        return ORIBI_FRONTEND_NOTHING;
    }
}
