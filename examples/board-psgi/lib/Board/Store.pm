package Board::Store;
use strict;
use warnings;
use DBI ();
use File::Basename ();
use File::Path ();
use JSON::PP ();

# The messages, in one SQLite file. A connection must not cross a fork, so each process opens its own when it first
# needs one. A new file gets the messages of the folder `seeds`, if one is given.

my $SCHEMA = <<'SQL';
create table messages(
  id integer primary key autoincrement,
  nick text not null,
  body text not null,
  picture blob,
  picture_type text,
  created_at integer not null)
SQL

my $COLUMNS = 'id, nick, body, picture_type, created_at';
my $PAGE_SIZE = 50;

sub new {
    my ($class, $path, %more) = @_;
    return bless { path => $path, pid => 0, seeds => $more{seeds} }, $class;
}

# The newest messages first, without their pictures.
sub latest { return $_[0]->_rows("select $COLUMNS from messages order by id desc limit ?", $PAGE_SIZE) }

sub count { return $_[0]->_database->selectrow_array('select count(*) from messages') }

# A few messages after `id`, oldest first: how a long list is read without holding it.
sub after {
    my ($self, $id, $limit) = @_;
    return $self->_rows("select $COLUMNS from messages where id > ? order by id limit ?", $id, $limit || 20);
}

# (picture, type), or nothing.
sub picture {
    my ($self, $id) = @_;
    return $self->_database->selectrow_array('select picture, picture_type from messages where id = ? and picture is not null', undef, $id);
}

sub add { my ($self, %message) = @_; return _insert($self->_database, %message) }

sub delete { return $_[0]->_database->do('delete from messages where id = ?', undef, $_[1]) }

sub _rows {
    my ($self, $sql, @values) = @_;
    return @{ $self->_database->selectall_arrayref($sql, { Slice => {} }, @values) };
}

sub _insert {
    my ($database, %message) = @_;
    my $insert = $database->prepare('insert into messages(nick, body, picture, picture_type, created_at) values(?, ?, ?, ?, ?)');
    $insert->bind_param(1, $message{nick});
    $insert->bind_param(2, $message{body});
    $insert->bind_param(3, $message{picture}, DBI::SQL_BLOB());
    $insert->bind_param(4, $message{picture_type});
    $insert->bind_param(5, $message{created_at} // time);
    return $insert->execute;
}

# Only one process finds no table: the others wait for its transaction.
sub _prepare {
    my ($self, $database) = @_;
    $database->do('begin immediate');
    if (!$database->selectrow_array(q{select 1 from sqlite_master where name = 'messages'})) {
        $database->do($SCHEMA);
        _insert($database, %$_) for $self->_seeds;
    }
    return $database->do('commit');
}

sub _seeds {
    my ($self) = @_;
    my $folder = $self->{seeds} // return;
    my $seeds = JSON::PP::decode_json(_bytes_of("$folder/messages.json"));
    for my $seed (@$seeds) {
        $seed->{created_at} = time - 60 * delete $seed->{minutes_ago};
        $seed->{picture} = _bytes_of("$folder/$seed->{picture}") if $seed->{picture};
    }
    return @$seeds;
}

sub _bytes_of {
    my ($path) = @_;
    open my $in, '<:raw', $path or die "$path: $!\n";
    local $/;
    return scalar <$in>;
}

# Of several processes that do this to a new file at once SQLite refuses all but one, and waits for none of them.
sub _write_ahead {
    my ($database) = @_;
    for (1 .. 500) {
        return if eval { $database->do('pragma journal_mode = wal') };
        die $@ if $@ !~ /locked/;
        select undef, undef, undef, 0.01;
    }
    die $@;
}

sub _database {
    my ($self) = @_;
    return $self->{database} if $self->{pid} == $$;
    File::Path::make_path(File::Basename::dirname($self->{path}));
    $self->{database}{InactiveDestroy} = 1 if $self->{database};    # the parent's: it stays the parent's to close
    $self->{database} = DBI->connect("dbi:SQLite:dbname=$self->{path}", '', '', { RaiseError => 1, PrintError => 0, sqlite_unicode => 1 });
    $self->{database}->sqlite_busy_timeout(5000);
    _write_ahead($self->{database});
    $self->_prepare($self->{database});
    $self->{pid} = $$;
    return $self->{database};
}

1;
