#!/usr/bin/env perl
# Workers that consume a queue in a folder: consumer.pl FOLDER. README.md tells how.
use strict;
use warnings;
use File::Path ();
use Oribi::Prefork;

my $folder = shift // die "usage: consumer.pl FOLDER\n";
my $queue = FolderQueue->new($folder);
$queue->recover;

my $manager = Oribi::Prefork->new(
    max_workers   => 3,
    memory_max    => '500M',
    pid_file      => "$folder/pid",               # locked: one manager for one folder
    control       => "$folder/control",
    on_child_reap => sub { $queue->recover },
);

while ($manager->signal_received ne 'TERM') {
    $manager->start(sub {
        my ($worker) = @_;
        until ($worker->stopping) {
            my $name = $queue->claim;
            if (defined $name) {
                $worker->job($name => sub { $queue->done($name, perform($queue->text($name))) });
            } else {
                $worker->wait(0.2);               # ends early when the worker is to stop
            }
        }
    });
}
$manager->wait_all_children;

# The work itself: takes a while, as work does.
sub perform {
    my ($text) = @_;
    select undef, undef, undef, $ENV{WORK_SECONDS} // 0.1;
    return uc $text;
}

# A file in new/ is a job. To rename it into work/ is to claim it, which only one worker can do; its result goes to
# done/.
package FolderQueue;

sub new {
    my ($class, $root) = @_;
    File::Path::make_path(map {"$root/$_"} qw(new work done));
    return bless { root => $root }, $class;
}

sub _list {
    my ($self, $state) = @_;
    opendir my $dir, "$self->{root}/$state" or die "$self->{root}/$state: $!\n";
    return sort grep { !/\A\.\.?\z/ } readdir $dir;
}

sub _claimed { my ($self, $name) = @_; return "$self->{root}/work/$$.$name" }

# Name of a job that is ours now, or undef. A rename that fails says that a sibling was faster.
sub claim {
    my ($self) = @_;
    for my $name ($self->_list('new')) {
        return $name if rename "$self->{root}/new/$name", $self->_claimed($name);
    }
    return;
}

sub text {
    my ($self, $name) = @_;
    open my $fh, '<', $self->_claimed($name) or die "$name: $!\n";
    local $/;
    return scalar <$fh>;
}

# The result is there before the claim goes, so that a job can be done twice, but not be lost.
sub done {
    my ($self, $name, $result) = @_;
    my $part = $self->_claimed($name) . '.part';
    open my $fh, '>', $part or die "$part: $!\n";
    print {$fh} $result;
    close $fh or die "$part: $!\n";
    rename $part, "$self->{root}/done/$name" or die "$name: $!\n";
    unlink $self->_claimed($name);
    return;
}

# What workers had in their hands that are gone goes back into the queue.
sub recover {
    my ($self) = @_;
    for my $file ($self->_list('work')) {
        my ($pid, $name) = split /\./, $file, 2;
        next if kill 0 => $pid;
        my $path = "$self->{root}/work/$file";
        $name =~ /\.part\z/ ? unlink $path : rename $path, "$self->{root}/new/$name";
    }
    return;
}
