/* Without a call that opens a whole path beneath a folder, and without O_PATH: looking at a file and going through a
 * folder ask for the right to read them. */
#include "files/os_beneath.h"

#include <fcntl.h>

/* O_NONBLOCK: a fifo does not wait for its writer. O_NOCTTY: a terminal does not become ours. */
enum {
    READ_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
    FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
};

int oribi__beneath_flags(enum oribi__beneath_for purpose)
{
    return READ_FLAGS;
}

int oribi__beneath_folder_flags(void)
{
    return FOLDER_FLAGS;
}

int oribi__beneath_follow(int folder_fd, const char *path, enum oribi__beneath_for purpose, int *fd)
{
    return ORIBI__BENEATH_ABSENT;
}

int oribi__beneath_unlinked(int folder_fd, const char *path, enum oribi__beneath_for purpose, int *fd)
{
    return ORIBI__BENEATH_ABSENT;
}
