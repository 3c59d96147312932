# frozen_string_literal: true

module E2E
  # A tree of files to be sent, with links, precompressed files and what is no file; the same for all suites of a run.
  module Tree
    OLD = Time.at(1_000_000_000)

    def self.dir
      @dir ||= Dir.mktmpdir("oribi-tree").tap do |dir|
        Minitest.after_run { FileUtils.remove_entry(dir) }
        build(File.realpath(dir))
      end
    end

    # 3 MB that show where a byte went missing.
    def self.big = @big ||= (1..400_000).map { |i| "#{i}\n" }.join.byteslice(0, 2_700_001).b

    # Options: a prefix, a longer one that falls through, the root.
    def self.mounts
      ["--static", "/assets=#{dir}/assets?cache=public, max-age=60&header=X-Extra: yes&symlinks=#{dir}/shared",
       "--static", "/assets/deep=#{dir}/deep?fallthrough=on",
       "--static", "/site=#{dir}/public?index=index.html&html=on", "--static", "#{dir}/public"]
    end

    def self.put(path, text, time = OLD)
      FileUtils.mkdir_p(File.dirname(path))
      File.binwrite(path, text)
      File.utime(time, time, path)
    end

    FILES = {
      "assets/a.txt" => "0123456789", "assets/empty" => "", "assets/.hidden" => "hidden", "assets/page.html" => "<p>",
      "assets/image.png" => "png", "assets/no-extension" => "?", "assets/spaced n\u00e4me.txt" => "spaced",
      "assets/style.css" => "plain css", "assets/style.css.gz" => "css-gz", "assets/style.css.br" => "css-br",
      "assets/style.css.zst" => "css-zst", "assets/stale.js" => "newer", "assets/deep/only-above.txt" => "of the shorter prefix",
      "assets/sub/x" => "x", "deep/d.txt" => "deep", "shared/s.txt" => "shared", "public/robots.txt" => "a file of the root",
      "public/index.html" => "front", "public/about.html" => "about", "public/sub/index.html" => "inner",
      "public/.well-known/x" => "well known", "secret" => "secret"
    }.freeze

    LINKS = { "link" => "a.txt", "linked" => "../shared", "out" => "../secret", "loop" => "loop", "null" => "/dev/null" }.freeze

    def self.build(dir)
      FILES.each { |name, text| put("#{dir}/#{name}", text) }
      put("#{dir}/assets/big.bin", big)
      put("#{dir}/assets/stale.js.gz", "older", OLD - 10)
      LINKS.each { |name, target| File.symlink(target, "#{dir}/assets/#{name}") }
      File.symlink("#{dir}/assets/a.txt", "#{dir}/assets/absolute")
      File.symlink("#{dir}/secret", "#{dir}/assets/absolute-out")
      FileUtils.mkdir_p("#{dir}/public/empty-folder")
      File.mkfifo("#{dir}/assets/pipe")
    end

    # Parts of a multipart/byteranges: [[[first, last], bytes], ...], read strictly.
    def self.parts(response)
      boundary = response["content-type"][/\Amultipart\/byteranges; boundary=([0-9A-Za-z]{1,70})\z/, 1] or raise response.inspect
      raise "Content-Range beside several" if response["content-range"]

      rest = response.body
      found = []
      lead = ""
      while (head = rest[/\A#{lead}--#{boundary}\r\n(?:.+\r\n)*\r\n/n])
        first, last = head[/^Content-Range: bytes (\d+-\d+)\/\d+\r$/, 1].split("-").map(&:to_i)
        found << [[first, last], rest.byteslice(head.bytesize, last - first + 1)]
        rest = rest.byteslice((head.bytesize + last - first + 1)..)
        lead = "\r\n"
      end
      raise "not an end: #{rest[0, 100].inspect}" unless rest == "\r\n--#{boundary}--\r\n"

      found
    end
  end
end
