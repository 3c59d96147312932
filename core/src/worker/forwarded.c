/* Addresses and scheme of a request: those of its connection, or what a trusted peer says about the client behind
 * it. The header fields themselves stay in the environment whoever sent them; here it is decided whether they have
 * an effect. */
#include "worker/exchange.h"

#include "oribi/base/os.h"

#include <string.h>

static struct oribi_slice value_of(const struct oribi_field *field)
{
    return field ? oribi_slice(field->value, field->value_len) : oribi_slice(NULL, 0);
}

/* The last element: what the peer itself has written where proxies append. */
static struct oribi_slice last_element(struct oribi_slice list)
{
    const char *comma = list.n ? oribi_os_memrchr(list.p, ',', list.n) : NULL;
    const char *p = comma ? comma + 1 : list.p;
    const char *end = list.p + list.n;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return oribi_slice(p, (size_t)(end - p));
}

static void take_forwarded(const struct oribi_trust *trust, struct oribi_req *req)
{
    struct oribi_slice client =
        oribi_trust_client(trust, value_of(oribi_head_field(req->head, ORIBI_FIELD_X_FORWARDED_FOR)));
    if (client.n > 0) {
        req->remote_addr = client;
        req->remote_port = ORIBI_SLICE("0"); /* not known, and the peer's would be the proxy's */
    }
    struct oribi_slice proto = last_element(value_of(oribi_head_field(req->head, ORIBI_FIELD_X_FORWARDED_PROTO)));
    if (oribi_slice_equal_fold(proto, ORIBI_SLICE("https")))
        req->scheme = ORIBI_SLICE("https");
    else if (oribi_slice_equal_fold(proto, ORIBI_SLICE("http")))
        req->scheme = ORIBI_SLICE("http");
}

void oribi__peer_of(struct oribi__exchange *exchange)
{
    struct oribi_req *req = &exchange->req;
    const struct oribi_conn *c = exchange->base.conn;
    const struct oribi_trust *trust = &exchange->worker->trust;
    req->remote_addr = oribi_slice(c->addr, c->addr_len);
    req->remote_port = oribi_slice(c->port, c->port_len);
    req->scheme = c->proxy_tls ? ORIBI_SLICE("https") : ORIBI_SLICE("http");
    if (trust->count == 0 && !trust->unix_peers)
        return;
    if (oribi_trust_has(trust, req->remote_addr))
        take_forwarded(trust, req);
}
