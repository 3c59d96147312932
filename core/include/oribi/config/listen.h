/* Opens listening sockets: of the application (listener.c), and those that the server itself answers at (control
 * socket, status, agent). A socket file is known by its inode: one that another process has put under its name
 * meanwhile stays. */
#ifndef ORIBI_CONFIG_LISTEN_H
#define ORIBI_CONFIG_LISTEN_H

#include "oribi/base/os/os.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Which file a unix socket is bound to. All-zero: none. */
struct oribi_socket_file {
    uint64_t device;
    uint64_t inode;
};

/* Whose a socket file is to be. -1: as the kernel makes it. */
struct oribi_socket_owner {
    uid_t uid;
    gid_t gid;
    bool keeps_folders_group; /* where the folder hands its own on (mode g+s) */
};

/* Fills the owner for a server that becomes this user and group (either may be NULL): all -1 where there is no user,
 * or this process is not root. 0, or ORIBI_EINVAL with one line in `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi_listen_owner(const char *user, const char *group, struct oribi_socket_owner *owner, char *error);

/* Gives a socket that listens on a TCP address: non-blocking, CLOEXEC. `how`: a sum of ORIBI_BIND_...; `port` takes the
 * place of the address's. A descriptor, or a code of os.h with oribi_os_error_text(). */
int oribi_listen_tcp(const struct sockaddr *address, socklen_t n, uint16_t port, unsigned how, uint32_t backlog);

/* Gives a socket that listens on the file `path` (at most ORIBI_ADDRESS_PATH_MAX bytes), which has the mode 0777
 * without the bits of `mask` and is the owner's (NULL: this process's), and tells which file that is. The name is free:
 * oribi_listen_clear(). For a process without other threads that make files: the umask is the whole process's. A
 * descriptor, or a code of os.h with oribi_os_error_text(), and then no file of ours is left. */
int oribi_listen_unix(const char *path, mode_t mask, const struct oribi_socket_owner *owner, uint32_t backlog,
                      struct oribi_socket_file *file);

/* Frees the name: removes the socket file there unless a server answers on it; with `replace` also then. 0 (also where
 * nothing is there), or with *why in words: ORIBI_EINVAL, it is no socket; ORIBI_ELIMIT, a server answers;
 * ORIBI_ESYS. */
int oribi_listen_clear(const char *path, bool replace, const char **why);

/* Reads which file `path` is; all-zero where it is no socket or not there. */
void oribi_listen_file(const char *path, struct oribi_socket_file *file);

/* Removes `path` if it is still that file. A file that is left is stale, and replaced by the next start. */
void oribi_listen_unlink(const char *path, const struct oribi_socket_file *file);

#endif
