/* Declarations that the sources of channels share: channel.c (their life), channel_request.c and channel_answer.c. */
#ifndef ORIBI_FRONTEND_CHANNEL_PRIVATE_H
#define ORIBI_FRONTEND_CHANNEL_PRIVATE_H

#include "frontend/channel.h"

#include <stdbool.h>

/* Sends the request; the part that the socket does not take is copied to channel->unsent. False: the channel is of no
 * use. */
bool oribi__channel_send_request(struct oribi__channel *channel, const struct oribi__upstream_request *call);

/* Sends on what is unsent. False: likewise. */
bool oribi__channel_send_rest(struct oribi__channel *channel);

/* Its worker is not to be woken any more. */
void oribi__channel_forget_unwoken(struct oribi__channel *channel);

/* True once an application has had its descriptor, and may write there after its answer: nothing more may be asked on
 * it. */
bool oribi__channel_is_lent(const struct oribi__channel *channel);

/* Its answer is whole: takes the channel from its call, and gives it the request that waits longest, or keeps it among
 * the idle ones. */
void oribi__channel_rest(struct oribi__channel *channel);

/* Tells the worker of a channel with a ring whether it may hand over files. */
void oribi__channel_take_files(struct oribi__channel *channel);

#endif
