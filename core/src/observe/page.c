/* page.html in the binary. The Makefile writes its bytes as a list of numbers, so that the build needs od(1) and sed(1)
 * alone. */
#include "observe/status.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <stdio.h>
#include <string.h>

static const unsigned char page[] = {
#include "page.inc"
};

/* Mark in the file where the nonce is to be. */
static const char mark[] = "{{nonce}}";

int oribi__page_nonce(char nonce[ORIBI__PAGE_NONCE_CAP])
{
    unsigned char bytes[(ORIBI__PAGE_NONCE_CAP - 1) / 2];
    int code = oribi_os_random(bytes, sizeof(bytes));
    if (code < 0)
        return code;
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(nonce + 2 * i, 3, "%02x", bytes[i]); /* fits */
    return 0;
}

void oribi__page(const char *nonce, struct oribi_buf *out)
{
    const char *at = (const char *)page;
    const char *end = at + sizeof(page);
    const char *next;
    while ((next = oribi_os_memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1))) {
        (void)oribi_buf_try_append(out, at, (size_t)(next - at));
        (void)oribi_buf_try_append(out, nonce, strlen(nonce));
        at = next + sizeof(mark) - 1;
    }
    (void)oribi_buf_try_append(out, at, (size_t)(end - at));
}
