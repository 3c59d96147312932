/* Listening sockets: the length of their queue, their files' owner, and how they end without resetting a connection
 * that the kernel has taken. */
#include "oribi/base/os/os.h"

#include "oribi/base/error.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG_DEFAULT = 4096 }; /* net.core.somaxconn since Linux 5.4 */

uint32_t oribi_os_backlog_max(void)
{
    char line[32];
    if (oribi_os_read_line("/proc/sys/net/core/somaxconn", line, sizeof(line)) < 0)
        return BACKLOG_DEFAULT;
    long value = strtol(line, NULL, 10);
    return value > 0 && value <= INT_MAX ? (uint32_t)value : BACKLOG_DEFAULT;
}

int oribi_os_defer_accept(int tcp_fd, int seconds)
{
    return setsockopt(tcp_fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds)) < 0 ? oribi_os_fail() : 0;
}

int oribi_os_give_socket_file(const char *path, uint64_t device, uint64_t inode, uid_t uid, gid_t gid)
{
    struct stat entry;
    int fd = oribi_os_lift(open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    int code = fd < 0 || fstat(fd, &entry) < 0 ? oribi_os_fail() : oribi__os_is_new_socket(&entry, device, inode);
    if (code == 0 && fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0)
        code = oribi_os_fail();
    oribi_os_close(fd);
    return code;
}

static int family_of(int fd)
{
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof(bound);
    return getsockname(fd, (struct sockaddr *)&bound, &len) < 0 ? AF_UNSPEC : bound.ss_family;
}

/* A listener's filter sees TCP headers: it drops those with SYN and without ACK (RFC 9293 3.1), the first of a
 * connection. Accepted sockets keep it, to whom such a packet means nothing. */
void oribi_os_listen_stop_accepting(int listen_fd)
{
    enum { FLAGS_AT = 13, SYN = 0x02, ACK = 0x10 };
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS_AT),   BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN | ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
    if (family_of(listen_fd) == AF_UNIX)
        (void)shutdown(listen_fd, SHUT_RDWR); /* fails only on what is no socket */
    else
        /* Without the filter the kernel goes on to take new connections. */
        (void)setsockopt(listen_fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/* Lines of /proc/net/tcp: " 12: 0100007F:1F90 00000000:0000 03 ...", local and remote address, state in hexadecimal. */
static bool has_half_open(const char *table, unsigned port)
{
    enum { SYN_RECEIVED = 3 };
    char line[256];
    bool found = false;
    FILE *file = fopen(table, "re");
    while (file && !found && fgets(line, sizeof(line), file)) {
        unsigned local;
        unsigned state;
        found = sscanf(line, " %*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &local, &state) == 2 && state == SYN_RECEIVED &&
                local == port;
    }
    if (file)
        (void)fclose(file); /* was read only */
    return found;
}

static bool is_half_open(int fd)
{
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof(bound);
    if (getsockname(fd, (struct sockaddr *)&bound, &len) < 0)
        return false;
    if (bound.ss_family == AF_INET6)
        return has_half_open("/proc/net/tcp6", ntohs(((const struct sockaddr_in6 *)&bound)->sin6_port));
    return has_half_open("/proc/net/tcp", ntohs(((const struct sockaddr_in *)&bound)->sin_port));
}

static bool has_queue(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 && info.tcpi_state == TCP_LISTEN &&
           info.tcpi_unacked > 0; /* of a listening socket this is the length of its queue */
}

/* A connection joins the queue before it leaves the table of the half-open ones, so the table is read first: read
 * after the queue, it would not show a connection that moved in between, and the end of the listener would reset
 * that client's request. */
static bool tcp_awaits(int fd, bool half_open)
{
    return (half_open && is_half_open(fd)) || has_queue(fd);
}

bool oribi_os_listen_awaits(int listen_fd, bool half_open)
{
    return family_of(listen_fd) != AF_UNIX && tcp_awaits(listen_fd, half_open);
}

void oribi_os_listen_end(int listen_fd)
{
    if (family_of(listen_fd) != AF_UNIX)      /* which does not know its queue's end, and keeps it with the last copy */
        (void)shutdown(listen_fd, SHUT_RDWR); /* fails only on what is no socket */
}
