/* Result codes as HTTP statuses and as words: two small tables, so that no module spells either itself. */
#include "oribi/base/error.h"

int oribi_error_status(int error)
{
    switch (error) {
    case ORIBI_EBAD:
        return 400;
    case ORIBI_ETIMEOUT:
        return 408;
    case ORIBI_EBODY:
        return 413;
    case ORIBI_ETARGET:
        return 414;
    case ORIBI_EEXPECT:
        return 417;
    case ORIBI_EHEAD:
        return 431;
    case ORIBI_EAPP:
        return 500;
    case ORIBI_ECODING:
    case ORIBI_EMETHOD:
        return 501;
    case ORIBI_EVERSION:
        return 505;
    case ORIBI_EFULL:
        return 507;
    case ORIBI_ESTORE:
        return 503;
    default:
        return 0;
    }
}

const char *oribi_error_text(int error)
{
    switch (error) {
    case ORIBI_OK:
        return "no error";
    case ORIBI_AGAIN:
        return "not finished";
    case ORIBI_EBAD:
        return "malformed request";
    case ORIBI_ETARGET:
        return "request target too long";
    case ORIBI_EHEAD:
        return "request head too large";
    case ORIBI_EBODY:
        return "request body too large";
    case ORIBI_EEXPECT:
        return "unknown expectation";
    case ORIBI_ECODING:
        return "unknown transfer coding";
    case ORIBI_EMETHOD:
        return "method not supported";
    case ORIBI_EVERSION:
        return "http version not supported";
    case ORIBI_ETIMEOUT:
        return "request not finished in time";
    case ORIBI_EAPP:
        return "application error";
    case ORIBI_ECLOSED:
        return "connection closed by the peer";
    case ORIBI_ENOMEM:
        return "out of memory";
    case ORIBI_ELIMIT:
        return "limit reached";
    case ORIBI_ESYS:
        return "system call failed";
    case ORIBI_EINVAL:
        return "invalid argument";
    case ORIBI_EFULL:
        return "no room on the disk";
    case ORIBI_ESTORE:
        return "no file to store it in";
    case ORIBI_ELOST:
        return "descriptor closed by the application";
    default:
        return "unknown error";
    }
}
