package devstack_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"seatcast/internal/devstack"
)

// childDir tells this test binary to be a program that runs a stack, so that a
// test can kill it.
const childDir = "DEVSTACK_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := beChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// beChild runs a stack until Ctrl-C, as the demo does.
func beChild(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	stack, err := devstack.Start(ctx, devstack.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { _ = stack.Stop() }()
	if err := json.NewEncoder(os.Stdout).Encode(stack); err != nil {
		return err
	}
	return stack.Watch(ctx)
}

// A child is another process with a running stack.
type child struct {
	devstack.Stack // its addresses
	cmd            *exec.Cmd
}

func begin(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = t.Output()
	return cmd
}

func startChild(t *testing.T, dir string) *child {
	t.Helper()
	c := &child{cmd: begin(t, dir)}
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c.Stack)
	}
	if err != nil {
		t.Fatalf("the child did not start: %v", err)
	}
	return c
}

// kill is kill -9.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

func (c *child) interrupt(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("the child did not stop well: %v", err)
	}
}

// write commits a row and a key and returns them; read tells whether they are there.
func write(t *testing.T, s *devstack.Stack, word string) {
	t.Helper()
	pg, rdb := connect(t, s)
	if _, err := pg.Exec(t.Context(), `CREATE TABLE IF NOT EXISTS words (word text)`); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(t.Context(), `INSERT INTO words VALUES ($1)`, word); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Set(t.Context(), word, "there", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func wantWord(t *testing.T, s *devstack.Stack, word string) {
	t.Helper()
	pg, rdb := connect(t, s)
	var n int
	if err := pg.QueryRow(t.Context(), `SELECT count(*) FROM words WHERE word = $1`, word).Scan(&n); err != nil || n != 1 {
		t.Errorf("Postgres has %q %d times, %v", word, n, err)
	}
	if got, err := rdb.Get(t.Context(), word).Result(); got != "there" {
		t.Errorf("Redis has %q = %q, %v", word, got, err)
	}
}

func connect(t *testing.T, s *devstack.Stack) (*pgx.Conn, *redis.Client) {
	t.Helper()
	pg, err := pgx.Connect(t.Context(), s.PostgresURL)
	if err != nil {
		t.Fatal(err)
	}
	o, err := redis.ParseURL(s.RedisURL)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _, _ = pg.Close(context.Background()), rdb.Close() })
	return pg, rdb
}

// folder is one the servers may enter, which t.TempDir is not.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "devstack-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// living lists the processes that work in dir or below.
func living(t *testing.T, dir string) (found []string) {
	t.Helper()
	cwds, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, cwd := range cwds {
		at, _ := os.Readlink(cwd)
		if strings.HasPrefix(at, dir+"/") {
			name, _ := os.ReadFile(filepath.Join(filepath.Dir(cwd), "comm"))
			found = append(found, strings.TrimSpace(string(name))+" in "+at)
		}
	}
	return found
}

func wantNoneLiving(t *testing.T, dir string) {
	t.Helper()
	if left := living(t, dir); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

// outliving starts a process of the servers' account in a folder of dir, which
// nobody ends with its parent; it ends with the test at the latest.
func outliving(t *testing.T, dir, in, program string, args ...string) (pid int) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = filepath.Join(dir, in)
	info, err := os.Stat(filepath.Join(dir, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: st.Uid, Gid: st.Gid}}
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // joined by the cleanup; an ended child is no zombie for long
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	return cmd.Process.Pid
}

// postgresCommand is the command line of the folder's running Postgres.
func postgresCommand(t *testing.T, dir string) []string {
	t.Helper()
	pid, err := os.ReadFile(filepath.Join(dir, "postgres", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(pid), "\n")
	line, err := os.ReadFile("/proc/" + first + "/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
}

// answer tells whether both servers at these addresses do.
func answer(t *testing.T, s *devstack.Stack) bool {
	t.Helper()
	pg, err := pgx.Connect(t.Context(), s.PostgresURL)
	if err != nil {
		return false
	}
	defer func() { _ = pg.Close(t.Context()) }()
	o, err := redis.ParseURL(s.RedisURL)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(o)
	defer func() { _ = rdb.Close() }()
	return rdb.Ping(t.Context()).Err() == nil
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// installed skips the test at a desk without the servers.
func installed(t *testing.T, err error) {
	t.Helper()
	if err != nil && os.Getenv("CI") == "" && strings.Contains(err.Error(), devstack.ErrMissing.Error()) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
