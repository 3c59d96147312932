package Oribi::Plack;
use 5.016;
use strict;
use warnings;
use Carp ();
use Oribi::Cookie ();
use Oribi::Form ();
use Oribi::Multipart ();
use Oribi::Multipart::Folder ();
use Oribi::Multipart::MultiPart ();
use Plack::Request ();
use Scalar::Util ();

our $VERSION = '0.100';

# Plack has none of these maxima; a form of parts may have what a form of pairs may.
my %OPTIONS = (parts_max => 65_536, files_max => 1024, part_head_max => 32_768, memory_max => 64 * 1024 * 1024);
my %GIVEN;

my $FORM = 'application/x-www-form-urlencoded';
my $PARTS = 'multipart/form-data';

# All that is replaced, and with what. doc/forms.md has this list, too.
my %REPLACEMENT = (
    'Plack::Request::parse_urlencoded_arrayref' => \&Oribi::Form::parse_urlencoded_arrayref,
    'Plack::Request::_build_body_parser' => \&_build_body_parser,
    'Plack::Request::cookies' => \&_cookies,
);
my %RESPONSE = ('Plack::Response::_finalize_cookies' => \&_finalize_cookies);
my %DEVELOPMENT = ('Plack::Middleware::StackTrace::call' => \&_call_for_a_trace);
my %THEIRS;    # what was there, by name

sub import {
    my ($class, @words) = @_;
    my %replacement = %REPLACEMENT;
    if (grep { $_ eq ':response' } @words) {
        require Plack::Response;
        %replacement = (%replacement, %RESPONSE);
    }
    my %options = grep { $_ ne ':response' } @words;
    for my $name (sort keys %options) {
        Carp::croak("Oribi::Plack: no option $name") if !exists $OPTIONS{$name} && $name ne 'tempdir';
        Carp::croak("Oribi::Plack: $name is no number") if exists $OPTIONS{$name} && ($options{$name} // '') !~ /\A[0-9]{1,9}\z/;
    }
    if (($ENV{PLACK_ENV} // '') eq 'development' && eval { require Plack::Middleware::StackTrace }) {
        %replacement = (%replacement, %DEVELOPMENT);
    }
    %GIVEN = (%OPTIONS, %options);
    Oribi::Multipart::Folder::sweep($GIVEN{tempdir}) if defined $GIVEN{tempdir};
    _replace($_, $replacement{$_}) for sort keys %replacement;
    return;
}

sub unimport {
    for my $name (keys %THEIRS) {
        no strict 'refs';
        no warnings 'redefine';
        *$name = delete $THEIRS{$name};
    }
    return;
}

sub _replace {
    my ($name, $code) = @_;
    no strict 'refs';
    no warnings 'redefine';
    Carp::croak("Oribi::Plack: Plack $Plack::Request::VERSION has no $name: 1.0040 or newer is needed") if !defined &$name;
    $THEIRS{$name} //= \&$name;
    *$name = $code;
    return;
}

# --- Plack::Request ---

sub _build_body_parser {
    my ($self) = @_;
    my $class = $self->isa('Dancer2::Core::Request') ? 'Oribi::Plack::TextErrors' : 'Oribi::Multipart';
    my $parser = $class->new(buffer_length => $self->_buffer_length_for($self->env));
    $parser->register($FORM, 'Oribi::Multipart::UrlEncoded');
    $parser->register($PARTS, 'Oribi::Plack::MultiPart', \%GIVEN);
    return $parser;
}

# What a malformed body dies with is a string, as with HTTP::Entity::Parser. Too much of something, of which that knows
# nothing, stays an object.
package Oribi::Plack::MultiPart {
    our $VERSION = '0.100';
    our @ISA = 'Oribi::Multipart::MultiPart';

    sub _plainly {
        my ($code) = @_;
        my @result;
        return @result if eval { @result = $code->(); 1 };
        my $error = $@;
        die $error if !Scalar::Util::blessed($error) || !$error->isa('Oribi::Form::Error') || $error->status != 400;
        die $error->text;
    }

    sub new { my @arguments = @_; return (_plainly(sub { Oribi::Multipart::MultiPart::new(@arguments) }))[0] }

    sub _try { my ($self, $code) = @_; _plainly(sub { $self->SUPER::_try($code) }); return }
}

sub _cookies {
    my ($self) = @_;
    my $env = $self->env;
    my $field = $env->{HTTP_COOKIE} or return {};
    my $parsed = $env->{'plack.cookie.parsed'};
    return $parsed if $parsed && $env->{'plack.cookie.string'} eq $field;
    $env->{'plack.cookie.string'} = $field;
    return $env->{'plack.cookie.parsed'} = Oribi::Cookie::crush_cookie($field);
}

# Dancer2 catches what a request dies of and answers 400 with it, but only takes a text.
package Oribi::Plack::TextErrors {
    our $VERSION = '0.100';
    our @ISA = ('Oribi::Multipart');

    sub parse {
        my ($self, $env) = @_;
        my @parsed;
        return @parsed if eval { @parsed = $self->SUPER::parse($env); 1 };
        my $error = $@;
        die "$error";
    }
}

# --- Plack::Response ---

sub _finalize_cookies {
    my ($self, $headers) = @_;
    my $cookies = $self->cookies;
    push @$headers, 'Set-Cookie' => Oribi::Cookie::bake_cookie($_, $cookies->{$_}) for keys %$cookies;
    return;
}

# --- plackup in development ---

# A request that is at fault itself needs no stack trace: its exception passes by the middleware, to the server, which
# answers it with its status.
sub _call_for_a_trace {
    my ($self, $env) = @_;
    my $app = $self->app;
    my $past = {
        %$self,
        app => sub {
            my ($env) = @_;
            my $response;
            return $response if eval { $response = $app->($env); 1 };
            my $error = $@;
            die $error if !Scalar::Util::blessed($error) || !$error->isa('Oribi::Form::Error');
            return sub { die $error };
        },
    };
    return $THEIRS{'Plack::Middleware::StackTrace::call'}->(bless($past, ref $self), $env);
}

1;

__END__

=encoding utf8

=head1 NAME

Oribi::Plack - Plack::Request with Oribi's parsers

=head1 SYNOPSIS

  # app.psgi
  use Oribi::Plack;

  use Oribi::Plack files_max => 10, tempdir => '/var/tmp';    # with maxima of one's own
  use Oribi::Plack qw(:response);                             # cookies of Plack::Response, too

=head1 DESCRIPTION

From this line on L<Plack::Request> reads forms, uploads and cookies with L<Oribi::Form>, L<Oribi::Multipart> and
L<Oribi::Cookie>, in the whole program: in middlewares, and in Dancer2, Kelp, Kossy, Amon2 and others whose requests are
Plack::Requests. Results are the same. It works with any server; none loads it by itself.

C<no Oribi::Plack> puts back what was there.

=head2 What is replaced

=over

=item Plack::Request::parse_urlencoded_arrayref

What Plack::Request imports from L<WWW::Form::UrlEncoded>: C<query_parameters>, C<parameters>, C<param>.

=item Plack::Request::_build_body_parser

C<body_parameters>, C<parameters>, C<param>, C<uploads>, C<upload>, C<content>, C<raw_body>. C<request_body_parser> is an
Oribi::Multipart, to which other types can be registered, also with classes of L<HTTP::Entity::Parser>.

=item Plack::Request::cookies

=item Plack::Response::_finalize_cookies

Only with C<:response>: C<finalize> bakes cookies by Oribi::Cookie, whose differences its documentation lists.

=item Plack::Middleware::StackTrace::call

Only where C<PLACK_ENV> is C<development>, as plackup sets it: an L<Oribi::Form::Error> is not shown as a stack trace
with a 500, but goes on to the server.

=back

A class that has its own C<_build_body_parser>, C<request_body_parser> or C<cookies>, or that calls HTTP::Entity::Parser,
keeps what it has. Write Oribi::Multipart instead of HTTP::Entity::Parser there.

=head1 OPTIONS

Maxima that Plack does not have. Beyond one the code dies with an L<Oribi::Form::Error> of status 413, which an Oribi server
answers when nobody has caught it.

=over

=item parts_max => 65536

=item files_max => 1024

=item memory_max => 67108864

Bytes of all fields of a multipart body that are no files.

=item part_head_max => 32768

=item tempdir => $folder

Where uploads are written, C<TMPDIR> unless given.

=back

Forms and query strings have 65,536 pairs and 64 MiB at most, cookies 65,536 and 1 MiB.

=head1 DIFFERENCES

Results are those of C<WWW::Form::UrlEncoded::XS> and C<Cookie::Baker::XS>, not of their pure Perl versions: a space at the
beginning of a form and spaces around the C<=> of a cookie are dropped.

A malformed body dies with a string, as with HTTP::Entity::Parser, in other words except for a missing boundary. Dancer2,
which takes only strings for messages, gets one for too much of something as well, and answers 400 for both.
L<Oribi::Multipart> lists which bodies are malformed only here or only there.

=head1 SEE ALSO

L<Plack::Request>, L<Oribi::Multipart>, L<Oribi::Form>, L<Oribi::Cookie>

=cut
