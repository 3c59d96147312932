/* Frames that bring no request further, and how many of them a client may send, RFC 9113 10.5.
 *
 * Each frame of an answer pays for frames that it is a reason for (h2_private.h); what is not paid for is counted
 * against a rate. Too many end the connection of a client. A trusted one is a balancer, and has other clients on its
 * connection: it has to wait until one frame more is due, and its resets are not counted. What they leave to run on is
 * bounded by left_max. */
#include "frontend/h2_private.h"

bool oribi__h2_rate_take(struct h2_rate *rate, uint32_t max, uint32_t per_s, int64_t now_ms)
{
    int64_t full = (int64_t)max * 1000;
    int64_t passed = now_ms - rate->at_ms;
    if (passed > 0) {
        rate->level = passed >= full / (per_s ? per_s : 1) + 1 && per_s ? full : rate->level + passed * per_s;
        rate->at_ms = now_ms;
    }
    if (rate->level > full)
        rate->level = full;
    if (rate->level < 1000)
        return false;
    rate->level -= 1000;
    return true;
}

/* One read may bring many such frames: they are taken all, and the wait is that for one. */
static void count(struct oribi_h2 *h2, struct h2_rate *rate, const char *reason)
{
    uint32_t per_s = h2->limits->frames_per_s;
    if (oribi__h2_rate_take(rate, h2->limits->frames_max, per_s, h2->now_ms))
        return;
    if (!h2->limits->trusted)
        oribi__h2_fail(h2, ORIBI_H2_ENHANCE_YOUR_CALM, reason);
    else
        h2->slow_until_ms = h2->now_ms + (per_s ? (1000 + per_s - 1) / per_s : 1000);
}

void oribi__h2_count_update(struct oribi_h2 *h2)
{
    if (h2->free_updates > 0)
        h2->free_updates--;
    else
        count(h2, &h2->updates, "too many WINDOW_UPDATE");
}

void oribi__h2_count_frame(struct oribi_h2 *h2)
{
    if (h2->free_frames > 0)
        h2->free_frames--;
    else
        count(h2, &h2->frames, "too many frames that carry nothing");
}

bool oribi__h2_count_reset(struct oribi_h2 *h2, const char *reason)
{
    const struct oribi_h2_limits *limits = h2->limits;
    if (limits->trusted || oribi__h2_rate_take(&h2->resets, limits->resets_max, limits->resets_per_s, h2->now_ms))
        return true;
    oribi__h2_fail(h2, ORIBI_H2_ENHANCE_YOUR_CALM, reason);
    return false;
}
