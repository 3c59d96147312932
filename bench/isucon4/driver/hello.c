/* The smallest scenario: GET /, and the answer is 200 with these 13 bytes. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>

static const char REQUEST[] =
    "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: hello driver\r\nAccept: text/plain\r\n\r\n";
static const char GREETING[] = "Hello, World!";

static void begin(void *self, int index)
{
    driver_send(self, index, 0, KIND_PAGE, REQUEST, sizeof(REQUEST) - 1);
}

static void done(void *self, int index, int tag, const struct http_response *response)
{
    (void)tag;
    const char *kind = !response                                                ? "cut"
                       : response->status != 200                                ? "status"
                       : response->body_len != sizeof(GREETING) - 1             ? "page"
                       : memcmp(response->body, GREETING, sizeof(GREETING) - 1) ? "page"
                                                                                : NULL;
    if (kind)
        driver_error(self, kind, "/");
    driver_end(self, index, !kind);
}

static const char *finish(void *self)
{
    (void)self;
    return NULL;
}

struct scenario hello_create(struct driver *driver, const struct settings *settings)
{
    (void)settings;
    return (struct scenario){.self = driver, .begin = begin, .done = done, .finish = finish};
}
