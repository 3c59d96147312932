/* Result codes shared by every module: 0 or a positive count is success, everything else is one of these. */
#ifndef ORIBI_BASE_ERROR_H
#define ORIBI_BASE_ERROR_H

enum oribi_error {
    ORIBI_OK = 0,
    ORIBI_AGAIN = -1, /* not finished: call again with more bytes, or when the descriptor is ready */

    /* The peer made a mistake: oribi_error_status() gives the answer's status, and the connection closes after it. */
    ORIBI_EBAD = -2,      /* 400: not the grammar of a request */
    ORIBI_ETARGET = -3,   /* 414: request target longer than target_bytes_max */
    ORIBI_EHEAD = -4,     /* 431: head_bytes_max or fields_max exceeded */
    ORIBI_EBODY = -5,     /* 413: body longer than body_bytes_max */
    ORIBI_EEXPECT = -6,   /* 417: an Expect other than 100-continue */
    ORIBI_ECODING = -7,   /* 501: well-formed but unknown transfer coding */
    ORIBI_EMETHOD = -8,   /* 501: CONNECT */
    ORIBI_EVERSION = -9,  /* 505: HTTP major version other than 1 */
    ORIBI_ETIMEOUT = -10, /* 408: head or body begun and not finished in time */

    /* A request body or an answer cannot be stored. */
    ORIBI_EFULL = -18,  /* 507: the disk is full, or a quota or file size limit reached */
    ORIBI_ESTORE = -19, /* 503: a file cannot be made or written for another reason */

    /* The application made a mistake: answered with 500 if no byte was sent yet. */
    ORIBI_EAPP = -11,

    /* A system call failed, or a maximum was reached. */
    ORIBI_ECLOSED = -12, /* the peer is gone */
    ORIBI_ENOMEM = -13,
    ORIBI_ELIMIT = -14, /* one of our own maxima */
    ORIBI_ESYS = -15,   /* a system call failed; oribi_os_error_text() has the reason */
    ORIBI_EINVAL = -16, /* an option or argument of the operator is wrong; a text comes with it */
    /* the descriptor is closed, or is another file: the application has closed a descriptor of ours */
    ORIBI_ELOST = -17,
};

enum { ORIBI_ERROR_TEXT_CAP = 256 }; /* room for the longest line that says what is wrong */

/* The HTTP status that answers `error`, or 0: the connection closes without an answer. */
int oribi_error_status(int error);

/* A few lower-case words for log lines. Never NULL; static storage. */
const char *oribi_error_text(int error);

#endif
