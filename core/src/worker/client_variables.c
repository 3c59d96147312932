/* Variables of CGI about a request's client, as its frontend describes it: the same for every language. */
#include "oribi/worker/req.h"

#include <string.h>

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
    if (!client)
        return 0;
    if (client->protocol != 11)
        put(variables, &count, "SERVER_PROTOCOL",
            client->protocol == 20 ? ORIBI_SLICE("HTTP/2") : ORIBI_SLICE("HTTP/1.0"));
    if (!client->tls)
        return count;
    put(variables, &count, "HTTPS", ORIBI_SLICE("on"));
    put(variables, &count, "SSL_PROTOCOL", client->tls_version);
    put(variables, &count, "SSL_CIPHER", client->cipher);
    put(variables, &count, "SSL_TLS_SNI", client->sni);
    put(variables, &count, "SSL_CLIENT_VERIFY", client->verify);
    put(variables, &count, "SSL_CLIENT_S_DN", client->subject);
    put(variables, &count, "SSL_CLIENT_I_DN", client->issuer);
    put(variables, &count, "SSL_CLIENT_M_SERIAL", client->serial);
    put(variables, &count, "SSL_CLIENT_V_START", client->begins);
    put(variables, &count, "SSL_CLIENT_V_END", client->ends);
    put(variables, &count, "SSL_CLIENT_CERT", client->pem);
    return count;
}
