/* The share of its usual weight that a load balancer should give to a server: the rule of option `agent` (agent.h),
 * which the simulation of placement plays too (bench/simulation/rules.h). Pure. */
#ifndef ORIBI_POLICY_AGENT_WEIGHT_H
#define ORIBI_POLICY_AGENT_WEIGHT_H

#include <stdint.h>

enum {
    ORIBI__AGENT_WEIGHT_MIN = 5, /* per cent; a server that serves always gets something, else it could not recover */
};

/* Per cent of the usual weight, ORIBI__AGENT_WEIGHT_MIN to 100. utilisation: time in calls of the time there was for
 * calls, 0 to 1. wait_share: what requests waited of what they waited and ran, 0 to 1. */
static inline uint32_t oribi__agent_weight(double utilisation, double wait_share)
{
    double weight = 100 * (1 - utilisation * utilisation / 2) * (1 - wait_share / 2);
    return weight < ORIBI__AGENT_WEIGHT_MIN ? ORIBI__AGENT_WEIGHT_MIN : weight > 100 ? 100 : (uint32_t)(weight + 0.5);
}

#endif
