/* openat2(2), where the kernel and its headers have it, and O_PATH. */
#include "files/os_beneath.h"

#include "oribi/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef SYS_openat2
#include <linux/openat2.h>
#endif

/* O_NONBLOCK: a fifo does not wait for its writer. O_NOCTTY: a terminal does not become ours. O_PATH asks for no right
 * on the folders but to go through them. */
enum {
    READ_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
    LOOK_FLAGS = O_PATH | O_CLOEXEC,
    FOLDER_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC,
};

int oribi__beneath_flags(enum oribi__beneath_for purpose)
{
    return purpose == ORIBI__FOR_READING ? READ_FLAGS : LOOK_FLAGS;
}

int oribi__beneath_folder_flags(void)
{
    return FOLDER_FLAGS;
}

#ifdef SYS_openat2
static int open_at_once(int folder_fd, const char *path, int flags, uint64_t resolve, int *fd)
{
    const struct open_how how = {.flags = (uint64_t)flags, .resolve = resolve};
    int got;
    do
        got = oribi_os_lift((int)syscall(SYS_openat2, folder_fd, path, &how, sizeof(how)));
    while (got < 0 && errno == EINTR);
    if (got >= 0) {
        *fd = got;
        return ORIBI_FILE_OK;
    }
    /* Filters answer EPERM for calls they do not know; of a file that is refused with it the steps say the same. */
    if (errno == ENOSYS || errno == EPERM)
        return ORIBI__BENEATH_ABSENT;
    return errno == EXDEV ? ORIBI__BENEATH_LINK : oribi__beneath_verdict();
}

int oribi__beneath_follow(int folder_fd, const char *path, enum oribi__beneath_for purpose, int *fd)
{
    return open_at_once(folder_fd, path, oribi__beneath_flags(purpose), RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS, fd);
}

/* Without O_NOFOLLOW, which would let O_PATH open a link itself; so a link is an error here. */
int oribi__beneath_unlinked(int folder_fd, const char *path, enum oribi__beneath_for purpose, int *fd)
{
    return open_at_once(folder_fd, path, oribi__beneath_flags(purpose),
                        RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS, fd);
}
#else
int oribi__beneath_follow(int folder_fd, const char *path, enum oribi__beneath_for purpose, int *fd)
{
    return ORIBI__BENEATH_ABSENT;
}

int oribi__beneath_unlinked(int folder_fd, const char *path, enum oribi__beneath_for purpose, int *fd)
{
    return ORIBI__BENEATH_ABSENT;
}
#endif
