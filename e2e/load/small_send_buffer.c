/* Send buffers of a machine whose net.core.wmem_max is small: loaded before the C library (ld.so(8), LD_PRELOAD), it
 * cuts what a program asks for by SO_SNDBUF to SEND_BUFFER_MAX, as the kernel does. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

typedef int set_option(int fd, int level, int name, const void *value, socklen_t len);

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    const char *max = getenv("SEND_BUFFER_MAX");
    set_option *next = (set_option *)dlsym(RTLD_NEXT, "setsockopt");
    int bytes = max ? (int)strtol(max, NULL, 10) : 0;
    bool is_cut =
        bytes > 0 && level == SOL_SOCKET && name == SO_SNDBUF && len == sizeof(bytes) && *(const int *)value > bytes;
    return next(fd, level, name, is_cut ? &bytes : value, len);
}
