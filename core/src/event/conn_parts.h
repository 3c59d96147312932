/* What the parts of the connection's input side ask of one another; private to conn.c, conn_buf.c, conn_body.c and
 * conn_move.c. */
#ifndef ORIBI_EVENT_CONN_PARTS_H
#define ORIBI_EVENT_CONN_PARTS_H

#include "oribi/event/conn.h"

enum { ORIBI__FULL_RETRY_AFTER_S = 5 }; /* what others keep goes as their requests are read or they leave */

/* conn.c: the request is whole, and goes to the run queue. */
void oribi__conn_complete(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* conn_buf.c. False: out of memory, nothing has changed. */
bool oribi__conn_lend_buf(struct oribi_reactor *reactor, struct oribi_conn *conn);
bool oribi__conn_grow_buf(struct oribi_reactor *reactor, struct oribi_conn *conn, size_t cap);
bool oribi__conn_lend_exchange(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* Nothing where there is no buffer. */
void oribi__conn_give_buf_back(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* conn_body.c. The head is read, and `rest` bytes behind it are in the buffer: fewer than the announced length, or
 * chunks. The connection may be closed or refused afterwards, as after all of these. */
void oribi__conn_body_begin(struct oribi_reactor *reactor, struct oribi_conn *conn, size_t rest);
void oribi__conn_chunked_begin(struct oribi_reactor *reactor, struct oribi_conn *conn, size_t rest);

/* Where the next read goes, straight into the body or into the scratch buffer, and how much. */
char *oribi__conn_body_room(struct oribi_reactor *reactor, struct oribi_exchange *exchange, size_t *room);

/* n bytes have come to p, which is what oribi__conn_body_room() gave. */
void oribi__conn_body_input(struct oribi_reactor *reactor, struct oribi_conn *conn, char *p, size_t n);

/* Books what the body takes now, of the worker's budget. */
void oribi__conn_charge_body(struct oribi_reactor *reactor, struct oribi_exchange *exchange);

/* The whole body in a file, from a sibling. Takes body_fd. */
void oribi__conn_body_inject(struct oribi_reactor *reactor, struct oribi_conn *conn, int body_fd, int64_t body_len);

#endif
