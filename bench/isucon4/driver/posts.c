/* The load of the scaffold application: of ten scenarios four look at the index, five at one post, one writes: the
 * form, whose token is read as a browser would, the post, and the page behind the redirection. Seeded posts say
 * "body of post N", and are checked for it. */
#define _GNU_SOURCE
#include "driver.h"
#include "page.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDED = 200, REQUEST_BYTES = 8192, TOKEN_BYTES = 512 };
enum { TAG_INDEX, TAG_SHOW, TAG_NEW, TAG_CREATE, TAG_CREATED };

struct worker {
    struct jar jar;
    int post;
    long number;
};

struct posts {
    struct driver *driver;
    struct worker *workers;
    long written;
};

static void ask(struct posts *posts, int index, int tag, const char *method, const char *path, const char *body)
{
    struct worker *w = &posts->workers[index];
    char text[REQUEST_BYTES];
    char cookies[REQUEST_BYTES / 2];
    jar_field(&w->jar, cookies, sizeof(cookies));
    int n = snprintf(text, sizeof(text),
                     "%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: posts driver\r\nAccept: text/html\r\n%s", method,
                     path, cookies);
    if (body)
        n += snprintf(text + n, sizeof(text) - (size_t)n,
                      "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
                      body);
    else
        n += snprintf(text + n, sizeof(text) - (size_t)n, "\r\n");
    driver_send(posts->driver, index, tag, KIND_PAGE, text, (size_t)n);
}

static void begin(void *self, int index)
{
    struct posts *posts = self;
    struct worker *w = &posts->workers[index];
    double dice = driver_draw(posts->driver);
    char path[64];
    if (dice < 0.4) {
        ask(posts, index, TAG_INDEX, "GET", "/posts", NULL);
        return;
    }
    if (dice < 0.9) {
        w->post = 1 + (int)(driver_draw(posts->driver) * SEEDED);
        snprintf(path, sizeof(path), "/posts/%d", w->post);
        ask(posts, index, TAG_SHOW, "GET", path, NULL);
        return;
    }
    jar_clear(&w->jar);
    ask(posts, index, TAG_NEW, "GET", "/posts/new", NULL);
}

static void fail(struct posts *posts, int index, const char *kind, const char *what)
{
    driver_error(posts->driver, kind, what);
    driver_end(posts->driver, index, false);
}

static bool contains(const struct http_response *response, const char *text)
{
    return memmem(response->body, response->body_len, text, strlen(text)) != NULL;
}

static void encode(char *to, size_t to_bytes, const char *from)
{
    size_t n = 0;
    for (; *from && n + 4 < to_bytes; from++) {
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.", *from))
            to[n++] = *from;
        else
            n += (size_t)snprintf(to + n, to_bytes - n, "%%%02X", (unsigned char)*from);
    }
    to[n] = '\0';
}

static void form_came(struct posts *posts, int index, const struct http_response *response)
{
    struct worker *w = &posts->workers[index];
    char token[TOKEN_BYTES];
    char encoded[TOKEN_BYTES * 3];
    char body[TOKEN_BYTES * 4];
    if (page_value(response->body, response->body_len, "input", "name", "authenticity_token", "value", token,
                   sizeof(token)) <= 0) {
        fail(posts, index, "page", "the form has no token");
        return;
    }
    encode(encoded, sizeof(encoded), token);
    w->number = ++posts->written;
    snprintf(body, sizeof(body),
             "authenticity_token=%s&post%%5Bnick%%5D=driver%d&post%%5Bbody%%5D=words+number+%ld+of+the+driver", encoded,
             index, w->number);
    ask(posts, index, TAG_CREATE, "POST", "/posts", body);
}

static void create_came(struct posts *posts, int index, const struct http_response *response)
{
    char path[256];
    if (response->status != 302 && response->status != 303)
        fail(posts, index, "status", "the post was not redirected");
    else if (!location_path(response, path, sizeof(path)) || strncmp(path, "/posts/", 7) != 0)
        fail(posts, index, "page", "the post leads elsewhere");
    else
        ask(posts, index, TAG_CREATED, "GET", path, NULL);
}

static void check_page(struct posts *posts, int index, int tag, const struct http_response *response)
{
    struct worker *w = &posts->workers[index];
    char text[128];
    if (tag == TAG_INDEX)
        snprintf(text, sizeof(text), "<h1>Posts</h1>");
    else if (tag == TAG_SHOW)
        snprintf(text, sizeof(text), "body of post %d\n", w->post);
    else
        snprintf(text, sizeof(text), "words number %ld of the driver", w->number);
    if (contains(response, text))
        driver_end(posts->driver, index, true);
    else
        fail(posts, index, "page", text);
}

static void done(void *self, int index, int tag, const struct http_response *response)
{
    struct posts *posts = self;
    if (!response) {
        fail(posts, index, "cut", "no answer");
        return;
    }
    jar_take(&posts->workers[index].jar, response);
    if (tag == TAG_CREATE)
        create_came(posts, index, response);
    else if (response->status != 200)
        fail(posts, index, "status", tag == TAG_INDEX ? "/posts" : tag == TAG_NEW ? "/posts/new" : "/posts/:id");
    else if (tag == TAG_NEW)
        form_came(posts, index, response);
    else
        check_page(posts, index, tag, response);
}

static const char *finish(void *self)
{
    struct posts *posts = self;
    printf(",\"written\":%ld", posts->written);
    return NULL;
}

struct scenario posts_create(struct driver *driver, const struct settings *settings)
{
    struct posts *posts = calloc(1, sizeof(*posts));
    if (!posts || !(posts->workers = calloc((size_t)settings->workers, sizeof(*posts->workers))))
        exit(2);
    posts->driver = driver;
    return (struct scenario){.self = posts, .begin = begin, .done = done, .finish = finish};
}
