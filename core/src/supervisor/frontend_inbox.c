/* Sockets of publications; see the header. */
#include "supervisor/frontend_inbox.h"

#include "supervisor/module.h"
#include "oribi/observe/context.h"
#include "oribi/worker/inbox.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <stdio.h>
#include <stdlib.h>

void oribi__frontend_inbox_init(struct oribi__frontend_inbox *inbox)
{
    *inbox = (struct oribi__frontend_inbox){.read_fd = -1, .joins = {-1, -1}, .predecessor_fd = -1};
}

void oribi__frontend_inbox_inherit(struct oribi__frontend_inbox *inbox, struct oribi__process_context *process)
{
    int fds[3];
    const char *text = getenv("ORIBI_INBOX");
    bool given = text && sscanf(text, "%d %d %d", &fds[0], &fds[1], &fds[2]) == 3;
    (void)unsetenv("ORIBI_INBOX"); /* fails for names with `=` only */
    for (int i = 0; i < 3 && given; i++)
        given = fds[i] > 2 && oribi_os_set_cloexec(fds[i], true) == 0;
    if (!given)
        return;
    inbox->read_fd = fds[0];
    process->inbox_fd = fds[1];
    inbox->predecessor_fd = fds[2];
}

int oribi__frontend_inbox_make(struct oribi__frontend_inbox *inbox, struct oribi__process_context *process)
{
    int fds[2];
    int code = oribi_inbox_pair(inbox->joins);
    if (code < 0) {
        inbox->joins[0] = inbox->joins[1] = -1;
        return code;
    }
    if (inbox->read_fd < 0) {
        code = oribi_inbox_pair(fds);
        if (code < 0)
            return code;
        inbox->read_fd = fds[0];
        process->inbox_fd = fds[1];
    }
    oribi_publisher_enter(process->inbox_fd, process->options->control);
    return 0;
}

int oribi__frontend_inbox_renew(struct oribi__frontend_inbox *inbox, struct oribi__process_context *process)
{
    int fds[2];
    if (inbox->read_fd < 0 || oribi_os_peer_state(inbox->read_fd) == ORIBI_PEER_OPEN)
        return ORIBI_AGAIN;
    int code = oribi_inbox_pair(fds);
    if (code < 0)
        return code;
    oribi_os_close(inbox->read_fd);
    oribi_os_close(process->inbox_fd);
    inbox->read_fd = fds[0];
    process->inbox_fd = fds[1];
    oribi_publisher_enter(process->inbox_fd, process->options->control);
    return 0;
}

static size_t keep_all(const int *fds, size_t count, int *keep)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            keep[kept++] = fds[i];
    return kept;
}

size_t oribi__frontend_inbox_give(const struct oribi__frontend_inbox *inbox,
                                  const struct oribi__process_context *process, int first, char *text, size_t cap,
                                  int *keep)
{
    const int fds[ORIBI__FRONTEND_INBOX_FDS] = {first ? inbox->read_fd : -1, process->inbox_fd,
                                                first ? inbox->joins[0] : -1, inbox->joins[1],
                                                first ? inbox->predecessor_fd : -1};
    (void)snprintf(text, cap, " %d %d %d %d %d", fds[0], fds[1], fds[2], fds[3], fds[4]); /* fits */
    return keep_all(fds, ORIBI__FRONTEND_INBOX_FDS, keep);
}

size_t oribi__frontend_inbox_hand_over(const struct oribi__frontend_inbox *inbox,
                                       const struct oribi__process_context *process,
                                       char text[ORIBI__FRONTEND_INBOX_TEXT_CAP], int *keep)
{
    const int fds[] = {inbox->read_fd, process->inbox_fd, inbox->joins[1]};
    (void)snprintf(text, ORIBI__FRONTEND_INBOX_TEXT_CAP, "ORIBI_INBOX="); /* fits, as the other does */
    if (inbox->joins[1] < 0)
        return 0;
    (void)snprintf(text, ORIBI__FRONTEND_INBOX_TEXT_CAP, "ORIBI_INBOX=%d %d %d", fds[0], fds[1], fds[2]);
    return keep_all(fds, 3, keep);
}

void oribi__frontend_inbox_close(struct oribi__frontend_inbox *inbox)
{
    oribi__close(&inbox->read_fd);
    oribi__close(&inbox->joins[0]);
    oribi__close(&inbox->joins[1]);
    oribi__close(&inbox->predecessor_fd);
}
