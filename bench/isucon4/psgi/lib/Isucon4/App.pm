package Isucon4::App;
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use Isucon4::Pages;
use JSON::PP ();
use Plack::Request;

my $LOCK_THRESHOLD = $ENV{ISUCON4_USER_LOCK_THRESHOLD} // 3;
my $BAN_THRESHOLD = $ENV{ISUCON4_IP_BAN_THRESHOLD} // 10;
my $JSON = JSON::PP->new->utf8->canonical;

my %NOTICE = (
    banned => "You're banned.",
    locked => 'This account is locked.',
    wrong => 'Wrong username or password',
);

my %ROUTE = (
    'GET /' => \&form,
    'POST /login' => \&login,
    'GET /mypage' => \&mypage,
    'GET /report' => \&report,
);

# The store's modules are loaded here, before the fork; its connections are opened where they are first wanted, behind
# it.
sub to_app {
    my $class = $ENV{ISUCON4_SQLITE} ? 'Isucon4::SqliteStore' : 'Isucon4::ContestStore';
    eval "require $class; 1" or die $@;
    my $store;
    return sub {
        my $env = shift;
        my $method = $env->{REQUEST_METHOD} eq 'HEAD' ? 'GET' : $env->{REQUEST_METHOD};
        my $action = $ROUTE{"$method $env->{PATH_INFO}"} or return html(404, Isucon4::Pages::missing());
        $store //= $class->new(ban_threshold => $BAN_THRESHOLD, lock_threshold => $LOCK_THRESHOLD);
        return $action->(Plack::Request->new($env), $store);
    };
}

# A notice is shown once.
sub form {
    my ($req) = @_;
    my $session = $req->session;
    return html(200, Isucon4::Pages::form($session ? delete $session->{notice} : undef));
}

sub login {
    my ($req, $store) = @_;
    my $params = $req->body_parameters;
    my $login = $params->{login} // '';
    my $password = $params->{password} // '';
    my $user = $store->user_by_login($login);
    my $right = $user && sha256_hex("$password:$user->{salt}") eq $user->{password_hash};
    my $verdict = $store->attempt($user, $login, client($req), $right ? 1 : 0);
    if ($verdict eq 'success') {
        $req->session->{user_id} = $user->{id};
        return redirect('/mypage');
    }
    $req->session->{notice} = $NOTICE{$verdict};
    return redirect('/');
}

sub mypage {
    my ($req, $store) = @_;
    my $id = $req->session->{user_id};
    my $user = defined $id ? $store->user_by_id($id) : undef;
    if (!$user) {
        $req->session->{notice} = 'You must be logged in';
        return redirect('/');
    }
    return html(200, Isucon4::Pages::mypage($user, $store->last_login($user)));
}

sub report {
    my ($req, $store) = @_;
    return [200, ['Content-Type' => 'application/json'], [$JSON->encode($store->report)]];
}

# What the nearest proxy says; it stands right in front.
sub client {
    my ($req) = @_;
    my $forwarded = $req->env->{HTTP_X_FORWARDED_FOR};
    return $req->address unless defined $forwarded;
    return $forwarded =~ /([^,\s]+)\s*\z/ ? $1 : '';
}

sub html {
    my ($status, $body) = @_;
    return [$status, ['Content-Type' => 'text/html; charset=utf-8', 'Content-Length' => length $body], [$body]];
}

sub redirect {
    my ($path) = @_;
    return [302, ['Location' => $path, 'Content-Type' => 'text/plain', 'Content-Length' => 0], ['']];
}

1;
