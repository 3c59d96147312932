/* inotify(7). */
#include "oribi/base/os/os_watch.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <stdint.h>
#include <string.h>
#include <sys/inotify.h>

enum {
    READ_BYTES = 4096,
    CHANGES = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB,
    ENDS = IN_DELETE_SELF | IN_MOVE_SELF,
};

bool oribi_os_watches(void)
{
    return true;
}

int oribi_os_watch_open(struct oribi_os_watch *watch)
{
    watch->fd = oribi_os_lift(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    return watch->fd < 0 ? oribi_os_fail() : 0;
}

void oribi_os_watch_close(struct oribi_os_watch *watch)
{
    oribi_os_close(watch->fd);
    watch->fd = -1;
}

int oribi_os_watch_add(const struct oribi_os_watch *watch, const char *folder)
{
    int number = inotify_add_watch(watch->fd, folder, CHANGES | ENDS | IN_ONLYDIR | IN_EXCL_UNLINK);
    return number < 0 ? oribi_os_fail() : number;
}

void oribi_os_watch_read(const struct oribi_os_watch *watch, oribi_os_watch_fn report, void *self)
{
    char reports[READ_BYTES];
    struct inotify_event event;
    ssize_t n;
    while (watch->fd >= 0 && (n = oribi_os_read(watch->fd, reports, sizeof(reports))) > 0)
        for (size_t at = 0; at + sizeof(event) <= (size_t)n; at += sizeof(event) + event.len) {
            memcpy(&event, reports + at, sizeof(event)); /* whole ones only are read */
            if (event.mask & IN_MOVE_SELF)               /* its number would follow it elsewhere */
                (void)inotify_rm_watch(watch->fd, event.wd);
            report(self, event.mask & IN_Q_OVERFLOW ? ORIBI_OS_WATCH_ALL : event.wd,
                   (event.mask & (ENDS | IN_IGNORED)) != 0);
        }
}
