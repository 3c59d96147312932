package Isucon4::SqliteStore;
use strict;
use warnings;

use DBI;
use POSIX qw(strftime);

# Everything in one SQLite file. The log is the truth: failures are counted from it each time, over two indexes.

my $BUSY_MS = 10_000;
my $USER = 'SELECT id, login, password_hash, salt FROM users WHERE ';
my $INSERT = 'INSERT INTO login_log (created_at, user_id, login, ip, succeeded) VALUES (?, ?, ?, ?, ?)';
my $LAST = 'SELECT created_at, ip FROM login_log WHERE user_id = ? AND succeeded = 1 ORDER BY id DESC LIMIT 2';

sub new {
    my ($class, %options) = @_;
    my $db = DBI->connect("dbi:SQLite:dbname=$ENV{ISUCON4_SQLITE}", '', '', {
        RaiseError => 1, PrintError => 0, AutoCommit => 1, sqlite_use_immediate_transaction => 1,
    });
    $db->sqlite_busy_timeout($BUSY_MS);
    $db->do('PRAGMA journal_mode = WAL');
    $db->do('PRAGMA synchronous = OFF');
    return bless { %options, db => $db }, $class;
}

sub user_by_login { return $_[0]->_row($USER . 'login = ?', $_[1]) }
sub user_by_id { return $_[0]->_row($USER . 'id = ?', $_[1]) }

# Looks and logs in one transaction. Gives banned, locked, success or wrong.
sub attempt {
    my ($self, $user, $login, $ip, $right) = @_;
    my $db = $self->{db};
    $db->begin_work;
    my $verdict = eval {
        my $verdict = $self->_verdict($user, $ip, $right);
        my $now = strftime('%Y-%m-%d %H:%M:%S', gmtime);
        $db->prepare_cached($INSERT)->execute($now, $user && $user->{id}, $login, $ip, $verdict eq 'success' ? 1 : 0);
        $db->commit;
        $verdict;
    };
    return $verdict if defined $verdict;
    my $error = $@;
    $db->rollback;
    die $error;
}

# The login before this one, or this one if it is the first.
sub last_login {
    my ($self, $user) = @_;
    my $db = $self->{db};
    my $rows = $db->selectall_arrayref($db->prepare_cached($LAST), { Slice => {} }, $user->{id});
    return $rows->[-1];
}

sub report {
    my ($self) = @_;
    my $locked = 'SELECT login FROM users WHERE id IN (' . _blocked('user_id') . ')';
    return {
        banned_ips => $self->{db}->selectcol_arrayref(_blocked('ip'), {}, $self->{ban_threshold}),
        locked_users => $self->{db}->selectcol_arrayref($locked, {}, $self->{lock_threshold}),
    };
}

sub _verdict {
    my ($self, $user, $ip, $right) = @_;
    return 'banned' if $self->_failures('ip', $ip) >= $self->{ban_threshold};
    return 'locked' if $user && $self->_failures('user_id', $user->{id}) >= $self->{lock_threshold};
    return $right ? 'success' : 'wrong';
}

sub _failures {
    my ($self, $column, $value) = @_;
    my $db = $self->{db};
    my ($count) = $db->selectrow_array($db->prepare_cached(<<"SQL"), {}, $value, $value);
SELECT COUNT(*) FROM login_log WHERE $column = ? AND succeeded = 0
AND id > COALESCE((SELECT MAX(id) FROM login_log WHERE $column = ? AND succeeded = 1), 0)
SQL
    return $count;
}

# The threshold is bound as text by default, and a count is never at least a text.
sub _blocked {
    my ($column) = @_;
    return <<"SQL";
SELECT log.$column FROM login_log log
JOIN (SELECT $column, MAX(CASE succeeded WHEN 1 THEN id ELSE 0 END) AS success FROM login_log GROUP BY $column) last USING ($column)
WHERE log.id > last.success GROUP BY log.$column HAVING COUNT(*) >= CAST(? AS INTEGER)
SQL
}

sub _row {
    my ($self, $sql, $value) = @_;
    my $db = $self->{db};
    return scalar $db->selectrow_hashref($db->prepare_cached($sql), {}, $value);
}

1;
