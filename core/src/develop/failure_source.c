/* Lines of a source file around a mistake. */
#include "develop/failure_private.h"

#include "oribi/base/limits.h"
#include "oribi/base/os/os.h"

#include <limits.h>
#include <string.h>

enum { READ_BYTES = 64 * 1024 };

/* The whole file up to a limit; what lies behind it is not shown. Pipes and devices are no sources. */
static void read_file(const char *path, struct oribi_buf *text)
{
    int fd;
    int64_t size;
    if (oribi_os_open_read(path, &fd) < 0)
        return;
    if (oribi_os_is_file(fd, &size)) {
        while (text->len < ORIBI_FAILURE_SOURCE_BYTES_MAX) {
            char *dst = oribi_buf_try_reserve(text, READ_BYTES);
            ssize_t n = dst ? oribi_os_read(fd, dst, READ_BYTES) : 0;
            if (n <= 0)
                break;
            text->len += (size_t)n;
        }
    }
    oribi_os_close(fd);
}

static struct oribi_slice line_at(const struct oribi_buf *text, size_t pos)
{
    const char *newline = memchr(text->p + pos, '\n', text->len - pos);
    size_t end = newline ? (size_t)(newline - text->p) : text->len;
    if (end > pos && text->p[end - 1] == '\r')
        end--;
    size_t n = end - pos;
    return oribi_slice(text->p + pos, n < ORIBI_FAILURE_LINE_BYTES_MAX ? n : ORIBI_FAILURE_LINE_BYTES_MAX);
}

void oribi__failure_source(const struct oribi__failure_frame *frame, struct oribi__failure_source *source)
{
    char path[PATH_MAX];
    *source = (struct oribi__failure_source){.first = 1};
    if (frame->path.n == 0 || frame->path.n >= sizeof(path) || memchr(frame->path.p, '\0', frame->path.n))
        return;
    memcpy(path, frame->path.p, frame->path.n);
    path[frame->path.n] = '\0';
    read_file(path, &source->text);
    if (frame->line > ORIBI__SOURCE_AROUND)
        source->first = frame->line - ORIBI__SOURCE_AROUND;
    uint32_t number = 1;
    bool reached = false;
    for (size_t pos = 0; pos < source->text.len && number <= frame->line + ORIBI__SOURCE_AROUND; number++) {
        if (number >= source->first)
            source->lines[source->count++] = line_at(&source->text, pos);
        reached |= number == frame->line;
        const char *newline = memchr(source->text.p + pos, '\n', source->text.len - pos);
        pos = newline ? (size_t)(newline - source->text.p) + 1 : source->text.len;
    }
    if (!reached) /* the file has changed, or the mistake is its missing end */
        source->count = number == frame->line ? source->count : 0;
}
