package peers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"seatcast/loadtest/proc"
	"seatcast/loadtest/reader"
)

// nchanModules are where Debian and others put the module.
var nchanModules = []string{"/usr/lib/nginx/modules/ngx_nchan_module.so", "/usr/lib64/nginx/modules/ngx_nchan_module.so"}

// nchanConfig is one worker, which is its own master so that it ends when we do,
// and pushes one channel. Ten messages are kept, so
// that a reader who is a moment behind misses nothing.
const nchanConfig = `load_module %[1]s;
daemon off;
master_process off;
user %[2]s;
worker_processes 1;
worker_rlimit_nofile 20000;
pid %[3]s/nginx.pid;
error_log %[3]s/nginx.err crit;
events { worker_connections 19000; }
http {
  access_log off;
  client_body_temp_path %[3]s/body; proxy_temp_path %[3]s/proxy; fastcgi_temp_path %[3]s/fastcgi;
  uwsgi_temp_path %[3]s/uwsgi; scgi_temp_path %[3]s/scgi;
  nchan_shared_memory_size 64M;
  keepalive_requests 1000000;
  server {
    listen 127.0.0.1:%[4]d backlog=4096;
    location = /sub { nchan_subscriber; nchan_channel_id c; nchan_subscriber_first_message newest; nchan_websocket_ping_interval 0; }
    location = /pub { nchan_publisher; nchan_channel_id c; nchan_message_buffer_length 10; client_max_body_size 1m; }
  }
}
`

func startNchan(ctx context.Context, s Setup) (Server, error) {
	nginx, err := findNginx()
	if err != nil {
		return nil, err
	}
	module := ""
	for _, m := range nchanModules {
		if _, err := os.Stat(m); err == nil {
			module = m
		}
	}
	if module == "" {
		return nil, fmt.Errorf("%w: nginx has no module nchan (Debian: apt-get install libnginx-mod-nchan)", ErrMissing)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	user := "root"
	if os.Geteuid() != 0 {
		user = "nobody" // is not heeded then
	}
	conf := filepath.Join(s.Dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nchanConfig, module, user, s.Dir, port), 0o644); err != nil {
		return nil, err
	}
	child, err := proc.Start(proc.Command{Name: "nginx", Path: nginx, Args: []string{"-p", s.Dir, "-c", conf}, Dir: s.Dir, On: s.On})
	if err != nil {
		return nil, err
	}
	p := &posted{child: child, changes: s.Changes, url: fmt.Sprintf("http://127.0.0.1:%d/pub", port),
		target: reader.Target{Addr: fmt.Sprintf("127.0.0.1:%d", port), Path: "/sub", WS: s.WS, Ready: reader.Head}}
	return p.up(ctx)
}

func findNginx() (string, error) {
	if path, err := exec.LookPath("nginx"); err == nil {
		return path, nil
	}
	if _, err := os.Stat("/usr/sbin/nginx"); err == nil {
		return "/usr/sbin/nginx", nil
	}
	return "", fmt.Errorf("%w: nginx (Debian: apt-get install nginx-light libnginx-mod-nchan)", ErrMissing)
}

// posted is a server that is given each change in an HTTP request.
type posted struct {
	numbered
	child   *proc.Child
	changes Changes
	target  reader.Target
	url     string
	wrap    func(delta []byte) []byte // nil: the delta as it is
	http    http.Client
}

// up returns p when it answers.
func (p *posted) up(ctx context.Context) (Server, error) {
	if err := answers(ctx, p.child, listens(p.target.Addr)); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *posted) Target() reader.Target { return p.target }
func (p *posted) Pid() int              { return p.child.Pid() }
func (p *posted) Note() string          { return "" }

func (p *posted) Publish(ctx context.Context, i int) error {
	body := p.changes.Delta(i)
	if p.wrap != nil {
		body = p.wrap(body)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	a, err := p.http.Do(q)
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err == nil && (a.StatusCode >= 300 || bytes.Contains(text, []byte(`"error"`))) {
		err = fmt.Errorf("publish: %s: %.200s", a.Status, text)
	}
	return err
}

func (p *posted) Stop() error {
	p.http.CloseIdleConnections()
	return p.child.Stop(patience)
}
