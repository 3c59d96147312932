# frozen_string_literal: true

# Which end-to-end files the third command, `pure` (Oribi::Pure, the server in Perl alone), has to pass, and why not the
# others. A new file belongs into one of the lists.
module E2E
  PURE_FILES = %w[basics bodies clients exact letter limits persistence].freeze

  PURE_LEFT_OUT = {
    "options that Oribi::Pure refuses: control, status, static, sendfile, compress, answer, error_page, dev, single's " \
    "upgrade, call_timeout, cancel_gone, memory_max, user, other log formats" => %w[
      agent answers app_metrics compress configuration confined control deadlines development files_recipes fixed gone log_formats
      logs metrics monitoring queue_consumer reload_on_change restart_file sendfile server_answers server_timing single
      site slow_disk stacks static static_life top words threads multipart_stream form_mishaps interim crowd
      stuck scarcity
    ],
    "TLS, HTTP/2, frontends" => %w[
      frontend_attacks frontend_balancers frontend_clients frontend_counts frontend_deaths frontend_disk frontend_ends
      frontend_files frontend_files_deaths
      acme frontend_lent frontend_local frontend_storage frontend_use tls chaos fleet fleet_kubernetes websocket
      websocket_h2 websocket_counts channels drivers events publish transports cut socket_clients socket_oddities
      socket_floods websocket_development chat
    ],
    "other commands of oribi-psgi, packages, documents, frameworks, proxies with the client's address" => %w[
      boot_log cable check debugger deploy documents handlers hardening haproxy init launchers moving moving_perl nginx
      packages proxies rack_line rails redis_failover sinatra tutorial child_limits
    ],
    "placement between workers, the helper, system calls and descriptors of the core" => %w[
      descriptors hangs ownership placement saturation surroundings supervisor_waits syscalls listeners
    ],
    "log lines, processes and their ends as the core's supervisor has them; perl/t/65-pure-processes.t and " \
    "67-pure-load.t have those of Oribi::Pure" => %w[
      children ends forks lifecycle mishaps replaced restarts signals startup stops storage upgrade
    ],
  }.freeze
end
