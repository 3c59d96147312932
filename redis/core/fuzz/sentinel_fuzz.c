/* Answers of a Sentinel, and an address before them (up to the first line feed): the list keeps its bounds, a master is
 * whole or not there, and remembered Sentinels can be asked. The first byte says how much comes at a time. */
#include "oribi/base/mem.h"
#include "oribi/redis/sentinel.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *p;
    size_t n, at_once;
};

static ssize_t receive(struct oribi_redis_conn *conn, const struct iovec *pieces, int n, int timeout_ms)
{
    struct input *input = conn->context;
    if (timeout_ms == 0)
        return ORIBI_AGAIN;
    if (input->n == 0)
        return ORIBI_ECLOSED;
    size_t room = pieces[0].iov_len < input->at_once ? pieces[0].iov_len : input->at_once;
    size_t got = room < input->n ? room : input->n;
    memcpy(pieces[0].iov_base, input->p, got);
    input->p += got;
    input->n -= got;
    return (ssize_t)got;
}

static ssize_t send_all(struct oribi_redis_conn *conn, const struct iovec *pieces, int n)
{
    ssize_t sent = 0;
    for (int i = 0; i < n; i++)
        sent += (ssize_t)pieces[i].iov_len;
    return sent;
}

static void do_not_close(struct oribi_redis_conn *conn, bool quiet)
{
}

static const struct oribi_redis_transport FROM_INPUT = {.receive = receive, .send = send_all, .close = do_not_close};

static void check(const struct oribi_redis_sentinels *list)
{
    if (list->count > ORIBI_REDIS_SENTINELS_MAX)
        abort();
    for (size_t i = 0; i < list->count; i++) {
        const struct oribi_redis_sentinel *one = &list->at[i];
        if (!memchr(one->host, '\0', sizeof(one->host)) || !memchr(one->path, '\0', sizeof(one->path)))
            abort();
        if ((one->host[0] != '\0') == (one->path[0] != '\0') || (one->port != 0) != (one->host[0] != '\0'))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    int64_t blocks = oribi_mem_blocks();
    struct oribi_redis_sentinels list = {.count = 0};
    const uint8_t *line = memchr(data + 1, '\n', size - 1);
    size_t n = line ? (size_t)(line - data - 1) : size - 1;
    size_t before = list.count;
    const char *wrong = oribi_redis_sentinels_add(&list, oribi_slice((const char *)data + 1, n));
    if ((wrong == NULL) != (list.count == before + 1))
        abort();
    check(&list);
    if (oribi_redis_sentinels_add(&list, ORIBI_SLICE("last:1")))
        abort();
    struct input input = {data + 1 + n, size - 1 - n, data[0] ? data[0] : SIZE_MAX};
    struct oribi_redis_conn conn;
    struct oribi_redis_asking asking;
    struct oribi_redis_place place, master, kept;
    oribi_redis_conn_init(&conn, 0);
    conn.transport = &FROM_INPUT;
    conn.context = &input;
    oribi_redis_place_init(&master);
    kept = master;
    oribi_redis_asking_begin(&asking, &list, ORIBI_SLICE("main"));
    int code = ORIBI_ESYS;
    while (code != 0 && oribi_redis_asking_next(&asking, &place)) {
        if (input.n > 0 && *input.p == '\n') { /* stands between the answers */
            input.p++;
            input.n--;
        }
        oribi_redis_conn_attach(&conn, 0);
        code = oribi_redis_asking_ask(&asking, &conn, 0, ORIBI_SLICE(""), ORIBI_SLICE(""), &master);
        oribi_redis_conn_close(&conn);
        check(&list);
    }
    bool whole = master.host[0] && memchr(master.host, '\0', sizeof(master.host)) && master.port;
    if (code == 0 ? !whole : memcmp(&master, &kept, sizeof(kept)) != 0)
        abort();
    if (code != 0 && !strstr(asking.why, "last:1: ") && strlen(asking.why) + 1 < sizeof(asking.why))
        abort();
    oribi_redis_conn_deinit(&conn);
    if (oribi_mem_blocks() != blocks)
        abort();
    return 0;
}
