package Isucon4::Pages;
use strict;
use warnings;

# Pages are put together from strings, as a small application would; a template engine would be measured with the
# server.

my $HEAD = <<'HTML';
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<link rel="stylesheet" href="/stylesheets/frame.css">
<link rel="stylesheet" href="/stylesheets/theme.css">
<link rel="stylesheet" href="/stylesheets/bank.css">
<title>isucon4</title>
</head>
<body>
<div class="container">
<h1 id="topbar"><a href="/"><img src="/images/bank.png" alt="Oribi Bank" title="Oribi Bank"></a></h1>
HTML

my $FOOT = <<'HTML';
</div>
</body>
</html>
HTML

my %ESCAPE = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;', "'" => '&#39;');

sub h {
    my ($text) = @_;
    $text =~ s/([&<>"'])/$ESCAPE{$1}/g;
    return $text;
}

sub form {
    my ($notice) = @_;
    my $shown = defined $notice ? '<div id="notice-message" class="alert alert-danger" role="alert">' . h($notice) . "</div>\n" : '';
    return $HEAD . <<"HTML" . $FOOT;
<div id="be-careful-phishing" class="panel panel-danger">
<div class="panel-heading"><span class="hikaru-mozi">Beware of phishing</span></div>
<div class="panel-body"><p>We never ask for your password by mail or telephone.</p></div>
</div>
<div class="page-header"><h1>Login</h1></div>
$shown<form class="form-horizontal" role="form" action="/login" method="POST">
<label for="input-username">Username</label>
<input id="input-username" type="text" class="form-control" placeholder="Username" name="login">
<label for="input-password">Password</label>
<input type="password" class="form-control" id="input-password" name="password" placeholder="Password">
<button type="submit" class="btn btn-primary btn-lg btn-block">Log in</button>
</form>
HTML
}

sub mypage {
    my ($user, $last) = @_;
    my ($login, $at, $ip) = map { h($_) } $user->{login}, $last->{created_at}, $last->{ip};
    return $HEAD . <<"HTML" . $FOOT;
<div class="alert alert-success" role="alert">
Your last login: <span id="last-logined-at">$at</span> from <span id="last-logined-ip">$ip</span>
</div>
<div class="panel panel-default">
<div class="panel-heading">Your account</div>
<table class="table">
<tr><th>Username</th><td id="login">$login</td></tr>
<tr><th>Balance</th><td>65535</td></tr>
<tr><th>Interest</th><td>0.1 %</td></tr>
</table>
</div>
<p><a href="/">Log out</a></p>
HTML
}

sub missing { return $HEAD . "<p>There is no such page.</p>\n" . $FOOT }

1;
