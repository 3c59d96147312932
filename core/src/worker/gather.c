/* Pieces of an answer, gathered into few vectors. A gathering is written field by field, because clearing its vector
 * would cost each answer 4 KiB. */
#include "worker/reply.h"

#include <string.h>

void oribi__gather_begin(struct oribi__gathering *g, struct oribi_reactor *reactor, struct oribi_conn *conn,
                         size_t used)
{
    g->reactor = reactor;
    g->conn = conn;
    g->room = reactor->scratch + used;
    g->end = reactor->scratch + ORIBI_SCRATCH_BYTES;
    g->n = 0;
    if (used > 0)
        g->vec[g->n++] = (struct iovec){reactor->scratch, used};
}

static bool add_copy(struct oribi__gathering *g, const struct iovec *piece)
{
    struct iovec *last = g->n > 0 ? &g->vec[g->n - 1] : NULL;
    bool joins = last && (char *)last->iov_base + last->iov_len == g->room;
    if (piece->iov_len > (size_t)(g->end - g->room) || (!joins && g->n == ORIBI__VEC_MAX))
        return false;
    memcpy(g->room, piece->iov_base, piece->iov_len);
    if (joins)
        last->iov_len += piece->iov_len;
    else
        g->vec[g->n++] = (struct iovec){g->room, piece->iov_len};
    g->room += piece->iov_len;
    return true;
}

static bool add(struct oribi__gathering *g, const struct iovec *piece)
{
    if (piece->iov_len <= ORIBI__GATHERED_BYTES)
        return piece->iov_len == 0 || add_copy(g, piece);
    if (g->n == ORIBI__VEC_MAX)
        return false;
    g->vec[g->n++] = *piece;
    return true;
}

int oribi__gather(struct oribi__gathering *g, const struct iovec *vec, size_t count)
{
    for (size_t i = 0; i < count;) {
        if (add(g, &vec[i])) {
            i++;
            continue;
        }
        int result = oribi__gather_send(g, true);
        if (result < 0)
            return result;
    }
    return 0;
}

int oribi__gather_send(struct oribi__gathering *g, bool more)
{
    int result = g->n > 0 ? oribi_conn_send(g->reactor, g->conn, g->vec, g->n, more) : 0;
    g->n = 0;
    g->room = g->reactor->scratch;
    return result;
}
