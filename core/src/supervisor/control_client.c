/* The client of the control socket: a command goes there in a line, the answer's first word becomes an exit code. */
#include "oribi/supervisor/control_client.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/supervisor/control.h"

#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

enum { READ_BYTES = 4096 };

bool oribi__control_address(const char *path, struct sockaddr_un *where)
{
    *where = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof(where->sun_path))
        return false;
    memcpy(where->sun_path, path, n);
    return true;
}

int oribi__control_fail(struct oribi_buf *out, const char *path, const char *what)
{
    char text[256];
    int n = snprintf(text, sizeof(text), "%.150s: %s", path, what);
    (void)oribi_buf_try_append(out, text,
                               n > 0 && (size_t)n < sizeof(text) ? (size_t)n + 1 : 1); /* the code tells as well */
    if (out->len > 0)
        out->len--; /* the NUL */
    return 2;
}

int oribi__control_judge(struct oribi_buf *out, size_t from, const char *path)
{
    static const struct {
        const char *word;
        int code;
    } words[] = {{"ok", 0}, {"error", 1}};
    if (out->len == from)
        return oribi__control_fail(out, path, "no answer: the server has ended");
    *oribi_buf_reserve(out, 1) = '\0';
    const char *answer_text = out->p + from;
    size_t len = out->len - from;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i].word);
        if (len <= n || memcmp(answer_text, words[i].word, n) != 0)
            continue;
        memmove(out->p + from, out->p + from + n + 1, len - n); /* the NUL too */
        out->len -= n + 1;
        return words[i].code;
    }
    return 2;
}

int oribi__control_ask(const char *path, const char *command, bool nonblocking, struct oribi_buf *out)
{
    struct sockaddr_un where;
    if (!oribi__control_address(path, &where)) {
        (void)oribi__control_fail(out, path, "too long for a socket");
        return -1;
    }
    int fd = oribi_os_socket(AF_UNIX, SOCK_STREAM, nonblocking);
    if (fd < 0 || connect(fd, (struct sockaddr *)&where, sizeof(where)) < 0) {
        (void)oribi_os_fail();
        oribi_os_close(fd);
        (void)oribi__control_fail(out, path, oribi_os_error_text());
        return -1;
    }
    const struct iovec line[] = {{(void *)(uintptr_t)command, strlen(command)}, {(void *)(uintptr_t) "\n", 1}};
    (void)oribi_os_send_vec(fd, line, 2); /* where it fails there is no answer either */
    return fd;
}

ssize_t oribi__control_read(int fd, struct oribi_buf *out)
{
    ssize_t n = oribi_os_read(fd, oribi_buf_reserve(out, READ_BYTES), READ_BYTES);
    out->len += n > 0 ? (size_t)n : 0;
    return n;
}

int oribi_control_request(const char *path, const char *command, struct oribi_buf *out)
{
    size_t from = out->len;
    int fd = oribi__control_ask(path, command, false, out);
    if (fd < 0)
        return 2;
    while (oribi__control_read(fd, out) > 0)
        continue;
    oribi_os_close(fd);
    return oribi__control_judge(out, from, path);
}
