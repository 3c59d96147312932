/* One listening socket: what it is bound to, the file that it leaves, its end. listener_open.c opens and takes them.
 *
 * shutdown() is never called here: on a socket that other processes hold too it would end their listening as well.
 * listener_shutdown.c knows when it may. */
#include "config/listener_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/config/refuse.h"

#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
    char port[sizeof(item->port)];
    if (getnameinfo((const struct sockaddr *)bound, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    copy_text(item->port, sizeof(item->port), port);
    (void)oribi_address_format_tcp(host, (uint16_t)strtoul(port, NULL, 10), item->text, sizeof(item->text));
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
    struct stat file;
    if (!*path || lstat(path, &file) < 0 || !S_ISSOCK(file.st_mode))
        return true;
    if (oribi_os_absolute_path(path, whole, sizeof(whole)) == 0)
        path = whole;
    size_t n = strlen(path) + 1;
    item->path = oribi_mem_try_alloc(n, 1);
    if (!item->path)
        return false;
    memcpy(item->path, path, n);
    item->file_device = (uint64_t)file.st_dev;
    item->file_inode = (uint64_t)file.st_ino;
    return true;
}

/* Both settings pass on to accepted sockets or save a wake-up; a socket without them still works. */
static void tune_tcp(int fd)
{
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)oribi_os_defer_accept(fd, DEFER_ACCEPT_S);
}

int oribi__listener_add(struct oribi_listeners *listeners, struct oribi_listener *item, const char *spec,
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

void oribi__listener_text(int fd, char text[ORIBI_ADDRESS_TEXT_CAP])
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
    return oribi__listener_add(listeners, &item, spec, asked_host, error);
}

static void unlink_file(struct oribi_listener *item)
{
    struct stat file;
    if (item->path && lstat(item->path, &file) == 0 && (uint64_t)file.st_dev == item->file_device &&
        (uint64_t)file.st_ino == item->file_inode)
        (void)unlink(item->path); /* a file that is left is stale, and replaced by the next start */
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
