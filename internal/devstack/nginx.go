package devstack

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Nginx is a running private nginx.
type Nginx struct {
	addr    string
	process *process
}

// Nginx starts an nginx under a name of its own in the home and returns when it
// answers. http is what its configuration says inside http{}, given the address
// of the loopback it is to listen on; modules are those it loads, by the names that
// Debian gives them, such as http-js. It returns ErrMissing when nginx or one of them
// is not installed.
func (h *Home) Nginx(ctx context.Context, name string, http func(listen string) string, modules ...string) (n *Nginx, err error) {
	err = onFreePorts(func() error {
		n, err = h.nginxOnce(ctx, name, http, modules)
		return err
	})
	return n, err
}

// nginxOnce is Nginx with one try to have its port.
func (h *Home) nginxOnce(ctx context.Context, name string, http func(listen string) string, modules []string) (*Nginx, error) {
	nginx, err := nginxProgram()
	if err != nil {
		return nil, err
	}
	load := ""
	for _, module := range modules {
		file := "/usr/lib/nginx/modules/ngx_" + strings.ReplaceAll(module, "-", "_") + "_module.so"
		if !exists(file) {
			return nil, missing(file, "libnginx-mod-"+module)
		}
		load += "load_module " + file + ";\n"
	}
	data := h.path(name)
	if err := evict(data, "nginx", syscall.SIGTERM); err != nil {
		return nil, err
	}
	if err := private(data, h.account); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	n := &Nginx{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	conf := filepath.Join(data, "nginx.conf")
	if err := os.WriteFile(conf, []byte(load+nginxConf(http(n.addr))), 0o644); err != nil {
		return nil, fmt.Errorf("devstack: %w", err)
	}
	if n.process, err = h.launch(name, h.command(syscall.SIGKILL, data, nginx, "-p", data, "-c", conf, "-e", "stderr")); err != nil {
		return nil, err
	}
	if err := n.process.answers(ctx, n.ping); err != nil {
		n.process.kill()
		return nil, err
	}
	return n, nil
}

// nginxProgram is in a folder that PATH has for root alone.
func nginxProgram() (string, error) {
	if exists("/usr/sbin/nginx") {
		return "/usr/sbin/nginx", nil
	}
	return program("nginx", "nginx-light")
}

// nginxConf keeps everything in the folder nginx was started on, and one process.
func nginxConf(http string) string {
	var temp strings.Builder
	for _, what := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temp, "    %s_temp_path %s;\n", what, what)
	}
	return "daemon off;\nmaster_process off;\npid nginx.pid;\nevents {}\nhttp {\n    access_log off;\n" + temp.String() + http + "\n}\n"
}

func (n *Nginx) ping(ctx context.Context) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", n.addr)
	if err != nil {
		return err
	}
	return c.Close()
}

// URL is where it answers.
func (n *Nginx) URL() string { return "http://" + n.addr }

// Stop stops it at once.
func (n *Nginx) Stop() error { return n.process.stop(syscall.SIGTERM) }
