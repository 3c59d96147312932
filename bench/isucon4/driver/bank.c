/* The contest's load. One scenario is one login: the form and its four assets, the attempt, the page behind the
 * redirection and its assets. Everything is checked; only what passes gives points. */
#define _GNU_SOURCE
#include "driver.h"
#include "book.h"
#include "page.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ASSETS = 4, WINDOW = 100, LOGINS_PER_LOOK = 20, PAGE_POINTS = 100, ASSET_POINTS = 2, REQUEST_BYTES = 8192 };
enum { TAG_FORM, TAG_POST, TAG_RESULT, TAG_ASSET };
static const double SUCCESS_SHARE = 0.6;
static const double TIME_SLACK_S = 2;

static const char *const ASSET_NAMES[ASSETS] = {"/stylesheets/frame.css", "/stylesheets/theme.css",
                                                "/stylesheets/bank.css", "/images/bank.png"};

struct asset {
    char *bytes;
    size_t len;
};

struct worker {
    struct jar jar;
    struct address *list;
    size_t at;
    size_t window;
    long logins;
    long points;
    struct user *user;
    struct address *address;
    const char *expected; /* the notice; NULL: the page */
    bool right;
    bool posted; /* the attempt is out and its answer has not come */
    int tag;     /* the page that the assets under way belong to */
    int assets_left;
    double from_s;
};

struct bank {
    struct driver *driver;
    const struct settings *settings;
    struct book *book;
    struct asset assets[ASSETS];
    struct worker *workers;
    long perfect;
    long refused; /* of them: expected to be refused */
};

static void load_assets(struct bank *bank)
{
    for (int i = 0; i < ASSETS; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s%s", bank->settings->public_dir, ASSET_NAMES[i]);
        FILE *file = fopen(path, "rb");
        struct asset *asset = &bank->assets[i];
        if (!file || fseek(file, 0, SEEK_END) != 0) {
            perror(path);
            exit(2);
        }
        asset->len = (size_t)ftell(file);
        rewind(file);
        asset->bytes = malloc(asset->len + 1);
        if (!asset->bytes || fread(asset->bytes, 1, asset->len, file) != asset->len)
            exit(2);
        fclose(file);
    }
}

static size_t draw_below(struct bank *bank, size_t limit)
{
    return (size_t)(driver_draw(bank->driver) * (double)limit);
}

/* Other users when more than a fifth is locked, other addresses when half is banned. */
static void look_around(struct bank *bank, struct worker *w)
{
    size_t locked = 0;
    size_t banned = 0;
    for (size_t i = 0; i < WINDOW; i++)
        locked += book_user(bank->book, w->window + i)->failures >= LOCK_THRESHOLD;
    for (size_t i = 0; w->list && i < LIST_ADDRESSES; i++)
        banned += w->list[i].failures >= BAN_THRESHOLD;
    if (locked > WINDOW / 5)
        w->window = draw_below(bank, book_users(bank->book));
    if (!w->list || banned * 2 >= LIST_ADDRESSES)
        w->list = book_new_list(bank->book);
}

static bool choose(struct bank *bank, struct worker *w)
{
    for (int tries = 0; tries < WINDOW * 4; tries++) {
        struct user *user = book_user(bank->book, w->window + draw_below(bank, WINDOW));
        w->at = (w->at + 1 + draw_below(bank, LIST_ADDRESSES - 1)) % LIST_ADDRESSES;
        struct address *address = &w->list[w->at];
        if (user->busy || user->unsure || address->unsure)
            continue;
        user->busy = true;
        w->user = user;
        w->address = address;
        return true;
    }
    return false;
}

static void decide(struct bank *bank, struct worker *w)
{
    unsigned octet = (unsigned)strtoul(strrchr(w->address->text, '.') + 1, NULL, 10);
    bool banned = w->address->failures >= BAN_THRESHOLD;
    bool locked = w->user->failures >= LOCK_THRESHOLD;
    w->right = banned || locked || (octet % 3 == 0 && driver_draw(bank->driver) < SUCCESS_SHARE);
    w->expected = banned     ? "You're banned."
                  : locked   ? "This account is locked."
                  : w->right ? NULL
                             : "Wrong username or password";
}

static void ask(struct bank *bank, int index, int tag, const char *method, const char *path, const char *body)
{
    struct worker *w = &bank->workers[index];
    char text[REQUEST_BYTES];
    char cookies[REQUEST_BYTES / 2];
    jar_field(&w->jar, cookies, sizeof(cookies));
    int n = snprintf(text, sizeof(text),
                     "%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bank driver\r\nX-Forwarded-For: %s\r\n%s",
                     method, path, w->address->text, cookies);
    if (body)
        n += snprintf(text + n, sizeof(text) - (size_t)n,
                      "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
                      body);
    else
        n += snprintf(text + n, sizeof(text) - (size_t)n, "\r\n");
    driver_send(bank->driver, index, tag, tag >= TAG_ASSET ? KIND_ASSET : KIND_PAGE, text, (size_t)n);
}

static void begin(void *self, int index)
{
    struct bank *bank = self;
    struct worker *w = &bank->workers[index];
    if (w->logins++ % LOGINS_PER_LOOK == 0)
        look_around(bank, w);
    w->posted = false;
    w->user = NULL;
    jar_clear(&w->jar);
    if (!choose(bank, w)) {
        w->logins = 0; /* nobody here can be used any more */
        w->window = draw_below(bank, book_users(bank->book));
        driver_error(bank->driver, "driver", "no user is free");
        driver_end(bank->driver, index, false);
        return;
    }
    decide(bank, w);
    ask(bank, index, TAG_FORM, "GET", "/", NULL);
}

static void over(struct bank *bank, int index, bool good)
{
    struct worker *w = &bank->workers[index];
    if (w->posted) {
        w->user->unsure = true;
        w->address->unsure = true;
    }
    bank->perfect += good;
    bank->refused += good && w->expected;
    w->user->busy = false;
    driver_end(bank->driver, index, good);
}

static void fail(struct bank *bank, int index, const char *kind, const char *what)
{
    driver_error(bank->driver, kind, what);
    over(bank, index, false);
}

static void post(struct bank *bank, int index)
{
    struct worker *w = &bank->workers[index];
    char body[512];
    snprintf(body, sizeof(body), "login=%s&password=%s%s", w->user->login, w->user->password, w->right ? "" : "x");
    w->posted = true;
    w->from_s = wall_s();
    ask(bank, index, TAG_POST, "POST", "/login", body);
}

static void page_done(struct bank *bank, int index, int tag)
{
    if (tag == TAG_FORM)
        post(bank, index);
    else
        over(bank, index, true);
}

static void ask_assets(struct bank *bank, int index, int tag)
{
    struct worker *w = &bank->workers[index];
    w->points += PAGE_POINTS;
    w->tag = tag;
    if (!bank->settings->public_dir) {
        page_done(bank, index, tag);
        return;
    }
    w->assets_left = ASSETS;
    for (int i = 0; i < ASSETS; i++)
        ask(bank, index, TAG_ASSET + i, "GET", ASSET_NAMES[i], NULL);
}

static void asset_came(struct bank *bank, int index, int i, const struct http_response *response)
{
    struct worker *w = &bank->workers[index];
    const struct asset *asset = &bank->assets[i];
    if (response->status != 200 || response->body_len != asset->len ||
        memcmp(response->body, asset->bytes, asset->len) != 0) {
        fail(bank, index, "asset", ASSET_NAMES[i]);
        return;
    }
    w->points += ASSET_POINTS;
    if (--w->assets_left == 0)
        page_done(bank, index, w->tag);
}

static void form_came(struct bank *bank, int index, const struct http_response *response)
{
    const char *html = response->body;
    size_t len = response->body_len;
    if (!page_has(html, len, "input", "name", "login") || !page_has(html, len, "input", "name", "password") ||
        !page_has(html, len, "button", "type", "submit"))
        fail(bank, index, "page", "the form lacks a field");
    else
        ask_assets(bank, index, TAG_FORM);
}

/* The attempt is entered as the rules say it went; a server that says otherwise fails here, and at the report. */
static void enter(struct worker *w)
{
    w->posted = false;
    if (!w->expected) {
        w->user->failures = 0;
        w->address->failures = 0;
        return;
    }
    w->user->failures++;
    w->address->failures++;
}

static void post_came(struct bank *bank, int index, const struct http_response *response)
{
    struct worker *w = &bank->workers[index];
    char path[256];
    enter(w);
    if (response->status != 302 && response->status != 303)
        fail(bank, index, "status", "the attempt was not redirected");
    else if (!location_path(response, path, sizeof(path)) || strcmp(path, w->expected ? "/" : "/mypage") != 0)
        fail(bank, index, "page", w->expected ? w->expected : "the right password was refused");
    else
        ask(bank, index, TAG_RESULT, "GET", path, NULL);
}

static bool time_is_right(const struct worker *w, const char *text)
{
    struct tm tm = {0};
    const char *end = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);
    if (!end || *end)
        return false;
    double then = (double)timegm(&tm);
    return !w->user->last || (then >= w->user->last_from_s - TIME_SLACK_S && then <= w->user->last_to_s + TIME_SLACK_S);
}

static void result_came(struct bank *bank, int index, const struct http_response *response)
{
    struct worker *w = &bank->workers[index];
    char text[256];
    char at[256];
    if (w->expected) {
        if (page_text(response->body, response->body_len, "notice-message", text, sizeof(text)) < 0 ||
            strcmp(text, w->expected) != 0)
            fail(bank, index, "page", w->expected);
        else
            ask_assets(bank, index, TAG_RESULT);
        return;
    }
    bool there = page_text(response->body, response->body_len, "last-logined-ip", text, sizeof(text)) > 0 &&
                 page_text(response->body, response->body_len, "last-logined-at", at, sizeof(at)) > 0;
    bool right = there && time_is_right(w, at) && (!w->user->last || strcmp(w->user->last->text, text) == 0);
    w->user->last = w->address;
    w->user->last_from_s = w->from_s;
    w->user->last_to_s = wall_s();
    if (right)
        ask_assets(bank, index, TAG_RESULT);
    else
        fail(bank, index, "page", "the last login is not the one before");
}

static void done(void *self, int index, int tag, const struct http_response *response)
{
    struct bank *bank = self;
    if (!response) {
        fail(bank, index, "cut", tag == TAG_POST ? "no answer to an attempt" : "no answer");
        return;
    }
    jar_take(&bank->workers[index].jar, response);
    if (tag >= TAG_ASSET)
        asset_came(bank, index, tag - TAG_ASSET, response);
    else if (tag == TAG_POST)
        post_came(bank, index, response);
    else if (response->status != 200)
        fail(bank, index, "status", tag == TAG_FORM ? "the form" : "the page behind the attempt");
    else if (tag == TAG_FORM)
        form_came(bank, index, response);
    else
        result_came(bank, index, response);
}

static const char *finish(void *self)
{
    struct bank *bank = self;
    long score = 0;
    for (int i = 0; i < bank->settings->workers; i++)
        score += (bank->workers[i].points + 99) / 100;
    size_t len;
    double seconds;
    char *json = driver_fetch(bank->driver, "/report", &len, &seconds);
    const char *reason = json ? book_check_report(bank->book, json, len) : "the report was not answered";
    printf(",\"score\":%ld,\"logins\":%ld,\"refusals\":%ld,\"banned\":%zu,\"locked\":%zu,\"report_seconds\":%.3f",
           score, bank->perfect, bank->refused, book_banned(bank->book), book_locked(bank->book), seconds);
    free(json);
    return reason;
}

struct scenario bank_create(struct driver *driver, const struct settings *settings)
{
    struct bank *bank = calloc(1, sizeof(*bank));
    if (!bank || !(bank->workers = calloc((size_t)settings->workers, sizeof(*bank->workers))))
        exit(2);
    bank->driver = driver;
    bank->settings = settings;
    bank->book = book_read(settings->data ? settings->data : "users.tsv");
    if (settings->public_dir)
        load_assets(bank);
    for (int i = 0; i < settings->workers; i++)
        bank->workers[i].window = draw_below(bank, book_users(bank->book));
    return (struct scenario){.self = bank, .begin = begin, .done = done, .finish = finish};
}
