# frozen_string_literal: true

require_relative "support"
require "open3"

# script/site: every document is a page, pages are valid and point to what is there, nothing comes from elsewhere, and
# what is wrong is told. How it looks: browser/site_test.rb.
class SiteTest < Minitest::Test
  include E2E::Home

  def site(folder, script: File.join(E2E::ROOT, "script/site")) = Open3.capture3("ruby", script, folder)

  def setup
    skip "no commonmarker and rouge here" unless system("ruby", "-e", "require 'commonmarker'; require 'rouge'", err: File::NULL)
    super
  end

  def built
    _, faults, status = site(@home)
    assert_equal ["", true], [faults, status.success?]
    Dir.glob("**/*.html", base: @home).to_h { |path| [path, Nokogiri::HTML5(File.read(File.join(@home, path)), max_errors: 5)] }
  end

  def test_pages
    require "nokogiri"
    pages = built
    documents = Dir.glob("{*.md,doc/**/*.md}", base: E2E::ROOT).map { |path| path.sub(/\AREADME\.md/, "index.md").sub(/md\z/, "html") }
    assert_empty documents - pages.keys
    ids = pages.transform_values { |page| page.css("[id]").map { |node| node["id"] } }
    pages.each do |path, page|
      assert_empty page.errors.map(&:to_s), path
      assert_empty page.css("[align], [style], [onclick]"), path
      assert_equal ids[path].uniq, ids[path], path
      assert_equal 1, page.css("h1").size, path
      assert page.at_css("main > h1 + p"), "#{path}: no paragraph says for whom the page is" if path.start_with?("doc/")
      refute_empty page.at_css("meta[name=description]")["content"], path
      assert_equal pages.size, page.css("#menu li a").size, path
      assert_links(path, page, ids)
    end
  end

  def assert_links(path, page, ids)
    page.css("[src], link[href]").each { |node| refute_match(/\A\w+:/, node["src"] || node["href"], "#{path} asks elsewhere") }
    page.css("[src], [href]").map { |node| node["src"] || node["href"] }.grep_v(/\A\w+:/).each do |address|
      name, anchor = address.split("#", 2)
      target = name.empty? ? path : File.expand_path(name, "/#{File.dirname(path)}").delete_prefix("/")
      assert File.file?(File.join(@home, target)), "#{path}: #{address}"
      assert_includes ids[target], anchor, "#{path}: #{address}" if anchor && ids[target]
    end
  end

  # A tree of its own, without git.
  def tree(pages)
    file("tree/script/site", File.read(File.join(E2E::ROOT, "script/site")))
    FileUtils.mkdir_p("#{@home}/tree/tools")
    FileUtils.cp_r(File.join(E2E::ROOT, "tools/site"), "#{@home}/tree/tools/site")
    pages.each { |name, text| file("tree/#{name}", text) }
    "#{@home}/tree/script/site"
  end

  def test_faults
    script = tree("README.md" => "# Top\n\n[a](doc/logs.md#none) [b](doc/none.md) ![e](doc/none.png) [c](script/site) [d](doc/logs.md#at-all)\n",
                  "doc/logs.md" => "# Logs\n\n## At all\n\n```sh\n<oribi> # x\n```\n", "doc/lost.md" => "# Lost\n")
    _, faults, status = site("#{@home}/out", script: script)
    assert_equal 1, status.exitstatus
    assert_equal ["README.md links to doc/logs.md#none, a heading that is not there", "README.md links to doc/none.md, which is not there",
                  "README.md links to doc/none.png, which is not there",
                  "doc/lost.md is in no group of tools/site/navigation.yml"], faults.lines(chomp: true).map { |line| line.delete_prefix("script/site: ") }
    home = File.read("#{@home}/out/index.html")
    assert_includes home, %(<span class="file">c</span> <a href="doc/logs.html#at-all">d</a>)
    assert_includes File.read("#{@home}/out/doc/logs.html"), "&lt;oribi&gt;"
  end

  def test_a_folder_of_something_else_is_left_alone
    file("mine/letter.txt", "dear")
    _, faults, status = site("#{@home}/mine")
    assert_equal [1, "script/site: #{@home}/mine is a folder of something else\n"], [status.exitstatus, faults]
    assert_equal "dear", File.read("#{@home}/mine/letter.txt")
  end
end
