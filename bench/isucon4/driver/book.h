/* The driver's records of users and addresses: every attempt is entered here, and the server's report is compared with
 * them at the end. */
#ifndef DRIVER_BOOK_H
#define DRIVER_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOCK_THRESHOLD = 3, BAN_THRESHOLD = 10, LIST_ADDRESSES = 127 };

struct address {
    char text[16];
    uint32_t failures;
    bool unsure; /* an attempt was cut off: nobody knows whether it counted */
    bool listed; /* in the report */
};

struct user {
    const char *login;
    const char *password;
    const struct address *last; /* where the last success of this run came from, or NULL */
    double last_from_s;         /* wall clock around that success */
    double last_to_s;
    uint32_t failures;
    bool busy;
    bool unsure;
    bool listed;
};

struct book;

/* Reads users.tsv. Gives the book, which lives as long as the process; ends the process when the file is none. */
struct book *book_read(const char *path);

size_t book_users(const struct book *book);
struct user *book_user(struct book *book, size_t index);

/* LIST_ADDRESSES addresses 127.1.x.y (127.2 and further when those are used up) that no one had before. */
struct address *book_new_list(struct book *book);

/* Lays the report {"banned_ips": [...], "locked_users": [...]} against the book. Returns NULL when they agree, or
 * what is wrong. */
const char *book_check_report(struct book *book, const char *json, size_t len);

size_t book_banned(const struct book *book);
size_t book_locked(const struct book *book);

#endif
