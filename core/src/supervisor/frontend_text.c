/* Text of records that a frontend is started with (frontend_protocol.h), and options that are set for none. */
#include "oribi/supervisor/frontend_text.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/config/listener.h"
#include "oribi/config/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Options sent to a frontend: the others are the supervisor's and the workers'. */
static const char *const frontend_options[] = {
    "head_timeout",
    "body_timeout",
    "idle_timeout",
    "write_timeout",
    "shutdown_timeout",
    "call_timeout",
    "body_rate_min",
    "head_bytes_max",
    "fields_max",
    "target_bytes_max",
    "body_bytes_max",
    "underscores_allow",
    "strict_target",
    "connections_max",
    "keepalive_requests_max",
    "buffers_memory_max",
    "buffers_file_max",
    "response_memory_max",
    "queue_max",
    "trusted_proxies",
    "proxy_protocol",
    "client_verify",
    "tls_min",
    "http2",
    "hsts",
    "user",
    "group",
    "frontend_user",
    "frontend_sandbox",
    "frontend_drain",
    "websocket_origins",
    "websocket_ping",
    "websocket_message_max",
    "websocket_pending_max",
    "websockets_max",
    "websocket_rate_max",
    "events_ping",
    "events_max",
    "history",
    "history_memory_max",
    "subscriptions_max",
    "error_log_format",
    "quiet",
    "verbose",
    NULL,
};

/* Beside the extension, where a package has put it. */
bool oribi__frontend_program(char *dst, size_t cap)
{
    const char *given = getenv("ORIBI_FRONTEND_PROGRAM");
    if (given && *given) {
        (void)snprintf(dst, cap, "%s", given);
        return access(dst, X_OK) == 0;
    }
    char path[PATH_MAX];
    const char *library = oribi_os_library();
    if (!library || !realpath(library, path))
        return false;
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    *slash = '\0';
    int n = snprintf(dst, cap, "%s/oribi-frontend", path);
    return n > 0 && (size_t)n < cap && access(dst, X_OK) == 0;
}

/* The reason begins with "user", the option of workers; this one is frontend_user. */
int oribi__frontends_check_user(const struct oribi_options *options, char *error)
{
    char reason[ORIBI_ERROR_TEXT_CAP];
    int code = options->frontend_user ? oribi_process_check_user(options->frontend_user, NULL, reason) : 0;
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "frontend_%.*s", ORIBI_ERROR_TEXT_CAP - (int)sizeof("frontend_"),
                       reason);
    return code;
}

bool oribi__frontends_wanted(const struct oribi_listeners *listeners)
{
    for (uint32_t i = 0; i < listeners->count; i++)
        if (listeners->items[i].frontend)
            return true;
    return false;
}

/* A buffer that grows by itself would leave a copy of the keys in it behind. */
static int make_room(struct oribi_buf *out, size_t more)
{
    struct oribi_buf bigger = {0};
    if (out->cap - out->len >= more)
        return 0;
    if (!oribi_buf_try_reserve(&bigger, 2 * out->cap + more))
        return ORIBI_ENOMEM;
    if (out->len)
        memcpy(bigger.p, out->p, out->len);
    bigger.len = out->len;
    oribi__frontend_wipe(out);
    *out = bigger;
    return 0;
}

void oribi__frontend_wipe(struct oribi_buf *text)
{
    if (text->p)
        explicit_bzero(text->p, text->len);
    oribi_buf_deinit(text);
}

int oribi__frontend_text_fd(const struct oribi_buf *text, char *error)
{
    int fd = -1;
    if (oribi_process_shared_memory(text->len + 1, &fd) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "no memory for the options of a frontend: %s",
                       oribi_os_error_text());
        return ORIBI_ESYS;
    }
    char *map = mmap(NULL, text->len + 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "no memory for the options of a frontend");
        oribi_os_close(fd);
        return ORIBI_ESYS;
    }
    if (text->len)
        memcpy(map, text->p, text->len);
    (void)munmap(map, text->len + 1); /* whole mapping: cannot fail */
    return fd;
}

int oribi__frontend_add(struct oribi_buf *out, const char *name, const char *p, size_t n)
{
    char line[ORIBI_FRONTEND_WORD_MAX + 32];
    int head = snprintf(line, sizeof(line), "%s %zu\n", name, n); /* names are ours, and short */
    int code = make_room(out, (size_t)head + n + 1);
    code = code < 0 ? code : oribi_buf_try_append(out, line, (size_t)head);
    code = code < 0 ? code : oribi_buf_try_append(out, p, n);
    return code < 0 ? code : oribi_buf_try_append(out, "\n", 1);
}

/* The items of a list stand in lines. */
static int add_option(struct oribi_buf *out, const struct oribi_options *options, const struct oribi_option *option)
{
    char name[ORIBI_FRONTEND_WORD_MAX];
    size_t n = oribi_options_get(options, option, name, sizeof(name));
    char *text = oribi_mem_try_alloc(n + 1, 1);
    int code = text ? 0 : ORIBI_ENOMEM;
    if (text)
        (void)oribi_options_get(options, option, text, n + 1);
    (void)snprintf(name, sizeof(name), "option %s", option->name);
    for (char *at = text; code == 0 && n > 0 && at;) {
        char *end = option->type == ORIBI_OPTION_LIST ? strchr(at, '\n') : NULL;
        code = oribi__frontend_add(out, name, at, end ? (size_t)(end - at) : strlen(at));
        at = end ? end + 1 : NULL;
    }
    oribi_mem_free(text);
    return code;
}

/* As in the hand-off message: FNV-1a of the listener's text. */
static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (const char *p = text; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    return hash;
}

/* Of these names, up to the NULL. */
static int add_options(struct oribi_buf *out, const struct oribi_options *options, const char *const *names)
{
    int code = 0;
    for (size_t i = 0; names[i] && code == 0; i++) {
        const struct oribi_option *option = oribi_options_find(names[i]);
        if (option && oribi_options_source(options, option) != ORIBI_FROM_DEFAULT)
            code = add_option(out, options, option);
    }
    return code;
}

int oribi__frontend_text_local(const struct oribi_options *options, struct oribi_buf *out)
{
    char folder[PATH_MAX];
    int code = getcwd(folder, sizeof(folder)) ? oribi__frontend_add(out, "folder", folder, strlen(folder)) : 0;
    return code < 0 ? code : add_options(out, options, oribi__frontend_local_options);
}

int oribi__frontend_text(const struct oribi_options *options, struct oribi_slice local,
                         const struct oribi_listeners *listeners, struct oribi_buf *out)
{
    int code = add_options(out, options, frontend_options);
    if (code == 0)
        code = oribi__frontend_add(out, "local", local.p ? local.p : "", local.n);
    for (uint32_t i = 0; i < listeners->count && code == 0; i++) {
        const struct oribi_listener *item = &listeners->items[i];
        char text[ORIBI_ADDRESS_TEXT_CAP + 64];
        if (!item->frontend)
            continue;
        int n = snprintf(text, sizeof(text), "%d %u %u %d %d %d %s", item->fd, i, hash_of(item->text), item->tls,
                         item->proxy, item->inherited, item->text);
        code = oribi__frontend_add(out, "listener", text, (size_t)n);
    }
    return code;
}

/* --- sent --- */

int oribi__frontend_text_send(int control_fd, char kind, int fd)
{
    return oribi__frontend_message_send(control_fd, oribi_slice(&kind, 1), fd);
}

/* --- options that do nothing, since no address has what they are for --- */

/* Those whose absence could be taken for a protection are errors (config/listener.c). */
static const struct {
    const char *name;
    bool of_tls; /* else of any frontend */
} unused[] = {{"hsts", true},
              {"tls_min", true},
              {"http2", true},
              {"certificate_password_command", true},
              {"frontends", false},
              {"frontend_user", false},
              {"frontend_sandbox", false}};

bool oribi__frontend_unused(const struct oribi_options *options, bool tls, bool frontend, size_t *at, char *line)
{
    while (*at < sizeof(unused) / sizeof(unused[0])) {
        const char *name = unused[*at].name;
        bool of_tls = unused[(*at)++].of_tls;
        if ((of_tls ? tls : frontend) || oribi_options_source(options, oribi_options_find(name)) == ORIBI_FROM_DEFAULT)
            continue;
        (void)snprintf(line, ORIBI_ERROR_TEXT_CAP, "%s is set, and no address %s", name,
                       of_tls ? "begins with tls://" : "has a frontend (tls://, ?frontend=on)"); /* fits */
        return true;
    }
    return false;
}

void oribi__frontends_warn_of_unused(const struct oribi_options *options, const struct oribi_listeners *listeners)
{
    char line[ORIBI_ERROR_TEXT_CAP];
    size_t at = 0;
    bool tls = false;
    for (uint32_t i = 0; i < listeners->count; i++)
        tls |= listeners->items[i].tls;
    while (oribi__frontend_unused(options, tls, oribi__frontends_wanted(listeners), &at, line))
        oribi_log(ORIBI_LOG_WARN, "%s", line);
    if (options->https_redirect && !tls && options->trusted_proxies.count == 0)
        oribi_log(ORIBI_LOG_WARN, "https_redirect is set, but no address is tls:// and trusted_proxies is empty");
}
