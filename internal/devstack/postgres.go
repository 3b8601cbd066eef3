package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// PostgresOptions say how a private Postgres is run.
type PostgresOptions struct {
	// Fast gives up surviving a crash of the machine: for tests.
	Fast bool
	// Settings are more of its settings: "max_connections=20".
	Settings []string
}

// Postgres is a running private PostgreSQL, reached by a unix socket as user
// seatcast, who may do everything.
type Postgres struct {
	home    *Home
	process *process
}

// Postgres starts the home's PostgreSQL and returns when it answers. The first
// start makes the data; after a crash the start recovers them. It returns
// ErrMissing when PostgreSQL, or the release that made the data, is not installed.
func (h *Home) Postgres(ctx context.Context, o PostgresOptions) (*Postgres, error) {
	data := h.path("postgres")
	bin, err := postgresBin(data)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(
		evict(data, "postgres", syscall.SIGQUIT),
		evict(data+".new", "postgres", syscall.SIGQUIT),
	); err != nil {
		return nil, err
	}
	if err := h.initdb(ctx, bin, data, o.Fast); err != nil {
		return nil, err
	}
	if err := h.clearPostgresLocks(data); err != nil {
		return nil, err
	}
	// SIGQUIT ends it at once with all its children; the next start recovers.
	cmd := h.command(syscall.SIGQUIT, data, filepath.Join(bin, "postgres"), h.postgresArgs(data, o)...)
	p := &Postgres{home: h}
	if p.process, err = h.launch("postgres", cmd); err != nil {
		return nil, err
	}
	if err := p.process.answers(ctx, p.ping); err != nil {
		p.process.quit(syscall.SIGQUIT)
		return nil, err
	}
	return p, nil
}

func (h *Home) postgresArgs(data string, o PostgresOptions) []string {
	settings := []string{
		"listen_addresses=",
		"port=5432",
		`unix_socket_directories="` + h.sockets + `"`,
		"unix_socket_permissions=0700",
		"max_connections=200",
		"logging_collector=off",
		"log_destination=stderr",
	}
	if o.Fast {
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	args := []string{"-D", data}
	for _, s := range append(settings, o.Settings...) {
		args = append(args, "-c", s)
	}
	return args
}

// initdb makes the data under another name first: what a crash leaves half made
// is never taken for a database.
func (h *Home) initdb(ctx context.Context, bin, data string, fast bool) error {
	if exists(filepath.Join(data, "PG_VERSION")) {
		return nil
	}
	half := data + ".new"
	if err := os.RemoveAll(half); err != nil {
		return fmt.Errorf("devstack: %w", err)
	}
	if err := private(half, h.account); err != nil {
		return err
	}
	args := []string{"-D", half, "-U", "seatcast", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--data-checksums"}
	if fast {
		args = append(args, "--no-sync")
	}
	p, err := h.launch("initdb", h.command(syscall.SIGKILL, half, filepath.Join(bin, "initdb"), args...))
	if err != nil {
		return err
	}
	if err := p.finishes(ctx); err != nil {
		return err
	}
	if err := os.Rename(half, data); err != nil {
		return fmt.Errorf("devstack: %w", err)
	}
	return nil
}

// clearPostgresLocks removes the lock files a crash left. Postgres would do so
// itself unless their process number means another process of the account by now.
// That nobody is there we know better: evict has looked.
func (h *Home) clearPostgresLocks(data string) error {
	if !seesLingering {
		return nil
	}
	for _, name := range []string{
		filepath.Join(data, "postmaster.pid"),
		filepath.Join(h.sockets, ".s.PGSQL.5432.lock"),
	} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("devstack: %w", err)
		}
	}
	return nil
}

// URL is the address of a database of this server.
func (p *Postgres) URL(database string) string {
	query := url.Values{"host": {p.home.sockets}, "port": {"5432"}}.Encode()
	u := url.URL{
		Scheme: "postgres", User: url.User("seatcast"), Path: "/" + database,
		RawQuery: strings.ReplaceAll(query, "+", "%20"), // to pgx, as to libpq, a + is a plus
	}
	return u.String()
}

func (p *Postgres) ping(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// Database makes the database when it is missing and returns its address.
func (p *Postgres) Database(ctx context.Context, name string) (string, error) {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return "", fmt.Errorf("devstack: database %s: %w", name, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var there bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&there); err != nil {
		return "", fmt.Errorf("devstack: database %s: %w", name, err)
	}
	if there {
		return p.URL(name), nil
	}
	if _, err := conn.Exec(ctx, `CREATE DATABASE `+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", fmt.Errorf("devstack: make database %s: %w", name, err)
	}
	return p.URL(name), nil
}

// Stop ends every session and stops the server in good order.
func (p *Postgres) Stop() error {
	return p.process.stop(syscall.SIGINT)
}
