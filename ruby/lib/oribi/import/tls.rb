# frozen_string_literal: true

require "uri"

module Oribi
  module Import
    # Puma's addresses with TLS (bind "ssl://…", ssl_bind): a tls:// address, and the options that say whose clients'
    # certificates count. Part of Words.
    module TLS
      # Words of Puma's that are said elsewhere, or hold here anyhow.
      TAKEN = %w[cert key ca verify_mode].freeze
      HOLD = %w[no_tlsv1 no_tlsv1_1 backlog].freeze
      CLIENT_VERIFY = { "peer" => "optional", "force_peer" => "required" }.freeze
      private_constant :TAKEN, :HOLD, :CLIENT_VERIFY

      private

      def bind(_name, values)
        return unless puma? && values.one? && values.first.known && values.first.value.to_s.start_with?("ssl://")

        address, query = values.first.value.delete_prefix("ssl://").split("?", 2)
        tls(address, URI.decode_www_form(query.to_s).to_h)
      end

      def ssl_bind(_name, values)
        host, port, settings = values
        return unless settings&.hash? && values.all?(&:known) && settings.value.is_a?(Hash)

        tls(address_of(port, host).value, settings.value.transform_keys(&:to_s))
      end

      def tls(address, settings)
        return unless settings.values_at("cert", "key").all?(String)

        given = URI.encode_www_form("certificate" => settings["cert"], "key" => settings["key"]).gsub("%2F", "/")
        dropped = settings.keys - TAKEN - HOLD
        both([take("bind", [text("tls://#{address}?#{given}")], ("not taken over: #{dropped.join(", ")}" if dropped.any?)),
              *client_certificates(settings["ca"], CLIENT_VERIFY[settings["verify_mode"]])])
      end

      # Both let clients without a certificate in; one that is not valid is refused by Puma alone.
      LETS_IN = 'client_verify "optional" lets invalid certificates in, unlike verify_mode "peer": demand SSL_CLIENT_VERIFY "SUCCESS"'
      private_constant :LETS_IN

      def client_certificates(authorities, verify)
        return [] unless authorities && verify

        [take("client_ca", [text(authorities)]), take("client_verify", [text(verify)], (LETS_IN if verify == "optional"))]
      end
    end
  end
end
