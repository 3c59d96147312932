/* Interface between the driver and its scenarios (bank.c, posts.c, hello.c).
 *
 * A scenario is what one simulated browser does from beginning to end: requests that follow from each other. The
 * driver says when one begins (closed loop: at the end of the one before; open loop: when it is due, whatever the
 * server does), sends, receives and keeps the books of time. */
#ifndef DRIVER_DRIVER_H
#define DRIVER_DRIVER_H

#include "http.h"
#include <stdint.h>

enum { COOKIES_MAX = 4, COOKIE_BYTES = 2048, OWNERS_MAX = 1024 };

struct settings {
    const char *address;
    const char *scenario;
    const char *data;       /* bank: users.tsv */
    const char *public_dir; /* bank: the assets; NULL: none are asked for */
    int workers;
    double seconds;
    double warm_s;
    double rate; /* scenarios a second, 0: closed loop */
    uint64_t seed;
};

/* A browser's cookies, "name=value" each. */
struct jar {
    char cookies[COOKIES_MAX][COOKIE_BYTES];
};

struct driver;

struct scenario {
    void *self;
    /* Begins; ends by scenario_end(). */
    void (*begin)(void *self, int worker);
    void (*done)(void *self, int worker, int tag, const struct http_response *response);
    /* After the last scenario: checks what can be checked, prints members of the result's object, each with a comma
     * before it. Returns NULL, or why the run is not valid. May use driver_fetch(). */
    const char *(*finish)(void *self);
};

struct scenario bank_create(struct driver *driver, const struct settings *settings);
struct scenario posts_create(struct driver *driver, const struct settings *settings);
struct scenario hello_create(struct driver *driver, const struct settings *settings);

enum kind { KIND_PAGE, KIND_ASSET };

/* Sends a request of a worker's; the answer comes to the scenario's done(). */
void driver_send(struct driver *driver, int worker, int tag, enum kind kind, const char *bytes, size_t len);

/* Enters an error; the first few are shown on stderr. */
void driver_error(struct driver *driver, const char *kind, const char *what);

/* The worker's scenario is over. After a failed one the worker rests for a moment, so that a dead server is not
 * hammered. */
void driver_end(struct driver *driver, int worker, bool good);

/* Fetches a path outside the load, after it. Gives the body, NUL-terminated, or NULL. */
char *driver_fetch(struct driver *driver, const char *path, size_t *len, double *seconds);

/* Uniform in [0, 1). */
double driver_draw(struct driver *driver);

/* Wall clock in seconds. */
double wall_s(void);

void jar_clear(struct jar *jar);
void jar_take(struct jar *jar, const struct http_response *response);
/* Writes "Cookie: ...\r\n", or nothing. Returns the length. */
size_t jar_field(const struct jar *jar, char *text, size_t text_bytes);

/* The path of a Location, absolute or not, without its query. Returns false when there is none. */
bool location_path(const struct http_response *response, char *path, size_t path_bytes);

#endif
