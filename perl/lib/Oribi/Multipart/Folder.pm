package Oribi::Multipart::Folder;
use 5.016;
use strict;
use warnings;
use Carp ();
use Fcntl qw(:flock O_CREAT O_EXCL O_NOFOLLOW O_RDONLY O_RDWR);
use File::Spec ();

our $VERSION = '0.100';

# Uploads of a process lie in one folder of its own, which it holds a lock on for as long as it lives: the kernel gives
# the lock back whatever the process dies of. A folder that can be locked is therefore one whose process is gone, and
# whoever finds it removes it.
#
#     TMPDIR/oribi-upload-5f0c2a9e41d7b386/      locked (flock on the folder itself)
#                                    5f0c2a9e41d7b3861   an upload; goes with its request
my $NAME = qr/\Aoribi-upload-[0-9a-f]{16}\z/;
my $TRIES_MAX = 100;

my %FOLDER;     # by the folder around it, of this process alone
my %AROUND;     # folders that `sweep` looks into: the keys

sub CLONE { %FOLDER = (); return }    # a new thread has a folder of its own

# The files of one request: removed with the object, by the process that made them.
package Oribi::Multipart::Folder::Files {
    our $VERSION = '0.100';
    sub CLONE_SKIP {1}

    sub new { return bless { pid => $$, paths => [] }, shift }

    # An open handle and its path.
    sub open {
        my ($self, $around, $fd) = @_;
        my ($handle, $path) = Oribi::Multipart::Folder::_create($around, $fd);
        push @{ $self->{paths} }, $path;
        return ($handle, $path);
    }

    sub DESTROY {
        my ($self) = @_;
        local $!;
        unlink @{ $self->{paths} } if $self->{pid} == $$;
        return;
    }
}

sub _around {
    my ($around) = @_;
    $around = File::Spec->tmpdir if !defined $around;
    return $AROUND{$around} //= File::Spec->rel2abs($around);
}

# With the descriptor of a file that has no name: that file, or a copy where it cannot get one.
sub _create {
    my ($around, $fd) = @_;
    $around = _around($around);
    for (1 .. $TRIES_MAX) {
        my $folder = $FOLDER{$around};
        $folder = $FOLDER{$around} = _make($around) if !$folder || $folder->{pid} != $$;
        my $path = "$folder->{path}/$folder->{word}" . ++$folder->{count};
        return (_open($path, O_RDWR), $path) if defined $fd && Oribi::Multipart::_link($fd, $path);
        my $handle = _open($path, O_RDWR | O_CREAT | O_EXCL);
        if ($handle) {
            Carp::croak("cannot write $path: $!") if defined $fd && !Oribi::Multipart::_copy($fd, fileno $handle);
            return ($handle, $path);
        }
        Carp::croak("cannot create $path: $!") if !$!{ENOENT} && !$!{EEXIST};
        delete $FOLDER{$around} if !-d $folder->{path};    # a cleaner of old files has taken it
    }
    Carp::croak("cannot create a file in $around");
}

# A folder that nobody has taken for a dead process's before it was locked.
sub _make {
    my ($around) = @_;
    _forget_others();
    _sweep($around);
    for (1 .. $TRIES_MAX) {
        my $word = _word();
        my $path = "$around/oribi-upload-$word";
        if (!mkdir $path, oct 700) {
            next if $!{EEXIST};
            Carp::croak("cannot create $path: $!");
        }
        my $lock = _open($path, O_RDONLY) or next;
        my $locked = flock $lock, LOCK_EX | LOCK_NB;
        next if !$locked && $!{EWOULDBLOCK} || !_is_at($lock, $path);    # another has just begun to remove it
        return { path => $path, word => $word, lock => $lock, pid => $$, count => 0 };
    }
    Carp::croak("cannot create a folder in $around");
}

# Sixteen digits that no other process has. Without `rand`, whose numbers are the program's.
sub _word {
    my $bytes = pack 'NN', time, $$;
    my $random = _open('/dev/urandom', O_RDONLY);
    sysread $random, $bytes, 8 if $random;
    return unpack 'H16', $bytes;
}

sub _open {
    my ($path, $flags) = @_;
    sysopen my $handle, $path, $flags | O_NOFOLLOW, oct 600 or return;
    return $handle;
}

sub _is_at {
    my ($handle, $path) = @_;
    my ($here, $there) = ([stat $handle], [lstat $path]);
    return @$here && @$there && -d _ && "@$here[0, 1]" eq "@$there[0, 1]";
}

# What a fork has inherited is its parent's.
sub _forget_others {
    delete @FOLDER{ grep { $FOLDER{$_}{pid} != $$ } keys %FOLDER };
    return;
}

# Removes the folders of processes that are gone: in the usual place, and wherever this program has put some.
sub sweep {
    my (@around) = @_;
    local ($@, $!);
    _forget_others();
    _around($_) for undef, @around;
    _sweep($_) for values %AROUND;
    return;
}

sub _sweep {
    my ($around) = @_;
    opendir my $dir, $around or return;
    for my $path (map {"$around/$_"} grep {/$NAME/} readdir $dir) {
        next if !lstat $path or !-d _ or !-o _ and $> != 0;
        my $folder = _open($path, O_RDONLY) or next;
        _remove($folder, $path) if flock($folder, LOCK_EX | LOCK_NB) && _is_at($folder, $path);
    }
    return;
}

# Others can put something else in the place of a folder of theirs. The superuser, who removes theirs, too, enters it by
# its handle.
sub _remove {
    my ($folder, $path) = @_;
    my $inside = '/proc/self/fd/' . fileno $folder;
    if (!-d $inside) {
        return if !-o $folder;
        $inside = $path;
    }
    if (opendir my $dir, $inside) {
        unlink map {"$inside/$_"} grep { !/\A\.\.?\z/ } readdir $dir;
    }
    rmdir $path;
    return;
}

END {
    local ($@, $!, $?);
    _forget_others();
    _remove(@$_{qw(lock path)}) for values %FOLDER;
}

sweep();

1;

__END__

=encoding utf8

=head1 NAME

Oribi::Multipart::Folder - where uploads lie

=head1 DESCRIPTION

Part of L<Oribi::Multipart>. Each process that takes uploads has one folder, F<oribi-upload-...> in C<TMPDIR> (or in the
C<tempdir> that was given), made for its first upload and removed when it ends. The files of a request are removed with
its environment.

A process that is killed can remove nothing. Its folder is removed by the next process that loads this module, that
makes a folder beside it, or that begins or ends as a process of an Oribi server: under Oribi that is the worker which
takes the killed one's place. No process removes the folder of a living one, which holds a lock on it (C<flock>).

=head1 FUNCTIONS

=head2 sweep(@folders)

Removes what killed processes have left in C<TMPDIR> and in C<@folders>, now.

=cut
