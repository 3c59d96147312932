/* Counters of a frontend (worker/frontend_slot.h). */
#ifndef ORIBI_FRONTEND_COUNT_H
#define ORIBI_FRONTEND_COUNT_H

#include "frontend/tls.h"
#include "oribi/base/buf.h"
#include "oribi/http/status.h"

#include <stdbool.h>

struct oribi__frontend;
struct oribi__upstream_request;

void oribi__count_init(struct oribi__frontend *frontend);
void oribi__count_turn(struct oribi__frontend *frontend); /* what there is now */
void oribi__count_handshake(struct oribi__frontend *frontend, const struct oribi_tls_info *info);

/* A head has come, which is a request's. Notes the method in the call. */
void oribi__count_request(struct oribi__upstream_request *call, struct oribi_slice method, bool h2);

/* The local content has answered; status 0: its answer was cut. */
void oribi__count_local(const struct oribi__upstream_request *call, int status);
void oribi__count_refusal(struct oribi__frontend *frontend, int status, enum oribi_refusal refusal);
void oribi__count_failed(const struct oribi__upstream_request *call, int status, enum oribi_refusal refusal);

#endif
