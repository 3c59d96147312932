/* An address beside those of the application: opened, tried again, closed. Reading order: open_parsed, open_now,
 * try_again. */
#include "observe/side_listener.h"

#include "observe/state.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/config/address.h"
#include "oribi/base/os/os.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

enum {
    BACKLOG = 64,
    OWNER_ALONE = 0177, /* umask of a socket file for which none was asked */
};

void oribi__side_init(struct oribi__side_listener *side, const char *option)
{
    *side = (struct oribi__side_listener){.option = option, .fd = -1};
}

static int complain(const char *option, const char *address, const char *what, char *error)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s: cannot listen on %.110s: %s", option, address, what);
    return ORIBI_ESYS;
}

static socklen_t fill_tcp(const struct oribi_address *address, struct sockaddr_storage *where)
{
    const char *host = strcmp(address->name, "localhost") == 0 ? "127.0.0.1" : address->name;
    struct sockaddr_in *v4 = (struct sockaddr_in *)where;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)where;
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        return sizeof(*v4);
    }
    (void)inet_pton(AF_INET6, host, &v6->sin6_addr); /* oribi_options_finish() has looked at it */
    v6->sin6_family = AF_INET6;
    return sizeof(*v6);
}

/* This process's alone, or the server's user's with the mode that was asked for. A descriptor, or a code with
 * `error`. */
static int open_unix(struct oribi__side_listener *side, const struct oribi_address *address, bool mode_given,
                     char *error)
{
    const struct oribi_options *options = side->observe->view.context->options;
    mode_t mask = mode_given ? (mode_t)address->umask : OWNER_ALONE;
    struct oribi_socket_owner owner;
    const char *why = NULL;
    int code = oribi_listen_owner(options->user, options->group, &owner, error);
    if (code < 0)
        return code;
    if (oribi_listen_clear(address->name, false, &why) < 0)
        return complain(side->option, address->text, why, error);
    int fd = oribi_listen_unix(address->name, mask, mode_given ? &owner : NULL, BACKLOG, &side->file);
    return fd < 0 ? complain(side->option, address->text, oribi_os_error_text(), error) : fd;
}

static int open_tcp(struct oribi__side_listener *side, const struct oribi_address *address, char *error)
{
    struct sockaddr_storage where = {0};
    socklen_t n = fill_tcp(address, &where);
    int fd = oribi_listen_tcp((struct sockaddr *)&where, n, address->port, 0, BACKLOG);
    return fd < 0 ? complain(side->option, address->text, oribi_os_error_text(), error) : fd;
}

static int open_parsed(struct oribi__side_listener *side, const struct oribi_address *address, bool mode_given,
                       char *error)
{
    side->is_unix = address->type == ORIBI_ADDRESS_UNIX;
    int fd = side->is_unix ? open_unix(side, address, mode_given, error) : open_tcp(side, address, error);
    if (fd < 0)
        return fd;
    side->fd = fd;
    return 0;
}

/* With the port that the kernel chose. */
static void log_opened(const struct oribi__side_listener *side, const struct oribi_address *address)
{
    struct sockaddr_storage bound = {0};
    socklen_t n = sizeof(bound);
    char host[ORIBI_ADDRESS_HOST_MAX + 1];
    uint16_t port;
    char text[ORIBI_ADDRESS_TEXT_CAP];
    (void)snprintf(text, sizeof(text), "%s", address->text);
    if (address->port == 0 && !side->is_unix && getsockname(side->fd, (struct sockaddr *)&bound, &n) == 0 &&
        oribi_address_numbers((struct sockaddr *)&bound, n, host, &port))
        (void)oribi_address_format_tcp(address->name, port, text, sizeof(text));
    oribi_log(ORIBI_LOG_INFO, "%s on %s", side->option, text);
}

static int open_now(struct oribi__side_listener *side, char *error)
{
    struct oribi_address address;
    int code = oribi_address_parse(side->address, &address, error);
    if (code == 0)
        code = open_parsed(side, &address, strstr(side->address, "umask=") || strstr(side->address, "mode="), error);
    if (code == 0 && oribi_dispatcher_watch(side->observe->dispatcher, &side->watcher, side->fd, ORIBI_READ) < 0) {
        code = complain(side->option, side->address, oribi_os_error_text(), error);
        oribi__side_close(side, true);
    }
    if (code == 0)
        log_opened(side, &address);
    return code;
}

/* The predecessor still has the address, or descriptors were out. */
static void wait_a_moment(struct oribi__side_listener *side)
{
    oribi_dispatcher_arm(side->observe->dispatcher, &side->retry, oribi_clock_ms() + ORIBI__SIDE_RETRY_MS);
}

static void try_again(void *owner)
{
    struct oribi__side_listener *side = owner;
    char error[ORIBI_ERROR_TEXT_CAP];
    if (side->fd >= 0) { /* its watcher is there: this cannot fail */
        (void)oribi_dispatcher_watch(side->observe->dispatcher, &side->watcher, side->fd, ORIBI_READ);
        return;
    }
    if (*side->observe->view.predecessor_fd < 0) {
        if (open_now(side, error) == 0)
            return;
        if (++side->tries == ORIBI__SIDE_TRIES_SAID)
            oribi_log(ORIBI_LOG_ERROR, "%s; trying again until it is free", error);
    }
    wait_a_moment(side);
}

int oribi__side_open(struct oribi__observe *observe, struct oribi__side_listener *side, const char *address,
                     void (*newcomer)(void *owner, uint8_t ready), char *error)
{
    side->observe = observe;
    side->address = address;
    side->watcher = (struct oribi_watcher){.ready = newcomer, .owner = observe};
    side->retry = (struct oribi_timer){.expired = try_again, .owner = side};
    if (*observe->view.predecessor_fd < 0)
        return open_now(side, error);
    wait_a_moment(side);
    return 0;
}

bool oribi__side_accept(struct oribi__side_listener *side, int *fd)
{
    int code = oribi_os_accept(side->fd, fd, NULL, NULL);
    if (code == 0)
        return true;
    if (code == ORIBI_AGAIN || code == ORIBI_ECLOSED)
        return false;
    (void)oribi_dispatcher_watch(side->observe->dispatcher, &side->watcher, side->fd, 0); /* or it stays ready */
    wait_a_moment(side);
    return false;
}

void oribi__side_let_go(struct oribi__side_listener *side)
{
    oribi_os_close(side->fd);
    side->fd = -1;
}

void oribi__side_close(struct oribi__side_listener *side, bool unlink_path)
{
    struct oribi_address address;
    char error[ORIBI_ERROR_TEXT_CAP];
    if (side->fd >= 0 && side->is_unix && unlink_path && oribi_address_parse(side->address, &address, error) == 0)
        oribi_listen_unlink(address.name, &side->file);
    if (side->observe) {
        oribi_dispatcher_forget(side->observe->dispatcher, &side->watcher);
        oribi_dispatcher_arm(side->observe->dispatcher, &side->retry, INT64_MAX);
    }
    oribi__side_let_go(side);
}
