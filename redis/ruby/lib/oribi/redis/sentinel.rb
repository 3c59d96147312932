# frozen_string_literal: true

module Oribi
  class Redis
    # Where the master of a service is: asked of one Sentinel after the other before each connection. The one that
    # answers is asked first the next time, and those that it knows of are asked, too.
    class Sentinel
      PORT = 26_379

      # addresses: "host:port", "[host]:port" or "host"; options: those of the client.
      def initialize(addresses, service, options)
        unless addresses.is_a?(Array) && addresses.any? && service
          raise UsageError, "sentinels is an array of addresses, and service the name that they know"
        end

        @addresses = addresses.dup
        @service = service
        @options = options.slice(:connect_timeout_ms, :read_timeout_ms)
                          .merge(user: options[:sentinel_user], password: options[:sentinel_password], protocol: 2, reconnect_attempts: 0)
        @lock = Mutex.new
      end

      # [host, port] of the master. Raises ConnectionError when nobody knows it.
      def master
        told = @lock.synchronize { @addresses.dup }.map do |address|
          found, others = ask(address)
          remember(address, others)
          return found
        rescue Error => e
          "#{address}: #{e.message}"
        end
        raise ConnectionError, "no Sentinel knows the master of #{@service}: #{told.join("; ")}"
      end

      private

      def ask(address)
        host, port = split(address)
        client = Oribi::Redis.new(host: host, port: port, **@options)
        found, others = client.pipeline(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", @service], ["SENTINEL", "SENTINELS", @service])
        raise found if found.is_a?(Error)
        raise ConnectionError, "knows no master of #{@service}" unless found.is_a?(Array)

        [[found[0], found[1].to_i], others.is_a?(Array) ? others.map { |one| address_of(one.each_slice(2).to_h) } : []]
      ensure
        client&.close
      end

      def split(address)
        match = address.match(/\A(?:\[(?<v6>[^\]]+)\]|(?<name>[^:\]]+))(?::(?<port>\d+))?\z/) or raise UsageError, "#{address} is no address of a Sentinel"
        [match[:v6] || match[:name], (match[:port] || PORT).to_i]
      end

      def address_of(one) = one["ip"].include?(":") ? "[#{one["ip"]}]:#{one["port"]}" : "#{one["ip"]}:#{one["port"]}"

      def remember(first, others)
        @lock.synchronize { @addresses = [first, *(@addresses - [first]), *others].uniq }
      end
    end
  end
end
