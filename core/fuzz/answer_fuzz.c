/* Answers of workers, and the heads that frontends write before a request: no input may crash a reader, and no cut may
 * change its verdict. A frontend's head means the same when it is written again. The first byte chooses. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/response_head.h"
#include "oribi/http/proxy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 16 };

static bool same(struct oribi_slice a, struct oribi_slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Written and read once more. */
static void check_again(const struct oribi_channel_head *head)
{
    static char text[ORIBI_CHANNEL_HEAD_BYTES_MAX];
    struct oribi_channel_head again;
    size_t n = oribi_channel_head_write(head, text, sizeof(text));
    if (n == 0 || oribi_channel_head_read(text, n, &again) != (ssize_t)n || again.protocol != head->protocol ||
        again.keeps != head->keeps || again.tls != head->tls || again.listener != head->listener ||
        again.listener_hash != head->listener_hash || again.complete_us != head->complete_us ||
        !same(oribi_slice(again.addr, again.addr_len), oribi_slice(head->addr, head->addr_len)) ||
        !same(oribi_slice(again.port, again.port_len), oribi_slice(head->port, head->port_len)))
        abort();
    if (!same(again.alpn, head->alpn) || !same(again.sni, head->sni) || !same(again.request_id, head->request_id) ||
        !same(again.verify, head->verify) || !same(again.subject, head->subject) || !same(again.issuer, head->issuer) ||
        !same(again.serial, head->serial) || !same(again.begins, head->begins) || !same(again.ends, head->ends) ||
        !same(again.pem, head->pem))
        abort();
    if (head->tls && (!same(again.tls_version, head->tls_version) || !same(again.cipher, head->cipher)))
        abort();
}

static ssize_t read_one(const uint8_t *data, size_t size, bool channel, bool is_head)
{
    struct oribi_header headers[ROOM];
    struct oribi_answer answer = {.headers = headers, .room = ROOM};
    struct oribi_channel_head head;
    char *text = oribi_mem_alloc(1, size ? size : 1);
    memcpy(text, data, size);
    ssize_t got =
        channel ? oribi_channel_head_read(text, size, &head) : oribi_answer_head(text, size, is_head, &answer);
    if (got > (ssize_t)size)
        abort();
    if (!channel && got > 0 && (answer.status < 100 || answer.status > 999 || answer.count > ROOM))
        abort();
    if (channel && got > 0 && head.addr_len > sizeof(head.addr))
        abort();
    if (channel && got > 0)
        check_again(&head);
    oribi_mem_free(text);
    return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 4096)
        return 0;
    bool channel = data[0] & 1;
    bool is_head = data[0] & 2;
    ssize_t want = read_one(data + 1, size - 1, channel, is_head);
    for (size_t cut = 0; cut < size - 1; cut++) {
        ssize_t got = read_one(data + 1, cut, channel, is_head);
        if (got != ORIBI_AGAIN && got != want)
            abort();
        if (got == ORIBI_AGAIN && want > 0 && cut >= (size_t)want)
            abort();
    }
    return 0;
}
