/* One listening socket: what it is bound to, the file that it leaves, its end. The second half opens and takes them.
 *
 * shutdown() is never called here: on a socket that other processes hold too it would end their listening as well.
 * listener_shutdown.c knows when it may. */
#include "oribi/config/listener.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/config/options_names.h"
#include "oribi/base/log.h"
#include "oribi/base/signals.h"

#include <arpa/inet.h>
#include <assert.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Seconds that the kernel may hold back a connection whose client has not sent a byte. */
enum { DEFER_ACCEPT_S = 1 };

static void copy_text(char *dst, size_t cap, const char *text)
{
    (void)snprintf(dst, cap, "%s", text); /* callers give room for the longest */
}

/* Fills text, host and port from the address that the socket is bound to. A host name that was asked for is the
 * better SERVER_NAME. */
static bool describe_tcp(struct oribi_listener *item, const struct sockaddr_storage *bound, socklen_t len,
                         const char *asked_host)
{
    char host[ORIBI_ADDRESS_HOST_MAX + 1];
    uint16_t port;
    if (!oribi_address_numbers((const struct sockaddr *)bound, len, host, &port))
        return false;
    (void)snprintf(item->port, sizeof(item->port), "%u", port);
    (void)oribi_address_format_tcp(host, port, item->text, sizeof(item->text));
    if (asked_host && strspn(asked_host, "0123456789.") != strlen(asked_host) && !strchr(asked_host, ':')) {
        copy_text(item->host, sizeof(item->host), asked_host);
        return true;
    }
    bool is_v6 = bound->ss_family == AF_INET6;
    host[strcspn(host, "%")] = '\0'; /* a zone is no part of a name that goes into a URI, RFC 6874 aside */
    (void)snprintf(item->host, sizeof(item->host), "%s%s%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "");
    return true;
}

static bool describe_unix(struct oribi_listener *item, const struct sockaddr_un *bound, socklen_t len)
{
    size_t path_len = len > offsetof(struct sockaddr_un, sun_path) ? len - offsetof(struct sockaddr_un, sun_path) : 0;
    path_len = strnlen(bound->sun_path, path_len < sizeof(bound->sun_path) ? path_len : sizeof(bound->sun_path));
    if (path_len > ORIBI_ADDRESS_PATH_MAX)
        return false;
    (void)snprintf(item->text, sizeof(item->text), "unix://%.*s", (int)path_len, bound->sun_path);
    copy_text(item->host, sizeof(item->host), "localhost");
    item->is_unix = true;
    return true;
}

/* False when the socket is of a kind that we do not know. */
static bool describe(struct oribi_listener *item, const char *asked_host)
{
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof(bound);
    if (getsockname(item->fd, (struct sockaddr *)&bound, &len) < 0)
        return false;
    switch (bound.ss_family) {
    case AF_INET:
    case AF_INET6:
        return describe_tcp(item, &bound, len, asked_host);
    case AF_UNIX:
        return describe_unix(item, (const struct sockaddr_un *)&bound, len);
    default:
        return false;
    }
}

/* Remembers which file a unix socket of ours has, by its whole name: an application may change the working directory.
 * False when there is no memory for that. */
static bool own_file(struct oribi_listener *item)
{
    const char *path = item->text + strlen("unix://");
    char whole[PATH_MAX];
    if (!*path)
        return true;
    oribi_listen_file(path, &item->file);
    if (!item->file.inode)
        return true;
    if (oribi_os_absolute_path(path, whole, sizeof(whole)) == 0)
        path = whole;
    size_t n = strlen(path) + 1;
    item->path = oribi_mem_try_alloc(n, 1);
    if (!item->path)
        return false;
    memcpy(item->path, path, n);
    return true;
}

/* Both settings pass on to accepted sockets or save a wake-up; a socket without them still works. */
static void tune_tcp(int fd)
{
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)oribi_os_defer_accept(fd, DEFER_ACCEPT_S);
}

/* Adds a copy of the item, whose fd, origin, inherited and fresh are set; the rest is filled in from the socket.
 * `spec` is the address that was asked for (NULL or "": the socket's own), `asked_host` a host name that becomes
 * SERVER_NAME, or NULL. Takes the fd, also on failure. 0, or ORIBI_EINVAL with one line in `error`. */
static int listener_add(struct oribi_listeners *listeners, struct oribi_listener *item, const char *spec,
                        const char *asked_host, char *error)
{
    int code = 0;
    if (listeners->count == ORIBI_LISTENERS_MAX)
        code = oribi__refuse(error, "more than %d listening sockets", ORIBI_LISTENERS_MAX);
    else if (!describe(item, asked_host))
        code = oribi__refuse(error, "descriptor %d is bound to an address of an unknown kind", item->fd);
    else if (item->is_unix && !item->inherited && !own_file(item))
        code = oribi__refuse(error, "cannot listen on %s: out of memory", item->text);
    if (code < 0) {
        oribi_os_close(item->fd);
        return code;
    }
    copy_text(item->spec, sizeof(item->spec), spec && *spec ? spec : item->text);
    if (!item->is_unix)
        tune_tcp(item->fd);
    listeners->items[listeners->count++] = *item;
    return 0;
}

/* Writes the address that the socket is bound to, "tcp://127.0.0.1:9292"; "" when it is of a kind that we do not
 * know. Borrows fd. */
static void listener_text(int fd, char text[ORIBI_ADDRESS_TEXT_CAP])
{
    struct oribi_listener probe = {.fd = fd};
    copy_text(text, ORIBI_ADDRESS_TEXT_CAP, describe(&probe, NULL) ? probe.text : "");
}

static bool is_listening(int fd)
{
    int listening = 0;
    int type = 0;
    socklen_t len = sizeof(listening);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) < 0 || !listening)
        return false;
    len = sizeof(type);
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM;
}

int oribi_listeners_adopt(struct oribi_listeners *listeners, int fd, enum oribi_listener_origin origin,
                          const char *spec, char *error)
{
    struct oribi_listener item = {.fd = fd, .origin = origin, .inherited = origin != ORIBI_ORIGIN_OWN};
    struct oribi_address asked;
    const char *asked_host = NULL;
    char ignored[ORIBI_ERROR_TEXT_CAP];
    if (is_listening(fd))
        item.fd = fd = oribi_os_lift(fd); /* inetd gives it as standard input */
    if (!is_listening(fd) || oribi_os_set_nonblock(fd, true) < 0 || oribi_os_set_cloexec(fd, true) < 0) {
        oribi_os_close(fd);
        return oribi__refuse(error, "descriptor %d is not a listening stream socket", fd);
    }
    if (spec && oribi_address_parse(spec, &asked, ignored) == 0 && asked.type == ORIBI_ADDRESS_TCP)
        asked_host = asked.name;
    return listener_add(listeners, &item, spec, asked_host, error);
}

static void unlink_file(struct oribi_listener *item)
{
    if (item->path)
        oribi_listen_unlink(item->path, &item->file);
    oribi_mem_free(item->path);
    item->path = NULL;
}

void oribi_listeners_unlink(struct oribi_listeners *listeners)
{
    for (uint32_t i = 0; i < listeners->count; i++)
        unlink_file(&listeners->items[i]);
}

void oribi_listener_close(struct oribi_listener *item, bool unlink_path)
{
    if (unlink_path)
        unlink_file(item);
    oribi_os_close(item->fd);
    oribi_mem_free(item->path);
    *item = (struct oribi_listener){.fd = -1};
}

void oribi_listeners_close(struct oribi_listeners *listeners, bool unlink_paths)
{
    for (uint32_t i = 0; i < listeners->count; i++)
        oribi_listener_close(&listeners->items[i], unlink_paths);
    listeners->count = 0;
}

/* ---- listener_open ---- */

/* Opens listening sockets, or takes over those that another process hands down. Order of one start:
 *
 *   environment ──► what must be taken anyway ──► each bind: handed down? take it : open it ──► leftovers */

/* Everything one oribi_listeners_open() works with. */
struct opening {
    struct oribi_listeners *listeners;
    const struct oribi_options *options;
    struct oribi_inherited inherited;
    char *error;
};

/* For a call of the system that has failed with this code. */
static int refuse_system(char *error, const char *address, int code)
{
    bool forbidden = oribi_os_forbidden();
    (void)oribi__refuse(error, "cannot listen on %s: %s%s", address, oribi_os_error_text(),
                        forbidden && address[0] != '/' && strncmp(address, "unix:", 5) != 0
                            ? "; ports below 1024 need root, or AmbientCapabilities=CAP_NET_BIND_SERVICE in systemd"
                            : "");
    return code == ORIBI_AGAIN ? ORIBI_ESYS : code;
}

/* The resolver's words open with a capital; our lines do not. */
static int refuse_name(char *error, const char *address, int code)
{
    const char *words = gai_strerror(code);
    char first = words[0] >= 'A' && words[0] <= 'Z' ? (char)(words[0] + ('a' - 'A')) : words[0];
    return oribi__refuse(error, "cannot listen on %s: %c%s", address, first, words + 1);
}

/* Taking over */

static int take(struct opening *opening, struct oribi_inherited_item *from, const char *spec)
{
    from->taken = true;
    return oribi_listeners_adopt(opening->listeners, from->fd, from->origin, *from->spec ? from->spec : spec,
                                 opening->error);
}

/* Takes every free socket that was handed down for `spec` or is bound to it. Returns how many, or a code. */
static int take_matching(struct opening *opening, const char *spec)
{
    int count = 0;
    for (uint32_t i = 0; i < opening->inherited.count; i++) {
        struct oribi_inherited_item *from = &opening->inherited.items[i];
        char text[ORIBI_ADDRESS_TEXT_CAP];
        if (from->taken)
            continue;
        listener_text(from->fd, text);
        if (strcmp(*from->spec ? from->spec : text, spec) != 0 && strcmp(text, spec) != 0)
            continue;
        int code = take(opening, from, spec);
        if (code < 0)
            return code;
        count++;
    }
    return count;
}

/* Is a socket for this address open already? Handed-down ones come first. */
static bool is_open(const struct oribi_listeners *listeners, const char *spec)
{
    for (uint32_t i = 0; i < listeners->count; i++) {
        if (strcmp(listeners->items[i].spec, spec) == 0 || strcmp(listeners->items[i].text, spec) == 0)
            return true;
    }
    return false;
}

/* Opening */

static uint32_t backlog_of(const struct opening *opening, const struct oribi_address *address)
{
    if (address->backlog)
        return address->backlog;
    return opening->options->backlog ? opening->options->backlog : oribi_os_backlog_max();
}

/* Opens one resolved address. `port` other than 0 replaces its port: all addresses of one name share the first
 * one's. */
static int open_tcp_one(struct opening *opening, const struct oribi_address *address, const struct addrinfo *info,
                        uint16_t port)
{
    struct oribi_listener item = {.origin = ORIBI_ORIGIN_OWN, .fresh = true};
    char shown[ORIBI_ADDRESS_TEXT_CAP];
    unsigned how =
        ORIBI_BIND_IPV6_ALONE | (opening->options->reuse_port ? ORIBI_BIND_REUSE_PORT : 0); /* open_every() */
    item.fd = oribi_listen_tcp(info->ai_addr, info->ai_addrlen, port, how, backlog_of(opening, address));
    if (item.fd < 0)
        return refuse_system(opening->error, oribi_address_shown(address->text, address->tls, shown), item.fd);
    return listener_add(opening->listeners, &item, address->text, address->name, opening->error);
}

/* Takes or opens one of a name's addresses; one that came up before is nothing to do. */
static int open_tcp_resolved(struct opening *opening, const struct oribi_address *address, const struct addrinfo *info,
                             uint16_t port)
{
    char host[ORIBI_ADDRESS_HOST_MAX + 1];
    char numeric[ORIBI_ADDRESS_TEXT_CAP];
    uint16_t ignored;
    if (port && oribi_address_numbers(info->ai_addr, info->ai_addrlen, host, &ignored)) {
        (void)oribi_address_format_tcp(host, port, numeric, sizeof(numeric));
        int taken = take_matching(opening, numeric);
        if (taken != 0)
            return taken < 0 ? taken : 0;
        if (is_open(opening->listeners, numeric))
            return 0;
    }
    return open_tcp_one(opening, address, info, port);
}

/* A name may have several addresses (localhost has two): all are opened, those that this machine lacks are left out. */
static int open_tcp(struct opening *opening, const struct oribi_address *address)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    const struct oribi_listener *first = &opening->listeners->items[opening->listeners->count];
    uint16_t port = address->port;
    bool any = false;
    int code = getaddrinfo(address->name, NULL, &hints, &found);
    if (code != 0)
        return refuse_name(opening->error, address->text, code);

    for (const struct addrinfo *info = found; info; info = info->ai_next) {
        code = open_tcp_resolved(opening, address, info, port);
        if (code == 0) {
            any = true;
            if (port == 0)
                port = (uint16_t)strtoul(first->port, NULL, 10);
            continue;
        }
        if (code != ORIBI_ESYS || !oribi_os_address_missing()) {
            any = false;
            break;
        }
    }
    freeaddrinfo(found);
    return any ? 0 : code;
}

static int open_unix(struct opening *opening, const struct oribi_address *address)
{
    struct oribi_listener item = {.origin = ORIBI_ORIGIN_OWN, .fresh = true};
    struct oribi_socket_owner owner;
    const char *why = NULL;
    int code = oribi_listen_owner(opening->options->user, opening->options->group, &owner, opening->error);
    if (code < 0)
        return code;
    if (oribi_listen_clear(address->name, false, &why) < 0)
        return oribi__refuse(opening->error, "cannot listen on %s: %s", address->text, why);
    item.fd =
        oribi_listen_unix(address->name, (mode_t)address->umask, &owner, backlog_of(opening, address), &item.file);
    if (item.fd < 0)
        return refuse_system(opening->error, address->text, item.fd);
    struct oribi_socket_file file = item.file;
    code = listener_add(opening->listeners, &item, address->text, NULL, opening->error);
    if (code < 0)
        oribi_listen_unlink(address->name, &file); /* no client knows of it yet */
    return code;
}

/* A number, or one of the names that systemd gave. */
static int open_fd(struct opening *opening, const struct oribi_address *address)
{
    struct oribi_inherited *inherited = &opening->inherited;
    char *end;
    long long number = strtoll(address->name, &end, 10);
    bool is_number = address->name[strspn(address->name, "0123456789")] == '\0';
    for (uint32_t i = 0; i < inherited->count; i++) {
        struct oribi_inherited_item *from = &inherited->items[i];
        if (!from->taken && (is_number ? from->fd == number : strcmp(from->name, address->name) == 0))
            return take(opening, from, address->text);
    }
    if (!is_number || number > INT32_MAX)
        return oribi__refuse(opening->error, "cannot listen on %s: no socket of that name is handed down",
                             address->text);
    return oribi_listeners_adopt(opening->listeners, (int)number, ORIBI_ORIGIN_FD, address->text, opening->error);
}

static int open_parsed(struct opening *opening, const struct oribi_address *address)
{
    int taken = take_matching(opening, address->text);
    if (taken != 0)
        return taken < 0 ? taken : 0;
    if (is_open(opening->listeners, address->text))
        return 0;
    switch (address->type) {
    case ORIBI_ADDRESS_TCP:
        return open_tcp(opening, address);
    case ORIBI_ADDRESS_UNIX:
        return open_unix(opening, address);
    case ORIBI_ADDRESS_FD:
        return open_fd(opening, address);
    }
    assert(0);
    return ORIBI_EINVAL;
}

/* --- every address --- */

bool oribi_listeners_take_ipv4_too(const struct oribi_options *options, const struct oribi_address *address)
{
    struct oribi_address other;
    struct in6_addr ignored;
    char error[ORIBI_ERROR_TEXT_CAP];
    if (!oribi_address_is_every(address) || address->ipv6_only)
        return false;
    for (size_t i = 0; i < options->bind.count && address->port; i++) {
        if (oribi_address_parse(options->bind.items[i], &other, error) == 0 && other.type == ORIBI_ADDRESS_TCP &&
            other.port == address->port && inet_pton(AF_INET6, other.name, &ignored) != 1)
            return false;
    }
    return true;
}

/* The socket that is open for [::]; NULL: none. */
static const struct oribi_listener *ipv6_part(const struct oribi_listeners *listeners,
                                              const struct oribi_address *address)
{
    for (uint32_t i = 0; i < listeners->count; i++) {
        const struct oribi_listener *item = &listeners->items[i];
        if (strcmp(item->spec, address->text) == 0 || strcmp(item->text, address->text) == 0)
            return item;
    }
    return NULL;
}

/* A socket that a service manager has opened takes both by itself, unless it was told otherwise. */
static bool takes_ipv4(const struct oribi_listener *item)
{
    int only = 1;
    socklen_t len = sizeof(only);
    return getsockopt(item->fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &len) == 0 && !only;
}

/* Opens [::] as if 0.0.0.0 were written beside it: with a socket for each family the change from one of the two
 * addresses to the other never finds its port in use by our own socket, and a machine that lacks one serves the
 * other. */
static int open_every(struct opening *opening, const struct oribi_address *address)
{
    struct oribi_address ipv4 = *address;
    int code = open_parsed(opening, address);
    bool is_missing = code == ORIBI_ESYS && oribi_os_address_missing();
    const struct oribi_listener *ipv6 = ipv6_part(opening->listeners, address);
    if ((code < 0 && !is_missing) || (ipv6 && takes_ipv4(ipv6)))
        return code;
    if (ipv6)
        ipv4.port = (uint16_t)strtoul(ipv6->port, NULL, 10);
    (void)snprintf(ipv4.name, sizeof(ipv4.name), "0.0.0.0");
    (void)oribi_address_format_tcp(ipv4.name, ipv4.port, ipv4.text, sizeof(ipv4.text));
    code = open_parsed(opening, &ipv4);
    return ipv6 && code == ORIBI_ESYS && oribi_os_address_missing() ? 0 : code;
}

/* Settings of an address hold for its sockets wherever they come from: opened just now, which are those from `from` on,
 * or handed down before. Returns how many sockets it has. */
static uint32_t settle(struct oribi_listeners *listeners, const struct oribi_address *address, uint32_t from)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < listeners->count; i++) {
        struct oribi_listener *item = &listeners->items[i];
        if (i < from && strcmp(item->spec, address->text) != 0 && strcmp(item->text, address->text) != 0)
            continue;
        item->proxy |= address->proxy;
        item->frontend |= address->frontend;
        item->tls |= address->tls;
        if (item->tls)
            (void)oribi_address_shown(item->text, true, item->shown);
        count++;
    }
    return count;
}

static int open_address(struct opening *opening, const char *text)
{
    struct oribi_address address;
    uint32_t before = opening->listeners->count;
    int code = oribi_address_parse(text, &address, opening->error);
    if (code == 0)
        code = oribi_listeners_take_ipv4_too(opening->options, &address) ? open_every(opening, &address)
                                                                         : open_parsed(opening, &address);
    if (code == 0)
        (void)settle(opening->listeners, &address, before); /* a name may be open already, under numbers */
    return code;
}

/* Under start_server a bind opens nothing, but says what a socket is to speak. One that asks for a frontend, and names
 * no socket that there is, is an error: who asks for TLS is never given plain HTTP. */
static int settle_given(struct opening *opening)
{
    const struct oribi_text_list *bind = &opening->options->bind;
    bool unused = false;
    for (size_t i = 0; i < bind->count; i++) {
        struct oribi_address address;
        int code = oribi_address_parse(bind->items[i], &address, opening->error);
        if (code < 0)
            return code;
        if (settle(opening->listeners, &address, opening->listeners->count) > 0)
            continue;
        if (address.frontend)
            return oribi__refuse(opening->error, "cannot listen on %.*s: SERVER_STARTER_PORT hands no such socket down",
                                 (int)strcspn(bind->items[i], "?"), bind->items[i]);
        unused = true;
    }
    if (unused)
        oribi_log(ORIBI_LOG_INFO, "bind is ignored: start_server passes the sockets (SERVER_STARTER_PORT)");
    return 0;
}

/* Takes the inherited sockets that no bind need ask for. Returns 1 when bind is not to be looked at any more, 0, or a
 * code. */
static int take_given(struct opening *opening)
{
    bool bind_given = oribi_options_source(opening->options, oribi_options_find("bind")) != ORIBI_FROM_DEFAULT;
    bool from_starter = false;
    bool from_outside = false;
    for (uint32_t i = 0; i < opening->inherited.count; i++) {
        struct oribi_inherited_item *item = &opening->inherited.items[i];
        bool handed_on =
            *item->spec && item->origin != ORIBI_ORIGIN_OWN; /* by the process that we replace, which had its reasons */
        if (item->origin != ORIBI_ORIGIN_STARTER && !handed_on &&
            !(item->origin == ORIBI_ORIGIN_SYSTEMD && !bind_given))
            continue;
        int code = take(opening, item, NULL);
        if (code < 0)
            return code;
        from_outside = true;
        from_starter = from_starter || item->origin == ORIBI_ORIGIN_STARTER;
    }
    int code = from_starter && bind_given ? settle_given(opening) : 0;
    if (code < 0)
        return code;
    return from_starter || (from_outside && !bind_given);
}

/* An operator who names a certificate, or authorities for those of clients, expects TLS. */
static int check_tls(const struct opening *opening)
{
    static const char *const names[] = {"certificate", "client_ca", "client_verify"};
    const struct oribi_listeners *listeners = opening->listeners;
    const struct oribi_listener *inherited = NULL;
    for (uint32_t i = 0; i < listeners->count; i++) {
        if (listeners->items[i].tls)
            return 0;
        if (!inherited && listeners->items[i].inherited && !listeners->items[i].is_unix)
            inherited = &listeners->items[i];
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (oribi_options_source(opening->options, oribi_options_find(names[i])) == ORIBI_FROM_DEFAULT)
            continue;
        if (inherited)
            return oribi__refuse(
                opening->error, "%s is set, and no bind names a socket that is handed down by tls://, such as tls://%s",
                names[i], inherited->text + strlen("tcp://"));
        return oribi__refuse(opening->error, "%s is set, and no address begins with tls://", names[i]);
    }
    return 0;
}

/* Sockets of the process that we replace which the new configuration no longer has are closed; a service manager's
 * stay open, unserved. */
static void drop_leftovers(struct opening *opening)
{
    for (uint32_t i = 0; i < opening->inherited.count; i++) {
        const struct oribi_inherited_item *item = &opening->inherited.items[i];
        char text[ORIBI_ADDRESS_TEXT_CAP];
        if (item->taken)
            continue;
        if (item->origin == ORIBI_ORIGIN_OWN) {
            oribi_os_close(item->fd);
            continue;
        }
        listener_text(item->fd, text);
        oribi_log(ORIBI_LOG_WARN, "descriptor %d (%s) was inherited, but no bind names it: not listening on it",
                  item->fd, text);
    }
}

/* After a failure: socket files that were there before belong to a process that goes on serving them. */
static void abandon(struct oribi_listeners *listeners)
{
    for (uint32_t i = 0; i < listeners->count; i++) {
        struct oribi_listener *item = &listeners->items[i];
        if (!item->fresh) {
            oribi_mem_free(item->path);
            item->path = NULL;
        }
    }
    oribi_listeners_close(listeners, true);
}

int oribi_listeners_open(struct oribi_listeners *listeners, const struct oribi_options *options, char *error)
{
    struct opening opening = {.listeners = listeners, .options = options, .error = error};
    listeners->count = 0;
    oribi_os_fill_standard_streams(); /* the process that started us may have left them closed */
    oribi_signals_keep();             /* by default they would end us with a socket file left behind */
    int code = oribi_inherited_read(&opening.inherited, error);
    if (code == 0)
        code = take_given(&opening);
    if (code == 0) {
        for (size_t i = 0; i < options->bind.count && code == 0; i++)
            code = open_address(&opening, options->bind.items[i]);
    }
    if (code >= 0)
        code = check_tls(&opening);
    if (code < 0) {
        abandon(listeners);
        oribi_signals_keep_not();
        return code;
    }
    drop_leftovers(&opening);
    oribi_inherited_clear();
    return 0;
}
