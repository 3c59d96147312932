/* A request for the bindings; see req.h: its body that was taken apart (event/body.h), and the variables of CGI about
 * its client. */
#include "oribi/worker/req.h"
#include "worker/exchange.h"
#include "worker/placement/ownership.h"

#include "oribi/base/error.h"

#include <string.h>

/* --- the body: only the thread of the call touches it, so that the reactor is needed for the books alone --- */

bool oribi_req_piece(const struct oribi_req *req, uint32_t index, struct oribi_body_piece *piece)
{
    const struct oribi_conn_request *base = &oribi__exchange_of(req)->base;
    return base->parts && oribi_parts_piece(base->parts, &base->body, index, piece);
}

int oribi_req_part_file(const struct oribi_req *req, uint32_t index)
{
    return oribi_parts_give(oribi__exchange_of(req)->base.parts, index);
}

bool oribi_req_parted_by(const struct oribi_req *req, const struct oribi_form_data *form)
{
    const struct oribi_conn_request *base = &oribi__exchange_of(req)->base;
    return base->parts && oribi_form_data_same(&base->parts->form, form);
}

int oribi_req_copy_body(const struct oribi_req *req, int *fd)
{
    const struct oribi_conn_request *base = &oribi__exchange_of(req)->base;
    return oribi_parts_join(base->parts, &base->body, fd);
}

static int join_in_child(struct oribi_req *req, const struct oribi_conn_request *base)
{
    int error = oribi_parts_join(base->parts, &base->body, &req->body_fd);
    req->parted = error < 0;
    return error;
}

/* In a child of the application's the reactor is not ours, and nothing is booked. */
int oribi_req_join(struct oribi_req *req)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    struct oribi_conn_request *base = &exchange->base;
    struct oribi_worker *w = exchange->worker;
    int fd = -1;
    if (!req->parted)
        return 0;
    if (oribi__call_is_abandoned(exchange))
        return join_in_child(req, base);
    oribi__enter(w);
    bool may = oribi_conn_may_join(&w->reactor, base->conn);
    oribi__leave(w);
    if (!may)
        return ORIBI_ELIMIT;
    int error = oribi_parts_join(base->parts, &base->body, &fd);
    oribi__enter(w);
    oribi_conn_joined(&w->reactor, base->conn, fd);
    oribi__leave(w);
    if (error == 0) {
        req->body_fd = fd;
        req->parted = false;
    }
    return error;
}

/* --- variables of CGI about a client's certificate, as its frontend describes it --- */

static void put(struct oribi_variable *variables, uint32_t *count, const char *name, struct oribi_slice value)
{
    if (value.n)
        variables[(*count)++] = (struct oribi_variable){name, value};
}

uint32_t oribi_req_client_variables(const struct oribi_req *req,
                                    struct oribi_variable variables[ORIBI_CLIENT_VARIABLES_MAX])
{
    const struct oribi_channel_head *client = req->client;
    uint32_t count = 0;
    if (!oribi_req_certificate_asked(req))
        return 0;
    put(variables, &count, "SSL_CLIENT_VERIFY", client->verify);
    put(variables, &count, "SSL_CLIENT_S_DN", client->subject);
    put(variables, &count, "SSL_CLIENT_I_DN", client->issuer);
    put(variables, &count, "SSL_CLIENT_M_SERIAL", client->serial);
    put(variables, &count, "SSL_CLIENT_V_START", client->begins);
    put(variables, &count, "SSL_CLIENT_V_END", client->ends);
    put(variables, &count, "SSL_CLIENT_CERT", client->pem);
    return count;
}
