/* Messages with a descriptor. Local content, as a supervisor tells its frontends of it: the options it is made of, and
 * reading its text from a descriptor. The supervisor reads the text of a mold so, a frontend that of its supervisor. */
#include "oribi/worker/frontend_protocol.h"
#include "oribi/worker/inbox.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <string.h>
#include <sys/socket.h>

/* As workers use them, so that a reload changes them. */
const char *const oribi__frontend_local_options[] = {
    "static",
    "static_memory_max",
    "static_open_max",
    "answer",
    "redirect",
    "https_redirect",
    "health",
    "header",
    "error_page",
    "server_header",
    "request_id",
    "request_id_header",
    "error_log_format",
    "quiet",
    "verbose",
    "access_log_format",
    "access_log_skip",
    "access_log_sample",
    "trusted_proxies",
    "head_bytes_max",
    "fields_max",
    "target_bytes_max",
    "body_bytes_max",
    "underscores_allow",
    "strict_target",
    "buffers_memory_max",
    "buffers_file_max",
    "response_memory_max",
    NULL,
};

bool oribi__frontend_is_of_local(struct oribi_slice name)
{
    for (const char *const *option = oribi__frontend_local_options; *option; option++)
        if (oribi_slice_equal(name, oribi_slice(*option, strlen(*option))))
            return true;
    return false;
}

/* By reading: a mapping of what another process may cut off could end this one. */
int oribi__frontend_text_read(int fd, struct oribi_buf *out)
{
    size_t n = 0;
    if (oribi_process_shared_memory_size(fd, &n) < 0 || n == 0 || n > ORIBI_FRONTEND_LOCAL_MAX)
        return ORIBI_EBAD;
    char *p = oribi_buf_try_reserve(out, n);
    if (!p)
        return ORIBI_ENOMEM;
    if (oribi_os_read_at(fd, p, n, 0) != (ssize_t)n || p[n - 1] != '\0')
        return ORIBI_EBAD;
    out->len += n - 1;
    return 0;
}

int oribi__frontend_message_send(int socket_fd, struct oribi_slice text, int passed)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec vec = {(void *)text.p, text.n};
    struct msghdr message = {
        .msg_iov = &vec, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &passed, sizeof(int));
    return sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0 ? oribi_os_fail() : 0;
}

ssize_t oribi__frontend_message_receive(int socket_fd, char *dst, size_t cap, int *passed)
{
    bool cut;
    return oribi_inbox_receive_cut(socket_fd, dst, cap, passed, &cut);
}
