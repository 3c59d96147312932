# frozen_string_literal: true

# The extension: of a precompiled gem the library for this minor version of Ruby, else the one that was compiled here.
precompiled = File.expand_path("#{RUBY_VERSION[/\A\d+\.\d+/]}/oribi.so", __dir__)
begin
  require File.file?(precompiled) ? precompiled : "oribi/oribi"
rescue LoadError => e
  raise unless File.file?(precompiled)

  raise LoadError, "#{e.message}: this gem is precompiled for another system; gem install oribi --platform ruby compiles one for this system"
end
