/* PROXY headers: no input may crash the parser, no cut may change the verdict, and what it names is always an
 * address. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/proxy.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct oribi_proxy *proxy, ssize_t result, size_t size)
{
    char text[ORIBI_PROXY_ADDR_CAP + 1] = "";
    uint8_t addr[16];
    memcpy(text, proxy->addr, proxy->addr_len);
    bool is_addr = inet_pton(AF_INET, text, addr) == 1 || inet_pton(AF_INET6, text, addr) == 1;
    if (result <= 0 ? result != ORIBI_EBAD : (size_t)result > size || result > ORIBI_PROXY_BINARY_BYTES_MAX)
        abort();
    if (proxy->known != is_addr || proxy->known != (proxy->port_len > 0))
        abort();
    if ((result == ORIBI_EBAD) != (proxy->reason != NULL))
        abort();
    if (result == ORIBI_EBAD && (proxy->known || proxy->tls))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi_proxy whole;
    struct oribi_proxy part;
    if (size > 8192)
        return 0;
    char *text = oribi_mem_alloc(1, size ? size : 1);
    memcpy(text, data, size);
    ssize_t want = oribi_proxy_parse(text, size, &whole);
    if (want != ORIBI_AGAIN)
        check(&whole, want, size);
    else if (size >= ORIBI_PROXY_BINARY_BYTES_MAX) /* every header is complete, or no header, by then */
        abort();
    for (size_t cut = size > 300 ? size - 300 : 0; cut < size; cut++) {
        char *piece = oribi_mem_alloc(1, cut ? cut : 1);
        memcpy(piece, data, cut);
        ssize_t got = oribi_proxy_parse(piece, cut, &part);
        if (got != ORIBI_AGAIN && got != want)
            abort();
        if (got == ORIBI_AGAIN && want > 0 && cut >= (size_t)want)
            abort();
        oribi_mem_free(piece);
    }
    oribi_mem_free(text);
    return 0;
}
