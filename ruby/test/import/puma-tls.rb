ssl_bind '127.0.0.1', '9292', {
  key: '/etc/ssl/app.key',
  cert: '/etc/ssl/app.pem',
  verify_mode: 'none'
}
bind 'ssl://127.0.0.1:9293?key=k&cert=c'
bind 'tcp://127.0.0.1:9294'
quiet
tag 'board'
