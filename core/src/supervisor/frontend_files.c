/* Files of certificates and keys, kept for frontends that are started again, in memory that the system keeps to this
 * process as far as it can (oribi_os_seclude()). */
#include "oribi/supervisor/frontend_text.h"

#include "oribi/base/os/os.h"

#include <string.h>
#include <sys/mman.h>

enum { CAP_MIN = 64 * 1024 };

struct head {
    size_t path_len;
    size_t len;
};

void oribi__frontend_files_free(struct oribi__frontend_files *files, bool in_child)
{
    if (files->p && !in_child)
        explicit_bzero(files->p, files->len); /* a child may not have it */
    if (files->p)
        (void)munmap(files->p, files->cap); /* whole mapping: cannot fail */
    *files = (struct oribi__frontend_files){NULL, 0, 0};
}

void oribi__frontend_files_move(struct oribi__frontend_files *to, struct oribi__frontend_files *from)
{
    oribi__frontend_files_free(to, false);
    *to = *from;
    *from = (struct oribi__frontend_files){NULL, 0, 0};
}

static bool make_room(struct oribi__frontend_files *files, size_t more)
{
    struct oribi__frontend_files bigger = {NULL, files->len, files->cap ? files->cap : CAP_MIN};
    if (files->cap - files->len >= more)
        return true;
    while (bigger.cap - bigger.len < more)
        bigger.cap *= 2;
    void *p = mmap(NULL, bigger.cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return false;
    oribi_os_seclude(p, bigger.cap);
    bigger.p = p;
    if (files->len)
        memcpy(bigger.p, files->p, files->len);
    oribi__frontend_files_move(files, &bigger);
    return true;
}

bool oribi__frontend_files_add(struct oribi__frontend_files *files, const char *path, struct oribi_slice text)
{
    struct head head = {strlen(path), text.n};
    if (!make_room(files, sizeof(head) + head.path_len + head.len))
        return false;
    memcpy(files->p + files->len, &head, sizeof(head));
    memcpy(files->p + files->len + sizeof(head), path, head.path_len);
    memcpy(files->p + files->len + sizeof(head) + head.path_len, text.p, head.len);
    files->len += sizeof(head) + head.path_len + head.len;
    return true;
}

bool oribi__frontend_files_find(const struct oribi__frontend_files *files, const char *path, struct oribi_slice *text)
{
    struct head head;
    for (size_t at = 0; at < files->len; at += sizeof(head) + head.path_len + head.len) {
        memcpy(&head, files->p + at, sizeof(head));
        const char *p = files->p + at + sizeof(head);
        if (head.path_len != strlen(path) || memcmp(p, path, head.path_len) != 0)
            continue;
        *text = oribi_slice(p + head.path_len, head.len);
        return true;
    }
    return false;
}
