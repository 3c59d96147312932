/* Defaults of everything a peer can run into. */
#include "oribi/base/limits.h"

void oribi_limits_init(struct oribi_limits *limits)
{
    *limits = (struct oribi_limits){
        .target_bytes_max = ORIBI_TARGET_BYTES_DEFAULT,
        .head_bytes_max = ORIBI_HEAD_BYTES_DEFAULT,
        .fields_max = ORIBI_FIELDS_DEFAULT,
        .body_bytes_max = ORIBI_BODY_BYTES_DEFAULT,
        .body_memory_max = ORIBI_BODY_MEMORY_DEFAULT,
        .underscores_allow = false,
        .strict_target = false,
        .connect_allow = false,
    };
}
