package Isucon4::ContestStore;
use strict;
use warnings;

use DBI;
use File::Basename qw(dirname);
use POSIX qw(strftime);
use lib map { dirname(__FILE__) . "/../../../../../redis/perl/blib/$_" } qw(lib arch);
use Oribi::Redis;

# As in the contest: users and the log in MariaDB, what an attempt asks for in Redis, where one script looks and counts.

my $USER = 'SELECT id, login, password_hash, salt FROM users WHERE ';
my $INSERT = 'INSERT INTO login_log (created_at, user_id, login, ip, succeeded) VALUES (?, ?, ?, ?, ?)';

sub new {
    my ($class, %options) = @_;
    my $db = DBI->connect("dbi:MariaDB:database=isucon4;mariadb_socket=$ENV{ISUCON4_MARIADB}", 'isucon', '', {
        RaiseError => 1, PrintError => 0, AutoCommit => 1, mariadb_server_prepare => 1,
    });
    my $redis = Oribi::Redis->new(path => $ENV{ISUCON4_REDIS}, read_timeout_ms => 10_000);
    return bless { %options, db => $db, redis => $redis, script => $redis->script(_script()) }, $class;
}

sub user_by_login { return $_[0]->_row($USER . 'login = ?', $_[1]) }
sub user_by_id { return $_[0]->_row($USER . 'id = ?', $_[1]) }

# Gives banned, locked, success or wrong.
sub attempt {
    my ($self, $user, $login, $ip, $right) = @_;
    my $now = strftime('%Y-%m-%d %H:%M:%S', gmtime);
    my $verdict = $self->{script}->call([], $ip, $user ? $user->{id} : '', $login, $right,
        $self->{ban_threshold}, $self->{lock_threshold}, $now);
    $self->{db}->prepare_cached($INSERT)->execute($now, $user && $user->{id}, $login, $ip, $verdict eq 'success' ? 1 : 0);
    return $verdict;
}

# The login before this one, or this one if it is the first.
sub last_login {
    my ($self, $user) = @_;
    my $last = $self->{redis}->command('LRANGE', "logins:$user->{id}", 0, 1);
    return unless @$last;
    my ($at, $ip) = $last->[-1] =~ /\A(.*) (\S+)\z/;
    return { created_at => $at, ip => $ip };
}

sub report {
    my ($self) = @_;
    return { map { $_ => $self->{redis}->command('SMEMBERS', $_) } qw(banned_ips locked_users) };
}

sub _row {
    my ($self, $sql, $value) = @_;
    my $db = $self->{db};
    return scalar $db->selectrow_hashref($db->prepare_cached($sql), {}, $value);
}

sub _script {
    my $path = dirname(__FILE__) . '/../../../attempt.lua';
    open my $file, '<', $path or die "$path: $!\n";
    local $/;
    return scalar <$file>;
}

1;
