# One node of the fleet.
{
    bind              => 'tcp://0.0.0.0:9292',
    trusted_proxies   => '10.77.0.0/24',    # the balancers: what they say of clients and requests counts
    workers           => 2,
    health            => '/up',             # 503 once the end begins
    agent             => '0.0.0.0:9395',
    warmup            => '/',               # nothing is served before this has been answered
    drain_delay       => '3s',              # longer than inter times fall
    shutdown_timeout  => '30s',
    request_id        => 'on',
    access_log        => 'log/access.log',
    access_log_format => '$remote_addr $status $request_id "$request"',
    access_log_skip   => '/up',
};
