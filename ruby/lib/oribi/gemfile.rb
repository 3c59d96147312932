# frozen_string_literal: true

module Oribi
  # The Gemfile that Bundler goes by, and the one that it would find from the working directory.
  module Gemfile
    NAMES = %w[Gemfile gems.rb].freeze

    module_function

    # @return [String, nil] path of the nearest one, here or above
    def nearest(dir = Dir.pwd)
      loop do
        found = NAMES.map { |name| File.join(dir, name) }.find { |path| File.file?(path) }
        return found if found || dir == File.dirname(dir)

        dir = File.dirname(dir)
      end
    end

    # Bundler would find this one by itself.
    def found?(path) = !path.to_s.empty? && File.identical?(path, nearest.to_s)

    # What the operator is to know where a release runs under the Gemfile of the folder beside it. A Gemfile elsewhere
    # is meant.
    #
    # @param path [String, nil] the one that Bundler goes by
    # @return [String, nil]
    def advice(path = ENV.fetch("BUNDLE_GEMFILE", nil))
      here = nearest
      return if path.to_s.empty? || !here || !File.file?(path)

      here, there = [here, path].map { |one| File.realpath(one) }
      return if here == there || releases(here) != releases(there) || NAMES.none?(File.basename(there))

      "BUNDLE_GEMFILE is #{path}, though this folder has #{here}: name it by way of the link, or do not set it"
    rescue SystemCallError
      nil # a folder that is gone has nothing to compare
    end

    def releases(path) = File.dirname(File.dirname(path))
  end
end
