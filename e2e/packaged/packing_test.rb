# frozen_string_literal: true

require_relative "../support"
require "open3"

# The first half of examples/deploy/docker/Dockerfile, without a container: what it copies is enough for what it packs.
class PackingTest < Minitest::Test
  DOCKERFILE = File.join(E2E::ROOT, "examples/deploy/docker/Dockerfile#{".psgi" unless E2E::RUBY}")

  def setup
    @dir = Dir.mktmpdir("oribi-e2e")
    @lines = File.read(DOCKERFILE).gsub(/^#.*\n/, "").gsub("\\\n", " ").lines(chomp: true)
  end

  def teardown = FileUtils.remove_entry(@dir)

  # Of a folder COPY takes what is in it; what was built there is no part of a clone.
  def copy(source, target)
    folder = File.directory?(File.join(E2E::ROOT, source))
    known, status = Open3.capture2("git", "ls-files", "-co", "--exclude-standard", "-z", source, chdir: E2E::ROOT)
    assert status.success?
    refute_empty known, "COPY #{source}"
    known.split("\0").select { |path| File.exist?(File.join(E2E::ROOT, path)) }.each do |path|
      place = File.join(@dir, target, folder ? path.delete_prefix("#{source.chomp("/")}/") : File.basename(path))
      FileUtils.mkdir_p(File.dirname(place))
      FileUtils.cp(File.join(E2E::ROOT, path), place, preserve: true)
    end
  end

  def test_the_image_packs_its_sources
    copied = @lines.filter_map { |line| line[/\ACOPY (?!--from)(.*)/, 1] }.map(&:split)
    copied.each { |*sources, target| sources.each { |source| copy(source, target) } if target.start_with?("/src") }
    packing = @lines.grep(/\ARUN /).join[%r{tools/package-\w+}]
    packed = IO.popen([packing, "#{@dir}/packed", { chdir: "#{@dir}/src", err: %i[child out] }], &:read)
    assert $?.success?, packed
    assert_match(/\Aoribi-.*\.(gem|tar\.gz)\z/i, Dir.children("#{@dir}/packed").join)
  end
end
