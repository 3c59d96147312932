/* The one place where sockets begin to listen, and where socket files are removed. Reading order: oribi_listen_tcp,
 * oribi_listen_unix, oribi_listen_clear. */
#include "oribi/config/listen.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os_process.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The socket listens, or is closed. */
static int begin(int fd, uint32_t backlog)
{
    if (listen(fd, (int)backlog) == 0)
        return fd;
    int code = oribi_os_fail();
    oribi_os_close(fd);
    return code;
}

int oribi_listen_tcp(const struct sockaddr *address, socklen_t n, uint16_t port, unsigned how, uint32_t backlog)
{
    int fd = oribi_os_bind_tcp(address, n, port, how);
    return fd < 0 ? fd : begin(fd, backlog);
}

int oribi_listen_owner(const char *user, const char *group, struct oribi_socket_owner *owner, char *error)
{
    *owner = (struct oribi_socket_owner){.uid = (uid_t)-1, .gid = (gid_t)-1, .keeps_folders_group = !group};
    return user && geteuid() == 0 ? oribi_process_find_user(user, group, &owner->uid, &owner->gid, error) : 0;
}

/* A group other than this process's comes from the folder: its administrator has chosen who may connect. */
static int give(const char *path, const struct oribi_socket_file *file, const struct oribi_socket_owner *owner)
{
    struct stat entry;
    bool keeps = owner->keeps_folders_group && lstat(path, &entry) == 0 && entry.st_gid != getegid();
    return oribi_os_give_socket_file(path, file->device, file->inode, owner->uid, keeps ? (gid_t)-1 : owner->gid);
}

/* Nobody can connect before it listens: until then the file's owner may still change. */
int oribi_listen_unix(const char *path, mode_t mask, const struct oribi_socket_owner *owner, uint32_t backlog,
                      struct oribi_socket_file *file)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    assert(n < sizeof(where.sun_path));
    memcpy(where.sun_path, path, n);
    int fd = oribi_os_socket(AF_UNIX, SOCK_STREAM, true);
    if (fd < 0)
        return oribi_os_fail();
    mode_t saved = umask(mask);
    bool bound = bind(fd, (const struct sockaddr *)&where, sizeof(where)) == 0;
    int code = bound ? 0 : oribi_os_fail();
    (void)umask(saved);
    if (!bound) {
        oribi_os_close(fd);
        return code;
    }
    oribi_listen_file(path, file);
    code = owner && owner->uid != (uid_t)-1 ? give(path, file, owner) : 0;
    if (code < 0)
        oribi_os_close(fd);
    else
        code = begin(fd, backlog);
    if (code < 0)
        oribi_listen_unlink(path, file); /* no client knows of it yet */
    return code;
}

void oribi_listen_file(const char *path, struct oribi_socket_file *file)
{
    struct stat entry;
    bool is_socket = lstat(path, &entry) == 0 && S_ISSOCK(entry.st_mode);
    file->device = is_socket ? (uint64_t)entry.st_dev : 0;
    file->inode = is_socket ? (uint64_t)entry.st_ino : 0;
}

static int unlink_same(const char *path, const struct oribi_socket_file *file)
{
    struct oribi_socket_file now;
    oribi_listen_file(path, &now);
    bool is_same = now.inode && now.device == file->device && now.inode == file->inode;
    return is_same && unlink(path) < 0 ? oribi_os_fail() : 0;
}

void oribi_listen_unlink(const char *path, const struct oribi_socket_file *file)
{
    (void)unlink_same(path, file);
}

/* Between the look and the removal another server may have put its own file there: only the file that was looked at
 * goes. */
int oribi_listen_clear(const char *path, bool replace, const char **why)
{
    struct stat entry;
    struct oribi_socket_file file;
    if (lstat(path, &entry) < 0)
        return 0; /* bind(2) will say what is wrong, if anything */
    oribi_listen_file(path, &file);
    *why = "there is a file that is not a socket";
    if (!file.inode)
        return ORIBI_EINVAL;
    int answers = replace ? 0 : oribi_os_unix_answers(path);
    *why = "address already in use";
    if (answers > 0)
        return ORIBI_ELIMIT;
    bool failed = answers < 0 || unlink_same(path, &file) < 0;
    *why = oribi_os_error_text();
    return failed ? ORIBI_ESYS : 0;
}
