use strict;
use warnings;
use lib 't/lib';
use File::Temp ();
use OribiServer;
use OribiTest;
use Test::More;

# The recipes of "Compiling templates before the fork" in Oribi's manual: the workers compile nothing.

my $dir = File::Temp->newdir;

sub file {
    my ($name, $text) = @_;
    open my $fh, '>', "$dir/$name" or die "$dir/$name: $!";
    print {$fh} $text;
    close $fh;
    return "$dir/$name";
}

# Serves `setup` followed by an application that renders with the code in `render`; `compiler` is the function that
# compiles.
sub check {
    my ($module, $name, $template, $compiler, $setup, $render) = @_;
    SKIP: {
        skip "$module is not installed", 1 unless eval "require $module; 1";
        file($name, $template);
        my $app = file("$name.psgi", <<"PSGI");
            use strict;
            use warnings;
            use File::Find;
            use File::Spec;
            use $module ();
            chdir '$dir';
            my %compiled;
            { no strict 'refs'; no warnings 'redefine'; require @{[ $compiler =~ s{::\w+\z}{}r ]}; my \$old = \\&$compiler; *{'$compiler'} = sub { \$compiled{\$\$}++; goto \$old } }
            $setup
            my \$mold = \$\$;
            sub {
                my \$text = do { $render };
                [200, ['Content-Type' => 'text/plain'], [join '|', \$text, \$compiled{\$mold} ? 'before' : 'not before', \$compiled{\$\$} ? 'after' : 'not after']];
            };
PSGI
        subtest $module => sub {
            my $server = start_command('tcp', $app);
            is get($server, '/')->{body}, 'Hello, world|before|not after' for 1, 2;
            is $server->stop, 0;
        };
    }
}

check('Text::Xslate', 'hello.tx', 'Hello, <: $name :>', 'Text::Xslate::Compiler::compile', <<'SETUP', q{$xslate->render('hello.tx', { name => 'world' })});
    my $xslate = Text::Xslate->new(path => ['.'], cache => 1, cache_dir => 'cache');
    find({ no_chdir => 1, wanted => sub { $xslate->load_file(File::Spec->abs2rel($_, '.')) if /\.tx\z/ } }, '.');
SETUP

check('Template', 'hello.tt', 'Hello, [% name %]', 'Template::Parser::parse', <<'SETUP', q{$tt->process('hello.tt', { name => 'world' }, \my $out) or die $tt->error; $out});
    my $tt = Template->new(INCLUDE_PATH => '.', STAT_TTL => 60);
    find({ no_chdir => 1, wanted => sub { $tt->context->template(File::Spec->abs2rel($_, '.')) if /\.tt\z/ } }, '.');
SETUP

check('Mojo::Template', 'hello.ep', 'Hello, <%= $_[0] %>', 'Mojo::Template::parse', <<'SETUP', q{$template{'hello.ep'}->process('world') =~ s/\n\z//r});
    use Mojo::File 'path';
    my %template = map { $_ => Mojo::Template->new->parse(path($_)->slurp) } glob '*.ep';
SETUP

done_testing;
